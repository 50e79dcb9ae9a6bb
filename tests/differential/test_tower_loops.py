"""Tower loops over several lists at once, over devices, and slices whose bounds have names: loop style where they are plain ones."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

LOOP = "        for i in range(2):\n            with tf.device('/gpu:%d' % i):\n"
ROWS = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
BEFORE = "    tower_grads = []\n"
SCOPE = "with tf.name_scope('tower_%d' % i) as scope"
PARTS = (BEFORE, "    xs, ys = tf.split(X, 2), tf.split(Y, 2)\n" + BEFORE)
ITEMS = (ROWS, "                    x, y = xs[i], ys[i]\n")
NO_ROWS = (ROWS, "")
SAME_SCOPE = (SCOPE, "with tf.name_scope('tower') as scope")
DEVICES = "DEVICES = ['/gpu:0', '/gpu:1']\n"
AFTER = "    grads = average_gradients(tower_grads)\n"


def over(head: str, device: str = "d") -> Change:
    return LOOP, f"        for {head}:\n            with tf.device({device}):\n"


def rows(*lines: str) -> Change:
    return ROWS, "".join(f"                    {line}\n" for line in lines)


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


ZIP = over("i, (d, x, y) in enumerate(zip(DEVICES, xs, ys))")
PLACE = "'/gpu:%d' % i"

TAKEN = [
    taken("devices with their numbers, parts of a written count", over("i, d in enumerate(DEVICES)"), PARTS, ITEMS),
    taken("as many as there are devices", over("i in range(len(DEVICES))", "DEVICES[i]"), PARTS, ITEMS),
    taken("a range from zero", over("i in range(0, 2)", PLACE)),
    taken("a range from zero, in ones", over("i in range(0, 2, 1)", PLACE)),
    taken("a range from zero of a count with a name", (DEVICES, DEVICES + "COUNT = 2\n"), over("i in range(0, COUNT)", PLACE), ITEMS,
          (BEFORE, "    xs, ys = tf.split(X, COUNT), tf.split(Y, COUNT)\n" + BEFORE)),
    taken("a range from zero of as many as there are devices", over("i in range(0, len(DEVICES))", "DEVICES[i]"), PARTS, ITEMS),
    taken("numbered, of devices and parts", ZIP, PARTS, NO_ROWS),
    taken("devices and parts", over("d, x, y in zip(DEVICES, xs, ys)"), PARTS, NO_ROWS, SAME_SCOPE),
    taken("parts made in the loop's head",
          over("i, (d, x, y) in enumerate(zip(DEVICES, tf.split(X, 2), tf.split(Y, 2)))"), NO_ROWS),
    taken("a range and parts", over("i, x, y in zip(range(2), xs, ys)", PLACE), PARTS, NO_ROWS),
    taken("parts and a range", over("x, y, i in zip(xs, ys, range(2))", PLACE), PARTS, NO_ROWS),
    taken("parts alone", over("i, (x, y) in enumerate(zip(xs, ys))", PLACE), PARTS, NO_ROWS),
    taken("numbered parts", over("i, x in enumerate(xs)", PLACE), PARTS, rows("y = ys[i]")),
    taken("parts of one input in the head", over("i, x in enumerate(tf.split(X, 2))", PLACE), PARTS, rows("y = ys[i]")),
    taken("devices of a comprehension", (DEVICES, "DEVICES = ['/gpu:%d' % k for k in range(2)]\n"), ZIP, PARTS, NO_ROWS),
    taken("devices of a local list", ("def train():\n", "def train():\n    gpus = ['/gpu:0', '/gpu:1']\n"), PARTS,
          over("i, (d, x, y) in enumerate(zip(gpus, xs, ys))"), NO_ROWS),
    taken("a count that has a name", (DEVICES, DEVICES + "COUNT = 2\n"), ZIP, NO_ROWS,
          (BEFORE, "    xs, ys = tf.split(X, COUNT), tf.split(Y, num_or_size_splits=COUNT)\n" + BEFORE)),
    taken("a count that is the devices'", (DEVICES, DEVICES + "COUNT = len(DEVICES)\n"), ZIP, NO_ROWS,
          (BEFORE, "    xs, ys = tf.split(X, COUNT), tf.split(Y, COUNT)\n" + BEFORE)),
    taken("numbers of devices, and parts by their count", (DEVICES, DEVICES + "GPU_IDS = [0, 1]\n"), over("i, gpu in enumerate(GPU_IDS)", "'/gpu:%d' % gpu"), ITEMS,
          (BEFORE, "    xs, ys = tf.split(X, len(GPU_IDS)), tf.split(Y, len(GPU_IDS), axis=0)\n" + BEFORE)),
    taken("numbers of devices, and as many parts", (DEVICES, DEVICES + "GPU_IDS = [0, 1]\n"), over("i, gpu in enumerate(GPU_IDS)", "'/gpu:%d' % gpu"), ITEMS, PARTS),
    taken("parts of a named count in the head", (DEVICES, DEVICES + "COUNT = 2\n"), over("i, x in enumerate(tf.split(X, COUNT))", PLACE),
          (BEFORE, "    ys = tf.split(Y, COUNT)\n" + BEFORE), rows("y = ys[i]")),
    taken("rows that the tower says the number of", rows("n = 2", "x, y = X[i * n:(i + 1) * n], Y[i * n:(i + 1) * n]")),
    taken("and counts by", rows("n = 2", "x, y = X[i * n:(i + 1) * n], Y[i * n:(i + 1) * n]"), ("tf.reduce_mean(tf.square(out - y))", "tf.reduce_sum(tf.square(out - y)) / n")),
    taken("first bound has a name", rows("start = i * 2", "x, y = X[start:start + 2], Y[start:start + 2]")),
    taken("both bounds have names", rows("start = i * 2", "end = start + 2", "x, y = X[start:end], Y[start:end]")),
    taken("bounds named at once", rows("start, end = i * 2, (i + 1) * 2", "x, y = X[start:end], Y[start:end]")),
    taken("the upper bound as a sum", rows("x, y = X[i * 2:i * 2 + 2], Y[2 * i:2 + 2 * i]")),
    taken("as a product of a sum", rows("x = X[2 * i:2 * (i + 1)]", "y = Y[i * 2:(1 + i) * 2]")),
    taken("of a number that has a name", (DEVICES, DEVICES + "SIZE = 2\n"),
          rows("start = i * SIZE", "x, y = X[start:start + SIZE], Y[start:start + SIZE]")),
    taken("of a product", (DEVICES, DEVICES + "SIZE = 1\n"),
          rows("lo = i * 2 * SIZE", "hi = lo + 2 * SIZE", "x, y = X[lo:hi], Y[lo:hi]")),
    taken("of a local number", (BEFORE, "    size = 4 // 2\n" + BEFORE),
          rows("start = i * size", "stop = start + size", "x = X[start:stop]", "y = Y[start:stop]")),
    taken("rows that are bound anew in the tower", ZIP, PARTS, rows("x = tf.tanh(x)")),
    taken("a name that had another value before", ZIP, (BEFORE, "    x = 3\n" + PARTS[1]), NO_ROWS),
    taken("a number that counted before", ZIP, (BEFORE, "    for i in range(3):\n        drawn[0] += 1\n" + PARTS[1]), NO_ROWS),
]  # fmt: skip

LEFT = [
    left("a range that begins with one", "TM201", over("i in range(1, 3)", PLACE), rows("x, y = X[i * 2 - 2:i * 2], Y[i * 2 - 2:i * 2]")),
    left("a range in twos", "TM201", over("i in range(0, 4, 2)", PLACE), rows("x, y = X[i:i + 2], Y[i:i + 2]")),
    left("a range that goes back", "TM201", over("i in range(1, -1, -1)", PLACE)),
    left("a range from no", "TM201", over("i in range(False, 2)", PLACE)),
    left("fewer parts than devices", "TM201", (DEVICES, "DEVICES = ['/gpu:0', '/gpu:1', '/gpu:2']\n"), ZIP, PARTS, NO_ROWS),
    left("more parts than devices", "TM201", ZIP, NO_ROWS,
         (BEFORE, "    xs, ys = tf.split(X, 4), tf.split(Y, 4)\n" + BEFORE)),
    left("a list that grows", "TM201", (DEVICES, DEVICES + "DEVICES.append('/gpu:2')\n"), ZIP, PARTS, NO_ROWS),
    left("a list that another name grows", "TM201", (DEVICES, DEVICES + "more = DEVICES\nmore.append('/gpu:2')\n"),
         ZIP, PARTS, NO_ROWS),
    left("a list that is another one on some ways", "TM201", (DEVICES, DEVICES + "if len(DEVICES) > 1:\n    DEVICES = DEVICES[:1] * 2\n"),
         ZIP, PARTS, NO_ROWS),
    left("another zip", "TM201", (DEVICES, DEVICES + "import builtins\n\ndef zip(*lists):\n    return [each[::-1] for each in builtins.zip(*lists)]\n"),
         over("i, (y, x) in enumerate(zip(xs, ys))", PLACE), PARTS, NO_ROWS),
    left("parts in one tuple", "TM201", over("i, (x, y) in enumerate(zip(*parts))", PLACE),
         (BEFORE, "    parts = tf.split(X, 2), tf.split(Y, 2)\n" + BEFORE), NO_ROWS),
    left("numbers that begin with one", "TM201", over("i, (d, x, y) in enumerate(zip(DEVICES, xs, ys), 1)"), PARTS, NO_ROWS),
    left("parts that are turned round", "TM201", over("i, (x, y) in enumerate(zip(xs[::-1], ys))", PLACE), PARTS, NO_ROWS),
    left("devices written out in the head", "TM208",
         over("i, (d, x, y) in enumerate(zip(['/gpu:0', '/gpu:1'], xs, ys))"), PARTS, NO_ROWS),
    left("rows that two towers have", "TM227", rows("start = i * 1", "x, y = X[start:start + 2], Y[start:start + 2]")),
    left("rows of other towers for one", "TM227", rows("start = (1 - i) * 2", "x, y = X[start:start + 2], Y[i * 2:(i + 1) * 2]")),
    left("a name of two bounds", "TM227", rows("start = i * 2", "x = X[start:start + 2]", "start = (1 - i) * 2", "y = Y[start:start + 2]")),
    left("a size that changes between", "TM227", (BEFORE, "    size = 2\n" + BEFORE),
         rows("start = i * size", "size = 2", "x, y = X[start:start + size], Y[start:start + size]")),
    left("every second row", "TM227", rows("start = i * 2", "x, y = X[start:start + 2:2], Y[start:start + 2:2]")),
    left("rows that are read after the loop", "TM210", ZIP, PARTS, NO_ROWS, (AFTER, "    print(x.shape)\n" + AFTER)),
    left("a list that takes a row's name", "TM201", over("i, (xs, y) in enumerate(zip(xs, ys))", PLACE), PARTS, rows("x = xs")),
    left("bounds that a function reads later", "TM227", rows("start = i * 2", "rows = lambda: (X[start:start + 2], Y[start:start + 2])", "x, y = rows()")),
    left("another list of Python's", "TM201",
         (DEVICES, DEVICES + "def list(items):\n    items.append('/gpu:2')\n    return items\n\nlist(DEVICES)\n"), ZIP, PARTS, NO_ROWS),
]  # fmt: skip


(
    test_loops_are_taken,
    test_neighbours_are_left,
    test_what_is_taken_does_the_same,
) = asked_of(TAKEN, LEFT)
