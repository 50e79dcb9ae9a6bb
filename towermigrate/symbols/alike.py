"""Calls that mean the same in TensorFlow 1 and 2, so that nothing need be written in them, or a shorter name may.

`tf.reduce_mean` of TensorFlow 2 is another function than that of TensorFlow 1: it has no `reduction_indices`. Called with
what both have, it makes the same operation of the same name. `names.txt` has what only goes by another name now:
`tf.log` is the very function that is `tf.math.log`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class _Alike:
    """What may be given to both functions: so many arguments by position, and these by name; or nothing but texts."""

    places: int
    names: frozenset[str]
    texts: bool = False

    def holds(self, call: ast.Call) -> bool:
        if any(isinstance(each, ast.Starred) for each in call.args):
            return False
        if self.texts and not all(map(_is_text, [*call.args, *(k.value for k in call.keywords)])):
            return False
        named = {each.arg for each in call.keywords}
        return len(call.args) <= self.places and named <= self.names


def _of(places: int, names: str, texts: bool = False) -> _Alike:
    return _Alike(places, frozenset(names.split()), texts)


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is a text whatever its names mean: `"tower_%d" % i`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _is_text(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "format" and _is_text(node.func.value)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


_REDUCTION = _of(2, "input_tensor axis keepdims name")
_SOFTMAX = _of(2, "logits axis name")

ALIKE: dict[str, _Alike] = {
    **{f"{module}reduce_{each}": _REDUCTION for module in ("", "math.") for each in "all any logsumexp max mean min prod sum".split()},
    **{f"{module}{each}": _of(2, "axis output_type name") for module in ("", "math.") for each in ("argmax", "argmin")},
    **{f"nn.{each}": _SOFTMAX for each in ("softmax", "log_softmax")},
    "boolean_mask": _of(2, "tensor mask axis name"),
    "constant": _of(2, "value dtype name"),  # with a shape, TensorFlow 1 repeats the last value
    "convert_to_tensor": _of(2, "value dtype name"),
    "expand_dims": _of(2, "input axis name"),
    "name_scope": _of(1, "name", texts=True),  # of None, TensorFlow 2 makes no scope
    "gather": _of(2, "params indices axis batch_dims name"),
    "nn.sigmoid_cross_entropy_with_logits": _of(0, "labels logits name"),
    "nn.sparse_softmax_cross_entropy_with_logits": _of(0, "labels logits name"),
    "pad": _of(3, "tensor paddings mode constant_values name"),
    "shape": _of(1, "input out_type name"),
    "size": _of(1, "input out_type name"),
    "squeeze": _of(2, "input axis name"),
    "transpose": _of(2, "a perm conjugate name"),
    "zeros_like": _of(2, "dtype name"),  # that of ones makes other operations
    "where": _of(1, "condition name"),  # with values, TensorFlow 1 does not broadcast
}  # fmt: skip
"""Names without `tf.`. A call that gives more, or gives it otherwise, stays one of `tf.compat.v1`."""


def is_alike(name: str, call: ast.Call | None) -> bool:
    """Whether `tf.<name>`, called so, is the same in both; a function that is handed on is not known to be."""
    alike = ALIKE.get(name)
    return alike is not None and call is not None and alike.holds(call)
