"""What a reader of programs says of libraries: a `Domain` gives calls, operations and attributes their meaning.

The interpreter knows Python; it asks its domain about everything else. Each method may leave a question open (None),
and the interpreter then takes what is true of any library: the result is unknown.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from towermigrate.flow.frames import Limits
from towermigrate.flow.values import (
    Class,
    Function,
    Items,
    Made,
    Place,
    Scope,
    Table,
    Unknown,
    Value,
    same,
)


class Asked(ABC):
    """What a domain may ask of the interpreter that asks it."""

    domain: Domain
    limits: Limits
    generic: int

    @abstractmethod
    def attribute(self, owner: Value, node: ast.Attribute, scope: Scope) -> Value: ...

    @abstractmethod
    def call(self, function: Function, call: Call) -> Value: ...

    @abstractmethod
    def invoke(self, target: Value, call: Call, receiver: Value | None = None) -> Value: ...

    @abstractmethod
    def ways(self, runs: Sequence[Callable[[], bool]]) -> bool: ...

    @abstractmethod
    def module(self, path: str, main: bool | None = None) -> Scope: ...

    @abstractmethod
    def turns(self, value: Value) -> Sequence[Value] | None: ...

    @abstractmethod
    def entry(self, value: Value, node: ast.AST, scope: Scope) -> Value: ...

    @abstractmethod
    def truth(self, value: Value) -> bool | None: ...

    @abstractmethod
    def update(self, made: Table, value: Value, place: Place) -> None: ...

    @abstractmethod
    def of_class(self, kind: Class, name: str) -> Value | None: ...

    @abstractmethod
    def lose(self, scope: Scope, why: Unknown) -> None: ...

    @abstractmethod
    def call_unknown(self, function: Function) -> Value: ...

    @abstractmethod
    def call_with(
        self, target: Value, args: Sequence[Value], node: ast.expr, scope: Scope
    ) -> Value: ...

    @abstractmethod
    def set_entry(self, owner: Value, key: Value, value: Value, place: Place) -> None: ...

    @abstractmethod
    def set_attribute(self, owner: Value, name: str, value: Value, place: Place) -> None: ...

    @abstractmethod
    def place(self, node: ast.AST, path: str) -> Place: ...

    @abstractmethod
    def items(
        self,
        entries: Sequence[Value] | None,
        place: Place,
        kind: str = "list",
        entry: Value | None = None,
    ) -> Items: ...

    @abstractmethod
    def table(self, entries: Mapping[Any, Value], place: Place) -> Table: ...

    @abstractmethod
    def join(self, first: Value, second: Value) -> Value: ...

    @abstractmethod
    def any_of(self, values: Sequence[Value]) -> Value: ...

    @abstractmethod
    def change(self, made: Made, key: tuple[object, ...], value: Value) -> None: ...

    @abstractmethod
    def escape(self, values: Sequence[Value], why: Unknown) -> None: ...


@dataclass(frozen=True)
class Call:
    """One call, with the values of its arguments.

    `name` is the full name of a library's function, or that of a method. `known` is False where a `*` or `**` among
    the arguments could not be taken apart: then those behind it are not there. `stars` are what such
    ones were given, and what stands behind them.
    """

    interpreter: Asked
    node: ast.Call
    scope: Scope
    name: str
    args: Sequence[Value]
    keywords: Mapping[str, Value]
    known: bool = True
    stars: Sequence[Value] = ()

    def get(self, index: int, *names: str) -> Value | None:
        """An argument by position or by one of its names."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return self.args[index] if index < len(self.args) else None

    @property
    def place(self) -> Place:
        return self.interpreter.place(self.node, self.scope.path)

    def unknown(self, reason: str) -> Unknown:
        return Unknown(reason, self.place)


class Domain:
    """The questions, each left open. A subclass answers those that it cares about.

    Example:
        >>> class Sizes(Domain):
        ...     def function(self, call):
        ...         return Const(64) if call.name == "settings.batch_size" else None
    """

    def spelled(self, name: str) -> str:
        """The one spelling of a library's name, for all the ways to import it."""
        return name

    def name(self, name: str, value: Value) -> Value:
        """What a name, an attribute or a key gives: `value`, or what the name says where that is unknown."""
        return value

    def constant(self, value: object) -> Value | None:
        """A literal."""
        return None

    def function(self, call: Call) -> Value | None:
        """A call of a library's function or class, `call.name`."""
        return None

    def method(self, call: Call, owner: Value, receiver: ast.expr) -> Value | None:
        """A call of the method `call.name` of a value that is no object of the tree."""
        return None

    def called(self, call: Call, value: Value) -> Value | None:
        """A call of a value of the domain's own."""
        return None

    def entered(self, call: Call, function: Value) -> Value | None:
        """A call of a function or class of the tree that the domain gives a meaning of its own."""
        return None

    def given(
        self, name: str, position: int | None, default: Value | None, stars: Sequence[Value]
    ) -> Value | None:
        """What a parameter is given by stars that could not be taken apart, or else its default.

        `position` counts the parameters that may be given by position from the first one that a star gives.
        """
        return None

    def attribute(self, owner: Value, node: ast.Attribute, place: Place) -> Value | None:
        """`owner.attr`, of a value that is no object, class or module of the tree."""
        return None

    def operation(self, node: ast.AST, operands: Sequence[Value], place: Place) -> Value | None:
        """An operator on values, of which one at least is no constant."""
        return None

    def subscript(
        self, owner: Value, key: Value, node: ast.Subscript, place: Place
    ) -> Value | None:
        return None

    def entry(self, value: Value) -> Value | None:
        """What a loop over a value gives each time."""
        return None

    def unpacked(self, value: Value, count: int) -> Sequence[Value] | None:
        """What `a, b = value` binds."""
        return None

    def truth(self, value: Value) -> bool | None:
        """Whether a value of the domain's own is true for certain, or false."""
        return None

    def join(self, first: Value, second: Value) -> Value | None:
        """What is one of two values; None where nothing is true of both."""
        return None

    def alike(self, first: Value, second: Value) -> bool:
        """Whether two values say the same: a loop that no longer changes what is known has been read."""
        return same(first, second)

    def decorated(self, decorator: Value, node: ast.expr, function: Value) -> Value | None:
        """What a decorator of a library makes of a function."""
        return None

    def entering(self, value: Value, node: ast.withitem, scope: Scope) -> Value | None:
        """What `with value as name` binds; the body follows, then `leaving`."""
        return None

    def leaving(self, value: Value, node: ast.withitem, scope: Scope) -> None:
        """The body of a `with` ended."""

    def changes(self, call: Call, values: Sequence[Value]) -> bool:
        """Whether a call that is not followed may change what it is given."""
        return True

    def bound(self, name: str, value: Value, place: Place) -> None:
        """A name was bound to a value."""
