"""Rows of a tower that the graph counts (`tf.shape(x)[0] // n`): loop style, and neighbours that must not be."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

PARTS = "x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
ROOM = " " * 20
EMPTY = "    tower_grads = []\n"
N_PARTS = "x, y = X[i * n:(i + 1) * n], Y[i * n:(i + 1) * n]\n"
COUNT = "n = tf.shape(X)[0] // 2\n"
INSIDE = (PARTS, COUNT + ROOM + N_PARTS)
FRONT = ((EMPTY, f"    {COUNT}" + EMPTY), (PARTS, N_PARTS))
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
BATCH = "            bx, by = batch(4)\n"
FIVE = (BATCH, "            bx, by = batch(4 + step % 2)\n")
MORE = (BATCH, "            bx, by = batch(4 + 2 * step)\n")
FED = (RUN, RUN.replace("X: bx, Y: by", "X: batch(4)[0], Y: by"))


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    taken("in the tower", INSIDE),
    taken("in front of the towers", *FRONT),
    taken("of batches of several sizes", *FRONT, MORE),
    taken("of batches that cannot be dealt out evenly", *FRONT, FIVE),
    taken("of an evaluation too", *FRONT, (RUN, RUN + "            ex, ey = batch(6)\n            print('%.6f' % sess.run(loss, {X: ex, Y: ey}))\n")),
    taken("written out", (PARTS, "x = X[i * (tf.shape(X)[0] // 2):(i + 1) * (tf.shape(X)[0] // 2)]\n" + ROOM + "y = Y[i * (tf.shape(X)[0] // 2):(i + 1) * (tf.shape(X)[0] // 2)]\n"), FIVE),
    taken("of each of them", (PARTS, "n = tf.shape(X)[0] // 2\n" + ROOM + "m = tf.shape(Y)[0] // 2\n" + ROOM + "x, y = X[i * n:(i + 1) * n], Y[i * m:(i + 1) * m]\n"), FIVE),
    taken("in two statements", (EMPTY, "    rows = tf.shape(X)[0]\n    n = rows // 2\n" + EMPTY), (PARTS, N_PARTS), MORE),
    taken("by a setting", ("drawn = [0]\n", "drawn = [0]\nTOWERS = 2\n"), ("range(2)", "range(TOWERS)"), (PARTS, COUNT.replace("2", "TOWERS") + ROOM + N_PARTS), FIVE),
    taken("by the length of the devices", ("for i in range(2):", "for i in range(len(DEVICES)):"), (PARTS, COUNT.replace("2", "len(DEVICES)") + ROOM + N_PARTS), FIVE),
    taken("of a placeholder of so many rows", ("tf.placeholder(tf.float32, [None, 3])", "tf.placeholder(tf.float32, [4, 3])"), (PARTS, "n = tf.shape(X)[0] // 2\n" + ROOM + "m = tf.shape(Y)[0] // 2\n" + ROOM + "x, y = X[i * n:(i + 1) * n], Y[i * m:(i + 1) * m]\n")),
    taken("of lists", *FRONT, (RUN, "            bx, by = bx.tolist(), by.tolist()\n" + RUN)),
]  # fmt: skip

LEFT = [
    left("fed what is computed there", "TM209", *FRONT, FED),
    left("read by the tower", "TM208", INSIDE, ("loss = tf.reduce_mean(tf.square(out - y))", "loss = tf.reduce_sum(tf.square(out - y)) / tf.cast(n, tf.float32)")),
    left("of what is made of an input", "TM208", (PARTS, "n = tf.shape(tf.identity(X))[0] // 2\n" + ROOM + N_PARTS)),
    left("of the columns", "TM208", (PARTS, "n = tf.shape(X)[1] - 1\n" + ROOM + N_PARTS)),
    left("bound anew", "TM208", (PARTS, COUNT + ROOM + "n = n * 1\n" + ROOM + N_PARTS)),
    left("with a comment", "TM208", (PARTS, COUNT.replace("\n", "  # of a tower\n") + ROOM + N_PARTS)),
    left("with a comment above", "TM208", (PARTS, "# of a tower\n" + ROOM + COUNT + ROOM + N_PARTS)),
    left("of other rows than the input has", "TM208", ("tf.placeholder(tf.float32, [None, 1])", "tf.placeholder(tf.float32, [4, 1])"), (PARTS, COUNT + ROOM + N_PARTS)),
    left("by a number that the graph holds", "TM209", (EMPTY, "    num = tf.Variable(2, trainable=False, name='num')\n" + EMPTY), (PARTS, COUNT.replace("2", "num") + ROOM + N_PARTS)),
    left("by a number that changes", "TM224", ("drawn = [0]\n", "drawn = [0]\nPARTS = 2\n"), (PARTS, COUNT.replace("2", "PARTS") + ROOM + N_PARTS), ("def batch(rows):\n", "def batch(rows):\n    global PARTS\n    PARTS = 1\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT)
