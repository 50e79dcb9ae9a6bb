"""Dicts of feeds that are chosen, copied, changed behind, made of pairs, yielded or taken from lists."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
DRAWN = "            bx, by = batch(4)\n"
LOOP = "        for step in range(4):\n"
MADE = "    Y = tf.placeholder(tf.float32, [None, 1])\n"
OWN = "def average_gradients"
RATE: tuple[Change, ...] = (
    (MADE, MADE + "    factor = tf.placeholder_with_default(1.0, [])\n"),
    ("tf.square(out - y))", "tf.square(out - y)) * factor"),
)
NEEDED = ("placeholder_with_default(1.0, [])", "placeholder(tf.float32, [])")


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def fed(text: str, what: str = "feed") -> Change:
    """What stands in front of the run, and what that is fed."""
    rows = "".join(f"            {row}\n" for row in text.split("\n") if row)
    return RUN, rows + RUN.replace("{X: bx, Y: by}", what)


def drawn(text: str) -> Change:
    return DRAWN, text


def streamed(function: str, loop: str, what: str = "feed") -> tuple[Change, ...]:
    """A function in front of the others, and a loop over what it gives."""
    return (OWN, f"{function}\n\n{OWN}"), (LOOP + DRAWN, loop), fed("", what)


TWO = "if step % 2:\n    feed = {X: bx, Y: by}\nelse:\n    feed = {X: bx * 0.5, Y: by}"
SOME = "if step % 2:\n    feed = {X: bx, Y: by}\nelse:\n    feed = {X: bx, Y: by, factor: 0.5}"
YIELDS = """\
def feeds(X, Y, count):
    for _ in range(count):
        bx, by = batch(4)
        yield {X: bx, Y: by}
"""
CLOSED = """\
        def feeds(count):
            for number in range(count):
                bx, by = batch(4)
                if number % 2:
                    yield {X: bx, Y: by}
                else:
                    yield {X: bx * 0.5, Y: by}

"""
FEEDS = "        feeds = []\n        for _ in range(4):\n            bx, by = batch(4)\n            feeds.append({X: bx, Y: by})\n"

TAKEN = [
    taken("in both branches", fed(TWO)),
    taken("in branches that do more", fed(TWO.replace("else:\n", "else:\n    bx, by = batch(4)\n"))),
    taken("in three branches", fed(TWO.replace("else:", "elif step > 1:\n    feed = {Y: by * 2.0, X: bx}\nelse:"))),
    taken("in branches that name another setting", *RATE, fed(SOME)),
    taken("in branches, for two runs", fed(TWO + "\nprint('%.6f' % sess.run(loss, feed))")),
    taken("by an expression", fed("feed = {X: bx, Y: by} if step % 2 else {X: bx * 0.5, Y: by}")),
    taken("by an expression of three", fed("feed = {X: bx, Y: by} if step % 2 else ({X: bx * 0.5, Y: by} if step else {X: bx, Y: by * 2.0})")),
    taken("by an expression in the run", fed("", "{X: bx, Y: by} if step % 2 else {X: bx * 0.5, Y: by}")),
    taken("first with what was fed before", (LOOP, "        feed = {X: batch(4)[0], Y: batch(4)[1]}\n" + LOOP), fed("if step:\n    feed = {X: bx, Y: by}")),
    taken("copied by dict", fed("base = {X: bx, Y: by}\nfeed = dict(base)")),
    taken("copied by its method", fed("base = {X: bx, Y: by}\nfeed = base.copy()")),
    taken("copied and changed", fed("base = {X: bx, Y: by}\nfeed = dict(base)\nfeed[Y] = by * 0.5\nprint('%.6f' % sess.run(loss, base))")),
    taken("copied, and filled", *RATE, NEEDED, fed("base = {X: bx, Y: by}\nfeed = dict(base)\nfeed[factor] = 0.5")),
    taken("copied, and filled under a condition", *RATE, fed("base = {X: bx, Y: by}\nfeed = dict(base)\nif step % 2:\n    feed[factor] = 0.5")),
    taken("copied of what is drawn once", (LOOP, "        base = {X: batch(4)[0], Y: batch(4)[1]}\n" + LOOP), fed("feed = dict(base)\nfeed[Y] = by")),
    taken("copied before its values are bound anew", fed("base = {X: bx, Y: by}\nbx = bx * 2.0\nfeed = dict(base)")),
    taken("copied before its values change in place", fed("base = {X: bx, Y: by}\nbx *= 2.0\nfeed = dict(base)")),
    taken("copied in a display", fed("base = {X: bx}\nfeed = {**base, Y: by}")),
    taken("copied in a display in the run", fed("base = {X: bx, Y: by}", "{**base, Y: by * 0.5}")),
    taken("copied in a display that it changes", fed("base = {X: bx, Y: by}\nfeed = {Y: bx, **base}")),
    taken("added", fed("extra = {Y: by}\nfeed = {X: bx}\nfeed.update(extra)")),
    taken("set anew at once", fed("feed = {X: bx, Y: by}\nfeed[Y] = by * 0.5")),
    taken("set anew behind other statements", fed("feed = {X: bx, Y: by}\nprint(step)\nfeed[Y] = by * 0.5")),
    taken("set anew of what it held", fed("feed = {X: bx, Y: by}\nprint('%.6f' % feed[Y].sum())\nfeed[Y] *= 0.5")),
    taken("set anew to a part of what it held", fed("feed = {X: bx, Y: by}\nfor part in (1.0, 0.5):\n    feed[Y] = feed[Y] * part + feed[X][:, :1]\nprint('%.6f' % sess.run(loss, feed))")),
    taken("bound anew of what it held", fed("feed = {X: bx, Y: by}\nprint(step)\nfeed = {X: feed[Y] * feed[X], Y: feed[Y]}")),
    taken("set anew in a loop", *RATE, fed("feed = {X: bx, Y: by}\nfor part in (1.0, 0.5):\n    feed[factor] = part\n    print('%.6f' % sess.run(loss, feed))")),
    taken("of pairs of lists", fed("feed = dict(zip([X, Y], [bx, by]))")),
    taken("of pairs with a batch", drawn("            both = batch(4)\n"), fed("feed = dict(zip([X, Y], both))")),
    taken("of pairs with a call", drawn(""), fed("", "dict(zip((X, Y), batch(4)))")),
    taken("of pairs with a list of placeholders", (MADE, MADE + "    inputs = [X, Y]\n"), drawn("            both = batch(4)\n"), fed("", "dict(zip(inputs, both))")),
    taken("of pairs in a comprehension", drawn("            both = batch(4)\n"), fed("", "{k: v for k, v in zip([X, Y], both)}")),
    taken("of pairs of batches in a list", (LOOP + DRAWN, "        for step, both in enumerate([batch(4) for _ in range(4)]):\n"), fed("", "dict(zip([X, Y], both))")),
    taken("yielded", *streamed(YIELDS, "        for step, feed in enumerate(feeds(X, Y, 4)):\n")),
    taken("yielded with keywords", *streamed(YIELDS, "        for step, feed in enumerate(feeds(X, count=4, Y=Y)):\n")),
    taken("yielded and asked for", *streamed(YIELDS, "        made = feeds(X, Y, 4)\n" + LOOP, "next(made)")),
    taken("yielded by an inner function", (LOOP + DRAWN, CLOSED + "        for step, feed in enumerate(feeds(4)):\n"), fed("")),
    taken("from a list", (LOOP + DRAWN, FEEDS + LOOP), fed("", "feeds[step]")),
    taken("from a list by a name", (LOOP + DRAWN, FEEDS + "        for step in range(len(feeds)):\n"), fed("feed = feeds[-1 - step]")),
    taken("over a list", (LOOP + DRAWN, FEEDS + "        for step, feed in enumerate(feeds):\n"), fed("")),
    taken("over a list in a comprehension", (LOOP + DRAWN, "        feeds = [{X: bx, Y: by} for bx, by in [batch(4) for _ in range(4)]]\n        for step, feed in enumerate(feeds):\n"), fed("")),
]  # fmt: skip

LEFT = [
    left("in one branch, without a default", "TM209", *RATE, NEEDED, fed(SOME)),
    left("that another name is given", "TM209", fed(TWO + "\nother = feed\nother[X] = bx * 2.0")),
    left("that a function is given", "TM209", (OWN, "def grown(feed):\n    feed[next(iter(feed))] *= 2.0\n\n\n" + OWN), fed(TWO + "\ngrown(feed)")),
    left("that a list keeps", "TM209", fed(TWO + "\nkept = [feed]\nfor each in kept:\n    each.clear()\n    each.update({X: bx, Y: by})")),
    left("set anew of more than an item", "TM209", fed("feed = {X: bx, Y: by}\nprint(step)\nfeed[Y] = by * len(feed)")),
    left("that is emptied", "TM209", fed(TWO + "\nif step > 2:\n    feed.pop(Y)\n    feed[Y] = by")),
    left("that loses an item", "TM209", fed(TWO + "\ndel feed[Y]\nfeed[Y] = by")),
    left("that is counted", "TM209", fed(TWO + "\nprint(len(feed))")),
    left("whose items are looped over", "TM209", fed(TWO + "\nfor key in feed:\n    feed[key] = feed[key] * 2.0")),
    left("that an inner function sets", "TM209", fed(TWO + "\ndef halve():\n    feed[X] = bx * 0.5\nhalve()")),
    left("of a placeholder that is bound anew", "TM209", fed("Z = X\n" + TWO.replace("else:", "    Z = Y\nelse:").replace("feed = {X: bx * 0.5", "feed = {Z: bx * 0.5"))),
    left("copied of what may be another thing", "TM209", fed("base = {X: bx, Y: by} if step else [(X, bx), (Y, by)]\nfeed = dict(base)")),
    left("copied by a dict of its own", "TM209", (OWN, "def dict(items):\n    return {key: value * 0.5 for key, value in items.items()}\n\n\n" + OWN), fed("base = {X: bx, Y: by}\nfeed = dict(base)")),
    left("of pairs with what nobody knows the length of", "TM209", drawn("            both = list(batch(4))\n"), fed("", "dict(zip([X, Y], both))")),
    left("of pairs by a zip of its own", "TM209", (OWN, "def zip(keys, values):\n    return [(keys[0], values[0]), (keys[1], values[1] * 0.5)]\n\n\n" + OWN), ("zip(*tower_grads)", "([p[k] for p in tower_grads] for k in range(2))"), fed("", "dict(zip([X, Y], [bx, by]))")),
    left("yielded and changed", "TM209", *streamed(YIELDS, "        for step, feed in enumerate(feeds(X, Y, 4)):\n            feed[next(iter(feed))] *= 0.5\n")),
    left("yielded twice as one", "TM209", *streamed(YIELDS.replace("        yield {X: bx, Y: by}\n", "        made = {X: bx, Y: by}\n        yield made\n"), "        for step, feed in enumerate(feeds(X, Y, 4)):\n")),
    left("from a list that is changed", "TM209", (LOOP + DRAWN, FEEDS + "        feeds.reverse()\n        feeds[0].update({X: batch(4)[0]})\n" + LOOP), fed("", "feeds[step]")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
