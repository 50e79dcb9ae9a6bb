"""A loop with gradients that is given a variable which is assigned beside it: no style does what TensorFlow 1 did."""

from __future__ import annotations

import pytest

from towermigrate.emit import Emission, emit_tree
from towermigrate.recognize import recognize_tree

PROGRAM = """\
import tensorflow as tf


def weight(w):
    u = tf.get_variable('u', [1, 3], trainable=False)

    def again(k, u, v):
        v = tf.nn.l2_normalize(tf.matmul(u, w, transpose_b=True))
        return k + 1, tf.nn.l2_normalize(tf.matmul(v, w)), v

    _, moved, v = tf.while_loop(lambda k, u, v: k < 1, again, (tf.constant(0), u, tf.zeros([1, 3])))
    with tf.control_dependencies([u.assign(moved)]):
        return w / tf.matmul(tf.matmul(v, w), moved, transpose_b=True)


def net(x):
    w = tf.get_variable('w', [3, 3])
    return tf.reduce_mean(tf.matmul(x, weight(w)))


x = tf.placeholder(tf.float32, [4, 3])
parts = tf.split(x, 2)
opt = tf.train.GradientDescentOptimizer(0.1)
losses = []
for i in range(2):
    with tf.device('/gpu:%d' % i), tf.variable_scope('net', reuse=tf.AUTO_REUSE):
        losses.append(net(parts[i]))
train = opt.minimize(tf.reduce_mean(tf.stack(losses)))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(train, {x: [[1.0, 2.0, 3.0]] * 4})
"""


def emitted(old: str = "", new: str = "") -> Emission:
    assert old in PROGRAM
    sources = {"m.py": PROGRAM.replace(old, new) if old else PROGRAM}
    return emit_tree(sources, recognize_tree(sources))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("u.assign(moved)", "tf.assign(u, moved)"),
        ("(tf.constant(0), u, tf.zeros([1, 3]))", "loop_vars=[tf.constant(0), u, tf.zeros([1, 3])]"),
    ],
)  # fmt: skip
def test_it_is_refused(old: str, new: str) -> None:
    (result,) = emitted(old, new).results
    assert (result.status, [each.rule for each in result.findings]) == ("refused", ["TM261"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    with tf.control", "    moved, v = tf.stop_gradient(moved), tf.stop_gradient(v)\n    with tf.control"),
        ("trainable=False)", "trainable=False, use_resource=True)"),
        ("u.assign(moved)", "tf.no_op()"),
        ("_, moved, v = tf.while_loop(lambda k, u, v: k < 1, again, (tf.constant(0), u, tf.zeros([1, 3])))", "_, moved, v = again(0, u, None)"),
    ],
)  # fmt: skip
def test_what_keeps_the_same_value_converts(old: str, new: str) -> None:
    (result,) = emitted(old, new).results
    assert (result.status, result.style) == ("converted", "session")
