"""Calls that switch TensorFlow 2's behaviour off: what is built behind them is a graph of TensorFlow 1, and no step of loop style.

`disable_v2_behavior` and `disable_eager_execution` do it to a whole process. The others change what single parts of
TensorFlow give, which a step was not proved for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

SWITCHES = frozenset({
    "disable_v2_behavior", "disable_eager_execution", "disable_control_flow_v2", "disable_resource_variables",
    "disable_v2_tensorshape", "disable_tensor_equality",
})  # fmt: skip


def switches_in(nodes: Iterable[ast.AST]) -> list[ast.expr]:
    """Where the nodes of a file name what switches TensorFlow 2's behaviour off, whatever TensorFlow was imported as."""
    return [
        each
        for each in nodes
        if isinstance(each, ast.Attribute)
        and each.attr in SWITCHES
        or isinstance(each, ast.Name)
        and each.id in SWITCHES
    ]


def is_statement(node: ast.stmt) -> bool:
    """Whether a statement does nothing but switch: `tf.disable_v2_behavior()`."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    call = node.value
    if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    while isinstance(owner, ast.Attribute) and owner.attr in ("compat", "v1"):
        owner = owner.value
    return call.func.attr in SWITCHES and isinstance(owner, ast.Name)
