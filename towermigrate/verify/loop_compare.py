"""What a loop-style program does around its steps: what variables begin with, what the host does to them and gets back.

The recorded state is loaded before a variable is used first (in lock-step, before every step), so neither shows in a
step. The replay keeps what was there before.
"""

from __future__ import annotations

from collections.abc import Iterator

from towermigrate.verify.causes.runs import stages_made
from towermigrate.verify.comparison import Difference
from towermigrate.verify.probe.recording import read_arrays, same
from towermigrate.verify.programs import Recorded
from towermigrate.verify.session_compare import (
    between_runs,
    relative_error,
    state_after,
    state_difference,
)
from towermigrate.verify.trace import Array, Arrays, Trace


def loop_differences(
    recorded: Recorded, made: Trace, tolerance: float, *, lockstep: bool, growing: bool
) -> list[Difference]:
    """Where the rewritten program begins with other values, does something else between two runs, or gets other values.

    Args:
        lockstep: every run started from the original's state, so that what happens between two runs can be
            told from what came of the one before.
        growing: roundings that add up are forgiven; what runs gave back was held before.
    """
    found = [*_stages(recorded, made), *_initial(recorded, made, tolerance)]
    if lockstep:
        found += _between(recorded, made, tolerance)
    if not growing:
        found += _returned(recorded, made, tolerance)
    return found


def _stages(recorded: Recorded, made: Trace) -> Iterator[Difference]:
    """The first run that trains another stage than the original's."""
    trained = stages_made(recorded.first, made) or []
    steps: dict[int, int] = {}
    for run, own, stages in zip(recorded.first.runs, made.runs, trained, strict=False):
        if run.index != own.index:
            return
        if stages != run.stages:
            yield Difference(
                step=steps.get(run.stages[0], 0),
                stage=run.stages[0],
                level="structure",
                name="training run",
                replica=None,
                expected=_said_stages(recorded, run.stages),
                actual=_said_stages(recorded, stages),
                error=float("inf"),
                key="",
                run=run.index,
            )
            return
        steps.update((stage, steps.get(stage, 0) + 1) for stage in run.stages)


def _said_stages(recorded: Recorded, stages: tuple[int, ...]) -> str:
    return "updates " + ", ".join(recorded.stages[stage] for stage in stages)


def _initial(recorded: Recorded, made: Trace, tolerance: float) -> Iterator[Difference]:
    """Values at the first run that uses a variable, where two runs of the original have the same there."""
    own = made.initial()
    first_seen: dict[str, int] = made.meta.get("first_seen", {})
    states = dict(_before_runs(recorded.first, set(first_seen.values())))
    again = recorded.second.initial()
    for key, wanted in recorded.first.initial().items():
        index = first_seen.get(key)
        if index is None or key not in own or not same(again.get(key), wanted):
            continue
        wanted = states.get(index, {}).get(key, wanted)
        error = relative_error(wanted, own[key])
        if error > tolerance:
            run = next(run for run in recorded.first.runs if run.index == index)
            yield state_difference("initial", run, 0, key, wanted, own[key], error)


def _before_runs(trace: Trace, indices: set[int]) -> Iterator[tuple[int, Arrays]]:
    """The state before some of the runs, as far as it was recorded."""
    state = trace.initial()
    for run in trace.runs:
        state = {**state, **trace.before(run)}
        if run.index in indices:
            yield run.index, state
        state = {**state, **state_after(trace, run)}


def _between(recorded: Recorded, made: Trace, tolerance: float) -> Iterator[Difference]:
    by_index = {run.index: run for run in made.runs}
    steps: dict[int, int] = {}
    before: tuple[int, Arrays, Arrays] | None = None
    for run in recorded.first.runs:
        if run.index not in by_index:
            return
        here = {stage: steps.get(stage, 0) for stage in run.stages}
        if before is not None and before[0] == run.index - 1:
            sides = (recorded.first, before[1]), (made, before[2])
            yield from between_runs(recorded, run, sides, here, tolerance)
        steps.update((stage, count + 1) for stage, count in here.items())
        before = run.index, state_after(recorded.first, run), state_after(made, by_index[run.index])


def _returned(recorded: Recorded, made: Trace, tolerance: float) -> Iterator[Difference]:
    """What training runs gave back, where both programs get as many numbers.

    Rewritten steps may give them in another order, and what is fetched and not used need not come back at all.
    """
    by_index = {run.index: run for run in made.runs}
    steps: dict[int, int] = {}
    for run in recorded.first.runs:
        if run.index not in by_index:
            return
        stage = run.stages[0]
        wanted, found = recorded.first.arrays(run), made.arrays(by_index[run.index])
        again = read_arrays(str(recorded.second.folder), f"run_{run.index:05d}")
        if not any(key.startswith("output/") for key in again):
            pair = _unlike(wanted, found, tolerance)
            if pair is not None:
                yield Difference(
                    step=steps.get(stage, 0),
                    stage=stage,
                    level="output",
                    name="a value that the training run gives back",
                    replica=None,
                    expected=_first(pair[0]),
                    actual=_first(pair[1]),
                    error=relative_error(pair[0], pair[1]),
                    key=pair[2],
                    run=run.index,
                )
        steps.update((each, steps.get(each, 0) + 1) for each in run.stages)


def _unlike(wanted: Arrays, found: Arrays, tolerance: float) -> tuple[Array, Array, str] | None:
    """An original's value that the rewritten run does not give, and what it gives in place of it."""
    theirs = [key for key in wanted if key.startswith("output/")]
    left = [key for key in found if key.startswith("output/")]
    if len(theirs) != len(left):
        return None
    missing = []
    for key in theirs:
        losses = _losses_of(wanted, wanted[key])
        like = next(
            (
                each
                for each in left
                # A loss that differs is told at its own level.
                if losses & _losses_of(found, found[each])
                or relative_error(wanted[key], found[each]) <= tolerance
            ),
            None,
        )
        if like is None:
            missing.append(key)
        else:
            left.remove(like)
    if not missing:
        return None
    shapes = [each for each in left if found[each].shape == wanted[missing[0]].shape]
    other = (shapes or left)[0]
    return wanted[missing[0]], found[other], other


def _losses_of(arrays: Arrays, value: Array) -> set[str]:
    return {key for key in arrays if key.startswith("loss/") and same(arrays[key], value)}


def _first(array: Array) -> float | str:
    return float(array.ravel()[0]) if array.size else "nothing"
