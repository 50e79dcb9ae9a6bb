"""The original runs with its own names: what the symbol pass does wrong shows, though both are run under one TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest

from towermigrate.symbols import alike, apply
from towermigrate.verify import VerifyOptions, run_verify

PROGRAM = """\
import numpy as np
import tensorflow as tf

NUM_GPUS = 2


def tower_loss(x, y):
    w = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.3))
    out = tf.matmul(x, w)
    if hasattr(tf, "log"):
        out = 2.0 * out
    return tf.reduce_mean(tf.square(out - y)) + 0.1 * tf.log(tf.reduce_sum(tf.square(w)) + 0.5)


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        mean = tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0)
        averaged.append((mean, pairs[0][1]))
    return averaged


x = tf.placeholder(tf.float32, [None, 3])
y = tf.placeholder(tf.float32, [None, 1])
xs, ys = tf.split(x, NUM_GPUS), tf.split(y, NUM_GPUS)
opt = tf.train.GradientDescentOptimizer(0.1)
tower_grads = []
for i in range(NUM_GPUS):
    with tf.device("/gpu:%d" % i), tf.variable_scope("model", reuse=i > 0):
        tower_grads.append(opt.compute_gradients(tower_loss(xs[i], ys[i])))
train_op = opt.apply_gradients(average_gradients(tower_grads))

rng = np.random.RandomState(3)
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(4):
        sess.run(train_op, {x: rng.rand(4, 3), y: rng.rand(4, 1)})
"""


def _verified(folder: Path, style: str) -> tuple[str | None, int]:
    text = (
        PROGRAM if style == "loop" else PROGRAM + "    print(sess.graph.get_operations()[0].name)\n"
    )
    (folder / "program.py").write_text(text, encoding="utf-8")
    report = run_verify(VerifyOptions(folder, devices=("cpu:2",), steps=3))
    return report.error, report.exit_code


@pytest.mark.parametrize("style", ["loop", "session"])
def test_names_that_are_right_are_equal(style: str, tmp_path: Path) -> None:
    assert _verified(tmp_path, style) == (None, 0)


@pytest.mark.full
@pytest.mark.parametrize("style", ["loop", "session"])
def test_a_module_that_is_asked_for_tensorflow_2_is_found(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "_rewrite_asked", lambda work, handled: None)

    assert _verified(tmp_path, style) == (None, 1)


@pytest.mark.full
@pytest.mark.parametrize("style", ["loop", "session"])
def test_a_name_that_goes_elsewhere_is_found(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(alike.ALIKE, "log", alike._of(1, "x name", now="math.log1p"))

    assert _verified(tmp_path, style) == (None, 1)
