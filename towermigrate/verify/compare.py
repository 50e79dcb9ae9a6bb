"""Compare two recordings level by level: structure, forward, gradient, update, trajectory.

A limit is `tolerance` times a size. Losses, gradients and values are held to the size of their array, and
below that to a tenth of the largest of its peers (the arrays of the same kind and stage; for variables, the
trainable ones). An absolute limit would pass small gradients that are twice what they should be; a purely
relative one fails on sums whose terms cancel (the bias of a discriminator's score: 4.5e-8 apart in two runs
of one TF 1.15 program, at 7e-4). What a step *changes* in a variable or slot is held to the size of the
change, so a learning rate that is off by 1e-4 shows although the variable hardly moves (`limits.py`).
Integers are equal or not. What the original itself does not determine is held to the spread of its own two
runs.

Free-running programs carry their roundings along: in float32, the sum over four towers in another order is
1e-7 off, and thirty updates later 2e-6, though from the same state every single step is equal. So two
programs are equal when they are so free-running within `tolerance`; or else when every single step, its
state reset from the original (lock-step), is equal within `tolerance`, *and* free-running they are apart by
no more than `tolerance` times one plus the number of updates made so far: what so many roundings may add up
to. A fault is never excused by the second rule: it shows in its own step.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from towermigrate.verify.comparison import (
    Comparison,
    Difference,
    Pairs,
    beside,
    describe_key,
    key_said,
    level_of,
    quantity_of,
)
from towermigrate.verify.limits import Limits, apart, change_error, exact, largest, not_finite
from towermigrate.verify.structure import (
    compare_updates,
    compare_variables,
    list_not_compared,
    missing_value,
)
from towermigrate.verify.trace import Array, Arrays, Trace


def compare(
    expected: Trace,
    actual: Trace,
    stages: tuple[str, ...],
    tolerance: float,
    alternative: Trace | None = None,
    free: Collection[str] = frozenset(),
    *,
    towers: int | None = None,
    lockstep: bool = False,
    growing: bool = False,
) -> Comparison:
    """Compare every training run of `actual` with that of `expected`.

    Args:
        alternative: another run of the same original; for keys in `free`, which the original does not
            determine, its value is as good as that of `expected`.
        towers: how many losses each stage is to have, so that a tower that was not compared is named.
        lockstep: `actual` started every run from the state of `expected`.
        growing: the limits grow with the number of updates made so far (see above).
    """
    result = Comparison()
    updates = dict.fromkeys(range(len(stages)), 0)
    made = {run.index: run for run in actual.runs}
    other = {run.index: run for run in alternative.runs} if alternative else {}
    noisy: set[str] = set()
    limits = Limits({key for key, each in expected.variables().items() if each["trainable"]})
    state = expected.initial()
    own = state
    before_run = -1
    compare_variables(expected, actual, result)
    for run in expected.runs:
        growth = 1 + sum(updates.values()) if growing else 1
        steps = {stage: updates[stage] for stage in run.stages}
        for stage in run.stages:
            updates[stage] += 1
        if run.index not in made:
            result.differences.append(
                Difference(
                    step=steps[run.stages[0]],
                    stage=run.stages[0],
                    level="structure",
                    name="training run",
                    replica=None,
                    expected=f"training run {run.index} updates {stages[run.stages[0]]}",
                    actual=f"the program ended after {len(made)} training runs",
                    error=float("inf"),
                    key="",
                    run=run.index,
                ),
            )
            break
        if before_run != run.index - 1:  # Runs between were not recorded; both started from this.
            state = {**state, **expected.before(run)}
            own = state
        elif run is not expected.runs[0]:  # What the programs did in between.
            state = {**state, **expected.before(run)}
            own = {**own, **actual.before(run)}
        theirs = alternative.arrays(other[run.index]) if alternative and run.index in other else {}
        wanted, found = expected.arrays(run), actual.arrays(made[run.index])
        pairs = Pairs(
            run,
            steps,
            wanted,
            beside(expected, actual, wanted, found),
            theirs,
            state,
            state if lockstep else {**state, **own},
            growth,
            stages,
        )
        noisy.update(key for key in theirs if key in free)
        result.runs += 1
        for stage in run.stages:
            result.updates[stage] = result.updates.get(stage, 0) + 1
        _compare_run(pairs, result, tolerance, noisy, limits)
        compare_updates(pairs, made[run.index], towers, result)
        if any(difference.level == "structure" for difference in result.differences):
            break
        state, own, before_run = _state(pairs.expected), _state(pairs.actual), run.index
    _compare_number_of_runs(expected, actual, max(updates.values(), default=0), result)
    list_not_compared(expected, stages, updates, set(result.times), result, towers)
    counts = [count for count in updates.values() if count]
    result.steps = min(counts) if counts else 0
    return result


def _compare_number_of_runs(expected: Trace, actual: Trace, step: int, result: Comparison) -> None:
    """As many training runs as the original made to its own end, also after the last that was recorded."""
    if expected.meta["ended"] != "program":
        return
    if any(difference.level == "structure" for difference in result.differences):
        return
    wanted = max(len(expected.runs), expected.meta.get("training_runs", 0))
    found = actual.meta.get("training_runs", 0)
    if actual.meta.get("extra_runs"):
        said = "more training runs"
    elif actual.meta["ended"] == "program" and 0 < found < wanted:
        said = f"{found} training runs"
    else:
        return
    result.differences.append(
        Difference(
            step=step,
            stage=None,
            level="structure",
            name="training runs",
            replica=None,
            expected=f"{wanted} training runs, then the end",
            actual=said,
            error=float("inf"),
            key="",
            run=len(expected.runs),
        ),
    )


def _state(arrays: Arrays) -> Arrays:
    return {k[len("state/") :]: value for k, value in arrays.items() if k.startswith("state/")}


def _compare_run(
    pairs: Pairs,
    result: Comparison,
    tolerance: float,
    noisy: set[str],
    limits: Limits,
) -> None:
    limits.start(pairs.expected, pairs.actual, pairs.before)
    for key, wanted in pairs.expected.items():
        quantity = quantity_of(key)
        if quantity is None:
            continue
        found = pairs.actual.get(key)
        stage, name, replica = describe_key(key)
        if stage is None or stage not in pairs.steps:
            stage = pairs.run.stages[0]
        if found is None:
            missing = missing_value(pairs, key, wanted, stage, result)
            if missing is not None:
                result.differences.append(missing)
            continue
        _note_not_finite(pairs, key, wanted, found, result)
        difference = apart(wanted, found)
        spread = 0.0
        if key in noisy and key in pairs.alternative:
            difference = min(difference, apart(pairs.alternative[key], found))
            spread = apart(wanted, pairs.alternative[key])
        before = result.max_abs[quantity]
        result.max_abs[quantity] = difference if before is None else max(before, difference)
        error = _error(pairs, key, wanted, found, difference, tolerance, key in noisy, limits)
        own_stage = describe_key(key)[0]
        result.figures.add(level_of(key), own_stage, name, pairs.run.index, error)
        if replica is not None:
            losses = (wanted, found)
            result.figures.add_loss(pairs.run.index, stage, pairs.steps[stage], replica, losses)
        result.count(level_of(key), key, pairs.run.index, error if error <= tolerance else 0.0)
        if error > tolerance and not difference <= 2 * spread < float("inf"):
            shown = _worst(wanted, found)
            result.differences.append(
                Difference(
                    step=pairs.steps[stage],
                    stage=stage,
                    level=level_of(key),
                    name=name,
                    replica=replica,
                    expected=shown[0],
                    actual=shown[1],
                    error=error,
                    key=key,
                    run=pairs.run.index,
                )
            )
    for key, found in pairs.actual.items():
        stage, name, _ = describe_key(key)
        if key.startswith("gradient/") and key not in pairs.expected:
            result.differences.append(
                Difference(
                    step=pairs.steps.get(stage or 0, 0),
                    stage=stage if stage is not None and stage < 1000 else pairs.run.stages[-1],
                    level="gradient",
                    name=name,
                    replica=None,
                    expected=None,
                    actual=largest(found),
                    error=float("inf"),
                    key=key,
                    run=pairs.run.index,
                ),
            )


def _error(
    pairs: Pairs,
    key: str,
    wanted: Array,
    found: Array,
    difference: float,
    tolerance: float,
    undetermined: bool,
    limits: Limits,
) -> float:
    """The difference in units that the tolerance is in."""
    if difference == 0:
        error = 0.0
    elif exact(wanted) or exact(found):
        return float("inf")
    else:
        error = limits.value_error(key, wanted, found, difference)
    name = key[len("state/") :]
    if not key.startswith("state/") or undetermined or difference == float("inf"):
        return error / pairs.growth
    before, own = pairs.before.get(name), pairs.own_before.get(name)
    if before is None or own is None or before.shape != wanted.shape or exact(wanted):
        return error / pairs.growth
    if own.shape != wanted.shape:
        return error / pairs.growth
    allowed = limits.of_change(key, wanted, tolerance * pairs.growth)
    changed = change_error((before, wanted), (own, found), allowed, pairs.growth)
    if before is own:  # From the same state: a change that is right makes a value that is right.
        return changed / pairs.growth
    return max(error, changed) / pairs.growth


def _note_not_finite(
    pairs: Pairs, key: str, wanted: Array, found: Array, result: Comparison
) -> None:
    """Values that are NaN or infinite in both programs say nothing about whether those are equal."""
    if wanted.shape != found.shape or not not_finite(wanted, found):
        return
    before = pairs.before.get(key[len("state/") :]) if key.startswith("state/") else None
    if before is not None and np.array_equal(before, wanted):
        return  # A constant, say a mask of minus infinity.
    said = f"{key_said(pairs, key)}: not finite in both programs"
    if not any(item.startswith(said) for item in result.not_compared):
        result.not_compared.append(f"{said} from training run {pairs.run.index} on")


def disagreement(first: Trace, second: Trace, tolerance: float) -> dict[str, float]:
    """Keys whose values two runs of the same original do not agree on beyond the tolerance, and how far."""
    keys: dict[str, float] = {}
    others = {run.index: run for run in second.runs}
    limits = Limits({key for key, each in first.variables().items() if each["trainable"]})
    for run in first.runs:
        if run.index not in others:
            continue
        again = second.arrays(others[run.index])
        arrays = first.arrays(run)
        limits.start(arrays, {}, {})
        for key, array in arrays.items():
            if key not in again or key.startswith(("input/", "output/")):
                continue
            difference = apart(array, again[key])
            error = limits.value_error(key, array, again[key], difference) if difference else 0.0
            if error > tolerance:
                keys[key] = max(keys.get(key, 0.0), error)
    return keys


def _worst(expected: Array, actual: Array) -> tuple[float | str, float | str]:
    if expected.shape != actual.shape:
        return f"shape {list(expected.shape)}", f"shape {list(actual.shape)}"
    if expected.dtype.kind not in "fiub":
        return "another value", "another value"
    first, second = expected.astype(np.float64).ravel(), actual.astype(np.float64).ravel()
    apart = np.abs(first - second)
    at = int(np.argmax(np.where(np.isfinite(apart), apart, np.inf)))
    return float(first[at]), float(second[at])
