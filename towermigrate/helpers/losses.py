"""Losses whose replicas' shares sum to the loss of the global batch.

A *tower loss* is the mean over one tower's examples; `tower_gradients` divides its gradient by the
number of replicas, so that the update is TF1's average of the towers. A *share* is a replica's part
of the loss of the whole batch: shares, and their gradients, sum over the replicas to what one
device would compute, whatever the replicas' sizes are. The functions here return shares;
`tower_gradients` knows them, and sums and multiples of them, and does not divide them again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers import _behind, _checks, _optimizers, _shares
from towermigrate.helpers._all_reduce import all_reduced
from towermigrate.helpers._own_counts import refuse_own_rows, refuse_own_sum
from towermigrate.helpers._reached import may_meet

_COLUMN = "write labels[:, tf.newaxis] (and predictions[:, tf.newaxis] where they are [b] too)"


def global_batch_loss(
    per_example: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Any:
    """This replica's share of the mean loss over the global batch.

    The sum over this replica's examples, divided by the number of examples on all replicas. It is
    what `tf.nn.compute_average_loss` gives with the right `global_batch_size`, and it stays right
    when replicas hold different numbers of examples, or none.

    Args:
      per_example: float `[b]`, one loss for each example of this replica; or `[b, …]`, which is
        averaged over axes 1… to one loss for each example. `b` may be 0 and may differ between
        replicas.
      sample_weight: None; or `[b]`, a weight for each example; or a shape that broadcasts to that
        of `per_example` with as many axes. The sum of weights is *not* the denominator (as in
        Keras' SUM_OVER_BATCH_SIZE). Where it is 0, NaN and infinity do not reach the loss.
      global_batch_size: examples on all replicas, an int or a scalar tensor. None adds up the `b`
        of the replicas in each step, a small all-reduce.

    Returns:
      A scalar, float32 or wider; 0 where the global batch is empty.

    Raises:
      ValueError: `per_example` is a scalar, or complex; the global batch size is less than 1 or less than this
        replica's, or is this replica's own (`tf.errors.InvalidArgumentError` in eager mode); called outside of a
        replica, or with `global_batch_size=None` where replicas cannot meet (a function compiled by XLA inside of the
        replica).

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> shares = strategy.run(global_batch_loss, args=shard_batch([2.0, 3.0, 4.0, 5.0]))
      >>> [float(share) for share in each_tower(shares)]
      [1.25, 2.25]
      >>> float(sum_over_towers(shares))
      3.5

    Source: TF guide "Custom training with tf.distribute" (how to calculate the loss).
    """
    per_example = wide(per_example)
    _check_per_example(per_example, "global_batch_loss")
    _optimizers.watch()
    _shares.refuse_shares([per_example], "global_batch_loss")
    if isinstance(global_batch_size, np.integer):
        global_batch_size = int(global_batch_size)
    batch = per_example.shape[0]
    if isinstance(global_batch_size, int):
        _check_batch_size(global_batch_size, batch)
    total = tf.reduce_sum(_per_example_weighted(per_example, sample_weight))
    if global_batch_size is None:
        examples = all_reduced(
            tf.cast(tf.shape(per_example)[0], total.dtype),
            "global_batch_loss",
            "Give it the size, global_batch_size=.",
        )
    else:
        examples = tf.stop_gradient(tf.cast(global_batch_size, total.dtype))
        total = _of_all_rows(total, per_example, examples, global_batch_size)
    return _shares.mark(tf.math.divide_no_nan(total, examples), "global_batch_loss")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _of_all_rows(total: Any, per_example: Any, examples: Any, size: Any) -> Any:
    """`total`, the size of the global batch having been held against the replicas' rows, where they are known."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas == 1 or tf.distribute.get_replica_context() is None:
        return total
    refuse_own_rows(per_example, size, "global_batch_size")
    own = _may_be_own(tf.shape(per_example)[0], examples)
    if (_checks.wanted() or own) and may_meet():
        found = all_reduced(
            tf.cast(tf.shape(per_example)[0], total.dtype),
            "global_batch_loss",
            "Unset TOWERMIGRATE_CHECKS.",
        )
        said = (
            "global_batch_size is expected to be the number of examples on all replicas, and is not"
        )
        with tf.control_dependencies(_checks.equal(found, examples, said)):
            total = tf.identity(total)
    return total


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _of_all_tokens(total: Any, own: Any, tokens: Any) -> Any:
    """`total`, the sum of all weights having been held against the replicas' where it may be this one's own."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas == 1 or tf.distribute.get_replica_context() is None or not may_meet():
        return total
    if not _may_be_own(own, tokens):
        return total
    found = all_reduced(own, "token_normalized_loss", "Leave global_tokens= out.")
    said = "global_tokens is expected to be the sum of the weights on all replicas, and is not"
    with tf.control_dependencies(_checks.equal(found, tokens, said)):
        return tf.identity(total)


def _may_be_own(own: Any, of_all: Any) -> bool:
    """Whether a count of all replicas is this one's own, or this one has nothing: eagerly nothing else shows what it is."""
    return tf.executing_eagerly() and float(own) in (0.0, float(of_all))


def token_normalized_loss(losses: Any, weights: Any, global_tokens: Any = None) -> Any:
    """This replica's share of the mean loss over all tokens of the global batch.

    The weighted sum of this replica's losses, divided by the sum of the weights on *all* replicas
    in this step. With padded batches of any shape, another on every replica and in every step
    (`bucket_by_sequence_length` with a budget of tokens), the shares and their gradients sum to the
    loss and gradient of one device that got all the examples.

    Args:
      losses: float, one loss for each token: `[b, t]`, or any shape.
      weights: numbers or bools of the same shape: 0 for padding, 1 (or a weight) for a token. Where
        it is 0, the loss may be NaN or infinite: it does not reach the sum, and gets a gradient of
        zero. (An operation before it whose own derivative is not finite still makes NaN of that
        zero: mask its input.) They get no gradient through the denominator.
      global_tokens: the sum of the weights on all replicas, a number or a scalar tensor, for code
        in which replicas cannot meet. None adds it up, a small all-reduce.

    Returns:
      A scalar, float32 or wider; 0 where no replica has a token. A replica without tokens or
      without examples gets 0, and gradients of zero.

    Raises:
      ValueError: the shapes differ; complex losses; `global_tokens` is the sum of this replica's own weights
        (`tf.errors.InvalidArgumentError` in eager mode); called outside of a replica, or with `global_tokens=None` where
        replicas cannot meet (a function compiled by XLA inside of the replica).

    Example:
      Three tokens of loss 1 on one replica and one of loss 5 on the other have the mean 2; the mean
      of the replicas' means is 3.

      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> losses, weights = shard_batch([[1.0, 1.0, 1.0], [5.0, 9.0, 9.0]], [[1, 1, 1], [1, 0, 0]])
      >>> float(sum_over_towers(strategy.run(token_normalized_loss, args=(losses, weights))))
      2.0

    Source: "Attention Is All You Need" (batches of about as many tokens); tensor2tensor's
    `padded_cross_entropy`, which returned this numerator and this denominator.
    """
    losses = wide(losses)
    _optimizers.watch()
    _shares.refuse_shares([losses], "token_normalized_loss")
    weights = tf.cast(weights, losses.dtype)
    if not losses.shape.is_compatible_with(weights.shape):
        raise ValueError(
            f"token_normalized_loss got losses of shape {losses.shape} and weights of shape "
            f"{weights.shape}. Give it one weight for each loss; tf.broadcast_to, or "
            "weights[:, tf.newaxis], says it where one weight is meant for many."
        )
    if not (losses.shape.is_fully_defined() and weights.shape.is_fully_defined()):
        # A weight must not stand for many losses, and those of a transposed batch not for others.
        same = tf.debugging.assert_equal(
            tf.shape(weights),
            tf.shape(losses),
            "token_normalized_loss: expected one weight for each loss, in the same shape",
        )
        with tf.control_dependencies([] if same is None else [same]):
            weights = tf.broadcast_to(weights, tf.shape(losses))
    total = tf.reduce_sum(masked(losses, weights))
    if global_tokens is None:
        tokens = all_reduced(
            tf.reduce_sum(weights),
            "token_normalized_loss",
            "Give it the sum of the weights on all replicas, global_tokens=.",
        )
    else:
        refuse_own_sum(weights, global_tokens, "global_tokens")
        tokens = tf.stop_gradient(tf.cast(global_tokens, losses.dtype))
        total = _of_all_tokens(total, tf.reduce_sum(weights), tokens)
    return _shares.mark(tf.math.divide_no_nan(total, tokens), "token_normalized_loss")


def regularization_loss(losses: Any, examples: Any = None) -> Any:
    """This replica's share of the regularisation: the sum of the losses over the replica count.

    Every replica computes the same penalty of the same weights; divided by their number, the shares
    sum to the penalty once.

    Args:
      losses: scalar float tensors, as `TowerVariables.regularization_losses()` or a Keras model's
        `.losses` give them; or one of them. An empty list gives 0.
      examples: for activity regularisers, whose losses are means over the replica's batch: how many
        examples this replica has, an int or a scalar tensor. Means then count by their examples,
        added up over the replicas; penalties of weights, which are alike on all, are not changed.

    Returns:
      A scalar.

    Raises:
      ValueError: a loss is no scalar; a loss of the inputs without `examples`, since replicas may have batches of other sizes
        (`tf.errors.InvalidArgumentError` in eager mode, where they differ); called outside of a replica.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> shares = strategy.run(lambda: regularization_loss([tf.constant(1.0), tf.constant(3.0)]))
      >>> float(sum_over_towers(shares))
      4.0

    Source: `tf.nn.scale_regularization_loss`.
    """
    if tf.distribute.get_replica_context() is None:
        raise ValueError(
            "regularization_loss was called outside of a replica; call it in the function that "
            "strategy.run gets."
        )
    scalars = [wide(loss) for loss in _as_list(losses)]
    for scalar in scalars:
        if scalar.shape.rank:
            raise ValueError(
                f"regularization_loss got a loss of shape {scalar.shape}; expected scalars, one "
                "for each regularised variable. tf.reduce_sum adds up what belongs together."
            )
    _optimizers.watch()
    _shares.refuse_shares(scalars, "regularization_loss")
    total = tf.add_n(scalars) if scalars else tf.constant(0.0)
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if examples is not None:
        mine = tf.cast(examples, total.dtype)
        every = all_reduced(mine, "regularization_loss", "Leave examples= out.")
        share = tf.math.divide_no_nan(tf.stop_gradient(mine), every)
        # The mean over no examples is NaN.
        total = tf.where(tf.equal(mine, 0), tf.zeros_like(total), total)
        return _shares.mark(total * share, "regularization_loss")
    said = (
        "regularization_loss got a loss of the inputs (an activity regulariser's), which is a mean over this "
        "replica's batch. Replicas may have batches of other sizes: say how many examples this one has, "
        "examples=tf.shape(x)[0]. If it is a sum over them, it is a share as it is: add "
        "it to the loss without this function, and write share=True."
    )
    if replicas > 1 and _behind.reads_inputs(scalars):
        raise ValueError(said)
    if replicas > 1 and may_meet() and (tf.executing_eagerly() or _checks.wanted()):
        # Eagerly nothing shows what a loss was made of: penalties of weights are alike on all replicas.
        every = all_reduced(total, "regularization_loss", "Unset TOWERMIGRATE_CHECKS.")
        with tf.control_dependencies(_checks.equal(every / replicas, total, said)):
            total = tf.identity(total)
    return _shares.mark(total / tf.cast(replicas, total.dtype), "regularization_loss")


def per_example_loss(
    loss: Callable[..., Any], labels: Any, predictions: Any, sample_weight: Any = None
) -> Any:
    """The losses of the single examples, checked: what `global_batch_loss` takes.

    Args:
      loss: a Keras loss (Keras 3 or tf_keras) made with `reduction="none"`, or a function of
        `(labels, predictions)`.
      labels: `[b, …]`; class indices for a sparse loss.
      predictions: `[b, …]`, with as many axes as the labels, or one more, the classes, for a
        sparse loss.
      sample_weight: None, `[b]`, or a shape that broadcasts to the losses' with as many axes.

    Returns:
      Float `[b]` or `[b, …]`: the losses, times their weights.

    Raises:
      ValueError: the loss reduces over the batch; the axes of labels and predictions do not match,
        so that Keras would reduce or broadcast the batch axis.

    Example:
      >>> mse = tf.keras.losses.MeanSquaredError(reduction="none")
      >>> labels, predictions = tf.constant([1.0, 2.0]), tf.constant([3.0, 2.0])
      >>> per_example_loss(mse, labels[:, tf.newaxis], predictions[:, tf.newaxis]).numpy()
      array([4., 0.], dtype=float32)

    Source: TF guide "Custom training with tf.distribute": Keras' AUTO and SUM_OVER_BATCH_SIZE
    divide by the replica's batch, and a missing last axis makes a loss reduce over the batch.
    """
    labels, predictions = tf.convert_to_tensor(labels), tf.convert_to_tensor(predictions)
    name = getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__
    _check_reduction(loss, name)
    _check_axes(loss, name, labels, predictions)
    losses = wide(loss(labels, predictions))
    if losses.shape.rank == 0:
        hint = "reduction='none'"
        if predictions.shape.rank == 1:
            hint = (
                f"one that keeps the batch axis; for labels and predictions of one axis {_COLUMN}"
            )
        raise ValueError(
            f"The loss {name} of labels {labels.shape} and predictions {predictions.shape} is a "
            f"scalar: it is already reduced over this replica's batch. Take {hint}."
        )
    if labels.shape.rank and not losses.shape[:1].is_compatible_with(predictions.shape[:1]):
        raise ValueError(
            f"The loss {name} of labels {labels.shape} and predictions {predictions.shape} has the "
            f"shape {losses.shape}; expected one loss for each example along axis 0."
        )
    if sample_weight is None:
        return losses
    weights = aligned(tf.cast(sample_weight, losses.dtype), losses)
    return masked(losses, weights)


def _check_reduction(loss: Any, name: str) -> None:
    if not hasattr(loss, "reduction"):
        return
    reduction = loss.reduction
    if reduction is None or str(reduction).lower() == "none":
        return
    raise ValueError(
        f"The Keras loss {name} has reduction={str(reduction)!r}, which reduces over this "
        "replica's batch: the mean of one replica, not of the global batch. Make it with "
        "reduction='none' and let global_batch_loss divide."
    )


def _check_axes(loss: Any, name: str, labels: Any, predictions: Any) -> None:
    ranks = labels.shape.rank, predictions.shape.rank
    if None in ranks or ranks[0] == ranks[1] or 0 in ranks:
        if ranks == (1, 1) and hasattr(loss, "reduction") and _is_from_keras(loss):
            raise ValueError(
                f"The Keras loss {name} reduces the last axis, and labels {labels.shape} and "
                f"predictions {predictions.shape} have only the batch axis: {_COLUMN}."
            )
        return
    found = f"labels {labels.shape} and predictions {predictions.shape} for the loss {name}"
    if ranks[0] == ranks[1] - 1 and predictions.shape[-1] == 1:
        raise ValueError(
            f"{found}: [b] against [b, 1] broadcasts to [b, b], or reduces over the batch. The "
            "labels lack the last axis: write labels[:, tf.newaxis]."
        )
    if ranks[0] == ranks[1] + 1 and labels.shape[-1] == 1 and not _is_sparse(loss):
        raise ValueError(
            f"{found}: [b, 1] against [b] broadcasts to [b, b], or reduces over the batch. The "
            "predictions lack the last axis: write predictions[:, tf.newaxis]."
        )
    if ranks[0] == ranks[1] - 1 and _is_from_keras(loss) and not _is_sparse(loss):
        raise ValueError(
            f"{found}: the labels lack an axis. Write tf.one_hot(labels, classes) for class "
            "indices, or take the sparse form of the loss; labels[:, tf.newaxis] for one target."
        )


def _is_from_keras(loss: Any) -> bool:
    module = getattr(loss, "__module__", None) or type(loss).__module__
    return str(module).partition(".")[0] in ("keras", "tf_keras")


def _is_sparse(loss: Any) -> bool:
    wrapped = getattr(loss, "fn", loss)
    names = type(loss).__name__, getattr(wrapped, "__name__", ""), getattr(loss, "name", "") or ""
    return any("sparse" in name.lower() for name in names)


def _check_per_example(per_example: Any, function: str) -> None:
    if per_example.shape.rank != 0:
        return
    raise ValueError(
        f"{function} got a scalar; it takes one loss for each example, [b] or [b, …]. Something "
        "has reduced it over this replica's batch already: a Keras loss with reduction AUTO or "
        "SUM_OVER_BATCH_SIZE (write reduction='none'), tf.reduce_mean, or a loss of labels and "
        f"predictions of one axis, whose last axis is the batch ({_COLUMN})."
    )


def _check_batch_size(size: int, local: int | None) -> None:
    if size < 1:
        raise ValueError(f"global_batch_size is {size}; expected at least one example.")
    if local is not None and local > size:
        raise ValueError(
            f"global_batch_size is {size}, but this replica alone has {local} examples. It is the "
            "number of examples on all replicas together."
        )


def wide(value: Any) -> Any:
    """`value` as a float tensor in which a sum over a batch keeps its digits."""
    value = tf.convert_to_tensor(value)
    if value.dtype.is_complex:
        raise ValueError(
            f"A loss has the type {value.dtype.name}, of which a cast to a float would drop the imaginary part. Take "
            "tf.math.real, tf.math.imag or tf.abs of it."
        )
    if value.dtype in (tf.float16, tf.bfloat16) or not value.dtype.is_floating:
        return tf.cast(value, tf.float32)
    return value


def _per_example_weighted(per_example: Any, sample_weight: Any) -> Any:
    """`[b]`: the mean over axes 1… of the weighted losses."""
    if sample_weight is not None:
        weights = aligned(tf.cast(sample_weight, per_example.dtype), per_example)
        per_example = masked(per_example, weights)
    return mean_over_example(per_example)


def mean_over_example(values: Any) -> Any:
    """`[b]`: the mean over axes 1… of `[b, …]`."""
    if values.shape.rank is None:
        # One row for each example, whatever its axes; a batch without rows cannot say how long
        # theirs would be, so -1 cannot stand for it.
        rows = tf.shape(values)[0]
        return tf.reduce_mean(tf.reshape(values, [rows, tf.reduce_prod(tf.shape(values)[1:])]), 1)
    return (
        tf.reduce_mean(values, list(range(1, values.shape.rank)))
        if values.shape.rank > 1
        else values
    )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def aligned(weights: Any, values: Any) -> Any:
    """`weights` in the shape of `values`; `[b]` weighs examples, whatever their other axes."""
    ranks = weights.shape.rank, values.shape.rank
    if ranks[0] == 0:
        return weights
    if None in ranks:
        return tf.broadcast_to(_with_axes_of(weights, values), tf.shape(values))
    if ranks[0] == 1:
        if not weights.shape.is_compatible_with(values.shape[:1]):
            raise _of_other_shape(weights, values)
        # One for each example, also where their number is only known at run time.
        rows = tf.shape(values)[0] if values.shape[0] is None else values.shape[0]
        weights = tf.reshape(weights, [rows] + [1] * (ranks[1] - 1))
    elif ranks[0] == ranks[1] + 1 and weights.shape[-1] == 1:
        weights = tf.squeeze(weights, -1)
    elif ranks[0] != ranks[1]:
        raise _of_other_shape(weights, values)
    if any(None not in (w, v) and w not in (1, v) for w, v in zip(weights.shape, values.shape)):  # noqa: B905
        raise _of_other_shape(weights, values)
    return tf.broadcast_to(weights, tf.shape(values))


def _of_other_shape(weights: Any, values: Any) -> ValueError:
    return ValueError(
        f"sample_weight has the shape {weights.shape} and the losses {values.shape}; expected one "
        "weight for each example, [b], or as many axes as the losses."
    )


def _with_axes_of(weights: Any, values: Any) -> Any:
    """`weights` with as many axes as `values`, where that is only known at run time."""
    shape, wanted = tf.shape(weights), tf.shape(values)
    # One axis: of the examples. An axis more than the losses have must be of one.
    axes = tf.concat([shape, tf.ones_like(wanted)], 0)[: tf.size(wanted)]
    first = tf.where(tf.equal(tf.size(shape), 1), wanted[:1], axes[:1])
    return tf.reshape(weights, tf.concat([first, axes[1:]], 0))


def masked(values: Any, weights: Any) -> Any:
    """`values · weights`; where a weight is 0, 0 whatever the value is."""
    # NaN · 0 is NaN, so what a weight of 0 takes out is taken out before the product, in the
    # gradient too.
    return tf.where(tf.not_equal(weights, 0), values, tf.zeros_like(values)) * weights


def _as_list(losses: Any) -> Sequence[Any]:
    if isinstance(losses, Mapping):
        losses = losses.values()
    return list(losses) if isinstance(losses, (list, tuple, Iterator, ValuesView)) else [losses]
