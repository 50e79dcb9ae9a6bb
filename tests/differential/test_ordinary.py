"""Ordinary spellings of loops, lists, runs and updates, each with neighbours that look alike and mean something else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

MADE = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
LOOP = "        for i in range(2):\n"
TAKEN_APART = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
FETCHED = "sess.run([train_op, loss]"
OPEN = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
NET = "def net(x):\n"
EMPTY = "    tower_grads = []\n"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def over(text: str, front: str = "") -> tuple[Change, ...]:
    """A tower loop over something, and what stands in front of it."""
    return (LOOP, LOOP.replace("range(2)", text)), (MADE, front + MADE)


def timed(text: str) -> tuple[Change, ...]:
    """A model that asks for the time."""
    return (NET, NET + text), ("import numpy", "import time\nimport numpy")


def listed(text: str, more: str = "") -> tuple[Change, ...]:
    """A tower that puts its loss on a list, and what it computes gradients of."""
    return (
        (LOSS, "                    losses.append(tf.reduce_mean(tf.square(out - y)))\n" + more),
        (EMPTY, EMPTY + "    losses = []\n"),
        ("compute_gradients(loss)", f"compute_gradients({text})"),
        (FETCHED, "sess.run([train_op, losses[-1]]"),
    )


def grouped(text: str) -> Change:
    """An update that stands in a group."""
    front = "    ema = tf.train.ExponentialMovingAverage(0.9)\n"
    return APPLIED, front + APPLIED.replace("train_op", "apply_op") + f"    train_op = {text}\n"


AVERAGE = "ema.apply(tf.trainable_variables())"
SHOWN = ("            print('step', step", "            print('%.4f' % sess.run(loss, {X: bx, Y: by}))\n            print('step', step")  # fmt: skip

WITHOUT_AVERAGES = ("tf.train.Saver()", "tf.train.Saver(tf.trainable_variables())")
"""They have no order with the update in a group: what they are is left to chance."""

TAKEN = [
    case("over numbers", *over("[0, 1]")),
    case("over a tuple of numbers", *over("(0, 1)")),
    case("over a list of numbers", *over("gpus", "    gpus = [0, 1]\n")),
    case("over a list of the module's", *over("GPUS"), ("drawn = [0]", "GPUS = [0, 1]\ndrawn = [0]")),
    case("over a list of which there is a count", *over("gpus", "    gpus = [0, 1]\n    count = len(gpus)\n")),
    case("over a default", *over("gpus"), ("def train():", "def train(gpus=[0, 1]):")),
    case("fetches that are added", (FETCHED, "sess.run([train_op] + [loss]")),
    case("fetches that are added to a list", (OPEN, "    wanted = [train_op]\n" + OPEN), (FETCHED, "sess.run(wanted + [loss]")),
    case("a list that is fetched alone and added to", (OPEN, "    wanted = [loss]\n" + OPEN), (FETCHED, "sess.run([train_op] + wanted"), ("            print('step', step", "            print('%.4f' % sess.run(wanted, {X: bx, Y: by})[0])\n            print('step', step")),
    case("the time, which nobody reads", *timed("    start = time.time()\n")),
    case("an item by the tower's number", *listed("losses[i]")),
    case("the last item", *listed("losses[-1]")),
    case("an average in a group", grouped(f"tf.group(apply_op, {AVERAGE})"), WITHOUT_AVERAGES),
    case("an update by another name", (APPLIED, APPLIED.replace("train_op", "apply_op") + "    train_op = apply_op\n")),
    case("an update by both names", (APPLIED, APPLIED + "    run_me = train_op\n"), (SHOWN[0], "            sess.run(run_me, {X: bx, Y: by})\n" + SHOWN[0])),
    case("rows that every turn counts", (TAKEN_APART, "                    n = ROWS // 2\n" + TAKEN_APART.replace("2:", "n:").replace("* 2]", "* n]")), ("drawn = [0]", "ROWS = 4\ndrawn = [0]")),
    case("rows that every turn begins with", ("drawn = [0]", "ROWS = 4\ndrawn = [0]"), (LOOP, LOOP + "            n = ROWS // 2\n"), (TAKEN_APART, TAKEN_APART.replace("2:", "n:").replace("* 2]", "* n]"))),
    case("a tensor that nothing reads", (MADE, MADE + "    n = tf.shape(X)[0] // 2\n")),
    case("what asks whether TensorFlow has a name", ("drawn = [0]", "SCALE = 2.0 if hasattr(tf, 'AUTO_REUSE') else 1.0\nOLD = 'Saver' in dir(tf.train)\ndrawn = [0]"), ("    return tf.matmul(x, w) + b", "    return tf.matmul(x, w) * SCALE + b"), ("        print('draws'", "        print(OLD, hasattr(tf.nn, 'rnn_cell'))\n        print('draws'")),
    case("both updates in a group", (APPLIED, "    ema = tf.train.ExponentialMovingAverage(0.9)\n    train_op = tf.group(opt.apply_gradients(grads, global_step=step_count), ema.apply(tf.trainable_variables()))\n"), WITHOUT_AVERAGES),
]  # fmt: skip

LEFT = [
    other("over other numbers", "TM227", *over("gpus", "    gpus = [1, 0]\n")),
    other("over a default that is given", "TM201", *over("gpus"), ("def train():", "def train(gpus=[0, 1]):"), ("    train()\n", "    train([0, 1])\n")),
    other("the time of the graph", "TM222", *timed("    x = x + (time.time() > 5)\n")),
    other("the time that is returned", "TM222", *timed("    start = time.time()\n"), ("    return tf.matmul(x, w) + b", "    return (tf.matmul(x, w) + b, start)[0]")),
    other("the time in the loop", "TM222", (LOSS, LOSS + "                    took = time.time()\n"), ("import numpy", "import time\nimport numpy"), ("        print('draws'", "        print(took > 0)\n        print('draws'")),
    other("variables that nothing reads", "TM211", (MADE, MADE + "    h = tf.layers.dense(X, 2)\n")),
    other("the first item", "TM203", *listed("losses[0]")),
]  # fmt: skip

FOOLING = [
    case("a list of numbers that changes", *over("gpus", "    gpus = [0, 1]\n    gpus.append(2)\n")),
    case("a default that the command line is", *over("gpus"), ("def train():", "def main(gpus=[0, 1]):"), ("    train()\n", "    tf.app.run(argv=[0, 1])\n")),
    case("numbers of another kind", *over("[False, True]")),
    case("an update whose name is bound anew", (APPLIED, APPLIED.replace("train_op", "apply_op") + "    train_op = apply_op\n    apply_op = loss\n")),
    case("an update by a name that was another", (APPLIED, "    train_op = loss\n" + APPLIED.replace("train_op", "apply_op") + "    train_op = apply_op\n")),
    case("rows of a list that grows", (LOOP, LOOP + "            n = len(tower_grads) * 2\n"), (TAKEN_APART, "                    x, y = X[n:n + 2], Y[n:n + 2]\n")),
    case("rows that change", (TAKEN_APART, "                    n = ROWS[0] // 2\n" + TAKEN_APART.replace("2:", "n:").replace("* 2]", "* n]")), ("drawn = [0]", "ROWS = [4]\ndrawn = [0]")),
    case("rows of a number that a function changes", (TAKEN_APART, "                    n = ROWS // 2\n" + TAKEN_APART.replace("2:", "n:").replace("* 2]", "* n]")), ("drawn = [0]", "ROWS = 4\ndrawn = [0]"), (NET, NET + "    global ROWS\n    ROWS = ROWS * 1\n")),
    case("a list that begins with a loss", *listed("losses[i]"), ("    losses = []\n", "    losses = [tf.constant(1.0)]\n")),
    case("an item in front of its time", *listed("losses[-1]", "                    losses.append(losses[-1] * 2.0)\n")),
    case("a loss bound anew behind the list", (LOSS, LOSS + "                    losses.append(loss)\n                    loss = loss * 2.0\n"), (EMPTY, EMPTY + "    losses = []\n"), ("compute_gradients(loss)", "compute_gradients(losses[i])")),
    case("fetches added to a list that grows", (OPEN, "    wanted = [train_op]\n" + OPEN), (FETCHED, "sess.run(wanted + [loss]"), ("        for step in range(4):\n", "        for step in range(4):\n            wanted = wanted[:1]\n")),
    case("fetches of a tuple and a list", (OPEN, "    wanted = (train_op,)\n" + OPEN), (FETCHED, "sess.run(wanted + (loss,)")),
    case("a group of an average in front", grouped(f"tf.group({AVERAGE}, apply_op)")),
    case("a group whose average is seen", grouped(f"tf.group(apply_op, {AVERAGE})"), ("        print('draws'", "        print('%.3f' % sess.run(ema.average(tf.trainable_variables()[1]))[0])\n        print('draws'")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_none_of_these_is_rewritten_to_something_else() -> None:
    none_does_anything_else(FOOLING)
