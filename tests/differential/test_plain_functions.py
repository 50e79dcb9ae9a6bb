"""Programs of plain functions under the names that most have: one that makes placeholders, one that builds, `train`, `evaluate`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import HEAD, MODEL, Change
from tests.differential.spellings import asked_of

FUNCTIONS = """\
def placeholders():
    x = tf.placeholder(tf.float32, [None, 3], name='x')
    y = tf.placeholder(tf.float32, [None, 1], name='y')
    return x, y


def build(x, y, rate=0.1):
    opt = tf.train.MomentumOptimizer(rate, 0.9)
    tower_grads, losses, outs = [], [], []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(2):
            with tf.device('/gpu:%d' % i), tf.name_scope('tower_%d' % i):
                start, end = i * 2, (i + 1) * 2
                out = net(x[start:end])
                loss = tf.reduce_mean(tf.square(out - y[start:end]))
                losses.append(loss)
                outs.append(tf.tanh(out))
                tf.get_variable_scope().reuse_variables()
                tower_grads.append(opt.compute_gradients(loss))
    train_op = opt.apply_gradients(average_gradients(tower_grads))
    return train_op, tf.add_n(losses) / 2, tf.concat(outs, 0)


def train(sess, x, y, train_op, loss, steps=4):
    for step in range(steps):
        bx, by = batch(4)
        _, value = sess.run([train_op, loss], feed_dict={x: bx, y: by})
        print('step', step, '%.6f' % value)


def evaluate(sess, x, out):
    found = []
    for number in range(2):
        found.append(sess.run(out, feed_dict={x: batch(4)[0]}))
    return np.concatenate(found)
"""
MAIN = """\
def main():
    x, y = placeholders()
    train_op, loss, out = build(x, y)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        train(sess, x, y, train_op, loss)
        values = evaluate(sess, x, out)
        print(values.shape, '%.6f' % values.sum(), drawn[0])
"""
MADE = "    x, y = placeholders()\n"
EVALUATED = "        values = evaluate(sess, x, out)\n        print(values.shape, '%.6f' % values.sum(), drawn[0])\n"


def program(*changes: Change) -> dict[str, str]:
    """The files of the program with each `(old, new)` applied; every `old` must be there."""
    text = "\n\n".join([HEAD, MODEL, FUNCTIONS, MAIN, "if __name__ == '__main__':\n    main()\n"])
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("as it is"),
    case("placeholders where they are used", (FUNCTIONS[: FUNCTIONS.index("def build")], ""), (MADE, "    x = tf.placeholder(tf.float32, [None, 3])\n    y = tf.placeholder(tf.float32, [None, 1])\n")),
    case("no evaluation", (EVALUATED, "        print(drawn[0])\n")),
    case("placeholders that are told", ("    return x, y\n", "    print('two placeholders')\n    return x, y\n")),
    case("under names of TensorFlow's modules", ("def evaluate(", "def metrics("), ("evaluate(sess", "metrics(sess")),
    case("a list of losses that is summed up", ("tf.add_n(losses) / 2", "sum(losses) * 0.5")),
]  # fmt: skip

LEFT = [
    other("placeholders made twice", "TM208", (MADE, MADE + "    more, _ = placeholders()\n")),
    other("placeholders that are kept elsewhere", "TM209", ("def placeholders():\n", "kept = []\n\n\ndef placeholders():\n"), ("    return x, y\n", "    kept.append(x)\n    return x, y\n"), (MADE, "    placeholders()\n    x = kept[0]\n    y = tf.placeholder(tf.float32, [None, 1])\n")),
    other("a training that TensorFlow hands on", "TM205", ("def main():\n", "def main():\n    tf.own_train = train\n"), ("        train(sess, x", "        tf.own_train(sess, x")),
    other("a TensorFlow of its own", "TM205", ("def main():\n", "def patched(tf):\n    tf.train = train\n\n\ndef main():\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)
