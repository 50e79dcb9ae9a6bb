"""Losses that were divided by a global count by hand: how they show while a tape takes their gradient.

A sum over a tower's rows times 1/(the rows of all towers) is a share of the global loss, and looks like any other
number. What tells is its derivative by each of the rows, which the tape passes on its way: 1/(the rows of all towers).

Where a helper takes the gradient it watches. Gradients taken before show it later: in a graph what came by is marked
on operations, and found by walking back from the gradient; in eager mode the thread remembers it.
"""

import collections
import contextlib
import functools
import itertools
import math
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops as _ops

from towermigrate.helpers import _behind, _reached

_REDUCTIONS = ("Sum", "Mean", "L2Loss")
_CONTRACTIONS = ("MatMul", "BatchMatMulV2", "Einsum")
_QUOTIENTS = ("RealDiv", "DivNoNan")
_PRODUCTS = ("Mul",)
_SEGMENTS = ("SegmentSum", "SegmentSumV2", "UnsortedSegmentSum")
_PARTS = ("Unpack",)
_FORMS = ("ExpandDims", "Reshape", "Squeeze")
# Through these a number stays what it is for each element.
_SAME = frozenset("BroadcastTo Cast ExpandDims Identity Reshape Squeeze Tile".split())
_WATCHED = "_towermigrate_watched"
# On gradients taken where nobody watched: the key of what came by.
_CAME_BY = "_towermigrate_came_by"


@dataclass(frozen=True)
class Weighted:
    """Elements that a loss adds up, all with one weight.

    Attributes:
      counts: what may be meant by the number of rows: how many elements there are, and how many rows; a tensor where
        that is known only while the step runs. Empty for a mean.
      weight: the derivative of the loss by each element, or by the mean; a tensor likewise.
      elements: the elements, or the mean; None of what an eager thread remembers, and where their sum keeps none.
    """

    counts: tuple[Any, ...]
    weight: Any
    elements: Any


class _Watcher(threading.local):
    """Of this thread: what a helper sees now, and what came by unwatched, in eager mode, the newest of it."""

    found: list[Weighted] | None = None

    def __init__(self) -> None:
        self.passed: collections.deque[Weighted] = collections.deque(maxlen=1000)


_watcher = _Watcher()
_numbers = itertools.count()
# Of this process: a function that was saved by another one has its marks.
_PROCESS = uuid.uuid4().hex
# Held by the graphs that they came by in.
_known: weakref.WeakValueDictionary[str, Weighted] = weakref.WeakValueDictionary()
_HELD = "_towermigrate_weighted"


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def watch_gradients() -> None:
    """Let the gradients of sums and divisions tell who watches; otherwise they are as they were."""
    registered = _ops._gradient_registry._registry
    for kind in (*_REDUCTIONS, *_CONTRACTIONS, *_QUOTIENTS, *_PRODUCTS, *_SEGMENTS, *_PARTS):
        entry = registered.get(kind)
        if entry is None:  # of a newer TensorFlow
            continue
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


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def of_gradients(grads: Iterable[Any]) -> list[Weighted]:
    """The candidates that gradients came by which nobody watched; in eager mode all of this thread's since the last call."""
    passed: list[Weighted] = list(_watcher.passed)
    forget_gradients()
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return []
    keys = [key for key in _behind.values_of(_CAME_BY, grads) if key in _known]
    passed += [_known[key] for key in sorted(keys, key=lambda key: int(key.rpartition("/")[2]))]
    found: list[Weighted] = candidates(passed)
    return found


def forget_gradients() -> None:
    """Let eager gradients be what they were taken for."""
    _watcher.passed.clear()


def _telling(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(op: Any, *upstream: Any) -> Any:
        found = _watcher.found
        if upstream[0] is None or (found is None and not _is_one_of_several()):
            return original(op, *upstream)
        one = _seen(kind, op, upstream)
        grads = original(op, *upstream)
        if one is None:
            return grads
        if found is not None:
            found.append(one)
        elif tf.is_symbolic_tensor(upstream[0]):
            key = _kept(one, upstream[0].graph)
            if not isinstance(grads, (list, tuple)):
                return _behind.marked(grads, _CAME_BY, key)
            return [g if g is None else _behind.marked(g, _CAME_BY, key) for g in grads]
        else:
            _watcher.passed.append(replace(one, elements=None))
        return grads

    setattr(gradient, _WATCHED, True)
    return gradient


def _is_one_of_several() -> bool:
    return (
        tf.distribute.has_strategy()
        and tf.distribute.get_replica_context() is not None
        and tf.distribute.get_strategy().num_replicas_in_sync > 1
    )


def _kept(one: Weighted, graph: Any) -> str:
    key = f"{_PROCESS}/{next(_numbers)}"
    if not hasattr(graph, _HELD):
        setattr(graph, _HELD, [])
    getattr(graph, _HELD).append(one)
    _known[key] = one
    return key


def _seen(kind: str, op: Any, upstream: Sequence[Any]) -> Weighted | None:
    if kind in _PARTS:
        return _added(op, upstream)
    if kind in _SEGMENTS:
        return _summed_in_segments(op, upstream[0])
    if kind in _REDUCTIONS:
        return _reduced(kind, op, upstream[0])
    if kind in _CONTRACTIONS:
        return _contracted(op, upstream[0])
    return _scaled(kind, op, upstream[0])


def _reduced(kind: str, op: Any, upstream: Any) -> Weighted | None:
    """A sum or a mean that is one number."""
    if upstream.shape.rank != 0:
        return None
    weight = _one_number(upstream)
    if kind == "Mean":
        is_known = isinstance(weight, float) or (
            weight is not None and _comes_from(weight, _is_size)
        )
        return Weighted((), weight, op.inputs[0]) if is_known else None
    counts = _counts(op.inputs[0])
    return None if weight is None or not counts else Weighted(counts, weight, op.inputs[0])


def _contracted(op: Any, upstream: Any) -> Weighted | None:
    """A product of matrices that is one number: a weighted sum."""
    while tf.is_symbolic_tensor(upstream) and upstream.op.type in _FORMS:
        upstream = upstream.op.inputs[0]
    if upstream.shape.num_elements() != 1 or op.inputs[0] is None:
        return None
    weight = _one_number(upstream)
    size: Any = op.inputs[0].shape.num_elements()
    count = tf.size(op.inputs[0]) if size is None else size
    return None if weight is None else Weighted((count,), weight, op.inputs[0])


def _added(op: Any, upstream: Sequence[Any]) -> Weighted | None:
    """Rows taken apart, and added up one by one."""
    if any(each is None or each.shape.rank != 0 for each in upstream):
        return None
    weights = {_one_number(each) for each in upstream if not tf.is_symbolic_tensor(each)}
    weights |= {static_number(each) for each in upstream if tf.is_symbolic_tensor(each)}
    (weight,) = weights if len(weights) == 1 else (None,)
    return None if weight is None else Weighted((len(upstream),), weight, None)


def _summed_in_segments(op: Any, upstream: Any) -> Weighted | None:
    """The sums of rows that belong together; only which row belongs where is kept."""
    weight, segments = _one_number(upstream), op.inputs[1]
    return Weighted(_counts(segments), weight, None) if isinstance(weight, float) else None


def _scaled(kind: str, op: Any, upstream: Any) -> Weighted | None:
    """The losses of the rows times or over a number that nothing is trained by."""
    if not upstream.shape.rank:
        return None
    places = (1,) if kind in _QUOTIENTS else (0, 1)
    constant = getattr(op, "skip_input_indices", None) or ()
    for place in places:
        scalar, rows = op.inputs[place], op.inputs[1 - place]
        if scalar is None or rows is None or scalar.shape.rank != 0 or not rows.shape.rank:
            continue
        # In a graph only a constant is known; eagerly a variable is a number too.
        if kind in _PRODUCTS and place not in constant and not tf.is_symbolic_tensor(scalar):
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
    value = static_number(tensor)
    if value is not None or tensor.shape.rank != 0:
        return value
    return tensor if _comes_from(tensor, _is_count) else None


def static_number(tensor: Any) -> float | None:
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
    value = _value(tensor)
    if value is None or not np.size(value) or not (value == value.flat[0]).all():
        return None
    return float(value.flat[0])


def _value(tensor: Any) -> Any:
    """As `tf.get_static_value`, also of one number of a shape that is known."""
    operation = getattr(tensor, "op", None)
    if operation is not None and operation.type == "Cast":
        return _value(operation.inputs[0])
    if operation is not None and operation.type == "StridedSlice" and tensor.shape.rank == 0:
        whole, begin = (tf.get_static_value(each) for each in operation.inputs[:2])
        if whole is not None and begin is not None and whole.ndim == 1:
            return whole[begin[0]]
    return tf.get_static_value(tensor)


def _comes_from(tensor: Any, is_one: Callable[[Any], bool]) -> bool:
    """Whether a number that only a run knows comes from an operation of a kind, by products and quotients."""
    waiting, left = [tensor], 50
    while waiting and left:
        left -= 1
        operation = waiting.pop().op
        if is_one(operation):
            return True
        if operation.type in _SAME or operation.type in _PRODUCTS + _QUOTIENTS + ("StridedSlice",):
            waiting += operation.inputs
    return False


def _is_count(operation: Any) -> bool:
    return bool(operation.type == "Cast" and operation.inputs[0].dtype.is_integer)


def _is_size(operation: Any) -> bool:
    return operation.type in ("Shape", "Size")


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
    towers: Sequence[list[Weighted]],
    mine: list[Weighted],
    replicas: int,
    instead: str = "let global_batch_loss make it, or write share=True",
) -> None:
    """Raise where the weight of elements is 1/(those of all replicas): the loss is a share of the global one.

    Where only a run knows the numbers, the run raises `tf.errors.InvalidArgumentError`.

    Args:
      towers: the candidates of each tower, as far as they can be compared.
      mine: this tower's.
      replicas: the number of replicas.
      instead: what to write if it is one.

    Raises:
      ValueError: they are known, or cannot be compared at all.
    """
    said = functools.partial(_said, replicas=replicas, instead=instead)
    if replicas == 1:
        return
    alike = {tuple((len(one.counts), _weight_of(one)) for one in tower) for tower in towers}
    for of_towers in zip(*(towers if len(alike) == 1 else [mine]), strict=True):
        if not of_towers[0].counts:
            _refuse_means(list(of_towers), replicas, said)
        for counts in zip(*(one.counts for one in of_towers), strict=True):
            _refuse(list(of_towers), list(counts), replicas, said)


def _weight_of(one: Weighted) -> Any:
    return round(1 / one.weight) if one.counts and isinstance(one.weight, float) else ""


def _refuse(
    ones: list[Weighted], counts: list[Any], replicas: int, said: Callable[[str], str]
) -> None:
    one = ones[0]
    known, weight = all(isinstance(each, int) for each in counts), one.weight
    # A weight's own decay is no sum over rows; of one element that is nearly always so.
    if known and max(counts) < 2 and not _reads_rows(one.elements):
        return
    if tf.is_symbolic_tensor(one.elements) and _behind.is_of_variables([one.elements]):
        return
    if known and isinstance(weight, float):
        whole = sum(counts) * replicas / len(counts)
        if math.isclose(1 / weight, whole, rel_tol=1e-5):
            raise ValueError(said(f"a sum over this tower's {counts[0]} times 1/{whole:g}"))
    if not (_reached.can_merge() and all(map(_is_here, (weight, *counts)))):
        # No other tower can be met there, and what XLA compiles checks nothing while it runs.
        is_own = known and isinstance(weight, float) and round(1 / weight) <= counts[0]
        if not is_own and not tf.executing_eagerly() and _reads_rows(one.elements):
            what = "a sum divided by a count, which cannot be compared with those of other replicas here"
            raise ValueError(said(what))
        return
    if known and isinstance(weight, float):
        return
    whole = tf.add_n([tf.cast(each, tf.float64) for each in counts]) * (replicas / len(counts))
    is_global = tf.abs(tf.cast(weight, tf.float64) * whole - 1.0) < 1e-5
    weights = [tf.cast(each.weight, tf.float64) for each in ones]
    if all(
        map(_is_here, weights)
    ):  # a global count is the same on all; those of tokens may meet it by chance
        apart = tf.reduce_max(weights) - tf.reduce_min(weights)
        is_global = tf.logical_and(is_global, apart < 1e-5 * tf.reduce_max(weights))
    if not _reads_rows(one.elements):
        largest = tf.reduce_max([tf.cast(each, tf.int64) for each in counts])
        is_global = tf.logical_and(is_global, largest > 1)
    what = "a sum divided by the number of elements that all replicas have together"
    with tf.device("/cpu:0"):
        tf.debugging.assert_equal(is_global, False, said(what))


def _is_here(number: Any) -> bool:
    """Whether an operation that is made now can take it: not what is inside of another function."""
    return not tf.is_symbolic_tensor(number) or number.graph is tf.compat.v1.get_default_graph()


def _refuse_means(ones: list[Weighted], replicas: int, said: Callable[[str], str]) -> None:
    """Of means: their weights add up to one, as this tower's rows over those of all do."""
    what = "a mean times this tower's part of all examples"
    weights = [one.weight for one in ones]
    can_merge = _reached.can_merge() and all(map(_is_here, weights))
    if all(isinstance(weight, float) for weight in weights):
        if math.isclose(sum(weights) * replicas / len(weights), 1, rel_tol=1e-6):
            equal = math.isclose(weights[0], 1 / replicas, rel_tol=1e-6)
            raise ValueError(said(f"a mean times 1/{replicas}" if equal else what))
        if not can_merge and _may_be_a_part(ones[0]):
            raise ValueError(
                said(f"{what}, which cannot be compared with those of other replicas here")
            )
    elif can_merge:
        whole = tf.add_n([tf.cast(weight, tf.float64) for weight in weights])
        is_global = tf.abs(whole * (replicas / len(weights)) - 1.0) < 1e-5
        with tf.device("/cpu:0"):
            tf.debugging.assert_equal(is_global, False, said(what))


def _may_be_a_part(one: Weighted) -> bool:
    """Whether a weight of a mean is its number of rows over another whole number, larger than one but no multiple."""
    shape = getattr(one.elements, "shape", None)
    rows = shape[0] if shape is not None and shape.rank else None
    if rows is None or not tf.is_symbolic_tensor(one.elements):
        return False
    whole = rows / one.weight if one.weight else 0.0
    return (
        whole > rows
        and math.isclose(whole, round(whole), rel_tol=1e-5)
        and round(whole) % rows != 0
    )


def _reads_rows(elements: Any) -> bool:
    return not tf.is_symbolic_tensor(elements) or _behind.reads_inputs([elements])


def _said(what: str, replicas: int, instead: str) -> str:
    return (
        f"The loss is {what}, and there are {replicas} replicas. If that divides by the examples of all of them, it is a "
        f"share of the global loss: {instead}. share=False says that it is a tower's own loss, whose gradients are "
        "averaged."
    )
