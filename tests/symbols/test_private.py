"""Names of TensorFlow's private modules that are gone: the public ones are written, and are what the private ones were."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.tf1_env import tf1_python
from towermigrate.symbols import rewrite_symbols
from towermigrate.symbols.private import MOVED, moved

HEAD = "import tensorflow as tf\ntf.placeholder\n"
NEW = "import tensorflow as tf\ntf.compat.v1.placeholder\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from tensorflow.python.ops import control_flow_ops\n", "control_flow_ops.cond(p, f, g)|tf.compat.v1.cond(p, f, g)"),
        ("from tensorflow.python.ops import control_flow_ops as cf\n", "cf.while_loop(c, b, [x])|tf.compat.v1.while_loop(c, b, [x])"),
        ("from tensorflow.python.framework import ops\n", "isinstance(x, ops.Tensor)|isinstance(x, tf.Tensor)"),
        ("from tensorflow.python.framework import ops\n", "ops.convert_to_tensor(x)|ops.convert_to_tensor(x)"),
        ("from tensorflow.python.util import nest\n", "nest.is_sequence(x)|tf.nest.is_nested(x)"),
        ("from tensorflow.python import pywrap_tensorflow\n", "pywrap_tensorflow.NewCheckpointReader(p).get_tensor(n)|tf.compat.v1.train.NewCheckpointReader(p).get_tensor(n)"),
        ("", "tf.python.ops.array_ops.stack([x])|tf.stack([x])"),
        ("from mine import control_flow_ops\n", "control_flow_ops.cond(p, f, g)|control_flow_ops.cond(p, f, g)"),
    ],
)  # fmt: skip
def test_the_public_name_is_written(before: str, after: str) -> None:
    line, expected = after.split("|")
    found = rewrite_symbols(f"{before}{HEAD}{line}\n", "a.py")
    assert found.text == f"{before}{NEW}{expected}\n"
    assert rewrite_symbols(found.text, "a.py", tf1=True).text == found.text


def test_an_import_of_the_name_itself_is_said() -> None:
    found = rewrite_symbols(
        f"from tensorflow.python.ops.control_flow_ops import cond as c\n{HEAD}c(p, f, g)\n", "a.py"
    )
    (said,) = [each.message for each in found.findings if each.rule == "TM112"]
    assert said.startswith("`tensorflow.python.ops.control_flow_ops.cond` is not in TensorFlow 2.")
    assert said.endswith("it is `tf.compat.v1.cond` there")


def test_what_is_asked_of_a_name_is_no_part_of_it() -> None:
    assert moved("tensorflow.python.framework.ops.Tensor.op") == "framework.ops.Tensor"
    assert moved("tensorflow.python.framework.ops.Tensors") is None
    assert moved("tensorflow.python.framework.ops") is None
    assert moved("framework.ops.Tensor") is None


ASKS = """
import importlib, json, sys
for place in json.loads(sys.argv[1]):
    module, _, name = place.rpartition(".")
    made = importlib.import_module("tensorflow.python." + module)
    print(place, getattr(made, name, None) is not None)
"""


def _asked(python: str, names: list[str]) -> dict[str, bool]:
    done = subprocess.run(
        [python, "-W", "ignore", "-c", ASKS, json.dumps(names)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = (line.split() for line in done.stdout.splitlines() if line.endswith(("True", "False")))
    return {name: there == "True" for name, there in found}


@pytest.mark.full
def test_tensorflow_1_has_the_private_names() -> None:
    assert _asked(str(tf1_python()), list(MOVED)) == dict.fromkeys(MOVED, True)


@pytest.mark.full
def test_tensorflow_2_has_the_public_names_only() -> None:
    tf: Any = pytest.importorskip("tensorflow")
    assert _asked(sys.executable, list(MOVED)) == dict.fromkeys(MOVED, False)
    for name in MOVED.values():
        found = tf
        for part in name.split(".")[1:]:
            found = getattr(found, part)
        assert callable(found)
