"""Which files may hold a tower loop, told from their syntax trees: libcst reads only these.

What `loops` finds in a file that speaks of devices at all is found here too, and more: names are compared, nothing
is resolved. A tree of a thousand files has a few that are worth the time.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from towermigrate.symbols.bindings import chain_of
from towermigrate.symbols.scopes import FileNames, file_names, names_below
from towermigrate.tree import parse_python

_COMPUTES = frozenset({"compute_gradients", "gradients", "minimize"})
_WORDS = ("device", "gradients", "gpu", "tower", "clone", "replica")
"""A file that says none of these is not looked into: its loops may call a function that picks devices, but then
neither their first lines nor what becomes of their results speak of it."""
OVER_DEVICES = re.compile(r"gpu|tower|device|clone|replica", re.IGNORECASE)
"""What a loop over devices says in its first line."""
_NONE: frozenset[str] = frozenset()
_Loop = ast.For | ast.AsyncFor | ast.While
Node = TypeVar("Node", bound=ast.expr | ast.stmt)
_LINE_END = re.compile(r"\r\n|\r|\n")
DEPTH = 2
"""How many calls deep a function of the tree is followed."""


@dataclass(frozen=True)
class Hints:
    """What one file says of tower loops. Functions go by the last part of their names.

    `certain` where a loop of the file computes gradients itself; `loops_call` are the functions that its loops
    call with values, `loops_call_own` those of them that can only be the file's own, `device_loops_call` those
    that its loops over devices call; `defines` are its functions, `opens` what each of them calls with what it is given;
    `renamed` are the names that its imports give to functions.
    """

    certain: bool = False
    loops_call: frozenset[str] = frozenset()
    loops_call_own: frozenset[str] = frozenset()
    device_loops_call: frozenset[str] = frozenset()
    defines: frozenset[str] = frozenset()
    opens: Mapping[str, frozenset[str]] = field(default_factory=dict)
    renamed: frozenset[tuple[str, str]] = frozenset()


def hints(text: str, names: FileNames) -> Hints:
    """What the file with this text and these names says of tower loops."""
    renamed = frozenset(
        (alias.name.rpartition(".")[2], alias.asname)
        for _, node in names.imports
        for alias in node.names
        if alias.asname
    )
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef]
    functions = [*names.of(ast.FunctionDef), *names.of(ast.AsyncFunctionDef)]
    defines = frozenset(function.name for function in functions)
    lower = text.lower()
    if not any(word in lower for word in _WORDS):
        return Hints(defines=defines, renamed=renamed)
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for _, node in names.imports
        for alias in node.names
    }
    places = _Places(names)
    opens: dict[str, frozenset[str]] = {}
    for function in functions:
        parameters = _parameters(function)
        within = places.calls.inside(function) if parameters else []
        if within:
            given = places.derived(parameters, function)
            handed = [call for call in within if given & places.names_in(call)]
            inner = frozenset(_called(call, imported) or _of_this_file(call) for call in handed)
            opens[function.name] = opens.get(function.name, frozenset()) | inner
    around = [(each.name, names.scopes[each].parent) for each in functions]
    top_level = {name for name, scope in around if scope is names.module}
    methods = {name for name, scope in around if scope and isinstance(scope.node, ast.ClassDef)}
    loops: list[_Loop] = [
        *names.of(ast.For),
        *names.of(ast.AsyncFor),
        *names.of(ast.While),
    ]
    lines = _LINE_END.split(text) if loops else ()
    certain = False
    called: set[str] = set()
    called_own: set[str] = set()
    over_devices: set[str] = set()
    for loop in loops:
        inside = places.calls.inside(loop)
        if not inside:
            continue
        values = places.derived(_bound_by(loop), loop)
        for call in inside:
            if values & places.names_in(call):
                name = _of_this_file(call)
                own = methods if isinstance(call.func, ast.Attribute) else top_level
                if name in own and name not in imported:
                    called_own.add(name)
                else:
                    called.add(_called(call, imported))
        certain = certain or _collects(loop, inside, names)
        if OVER_DEVICES.search(_first_line(loop, lines)):
            over_devices |= {_called(call, imported) for call in inside}
            certain = certain or any(_method(call) in _COMPUTES for call in inside)
    spreads: list[ast.ListComp | ast.SetComp | ast.GeneratorExp]
    spreads = [*names.of(ast.ListComp), *names.of(ast.SetComp), *names.of(ast.GeneratorExp)]
    for spread in spreads:
        values = names_below(*(each.target for each in spread.generators))
        for each in ast.walk(spread.elt):
            if isinstance(each, ast.Call) and values & names_below(each):
                called.add(_called(each, imported))
    for call in names.of(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "map" and len(call.args) > 1:
            mapped = call.args[0]
            if isinstance(mapped, ast.Call) and mapped.args:  # functools.partial(tower, opt)
                mapped = mapped.args[0]
            if isinstance(mapped, ast.Lambda):
                inside = [each for each in ast.walk(mapped.body) if isinstance(each, ast.Call)]
            else:
                inside = [ast.Call(mapped, [], [])]
            called.update(_called(each, imported) or _of_this_file(each) for each in inside)
    return Hints(
        certain,
        frozenset(called),
        frozenset(called_own),
        frozenset(over_devices),
        defines,
        opens,
        renamed,
    )


def hints_of(sources: Mapping[str, str]) -> dict[str, Hints]:
    """What each file that can be parsed says of tower loops."""
    found: dict[str, Hints] = {}
    for path, text in sources.items():
        try:
            found[path] = hints(text, file_names(parse_python(text)))
        except (SyntaxError, ValueError, RecursionError):
            continue
    return found


def may_hold_towers(found: Mapping[str, Hints]) -> set[str]:
    """The files that may hold a tower loop, by what all files of the tree say."""
    renamed = {pair for each in found.values() for pair in each.renamed}
    opening = _also_as({"device"}, renamed)
    for _ in range(DEPTH + 1):
        opening |= {
            function
            for each in found.values()
            for function, entered in each.opens.items()
            if entered & opening
        }
        opening = _also_as(opening, renamed)
    # In a loop over devices a function of the tree may compute the gradients.
    computing = _also_as(_COMPUTES.union(*(each.defines for each in found.values())), renamed)
    return {
        path
        for path, each in found.items()
        if each.certain
        or each.loops_call & opening
        or any(each.opens.get(name, _NONE) & opening for name in each.loops_call_own)
        or each.device_loops_call & computing
    }


def _also_as(names: Collection[str], renamed: Collection[tuple[str, str]]) -> set[str]:
    """Some names, and every other name that an import gives to one of them."""
    found = set(names)
    while True:
        more = {new for old, new in renamed if old in found} - found
        if not more:
            return found
        found |= more


def _called(call: ast.Call, imported: set[str]) -> str:
    """The last part of the name of what is called; empty where that is a method of some object."""
    chain = chain_of(call.func)
    if chain is None:
        return ""
    root, links = chain
    if not links:
        return root.id
    known = root.id in imported or (root.id == "self" and len(links) == 1)
    return links[-1].attr if known else ""


def _of_this_file(call: ast.Call) -> str:
    """The name of what is called as a function of this file is: `f(…)`, `self.f(…)`; empty for any other call."""
    if isinstance(call.func, ast.Attribute):
        own = isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
        return call.func.attr if own else ""
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


class _Sorted(Generic[Node]):
    """Nodes by where they begin, to find those that stand in a block."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = sorted(nodes, key=_start)
        self._starts = [_start(node) for node in self._nodes]

    def inside(self, block: ast.stmt) -> list[Node]:
        """The nodes that begin behind the beginning of a block, and before its end."""
        first = bisect_right(self._starts, _start(block))
        return self._nodes[first : bisect_left(self._starts, _end(block))]


class _Places:
    """What a file calls and binds, by place."""

    def __init__(self, names: FileNames) -> None:
        blocks: list[ast.With | ast.AsyncWith] = [*names.of(ast.With), *names.of(ast.AsyncWith)]
        self.calls = _Sorted(names.of(ast.Call))
        self._binds: _Sorted[ast.stmt] = _Sorted(
            [*names.of(ast.Assign), *names.of(ast.For), *names.of(ast.AsyncFor), *blocks]
        )
        self._made: dict[ast.stmt, list[tuple[set[str], set[str]]]] = {}
        self._names: dict[ast.Call, set[str]] = {}

    def names_in(self, call: ast.Call) -> set[str]:
        if call not in self._names:
            self._names[call] = names_below(call)
        return self._names[call]

    def derived(self, values: set[str], block: ast.stmt) -> set[str]:
        """Some values and every name that is made of them in a block."""
        made = [pair for node in self._binds.inside(block) for pair in self._pairs(node)]
        found = set(values)
        while True:
            more = {name for bound, read in made if read & found for name in bound} - found
            if not more:
                return found
            found |= more

    def _pairs(self, node: ast.stmt) -> list[tuple[set[str], set[str]]]:
        """What a statement binds, and of which names."""
        if node not in self._made:
            match node:
                case ast.Assign(targets=targets, value=value):
                    pairs = [(names_below(*targets), names_below(value))]
                case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                    pairs = [(names_below(target), names_below(value))]
                case ast.With(items=items) | ast.AsyncWith(items=items):
                    pairs = [
                        (names_below(item.optional_vars), names_below(item.context_expr))
                        for item in items
                        if item.optional_vars is not None
                    ]
                case _:
                    pairs = []
            self._made[node] = pairs
        return self._made[node]


def _bound_by(loop: _Loop) -> set[str]:
    """The names that a loop binds, or, where it is a `while`, that may tell one turn from the next."""
    if not isinstance(loop, ast.While):
        return names_below(loop.target)
    bound: list[ast.expr] = [loop.test]
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign):
            bound.append(node.target)
        elif isinstance(node, ast.Assign):
            bound.extend(node.targets)
    return names_below(*bound)


def _first_line(loop: _Loop, lines: Sequence[str]) -> str:
    """The lines of a loop before its body, comments included."""
    return "\n".join(lines[loop.lineno - 1 : max(loop.body[0].lineno - 1, loop.lineno)])


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    of = function.args
    every = (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg)
    return {each.arg for each in every if each is not None}


def _collects(loop: _Loop, inside: Sequence[ast.Call], names: FileNames) -> bool:
    """Whether a list takes gradients that a loop computes."""
    computed = [call for call in inside if _method(call) == "compute_gradients"]
    if not computed:
        return False
    gradients = {
        name
        for node in names.of(ast.Assign)
        if _inside(node, loop) and any(_inside(call, node) for call in computed)
        for name in names_below(*node.targets)
    }
    return any(
        names_below(*call.args) & gradients or any(_inside(each, call) for each in computed)
        for call in inside
        if _method(call) == "append"
    )


def _inside(node: ast.expr | ast.stmt, outer: ast.expr | ast.stmt) -> bool:
    return _start(outer) <= _start(node) and _end(node) <= _end(outer)


def _start(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0
