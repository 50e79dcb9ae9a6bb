"""Counts that are to be those of all replicas, and are this replica's own: the loss would be the sum of the replicas' means."""

from typing import Any

import tensorflow as tf

from towermigrate.helpers import _behind
from towermigrate.helpers._reached import notes_of_towers

_SAME_NUMBER = frozenset("Cast Identity Reshape Squeeze StopGradient".split())


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_own_rows(rows: Any, size: Any, what: str, *, at_least: bool = True) -> None:
    """Raise where the size of the global batch is certain not to be it: less than the replicas' rows, or this one's own.

    Args:
      rows: `[b, …]`, what is divided by the size.
      size: a number or a scalar tensor.
      what: its name, for the error.
      at_least: whether each example has one row, so that a size less than the rows of all is none.

    Raises:
      ValueError: so it is, and the replicas are several.
    """
    if not _is_one_of_several() or not tf.is_symbolic_tensor(rows) or not rows.shape.rank:
        return
    number = _number(size)
    if number is not None:
        towers = notes_of_towers(tf.compat.dimension_value(rows.shape[0]))
        known = [each for each in towers if each is not None]
        is_own = set(known) == {number} and number in _behind.rows_of_sources(rows)
        if sum(known) > number and (at_least or len(known) > 1 and is_own):
            raise ValueError(
                f"{what} is {number:g}, but the replicas have {' + '.join(map(str, known))} examples. It is the number of "
                "examples on all replicas together."
            )
    elif tf.is_symbolic_tensor(size) and _behind.is_size(size):
        counted = _without_casts(size)
        while counted.op.type in ("StridedSlice", "Shape", "Size"):
            counted = counted.op.inputs[0]
        if _are_of_the_same_rows(counted, rows):
            raise ValueError(
                f"{what} is how many examples this replica has ({size.name}). It is the number of examples on all replicas "
                "together: leave it out, and it is added up over them."
            )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_own_sum(weights: Any, total: Any, what: str) -> None:
    """Raise where a sum of weights of all replicas is certain to be the sum of this replica's own; a ValueError."""
    if not (_is_one_of_several() and all(map(tf.is_symbolic_tensor, (weights, total)))):
        return
    summed = _without_casts(total)
    if summed.op.type == "Sum" and _are_of_the_same_rows(summed.op.inputs[0], weights):
        raise ValueError(
            f"{what} is the sum of this replica's own weights ({total.name}). It is that of all replicas: leave it out, and "
            "it is added up over them."
        )


def _is_one_of_several() -> bool:
    if not tf.distribute.has_strategy() or tf.distribute.get_replica_context() is None:
        return False
    replicas: int = tf.distribute.get_strategy().num_replicas_in_sync
    return replicas > 1


def _number(size: Any) -> float | None:
    """A size that is known where the program is built; of rows that are known `tf.shape(x)[0]` too."""
    if tf.is_symbolic_tensor(size) and _behind.is_size(size):
        item = _without_casts(size).op
        shape: Any = tf.get_static_value(item.inputs[0]) if item.type == "StridedSlice" else None
        place: Any = tf.get_static_value(item.inputs[1]) if item.type == "StridedSlice" else None
        known = shape is not None and place is not None and place.size == 1
        if known and item.get_attr("shrink_axis_mask") == 1:
            return float(shape[int(place[0])])
    value = tf.get_static_value(size)
    return float(value) if value is not None and getattr(value, "size", 1) == 1 else None


def _without_casts(number: Any) -> Any:
    while number.op.type in _SAME_NUMBER:
        number = number.op.inputs[0]
    return number


def _are_of_the_same_rows(counted: Any, rows: Any) -> bool:
    """Whether what was counted is of the data that `rows` are made of, whole where they are whole, and of no other replica's."""
    mine, theirs = _behind.rows_of([counted]), _behind.rows_of([rows])
    parts = {each for each in theirs if isinstance(each[0], str)}
    return bool(mine) and parts <= mine <= theirs and not _behind.is_reduced_by_hand(counted)
