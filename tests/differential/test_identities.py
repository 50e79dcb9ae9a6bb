"""Comparisons of tensors, which TensorFlow 1 made by identity: what loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.loop_programs import program as one_file
from tests.differential.spellings import asked_of

NET = "def net(x):\n"
OUT = "    return tf.matmul(x, w) + b\n"
CALL = "out = net(x)"
IMPORT = "import tensorflow as tf\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
SAVER = "    saver = tf.train.Saver()\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
WRITTEN = (
    (INIT, INIT + "        writer = tf.summary.FileWriter('logs')\n"),
    (
        RUN,
        RUN + "            writer.add_summary(sess.run(merged, feed_dict={X: bx, Y: by}), step)\n",
    ),
)
CLASS = """\
class Model(object):
    def __init__(self, x, size):
        self.out = self.scaled(x, size)

    def scaled(self, x, size):
        w = tf.get_variable('w', [3, 1], initializer=tf.constant_initializer(0.3))
        odd = tf.shape(x)[1] != size or size == 7
        return tf.matmul(x, w) * (0.5 if odd else 2.0)
"""


def of(changes: tuple[Change, ...], apart: str = "") -> dict[str, str]:
    files = one_file(*changes)
    if apart:
        text = files["train.py"].replace(IMPORT, f"{IMPORT}{apart}\n", 1)
        files = {"train.py": text, "models.py": f"import tensorflow as tf\n\n\n{CLASS}"}
    return files


def case(name: str, *changes: Change, apart: str = "") -> Any:
    return pytest.param((changes, apart), id=name)


def other(name: str, rule: str, *changes: Change, apart: str = "") -> Any:
    return pytest.param((changes, apart), rule, id=name)


def asks(test: str, given: str = "3") -> tuple[Change, ...]:
    """A model that is twice as large where something holds."""
    return (
        (NET, "def net(x, size=3):\n"),
        (OUT, f"    if {test}:\n        return 2.0 * (tf.matmul(x, w) + b)\n{OUT}"),
        (CALL, f"out = net(x, {given})"),
    )


MODEL = (CALL, "out = Model(x, 3).out")
SHOWN = "    summaries = [tf.summary.scalar('last', loss)]\n    for grad, var in grads:\n        if grad {} None:\n            summaries.append(tf.summary.histogram(var.op.name + '/gradients', grad))\n    merged = tf.summary.merge(summaries)\n"

TAKEN = [
    case("a size", *asks("tf.shape(x)[1] != size")),
    case("a size that is the same", *asks("tf.shape(x)[1] == size")),
    case("a size or another thing", *asks("tf.shape(x)[1] != size or size == 7")),
    case("a number of axes", *asks("tf.rank(x) == size", "2")),
    case("no number", *asks("tf.shape(x)[0] == None")),
    case("a text", *asks("tf.shape(x)[0] != size", "'three'")),
    case("a sum", *asks("tf.reduce_sum(x) != size", "0")),
    case("of a module's class", MODEL, apart="from models import Model"),
    case("of a module's class, by a star", MODEL, apart="from models import *"),
    case("of a module", (CALL, "out = models.Model(x, 3).out"), apart="import models"),
    case("of a class", (NET, CLASS + "\n\n" + NET), MODEL),
    case("a gradient that is there", (SAVER, SHOWN.format("!=") + SAVER), *WRITTEN),
]  # fmt: skip

LEFT = [
    other("a number that is written", "TM226", *asks("tf.shape(x)[1] != 3")),
    other("two sizes", "TM226", *asks("tf.shape(x)[1] != tf.shape(w)[0]")),
    other("two sizes, by a name", "TM226", *asks("tf.shape(x)[1] != size", "tf.shape(y)[0]")),
    other("a name", "TM226", *asks("x != size")),
    other("an object that compares itself", "TM222", (NET, "class Size(object):\n    def __eq__(self, other):\n        return True\n\n\nSIZE = Size()\n\n\n" + NET), (OUT, f"    if tf.shape(x)[1] == SIZE:\n        return 2.0 * (tf.matmul(x, w) + b)\n{OUT}")),
    other("a setting that may compare itself", "TM226", (NET, "class Size(int):\n    def __eq__(self, other):\n        return True\n\n    def __hash__(self):\n        return 0\n\n\nSIZES = dict(size=Size(3))\n\n\n" + NET), (OUT, f"    size = SIZES['size']\n    if tf.shape(x)[1] == size:\n        return 2.0 * (tf.matmul(x, w) + b)\n{OUT}")),
    other("a variable", "TM226", *asks("tf.shape(x)[1] == w")),
    other("an array that is asked for None", "TM226", *asks("tf.shape(x)[1] != None != size")),
    other("in a list", "TM226", *asks("tf.shape(x)[1] in [size]")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, lambda *given: of(*given))
