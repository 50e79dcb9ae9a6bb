"""The model that every program trains, and its loss on one device."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf_keras

from tests.helpers.differential.program import CLASSES, ROWS, TOKENS, WIDTH, Program, Step

v1 = tf.compat.v1
L2 = 0.1
_TOKEN_FACTORS = np.arange(1, TOKENS + 1, dtype="f") / 2


def variables() -> list[Any]:
    """A table that is looked up, a matrix, and a number that no loss reaches."""
    values = np.random.RandomState(7)
    return [
        tf.Variable(values.randn(ROWS, WIDTH).astype("f"), name="table"),
        tf.Variable(values.randn(WIDTH, CLASSES).astype("f"), name="kernel"),
        tf.Variable(2.0, name="other"),
    ]


def optimizer(program: Program) -> Any:
    """As the program says; `epsilon` is large, so that what is nearly nothing does not count as much as the rest."""
    name, rate = program.optimizer, 0.2
    if not program.keras:
        train = v1.train
        made: Any = {
            "descent": lambda: train.GradientDescentOptimizer(rate),
            "momentum": lambda: train.MomentumOptimizer(rate, 0.9),
            "adam": lambda: train.AdamOptimizer(rate, epsilon=0.1),
            "rmsprop": lambda: train.RMSPropOptimizer(rate, momentum=0.5, epsilon=0.1),
            "adagrad": lambda: train.AdagradOptimizer(rate),
        }[name]
        return made()
    options: dict[str, Any] = {}
    if program.clip.startswith("own"):
        own = {
            "own norm": "clipnorm",
            "own global norm": "global_clipnorm",
            "own value": "clipvalue",
        }
        options[own[program.clip]] = 0.05
    if program.mistake == "Keras 3 clips a share":
        options["global_clipnorm"] = 0.05
    if program.average:
        options.update(use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2)
    library = keras if "3" in name else tf_keras
    if name.endswith("sgd"):
        return library.optimizers.SGD(rate, momentum=0.5, **options)
    return library.optimizers.Adam(rate, epsilon=0.1, **options)


def logits(trained: list[Any], ids: Any) -> tuple[Any, Any]:
    """`[b, WIDTH]` and `[b, CLASSES]`."""
    hidden = tf.gather(trained[0], ids)
    return hidden, hidden @ trained[1]


def per_example(program: Program, outputs: Any, labels: Any) -> Any:
    """`[b]`."""
    if program.classes:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs)
    return tf.square(tf.reduce_sum(outputs, 1) - labels)


def per_token(losses: Any) -> Any:
    """`[b, TOKENS]`."""
    return losses[:, tf.newaxis] * _TOKEN_FACTORS


def penalty(trained: list[Any]) -> Any:
    """What the weights are regularised by."""
    return L2 * tf.reduce_sum(tf.square(trained[1]))


def activity(hidden: Any) -> Any:
    """A mean over the batch."""
    return L2 * tf.reduce_mean(tf.square(hidden))


def loss_alone(program: Program, trained: list[Any], step: list[Step]) -> Any:
    """The loss of all towers' examples, those of all micro-batches together, in plain TensorFlow."""
    towers = range(program.towers)

    def whole(name: str) -> Any:
        return np.concatenate([getattr(each, name)[tower] for each in step for tower in towers])

    hidden, outputs = logits(trained, whole("ids"))
    losses = per_example(program, outputs, whole("labels"))
    if program.loss == "tokens":
        tokens = whole("tokens")
        loss = tf.reduce_sum(per_token(losses) * tokens) / max(tokens.sum(), 1e-30)
    elif program.loss == "own mean" and program.path != "accumulator":
        sizes = [len(part) for part in step[0].ids]
        loss = tf.add_n([tf.reduce_mean(part) for part in tf.split(losses, sizes)]) / len(sizes)
    else:
        losses = losses * whole("weights") if program.weighted else losses
        loss = tf.reduce_sum(losses) / max(len(whole("ids")), 1)
    if program.regularized == "weights":
        loss += penalty(trained)
    if program.regularized == "activity" and len(whole("ids")):
        loss += activity(hidden)
    return loss


def trained_alone(program: Program) -> tuple[list[np.ndarray], list[float]]:
    """The variables after all updates on one device, and the loss of each update."""
    trained = variables()
    alone = optimizer(program)
    losses = []
    # In a graph an average begins with what its variable began with, eagerly with what it finds.
    averages = [] if program.mode == "eager" else [each.numpy() for each in trained[:2]]
    for step in program.batches:
        with tf.GradientTape() as tape:
            loss = loss_alone(program, trained, step)
        losses.append(float(loss))
        grads = tape.gradient(loss, trained[:2])
        pairs = [(grads[0], trained[0]), (grads[1], trained[1])]
        if program.none == "zeros":
            pairs.append((tf.zeros([]), trained[2]))
        if program.sparse == "dense":
            pairs = [(tf.convert_to_tensor(grad), v) for grad, v in pairs]
        elif program.path != "tower_gradients":
            pairs = [(_each_row_once(grad), v) for grad, v in pairs]
        if program.clip in ("norm", "global norm", "value"):
            pairs = _clipped(program.clip, pairs)
        alone.apply_gradients(pairs)
        now = [each.numpy() for each in trained[:2]]
        averages = [(a + b) / 2 for a, b in zip(averages or now, now, strict=True)]
    found = [each.numpy() for each in trained]
    return found + (averages if has_average(program) else []), losses


def has_average(program: Program) -> bool:
    """Whether the program keeps an `ExponentialMovingAverage`, of 0.5; Keras optimizers have one of their own."""
    return program.average and not program.keras


def _each_row_once(grad: Any) -> Any:
    if not isinstance(grad, tf.IndexedSlices):
        return grad
    indices, places = tf.unique(grad.indices)
    values = tf.math.unsorted_segment_sum(grad.values, places, tf.size(indices))
    return tf.IndexedSlices(values, indices, grad.dense_shape)


def _clipped(clip: str, pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    if clip == "global norm":
        grads, _ = tf.clip_by_global_norm([grad for grad, _ in pairs], 0.05)
        return [(grad, v) for grad, (_, v) in zip(grads, pairs, strict=True)]

    def one(grad: Any) -> Any:
        if isinstance(grad, tf.IndexedSlices):
            return tf.IndexedSlices(one(grad.values), grad.indices, grad.dense_shape)
        return (
            tf.clip_by_norm(grad, 0.05) if clip == "norm" else tf.clip_by_value(grad, -0.05, 0.05)
        )

    return [(one(grad), v) for grad, v in pairs]
