"""Losses that were divided by a global count by hand: how they show while a tape takes their gradient.

A sum over a tower's rows times 1/(the rows of all towers) is a share of the global loss, and looks like any other
number. What tells is its derivative by each of the rows, which the tape passes on its way: 1/(the rows of all towers).
"""

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops as _ops

from towermigrate.helpers import _behind, _reached

_REDUCTIONS = ("Sum", "Mean")
_QUOTIENTS = ("RealDiv", "DivNoNan")
_PRODUCTS = ("Mul",)
# Through these a number stays what it is for each element.
_SAME = frozenset("BroadcastTo Cast ExpandDims Identity Reshape Squeeze Tile".split())
_WATCHED = "_towermigrate_watched"


@dataclass(frozen=True)
class Weighted:
    """Elements that a loss adds up, all with one weight.

    Attributes:
      counts: what may be meant by the number of rows: how many elements there are, and how many rows; a tensor where
        that is known only while the step runs. Empty for a mean.
      weight: the derivative of the loss by each element, or by the mean; a tensor likewise.
      elements: the elements, or the mean.
    """

    counts: tuple[Any, ...]
    weight: Any
    elements: Any


class _Watcher(threading.local):
    found: list[Weighted] | None = None


_watcher = _Watcher()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def watch_gradients() -> None:
    """Let the gradients of sums and divisions tell who watches; otherwise they are as they were."""
    registered = _ops._gradient_registry._registry
    for kind in (*_REDUCTIONS, *_QUOTIENTS, *_PRODUCTS):
        entry = registered[kind]
        if not hasattr(entry["type"], _WATCHED):
            entry["type"] = _telling(kind, entry["type"])


@contextlib.contextmanager
def watch() -> Iterator[list[Weighted]]:
    """What the gradients that this thread takes in this block come by."""
    outer, _watcher.found = _watcher.found, []
    try:
        yield _watcher.found
    finally:
        _watcher.found = outer


def _telling(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(op: Any, *upstream: Any) -> Any:
        found = _watcher.found
        if found is not None and upstream[0] is not None:
            one = (
                _reduced(kind, op, upstream[0])
                if kind in _REDUCTIONS
                else _scaled(kind, op, upstream[0])
            )
            if one is not None:
                found.append(one)
        return original(op, *upstream)

    setattr(gradient, _WATCHED, True)
    return gradient


def _reduced(kind: str, op: Any, upstream: Any) -> Weighted | None:
    """A sum or a mean that is one number."""
    if upstream.shape.rank != 0:
        return None
    weight = _one_number(upstream)
    if kind == "Mean":
        return Weighted((), weight, op.inputs[0]) if isinstance(weight, float) else None
    counts = _counts(op.inputs[0])
    return None if weight is None or not counts else Weighted(counts, weight, op.inputs[0])


def _scaled(kind: str, op: Any, upstream: Any) -> Weighted | None:
    """The losses of the rows times or over a number that nothing is trained by."""
    if upstream.shape.rank != 1:
        return None
    places = (1,) if kind in _QUOTIENTS else (0, 1)
    constant = getattr(op, "skip_input_indices", None) or ()
    for place in places:
        scalar, rows = op.inputs[place], op.inputs[1 - place]
        if scalar is None or rows is None or scalar.shape.rank != 0 or rows.shape.rank != 1:
            continue
        if kind in _PRODUCTS and place not in constant:
            continue
        weight, factor = _one_number(upstream), _one_number(scalar)
        if isinstance(weight, float) and isinstance(factor, float) and factor:
            weight = weight * factor if kind in _PRODUCTS else weight / factor
            return Weighted(_counts(rows), weight, rows)
    return None


def _counts(tensor: Any) -> tuple[Any, ...]:
    """How many elements and how many rows."""
    shape = tensor.shape
    if shape.rank == 0:
        return ()
    elements: Any = shape.num_elements()
    elements = tf.size(tensor) if elements is None else elements
    if shape.rank in (None, 1):
        return (elements,)
    rows = shape[0]
    return (elements, tf.shape(tensor)[0] if rows is None else rows)


def _one_number(tensor: Any) -> Any:
    """What all elements are: a float, or the scalar tensor that says so while the step runs; None if they differ."""
    if not tf.is_symbolic_tensor(tensor):
        values = np.asarray(tensor)
        if not values.size:
            return 1.0  # of no rows, as of those of the other towers if they are added up
        return float(values.flat[0]) if (values == values.flat[0]).all() else None
    value = _static(tensor)
    if value is not None or tensor.shape.rank != 0:
        return value
    return tensor if _counts_something(tensor) else None


def _static(tensor: Any) -> float | None:
    """The number that every element of a graph's tensor is, as far as that shows."""
    factor = 1.0
    while True:
        operation = tensor.op
        if operation.type in _SAME:
            tensor = operation.inputs[0]
        elif operation.type in ("OnesLike", "ZerosLike"):
            return factor if operation.type == "OnesLike" else None
        elif operation.type == "Fill":
            tensor = operation.inputs[1]
        elif operation.type in _PRODUCTS + _QUOTIENTS:
            left, right = operation.inputs
            other = _constant(right)
            if other is None and operation.type in _PRODUCTS:
                (left, right), other = (right, left), _constant(left)
            if not other:
                return None
            factor = factor * other if operation.type in _PRODUCTS else factor / other
            tensor = left
        else:
            value = _constant(tensor)
            return None if value is None else factor * value


def _constant(tensor: Any) -> float | None:
    value = tf.get_static_value(tensor)
    if value is None or not np.size(value) or not (value == value.flat[0]).all():
        return None
    return float(value.flat[0])


def _counts_something(tensor: Any) -> bool:
    """Whether a number that only a run knows comes from a whole one, as a division by a count does."""
    waiting, left = [tensor], 50
    while waiting and left:
        left -= 1
        operation = waiting.pop().op
        if operation.type == "Cast" and operation.inputs[0].dtype.is_integer:
            return True
        if operation.type in _SAME or operation.type in _PRODUCTS + _QUOTIENTS:
            waiting += operation.inputs
    return False


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def candidates(found: Sequence[Weighted]) -> list[Weighted]:
    """Those of what `watch` saw that may be divided by a global count; the same on every replica that means the same."""
    means = [one for one in found if not one.counts]
    sums = [one for one in found if one.counts and _may_be_a_mean(one.weight)]
    # Two halves of a loss look like shares on two replicas.
    return [*means, *sums] if len(means) == 1 else sums


def _may_be_a_mean(weight: Any) -> bool:
    if not isinstance(weight, float):
        return True
    count = 1 / weight if weight else 0.0
    return count >= 2 and math.isclose(count, round(count), rel_tol=1e-5)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_global_counts(
    towers: Sequence[list[Weighted]], mine: list[Weighted], replicas: int
) -> None:
    """Raise where the weight of elements is 1/(those of all replicas): the loss is a share of the global one.

    Where only a run knows the numbers, the run raises `tf.errors.InvalidArgumentError`.

    Args:
      towers: the candidates of each tower, as far as they can be compared.
      mine: this tower's.
      replicas: the number of replicas.

    Raises:
      ValueError: they are known, or cannot be compared at all.
    """
    if replicas == 1:
        return
    if any(not one.counts and math.isclose(one.weight, 1 / replicas, rel_tol=1e-6) for one in mine):
        raise ValueError(_said(f"a mean times 1/{replicas}", replicas))
    alike = {tuple((len(one.counts), _weight_of(one)) for one in tower) for tower in towers}
    for of_towers in zip(*(towers if len(alike) == 1 else [mine]), strict=True):
        for counts in zip(*(one.counts for one in of_towers), strict=True):
            _refuse(of_towers[0], list(counts), replicas)


def _weight_of(one: Weighted) -> Any:
    return round(1 / one.weight) if one.counts and isinstance(one.weight, float) else ""


def _refuse(one: Weighted, counts: list[Any], replicas: int) -> None:
    known, weight = all(isinstance(each, int) for each in counts), one.weight
    # A weight's own decay is no sum over rows; of one element that is nearly always so.
    if known and max(counts) < 2 and not _reads_rows(one.elements):
        return
    if known and isinstance(weight, float):
        whole = sum(counts) * replicas / len(counts)
        if math.isclose(1 / weight, whole, rel_tol=1e-5):
            raise ValueError(
                _said(f"a sum over this tower's {counts[0]} times 1/{whole:g}", replicas)
            )
    if not _reached.can_merge():
        # No other tower can be met here, and what XLA compiles checks nothing while it runs.
        is_own = known and isinstance(weight, float) and round(1 / weight) <= counts[0]
        if not is_own and tf.is_symbolic_tensor(one.elements) and _reads_rows(one.elements):
            what = "a sum divided by a count, which cannot be compared with those of other replicas here"
            raise ValueError(_said(what, replicas))
        return
    if known and isinstance(weight, float):
        return
    whole = tf.add_n([tf.cast(each, tf.float64) for each in counts]) * (replicas / len(counts))
    is_global = tf.abs(tf.cast(weight, tf.float64) * whole - 1.0) < 1e-5
    if not _reads_rows(one.elements):
        largest = tf.reduce_max([tf.cast(each, tf.int64) for each in counts])
        is_global = tf.logical_and(is_global, largest > 1)
    said = "a sum divided by the number of elements that all replicas have together"
    with tf.device("/cpu:0"):
        tf.debugging.assert_equal(is_global, False, _said(said, replicas))


def _reads_rows(elements: Any) -> bool:
    return not tf.is_symbolic_tensor(elements) or _behind.reads_inputs([elements])


def _said(what: str, replicas: int) -> str:
    return (
        f"The loss is {what}, and there are {replicas} replicas. If that divides by the examples of all of them, it is a "
        "share of the global loss: let global_batch_loss make it, or write share=True. share=False says that it is a "
        "tower's own loss, whose gradients are averaged."
    )
