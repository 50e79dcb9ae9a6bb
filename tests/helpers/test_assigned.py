"""Variables that a step updates itself: what the replicas assign is put together as the gradient or loss needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

ROWS = np.array([1.0, 3.0, 2.0, 6.0], np.float32)
RATE = 0.25  # 1/2 may be the part of one of two towers
MEAN, SUM, FIRST = (
    tf.VariableAggregation.MEAN,
    tf.VariableAggregation.SUM,
    tf.VariableAggregation.ONLY_FIRST_REPLICA,
)
_Gradient = Callable[[Any, Any], Any]


def _share(w: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = tm.global_batch_loss(tf.reduce_sum(w * x[:, tf.newaxis], 1))
    return tape.gradient(loss, w)


def _tower(w: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.reduce_sum(w * x[:, tf.newaxis], 1))
    return tm.tower_gradients(tape, loss, [w])[0][0]


def _averaged(w: Any, x: Any) -> Any:
    return tm.average_gradients([(_share(w, x), w)], reduce="sum")[0][0]


def _all_reduced(w: Any, x: Any) -> Any:
    return tf.distribute.get_replica_context().all_reduce("SUM", _share(w, x))


def _updated(
    strategy: Any, gradient: _Gradient, aggregation: Any, eager: bool, *, is_read: bool
) -> Any:
    with strategy.scope():
        w = tf.Variable([1.0, 2.0], aggregation=aggregation)
        rate = tf.Variable(RATE)

    def step(x: Any) -> None:
        w.assign_sub((rate if is_read else RATE) * gradient(w, x))

    def run(x: Any) -> None:
        strategy.run(step, args=(x,))

    (run if eager else tf.function(run, autograph=False))(*tm.shard_batch(ROWS))
    return w.numpy()


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("is_read", [False, True], ids=["a number", "a variable"])
@pytest.mark.parametrize(
    ("gradient", "right", "wrong"),
    [
        (_share, SUM, (MEAN, FIRST)),
        (_tower, SUM, (MEAN, FIRST)),
        (_averaged, MEAN, (SUM,)),
        (_averaged, FIRST, ()),
        (_all_reduced, MEAN, (SUM,)),
    ],
)
def test_the_aggregation_fits_the_gradient(
    two_towers: Any, gradient: _Gradient, right: Any, wrong: Any, is_read: bool, eager: bool
) -> None:
    for aggregation in wrong:
        with pytest.raises(ValueError, match="aggregation="):
            _updated(two_towers, gradient, aggregation, eager, is_read=is_read)
    updated = _updated(two_towers, gradient, right, eager, is_read=is_read)
    np.testing.assert_allclose(updated, [1.0 - RATE * 3.0, 2.0 - RATE * 3.0], rtol=1e-6)


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("synchronization", ["ON_READ", "AUTO"])
def test_a_total_of_shares_is_a_sum(two_towers: Any, synchronization: str, eager: bool) -> None:
    def total(aggregation: Any) -> float:
        with two_towers.scope():
            made = tf.Variable(
                0.0,
                trainable=False,
                aggregation=aggregation,
                synchronization=getattr(tf.VariableSynchronization, synchronization),
            )

        def step(x: Any) -> None:
            made.assign_add(tm.global_batch_loss(x))

        def run(x: Any) -> None:
            two_towers.run(step, args=(x,))

        for _ in range(2):
            (run if eager else tf.function(run, autograph=False))(*tm.shard_batch(ROWS))
        return float(made.numpy())

    with pytest.raises(ValueError, match="aggregation=MEAN"):
        total(MEAN)
    assert total(SUM) == pytest.approx(2.0 * 3.0)


def test_what_a_program_counts_is_its_own(two_towers: Any) -> None:
    with two_towers.scope():
        steps = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=FIRST)
        mean = tf.Variable(0.0, trainable=False, aggregation=MEAN)

    def step(x: Any) -> None:
        steps.assign_add(1)
        mean.assign(tf.reduce_mean(x))

    two_towers.run(step, args=tm.shard_batch(ROWS))
    assert int(steps.numpy()) == 1
    assert float(mean.numpy()) == pytest.approx(3.0)
