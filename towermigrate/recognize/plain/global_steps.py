"""A global step that is made behind the towers: in front of them."""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import Change, PlainFile, bindings, blocks
from towermigrate.recognize.plain.collected import is_tower_loop

_MAKES = "tf.train.get_or_create_global_step()"
_ASKS = re.compile(r"get_global_step\(|global_step\(|\b(?:global|all)_variables\(")


def global_steps(file: PlainFile) -> list[Change]:
    """`step = tf.train.get_or_create_global_step()` where it is the only one and nothing lists variables in their order."""
    if file.text.count(_MAKES) != 1 or _ASKS.search(file.text.replace(_MAKES, "")):
        return []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            towers = [
                each
                for each in body
                if any(isinstance(one, ast.For) and is_tower_loop(one) for one in ast.walk(each))
            ]
            for each in body if always and len(towers) == 1 else ():
                match each:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        behind = each.lineno > towers[0].lineno
                        if behind and ast.unparse(value) == _MAKES and bindings(scope, name) == 1:
                            return _moved(file, each, towers[0], where)
    return []


def _moved(file: PlainFile, statement: ast.stmt, towers: ast.stmt, where: str) -> list[Change]:
    margin = file.alone(towers)
    if (
        margin is None
        or file.alone(statement) != margin
        or file.text[: file.start(statement)][-1:] == ";"
    ):
        return []
    gone, place = file.without(statement), file.starts[towers.lineno - 1]
    if gone[0] != file.starts[statement.lineno - 1]:
        return []  # a comment stands behind it
    parts = (margin, file.span(statement), "\n")
    return [Change(place, place, parts, where), Change(*gone, (), where)]
