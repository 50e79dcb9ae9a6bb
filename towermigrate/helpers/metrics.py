"""What is reported while training: a loss and an accuracy that are right across replicas."""

from typing import Any

import tensorflow as tf

from towermigrate.helpers import _loss_parts, _shares
from towermigrate.helpers._all_reduce import all_reduced
from towermigrate.helpers.losses import aligned, masked, mean_over_example, wide


class _WeightedMean(tf.Module):  # type: ignore[misc]
    """A mean whose numerator and denominator every replica adds up for itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self._strategy = tf.distribute.get_strategy()
        self.total = self._accumulator("total")
        self.count = self._accumulator("count")

    def _accumulator(self, name: str) -> Any:
        return tf.Variable(
            0.0,
            trainable=False,
            name=f"{self.name}/{name}",
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def _add(self, total: Any, count: Any) -> None:
        context = tf.distribute.get_replica_context()
        if context is None or context.strategy is not self._strategy:
            raise ValueError(
                f"{self.name}.update_state was called "
                f"{'outside of a replica' if context is None else 'under another strategy'} than "
                "the metric was made for. Make it in strategy.scope(), and update it in the "
                "function that strategy.run gets, with this replica's values."
            )
        self.total.assign_add(tf.stop_gradient(tf.cast(total, tf.float32)), read_value=False)
        self.count.assign_add(tf.stop_gradient(tf.cast(count, tf.float32)), read_value=False)

    def result(self) -> Any:
        """The mean over everything that every replica was given since the last reset.

        Eagerly, in a `tf.function`, or in a replica (an all-reduce). Under several workers all of
        them have to ask.

        Returns:
          A float32 scalar; 0 before the first update.

        Raises:
          ValueError: called where replicas cannot meet (a function compiled by XLA inside of the
            replica).
        """
        total, count = self.total.read_value(), self.count.read_value()
        context = tf.distribute.get_replica_context()
        if context is not None and context.strategy is self._strategy:
            sums = all_reduced(
                tf.stack([total, count]),
                f"{self.name}.result",
                "Ask for it outside of the replica.",
            )
            total, count = sums[0], sums[1]
        return tf.math.divide_no_nan(total, count)

    def reset_state(self) -> None:
        """Start again, as for the next epoch."""
        for variable in (self.total, self.count):
            variable.assign(0.0, read_value=False)


class LossMetric(_WeightedMean):
    """The training loss, reported; `loss_metric` makes one."""

    def __init__(self, name: str = "loss") -> None:
        super().__init__(name)
        self._counts = ""

    def update_state(
        self, values: Any, sample_weight: Any = None, share: bool | None = None
    ) -> None:
        """Add what one replica has computed in one step.

        Args:
          values: this replica's losses of single examples, `[b]`, or `[b, …]`, averaged to one for
            each example: the result is the mean over examples. Or the scalar that was trained: the
            result is the mean over steps of the global loss.
          sample_weight: for losses of single examples: `[b]`, a weight for each, or with as many
            axes as `values`, one for each of them (tokens); the result is the mean weighted by
            them. (`global_batch_loss` divides by the number of examples instead: to report it, give
            it the scalar.)
          share: for a scalar: True, a share of the global loss, which sums over replicas; False, a
            tower's own mean, which is averaged over them. None recognises shares of this library, and sums of
            them.

        Raises:
          ValueError: a scalar of which it is not known whether it is a share; `sample_weight` or
            `share` where it means nothing; examples and steps counted in one metric; called outside
            of a replica.
        """
        values = tf.convert_to_tensor(values) if not tf.is_tensor(values) else values
        if values.shape.rank or share is False:
            self._refuse_share(values)
        if values.shape.rank == 0:
            if sample_weight is not None:
                raise ValueError(
                    f"{self.name}.update_state got a scalar and a sample_weight; weights are for "
                    "the losses of single examples, [b]."
                )
            self._add_scalar(values, self._is_share(values) if share is None else share)
            return
        if share is not None:
            raise ValueError(
                f"{self.name}.update_state got losses of single examples, {values.shape}, and "
                f"share={share}; share= is said of a scalar."
            )
        self._check_counts("examples")
        values = wide(values)
        if sample_weight is None:
            self._add(tf.reduce_sum(mean_over_example(values)), tf.shape(values)[0])
            return
        weights = tf.cast(sample_weight, values.dtype)
        if weights.shape.rank is not None and weights.shape.rank <= 1:
            values = mean_over_example(values)
        weights = tf.broadcast_to(aligned(weights, values), tf.shape(values))
        self._add(tf.reduce_sum(masked(values, weights)), tf.reduce_sum(weights))

    def _add_scalar(self, value: Any, share: bool) -> None:
        self._check_counts("steps")
        replicas = self._strategy.num_replicas_in_sync
        self._add(wide(value) if share else wide(value) / replicas, 1.0 / replicas)

    def _refuse_share(self, values: Any) -> None:
        names = _shares.are_shares([values])
        if names and self._strategy.num_replicas_in_sync > 1:
            raise ValueError(
                f"{self.name}.update_state got what {names} returned: a share of the global loss, which is no loss of a "
                "single example and no tower's own mean. Give it that scalar as it is, without share=False."
            )

    def _is_share(self, value: Any) -> bool:
        parts = _loss_parts.parts_of(value)
        if parts.shares and not (parts.others or parts.divided or parts.constant):
            return True
        found = "a scalar that is not known to be a share of the global loss"
        if parts.shares:
            found = f"a share ({', '.join(parts.shares)}) and something else in one scalar"
            if parts.divided:
                found = f"a share ({', '.join(parts.shares)}) divided by the number of replicas"
        raise ValueError(
            f"{self.name}.update_state got {found}. Say share=True if it is this replica's share "
            "(shares sum to the loss), share=False if it is this tower's own mean (which is "
            "averaged over towers), or give it the losses of the single examples."
        )

    def _check_counts(self, counts: str) -> None:
        if self._counts not in ("", counts):
            raise ValueError(
                f"{self.name} has been given "
                f"{'scalars' if counts == 'examples' else 'losses of single examples'} before; a "
                "mean over steps and a mean over examples do not mix. Make a metric for each."
            )
        self._counts = counts


class TokenAccuracy(_WeightedMean):
    """The weighted part of tokens predicted right; `token_accuracy` makes one."""

    def update_state(self, labels: Any, logits: Any, weights: Any = None) -> None:
        """Add what one replica has computed in one step.

        Args:
          labels: class indices, `[b, t]`, or any shape.
          logits: scores or probabilities, `[b, t, classes]`: the labels' shape and one more axis.
          weights: numbers or bools of the labels' shape, 0 for padding; None weighs each 1.

        Raises:
          ValueError: the shapes do not fit; `logits` of a single class; called outside of a replica.
        """
        labels, logits = tf.convert_to_tensor(labels), tf.convert_to_tensor(logits)
        shape = logits.shape[:-1]
        if not (logits.shape.rank != 0 and shape.is_compatible_with(labels.shape)):
            raise ValueError(
                f"{self.name}.update_state got labels {labels.shape} and logits {logits.shape}; "
                "expected class indices, and logits of their shape and one more axis, the classes."
            )
        if logits.shape[-1] == 1:
            raise ValueError(
                f"{self.name}.update_state got logits of a single class, {logits.shape}, the greatest of which is always the "
                "first. For one score of two classes give it tf.concat([tf.zeros_like(logits), logits], -1)."
            )
        right = tf.equal(tf.argmax(logits, -1), tf.cast(labels, tf.int64))
        right = tf.cast(right, tf.float32)
        weights = tf.ones_like(right) if weights is None else tf.cast(weights, tf.float32)
        if not right.shape.is_compatible_with(weights.shape):
            raise ValueError(
                f"{self.name}.update_state got labels {labels.shape} and weights {weights.shape}; "
                "expected one weight for each label."
            )
        if not (right.shape.is_fully_defined() and weights.shape.is_fully_defined()):
            # A weight must not stand for many labels.
            same = tf.debugging.assert_equal(
                tf.shape(weights),
                tf.shape(right),
                f"{self.name}.update_state: expected one weight for each label, in the same shape",
            )
            with tf.control_dependencies([] if same is None else [same]):
                weights = tf.identity(weights)
        self._add(tf.reduce_sum(right * weights), tf.reduce_sum(weights))


def loss_metric(name: str = "loss") -> LossMetric:
    """A metric that reports the training loss right, whatever the replicas' batches are.

    `update_state(values)` in the replica, `result()` anywhere, `reset_state()` between epochs. Its
    variables are saved by `tf.train.Checkpoint(loss=metric)`.

    Args:
      name: of the metric, in errors and in its variables.

    Returns:
      A `LossMetric`. Make it in `strategy.scope()`.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> with strategy.scope():
      ...     metric = loss_metric()
      >>> strategy.run(metric.update_state, args=shard_batch([2.0, 3.0, 4.0, 5.0]))
      >>> float(metric.result())
      3.5

      The shares of what was trained give the same:

      >>> with strategy.scope():
      ...     trained = loss_metric()
      >>> def step(per_example):
      ...     trained.update_state(global_batch_loss(per_example))
      >>> strategy.run(step, args=shard_batch([2.0, 3.0, 4.0, 5.0]))
      >>> float(trained.result())
      3.5

    Source: `tf.keras.metrics.Mean`, which given the replicas' shares says 1.75 here: their mean.
    """
    return LossMetric(name)


def token_accuracy(name: str = "accuracy") -> TokenAccuracy:
    """A metric for the part of tokens predicted right, each counted once over all replicas.

    `update_state(labels, logits, weights)` in the replica; the rest as for `loss_metric`.

    Args:
      name: of the metric, in errors and in its variables.

    Returns:
      A `TokenAccuracy`. Make it in `strategy.scope()`.

    Example:
      Two of three tokens are right, and the padding does not count.

      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> with strategy.scope():
      ...     metric = token_accuracy()
      >>> labels, weights = [[1, 0], [1, 0]], [[1, 1], [1, 0]]
      >>> logits = [[[0.1, 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.0, 0.0]]]
      >>> strategy.run(metric.update_state, args=shard_batch(labels, logits, weights))
      >>> round(float(metric.result()), 4)
      0.6667

    Source: tensor2tensor's `padded_accuracy`, which returned these numerators and weights.
    """
    return TokenAccuracy(name)
