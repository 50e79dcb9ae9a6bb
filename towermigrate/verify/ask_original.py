"""Take out of a comparison what roundings explain, asking the original how far they carry in it where they may.

Each question is two more runs of the original (`rounding.py`), so what no rounding can be is never asked about.
"""

from __future__ import annotations

from collections.abc import Callable

from towermigrate.verify.comparison import Comparison
from towermigrate.verify.excuses import (
    Judgement,
    as_far_as_moved,
    before_what_is_none,
    cannot_be_rounding,
    free_running,
    may_be_moved,
    single_steps,
)
from towermigrate.verify.rounding import Trial, trials
from towermigrate.verify.trace import Trace

# The recordings of the original that a pair of trials makes, none where it cannot be asked.
Ask = Callable[[tuple[Trial, Trial]], list[Trace]]


def excuse_steps(
    first: Trace,
    made: Trace,
    result: Comparison,
    tolerance: float,
    ask: Ask,
    *,
    other_kernels: bool,
) -> None:
    """Take out of the differences of single steps what roundings explain.

    Args:
        first: the original's recording.
        made: the rewritten program's, every step from the original's state.
        result: what comparing the two found.
        other_kernels: whether the two rounded otherwise at every step: another TensorFlow, or XLA.
    """
    tried: list[Trace] = []
    judgement = Judgement(refused=cannot_be_rounding(first, made, result, tolerance))
    jumps = not judgement.refused
    # Only other kernels round otherwise at every step; else an array that is off at most steps is wrong.
    if not jumps and not (other_kernels and may_be_moved(first, made, result, tolerance)):
        result.excuse([], judgement.refused)
        early = before_what_is_none(first, made, result, tolerance, other_kernels=other_kernels)
        if early is not None:
            excuse_steps(first, made, early, tolerance, ask, other_kernels=other_kernels)
            result.excuse(early.excused, early.refused)
        return
    for pair in trials(tolerance, adds_up=False):
        tried += ask(pair)
        size = pair[0].size
        judgement = single_steps(first, made, result, tolerance, tried, size)
        if not judgement.refused:
            break
        if not other_kernels:
            continue
        moved = as_far_as_moved(first, made, result, tolerance, tried, size)
        result.excuse(moved, {})
        judgement = single_steps(first, made, result, tolerance, tried, size)
        if not judgement.refused or not (jumps or moved or result.excused):
            break
    result.excuse(judgement.excuses, judgement.refused)


def excuse_trajectory(
    first: Trace, made: Trace, result: Comparison, tolerance: float, ask: Ask
) -> list[Trace]:
    """Take out of the differences of the free run what the original carries along as far, and give back its trials."""
    tried: list[Trace] = []
    for pair in trials(tolerance, adds_up=True):
        if not result.differences:
            break
        tried += ask(pair)
        judgement = free_running(first, made, result, tried, pair[0].size)
        result.excuse(judgement.excuses, judgement.refused)
    return tried
