"""A shuffle that is taken away, or goes over far fewer rows: found on whole programs of each style."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from towermigrate.verify import VerifyOptions, VerifyReport, run_verify

FULL = pytest.mark.full
PROGRAM = """\
import numpy as np
import tensorflow as tf

TOWERS = 2


def read():
    rows = tf.constant(np.random.RandomState(0).rand(320, 4).astype("f"))
    row = tf.train.slice_input_producer([rows], shuffle=False)[0]
    return tf.train.shuffle_batch([row], 16, capacity=160, min_after_dequeue=120)


def average_gradients(tower_grads):
    average = []
    for pairs in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in pairs]
        average.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))
    return average


def train():
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        batch = read()
        opt = tf.train.GradientDescentOptimizer(0.1)
        tower_grads = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(TOWERS):
                with tf.device("/gpu:%d" % i), tf.name_scope("tower_%d" % i):
                    x = batch
                    w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
                    loss = tf.reduce_mean(tf.square(tf.reduce_sum(x * w, 1) - 1.0))
                    tf.get_variable_scope().reuse_variables()
                    tower_grads.append(opt.compute_gradients(loss))
        train_op = opt.apply_gradients(average_gradients(tower_grads))
        config = tf.ConfigProto(allow_soft_placement=True)
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess=sess, coord=coordinator)
            for step in range(20):
                sess.run(train_op)
            coordinator.request_stop()
            coordinator.join(threads)


if __name__ == "__main__":
    train()
"""
QUEUE = "shuffle_batch([row], 16, capacity=160, min_after_dequeue=120)"
PLAIN = "batch([row], 16, capacity=160)"


def _verified(folder: Path, style: str, by: str, old: str = QUEUE) -> VerifyReport:
    before, after = folder / "before", folder / "after"
    before.mkdir()
    (before / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "towermigrate", "rewrite", str(before)]
    subprocess.run([*command, "--style", style, "--out", str(after)], check=True)
    text = (after / "train.py").read_text(encoding="utf-8")
    assert old in text
    (after / "train.py").write_text(text.replace(old, by))
    report = run_verify(VerifyOptions(before, rewritten=after, steps=10))
    assert report.error is None, report.error
    return report


@pytest.mark.full
@pytest.mark.parametrize("style", ["loop", "session"])
def test_what_is_shuffled_alike_is_equal(style: str, tmp_path: Path) -> None:
    report = _verified(tmp_path, style, QUEUE)
    assert report.equal and not report.left_out, report.to_json()


@pytest.mark.parametrize(
    ("style", "by", "expected", "actual"),
    [
        ("session", PLAIN, "another order in each run", "the same order in each run"),
        pytest.param(
            "loop", PLAIN, "another order in each run", "the same order in each run", marks=FULL
        ),
        pytest.param(
            "session", QUEUE.replace("120", "2").replace("160", "4"), "mixed over 120",
            "mixed over 2 ", marks=FULL,
        ),
    ],
)  # fmt: skip
def test_what_is_not_is_found(
    style: str, by: str, expected: str, actual: str, tmp_path: Path
) -> None:
    report = _verified(tmp_path, style, by)
    (run,) = report.runs
    difference = run.first_difference
    assert not report.equal and difference is not None
    assert difference.name.startswith("order of the rows of input ")
    assert expected in str(difference.expected) and actual in str(difference.actual)
    assert any("shuffle" in each.cause for each in run.diagnosis), run.diagnosis


@pytest.mark.full
def test_a_seed_that_a_queue_is_given_is_found_or_named(tmp_path: Path) -> None:
    # How full the queue is when a row is drawn is a race, so that its seed may fix the order, or not.
    report = _verified(tmp_path, "loop", QUEUE.replace("120", "120, seed=1"))
    assert not report.equal or any(
        each.startswith("shuffling of the inputs: ") for each in report.left_out
    )


@pytest.mark.full
@pytest.mark.parametrize(
    ("style", "old", "new"),
    [
        ("session", "sess.run(train_op)", "sess.run([train_op] if step else batch)"),
        ("loop", "train_step(*", "next(batches); train_step(*"),
    ],
)
def test_a_batch_more_is_found(style: str, old: str, new: str, tmp_path: Path) -> None:
    (run,) = _verified(tmp_path, style, new, old).runs
    difference = run.first_difference
    assert difference is not None and difference.name.startswith("input batches")
    assert difference.expected == "1 batches taken for it"
    assert difference.actual == "2 batches taken for it"
