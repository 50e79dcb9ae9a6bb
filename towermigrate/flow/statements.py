"""What statements do: bindings, branches, loops, and the ways out of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from towermigrate.flow.expressions import Expressions
from towermigrate.flow.frames import Frame, Loop
from towermigrate.flow.scopes import Scope, bound_in, named
from towermigrate.flow.store import GONE, Changes
from towermigrate.flow.values import (
    HELD,
    NONE,
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
    Module,
    Package,
    Perhaps,
    Place,
    Row,
    Table,
    Unknown,
    Value,
    read,
)
from towermigrate.tree import module_file

_PASSES = 4
"""How often the body of a loop over unknown values is read before what still changes is unknown."""


@dataclass
class _Ways:
    """The ways that left a block early by one kind of statement, from the first of them that is of interest on."""

    mark: int
    taken: list[Any]
    first: int
    new: list[Any] = field(default_factory=list)

    @property
    def changes(self) -> list[Changes]:
        found = self.taken[self.first :]
        return [each[0] if isinstance(each, tuple) else each for each in found]

    def replace(self, number: int, changes: Changes | None) -> None:
        """What a way changed, with what it still did before it left; None where it did not leave after all."""
        if changes is not None:
            old = self.taken[self.first + number]
            self.new.append((changes, old[1]) if isinstance(old, tuple) else changes)

    def finish(self) -> None:
        self.taken[self.first : self.first + len(self.changes)] = self.new


@dataclass
class _Left:
    """How many ways had left before a block, of a function and of its innermost loop."""

    returns: int
    breaks: int
    continues: int

    @classmethod
    def of(cls, frame: Frame) -> _Left:
        loop = frame.loops[-1] if frame.loops else None
        return cls(
            len(frame.returns), len(loop.breaks) if loop else 0, len(loop.continues) if loop else 0
        )

    def since(self, frame: Frame) -> list[_Ways]:
        found = [_Ways(frame.mark, frame.returns, self.returns)]
        if frame.loops:
            loop = frame.loops[-1]
            found.append(_Ways(loop.mark, loop.breaks, self.breaks))
            found.append(_Ways(loop.mark, loop.continues, self.continues))
        return found


class Statements(Expressions):
    """Executes statements. Part of the interpreter."""

    def execute(self, body: Iterable[ast.stmt], scope: Scope) -> bool:
        """Run statements; False where control does not come out at their end."""
        for statement in body:
            self.steps += 1
            if not self._statement(statement, scope):
                return False
        return True

    def _statement(self, node: ast.stmt, scope: Scope) -> bool:
        match node:
            case ast.Expr():
                self.evaluate(node.value, scope)
            case ast.Assign():
                value = self.evaluate(node.value, scope)
                for target in node.targets:
                    self.bind(target, value, scope)
            case ast.AnnAssign(value=ast.expr() as assigned):
                self.bind(node.target, self.evaluate(assigned, scope), scope)
            case ast.AugAssign():
                self._augment(node, scope)
            case ast.Return():
                value = self.evaluate(node.value, scope) if node.value else NONE
                frame = self.frames[-1]
                frame.left_early = frame.left_early or frame.branching > 0
                frame.returns.append((self.store.changes(frame.mark), value))
                return False
            case ast.Raise():
                for each in (node.exc, node.cause):
                    if each is not None:
                        self.evaluate(each, scope)
                return False
            case ast.Break() | ast.Continue():
                frame = self.frames[-1]
                frame.left_early = frame.left_early or frame.branching > 0
                loops = frame.loops
                if loops:
                    ways = loops[-1].breaks if isinstance(node, ast.Break) else loops[-1].continues
                    ways.append(self.store.changes(loops[-1].mark))
                return False
            case ast.If():
                return self._if(node, scope)
            case ast.For() | ast.AsyncFor():
                return self._for(node, scope)
            case ast.While():
                return self._while(node, scope)
            case ast.With() | ast.AsyncWith():
                return self._with(node, node.items, scope)
            case ast.Try():
                return self._try(node, scope)
            case ast.Match():
                self.evaluate(node.subject, scope)
                return self.ways([self._case(case, scope) for case in node.cases] + [lambda: True])
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope)
            case ast.ClassDef():
                self._class(node, scope)
            case ast.Import() | ast.ImportFrom():
                self._import(node, scope)
            case ast.Assert():
                return self.truth(self.evaluate(node.test, scope)) is not False
            case ast.Delete():
                for target in node.targets:
                    self._delete(target, scope)
            case ast.Global():
                scope.elsewhere.update((name, scope.module) for name in node.names)
            case ast.Nonlocal():
                self._nonlocal(node, scope)
            case ast.Pass() | ast.AnnAssign():
                pass
            case _:  # of a later Python: nothing that it may have changed is known any more
                self.lose(
                    scope,
                    Unknown("a statement that is not understood", self.place(node, scope.path)),
                )
        return True

    # ---- ways ------------------------------------------------------------------------------------

    def _if(self, node: ast.If, scope: Scope) -> bool:
        known = self.truth(self.evaluate(node.test, scope))
        if known is not None:
            return self.execute(node.body if known else node.orelse, scope)
        return self.ways(
            [lambda: self.execute(node.body, scope), lambda: self.execute(node.orelse, scope)]
        )

    def _case(self, case: ast.match_case, scope: Scope) -> Callable[[], bool]:
        def run() -> bool:
            for name in bound_in([case.pattern]):
                self.assign(name, Unknown("matched", self.place(case.pattern, scope.path)), scope)
            if case.guard is not None:
                self.evaluate(case.guard, scope)
            return self.execute(case.body, scope)

        return run

    def _try(self, node: ast.Try, scope: Scope) -> bool:
        mark = self.store.mark()
        frame = self.frames[-1]
        left = _Left.of(frame)
        with self.store.watched(self.join) as anywhere:
            goes = self.execute(node.body, scope)
        # An exception may come from any statement of the body, and from any that those call.
        goes = goes and self.execute(node.orelse, scope)
        out = [self.store.changes(mark)] if goes else []
        frame.branching += 1
        with self.store.watched(self.join) as in_handlers:
            for handler in node.handlers:
                self.store.undo(mark)
                self.store.merge([{}, anywhere], self.join)
                if handler.type is not None:
                    self.evaluate(handler.type, scope)
                if handler.name is not None:
                    caught = Unknown("an exception", self.place(handler, scope.path))
                    self.assign(handler.name, caught, scope)
                if self.execute(handler.body, scope):
                    out.append(self.store.changes(mark))
        frame.branching -= 1
        if not node.finalbody:
            self.store.undo(mark)
            self.store.merge(out, self.join)
            return bool(out)
        # The last statements run on every way out, also on those of an exception that nobody catches.
        for ways in left.since(frame):
            for number, changes in enumerate(ways.changes):
                self.store.undo(mark)
                self.store.merge([changes], self.join)
                goes = self.execute(node.finalbody, scope)
                ways.replace(number, self.store.changes(ways.mark) if goes else None)
            ways.finish()
        self.store.undo(mark)
        self.store.merge([{}, anywhere, in_handlers], self.join)
        self.execute(node.finalbody, scope)
        self.store.undo(mark)
        self.store.merge(out, self.join)
        return bool(out) and self.execute(node.finalbody, scope)

    def _with(
        self,
        node: ast.With | ast.AsyncWith,
        items: Sequence[ast.withitem],
        scope: Scope,
    ) -> bool:
        if not items:
            return self.execute(node.body, scope)
        item = items[0]
        value = self.evaluate(item.context_expr, scope)
        given = self.domain.entering(value, item, scope)
        if given is None:
            given = self.entered_context(value, item, scope)
        if item.optional_vars is not None:
            self.bind(item.optional_vars, given, scope)
        goes = self._with(node, items[1:], scope)
        self.domain.leaving(value, item, scope)
        return goes

    # ---- loops -----------------------------------------------------------------------------------

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> bool:
        over = self.evaluate(node.iter, scope)
        turns = self.turns(over)
        if turns is None:
            entry = self.entry(over, node.iter, scope)

            def one() -> bool:
                self.bind(node.target, entry, scope)
                return self.execute(node.body, scope)

            return self._any_number(one, node.orelse, scope)

        def each() -> Iterator[bool]:
            for value in turns:
                self.bind(node.target, value, scope)
                yield self.execute(node.body, scope)

        return self._one_by_one(each(), node.orelse, scope)

    def _while(self, node: ast.While, scope: Scope) -> bool:
        def each() -> Iterator[bool]:
            for _ in range(self.limits.turns):
                known = self.truth(self.evaluate(node.test, scope))
                if known is None:
                    break
                if not known:
                    return
                yield self.execute(node.body, scope)
            unfinished.append(True)

        unfinished: list[bool] = []
        if not self._one_by_one(each(), [], scope, lambda: not unfinished):
            return False
        if not unfinished:
            return self.execute(node.orelse, scope)

        def one() -> bool:
            goes = self.execute(node.body, scope)
            if goes:
                self.evaluate(node.test, scope)
            return goes

        return self._any_number(one, node.orelse, scope)

    def _one_by_one(
        self,
        turns: Iterator[bool],
        orelse: list[ast.stmt],
        scope: Scope,
        whole: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Run a loop whose turns are known; `breaks` of any of them meet behind it."""
        mark = self.store.mark()
        left: list[Changes] = []
        loops = self.frames[-1].loops
        goes = True
        while True:
            loops.append(Loop(mark))
            try:
                goes = next(turns)
            except StopIteration:
                left += loops[-1].breaks
                break
            finally:
                ended = loops.pop()
            left += ended.breaks
            out = ended.continues + ([self.store.changes(mark)] if goes else [])
            if not out:
                goes = False
                break
            if len(out) > 1 or not goes:
                self.store.undo(mark)
                self.store.merge(out, self.join)
            goes = True
        if goes and whole():
            goes = self.execute(orelse, scope)
        if not left:
            return goes
        if goes:
            left.append(self.store.changes(mark))
        self.store.undo(mark)
        self.store.merge(left, self.join)
        return True

    def _any_number(self, turn: Callable[[], bool], orelse: list[ast.stmt], scope: Scope) -> bool:
        """Run a loop of any number of turns, none too: until a turn changes nothing of what is known."""
        mark = self.store.mark()
        left: list[Changes] = []
        before: Changes = {}
        self.generic += 1
        loops = self.frames[-1].loops
        try:
            for number in range(_PASSES):
                loops.append(Loop(mark))
                try:
                    goes = turn()
                finally:
                    ended = loops.pop()
                left += ended.breaks
                out = ended.continues + ([self.store.changes(mark)] if goes else [])
                self.store.undo(mark)
                self.store.merge([{}, before, *out] if before else [{}, *out], self.join)
                now = self.store.changes(mark)
                moved = [place for place in now if not self._stays(place, before, now)]
                if not moved:
                    break
                if number >= _PASSES - 2:
                    self._widen(moved, now)
                    now = self.store.changes(mark)
                before = now
        finally:
            self.generic -= 1
        goes = self.execute(orelse, scope)
        if not left:
            return goes
        out = [*left, self.store.changes(mark)] if goes else left
        self.store.undo(mark)
        self.store.merge(out, self.join)
        return True

    def _stays(self, place: tuple[int, tuple[object, ...]], before: Changes, now: Changes) -> bool:
        if place not in before:
            return False
        first, second = before[place][1], now[place][1]
        return first is second or self.alike(first, second)

    def _widen(self, moved: Iterable[tuple[int, tuple[object, ...]]], now: Changes) -> None:
        """What turn after turn still changes is not known."""
        for place in moved:
            cells, value = now[place]
            may_be = (read(value),) if not isinstance(read(value), Const) else ()
            why = Unknown("a loop changes it", None, may_be)
            held = value.value if isinstance(value, Perhaps) else value
            if isinstance(held, Row | Many):
                parts = [held.entry] if isinstance(held, Many) else held.entries
                inside = tuple(each for each in parts if each is not None)
                self.store.set(cells, place[1], Many(Unknown("a loop changes it", None, inside)))
            else:
                self.store.set(cells, place[1], Perhaps(why) if isinstance(value, Perhaps) else why)

    # ---- bindings --------------------------------------------------------------------------------

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
            else Unknown("the order of its keys", place)
        )
        self.change(owner, ORDER, new)

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
        elif isinstance(old, Unknown) or (isinstance(old, Made) and not isinstance(old, Items)):
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

    # ---- definitions -----------------------------------------------------------------------------

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        function = self.function(node, scope)
        self.defined.append(function)
        made: Value = function
        for decorator in reversed(node.decorator_list):
            made = self._decorated(decorator, made, scope)
        self.assign(node.name, made, scope)
        self.named(node.name, made, function.place)

    def _decorated(self, decorator: ast.expr, made: Value, scope: Scope) -> Value:
        value = self.evaluate(decorator, scope)
        if isinstance(made, Function) and isinstance(value, External):
            form = _FORMS.get(value.name)
            if form is not None:
                made.form = form  # type: ignore[assignment]
                return made
            if value.name in _PLAIN:
                return made
        place = self.place(decorator, scope.path)
        if isinstance(value, Function):
            return self.call_with(value, [made], decorator, scope)
        found = self.domain.decorated(value, decorator, made)
        return Unknown("it is decorated", place, (made,)) if found is None else found

    def function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        scope: Scope,
    ) -> Function:
        spec = node.args
        names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
        defaults = {
            name: self.evaluate(default, scope)
            for name, default in zip(reversed(names), reversed(spec.defaults), strict=False)
        }
        for each, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if default is not None:
                defaults[each.arg] = self.evaluate(default, scope)
        scope.capture()
        return Function(
            self.place(node, scope.path), node=node, scope=_around(scope), defaults=defaults
        )

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        bases = tuple(self.evaluate(base, scope) for base in node.bases)
        inside = Scope(scope.path, parent=scope, in_class=True)
        first = len(self.defined)
        self.execute(node.body, inside)
        kind = Class(self.place(node, scope.path), cells=inside.cells, node=node, bases=bases)
        for function in self.defined[first:]:
            if function.scope is _around(inside) and function in inside.cells.values():
                function.owner = kind
        made: Value = kind
        for decorator in reversed(node.decorator_list):
            value = self.evaluate(decorator, scope)
            found = self.domain.decorated(value, decorator, made)
            made = Unknown("it is decorated", kind.place, (made,)) if found is None else found
        self.assign(node.name, made, scope)
        self.named(node.name, made, kind.place)

    # ---- imports ---------------------------------------------------------------------------------

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                whole = self.imported(scope.path, 0, alias.name)
                if alias.asname is None and "." in alias.name:
                    whole = self.imported(scope.path, 0, alias.name.split(".")[0])
                self.assign(alias.asname or alias.name.split(".")[0], whole, scope)
                continue
            module = self.imported(scope.path, node.level, node.module or "")
            if alias.name == "*":
                self._import_all(module, node, scope)
                continue
            self.assign(
                alias.asname or alias.name, self._member(module, node, alias.name, scope), scope
            )

    def _member(self, module: Value, node: ast.ImportFrom, name: str, scope: Scope) -> Value:
        if isinstance(module, Module):
            found = self.module(module.path).lookup(name)
            if found is not None:
                return read(found)
        dotted = ".".join(part for part in (node.module, name) if part)
        inner = self.imported(scope.path, node.level, dotted)
        if isinstance(module, Module) and isinstance(inner, External):
            return Unknown(f"{name} is not found in {module.path}", self.place(node, scope.path))
        return inner

    def _import_all(self, module: Value, node: ast.ImportFrom, scope: Scope) -> None:
        if not isinstance(module, Module):
            self.stars.setdefault(id(scope.module), []).append(module)
            return
        held = self.module(module.path).cells
        listed = held.get(named("__all__"))
        names = self.turns(read(listed)) if listed is not None else None
        allowed = (
            None if names is None else {each.value for each in names if isinstance(each, Const)}
        )
        for key, value in list(held.items()):
            name = key[1]
            if isinstance(name, str) and (
                name in allowed if allowed is not None else name[:1] != "_"
            ):
                self.store.set(scope.cells, key, value)
        self.stars.setdefault(id(scope.module), []).extend(
            self.stars.get(id(self.module(module.path)), ())
        )

    def imported(self, path: str, level: int, dotted: str) -> Value:
        """The module of an import: a file of the tree, or a library."""
        found = module_file(self.sources, path, level, dotted)
        if found is not None and found != path:
            return Module(found)
        folder = dotted.replace(".", "/") + "/"
        if dotted and not level and any(each.startswith(folder) for each in self.sources):
            return Package(dotted, path)
        return External(self.domain.spelled(dotted))


_FORMS = {
    "builtins.staticmethod": "static",
    "builtins.classmethod": "class",
    "builtins.property": "property",
    "functools.cached_property": "property",
    "contextlib.contextmanager": "context",
}
_PLAIN = {"functools.lru_cache", "functools.cache", "abc.abstractmethod", "typing.overload"}


def _around(scope: Scope) -> Scope:
    """The scope that a function's names are looked for in: methods do not see the names of a class's body."""
    while scope.in_class and scope.parent is not None:
        scope = scope.parent
    return scope
