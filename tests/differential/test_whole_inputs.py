"""Labels that are read whole behind towers of which each has its part of them: loop style where the parts together are the whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

SLICES = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
START = "    tower_grads = []\n"
END = "                    tower_grads.append(grads)\n"
SAVER = "    saver = tf.train.Saver()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
MARGIN = " " * 20

# Three classes, of which labels say one: by a row of three, or by its number.
CLASSES: tuple[Change, ...] = (
    ("tf.get_variable('w', [3, 1], initializer=init(3, 1))", "tf.get_variable('w', [3, 3], initializer=init(3, 3))"),
    ("Y = tf.placeholder(tf.float32, [None, 1])", "Y = tf.placeholder(tf.float32, [None, 3])"),
    ("x.sum(1, keepdims=True)", "np.eye(3)[(x.sum(1) * 10).astype(int) % 3]"),
    (START, START + "    outs = []\n"),
    (END, END + f"{MARGIN}outs.append(out)\n"),
)  # fmt: skip
NUMBERED: tuple[Change, ...] = (
    *CLASSES[:1],
    ("Y = tf.placeholder(tf.float32, [None, 1])", "Y = tf.placeholder(tf.int32, [None])"),
    ("x.sum(1, keepdims=True)", "(x.sum(1) * 10).astype(int) % 3"),
    ("loss = tf.reduce_mean(tf.square(out - y))", "loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=out))"),
    *CLASSES[3:],
)  # fmt: skip
SPLIT: tuple[Change, ...] = (
    (SLICES, f"{MARGIN}x, y = xs[i], ys[i]\n"),
    ("    tower_grads = []\n    outs", "    xs, ys = tf.split(X, 2), tf.split(Y, 2)\n    tower_grads = []\n    outs"),
)  # fmt: skip


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def shown(*lines: str) -> tuple[Change, ...]:
    """A value behind the towers, and a run of it."""
    text = "".join(f"    {line}\n" for line in lines)
    return (SAVER, text + SAVER), (
        RUN,
        RUN + "            print('%.6f' % sess.run(right, feed_dict={X: bx, Y: by}))\n",
    )


EQUAL = "same = tf.equal(tf.argmax(logits, 1), tf.argmax(Y, 1))"
RIGHT = "right = tf.reduce_mean(tf.cast(same, tf.float32))"
LOGITS = "logits = tf.concat(outs, 0)"

TAKEN = [
    case("classes that are compared", *CLASSES, *shown(LOGITS, EQUAL, RIGHT)),
    case("in one expression", *CLASSES, *shown("right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(tf.concat(outs, axis=0), 1), tf.argmax(Y, axis=1)), tf.float32))")),
    case("of split inputs", *CLASSES, *SPLIT, *shown(LOGITS, EQUAL, RIGHT)),
    case("values of split inputs", *CLASSES, *SPLIT, *shown(LOGITS, "right = tf.reduce_mean(tf.square(logits - Y))")),
    case("with the loss", *CLASSES, (SAVER, f"    {LOGITS}\n    {EQUAL}\n    {RIGHT}\n" + SAVER), (RUN, RUN.replace("_, value", "_, value, part").replace("loss]", "loss, right]") + "            print('%.6f' % part)\n")),
    case("losses of all rows", *CLASSES, *shown(LOGITS, "right = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=Y, logits=logits))")),
    case("numbers of classes", *NUMBERED, *shown(LOGITS, "right = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, Y, 1), tf.float32))")),
    case("one statement for each part", *CLASSES, (SLICES, f"{MARGIN}x = X[i * 2:(i + 1) * 2]\n{MARGIN}y = Y[i * 2:(i + 1) * 2]\n"), *shown(LOGITS, EQUAL, RIGHT)),
]  # fmt: skip

LEFT = [
    other("values of slices, of which rows may be left over", "TM203", *CLASSES, *shown(LOGITS, "right = tf.reduce_mean(tf.square(logits - Y))")),
    other("beside a constant", "TM209", *CLASSES, *shown(LOGITS, "right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(Y, 1), 1), tf.float32))")),
    other("the sum of all", "TM203", *CLASSES, *shown(LOGITS, "right = tf.reduce_sum(logits) / tf.reduce_sum(Y)")),
    other("along another axis", "TM203", *CLASSES, *shown(LOGITS, EQUAL.replace(", 1)", ", 0)"), RIGHT)),
    other("parts in another order", "TM227", *CLASSES, (SLICES, f"{MARGIN}x, y = X[i * 2:(i + 1) * 2], Y[(1 - i) * 2:(2 - i) * 2]\n"), *shown(LOGITS, EQUAL, RIGHT)),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)
