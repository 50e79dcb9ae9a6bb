"""Lists, tuples, sets and dictionaries: entries, iteration, and the methods that Python gives them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from towermigrate.flow.core import Core
from towermigrate.flow.domain import Call
from towermigrate.flow.store import GONE
from towermigrate.flow.values import (
    HELD,
    NONE,
    ORDER,
    REST,
    Const,
    Instance,
    Items,
    Made,
    Many,
    Method,
    Perhaps,
    Place,
    Row,
    Scope,
    Table,
    Unknown,
    Value,
    read,
)

if TYPE_CHECKING:
    pass


class Containers(Core):
    """Takes containers apart and changes them. Part of the interpreter."""

    def turns(self, value: Value) -> Sequence[Value] | None:
        """What a loop over a value gives, turn by turn; None where that is not known, or too much."""
        found: Sequence[Value] | None = None
        match value:
            case Items():
                found = value.entries
                if value.kind == "iterator" and found is not None:
                    self.change(value, HELD, Row(()))  # it is used up
            case Table() if value.ordered and not value.wild:
                found = [Const(key) for key, _ in value.known()]
            case Const(value=str() | bytes() as text) if len(text) <= self.limits.turns:
                found = [Const(each) for each in text]
        if found is not None and (len(found) > self.limits.turns or self.exhausted):
            return None
        return found

    def entry(self, value: Value, node: ast.AST, scope: Scope) -> Value:
        """What a loop over a value gives at any turn."""
        place = self.place(node, scope.path)
        match value:
            case Items():
                held = value.held
                if isinstance(held, Row):
                    return (
                        self.any_of(held.entries) if held.entries else Unknown("it is empty", place)
                    )
                return Unknown("it may be empty", place) if held.entry is None else held.entry
            case Table() if not value.wild:
                return Unknown("a key", place)
        found = self.domain.entry(value)
        if found is not None:
            return found
        may_be = value.may_be if isinstance(value, Unknown) else (value,)
        return Unknown("an entry of what is not known", place, may_be)

    def key_of(self, node: ast.expr, scope: Scope) -> Value:
        value = self.evaluate(node, scope)
        if isinstance(value, Items) and value.kind == "tuple":
            entries = value.entries
            if entries is not None and all(isinstance(each, Const) for each in entries):
                return Const(tuple(each.value for each in entries if isinstance(each, Const)))
        return value

    def entry_at(self, owner: Value, key: Value, node: ast.Subscript, scope: Scope) -> Value:
        """`owner[key]`."""
        place = self.place(node, scope.path)
        index = key.value if isinstance(key, Const) else None
        found: Value | None
        match owner:
            case Items() if owner.entries is not None:
                entries = owner.entries
                if isinstance(index, slice):
                    try:
                        return self.items(entries[index], place, owner.kind)
                    except (TypeError, ValueError):
                        return Unknown("a slice", place)
                if isinstance(index, int):
                    if -len(entries) <= index < len(entries):
                        return entries[index]
                    return Unknown("no such entry", place)
                return self._one_entry(owner, place)
            case Items():
                if isinstance(index, slice):
                    return self.items(None, place, owner.kind, self.entry(owner, node, scope))
                return self._one_entry(owner, place)
            case Table() if not owner.wild:
                if isinstance(key, Const):
                    try:
                        cell = owner.cells.get(("key", type(index), index))
                    except TypeError:
                        return Unknown("no key", place)
                    if cell is not None:
                        name = index if isinstance(index, str) else ""
                        return self.domain.name(name, read(cell)) if name else read(cell)
                    if REST not in owner.cells:
                        return Unknown("no such key", place)
                values = [read(value) for name, value in owner.cells.items() if name != ORDER]
                return (
                    Unknown("one of several entries", place, tuple(values[:40]))
                    if len(values) != 1
                    else values[0]
                    if REST in owner.cells
                    else Unknown("a key that is not known", place, tuple(values))
                )
            case Const(value=str() | bytes() | tuple() as text) if isinstance(index, int | slice):
                try:
                    return Const(text[index])
                except (IndexError, TypeError, ValueError):
                    return Unknown("no such entry", place)
            case Instance():
                method = self.of_class(owner.kind, "__getitem__")
                if method is not None:
                    self.escape([owner], Unknown("its class says what an entry is", place))
        found = self.domain.subscript(owner, key, node, place)
        if found is not None:
            return found
        may_be = owner.may_be if isinstance(owner, Unknown) else (owner,)
        return Unknown("an entry of what is not known", place, may_be)

    def _one_entry(self, owner: Items, place: Place) -> Value:
        held = owner.held
        entries = held.entries if isinstance(held, Row) else (held.entry,)
        found = [each for each in entries if each is not None]
        return self.any_of(found) if found else Unknown("it is empty", place)

    def contains(self, owner: Value, value: Value) -> bool | None:
        """`value in owner`, where that is certain."""
        if isinstance(value, Const):
            if isinstance(owner, Table) and owner.exact and not owner.wild:
                keys = [key for key, _ in owner.known()]
                return any(_equal(key, value.value) for key in keys)
            if (
                isinstance(owner, Items)
                and owner.kind in ("list", "tuple")
                and owner.entries is not None
            ):
                if all(isinstance(each, Const) for each in owner.entries):
                    return any(
                        _equal(each.value, value.value)
                        for each in owner.entries
                        if isinstance(each, Const)
                    )
            if (
                isinstance(owner, Const)
                and isinstance(owner.value, str)
                and isinstance(value.value, str)
            ):
                return value.value in owner.value
        return None

    def joined_or_repeated(
        self, op: ast.AST, operands: Sequence[Value], place: Place
    ) -> Value | None:
        """`a + b` and `a * n` of lists and tuples, and comparisons of constants in them."""
        first, second = operands if len(operands) == 2 else (operands[0], operands[0])
        if isinstance(op, ast.Add) and isinstance(first, Items) and isinstance(second, Items):
            if first.kind == second.kind and first.kind in ("list", "tuple"):
                one, two = first.entries, second.entries
                if one is not None and two is not None:
                    return self.items([*one, *two], place, first.kind)
                found = [each for side in (first, second) for each in _held(side)]
                return self.items(None, place, first.kind, self.any_of(found) if found else None)
        if isinstance(op, ast.Mult):
            for listed, number in ((first, second), (second, first)):
                if isinstance(listed, Items) and listed.kind in ("list", "tuple"):
                    entries = listed.entries
                    times = number.value if isinstance(number, Const) else None
                    if (
                        entries is not None
                        and isinstance(times, int)
                        and len(entries) * times <= self.limits.entries
                    ):
                        return self.items(list(entries) * times, place, listed.kind)
                    found = _held(listed)
                    return self.items(
                        None, place, listed.kind, self.any_of(found) if found else None
                    )
        return None

    def extend(self, owner: Items, value: Value, node: ast.AST, scope: Scope) -> None:
        """`owner += value`, `owner.extend(value)`."""
        more = self.turns(value)
        mine = owner.entries
        if (
            more is not None
            and mine is not None
            and len(mine) + len(more) <= self.limits.entries
            and not owner.repeated
        ):
            self.change(owner, HELD, Row((*mine, *more)))
            return
        found = [*_held(owner), *(more if more is not None else [self.entry(value, node, scope)])]
        self.change(owner, HELD, Many(self.any_of(found) if found else None))

    def update(self, made: Table, value: Value, place: Place) -> None:
        if isinstance(value, Table) and value.ordered and not value.wild:
            for key, each in list(value.known()):
                self.set_entry(made, Const(key), each, place)
            return
        self.escape([made], Unknown("it was given entries that are not known", place))

    def remove_key(self, owner: Table, key: Const) -> None:
        self.store.set(owner.cells, ("key", type(key.value), key.value), GONE)
        order = owner.cells.get(ORDER)
        if isinstance(order, Const) and isinstance(order.value, tuple):
            left = tuple(each for each in order.value if each != (type(key.value), key.value))
            self.store.set(owner.cells, ORDER, Const(left))

    def method(self, target: Method, call: Call) -> Value | None:
        """A method of one of Python's own containers or texts; None where it is not followed."""
        owner, name = target.owner, target.name
        if not call.known or (isinstance(owner, Made) and owner.wild):
            return None
        if isinstance(owner, Items):
            return self._of_list(owner, name, call)
        if isinstance(owner, Table):
            return self._of_table(owner, name, call)
        if isinstance(owner, Const) and isinstance(owner.value, str) and name in _TEXT:
            values = [each.value for each in call.args if isinstance(each, Const)]
            named_ = {k: v.value for k, v in call.keywords.items() if isinstance(v, Const)}
            if len(values) == len(call.args) and len(named_) == len(call.keywords):
                try:
                    found = getattr(owner.value, name)(*values, **named_)
                except Exception as error:
                    return call.unknown(type(error).__name__)
                if isinstance(found, list):
                    return self.items([Const(each) for each in found], call.place)
                return Const(found)
            parts = [owner, Const(name), *call.args, *call.keywords.values()]
            if not call.keywords and name in ("startswith", "endswith"):
                return self.asked(call.node, parts, "a question about a text", call.place)
            if name == "format":
                return self.asked(call.node, parts, "a text", call.place)
        return None

    def _of_list(self, owner: Items, name: str, call: Call) -> Value | None:
        held = owner.held
        entries = held.entries if isinstance(held, Row) else None
        args = call.args
        if call.keywords or owner.kind == "set" and name != "add":
            return None
        match name:
            case "append" | "add" if len(args) == 1:
                if (
                    entries is not None
                    and not owner.repeated
                    and len(entries) < self.limits.entries
                ):
                    self.change(owner, HELD, Row((*entries, args[0])))
                else:
                    self.change(owner, HELD, Many(self.any_of([*_held(owner), args[0]])))
                return NONE
            case "extend" if len(args) == 1:
                self.extend(owner, args[0], call.node, call.scope)
                return NONE
            case "insert" if len(args) == 2 and entries is not None and not owner.repeated:
                index = args[0].value if isinstance(args[0], Const) else None
                if isinstance(index, int):
                    made = list(entries)
                    made.insert(index, args[1])
                    self.change(owner, HELD, Row(tuple(made)))
                    return NONE
            case "pop" if len(args) <= 1 and entries and not owner.repeated:
                index = (
                    args[0].value
                    if args and isinstance(args[0], Const)
                    else -1
                    if not args
                    else None
                )
                if isinstance(index, int) and -len(entries) <= index < len(entries):
                    left = list(entries)
                    found = left.pop(index)
                    self.change(owner, HELD, Row(tuple(left)))
                    return found
            case "reverse" if not args and entries is not None and not owner.repeated:
                self.change(owner, HELD, Row(entries[::-1]))
                return NONE
            case "copy" if not args:
                if entries is not None:
                    return self.items(entries, call.place, owner.kind)
                found_ = _held(owner)
                return self.items(
                    None, call.place, owner.kind, self.any_of(found_) if found_ else None
                )
            case "clear" if not args and not owner.repeated:
                self.change(owner, HELD, Row(()))
                return NONE
            case "index" | "count" if len(args) == 1:
                consts = [each.value for each in entries or () if isinstance(each, Const)]
                if (
                    entries is not None
                    and len(consts) == len(entries)
                    and isinstance(args[0], Const)
                ):
                    try:
                        return Const(getattr(consts, name)(args[0].value))
                    except ValueError:
                        return call.unknown("ValueError")
                parts = [owner, Const(name), args[0]]
                return self.asked(call.node, parts, "where an entry is", call.place)
        return None

    def _of_table(self, owner: Table, name: str, call: Call) -> Value | None:
        args = call.args
        match name:
            case "items" | "keys" | "values" if not args and not call.keywords:
                if owner.ordered:
                    known = list(owner.known())
                    if name == "keys":
                        return self.items([Const(key) for key, _ in known], call.place)
                    if name == "values":
                        return self.items([value for _, value in known], call.place)
                    pairs = [self.items((Const(k), v), call.place, "tuple") for k, v in known]
                    return self.items(pairs, call.place)
                every = [read(value) for name, value in owner.cells.items() if name != ORDER]
                one: Value = self.any_of(every) if every else call.unknown("no entry")
                key = call.unknown("a key")
                if name == "items":
                    one = self.items((key, one), call.place, "tuple")
                return self.items(None, call.place, "list", key if name == "keys" else one)
            case "get" | "setdefault" | "pop" if (
                args and isinstance(args[0], Const) and not call.keywords
            ):
                cell = ("key", type(args[0].value), args[0].value)
                held = owner.cells.get(cell)
                default = args[1] if len(args) > 1 else NONE
                if held is None and REST not in owner.cells:
                    if name == "setdefault":
                        self.set_entry(owner, args[0], default, call.place)
                    return (
                        default if name != "pop" or len(args) > 1 else call.unknown("no such key")
                    )
                if held is not None and not isinstance(held, Perhaps):
                    if name == "pop":
                        if owner.repeated:
                            return None
                        self.remove_key(owner, args[0])
                    return held
                if name == "get":
                    value = read(held) if held is not None else read(owner.cells[REST])
                    return self.join(value, default)
            case "update" if len(args) <= 1:
                if args:
                    self.update(owner, args[0], call.place)
                for key_, value in call.keywords.items():
                    self.set_entry(owner, Const(key_), value, call.place)
                return NONE
            case "copy" if not args and owner.ordered:
                return self.table(dict(owner.known()), call.place)
        return None


def _held(owner: Items) -> list[Value]:
    held = owner.held
    if isinstance(held, Row):
        return list(held.entries)
    return [] if held.entry is None else [held.entry]


def _equal(first: object, second: object) -> bool:
    try:
        return bool(first == second)
    except Exception:
        return False


_TEXT = frozenset(
    "format join split rsplit strip lstrip rstrip replace lower upper startswith endswith title find count "
    "capitalize zfill isdigit rjust ljust partition".split()
) - {"join", "partition"}
