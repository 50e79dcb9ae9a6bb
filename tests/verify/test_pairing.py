"""Rows in an order of chance: a label stays with its row, and what all rows have in common stays so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.traces import recorded, trace
from towermigrate.verify.drawn import drawn_differences
from towermigrate.verify.pairing import pairing

RUNS, BATCH, EXAMPLES = 12, 8, 40
Change = Callable[[Any, Any], tuple[Any, Any]]


def _examples() -> tuple[Any, Any]:
    rng = np.random.RandomState(3)
    rows = rng.normal(size=(EXAMPLES, 4, 4, 3))
    rows -= rows.mean((1, 2, 3), keepdims=True)
    rows /= rows.std((1, 2, 3), keepdims=True)
    return rows.astype(np.float32), rng.randint(5, size=EXAMPLES).astype(np.int32)


def _draws(
    seed: int, prefix: str, change: Change = lambda rows, labels: (rows, labels), noise: float = 0
) -> dict[str, dict[str, Any]]:
    rng = np.random.RandomState(seed)
    rows, labels = _examples()
    runs: dict[str, dict[str, Any]] = {}
    for run in range(RUNS):
        here = runs.setdefault(f"run_{run:05d}", {})
        for tower in range(2):
            picked = rng.permutation(EXAMPLES)[:BATCH]
            x, y = change(rows[picked] + noise * rng.normal(size=(BATCH, 4, 4, 3)), labels[picked])
            here[f"{prefix}input/{tower}/x"], here[f"{prefix}input/{tower}/y"] = x, y
    return runs


def _compared(
    folder: Path, change: Change = lambda rows, labels: (rows, labels), noise: float = 0
) -> tuple[list[str], list[str]]:
    first = trace(folder / "first", _draws(1, "", noise=noise))
    own = {f"own_{name[4:]}": arrays for name, arrays in _draws(2, "own/", noise=noise).items()}
    second = trace(folder / "second", own)
    made = trace(folder / "made", _draws(3, "own/", change, noise))
    found, left = pairing(recorded(first, second), made)
    return [f"{each.name}: {each.expected}, not {each.actual}" for each in found], left


def test_the_same_pairs_in_another_order_are_alike(tmp_path: Path) -> None:
    assert _compared(tmp_path) == ([], [])


def test_rows_that_are_off_by_a_rounding_are_the_same(tmp_path: Path) -> None:
    assert _compared(tmp_path, lambda x, y: (x * np.float32(1 + 3e-7), y)) == ([], [])


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y: (x, np.roll(y, 1)),
        lambda x, y: (x, y[::-1]),
        lambda x, y: (x, (y + 1) % 5),
        lambda x, y: (x, 0 * y),
    ],
)
def test_labels_that_go_with_other_rows(change: Change, tmp_path: Path) -> None:
    (found,), left = _compared(tmp_path, change)
    assert found.startswith("input y: the one of its row of x, not another in ") and not left


@pytest.mark.parametrize(
    ("change", "figure"),
    [(lambda x, y: (1.5 * x, y), "standard deviation"), (lambda x, y: (x + 1, y), "mean")],
)
def test_what_every_row_has_in_common(change: Change, figure: str, tmp_path: Path) -> None:
    found, _ = _compared(tmp_path, change)
    assert any(each.startswith(f"input x: {figure}") for each in found)


def test_rows_that_never_come_again_are_named(tmp_path: Path) -> None:
    found, left = _compared(tmp_path, lambda x, y: (x, np.roll(y, 1)), noise=0.1)
    assert not found
    assert left == [
        "input x: which row of it goes with which row of input y: no row came again in which that shows"
    ]


@pytest.mark.parametrize(
    "change", [lambda x, y: (x[..., ::-1], y), lambda x, y: (x[:, ::-1], y), lambda x, y: (-x, y)]
)
def test_rows_that_the_original_has_none_of(change: Change, tmp_path: Path) -> None:
    found, left = _compared(tmp_path, change)
    assert found == [
        "input x: rows of the data that both its runs go through, not rows that are none of these"
    ]
    assert left == [
        "input x: which row of it goes with which row of input y: no row came again in which that shows"
    ]


def test_another_part_of_data_that_the_original_has_not_seen_whole_is_no_fault(
    tmp_path: Path,
) -> None:
    rows, labels = _examples()

    def part(name: str, prefix: str, at: int) -> dict[str, dict[str, Any]]:
        """Both towers get the same rows, so that each comes twice."""
        arrays = {f"{prefix}input/{tower}/x": rows[at : at + 20] for tower in range(2)}
        arrays.update({f"{prefix}input/{tower}/y": labels[at : at + 20] for tower in range(2)})
        return {f"{name}_00000": arrays}

    first = trace(tmp_path / "first", part("run", "", 0))
    second = trace(tmp_path / "second", part("own", "own/", 0))
    made = trace(tmp_path / "made", part("run", "own/", 20))
    assert not pairing(recorded(first, second), made)[0]


def _counted(folder: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    runs = {f"run_{k:05d}": {"loss/0/0": 0.0} for k in range(3)}
    sides = (theirs, theirs, ours)
    traces = [trace(folder / str(k), runs, **meta) for k, meta in enumerate(sides)]
    found = drawn_differences(recorded(traces[0], traces[1]), traces[2])
    return [f"{each.name} {each.run}: {each.expected}, not {each.actual}" for each in found]


def test_the_rows_of_runs_that_train_nothing(tmp_path: Path) -> None:
    new, old = {"looks": [[1, False], [2, False]]}, {"looks": [[1, False], [2, True]]}
    assert not _counted(tmp_path / "a", new, new) and not _counted(tmp_path / "b", old, old)
    (found,) = _counted(tmp_path / "c", new, old)
    assert found.endswith(
        "other rows than the training run before it, not the rows of that training run"
    )
    assert len(_counted(tmp_path / "d", old, new)) == 1


def test_the_mark_that_towers_of_one_queue_got_other_rows_holds_no_rows(tmp_path: Path) -> None:
    mark = {"own/input/QueueDequeueManyV2 of queue/0": np.zeros(0)}
    rows = np.arange(8.0).reshape(2, 4)
    keys = [f"input/QueueDequeueManyV2.{tower}/0" for tower in range(2)]
    runs = {"run_00000": dict.fromkeys(keys, rows)}
    own = {"run_00000": {**mark, **{f"own/{key}": rows + 9 for key in keys}}}
    group = "input/QueueDequeueManyV2 of queue/0"
    meta: dict[str, Any] = {"shared_inputs": [group], "inputs_agreed": {group: False}}
    traces = [
        trace(tmp_path / name, arrays, **meta)
        for name, arrays in (("first", runs), ("second", own), ("made", own))
    ]
    assert pairing(recorded(traces[0], traces[1]), traces[2]) == ([], [])
