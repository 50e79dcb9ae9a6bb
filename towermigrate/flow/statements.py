"""What statements do: bindings, branches, loops, and the ways out of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from towermigrate.flow.definitions import Definitions
from towermigrate.flow.frames import Frame, Loop
from towermigrate.flow.scopes import bound_in
from towermigrate.flow.store import Changes
from towermigrate.flow.values import (
    NONE,
    Const,
    Many,
    Perhaps,
    Row,
    Scope,
    Unknown,
    read,
)

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


class Statements(Definitions):
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
        if goes:
            self.left_context(value, item, scope)
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
                if self.exhausted:
                    break
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
            if goes and not ended.continues:
                self.store.pass_over(mark)
                continue
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

    def any_number(self, turn: Callable[[], bool]) -> None:
        """Run something any number of times, until it changes nothing of what is known."""
        self._any_number(turn, [], Scope(""))

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
                    self.widen(moved, now)
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

    def widen(self, moved: Iterable[tuple[int, tuple[object, ...]]], now: Changes) -> None:
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
                self.store.set(
                    cells,
                    place[1],
                    replace(value, value=why) if isinstance(value, Perhaps) else why,
                )
