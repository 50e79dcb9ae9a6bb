"""What all parts of the interpreter share: files, places, new values, joins, and what the other parts do."""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from towermigrate.flow.domain import Asked, Call, Domain
from towermigrate.flow.frames import Frame, Limits
from towermigrate.flow.store import Changes, Store, let_go
from towermigrate.flow.values import (
    HELD,
    ORDER,
    Class,
    Const,
    Function,
    Items,
    Made,
    Many,
    Place,
    Row,
    Scope,
    Table,
    Unknown,
    Value,
    reachable,
    same,
)
from towermigrate.tree import parse_python


class Core(Asked):
    """The state of a run, and what each part asks of the others."""

    def __init__(
        self, sources: Mapping[str, str], domain: Domain, limits: Limits | None = None
    ) -> None:
        self.sources = sources
        self.domain = domain
        self.limits = limits or Limits()
        self.store = Store()
        self.frames: list[Frame] = [Frame(0)]
        self.defined: list[Function] = []
        self.steps = self.calls = 0
        self.generic = 0
        self._joining: dict[tuple[int, int], tuple[Value, Value, Value]] = {}
        self._trees: dict[str, ast.Module] = {}
        self._lines: dict[str, list[str]] = {}
        self._places: dict[ast.AST, Place] = {}
        self.stars: dict[int, list[Value]] = {}
        """By the module: the libraries all of whose names it imported."""

    @property
    def exhausted(self) -> bool:
        """Whether as much was read as the limits allow: from now on no call is entered and no loop unrolled."""
        limits = self.limits
        return (
            self.steps >= limits.steps
            or self.calls >= limits.calls
            or self.store.touched >= limits.cells
        )

    # ---- what the parts do for each other ----------------------------------------------------------

    @abstractmethod
    def evaluate(self, node: ast.expr, scope: Scope) -> Value: ...

    @abstractmethod
    def execute(self, body: Iterable[ast.stmt], scope: Scope) -> bool: ...

    @abstractmethod
    def any_number(self, turn: Callable[[], bool]) -> None: ...

    @abstractmethod
    def instance(self, kind: Class, call: Call) -> Value: ...

    @abstractmethod
    def imported(self, path: str, level: int, dotted: str) -> Value: ...

    @abstractmethod
    def function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope
    ) -> Function: ...

    @abstractmethod
    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None: ...

    # ---- files -----------------------------------------------------------------------------------

    def tree(self, path: str) -> ast.Module:
        """The syntax tree of a file, parsed once."""
        if path not in self._trees:
            self._trees[path] = parse_python(self.sources[path])
        return self._trees[path]

    def place(self, node: ast.AST, path: str) -> Place:
        known = self._places.get(node)
        if known is not None:
            return known
        lines = self._lines.get(path)
        if lines is None:
            # As the parser counts them: a form feed ends no line.
            lines = self._lines[path] = re.split(r"\r\n|\r|\n", self.sources[path])
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = lines[line - 1] if line <= len(lines) else ""
        column = offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))
        found = self._places[node] = Place(path, line, column)
        return found

    # ---- values ----------------------------------------------------------------------------------

    def asked(self, node: ast.AST, operands: Sequence[Value], what: str, place: Place) -> Value:
        """What the domain says of an operation on values, of which one at least is no constant."""
        found = self.domain.operation(node, operands, place)
        return Unknown(what, place) if found is None else found

    def items(
        self,
        entries: Sequence[Value] | None,
        place: Place,
        kind: str = "list",
        entry: Value | None = None,
    ) -> Items:
        """A new list (or tuple, set, iterator) of these entries, or, where they are None, of any number like `entry`."""
        made = Items(place, repeated=self.generic > 0, kind=kind)  # type: ignore[arg-type]
        if entries is not None and len(entries) > self.limits.entries:
            entry, entries = self.any_of(entries), None
        held = Many(entry) if entries is None else Row(tuple(entries))
        if kind == "tuple":
            made.cells[HELD] = held  # for good: no branch has to undo or to join it
        else:
            self.store.set(made.cells, HELD, held)
        return made

    def table(self, entries: Mapping[Any, Value], place: Place) -> Table:
        made = Table(place, repeated=self.generic > 0)
        for key, value in entries.items():
            self.store.set(made.cells, ("key", type(key), key), value)
        order = tuple((type(key), key) for key in entries)
        self.store.set(made.cells, ORDER, Const(order))
        return made

    def join(self, first: Value, second: Value) -> Value:
        """What is known of a value that is one of two."""
        if same(first, second):
            return first
        pair = (id(first), id(second))
        known = self._joining.get(pair)
        if known is not None:
            return known[2]  # tuples in tuples: each pair is joined once
        outermost = not self._joining
        self._joining[pair] = (first, second, Unknown("it holds itself"))
        try:
            found = self._joined(first, second)
            self._joining[pair] = (first, second, found)
            return found
        finally:
            if outermost:
                self._joining = {}

    def _joined(self, first: Value, second: Value) -> Value:
        if isinstance(first, Row | Many) and isinstance(second, Row | Many):
            return self._joined_lists(first, second)
        if (
            isinstance(first, Made)
            and type(first) is type(second)
            and isinstance(second, Made)
            and first.place == second.place
            and (first.repeated and second.repeated or isinstance(first, Function | Class))
        ):
            return second  # one statement made both, and stands for all that it makes
        if _is_tuple(first) and _is_tuple(second):
            assert isinstance(first, Items) and isinstance(second, Items)
            one, two = first.entries, second.entries
            if one is not None and two is not None and len(one) == len(two):
                return self.items(list(map(self.join, one, two)), first.place, "tuple")
        found = self.domain.join(first, second)
        if found is not None:
            return found
        may_be = tuple(
            each
            for value in (first, second)
            for each in (value.may_be if isinstance(value, Unknown) else (value,))
            if not isinstance(each, Const)
        )
        return Unknown("it is one of several values", getattr(first, "place", None), may_be[:40])

    def _joined_lists(self, first: Row | Many, second: Row | Many) -> Value:
        if isinstance(first, Row) and isinstance(second, Row):
            if len(first.entries) == len(second.entries):
                return Row(tuple(map(self.join, first.entries, second.entries)))
        found: list[Value] = []
        for held in (first, second):
            if isinstance(held, Row):
                found += held.entries
            elif held.entry is not None:
                found.append(held.entry)
        return Many(self.any_of(found) if found else None)

    def any_of(self, values: Sequence[Value]) -> Value:
        """What is known of one of some values."""
        if not values:
            return Unknown("there is none")
        found = values[0]
        for value in values[1:]:
            found = self.join(found, value)
        return found

    def change(self, made: Made, key: tuple[object, ...], value: Value) -> None:
        self.store.write(made, key, value, self.join)

    def escape(self, values: Sequence[Value], why: Unknown) -> None:
        """Code that cannot be followed is given values: what they hold may be anything from now on."""
        for made in list(reachable(values)):
            if isinstance(made, Items) and made.kind == "tuple":
                continue
            if not isinstance(made, Function) and not made.wild:
                let_go(self.store, made, why)

    # ---- ways ------------------------------------------------------------------------------------

    def ways(self, runs: Sequence[Callable[[], bool]]) -> bool:
        """Run each of several ways from here, and go on from where those meet that come out at the end."""
        mark = self.store.mark()
        out: list[Changes] = []
        frame = self.frames[-1]
        frame.branching += 1
        try:
            for run in runs:
                if run():
                    out.append(self.store.changes(mark))
                self.store.undo(mark)
        finally:
            frame.branching -= 1
        if out:
            self.store.merge(out, self.join)
        return bool(out)

    def named(self, name: str, value: Value, place: Place) -> None:
        """Note that a name is bound to a value."""
        if isinstance(value, Made) and name not in value.names:
            value.names.append(name)
        self.domain.bound(name, value, place)


def _is_tuple(value: Value) -> bool:
    return isinstance(value, Items) and value.kind == "tuple"
