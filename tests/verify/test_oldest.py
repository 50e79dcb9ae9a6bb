"""verify with an original that runs under TensorFlow 1.3: much of what the probes ask of TensorFlow is not there yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tf1_env
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.options import ALL_STEPS

FIXTURES = Path(__file__).parent / "fixtures"

# A dropout, a saver, a summary and a batch norm's moving average: each is recorded in its own way.
PROGRAM = """\
import numpy as np
import tensorflow as tf

TOWERS = 2


def average_gradients(tower_grads):
    average = []
    for pairs in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in pairs]
        average.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))
    return average


def tower_loss(x):
    w = tf.get_variable("w", [4, 3], initializer=tf.random_normal_initializer(seed=3))
    y = tf.nn.dropout(tf.matmul(x, w), 0.5)
    return tf.reduce_mean(tf.square(y + tf.random_uniform([3])))


def main():
    data = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, [8, 4])
    opt = tf.train.AdamOptimizer(0.1)
    parts = tf.split(x, TOWERS)
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(TOWERS):
            with tf.device("/gpu:%d" % i):
                loss = tower_loss(parts[i])
                tf.get_variable_scope().reuse_variables()
                tower_grads.append(opt.compute_gradients(loss))
    train = opt.apply_gradients(average_gradients(tower_grads))
    saver = tf.train.Saver()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(4):
            _, value = sess.run([train, loss], feed_dict={x: data.rand(8, 4)})
            print("step %d loss %.5f" % (step, value))
        saver.save(sess, "./model")


if __name__ == "__main__":
    main()
"""


def _verified(before: Path, after: Path | None) -> None:
    python = tf1_env.required_python(tf1_env.OLDEST)
    report = run_verify(VerifyOptions(before, rewritten=after, steps=ALL_STEPS, tf1_python=python))
    assert report.error is None, report.error
    assert report.reference.tensorflow == "1.3.0"
    assert report.equal, report.to_json()
    (run,) = report.runs
    verdicts = {level.level: level.verdict for level in run.levels}
    assert set(verdicts.values()) == {"equal"}


def test_loop_style(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    _verified(tmp_path, None)


@pytest.mark.full
def test_session_style(tmp_path: Path) -> None:
    for form in ("before", "after"):
        (tmp_path / form).mkdir()
        text = (FIXTURES / "session" / form / "gan.py").read_text(encoding="utf-8")
        (tmp_path / form / "gan.py").write_text(text, encoding="utf-8")
    _verified(tmp_path / "before", tmp_path / "after")
