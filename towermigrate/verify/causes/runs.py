"""Causes that lie around the steps: how many there are and in which order, what the host does, what is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from towermigrate.verify.causes.case import Diagnosis, few
from towermigrate.verify.comparison import (
    BATCHES_TAKEN,
    FED,
    LOOKED,
    NO_FILE,
    NO_SUMMARY,
    Comparison,
    Difference,
)
from towermigrate.verify.trace import Trace

# A free run whose every single step is right drifts apart by roundings, step by step. What was changed from outside is
# there at once: this many times what the step before was apart by.
_AT_ONCE = 100.0
_DECIMAL = re.compile(r"-?\d+\.\d+")
_POWER = re.compile(r"(beta[12])_power(?:_\d+)?$")
_AVERAGE = "/ExponentialMovingAverage"


def of_structure(
    first: Difference, expected: Trace, actual: Trace, stages: tuple[str, ...]
) -> Iterator[Diagnosis]:
    """Steps, stages, updates and variables that one of the programs has alone."""
    if first.name in ("training run", "training runs"):
        yield out_of_turn(first, expected, actual) or _steps(first, expected, actual, stages)
    elif first.name == "optimizer updates":
        made = str(first.actual).split()[0]
        cause = "the update is skipped" if made == "0" else "the update of a step is made twice"
        yield Diagnosis(cause, f"{first.actual}, {first.expected} in the original")
    elif first.name == "towers":
        yield Diagnosis(
            "there are more replicas than towers", f"{first.actual}, not {first.expected}"
        )
    else:
        yield from _variables(first, expected, actual)


def out_of_turn(first: Difference, expected: Trace, actual: Trace) -> Diagnosis | None:
    """Runs that train another stage than the original's at that place, by the variables that have gradients in them."""
    made = stages_made(expected, actual)
    if made is None or made == [run.stages for run in expected.runs[: len(made)]]:
        return None
    if [run.index for run in expected.runs] != list(range(len(expected.runs))):
        # Runs of the stage that trains most were not recorded to the end, so that turns cannot be counted.
        return Diagnosis(
            "a step of one stage is skipped or made twice, or the stages are in another order",
            f"training run {first.run}: {first.actual}, {first.expected} in the original",
        )
    return _in_turn_of(first, [run.stages for run in expected.runs], made)


def stages_made(expected: Trace, actual: Trace) -> list[tuple[int, ...]] | None:
    """The stages that the rewritten program's runs train, by the variables that have gradients; None where that is open.

    A step of a `tf.function` does not say which stage it is.
    """
    theirs = _variables_of_runs(expected)
    ours = _variables_of_runs(actual)
    alone: dict[frozenset[str], set[tuple[int, ...]]] = {}
    for run, names in zip(expected.runs, theirs, strict=True):
        alone.setdefault(names, set()).add(run.stages)
    if any(len(stages) > 1 for stages in alone.values()) or not all(theirs):
        return None
    known = [alone.get(names, set()) for names in ours]
    if not all(known):
        return None
    return [next(iter(stages)) for stages in known]


def _variables_of_runs(trace: Trace) -> list[frozenset[str]]:
    """The variables that a gradient moves in each run: zeros may stand for none, and tell no stage from another."""
    return [
        frozenset(
            key.split("/", 2)[2]
            for key, value in trace.arrays(run).items()
            if key.startswith("gradient/") and np.any(value)
        )
        for run in trace.runs
    ]


def _steps(first: Difference, expected: Trace, actual: Trace, stages: tuple[str, ...]) -> Diagnosis:
    theirs, ours = ([run.stages for run in trace.runs] for trace in (expected, actual))
    return _in_turn_of(first, theirs, ours)


def _in_turn_of(
    first: Difference, theirs: list[tuple[int, ...]], ours: list[tuple[int, ...]]
) -> Diagnosis:
    evidence = f"training run {first.run}: {first.actual}, {first.expected} in the original"
    if len(ours) < len(theirs) and ours == theirs[: len(ours)]:
        return Diagnosis(
            "updates are fewer: steps are skipped, or the program ends earlier than the original",
            evidence,
        )
    if len(ours) >= len(theirs) and ours[: len(theirs)] == theirs:
        return Diagnosis(
            "updates are more: steps are made twice, or the program goes on where the original ends",
            evidence,
        )
    at = next((k for k, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), 0)
    # The recording ends with the original's last run, so a few steps on are what there is to tell.
    twice = at > 0 and ours[at] == ours[at - 1] and _go_on(ours[at + 1 :], theirs[at:])
    skipped = _go_on(ours[at:], theirs[at + 1 :]) and (at > 0 or ours[:2] != theirs[:2][::-1])
    theirs_in_turn, ours_in_turn = _in_turn(theirs), _in_turn(ours)
    for one, other in zip(theirs_in_turn[:-1], ours_in_turn[:-1], strict=False):
        if one != other:
            twice = twice or (one[0] == other[0] and other[1] > one[1])
            skipped = skipped or (one[0] == other[0] and other[1] < one[1])
            break
    if twice and skipped:
        return Diagnosis(
            "a step of one stage is made twice, or one of another is skipped", evidence
        )
    if twice or skipped:
        return Diagnosis(f"a step of one stage is {'made twice' if twice else 'skipped'}", evidence)
    return Diagnosis("the stages are in another order", evidence)


def _in_turn(steps: list[tuple[int, ...]]) -> list[tuple[tuple[int, ...], int]]:
    """How often each stage is trained before the next: `[(critic, 2), (generator, 1), …]`."""
    return [(stage, len(list(group))) for stage, group in groupby(steps)]


def _go_on(ours: list[tuple[int, ...]], theirs: list[tuple[int, ...]]) -> bool:
    """Whether both make the same steps from here on."""
    length = min(len(ours), len(theirs), 3)
    return length > 0 and ours[:length] == theirs[:length]


def _variables(first: Difference, expected: Trace, actual: Trace) -> Iterator[Diagnosis]:
    theirs, ours = expected.variables(), actual.variables()
    gone = [key.partition("/")[2] for key in theirs if key not in ours]
    more = [key.partition("/")[2] for key in ours if key not in theirs and ours[key]["trainable"]]
    evidence = f"{first.name}: {first.actual} in place of {first.expected}"
    if gone and all(name.endswith("ExponentialMovingAverage") for name in gone):
        yield Diagnosis("the moving average of the variables is gone", few(gone))
    elif lacking := _untrained(expected, actual):
        yield Diagnosis(
            "the stage's variable list lacks variables of the original's",
            f"no slots, and no gradient, for {few(lacking)}",
        )
    elif gone and all(key.startswith("slot/") for key in theirs if key not in ours):
        yield Diagnosis("another optimizer: it has other slots", few(gone))
    elif gone:
        yield Diagnosis("a variable is missing, or stands outside of the towers", few(gone))
    elif more:
        yield Diagnosis("there is a variable that the original has not", few(more))
    else:
        yield Diagnosis("a variable is another one", evidence)


def _untrained(expected: Trace, actual: Trace) -> list[str]:
    """Variables that have no slots and no gradients here, where others of their stage have."""
    ours = set(actual.variables())
    gone = [key for key in expected.variables() if key.startswith("slot/") and key not in ours]
    kept = {"/".join(key.split("/", 3)[:3]) for key in ours if key.startswith("slot/")}
    names = {}
    for key in gone:
        parts = key.split("/", 3)
        if len(parts) < 4 or "/".join(parts[:3]) not in kept:
            return []
        names[parts[3]] = True
    applied = {
        key.split("/", 2)[2]
        for run in actual.runs
        for key in actual.arrays(run)
        if key.startswith("gradient/")
    }
    here = all("variable/" + name in ours for name in names)
    return list(names) if here and not applied & set(names) else []


def of_trajectory(
    first: Difference, comparison: Comparison, expected: Trace, actual: Trace
) -> Iterator[Diagnosis]:
    """What differs free-running though every single step is right."""
    apart = _apart(expected, actual, first.run)
    earlier = _apart(expected, actual, first.run - 1) if first.run else 0.0
    if apart is None or earlier is None:
        return
    if apart > _AT_ONCE * max(earlier, 1e-7):
        here = [
            d.name
            for d in comparison.differences
            if d.run == first.run and d.key.startswith("state/")
        ]
        yield Diagnosis(
            "what the host does to variables between two training runs is something else",
            f"from the original's state every step is equal; free-running, training run {first.run} is off by "
            f"{apart:.1g} of a variable at once: {few(dict.fromkeys(here)) or first.name}",
        )
        return
    yield Diagnosis(
        "rounding that this training amplifies, not a fault of one step",
        "from the original's state every single step is equal; fewer --steps or a larger "
        "--tolerance would show how fast it grows",
    )


def _apart(expected: Trace, actual: Trace, index: int) -> float | None:
    """How far the states after a training run are apart, in parts of their arrays' sizes."""
    arrays = [
        next((trace.arrays(run) for run in trace.runs if run.index == index), None)
        for trace in (expected, actual)
    ]
    if arrays[0] is None or arrays[1] is None:
        return None
    found = 0.0
    for key, value in arrays[0].items():
        other = arrays[1].get(key)
        if not key.startswith("state/") or value.dtype.kind != "f" or other is None:
            continue
        size = float(np.abs(value).max(initial=0.0))
        if other.shape == value.shape and size > 0:
            off = np.abs(value.astype(np.float64) - other.astype(np.float64))
            found = max(found, float(off.max(initial=0.0)) / size)
    return found


def of_start(first: Difference) -> Diagnosis:
    if first.key.startswith("seed/"):
        return Diagnosis(
            "another seed of random numbers, of initial values or of random operations",
            f"{first.name}: {first.actual} in place of {first.expected}",
        )
    power = _POWER.search(first.name)
    if power is not None:  # Adam's running powers of its betas begin with the betas
        return Diagnosis(
            f"another optimizer hyperparameter: {power[1]}",
            f"{first.name} begins with {first.actual} in place of {first.expected}",
        )
    return Diagnosis(
        "another initial value: the initializer, its settings, or a restore that did not happen",
        f"{first.name} before anything was loaded; the original starts with the same each time",
    )


def of_host(first: Difference) -> Diagnosis:
    return Diagnosis(
        "what the program runs between two training runs does something else, or is gone",
        f"{first.name}: assigned, clipped or restored after training run {first.run - 1}",
    )


def of_lost_summary(first: Difference, doing: Difference) -> Diagnosis | None:
    """Of another number of batches taken: the run that made a summary took one, and is gone with it."""
    if not first.name.startswith(BATCHES_TAKEN):
        return None
    of_event = " in the event file " in doing.name
    no_value = of_event and str(doing.actual).startswith((NO_SUMMARY, "the steps ", "the tags "))
    # Event files are known without the time and the host in their names.
    is_events = str(doing.expected).rpartition("/")[2] == "events"
    if not no_value and not (is_events and doing.actual == NO_FILE):
        return None
    return Diagnosis(
        "a summary is missing, and with the run that made it the batch that it took",
        f"{doing.name}: {doing.actual}; {first.actual}, {first.expected} in the original",
    )


def of_open(comparison: Comparison, actual: Trace) -> Iterator[Diagnosis]:
    """What may be behind a comparison that is not whole though nothing differs."""
    lacking = [said for said in comparison.not_compared if f"{_AVERAGE}:" in said]
    if lacking and not any(key.endswith(_AVERAGE) for key in actual.variables()):
        yield Diagnosis(
            "the moving average of the variables is gone, or is kept under another name",
            few(said.partition(":")[0] for said in lacking),
        )


def of_shown(first: Difference, actual: Trace) -> Diagnosis:
    """Printed lines, files and checkpoints, of a program that trains the same."""
    evidence = f"{first.name}: training agrees"
    if first.name == "exit code":
        return Diagnosis("the program leaves with another exit code", evidence)
    if first.name.startswith(LOOKED):
        return Diagnosis(
            "a run that trains nothing, an evaluation say, gives another value", evidence
        )
    if first.name.startswith(FED):
        return Diagnosis(
            "a run that trains nothing, an evaluation say, is fed other rows", evidence
        )
    if first.name.startswith("printed line"):
        tower = _of_one_tower(str(first.expected), str(first.actual), actual)
        if tower is not None:
            return Diagnosis(
                f"the loss of tower {tower} is printed in place of another value", evidence
            )
        return Diagnosis("something else is printed", evidence)
    if first.name.startswith("line on standard error"):
        return Diagnosis("something else is printed on standard error, or logged", evidence)
    if first.name.startswith("contents of the file"):
        return Diagnosis("something else is written into a file", evidence)
    if " in the checkpoint " in first.name:
        if _AVERAGE + " " in first.name and first.actual == "no such tensor":
            if (
                "variable/" + first.name.partition(" in the checkpoint ")[0]
                not in actual.variables()
            ):
                return Diagnosis("the moving average of the variables is gone", evidence)
        return Diagnosis("a checkpoint holds something else", evidence)
    if " in the event file " in first.name:
        return Diagnosis("a summary has another tag, step or value, or is missing", evidence)
    return Diagnosis("another file is written", evidence)


def _of_one_tower(expected: str, actual: str, trace: Trace) -> int | None:
    """The tower whose loss stands in a line where the original has another number, told by at least four digits."""
    theirs, ours = _DECIMAL.findall(expected), _DECIMAL.findall(actual)
    if len(theirs) != len(ours):
        return None
    shown = [two for one, two in zip(theirs, ours, strict=True) if one != two]
    told = {each for each in shown if len(each.replace(".", "").lstrip("-0")) >= 4}
    for run in trace.runs:
        for key, value in trace.arrays(run).items():
            if not key.startswith("loss/") or value.size != 1 or "/" not in key[5:]:
                continue
            loss = float(value.ravel()[0])
            if any(f"{loss:.{len(each.partition('.')[2])}f}" == each for each in told):
                return int(key.split("/")[2])
    return None
