"""Which files may hold a tower loop, told from their syntax trees: libcst reads only these.

What `loops` finds in a file is found here too, and more: names are compared, nothing is resolved. A tree of a
thousand files has a few dozen that are worth the time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from towermigrate.symbols.scopes import FileNames, chain_of, file_names
from towermigrate.tree import parse_python

# A file without one of these words cannot hold a tower loop.
_WORDS = re.compile(r"\bdevice\s*\(|compute_gradients|tf\.gradients|\.gradients\(")
_COMPUTES = frozenset({"compute_gradients", "gradients", "minimize"})
OVER_DEVICES = re.compile(r"gpu|tower|device|clone|replica", re.IGNORECASE)
"""What a loop over devices says in its first line."""
_NONE: frozenset[str] = frozenset()
_Loop = ast.For | ast.AsyncFor
DEPTH = 2
"""How many calls deep a function of the tree is followed."""


@dataclass(frozen=True)
class Hints:
    """What one file says of tower loops. Functions go by the last part of their names.

    `certain` where a loop of the file computes gradients itself; `loops_call` are the functions that its loops
    call with values, `loops_call_own` those of them that can only be the file's own, `device_loops_call` those
    that its loops over devices call; `defines` are its functions, `opens` what each of them enters in a `with`;
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
    if "device" not in text and "gradients" not in text:
        return Hints(defines=defines, renamed=renamed)
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for _, node in names.imports
        for alias in node.names
    }
    blocks: list[ast.With | ast.AsyncWith] = [*names.of(ast.With), *names.of(ast.AsyncWith)]
    loops: list[_Loop] = []
    if "tensorflow" in text and _WORDS.search(text):
        loops = [*names.of(ast.For), *names.of(ast.AsyncFor)]
    entered = [
        (node, item.context_expr)
        for node in blocks
        for item in node.items
        if isinstance(item.context_expr, ast.Call)
    ]
    opens: dict[str, frozenset[str]] = {}
    for function in functions:
        within = [call for node, call in entered if _inside(node, function)]
        if within:
            given = _derived(_parameters(function), function, names)
            inner = frozenset(_called(call, imported) for call in within if given & _names_in(call))
            opens[function.name] = opens.get(function.name, frozenset()) | inner
    defined_here = defines - imported
    certain = False
    called: set[str] = set()
    called_own: set[str] = set()
    over_devices: set[str] = set()
    for loop in loops:
        inside = [call for call in names.of(ast.Call) if _inside(call, loop)]
        header = f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}"
        values = _derived(_names_in(loop.target), loop, names)
        for call in inside:
            if values & _names_in(call):
                name = _of_this_file(call)
                if name in defined_here:
                    called_own.add(name)
                else:
                    called.add(_called(call, imported))
        certain = certain or _collects(loop, inside, names)
        if OVER_DEVICES.search(header):
            over_devices |= {_called(call, imported) for call in inside}
            certain = certain or any(_method(call) in _COMPUTES for call in inside)
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
    opening = {"device"}
    renamed = {pair for each in found.values() for pair in each.renamed}
    for _ in range(DEPTH + 1):
        opening |= {new for old, new in renamed if old in opening}
        opening |= {
            function
            for each in found.values()
            for function, entered in each.opens.items()
            if entered & opening
        }
    opening |= {new for old, new in renamed if old in opening}
    # In a loop over devices a function of the tree may compute the gradients.
    computing = _COMPUTES.union(*(each.defines for each in found.values()))
    computing |= {new for old, new in renamed if old in computing}
    return {
        path
        for path, each in found.items()
        if each.certain
        or each.loops_call & opening
        or any(each.opens.get(name, _NONE) & opening for name in each.loops_call_own)
        or each.device_loops_call & computing
    }


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


def _derived(values: set[str], block: ast.stmt, names: FileNames) -> set[str]:
    """Some values and every name that is made of them in a block."""
    made = [
        (_names_in(*node.targets), _names_in(node.value))
        for node in names.of(ast.Assign)
        if _inside(node, block)
    ]
    loops: list[_Loop] = [*names.of(ast.For), *names.of(ast.AsyncFor)]
    made += [
        (_names_in(node.target), _names_in(node.iter))
        for node in loops
        if node is not block and _inside(node, block)
    ]
    blocks: list[ast.With | ast.AsyncWith] = [*names.of(ast.With), *names.of(ast.AsyncWith)]
    made += [
        (_names_in(item.optional_vars), _names_in(item.context_expr))
        for node in blocks
        if _inside(node, block)
        for item in node.items
        if item.optional_vars is not None
    ]
    found = set(values)
    while True:
        more = {name for bound, read in made if read & found for name in bound} - found
        if not more:
            return found
        found |= more


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
        for name in _names_in(*node.targets)
    }
    return any(
        _names_in(*call.args) & gradients or any(_inside(each, call) for each in computed)
        for call in inside
        if _method(call) == "append"
    )


def _names_in(*nodes: ast.AST) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _inside(node: ast.expr | ast.stmt, outer: ast.expr | ast.stmt) -> bool:
    return _start(outer) <= _start(node) and _end(node) <= _end(outer)


def _start(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0
