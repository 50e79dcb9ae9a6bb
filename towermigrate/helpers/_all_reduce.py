"""Numbers added up over the replicas: the denominators of shares, the sums of metrics."""

from typing import Any

import tensorflow as tf

from towermigrate.helpers import _keras3
from towermigrate.helpers._reached import may_meet


def all_reduced(value: Any, what: str, instead: str) -> Any:
    """The sum of every replica's `value`: one all-reduce, without a gradient.

    Args:
      value: a float tensor of the same shape on every replica.
      what: what calls this, for the error.
      instead: what to write where replicas cannot meet, for the error.

    Raises:
      ValueError: called outside of a replica, or in a function of its own inside of one.
    """
    _keras3.watch()
    value = tf.stop_gradient(value)
    context = tf.distribute.get_replica_context()
    if context is None:
        raise ValueError(
            f"{what} was called outside of a replica; call it in the function that strategy.run "
            "gets."
        )
    strategy = context.strategy
    if strategy.num_replicas_in_sync == 1:
        return value
    if not may_meet():
        raise ValueError(
            f"{what}: {instead} It adds up over the replicas; replicas cannot meet inside of a tf.function of "
            "their own (jit_compile, tf.cond, a loop) in the one that strategy.run gets."
        )
    if tf.executing_eagerly() or tf.compat.v1.get_default_graph().building_function:
        return tf.stop_gradient(context.all_reduce(tf.distribute.ReduceOp.SUM, value))
    # In a plain TF1 graph all_reduce does not find the other replicas' values.
    return context.merge_call(
        lambda strategy, one: strategy.reduce(tf.distribute.ReduceOp.SUM, one, axis=None),
        args=(value,),
    )
