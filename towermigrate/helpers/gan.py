"""Wasserstein critics on several towers: the gradient penalty and the clipping of weights."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _reached, _reduced


def gradient_penalty(
    critic: Callable[[Any], Any],
    real: Any,
    fake: Any,
    weight: Any = 1.0,
    *,
    target: float = 1.0,
    alpha: Any = None,
    seed: Any = None,
    per_example: bool = False,
    return_slopes: bool = False,
) -> Any:
    """WGAN-GP's penalty: the mean of weight · (slope - target)² over this tower's examples.

    The slope of an example is the norm of the critic's gradient with respect to its input, at a
    random point between the real and the fake example: `real + alpha * (fake - real)`. It works
    eagerly, in a `tf.function`, compiled by XLA and in a TF1 graph, with `tower_gradients` over a
    v1 optimizer or a `GradientTape`. Where a slope is 0, its gradient is 0 and not NaN.

    Args:
      critic: a function of a batch that returns one score an example, [b] or [b, 1]. Other inputs
        (labels) come in through a lambda. It is called once; in TF1 code with `reuse=True`.
      real: a batch of real examples, a float tensor [b, …] of known rank.
      fake: a batch of generated examples of the same shape and dtype.
      weight: the penalty's weight, λ in the paper, which takes 10. A float or scalar tensor.
      target: the slope that costs nothing.
      alpha: where between real and fake each example lies, b numbers from 0 to 1. None draws them
        anew at each call, on each tower others, with the `tf.random.uniform` of shape [b, 1, …]
        that TF1 programs wrote.
      seed: a pair of integers, as `tf.random.stateless_uniform` takes it, for draws that can be
        repeated: the same pair gives the same alphas (under XLA others than without it),
        so make the step number a part of it, `[17, step]`. The tower's index
        is mixed in. A program that calls `tf.random.set_seed` and has this in a `tf.function`
        nested in the tower needs it: without it such towers draw the same numbers.
      per_example: return the [b] penalties instead of their mean.
      return_slopes: also return the slopes, [b].

    Returns:
      A scalar in the dtype of `real` (float32 where that is half precision), this tower's mean: a
      loss for `tower_gradients` to divide, 0 for a tower without examples. Where towers may have
      different numbers of examples, give `per_example=True` to `global_batch_loss`. With
      `return_slopes=True` a pair of that and the slopes.

    Raises:
      ValueError: `real` and `fake` differ in shape or dtype; the critic does not return one score
        an example, or scores that do not depend on its input; both `alpha` and `seed`; `seed` is
        not a pair.
      tf.errors.InvalidArgumentError: shapes that are not known before the step runs differ in it.

    Example:
      >>> real, fake = tf.constant([[0.0, 0.0]]), tf.constant([[6.0, 8.0]])
      >>> critic = lambda x: tf.reduce_sum(x**2, axis=1)  # its gradient is 2x
      >>> float(gradient_penalty(critic, real, fake, weight=10.0, alpha=[0.5]))  # slope 10
      810.0

    Source: Gulrajani et al., "Improved Training of Wasserstein GANs", algorithm 1.
    """
    real, fake = tf.convert_to_tensor(real), tf.convert_to_tensor(fake)
    _check_examples(real, fake)
    if alpha is not None and seed is not None:
        raise ValueError("gradient_penalty got both alpha= and seed=; alpha is not drawn then.")
    alpha = _drawn(real, seed) if alpha is None else _given(real, alpha)
    # AddN refuses shapes that differ where `fake - real` would spread [1, …] over [b, …]. An assertion
    # would too, but is never pruned: a step that does not read the penalty would need both inputs.
    between = real + alpha * tf.add_n([fake, -real], name="fake_minus_real")
    # The inner tape watches only the input; an outer tape or tf.gradients sees its backward ops.
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(between)
        scores = critic(between)
        _check_scores(scores, between)
    gradient = tape.gradient(scores, between)
    if gradient is None:
        raise ValueError(
            "The critic's scores do not depend on the batch it was given: no gradient reaches it. "
            "Does the critic use another tensor than its argument, or NumPy?"
        )
    if gradient.dtype.size < 4:
        gradient = tf.cast(gradient, tf.float32)  # a sum of squares soon leaves half precision
    slopes = _safe_sqrt(tf.reduce_sum(tf.square(gradient), axis=list(range(1, real.shape.rank))))
    penalties = tf.cast(weight, slopes.dtype) * tf.square(slopes - target)
    penalty = penalties if per_example else _mean(penalties)
    return (penalty, slopes) if return_slopes else penalty


def clip_weights(var_list: Sequence[Any], limit: Any) -> Any:
    """Clip every weight to [-limit, limit]: the original WGAN's critic after each of its updates.

    Every copy of a variable is clipped on its own device; nothing is sent. Call it after
    `apply_gradients`, in the function that `strategy.run` gets (not in a `tf.function` nested in
    it) or outside of `strategy.run`. In a TF1 graph put `tf.control_dependencies([train_op])`
    around it.

    Args:
      var_list: the critic's variables, of a floating dtype; those of Keras 3 too.
      limit: the largest absolute value, above 0; the paper takes 0.01. A float or scalar tensor.

    Returns:
      An operation in a graph, None eagerly.

    Raises:
      ValueError: no variable, one that is not floating, a limit that is not above 0, or one that differs between the
        replicas, as one made of a replica's own data does: the copies of a variable would drift apart.

    Example:
      >>> w = tf.Variable([-3.0, 0.005])
      >>> clip_weights([w], 0.01)
      >>> w.numpy()
      array([-0.01 ,  0.005], dtype=float32)

    Source: Arjovsky et al., "Wasserstein GAN", algorithm 1.
    """
    # A copy that is given alone stands for its variable: the others would drift apart from it.
    var_list = [_reached.container(v) for v in map(_of_keras, _reached.listed(var_list))]
    if not var_list:
        raise ValueError("clip_weights got no variable.")
    for variable in var_list:
        if not variable.dtype.is_floating:
            raise ValueError(
                f"clip_weights got {variable.name}, which is {variable.dtype.name}; clip only the "
                "critic's weights."
            )
    known = tf.get_static_value(limit) if tf.is_tensor(limit) else limit
    if known is not None and not known > 0:
        raise ValueError(f"limit is {limit}; weights are clipped to [-limit, limit]: give > 0.")

    context = tf.distribute.get_replica_context()
    if context is not None and tf.distribute.has_strategy():
        return context.merge_call(_clip_all, args=(var_list, limit))
    return _clip_all(None, var_list, limit)


def _of_keras(variable: Any) -> Any:
    """TensorFlow's variable of one of Keras 3."""
    return variable if isinstance(variable, tf.Variable) else getattr(variable, "value", variable)


def _check_examples(real: Any, fake: Any) -> None:
    if real.dtype != fake.dtype or not real.dtype.is_floating:
        raise ValueError(
            f"real is {real.dtype.name} and fake is {fake.dtype.name}; interpolation needs one "
            "floating dtype: cast before."
        )
    if not real.shape.rank or not fake.shape.rank:
        raise ValueError(
            f"real has shape {real.shape} and fake {fake.shape}; expected [b, …] with a known "
            "rank (tf.ensure_shape sets it)."
        )
    if not real.shape.is_compatible_with(fake.shape):
        raise ValueError(
            f"real has shape {real.shape} and fake {fake.shape}; they must be the same: one fake "
            "example for each real one."
        )


def _column_shape(batch: Any) -> list[Any]:
    """[b, 1, …]: one number an example, to be spread over it."""
    size = batch.shape[0]
    return [tf.shape(batch)[0] if size is None else size] + [1] * (batch.shape.rank - 1)


def _given(real: Any, alpha: Any) -> Any:
    alpha = tf.cast(alpha, real.dtype)
    expected, found = real.shape[0], alpha.shape.num_elements()
    if alpha.shape.rank == 0 or None not in (expected, found) and expected != found:
        raise ValueError(
            f"alpha has shape {alpha.shape}; expected one number for each example of real, "
            f"[{'b' if expected is None else expected}]."
        )
    return tf.reshape(alpha, _column_shape(real))


def _drawn(real: Any, seed: Any) -> Any:
    if seed is None:
        return tf.random.uniform(_column_shape(real), 0.0, 1.0, dtype=real.dtype)
    seed = tf.convert_to_tensor(seed)
    if not seed.shape.is_compatible_with([2]) or not seed.dtype.is_integer:
        raise ValueError(
            f"seed has shape {seed.shape} and dtype {seed.dtype.name}; expected two integers. One "
            "of them should change with the step, [17, step], or every step draws the same alphas."
        )
    context = tf.distribute.get_replica_context()
    tower = 0 if context is None else context.replica_id_in_sync_group
    of_tower = tf.random.experimental.stateless_fold_in(seed, tf.cast(tower, seed.dtype))
    return tf.random.stateless_uniform(_column_shape(real), of_tower, 0.0, 1.0, real.dtype)


def _check_scores(scores: Any, batch: Any) -> None:
    if not tf.is_tensor(scores):
        raise ValueError(
            f"The critic returned a {type(scores).__name__}; expected a tensor of scores. Pick it "
            "out: lambda x: critic(x)[0]."
        )
    rank, size = scores.shape.rank, batch.shape[0]
    expected = [[size], [size, 1]]
    one_for_all = size is None and bool(rank) and scores.shape[0] == 1
    if one_for_all or (
        rank is not None and not any(scores.shape.is_compatible_with(one) for one in expected)
    ):
        size = "b" if size is None else size
        raise ValueError(
            f"The critic returned scores of shape {scores.shape}; expected one an example, "
            f"[{size}] or [{size}, 1]. Do not average over the batch; average over patches, "
            "tf.reduce_mean(scores, [1, 2, 3])."
        )


def _safe_sqrt(squares: Any) -> Any:
    """The square root, with the gradient 0 at 0, where that of tf.sqrt is infinite."""
    positive = squares > 0
    # The inner where keeps the infinity out of the backward pass: 0 · inf would be NaN.
    root = tf.sqrt(tf.where(positive, squares, tf.ones_like(squares)))
    return tf.where(positive, root, tf.zeros_like(squares))


def _mean(penalties: Any) -> Any:
    mean = tf.reduce_mean(penalties)
    if penalties.shape[0]:
        return mean
    return tf.where(tf.size(penalties) > 0, mean, tf.zeros_like(mean))


def _clip_all(strategy: Any, var_list: Any, limit: Any) -> Any:
    limits = [limit] if strategy is None else list(strategy.experimental_local_results(limit))
    if len(limits) > 1 and not _reduced.are_alike(limits):
        raise ValueError(
            "clip_weights got limits that differ between the replicas: the copies of a variable would drift apart. Give "
            "it one number for all, or what tf.distribute.get_replica_context().all_reduce makes of theirs."
        )
    updates = [_clip(variable, limit) for variable in var_list]
    return None if tf.executing_eagerly() else tf.group(*updates)


def _clip(variable: Any, limit: Any) -> Any:
    def clip(copy: Any, limit: Any) -> Any:
        limit = tf.cast(limit, copy.dtype)
        return copy.assign(tf.clip_by_value(copy, -limit, limit))

    if not isinstance(variable, tf.distribute.DistributedValues):
        # Made under no strategy: one copy, and any tower's limit for it.
        return clip(variable, tf.distribute.get_strategy().experimental_local_results(limit)[0])
    return variable.distribute_strategy.extended.update(variable, clip, args=(limit,))
