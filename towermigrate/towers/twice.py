"""A tower loop's body, run for the first tower and for others: what differs between them goes by the tower.

The program is run up to its tower loop, of whose function nothing calls it here, so that nothing is known of its
arguments. The index of the first tower is 0, that of another is a number of which no more is known than that it is
1 or more. What the first one leaves behind the other finds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from towermigrate.flow import Call, Limits
from towermigrate.flow.frames import Loop
from towermigrate.flow.interpreter import NEVER
from towermigrate.flow.store import GONE, Changes
from towermigrate.flow.values import (
    Class,
    Const,
    External,
    Function,
    Instance,
    Items,
    Made,
    Place,
    Scope,
    Unknown,
    Value,
    reachable,
    same,
)
from towermigrate.towers.domain import FLAG, Event, Towers
from towermigrate.towers.reading import Reading
from towermigrate.towers.values import TENSOR, Tensor, Term

_LIMITS = Limits(
    steps=700_000, cells=6_000_000, calls=12_000, depth=50, recursion=1, turns=8, entries=1_000
)

_LATER = 2
"""How many towers are run behind the second one, where each leaves something else to the next."""

Loops = ast.For | ast.While | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.Call


@dataclass(frozen=True)
class TowerLoop:
    """Where a tower loop stands: a `for`, a `while`, a comprehension or a call of `map`.

    `counters` are the names that tell one turn of a `while` from the next.
    """

    path: str
    line: int
    column: int
    counters: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Turns:
    """What the towers do, in order: the events of the first one, and of any other.

    `flags` are the names that are True for all towers but the first, with what they are for that as a text, and `decides` is what goes by one, or by what says `reuse=` by the index, and is no reuse. `whole` is False where the
    program cannot be followed in all its parts: it is too large, or makes code while it runs.
    """

    first: Sequence[Event] = ()
    other: Sequence[Event] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    decides: Sequence[Event] = ()
    whole: bool = False


class _Reached(Exception):
    """The towers were run: what stands behind them is not."""


TurnsKnown = dict[tuple[TowerLoop, frozenset[str]], list[tuple[Mapping[str, str], Turns]]]
"""What loops are known to do, by the paths of their tree: the texts of the files that were read, and what was found."""


def turns(
    sources: Mapping[str, str],
    loop: TowerLoop,
    known: TurnsKnown | None = None,
    parse: Callable[[str, str], ast.Module] | None = None,
) -> Turns:
    """What the towers of a loop do.

    Args:
        sources: texts of the tree by path.
        loop: the tower loop.
        known: what was found before, to be looked at and to be added to.
        parse: gives the syntax tree of a path and its text, of which nothing may be changed.
    """
    of_tree = None if known is None else known.setdefault((loop, frozenset(sources)), [])
    for texts, found in of_tree or ():
        if all(sources[path] == text for path, text in texts.items()):
            return found
    run = _Run(sources, loop, parse)
    found, ended = _turns(run)
    if of_tree is not None and ended:
        of_tree.append(({path: sources[path] for path in run.read}, found))
    return found


def _turns(run: _Run) -> tuple[Turns, bool]:
    """What the towers do, and whether nothing but the texts that were read says so."""
    if not run.around:
        return Turns(), True
    whole, ended = False, True
    try:
        run.start()
    except _Reached:
        whole = not run.exhausted and not run.towers.lost
    except RecursionError:  # it goes by how deep the call is from where this is asked
        ended = False
    nothing: list[Event] = []
    first, other, flagged, *_ = *run.events, nothing, nothing, nothing
    decides = [each for each in flagged if each.what == "decides"]
    return Turns(first, other, run.flags, decides, whole), ended


class _Run(Reading):
    """Runs a program up to its tower loop, then the towers."""

    def __init__(
        self,
        sources: Mapping[str, str],
        loop: TowerLoop,
        parse: Callable[[str, str], ast.Module] | None = None,
    ) -> None:
        super().__init__(sources, Towers(), _LIMITS)
        self.loop = loop
        self._parse = parse
        self.read: set[str] = set()
        """The files that were asked for."""
        self.around = _around(self.tree(loop.path), loop)
        self.node = self.around[-1] if self.around else None
        self._functions = [each for each in self.around if isinstance(each, _FUNCTIONS)]
        self._enters: ast.AST | None = None
        self._nothing = Unknown(NEVER)
        self.events: list[list[Event]] = []
        self.flags: dict[str, str] = {}

    # ---- the way to the loop ---------------------------------------------------------------------

    def start(self) -> None:
        """Raises `_Reached`."""
        scope = self.module(self.loop.path)
        for node in self._functions:
            for function in [each for each in self.defined if each.node is node][-1:]:
                if function.owner is not None:
                    function = self.bound_to(function, self._object(function.owner))
                self._enters = node
                self.call_unknown(function)
                self._enters = None
        # It is reached on no way that could be followed.
        inside = Scope(self.loop.path, parent=scope)
        with self._frame(None):
            self._towers(inside)

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
        if node in self._functions and node is not self._enters:
            # It is entered once, with arguments of which nothing is known: others may call it, too.
            return Unknown("it builds the towers", place)
        if known and not _takes(function, node.args, len(args), keywords):
            return self._nothing  # an error: nothing behind it is reached
        found = super()._entered(function, node, args, keywords, place, known, stars)
        returns = not isinstance(found, Unknown) or found.reason != NEVER
        return found if returns else self._nothing

    def _object(self, kind: Class) -> Value:
        node = ast.copy_location(ast.Call(ast.Name(kind.node.name), [], []), kind.node)
        scope = self.module(kind.place.path)
        return self.invoke(kind, Call(self, node, scope, "", [], {}, known=False))

    def tree(self, path: str) -> ast.Module:
        self.read.add(path)
        try:
            # What says `reuse=` by the index becomes a flag in the loop's own file.
            if self._parse is not None and path != self.loop.path:
                return self._parse(path, self.sources[path])
            return super().tree(path)
        except (SyntaxError, ValueError):
            return ast.Module([], [])

    def module(self, path: str, main: bool | None = None) -> Scope:
        if main is None:
            main = False  # its functions are what is asked for
        return super().module(path, main)

    # ---- the towers ------------------------------------------------------------------------------

    def _towers(self, scope: Scope) -> None:
        """Run the first tower, another one, and one with flags for what says that it reuses variables."""
        names = _set_to_constants(self.node.body) if isinstance(self.node, ast.For) else ()
        starts = {name: _truth(scope.lookup(name)) for name in names}
        flags = [name for name, start in starts.items() if start is not None]
        before = self.store.mark()
        self._run(lambda: self._tower(False, scope))
        numbers = {place for place, (_, value) in self._moved(before).items() if _is_number(value)}
        self._count(before, numbers)
        flags = [name for name in flags if _truth(scope.lookup(name)) == "True"]
        old = {id(each.cells) for each in self._held(scope)} | {id(scope.cells)}
        found = self.store.mark()
        self._run(lambda: self._tower(True, scope))
        flags = [name for name in flags if _truth(scope.lookup(name)) == "True"]
        for _ in range(_LATER):
            # What one of the others leaves as it did not find it, those behind it find otherwise.
            moved = {
                place
                for place, (before_it, value) in self._moved(found).items()
                if place not in numbers
                and isinstance(value, Const | Term)
                and (isinstance(before_it, Const) or before_it is GONE and place[0] in old)
            }
            if not moved:
                break
            numbers |= moved
            self._count(found, moved)
            found = self.store.mark()
            self._run(lambda: self._tower(True, scope))
            self.events[1] += self.events.pop()
        self.flags = {name: start for name, start in starts.items() if start and name in flags}
        by_index = self._by_index(scope)
        differing = [name for name in flags if starts[name] != "True"]
        if differing or by_index:
            for keyword in by_index:
                keyword.value = ast.copy_location(ast.Constant(FLAG), keyword.value)  # type: ignore[arg-type]
            self._flagged, self.towers.flagged = scope, True
            self._old = self._within_reach(scope)
            for name in differing:
                self.assign(name, self.towers.terms.flag, scope)
            self._run(lambda: self._tower(True, scope))
        raise _Reached

    def _run(self, turn: Callable[[], bool]) -> None:
        """Run one tower, and keep what it does."""
        start = len(self.towers.events)
        asked = self.towers.asked
        self.towers.turn()
        self.forget_changes()
        self._turn(turn)
        self.towers.asked = asked
        self.events.append(self.towers.events[start:])

    def _by_index(self, scope: Scope) -> list[ast.keyword]:
        """Where the tower's index says to one of the program's functions, as an argument `reuse=`, what is reused."""
        if not isinstance(self.node, ast.For):
            return []
        index = {each.id for each in ast.walk(self.node.target) if isinstance(each, ast.Name)}
        found: list[ast.keyword] = []
        for call in (each for part in self.node.body for each in ast.walk(part)):
            if isinstance(call, ast.Call) and not self._is_library(call.func, scope):
                found += [
                    each
                    for each in call.keywords
                    if each.arg == "reuse"
                    and not isinstance(each.value, ast.Call)
                    and index & {e.id for e in ast.walk(each.value) if isinstance(e, ast.Name)}
                ]
        return found

    def _is_library(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a callee is TensorFlow's."""
        if any(not isinstance(e, ast.Attribute | ast.Name | ast.Load) for e in ast.walk(node)):
            return False
        value = self.evaluate(node, scope)
        return isinstance(value, External) and value.name.startswith("tf.")

    def _moved(self, mark: int) -> dict[tuple[int, object], tuple[Value, Value]]:
        """What is held otherwise now than at a mark: what was held then, and what is."""
        now = self.store.changes(mark)
        self.store.undo(mark)
        before = {place: cells.get(place[1], GONE) for place, (cells, _) in now.items()}
        self.store.merge([now], self.join)
        return {
            place: (before[place], value)
            for place, (_, value) in now.items()
            if not same(before[place], value)
        }

    def _count(self, mark: int, places: Collection[tuple[int, object]]) -> None:
        """What one tower leaves changed is another for each tower that follows."""
        terms = self.towers.terms
        for (cell, key), (cells, _) in self.store.changes(mark).items():
            if (cell, key) in places:
                self.store.set(cells, key, terms.of("counted", (repr(key), terms.tower)))

    def _turn(self, run: Callable[[], bool]) -> None:
        mark = self.store.mark()
        loops = self.frames[-1].loops
        loops.append(Loop(mark))
        goes = run()
        ended = loops.pop()
        out: list[Changes] = [*ended.continues, *ended.breaks]
        if goes or not out:
            out.append(self.store.changes(mark))
        if len(out) == 1:
            self.store.settle(mark, out[0], self.join)
        else:
            self.store.undo(mark)
            self.store.merge(out, self.join)

    def _tower(self, other: bool, scope: Scope) -> bool:
        terms = self.towers.terms
        self.towers.index = terms.tower if other else terms.first
        match self.node:
            case ast.For():
                self.bind(self.node.target, self._given(self.node.iter, other, scope), scope)
                return self.execute(self.node.body, scope)
            case ast.While():
                for name in self.loop.counters:
                    value = scope.lookup(name)
                    if other and isinstance(value, Const) and type(value.value) is int:
                        self.assign(name, terms.tower, scope)
                    elif value == Const(0):
                        self.assign(name, terms.first, scope)
                self.evaluate(self.node.test, scope)
                return self.execute(self.node.body, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                inside = Scope(scope.path, parent=scope, comprehension=True)
                one = self.node.generators[0]
                self.bind(one.target, self._given(one.iter, other, scope), inside)
                self.evaluate(self.node.elt, inside)
            case ast.Call(args=[called, over, *_]):
                given = self._given(over, other, scope)
                self.call_with(self.evaluate(called, scope), [given], self.node, scope)
        return True

    def _given(self, node: ast.expr, other: bool, scope: Scope) -> Value:
        """What a tower is given of what the loop goes over."""
        terms = self.towers.terms
        index = terms.tower if other else terms.first
        called = self.evaluate(node.func, scope) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(called, External) and not node.keywords:
            place = self.place(node, scope.path)
            match called.name, node.args:
                case (("builtins.range" | "builtins.xrange"), [_]):
                    return index
                case (("builtins.range" | "builtins.xrange"), [start, *_]):
                    first = self.evaluate(start, scope)
                    return index if first == Const(0) else terms.of("number", (first, index))
                case "builtins.enumerate", [over]:
                    return self.items((index, self._given(over, other, scope)), place, "tuple")
                case "builtins.zip", over_each:
                    row = [self._given(each, other, scope) for each in over_each]
                    return self.items(row, place, "tuple")
        gone_over = self.evaluate(node, scope)
        entries = gone_over.entries if isinstance(gone_over, Items) else None
        if isinstance(gone_over, Tensor) or entries and all(isinstance(e, Tensor) for e in entries):
            return TENSOR
        if entries and all(e == Const(number) for number, e in enumerate(entries)):
            return index
        may_be = tuple(each for each in entries or () if isinstance(each, Made))
        return terms.of("entry", (gone_over, index), may_be)

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> bool:
        if node is self.node:
            self._towers(scope)
        return super()._for(node, scope)

    def _while(self, node: ast.While, scope: Scope) -> bool:
        if node is self.node:
            self._towers(scope)
        return super()._while(node, scope)

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        if node is self.node:
            self._towers(scope)
        return super()._call(node, scope)

    def _comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, scope: Scope
    ) -> Value:
        if node is self.node:
            self._towers(scope)
        return super()._comprehension(node, scope)

    def assign(self, name: str, value: Value, scope: Scope) -> None:
        if scope is self._flagged:
            if name in self.flags and self.flags[name] != "True":
                value = self.towers.terms.flag
            elif not isinstance(value, Instance):
                self._decides(value)
        super().assign(name, value, scope)

    def _within_reach(self, scope: Scope) -> set[int]:
        """The objects and containers that statements of a scope can get at."""
        return {id(each) for each in self._held(scope)}

    def _held(self, scope: Scope) -> Iterator[Made]:
        scopes: list[Scope | None] = [scope, *self._modules.values()]
        seen: set[int] = set()
        while scopes:
            each = scopes.pop()
            if each is None or id(each) in seen:
                continue
            seen.add(id(each))
            scopes += [each.parent, *each.elsewhere.values()]
            for made in reachable(each.cells.values()):
                yield made
                scopes += [made.scope] if isinstance(made, Function) else []


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_AROUND = (*_FUNCTIONS, ast.ClassDef)


def _is_number(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) is int


def _takes(
    function: Function, spec: ast.arguments, count: int, keywords: Mapping[str, Value]
) -> bool:
    """Whether a function can be called with so many arguments by position, and these by name."""
    positional = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    by_name = {each.arg for each in (*spec.args, *spec.kwonlyargs)}
    if count > len(positional) and spec.vararg is None:
        return False
    if spec.kwarg is None and not keywords.keys() <= by_name:
        return False
    if keywords.keys() & by_name & {*positional[:count]}:
        return False
    wanted = {*positional[count:], *(each.arg for each in spec.kwonlyargs)}
    return wanted <= {*keywords, *function.defaults}


def _truth(value: Value | None) -> str | None:
    """`True`, `False` or `None`, where a value is one of them."""
    if isinstance(value, Const) and any(value.value is each for each in (True, False, None)):
        return str(value.value)
    return None


def _set_to_constants(body: Sequence[ast.stmt]) -> list[str]:
    """The names that statements bind, each time by `name = constant`."""
    nodes = [each for part in body for each in ast.walk(part)]
    plain = {
        each.targets[0]
        for each in nodes
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.value, ast.Constant)
    }
    bound = [
        each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    others = {each.id for each in bound if each not in plain}
    return sorted({each.id for each in bound} - others)


def _around(tree: ast.Module, loop: TowerLoop) -> list[ast.AST]:
    """The functions and classes around a loop, then the loop; nothing where there is none."""
    found: list[list[ast.AST]] = []
    waiting: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, Loops) and node.lineno == loop.line:
            found.append([*around, node])
        inside = [*around, node] if isinstance(node, _AROUND) else around
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    exact = [each for each in found if getattr(each[-1], "col_offset", -1) == loop.column]
    statements = [each for each in exact or found if isinstance(each[-1], ast.For | ast.While)]
    return next(iter(statements or exact or found), [])


__all__ = ["TowerLoop", "Turns", "turns"]
