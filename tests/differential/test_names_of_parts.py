"""Names that a module gives to parts of TensorFlow 1: `slim = tf.contrib.slim`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all

IMPORT = "import tensorflow as tf\n"
SLIM = (IMPORT, IMPORT + "\nslim = tf.contrib.slim\n")
DENSE = "slim.fully_connected(x, 3, activation_fn=None, weights_initializer=init(3, 3), scope='in')"


def layer(made: str = DENSE) -> Change:
    return "def net(x):\n", f"def net(x):\n    x = {made}\n"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("slim", SLIM, layer()),
    case("slim, which a comment speaks of", SLIM, layer(), ("def batch(", "# slim makes the layers\ndef batch(")),
    case("layers", (IMPORT, IMPORT + "layers = tf.contrib.layers\n"), layer(DENSE.replace("slim.", "layers."))),
    case("a scope of arguments", SLIM, ("def net(x):\n", f"def net(x):\n    with slim.arg_scope([slim.fully_connected], activation_fn=None):\n        x = {DENSE.replace(' activation_fn=None,', '')}\n")),
    case("behind other statements", (IMPORT, IMPORT + "import os\nos.environ['A'] = 'b'\nslim = tf.contrib.slim\n"), layer()),
]  # fmt: skip

LEFT = [
    other("bound anew", "TM206", SLIM, layer(), ("def batch(", "slim = tf.contrib.slim\n\n\ndef batch(")),
    other("bound anew by a function", "TM206", SLIM, layer(), ("def batch(", "def other():\n    global slim\n    slim = tf.contrib.layers\n\n\ndef batch(")),
    other("bound under a condition", "TM206", (IMPORT, IMPORT + "if True:\n    slim = tf.contrib.slim\n"), layer()),
    other("handed on", "TM206", SLIM, layer(), ("def batch(", "print(slim is not None)\n\n\ndef batch(")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
