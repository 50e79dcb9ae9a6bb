"""Inputs that are asked for where a function is given them: under a name first."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope
from towermigrate.recognize.plain.collected import loops_of_towers


def asked_inputs(file: PlainFile) -> list[Change]:
    """`loss = model(iterator.get_next())` of a tower as `batch = iterator.get_next()` and `loss = model(batch)`."""
    if ".get_next()" not in file.text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for statement in ast.walk(loop)
        if isinstance(statement, ast.Assign)
        for change in _apart(file, scope, statement, where)
    ]


def _apart(file: PlainFile, scope: Scope, statement: ast.Assign, where: str) -> list[Change]:
    match statement.value:
        case ast.Call(func=ast.Name(), args=args, keywords=keywords):
            given = [*args, *(each.value for each in keywords)]
        case _:
            return []
    asking = [each for each in given if _asks(each)]
    margin = file.alone(statement)
    # What is told before it must be there whenever it is told, and mean the same then.
    if len(asking) != 1 or not all(
        isinstance(each, ast.Name | ast.Constant) for each in given if each is not asking[0]
    ):
        return []
    if margin is None or file.commented(*file.span(statement)):
        return []
    name = file.free(scope, "batch", "inputs")
    begin, end = file.span(asking[0])
    at = file.above(statement)
    return [
        Change(at, at, (f"{margin}{name} = ", (begin, end), "\n"), where),
        Change(begin, end, (name,), where),
    ]


def _asks(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="get_next"), args=[], keywords=[]):
            return True
    return False


__all__ = ["asked_inputs"]
