"""Averages written out behind the towers, and values returned without a name: spellings that loop style takes, and others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

CALL = "    grads = average_gradients(tower_grads)\n"
DEF = "def batch(rows):\n"
TRAIN = "def train():\n"
SAVER = "    saver = tf.train.Saver()\n"
BEGIN = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
MAIN = "if __name__ == '__main__':\n    train()\n"
PAIRS = "    for pairs in zip(*tower_grads):\n"
MEAN = "        g = tf.reduce_mean(tf.stack([each for each, _ in pairs], 0), 0)\n"
APPEND = "        grads.append((g, pairs[0][1]))\n"
LOOP = "    grads = []\n" + PAIRS + MEAN + APPEND
FILLED = """\
    grads = []
    for grad_and_vars in zip(*tower_grads):
        each_grads = []
        for grad, var in grad_and_vars:
            if grad is None:
                grad = tf.zeros_like(var)
            each_grads.append(tf.expand_dims(grad, 0))
        mean = tf.reduce_mean(tf.concat(each_grads, 0), 0)
        grads.append((mean, grad_and_vars[0][1]))
"""


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def written(text: str) -> Change:
    return CALL, text


def deeper(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def apart(returned: str, bound: str) -> tuple[Change, Change]:
    """The builder's own function, which returns what is run."""
    return (
        (TRAIN, "def build():\n"),
        (
            SAVER + BEGIN,
            f"    return {returned}\n\n\n{TRAIN}    {bound} = build()\n" + SAVER + BEGIN,
        ),
    )


TAKEN = [
    case("in the scope", written(LOOP)),
    case("in the scope, zeros for None", written(FILLED)),
    case("with a comment", written("    # The mean of each gradient.\n    grads = []  # of all\n" + PAIRS + "        # one variable\n" + MEAN + APPEND)),
    case("with something between", written("    grads = []\n    rate = tf.constant(0.1)\n" + PAIRS + MEAN + APPEND)),
    case("under a device", written("    with tf.device('/cpu:0'):\n" + deeper(LOOP))),
    case("with a name that a later loop has too", written(LOOP + "    grads = [(g * 0.5, v) for g, v in grads]\n")),
    case("taken apart", written("    grads = []\n" + PAIRS + "        g = tf.add_n([pair[0] for pair in pairs]) / len(pairs)\n        v = pairs[0][1]\n        grads.append((g, v))\n")),
    case("under another name", written(LOOP.replace("grads.append", "means.append").replace("grads = []", "means = []") + "    grads = means\n")),
    case("with empty lines", written(LOOP.replace(MEAN, MEAN + "\n"))),
    case("returned without a name", *apart("X, Y, opt.apply_gradients(grads, global_step=step_count), loss", "X, Y, train_op, loss"), ("    train_op = opt.apply_gradients(grads, global_step=step_count)\n", "")),
    case("a mean returned under a name of a tower's", *apart("X, Y, train_op, tf.reduce_mean(losses)", "X, Y, train_op, loss"), ("    tower_grads = []\n", "    tower_grads = []\n    losses = []\n"), ("tower_grads.append(grads)\n", "tower_grads.append(grads)\n                    losses.append(loss)\n")),
    case("a name returned under one of a tower's", *apart("X, Y, train_op, mean", "X, Y, train_op, loss"), ("    tower_grads = []\n", "    tower_grads = []\n    losses = []\n"), ("tower_grads.append(grads)\n", "tower_grads.append(grads)\n                    losses.append(loss)\n"), (CALL, CALL + "    mean = tf.add_n(losses) / len(losses)\n")),
]  # fmt: skip

LEFT = [
    other("a sum of other weights", "TM203", written(LOOP.replace("[each for each, _ in pairs], 0), 0)", "[each * (k + 1) for k, (each, _) in enumerate(pairs)], 0), 0)"))),
    other("read behind", "TM204", written(LOOP + "    print(len(pairs))\n")),
    other("something read between", "TM204", written("    grads = []\n    count = len(grads)\n" + PAIRS + MEAN + APPEND)),
    other("something of the scope read in it", "TM204", written("    part = 0.5\n" + LOOP.replace("(g, ", "(g * part, "))),
    other("begun with something", "TM204", written(LOOP.replace("grads = []", "grads = [None][1:]"))),
    other("with an else", "TM204", written(LOOP + "    else:\n        print('averaged')\n")),
    other("over some of the towers", "TM204", written(LOOP.replace("zip(*tower_grads)", "zip(*tower_grads[:1])"))),
    other("under a condition", "TM204", written("    if len(tower_grads) > 1:\n" + deeper(LOOP) + "    else:\n        grads = tower_grads[0]\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
