"""Levels, tolerance and causes, on recordings written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from towermigrate.verify import probe_tf1
from towermigrate.verify.compare import Comparison, compare, disagreement
from towermigrate.verify.devices import parse_devices
from towermigrate.verify.diagnose import diagnose
from towermigrate.verify.trace import Arrays, Trace, read_trace

STAGES = ("train",)


def recording(folder: Path, runs: list[Arrays], initial: Arrays | None = None) -> Trace:
    writer = probe_tf1.TraceWriter(str(folder))
    writer.arrays("initial", initial or {})
    for index, arrays in enumerate(runs):
        writer.arrays(f"run_{index:05d}", arrays)
        writer.meta["runs"].append({"index": index, "stages": [0], "updates": 1})
        for key, array in arrays.items():
            if key.startswith("state/"):
                writer.meta["variables"][key[len("state/") :]] = {
                    "shape": list(array.shape),
                    "dtype": array.dtype.name,
                    "trainable": key.startswith("state/variable/"),
                }
    writer.finish("steps")
    return read_trace(folder)


def arrays(**changes: Any) -> Arrays:
    made: dict[str, Any] = {
        "loss/0/0": 1.0,
        "loss/0/1": 2.0,
        "gradient/0/a/w": [0.5, -0.25],
        "gradient/0/b": [1e-4],
        "state/variable/a/w": [1.0, 2.0],
        "state/variable/b": [3.0],
        "state/slot/0/m/a/w": [0.05, 0.1],
    }
    for key, value in changes.items():
        made[key] = value
    return {k: np.asarray(v, np.float32) for k, v in made.items() if v is not None}


def compared(tmp_path: Path, theirs: Arrays, ours: Arrays) -> tuple[Trace, Trace, Comparison]:
    expected = recording(tmp_path / "expected", [theirs], {"variable/b": arrays()["gradient/0/b"]})
    actual = recording(tmp_path / "actual", [ours])
    return expected, actual, compare(expected, actual, STAGES, 1e-6)


@pytest.mark.parametrize(
    ("changes", "level", "name"),
    [
        pytest.param({"loss/0/1": 2.1}, "forward", "loss", id="a loss"),
        pytest.param({"gradient/0/a/w": [1.0, -0.5]}, "gradient", "a/w", id="a gradient"),
        pytest.param({"gradient/0/a/w": None}, "gradient", "a/w", id="a gradient that is missing"),
        pytest.param({"gradient/0/c": [0.0]}, "gradient", "c", id="a gradient too many"),
        pytest.param({"gradient/0/b": [2e-4]}, "gradient", "b", id="a small gradient, doubled"),
        pytest.param({"state/variable/b": [3.1]}, "update", "b", id="a variable"),
        pytest.param({"state/slot/0/m/a/w": [0.5, 0.1]}, "update", "m/a/w", id="a slot"),
        pytest.param({"state/variable/b": None}, "structure", "b", id="no such variable"),
        pytest.param({"state/variable/b": [3.0, 3.0]}, "structure", "b", id="a shape"),
    ],
)
def test_a_difference_is_named(
    tmp_path: Path, changes: dict[str, Any], level: str, name: str
) -> None:
    _, _, result = compared(tmp_path, arrays(), arrays(**changes))
    first = result.first()
    assert first is not None
    assert (first.level, first.name, first.step) == (level, name, 0)


def test_rounding_is_no_difference(tmp_path: Path) -> None:
    ours = arrays(**{"gradient/0/b": [1.0001e-4]})
    _, _, result = compared(tmp_path, arrays(), ours)
    assert result.first() is None
    assert 0 < result.max_error <= 1e-6


def test_equal_recordings_are_bitwise_equal(tmp_path: Path) -> None:
    _, _, result = compared(tmp_path, arrays(), arrays())
    assert result.differences == [] and result.not_compared == []
    assert set(result.max_abs.values()) == {0.0}


def test_what_was_not_recorded_is_listed(tmp_path: Path) -> None:
    bare = {key: value for key, value in arrays().items() if not key.startswith("loss")}
    _, _, result = compared(tmp_path, bare, bare)
    assert result.not_compared == ["stage train: level forward was not recorded"]


def test_a_stage_that_never_ran_is_listed(tmp_path: Path) -> None:
    expected = recording(tmp_path / "expected", [arrays()])
    result = compare(expected, expected, ("train", "full"), 1e-6)
    assert result.not_compared == ["stage full: no training run of the original updated it"]


def test_what_the_original_does_not_determine_is_held_to_its_own_spread(tmp_path: Path) -> None:
    first = recording(tmp_path / "1", [arrays()])
    second = recording(tmp_path / "2", [arrays(**{"state/variable/b": [3.01]})])
    free = disagreement(first, second, 1e-6)
    assert free == {"state/variable/b"}
    near = recording(tmp_path / "3", [arrays(**{"state/variable/b": [3.005]})])
    far = recording(tmp_path / "4", [arrays(**{"state/variable/b": [3.5]})])
    assert compare(first, near, STAGES, 1e-6, second, free).first() is None
    assert compare(first, far, STAGES, 1e-6, second, free).first() is not None


TWICE = {"gradient/0/a/w": [1.0, -0.5], "gradient/0/b": [2e-4]}
HALF = {"gradient/0/a/w": [0.25, -0.125], "gradient/0/b": [0.5e-4]}


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        pytest.param(TWICE, "division by the number of towers is missing", id="no division"),
        pytest.param(HALF, "divided by the number of towers twice", id="two divisions"),
        pytest.param({"gradient/0/c": [0.0]}, "zeros are applied", id="zeros for None"),
        pytest.param({"gradient/0/c": [0.1]}, "list has variables", id="a longer var_list"),
        pytest.param({"gradient/0/b": None}, "list lacks variables", id="a shorter var_list"),
        pytest.param({"loss/0/1": 1.0}, "tower 1 computes the loss of tower 0", id="one tower"),
        pytest.param({"loss/0/1": 2.5}, "counted once more", id="a later tower's collections"),
        pytest.param({"state/variable/a/w": [1.1, 2.0]}, "optimizer formula", id="the optimizer"),
    ],
)
def test_a_cause_is_named(tmp_path: Path, changes: dict[str, Any], cause: str) -> None:
    expected, actual, result = compared(tmp_path, arrays(), arrays(**changes))
    causes = [each.cause for each in diagnose(expected, actual, result, STAGES, 2)]
    assert any(cause in each for each in causes), causes


@pytest.mark.parametrize(
    ("text", "replicas"), [("cpu:1", 1), ("cpu:4", 4), ("gpu:0,1", 2), ("gpu:3", 3)]
)
def test_device_specs(text: str, replicas: int) -> None:
    assert parse_devices(text).replicas == replicas


@pytest.mark.parametrize("text", ["", "cpu", "cpu:0", "gpu:a", "cpu:2;rm"])
def test_what_is_no_device_spec(text: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        parse_devices(text)
