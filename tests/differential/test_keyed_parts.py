"""Parts of the inputs in dicts, by the numbers of their towers or by devices: those that loop style takes, and others."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else

SLICES = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
BEFORE = "    tower_grads = []\n"
LOOP = "        for i in range(2):\n            with tf.device('/gpu:%d' % i):\n"
DEVICES = "DEVICES = ['/gpu:0', '/gpu:1']\n"
BY_DEVICE = (LOOP, "        for i, d in enumerate(DEVICES):\n            with tf.device(d):\n")
ONLY_DEVICE = (LOOP, "        for d in DEVICES:\n            with tf.device(d):\n")
SCOPE = ("tf.name_scope('tower_%d' % i)", "tf.name_scope('tower')")
SPLIT = "tf.split({}, 2)"
FED = "feed_dict={X: bx, Y: by}"


def case(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def made(text: str, key: str = "i", split: str = SPLIT) -> tuple[Change, Change]:
    """A dict of the parts of each input, from which each tower takes its own."""
    rows = "".join(
        f"    {n} = {text.format(split.format(of))}\n" for n, of in (("xs", "X"), ("ys", "Y"))
    )
    return (
        (SLICES, f"                    x, y = xs[{key}], ys[{key}]\n"),
        (BEFORE, rows + BEFORE),
    )


def behind(text: str) -> Change:
    return "    saver = tf", text + "    saver = tf"


ZIPPED = "dict(zip(DEVICES, {}))"

TAKEN = [
    case("by devices", *made(ZIPPED, "d"), BY_DEVICE),
    case("by devices without a number", *made(ZIPPED, "d"), ONLY_DEVICE, SCOPE),
    case("by devices, in one statement", (SLICES, "                    x, y = xs[d], ys[d]\n"), (BEFORE, "    xs, ys = dict(zip(DEVICES, tf.split(X, 2))), dict(zip(DEVICES, tf.split(Y, 2)))\n" + BEFORE), BY_DEVICE),
    case("by devices, as many as there are", *made(ZIPPED, "d", "tf.split({}, len(DEVICES))"), BY_DEVICE),
    case("by devices, in a comprehension", *made("{{k: part for k, part in zip(DEVICES, {})}}", "d"), BY_DEVICE),
    case("by devices, both in one", (SLICES, ""), (BEFORE, "    parts = dict(zip(DEVICES, zip(tf.split(X, 2), tf.split(Y, 2))))\n" + BEFORE), (LOOP, "        for i, d in enumerate(DEVICES):\n            x, y = parts[d]\n            with tf.device(d):\n")),
    case("by numbers", *made("dict(enumerate({}))")),
    case("by numbers of a range", *made("dict(zip(range(2), {}))")),
    case("by numbers, in a comprehension", *made("{{k: part for k, part in enumerate({})}}")),
    case("by numbers, beside devices", *made("dict(enumerate({}))"), BY_DEVICE),
]  # fmt: skip

LEFT = [
    other("two of one device", "TM208", *made(ZIPPED, "d"), (DEVICES, "DEVICES = ['/gpu:0', '/gpu:0']\n"), BY_DEVICE),
    other("other devices than the towers'", "TM208", *made("dict(zip(OTHERS, {}))", "d"), (DEVICES, DEVICES + "OTHERS = ['/gpu:1', '/gpu:0']\n"), BY_DEVICE),
    other("devices in another order", "TM208", *made("dict(zip(DEVICES[::-1], {}))", "d"), BY_DEVICE),
    other("devices that change", "TM208", *made(ZIPPED, "d"), BY_DEVICE, (BEFORE, "    DEVICES.reverse()\n" + BEFORE)),
    other("devices that another function changes", "TM208", *made(ZIPPED, "d"), BY_DEVICE, ("drawn = [0]\n", "drawn = [0]\n\n\ndef turn():\n    DEVICES.reverse()\n"), (BEFORE, "    turn()\n" + BEFORE)),
    other("of another tower", "TM208", *made("dict(enumerate({}))", "1 - i")),
    other("of a number that goes on", "TM208", *made("dict(enumerate({}, 1))", "i + 1")),
    other("that is changed", "TM208", *made("dict(enumerate({}))"), (BEFORE, "    xs[0], xs[1] = xs[1], xs[0]\n" + BEFORE)),
    other("that is gone over", "TM208", *made("dict(enumerate({}))"), (BEFORE, "    print(sorted(xs))\n" + BEFORE)),
    other("that a function is handed", "TM208", *made("dict(enumerate({}))"), ("drawn = [0]\n", "drawn = [0]\n\n\ndef turn(xs):\n    xs[0], xs[1] = xs[1], xs[0]\n"), (BEFORE, "    turn(xs)\n" + BEFORE)),
    other("by a number that is bound anew", "TM208", *made("dict(enumerate({}))"), (LOOP, LOOP + "              i = 1 - i\n              if True:\n")),
    other("some of the parts", "TM208", *made("dict(zip(range(1, 3), {}))", "i + 1")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
