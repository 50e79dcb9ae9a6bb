"""A run that only writes summaries, of gradients in which a rounding decides: excused where the original's own jump so."""

from __future__ import annotations

from pathlib import Path

import pytest

from towermigrate.rewrite import rewrite_tree
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.report import VerifyReport

pytestmark = pytest.mark.full

# The fourth weights are not trained: their inputs are zero but for one row of the summaries' batch, in which the first
# unit is exactly at its threshold. The gradients of the last ones are always zero, and so the least.
PROGRAM = """\
import numpy as np
import tensorflow as tf


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        averaged.append((tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0), pairs[0][1]))
    return averaged


def rows(rng, last):
    x = rng.rand(64, 5)
    x[:, 3:] = 0.0
    x[0] = [0.0, 0.0, 0.0, 1.0, 0.0] if last else x[0]
    return x


def train():
    opt = tf.train.GradientDescentOptimizer(0.1)
    X = tf.placeholder(tf.float32, [None, 5])
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(2):
            with tf.device('/gpu:%d' % i):
                with tf.name_scope('tower_%d' % i) as scope:
                    x = X[i * 32:(i + 1) * 32]
                    w = tf.get_variable('w', [5, 3], initializer=tf.constant_initializer(0.3))
                    h = tf.nn.relu(tf.matmul(x, w) - np.float32([0.3, 0.1, 0.1]))
                    loss = tf.reduce_mean(tf.reduce_sum(h, 1))
                    tf.get_variable_scope().reuse_variables()
                    tower_grads.append(opt.compute_gradients(loss))
    grads = average_gradients(tower_grads)
    train_op = opt.apply_gradients(grads)
    summaries = [tf.summary.histogram(v.op.name + '/gradients', g) for g, v in grads]
    for v in tf.trainable_variables():
        summaries.append(tf.summary.histogram(v.op.name, v))
    summaries += [tf.summary.histogram('loss_%d' % k, loss * k) for k in range(4)]
    summary_op = tf.summary.merge(summaries)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        writer = tf.summary.FileWriter('logs')
        rng = np.random.RandomState(0)
        for step in range(3):
            sess.run(train_op, feed_dict={X: rows(rng, False)})
            writer.add_summary(sess.run(summary_op, feed_dict={X: rows(rng, True)}), step)
        writer.close()


if __name__ == '__main__':
    train()
"""


def verified(folder: Path, old: str, new: str, *, strict: bool = False) -> VerifyReport:
    pytest.importorskip("tensorflow")
    (result,) = rewrite_tree({"train.py": PROGRAM}).programs
    assert result.style == "loop"
    text = rewrite_tree({"train.py": PROGRAM}).texts["train.py"]
    assert text.count(old) == 1
    before, after = folder / "before", folder / "after"
    for each, said in ((before, PROGRAM), (after, text.replace(old, new))):
        each.mkdir()
        (each / "train.py").write_text(said)
    return run_verify(VerifyOptions(before, devices=("cpu:2",), rewritten=after, strict=strict))


ROUNDED = "tf.matmul(x, w) -", "tf.matmul(x, w) * 1.0000002 -"


def test_a_rounding_that_decides_in_it_is_excused(tmp_path: Path) -> None:
    report = verified(tmp_path, *ROUNDED)
    assert report.exit_code == 0, report.to_json()
    (run,) = report.runs
    assert {each.name for each in run.excuses} == {
        f"w/gradients of step {step} in the event file of logs" for step in range(3)
    }


def test_strict_excuses_none(tmp_path: Path) -> None:
    report = verified(tmp_path, *ROUNDED, strict=True)
    assert report.exit_code == 1
    assert "w/gradients" in (report.runs[0].first_difference or report).name  # type: ignore[union-attr]


def test_a_histogram_of_something_else_is_a_difference(tmp_path: Path) -> None:
    report = verified(tmp_path, "'/gradients', g)", "'/gradients', g * 1.02)")
    assert report.exit_code == 1
    assert not report.runs[0].excuses
