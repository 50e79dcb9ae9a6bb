"""Whether a tower may divide its loss by a count of all towers' examples, so that it looks like a share of a global loss.

TF1 averaged the gradients of such a loss like any other's. The helpers would take it for a slip, unless they are told
that it is meant.
"""

from __future__ import annotations

import ast

from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.values import Python, Value, holds_tensor

_PRODUCTS = frozenset({"tf.multiply", "tf.scalar_mul", "tf.mul"})
_QUOTIENTS = frozenset({"tf.div", "tf.divide", "tf.realdiv", "tf.truediv", "tf.div_no_nan"})
# A sum of squares of its own kind of operation, which the helpers do not look at.
_DECAY = "l2_loss"


def of_operator(node: ast.AST, left: Value, right: Value) -> bool:
    """Whether an operator may multiply a tensor by 1/N, or divide it by N or by a number that a run counts."""
    op = getattr(node, "op", None)
    sides = [getattr(node, name, None) for name in ("left", "right")]
    return _scales(isinstance(op, ast.Mult), isinstance(op, ast.Div), sides, [left, right])


def of_call(name: str, node: ast.Call, given: list[Value], named: dict[str, Value]) -> bool:
    """As `of_operator`, of a call of TensorFlow."""
    if name in library.LOSSES:
        return "weights" in named or len(given) > 2
    both = [*given, *(value for key, value in named.items() if key != "name")]
    return _scales(name in _PRODUCTS, name in _QUOTIENTS, list(node.args), both)


def _scales(product: bool, quotient: bool, nodes: list[ast.AST | None], given: list[Value]) -> bool:
    tensors = [holds_tensor(value) for value in given[:2]]
    if not (product or quotient) or not any(tensors) or any(map(_is_decay, nodes)):
        return False
    if all(tensors):
        return quotient
    number = given[1] if tensors[0] else given[0]
    if len(given) > 1 and isinstance(number, Python) and isinstance(number.constant, int | float):
        return abs(number.constant) > 1 if quotient else 0 < abs(number.constant) < 1
    return True


def _is_decay(node: ast.AST | None) -> bool:
    func = getattr(node, "func", None)
    return isinstance(func, ast.Attribute) and func.attr == _DECAY
