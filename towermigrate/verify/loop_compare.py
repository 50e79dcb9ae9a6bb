"""What a loop-style program has by itself around its steps: what variables begin with, and what the host does to them.

The recorded state is loaded before a variable is used first (in lock-step, before every step), so neither shows in a
step. The replay keeps what was there before.
"""

from __future__ import annotations

from collections.abc import Iterator

from towermigrate.verify.comparison import Difference
from towermigrate.verify.probe.recording import same
from towermigrate.verify.programs import Recorded
from towermigrate.verify.session_compare import (
    between_runs,
    relative_error,
    state_after,
    state_difference,
)
from towermigrate.verify.trace import Arrays, Trace


def loop_differences(
    recorded: Recorded, made: Trace, tolerance: float, *, lockstep: bool
) -> list[Difference]:
    """Where the rewritten program begins with other values, or does something else between two runs.

    Args:
        lockstep: every run started from the original's state, so that what happens between two runs can be
            told from what came of the one before.
    """
    found = list(_initial(recorded, made, tolerance))
    if lockstep:
        found += _between(recorded, made, tolerance)
    return found


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
