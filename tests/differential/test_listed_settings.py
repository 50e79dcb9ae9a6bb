"""Lists of settings that towers go over, `for size in config.layers`: those that are lists wherever they come from, and others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

NET = (
    "def net(x):\n",
    "def net(x, layers=(3,)):\n"
    "    for k, size in enumerate(layers):\n"
    "        x = tf.layers.dense(x, size, kernel_initializer=init(3, size), name='h%d' % k)\n",
)
CALLED = ("out = net(x)", "out = net(x, config.layers)")
ENTRY = ("def train():\n", "def train(config):\n")
MAIN = "if __name__ == '__main__':\n    train()\n"
IMPORT = "import numpy as np\n"
COLLECTIONS = (IMPORT, "import collections\n" + IMPORT)
TUPLE = "Config = collections.namedtuple('Config', ['rate', 'layers'])\n\n\n"
MADE = "def get_config():\n    return Config(rate=0.1, layers=[3, 3])\n\n\n"
GIVEN = "if __name__ == '__main__':\n    train(get_config())\n"
CLASS = "class Config(object):\n    def __init__(self, rate, layers):\n        self.rate = rate\n        self.layers = layers\n\n\n"
FIELDS = "@dataclasses.dataclass\nclass Config:\n    rate: float = 0.1\n    layers: list = dataclasses.field(default_factory=lambda: [3, 3])\n\n\n"
DATACLASSES = (IMPORT, "import dataclasses\n" + IMPORT)


def with_main(text: str) -> Change:
    return MAIN, text + GIVEN


NAMED = (COLLECTIONS, NET, CALLED, ENTRY)


def case(name: str, *changes: Change, form: tuple[Change, ...] = NAMED) -> Any:
    return pytest.param((*form, *changes), id=name)


def other(name: str, rule: str, *changes: Change, form: tuple[Change, ...] = NAMED) -> Any:
    return pytest.param((*form, *changes), rule, id=name)


TAKEN = [
    case("of a named tuple", with_main(TUPLE + MADE)),
    case("of one by its place", with_main(TUPLE + MADE.replace("rate=0.1, layers=", "0.1, "))),
    case("of an object", with_main(CLASS + MADE)),
    case("of an object by its place", with_main(CLASS + MADE.replace("rate=0.1, layers=", "0.1, "))),
    case("of an object of another size", with_main(CLASS + MADE.replace("[3, 3]", "[3] * 2"))),
    case("of an object that chooses", with_main(CLASS + MADE.replace("[3, 3]", "[3, 3] if len(DEVICES) > 1 else ()"))),
    case("of a dataclass", DATACLASSES, with_main(FIELDS + "def get_config():\n    return Config(rate=0.1)\n\n\n"), form=(NET, CALLED, ENTRY)),
    case("of an object that is described", DATACLASSES, with_main(FIELDS + "def get_config() -> Config:\n    return Config(0.1, [3, 3])\n\n\n"), form=(NET, CALLED, ENTRY)),
    case("handed on by name", with_main(TUPLE + "def get_config(layers=(3, 3)):\n    return Config(rate=0.1, layers=layers)\n\n\n")),
    case("summed too", with_main(TUPLE + MADE), ("out = net(x, config.layers)", "out = net(x, config.layers) * (0.1 * sum(config.layers))")),
    case("an argument", ("out = net(x)", "out = net(x, layers)"), ("def train():\n", "def train(layers):\n"), (MAIN, MAIN.replace("train()", "train([3, 3])")), form=(NET,)),
]  # fmt: skip

LEFT = [
    other("an iterator of a named tuple", "TM222", with_main(TUPLE + MADE.replace("[3, 3]", "iter([3, 3])"))),
    other("one by its place", "TM222", with_main(TUPLE + MADE.replace("rate=0.1, layers=[3, 3]", "0.1, (n for n in [3, 3])"))),
    other("an iterator of an object", "TM222", with_main(CLASS + MADE.replace("[3, 3]", "map(int, ['3', '3'])"))),
    other("an iterator that is handed on", "TM222", with_main(TUPLE + "def get_config(layers=(3, 3)):\n    layers = iter(layers)\n    return Config(rate=0.1, layers=layers)\n\n\n")),
    other("an iterator that is set later", "TM222", with_main(CLASS + MADE.replace("    return Config(", "    made = Config(").replace(")\n\n", ")\n    made.layers = iter([3])\n    return made\n\n", 1))),
    other("an iterator by a text", "TM222", with_main(CLASS + MADE.replace("    return Config(", "    made = Config(").replace(")\n\n", ")\n    setattr(made, 'layers', iter([3]))\n    return made\n\n", 1))),
    other("an iterator by another name of the class", "TM222", with_main(CLASS + "Other = Config\n\n\n" + MADE.replace("return Config(rate=0.1, layers=[3, 3])", "return Other(0.1, iter([3, 3]))"))),
    other("an iterator by keywords", "TM222", with_main(CLASS + "def get_config():\n    return Config(**{'rate': 0.1, 'lay' + 'ers': iter([3, 3])})\n\n\n")),
    other("an iterator that the loop leaves", "TM222", with_main(CLASS + "def get_config():\n    for layers in [iter([3, 3])]:\n        return Config(rate=0.1, layers=layers)\n\n\n")),
    other("an iterator of an argument", "TM222", ("out = net(x)", "out = net(x, layers)"), ("def train():\n", "def train(layers):\n"), (MAIN, MAIN.replace("train()", "train(iter([3, 3]))")), form=(NET,)),
    other("an iterator in a list", "TM222", (NET[1], NET[1].replace("for k, size in enumerate(layers)", "for k, size in enumerate(layers[0])")), with_main(TUPLE + MADE.replace("[3, 3]", "[iter([3, 3])]"))),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
