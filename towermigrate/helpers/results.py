"""What towers return: one tower's value, each one's, their mean, their sum or all their rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import indexed_slices

from towermigrate.helpers import _marks, _shares, _taken
from towermigrate.helpers.strategy import current_strategy, is_multi_worker


def last_tower(value: Any, strategy: Any = None) -> Any:
    """The last tower's value: what a TF1 loop's Python variable held after the loop.

    Args:
      value: what `strategy.run` returned: one per-tower value or a nest of them (tuples, lists,
        dicts; None stays None). Eagerly or in a `tf.function`, outside of `strategy.run`.
      strategy: None takes the one in scope, else the last that `tower_strategy` made.

    Returns:
      The same nest with one tensor for each per-tower value. Under several workers every worker
      gets the last tower's of the whole cluster, strings (summaries) too.

    Raises:
      RuntimeError: called in a replica, where only one tower's value is at hand.
      ValueError: the values are shares of the global loss, whose sum is the loss and of which one says nothing; or
        gradients of shares.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> values = strategy.run(lambda x: x * 2.0, args=shard_batch([1.0, 3.0]))
      >>> last_tower(values).numpy(), first_tower(values).numpy(), mean_over_towers(values).numpy()
      (array([6.], dtype=float32), array([2.], dtype=float32), array([4.], dtype=float32))
    """
    return _each(value, strategy, _not_of_shares("last_tower", lambda towers: towers[-1]))


def first_tower(value: Any, strategy: Any = None) -> Any:
    """The first tower's value: what `if i == 0:` kept. Arguments as for `last_tower`."""
    return _each(value, strategy, _not_of_shares("first_tower", lambda towers: towers[0]))


def each_tower(value: Any, strategy: Any = None) -> Any:
    """Every tower's value: a list in the towers' order, as the TF1 loop's `values.append(value)`.

    For watching what a mean hides: each tower's critic loss, penalty or slope. Arguments as for
    `last_tower`; each per-tower value of a nest becomes a list.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> slopes = strategy.run(lambda x: tf.reduce_mean(x), args=shard_batch([1.0, 2.0, 4.0, 8.0]))
      >>> [float(slope) for slope in each_tower(slopes)]
      [1.5, 6.0]
    """
    return _each(value, strategy, list)


def mean_over_towers(value: Any, strategy: Any = None) -> Any:
    """The mean of the towers' values, as `tf.reduce_mean(tf.stack(values), 0)`.

    Arguments and errors as for `last_tower`: shares of the global loss have the loss for their sum.
    """

    def mean(towers: list[Any]) -> Any:
        return tf.reduce_mean(tf.stack(towers), 0)

    return _each(value, strategy, _not_of_shares("mean_over_towers", mean))


def sum_over_towers(value: Any, strategy: Any = None) -> Any:
    """The sum of the towers' values, as `tf.add_n(values)`. Arguments as for `last_tower`.

    Raises:
      ValueError: what is given is no value for each tower: a sum already, also one that the replicas made with
        `all_reduce` or `average_gradients`, or a variable, which would count as often as there are towers; or bools.
    """
    _check_per_tower(value, strategy, "sum_over_towers")
    return _each(
        value, strategy, lambda towers: tf.add_n([tf.convert_to_tensor(v) for v in towers])
    )


def concat_towers(value: Any, strategy: Any = None) -> Any:
    """The towers' values one after the other along axis 0, as `tf.concat(values, 0)`.

    Arguments as for `last_tower`.

    Raises:
      ValueError: the values are scalars; one value, not one for each tower: its rows would be there several times.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> concat_towers(strategy.run(lambda x: x + 1, args=shard_batch([1, 2, 3, 4]))).numpy()
      array([2, 3, 4, 5], dtype=int32)
    """
    joined = _each(value, strategy, _joined)
    where = current_strategy(strategy)
    if where.num_replicas_in_sync > 1 and not is_multi_worker(where):
        for leaf in tf.nest.flatten(value):
            plain = tf.is_tensor(leaf) or isinstance(leaf, tf.Variable)
            if plain and len(where.experimental_local_results(leaf)) == 1:
                raise ValueError(
                    f"concat_towers got one value, not one for each tower: its rows would be there {where.num_replicas_in_sync} "
                    "times. Give it what strategy.run returns."
                )
    return joined


def _joined(towers: list[Any]) -> Any:
    if isinstance(towers[0], tf.SparseTensor):
        return tf.sparse.concat(0, towers)
    if isinstance(towers[0], tf.RaggedTensor):
        return tf.concat(towers, 0)
    if any(tf.convert_to_tensor(each).shape.rank == 0 for each in towers):
        raise ValueError(
            "concat_towers got scalars, which have no axis 0. Take tf.stack(each_tower(value)) for one number of each "
            "tower, or sum_over_towers or mean_over_towers for one of all."
        )
    return tf.concat(towers, 0)


def _not_of_shares(what: str, choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def checked(towers: list[Any]) -> Any:
        names = _shares.are_shares(towers) if len(towers) > 1 else ""
        if names:
            raise ValueError(
                f"{what} got what {names} returned on each tower: shares of the global loss, each divided by the count of all "
                "towers. sum_over_towers makes the loss of them; each_tower gives them one by one."
            )
        for each in towers if len(towers) > 1 else ():
            if tf.is_tensor(each) or isinstance(each, tf.IndexedSlices):
                _taken.refuse_parts(
                    [each],
                    f"{what} would not give the gradient, but",
                    "sum_over_towers makes the gradient of the parts.",
                )
        if len(towers) > 1:
            _marks.refuse_to_average_parts(
                [
                    each
                    for each in towers
                    if tf.is_tensor(each) or isinstance(each, tf.IndexedSlices)
                ],
                what,
            )
        return choose(towers)

    return checked


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _check_per_tower(value: Any, strategy: Any, what: str) -> None:
    strategy = current_strategy(strategy)
    replicas = strategy.num_replicas_in_sync
    if replicas == 1 or is_multi_worker(strategy):  # there a tower's own value is a plain tensor
        return
    for leaf in tf.nest.flatten(value):
        if leaf is None or isinstance(leaf, tf.Operation):
            continue
        if isinstance(leaf, tf.Variable) or len(strategy.experimental_local_results(leaf)) == 1:
            kind = (
                f"the variable {leaf.name}"
                if isinstance(leaf, tf.Variable)
                else "one value, not one for each tower"
            )
            raise ValueError(
                f"{what} got {kind}: it would count {replicas} times. Give it what strategy.run returns. If every "
                f"tower returns this same value, and it is to count for each, multiply it by {replicas}."
            )
        towers = list(strategy.experimental_local_results(leaf))
        if getattr(towers[0], "dtype", None) == tf.bool or isinstance(towers[0], bool):
            raise ValueError(
                f"{what} got bools. tf.cast(value, tf.int32), in the function that strategy.run gets, makes numbers of "
                "them that count; for whether it is so on any tower, take tf.reduce_any of each_tower(value)."
            )
        if _marks.is_reduced(towers[0], replicas):
            raise ValueError(
                f"{what} got what the replicas have all-reduced already, the same on each: it would count {replicas} "
                "times. Take first_tower(value), or return what was not reduced yet."
            )


def as_numpy(value: Any) -> Any:
    """What `sess.run` returned: NumPy scalars and arrays, bytes, None for what has no value.

    Args:
      value: an eager tensor, variable or nest of them, as a step function returns it. Per-tower
        values become lists.

    Example:
      >>> as_numpy((tf.constant([1, 2]), None, [tf.constant(b"text")]))
      (array([1, 2], dtype=int32), None, [b'text'])
    """
    return tf.nest.map_structure(_as_numpy, value)


def _as_numpy(value: Any) -> Any:
    if isinstance(value, tf.distribute.DistributedValues) and not isinstance(value, tf.Variable):
        local = getattr(value, "values", (value,))
        return [_as_numpy(one) for one in local]
    if isinstance(value, tf.IndexedSlices):
        shape = None if value.dense_shape is None else value.dense_shape.numpy()
        return indexed_slices.IndexedSlicesValue(value.values.numpy(), value.indices.numpy(), shape)
    if isinstance(value, tf.SparseTensor):
        return tf.compat.v1.SparseTensorValue(
            value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy()
        )
    return value.numpy() if hasattr(value, "numpy") else value


def _each(value: Any, strategy: Any, choose: Callable[[list[Any]], Any]) -> Any:
    strategy = current_strategy(strategy)
    context = tf.distribute.get_replica_context()
    if tf.distribute.has_strategy() and context is not None:
        raise RuntimeError(
            "A result of all towers was asked for inside of one tower. Return the value from the "
            "function that "
            "strategy.run gets, and call this on what strategy.run returns."
        )

    def of_towers(leaf: Any) -> Any:
        if leaf is None or isinstance(leaf, tf.Operation):
            return None
        return choose(_towers(leaf, strategy))

    return tf.nest.map_structure(of_towers, value)


def _towers(leaf: Any, strategy: Any) -> list[Any]:
    """One value for each tower, in order."""
    local: list[Any] = list(strategy.experimental_local_results(leaf))
    replicas = strategy.num_replicas_in_sync
    if is_multi_worker(strategy) and _is_text(local[0]):
        return _texts(leaf, strategy) if tf.is_tensor(local[0]) else local * replicas
    if is_multi_worker(strategy):
        stacked = strategy.gather(strategy.run(lambda one: one[tf.newaxis], args=(leaf,)), axis=0)
        return [stacked[index] for index in range(replicas)]
    if len(local) == 1 and replicas > 1:
        local *= replicas  # the same on every tower
    return local


def _texts(leaf: Any, strategy: Any) -> list[Any]:
    """Every tower's strings. Workers exchange numbers only, so they go as the codes of their letters."""

    def letters(one: Any) -> Any:
        # Whatever bytes are in it (a summary), base64 has plain letters.
        text = tf.io.encode_base64(tf.io.serialize_tensor(one))
        return tf.cast(tf.io.decode_raw(text, tf.uint8), tf.int32)

    written = strategy.run(letters, args=(leaf,))
    every = strategy.gather(written, axis=0)
    sizes = strategy.gather(
        strategy.run(lambda one: tf.size(one)[tf.newaxis], args=(written,)), axis=0
    )
    ends = tf.cumsum(sizes)
    shape = strategy.experimental_local_results(leaf)[0].shape
    found = []
    for index in range(strategy.num_replicas_in_sync):
        codes = every[ends[index] - sizes[index] : ends[index]]
        text = tf.io.decode_base64(tf.strings.unicode_encode(codes, "UTF-8"))
        found.append(tf.ensure_shape(tf.io.parse_tensor(text, tf.string), shape))
    return found


def _is_text(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return bool(dtype == tf.string) or isinstance(value, (str, bytes, np.str_))
