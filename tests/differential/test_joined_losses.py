"""Losses of the towers' rows, joined and then averaged: `tf.reduce_mean(tf.concat(losses, axis=0))`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import TRAIN, Change
from tests.differential.spellings import asked_of_all

TOWER = TRAIN[TRAIN.index("                    x, y = ") : TRAIN.index("    saver = ")]
LOSS = "tf.nn.softmax_cross_entropy_with_logits(logits=out, labels=y)"
MEAN = "tf.reduce_mean(tf.concat(losses, axis=0))"
APPENDED = "                    losses.append(loss)\n"
CLASSES = (
    ("[3, 1], initializer=init(3, 1)", "[3, 4], initializer=init(3, 4)"),
    ("'b', [1]", "'b', [4]"),
    ("    return x, x.sum(1, keepdims=True)\n", "    return x, np.eye(4)[np.arange(rows) % 4]\n"),
    ("Y = tf.placeholder(tf.float32, [None, 1])", "Y = tf.placeholder(tf.float32, [None, 4])"),
    (
        "    tower_grads = []\n",
        "    losses = []\n    xs = tf.split(X, 2)\n    ys = tf.split(Y, 2)\n",
    ),
    ("[train_op, loss]", "[train_op, mean]"),
)
NUMBERS = (
    ("    return x, np.eye(4)[np.arange(rows) % 4]\n", "    return x, np.arange(rows) % 4\n"),
    ("Y = tf.placeholder(tf.float32, [None, 4])", "Y = tf.placeholder(tf.int64, [None])"),
)


def joined(loss: str = LOSS, mean: str = MEAN, *more: Change) -> tuple[Change, ...]:
    tower = f"""\
                    x, y = xs[i], ys[i]
                    out = net(x)
                    loss = {loss}
                    tf.get_variable_scope().reuse_variables()
{APPENDED}    mean = {mean}
    train_op = opt.minimize(mean, global_step=step_count)
"""
    return (*CLASSES, (TOWER, tower), *more)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, *more: Change, rule: str = "TM202") -> Any:
    return pytest.param(joined(LOSS, MEAN, *more), rule, id=name)


IN_MAIN = (
    ("def train():\n", "if __name__ == '__main__':\n"),
    ("\n\nif __name__ == '__main__':\n    train()\n", ""),
)

TAKEN = [
    case("joined", *joined()),
    case("the axis by its place", *joined(LOSS, "tf.reduce_mean(tf.concat(losses, 0))")),
    case("all by keyword", *joined(LOSS, "tf.reduce_mean(tf.concat(axis=0, values=losses))")),
    case("a name", *joined(LOSS, "tf.reduce_mean(tf.concat(losses, axis=0), name='mean')")),
    case("the second version", *joined(LOSS.replace("logits(", "logits_v2(", 1))),
    case("numbers of classes", *joined(LOSS.replace("softmax", "sparse_softmax"), MEAN, *NUMBERS)),
    case("parts in place", *joined(LOSS.replace("=out", "=net(xs[i])").replace("=y", "=ys[i]"), MEAN, ("                    x, y = xs[i], ys[i]\n                    out = net(x)\n", ""))),
    case("appended in place", *joined(LOSS, MEAN, (f"                    loss = {LOSS}\n", ""), ("append(loss)", f"append({LOSS})"))),
    case("a counted number of towers", *joined(LOSS, MEAN, ("    losses = []\n", "    count = 2\n    losses = []\n"), ("tf.split(X, 2)", "tf.split(X, int(count))"), ("tf.split(Y, 2)", "tf.split(Y, int(count))"), ("range(2)", "range(int(count))"))),
    case("an optimizer in place", *joined(LOSS, MEAN, ("opt.minimize(mean,", "tf.train.MomentumOptimizer(0.1, 0.9).minimize(\n        mean,"), ("    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n", ""))),
    case("fetched beside", *joined(LOSS, MEAN, ("            _, value = sess.run([train_op, mean]", "            _, value, each = sess.run([train_op, mean, losses]"), ("            print(", "            print([len(one) for one in each])\n            print("))),
    case("in the main block", *joined(), *IN_MAIN),
    case("in the main block, of devices that are counted", *joined(LOSS, MEAN, ("def batch(", "def devices():\n    from tensorflow.python.client import device_lib\n    return 2 * len([each for each in device_lib.list_local_devices() if each.device_type == 'CPU'][:1])\n\n\ndef batch("), ("    step_count = ", "    count = devices()\n    step_count = "), ("tf.split(X, 2)", "tf.split(X, int(count))"), ("tf.split(Y, 2)", "tf.split(Y, int(count))"), ("range(2)", "range(int(count))"), ("        saver.save", "        print('towers', count)\n        saver.save")), *IN_MAIN),
]  # fmt: skip

LEFT = [
    other("twice in every tower", (APPENDED, APPENDED * 2)),
    other("more of the first tower", (APPENDED, APPENDED.replace("loss)", "loss if i else tf.concat([loss, loss], 0))"))),
    other("something before", ("losses = []", "losses = [tf.zeros([3])]")),
    other("something behind", ("    mean = ", "    losses.append(tf.zeros([3]))\n    mean = ")),
    other("something behind, in place", ("    mean = ", "    losses += [tf.zeros([3])]\n    mean = ")),
    other("something behind, by another name", ("losses = []", "losses = []\n    others = losses"), ("    mean = ", "    others.append(tf.zeros([3]))\n    mean = "), rule="TM206"),
    other("less of the first tower", ("    mean = ", "    losses[0] = losses[0][:1]\n    mean = ")),
    other("parts of other sizes", ("tf.split(X, 2)", "tf.split(X, [1, 3])"), ("tf.split(Y, 2)", "tf.split(Y, [1, 3])")),
    other("rows that may be fewer", ("x, y = xs[i], ys[i]", "x, y = X[i * 3:(i + 1) * 3], Y[i * 3:(i + 1) * 3]")),
    other("parts that are set anew", ("    ys = tf.split(Y, 2)\n", "    ys = tf.split(Y, 2)\n    xs[0], ys[0] = xs[0][:1], ys[0][:1]\n")),
    other("parts that a function sets", ("def batch(", "def cut(parts):\n    parts[0] = parts[0][:1]\n\n\ndef batch("), ("    ys = tf.split(Y, 2)\n", "    ys = tf.split(Y, 2)\n    cut(xs)\n    cut(ys)\n")),
    other("rows that the tower picks", ("                    out = net(x)\n", "                    x, y = x[:i + 1], y[:i + 1]\n                    out = net(x)\n")),
    other("losses that the tower picks", (APPENDED, "                    loss = loss[:i + 1]\n" + APPENDED)),
    other("rows that values pick", ("out = net(x)", "out = tf.boolean_mask(net(x), tf.reduce_sum(y, 1) > -1)")),
    other("the sum", ("tf.reduce_mean(tf.concat", "tf.reduce_sum(tf.concat")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
