"""How a program is read whose towers are compared: what goes by what is kept, where nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from towermigrate.flow import Call, Interpreter, Limits
from towermigrate.flow.frames import Frame
from towermigrate.flow.store import GONE, Changes, let_go
from towermigrate.flow.values import (
    HELD,
    ORDER,
    REST,
    Class,
    Const,
    External,
    Function,
    Instance,
    Items,
    Made,
    Many,
    Method,
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
from towermigrate.towers.domain import Towers
from towermigrate.towers.meanings import NAMES
from towermigrate.towers.values import GROWN, TENSOR, Key, Tensor, Term, is_list

_MADE_HERE = {
    "no such entry", "no such key", "no key", "a key", "it is empty", "it may be empty", "one of several entries",
    "a key that is not known",
}  # fmt: skip
"""Why an entry of a container is unknown that is so whenever it is asked for."""

_SPECIAL = (
    "__len__ __str__ __repr__ __unicode__ __format__ __bool__ __nonzero__ __hash__ __eq__ __contains__ __int__ "
    "__float__ __index__ __iter__ __next__ next"
).split()
"""Methods that Python calls where an object is given to one of its own functions."""

_DONE = {"a call that is not followed", "an operator changes it"}
"""Why nothing is known of something to which the same is done where the same is given."""


def _written(node: ast.AST) -> ast.expr:
    return node if isinstance(node, ast.expr) else ast.copy_location(ast.Constant(None), node)


class Reading(Interpreter):
    """An interpreter on the domain of towers.

    Args:
        sources: texts of the tree by path.
        towers: the domain.
        limits: how much is read.
    """

    def __init__(self, sources: Mapping[str, str], towers: Towers, limits: Limits) -> None:
        super().__init__(sources, towers, limits)
        self.towers = towers
        self.towers.without_class = self._without_class
        self.store.by = lambda: self.towers.asked
        self.towers.note_change = self._note_change
        self.towers.has_code = self._has_code
        self._sets: dict[int, frozenset[Key]] = {}
        """What was set, by the terms that stand for that."""
        self._objects: dict[tuple[Key, Place], Instance] = {}
        self._orders: dict[Key, tuple[Value, tuple[Key, ...]]] = {}
        self._of_this_turn: set[tuple[str, int | str]] = set()
        self._of_all_turns: set[tuple[str, int | str]] = set()
        """Where it is noted what was done to lists that are this tower's own, and to others."""
        self._statements: list[ast.stmt] = []
        self._flagged: Scope | None = None
        """The scope some of whose names are flags."""
        self._old: set[int] = set()
        """What was there before the tower that they are flags in."""

    @property
    def path(self) -> str:
        """The file that is read."""
        function = next((f.function for f in reversed(self.frames) if f.function), None)
        return next(iter(self._modules)) if function is None else function.scope.path

    def lose(self, scope: Scope, why: Unknown) -> None:
        self.towers.lost = True
        super().lose(scope, why)

    # ---- what is asked on the way ----------------------------------------------------------------

    @contextmanager
    def _frame(self, node: ast.AST | None) -> Iterator[Frame]:
        before = self.towers.asked
        self.towers.asked = frozenset()
        try:
            with super()._frame(node) as frame:
                yield frame
        finally:
            self.towers.asked = before

    def _asks(self, value: Value) -> None:
        """It is open which way the program goes, by a value: what is true behind goes by it too."""
        if not isinstance(value, Tensor):
            self.towers.asked |= {self.towers.terms.key(value)}
            self._decides(value)

    def truth(self, value: Value) -> bool | None:
        known = super().truth(value)
        if known is None:
            self._asks(value)
        return known

    def entry(self, value: Value, node: ast.AST, scope: Scope) -> Value:
        self._asks(value)
        if isinstance(value, Instance):
            start = self.of_class(value.kind, "__iter__")
            if isinstance(start, Function):
                given = self.call_with(self.bound_to(start, value), [], _written(node), scope)
                return given if isinstance(given, Instance) else self.entry(given, node, scope)
        if isinstance(value, Items) and value.kind == "iterator" and self._is_of_others(value):
            found = self._of_turn(value, super().entry(value, node, scope))
            self._consume(value)
            return found
        if isinstance(value, Term):
            parts = [
                self.entry(e, node, scope) for e in value.may_be if isinstance(e, Items | Table)
            ]
            found = self._one_of_each("turn", (value,), parts)
            self.towers.use_up(value)
            return found
        entries = value.entries if isinstance(value, Items) else None
        if entries and not any(isinstance(each, Made | External | Tensor) for each in entries):
            may_be = [
                e for each in entries if isinstance(each, Term | Unknown) for e in each.may_be
            ]
            return self.towers.terms.of("turn", (value,), tuple(may_be[:40]))
        return self._of_turn(value, super().entry(value, node, scope))

    def _of_turn(self, over: Value, value: Value) -> Value:
        """What a loop over a value binds goes by how often it runs, too."""
        if isinstance(value, Items) and value.kind == "tuple" and value.entries is not None:
            inside = [self._of_turn(over, each) for each in value.entries]
            return self.items(inside, value.place, "tuple")
        if isinstance(value, Unknown) and value.reason in _MADE_HERE:
            return self.towers.terms.of("turn", (over,), value.may_be)
        return self._one_of_each("turn", (over,), [value])

    def _one_of_each(self, what: str, of: Sequence[Value | str], parts: Sequence[Value]) -> Value:
        """What is one of some values, by an operation that is not run."""
        if len(parts) == 1 and isinstance(parts[0], Made | Tensor):
            return parts[0]
        if parts and all(isinstance(each, Tensor) for each in parts):
            return self.towers.tensor_of(parts)
        may_be: list[Value] = []
        for each in parts:
            may_be += each.may_be if isinstance(each, Term | Unknown) else ()
            may_be += [each] if isinstance(each, Made | External) else ()
        return self.towers.terms.of(what, (*of, *parts), tuple(may_be[:40]))

    def attribute(self, owner: Value, node: ast.Attribute, scope: Scope) -> Value:
        if node.attr == "__dict__" and not isinstance(owner, External):
            return self.towers.dictionary(owner)
        if isinstance(owner, Instance):
            if node.attr == "__class__":
                return owner.kind
            asked = self.of_class(owner.kind, "__getattr__")
            has = named(node.attr) in owner.cells or self.of_class(owner.kind, node.attr)
            if isinstance(asked, Function) and not has:
                wanted = Const(node.attr)
                return self.call_with(self.bound_to(asked, owner), [wanted], node, scope)
        parts: list[Value] = []
        if isinstance(owner, Term | Unknown):
            objects = [each for each in owner.may_be if isinstance(each, Instance)]
            if self._objects:
                key, name = self.towers.terms.key(owner), named(node.attr)
                known = self._objects.items()
                objects += [e for (of, _), e in known if of == key and name in e.cells]
            parts = [super(Reading, self).attribute(each, node, scope) for each in objects]
        if not parts or any(isinstance(each, Function) for each in parts):
            return super().attribute(owner, node, scope)
        return self._one_of_each("attribute", (owner, node.attr), parts)

    def widen(self, moved: Iterable[tuple[int, tuple[object, ...]]], now: Changes) -> None:
        moved = list(moved)
        terms = self.towers.terms
        for place in moved:
            cells, value = now[place]
            held = read(value)
            may_be = (held,) if isinstance(held, Made) else ()
            if isinstance(held, Row | Many):
                parts = (
                    held.entries
                    if isinstance(held, Row)
                    else ()
                    if held.entry is None
                    else (held.entry,)
                )
                inside: list[Value] = [each for each in parts if isinstance(each, Made)]
                lists = bool(parts) and all(map(is_list, parts))
                if lists:
                    inside += [e for each in parts if isinstance(each, Term) for e in each.may_be]
                made = terms.of("looped", (self.towers.asked, held), tuple(inside[:40]))
                whole = lists and len(inside) <= 40
                self.store.set(cells, place[1], Many(replace(made, whole=True) if whole else made))
            else:
                made = terms.of("looped", (self.towers.asked, held), may_be)
                own = replace(value, value=made) if isinstance(value, Perhaps) else made
                self.store.set(cells, place[1], own)

    # ---- values that are no objects of the tree --------------------------------------------------

    def set_attribute(self, owner: Value, name: str, value: Value, place: Place) -> None:
        self._stored(owner, value)
        if isinstance(owner, External):
            full = self.towers.spelled(f"{owner.name}.{name}")
            self.store.set(self.towers.set_elsewhere, ("library", full), value)
        elif isinstance(owner, Function) or not isinstance(owner, Made | Module):
            self._set_elsewhere(owner, ("attribute", self.towers.terms.key(owner), name), value)
        else:
            super().set_attribute(owner, name, value, place)

    def set_entry(self, owner: Value, key: Value, value: Value, place: Place) -> None:
        self._stored(owner, key, value)
        if isinstance(owner, Made):
            super().set_entry(owner, key, value, place)
        else:
            terms = self.towers.terms
            if isinstance(owner, Unknown) and owner.reason == NAMES:
                self.towers.lost = True
            holder = self.towers.dictionaries.get(terms.key(owner))
            if holder is not None and isinstance(key, Const) and isinstance(key.value, str):
                self.set_attribute(holder, key.value, value, place)
                return
            one = isinstance(key, Const) and isinstance(key.value, str | bytes | int)
            if isinstance(owner, External) or isinstance(owner, Term | Unknown) and not one:
                self._note_set(owner, terms.key(key), value)
            self._set_elsewhere(owner, ("entry", terms.key(owner), terms.key(key)), value)

    def _note_set(self, owner: Term | Unknown | External, key: Key, value: Value) -> None:
        """Parts of it are set: once more to the same is no other thing."""
        terms = self.towers.terms
        old = terms.changed.get(terms.change(owner))
        before = read(old) if old is not None else None
        known = self._sets.get(before.number) if isinstance(before, Term) else frozenset()
        if known is None:
            known = frozenset([terms.key(before)]) if before is not None else frozenset()
        new = known | {(key, terms.key(value))}
        made = terms.of("set", (new,))
        self._sets[made.number] = new
        self._note_change(owner, made)

    def _is_of_others(self, value: Made) -> bool:
        return bool(self.towers.turns) and value.turn != self.towers.turns

    def _has_code(self, value: Instance) -> bool:
        return any(isinstance(self.of_class(value.kind, each), Function) for each in _SPECIAL)

    def _consume(self, value: Items) -> None:
        """Values are taken from an iterator of another tower, of which it is not known how many it has."""
        rest = self.towers.terms.of("rest of", (value,))
        held = value.held
        entry = held.entry if isinstance(held, Many) else None
        may_be = (entry,) if isinstance(entry, Made | External) else ()
        self.change(value, HELD, Many(replace(rest, may_be=may_be)))

    def _set_elsewhere(self, owner: Value, cell: tuple[object, ...], value: Value) -> None:
        if isinstance(owner, Term | Unknown):
            why = self.towers.why("set", (owner, cell, value), Unknown("it may be changed"))
            self.escape(owner.may_be, why)
        self.store.set(self.towers.set_elsewhere, cell, value)

    def changes_in_place(self, value: Value) -> bool:
        held = value.may_be if isinstance(value, Term) else ()
        changes = any(isinstance(each, Items | Table | Instance) for each in held)
        return changes or super().changes_in_place(value)

    def call_with(
        self, target: Value, args: Sequence[Value], node: ast.expr, scope: Scope
    ) -> Value:
        if not isinstance(target, External):
            return super().call_with(target, args, node, scope)
        written = ast.copy_location(ast.Call(node, [], []), node)
        return self.invoke(target, Call(self, written, scope, target.name, list(args), {}))

    def escape(self, values: Sequence[Value], why: Unknown) -> None:
        """What is changed once more is another thing than before, of which no more was known already."""
        if why.reason in _DONE:
            why = self.towers.why("let go", (why.reason, why.place, *values), why)
        given = [e for v in values for e in (v.may_be if isinstance(v, Term) else (v,))]
        changed = [each.owner for each in given if isinstance(each, Method)] or given
        direct = [e for v in changed for e in (v.may_be if isinstance(v, Term | Unknown) else (v,))]
        again = [e for e in direct if isinstance(e, Items | Table | Instance) and e.wild]
        super().escape(given, why)
        for made in again:
            let_go(self.store, made, why)

    def order_of(self, owner: Table, cell: tuple[object, ...], place: Place) -> Value:
        """An order that is not known goes by the one before, and by which keys were set that may have been there."""
        terms = self.towers.terms
        old = read(owner.cells.get(ORDER, Const(())))
        there = owner.cells.get(cell)
        by = there.by if isinstance(there, Perhaps) else there is not None
        first, keys = self._orders.get(terms.key(old), (old, ()))
        keys = keys if (repr(cell), by) in keys else (*keys, (repr(cell), by))
        new = terms.of("order", (first, keys))
        self._orders[terms.key(new)] = (first, keys)
        return new

    def _note_change(self, owner: Term | Unknown | External, change: Value) -> None:
        terms = self.towers.terms
        own = terms.change(owner)
        may_be = () if isinstance(owner, External) else owner.may_be
        made = {each.turn if isinstance(each, Made) else None for each in may_be}
        if isinstance(owner, Term) and owner.whole and made == {self.towers.turns}:
            self._of_this_turn.add(own)
        else:
            self._of_all_turns.add(own)
        self.store.set(terms.changed, own, change)

    def forget_changes(self) -> None:
        """What the tower before has done to lists of its own is not done to this one's."""
        for own in self._of_this_turn - self._of_all_turns:
            self.store.set(self.towers.terms.changed, own, GONE)
        self._of_this_turn = set()

    def items(
        self,
        entries: Sequence[Value] | None,
        place: Place,
        kind: str = "list",
        entry: Value | None = None,
    ) -> Items:
        made = super().items(entries, place, kind, entry)
        made.turn = self.towers.turns
        return made

    def table(self, entries: Mapping[Any, Value], place: Place) -> Table:
        made = super().table(entries, place)
        made.turn = self.towers.turns
        return made

    def change(self, made: Made, key: tuple[object, ...], value: Value) -> None:
        """A list of all towers whose length is not known is a longer one for each."""
        grows = key == HELD and isinstance(value, Many) or key == REST
        if grows and isinstance(made, Items | Table) and self._is_of_others(made):
            terms = self.towers.terms
            grown = terms.of("grown", (terms.key(made), value))
            super().change(made, key, value)
            self.store.set(made.cells, GROWN, grown)
        else:
            super().change(made, key, value)

    def entry_at(self, owner: Value, key: Value, node: ast.Subscript, scope: Scope) -> Value:
        self._decides(key)
        holder = self.towers.dictionaries.get(self.towers.terms.key(owner))
        if holder is not None and isinstance(key, Const) and isinstance(key.value, str):
            written = ast.copy_location(ast.Attribute(node.value, key.value, ast.Load()), node)
            return self.attribute(holder, written, scope)
        if isinstance(owner, Term):
            parts = [
                self.entry_at(e, key, node, scope)
                for e in owner.may_be
                if isinstance(e, Items | Table)
            ]
            if owner.whole and all(isinstance(each, Const) or each == TENSOR for each in parts):
                return self._one_of_each("entry", (owner,), parts)  # whichever it is, at any place
            if parts:
                return self._one_of_each("entry", (owner, key), parts)
        found = super().entry_at(owner, key, node, scope)
        if not isinstance(owner, Items | Table):
            return found
        if isinstance(node.slice, ast.Slice) and not isinstance(key, Const):
            if isinstance(owner, Items):
                place = self.place(node, scope.path)
                entry = self._one_of_each("entry", (owner, key), [self.entry(owner, node, scope)])
                return self.items(None, place, owner.kind, entry)
        if not isinstance(key, Const) and not isinstance(found, Made | Tensor | Const):
            return self._one_of_each("entry", (owner, key), [found])
        if isinstance(found, Unknown) and found.reason in _MADE_HERE:
            return self.towers.terms.of("entry", (owner, key), found.may_be)
        return found

    def _without_class(self, owner: Value, method: str) -> Sequence[Instance]:
        """Objects of the classes at hand that have a method, with attributes that nothing is known of."""
        found: list[Instance] = []
        key = self.towers.terms.key(owner)
        for kind in self._classes():
            if named(method) not in kind.cells:
                continue
            if (key, kind.place) not in self._objects:
                made = Instance(kind.place, kind=kind)
                self._objects[(key, kind.place)] = made
                self.towers.terms.stands_for[id(made)] = key
            found.append(self._objects[(key, kind.place)])
        return found

    def _classes(self) -> list[Class]:
        """The classes of the file that is read and of those that it imports."""
        path = self.path
        values = [read(each) for each in self.module(path).cells.values()]
        paths = {each.path for each in values if isinstance(each, Module)} | {path}
        paths |= {each.place.path for each in values if isinstance(each, Class | Function)}
        every = [
            read(each)
            for other in sorted(paths)
            for each in list(self.module(other).cells.values())
        ]
        return list(dict.fromkeys(each for each in every if isinstance(each, Class)))

    # ---- what goes by a flag -----------------------------------------------------------------------

    def _statement(self, node: ast.stmt, scope: Scope) -> bool:
        if self._flagged is None:
            return super()._statement(node, scope)
        self._statements.append(node)
        try:
            return super()._statement(node, scope)
        finally:
            self._statements.pop()

    def _decides(self, *values: Value) -> None:
        """Note where something goes by a flag, unless it is all about reuse."""
        if self._statements and not _only_reuses(self._statements[-1]):
            path = self.path
            node = self._statements[-1]
            self.towers.decides(node, self.place(node, path), *values)

    def _stored(self, owner: Value, *values: Value) -> None:
        """Note where what goes by a flag is kept in what was there before the tower."""
        if not isinstance(owner, Made) or id(owner) in self._old:
            self._decides(*values)

    def method(self, target: Method, call: Call) -> Value | None:
        self._stored(target.owner, *call.args, *call.keywords.values())
        return super().method(target, call)


def _only_reuses(node: ast.stmt) -> bool:
    """`if …: scope.reuse_variables()`."""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and all(
            isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Call)
            and isinstance(each.value.func, ast.Attribute)
            and each.value.func.attr == "reuse_variables"
            for each in node.body
        )
    )
