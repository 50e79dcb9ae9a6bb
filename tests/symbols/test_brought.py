"""TensorFlow's names that come from other files of the tree: `from ops import *` where `ops` imports TensorFlow."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from towermigrate.migrate import plan
from towermigrate.rewrite import rewrite_tree
from towermigrate.symbols import brought as module
from towermigrate.symbols.brought import brought

TF = "import tensorflow as tf\n"
USE = "x = tf.placeholder(tf.float32)\n"
USED = "x = tf.compat.v1.placeholder(tf.float32)\n"


def rewritten(sources: dict[str, str], path: str) -> str:
    """The new text of a file, which a second rewrite must leave as it is."""

    def run(sources: dict[str, str]) -> dict[str, str]:
        links = {path: text for path, text in sources.items() if "tensorflow" not in text}
        others = {path: text for path, text in sources.items() if path not in links}
        return dict(rewrite_tree(others, links=links).texts)

    after = {**sources, **run(sources)}
    assert run(after) == {}
    return after[path]


WAYS = [
    pytest.param({"ops.py": TF, "a.py": "from ops import *\n" + USE}, id="a star"),
    pytest.param({"p/ops.py": TF, "p/a.py": "from .ops import *\n" + USE}, id="a star with a dot"),
    pytest.param({"p/ops.py": TF, "a.py": "from p.ops import *\n" + USE}, id="a star from a package's module"),
    pytest.param({"p/__init__.py": "from .ops import *\n", "p/ops.py": TF, "a.py": "from p import *\n" + USE}, id="a star through a package"),
    pytest.param({"c.py": TF, "b.py": "from c import *\n", "a.py": "from b import *\n" + USE}, id="a chain of stars"),
    pytest.param({"d.py": TF, "c.py": "from d import *\n", "b.py": "from c import tf\n", "a.py": "from b import *\n" + USE}, id="a chain of both kinds"),
    pytest.param({"ops.py": TF, "a.py": "from ops import tf\n" + USE}, id="by its name"),
    pytest.param({"ops.py": TF, "a.py": "from ops import (\n    conv,\n    tf,  # why\n)\n" + USE}, id="by its name among others"),
    pytest.param({"ops.py": TF, "a.py": "from ops import tf as t\n" + USE.replace("tf.", "t.")}, id="under another name"),
    pytest.param({"ops.py": "__all__ = ['tf', 'conv']\n" + TF, "a.py": "from ops import *\n" + USE}, id="__all__ names it"),
    pytest.param({"ops.py": "__all__ = names()\n" + TF, "a.py": "from ops import *\n" + USE}, id="__all__ is not known"),
    pytest.param({"ops.py": "try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\n", "a.py": "from ops import *\n" + USE}, id="in a try"),
    pytest.param({"ops.py": TF + "print 'a'\n", "a.py": "from ops import *\n" + USE}, id="from a file of Python 2"),
    pytest.param({"ops.py": TF + "from a import *\n", "a.py": "from ops import *\n" + USE}, id="two files that import each other"),
    pytest.param({"ops.py": "import tensorflow.contrib\nimport tensorflow\n", "a.py": "from ops import *\n" + USE.replace("tf.", "tensorflow.")}, id="under its own name"),
    pytest.param({"ops.py": TF, "a.py": "def f():\n  from ops import tf\n  " + USE}, id="in a function"),
    pytest.param({"ops.py": TF, "a.py": "import numpy  # not tensorflow\nfrom ops import *\n" + USE}, id="a file that has the word"),
]  # fmt: skip


@pytest.mark.parametrize("sources", WAYS)
def test_names_that_are_brought_are_moved(sources: dict[str, str]) -> None:
    text = rewritten(sources, next(path for path in sources if path.endswith("a.py")))
    assert ".compat.v1.placeholder(" in text


NOT = [
    pytest.param({"ops.py": TF, "a.py": "from other import *\n" + USE}, id="the star is of another module"),
    pytest.param({"ops.py": TF, "a.py": "from ops import conv\n" + USE}, id="another name is taken"),
    pytest.param({"ops.py": "__all__ = ['conv']\n" + TF, "a.py": "from ops import *\n" + USE}, id="__all__ leaves it out"),
    pytest.param({"ops.py": "import tensorflow as _tf\n", "a.py": "from ops import *\n" + USE.replace("tf.", "_tf.")}, id="a star takes no private name"),
    pytest.param({"ops.py": "def f():\n  import tensorflow as tf\n", "a.py": "from ops import *\n" + USE}, id="it is a function's own name"),
    pytest.param({"ops.py": TF, "a.py": "from ops import *\ndef f(tf):\n  return tf.placeholder(1)\n"}, id="a parameter of that name"),
    pytest.param({"a.py": "from ops import *\n" + USE}, id="there is no such file"),
]  # fmt: skip


@pytest.mark.parametrize("sources", NOT)
def test_names_that_are_not_brought_stay(sources: dict[str, str]) -> None:
    assert rewritten(sources, "a.py") == sources["a.py"]


OPS = (
    "import tensorflow as tf\n"
    "import tensorflow.contrib as tf_contrib\n"
    "import tensorflow.contrib.slim as slim\n"
    "from tensorflow.contrib import rnn, layers\n"
    "from tensorflow import nn\n"
    "from tensorflow import Session\n"
)
MODULES = [
    pytest.param("y = tf_contrib.layers.conv2d(x)\n", "y = tf_slim.layers.conv2d(x)\n", id="tf.contrib itself"),
    pytest.param("y = tf_contrib.rnn.LSTMCell(3)\n", "y = tf.compat.v1.nn.rnn_cell.LSTMCell(3)\n", id="a module of tf.contrib.*"),
    pytest.param("y = slim.conv2d(x)\n", "y = slim.conv2d(x)\n", id="a module that moves as one"),
    pytest.param("y = layers.conv2d(x)\n", "y = layers.conv2d(x)\n", id="another that moves as one"),
    pytest.param("y = rnn.GRUCell(3)\n", "y = tf.compat.v1.nn.rnn_cell.GRUCell(3)\n", id="a module that goes"),
    pytest.param("y = nn.rnn_cell.GRUCell(3)\n", "y = tf.compat.v1.nn.rnn_cell.GRUCell(3)\n", id="a module that the other file keeps"),
    pytest.param("y = nn.relu(x)\n", "y = nn.relu(x)\n", id="a name that is the same"),
    pytest.param("y = Session()\n", "y = Session()\n", id="a name that moves with its import"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), MODULES)
@pytest.mark.parametrize("imports", ["from ops import *\n", "from ops import tf, tf_contrib, slim, rnn, layers, nn, Session\n"], ids=["star", "named"])  # fmt: skip
def test_modules_that_are_brought(before: str, after: str, imports: str) -> None:
    text = rewritten({"ops.py": OPS, "a.py": imports + before}, "a.py")
    assert text.endswith(after)
    if "*" not in imports:  # what is no longer there is not imported
        assert "from ops import tf, slim, layers, nn, Session\n" in text


def test_a_script_whose_tensorflow_is_brought_is_switched() -> None:
    script = "import os\nfrom ops import *\n\nif __name__ == '__main__':\n    tf.Session().run(tf.log(1.0))\n"
    text = rewritten({"ops.py": TF, "a.py": script}, "a.py")
    assert text.startswith(
        "import os\nfrom ops import *\n\ntf.compat.v1.disable_v2_behavior()\n\nif __name__"
    )


def test_only_files_that_get_something_are_found() -> None:
    sources = {
        "ops.py": TF,
        "a.py": "from ops import *\n",
        "b.py": "from os import *\nimport ops\n",
    }
    assert list(brought(sources)) == ["a.py"]


@pytest.mark.parametrize("single", [False, True], ids=["the tree", "the file alone"])
def test_a_file_on_disk_without_the_word(tmp_path: Path, single: bool) -> None:
    (tmp_path / "ops.py").write_text(TF + "tf.log(1)\n")
    (tmp_path / "a.py").write_text("from ops import *\n" + USE)
    migration = plan(tmp_path / "a.py" if single else tmp_path)
    assert migration.report.texts["a.py"] == "from ops import *\n" + USED
    assert ("ops.py" in migration.report.texts) == (not single)


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(module).failed == 0
