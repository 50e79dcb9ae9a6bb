"""What the interpreter knows of a value: a Python constant, a list, a table, a function, an object, or nothing.

Values that Python code can change (lists, tables, objects, classes) are compared by identity, as Python's own are,
and what they hold stands in `cells`, which only the `Store` writes. Everything that is made carries the place that
made it and every name it was bound to. What cannot be followed is `Unknown`, with the reason and the place.
A function holds the scope that it was made in, and a scope holds values: both stand here.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

Key = tuple[object, ...]
"""What a cell is called: `("name", "x")` of a scope or an object, `("key", str, "x")` of a table, `("held",)` of a list."""

HELD: Final[Key] = ("held",)
REST: Final[Key] = ("rest",)
"""In a table or an object: what an entry of any other key may be."""

ORDER: Final[Key] = ("order",)
"""In a table: the kinds and names of its keys, in order."""

WILD: Final[Key] = ("wild",)
"""In what code that cannot be followed may change."""


@dataclass(frozen=True)
class Place:
    """Where something stands. `column` counts characters from 0."""

    path: str
    line: int
    column: int


class Value:
    """Any value. A domain has kinds of its own."""


@dataclass(frozen=True)
class Const(Value):
    """An immutable value of Python's own that is known: a number, a text, None, an ellipsis."""

    value: object


@dataclass(frozen=True)
class External(Value):
    """A name of a library, or a builtin, by its full name: `tensorflow.reduce_mean`, `builtins.zip`."""

    name: str


@dataclass(frozen=True)
class Unknown(Value):
    """What cannot be followed.

    `may_be` are the values that it may be one of, as far as code that changes it would change them.
    """

    reason: str = ""
    place: Place | None = field(default=None, compare=False)
    may_be: tuple[Value, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Perhaps(Value):
    """What a name or a key holds that is bound on some ways only: reading it gives `value`, asking for it is open.

    `by` is what the domain says of which ways those are.
    """

    value: Value
    by: frozenset[Hashable] = field(default=frozenset(), compare=False)


@dataclass(frozen=True)
class MayGive(Value):
    """An argument that a `**` gives on some ways only."""

    name: str
    value: Perhaps


@dataclass(eq=False)
class Made(Value):
    """A value that was made somewhere.

    `repeated` stands for several that one statement made, in a loop of an unknown number of turns: what is written
    to one of them may be written to any. Of a `wild` one, which code that cannot be followed may change, nothing
    is known any more. `turn` is which of several runs of the same code made it, where they are told apart.
    """

    place: Place
    names: list[str] = field(default_factory=list, repr=False)
    cells: dict[Key, Value] = field(default_factory=dict, repr=False)
    repeated: bool = False
    turn: int = field(default=0, kw_only=True, repr=False)

    @property
    def wild(self) -> bool:
        return WILD in self.cells


@dataclass(frozen=True)
class Row(Value):
    """What a list holds: its entries, in order."""

    entries: tuple[Value, ...]


@dataclass(frozen=True)
class Many(Value):
    """What a list of unknown length holds: each entry is `entry`; None where there is none for certain."""

    entry: Value | None


@dataclass(eq=False)
class Items(Made):
    """A list, a tuple, a set, or what a generator gives."""

    kind: Literal["list", "tuple", "set", "iterator"] = "list"

    @property
    def held(self) -> Row | Many:
        found = self.cells.get(HELD)
        if isinstance(found, Perhaps):
            found = (
                found.value
            )  # made on some ways only: where it is, it was made with what it holds
        return found if isinstance(found, Row | Many) else Many(Unknown("changed elsewhere"))

    @property
    def entries(self) -> tuple[Value, ...] | None:
        """The entries, where they are known one by one."""
        held = self.held
        return held.entries if isinstance(held, Row) else None


@dataclass(eq=False)
class Table(Made):
    """A dictionary. Its cells are its entries, and the order of their keys, which branches may have set otherwise."""

    def known(self) -> Iterator[tuple[object, Value]]:
        order = self.cells.get(ORDER)
        keys = order.value if isinstance(order, Const) else None
        if isinstance(keys, tuple):
            for kind, key in keys:
                yield key, self.cells[("key", kind, key)]
            return
        for key, value in self.cells.items():
            if key[0] == "key":
                yield key[2], value

    @property
    def exact(self) -> bool:
        """Whether all keys are known, and each is surely there."""
        return REST not in self.cells and not any(
            isinstance(value, Perhaps) for key, value in self.cells.items() if key != ORDER
        )

    @property
    def finite(self) -> bool:
        """Whether all keys are known that it may have."""
        return REST not in self.cells and WILD not in self.cells

    @property
    def ordered(self) -> bool:
        """Whether it is exact, and the order of its keys is known."""
        return self.exact and isinstance(self.cells.get(ORDER, Const(())), Const)


Cells = dict[Key, Value]
"""What a scope, an object, a table or a list holds."""


def named(name: str) -> Key:
    return ("name", name)


@dataclass(eq=False)
class Scope:
    """The names of a module, of a class's body, of one call of a function or of a comprehension.

    `elsewhere` maps the names that `global` and `nonlocal` declare to the scopes that hold them. `local` are the names
    that Python takes for the scope's own throughout, wherever they are bound.
    """

    path: str
    cells: Cells = field(default_factory=dict)
    parent: Scope | None = None
    local: frozenset[str] = frozenset()
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    in_class: bool = False
    comprehension: bool = False
    captured: bool = False
    """Whether a function that was made in it may outlive it."""

    def holder(self, name: str) -> Scope | None:
        """The scope that a name is read from; None where none has it."""
        scope: Scope | None = self
        while scope is not None:
            scope = scope.elsewhere.get(name, scope)
            if named(name) in scope.cells:
                return scope
            if name in scope.local:
                return None  # unbound, whatever scopes around it have
            scope = scope.parent
        return None

    def lookup(self, name: str) -> Value | None:
        holder = self.holder(name)
        return None if holder is None else holder.cells[named(name)]

    def capture(self) -> None:
        """A function is made here: what it reads of the scopes around it stays, when those have ended."""
        scope: Scope | None = self
        while scope is not None and not scope.captured:
            scope.captured = True
            scope = scope.parent

    @property
    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(eq=False)
class Function(Made):
    """A function or lambda of the tree. `bound` is what it is a method of; `defaults` were made with it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda = field(kw_only=True)
    scope: Scope = field(kw_only=True, repr=False)
    defaults: dict[str, Value] = field(default_factory=dict, kw_only=True, repr=False)
    bound: Value | None = field(default=None, kw_only=True, repr=False)
    form: Literal["plain", "static", "class", "property", "context"] = "plain"
    given: tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]] = ((), ())
    """What `functools.partial` gave it."""
    owner: Class | None = field(default=None, repr=False)
    """The class in whose body it stands."""

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")


@dataclass(eq=False)
class Class(Made):
    """A class of the tree. `bases` may hold what is no class of the tree."""

    node: ast.ClassDef = field(kw_only=True)
    bases: tuple[Value, ...] = field(default=(), kw_only=True)

    def line(self) -> list[Class]:
        """The classes that an attribute is looked for in, in order (as Python has it where no base comes twice)."""
        found: list[Class] = [self]
        for base in self.bases:
            if isinstance(base, Class):
                found += [each for each in base.line() if each not in found]
        return found

    @property
    def whole(self) -> bool:
        """Whether all that it inherits is of the tree, but `object`."""
        return all(
            (isinstance(base, Class) and base.whole) or base == External("builtins.object")
            for base in self.bases
        )


@dataclass(eq=False)
class Instance(Made):
    """An object of a class of the tree, with attributes of its own."""

    kind: Class = field(kw_only=True)


@dataclass(frozen=True)
class Module(Value):
    """A file of the tree, as a module."""

    path: str


@dataclass(frozen=True)
class Package(Value):
    """A folder of the tree without a file of its own, as a module."""

    dotted: str
    importer: str


@dataclass(frozen=True)
class Method(Value):
    """A method of something that is no object of the tree: `losses.append`."""

    owner: Value
    name: str


NONE: Final = Const(None)


def same(first: Value, second: Value) -> bool:
    """Whether two values are one for certain. `1`, `1.0` and `True` are three."""
    if first is second:
        return True
    if isinstance(first, Const) and isinstance(second, Const):
        return type(first.value) is type(second.value) and repr(first.value) == repr(second.value)
    if isinstance(first, Row) and isinstance(second, Row):
        return len(first.entries) == len(second.entries) and all(
            map(same, first.entries, second.entries)
        )
    if isinstance(first, Many) and isinstance(second, Many):
        if first.entry is None or second.entry is None:
            return first.entry is second.entry
        return same(first.entry, second.entry)
    if isinstance(first, Perhaps) and isinstance(second, Perhaps):
        return same(first.value, second.value)
    return type(first) is type(second) and not isinstance(first, Const | Made) and first == second


def read(value: Value) -> Value:
    """What reading a cell gives: it succeeded, so what it holds was there."""
    return value.value if isinstance(value, Perhaps) else value


def reachable(values: Iterable[Value]) -> Iterator[Made]:
    """Everything that code that is given some values can get at and change."""
    seen: set[int] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, Perhaps):
            waiting.append(value.value)
        elif isinstance(value, Row):
            waiting += value.entries
        elif isinstance(value, Many):
            waiting += [] if value.entry is None else [value.entry]
        elif isinstance(value, Unknown):
            waiting += value.may_be
        elif isinstance(value, Method):
            waiting.append(value.owner)
        elif isinstance(value, Made) and id(value) not in seen:
            seen.add(id(value))
            yield value
            waiting += value.cells.values()
            if isinstance(value, Function) and value.bound is not None:
                waiting.append(value.bound)
