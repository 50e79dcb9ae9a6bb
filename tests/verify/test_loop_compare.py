"""What a loop-style program begins with, what its host does between the steps, and what its steps give back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.traces import recorded, trace
from towermigrate.verify.comparison import Difference
from towermigrate.verify.loop_compare import loop_differences

W = "variable/w"
Arrays = Mapping[str, Mapping[str, Any]]


def _compared(
    folder: Path,
    first: Arrays,
    made: Arrays,
    second: Arrays | None = None,
    *,
    seen: Mapping[str, int] | None = None,
    lockstep: bool = True,
    growing: bool = False,
) -> list[Difference]:
    if second is None:
        second = {name: values for name, values in first.items() if not name.startswith("run_")}
    original = recorded(trace(folder / "first", first), trace(folder / "second", second))
    actual = trace(folder / "made", made, first_seen=seen or {W: 0})
    return loop_differences(original, actual, 1e-6, lockstep=lockstep, growing=growing)


def _runs(*values: float) -> dict[str, dict[str, Any]]:
    """The state of one variable after each run."""
    return {f"run_{index:05d}": {"state/" + W: value} for index, value in enumerate(values)}


def test_another_initial_value_is_found(tmp_path: Path) -> None:
    first = {"initial": {W: 1.0}, **_runs(2.0)}
    (found,) = _compared(tmp_path, first, {"initial": {W: 1.5}, **_runs(2.0)})
    assert (found.level, found.name, found.expected, found.actual) == ("initial", "w", 1.0, 1.5)
    assert found.key == "initial/" + W


def test_one_that_the_original_draws_anew_each_time_is_not(tmp_path: Path) -> None:
    first = {"initial": {W: 1.0}, **_runs(2.0)}
    made = {"initial": {W: 1.5}, **_runs(2.0)}
    assert not _compared(tmp_path, first, made, {"initial": {W: 3.0}})


def test_a_variable_that_is_used_later_is_held_to_what_it_is_then(tmp_path: Path) -> None:
    first = {"initial": {W: 1.0}, **_runs(1.0, 1.0), "before_00001": {W: 7.0}}
    made = {"initial": {W: 7.0}, **_runs(1.0, 1.0)}
    assert not [
        each
        for each in _compared(tmp_path / "same", first, made, seen={W: 1})
        if each.level == "initial"
    ]
    made["initial"] = {W: 1.0}
    found = _compared(tmp_path / "other", first, made, seen={W: 1})
    assert [each.expected for each in found if each.level == "initial"] == [7.0]


@pytest.mark.parametrize(
    ("theirs", "ours", "values"),
    [
        ({}, {W: 0.5}, (2.0, 0.5)),
        ({W: 0.5}, {}, (0.5, 2.0)),
        ({W: 0.5}, {W: 0.25}, (0.5, 0.25)),
        ({W: 0.5}, {W: 0.5}, None),
        ({}, {}, None),
    ],
)
def test_what_the_host_does_between_two_runs(
    theirs: dict[str, float],
    ours: dict[str, float],
    values: tuple[float, float] | None,
    tmp_path: Path,
) -> None:
    initial = {"initial": {W: 1.0}}
    first = {**initial, **_runs(2.0, 3.0), **({"before_00001": theirs} if theirs else {})}
    made = {**initial, **_runs(2.0, 3.0), **({"before_00001": ours} if ours else {})}
    found = _compared(tmp_path / "lockstep", first, made)
    assert [(each.expected, each.actual) for each in found] == ([] if values is None else [values])
    assert all((each.level, each.step) == ("update", 1) for each in found)
    # Free-running, the step before may be why.
    assert not _compared(tmp_path / "free", first, made, lockstep=False)


def test_what_the_host_does_by_chance_is_not_compared(tmp_path: Path) -> None:
    initial = {"initial": {W: 1.0}}
    first = {**initial, **_runs(2.0, 3.0), "before_00001": {W: 0.5}}
    made = {**initial, **_runs(2.0, 3.0), "before_00001": {W: 0.25}}
    assert not _compared(tmp_path, first, made, {**initial, "before_00001": {W: 0.75}})


def _given(**values: Any) -> dict[str, dict[str, Any]]:
    return {"initial": {}, "run_00000": {key.replace("_", "/"): v for key, v in values.items()}}


@pytest.mark.parametrize(
    ("theirs", "ours", "differ"),
    [
        ({"output_0": 1.0}, {"output_0": 1.0 + 1e-8}, False),
        ({"output_0": 1.0}, {"output_0": 1.5}, True),
        ({"output_0": 1.0, "output_1": 2.0}, {"output_0": 2.0, "output_1": 1.0}, False),
        ({"output_0": 1.0, "output_1": 2.0}, {"output_0": 1.0, "output_1": 1.0}, True),
        ({"output_0": 1.0, "output_1": 2.0}, {"output_0": 1.0}, False),
        ({"output_0": [1.0, 2.0]}, {"output_0": [2.0, 1.0]}, True),
        # The loss of a tower differs itself, and is told so; that of another tower is given back.
        ({"output_0": 1.0, "loss_0_1": 1.0}, {"output_0": 1.1, "loss_0_1": 1.1}, False),
        ({"output_0": 1.0, "loss_0_1": 1.0}, {"output_0": 1.1, "loss_0_0": 1.1}, True),
    ],
)
def test_what_a_step_gives_back(
    theirs: dict[str, Any], ours: dict[str, Any], differ: bool, tmp_path: Path
) -> None:
    found = _compared(tmp_path / "a", _given(**theirs), _given(**ours))
    assert bool(found) == differ
    assert all(each.level == "output" for each in found)
    assert not _compared(tmp_path / "b", _given(**theirs), _given(**ours), growing=True)


def test_what_the_original_gives_back_by_chance_is_not_compared(tmp_path: Path) -> None:
    first, made = _given(output_0=1.0), _given(output_0=2.0)
    assert not _compared(tmp_path, first, made, _given(output_0=np.float32(3.0)))
