"""Variables that no step reads: that they are there, and what they start with, is compared like all else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from towermigrate.verify import VerifyOptions, run_verify

ORIGINAL = """\
import numpy as np
import tensorflow as tf


def main():
    rows = tf.placeholder(tf.float32, [6, 2])
    parts = tf.split(rows, 2)
    opt = tf.train.MomentumOptimizer(0.1, 0.9)
    grads = []
    for i in range(2):
        with tf.device("/gpu:%d" % i), tf.variable_scope("net", reuse=i > 0):
            w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
            tf.get_variable("seen", [], initializer=tf.zeros_initializer(), trainable=False)
            loss = tf.reduce_mean(tf.square(tf.reduce_sum(parts[i] * w, 1) - 1.0))
            grads.append(opt.compute_gradients(loss))
    mean = [(sum(g for g, _ in pairs) / 2.0, pairs[0][1]) for pairs in zip(*grads)]
    train = opt.apply_gradients(mean)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(tf.global_variables_initializer())
        drawn = np.random.RandomState(0)
        for _ in range(3):
            _, value = session.run([train, loss], {rows: drawn.rand(6, 2)})
        print("loss %.5f" % value)


if __name__ == "__main__":
    main()
"""
BY_HAND = """\
import numpy as np
import tensorflow as tf
import towermigrate.helpers as tm

strategy = tm.tower_strategy(2)
with strategy.scope():
    opt = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
    variables = tm.TowerVariables()
spec = tf.TensorSpec([6, 2], tf.float32)


@variables.tower
def tower(rows):
    with tf.compat.v1.variable_scope("net"):
        w = tf.compat.v1.get_variable("w", [2], initializer=tf.compat.v1.ones_initializer())
        tf.compat.v1.get_variable("seen", [], initializer=tf.compat.v1.zeros_initializer(), trainable=False)
        return tf.reduce_mean(tf.square(tf.reduce_sum(rows * w, 1) - 1.0))


@tf.function(autograph=False)
def train(rows):
    def step(rows):
        loss = tower(rows)
        opt.apply_gradients(tm.tower_gradients(opt, loss, variables.trainable()))
        return loss

    return tm.last_tower(strategy.run(step, args=(rows,)))


drawn = np.random.RandomState(0)
for _ in range(3):
    value = train(*tm.shard_batch(drawn.rand(6, 2), specs=(spec,)))
print("loss %.5f" % value.numpy())
"""
STATISTIC = BY_HAND[BY_HAND.index("        tf.compat.v1.get_variable(") : BY_HAND.index("        return tf.reduce_mean")]  # fmt: skip


def _verified(folder: Path, devices: str, change: tuple[str, str]) -> Any:
    assert change[0] in BY_HAND
    for name, text in (("original", ORIGINAL), ("by_hand", BY_HAND.replace(*change))):
        (folder / name).mkdir()
        (folder / name / "train.py").write_text(text)
    options = VerifyOptions(
        folder / "original", rewritten=folder / "by_hand", devices=(devices,), steps=3
    )
    return run_verify(options)


@pytest.mark.full
@pytest.mark.parametrize("devices", ["cpu:2", "workers:2"])
@pytest.mark.parametrize(
    ("change", "level"),
    [
        pytest.param(("", ""), None, id="as it is"),
        pytest.param(("zeros_init", "ones_init"), "initial", id="another start"),
        pytest.param((STATISTIC, ""), "structure", id="none"),
    ],
)
def test_what_no_step_reads(
    tmp_path: Path, devices: str, change: tuple[str, str], level: str | None
) -> None:
    report = _verified(tmp_path, devices, change)
    (run,) = report.runs
    if level is None:
        assert report.equal and not report.not_compared, report.to_json()
        assert {each.level: each.arrays for each in run.levels}["initial"] == 3
        return
    assert not report.equal
    assert run.first_difference is not None
    assert (run.first_difference.level, run.first_difference.name) == (level, "net/seen")
