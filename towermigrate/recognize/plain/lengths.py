"""How long a list is that every tower appends to once: as many as there are towers.

`for k in range(len(xs))` behind `for i in range(n)`, where each turn appends to `xs`, is `for k in range(n)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, own_bindings, settled
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers, once_in
from towermigrate.recognize.plain.named import filled
from towermigrate.recognize.python_scopes import own_nodes


def lengths_of_lists(file: PlainFile) -> list[Change]:
    """The lengths of the towers' lists, as the number of towers."""
    if "len(" not in file.text or file.finds_names_by_text:
        return []
    if not all(is_pythons(file, each) for each in ("len", "range")):
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _lengths(file, scope, loop, where)
    ]


def _lengths(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> Iterator[Change]:
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[count], keywords=[]):
            pass
        case _:
            return
    if not _stays(file, scope, count):
        return
    for call in own_nodes(scope):
        match call:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=listed)], keywords=[]):
                behind = call.lineno > (loop.end_lineno or loop.lineno)
                if behind and _is_one_each(file, scope, loop, listed):
                    yield Change(*file.span(call), (ast.unparse(count),), where)


def _stays(file: PlainFile, scope: Scope, count: ast.expr) -> bool:
    """Whether a number is the same wherever the scope reads it."""
    if isinstance(count, ast.Constant):
        return type(count.value) is int
    if isinstance(count, ast.Name):
        mine = isinstance(scope, ast.FunctionDef) and own_bindings(scope, count.id) == 1
        return mine and count.id not in file.shared_between_functions
    return settled(file, count)


def _is_one_each(file: PlainFile, scope: Scope, loop: ast.For, listed: str) -> bool:
    """Whether a list begins empty, each turn of the loop appends to it once, and nothing else can change it."""
    if not any(begins_empty(each, listed) for each in once_in(scope)):
        return False
    if filled(file, scope, loop, listed) is None or listed in file.shared_between_functions:
        return False
    if isinstance(scope, ast.Module):  # any function may change it
        return False
    fine: set[int] = set()
    for each in ast.walk(scope):
        match each:
            case ast.Subscript(value=of, ctx=ast.Load()):
                fine.add(id(of))
            case ast.For(iter=over) | ast.comprehension(iter=over):
                fine.add(id(over))
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id="tf")))
                | ast.Call(func=ast.Name(id="len" | "enumerate" | "zip"))
            ):
                fine |= {id(one) for one in each.args}
            case ast.Call(func=ast.Attribute(value=of, attr="append")):
                fine.add(id(of))
    uses = [each for each in file.uses(listed) if isinstance(each.ctx, ast.Load)]
    own = {id(each) for each in ast.walk(scope)}
    return all(id(each) in fine for each in uses if id(each) in own)


def begins_empty(statement: ast.stmt, listed: str) -> bool:
    """Whether a statement makes an empty list of a name, or of several."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
            return name == listed
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            return any(
                isinstance(name, ast.Name) and name.id == listed and ast.unparse(value) == "[]"
                for name, value in zip(names, values, strict=False)
            )
    return False
