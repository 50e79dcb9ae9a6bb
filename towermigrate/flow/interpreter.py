"""One interpreter of Python source: it runs a tree's files on symbolic values, and its domain says what libraries mean.

Nothing of the program runs. Statements are read in order; where it is not known which way a program goes, all are read
and what is true of all stays known. Loops over what is known are run turn by turn, others on an entry that stands for
all, until what is known no longer changes. Calls of the tree's own functions are entered.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from towermigrate.flow.domain import Call, Domain
from towermigrate.flow.frames import Frame, Limits
from towermigrate.flow.scopes import body_of, bound_in, parameters, yields
from towermigrate.flow.statements import Statements
from towermigrate.flow.store import GONE, let_go
from towermigrate.flow.values import (
    NONE,
    Cells,
    Class,
    Const,
    Function,
    Instance,
    Key,
    Many,
    MayGive,
    Perhaps,
    Place,
    Row,
    Scope,
    Unknown,
    Value,
    named,
    same,
)

NEVER = "it returns on no way that was followed"


_ELSEWHERE = "a file that is run changes it"


@dataclass
class Load:
    """What it did to run a file: the files that were run meanwhile, and what cells held before and behind it."""

    files: list[str]
    changes: dict[tuple[int, Key], tuple[Cells, Value, Value]]


class Interpreter(Statements):
    """Reads the files of one tree.

    Args:
        sources: the texts of the tree that parse, by path relative to its root.
        domain: what libraries mean.
        limits: how much is read before nothing more is followed.

    Example:
        >>> interpreter = Interpreter({"a.py": "def f(n):\\n    return n + 1\\nx = f(2)\\n"}, Domain())
        >>> interpreter.module("a.py").lookup("x")
        Const(value=3)
    """

    def __init__(
        self, sources: Mapping[str, str], domain: Domain, limits: Limits | None = None
    ) -> None:
        super().__init__(sources, domain, limits)
        self._modules: dict[str, Scope] = {}
        self._loads: dict[str, Load] = {}
        self._running: list[str] = []
        self._ran: Cells = {}

    def module(self, path: str, main: bool | None = None) -> Scope:
        """The names of a file of the tree, which is run once.

        Args:
            main: whether it is the script that was started; None leaves that open.
        """
        known = self._modules.get(path)
        if known is not None:
            self._run_again(path)
            return known
        scope = Scope(path)
        self._modules[path] = scope
        before = self.store.mark()
        for around in self._running:
            self._loads[around].files.append(path)
        load = self._loads[path] = Load([], {})
        self._running.append(path)
        self.store.set(self._ran, named(path), Const(True))
        if main is not None:
            self.store.set(scope.cells, named("__name__"), Const("__main__" if main else path))
        try:
            with self._frame(None):
                self.execute(self.tree(path).body, scope)
        finally:
            self._running.pop()
        load.changes.update(self.store.turned(before))
        return scope

    def _run_again(self, path: str) -> None:
        """Do once more what running a file did, where it was run on another way than this one, or on one of several."""
        ran = self._ran.get(named(path))
        if ran == Const(True) or path in self._running:
            return
        load = self._loads[path]
        self.store.set(self._ran, named(path), Const(True))
        for each in load.files:
            self._run_again(each)
        for (_, key), (cells, old, new) in load.changes.items():
            now = cells.get(key, GONE)
            if same(now, new):
                continue
            is_its_own = old is GONE and isinstance(now, Perhaps) and same(now.value, new)
            is_as_then = ran is None and same(now, old) and not isinstance(now, Unknown)
            if not is_its_own and not is_as_then:
                new = self.store.joined(now, new, self.join)
                if not isinstance(new, Row | Many | Perhaps):
                    new = self.store.joined(new, Unknown(_ELSEWHERE), self.join)
            self.store.set(cells, key, new)

    def forget(self, path: str) -> None:
        """Run a file anew when it is asked for next."""
        self._modules.pop(path, None)

    # ---- calls -----------------------------------------------------------------------------------

    @contextmanager
    def _frame(self, node: ast.AST | None) -> Iterator[Frame]:
        frame = Frame(self.store.mark(), node)
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()

    def call(self, function: Function, call: Call) -> Value:
        """What a function of the tree returns for these values."""
        node = function.node
        first, fixed = function.given
        args = [*first, *call.args]
        keywords = {**dict(fixed), **call.keywords}
        if function.bound is not None and function.form != "static":
            args = [function.bound, *args]
        return self._entered(function, node, args, keywords, call.place, call.known, call.stars)

    def call_unknown(self, function: Function) -> Value:
        """Run a function that nothing calls; of its arguments nothing is known."""
        args = [] if function.bound is None or function.form == "static" else [function.bound]
        place = self.place(function.node, function.scope.path)
        return self._entered(function, function.node, args, {}, place, False)

    def _entered(
        self,
        function: Function,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        place: Place,
        known: bool,
        stars: Sequence[Value] = (),
    ) -> Value:
        active = [k for k, frame in enumerate(self.frames) if frame.node is node]
        why = ""
        if len(active) > self.limits.recursion:
            why = "it calls itself"
            self._recurs(active[0])
        elif self.exhausted or len(self.frames) > self.limits.depth:
            why = "calls nest too deeply, or the program is too large to be followed"
            self.lose(function.scope, Unknown(why, place))
        if why:
            lost = Unknown(why, place)
            self.escape([*args, *keywords.values()], lost)
            return lost
        self.calls += 1
        body = (
            [ast.copy_location(ast.Return(node.body), node.body)]
            if isinstance(node, ast.Lambda)
            else node.body
        )
        spec = node.args
        scope = Scope(function.scope.path, parent=function.scope, local=_locals(node))
        self._parameters(function, spec, scope, args, keywords, place, known, stars)
        with self._frame(node) as frame:
            frame.function = function
            frame.cells = scope.cells
            generator = yields(node)
            goes = self.execute(body, scope)
            found = [value for _, value in frame.returns]
            ways = [changes for changes, _ in frame.returns]
            if goes:
                ways.append(self.store.changes(frame.mark))
                found.append(NONE)
            ended = None if scope.captured else scope.cells  # its names end with the call
            if len(ways) == 1:
                self.store.settle(frame.mark, ways[0], self.join, ended)
            else:
                self.store.undo(frame.mark)
                ways = [
                    {place: held for place, held in way.items() if held[0] is not ended}
                    for way in ways
                ]
                self.store.merge(ways, self.join)
            if generator:
                if frame.many:
                    return self.items(None, place, "iterator", self.any_of(frame.yielded))
                return self.items(frame.yielded, place, "iterator")
            if found and not isinstance(node, ast.AsyncFunctionDef):
                return self.any_of(found)
        if isinstance(node, ast.AsyncFunctionDef):
            return Unknown("a coroutine", place)
        return Unknown(NEVER, place)

    def _recurs(self, first: int) -> None:
        """A function goes on calling itself: what its calls changed so far, those that are not followed change too."""
        own = {id(frame.cells) for frame in self.frames[first:]}
        changes = self.store.changes(self.frames[first].mark)
        self.widen([each for each in changes if each[0] not in own], changes)

    def _parameters(
        self,
        function: Function,
        spec: ast.arguments,
        scope: Scope,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        place: Place,
        known: bool,
        stars: Sequence[Value],
    ) -> None:
        positional = [each.arg for each in (*spec.posonlyargs, *spec.args)]
        names = {*(each.arg for each in (*spec.args, *spec.kwonlyargs))}
        given = dict(zip(positional, args, strict=False))
        given.update((name, value) for name, value in keywords.items() if name in names)
        for name in [*positional, *(each.arg for each in spec.kwonlyargs)]:
            value = given.get(name)
            if value is None and stars:
                position = positional.index(name) - len(args) if name in positional else None
                default = function.defaults.get(name)
                value = self.domain.given(name, position, default, stars)
            if value is None and (
                known or name in function.defaults and function.bound is None and args
            ):
                value = function.defaults.get(name)
            if value is None:
                value = Unknown("an argument that is not known", place)
            self.store.set(scope.cells, named(name), value)
            self.named(name, value, place)
        loose = [each for each in stars if not isinstance(each, MayGive)]
        perhaps = {each.name: each.value for each in stars if isinstance(each, MayGive)}
        known = known or bool(perhaps) and not loose
        if spec.vararg is not None:
            one: Value | None = None
            if loose:
                one = self.domain.given(spec.vararg.arg, len(positional) - len(args), None, stars)
            rest = self.items(
                args[len(positional) :] if known else None,
                place,
                "tuple",
                one or Unknown("an argument", place),
            )
            self.store.set(scope.cells, named(spec.vararg.arg), rest)
        if spec.kwarg is not None:
            others = {name: value for name, value in keywords.items() if name not in names}
            table = self.table(others, place)
            for name in sorted(perhaps.keys() - others.keys() - names):
                self.store.set(table.cells, ("key", str, name), perhaps[name])
            if not known:
                let_go(self.store, table, Unknown("an argument", place))
            self.store.set(scope.cells, named(spec.kwarg.arg), table)

    def instance(self, kind: Class, call: Call) -> Value:
        """A new object of a class of the tree."""
        made = Instance(call.place, repeated=self.generic > 0, kind=kind)
        start = self.of_class(kind, "__init__")
        if isinstance(start, Function):
            self.call(self.bound_to(start, made), call)
        elif not kind.whole:
            # What a base of a library's does with its arguments, and to the object, is its own.
            if self.domain.changes(call, [made, *call.args, *call.keywords.values()]):
                self.escape(
                    [made, *call.args, *call.keywords.values()],
                    call.unknown("made by a library's class"),
                )
        return made


@lru_cache(4096)
def _locals(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    return bound_in(body_of(node)).union(parameters(node))


__all__ = ["Interpreter", "Limits"]
