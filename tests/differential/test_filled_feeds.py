"""Towers in a list of tuples, `zip(*models)` of it behind them, and a function that fills what their placeholders are fed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all

TAKEN_APART = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
MADE = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
GRADS = (
    "                    tower_grads.append(grads)\n    grads = average_gradients(tower_grads)\n"
)
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
FILL = """\
def fill(feed, models, rows, bx, by):
    for i in range(len(models)):
        x, y, _, _, _ = models[i]
        start = i * rows
        stop = (i + 1) * rows
        feed[x] = bx[start:stop]
        feed[y] = by[start:stop]
    return feed


"""
FED = "            feed = {}\n            feed = fill(feed, models, 2, bx, by)\n"
FETCHED = RUN.replace("{X: bx, Y: by}", "feed")
ZIP = "    tower_x, tower_y, tower_out, tower_losses, tower_grads = zip(*models)\n"
APPEND = "                    models.append((x, y, out, loss, grads))\n"
MEAN = "    loss = tf.reduce_mean(tower_losses)\n"
FORM = (
    (MADE, ""),
    (
        TAKEN_APART,
        """\
                    x = tf.placeholder(tf.float32, [None, 3])
                    y = tf.placeholder(tf.float32, [None, 1])
""",
    ),
    ("    tower_grads = []\n", "    models = []\n"),
    (GRADS, f"{APPEND}{ZIP}{MEAN}    grads = average_gradients(tower_grads)\n"),
    ("def batch(", f"{FILL}def batch("),
    (RUN, FED + FETCHED),
)
IN_PLACE = """\
            feed = {}
            for k in range(len(models)):
                px, py, _, _, _ = models[k]
                feed[px] = bx[k * 2:(k + 1) * 2]
                feed[py] = by[k * 2:(k + 1) * 2]
"""

ERROR = """\
    all_y = tf.reshape(tf.stack(tower_y, 0), [-1, 1])
    all_out = tf.reshape(tf.stack(tower_out, 0), [-1, 1])
    error = tf.reduce_mean(tf.abs(all_y - all_out))
"""
TOLD = "            print('%.5f' % sess.run(error, feed_dict=feed))\n"
JOINED = ERROR.replace("tf.reshape(tf.stack(tower_y, 0), [-1, 1])", "tf.concat(tower_y, 0)")
LISTS = (
    (APPEND, """\
                    xs.append(x)
                    ys.append(y)
                    tower_out.append(out)
                    tower_losses.append(loss)
                    tower_grads.append(grads)
"""),
    ("    models = []\n", "    xs, ys, tower_out, tower_losses, tower_grads = [], [], [], [], []\n"),
    (ZIP, ""),
    (FED, IN_PLACE.replace("models", "xs").replace("                px, py, _, _, _ = xs[k]\n", "").replace("[px]", "[xs[k]]").replace("[py]", "[ys[k]]")),
    (FILL, ""),
)  # fmt: skip


def case(name: str, *changes: Change) -> Any:
    return pytest.param((*FORM, *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((*FORM, *changes), rule, id=name)


TAKEN = [
    case("a function"),
    case("in place", (FED, IN_PLACE)),
    case("a number of rows", ("    models = []\n", "    models = []\n    rows = 4 // 2\n"), ("models, 2, ", "models, rows, ")),
    case("other names", (FILL, FILL.replace("x, y, ", "its_x, its_y, ").replace("[x]", "[its_x]").replace("[y]", "[its_y]"))),
    case("a docstring", (FILL, FILL.replace("    for i", '    """What each tower is fed."""\n    for i'))),
    case("twice", (FETCHED, FETCHED + "            feed = {}\n            feed = fill(feed, models, 2, bx * 0.5, by)\n            print('%.5f' % sess.run(loss, feed_dict=feed))\n")),
    case("every second row", (FILL, FILL.replace("[start:stop]", "[i::2]"))),
    case("batches that the function changes", (FILL, FILL.replace("    for i", "    bx = bx * 0.5\n    for i"))),
]  # fmt: skip

EVALUATED = [
    case("an evaluation of all", (MEAN, MEAN + ERROR), (FETCHED, FETCHED + TOLD)),
    case("an evaluation of all, joined", (MEAN, MEAN + JOINED), (FETCHED, FETCHED + TOLD)),
    case("an evaluation of others", (MEAN, MEAN + ERROR), (FETCHED, FETCHED + "            feed = {}\n            feed = fill(feed, models, 3, np.ones((6, 3)), np.ones((6, 1)))\n" + TOLD)),
    case("lists", *LISTS),
    case("an evaluation of lists", *LISTS, (MEAN, MEAN + ERROR.replace("tower_y", "ys")), (FETCHED, FETCHED + TOLD)),
    case("a list that is for the evaluation alone", *LISTS, ("ys, tower_out", "ys, tower_y, tower_out"), ("= [], ", "= [], [], "), ("                    ys.append(y)\n", "                    ys.append(y)\n                    tower_y.append(y)\n"), (MEAN, MEAN + ERROR), (FETCHED, FETCHED + TOLD)),
]  # fmt: skip
TAKEN += EVALUATED

LEFT = [
    other("a number of towers that is another behind them", "TM210", *LISTS, ("def train():", "def train(n=2):"), ("range(2)", "range(n)"), ("    saver = ", "    n = 1\n    saver = ")),
    other("an evaluation of a list whose item is set", "TM206", *LISTS, (MEAN, MEAN + "    ys[0] = ys[1]\n" + ERROR.replace("tower_y", "ys")), (FETCHED, FETCHED + TOLD)),
    other("an evaluation of a list that is made longer", "TM206", *LISTS, (MEAN, MEAN + "    ys.extend(ys[:1])\n    tower_out.extend(tower_out[:1])\n" + ERROR.replace("tower_y", "ys")), (FETCHED, FETCHED + TOLD)),
    other("an evaluation of what is bound anew", "TM209", *LISTS, ("                    out = net(x)\n", "                    fed = y\n                    y = y * 2.0\n                    out = net(x)\n"), ("ys.append(y)", "ys.append(fed)"), (MEAN, MEAN + ERROR.replace("tower_y", "ys")), (FETCHED, FETCHED + TOLD)),
    other("the other tower's rows", "TM209", (FILL, FILL.replace("= models[i]", "= models[1 - i]"))),
    other("a number that is bound anew", "TM204", (FILL, FILL.replace("        start =", "        i = 1 - i\n        start ="))),
    other("rows that are skipped", "TM209", (FILL, FILL.replace("        start =", "        if i > 5:\n            continue\n        start ="))),
    other("another dict", "TM209", (FILL, FILL.replace("    for i", "    feed = dict(feed)\n    for i"))),
    other("a tuple that is turned round", "TM204", (ZIP, ZIP + "    models.reverse()\n")),
    other("a tuple that is taken away", "TM204", (FED, FED + "            print(len(models.copy()))\n")),
    other("lists that are fetched", "TM204", (FETCHED, FETCHED + "            print(type(sess.run(tower_losses, feed_dict=feed)).__name__)\n")),
    other("a function that another calls", "TM209", (FED, "            feed = {}\n            feed = (lambda given: fill(given, models, 2, bx, by))(feed)\n")),
    other("a name that it reads of the module", "TM209", (FILL, "size = 2\n\n\n" + FILL.replace("* rows", "* size")), ("    models = []\n", "    models = []\n    size = 1\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
