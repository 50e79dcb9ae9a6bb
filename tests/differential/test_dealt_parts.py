"""Parts of inputs that are kept in pairs, lists and dicts until the towers take theirs."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

START = "    tower_grads = []\n"
LOOP = "        for i in range(2):\n"
TAKE = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
SPLIT = "    xs, ys = tf.split(X, 2), tf.split(Y, 2)\n"
END = "    saver = tf.train.Saver()\n"


def kept(text: str, take: str | None, loop: str = LOOP) -> tuple[Change, ...]:
    """What is made before the loop, what a tower takes of it, and what the loop goes over."""
    made = "".join(f"    {line}\n" for line in text.split("\n"))
    taken = "" if take is None else f"                    {take}\n"
    return (START, START + made), (TAKE, taken), (LOOP, loop)


def over(text: str, target: str = "i, (x, y)") -> str:
    return f"        for {target} in {text}:\n"


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, *changes: Change, rule: str = "TM208") -> object:
    return pytest.param(changes, rule, id=name)


NAMED = "xs, ys = tf.split(X, 2), tf.split(Y, 2)\n"
PAIRS = NAMED + "shards = list(zip(xs, ys))"

SHAPED = (
    ("    X = tf.placeholder(tf.float32, [None, 3])\n", "    shape = [4] + [3]\n    X = tf.placeholder(tf.float32, shape)\n"),
    ("    Y = tf.placeholder(tf.float32, [None, 1])\n", "    Y = tf.placeholder(tf.float32, [4, 1])\n"),
)  # fmt: skip

TAKEN = [
    taken("slices of what has a shape by name", *SHAPED),
    taken("parts of what has a shape by name", *SHAPED, *kept(PAIRS, None, over("enumerate(shards)"))),
    taken("parts of any number of rows, by name", ("[None, 3])", "list(ROWS))"), ("DEVICES = ", "ROWS = (None, 3)\nDEVICES = "), *kept(PAIRS, None, over("enumerate(shards)"))),
    taken("pairs", *kept(PAIRS, None, over("enumerate(shards)"))),
    taken("pairs of splits without names", *kept("shards = list(zip(tf.split(X, 2), tf.split(Y, 2)))", None, over("enumerate(shards)"))),
    taken("pairs that are gone over once", *kept(NAMED + "shards = zip(xs, ys)", None, over("enumerate(shards)"))),
    taken("pairs by a comprehension", *kept(NAMED + "shards = [(xs[k], ys[k]) for k in range(2)]", None, over("enumerate(shards)"))),
    taken("pairs with a name in the loop", *kept(PAIRS, "x, y = shard", over("enumerate(shards)", "i, shard"))),
    taken("pairs by their number", *kept(PAIRS, "x, y = shards[i]")),
    taken("parts of pairs by their number", *kept(PAIRS, "x = shards[i][0]\n                    y = shards[i][1]")),
    taken("as many towers as pairs", *kept(PAIRS, "x, y = shards[i]", over("range(len(shards))", "i"))),
    taken("a dict", *kept("parts = {'x': tf.split(X, 2), 'y': tf.split(Y, 2)}", "x, y = parts['x'][i], parts['y'][i]")),
    taken("a dict of names", *kept(NAMED + "parts = {'x': xs, 'y': ys}", "x, y = parts['x'][i], parts['y'][i]")),
    taken("a dict by a comprehension", *kept("parts = {k: tf.split(v, 2) for k, v in {'x': X, 'y': Y}.items()}", "x, y = parts['x'][i], parts['y'][i]")),
    taken("a list", *kept("parts = [tf.split(X, 2), tf.split(Y, 2)]", "x, y = parts[0][i], parts[1][i]")),
    taken("a list that is gone over", *kept("parts = [tf.split(each, 2) for each in (X, Y)]", "x, y = [part[i] for part in parts]")),
    taken("a tuple that is gone over", *kept("parts = (tf.split(X, 2), tf.split(Y, 2))", "x, y = (part[i] for part in parts)")),
    taken("names of a comprehension", *kept("xs, ys = [tf.split(each, 2) for each in [X, Y]]", "x, y = xs[i], ys[i]")),
    taken("names of a generator", *kept("xs, ys = (tf.split(each, num_or_size_splits=2, axis=0) for each in (X, Y))", "x, y = xs[i], ys[i]")),
    taken("names of a map", *kept("xs, ys = map(lambda each: tf.split(each, 2), [X, Y])", "x, y = xs[i], ys[i]")),
    taken("lists in a dict", *kept("parts = {'in': [tf.split(X, 2)], 'out': tf.split(Y, 2)}", "x, y = parts['in'][0][i], parts['out'][i]")),
]  # fmt: skip

LEFT = [
    left("pairs beside devices", *kept(PAIRS, None, over("enumerate(zip(DEVICES, shards))", "i, (device, (x, y))")), rule="TM201"),
    left("pairs in another order", *kept(PAIRS, None, over("enumerate(reversed(shards))")), rule="TM201"),
    left("pairs that are put in another order", *kept(PAIRS + "\nshards.reverse()", None, over("enumerate(shards)")), rule="TM201"),
    left("pairs by another number", *kept(PAIRS, "x, y = shards[1 - i]")),
    left("all but the first", *kept(PAIRS + "\nshards = shards[1:] + shards[:1]", None, over("enumerate(shards)")), rule="TM201"),
    left("an iterator that is used up", *kept(NAMED + "shards = zip(xs, ys)\nprint(len(list(shards)))", None, over("enumerate(list(shards) or [(X, Y)])")), rule="TM201"),
    left("fewer pairs", *kept(NAMED + "shards = [(xs[k], ys[k]) for k in range(1)]", None, over("enumerate(shards)")), rule="TM201"),
    left("pairs of some", *kept(NAMED + "shards = [(xs[k], ys[k]) for k in range(2) if k]", None, over("enumerate(shards)")), rule="TM201"),
    left("pairs by places swapped", *kept(NAMED + "shards = [(xs[k], ys[1 - k]) for k in range(2)]", None, over("enumerate(shards)")), rule="TM201"),
    left("a generator that the first tower uses up", *kept("parts = (tf.split(each, 2) for each in (X, Y))", "x, y = [part[i] for part in parts] or (X[2:], Y[2:])"), rule="TM217"),
    left("a dict that is changed", *kept("parts = {'x': tf.split(X, 2), 'y': tf.split(Y, 2)}\nparts['y'] = parts['y'][::-1]", "x, y = parts['x'][i], parts['y'][i]")),
    left("a dict that another function sees", *kept("parts = {'x': tf.split(X, 2), 'y': tf.split(Y, 2)}\n(lambda each: each['y'].reverse())(parts)", "x, y = parts['x'][i], parts['y'][i]")),
    left("a list by another name", *kept("parts = [tf.split(X, 2), tf.split(Y, 2)]\nother = parts\nother[1] = other[1][::-1]", "x, y = parts[0][i], parts[1][i]")),
    left("parts along another axis", *kept("parts = [tf.split(each, 2, axis=0)[::-1] for each in (X, Y)]", "x, y = [part[i] for part in parts]")),
    left("a split of the program's own", ("DEVICES = ", "zip = lambda *lists: list(map(lambda *each: each[:1] + each[1:], lists[0], lists[1][::-1]))\nDEVICES = "), *kept(PAIRS, None, over("enumerate(shards)")), rule="TM201"),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
