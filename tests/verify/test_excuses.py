"""What a rounding explains is excused, one array at one step; what is uniform, lasts or drifts is not."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.recordings import STAGES, TOWERS, Change, recording, relu
from towermigrate.verify.ask_original import excuse_steps
from towermigrate.verify.compare import compare
from towermigrate.verify.comparison import Comparison, Difference
from towermigrate.verify.excuses import (
    Judgement,
    as_far_as_moved,
    cannot_be_rounding,
    free_running,
    may_be_moved,
    single_steps,
)
from towermigrate.verify.rounding import trials
from towermigrate.verify.trace import Trace

TOLERANCE = 1e-6
# A unit within a rounding of its threshold at every step: in any of them the original itself may jump.
NEAR = {0: 1, 1: 4, 2: 2, 3: 6, 4: 0}


def _judged(
    folder: Path,
    change: Change | None = None,
    decides_otherwise: Collection[int] = (),
    near: dict[int, int] | None = None,
    ask: bool = False,
) -> tuple[Comparison, Judgement]:
    """Compare in lock-step and judge; `ask` asks the original though the shape of the difference tells already."""
    near = NEAR if near is None else near
    original = relu(folder / "original", near=near)
    made = relu(folder / "made", near=near, change=change, decides_otherwise=decides_otherwise)
    result = compare(original, made, STAGES, TOLERANCE, towers=TOWERS, lockstep=True)
    refused = cannot_be_rounding(original, made, result, TOLERANCE)
    if refused and not ask:
        return result, Judgement(refused=refused)
    pair = next(trials(TOLERANCE, adds_up=False))
    tried = [relu(folder / trial.name, near=near, moved=trial) for trial in pair]
    return result, single_steps(original, made, result, TOLERANCE, tried, pair[0].size)


def test_the_original_jumps_in_one_of_two_trials_where_a_unit_is_near_its_threshold(
    tmp_path: Path,
) -> None:
    original = relu(tmp_path / "original", near=NEAR)
    pair = next(trials(TOLERANCE, adds_up=False))
    for run in original.runs:
        moved = [relu(tmp_path / f"{run.index}{t.name}", near=NEAR, moved=t) for t in pair]
        off = [
            np.abs(each.arrays(run)["gradient/0/w1"] - original.arrays(run)["gradient/0/w1"])
            for each in moved
        ]
        jumped = [each.max() > 1e-3 for each in off]
        assert jumped in ([True, False], [False, True])
        (unit,) = np.flatnonzero(off[jumped.index(True)].max(0) > 1e-3)
        assert unit == NEAR[run.index]


@pytest.mark.parametrize("steps", [(1,), (0, 3)], ids=["one step", "two steps of five"])
def test_a_decision_that_rounding_makes_is_excused(tmp_path: Path, steps: tuple[int, ...]) -> None:
    result, judgement = _judged(tmp_path, decides_otherwise=steps)

    assert {(each.name, each.run) for each in result.differences} == {
        (name, step) for step in steps for name in ("w1", "Momentum/w1")
    }
    assert judgement.refused == {}
    assert len(judgement.excuses) == len(result.differences) == 3 * len(steps)
    for excuse in judgement.excuses:
        evidence = excuse.evidence
        # One unit's column of six weights, where the original jumps by the same.
        assert (evidence["elements_beyond"], evidence["elements"]) == (6, 48)
        assert evidence["explained"] == 1.0
        assert evidence["original_moves"] == pytest.approx(evidence["off_by"], rel=1e-2)
        assert evidence["trials"] == 2 and evidence["weights_moved_by"] == TOLERANCE


def _uniform(part: float, only: str = "", at: Collection[int] = range(9)) -> Change:
    def change(step: int, name: str, gradient: Any) -> Any:
        scaled = step in at and only in name
        return gradient * np.float32(1 + part) if scaled else gradient

    return change


def _drift(step: int, name: str, gradient: Any) -> Any:
    if name != "w1" or step not in (1, 3):
        return gradient
    way = np.sign(np.random.RandomState(3).randn(*gradient.shape))
    return gradient + np.float32(1e-3 * step) * way


def _noise(at: Collection[int]) -> Change:
    def change(step: int, name: str, gradient: Any) -> Any:
        if step not in at:
            return gradient
        return gradient + 0.01 * np.abs(gradient).max() * np.random.RandomState(step).randn(
            *gradient.shape
        )

    return change


def _elsewhere(step: int, name: str, gradient: Any) -> Any:
    """A jump of another unit than the one that is near its threshold."""
    if step != 1 or name != "w1":
        return gradient
    jumped = np.array(gradient)
    jumped[:, 7] += np.float32(0.003) * np.random.RandomState(5).randn(6).astype(np.float32)
    return jumped


NOT_EXCUSED = {
    "2 % too much in every step": (_uniform(0.02), (), "most steps must be within"),
    "2 % too much in every step, and roundings decide in two": (
        _uniform(0.02), (1, 3), "most steps must be within",
    ),
    "2 % too much in two steps of five": (_uniform(0.02, at=(1, 3)), (), "1.02 times the original's"),
    "2 % too much in one step": (_uniform(0.02, at=(1,)), (), "1.02 times the original's"),
    "0.1 % too much of one variable": (_uniform(0.001, "w1"), (), "most steps must be within"),
    "0.1 % too much of one variable at one step": (
        _uniform(0.001, "w1", at=(2,)), (), "1.001 times the original's",
    ),
    "a drift": (_drift, (), "a drift"),
    "a decision at every step": (None, range(5), "most steps must be within"),
    "a decision at three steps of five": (None, (0, 2, 4), "most steps must be within"),
    "noise in every step": (_noise(range(9)), (), "most steps must be within"),
    "noise in one step": (_noise((2,)), (), "where the original moves"),
    "a jump of another unit": (_elsewhere, (), "lies where the original moves at this step"),
    "half of the gradient": (_uniform(-0.5, at=(1,)), (), "a jump is less than 0.25"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "otherwise", "why"), NOT_EXCUSED.values(), ids=NOT_EXCUSED)
def test_what_no_rounding_does_is_not_excused(
    tmp_path: Path, change: Change | None, otherwise: Collection[int], why: str
) -> None:
    result, judgement = _judged(tmp_path, change, otherwise)

    assert judgement.refused
    assert any(why in reason for reason in judgement.refused.values()), judgement.refused
    result.excuse(judgement.excuses, judgement.refused)
    first = result.first()
    assert first is not None and first.level == "gradient"


def test_nothing_is_excused_where_the_original_is_far_from_every_threshold(tmp_path: Path) -> None:
    _, judgement = _judged(tmp_path, _elsewhere, near={})
    assert judgement.excuses == []
    assert "at this step the original moves by" in next(iter(judgement.refused.values()))


def test_a_variable_whose_gradient_is_equal_is_not_excused(tmp_path: Path) -> None:
    original = relu(tmp_path / "original", near=NEAR)
    made = relu(tmp_path / "made", near=NEAR)
    arrays = made.arrays(made.runs[1])
    arrays["state/variable/w1"] = arrays["state/variable/w1"] + np.float32(1e-4)
    np.savez(made.folder / "run_00001.npz", **arrays)
    result = compare(original, made, STAGES, TOLERANCE, towers=TOWERS, lockstep=True)
    refused = cannot_be_rounding(original, made, result, TOLERANCE)
    assert refused == {("state/variable/w1", 1): "its gradient does not jump in this step"}


def _free(folder: Path, **how: Any) -> tuple[Trace, Trace, Comparison]:
    original = relu(folder / "original", near=NEAR)
    made = relu(folder / "made", near=NEAR, free=True, **how)
    result = compare(original, made, STAGES, TOLERANCE, towers=TOWERS, growing=True)
    return original, made, result


def test_what_a_jump_leaves_behind_is_excused_by_the_originals_own_course(tmp_path: Path) -> None:
    original, made, result = _free(tmp_path, decides_otherwise=(1,))
    assert {each.run for each in result.differences} == {1, 2, 3, 4}
    tried: list[Any] = []
    # How far two moves take it depends on the processor's kernels: where they were not enough, verify asks two more.
    for pair in itertools.islice(trials(TOLERANCE, adds_up=True), 2):
        tried += [relu(tmp_path / t.name, near=NEAR, moved=t, free=True) for t in pair]
        judgement = free_running(original, made, result, tried, pair[0].size)
        if len(judgement.excuses) == len(result.differences):
            return
    raise AssertionError(judgement.refused)


def test_a_course_that_no_rounding_takes_is_not_excused(tmp_path: Path) -> None:
    original, made, result = _free(tmp_path, change=_uniform(0.02))
    pair = next(trials(TOLERANCE, adds_up=True))
    # Nothing is near its threshold here, so the original does not jump.
    tried = [relu(tmp_path / t.name, moved=t, free=True) for t in pair]
    still = relu(tmp_path / "still")
    judgement = free_running(still, made, result, tried, pair[0].size)
    assert len(judgement.excuses) < len(result.differences)
    result.excuse(judgement.excuses, judgement.refused)
    assert {each.run for each in result.differences} >= {0, 1}


_DRAW = np.random.RandomState(5)
_WEIGHTS = _DRAW.randn(40).astype(np.float32)
_NOISE = [_DRAW.randn(8).astype(np.float32) * np.float32(1e-4) for _ in range(12)]
_JITTER = _DRAW.randn(40).astype(np.float32)


def _steps(
    folder: Path,
    *,
    of_bias: int = 0,
    weights: Any = 0.0,
    update: Any = 0.0,
    rate: float = 0.1,
    returned: float = 0.0,
    only: int | None = None,
    losses: tuple[float, ...] = (1.0,),
) -> Trace:
    """Four steps of weights and of a bias whose gradient is nothing but what roundings leave."""
    runs = []
    for step in range(4):
        gradient = _WEIGHTS * np.float32(1 + step / 10)
        of_step = weights[step] if isinstance(weights, list) else weights
        changed = of_step if only in (None, step) else 0.0
        found = (gradient + gradient * changed).astype(np.float32)
        bias = _NOISE[4 * of_bias + step]
        runs.append(
            {
                **{f"loss/0/{tower}": np.float32(loss) for tower, loss in enumerate(losses)},
                # A mean of numbers that cancel.
                "output/0": np.float32(1e-3 + returned),
                "gradient/0/w": found,
                "gradient/0/b": bias,
                "state/variable/w": (-np.float32(rate) * found * (1 + update)).astype(np.float32),
                "state/variable/b": (-rate * np.sign(bias)).astype(np.float32),
            }
        )
    initial = {"variable/w": np.zeros(40, np.float32), "variable/b": np.zeros(8, np.float32)}
    return recording(folder, runs, initial)


@pytest.mark.parametrize(
    ("made", "worth_asking", "left"),
    [
        pytest.param({"of_bias": 1}, True, set(), id="a gradient that is noise, and whole steps of it"),
        pytest.param({"of_bias": 1, "weights": 0.02}, False, {"w"}, id="2 % too much"),
        pytest.param({"weights": 0.02, "only": 2}, True, {"w"}, id="2 % too much at one step"),
        pytest.param({"of_bias": 1, "weights": 1e-4 * _JITTER}, True, {"w"}, id="more than it moves"),
        pytest.param({"weights": 1.6e-5 * _JITTER}, True, {"w"}, id="five times as far as it moves"),
        pytest.param({"weights": 9e-6 * _JITTER}, True, set(), id="three times as far, as other kernels may"),
        pytest.param({"weights": 5e-6 * _JITTER[::-1]}, True, set(), id="elsewhere"),
        pytest.param({"of_bias": 1, "weights": 2e-6 * _JITTER}, True, set(), id="as far as it moves"),
        pytest.param({"update": 2e-6 * _JITTER}, True, {"w"}, id="an update whose gradient is right"),
    ],
)  # fmt: skip
def test_what_the_original_determines_no_better_is_excused(
    made: dict[str, Any], worth_asking: bool, left: set[str], tmp_path: Path
) -> None:
    original = _steps(tmp_path / "original")
    other = _steps(tmp_path / "made", **made)
    result = compare(original, other, STAGES, TOLERANCE, lockstep=True)
    assert result.differences
    assert may_be_moved(original, other, result, TOLERANCE) == worth_asking
    tried = [
        _steps(
            tmp_path / f"moved{way}",
            of_bias=1 + (way > 0),
            weights=way * 3e-6 * _JITTER,
            returned=way * 2e-8,
        )
        for way in (-1, 1)
    ]
    excuses = as_far_as_moved(original, other, result, TOLERANCE, tried, TOLERANCE)
    result.excuse(excuses, {})
    assert {each.name for each in result.differences} == left
    assert all(each.evidence["weights_moved_by"] == TOLERANCE for each in excuses)


@pytest.mark.parametrize(("losses", "excused"), [((0.5, 1.50001), True), ((0.5, 1.51), False)])
def test_losses_of_replicas_are_held_against_the_originals_as_they_are_joined(
    losses: tuple[float, ...], excused: bool, tmp_path: Path
) -> None:
    original, other = _steps(tmp_path / "original"), _steps(tmp_path / "made", losses=losses)
    original.meta["style"] = "session"
    result = compare(original, other, STAGES, TOLERANCE, lockstep=True)
    assert {each.key for each in result.differences} == {"loss/0/0"}
    tried = [_steps(tmp_path / f"moved{way}", losses=(1.0 + way * 4e-6,)) for way in (-1, 1)]
    excuses = as_far_as_moved(original, other, result, TOLERANCE, tried, TOLERANCE)
    assert bool(excuses) == excused


@pytest.mark.parametrize(("off", "excused"), [(3e-8, True), (3e-7, False)])
def test_a_returned_mean_of_numbers_that_cancel(off: float, excused: bool, tmp_path: Path) -> None:
    original, other = _steps(tmp_path / "original"), _steps(tmp_path / "made", returned=off)
    result = compare(original, other, STAGES, TOLERANCE, lockstep=True)
    result.differences = [
        Difference(2, 0, "output", "returned", None, 1e-3, 1e-3 + off, off / 1e-3, "output/0", 2)
    ]
    tried = [_steps(tmp_path / f"moved{way}", returned=way * 2e-8) for way in (-1, 1)]
    excuses = as_far_as_moved(original, other, result, TOLERANCE, tried, TOLERANCE)
    assert bool(excuses) == excused


def _first_different(
    original: Trace, made: Trace, tried: list[Trace], *, other_kernels: bool = False
) -> tuple[Comparison, int | None]:
    """The comparison, what roundings explain taken out, and the training run that it names first."""
    result = compare(original, made, STAGES, TOLERANCE, towers=TOWERS, lockstep=True)
    excuse_steps(original, made, result, TOLERANCE, lambda _: tried, other_kernels=other_kernels)
    first = result.first()
    return result, None if first is None else first.run


def _elsewhere_and_half(step: int, name: str, gradient: Any) -> Any:
    return _uniform(-0.5, at=(3,))(step, name, _elsewhere(step, name, gradient))


@pytest.mark.parametrize(
    ("change", "otherwise", "named"),
    [
        pytest.param(_uniform(-0.5, at=(3,)), (1,), 3, id="a jump before half of the gradient"),
        pytest.param(_uniform(-0.5, at=(1,)), (3,), 1, id="a jump after it"),
        pytest.param(_uniform(-0.5, at=(0,)), (), 0, id="the first step"),
        pytest.param(_elsewhere_and_half, (), 1, id="a jump of another unit before it"),
        pytest.param(_uniform(-0.5, at=(3,)), (0, 1, 2), 0, id="jumps too often before it"),
    ],
)
def test_a_jump_before_what_is_grossly_off_is_not_named(
    change: Change, otherwise: tuple[int, ...], named: int, tmp_path: Path
) -> None:
    original = relu(tmp_path / "original", near=NEAR)
    made = relu(tmp_path / "made", near=NEAR, change=change, decides_otherwise=otherwise)
    pair = next(trials(TOLERANCE, adds_up=False))
    tried = [relu(tmp_path / trial.name, near=NEAR, moved=trial) for trial in pair]
    result, first = _first_different(original, made, tried)
    assert first == named
    # Only what comes before it is excused, and what is after it is still said.
    assert all(each.run < named for each in result.excused)
    assert all(
        any(each.run == step for each in result.differences) for step in otherwise if step > named
    )


@pytest.mark.parametrize(
    ("made", "named"),
    [
        pytest.param({"weights": [2e-6, 2e-6, 2e-6, -0.5]}, 3, id="roundings before half of it"),
        pytest.param({"weights": [2e-6, 4e-5, 2e-6, -0.5]}, 1, id="more than it moves before half of it"),
        pytest.param({"weights": [2e-6, -0.5, 2e-6, 2e-6]}, 1, id="half of it, and roundings after it"),
        pytest.param({"weights": [-0.5, 2e-6, 2e-6, 2e-6]}, 0, id="half of it at once"),
        pytest.param({"weights": [2e-6, 0.02, 0.02, 0.02]}, 1, id="2 % too much from the second step on"),
        pytest.param({"of_bias": 1, "weights": [0.02] * 4}, 0, id="2 % too much at every step"),
    ],
)  # fmt: skip
def test_roundings_of_other_kernels_before_what_is_grossly_off_are_not_named(
    made: dict[str, Any], named: int, tmp_path: Path
) -> None:
    def by_step(folder: Path, parts: list[float], **other: Any) -> Trace:
        each = [part * (_JITTER if abs(part) < 1e-3 else 1) for part in parts]
        return _steps(folder, weights=each, **other)

    original = _steps(tmp_path / "original")
    found = by_step(tmp_path / "made", made["weights"], of_bias=made.get("of_bias", 0))
    tried = [by_step(tmp_path / f"moved{way}", [way * 3e-6] * 4, of_bias=1) for way in (-1, 1)]
    result, first = _first_different(original, found, tried, other_kernels=True)
    assert first == named
    assert {each.name for each in result.differences if each.run == named} >= {"w"}
