"""Towers' batches one beside the other in a placeholder (`x = X[i]`): loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

MADE = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
STACKED = (MADE, MADE.replace("[None", "[2, None"))
ANY = (MADE, MADE.replace("[None", "[None, None"))
FED = ("feed_dict={X: bx, Y: by}", "feed_dict={X: bx.reshape(2, 2, 3), Y: by.reshape(2, 2, 1)}")
MORE = ("feed_dict={X: bx, Y: by}", "feed_dict={X: np.tile(bx, 3).reshape(6, 2, 3), Y: np.tile(by, 3).reshape(6, 2, 1)}")  # fmt: skip
ROWS = "x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]"
BOTH = (ROWS, "x, y = X[i], Y[i]")
LOOP = "        for i in range(2):\n            with tf.device('/gpu:%d' % i):\n"


TAKEN = [
    taken("both", STACKED, BOTH, FED),
    taken("of any number", ANY, BOTH, FED),
    taken("more than there are towers", ANY, BOTH, MORE),
    taken("a statement each", STACKED, (ROWS, "x = X[i]\n                    y = Y[i]"), FED),
    taken("in a call", STACKED, (ROWS, "y = Y[i]"), ("out = net(x)", "out = net(X[i])"), FED),
    taken("computed with", STACKED, (ROWS, "x, y = X[i] * 0.5, Y[i]"), FED),
    taken("by numbered devices", STACKED, BOTH, FED, (LOOP, "        for i, device in enumerate(DEVICES):\n            with tf.device(device):\n")),
    taken("a part of a row", STACKED, (ROWS, "x, y = X[i][:1], Y[i][:1]"), FED),
]  # fmt: skip

LEFT = [
    left("another tower's", "TM227", STACKED, (ROWS, "x, y = X[i - 1], Y[i - 1]"), FED),
    left("in the other order", "TM227", STACKED, (ROWS, "x, y = X[1 - i], Y[1 - i]"), FED),
    left("of what is computed", "TM227", STACKED, BOTH, FED, ("    tower_grads = []\n", "    X2 = X * 2.0\n    tower_grads = []\n"), ("x, y = X[i], Y[i]", "x, y = X2[i], Y[i]")),
    left("the other way round", "TM201", STACKED, (ROWS, "x, y = X[i], Y[i]"), FED, ("for i in range(2):", "for i in reversed(range(2)):")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
