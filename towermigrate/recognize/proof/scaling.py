"""Whether a tower may divide its loss by a count of all towers' examples, so that it looks like a share of a global loss.

TF1 averaged the gradients of such a loss like any other's. The helpers would take it for a slip, unless they are told
that it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from towermigrate.flow.values import Const, Value
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.values import (
    Tensor,
    holds_tensor,
)

_PRODUCTS = frozenset({"tf.multiply", "tf.scalar_mul", "tf.mul"})
_QUOTIENTS = frozenset({"tf.div", "tf.divide", "tf.realdiv", "tf.truediv", "tf.div_no_nan"})
CONSTANTS = frozenset(
    f"tf.{name}"
    for name in "constant cast to_float convert_to_tensor identity squeeze reshape fill stop_gradient unstack".split()
)
"""What gives a constant of a number, and of a constant."""


def is_constant(given: list[Value]) -> bool:
    """Whether what a call is given is a number of the program's own."""
    return bool(given) and all(
        value.constant if isinstance(value, Tensor) else not holds_tensor(value) for value in given
    )


def of_operator(node: ast.AST, left: Value, right: Value, decays: Collection[int]) -> bool:
    """Whether an operator may multiply a tensor by 1/N, or divide it by N or by a number that a run counts.

    `decays` are calls, by their identity, that made the decay of a weight, which is no loss of examples.
    """
    op = getattr(node, "op", None)
    sides = [getattr(node, name, None) for name in ("left", "right")]
    if any(id(side) in decays for side in sides):
        return False
    return _scales(isinstance(op, ast.Mult), isinstance(op, ast.Div), [left, right])


def is_decay(name: str, given: list[Value]) -> bool:
    """Whether a call makes the decay of a weight."""
    return name == "tf.nn.l2_loss" and all(
        isinstance(value, Tensor) and value.variable for value in given[:1]
    )


def of_call(
    name: str,
    node: ast.Call,
    given: list[Value],
    named: dict[str, Value],
    decays: Collection[int],
) -> bool:
    """As `of_operator`, of a call of TensorFlow."""
    if name in library.LOSSES:
        return "weights" in named or len(given) > 2
    both = [*given, *(value for key, value in named.items() if key != "name")]
    if any(id(each) in decays for each in node.args):
        return False
    return _scales(name in _PRODUCTS, name in _QUOTIENTS, both)


def _scales(product: bool, quotient: bool, given: list[Value]) -> bool:
    tensors = [holds_tensor(value) for value in given[:2]]
    if not (product or quotient) or not any(tensors):
        return False
    if all(tensors):
        return quotient or any(isinstance(each, Tensor) and each.constant for each in given[:2])
    number = given[1] if tensors[0] else given[0]
    if len(given) > 1 and isinstance(number, Const) and isinstance(number.value, int | float):
        return abs(number.value) > 1 if quotient else 0 < abs(number.value) < 1
    return True
