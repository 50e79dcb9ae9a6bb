"""Every cause is named first for the recording that has it, and for none that has another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.faulty import TOWERS, Program, record, with_own_inputs, with_runs
from tests.verify.recordings import STAGES, recording
from tests.verify.traces import recorded
from towermigrate.verify.causes.case import at_bounds
from towermigrate.verify.causes.runs import of_lost_summary, of_shown, of_start, stages_made
from towermigrate.verify.compare import compare
from towermigrate.verify.comparison import Comparison, Difference
from towermigrate.verify.diagnose import Diagnosis, diagnose
from towermigrate.verify.loop_compare import loop_differences
from towermigrate.verify.trace import Arrays, Trace

TOLERANCE = 1e-6


def _falling(step: int) -> float:
    return float(0.05 * 0.7**step)


def _ahead(step: int) -> float:
    return _falling(step + 1)


def _late(step: int) -> float:
    return _falling(max(step - 2, 0))


def _steeper(step: int) -> float:
    return float(0.05 * 0.6 ** (step + 1))


ADAM = Program(optimizer="adam")
RMS = Program(optimizer="rms")
LARGE = Program(optimizer="rms", epsilon=1.0)
NESTEROV = Program(optimizer="nesterov")
AVERAGED = Program(ema=0.9)
NORMED = Program(norm=0.9)
CLIPPED = Program(clip=0.3)
DECAYED = Program(decay=0.02)

# By cause, as words of it: the original, and what is another way in the rewritten program.
CASES: dict[str, tuple[Program, dict[str, Any]]] = {
    "division by the number of towers is missing": (Program(), {"average": "sum"}),
    "divided by the number of towers twice": (Program(), {"average": "divided"}),
    "the gradient of tower 3 is applied, not the average": (Program(), {"average": "last"}),
    "a replica is lost: the gradient of tower 3": (Program(), {"average": "lost"}),
    "the gradient of tower 1 is scaled, not those of the others": (Program(), {"average": "odd"}),
    "the loss or its gradients are scaled": (Program(), {"factor": 1.02}),
    "the gradient of b is scaled": (Program(), {"factor": 1.02, "only": "b"}),
    "single numbers of the gradients are clipped to other bounds": (Program(numbers=0.1), {"numbers": 0.11}),
    "single numbers of the gradients are not clipped": (Program(numbers=0.1), {"numbers": None}),
    "single numbers of the gradients are clipped that": (Program(), {"numbers": 0.1}),
    "sparse gradients are summed": (Program(), {"sparse_sum": True}),
    "the gradients are rounded": (Program(), {"rounded": True}),
    "zeros stand in place of gradients": (Program(), {"factor": 0.0, "only": "w"}),
    "zeros are applied to variables that the stage leaves out": (Program(), {"unused": "zeros"}),
    "None is left out": (Program(unused="zeros"), {"unused": ""}),
    "list has variables that the original's has not": (Program(), {"moves": "still"}),
    "list lacks variables of the original's": (Program(), {"without": "b"}),
    "the gradients are not clipped": (CLIPPED, {"clip": None}),
    "clipped by another norm": (CLIPPED, {"clip": 0.2}),
    "each gradient is clipped by its own norm": (CLIPPED, {"clip_how": "each"}),
    "clipped before the mean": (CLIPPED, {"clip_how": "before"}),
    "clipped after the mean": (replace(CLIPPED, clip_how="before"), {"clip_how": "after"}),
    "clipped, which the original's are not": (Program(), {"clip": 0.3}),
    "the loss is multiplied by the number of towers": (Program(), {"loss_factor": 4.0}),
    "the loss is divided by the number of towers": (Program(), {"loss_factor": 0.25}),
    "the loss is scaled": (Program(), {"loss_factor": 1.1}),
    "counts more than in the original": (DECAYED, {"decay": 0.08}),
    "counts less than in the original": (DECAYED, {"decay": 0.0}),
    "counts less than in the original on tower 1, 2, 3": (DECAYED, {"decay_of": (0,)}),
    "another precision: a part is computed in float16": (Program(), {"half": 1e-3}),
    "dropout or noise": (Program(), {"noise": 0.2}),
    "batch norm uses its moving averages": (NORMED, {"norm_used": True, "norm_still": True}),
    "every tower gets the same rows": (Program(), {"rows_of": (0, 0, 0, 0)}),
    "tower 1 computes the loss of tower 2": (Program(), {"rows_of": (0, 2, 2, 3)}),
    "the global step is not counted": (Program(), {"counted": 0}),
    "the global step counts 2": (Program(), {"counted": 2}),
    "the moving average does not follow": (AVERAGED, {"ema_still": True}),
    "takes its variable after the update": (AVERAGED, {"ema_after": True}),
    "takes its variable before the update": (replace(AVERAGED, ema_after=True), {"ema_after": False}),
    "the moving average has another decay": (AVERAGED, {"ema": 0.99}),
    "the moving average of the variables is gone": (AVERAGED, {"ema_without": "b"}),
    "moving averages stay that the original's step moves": (NORMED, {"norm_still": True}),
    "moving averages have another momentum": (NORMED, {"norm": 0.8}),
    "moving averages are another tower's": (NORMED, {"norm_of": 0}),
    "variables stay that the original's step moves": (Program(optimizer="descent"), {"frozen": "w"}),
    "another optimizer hyperparameter: learning rate": (Program(), {"rate": lambda step: 0.0505}),
    "another optimizer hyperparameter: momentum": (Program(), {"momentum": 0.85}),
    "another optimizer hyperparameter: beta1": (ADAM, {"momentum": 0.8}),
    "another optimizer hyperparameter: beta2": (ADAM, {"beta2": 0.95}),
    "another optimizer hyperparameter: epsilon": (ADAM, {"epsilon": 1e-2}),
    "another optimizer hyperparameter: decay": (RMS, {"beta2": 0.8}),
    "another optimizer formula": (Program(), {"optimizer": "nesterov"}),
    "learning-rate schedule: it is 1 step ahead": (Program(rate=_falling), {"rate": _ahead}),
    "learning-rate schedule: it is 2 steps late": (Program(rate=_falling), {"rate": _late}),
    "another learning-rate schedule": (Program(rate=_falling), {"rate": _steeper}),
}  # fmt: skip

# Recordings of one cause that other optimizers make; the words are those of a case above.
MORE: list[tuple[str, Program, dict[str, Any]]] = [
    ("another optimizer hyperparameter: learning rate", ADAM, {"rate": lambda step: 0.0505}),
    ("another optimizer hyperparameter: learning rate", RMS, {"rate": lambda step: 0.0505}),
    ("another optimizer hyperparameter: learning rate", Program(optimizer="adagrad"), {"rate": lambda step: 0.0505}),
    ("another optimizer hyperparameter: learning rate", Program(optimizer="descent"), {"rate": lambda step: 0.0505}),
    ("another optimizer hyperparameter: epsilon", RMS, {"epsilon": 1e-1}),
    # Slots that begin with one leave a rate and a large epsilon nearly open.
    ("another optimizer hyperparameter: epsilon", LARGE, {"epsilon": 0.9}),
    ("another optimizer hyperparameter: learning rate", LARGE, {"rate": lambda step: 0.055}),
    ("another optimizer hyperparameter: momentum", LARGE, {"momentum": 0.8}),
    # Where nothing is kept of a slot, what is left of it are roundings.
    ("another optimizer hyperparameter: learning rate", replace(ADAM, momentum=0.0), {"rate": lambda step: 0.0505, "jitter": 3e-7}),
    ("another optimizer hyperparameter: learning rate", replace(RMS, momentum=0.0), {"rate": lambda step: 0.0505, "jitter": 3e-7}),
    ("another optimizer hyperparameter: learning rate", Program(momentum=0.0), {"rate": lambda step: 0.0505, "jitter": 3e-7}),
    ("another optimizer hyperparameter: beta1", replace(ADAM, momentum=0.0), {"momentum": 0.5, "jitter": 3e-7}),
    # A small epsilon is told to few digits.
    ("another optimizer hyperparameter: learning rate", replace(ADAM, epsilon=1e-8, momentum=0.0), {"rate": lambda step: 0.0505, "jitter": 3e-7}),
    ("another learning-rate schedule", replace(ADAM, rate=_falling, epsilon=1e-8), {"rate": _steeper, "jitter": 3e-7}),
    ("another optimizer hyperparameter: epsilon", ADAM, {"epsilon": 1.3e-3, "jitter": 1e-7}),
    # At the first step Nesterov's momentum is a part of the rate.
    ("another optimizer hyperparameter: momentum", NESTEROV, {"momentum": 0.85}),
    ("another optimizer hyperparameter: learning rate", NESTEROV, {"rate": lambda step: 0.0505}),
    ("another learning-rate schedule", replace(NESTEROV, rate=_falling), {"rate": _steeper}),
    ("another learning-rate schedule", replace(LARGE, rate=_falling), {"rate": _steeper}),
    ("learning-rate schedule: it is 1 step ahead", replace(LARGE, rate=_falling), {"rate": _ahead}),
    ("another optimizer formula", LARGE, {"optimizer": "centered"}),
    ("another optimizer formula", RMS, {"optimizer": "centered"}),
    ("division by the number of towers is missing", ADAM, {"average": "sum"}),
    ("the gradients are not clipped", replace(ADAM, clip=0.3), {"clip": None}),
    ("division by the number of towers is missing", Program(clip=3.0), {"average": "sum"}),
    ("counts more than in the original", replace(ADAM, decay=0.02), {"decay": 0.08}),
    ("learning-rate schedule: it is 1 step ahead", Program(rate=_falling, optimizer="descent"), {"rate": _ahead}),
    # With dropout no tower has another's loss, but the gradients tell whose rows it has.
    ("every tower gets the same rows", Program(dropped=0.1), {"rows_of": (0, 0, 0, 0)}),
    ("a tower gets rows that the original gave to another", Program(dropped=0.1), {"rows_of": (1, 0, 3, 2)}),
    ("a term is counted once more on every tower after the first", Program(), {"seen": 0.01}),
    # Clipped behind it, gradients do not show the weights that are added to them.
    ("counts less than in the original", replace(DECAYED, clip=0.3), {"decay": 0.0}),
    ("counts more than in the original", replace(DECAYED, clip=0.3), {"decay": 0.08}),
    # Clipped at one step only, at a round number.
    ("the gradients are not clipped", Program(clip=3.4), {"clip": None}),
]  # fmt: skip


def _diagnosed(folder: Path, original: Program, changed: dict[str, Any]) -> list[Diagnosis]:
    first = record(folder / "original", original)
    made = record(folder / "made", replace(original, **changed), original)
    result = compare(first, made, STAGES, TOLERANCE, towers=TOWERS, lockstep=True)
    assert result.differences
    return diagnose(first, made, result, STAGES, TOWERS, lockstep=True)


@pytest.mark.parametrize("cause", CASES)
def test_a_cause_is_named_first_and_no_other(tmp_path: Path, cause: str) -> None:
    found = _diagnosed(tmp_path, *CASES[cause])
    assert found and cause in found[0].cause, found
    others = [other for other in CASES if other in found[0].cause and other not in cause]
    assert others == []
    assert found[0].evidence


@pytest.mark.parametrize(("cause", "original", "changed"), MORE)
def test_a_cause_is_named_whatever_the_optimizer(
    tmp_path: Path, cause: str, original: Program, changed: dict[str, Any]
) -> None:
    found = _diagnosed(tmp_path, original, changed)
    assert found and cause in found[0].cause, found


def test_a_change_that_no_test_fits_is_said_to_be_open(tmp_path: Path) -> None:
    first = record(tmp_path / "1", Program())
    made = record(tmp_path / "2", Program())
    for run in made.runs:
        arrays = made.arrays(run)
        bent = np.random.RandomState(run.index).randn(5, 3).astype(np.float32)
        arrays["gradient/0/w"] = arrays["gradient/0/w"] + np.float32(0.1) * bent
        np.savez(made.folder / f"run_{run.index:05d}.npz", **arrays)
    result = compare(first, made, STAGES, TOLERANCE, towers=TOWERS, lockstep=True)
    assert diagnose(first, made, result, STAGES, TOWERS, lockstep=True) == []


def test_gradients_without_a_cause_of_their_own_come_of_losses_that_differ_too(
    tmp_path: Path,
) -> None:
    first = record(tmp_path / "1", Program())
    made = record(tmp_path / "2", Program())
    for run in made.runs:
        arrays = made.arrays(run)
        bent = np.random.RandomState(run.index).randn(5, 3).astype(np.float32)
        arrays["gradient/0/w"] = arrays["gradient/0/w"] + np.float32(0.1) * bent
        if run.index > 1:
            arrays["loss/0/1"] = arrays["loss/0/1"] * np.float32(1 + 1e-4 * run.index)
        np.savez(made.folder / f"run_{run.index:05d}.npz", **arrays)
    result = compare(first, made, STAGES, TOLERANCE, towers=TOWERS, lockstep=True)
    first_difference = result.first()
    assert first_difference is not None and first_difference.level == "gradient"
    (found,) = diagnose(first, made, result, STAGES, TOWERS, lockstep=True)
    assert found.cause.startswith("the forward computation differs")
    # Free-running, losses differ because the gradients do.
    assert diagnose(first, made, result, STAGES, TOWERS, lockstep=False) == []


def test_averages_of_which_there_is_none_are_named_though_nothing_differs(tmp_path: Path) -> None:
    plain = {"state/variable/w": np.array(1.0, np.float32)}
    averaged = {**plain, "state/variable/w/ExponentialMovingAverage": np.array(0.5, np.float32)}
    first = recording(tmp_path / "1", [averaged])
    made = recording(tmp_path / "2", [plain])
    result = compare(first, made, STAGES, TOLERANCE)
    assert not result.differences
    (found,) = diagnose(first, made, result, STAGES, TOWERS)
    assert found.cause.startswith("the moving average of the variables is gone")
    assert found.evidence.endswith("w/ExponentialMovingAverage")
    assert diagnose(first, first, result, STAGES, TOWERS) == []
    assert diagnose(first, made, Comparison(), STAGES, TOWERS) == []


# ---- inputs --------------------------------------------------------------------------------------


def _swapped(step: int, inputs: Arrays) -> Arrays:
    return {**inputs, "input/0/x": inputs["input/1/x"], "input/1/x": inputs["input/0/x"]}


def _same(step: int, inputs: Arrays) -> Arrays:
    return {key: inputs["input/0/" + key.split("/")[2]] for key in inputs}


def _fewer(step: int, inputs: Arrays) -> Arrays:
    return {**inputs, "input/3/x": inputs["input/3/x"][:7]}


def _some(step: int, inputs: Arrays) -> Arrays:
    return {**inputs, "input/0/x": np.random.RandomState(step).randn(5, 5)}


def _turned(step: int, inputs: Arrays) -> Arrays:
    return {**inputs, "input/0/x": inputs["input/0/x"][::-1]}


def _times(step: int, inputs: Arrays) -> Arrays:
    return {**inputs, "input/0/x": inputs["input/0/x"] * 2}


def _others(step: int, inputs: Arrays) -> Arrays:
    return {**inputs, "input/0/x": np.random.RandomState(step).randn(12, 5)}


def _constant(step: int, inputs: Arrays) -> Arrays:
    return {key: np.zeros_like(value) for key, value in inputs.items()}


def _short(step: int, inputs: Arrays) -> Arrays:
    return {
        key: value.astype(np.float16).astype(value.dtype) if value.dtype.kind == "f" else value
        for key, value in inputs.items()
    }


INPUTS = {
    "an input is rounded": _short,
    "an input has one value in all rows": _constant,
    "every tower gets the same rows": _same,
    "rows that the original gave to another": _swapped,
    "the remainder of the rows is dropped": _fewer,
    "an incomplete batch is taken, which the original drops": _some,
    "the rows come in another order": _turned,
    "an input is scaled": _times,
    "a tower gets other rows than in the original": _others,
}


def _read(first: Trace, made: Trace, key: str, step: int = 0) -> list[Diagnosis]:
    difference = Difference(
        step, 0, "input", "input x", int(key.split("/")[1]) if key[6].isdigit() else None,
        "rows", "other rows", float("inf"), key, step,
    )  # fmt: skip
    result = Comparison(differences=[difference])
    return diagnose(first, made, result, STAGES, TOWERS, lockstep=True)


@pytest.mark.parametrize("cause", INPUTS)
def test_a_cause_of_inputs(tmp_path: Path, cause: str) -> None:
    first = record(tmp_path / "1", Program())
    made = with_own_inputs(record(tmp_path / "2", Program()), INPUTS[cause])
    own = made.arrays(made.runs[0])
    key = next(
        key[4:] for key in sorted(own)
        if key.startswith("own/") and not np.array_equal(own[key], own[key[4:]])
    )  # fmt: skip
    found = _read(first, made, key)
    assert cause in found[0].cause, found
    assert [other for other in INPUTS if other in found[0].cause and other != cause] == []


@pytest.mark.parametrize(
    ("shift", "step", "cause"),
    [
        (-1, 2, "a step is made twice"),
        (1, 2, "a step is skipped"),
        (1, 0, "the rows are 1 step ahead from the first step on"),
        (2, 0, "the rows are 2 steps ahead from the first step on"),
    ],
)
def test_rows_of_another_step(tmp_path: Path, shift: int, step: int, cause: str) -> None:
    first = record(tmp_path / "1", Program())
    inputs = [first.arrays(run) for run in first.runs]

    def made(step: int, given: Arrays) -> Arrays:
        other = inputs[min(max(step + shift, 0), len(inputs) - 1)]
        return {key: other[key] for key in given}

    trace = with_own_inputs(record(tmp_path / "2", Program()), made)
    found = _read(first, trace, "input/0/x", step=step)
    assert cause in found[0].cause, found


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "whichever tower gets them"])
def test_rows_that_an_epoch_leaves_over_are_left_out(tmp_path: Path, turned: bool) -> None:
    rows = np.random.RandomState(3).randn(13, 4)
    repeated = np.concatenate([rows] * 3)
    whole = np.concatenate([rows[:12]] * 3)

    def given(stream: Any, run: int) -> list[Any]:
        towers = [stream[8 * run + 4 * tower : 8 * run + 4 * tower + 4] for tower in range(2)]
        return towers[::-1] if turned and run % 2 else towers

    def arrays(run: int) -> Arrays:
        return {f"input/{tower}/x": each for tower, each in enumerate(given(repeated, run))}

    def own(run: int) -> Arrays:
        return {
            f"own/input/{tower}/x": each
            for tower, each in enumerate(given(whole, run)[::-1] if turned else given(whole, run))
        }

    first = recording(tmp_path / "1", [arrays(run) for run in range(4)])
    made = recording(tmp_path / "2", [{**arrays(run), **own(run)} for run in range(4)])
    difference = Difference(
        1, 0, "input", "input x", None if turned else 1, "rows", "other rows", 1.0, "input/1/x", 1
    )
    result = Comparison(differences=[difference])
    found = diagnose(first, made, result, STAGES, 2, lockstep=True)
    assert found[0].cause == "rows are left out: the remainder of the rows is dropped", found
    assert found[0].evidence.startswith("input x: 1 of the original's 8 rows do not come")


def test_rows_of_another_stage(tmp_path: Path) -> None:
    own = {run: np.random.RandomState(run).randn(4, 2) for run in range(4)}
    arrays = [{"input/feed/z:0": own[run]} for run in range(4)]
    stages = [[run % 2] for run in range(4)]
    first = recording(tmp_path / "1", arrays, stages=stages)
    for by, cause in (
        (1, "a stage gets the rows that another stage had"),
        (2, "a step is made twice"),
    ):
        reads = [{**arrays[run], "own/input/feed/z:0": own[max(run - by, 0)]} for run in range(4)]
        made = recording(tmp_path / f"made {by}", reads, stages=stages)
        difference = Difference(
            1, 3 % 2, "input", "input z:0", None, "rows", "other rows", 1.0, "input/feed/z:0", 3
        )
        result = Comparison(differences=[difference])
        found = diagnose(first, made, result, ("d", "g"), 1, lockstep=True)
        assert cause in found[0].cause, found


def test_a_schedule_that_the_host_feeds_one_step_ahead(tmp_path: Path) -> None:
    traces = [record(tmp_path / str(k), Program()) for k in range(2)]
    for trace in traces:
        for step, run in enumerate(trace.runs):
            arrays = trace.arrays(run)
            arrays["input/feed/rate:0"] = np.float32(_falling(step))
            arrays["own/input/feed/rate:0"] = np.float32(_ahead(step))
            np.savez(trace.folder / f"run_{run.index:05d}.npz", **arrays)
    found = _read(*traces, "input/feed/rate:0")
    assert found[0].cause.endswith("schedule of a value that is fed: it is 1 step ahead"), found


# ---- around the steps ----------------------------------------------------------------------------


def test_what_the_host_changes_between_two_steps(tmp_path: Path) -> None:
    first = record(tmp_path / "1", Program())
    made = record(tmp_path / "2", Program(host=3), Program(), free=True)
    result = compare(first, made, STAGES, TOLERANCE, towers=TOWERS, growing=True)
    result.differences = [replace(each, level="trajectory") for each in result.differences]
    (found,) = diagnose(first, made, result, STAGES, TOWERS)
    assert "the host does to variables between two training runs" in found.cause
    assert "training run 3" in found.evidence


def test_roundings_that_grow_are_no_fault(tmp_path: Path) -> None:
    first = record(tmp_path / "1", Program())
    made = record(tmp_path / "2", Program(factor=1 + 3e-6), Program(), free=True)
    result = compare(first, made, STAGES, 1e-8, towers=TOWERS)
    last = [each for each in result.differences if each.run == 4]
    result.differences = [replace(each, level="trajectory") for each in last]
    (found,) = diagnose(first, made, result, STAGES, TOWERS)
    assert found.cause.startswith("rounding that this training amplifies")


def test_replicas_that_differ(tmp_path: Path) -> None:
    first = record(tmp_path / "1", Program())
    made = with_runs(
        record(tmp_path / "2", Program()), replicas_differ={"variable/w": [2, 1.0, 1.5]}
    )
    result = compare(first, made, STAGES, TOLERANCE, towers=TOWERS, lockstep=True)
    assert result.differences[0].replica == 2
    (found,) = diagnose(first, made, result, STAGES, TOWERS, lockstep=True)
    assert found.cause == "the replicas hold different values of one variable"


@pytest.mark.parametrize(
    ("updates", "cause"),
    [(2, "the update of a step is made twice"), (0, "the update is skipped")],
)
def test_updates_of_one_batch(tmp_path: Path, updates: int, cause: str) -> None:
    first = record(tmp_path / "1", Program())
    made = with_runs(record(tmp_path / "2", Program()), updates=updates)
    result = compare(first, made, STAGES, TOLERANCE, towers=TOWERS)
    (found,) = diagnose(first, made, result, STAGES, TOWERS)
    assert found.cause == cause


def _staged(folder: Path, order: list[int], slots: tuple[int, ...] = (0, 1)) -> Trace:
    runs = []
    for number, stage in enumerate(order):
        value = np.float32([1 + number, 2])
        run = {f"loss/{stage}/{t}": np.float32(1) for t in range(TOWERS)}
        run.update({f"gradient/{stage}/w": value, "state/variable/w": value})
        run.update({f"state/slot/{each}/m/w": value for each in slots})
        runs.append(run)
    return recording(folder, runs, stages=[[stage] for stage in order])


ORDER = [0, 1, 2, 0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("order", "cause"),
    [
        ([1, 0, 2, 1, 0, 2, 1, 0, 2], "the stages are in another order"),
        ([0, 2, 1, 0, 2, 1], "the stages are in another order"),
        (
            [0, 1, 2],
            "updates are fewer: steps are skipped, or the program ends earlier than the original",
        ),
        (
            [*ORDER, 0, 1],
            "updates are more: steps are made twice, or the program goes on where the original ends",
        ),
        ([0, 1, 1, 2, 0, 1, 2, 0, 1], "a step of one stage is made twice"),
        ([0, 2, 0, 1, 2, 0, 1, 2], "a step of one stage is skipped"),
        ([0, 1, 1, 2, 0, 1, 1, 2, 0], "a step of one stage is made twice"),
    ],
)
def test_other_steps(tmp_path: Path, order: list[int], cause: str) -> None:
    first, made = _staged(tmp_path / "1", ORDER), _staged(tmp_path / "2", order)
    pairs = zip(ORDER, order, strict=False)
    at = next((k for k, (a, b) in enumerate(pairs) if a != b), len(order))
    difference = Difference(
        0, 0, "structure", "training run", None, "updates a", "updates b", float("inf"), "", at
    )
    result = Comparison(differences=[difference])
    (found,) = diagnose(first, made, result, ("a", "b", "c"), TOWERS)
    assert found.cause == cause


def _turns(folder: Path, order: list[int], said: list[int]) -> Trace:
    """Runs that train the stages of `order`, by their variables, while the recording says those of `said`."""
    runs = [
        {f"gradient/{said[at]}/{'ab'[stage]}": np.float32([1, 2]), "input/0/x": np.float32([at])}
        for at, stage in enumerate(order)
    ]
    return recording(folder, runs, stages=[[stage] for stage in said])


def test_a_stage_that_is_trained_less_often_in_loop_style(tmp_path: Path) -> None:
    order = [0, 0, 0, 1, 0, 0, 0, 1]
    first = _turns(tmp_path / "1", order, order)
    made = _turns(tmp_path / "2", [0, 0, 0, 1, 0, 0, 1, 0], order)
    pair = replace(recorded(first, first), stages=("critic", "generator"))
    found = loop_differences(pair, made, TOLERANCE, lockstep=False, growing=True)
    assert [(each.name, each.run, each.step) for each in found] == [("training run", 6, 5)]
    assert (found[0].expected, found[0].actual) == ("updates critic", "updates generator")
    for difference in (*found, replace(found[0], level="input", name="input x", key="input/0/x")):
        comparison = Comparison(differences=[difference])
        (cause,) = diagnose(first, made, comparison, ("critic", "generator"), TOWERS)
        assert cause.cause == "a step of one stage is skipped"
    assert not loop_differences(pair, first, TOLERANCE, lockstep=False, growing=True)


def _normed(folder: Path, moves: dict[int, float]) -> Trace:
    """Two stages in turn; the moving average moves by so much in the runs of each."""
    mean, runs = np.float32([1, 2, 3]), []
    for number in range(4):
        mean = mean + np.float32([1, 3, -2]) * np.float32(moves.get(number % 2, 0))
        runs.append({"state/variable/n/moving_mean": mean, "loss/0/0": np.float32(1)})
    initial = {"variable/n/moving_mean": np.float32([1, 2, 3])}
    return recording(folder, runs, initial, stages=[[0], [1], [0], [1]])


@pytest.mark.parametrize(
    ("theirs", "ours", "run", "cause"),
    [
        ({1: 0.1}, {0: 0.1}, 0, "are updated with another stage than the original's"),
        ({0: 0.1}, {1: 0.1}, 0, "are updated with another stage than the original's"),
        ({0: 0.1}, {}, 0, "its updates are left out"),
        ({0: 0.1}, {0: 0.2}, 0, "another momentum"),
    ],
)
def test_whose_stage_moves_batch_norm(
    tmp_path: Path, theirs: dict[int, float], ours: dict[int, float], run: int, cause: str
) -> None:
    first, made = _normed(tmp_path / "1", theirs), _normed(tmp_path / "2", ours)
    difference = Difference(
        0, run % 2, "update", "n/moving_mean", None, 1.0, 2.0, 0.5, "state/variable/n/moving_mean", run
    )  # fmt: skip
    comparison = Comparison(differences=[difference])
    (found,) = diagnose(first, made, comparison, ("critic", "generator"), TOWERS)
    assert cause in found.cause


def test_an_epsilon_that_is_too_small_to_be_told_is_not_said_to_be_zero(tmp_path: Path) -> None:
    found = _diagnosed(tmp_path, replace(ADAM, epsilon=1e-9), {"epsilon": 1e-2})
    assert found[0].cause == "another optimizer hyperparameter: epsilon"
    assert "in place of 0" not in found[0].evidence
    assert "too small to be told in the original" in found[0].evidence


def test_of_two_stages_in_turn_a_step_more_may_be_a_step_less(tmp_path: Path) -> None:
    first = _staged(tmp_path / "1", [0, 1, 0, 1, 0, 1])
    made = _staged(tmp_path / "2", [0, 0, 1, 0, 1, 0])
    difference = Difference(
        0, 0, "structure", "training run", None, "updates b", "updates a", float("inf"), "", 1
    )
    (found,) = diagnose(first, made, Comparison(differences=[difference]), ("a", "b"), TOWERS)
    assert found.cause == "a step of one stage is made twice, or one of another is skipped"


@pytest.mark.parametrize(
    ("theirs", "ours", "cause"),
    [
        ((0, 1), (0,), "share one optimizer that have"),
        ((0,), (0, 1), "that share one in the original"),
    ],
)
def test_a_shared_optimizer_is_told_by_its_slots(
    tmp_path: Path, theirs: tuple[int, ...], ours: tuple[int, ...], cause: str
) -> None:
    first = _staged(tmp_path / "1", [0, 1, 0, 1], theirs)
    made = _staged(tmp_path / "2", [0, 1, 0, 1], ours)
    difference = Difference(0, 1, "update", "w", None, 1.0, 2.0, 0.5, "state/variable/w", 1)
    (found,) = diagnose(first, made, Comparison(differences=[difference]), ("a", "b"), TOWERS)
    assert cause in found.cause


# ---- what no recording is needed for -------------------------------------------------------------


def _difference(name: str, expected: object, actual: object) -> Difference:
    return Difference(0, 0, "initial", name, None, expected, actual, 1.0, f"state/{name}", 0)  # type: ignore[arg-type]


def test_what_adam_begins_with_tells_its_betas() -> None:
    cause = of_start(_difference("gan/beta1_power_1", 0.9, 0.8)).cause
    assert cause == "another optimizer hyperparameter: beta1"
    assert "another initial value" in of_start(_difference("w", 0.9, 0.8)).cause


@pytest.mark.parametrize(
    ("name", "expected", "actual", "is_lost"),
    [
        ("file log/events", "log/events", "no such file", True),
        ("loss of step 2 in the event file of log", "[0.5]", "the steps 0, 4", True),
        ("loss of step 2 in the event file of log", "[0.5]", "[0.6]", False),
        ("file log/notes", "log/notes", "no such file", False),
        ("file log/events", "no such file", "log/events", False),
    ],
)
def test_a_batch_goes_with_the_summary_that_took_it(
    name: str, expected: str, actual: str, is_lost: bool
) -> None:
    fewer = _difference("input batches", "2 batches taken for it", "1 batches taken for it")
    found = of_lost_summary(fewer, _difference(name, expected, actual))
    assert (found is not None) == is_lost
    assert (
        of_lost_summary(_difference("input x", 1.0, 2.0), _difference(name, expected, actual))
        is None
    )


def test_zeros_in_place_of_none_make_no_other_stage(tmp_path: Path) -> None:
    def made(zeros: bool) -> Trace:
        first = {"gradient/0/v": np.float32([2.0]), "gradient/0/w": np.float32([1.0])}
        second = {"gradient/1/v": np.float32([1.0])}
        if zeros:
            second["gradient/1/w"] = np.float32([0.0])
        return recording(tmp_path / str(zeros), [first, second], stages=[[0], [1]])

    theirs, ours = made(False), made(True)
    assert stages_made(theirs, ours) == [run.stages for run in theirs.runs]
    assert stages_made(ours, theirs) == [run.stages for run in theirs.runs]


def test_averages_that_a_checkpoint_lacks_are_gone(tmp_path: Path) -> None:
    name = "w/ExponentialMovingAverage in the checkpoint log/model.ckpt-0"
    values = {"state/variable/w": np.float32([1.0])}
    none = recording(tmp_path / "none", [values])
    lacking = _difference(name, "a tensor", "no such tensor")
    assert of_shown(lacking, none).cause == "the moving average of the variables is gone"
    assert "holds something else" in of_shown(_difference(name, "1.0", "2.0"), none).cause
    values["state/variable/w/ExponentialMovingAverage"] = np.float32([1.0])
    there = recording(tmp_path / "there", [values])
    assert "holds something else" in of_shown(lacking, there).cause


@pytest.mark.parametrize(
    ("theirs", "ours", "tower"),
    [
        ("step 3 loss 1.0881", "step 3 loss 1.0477", 1),
        ("step 3 loss 1.0881", "step 3 loss 1.05", None),  # so few digits come by chance
        ("step 3 loss 1.0477", "step 3 loss 1.0881", None),
        ("loss 1.0881", "loss 1.0477 again 2.5", None),
    ],
)
def test_a_printed_loss_of_one_tower(
    tmp_path: Path, theirs: str, ours: str, tower: int | None
) -> None:
    losses = {"loss/0/0": np.float32(1.12853), "loss/0/1": np.float32(1.04768)}
    found = of_shown(_difference("printed line 4", theirs, ours), recording(tmp_path, [losses]))
    said = f"the loss of tower {tower} is printed in place of another value"
    assert found.cause == ("something else is printed" if tower is None else said)


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        pytest.param([0.3, 0.3], [0.3127, 0.4151], "weights are not clipped", id="not clipped"),
        pytest.param([0.3], [0.3127], None, id="one number may be round by chance"),
        pytest.param([0.3, 0.3], [0.27, 0.27], "clipped to other bounds", id="narrower"),
        pytest.param([0.28, 0.2914], [0.27, 0.27], "that the original leaves", id="clipped here only"),
        pytest.param([0.3121, 0.2], [0.3, 0.21], None, id="a learning rate"),
        pytest.param([], [], None, id="nothing"),
    ],
)  # fmt: skip
def test_clipped_weights_stand_at_a_bound(
    theirs: list[float], ours: list[float], said: str | None
) -> None:
    found = at_bounds(np.array(theirs), np.array(ours))
    assert found is None if said is None else found is not None and said in found
