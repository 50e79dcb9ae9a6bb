"""Lists of tuples over the towers: what loop style takes, what it must not, and what is meant to fool who takes them apart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

MADE = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
TAKEN_APART = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
FEED = """\
            feed = {}
            for k in range(2):
                px, py = fed[k]
                feed[px] = bx[k * 2:(k + 1) * 2]
                feed[py] = by[k * 2:(k + 1) * 2]
"""
FROM_FEED = RUN.replace("{X: bx, Y: by}", "feed")
FORM = (
    (MADE, "    fed = []\n"),
    (
        TAKEN_APART,
        """\
                    x = tf.placeholder(tf.float32, [None, 3])
                    y = tf.placeholder(tf.float32, [None, 1])
                    fed.append((x, y))
""",
    ),
    (RUN, FEED + FROM_FEED),
)
ENUMERATED = FEED.replace("for k in range(2):\n                px, py = fed[k]\n", "for k, (px, py) in enumerate(fed):\n")  # fmt: skip
ITEMS = (
    FEED.replace("                px, py = fed[k]\n", "")
    .replace("[px]", "[fed[k][0]]")
    .replace("[py]", "[fed[k][1]]")
)
BOTH = (
    (LOSS, LOSS + "                    both.append((loss, out))\n"),
    ("    tower_grads = []\n", "    tower_grads = []\n    both = []\n"),
)


def case(name: str, *changes: Change, form: tuple[Change, ...] = FORM) -> Any:
    return pytest.param((*form, *changes), id=name)


def other(name: str, rule: str, *changes: Change, form: tuple[Change, ...] = FORM) -> Any:
    return pytest.param((*form, *changes), rule, id=name)


def mean(text: str) -> tuple[Change, ...]:
    """A mean of the towers' losses, by way of a list of tuples."""
    return (
        *BOTH,
        (AVERAGED, AVERAGED + f"    mean = {text}\n"),
        ("sess.run([train_op, loss]", "sess.run([train_op, mean]"),
    )


TAKEN = [
    case("by number"),
    case("by enumerate", (FEED, ENUMERATED)),
    case("by two numbers", (FEED, ITEMS)),
    case("in a tower's names", (FEED, FEED.replace("px", "x").replace("py", "y"))),
    case("read twice", (FROM_FEED, FROM_FEED + FEED + "            print('%.5f' % sess.run(loss, feed_dict=feed))\n")),
    case("bound anew behind it", ("                    out = net(x)\n", "                    x = x * 2.0\n                    out = net(x)\n")),
    case("of losses", *mean("tf.reduce_mean([each for each, _ in both])"), form=()),
    case("of losses, the second", *mean("tf.reduce_mean([last for first, last in both])"), form=()),
]  # fmt: skip

LEFT = [
    other("from the end", "TM211", (FEED, ITEMS.replace("[1]]", "[-1]]"))),
    other("by a number that is bound anew", "TM209", (FEED, ITEMS.replace("                feed[fed[k][1]]", "                k = 1 - k\n                feed[fed[k][1]]"))),
    other("of the other tower", "TM209", (FEED, ITEMS.replace("fed[k]", "fed[1 - k]"))),
    other("handed on", "TM211", (AVERAGED, AVERAGED + "    print(len(list(fed)))\n")),
    other("turned round", "TM211", (AVERAGED, AVERAGED + "    fed.reverse()\n")),
    other("of more than names", "TM211", ("fed.append((x, y))", "fed.append((x, y + 0.0))")),
    other("of whose names one is read later", "TM211", (FROM_FEED, FROM_FEED + "            print(px.name)\n")),
]  # fmt: skip

FOOLING = [
    case("a number bound anew", (FEED, FEED.replace("                feed[px]", "                k = 1 - k\n                feed[px]").replace("bx[k * 2:(k + 1) * 2]", "bx[:2]").replace("by[k * 2:(k + 1) * 2]", "by[2:]"))),
    case("a name bound in between", (FEED, FEED.replace("                feed[py]", "                px, py = fed[k]\n                feed[py]"))),
    case("a name bound under a condition", (FEED, FEED.replace("                feed[py]", "                if k:\n                    px = py\n                feed[py]"))),
    case("a function that reads a name", (FEED, "            shown = lambda: px.name\n" + FEED), (FROM_FEED, FROM_FEED + "            print(shown())\n")),
    case("the list by another name", (AVERAGED, AVERAGED + "    again = fed\n    again[0], again[1] = again[1], again[0]\n")),
    case("another tuple behind", (AVERAGED, AVERAGED + "    fed.append((x, y))\n")),
    case("the last of all", (FEED, FEED.replace("fed[k]", "fed[k - 1]"))),
    case("the loop's own name", (FEED, FEED.replace("for k in range(2):", "for px in [0, 1]:\n                k = px"))),
    case("losses in another order", *mean("tf.reduce_mean([b for b, a in both]) - 2.0 * tf.reduce_mean([a for b, a in both][::-1][0])"), form=()),
    case("losses of some", *mean("tf.reduce_mean([a for a, b in both if a is not loss])"), form=()),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_none_of_these_is_rewritten_to_something_else() -> None:
    none_does_anything_else(FOOLING)
