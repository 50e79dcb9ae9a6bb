"""Take apart again what was written for a program whose object's attributes were read as names (`recognize.carrying`).

What stands between the marks of a method becomes its body again, names that stood for attributes are attributes again,
and a new name that one method binds and another reads (`train_step`) becomes one too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from towermigrate.emit.class_text import Edit, class_edits, display_text, edited
from towermigrate.emit.parting import (
    NotParted,
    bound_in,
    comment_behind,
    depth_of,
    header_of,
    shifted,
)
from towermigrate.recognize.carried import Alias, Body, Carried, Parameter, mark_in
from towermigrate.recognize.python_scopes import lines_in_texts


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
        said = (mark_in(text.strip().strip('"')) or "").split()
        if said[1:] == ["body"]:
            begun.append((said[0], index + 1))
        elif said[1:] == ["end"]:
            begun = [each for each in begun if each[0] != said[0]]
    return begun[-1][1] if begun else 0


@dataclass
class _Stretch:
    """The lines of a body, between the lines of its first and its last mark, and what binds its parameters there."""

    body: Body
    start: int
    inner: int
    end: int
    column: int
    bound: dict[str, ast.Assign] = field(default_factory=dict)
    docstring: ast.stmt | None = None

    def holds(self, line: int) -> bool:
        return self.start <= line <= self.end


@dataclass
class _Use:
    """Where a name of the joined function stands, or a function of that name."""

    name: str
    node: ast.Name | ast.FunctionDef
    line: int
    stored: bool
    body: int | None


class _PuttingBack:
    def __init__(self, all_texts: Mapping[str, str], made: Carried) -> None:
        self.made = made
        self.all = all_texts
        text = all_texts[made.path]
        self.rows = text.split("\n")
        self.tree = ast.parse(text)
        self.function = next(
            each
            for each in self.tree.body
            if isinstance(each, ast.FunctionDef) and each.name == made.caller
        )
        self.inside = lines_in_texts(text)
        self.marks: dict[str, int] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                value = node.value.value
                said = mark_in(value) if isinstance(value, str) else None
                if said is not None:
                    self.marks[said] = node.lineno
        self.stretches = [self._stretch(each) for each in made.bodies]
        parameters = _arguments(self.function.args)
        self.own = bound_in(self.function.body) | parameters
        self.joined = {*made.attributes, *(n for b in made.bodies for n in b.names), *made.names}
        self.given = parameters
        self.uses = list(self._uses(self.function.body, frozenset()))
        self.by_name: dict[str, list[_Use]] = {}
        for use in self.uses:
            self.by_name.setdefault(use.name, []).append(use)
        self.shared: dict[str, Alias] = {each.joined: each for each in made.aliases}
        self.kept: dict[int, list[Parameter]] = {}
        self.attributes: dict[
            str, str
        ] = {}  # names that are attributes wherever they are not a function's own
        self.set_behind: dict[int, list[str]] = {}  # what is set behind a function's last line

    def _line(self, said: str) -> int:
        if said not in self.marks:
            raise NotParted("what a method does is not in one place any more")
        return self.marks[said]

    def _stretch(self, body: Body) -> _Stretch:
        start, inner, end = (
            self._line(f"{body.number} {each}") for each in ("begin", "body", "end")
        )
        for block in _blocks(self.function):
            lines = [each.lineno for each in block]
            if start in lines:
                if inner not in lines or end not in lines or not start < inner < end:
                    break
                column = block[lines.index(start)].col_offset
                found = _Stretch(body, start, inner, end, column)
                names = {each.joined for each in body.parameters if not (each.same or each.holds)}
                for statement in block[lines.index(start) + 1 : lines.index(inner)]:
                    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                    if isinstance(target, ast.Name) and target.id in names:
                        assert isinstance(statement, ast.Assign)
                        if statement.end_lineno != statement.lineno:
                            raise NotParted(f"what `{body.name}` is given has several lines")
                        found.bound[target.id] = statement
                first = block[lines.index(inner) + 1]
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    if first.lineno not in self.marks.values():
                        found.docstring = first
                return found
        raise NotParted(f"what `{body.name}` does is not in one place any more")

    def _of(self, node: ast.Name | ast.arg | ast.FunctionDef) -> int | None:
        """The innermost body that a node is of."""
        found = [each for each in self.stretches if each.holds(node.lineno)]
        if not found:
            return None
        inner = max(found, key=lambda each: each.start)
        for bound in inner.bound.values():
            if node.lineno == bound.lineno and node is not bound.targets[0]:
                return self._parent(inner.body)  # what it is given is said by whoever calls it
        return inner.body.number

    def _parent(self, body: Body) -> int | None:
        return self.made.sites[body.site].parent

    # ---- names -----------------------------------------------------------------------------------

    def _uses(self, nodes: Sequence[ast.AST], hidden: frozenset[str]) -> Iterator[_Use]:
        """Where the joined function's names stand, in functions of its own too."""
        for node in nodes:
            if isinstance(node, ast.Name):
                if node.id not in self.own and node.id not in hidden and node.id in self.joined:
                    raise NotParted(f"`{self.made.own_name(node.id)}` is read and bound nowhere")
                if node.id in self.own and node.id not in hidden:
                    stored = not isinstance(node.ctx, ast.Load)
                    yield _Use(node.id, node, node.lineno, stored, self._of(node))
            elif isinstance(node, ast.FunctionDef):
                if node.name in self.own and node.name not in hidden:
                    body = self._of(node)
                    yield _Use(node.name, node, node.lineno, True, body)
                around = [*node.decorator_list, *_defaults(node.args)]
                yield from self._uses(around, hidden)
                yield from self._uses(
                    node.body, hidden | _arguments(node.args) | bound_in(node.body)
                )
            elif isinstance(node, ast.Lambda):
                yield from self._uses(_defaults(node.args), hidden)
                yield from self._uses([node.body], hidden | _arguments(node.args))
            elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                bound = {
                    each.id
                    for generator in node.generators
                    for each in ast.walk(generator.target)
                    if isinstance(each, ast.Name)
                }
                yield from self._uses(list(ast.iter_child_nodes(node)), hidden | bound)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                raise NotParted("a function binds the names of another one")
            else:
                yield from self._uses(list(ast.iter_child_nodes(node)), hidden)

    def _holder(self, body: int | None) -> str | None:
        return self.made.holder if body is None else self.made.bodies[body].holder

    def _locals(self, body: int | None) -> Mapping[str, str]:
        return self.made.names if body is None else self.made.bodies[body].names

    def _settle(self) -> None:
        """Which names are attributes, and which parameters stay."""
        for name, uses in self.by_name.items():
            if name not in self.given and not any(each.stored for each in uses):
                raise NotParted(f"`{name}` is read and bound nowhere")
            owners = {n for n in (None, *range(len(self.made.bodies))) if name in self._locals(n)}
            if name in self.shared:
                self.attributes[name] = self.shared[name].attribute
                if any(each.stored and each.body not in owners for each in uses):
                    raise NotParted(f"`{name}` is bound in two methods")
                continue
            if name in self.made.attributes:
                self.attributes[name] = self.made.attributes[name]
                continue
            bodies = {each.body for each in uses}
            if owners and bodies <= owners:
                if any(each.stored and not self._owns(each.body, name) for each in uses):
                    raise NotParted(f"`{name}` is bound in two functions")
                continue
            if len(bodies) > 1 or owners and not bodies <= owners:
                self._new_attribute(name, uses)

    def _owns(self, body: int | None, name: str) -> bool:
        """Whether a name is not a parameter that has it from elsewhere."""
        if body is None:
            return True
        return not any(p.same and p.joined == name for p in self.made.bodies[body].parameters)

    def _new_attribute(self, name: str, uses: Sequence[_Use]) -> None:
        """A name that more than one function needs is one of the object's."""
        own = self.made.own_name(name)
        others = {*self.made.attributes.values(), *self.made.methods, *self.attributes.values()}
        if own in others or own.startswith("__"):
            raise NotParted(f"the object has a `{own}` of its own")
        if self._in_dict(name):
            if any(each.stored and each.line > self._line("dict begin") for each in uses):
                raise NotParted(f"`{own}` is made behind the dict that it belongs to")
        elif name in self.made.names:
            raise NotParted(f"a method reads `{own}`, which the object does not know")
        self.attributes[name] = own

    def _in_dict(self, name: str) -> bool:
        """Whether a name is bound where the dict is made, which then holds it."""
        display = self.made.display
        stored = {each.body for each in self.by_name[name] if each.stored}
        return display is not None and stored == {display.body}

    def _told(self, use: _Use) -> str:
        """A name as it stands in the function that it is of."""
        name, body = use.name, use.body
        own = self._locals(body).get(name)
        if name not in self.attributes:
            return own or name
        if name in self.shared:
            alias = self.shared[name]
            if own is not None:
                said = "dict begin" if alias.of_dict else f"alias {alias.number}"
                late = body == alias.body and use.line > self._line(said)
                if not (late and alias.by_attribute and not use.stored):
                    return own
        elif self.made.display is not None and body == self.made.display.body:
            if name not in self.made.attributes and self._in_dict(name):
                return self.made.own_name(name)
            if name in self.made.attributes and use.line < self._line("dict end"):
                return self.made.own_name(name)  # an entry, which is written where the dict is
        elif any(isinstance(each.node, ast.FunctionDef) for each in self.by_name[name]):
            if any(each.body == body and each.stored for each in self.by_name[name]):
                return self.made.own_name(name)  # set behind the function
        holder = self._holder(body)
        if holder is None or body is None and use.line < self._made_at():
            raise NotParted(f"`{self.made.own_name(name)}` is needed where the object is not known")
        return self.made.access(holder, self.attributes[name])

    def _made_at(self) -> int:
        if self.made.display is not None and self.made.display.body is None:
            return self._line("dict end")
        return max(
            [each.end for each in self.stretches if each.body.site == self.made.bodies[0].site]
        )

    def _rename(self) -> None:
        """Every name as its author has it, and attributes as such."""
        edits: list[tuple[int, int, str, str]] = []
        stands_for: dict[tuple[int | None, str], str] = {}
        known = {id(use.node): use for use in self.uses}
        for node in ast.walk(self.function):
            if isinstance(node, ast.Name):
                body = self._of(node)
                use = known.get(id(node))
                new = node.id if use is None else self._told(use)
                if node.id in self.made.lifted:
                    if self._holder(body) is None:
                        raise NotParted(f"`{node.id}` is needed where the object is not known")
                    new = f"{self._holder(body)}.{self.made.lifted[node.id]}"
                if new.isidentifier():
                    if stands_for.setdefault((body, new), node.id) != node.id:
                        raise NotParted(f"`{new}` means two things in one function")
                elif isinstance(node.ctx, ast.Del):
                    raise NotParted(f"`{new}` is deleted")
                if new != node.id:
                    edits.append((node.lineno, node.col_offset, node.id, new))
            elif isinstance(node, ast.arg):
                key = (self._of(node), node.arg)
                if stands_for.setdefault(key, node.arg) != node.arg:
                    raise NotParted(f"`{node.arg}` means two things in one function")
            elif isinstance(node, ast.FunctionDef) and id(node) in known:
                self._function(node, known[id(node)])
        for name, uses in self.by_name.items():
            if name in self.attributes and name not in self.shared:
                for use in uses:
                    if use.stored and not isinstance(use.node, ast.Name | ast.FunctionDef):
                        raise NotParted(f"`{name}` is bound by an import")
        imported = {
            (each.asname or each.name).partition(".")[0]
            for node in ast.walk(self.function)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for each in node.names
        } | {
            each.name
            for each in ast.walk(self.function)
            if isinstance(each, ast.ExceptHandler | ast.ClassDef) and each.name
        }
        changed = {name for _, _, name, _ in edits}
        if imported & changed:
            raise NotParted(f"`{min(imported & changed)}` is bound by no assignment")
        for line, byte, old, new in sorted(edits, reverse=True):
            row = self.rows[line - 1]
            at = len(row.encode()[:byte].decode())
            if not row.startswith(old, at):
                raise NotParted(f"`{old}` stands in a text")
            self.rows[line - 1] = row[:at] + new + row[at + len(old) :]

    def _function(self, node: ast.FunctionDef, use: _Use) -> None:
        """A function that is bound to a name which is an attribute now, or that its author calls otherwise."""
        told = self._told(use)
        if told != node.name:
            raise NotParted(f"the function `{node.name}` stands under another name")
        if node.name in self.attributes and node.name not in self.shared:
            if self._in_dict(node.name):
                return  # an entry of it
            holder = self._holder(use.body)
            if holder is None:
                raise NotParted(f"`{node.name}` is needed where the object is not known")
            assert node.end_lineno is not None
            value = self.made.access(holder, self.attributes[node.name])
            text = f"{' ' * node.col_offset}{value} = {told}"
            self.set_behind.setdefault(node.end_lineno, []).extend(["", text])

    # ---- the text --------------------------------------------------------------------------------

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

    def _given(self, stretch: _Stretch, call: ast.Call) -> str | None:
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

    def _parameters(self, stretch: _Stretch) -> list[Parameter]:
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
            return _arguments(self.function.args)
        return {each.joined for each in self._parameters(self.stretches[body])}

    def _definition(self, stretch: _Stretch) -> list[str]:
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


def _arguments(args: ast.arguments) -> set[str]:
    return {each.arg for each in ast.walk(args) if isinstance(each, ast.arg)}


def _defaults(args: ast.arguments) -> list[ast.expr]:
    return [*args.defaults, *(each for each in args.kw_defaults if each is not None)]


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a function, in functions of its own too."""
    for each in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(each, name, None)
            if isinstance(block, list) and block:
                yield block
