"""The ladder: a verdict for every level, how much was compared, and which replica a difference is from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.recordings import STAGES, TOWERS, recording, relu
from towermigrate.verify.amounts import amount_compared
from towermigrate.verify.compare import compare
from towermigrate.verify.comparison import LEVELS, Difference
from towermigrate.verify.inputs import _drawn
from towermigrate.verify.levels import (
    LevelReport,
    ladder,
    levels_not_compared,
    worst_verdicts,
)
from towermigrate.verify.options import ALL_STEPS
from towermigrate.verify.probe.recording import first_that_differs
from towermigrate.verify.replicas import with_replica
from towermigrate.verify.trace import Trace, read_trace


def _levels(
    original: Trace,
    made: Trace,
    doings: tuple[Difference, ...] = (),
    open_doings: tuple[str, ...] = (),
    synthetic: bool = False,
) -> dict[str, LevelReport]:
    result = compare(original, made, STAGES, 1e-6, towers=TOWERS)
    found = ladder(original, made, result, result, result, doings, open_doings, synthetic=synthetic)
    assert tuple(each.level for each in found) == LEVELS
    return {each.level: each for each in found}


def _with_meta(trace: Trace, **meta: Any) -> Trace:
    path = trace.folder / "meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **meta}))
    return read_trace(trace.folder)


def test_every_level_says_how_much_of_it_was_compared(tmp_path: Path) -> None:
    original, made = relu(tmp_path / "1"), relu(tmp_path / "2")
    found = _levels(
        original, _with_meta(made, inputs_agreed={"input/0/x": True, "input/1/x": True})
    )
    counts = {
        level: (each.verdict, each.arrays, each.steps, each.largest)
        for level, each in found.items()
    }
    assert counts == {
        "structure": ("equal", 4, 5, None),
        "initial": ("equal", 4, 1, 0.0),
        "input": ("equal", 2, 5, None),
        "forward": ("equal", 2, 5, 0.0),
        "gradient": ("equal", 2, 5, 0.0),
        "update": ("equal", 4, 5, 0.0),
        "trajectory": ("equal", 8, 5, 0.0),
        "output": ("equal", 0, 0, None),
    }
    assert found["output"].why == "it prints, writes and returns nothing"


def test_a_difference_is_on_its_level_and_carries_into_the_trajectory(tmp_path: Path) -> None:
    made = relu(tmp_path / "2", free=True, change=lambda s, n, g: g * 1.5 if s == 2 else g)
    found = _levels(relu(tmp_path / "1"), made)
    assert {level for level, each in found.items() if each.verdict == "different"} == {
        "forward", "gradient", "update", "trajectory",
    }  # fmt: skip
    assert (found["gradient"].largest or 0) >= 0.5


@pytest.mark.parametrize(
    ("missing", "level", "said"),
    [
        ("input/", "input", []),  # the original has none: nothing to compare, and that is said
        ("loss/", "forward", []),  # `compare` lists it by stage
        ("gradient/", "gradient", []),
        ("state/", "update", []),
    ],
)
def test_a_level_without_recordings_is_not_compared(
    tmp_path: Path, missing: str, level: str, said: list[str]
) -> None:
    def bare(folder: Path) -> Trace:
        whole = relu(folder / "whole")
        runs = [
            {k: v for k, v in whole.arrays(run).items() if not k.startswith(missing)}
            for run in whole.runs
        ]
        return recording(folder / "bare", runs, whole.initial())

    original = bare(tmp_path / "1")
    made = _with_meta(bare(tmp_path / "2"), inputs_agreed={"input/0/x": True})
    found = _levels(original, made)
    if missing == "input/":
        assert (found[level].verdict, found[level].why) == ("equal", "no tower takes an input")
    else:
        assert found[level].verdict == "not compared"
        result = compare(original, made, STAGES, 1e-6, towers=TOWERS)
        assert any(f"level {level}" in item for item in result.not_compared)
    assert levels_not_compared(found.values(), synthetic=False) == said


def test_inputs_that_nobody_looked_at_and_open_output_are_not_compared(tmp_path: Path) -> None:
    original = _with_meta(relu(tmp_path / "1"), printed=["a 1"])
    found = _levels(original, relu(tmp_path / "2"), open_doings=("what the program prints: …",))
    assert levels_not_compared(found.values(), synthetic=False) == [
        "level input: nothing of it was recorded",
        "level output: two runs of the original print or write other things",
    ]
    found = _levels(original, relu(tmp_path / "3"), synthetic=True)
    assert found["input"].verdict == "not compared"
    assert levels_not_compared(found.values(), synthetic=True) == []


def test_of_several_runs_the_worst_verdict_counts() -> None:
    runs = [
        [LevelReport("input", "equal"), LevelReport("update", "different")],
        [LevelReport("input", "not compared"), LevelReport("update", "equal")],
    ]
    worst = worst_verdicts(runs)
    assert (worst["input"], worst["update"], worst["output"]) == (
        "not compared", "different", "not compared",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made", "ended", "asked", "said"),
    [
        ({"0": 12}, "steps", 4, "4 of 12 updates of train; the program was stopped there"),
        (
            {"0": 4},
            "program",
            9,
            "4 of 4 updates of train; the program ends by itself before the 9",
        ),
        ({"0": 4}, "program", 4, "4 of 4 updates of train; the program ends there"),
        ({"0": 4}, "program", ALL_STEPS, "4 of 4 updates of train; the program ends there"),
    ],
    ids=["stopped", "ends early", "ends", "all"],
)
def test_how_much_was_compared(
    tmp_path: Path, made: dict[str, int], ended: str, asked: int, said: str
) -> None:
    original = _with_meta(relu(tmp_path / "1", steps=4), updates_made=made, ended=ended)
    result = compare(original, relu(tmp_path / "2", steps=4), STAGES, 1e-6)
    assert said in amount_compared(original, result, STAGES, asked).said()


@pytest.mark.parametrize(("wrong", "replica"), [((1,), 1), ((0,), 0), ((0, 1), None), ((), None)])
def test_the_replica_whose_own_gradient_differs_is_named(
    tmp_path: Path, wrong: tuple[int, ...], replica: int | None
) -> None:
    def made(name: str, wrong: tuple[int, ...]) -> Trace:
        own = {t: np.float32([1, 2]) * (t + 1) * (1.5 if t in wrong else 1) for t in range(2)}
        arrays = {f"tower_gradient/0/{t}/w": value for t, value in own.items()}
        return recording(tmp_path / name, [{**arrays, "gradient/0/w": (own[0] + own[1]) / 2}])

    first = Difference(0, 0, "gradient", "w", None, 1.0, 2.0, 0.5, "gradient/0/w", 0)
    found = with_replica(first, made("1", ()), made("2", wrong), 1e-6)
    assert found.replica == replica


def test_copies_that_differ_are_named_with_both_values() -> None:
    one, other = np.float32([1, 2, 3]), np.float32([1, 2.5, 3.25])
    assert first_that_differs([one, one, other]) == [2, 2.0, 2.5]


def test_inputs_in_an_open_order_are_held_by_rank_kind_and_rows() -> None:
    rows = [np.arange(8.0).reshape(4, 2) + tower for tower in range(2)]
    wanted = {f"input/{tower}/x": value for tower, value in enumerate(rows)}

    def drawn(first: Any, second: Any, synthetic: bool = False) -> tuple[str, str] | None:
        return _drawn(
            "input/1/x", wanted, {"own/input/0/x": first, "own/input/1/x": second}, synthetic
        )

    assert drawn(rows[0] + 5, rows[1] + 5) is None
    assert drawn(rows[0], rows[0]) == ("other rows than tower 0", "the rows of tower 0")
    assert drawn(rows[0], rows[0], synthetic=True) is None
    assert drawn(rows[0], rows[1].ravel()) == ("rank 2", "rank 1")
    assert drawn(rows[0], rows[1].astype(int)) == ("kind of number float", "kind of number integer")
