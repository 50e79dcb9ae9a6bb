"""Batch normalisation in towers: whether it trains is told by a tensor, and towers that evaluate read one average."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
tm = pytest.importorskip("towermigrate.helpers")
v1 = tf.compat.v1


def towers(number: int) -> Any:
    return tm.tower_strategy(number, devices=f"cpu:{number}")


def _slim(x: Any, training: Any, in_place: bool) -> Any:
    slim = pytest.importorskip("tf_slim")
    where = None if in_place else v1.GraphKeys.UPDATE_OPS
    return slim.batch_norm(
        x, decay=0.5, is_training=training, fused=False, updates_collections=where
    )


def _layers(x: Any, training: Any, in_place: bool) -> Any:
    return v1.layers.batch_normalization(x, momentum=0.5, training=training)


_AVERAGES = {"last": 3.0, "first": 1.0, "mean": 2.0, "all": 2.5}  # of which a step takes a half


@pytest.mark.parametrize("in_place", [False, True], ids=["collected", "in place"])
@pytest.mark.parametrize("normalise", [_slim, _layers])
@pytest.mark.parametrize("policy", _AVERAGES)
def test_batch_norm_that_is_told_whether_it_trains(
    policy: str, normalise: Callable[..., Any], in_place: bool
) -> None:
    strategy = towers(2)
    with strategy.scope():
        variables = tm.TowerVariables(batch_norm=policy)
    tower = variables.tower(lambda x, training: normalise(x, training, in_place))

    @tf.function(autograph=False)
    def step(x: Any, training: Any) -> Any:
        return strategy.run(lambda x: tower(x, training), args=(x,))

    batch = tm.shard_batch(np.array([[1.0], [1.0], [3.0], [3.0]], np.float32), strategy=strategy)
    means = []
    for training in (False, True, False):
        step(*batch, tf.constant(training))
        [mean] = variables.all(".*moving_mean")
        means.append(float(mean.read_value()[0]))
        copies = [float(copy.read_value()[0]) for copy in mean.values]
        if policy in ("mean", "all") or not hasattr(mean, "_owner"):
            assert copies == [means[-1]] * 2
    moved = 1.25 if policy == "all" else _AVERAGES[policy] / 2
    assert means == [0.0, moved, moved]


@pytest.mark.parametrize("number", [2, 4])
def test_towers_that_evaluate_read_the_mean_of_all(number: int) -> None:
    """Each read its own average, which is none that is saved or that `model` reads."""
    strategy = towers(number)
    with strategy.scope():
        variables = tm.TowerVariables(batch_norm="mean")

    def net(x: Any, training: bool) -> Any:
        return v1.layers.batch_normalization(x, momentum=0.5, training=training)

    tower = variables.tower(net)
    rows = np.random.RandomState(0).randn(2 * number, 3).astype("f") + 2.0
    batch = tm.shard_batch(rows, strategy=strategy)
    step = tf.function(lambda x, on: strategy.run(tower, args=(x, on)), autograph=False)
    for _ in range(2):
        step(*batch, True)
    seen = tm.concat_towers(step(*batch, False), strategy)
    evaluate = tf.function(variables.model(lambda x: net(x, False)), autograph=False)
    np.testing.assert_allclose(seen.numpy(), evaluate(tf.constant(rows)).numpy(), rtol=1e-6)


def test_an_average_that_is_updated_in_a_loop_says_so(two_towers: Any) -> None:
    with two_towers.scope():
        variables = tm.TowerVariables()

    @variables.tower
    def tower(x: Any) -> Any:
        with v1.variable_scope("bn", reuse=tf.compat.v1.AUTO_REUSE):
            _slim(x, True, in_place=True)
        with v1.variable_scope("bn", reuse=True):
            return tf.while_loop(
                lambda i, _: i < 2,
                lambda i, y: (i + 1, _slim(y * 2.0, True, in_place=True)),
                [0, x],
            )

    step = tf.function(lambda x: two_towers.run(tower, args=(x,)), autograph=False)
    with pytest.raises(ValueError, match="updated where the replicas cannot meet"):
        step(*tm.shard_batch(np.ones([4, 1], np.float32)))
