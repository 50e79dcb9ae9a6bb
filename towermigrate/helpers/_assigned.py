"""Variables that a program updates itself in a replica: their `aggregation` puts the replicas' values together.

`assign`, `assign_add` and `assign_sub` of the variables of several replicas, public methods, are watched: a part of a gradient or
a share is to be summed, an average is the same on all replicas.
"""

import functools
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import values as _values

from towermigrate.helpers import _addends, _shares

_WATCHED = "_towermigrate_watched"
_METHODS = ("assign", "assign_add", "assign_sub")
_PARTLY = {
    "NONE": "lets each replica assign its own copy",
    "MEAN": "takes the mean of what the replicas assign",
    "ONLY_FIRST_REPLICA": "takes what the first replica assigns",
}


def watch() -> None:
    """From now on, refuse in a replica to assign what the variable's aggregation would make wrong."""
    for name in ("DistributedVariable", "MirroredVariable", "SyncOnReadVariable"):
        kind = getattr(_values, name, None)
        for method in _METHODS:
            original = vars(kind).get(method) if kind is not None else None
            if original is not None and not hasattr(original, _WATCHED):
                setattr(kind, method, _checking(original, method))


def _checking(original: Any, name: str) -> Any:
    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def assign(variable: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        if tf.is_tensor(value) and _is_in_one_of_several():
            _refuse(variable, value, name)
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
    if how == "SUM" and name != "assign" and _addends.holds_whole(value, replicas):
        raise ValueError(
            f"{said} adds up what the replicas assign, and got what was put together of all of them already: it would "
            "count once for each. Make the variable with aggregation=tf.VariableAggregation.MEAN."
        )
