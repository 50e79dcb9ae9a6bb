"""Inputs that are prepared before they are dealt out, row by row: what loop style takes, and what it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

MADE = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
TAKEN_APART = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
SAVER = "    saver = tf.train.Saver()\n"


def sliced(text: str, more: str = "") -> tuple[Change, ...]:
    """A prepared input whose slices the towers take."""
    return (MADE, MADE + f"    scaled = {text}\n" + more), (
        TAKEN_APART,
        TAKEN_APART.replace("x, y = X[", "x, y = scaled["),
    )


def split(text: str, axis: str = "") -> tuple[Change, ...]:
    """A prepared input whose parts the towers take."""
    return (
        (MADE, MADE + f"    scaled = {text}\n    parts = tf.split(scaled, 2{axis})\n"),
        (
            TAKEN_APART,
            "                    x = parts[i]\n                    y = Y[i * 2:(i + 1) * 2]\n",
        ),
    )


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


WHOLE = ("X = tf.placeholder(tf.float32", "X = tf.placeholder(tf.int32")
FED = ("return x, x.sum(", "return (x * 20).astype(int), x.sum(")
SUMMED: tuple[Change, ...] = (
    (SAVER, "    merged = tf.summary.merge(summaries)\n    writer = tf.summary.FileWriter('log')\n" + SAVER),
    (RUN, RUN + "            writer.add_summary(sess.run(merged, feed_dict={X: bx, Y: by}), step)\n"),
)  # fmt: skip


def tagged(tag: str) -> tuple[Change, ...]:
    made = "                    grads = opt.compute_gradients(loss)\n"
    return (
        (made, f"                    summaries = [tf.summary.scalar({tag}, loss)]\n" + made),
        *SUMMED,
    )


TAKEN = [
    case("scaled, in slices", *sliced("X / 2.0 - 0.25")),
    case("scaled, in parts", *split("X * 0.5 + 1")),
    case("scaled, in parts by an axis", *split("2.0 * X", ", axis=0")),
    case("of whole numbers", *sliced("tf.cast(X, tf.float32) / 12.75 - 1.0"), WHOLE, FED),
    case("of whole numbers, in parts", *split("tf.to_float(X) * 0.1"), WHOLE, FED),
    case("below zero", *sliced("-X")),
    case("one among several", *split("tf.one_hot(X, 3)"), ("X = tf.placeholder(tf.float32, [None, 3])", "X = tf.placeholder(tf.int32, [None])"), ("return x, x.sum(", "return (x.sum(1) * 10).astype(int) % 3, x.sum(")),
    case("in another form", *split("tf.reshape(X, [-1, 1, 3])"), ("out = net(x)", "out = net(x[:, 0])")),
    case("both", (MADE, MADE + "    scaled = X / 2.0\n    wished = Y - 0.5\n"), (TAKEN_APART, TAKEN_APART.replace("X[", "scaled[").replace("Y[", "wished["))),
    case("with a summary", *sliced("X / 2.0"), *tagged("'total'")),
]  # fmt: skip

LEFT = [
    other("over all rows", "TM217", *sliced("X - tf.reduce_mean(X, 0)")),
    other("by another tensor", "TM217", *sliced("X * Y")),
    other("by an array", "TM217", *sliced("X * np.float32([1.0, 2.0, 3.0])")),
    other("that is looked at", "TM217", *sliced("X / 2.0"), (RUN, RUN + "            print(sess.run(scaled, feed_dict={X: bx}).sum())\n")),
    other("that is fed", "TM217", *sliced("X / 2.0"), (RUN, RUN.replace("{X: bx", "{scaled: bx"))),
    other("of which two parts are taken", "TM217", *sliced("X / 2.0"), ("out = net(x)", "out = net(x) + tf.reduce_mean(scaled[i * 2:(i + 1) * 2])")),
    other("by columns", "TM208", *split("X / 2.0", ", axis=1")),
    other("whose rows another form mixes", "TM217", *split("tf.reshape(X, [-1, 3])"), ("X = tf.placeholder(tf.float32, [None, 3])", "X = tf.placeholder(tf.float32, [None, 6])"), ("return x, x.sum(", "return np.tile(x, 2)[:rows], x.sum(")),
    other("that is bound anew", "TM217", *sliced("X / 2.0", "    scaled = scaled - 1.0\n")),
    other("where operations are asked for their names", "TM217", *sliced("X / 2.0"), *tagged("loss.op.name")),
    other("where a tag may be that of what is computed", "TM217", *sliced("X / 2.0"), *tagged("'truediv'")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
