"""Functions that TensorFlow 1 asks for the device of every operation, and what they do beside that."""

from __future__ import annotations

import ast

from towermigrate.flow.scopes import bound_in

_SAYS = frozenset(
    "print pprint write writelines info debug warning warn error critical log".split()
)
_FILLS = frozenset("append extend add insert update setdefault pop remove clear put".split())


def is_heard(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a function says something, or fills what is not its own: what an object counts for itself is for placing."""
    body = function.body if isinstance(function.body, list) else [function.body]
    own = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    own |= bound_in(body)
    for each in (node for statement in body for node in ast.walk(statement)):
        if isinstance(each, ast.Call):
            last = each.func.attr if isinstance(each.func, ast.Attribute) else ""
            if (each.func.id if isinstance(each.func, ast.Name) else last) in _SAYS:
                return True
            if last in _FILLS and isinstance(each.func, ast.Attribute):
                if _root(each.func.value) not in {*own, "self"}:
                    return True
        elif isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            if _root(each.value) not in {*own, "self"}:
                return True
        elif isinstance(each, ast.Global):
            return True
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
