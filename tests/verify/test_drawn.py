"""Inputs from queues and iterators: their kind is compared where their order is chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.traces import recorded, trace
from towermigrate.verify.drawn import drawn_differences

RUNS = 8


def _draw(
    seed: int, shared: bool = False, change: Callable[[Any], Any] = lambda rows: rows
) -> dict[tuple[int, int], Any]:
    """The rows of two towers in each run."""
    rng = np.random.RandomState(seed)
    rows: dict[tuple[int, int], Any] = {}
    for run in range(RUNS):
        for tower in range(2):
            fresh = rng.normal(size=(6, 3)).astype(np.float32)
            rows[run, tower] = rows[run, 0] if shared and tower else change(fresh)
    return rows


def _compared(
    folder: Path, theirs: dict[tuple[int, int], Any], ours: dict[tuple[int, int], Any], **meta: Any
) -> list[tuple[Any, ...]]:
    def runs(rows: dict[tuple[int, int], Any], prefix: str) -> dict[str, dict[str, Any]]:
        return {
            f"run_{run:05d}": {f"{prefix}input/{tower}/x": rows[run, tower] for tower in range(2)}
            for run in range(RUNS)
        }

    first = trace(folder / "first", runs(theirs, ""))
    second = trace(folder / "second", {}, **meta)
    made = trace(folder / "made", runs(ours, "own/"))
    return [
        (each.name, each.replica, each.expected, each.actual)
        for each in drawn_differences(recorded(first, second), made)
    ]


@pytest.mark.parametrize("shared", [False, True])
def test_other_rows_of_the_same_kind_are_alike(shared: bool, tmp_path: Path) -> None:
    assert not _compared(tmp_path, _draw(1, shared), _draw(2, shared))


@pytest.mark.parametrize("shared", [False, True])
def test_towers_that_share_their_rows(shared: bool, tmp_path: Path) -> None:
    said = ("the same rows as tower 0", "other rows than tower 0")
    expected, actual = said if shared else said[::-1]
    found = _compared(tmp_path, _draw(1, shared), _draw(2, not shared))
    assert found == [("input x", 1, expected, actual)]


@pytest.mark.parametrize(
    ("change", "expected", "actual"),
    [
        (lambda rows: rows[:5], "float32[6, 3]", "float32[5, 3]"),
        (lambda rows: rows.astype(np.float64), "float32[6, 3]", "float64[6, 3]"),
    ],
)
def test_shapes_and_types(
    change: Callable[[Any], Any], expected: str, actual: str, tmp_path: Path
) -> None:
    assert _compared(tmp_path, _draw(1), _draw(2, change=change)) == [
        ("input x", 0, expected, actual)
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows / 255,
        lambda rows: rows * 10,
        lambda rows: rows + 20,
        lambda rows: rows * 0.01,
    ],
)
def test_another_range(change: Callable[[Any], Any], tmp_path: Path) -> None:
    ((name, tower, expected, actual),) = _compared(tmp_path, _draw(1), _draw(2, change=change))
    assert (name, tower) == ("input x", None)
    assert "numbers from -1." in expected and "numbers from" in actual


def test_twenty_seeds_of_the_same_data_are_alike(tmp_path: Path) -> None:
    for seed in range(20):
        assert not _compared(tmp_path / str(seed), _draw(99), _draw(seed))


def test_a_few_labels_that_are_alike_by_chance_say_nothing(tmp_path: Path) -> None:
    theirs = {(run, tower): np.int32([run % 2, tower]) for run in range(RUNS) for tower in range(2)}
    ours = {(run, tower): np.int32([run % 2, 1]) for run in range(RUNS) for tower in range(2)}
    assert not _compared(tmp_path, theirs, ours)


def test_labels_that_are_one_value_throughout(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    theirs = {
        (run, t): rng.randint(4, size=3).astype(np.int32) for run in range(RUNS) for t in range(2)
    }
    ours = {key: 0 * labels for key, labels in theirs.items()}
    for rows in theirs.values():
        rows[0] = 1
    found = _compared(tmp_path / "a", theirs, ours)
    assert found == [("input x", None, "4 values", "0 throughout")]
    few = {(run, t): np.int32([int(run == 3 and t == 0)]) for run in range(RUNS) for t in range(2)}
    zeros = {key: 0 * labels for key, labels in few.items()}
    assert not _compared(tmp_path / "b", few, zeros)


def test_what_the_original_fixes_is_compared_by_its_rows_elsewhere(tmp_path: Path) -> None:
    agreed = {f"input/{tower}/x": True for tower in range(2)}
    assert not _compared(tmp_path, _draw(1), _draw(2, True), inputs_agreed=agreed)
