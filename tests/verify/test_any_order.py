"""Towers that each take rows of one iterator: chance says which gets which, and all of them together are compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.verify.traces import recorded, trace
from towermigrate.verify.inputs import inputs_not_compared, own_inputs
from towermigrate.verify.trace import Array

RUNS = 6
SWAPPED = (
    1,
    4,
)  # the runs in which the original's second process gave the towers each other's rows


def rows(run: int, tower: int) -> Array:
    return np.arange(12.0).reshape(4, 3) + 10 * run + 100 * tower


def found(
    folder: Path, own: Mapping[tuple[int, int], Array], again: Mapping[tuple[int, int], Array]
) -> tuple[list[str], list[str]]:
    """The differences, and what is not compared, where the rewritten program had `own` and the original `again`."""
    first = trace(
        folder / "first",
        {f"run_{run:05d}": {f"input/{t}/x": rows(run, t) for t in (0, 1)} for run in range(RUNS)},
    )
    second = trace(
        folder / "second",
        {
            f"own_{run:05d}": {
                f"own/input/{tower}/x": again[run, tower]
                for tower in (0, 1)
                if (run, tower) in again
            }
            for run in range(RUNS)
        },
        style="loop",
        inputs_agreed={f"input/{t}/x": all(place[1] != t for place in again) for t in (0, 1)},
    )
    made = trace(
        folder / "made",
        {
            f"run_{run:05d}": {
                f"own/input/{tower}/x": own.get((run, tower), rows(run, tower)) for tower in (0, 1)
            }
            for run in range(RUNS)
        },
    )
    both = recorded(first, second)
    differences = [f"{one.name} at {one.step}: {one.actual}" for one in own_inputs(both, made)]
    return differences, inputs_not_compared(both)


AGAIN = {(run, tower): rows(run, 1 - tower) for run in SWAPPED for tower in (0, 1)}


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({}, None),
        ({(2, 0): rows(2, 1), (2, 1): rows(2, 0)}, None),
        ({(2, 1): rows(3, 1)}, "input x at 2: other rows"),
        ({(2, 1): rows(2, 0)}, "input x at 2: other rows"),
        ({(5, 0): rows(5, 0) * 0.9}, "input x at 5: other rows"),
    ],
)
def test_all_rows_of_a_run_are_the_originals(
    own: Mapping[tuple[int, int], Array], said: str | None, tmp_path: Path
) -> None:
    differences, left = found(tmp_path, own, AGAIN)
    assert differences[:1] == ([said] if said else [])
    assert left == [
        "input x: which tower gets which rows is chance; the recorded ones were given to both programs"
    ]


def test_rows_that_are_chance_are_not_compared(tmp_path: Path) -> None:
    again = {**AGAIN, (3, 1): rows(7, 1)}
    differences, left = found(tmp_path, {(2, 1): rows(3, 1)}, again)
    assert differences == []
    assert "two runs of the original have different rows" in left[0]
