"""Which files may hold a tower loop, told from their syntax trees: libcst reads only these.

What `loops` finds in a file is found here too, and more: names are compared, nothing is resolved. A tree of a
thousand files has a few dozen that are worth the time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from towermigrate.symbols.scopes import FileNames, chain_of, file_names
from towermigrate.tree import parse_python

# A file without one of these words cannot hold a tower loop.
_WORDS = re.compile(r"\bdevice\s*\(|compute_gradients|tf\.gradients|\.gradients\(")
_COMPUTES = frozenset({"compute_gradients", "gradients", "minimize"})
OVER_DEVICES = re.compile(r"gpu|tower|device|clone|replica", re.IGNORECASE)
"""What a loop over devices says in its first line."""
DEPTH = 2
"""How many calls deep a function of the tree is followed."""


@dataclass(frozen=True)
class Hints:
    """What one file says of tower loops. Functions go by the last part of their names.

    `certain` where a loop of the file computes gradients itself; `loops_call` are the functions that its loops
    call with values, `device_loops_call` those that its loops over devices call; `defines` are its functions,
    `opens` what each of them enters in a `with`; `renamed` are the names that its imports give to functions.
    """

    certain: bool = False
    loops_call: frozenset[str] = frozenset()
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
    loops: list[ast.For | ast.AsyncFor] = []
    if "tensorflow" in text and _WORDS.search(text):
        loops = [*names.of(ast.For), *names.of(ast.AsyncFor)]
    entered = [
        (node, _called(item.context_expr, imported))
        for node in blocks
        for item in node.items
        if isinstance(item.context_expr, ast.Call) and _is_given_names(item.context_expr)
    ]
    opens: dict[str, frozenset[str]] = {}
    for function in functions:
        inner = frozenset(name for node, name in entered if _inside(node, function))
        if inner:
            opens[function.name] = opens.get(function.name, frozenset()) | inner
    certain = False
    called: set[str] = set()
    over_devices: set[str] = set()
    for loop in loops:
        inside = [call for call in names.of(ast.Call) if _inside(call, loop)]
        header = f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}"
        called |= {_called(call, imported) for call in inside if _is_given_names(call)}
        certain = certain or any(_method(call) == "compute_gradients" for call in inside)
        if OVER_DEVICES.search(header):
            over_devices |= {_called(call, imported) for call in inside}
            certain = certain or any(_method(call) in _COMPUTES for call in inside)
    return Hints(certain, frozenset(called), frozenset(over_devices), defines, opens, renamed)


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
        if each.certain or each.loops_call & opening or each.device_loops_call & computing
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


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_given_names(call: ast.Call) -> bool:
    """Whether an argument reads some name: only then it can depend on a loop's value."""
    given: Iterable[ast.expr] = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(isinstance(inner, ast.Name) for each in given for inner in ast.walk(each))


def _inside(node: ast.expr | ast.stmt, outer: ast.stmt) -> bool:
    return outer.lineno <= node.lineno and _end(node) <= _end(outer)


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0
