"""Placeholders in a list, one for each tower: spellings that loop style takes, and neighbours that it must not."""

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
BATCH = "            bx, by = batch(4)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
OPEN = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"

LISTS = (
    MADE,
    "    X = [tf.placeholder(tf.float32, [None, 3]) for _ in range(2)]\n"
    "    Y = [tf.placeholder(tf.float32, [None, 1]) for _ in range(2)]\n",
)
OF_TOWER = (TAKEN_APART, "                    x, y = X[i], Y[i]\n")
FED = (
    BATCH,
    """\
            feed = {}
            for k in range(2):
                bx, by = batch(2 + k)
                feed[X[k]] = bx
                feed[Y[k]] = by
""",
)
FROM_FEED = (RUN, RUN.replace("{X: bx, Y: by}", "feed"))
FORM = (LISTS, OF_TOWER, FED, FROM_FEED)


def case(name: str, *changes: Change, form: tuple[Change, ...] = FORM) -> Any:
    return pytest.param((*form, *changes), id=name)


def other(name: str, rule: str, *changes: Change, form: tuple[Change, ...] = FORM) -> Any:
    return pytest.param((*form, *changes), rule, id=name)


def behind(text: str) -> Change:
    """Statements behind the towers."""
    return AVERAGED, AVERAGED + text


LOOP = """\
    X = []
    Y = []
    for k in range(2):
        X.append(tf.placeholder(tf.float32, [None, 3]))
        Y.append(tf.placeholder(tf.float32, [None, 1], name='y_%d' % k))
"""
LOOK = (
    FROM_FEED[1],
    FROM_FEED[1]
    + "            print('%.5f' % sess.run(loss, feed_dict=feed))\n            print('%.5f' % sess.run(loss, feed))\n",
)

ONE_BY_ONE = ((BATCH, "            (a, c), (b, d) = batch(2), batch(2)\n"),)
IN_TOWERS = (
    (MADE, "    X, Y = [], []\n"),
    (
        TAKEN_APART,
        """\
                    x = tf.placeholder(tf.float32, [None, 3])
                    y = tf.placeholder(tf.float32, [None, 1])
                    X.append(x)
                    Y.append(y)
""",
    ),
)
DIRECTLY = """\
                    X.append(tf.placeholder(tf.float32, [None, 3]))
                    Y.append(tf.placeholder(tf.float32, [None, 1]))
                    x, y = X[i], Y[i]
"""
TURNS = "{X[0]: batch(2)[0], Y[0]: batch(2)[1], X[1]: batch(2)[0], Y[1]: batch(2)[1]}"

LOOKED = """\
            if step % 2:
                print('%.5f' % sess.run(loss, feed_dict={X[0]: a, X[1]: b, Y[0]: c, Y[1]: d}))
"""


def deeper(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


TAKEN = [
    case("fed to a look alone", (FROM_FEED[1], FROM_FEED[1] + FED[1].replace("feed", "more") + "            print('%.5f' % sess.run(loss, feed_dict=more))\n")),
    case("by comprehensions"),
    case("appended in a loop", form=((MADE, LOOP), *FORM[1:])),
    case("appended in a loop, made at once", form=((MADE, LOOP.replace("    X = []\n    Y = []\n", "    X, Y = [], []\n")), *FORM[1:])),
    case("with other runs", LOOK),
    case("by assignments of their own", (OF_TOWER[1], "                    x = X[i]\n                    y = Y[i]\n")),
    case("in expressions", (OF_TOWER[1], ""), ("out = net(x)", "out = net(X[i])"), ("out - y", "out - Y[i]")),
    case("fed by one expression", ("                bx, by = batch(2 + k)\n                feed[X[k]] = bx\n                feed[Y[k]] = by\n", "                feed[X[k]] = np.full([2, 3], 0.1 * step)\n                feed[Y[k]] = np.full([2, 1], 0.1 * k)\n")),
    case("fed by dict and zip", (FED[1], "            xs, ys = zip(*[batch(2) for _ in range(2)])\n"), ("feed_dict=feed", "feed_dict=dict([*zip(X, xs), *zip(Y, ys)])")),
    case("fed to the method", (RUN.replace("{X: bx, Y: by}", "feed"), "            train_op.run(feed_dict=feed)\n            value = loss.eval(feed_dict=feed)\n")),
    case("fed one by one", *ONE_BY_ONE, (RUN, RUN.replace("{X: bx, Y: by}", "{X[0]: a, X[1]: b, Y[0]: c, Y[1]: d}")), form=FORM[:2]),
    case("fed one by one, by turns", *ONE_BY_ONE, (RUN, RUN.replace("{X: bx, Y: by}", "{X[0]: a, Y[0]: c, X[1]: b, Y[1]: d}")), form=FORM[:2]),
    case("fed one by one, what is computed there", ONE_BY_ONE[0], (RUN, RUN.replace("{X: bx, Y: by}", "{X[0]: batch(2)[0], X[1]: batch(2)[0], Y[0]: c, Y[1]: d}")), form=FORM[:2]),
    case("fed one by one, a dict that is filled", *ONE_BY_ONE, (RUN, "            feed = {X[0]: a, Y[0]: c}\n            feed[X[1]] = b\n            feed[Y[1]] = d\n" + FROM_FEED[1]), form=FORM[:2]),
    case("made in the towers", *IN_TOWERS, *FORM[2:], form=()),
    case("made in the towers, named", *IN_TOWERS, *FORM[2:], ("[None, 3])\n", "[None, 3], name='x_%d' % i)\n"), ("[None, 1])\n", "[None, 1], name='y_{}'.format(i))\n"), form=()),
    case("made in the towers beside a list", *IN_TOWERS, *FORM[2:], ("    X, Y = [], []\n", "    X, Y, tower_grads = [], [], []\n"), ("    tower_grads = []\n", ""), form=()),
    case("made in the towers, appended at once", IN_TOWERS[0], (TAKEN_APART, DIRECTLY), *FORM[2:], form=()),
    case("made in the towers, behind other statements", IN_TOWERS[0], (TAKEN_APART, "                    each = 'tower_%d' % i\n                    with tf.name_scope('inputs'):\n" + deeper(IN_TOWERS[1][1]) + "                        name = each + '/out'\n"), *FORM[2:], form=()),
    case("made in the towers of a Python 2 count", *IN_TOWERS, *FORM[2:], ("for i in range(2)", "for i in xrange(2)"), ("import numpy as np\n", "import numpy as np\nfrom six.moves import xrange\n"), form=()),
    case("fed one by one, looked at behind each update", *ONE_BY_ONE, (RUN, RUN.replace("{X: bx, Y: by}", "{X[0]: a, X[1]: b, Y[0]: c, Y[1]: d}") + LOOKED), form=FORM[:2]),
    case("made in the towers, fed one by one", *IN_TOWERS, *ONE_BY_ONE, (RUN, RUN.replace("{X: bx, Y: by}", "{X[0]: a, X[1]: b, Y[0]: c, Y[1]: d}")), form=()),
    case("made in the towers of a shape before", *IN_TOWERS, *FORM[2:], ("[None, 3])\n", "shape)\n"), ("    X, Y = [], []\n", "    X, Y = [], []\n    shape = [None, 3]\n"), form=()),
    case("one in a list, one for all", (LISTS[1], LISTS[1].replace("[tf.placeholder(tf.float32, [None, 1]) for _ in range(2)]", "tf.placeholder(tf.float32, [])")), ("X[i], Y[i]", "X[i], tf.reshape(Y, [1, 1])"), ("                feed[Y[k]] = by\n", "            feed[Y] = 0.5\n")),
]  # fmt: skip

LEFT = [
    other("of another number", "TM208", ("[None, 1]) for _ in range(2)", "[None, 1]) for _ in range(3)"), ("            for k in range(2):", "            for k in range(3):"), ("feed[X[k]]", "feed[X[k % 2]]")),
    other("that are not alike", "TM208", ("tf.placeholder(tf.float32, [None, 3]) for _ in range(2)", "tf.placeholder(tf.float32, [2 + n, 3]) for n in range(2)")),
    other("with a default", "TM208", ("tf.placeholder(tf.float32, [None, 1])", "tf.placeholder_with_default(np.ones([2, 1], np.float32), [None, 1])")),
    other("of another tower", "TM208", ("X[i], Y[i]", "X[1 - i], Y[i]")),
    other("of the first tower for all", "TM208", ("X[i], Y[i]", "X[i], Y[0]")),
    other("all of them in each tower", "TM208", ("X[i], Y[i]", "tf.concat(X, 0), tf.concat(Y, 0)")),
    other("of this tower and the first", "TM208", ("X[i], Y[i]", "X[i] + tf.reduce_mean(X[0]), Y[i]")),
    other("that change places", "TM210", (AVERAGED, AVERAGED + "    X.reverse()\n")),
    other("of which one is set", "TM210", (AVERAGED, AVERAGED + "    X[0], X[1] = X[1], X[0]\n")),
    other("that grow", "TM210", (AVERAGED, AVERAGED + "    X.append(Y[0])\n")),
    other("that are counted", "TM210", (RUN.replace("{X: bx, Y: by}", "feed"), RUN.replace("{X: bx, Y: by}", "feed") + "            print(len(X))\n")),
    other("that are named", "TM210", (RUN.replace("{X: bx, Y: by}", "feed"), RUN.replace("{X: bx, Y: by}", "feed") + "            print(X[0].name)\n")),
    other("that have another name too", "TM210", (AVERAGED, AVERAGED + "    inputs = X\n"), ("feed[X[k]]", "feed[inputs[k]]")),
    other("that are read behind the towers", "TM209", behind("    rows = tf.shape(X[0])[0]\n"), (FROM_FEED[1], FROM_FEED[1].replace("_, value = sess.run([train_op, loss]", "_, value, n = sess.run([train_op, loss, rows]"))),
    other("fed in one turn of several", "TM209", ("                feed[Y[k]] = by\n", "                if by is not None:\n                    feed[Y[k]] = by\n")),
    other("fed until a turn", "TM209", ("                feed[Y[k]] = by\n", "                feed[Y[k]] = by\n                if step > 9:\n                    break\n")),
    other("fed in another order", "TM209", ("feed[Y[k]] = by", "feed[Y[1 - k]] = by")),
    other("made in the towers, named for the index by a call", "TM222", *IN_TOWERS, *FORM[2:], ("[None, 3])\n", "[None, 3], name=called(i))\n"), ("def train", "def called(i):\n    return 'x%d' % i\n\n\ndef train"), form=()),
    other("made in the towers, of a shape of theirs", "TM208", *IN_TOWERS, *FORM[2:], ("x = tf.placeholder(tf.float32, [None, 3])\n", "width = 3\n                    x = tf.placeholder(tf.float32, [None, width])\n"), form=()),
    other("made in some towers", "TM208", *IN_TOWERS, *FORM[2:], ("                    Y.append(y)\n", "                    if i < 2:\n                        Y.append(y)\n"), form=()),
    other("made in the towers, counted there", "TM210", *IN_TOWERS, *FORM[2:], ("out = net(x)", "out = net(x) * len(X)"), form=()),
    other("made in the towers, whose names are printed", "TM223", *IN_TOWERS, *FORM[2:], ("out = net(x)", "print(x.name)\n                    out = net(x)"), form=()),
    other("made in the towers, the last one fed", "TM209", *IN_TOWERS, *FORM[2:], ("                feed[X[k]] = bx\n", ""), ("            _, value", "            feed[x] = bx\n            _, value"), form=()),
    other("fed one by one, drawn by turns", "TM209", (RUN, RUN.replace("{X: bx, Y: by}", TURNS)), form=FORM[:2]),
    other("fed one by one, from the end", "TM209", *ONE_BY_ONE, (RUN, RUN.replace("{X: bx, Y: by}", "{X[1]: a, X[0]: b, Y[0]: c, Y[1]: d}")), form=FORM[:2]),
    other("fed one by one, one of them twice", "TM209", *ONE_BY_ONE, (RUN, RUN.replace("{X: bx, Y: by}", "{X[0]: a, X[1]: b, X[1]: a, Y[0]: c, Y[1]: d}")), form=FORM[:2]),
    other("fed one by one, looked at with the first alone", "TM209", *ONE_BY_ONE, (RUN, RUN.replace("{X: bx, Y: by}", "{X[0]: a, X[1]: b, Y[0]: c, Y[1]: d}") + "            print('%.5f' % sess.run(loss, {X[1]: a, Y[1]: c}))\n"), form=FORM[:2]),
    other("fed one by one, looked at in front of each update", "TM209", *ONE_BY_ONE, (RUN, LOOKED + RUN.replace("{X: bx, Y: by}", "{X[0]: a, X[1]: b, Y[0]: c, Y[1]: d}")), form=FORM[:2]),
    other("fed one by one, looked at behind an update under a condition", "TM209", *ONE_BY_ONE, (RUN, "            value = 0.0\n            if step > 1:\n" + deeper(RUN.replace("{X: bx, Y: by}", "{X[0]: a, X[1]: b, Y[0]: c, Y[1]: d}")) + LOOKED), form=FORM[:2]),
    other("fed one by one, looked at for more towers", "TM209", *ONE_BY_ONE, (RUN, RUN.replace("{X: bx, Y: by}", "{X[0]: a, X[1]: b, Y[0]: c, Y[1]: d}") + LOOKED.replace("X[1]: b,", "X[1]: b, X[2]: b,")), form=FORM[:2]),
    other("fed what another has", "TM209", ("feed[Y[k]] = by", "feed[Y[k]] = feed[X[k]].sum(1, keepdims=True)")),
    other("fed to fewer", "TM209", ("            for k in range(2):", "            for k in range(1, 2):"), ("_, value = sess.run([train_op, loss]", "value = sess.run(loss")),
    other("fed a dict that is kept", "TM209", (OPEN, "    feed = {}\n" + OPEN), ("            feed = {}\n", "")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
