"""What a tower found in a collection of TF1's graph: what all towers up to it had put there, or what its scope's name began."""

import re
from typing import Any

import tensorflow as tf

from towermigrate.helpers._reached import may_meet


def with_towers_before(total: Any) -> Any:
    """This tower's value and those of the towers before it, added up.

    A TF1 graph had one collection for all towers, which were built one after the other: `tf.add_n(
    tf.get_collection("losses"))` counted in tower `i` what the towers `0` to `i` had added. The average of such
    gradients counts the first of N towers N times and the last one once, which the gradients through this sum do too.

    Args:
      total: this tower's own sum, a float tensor of the same shape on every replica. Call it in the function that
        `strategy.run` gets; outside of a replica there are no towers before, and it is given back.

    Returns:
      A tensor of its shape. Its gradient by a variable, summed over the replicas (as `tower_gradients` and optimizers do),
      is that of all of the towers' values by it; by itself, that of one replica is no tower's of the TF1 graph.

    Raises:
      ValueError: called in a function of its own inside of a replica (`jit_compile`, `tf.cond`, a loop), where replicas
        cannot meet.

    Example:
      >>> strategy = tower_strategy(3, devices="cpu:3")
      >>> totals = strategy.run(lambda x: with_towers_before(x[0]), args=shard_batch([1.0, 2.0, 4.0]))
      >>> [float(total) for total in each_tower(totals)]
      [1.0, 3.0, 7.0]

    Source: TF1's `tf.get_collection(key, scope=None)`.
    """
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return total
    if not may_meet():
        raise ValueError(
            "with_towers_before adds up over the replicas, and replicas cannot meet inside of a tf.function of their own "
            "(jit_compile, tf.cond, a loop) in the one that strategy.run gets."
        )
    total = tf.convert_to_tensor(total)
    towers = tf.range(context.num_replicas_in_sync)
    own = tf.cast(context.replica_id_in_sync_group, towers.dtype)

    def of(chosen: Any, values: Any) -> Any:
        """The values of some towers, zeros for the others: not a product, in which NaN would spread."""
        rest = tf.ones(tf.rank(values) - 1, tf.int32)
        chosen = tf.reshape(chosen, tf.concat([tf.shape(towers), rest], 0))
        return tf.where(chosen, values, tf.zeros_like(values))

    every = tf.tile(total[tf.newaxis], _times(context.num_replicas_in_sync, total))
    every = context.all_reduce(tf.distribute.ReduceOp.SUM, of(towers == own, every))
    return tf.ensure_shape(tf.reduce_sum(of(towers <= own, every), 0), total.shape)


def _times(count: int, total: Any) -> Any:
    return tf.concat([[count], tf.ones(tf.rank(total), tf.int32)], 0)


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
