"""Variables that a program updates itself in a replica: their `aggregation` puts the replicas' values together.

`assign`, `assign_add` and `assign_sub` of the variables of several replicas, public methods, are watched: a part of a gradient or
a share is to be summed, an average is the same on all replicas. What else writes them is watched for towers (`_last_word`).
"""

import functools
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import values as _values

from towermigrate.helpers import _addends, _last_word, _shares

_WATCHED = "_towermigrate_watched"
_METHODS = ("assign", "assign_add", "assign_sub")
_OF_ROWS = tuple(f"scatter_{name}" for name in ("sub", "add", "mul", "div", "min", "max", "update"))
_PARTLY = {
    "NONE": "lets each replica assign its own copy",
    "MEAN": "takes the mean of what the replicas assign",
    "ONLY_FIRST_REPLICA": "takes what the first replica assigns",
}


def watch() -> None:
    """From now on, refuse in a replica to assign what the variable's aggregation would make wrong.

    Whatever writes a variable in a tower is noted.
    """
    for name in ("DistributedVariable", "MirroredVariable", "SyncOnReadVariable"):
        kind = getattr(_values, name, None)
        for method in (*_METHODS, *_OF_ROWS):
            original = vars(kind).get(method) if kind is not None else None
            if original is not None and not hasattr(original, _WATCHED):
                made = _checking(original, method) if method in _METHODS else _noting(original)
                setattr(kind, method, made)
    mirrored = _values.MirroredVariable
    if not hasattr(mirrored, "_lazy_read"):
        # What `tf.scatter_*` of TF1 end with; without it here, that of the replica's copy is called.
        mirrored._lazy_read = _noting(lambda self, *args: self._get()._lazy_read(*args))
    if not hasattr(mirrored.__getitem__, _WATCHED):
        mirrored.__getitem__ = _of_a_part(mirrored.__getitem__)


def _of_a_part(original: Any) -> Any:
    """What stands in for indexing: a part has an `assign` of its own, which writes the variable."""

    @functools.wraps(original)
    def part_of(variable: Any, key: Any) -> Any:
        part = original(variable, key)
        assign = getattr(part, "assign", None)
        if assign is not None:
            noting = _noting(lambda _, *args, **kwargs: assign(*args, **kwargs))
            part.assign = functools.partial(noting, variable)
        return part

    setattr(part_of, _WATCHED, True)
    return part_of


def _noting(original: Any) -> Any:
    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def written(variable: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_in_one_of_several():
            _last_word.note(variable)
        return original(variable, *args, **kwargs)

    setattr(written, _WATCHED, True)
    return written


def _checking(original: Any, name: str) -> Any:
    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def assign(variable: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_in_one_of_several():
            if tf.is_tensor(value):
                _refuse(variable, value, name)
            _last_word.note(variable)
        return original(variable, value, *args, **kwargs)

    setattr(assign, _WATCHED, True)
    return assign


def _is_in_one_of_several() -> bool:
    if not tf.distribute.has_strategy() or tf.distribute.get_replica_context() is None:
        return False
    return bool(tf.distribute.get_strategy().num_replicas_in_sync > 1)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _refuse(variable: Any, value: Any, name: str) -> None:
    how = str(variable.aggregation).rpartition(".")[2]
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    said = f"{variable.name}.{name}, with aggregation={how},"
    if how in _PARTLY:
        what = _shares.are_shares([value])
        if not what and not _addends.holds_part(value):
            return
        got = (
            f"what {what} returned, a share of the global loss" if what else "a part of a gradient"
        )
        raise ValueError(
            f"{said} got {got}, and {_PARTLY[how]}: the replicas' sum is the whole. Make the variable with "
            "aggregation=tf.VariableAggregation.SUM, or assign what average_gradients or all_reduce makes of it."
        )
    if how == "SUM":
        _addends.refuse_what_is_added(
            [value],
            said,
            "Put the parts together first, average_gradients(…, reduce='sum'), and make the variable with "
            "aggregation=tf.VariableAggregation.MEAN.",
        )
    if how == "SUM" and name != "assign" and _addends.holds_whole(value, replicas):
        raise ValueError(
            f"{said} adds up what the replicas assign, and got what was put together of all of them already: it would "
            "count once for each. Make the variable with aggregation=tf.VariableAggregation.MEAN."
        )
