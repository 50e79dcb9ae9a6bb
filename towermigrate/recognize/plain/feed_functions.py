"""Functions that make what runs are fed: their statements in place of their calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import (
    Change,
    Changed,
    Part,
    PlainFile,
    Scope,
    blocks,
    leaves_of,
    run_of,
    stores,
)
from towermigrate.recognize.plain.feeds import displayed, fed_by_name, mentions, only_name
from towermigrate.recognize.python_scopes import Unjoined


def filling_functions(file: PlainFile) -> list[Change]:
    """`feed = fill(feed, towers, batch)` as the statements of the function, which fills the dict that it is given in a loop."""
    return feed_functions(file, True)


def feed_functions(file: PlainFile, filling: bool = False) -> list[Change]:
    """`feed = make_feed(x, y, batch)` as the statements of the function, whose parameters are what it is given."""
    found: list[Change] = []
    called: list[tuple[ast.FunctionDef, str]] = []
    for where, scope in file.scopes:
        fed = fed_by_name(scope)
        for body, _ in blocks(scope):
            for each in body:
                made = _Made.of(file, scope, each, fed)
                if made is None or made.fills != filling:
                    continue
                try:
                    found.append(Change(*made.change(), where))
                except Unjoined:
                    continue
                called.append((made.function, where))
    return [*found, *_unused(file, found, called)]


def _unused(
    file: PlainFile, found: list[Change], called: list[tuple[ast.FunctionDef, str]]
) -> Iterator[Change]:
    """The functions that nobody calls any more go."""
    for function in {id(each): each for each, _ in called}.values():
        calls = [where for each, where in called if each is function]
        rows = file.text.split("\n")
        first = function.lineno - 1
        if len(file.uses(function.name)) > len(calls) or function.name in file.words_of_users:
            continue
        if first and rows[first - 1].lstrip().startswith("#"):
            continue
        if file.alone(function) is not None:
            start, end = file.without(function)
            yield Change(
                start, end + len(file.text[end:]) - len(file.text[end:].lstrip("\n")), (), calls[-1]
            )


@dataclass
class _Made:
    """A statement that calls a function for what it, or its run, is fed."""

    file: PlainFile
    scope: Scope
    statement: ast.Assign | ast.Expr
    call: ast.Call
    function: ast.FunctionDef
    target: str | None

    @classmethod
    def of(cls, file: PlainFile, scope: Scope, statement: ast.stmt, fed: set[str]) -> _Made | None:
        if not isinstance(statement, ast.Assign | ast.Expr):
            return None
        target: str | None = only_name(statement)
        call: ast.expr = statement.value
        if target not in fed:
            target = None
            run = run_of(statement.value)
            if isinstance(statement.value, ast.Subscript):
                run = run_of(statement.value.value)
            if run is None:
                return None
            fed_to = [*run.args[1:], *(each.value for each in run.keywords)]
            if len(fed_to) != 1 or not run.args or leaves_of(run.args[0]) is None:
                return None
            (call,) = fed_to
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        function = _function(file, scope, call.func.id)
        if function is None or file.alone(statement) is None:
            return None
        return cls(file, scope, statement, call, function, target)

    @property
    def fills(self) -> bool:
        """Whether the function fills a dict that it is given and gives back, which is the name that is bound to it again."""
        last = self.function.body[-1]
        if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
            return False
        given = [each.arg for each in self.function.args.args]
        if last.value.id not in given or self.call.keywords:
            return False
        place = given.index(last.value.id)
        own = self.call.args[place] if place < len(self.call.args) else None
        return isinstance(own, ast.Name) and own.id == self.target

    def change(self) -> Changed:
        """The function's statements in place of the call; raises `Unjoined` where they may mean something else."""
        file, function = self.file, self.function
        body = list(function.body)
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        if not body or not isinstance(body[-1], ast.Return) or body[-1].value is None:
            raise Unjoined
        returned, body = body[-1].value, body[:-1]
        for each in self._statements(body):
            if not isinstance(each, ast.Assign | ast.Expr) or file.alone(each) is None:
                raise Unjoined
        if not self.fills:
            self._makes_a_dict(body, returned)
        names = self._names(body, returned)
        margin = file.alone(self.statement) or ""
        parts: list[Part] = []
        lines, renamed = self._arguments(names)
        for line in lines:
            parts += [*line, f"\n{margin}"]
        for each in body:
            for start, end in self._rows(each):
                parts += [*self._renamed(each, renamed, start, end), f"\n{margin}"]
        start, end = file.span(self.statement)
        if self.target is not None:
            value = self._renamed(returned, renamed, *file.span(returned))
            if value == [self.target] or _told(file, value) == self.target:
                parts = parts[:-1]
            else:
                parts += [f"{self.target} = ", *value]
        else:
            value = self._renamed(returned, renamed, *file.span(returned))
            parts += [(start, file.start(self.call)), *value, (file.end(self.call), end)]
        return start, end, tuple(parts)

    def _statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        """The statements of a body; where it fills a dict also those of its loops."""
        for each in body:
            if self.fills and isinstance(each, ast.For) and not each.orelse:
                if each.body[0].lineno == each.lineno:
                    raise Unjoined
                yield from self._statements(each.body)
            else:
                yield each

    def _makes_a_dict(self, body: list[ast.stmt], returned: ast.expr) -> None:
        """What it returns must be a dict display, or a name that is bound to one."""
        if isinstance(returned, ast.Dict):
            return
        if isinstance(returned, ast.Name):
            for each in body:
                if only_name(each) == returned.id and isinstance(each, ast.Assign):
                    if displayed(each.value) is not None:
                        return
        raise Unjoined

    def _names(self, body: list[ast.stmt], returned: ast.expr) -> dict[str, str]:
        """The function's own names with what they become."""
        function, scope = self.function, self.scope
        inside: list[ast.AST] = [*body, returned]
        for each in inside:
            for node in ast.walk(each):
                if isinstance(node, ast.Constant) and node.end_lineno != node.lineno:
                    raise Unjoined  # a text whose lines would move
                if isinstance(
                    node,
                    ast.Lambda
                    | ast.FunctionDef
                    | ast.ListComp
                    | ast.SetComp
                    | ast.DictComp
                    | ast.GeneratorExp
                    | ast.NamedExpr
                    | ast.JoinedStr
                    | ast.Yield
                    | ast.Await,
                ):
                    raise Unjoined
        own = {each.arg for each in function.args.args}
        bound = self._bound_here()
        read = {each.id for one in inside for each in ast.walk(one) if isinstance(each, ast.Name)}
        free = read - own - bound
        of_scope = any(each is function for each in ast.walk(scope))
        if not of_scope and free & _bound_names(scope):
            raise Unjoined  # what it reads of the module is another thing where it is called
        names: dict[str, str] = {}
        for name in sorted(bound - own):
            if self.target is not None and isinstance(returned, ast.Name) and name == returned.id:
                names[name] = self.target
                if mentions(self.call, {self.target}) or self.target in own | bound - {name} | free:
                    raise Unjoined
            else:
                names[name] = self._free_name(name, names)
        return names

    def _arguments(self, names: Mapping[str, str]) -> tuple[list[tuple[Part, ...]], dict[str, str]]:
        """Statements that bind the parameters that need it, and what all of the function's names become."""
        file, function, call = self.file, self.function, self.call
        spec = function.args
        if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.posonlyargs or spec.defaults:
            raise Unjoined
        if file.commented(*file.span(call)):
            raise Unjoined
        parameters = [each.arg for each in spec.args]
        renamed = dict(names)
        lines: list[tuple[Part, ...]] = []
        waiting = list(parameters)
        for value in call.args:
            if isinstance(value, ast.Starred):
                if value is not call.args[-1] or call.keywords or len(waiting) < 2:
                    raise Unjoined
                for each in waiting:
                    renamed[each] = self._free_name(each, renamed)
                targets = ", ".join(renamed[each] for each in waiting)
                lines.append((f"{targets} = ", file.span(value.value)))
                waiting = []
            elif not waiting:
                raise Unjoined
            else:
                self._given(waiting.pop(0), value, renamed, lines)
        for keyword in call.keywords:
            if keyword.arg not in waiting:
                raise Unjoined
            waiting.remove(keyword.arg)
            self._given(keyword.arg, keyword.value, renamed, lines)
        if waiting:
            raise Unjoined
        return lines, renamed

    def _given(
        self,
        name: str,
        value: ast.expr,
        renamed: dict[str, str],
        lines: list[tuple[Part, ...]],
    ) -> None:
        """A parameter is the name that it is given, where nothing binds either anew, else it is bound to its value."""
        if isinstance(value, ast.Name) and value.id not in self.file.shared_between_functions:
            new = {renamed.get(each, each) for each in self._bound_here()}
            if name not in self._bound_here() and value.id not in new:
                renamed[name] = value.id
                return
        if isinstance(value, ast.Constant) and name not in self._bound_here():
            asked = (one.value for one in ast.walk(self.function) if isinstance(one, ast.Attribute))
            if not any(isinstance(each, ast.Name) and each.id == name for each in asked):
                renamed[name] = self.file.of(value)
                return
        renamed[name] = self._free_name(name, renamed)
        lines.append((f"{renamed[name]} = ", self.file.span(value)))

    def _bound_here(self) -> set[str]:
        """Names that the function's statements bind."""
        return {
            each.id
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }

    def _free_name(self, name: str, renamed: Mapping[str, str]) -> str:
        """A name for one of the function's own, which the caller has for nothing."""
        taken = name in renamed.values() or name in _all_names(self.scope, self.function)
        of_module = isinstance(self.scope, ast.Module)
        return self.file.fresh(name) if taken or of_module else self.file.once(name)

    def _rows(self, statement: ast.stmt) -> Iterator[tuple[int, int]]:
        """The rows of a statement with the comments in front of it, without their margins."""
        file = self.file
        first = statement.lineno
        rows = file.text.split("\n")
        while rows[first - 2].lstrip().startswith("#") and first - 2 > self.function.lineno - 1:
            first -= 1
        for line in range(first, statement.lineno):
            row = rows[line - 1]
            start = file.starts[line - 1]
            yield start + len(row) - len(row.lstrip()), start + len(row)
        assert statement.end_lineno is not None
        if statement.end_lineno > statement.lineno:
            depth = statement.col_offset
            for line in range(statement.lineno, statement.end_lineno + 1):
                row, start = rows[line - 1], file.starts[line - 1]
                margin = len(row) - len(row.lstrip())
                yield start + min(depth, margin), start + len(row)
        else:
            start = file.start(statement)
            yield start, start + len(file.text[start:].split("\n", 1)[0])

    def _renamed(
        self, node: ast.AST, renamed: Mapping[str, str], start: int, end: int
    ) -> list[Part]:
        """A stretch of the function's text with its names as they become."""
        file = self.file
        parts: list[Part] = []
        at = start
        names = sorted(
            (each for each in ast.walk(node) if isinstance(each, ast.Name)), key=file.start
        )
        for each in names:
            new, place = renamed.get(each.id, each.id), file.start(each)
            if new != each.id and start <= place < end:
                parts += [(at, place), new]
                at = place + len(each.id)
        return [part for part in (*parts, (at, end)) if isinstance(part, str) or part[0] < part[1]]


def _told(file: PlainFile, parts: list[Part]) -> str:
    return "".join(
        part if isinstance(part, str) else file.text[part[0] : part[1]] for part in parts
    )


def _function(file: PlainFile, scope: Scope, name: str) -> ast.FunctionDef | None:
    """The function that a name is in a scope: one of the module's, or one that the scope itself makes."""
    places: list[Scope] = [scope, file.tree]
    for place in places:
        own = [
            each
            for body, always in blocks(place)
            for each in body
            if always and isinstance(each, ast.FunctionDef) and each.name == name
        ]
        other = stores(place, name) if place is scope else []
        if own:
            once = len(own) == 1 and not other and not own[0].decorator_list
            defined = sum(
                isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == name
                for each in file.nodes
            )
            plainly = once and defined == 1 and name not in file.shared_between_functions
            plainly = plainly and not stores(file.tree, name)
            return (
                own[0] if plainly and not re.search(rf"\bimport\b.*\b{name}\b", file.text) else None
            )
        if name in _bound_names(place):
            return None
    return None


def _bound_names(scope: ast.AST, without: ast.AST | None = None) -> set[str]:
    """Names that a scope, or a function in it, may have for itself, those of one function aside."""
    found: set[str] = set()
    waiting = [scope]
    while waiting:
        each = waiting.pop()
        if each is without:
            continue
        waiting.extend(ast.iter_child_nodes(each))
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, ast.arg):
            found.add(each.arg)
        elif isinstance(each, ast.alias):
            found.add((each.asname or each.name).partition(".")[0])
        elif isinstance(each, ast.ExceptHandler) and each.name:
            found.add(each.name)
        elif isinstance(each, ast.FunctionDef | ast.ClassDef) and each is not scope:
            found.add(each.name)
    return found


def _all_names(scope: ast.AST, without: ast.AST) -> set[str]:
    """Names that a scope, or a function in it, has or reads, those of one function aside."""
    found = _bound_names(scope, without)
    waiting = [scope]
    while waiting:
        each = waiting.pop()
        if each is not without:
            waiting.extend(ast.iter_child_nodes(each))
            if isinstance(each, ast.Name):
                found.add(each.id)
    return found
