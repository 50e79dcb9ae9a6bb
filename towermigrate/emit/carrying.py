"""Take apart again what was written for a program whose object's attributes were read as names (`recognize.carrying`).

What stands between the marks of a method becomes its body again, names that stood for attributes are attributes again,
and a new name that one method binds and another reads (`train_step`) becomes one too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from towermigrate.emit.carried_names import Names, Stretch, arguments_of
from towermigrate.emit.class_text import Edit, class_edits, display_text, edited
from towermigrate.emit.parting import (
    NotParted,
    bound_in,
    comment_behind,
    depth_of,
    header_of,
    shifted,
)
from towermigrate.recognize.carried import Body, Carried, Parameter, mark_in


def put_back(texts: Mapping[str, str], made: Carried) -> dict[str, str]:
    """The new texts of the files, with the class and the functions as their author has them.

    Args:
        texts: what was written, by file, with the marks; the entry's file must be among them.

    Raises:
        NotParted: what was written cannot be taken apart.
    """
    return _PuttingBack({**made.texts, **texts}, made).texts()


def top_of_method(statements: Sequence[str]) -> int:
    """Behind how many of some statements the innermost method begins whose end is not among them.

    Args:
        statements: the texts of statements of one function, marks among them.
    """
    begun: list[tuple[str, int]] = []
    for index, text in enumerate(statements):
        said = _said(text)
        if said[1:] == ["body"]:
            begun.append((said[0], index + 1))
        elif said[1:] == ["end"]:
            begun = [each for each in begun if each[0] != said[0]]
    return begun[-1][1] if begun else 0


def top_of_builder(statements: Sequence[str], top: int) -> int:
    """Where the function that builds the towers begins, if in front of it functions only tell what is fed; else their own top.

    TensorFlow sets up its devices before any operation runs, and what else is called may run one.

    Args:
        statements: the texts of statements of one function, marks among them.
        top: where its first statement stands, if there are no others.
    """
    begun = ""
    for index, text in enumerate(statements):
        said = _said(text)
        if said[1:] == ["begin"] and not begun:
            begun = said[0]
            if [begun, "end"] not in map(_said, statements):
                return index + 1
        elif said[1:] == ["end"] and said[0] == begun:
            begun = ""
        elif not begun or _CALLED.search(text.replace("tf.TensorSpec(", "")):
            return 0 if index else top
    return 0 if statements and len(_said(statements[0])) == 2 else top


def _said(text: str) -> list[str]:
    """What a mark says: the function's number and what of it."""
    return (mark_in(text.strip().strip('"')) or "").split()


_CALLED = re.compile(r"[\w)\]]\(")


class _PuttingBack(Names):
    def texts(self) -> dict[str, str]:
        self._settle()
        self._rename()
        definitions = {each.body.number: self._definition(each) for each in self.stretches}
        edits: list[tuple[int, int, list[str]]] = []
        start = min([self.function.lineno, *(d.lineno for d in self.function.decorator_list)])
        assert self.function.end_lineno is not None
        entry = self._lines(None, start, self.function.end_lineno, 0)
        if self.made.opened is not None:
            entry[0] = self.made.opened
        edits.append((start, self.function.end_lineno, entry))
        methods: dict[str, list[str] | None] = dict.fromkeys(self.made.methods)
        for stretch in self.stretches:
            body = stretch.body
            place = self.marks.get(f"{body.number} def")
            if body.name not in methods and body.path != self.made.path:
                continue
            if place is not None:
                edits.append((place, place, definitions[body.number]))
            else:
                methods[body.name] = definitions[body.number]
        made = self.made
        if made.definition and made.of_class == made.path:
            edits += class_edits(self.rows, made, methods)
        first, last = self.marks.get("import"), self.marks.get("imported")
        lent: list[str] = []
        if first is not None and last is not None:
            lent = self.rows[first : last - 1]
            edits.append((first, last, []))
        texts = {made.path: _still_lent("\n".join(edited(self.rows, edits)), lent)}
        if made.definition and made.of_class != made.path:
            rows = self.all[made.of_class].split("\n")
            texts[made.of_class] = "\n".join(edited(rows, class_edits(rows, made, methods)))
        for path in made.texts.keys() - texts.keys():
            rows = self.all[path].split("\n")
            bodies = [each for each in made.bodies if each.path == path]
            more = [_definition_edit(rows, each, definitions[each.number]) for each in bodies]
            texts[path] = "\n".join(edited(rows, more))
        return texts

    def _lines(self, body: int | None, first: int, last: int, by: int) -> list[str]:
        """The lines of a body, or of the entry, with its calls in place of others' bodies."""
        found: list[str] = []
        skip = {
            each.lineno
            for stretch in self.stretches
            if stretch.body.number == body
            for each in stretch.bound.values()
        }
        aliases = {
            self.marks[f"alias {each.number}"]: each
            for each in self.made.aliases
            if f"alias {each.number}" in self.marks
        }
        results = {
            each.result.lineno: each.result
            for each in self.stretches
            if each.body.number == body and each.result is not None
        }
        sites = {
            self.stretches[site.bodies[0]].start: number
            for number, site in enumerate(self.made.sites)
            if site.parent == body
        }
        line = first
        while line <= last:
            if line in sites:
                line = self._site(sites[line], found, by) + 1
                continue
            if line == self.marks.get("dict begin"):
                line = self._dict(found, by) + 1
                continue
            if line == self.marks.get("dict return"):
                found.append(
                    shifted(f"{_margin(self.rows[line - 1])}return {self._holder(body)}", by)
                )
                line += 1
                continue
            row = self.rows[line - 1]
            if line in aliases:
                alias = aliases[line]
                uses = self.by_name.get(alias.joined, [])
                if any(each.stored for each in uses):
                    if any(each.stored and each.line > line for each in uses):
                        raise NotParted(f"`{alias.attribute}` is set before what it is set to")
                    found.append(shifted(_margin(row) + alias.text, by))
            elif line in results:
                value = row[row.index(" = ") + len(" = ") :]
                found.append(shifted(f"{_margin(row)}return {value}", by))
            elif line not in skip and line not in self.marks.values():
                found.append(row if line in self.inside else shifted(row, by))
                found += [shifted(each, by) for each in self.set_behind.get(line, [])]
            line += 1
        return found

    def _dict(self, found: list[str], by: int) -> int:
        """Add the statement that makes the dict; the last line of what stands in its place."""
        display = self.made.display
        assert display is not None
        first, last = self._line("dict begin"), self._line("dict end")
        values: dict[str, str] = {}
        gone: set[int] = set()
        entries = {joined: key for key, joined, bound in display.entries if bound}
        for node in ast.walk(self.function):
            if isinstance(node, ast.stmt) and first < node.lineno < last:
                target = node.targets[0] if isinstance(node, ast.Assign) else None
                if not isinstance(target, ast.Name) or target.id not in entries:
                    continue
                if node.lineno != node.end_lineno:
                    raise NotParted("an entry of the dict has several lines")
                values[entries[target.id]] = self.rows[node.lineno - 1].split("=", 1)[1].strip()
                gone.add(node.lineno)
        for name in entries:
            if sum(each.stored for each in self.by_name.get(name, [])) > 1:
                if any(each.stored and each.line < first for each in self.by_name[name]):
                    raise NotParted("an entry of the dict is set before the dict is made")
        for number in range(first + 1, last):
            line, row = number, self.rows[number - 1]
            if line not in gone and line not in self.marks.values() and row.strip():
                found.append(row if line in self.inside else shifted(row, by))
        for key, joined, bound in display.entries:
            uses = self.by_name.get(joined, [])
            if not bound and any(each.stored for each in uses):
                if any(each.stored and each.line > first for each in uses):
                    raise NotParted(f"`{key}` is put into the dict before it is made")
                values[key] = self._locals(display.body).get(joined, joined)
        new = [
            self.attributes[name]
            for name in self.attributes
            if name not in self.shared and name not in self.made.attributes and self._in_dict(name)
        ]
        text = display_text(display.text, [key for key, *_ in display.entries], values, new)
        found += [shifted(_margin(self.rows[first - 1]) + each, by) for each in text]
        return last

    def _site(self, number: int, found: list[str], by: int) -> int:
        """Add the statement that calls; the last line of what stands in its place."""
        site = self.made.sites[number]
        stretches = [self.stretches[each] for each in site.bodies]
        for one, other in zip(stretches, stretches[1:], strict=False):
            if any(self.rows[n - 1].strip() for n in range(one.end + 1, other.start)):
                raise NotParted(f"something stands between `{one.body.name}` and its neighbour")
        text = site.text
        text = self._bound_now(text, stretches[0])
        tree = ast.parse(text).body[0]
        calls = sorted(
            (each for each in ast.walk(tree) if isinstance(each, ast.Call)),
            key=lambda c: (c.lineno, c.col_offset, c.end_lineno or 0, c.end_col_offset or 0),
        )
        changed: list[tuple[ast.Call, str]] = []
        for stretch in stretches:
            given = self._given(stretch, calls[stretch.body.call])
            if given is not None:
                changed.append((calls[stretch.body.call], given))
        if changed and "\n" in text:
            text = ast.unparse(tree)
            if len(changed) > 1:
                raise NotParted("the calls of a statement of several lines change")
            call, given = changed[0]
            text = text.replace(ast.unparse(call), f"{ast.unparse(call.func)}({given})", 1)
        else:
            for call, given in sorted(
                changed, key=lambda c: c[0].end_col_offset or 0, reverse=True
            ):
                if any(other is not call and _inside(other, call) for other, _ in changed):
                    raise NotParted("a call in another one's arguments changes")
                row = text.encode()
                start, end = call.func.end_col_offset or 0, call.end_col_offset or 0
                text = (row[:start] + f"({given})".encode() + row[end:]).decode()
        rows = text.split("\n")
        column = stretches[0].column
        found.append(shifted(" " * column + rows[0], by))
        found += [shifted(each, column - site.column + by) for each in rows[1:]]
        return stretches[-1].end

    def _bound_now(self, text: str, stretch: Stretch) -> str:
        """A statement that calls, with the names that are bound now to what the function returns."""
        tree = ast.parse(text).body[0]
        if stretch.result is None or not isinstance(tree, ast.Assign):
            return text
        now = self.rows[stretch.result.lineno - 1].partition(" = ")[0].strip()
        (target,) = tree.targets
        if ast.unparse(target) == ast.unparse(ast.parse(now, mode="eval").body):
            return text
        if target.lineno != tree.value.lineno:
            raise NotParted("what a method returns is bound in several lines")
        row = text.encode()
        return f"{now} = {row[tree.value.col_offset :].decode()}"

    def _given(self, stretch: Stretch, call: ast.Call) -> str | None:
        """What a call is given now; None where that is what its author gave it."""
        kept = self._parameters(stretch)
        now: dict[str, str] = {}
        for each in kept:
            if each.argument is None or each.holds:
                continue
            bound = stretch.bound.get(each.joined)
            text = each.argument
            if bound is not None:
                row = self.rows[bound.lineno - 1]
                text = row.split("=", 1)[1].strip()
            now[each.name] = text
        before = {
            each.name: each.argument
            for each in stretch.body.parameters
            if each.argument is not None and not each.holds
        }
        if now == before:
            return None
        keywords = {each.arg for each in call.keywords}
        held = next((p for p in stretch.body.parameters if p.holds and p.argument), None)
        shown: list[str] = []
        by_name = False
        for each in stretch.body.parameters:
            if each is held:
                shown.append(f"{each.name}={each.argument}" if by_name else each.argument or "")
            elif each.name in now:
                by_name = by_name or each.name in keywords
                shown.append(f"{each.name}={now[each.name]}" if by_name else now[each.name])
            elif each.argument is None and not each.holds:
                by_name = True
        return ", ".join(shown)

    def _parameters(self, stretch: Stretch) -> list[Parameter]:
        """The parameters that a function has still."""
        kept: list[Parameter] = []
        for each in stretch.body.parameters:
            if each.holds:
                kept.append(each)
            elif each.argument is None:
                bound = stretch.bound.get(each.joined)
                if bound is not None and ast.unparse(bound.value) != each.default:
                    raise NotParted(f"the default of `{each.name}` changes")
                kept.append(each)
            elif each.same:
                if any(use.stored for use in self.by_name.get(each.joined, [])):
                    kept.append(each)
                elif each.joined in self._given_to(self._parent(stretch.body)):
                    kept.append(each)
            elif each.joined in stretch.bound:
                kept.append(each)
        return kept

    def _given_to(self, body: int | None) -> set[str]:
        """The parameters' names of a function."""
        if body is None:
            return arguments_of(self.function.args)
        return {each.joined for each in self._parameters(self.stretches[body])}

    def _definition(self, stretch: Stretch) -> list[str]:
        body = stretch.body
        header = header_of(body.definition)
        kept = self._parameters(stretch)
        if kept != list(body.parameters):
            shown = [
                each.name if each.default is None else f"{each.name}={each.default}"
                for each in kept
            ]
            margin = len(header[0]) - len(header[0].lstrip(" "))
            text = f"{' ' * margin}def {body.name}({', '.join(shown)}):{comment_behind(header)}"
            header = [text]
        depth = depth_of(body.definition)
        by = depth - stretch.column
        early: list[str] = []
        first = stretch.start + 1
        if stretch.docstring is not None:
            assert stretch.docstring.end_lineno is not None
            end = stretch.docstring.end_lineno
            early = self._lines(body.number, stretch.docstring.lineno, end, by)
            before = self._lines(body.number, first, stretch.docstring.lineno - 1, by)
            rows = [*before, *self._lines(body.number, end + 1, stretch.end - 1, by)]
        else:
            rows = self._lines(body.number, first, stretch.end - 1, by)
        rows = [*early, *_trimmed(rows)]
        return [*header, *(rows or [f"{' ' * depth}pass"])]


def _definition_edit(rows: Sequence[str], body: Body, new: list[str]) -> Edit:
    """The edit that puts a function back in a file of its own, where empty lines stand for it."""
    mark = body.mark("def").strip('"')
    place = next((n for n, text in enumerate(rows, 1) if text.strip().strip('"') == mark), None)
    lines = body.definition.count("\n")
    if place is None or any(row.strip() for row in rows[place : place + lines]):
        raise NotParted(f"the place of `{body.name}` is gone")
    return place, place + lines, new


def _inside(call: ast.Call, other: ast.Call) -> bool:
    """Whether a call stands in the arguments of another one."""
    given = [*other.args, *(each.value for each in other.keywords)]
    return any(node is call for each in given for node in ast.walk(each))


def _still_lent(text: str, lent: Sequence[str]) -> str:
    """The entry's file, with those of the lent imports that it needs now."""
    tree = ast.parse(text)
    read = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    wanted = read - bound_in(tree.body)
    kept: list[str] = []
    for row in lent:
        (each,) = ast.parse(row).body
        if wanted & bound_in([each]):
            kept.append(row)
    if not kept:
        return text
    lines = [
        each.end_lineno or 0 for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)
    ]
    rows = text.split("\n")
    rows[max(lines, default=0) : max(lines, default=0)] = kept
    return "\n".join(rows)


def _margin(row: str) -> str:
    return row[: len(row) - len(row.lstrip(" "))]


def _trimmed(rows: Sequence[str]) -> list[str]:
    """Lines without the empty ones around them."""
    full = [n for n, row in enumerate(rows) if row.strip()]
    return list(rows[full[0] : full[-1] + 1]) if full else []
