"""What binds: names, attributes, entries; `del`; and what is lost where code cannot be followed."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from towermigrate.flow.expressions import Expressions
from towermigrate.flow.store import GONE
from towermigrate.flow.values import (
    HELD,
    ORDER,
    REST,
    Class,
    Const,
    Function,
    Instance,
    Items,
    Made,
    Many,
    Module,
    Perhaps,
    Place,
    Row,
    Scope,
    Table,
    Unknown,
    Value,
    named,
    read,
)


class Bindings(Expressions):
    """Binds. Part of the interpreter."""

    def assign(self, name: str, value: Value, scope: Scope) -> None:
        target = scope.elsewhere.get(name, scope)
        self.store.set(target.cells, named(name), value)

    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Assign a value to a name, or to each of several, to an attribute or to an entry."""
        place = self.place(target, scope.path)
        match target:
            case ast.Name():
                self.assign(target.id, value, scope)
                self.named(target.id, value, place)
            case ast.Tuple() | ast.List():
                for part, each in zip(target.elts, self._parts(target, value, scope), strict=True):
                    self.bind(part, each, scope)
            case ast.Starred():
                self.bind(target.value, value, scope)
            case ast.Attribute():
                self.set_attribute(self.evaluate(target.value, scope), target.attr, value, place)
            case ast.Subscript():
                owner = self.evaluate(target.value, scope)
                self.set_entry(owner, self.key_of(target.slice, scope), value, place)

    def _parts(self, target: ast.Tuple | ast.List, value: Value, scope: Scope) -> Sequence[Value]:
        """What each of several targets is given."""
        place = self.place(target, scope.path)
        count = len(target.elts)
        stars = [k for k, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
        entries = self.turns(value)
        if entries is not None and not stars and len(entries) == count:
            return entries
        if entries is not None and len(stars) == 1 and len(entries) >= count - 1:
            (star,) = stars
            behind = count - star - 1
            middle = self.items(entries[star : len(entries) - behind], place)
            return [*entries[:star], middle, *entries[len(entries) - behind :]]
        if entries is None and not stars:
            found = self.domain.unpacked(value, count)
            if found is not None:
                return found
        one = self.entry(value, target, scope)
        return [
            self.items(None, place, "list", one) if isinstance(each, ast.Starred) else one
            for each in target.elts
        ]

    def set_attribute(self, owner: Value, name: str, value: Value, place: Place) -> None:
        match owner:
            case Instance():
                special = self.of_class(owner.kind, name)
                own = self.of_class(owner.kind, "__setattr__")
                property_ = isinstance(special, Function) and special.form == "property"
                if property_ or own is not None:
                    self.escape(
                        [owner, value], Unknown("an attribute whose setting runs code", place)
                    )
                    return
                self.change(owner, named(name), value)
            case Class():
                self.change(owner, named(name), value)
            case Module():
                self.store.set(self.module(owner.path).cells, named(name), value)
            case Unknown():
                self.escape([*owner.may_be, value], Unknown("an attribute was set", place))
            case _:
                return
        self.named(name, value, place)

    def set_entry(self, owner: Value, key: Value, value: Value, place: Place) -> None:
        """`owner[key] = value`."""
        match owner:
            case Table() if isinstance(key, Const):
                cell = ("key", type(key.value), key.value)
                if cell not in owner.cells or isinstance(owner.cells[cell], Perhaps):
                    self._ordered(owner, cell, place)
                self.change(owner, cell, value)
            case Table():
                for name, old in list(owner.cells.items()):
                    if name[0] == "key":
                        self.change(owner, name, self.join(read(old), value))
                rest = owner.cells.get(REST)
                self.change(owner, REST, value if rest is None else self.join(rest, value))
            case Items():
                entries = owner.entries
                index = key.value if isinstance(key, Const) else None
                if (
                    entries is not None
                    and isinstance(index, int)
                    and -len(entries) <= index < len(entries)
                ):
                    made = list(entries)
                    made[index] = value
                    self.change(owner, HELD, Row(tuple(made)))
                elif (
                    entries is not None
                    and isinstance(key, Const | Unknown)
                    and not isinstance(index, slice)
                ):
                    made = [self.join(each, value) for each in entries]
                    self.change(owner, HELD, Row(tuple(made)))
                else:
                    held = owner.held
                    parts = held.entries if isinstance(held, Row) else (held.entry,)
                    found = [each for each in (*parts, value) if each is not None]
                    self.change(
                        owner,
                        HELD,
                        Many(self.any_of([*found, Unknown("a part was set", place, tuple(found))])),
                    )
            case Unknown():
                self.escape([*owner.may_be, value], Unknown("an entry was set", place))
            case Instance():
                self.escape([owner, value], Unknown("an entry was set", place))

    def _ordered(self, owner: Table, cell: tuple[object, ...], place: Place) -> None:
        """A key is set that was not there, or that may have been there."""
        order = owner.cells.get(ORDER, Const(()))
        keys = order.value if isinstance(order, Const) else None
        known = isinstance(keys, tuple) and cell not in owner.cells
        assert isinstance(keys, tuple) or not known
        new = (
            Const((*keys, cell[1:]))
            if known and isinstance(keys, tuple)
            else self.order_of(owner, cell, place)
        )
        self.change(owner, ORDER, new)

    def order_of(self, owner: Table, cell: tuple[object, ...], place: Place) -> Value:
        """The order of a table's keys that is not known any more, as one is set."""
        return Unknown("the order of its keys", place)

    def _augment(self, node: ast.AugAssign, scope: Scope) -> None:
        """`target op= value`: a list is changed where it is, anything else is made anew."""
        target = node.target
        if isinstance(target, ast.Name):
            old: Value = self.read_name(target.id, target, scope)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, scope)
            old = self.attribute(owner, target, scope)
        else:
            owner, key = self.evaluate(target.value, scope), self.key_of(target.slice, scope)
            old = self.entry_at(owner, key, target, scope)
        value = self.evaluate(node.value, scope)
        if isinstance(old, Items) and old.kind == "list" and isinstance(node.op, ast.Add):
            self.extend(old, value, node, scope)
            new: Value = old
        elif self.changes_in_place(old):
            self.escape(
                [old, value], Unknown("an operator changes it", self.place(node, scope.path))
            )
            new = self.operate(node, node.op, [old, value], scope)
        elif isinstance(old, Items) and old.kind == "set":
            self.escape(
                [old, value], Unknown("an operator changes it", self.place(node, scope.path))
            )
            new = old
        else:
            new = self.operate(node, node.op, [old, value], scope)
        place = self.place(target, scope.path)
        if isinstance(target, ast.Name):
            self.assign(target.id, new, scope)
            self.named(target.id, new, place)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(owner, target.attr, new, place)
        else:
            self.set_entry(owner, key, new, place)

    def _delete(self, target: ast.expr, scope: Scope) -> None:
        match target:
            case ast.Name():
                holder = scope.elsewhere.get(target.id, scope)
                self.store.set(holder.cells, named(target.id), GONE)
            case ast.Tuple() | ast.List():
                for each in target.elts:
                    self._delete(each, scope)
            case ast.Attribute():
                owner = self.evaluate(target.value, scope)
                if isinstance(owner, Instance | Class):
                    self.store.set(owner.cells, named(target.attr), GONE)
            case ast.Subscript():
                owner = self.evaluate(target.value, scope)
                key = self.key_of(target.slice, scope)
                if isinstance(owner, Table) and isinstance(key, Const) and not owner.repeated:
                    self.remove_key(owner, key)
                else:
                    self.escape(
                        [owner], Unknown("an entry was deleted", self.place(target, scope.path))
                    )

    def changes_in_place(self, value: Value) -> bool:
        """Whether `+=` may change what a name is bound to, in a way that cannot be followed."""
        return (
            isinstance(value, Unknown) or isinstance(value, Made) and not isinstance(value, Items)
        )

    def _nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            holder = scope.parent
            while holder is not None:
                if name in holder.local or named(name) in holder.cells:
                    scope.elsewhere[name] = holder.elsewhere.get(name, holder)
                    break
                holder = holder.parent

    def lose(self, scope: Scope, why: Unknown) -> None:
        """Code that nobody can follow may have set any name that is in sight."""
        each: Scope | None = scope
        while each is not None:
            for key, value in list(each.cells.items()):
                if isinstance(read(value), Made):
                    self.escape([read(value)], why)
                self.store.set(each.cells, key, why)
            each = each.parent
