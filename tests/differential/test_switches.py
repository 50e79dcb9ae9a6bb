"""Programs that were brought to `tf.compat.v1` already: loop style where what switches TensorFlow 2 off can go."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of

IMPORT = "import tensorflow as tf\n"
V1 = "import tensorflow.compat.v1 as tf\n"
OFF = "tf.disable_v2_behavior()\n"
MAIN = "if __name__ == '__main__':\n"
NAMES = "placeholder get_variable variable_scope constant_initializer Session ConfigProto train layers global_variables_initializer".split()


def upgraded() -> tuple[Change, ...]:
    """The program as `tf_upgrade_v2` leaves it."""
    return tuple((f"tf.{name}", f"tf.compat.v1.{name}") for name in NAMES if name != "layers")


def files(*changes: Change | str) -> Mapping[str, str]:
    """The program, and beside it a script that imports it, where one is given as a text."""
    made = program(*(each for each in changes if not isinstance(each, str)))
    beside = [each for each in changes if isinstance(each, str)]
    return {**made, "other.py": beside[0]} if beside else made


def taken(name: str, *changes: Change | str) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change | str) -> object:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    taken("the module of version 1", (IMPORT, V1 + OFF)),
    taken("from its package", (IMPORT, "from tensorflow.compat import v1 as tf\n" + OFF)),
    taken("graphs without eager execution", (IMPORT, V1 + "tf.disable_eager_execution()\n")),
    taken("several switches", (IMPORT, V1 + OFF + "tf.disable_resource_variables()\n")),
    taken("a switch with a comment", (IMPORT, V1 + "tf.disable_v2_behavior()  # graphs\n")),
    taken("in the script's own part", (IMPORT, V1), (MAIN, MAIN + "    " + OFF)),
    taken("in the function", (IMPORT, V1), ("def train():\n", "def train():\n    " + OFF)),
    taken("names as the upgrade script writes them", *upgraded(), (IMPORT, IMPORT + "tf.compat.v1.disable_v2_behavior()\n")),
    taken("a script that takes a function of it", (IMPORT, V1 + OFF), "import train\n\nprint(train.batch(2))\n"),
]  # fmt: skip

LEFT = [
    left("only on one way", "TM236", (IMPORT, V1), (MAIN, "if DEVICES:\n    tf.disable_v2_behavior()\n\n\n" + MAIN)),
    left("a script that runs a graph of its own", "TM236", (IMPORT, V1 + OFF),
         V1 + "import train\n\nx = tf.placeholder(tf.float32)\nwith tf.Session() as sess:\n    print(sess.run(train.net(x)))\n"),
    left("in another file", "TM236", (IMPORT, V1 + "import other\n"), V1 + OFF),
    left("all that a function does", "TM236", (IMPORT, V1), (MAIN, "def off():\n    tf.disable_v2_behavior()\n\n\noff()\n\n\n" + MAIN)),
    left("by another name", "TM236", (IMPORT, V1 + "off = tf.disable_v2_behavior\noff()\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_neighbours_are_left,
    test_what_is_taken_does_the_same,
) = asked_of(TAKEN, LEFT, files)
