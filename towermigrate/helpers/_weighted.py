"""What the gradient of a sum, a mean or a product shows of a loss: how many elements there are, and their weight."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers import _behind, _divisors

REDUCTIONS = ("Sum", "Mean", "L2Loss")
CONTRACTIONS = ("MatMul", "BatchMatMulV2", "Einsum")
QUOTIENTS = ("RealDiv", "DivNoNan")
PRODUCTS = ("Mul",)
SEGMENTS = ("SegmentSum", "SegmentSumV2", "UnsortedSegmentSum")
PARTS = ("Unpack",)
_VARIABLES = frozenset(["ReadVariableOp", "ResourceGather", "VariableV2"])
_FORMS = ("ExpandDims", "Reshape", "Squeeze")
# Through these a number stays what it is for each element.
_SAME = frozenset("BroadcastTo Cast ExpandDims Identity Reshape Squeeze Tile".split())


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


def with_chain(
    kind: str, op: Any, upstream: Sequence[Any], eager: _divisors.Eager
) -> Weighted | None:
    """What `_seen` saw, and what its weight was divided by; that alone where the weight is no single number."""
    one = _seen(kind, op, upstream)
    if any(each is None for each in upstream):
        return one
    last = upstream[0]
    chain = _divisors.in_graph(last) if tf.is_symbolic_tensor(last) else eager.of(last)
    if kind in PRODUCTS + QUOTIENTS and last.shape.rank == 0:
        return _of_one_number(kind, op, last, chain)
    if kind in PRODUCTS + QUOTIENTS:
        taken = _rows_and_number(kind, op, last)
        if taken is None:
            return one
        if chain.is_of_rows:
            return None  # half of each square, say, under a mean
        if one is None and not _is_of_losses(last, chain, eager):
            return None
        rows, number = taken
        last_one = _divisors.Divisor(number, kind in QUOTIENTS)
        chain = replace(chain, divisors=(*chain.divisors, last_one))
        one = one or Weighted(_counts(rows), None, rows)
    if one is not None:
        return replace(one, chain=chain)
    if not (chain.divisors or chain.openings) or kind in SEGMENTS:
        return None
    if kind in PARTS:
        is_one = all(each.shape.rank == 0 for each in upstream)
        return Weighted((len(upstream),), None, None, chain) if is_one else None
    rows = op.inputs[0]
    if kind in CONTRACTIONS:
        last = _plain(last)
    is_one = last.shape.num_elements() == 1 if kind in CONTRACTIONS else last.shape.rank == 0
    if rows is None or not is_one:
        return None
    if kind == "Mean":
        return Weighted((), None, rows, chain)
    counts = _counts(rows)[: 1 if kind in CONTRACTIONS else None]
    return Weighted(counts, None, rows, chain) if counts else None


def _is_of_losses(upstream: Any, chain: _divisors.Chain, eager: _divisors.Eager) -> bool:
    """Whether what a derivative that is no single number came by are the losses of rows, with weights, and no layer of a model."""
    if not tf.is_symbolic_tensor(upstream):
        return eager.is_linear(upstream)
    return chain.is_linear and not _behind.has_type(chain.factors, _VARIABLES)


def _of_one_number(kind: str, op: Any, upstream: Any, chain: _divisors.Chain) -> Weighted | None:
    """In a graph: one number made of rows in whatever way, divided by another; and how many rows its data has."""
    if not tf.is_symbolic_tensor(upstream):
        return None
    for place in (1,) if kind in QUOTIENTS else (0, 1):
        whole, divisor = op.inputs[1 - place], _divisors.constant(op.inputs[place])
        if not divisor or whole.op.type == "Mean" or whole.shape.rank != 0:
            continue
        number = divisor if kind in QUOTIENTS else 1 / divisor
        counts = tuple(each for each in _behind.rows_of_sources(whole) if each > 1)
        if number < 2 or not counts:
            continue
        last_one = _divisors.Divisor(number, kind in QUOTIENTS)
        return Weighted(counts, None, whole, replace(chain, divisors=(*chain.divisors, last_one)))
    return None


def _seen(kind: str, op: Any, upstream: Sequence[Any]) -> Weighted | None:
    if kind in PARTS:
        return _added(op, upstream)
    if kind in SEGMENTS:
        return _summed_in_segments(op, upstream[0])
    if kind in REDUCTIONS:
        return _reduced(kind, op, upstream[0])
    if kind in CONTRACTIONS:
        return _contracted(op, upstream[0])
    return _scaled(kind, op, upstream[0])


def _reduced(kind: str, op: Any, upstream: Any) -> Weighted | None:
    """A sum or a mean that is one number."""
    if upstream.shape.rank != 0:
        return None
    weight = _one_number(upstream)
    if kind == "Mean":
        is_known = isinstance(weight, float) or (
            weight is not None and comes_from(weight, _is_size)
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
    places = (1,) if kind in QUOTIENTS else (0, 1)
    constant = getattr(op, "skip_input_indices", None) or ()
    for place in places:
        scalar, rows = op.inputs[place], op.inputs[1 - place]
        if scalar is None or rows is None or scalar.shape.rank != 0 or not rows.shape.rank:
            continue
        # In a graph only a constant is known; eagerly a variable is a number too.
        if kind in PRODUCTS and place not in constant and not tf.is_symbolic_tensor(scalar):
            continue
        factor = _one_number(scalar)
        if isinstance(factor, float) and factor:
            return rows, factor if kind in QUOTIENTS else 1 / factor
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
    rows = tf.compat.dimension_value(shape[0])
    return (elements, tf.shape(tensor)[0] if rows is None else rows)


def _one_number(tensor: Any) -> Any:
    """What all elements are without their sign, which says nothing of a count.

    A float, or the scalar tensor that says so while the step runs; None if they differ.
    """
    if isinstance(tensor, tf.IndexedSlices):
        return None  # what rows that were looked up are multiplied by
    if not tf.is_symbolic_tensor(tensor):
        values = np.asarray(tensor.numpy())  # NumPy itself takes no scalar tensor of bfloat16
        if not values.size:
            return 1.0  # of no rows, as of those of the other towers if they are added up
        return float(abs(values.flat[0])) if (values == values.flat[0]).all() else None
    value = static_number(tensor)
    if value is not None or tensor.shape.rank != 0:
        return None if value is None else abs(value)
    return tensor if comes_from(tensor, is_count) else None


def static_number(tensor: Any) -> float | None:
    """The number that every element of a graph's tensor is, as far as that shows."""
    factor = 1.0
    while True:
        operation = tensor.op
        if operation.type in _SAME:
            tensor = operation.inputs[0]
        elif operation.type == "Neg":
            factor, tensor = -factor, operation.inputs[0]
        elif operation.type in ("OnesLike", "ZerosLike"):
            return factor if operation.type == "OnesLike" else None
        elif operation.type == "Fill":
            tensor = operation.inputs[1]
        elif operation.type in PRODUCTS + QUOTIENTS:
            left, right = operation.inputs
            other = _constant(right)
            if other is None and operation.type in PRODUCTS:
                (left, right), other = (right, left), _constant(left)
            if not other:
                return None
            factor = factor * other if operation.type in PRODUCTS else factor / other
            tensor = left
        else:
            value = _constant(tensor)
            return None if value is None else factor * value


def _constant(tensor: Any) -> float | None:
    value = static_value(tensor)
    if value is None or not np.size(value) or not (value == value.flat[0]).all():
        return None
    return float(value.flat[0])


def static_value(tensor: Any) -> Any:
    """As `tf.get_static_value`, also of one number of a shape that is known."""
    operation = getattr(tensor, "op", None)
    if operation is not None and operation.type == "Cast":
        return static_value(operation.inputs[0])
    if operation is not None and operation.type == "StridedSlice" and tensor.shape.rank == 0:
        whole, begin = (tf.get_static_value(each) for each in operation.inputs[:2])
        if whole is not None and begin is not None and whole.ndim == 1:
            return whole[begin[0]]
    return tf.get_static_value(tensor)


def comes_from(tensor: Any, is_one: Callable[[Any], bool]) -> bool:
    """Whether a number that only a run knows comes from an operation of a kind, by products and quotients."""
    waiting, left = [tensor], 50
    while waiting and left:
        left -= 1
        operation = waiting.pop().op
        if is_one(operation):
            return True
        if operation.type in _SAME or operation.type in PRODUCTS + QUOTIENTS + ("StridedSlice",):
            waiting += operation.inputs
    return False


def is_count(operation: Any) -> bool:
    return bool(operation.type == "Cast" and operation.inputs[0].dtype.is_integer)


def _is_size(operation: Any) -> bool:
    return operation.type in ("Shape", "Size")
