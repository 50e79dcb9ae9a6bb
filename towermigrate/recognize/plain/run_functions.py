"""Functions that are handed a session and run what they are given: where they are called, without what is always the same.

`def evaluate(sess, loss, images, batch)`, which `train` calls as `evaluate(sess, loss, x, batch)` wherever it does, is
`def evaluate(batch)` in `train`, in front of its first call: there it sees `sess`, `loss` and `x` itself.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    fetches_of,
    sets_of,
)
from towermigrate.recognize.plain.collected import binds
from towermigrate.recognize.python_scopes import (
    Unjoined,
    call_of,
    line_at,
    lines_in_texts,
    only_plain,
    own_nodes,
    times_bound,
)

_OF_SERVICES = frozenset("run save restore add_summary flush".split())
_OPENS = ("Session", "InteractiveSession")
_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_Span = tuple[int, int]


def run_functions(file: PlainFile) -> list[Change]:
    """Functions that are called several times, or in the midst of expressions, and run what a session is asked."""
    if ".run(" not in file.text or "Session(" not in file.text:
        return []
    found: list[Change] = []
    tops = [each for each in file.tree.body if isinstance(each, ast.FunctionDef)]
    scopes: list[Scope] = [file.tree, *tops]
    for scope in scopes:
        where = scope.name if isinstance(scope, ast.FunctionDef) else ""
        if not any(_opens_session(each) for each in own_nodes(scope)):
            continue
        for function in _functions(file, scope):
            try:
                found += RunFunction(file, scope, function, where).changes()
            except Unjoined:
                continue
    return found


def _opens_session(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _OPENS
    )


def _functions(file: PlainFile, scope: Scope) -> Iterator[ast.FunctionDef]:
    """The functions of the file, and those in the scope, that run something."""
    for each in {id(n): n for n in [*file.tree.body, *own_nodes(scope)]}.values():
        if isinstance(each, ast.FunctionDef) and each is not scope:
            if any(_runs(inner) for inner in ast.walk(each)):
                yield each


def _runs(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
    )


@dataclass(frozen=True)
class _Given:
    """A parameter, and what each call gives for it."""

    name: str
    values: Sequence[ast.expr | None]

    @property
    def same(self) -> str | None:
        """The name that all calls give, or what they all give that an object holds."""
        names = {_name(each) for each in self.values}
        return next(iter(names)) if len(names) == 1 else None


def _name(node: ast.expr | None) -> str | None:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=owner), attr=attr):
            return f"{owner}.{attr}"
    return None


class RunFunction:
    def __init__(
        self, file: PlainFile, scope: Scope, function: ast.FunctionDef, where: str
    ) -> None:
        self.file, self.scope, self.function, self.where = file, scope, function, where
        self.moves = self._is_outside()
        spec = function.args
        self._only_plain()
        if (
            function.decorator_list
            or spec.vararg
            or spec.kwarg
            or spec.kwonlyargs
            or spec.posonlyargs
        ):
            raise Unjoined
        if not all(isinstance(each, ast.Constant) for each in spec.defaults):
            raise Unjoined  # made when the file is read: where it stands then, it would be made later, or again
        self.calls = self._calls()

    def changes(self) -> list[Change]:
        file = self.file
        dropped = self._always_given()
        first = min(self.calls, key=file.start)
        statement = self._statement(first)
        if self.moves and not dropped and not isinstance(self.scope, ast.Module):
            raise Unjoined
        if not self.moves and not dropped:
            raise Unjoined
        seen = [name.partition(".")[0] for name in dropped.values()]
        if any(not self._bound_before(name, statement) for name in seen):
            raise Unjoined
        if any(self._is_bound_between(name) for name in seen):
            raise Unjoined
        if any("." in name and not self._stays(name) for name in dropped.values()):
            raise Unjoined
        self._same_names(dropped)
        taken = {name: new for name, new in self._taken().items() if name not in dropped}
        edits = [*self._without_parameters(dropped), *self._renamed({**taken, **dropped})]
        edits += self._renamed_parameters(taken)
        made = self._renamed_calls() + [
            Change(start, end, (), self.where)
            for call in self.calls
            for start, end in self._without_arguments(call, dropped)
        ]
        if not self.moves:
            return made + [Change(start, end, (new,), self.where) for start, end, new in edits]
        margin = file.alone(statement)
        if margin is None:
            raise Unjoined
        place = self._place(statement, margin)
        start, end = self._own_lines()
        above = file.text[:place].rstrip(" ").splitlines()[-1:]
        blank = "" if above and (not above[0].strip() or above[0].rstrip().endswith(":")) else "\n"
        parts = (blank, *self._moved(start, end, edits, margin), "\n\n")
        gone = Change(*self._goes_with(start, end), (), self.where)
        return [*made, gone, Change(place, place, parts, self.where)]

    # ---- what is known of it

    def _is_outside(self) -> bool:
        """Whether it stands where it sees none of the scope's names."""
        return self.function in self.file.tree.body

    def _only_plain(self) -> None:
        only_plain(self.function)

    def _parameters(self) -> list[str]:
        """The parameters that the arguments of a call are for, in their order."""
        return [each.arg for each in self.function.args.args]

    def _calls(self) -> list[ast.Call]:
        file, name = self.file, self.function.name
        inside = {id(node) for node in ast.walk(self.scope)}
        inside -= {id(node) for node in ast.walk(self.function)}
        calls = [
            node
            for node in ast.walk(self.scope)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == name
        ]
        uses = {id(each) for each in file.uses(name)}
        once = times_bound(file.tree, name) == 1
        if not calls or not once or uses != {id(call.func) for call in calls} or not uses <= inside:
            raise Unjoined
        if self.moves and name in file.words_of_users:
            raise Unjoined
        statements = [
            each
            for each in ast.walk(self.scope)
            if isinstance(each, ast.Assign | ast.Expr) and call_of(each) is calls[0]
        ]
        if self.moves and len(calls) == 1 and statements:
            raise Unjoined  # read as a part of the function that calls it
        return calls

    def _given(self) -> list[_Given]:
        names = self._parameters()
        found: dict[str, list[ast.expr | None]] = {name: [] for name in names}
        for call in self.calls:
            if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(
                names
            ):
                raise Unjoined
            given: dict[str, ast.expr] = dict(zip(names, call.args, strict=False))
            for keyword in call.keywords:
                if keyword.arg not in found or keyword.arg in given:
                    raise Unjoined
                given[keyword.arg] = keyword.value
            for name in names:
                found[name].append(given.get(name))
        return [_Given(name, values) for name, values in found.items()]

    def _always_given(self) -> dict[str, str]:
        """The parameters that go, each with the name that stands for it."""
        return {each.name: name for each in self._given() if (name := self._always(each))}

    def _renamed_calls(self) -> list[Change]:
        """How the calls name it where it stands then."""
        return []

    def _always(self, given: _Given) -> str | None:
        """The name that stands for a parameter which runs, or what is run, is taken from."""
        name = given.name
        if given.same is None or times_bound(self.function, name):
            return None
        for node in ast.walk(self.function):
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr=attr):
                    if owner == name and attr in _OF_SERVICES:
                        return given.same
                case ast.Call(func=ast.Attribute(attr=attr)) if attr in _OF_SERVICES:
                    asked = fetches_of(node)
                    if asked is not None and _holds(asked, name):
                        return given.same
                case ast.Dict(keys=keys):
                    if any(key is not None and _holds(key, name) for key in keys):
                        return given.same
        return None

    def _statement(self, call: ast.Call) -> ast.stmt:
        """The statement of the scope, or of blocks that only open something, that holds a call."""
        body: list[ast.stmt] = self.scope.body
        while True:
            holds = [each for each in body if any(node is call for node in ast.walk(each))]
            if len(holds) != 1:
                raise Unjoined
            (each,) = holds
            entry = isinstance(each, ast.If) and ast.unparse(each.test) == "__name__ == '__main__'"
            if not isinstance(each, ast.With) and not entry:
                return each
            body = each.body  # type: ignore[attr-defined]

    def _bound_before(self, name: str, statement: ast.stmt) -> bool:
        own = isinstance(self.scope, ast.FunctionDef) and any(
            each.arg == name for each in self.scope.args.args
        )
        stores = [each for each in own_nodes(self.scope) if _stores(each, name)]
        return own or any(each.lineno < statement.lineno for each in stores)  # type: ignore[attr-defined]

    def _is_bound_between(self, name: str) -> bool:
        """Whether a function or comprehension of the scope, around a call, has a name for itself."""
        around = [
            each
            for each in ast.walk(self.scope)
            if isinstance(each, _SCOPES) and each is not self.scope
            if any(node is call for call in self.calls for node in ast.walk(each))
        ]
        return any(binds(each, name) for each in around)

    def _stays(self, held: str) -> bool:
        """Whether what an object holds is set at one place in the file, and the object is one for good in the scope."""
        owner, _, attribute = held.partition(".")
        return len(sets_of(self.file, attribute)) == bindings(self.scope, owner) == 1

    def _same_names(self, dropped: Mapping[str, str]) -> None:
        """Every name of the function is what it was where it stands then."""
        function = self.function
        for node in ast.walk(function):  # what runs later would see what a name is then
            if isinstance(node, ast.Lambda | ast.GeneratorExp):
                if any(_holds(node, name) for name in dropped):
                    raise Unjoined
        own = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
        read: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                (read if isinstance(node.ctx, ast.Load) else own).add(node.id)
            elif isinstance(node, ast.alias):
                own.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.ExceptHandler | ast.ClassDef) or (
                isinstance(node, ast.FunctionDef) and node is not function
            ):
                raise Unjoined
        theirs = {each.partition(".")[0] for each in dropped.values()}
        others = read - own
        if theirs & (own - dropped.keys()) or theirs & others - dropped.keys():
            raise Unjoined
        if len(set(dropped.values())) < len(dropped):
            raise Unjoined
        if self.moves and isinstance(self.scope, ast.FunctionDef):
            bound = {each.arg for each in ast.walk(self.scope.args) if isinstance(each, ast.arg)}
            bound |= {
                name for node in own_nodes(self.scope) for name in others if _stores(node, name)
            }
            if others & bound:
                raise Unjoined

    def _taken(self) -> dict[str, str]:
        """New names for values of the function's own that are called as a part of the graph, in the scope it moves into, may be."""
        if not self.moves:
            return {}
        given = {each.arg for each in ast.walk(self.function) if isinstance(each, ast.arg)}
        own = {
            node.id
            for node in ast.walk(self.function)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        }
        theirs: set[str] = set()
        if isinstance(self.scope, ast.FunctionDef):
            theirs |= {each.arg for each in ast.walk(self.scope.args) if isinstance(each, ast.arg)}
        lines = [each.lineno for each in own_nodes(self.scope) if _opens_session(each)]  # type: ignore[attr-defined]
        opened = min(lines, default=0)
        for node in own_nodes(self.scope):
            if getattr(node, "lineno", opened) < opened:
                theirs |= {name for name in own if _stores(node, name)}
        theirs |= own & _dicts(self.function) & _dicts(self.scope)
        return {name: self.file.fresh(name) for name in sorted(own & theirs - given)}

    # ---- the text

    def _place(self, statement: ast.stmt, margin: str) -> int:
        """In front of a statement and the comments that belong to it."""
        line, rows = statement.lineno - 1, self.file.text.split("\n")
        while line and rows[line - 1].startswith(f"{margin}#"):
            line -= 1
        return self.file.starts[line]

    def _own_lines(self) -> _Span:
        """From the comments in front of the function to its end."""
        file = self.file
        line = self.function.lineno - 1
        rows = file.text.split("\n")
        margin = " " * self.function.col_offset
        while line and rows[line - 1].startswith(f"{margin}#"):
            line -= 1
        return file.starts[line], file.block.end_of_line(self.function)

    def _goes_with(self, start: int, end: int) -> _Span:
        """Its lines, and the blank ones behind."""
        while end < len(self.file.text) and self.file.text[end] == "\n":
            end += 1
        return start, end

    def _without_parameters(self, dropped: Collection[str]) -> list[tuple[int, int, str]]:
        spec = self.function.args
        defaults = [None] * (len(spec.args) - len(spec.defaults)) + list(spec.defaults)
        spans = [
            (self._start(each), self.file.end(value) if value is not None else self._end(each))
            for each, value in zip(spec.args, defaults, strict=True)
        ]
        keep = [each.arg not in dropped for each in spec.args]
        return [(start, end, "") for start, end in self._cuts(spans, keep)]

    def _without_arguments(self, call: ast.Call, dropped: Collection[str]) -> list[_Span]:
        names = self._parameters()
        given: list[tuple[_Span, str | None]] = [
            (self.file.span(value), name) for value, name in zip(call.args, names, strict=False)
        ]
        given += [
            ((self._start(each), self.file.end(each.value)), each.arg) for each in call.keywords
        ]
        keep = [name not in dropped for _, name in given]
        return self._cuts([span for span, _ in given], keep)

    def _cuts(self, spans: Sequence[_Span], keep: Sequence[bool]) -> list[_Span]:
        """What goes of a list that commas part."""
        if spans and self.file.commented(spans[0][0], spans[-1][1]):
            raise Unjoined
        last = max((k for k, kept in enumerate(keep) if kept), default=None)
        found: list[_Span] = []
        for k, kept in enumerate(keep):
            if not kept and (last is None or k < last):
                found.append((spans[k][0], spans[k + 1][0] if k + 1 < len(spans) else spans[k][1]))
        if last is not None and last + 1 < len(keep):
            found.append((spans[last][1], spans[-1][1]))
        return found

    def _start(self, node: ast.arg | ast.keyword) -> int:
        return self.file.block.offset(node.lineno, node.col_offset)

    def _end(self, node: ast.arg) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.file.block.offset(node.end_lineno, node.end_col_offset)

    def _renamed(self, dropped: Mapping[str, str]) -> list[tuple[int, int, str]]:
        found = []
        for node in ast.walk(self.function):
            if isinstance(node, ast.Name) and dropped.get(node.id, node.id) != node.id:
                start = self.file.start(node)
                if not self.file.text.startswith(node.id, start):
                    raise Unjoined
                found.append((start, start + len(node.id), dropped[node.id]))
        return found

    def _renamed_parameters(self, taken: Mapping[str, str]) -> list[tuple[int, int, str]]:
        return [
            (self._start(each), self._start(each) + len(each.arg), taken[each.arg])
            for each in self.function.args.args
            if each.arg in taken
        ]

    def _moved(
        self, start: int, end: int, edits: Sequence[tuple[int, int, str]], margin: str
    ) -> list[Part]:
        """The function's text behind a margin, with its edits made."""
        file, parts, depth = self.file, list[Part](), self.function.col_offset
        inside = lines_in_texts(file.text)
        said = self.function.body[0]
        told: set[int] = set()
        if ast.get_docstring(self.function) is not None and said.end_lineno is not None:
            told = inside & set(range(said.lineno, said.end_lineno + 1))
        # What opens the session around it is gone in the end, and with it a part of the margin, but not in a text.
        least = " " * self.scope.body[0].col_offset
        waiting = sorted(edits)
        position = start
        while position < end:
            stop = file.text.find("\n", position, end)
            stop = end if stop < 0 else stop + 1
            line = line_at(file.starts, position)
            if file.text[position:stop].strip() and (line in told or line not in inside):
                parts.append(least if line in told else margin)
                if file.text[position : position + depth].strip():
                    raise Unjoined
                position += depth
            while waiting and position <= waiting[0][0] < stop:
                where, till, new = waiting.pop(0)
                parts += [(position, where), new]
                position = till
                stop = max(stop, position)
            parts.append((position, stop))
            position = stop
        return parts


def _holds(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def _dicts(scope: Scope) -> set[str]:
    """The names that a scope binds to displays of dicts, as what it feeds."""
    return {
        target.id
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Dict)
        for target in each.targets
        if isinstance(target, ast.Name)
    }


def _stores(node: ast.AST, name: str) -> bool:
    """Whether a node itself binds a name."""
    match node:
        case ast.Name():
            return node.id == name and not isinstance(node.ctx, ast.Load)
        case ast.FunctionDef() | ast.ClassDef() | ast.ExceptHandler():
            return node.name == name
        case ast.alias():
            return (node.asname or node.name).partition(".")[0] == name
    return False
