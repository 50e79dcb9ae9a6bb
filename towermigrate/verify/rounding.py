"""How far rounding carries in the original itself.

A ReLU or a max-pooling decides by a comparison. Where two values are within a rounding of each other, another
kernel, or another order of a sum, decides otherwise, and a gradient jumps: one decision in a batch of the cifar10
tutorial moves all of conv1's gradient by 0.7 %, while every other gradient agrees to 1e-6 (TensorFlow 1.15.5 against
2.21, five steps: eight such jumps). No fixed tolerance can tell that from a fault. So the original is asked: run
again with its own inputs, every weight moved by `tolerance` of its size, up or down at random, before each run
(free-running by no less than 1e-5, since few decisions flip by chance in few steps; the single steps are held). A
difference that is not much larger than what this does to the original is what the original would call rounding.
A fault stays a fault: a missing division is off by the whole size, and most gradients do not jump at all.
"""

from __future__ import annotations

from towermigrate.verify.compare import compare
from towermigrate.verify.comparison import Comparison
from towermigrate.verify.trace import Trace

# A jump that rounding makes is a small part of a gradient; beyond this nothing is asked.
_LARGEST_JUMP = 0.25
_LEAST_FREE = 1e-5


def may_be_rounding(result: Comparison, *, adds_up: bool) -> bool:
    """Whether all differences are of a size that jumps have (free-running, Adam makes any size of them)."""
    largest = float("inf") if adds_up else _LARGEST_JUMP
    return all(each.key and each.error < largest for each in result.differences)


def moved_by(tolerance: float, *, adds_up: bool) -> float:
    """By what part of its size each weight is moved."""
    return max(tolerance, _LEAST_FREE) if adds_up else tolerance


def jumps(
    first: Trace, moved: Trace, stages: tuple[str, ...], tolerance: float, *, adds_up: bool
) -> dict[str, float]:
    """By how much each key of the original moves with its weights, in units that a tolerance is in.

    Args:
        moved: the original's run with its weights moved, from the recorded state of each step, or with
            `adds_up` free-running.
    """
    result = compare(first, moved, stages, tolerance, lockstep=not adds_up, growing=adds_up)
    largest: dict[str, float] = {}
    for each in result.differences:
        largest[each.key] = max(each.error, largest.get(each.key, 0.0))
    return largest
