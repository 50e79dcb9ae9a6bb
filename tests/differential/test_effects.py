"""Checks, prints and functions of Python in the towers: those that every run needs loop style takes, the others not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
START = "    tower_grads = []\n"
APPENDED = "                    tower_grads.append(grads)\n"
SAVER = "    saver = tf.train.Saver()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
PRINTED = "            print('step', step, 'loss', '%.6f' % value)\n"
OUT = "                    out = net(x)\n"
NET = "def net(x):\n"
MEAN = (
    (START, START + "    losses = []\n"),
    (APPENDED, APPENDED + "                    losses.append(loss)\n"),
    (SAVER, "    mean = tf.reduce_mean(losses)\n" + SAVER),
    (RUN, RUN.replace("[train_op, loss]", "[train_op, mean]")),
)
"""Every run fetches the mean of all towers' losses."""


def case(name: str, *changes: Change, mean: tuple[Change, ...] = MEAN) -> Any:
    return pytest.param((*mean, *changes), id=name)


def other(name: str, *changes: Change, rule: str = "TM225", mean: tuple[Change, ...] = MEAN) -> Any:
    return pytest.param((*mean, *changes), rule, id=name)


def behind(text: str) -> Change:
    return LOSS, LOSS + "".join(f"                    {line}\n" for line in text.split("\n"))


def before(text: str) -> Change:
    return OUT, "".join(f"                    {line}\n" for line in text.split("\n")) + OUT


def module(text: str) -> Change:
    return NET, text + "\n\n\n" + NET


FINITE = "loss = tf.check_numerics(loss, 'not finite')"
SHOWN = "loss = tf.Print(loss, [loss], 'loss ')"
ASSERTED = "check = tf.assert_greater_equal(x, -1.0)\nwith tf.control_dependencies([check]):\n    x = tf.identity(x)"
PYTHON = module("def clipped(value):\n    return np.minimum(value, 0.9)")
TARGET = before("y = tf.py_func(clipped, [y], tf.float32)")
ALONE = (
    PRINTED,
    PRINTED + "            print('%.6f' % sess.run(loss, feed_dict={X: bx, Y: by}))\n",
)

DEVICE = "with tf.device('/gpu:%d' % i):"
PLACED = "def placed(i):\n    def device(op):\n        {}\n        return '/gpu:%d' % i if op.type == 'MatMul' else '/cpu:0'\n    return device"


def placer(text: str, head: str = "") -> tuple[Change, Change]:
    """A function that TensorFlow asks for the device of each operation."""
    return module(head + PLACED.format(text)), (DEVICE, "with tf.device(placed(i)):")


COUNTED = "hits = tf.cast(tf.confusion_matrix(tf.cast(tf.reshape(y, [-1]) > 0.5, tf.int64), tf.cast(tf.reshape(x[:, 0], [-1]) > 0.3, tf.int64), 2), tf.float32)"
MATRICES = (
    (START, START + "    matrices = []\n"),
    (APPENDED, APPENDED + "                    matrices.append(hits)\n"),
    (SAVER, "    matrix = tf.add_n(matrices)\n" + SAVER),
    (PRINTED, PRINTED + "            print(sess.run(matrix, {X: bx, Y: by}))\n"),
)

TAKEN = [
    case("a function of devices", *placer("kind = op.type")),
    case("a function of devices with a list of its own", *placer("kinds = []\n        kinds.append(op.type)")),
    case("a shape that Python's function loses", PYTHON, before("y = tf.py_func(clipped, [y], tf.float32)\ny.set_shape([2, 1])")),
    case("a shape of an input", before("x.set_shape([2, 3])")),
    case("a shape of a result", (OUT, OUT + "                    out.set_shape([None, 1])\n")),
    case("numbers are finite", behind(FINITE)),
    case("numbers are finite, of what the model gives", before("x = tf.check_numerics(x, 'x')")),
    case("numbers are finite, by another name", behind("loss = tf.debugging.check_numerics(loss, message='not finite')")),
    case("printed", behind(SHOWN)),
    case("printed, twice", behind(f"{SHOWN}\n{FINITE}")),
    case("asserted", before(ASSERTED)),
    case("asserted, two at once", before("checks = [tf.assert_less(x, 9.0), tf.assert_none_equal(y, 99.0)]\nwith tf.control_dependencies(checks):\n    x = tf.identity(x)")),
    case("asserted of the loss", behind("with tf.control_dependencies([tf.assert_less(loss, 99.0)]):\n    loss = tf.identity(loss, name='checked')")),
    case("asserted by a confusion matrix that the loss has", before(f"{COUNTED}\ny = y + tf.reduce_sum(hits) * 0.01")),
    case("asserted in a function", module("def positive(value):\n    with tf.control_dependencies([tf.assert_greater(value, -9.0)]):\n        return tf.identity(value)"), behind("loss = positive(loss) + positive(tf.reduce_sum(out))")),
    case("a function of Python", PYTHON, TARGET),
    case("a function of Python that gives two", module("def both(a, b):\n    return a * 0.5, b + np.float32(1.0)"), before("a, b = tf.py_func(both, [y, x], [tf.float32, tf.float32])\ny = a + tf.reduce_mean(b)")),
    case("a function of NumPy", before("y = tf.py_func(np.sign, [y], tf.float32) * 0.5 + y")),
]  # fmt: skip

LEFT = [
    other("asserted by a confusion matrix of some runs", before(COUNTED), *MATRICES),
    other("a function of devices that prints", *placer("print('placed') if op.type == 'MatMul' else None"), rule="TM223"),
    other("a function of devices that fills a list", *placer("seen.append(op.type)", "seen = []\n\n\n"), rule="TM223"),
    other("a function of devices that counts", *placer("seen[op.type] = 1 + seen.get(op.type, 0)", "seen = {}\n\n\n"), rule="TM223"),
    other("a lambda of devices that fills a list", module("seen = []"), (DEVICE, "with tf.device(lambda op: seen.append(1) or '/gpu:%d' % i):"), rule="TM223"),
    other("a shape of a variable", (OUT, OUT + "                    tf.trainable_variables()[0].set_shape([3, 1])\n"), rule="TM222"),
    other("of the last tower only", behind(FINITE), mean=()),
    other("printed, of the last tower only", behind(SHOWN), mean=()),
    other("a run of another value", behind(FINITE), ALONE),
    other("only the update is run", behind(SHOWN), mean=((RUN, RUN.replace("_, value = sess.run([train_op, loss]", "value = 0.0\n            sess.run(train_op")),)),
    other("nothing waits for it", before("check = tf.assert_less(x, 9.0)")),
    other("what waits is not used", before("with tf.control_dependencies([tf.assert_less(x, 9.0)]):\n    seen = tf.identity(x)")),
    other("nothing that is made waits", before("with tf.control_dependencies([tf.assert_less(x, 9.0)]):\n    x = tf.convert_to_tensor(x)")),
    other("of one of two in a function", module("def finite(value):\n    return tf.check_numerics(value, 'no')"), behind("seen = finite(out)\nloss = finite(loss)")),
    other("printed a few times", behind("loss = tf.Print(loss, [loss], 'loss ', 2)"), rule="TM220"),
    other("in a branch of the graph", behind("loss = tf.cond(loss > 0.2, lambda: tf.check_numerics(loss, 'no'), lambda: loss)"), rule="TM222"),
    other("of what all towers have", (SAVER, "    mean = tf.check_numerics(mean, 'no')\n" + SAVER), rule="TM203"),
    other("in what Python repeats", before("for _ in range(len(drawn)):\n    y = tf.check_numerics(y, 'no')"), rule="TM225"),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
