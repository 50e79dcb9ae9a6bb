"""Every file where the recogniser finds a tower loop is one that the hints name."""

from __future__ import annotations

import pytest

from towermigrate.hints import hints_of, may_hold_towers
from towermigrate.recognize.loops import LoopFinder
from towermigrate.recognize.source import Tree

HEAD = "import tensorflow as tf\n"
OPENS = HEAD + (
    "def build(i):\n    with tf.device('/gpu:%d' % i):\n        return tf.get_variable('w', [1])\n"
)
COMPUTES = HEAD + (
    "def build(x):\n    return tf.train.AdamOptimizer().compute_gradients(tf.get_variable('w', [1]))\n"
)
PINNED = "with tf.device('/cpu:0'):\n    pass\n"
CALLS = "for i in range(2):\n    build(i)\n"

TREES = [
    pytest.param(
        {"t.py": OPENS, "m.py": HEAD + "from t import *\nclass M:\n    def build(self):\n        pass\n"
                                + PINNED + CALLS},
        id="a function of a star import that is called as a method here is",
    ),
    pytest.param(
        {"t.py": OPENS, "m.py": HEAD + "from t import *\ndef f():\n    def build():\n        pass\n"
                                + PINNED + CALLS},
        id="a function of a star import that is called as an inner function here is",
    ),
    pytest.param(
        {"t.py": COMPUTES, "a.py": HEAD + "from t import build as b\n", "c.py": HEAD + "from a import b as d\n",
         "m.py": HEAD + "from c import d\n" + PINNED + "for gpu in range(2):\n    d(gpu)\n"},
        id="a function that two files rename",
    ),
    pytest.param(
        {"t.py": COMPUTES, "m.py": HEAD + "from t import build\n" + PINNED
                                   + "for i in range(  # one for each GPU\n        2):\n    build(i)\n"},
        id="devices in a comment of the loop's first line",
    ),
    pytest.param(
        {"m.py": HEAD + "from tensorflow import device as on\nfor i in range(2):\n    with on('/gpu:%d' % i):\n"
                        "        tf.get_variable('w', [1])\n"},
        id="tf.device under another name",
    ),
    pytest.param(
        {"m.py": HEAD + "for i in range(2):\n    with (tf.device)('/gpu:%d' % i):\n"
                        "        tf.get_variable('w', [1])\n"},
        id="tf.device in parentheses",
    ),
    pytest.param(
        {"m.py": HEAD + "opt = tf.train.AdamOptimizer()\nfor gpu in range(2):\n"
                        "    opt.minimize(tf.get_variable('w', [1]))\n"},
        id="minimize over devices",
    ),
]  # fmt: skip


@pytest.mark.parametrize("sources", TREES)
def test_hints_name_every_file_with_a_tower_loop(sources: dict[str, str]) -> None:
    tree = Tree(sources)
    finder = LoopFinder(tree)
    files = [file for path in sources if (file := tree.file(path)) is not None]
    found = {file.path for file in files if finder.loops(file)}
    assert found == {"m.py"}
    assert found <= may_hold_towers(hints_of(sources))
