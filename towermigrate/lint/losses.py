"""Functions that losses are made of: sums, means and counts over a replica's examples, and their arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from towermigrate.flow import Call
from towermigrate.flow.values import NONE, Const, External, Items, Unknown, Value
from towermigrate.lint import arithmetic
from towermigrate.lint import values as v
from towermigrate.lint.assumptions import product
from towermigrate.lint.noting import noting


def reduction(value: Value | None) -> str:
    """The `reduction=` of a Keras loss: `none`, `sum`, `default` or, where it is another, what it says."""
    match value:
        case None:
            return "default"
        case Const(value=str() as text) if text.lower() in ("none", "sum"):
            return text.lower()
        case Const(value=str() as text) if text.lower() in ("auto", "sum_over_batch_size"):
            return "default"
        case External(name=name):
            last = name.rsplit(".", 1)[-1].lower()
            return {"auto": "default", "sum_over_batch_size": "default"}.get(last, last)
        case Const(value=None):
            return "none"
    return "unknown"


def _whole(found: Call) -> bool:
    """Whether a reduction goes over all axes."""
    axis = found.get(1, "axis", "reduction_indices")
    return axis is None or axis == NONE


def _reduce_mean(found: Call) -> Value:
    value = found.get(0, "input_tensor", "x")
    if value is None or not _whole(found):
        return v.unknown()
    if isinstance(value, Items):
        # The mean of a list of losses: each of them divided by a number that no replica changes.
        summed = arithmetic.total(value, found.place)
        if isinstance(summed, v.Loss):
            return summed
        value = v.unknown()
    return arithmetic.mean(value, found.place)


def _reduce_sum(found: Call) -> Value:
    value = found.get(0, "input_tensor", "x")
    if value is not None and _whole(found):
        return arithmetic.total(value, found.place)
    # The sum over some axes keeps what its argument was multiplied by.
    first = v.seen(found.get(0) or v.unknown())
    return first if isinstance(first, v.Tensor) else v.unknown()


def _count_nonzero(found: Call) -> Value:
    value = v.seen(found.get(0, "input") or v.unknown())
    return v.LocalSum(value) if isinstance(value, v.Tensor) and _whole(found) else v.unknown()


def _add_n(found: Call) -> Value:
    value = found.get(0, "inputs")
    if isinstance(value, v.Tensor | Unknown) and found.name == "builtins.sum":
        return value
    return arithmetic.total(value, found.place) if value is not None else v.unknown()


def _add(found: Call) -> Value:
    match list(found.args):
        case [first, second, *_]:
            return arithmetic.add(first, second)
    return v.unknown()


def _multiply(found: Call) -> Value:
    match list(found.args), found.node.args:
        case [first, second, *_], [left, right, *_]:
            return product(noting(found), found.place, (first, left), (second, right))
    return v.unknown()


def _divide(found: Call) -> Value:
    match list(found.args):
        case [first, second, *_]:
            return arithmetic.divide(first, second, found.place)
    return v.unknown()


def _negative(found: Call) -> Value:
    return arithmetic.negative(found.get(0) or v.unknown())


def _maximum(found: Call) -> Value:
    """`tf.maximum(tf.reduce_sum(mask), 1)` is still the number of tokens."""
    for value in found.args:
        if isinstance(value, v.LocalSum | v.Count):
            return value
    return v.unknown()


def _share(found: Call) -> Value:
    return v.Loss(frozenset({v.Part("share", 0, found.place)}))


def _regularization_share(found: Call) -> Value:
    value = found.get(0, "regularization_loss")
    if isinstance(value, v.Loss):
        return arithmetic.scale(value, v.Number(-1), found.place)
    return _share(found)


def _masked(found: Call) -> Value:
    match [v.seen(value) for value in found.args[:2]]:
        case [v.Tensor() as first, v.Tensor() as second]:
            return v.Tensor(first.ids | second.ids, masked=True)
    return v.unknown()


def _where(found: Call) -> Value:
    """`tf.where(mask, losses, 0)`: zeros where the mask is false, still as many entries."""
    value = _masked(found)
    return replace(value, masked=False) if isinstance(value, v.Tensor) else value


def _l2_loss(found: Call) -> Value:
    if isinstance(found.get(0, "t"), v.Variables):
        return v.Loss(frozenset({v.Part("regularizer", 1, found.place)}))
    return v.unknown()


def _same(found: Call) -> Value:
    """Functions whose result is their first argument, for what the rules ask."""
    return found.get(0) or v.unknown()


def _shape(found: Call) -> Value:
    return v.Shape()


def _size(found: Call) -> Value:
    return v.Count()


FUNCTIONS: dict[str, Callable[[Call], Value]] = {
    "tensorflow.reduce_mean": _reduce_mean,
    "tensorflow.reduce_sum": _reduce_sum,
    "tensorflow.math.count_nonzero": _count_nonzero,
    "tensorflow.add_n": _add_n,
    "builtins.sum": _add_n,
    "tensorflow.add": _add,
    "tensorflow.subtract": _add,
    "tensorflow.multiply": _multiply,
    "tensorflow.math.multiply": _multiply,
    "tensorflow.divide": _divide,
    "tensorflow.math.divide_no_nan": _divide,
    "tensorflow.divide_no_nan": _divide,
    "tensorflow.negative": _negative,
    "tensorflow.maximum": _maximum,
    "tensorflow.math.maximum": _maximum,
    "tensorflow.shape": _shape,
    "tensorflow.size": _size,
    "tensorflow.boolean_mask": _masked,
    "tensorflow.where": _where,
    "tensorflow.nn.l2_loss": _l2_loss,
    "tensorflow.nn.compute_average_loss": _share,
    "tensorflow.nn.scale_regularization_loss": _regularization_share,
    "towermigrate.helpers.global_batch_loss": _share,
    "towermigrate.helpers.token_normalized_loss": _share,
    "towermigrate.helpers.regularization_loss": _share,
    "tensorflow.cast": _same,
    "tensorflow.identity": _same,
    "tensorflow.convert_to_tensor": _same,
    "tensorflow.squeeze": _same,
    "tensorflow.reshape": _same,
    "tensorflow.stack": _same,
    "tensorflow.debugging.check_numerics": _same,
    "tensorflow.function": _same,
    "tensorflow.to_float": _same,
    "tensorflow.stop_gradient": _same,
    "tensorflow.nest.flatten": _same,
    "tensorflow.constant": _same,
}
