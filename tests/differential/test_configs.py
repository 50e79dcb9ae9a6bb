"""Settings that a library holds: namespaces, dicts with attributes, files of settings; plain values, until something sets them anew."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, leaves, none_does_anything_else, takes

IMPORT = "import numpy as np\n"
NUMBER = "X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]"
BY_NAME = (NUMBER, "X[i * rows:(i + 1) * rows], Y[i * rows:(i + 1) * rows]")
SCALED = (
    "loss = tf.reduce_mean(tf.square(out - y))",
    "loss = tf.reduce_mean(tf.square(out - y)) * config.train.scale",
)
DRAWN = "drawn = [0]\n"
SPACE = "config = SimpleNamespace(train=SimpleNamespace(rows=2, scale=0.5))\n"
ROWS = "rows = config.train.rows\n"
EASY = "config = edict()\nconfig.train = edict()\nconfig.train.rows = 2\nconfig.train.scale = 0.5\n"
LATER = "    tower_grads = []\n"
END = "        print('draws', drawn[0])\n"


def space(text: str = SPACE) -> tuple[Change, ...]:
    return (
        (IMPORT, "from types import SimpleNamespace\n" + IMPORT),
        (DRAWN, DRAWN + text + ROWS),
        BY_NAME,
        SCALED,
    )


def easy(text: str = EASY) -> tuple[Change, ...]:
    return (
        (IMPORT, "from easydict import EasyDict as edict\n" + IMPORT),
        (DRAWN, DRAWN + text + ROWS),
        BY_NAME,
        SCALED,
    )


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    taken("a namespace", *space()),
    taken("one that is filled", *space("config = SimpleNamespace()\nconfig.train = SimpleNamespace(rows=2)\nconfig.train.scale = 0.5\n")),
    taken("a file of settings", (IMPORT, "import configparser\n" + IMPORT), BY_NAME,
          (DRAWN, DRAWN + "parser = configparser.ConfigParser()\nparser.read_string('[train]\\nrows = 2\\n')\nrows = parser.getint('train', 'rows')\n")),
]  # fmt: skip

LEFT = [
    left("set anew behind the towers", "TM224", *space(), (END, "        config.train.scale = 2.0\n" + END)),
    left("an input among them", "TM217", *space("config = SimpleNamespace(train=SimpleNamespace(rows=2, scale=tf.placeholder_with_default(0.5, [])))\n")),
    left("an input that is put there", "TM211", *space(), (LATER, "    config.train.scale = tf.placeholder_with_default(0.5, [])\n" + LATER)),
    left("an object of the program's own", "TM222",
         *space("class Half(object):\n    def __rmul__(self, other):\n        drawn[0] += 1\n        return other * 0.5\n\n    __array_priority__ = 100\n\n\n" + SPACE.replace("0.5", "Half()"))),
    left("an iterator", "TM206", *space(SPACE.replace("0.5", "iter([1.0, 2.0])")), ("config.train.scale", "next(config.train.scale)")),
]  # fmt: skip

EASY_LEFT = [
    left("set anew behind the towers", "TM224", *easy(), (END, "        config.train.scale = 2.0\n" + END)),
    left("by a method", "TM224", *easy(), (END, "        config.train.update(scale=2.0)\n" + END)),
    left("taken out in a tower", "TM206", *easy(), ("* config.train.scale", "* config.train.pop('scale', 1.0)")),
    left("an input among them", "TM217", *easy(EASY.replace("0.5", "tf.placeholder_with_default(0.5, [])"))),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)


def test_a_dict_with_attributes_is_plain() -> None:
    takes(easy())


@pytest.mark.parametrize(("changes", "rule"), EASY_LEFT)
def test_one_that_changes_is_not(changes: tuple[Change, ...], rule: str) -> None:
    leaves(changes, rule)
