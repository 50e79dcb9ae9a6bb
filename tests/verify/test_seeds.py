"""Seeds that a program gives are recorded in both TensorFlow styles and compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verify.traces import recorded, trace
from towermigrate.verify.seeds_compare import seed_differences, seeds_left_out

GIVEN: dict[str, Any] = {
    "graph": [3], "operations": [7], "layers": [], "variables": {"w": 5, "b": None}, "computed": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, None),
        ({"graph": [4]}, "seed of the graph"),
        ({"graph": []}, "seed of the graph"),
        ({"variables": {"w": 6, "b": None}}, "seed of the initial value of w"),
        ({"variables": {"w": None, "b": None}}, "seed of the initial value of w"),
        ({"variables": {"w": 5, "b": 1}}, "seed of the initial value of b"),
        ({"variables": {}}, None),
        ({"operations": [8]}, "seeds of random operations"),
        ({"operations": []}, "seeds of random operations"),
        # What TensorFlow gives by itself, as layers do, or computes, is no fault.
        ({"operations": [7, 9]}, None),
        ({"operations": [], "layers": [7]}, None),
        ({"operations": [], "computed": True}, None),
    ],
)
def test_seeds(change: dict[str, Any], name: str | None, tmp_path: Path) -> None:
    sides = (GIVEN, GIVEN, {**GIVEN, **change})
    runs = {"run_00000": {"loss/0/0": 0.0}}
    traces = [trace(tmp_path / str(k), runs, seeds=seeds) for k, seeds in enumerate(sides)]
    found = seed_differences(recorded(traces[0], traces[1]), traces[2])
    assert [each.name for each in found] == ([] if name is None else [name])
    assert all(each.level == "initial" for each in found)


def test_seeds_that_the_original_has_otherwise_each_time_are_open(tmp_path: Path) -> None:
    other = {**GIVEN, "graph": [9], "operations": [9], "variables": {"w": 9, "b": 9}}
    runs = {"run_00000": {"loss/0/0": 0.0}}
    traces = [
        trace(tmp_path / str(k), runs, seeds=each)
        for k, each in enumerate((GIVEN, other, {**other, "graph": []}))
    ]
    assert not seed_differences(recorded(traces[0], traces[1]), traces[2])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"layers": [8]}, True),
        ({"layers": []}, True),
        ({"layers": [7, 8]}, False),
        ({"layers": [], "operations": [7]}, False),
        ({"layers": [], "variables": {"w": 7}}, False),
    ],
)
def test_seeds_that_come_by_keras_are_named_where_they_are_not_seen(
    change: dict[str, Any], named: bool, tmp_path: Path
) -> None:
    given = {**GIVEN, "layers": [7], "operations": [], "variables": {}}
    sides = (given, given, {**given, **change})
    runs = {"run_00000": {"loss/0/0": 0.0}}
    traces = [trace(tmp_path / str(k), runs, seeds=seeds) for k, seeds in enumerate(sides)]
    left = seeds_left_out(recorded(traces[0], traces[1]), traces[2])
    assert [each.partition(": ")[0] for each in left] == (["seeds of Keras"] if named else [])


PROGRAM = """
import json, sys
import tensorflow as tf
from towermigrate.verify.probe.seeds import Seeds
meta = {}
Seeds(meta).install()
v1 = tf.compat.v1
def build():
    v1.get_variable("w", [2], initializer=v1.truncated_normal_initializer(seed=5))
    v1.get_variable("b", [2], initializer=v1.random_uniform_initializer())
    v1.get_variable("c", [2], initializer=v1.constant_initializer(0.5))
    return v1.random_uniform([2], seed=7) + v1.random_normal([2])
if sys.argv[1] == "graph":
    with tf.Graph().as_default():
        v1.set_random_seed(3)
        build()
else:
    v1.set_random_seed(3)
    store = v1.get_variable_scope()
    made = []
    @tf.function(autograph=False)
    def step():
        with v1.variable_scope("", use_resource=True, reuse=v1.AUTO_REUSE):
            return v1.random_uniform([2], seed=7) + v1.random_normal([2])
    step()
    with tf.init_scope(), v1.variable_scope("", use_resource=True):
        from tensorflow.python.ops import variable_scope
        kept = variable_scope.EagerVariableStore()
        with kept.as_default():
            build()
print(json.dumps(meta["seeds"]))
"""


@pytest.mark.parametrize("style", ["graph", "function"])
def test_what_is_recorded(style: str) -> None:
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM, style], capture_output=True, text=True, check=True
    )
    seeds = json.loads(made.stdout.splitlines()[-1])
    assert seeds["graph"] == [3] and seeds["operations"] == [7]
    assert seeds["variables"] == {"w": 5, "b": None}
    assert not seeds["computed"]
