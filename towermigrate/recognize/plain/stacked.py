"""Batches that stand one beside the other in a placeholder: `x = X[i]` of a tower is `X[i:i + 1][0]`, the one row that is its."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers, once_in


def stacked_batches(file: PlainFile) -> list[Change]:
    """What a tower takes of a placeholder by the number of the tower alone."""
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        number = _number(file, loop)
        if number is None or bindings(scope, number) != 1:
            continue
        placeholders = set(_placeholders(file, scope, loop))
        for each in ast.walk(loop):
            match each:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=index)):
                    if name in placeholders and index == number and isinstance(each.ctx, ast.Load):
                        taken = f"{name}[{number}:{number} + 1][0]"
                        found.append(Change(*file.span(each), (taken,), where))
    return found


def _number(file: PlainFile, loop: ast.For) -> str | None:
    """The name of a loop's number where that goes from 0 on."""
    match loop.target, loop.iter:
        case ast.Name(id=number), ast.Call(func=ast.Name(id="range" | "xrange" as made), args=[_], keywords=[]):  # fmt: skip
            return number if made == "xrange" or is_pythons(file, made) else None
        case (
            ast.Tuple(elts=[ast.Name(id=number), *_]),
            ast.Call(func=ast.Name(id="enumerate"), args=[_], keywords=[]),
        ):
            return number if is_pythons(file, "enumerate") else None
    return None


def _placeholders(file: PlainFile, scope: Scope, loop: ast.For) -> list[str]:
    return [
        each.targets[0].id
        for each in once_in(scope)
        if isinstance(each, ast.Assign)
        and each.lineno < loop.lineno
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Name)
        and isinstance(each.value, ast.Call)
        and ast.unparse(each.value.func) == "tf.placeholder"
        and bindings(scope, each.targets[0].id) == 1
        and each.targets[0].id not in file.shared_between_functions
    ]
