"""Keras optimizers with the helpers: where slots were made, loss scales under a clip, the legacy ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import towermigrate.helpers as tm

keras: Any = pytest.importorskip("keras")
ROWS = np.array([1.0, 3.0, 2.0, 6.0], np.float32)


def _step(strategy: Any, optimizer: Any, w: Any, scaled: bool = False) -> Callable[[Any], None]:
    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tm.global_batch_loss(w * x)
            target = optimizer.scale_loss(loss) if scaled else loss
        pairs = [(tape.gradient(target, w), w)]
        tm.apply_averaged(optimizer, tm.average_gradients(pairs, reduce="sum"))

    return tf.function(lambda x: strategy.run(step, args=(x,)), autograph=False)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "RMSprop"])
def test_legacy_optimizers_apply_averages(two_towers: Any, name: str) -> None:
    """Not built before: its counter is made by the update."""
    with two_towers.scope():
        w = tf.Variable(1.0)
        optimizer = getattr(tf_keras.optimizers.legacy, name)(0.1)
    train = _step(two_towers, optimizer, w)
    for _ in range(2):
        train(*tm.shard_batch(ROWS))
    alone, other = tf.Variable(1.0), getattr(tf_keras.optimizers.legacy, name)(0.1)
    for _ in range(2):
        other.apply_gradients([(tf.constant(float(ROWS.mean())), alone)])
    assert [float(copy) for copy in w.values] == [pytest.approx(float(alone), rel=1e-5)] * 2


@pytest.mark.parametrize("clip", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_a_loss_scale_factor_is_taken_off_before_the_clip(two_towers: Any, clip: str) -> None:
    def made() -> Any:
        return keras.optimizers.SGD(0.5, loss_scale_factor=64.0, **{clip: 0.6})

    with two_towers.scope():
        w, optimizer = tf.Variable(1.0), made()
        optimizer.build([w])
    _step(two_towers, optimizer, w, scaled=True)(*tm.shard_batch(ROWS))
    alone, other = tf.Variable(1.0), made()
    other.apply([tf.constant(64.0 * float(ROWS.mean()))], [alone])
    assert float(alone) == pytest.approx(1.0 - 0.5 * 0.6)  # the clip limits what is unscaled
    assert [float(copy) for copy in w.values] == [pytest.approx(float(alone), rel=1e-6)] * 2


@pytest.mark.parametrize("way", ["apply_averaged", "tower_gradients"])
def test_slots_are_made_in_the_scope(two_towers: Any, way: str) -> None:
    def trained(in_scope: bool, optimizer: Any) -> Any:
        with two_towers.scope():
            w, made = tf.Variable(1.0), type(optimizer).from_config(optimizer.get_config())
            if in_scope:
                made.build([w])
        if not in_scope:
            made.build([w])

        def step(x: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tm.global_batch_loss(w * x)
            if way == "tower_gradients":
                made.apply_gradients(tm.tower_gradients(tape, loss, [w]))
                return
            pairs = [(tape.gradient(loss, w), w)]
            tm.apply_averaged(made, tm.average_gradients(pairs, reduce="sum"))

        run = tf.function(lambda x: two_towers.run(step, args=(x,)), autograph=False)
        run(*tm.shard_batch(ROWS))
        return w

    adagrad = tf_keras.optimizers.Adagrad(0.1)
    with pytest.raises(ValueError, match=r"outside of strategy\.scope"):
        trained(False, adagrad)
    first, second = (float(copy) for copy in trained(True, adagrad).values)
    assert first == second
    # SGD without a momentum leaves its slot alone.
    plain = trained(False, tf_keras.optimizers.SGD(0.1))
    assert float(plain.values[0]) == pytest.approx(1.0 - 0.1 * 3.0)
