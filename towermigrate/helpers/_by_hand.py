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

from towermigrate.helpers import _behind, _divisors, _reached

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
      chain: what the weight was divided by.
      is_hidden: whether the weight does not tell, and what it was divided by may.
    """

    counts: tuple[Any, ...]
    weight: Any
    elements: Any
    chain: _divisors.Chain = _divisors.Chain()
    is_hidden: bool = False


class _Watcher(threading.local):
    """Of this thread: what a helper sees now, and what came by unwatched, in eager mode, the newest of it."""

    found: list[Weighted] | None = None

    def __init__(self) -> None:
        self.passed: collections.deque[Weighted] = collections.deque(maxlen=1000)
        self.eager = _divisors.Eager()


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
    kinds = (*_REDUCTIONS, *_CONTRACTIONS, *_QUOTIENTS, *_PRODUCTS, *_SEGMENTS, *_PARTS)
    for kind in (*kinds, *_divisors.FORMS):
        entry = registered.get(kind)
        if entry is None:  # of a newer TensorFlow
            continue
        if not hasattr(entry["type"], _WATCHED):
            entry["type"] = _telling(kind, entry["type"])


@contextlib.contextmanager
def since() -> Iterator[list[Weighted]]:
    """What this thread's eager gradients come by in this block."""
    before = len(_watcher.passed)
    found: list[Weighted] = []
    try:
        yield found
    finally:
        found += itertools.islice(_watcher.passed, before, None)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def shows_a_count(found: Sequence[Weighted], replicas: int) -> bool:
    """Whether something is known to be divided by the rows of all replicas, if they have as many."""
    known = [
        one
        for one in found
        if all(isinstance(each, int) for each in one.counts)
        and isinstance(one.weight, float)
        and one.counts
    ]
    ones = [one for one in candidates(known, replicas) if not one.is_hidden]
    try:
        for one in ones:
            for count in one.counts:
                _refuse([one], [count], replicas, str)
    except ValueError:
        return True
    return False


@contextlib.contextmanager
def watch() -> Iterator[list[Weighted]]:
    """What the gradients that this thread takes in this block come by."""
    outer, _watcher.found = _watcher.found, []
    try:
        yield _watcher.found
    finally:
        _watcher.found = outer
        _watcher.eager.clear()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def of_gradients(grads: Iterable[Any], replicas: int | None = None) -> list[Weighted]:
    """The candidates that gradients came by which nobody watched; in eager mode all of this thread's since the last call."""
    grads = list(grads)
    passed = [*_watcher.passed, *marked(grads)]
    replicas = replicas or tf.distribute.get_strategy().num_replicas_in_sync
    if replicas == 1:
        passed = []
    passed = _with_outside(passed, grads)
    forget_gradients()
    found: list[Weighted] = candidates(passed, replicas)
    return found


def forget_gradients() -> None:
    """Let eager gradients be what they were taken for."""
    _watcher.passed.clear()
    _watcher.eager.clear()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def with_functions(found: list[Weighted], grads: Iterable[Any]) -> list[Weighted]:
    """What `watch` saw, with what came by in functions of their own, traced before, and stands outside of them."""
    passed = [one for one in _watcher.passed if one.chain.openings]
    for one in passed:
        _watcher.passed.remove(one)
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return found
    grads = list(grads)
    traced = [one for one in marked(grads) if one.chain.openings]
    return _with_outside([*found, *passed, *traced], grads)


def _with_outside(ones: list[Weighted], grads: list[Any]) -> list[Weighted]:
    """With the numbers too that are divided by outside of functions; eagerly all that were, as it is not seen by which."""
    if not any(one.chain.openings for one in ones):
        return ones
    every = _watcher.eager.every()
    calls = _behind.calls(grads)
    made = []
    for one in ones:
        if one.chain.openings:
            chain = _divisors.through_calls(one.chain, calls)
            more = [each for each in every if each not in chain.divisors]
            one = replace(one, chain=replace(chain, divisors=(*chain.divisors, *more)))
        made.append(one)
    return made


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def marked(grads: Iterable[Any]) -> list[Weighted]:
    """What is marked behind gradients."""
    keys = [key for key in _behind.values_of(_CAME_BY, grads) if key in _known]
    return [_known[key] for key in sorted(keys, key=lambda key: int(key.rpartition("/")[2]))]


def _telling(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(op: Any, *upstream: Any) -> Any:
        found = _watcher.found
        if upstream[0] is None or (found is None and not _is_one_of_several()):
            return original(op, *upstream)
        is_symbolic = tf.is_symbolic_tensor(upstream[0])
        one = None if kind in _divisors.FORMS else _with_chain(kind, op, upstream)
        grads = original(op, *upstream)
        is_in_eager = getattr(threading.current_thread(), "in_eager", False)
        if not is_symbolic:
            _watcher.eager.note(kind, op, upstream[0], grads)
        elif is_in_eager and kind in _PRODUCTS + _QUOTIENTS:
            _watcher.eager.note_traced(kind, op)
        if one is None:
            return grads
        if found is not None:
            found.append(one)
        elif is_symbolic:
            key = _kept(one, upstream[0].graph)
            if one.chain.openings and is_in_eager:
                _watcher.passed.append(one)  # what the function returns eagerly has no graph
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


def _with_chain(kind: str, op: Any, upstream: Sequence[Any]) -> Weighted | None:
    """What `_seen` saw, and what its weight was divided by; that alone where the weight is no single number."""
    one = _seen(kind, op, upstream)
    if any(each is None for each in upstream):
        return one
    last = upstream[0]
    chain = _divisors.in_graph(last) if tf.is_symbolic_tensor(last) else _watcher.eager.of(last)
    if kind in _PRODUCTS + _QUOTIENTS:
        taken = _rows_and_number(kind, op, last)
        if taken is None:
            return one
        rows, number = taken
        last_one = _divisors.Divisor(number, kind in _QUOTIENTS)
        chain = replace(chain, divisors=(*chain.divisors, last_one))
        one = one or Weighted(_counts(rows), None, rows)
    if one is not None:
        return replace(one, chain=chain)
    if not (chain.divisors or chain.openings) or kind in _SEGMENTS:
        return None
    if kind in _PARTS:
        is_one = all(each.shape.rank == 0 for each in upstream)
        return Weighted((len(upstream),), None, None, chain) if is_one else None
    rows = op.inputs[0]
    if kind in _CONTRACTIONS:
        last = _plain(last)
    is_one = last.shape.num_elements() == 1 if kind in _CONTRACTIONS else last.shape.rank == 0
    if rows is None or not is_one:
        return None
    if kind == "Mean":
        return Weighted((), None, rows, chain)
    counts = _counts(rows)[: 1 if kind in _CONTRACTIONS else None]
    return Weighted(counts, None, rows, chain) if counts else None


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
    upstream = _plain(upstream)
    if upstream.shape.num_elements() != 1 or op.inputs[0] is None:
        return None
    weight = _one_number(upstream)
    size: Any = op.inputs[0].shape.num_elements()
    count = tf.size(op.inputs[0]) if size is None else size
    return None if weight is None else Weighted((count,), weight, op.inputs[0])


def _plain(upstream: Any) -> Any:
    """What was only given another form."""
    while tf.is_symbolic_tensor(upstream) and upstream.op.type in _FORMS:
        upstream = upstream.op.inputs[0]
    return upstream


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
    taken = _rows_and_number(kind, op, upstream)
    weight = None if taken is None else _one_number(upstream)
    if taken is None or not isinstance(weight, float):
        return None
    rows, number = taken
    return Weighted(_counts(rows), weight / number, rows)


def _rows_and_number(kind: str, op: Any, upstream: Any) -> tuple[Any, float] | None:
    """Rows, and the number that they are divided by."""
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
        factor = _one_number(scalar)
        if isinstance(factor, float) and factor:
            return rows, factor if kind in _QUOTIENTS else 1 / factor
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
def candidates(found: Sequence[Weighted], replicas: int) -> list[Weighted]:
    """Those of what `watch` saw that may be divided by a global count; the same on every replica that means the same."""
    means = [one for one in found if not one.counts and one.weight is not None]
    sums = [one for one in found if one.counts and _shows(one)]
    # Two halves of a loss look like shares on two replicas.
    plain = [*means, *sums] if len(means) == 1 else sums
    hidden = [one for one in found if one.counts and _divisors.may_count(one.chain.divisors)]
    every = [one for one in found if not one.counts]
    is_plain = len(every) == len(means) == 1
    if every and not is_plain and all(_is_over(replicas, one) for one in every):
        hidden.append(every[0])
    return [*plain, *(replace(one, is_hidden=True) for one in hidden)]


def _shows(one: Weighted) -> bool:
    return one.weight is not None and _may_be_a_mean(one.weight)


def _is_over(replicas: int, mean: Weighted) -> bool:
    """Whether a mean was divided by the number of replicas, and not only multiplied by the reciprocal."""
    return any(one.is_quotient and one.number == replicas for one in mean.chain.divisors)


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
    alike = {
        tuple((len(one.counts), _weight_of(one), one.is_hidden) for one in tower)
        for tower in towers
    }
    for of_towers in zip(*(towers if len(alike) == 1 else [mine]), strict=True):
        if of_towers[0].is_hidden:
            _refuse_hidden(list(of_towers), replicas, said)
            continue
        if not of_towers[0].counts:
            _refuse_means(list(of_towers), replicas, said)
        for counts in zip(*(one.counts for one in of_towers), strict=True):
            _refuse(list(of_towers), list(counts), replicas, said)


def _weight_of(one: Weighted) -> Any:
    is_number = one.counts and not one.is_hidden and isinstance(one.weight, float)
    return round(1 / one.weight) if is_number else ""


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


def _refuse_hidden(ones: list[Weighted], replicas: int, said: Callable[[str], str]) -> None:
    """Raise where a count of all towers' rows is among what the weight was divided by."""
    one = ones[0]
    divisors = one.chain.divisors
    if not one.counts:
        raise ValueError(said(f"made of means, each divided by {replicas}"))
    if any(each.is_reduced for each in divisors):
        raise ValueError(said("a sum divided by what was added up over the replicas"))
    if tf.is_symbolic_tensor(one.elements) and _behind.is_of_variables([one.elements]):
        return
    for counts in zip(*(each.counts for each in ones), strict=True):
        _refuse_divisors(ones, list(counts), replicas, said)


def _refuse_divisors(
    ones: list[Weighted], counts: list[Any], replicas: int, said: Callable[[str], str]
) -> None:
    one, divisors = ones[0], ones[0].chain.divisors
    known = all(isinstance(each, int) for each in counts)
    reads = _reads_rows(one.elements)
    if known and max(counts) < 2 and not reads:
        return
    numbers = _divisors.products(divisors)
    places = [
        place
        for place, each in enumerate(divisors)
        if not isinstance(each.number, float) and _comes_from(each.number, _is_count)
    ]
    unknown = [divisors[place].number for place in places]
    if known:
        whole = sum(counts) * replicas / len(counts)
        if any(math.isclose(each, whole, rel_tol=1e-5) for each in numbers):
            raise ValueError(said(f"a sum over this tower's {counts[0]}, divided by {whole:g}"))
        if not unknown:
            return
    if not reads or tf.executing_eagerly() and not one.chain.openings:
        return
    if not (_reached.can_merge() and all(map(_is_here, (*counts, *unknown)))):
        if any(map(_behind.has_size, unknown)) or not (unknown or numbers):
            return
        what = (
            "a sum divided by a count, which cannot be compared with those of other replicas here"
        )
        raise ValueError(said(what))
    if one.weight is not None and _may_be_a_mean(one.weight) and len(divisors) == 1:
        return  # the weight tells, and was looked at
    # A factor of a half is the usual one of squares.
    likely = [each for each in numbers if each > 2]
    if not unknown and not likely:
        return
    whole = tf.add_n([tf.cast(each, tf.float64) for each in counts]) * (replicas / len(counts))
    towers = [one.chain.divisors for one in ones if len(one.chain.divisors) == len(divisors)]
    found = [tf.abs(each / whole - 1.0) < 1e-5 for each in likely]
    for place in places:
        values = [tf.cast(each[place].number, tf.float64) for each in towers]
        if all(map(_is_here, values)):  # that of all rows is the same on all towers
            apart = tf.reduce_max(values) - tf.reduce_min(values)
            near = tf.abs(values[0] / whole - 1.0) < 1e-5
            found.append(tf.logical_and(near, apart < 1e-5 * tf.reduce_max(values)))
    is_global = tf.reduce_any(found)
    largest = tf.reduce_max([tf.cast(each, tf.int64) for each in counts])
    is_global = tf.logical_and(is_global, largest > 1)
    what = "a sum divided, among others, by the number of elements that all replicas have together"
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
