"""What programs written by hand draw outside of their towers: the same numbers as in the original's graph, in its order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from towermigrate.verify import VerifyOptions, run_verify

ORIGINAL = """\
import numpy as np
import tensorflow as tf

TOWERS = 2
rows = tf.placeholder(tf.float32, [6])
noisy = rows + 0.1 * tf.random_normal([6])
losses = []
for i, part in zip(range(TOWERS), tf.split(noisy, TOWERS)):
    with tf.device("/gpu:%d" % i), tf.variable_scope("net", reuse=i > 0):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        losses.append(tf.reduce_mean(tf.square(w * part - 1.0)))
train = tf.train.GradientDescentOptimizer(0.05).minimize(tf.add_n(losses) / TOWERS)
shown = w * tf.random_uniform([])
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
    session.run(tf.global_variables_initializer())
    drawn = np.random.RandomState(0)
    for step in range(3):
        session.run(train, {rows: drawn.rand(6)})
        print("shown %.6f" % session.run(shown))
"""
BY_HAND = """\
import numpy as np
import tensorflow as tf
import towermigrate.helpers as tm

TOWERS = 2
strategy = tm.tower_strategy(TOWERS)
with strategy.scope():
    opt = tf.compat.v1.train.GradientDescentOptimizer(0.05)
    variables = tm.TowerVariables()


def weight():
    with tf.compat.v1.variable_scope("net"):
        return tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.ones_initializer())


@variables.tower
def tower(part):
    return tf.reduce_mean(tf.square(weight() * part - 1.0))


@tf.function(autograph=False)
def train(rows):
    noisy = rows + 0.1 * tf.random.normal([6])

    def step(replica, noisy):
        part = tf.split(noisy, TOWERS)[replica]
        opt.apply_gradients(tm.tower_gradients(opt, tower(part), variables.trainable()))

    strategy.run(step, args=(strategy.experimental_distribute_values_from_function(
        lambda context: context.replica_id_in_sync_group), noisy))


@tf.function(autograph=False)
@variables.model
def shown():
    return weight() * tf.random.uniform([])


drawn = np.random.RandomState(0)
for step in range(3):
    train(tf.constant(drawn.rand(6), tf.float32))
    print("shown %.6f" % shown().numpy())
"""


def _verified(folder: Path, made: str) -> Any:
    for name, text in (("original", ORIGINAL), ("by_hand", made)):
        (folder / name).mkdir()
        (folder / name / "train.py").write_text(text)
    options = VerifyOptions(
        folder / "original", rewritten=folder / "by_hand", devices=("cpu:2",), steps=3
    )
    return run_verify(options)


@pytest.mark.full
def test_the_same_is_drawn(tmp_path: Path) -> None:
    report = _verified(tmp_path, BY_HAND)
    assert report.equal, report.to_json()


@pytest.mark.full
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("0.1 * tf.random.normal", "0.2 * tf.random.normal"), id="in training"),
        pytest.param(("weight() * tf.random", "2.0 * tf.random"), id="in what is shown"),
    ],
)
def test_another_use_of_it_is_found(tmp_path: Path, change: tuple[str, str]) -> None:
    assert change[0] in BY_HAND
    assert not _verified(tmp_path, BY_HAND.replace(*change)).equal
