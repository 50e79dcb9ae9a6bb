"""A tower's own mean, whatever the model behind it divides by, is not taken for a loss divided by a global count; that one is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1
GLOBAL = 8  # rows on all towers; the models divide by it too
TOWERS = 2
chance = np.random.RandomState(0)
INPUTS = chance.randn(GLOBAL, 3).astype(np.float32)
LABELS = chance.randn(GLOBAL, 1).astype(np.float32)
START = tuple(chance.randn(*shape).astype(np.float32) for shape in ((3, 1), (3, 4), (4, 4)))
mean, total, square = tf.reduce_mean, tf.reduce_sum, tf.square
_Loss = Callable[[Any, Any, Any], Any]


def _squares(w: Any, x: Any, y: Any) -> Any:
    return square(tf.matmul(x, w[0]) - y)


def _rows(x: Any) -> Any:
    return tf.cast(tf.shape(x)[0], tf.float32)


def _all_reduced(value: Any) -> Any:
    context = tf.distribute.get_replica_context()
    return value if not tf.distribute.has_strategy() else context.all_reduce("SUM", value)


_OWN: dict[str, _Loss] = {
    "over a number that is computed": lambda w, x, y: mean(_squares(w, x, y)) / tf.math.log(2.0),
    "over a width": lambda w, x, y: (
        mean(_squares(w, x, y)) / tf.sqrt(tf.cast(tf.shape(x)[1], tf.float32))
    ),
    "over what was added up": lambda w, x, y: (
        mean(_squares(w, x, y)) / tf.maximum(1.0, _all_reduced(_rows(x)) / 8.0)
    ),
    "halves of squares": lambda w, x, y: mean(_squares(w, x, y) / 2),
    "single examples over a number": lambda w, x, y: mean(_squares(w, x, y) / GLOBAL),
    "logits over a number": lambda w, x, y: mean(square(tf.matmul(x, w[0]) / GLOBAL - y)),
    "a layer times a number": lambda w, x, y: mean(
        square(tf.matmul(tf.tanh(tf.matmul(x, w[1]) * 0.125), w[2]))
    ),
    "attention": lambda w, x, y: mean(
        square(tf.matmul(tf.nn.softmax(tf.matmul(x, w[1]) / 8.0), w[2]))
    ),
    "pooling": lambda w, x, y: mean(total(square(tf.matmul(x, w[1])), 1) / GLOBAL),
    "part of an output": lambda w, x, y: mean(total(square(tf.matmul(x, w[1]))[:, :2], 1) / 4.0),
    "classes": lambda w, x, y: mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.cast(x[:, 0] > 0.0, tf.int32), logits=tf.matmul(x, w[1]) / 8.0
        )
    ),
}

_DIVIDED: dict[str, _Loss] = {
    "a sum": lambda w, x, y: total(_squares(w, x, y)) / GLOBAL,
    "halves": lambda w, x, y: 0.5 * total(_squares(w, x, y)) / GLOBAL,
    "single examples": lambda w, x, y: total(_squares(w, x, y) / GLOBAL),
    "weighted after": lambda w, x, y: total(_squares(w, x, y) / GLOBAL * x[:, :1]),
    "weighted before": lambda w, x, y: total(x[:, :1] * _squares(w, x, y)) / GLOBAL,
    "masked": lambda w, x, y: total(tf.where(x[:, :1] > 0.0, _squares(w, x, y) / GLOBAL, 0.0)),
    "a mean times this tower's part": lambda w, x, y: (
        mean(_squares(w, x, y)) * _rows(x) / _all_reduced(_rows(x))
    ),
    "a sum over what was added up": lambda w, x, y: (
        total(_squares(w, x, y)) / _all_reduced(_rows(x))
    ),
    "a mean over the towers": lambda w, x, y: mean(_squares(w, x, y)) / TOWERS,
    "classes": lambda w, x, y: (
        total(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.cast(x[:, 0] > 0.0, tf.int32), logits=tf.matmul(x, w[1])
            )
        )
        / GLOBAL
    ),
}


def _trained(
    strategy: Any, loss: _Loss, way: str, eager: bool, *, is_known: bool = True
) -> list[np.ndarray]:
    with strategy.scope():
        weights = [tf.Variable(value) for value in START]
        sgd = v1.train.GradientDescentOptimizer(0.5)

    def step(x: Any, y: Any) -> None:
        if not is_known:  # as of a dataset whose last batch is smaller
            x, y = (
                tf.compat.v1.placeholder_with_default(each, [None, *each.shape[1:]])
                for each in (x, y)
            )
        with tf.GradientTape() as tape:
            value = loss(weights, x, y)
        if way == "tower_gradients":
            sgd.apply_gradients(tm.tower_gradients(tape, value, weights, none="skip"))
            return
        pairs = list(zip(tape.gradient(value, weights), weights, strict=True))
        tm.apply_averaged(sgd, tm.average_gradients(pairs, none="skip"))

    def run(x: Any, y: Any) -> None:
        strategy.run(step, args=(x, y))

    (run if eager else tf.function(run, autograph=False))(*tm.shard_batch(INPUTS, LABELS))
    return [weight.numpy() for weight in weights]


def _on_one_device(loss: _Loss) -> list[np.ndarray]:
    weights = [tf.Variable(value) for value in START]
    with tf.GradientTape() as tape:
        value = loss(weights, tf.constant(INPUTS), tf.constant(LABELS))
    gradients = tape.gradient(value, weights)
    return [
        (weight if gradient is None else weight - 0.5 * gradient).numpy()
        for weight, gradient in zip(weights, gradients, strict=True)
    ]


_WAYS = pytest.mark.parametrize("way", ["tower_gradients", "average_gradients"])
_BOTH = pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])


@_BOTH
@_WAYS
@pytest.mark.parametrize("name", _OWN)
def test_a_model_divides_by_what_it_likes(
    two_towers: Any, name: str, way: str, eager: bool
) -> None:
    trained = _trained(two_towers, _OWN[name], way, eager)
    for one, other in zip(trained, _on_one_device(_OWN[name]), strict=True):
        # Float32 sums of eight rows in another order.
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@_BOTH
@_WAYS
@pytest.mark.parametrize("name", _DIVIDED)
def test_a_loss_over_the_global_count_is_found(
    two_towers: Any, name: str, way: str, eager: bool
) -> None:
    with pytest.raises(ValueError, match="share of the global loss"):
        _trained(two_towers, _DIVIDED[name], way, eager)


@_WAYS
@pytest.mark.parametrize("name", ["a mean times this tower's part", "a sum over what was added up"])
def test_a_loss_over_the_global_count_is_found_where_no_shape_is_known(
    two_towers: Any, name: str, way: str
) -> None:
    with pytest.raises(ValueError, match="share of the global loss"):
        _trained(two_towers, _DIVIDED[name], way, eager=False, is_known=False)


@_WAYS
@pytest.mark.parametrize("name", ["over a number that is computed", "over a width", "pooling"])
def test_a_model_divides_by_what_it_likes_where_no_shape_is_known(
    two_towers: Any, name: str, way: str
) -> None:
    trained = _trained(two_towers, _OWN[name], way, eager=False, is_known=False)
    for one, other in zip(trained, _on_one_device(_OWN[name]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
