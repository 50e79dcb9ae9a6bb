"""What names the devices of towers goes with these devices: where it raises in TensorFlow 1, the rewritten program raises as well."""

from __future__ import annotations

import re

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import all_do_the_same, takes
from towermigrate.rewrite import rewrite_tree

DEVICES = "DEVICES = ['/gpu:0', '/gpu:1']"
LOOP = "        for i in range(2):\n"
ENTERED = "            with tf.device('/gpu:%d' % i):\n"
ENDS: Change = (
    "if __name__ == '__main__':\n    train()\n",
    "if __name__ == '__main__':\n    try:\n        train()\n    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:\n        print(type(error).__name__)\n",
)


def device(text: str) -> Change:
    return ENTERED, f"            with tf.device({text}):\n"


def listed(text: str) -> Change:
    return DEVICES, f"NUMBERS = {text}"


def row(name: str, *changes: Change) -> object:
    return pytest.param((*changes, ENDS), id=name)


SURE = [
    row("a number"),
    row("a number by its format", device("'/gpu:{}'.format(i)")),
    row("a number in a text", device("f'/gpu:{i}'")),
    row("a number behind a text", device("'/gpu:' + str(i)")),
    row("a number that is computed", device("'/device:GPU:%d' % (i + 1)")),
    row("one of a list", device("DEVICES[i]")),
    row("one of a list over which the loop goes", (LOOP, "        for i, d in enumerate(DEVICES):\n"), device("d")),
    row("one of a list of numbers", listed("[1, 0]"), device("'/gpu:%d' % NUMBERS[i]")),
    row("one of a list that is counted", listed("[1, 0]"), (LOOP, "        for i in range(len(NUMBERS)):\n"), device("'/gpu:%d' % NUMBERS[i]")),
    row("one of a list that is made for as many", (LOOP, "        for i in range(2):\n"), ("    tower_grads = []\n", "    places = ['/gpu:%d' % k for k in range(2)]\n    tower_grads = []\n"), device("places[i]")),
    row("none", device("None")),
    row("some, and none", (DEVICES, "DEVICES = ['/gpu:0', None]"), device("DEVICES[i]")),
    row("a function's", ("def batch(rows)", "def where(n):\n    return '/gpu:%d' % n\n\n\ndef batch(rows)"), device("where(i)")),
    row("a name in the tower", (ENTERED, "            where = '/gpu:%d' % i\n            with tf.device(where):\n")),
    row("as many as there are settings", (DEVICES, "tf.app.flags.DEFINE_integer('towers', 2, '')\nFLAGS = tf.app.flags.FLAGS"), (LOOP, "        for i in range(FLAGS.towers):\n")),
]  # fmt: skip

UNSURE = [
    row("a text where a number is asked for", listed("['a', 'b']"), device("'/gpu:%d' % NUMBERS[i]")),
    row("a list that is too short", listed("[0]"), device("'/gpu:%d' % NUMBERS[i]")),
    row("a device of a list that is too short", device("DEVICES[i + 1]")),
    row("a key that is not there", listed("{0: 0, 2: 1}"), device("'/gpu:%d' % NUMBERS[i]")),
    row("a division by nothing", device("'/gpu:%d' % (2 // i)")),
    row("too few numbers", device("'/gpu:%d:%d' % i")),
    row("a field that is not there", device("'/gpu:{1}'.format(i)")),
    row("a text and a number", device("'/gpu:' + i")),
    row("what names no device", device("'gpu number %d' % i")),
    row("a text that is no number", listed("'0,x'"), device("'/gpu:%d' % int(NUMBERS.split(',')[i])")),
    row("a device in the tower", listed("[0]"), (ENTERED, "            where = '/gpu:%d' % NUMBERS[i]\n            with tf.device(where):\n")),
    row("a list that was shortened", ("    tower_grads = []\n", "    DEVICES.pop()\n    tower_grads = []\n"), device("DEVICES[i]")),
    row("a part of a number", device("'/gpu:%s' % (i / 2)")),
    row("a field of another name", device("'/gpu:%(m)d' % {'n': i}")),
    row("a number alone", device("i")),
    row("a number of a list", listed("[0, 1]"), device("NUMBERS[i]")),
    row("no number, over which the loop goes", (LOOP, "        for i, d in enumerate(DEVICES):\n"), device("'/gpu:%d' % d")),
    row("no device, over which the loop goes", (DEVICES, "DEVICES = ['nothing', 'of it']"), (LOOP, "        for i, d in enumerate(DEVICES):\n"), device("d")),
    row("a function that looks it up", ("def batch(rows)", "def where(n):\n    return DEVICES[n + 1]\n\n\ndef batch(rows)"), device("where(i)")),
    row("a function that takes two", ("def batch(rows)", "def where(a, b):\n    return '/gpu:%d' % (a // b)\n\n\ndef batch(rows)"), device("where(2, i)")),
    row("a setting's part", (DEVICES, "tf.app.flags.DEFINE_string('gpus', '0', '')\nFLAGS = tf.app.flags.FLAGS\nNUMBERS = FLAGS.gpus.split(',')"), device("'/gpu:%s' % NUMBERS[i]")),
    row("a setting's part that is there", (DEVICES, "tf.app.flags.DEFINE_string('gpus', '1,0', '')\nFLAGS = tf.app.flags.FLAGS\nNUMBERS = FLAGS.gpus.split(',')"), device("'/gpu:%s' % NUMBERS[i]")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "checked"),
    [
        pytest.param(*one.values, each is UNSURE, id=one.id)
        for each in (SURE, UNSURE)
        for one in each
    ],
)
def test_they_are_evaluated_where_they_may_raise(
    changes: tuple[Change, ...], checked: bool
) -> None:
    text = rewrite_tree(program(*changes)).texts["train.py"]
    in_front = text[: text.index("def tower(")].rpartition("def train(")[2]
    assert (
        re.search(r"^    for i(, d)? in (range|enumerate)\(", in_front, re.MULTILINE) is not None
    ) == checked


@pytest.mark.parametrize("changes", [*SURE, *UNSURE])
def test_they_are_in_loop_style(changes: tuple[Change, ...]) -> None:
    takes(changes)


@pytest.mark.full
def test_they_raise_where_they_did() -> None:
    all_do_the_same([*SURE, *UNSURE])
