"""Take apart again what was written for a program whose functions were read as one (`recognize.inlining`).

What stands between the marks of a function becomes its body again. It returns what others read of what it binds,
and is given what it reads of what others bind: names that are gone are handed over no more, new ones are.
"""

from __future__ import annotations

import ast
import copy
import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from towermigrate.recognize.joined import MARK, Joined, Part
from towermigrate.recognize.python_scopes import header_lines, lines_in_texts


class NotParted(Exception):
    """What was written cannot be taken apart; the message says why."""


def parted(texts: Mapping[str, str], made: Joined) -> dict[str, str]:
    """The new texts of the files that were joined, with the functions as their author has them.

    Args:
        texts: what was written, by file, with the marks; the caller's file must be among them.

    Raises:
        NotParted: statements of one function now stand in another.
    """
    return _Parting({**made.texts, **texts}, made).texts()


@dataclass
class _Region:
    """The new body of a function: its statements and lines; `start` and `end` are the lines of the marks.

    `bound` binds its parameters that the caller calls otherwise, or gives no names.
    """

    part: Part
    bound: list[ast.stmt]
    statements: list[ast.stmt]
    lines: list[int]
    start: int
    end: int
    column: int


class _Parting:
    def __init__(self, texts: Mapping[str, str], made: Joined) -> None:
        self.all = texts
        self.rows = texts[made.path].split("\n")
        self.made = made
        self.tree = ast.parse(texts[made.path])
        self.caller: ast.FunctionDef | ast.Module = self.tree
        if made.caller is not None:
            self.caller = next(
                each
                for each in self.tree.body
                if isinstance(each, ast.FunctionDef) and each.name == made.caller
            )
        # What every function can read.
        self.imported = {
            name
            for each in self.tree.body
            if isinstance(each, ast.Import | ast.ImportFrom)
            for name in bound_in([each])
        }
        self.regions = [self._region(part) for part in made.parts]

    def _region(self, part: Part) -> _Region:
        for body in _blocks(self.caller):
            places = {
                what: number
                for number, statement in enumerate(body)
                for what in ("begin", "body", "end")
                if _is_mark(statement, part, what)
            }
            if places:
                break
        if len(places) != 3 or not places["begin"] < places["body"] < places["end"]:
            raise NotParted(f"what `{part.name}` does is not in one place any more")
        start, inner, end = (body[places[what]] for what in ("begin", "body", "end"))
        here = {own: new for new, own in part.renamed.items()}
        names = {
            f"{here.get(name, name)} = {ast.unparse(ast.parse(value, mode='eval'))}"
            for name, value in (*part.given, *part.defaults)
        }
        first, rest = (
            body[places["begin"] + 1 : places["body"]],
            body[places["body"] + 1 : places["end"]],
        )
        # What its parameters are called there; what was written in front of its first statement is a part of it.
        bound = [each for each in first if ast.unparse(each) in names]
        statements = [*(each for each in first if each not in bound), *rest]
        gone = {line for each in (inner, *bound) for line in _lines(each)}
        early: set[int] = set()
        if rest and isinstance(rest[0], ast.Expr) and isinstance(rest[0].value, ast.Constant):
            early = set(_lines(rest[0]))  # its docstring
        lines = [n for n in range(start.lineno + 1, end.lineno) if n not in gone]
        lines.sort(key=lambda line: line not in early)
        for each in statements:
            if each.lineno < inner.lineno:
                lines = self._without_empty(lines, each)
        return _Region(part, bound, statements, lines, start.lineno, end.lineno, start.col_offset)

    def _without_empty(self, lines: list[int], statement: ast.stmt) -> list[int]:
        """Lines without the empty ones around a statement."""
        first, last = (lines.index(each) for each in (statement.lineno, statement.end_lineno or 0))
        while first and not self.rows[lines[first - 1] - 1].strip():
            del lines[first - 1]
            first, last = first - 1, last - 1
        while last + 1 < len(lines) and not self.rows[lines[last + 1] - 1].strip():
            del lines[last + 1]
        return lines

    def texts(self) -> dict[str, str]:
        edits: dict[str, list[tuple[int, int, list[str]]]] = {path: [] for path in self.made.texts}
        trees = {path: ast.parse(self.all[path]) for path in self.made.texts}
        for region in self.regions:
            part = region.part
            given, returned = self._given(region), self._returned(region)
            call = self._call(region, given, returned)
            edits[self.made.path].append((region.start, region.end, call))
            place = _mark_of(trees[part.path], part, "def")
            if place is None:
                raise NotParted(f"the place of `{part.name}` is gone")
            new = self._definition(region, [name for name, _ in given], returned)
            # In another file empty lines stand for the others of the definition.
            stood = part.definition.count("\n") if part.path != self.made.path else 0
            edits[part.path].append((place, place + stood, new))
            first, last = (_mark_of(self.tree, part, each) for each in ("import", "imported"))
            if first is not None and last is not None:
                edits[self.made.path].append((first, last, []))
                kept = self._still_read(region, first, last)
                if kept:
                    place = self._behind_imports(self._first_lent())
                    edits[self.made.path].append((place, place - 1, kept))
        return {path: self._edited(path, each) for path, each in edits.items()}

    def _still_read(self, region: _Region, first: int, last: int) -> list[str]:
        """Of the imports that were lent to a function of another file, those that its caller's file now needs."""
        elsewhere = _read([each for each in self.tree.body if each is not self.caller])
        elsewhere |= _read(self._others(*self.regions))
        for other in self.regions:  # what is of another file reads of that file
            if other is not region:
                own = other.part.globals if other.part.path != self.made.path else frozenset()
                elsewhere |= _read(other.statements) - own
        kept: list[str] = []
        for each in self.tree.body:
            if first < each.lineno < last and isinstance(each, ast.ImportFrom):
                names = [a for a in each.names if (a.asname or a.name) in elsewhere]
                if any((a.asname or a.name) in region.part.renamed for a in names):
                    raise NotParted(
                        f"the caller of `{region.part.name}` would read what it has not"
                    )
                if names:
                    kept.append(ast.unparse(ast.ImportFrom(each.module, names, each.level)))
        return kept

    def _first_lent(self) -> int:
        """The first line of what was lent to functions of other files, in a join before this one too."""
        return min(
            each.lineno
            for each in self.tree.body
            if isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Constant)
            and re.fullmatch(rf"{MARK} \d+ import", str(each.value.value))
        )

    def _behind_imports(self, before: int) -> int:
        """The line behind the imports that a file begins with."""
        lines = [
            each.end_lineno
            for each in self.tree.body
            if isinstance(each, ast.Import | ast.ImportFrom) and each.lineno < before
        ]
        return 1 + (lines[-1] or 0)

    def _edited(self, path: str, edits: Sequence[tuple[int, int, list[str]]]) -> str:
        rows = self.all[path].split("\n")
        for start, end, new in sorted(edits, reverse=True):
            if path != self.made.path and any(row.strip() for row in rows[start:end]):
                raise NotParted(f"the place of a function in {path} is gone")
            rows[start - 1 : end] = new
        return "\n".join(rows)

    # ---- what is handed over ---------------------------------------------------------------------

    def _others(self, *regions: _Region) -> list[ast.stmt]:
        """The caller's statements without those of some regions, marks aside."""
        whole = copy.deepcopy(self.caller)
        for body in _blocks(whole):
            kept = [
                each for each in body if not any(r.start <= each.lineno <= r.end for r in regions)
            ]
            body[:] = kept or [ast.copy_location(ast.Pass(), body[0])]
        return whole.body

    def _given(self, region: _Region) -> list[tuple[str, str]]:
        """The parameters of a function and what each is given, both as its author calls them."""
        bound = bound_in(region.statements)
        own = bound_in(region.bound)
        elsewhere = bound_in(self._others(region)) | _parameters(self.caller)
        read = _read(region.statements) - region.part.globals - self.imported - own
        clash = bound & elsewhere
        if clash:
            raise NotParted(f"`{min(clash)}` is bound in `{region.part.name}` and outside of it")
        after = bound_in([s for s in self.caller.body if s.lineno > region.end])
        before = elsewhere - after
        handed = {
            name for each in self.regions for name in bound_in([*each.bound, *each.statements])
        }
        late = read & after - before
        if late:
            raise NotParted(f"`{min(late)}`, which `{region.part.name}` reads, is bound behind it")
        here = {old: new for new, old in region.part.renamed.items()}
        given: list[tuple[str, str]] = []
        wanted = set(read & before)
        first_gone: int | None = None
        for name, argument in region.part.given:
            used = here.get(name, name)
            if used == name == argument or used == argument:
                if used in wanted or used in before - handed:
                    given.append((name, argument))
                    wanted.discard(used)
                elif first_gone is None:
                    first_gone = len(given)
                continue
            given.append((name, argument))  # bound to it between the first two marks
        if self.made.caller is None and not region.part.given:
            return []  # it reads what the module binds, as ever
        added = [(each, each) for each in sorted(wanted, key=self._order)]
        at = len(given) if first_gone is None else first_gone
        return given[:at] + added + given[at:]

    def _returned(self, region: _Region) -> list[str]:
        """What a function returns, in the caller's names."""
        bound = bound_in([*region.bound, *region.statements])
        wanted = bound & _read(self._others(region))
        kept: list[str] = []
        first_gone: int | None = None
        for target in region.part.targets:
            if target in wanted:
                kept.append(target)
                wanted.discard(target)
            elif first_gone is None:
                first_gone = len(kept)
        added = sorted(wanted, key=self._order)
        at = len(kept) if first_gone is None else first_gone
        return kept[:at] + added + kept[at:]

    def _order(self, name: str) -> tuple[int, str]:
        """Where a name is bound."""
        for node in ast.walk(self.caller):
            if isinstance(node, ast.stmt) and name in bound_in([node]):
                return node.lineno, name
        return -1, name

    # ---- the new texts ---------------------------------------------------------------------------

    def _call(
        self, region: _Region, given: Sequence[tuple[str, str]], returned: Sequence[str]
    ) -> list[str]:
        part, margin = region.part, " " * region.column
        if list(given) == list(part.given) and tuple(returned) == part.targets:
            rows = part.call.split("\n")
            by = region.column - part.column
            return [margin + rows[0], *(shifted(row, by) for row in rows[1:])]
        tree = ast.parse(part.call).body[0]
        if not isinstance(tree, ast.Assign | ast.Expr) or not isinstance(tree.value, ast.Call):
            raise NotParted(
                f"`{part.name}` is called in an `if`, and would be given something else"
            )
        keywords = {each.arg for each in tree.value.keywords}
        arguments = [
            f"{name}={text}" if name in keywords or _behind_keyword(name, given, keywords) else text
            for name, text in given
        ]
        target = f"{', '.join(returned)} = " if returned else ""
        return [f"{margin}{target}{ast.unparse(tree.value.func)}({', '.join(arguments)})"]

    def _definition(
        self, region: _Region, given: Sequence[str], returned: Sequence[str]
    ) -> list[str]:
        part = region.part
        header = header_of(part.definition)
        if list(given) != [name for name, _ in part.given]:
            parameters = [*given, *(f"{name}={value}" for name, value in part.defaults)]
            header = [f"def {part.name}({', '.join(parameters)}):{comment_behind(header)}"]
        depth = depth_of(part.definition)
        rows = self._named(region)
        lines = [line for line in region.lines if rows[line].strip()]
        if lines:  # without empty lines around them
            places = [region.lines.index(line) for line in lines]
            lines = region.lines[min(places) : max(places) + 1]
        inside = lines_in_texts("\n".join(self.rows))
        by = depth - region.column
        body = [rows[line] if line in inside else shifted(rows[line], by) for line in lines]
        own = part.renamed
        if part.returns_expression and self._ends_in(region, returned):
            last = next(n for n, line in enumerate(lines) if line == region.statements[-1].lineno)
            body[last] = body[last].replace(f"{part.returned[0]} = ", "return ", 1)
        elif returned:
            names = [own.get(each, each) for each in returned]
            body.append(f"{' ' * depth}return {', '.join(names)}")
        return [*header, *(body or [f"{' ' * depth}pass"])]

    def _ends_in(self, region: _Region, returned: Sequence[str]) -> bool:
        """Whether a region's last statement still binds what its function returned without a name."""
        last = region.statements[-1] if region.statements else None
        return (
            isinstance(last, ast.Assign)
            and [ast.unparse(each) for each in last.targets] == list(returned)
            and tuple(returned) == region.part.returned
        )

    def _stay_apart(self, region: _Region) -> None:
        """Two names of a region must not become one."""
        own = region.part.renamed
        used = {name for each in region.statements for name in _names_in(each)}
        here = {old: new for new, old in own.items()}
        parameters = dict(region.part.given)
        for name, _ in self._given(region):
            used.add(here.get(name, name) if name in parameters else name)
        used.update(self._returned(region))
        told: dict[str, str] = {}
        for name in sorted(used):
            if told.setdefault(own.get(name, name), name) != name:
                raise NotParted(f"`{own.get(name, name)}` means two things in `{region.part.name}`")
        inner = _inner_names(region.statements)
        for statement in region.statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in own:
                    raise NotParted(f"`{node.name}` means two things in `{region.part.name}`")
        for name in used & own.keys():
            if own[name] in inner:
                raise NotParted(f"`{own[name]}` means two things in `{region.part.name}`")

    def _named(self, region: _Region) -> dict[int, str]:
        """The lines of a function, with the names of its author."""
        own = region.part.renamed
        self._stay_apart(region)
        rows = {line: self.rows[line - 1] for line in region.lines}
        places: list[tuple[int, int, str]] = []
        inner = {
            node.name: {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            for statement in region.statements
            for node in ast.walk(statement)
            if isinstance(node, ast.FunctionDef)
        }
        for statement in region.statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id in own:
                    places.append((node.lineno, node.col_offset, node.id))
                elif isinstance(node, ast.arg) and node.arg in own:
                    places.append((node.lineno, node.col_offset, node.arg))
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    # Others' parameters are called what they are called.
                    known = inner.get(node.func.id, set()) & own.keys()
                    places += [
                        (each.lineno, each.col_offset, each.arg)
                        for each in node.keywords
                        if each.arg is not None and each.arg in known
                    ]
        for line, byte, name in sorted(places, reverse=True):
            row = rows[line]
            at = len(row.encode()[:byte].decode())
            if not row.startswith(name, at):
                raise NotParted(f"`{own[name]}` stands in a text")
            rows[line] = row[:at] + own[name] + row[at + len(name) :]
        return rows


def _names_in(statement: ast.stmt) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def _inner_names(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that functions and comprehensions in some statements bind for themselves."""
    found: set[str] = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                body = node.body if isinstance(node.body, list) else []
                found |= bound_in(body) | {
                    each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)
                }
            elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                for generator in node.generators:
                    found |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
    return found


def _lines(statement: ast.stmt) -> range:
    assert statement.end_lineno is not None
    return range(statement.lineno, statement.end_lineno + 1)


def _behind_keyword(
    name: str, given: Sequence[tuple[str, str]], keywords: Collection[str | None]
) -> bool:
    """Whether an argument stands behind one that is given by its name, so that it must be too."""
    for each, _ in given:
        if each == name:
            return False
        if each in keywords:
            return True
    return False


def _mark_of(tree: ast.Module, part: Part, what: str) -> int | None:
    """The line of a mark of a file's own statements."""
    return next((each.lineno for each in tree.body if _is_mark(each, part, what)), None)


def _is_mark(statement: ast.stmt, part: Part, what: str) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value == part.mark(what).strip('"')
    )


def header_of(definition: str) -> list[str]:
    """The lines of a definition up to its body."""
    return definition.split("\n")[: header_lines(definition)]


def comment_behind(header: Sequence[str]) -> str:
    """The comment behind a header, as it stands there."""
    text = "\n".join([*header, "    pass", ""])
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    found = [each for each in tokens if each.type == tokenize.COMMENT]
    if any(each.start[0] < len(header) for each in found):
        raise NotParted("a comment stands among a function's parameters, which change")
    return f"  {found[0].string}" if found else ""


def depth_of(definition: str) -> int:
    of_class = definition.startswith(" ")
    node = ast.parse(f"if True:\n{definition}" if of_class else definition).body[0]
    if isinstance(node, ast.If):
        node = node.body[0]
    assert isinstance(node, ast.FunctionDef)
    return node.body[0].col_offset


def shifted(row: str, by: int) -> str:
    """A line moved to the right, or to the left."""
    if not row.strip():
        return row
    kept = len(row) - len(row.lstrip(" "))
    return " " * by + row if by >= 0 else row[min(kept, -by) :]


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _parameters(node: ast.FunctionDef | ast.Module) -> set[str]:
    if isinstance(node, ast.Module):
        return set()
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    return {each.arg for each in every if each is not None}


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a function, functions in it aside."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        block = getattr(node, field, None)
        if not isinstance(block, list):
            continue
        if block and isinstance(block[0], ast.stmt):
            yield block
        for each in block:
            if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _blocks(each)


def bound_in(
    statements: Sequence[ast.stmt], where: Callable[[Any], bool] = lambda node: True
) -> set[str]:
    """Names that statements bind in their own function, at nodes for which `where` holds."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        if hasattr(node, "lineno") and not where(node):
            waiting.extend([] if isinstance(node, _SCOPES) else ast.iter_child_nodes(node))
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            waiting.extend(node.decorator_list)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        if isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        waiting.extend(ast.iter_child_nodes(node))
    return found


def _read(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that statements read, in functions of their own too; ones that only those bind aside."""
    found: set[str] = set()
    for statement in statements:
        found |= _free(statement)
    return found


def _free(node: ast.AST) -> set[str]:
    """Names that a node reads from around it."""
    if isinstance(node, ast.Name):
        return {node.id} if not isinstance(node.ctx, ast.Store) else set()
    own: set[str] = set()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        spec = node.args
        outer = [*spec.defaults, *(each for each in spec.kw_defaults if each is not None)]
        outer += getattr(node, "decorator_list", [])
        around = {name for each in outer for name in _free(each)}
        body = node.body if isinstance(node.body, list) else [node.body]
        own = {
            each.arg
            for each in [
                *spec.posonlyargs,
                *spec.args,
                *spec.kwonlyargs,
                *(each for each in (spec.vararg, spec.kwarg) if each is not None),
            ]
        }
        handed_out = {
            name
            for each in body
            for inner in ast.walk(each)
            if isinstance(inner, ast.Global | ast.Nonlocal)
            for name in inner.names
        }
        own |= bound_in([each for each in body if isinstance(each, ast.stmt)]) - handed_out
        return around | {name for each in body for name in _free(each)} - own | handed_out
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        own = {
            each.id
            for generator in node.generators
            for each in ast.walk(generator.target)
            if isinstance(each, ast.Name)
        }
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        found |= _free(child)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.add(node.target.id)
    return found - own
