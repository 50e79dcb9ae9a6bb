"""Functions that are others than their names say: bound anew, by a star, in the function that builds the towers, from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.differential.loop_programs import program
from tests.differential.spellings import asked_of, none_does_anything_else

HEAD = "import numpy as np\nimport tensorflow as tf\n\n"
TF = "import tensorflow as tf\n"
MAIN = "def train():\n"
CALLED = "    train()\n"
NET = """\
def net(x):
    w = tf.get_variable('w', [3, 1], initializer=tf.constant_initializer(0.3))
    b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))
    return tf.matmul(x, w) + b
"""
COUNTS = """\
SEEN = []


def net(x):
    SEEN.append(len(SEEN))
    w = tf.get_variable('w', [3, 1], initializer=tf.constant_initializer(0.3))
    return tf.matmul(x, w) * len(SEEN)
"""
AVERAGE = """\
def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        stacked = tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0)
        averaged.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
    return averaged
"""
SUM = AVERAGE.replace("reduce_mean", "reduce_sum")
ONE = "def average_gradients(tower_grads):\n    return tower_grads[0]\n"
TURNED = "def range(*n):\n    return [1, 0]\n"
OF_A = "import a\nimport b\n\n\ndef net(x):\n    return a.net(x)\n\n\n"
PATCHED = "def patch(module):\n    module.net = b.net\n\n\npatch(a)\n"


def files(*parts: tuple[str, str]) -> Mapping[str, str]:
    """The program with changes in it, and with files beside it, which are given by their names; `net` is for `net`."""
    text = program()["train.py"]
    start, end = text.index("def net(x)"), text.index("def average_gradients")
    beside = {name: of for name, of in parts if name.endswith(".py")}
    changes = [each for each in parts if not each[0].endswith(".py")]
    text = text[:start] + dict(changes).get("net", NET) + "\n\n" + text[end:]
    for old, new in changes:
        if old != "net":
            assert old in text, old
            text = text.replace(old, new)
    return {"train.py": text, **{name: HEAD + of for name, of in beside.items()}}


def case(name: str, *parts: tuple[str, str]) -> Any:
    return pytest.param(parts, id=name)


def other(name: str, rule: str, *parts: tuple[str, str]) -> Any:
    return pytest.param(parts, rule, id=name)


STARS = (TF, TF + "from a import *\nfrom b import *\n")
MODULES = (("a.py", NET), ("b.py", COUNTS))

TAKEN = [
    case("of a module", ("net", OF_A), *MODULES),
    case("an average of the last star", STARS, (AVERAGE, ""), ("a.py", SUM), ("b.py", AVERAGE)),
    case("a sum of the last star", STARS, (AVERAGE, ""), ("a.py", AVERAGE), ("b.py", SUM)),
    case("batches of the function's own", (MAIN, MAIN + "    def batch(rows):\n        return np.ones((rows, 3)), np.zeros((rows, 1))\n\n")),
    case("an object beside that has a part of the name", ("net", f"class Kept(object):\n    pass\n\n\nkept = Kept()\nkept.net = 1\n\n\n{NET}")),
    case("a setting of the name by a text", ("net", f"class Kept(object):\n    pass\n\n\nkept = Kept()\nfor name in ('one', 'two'):\n    setattr(kept, name, 1)\n\n\n{NET}")),
]  # fmt: skip

LEFT = [
    other("an average of the function's own", "TM203", (AVERAGE, ""), (MAIN, MAIN + "    def average_gradients(tower_grads):\n" + "".join(f"    {line}\n" for line in AVERAGE.split("\n")[1:]))),
    other("an average that the function binds", "TM203", (AVERAGE, f"{AVERAGE}\n\n{SUM.replace('average', 'sum')}"), (MAIN, MAIN + "    average_gradients = sum_gradients\n")),
    other("an average that the function makes", "TM203", (MAIN, MAIN + "    average_gradients = lambda tower_grads: tower_grads[0]\n")),
    other("an average that the function imports", "TM203", (MAIN, MAIN + "    from b import average_gradients\n"), ("b.py", SUM)),
    other("an average that the function is given", "TM203", (MAIN, "import b\n\n\ndef train(average_gradients=average_gradients):\n"), (CALLED, "    train(b.average_gradients)\n"), ("b.py", ONE)),
    other("a range of a star", "TM229", (TF, TF + "from b import *\n"), ("b.py", TURNED)),
    other("a range that is handed on", "TM229", (TF, TF + "from a import *\n"), ("a.py", "from b import *\n"), ("b.py", TURNED)),
    other("a range that a star's file imports", "TM229", (TF, TF + "from a import *\n"), ("a.py", "from b import range\n"), ("b.py", TURNED)),
    other("set by a text", "TM224", ("net", OF_A + "setattr(a, 'net', b.net)\n"), *MODULES),
    other("set by a text that has a name", "TM224", ("net", OF_A + "for name in ('net',):\n    setattr(a, name, b.net)\n"), *MODULES),
    other("set among all names", "TM224", ("net", OF_A + "vars(a)['net'] = b.net\n"), *MODULES),
    other("set in the module's dict", "TM224", ("net", OF_A + "a.__dict__.update(net=b.net)\n"), *MODULES),
    other("set of a module by another name", "TM224", ("net", OF_A + "module = a\nmodule.net = b.net\n"), *MODULES),
    other("set of a module that is handed on", "TM224", ("net", OF_A + PATCHED), *MODULES),
    other("set of a module that is looked up", "TM224", ("net", OF_A + "import importlib\nimportlib.import_module('a').net = b.net\n"), *MODULES),
    other("with other defaults", "TM224", ("net", NET.replace("(x)", "(x, scale=1.0)").replace("+ b", "* scale + b") + "\n\nnet.__defaults__ = (2.0,)\n")),
    other("with other code", "TM224", ("net", f"{NET}\n\n{COUNTS.replace('def net', 'def other')}\n\nnet.__code__ = other.__code__\n")),
    other("by what it sees", "TM224", ("net", f"SCALE = 1.0\n\n\n{NET.replace('+ b', '* SCALE + b')}\n\nnet.__globals__['SCALE'] = 2.0\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, files)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, files)
