"""What a tower found in a collection of TF1's graph: what all towers up to it had put there, or what its scope's name began."""

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers._reached import may_meet


def with_towers_before(values: Sequence[Any]) -> list[Any]:
    """This tower's values, and the sum of those of the towers before it, to be added up.

    A TF1 graph had one collection for all towers, which were built one after the other: `tf.add_n(
    tf.get_collection("losses"))` counted in tower `i` what the towers `0` to `i` had added. The average of such
    gradients counts the first of N towers N times and the last one once, which the gradients through this sum do too.

    Args:
      values: float tensors of one shape, the same on every replica. Call it in the function that `strategy.run` gets;
        outside of a replica there are no towers before.

    Returns:
      The values, and behind them one tensor more where there are several replicas: zeros in the first one. The gradient of
      their sum by a variable, summed over the replicas (as `tower_gradients` and optimizers do), is that of all of the
      towers' sums by it; by itself, that of one replica is no tower's of the TF1 graph.

    Raises:
      ValueError: called in a function of its own inside of a replica (`jit_compile`, `tf.cond`, a loop), where replicas
        cannot meet.

    Example:
      >>> strategy = tower_strategy(3, devices="cpu:3")
      >>> def tower(x):
      ...     return tf.add_n(with_towers_before([x[0], 2.0 * x[0]]))
      >>> totals = strategy.run(tower, args=shard_batch([1.0, 2.0, 4.0]))
      >>> [float(total) for total in each_tower(totals)]
      [3.0, 9.0, 21.0]

    Source: TF1's `tf.get_collection(key, scope=None)`.
    """
    values = list(values)
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1 or not values:
        return values
    if not may_meet():
        raise ValueError(
            "with_towers_before adds up over the replicas, and replicas cannot meet inside of a tf.function of their own "
            "(jit_compile, tf.cond, a loop) in the one that strategy.run gets."
        )
    with tf.name_scope("with_towers_before"):  # what the author has no names for takes none of his
        return [*values, _of_towers_before(tf.add_n(values), context)]


def _of_towers_before(own: Any, context: Any) -> Any:
    """The sum of the replicas' values up to this one's, which is left out."""
    towers = tf.range(context.num_replicas_in_sync)
    index = tf.cast(context.replica_id_in_sync_group, towers.dtype)

    def of(chosen: Any, every: Any) -> Any:
        """The values of some towers, zeros for the others: not a product, in which NaN would spread."""
        ones = tf.ones(tf.rank(every) - 1, tf.int32)
        chosen = tf.reshape(chosen, tf.concat([tf.shape(towers), ones], 0))
        return tf.where(chosen, every, tf.zeros_like(every))

    times = tf.concat([tf.shape(towers), tf.ones(tf.rank(own), tf.int32)], 0)
    every = of(tf.equal(towers, index), tf.tile(own[tf.newaxis], times))
    every = context.all_reduce(tf.distribute.ReduceOp.SUM, every)
    return tf.ensure_shape(tf.reduce_sum(of(towers < index, every), 0), own.shape)


def scope_in_replica(scope: str) -> str:
    """The beginning of the names of what stands in this replica's name scope `scope`: `replica_1/tower_1` of `tower_1`.

    `tf.get_collection(key, scope)` compares names with it. Outside of replicas, and in the first one, it is `scope` itself.

    Args:
      scope: a name scope without one around it, as a TF1 graph had it.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> scopes = []
      >>> @tf.function(autograph=False)
      ... def step():
      ...     strategy.run(lambda: scopes.append(scope_in_replica(f"tower_{tower_index()}")))
      >>> step()
      >>> scopes
      ['tower_0', 'replica_1/tower_1']
    """
    around = tf.compat.v1.get_default_graph().get_name_scope()
    own = re.match(r"replica_\d+(?=/|$)", around)
    return scope if own is None else f"{own[0]}/{scope}"
