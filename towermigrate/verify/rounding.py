"""Ask the original how far a rounding carries in it: run it again with its weights moved a little.

Every weight is moved by a part of its size, up or down at random, before each run: from the recorded state of the
step, or free-running, where the moves add up. Trials come in pairs, the second with every move the other way: of a
unit that is within a rounding of its threshold, one of the two passes it. Where a pair is not enough, more are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Roundings of float32 and of other kernels are not larger, whatever tolerance was asked for.
_LARGEST = 1e-5
# Single steps: the weights pass a threshold that is a rounding away in one of two trials, unless the move hardly
# touches that unit: 1 in 10 at a tolerance of ten roundings. Three pairs leave 1 in 1000.
_PAIRS = 3


@dataclass(frozen=True)
class Trial:
    """One run of the original with moved weights: by what part of their size, with which random numbers."""

    number: int
    size: float
    seed: int
    adds_up: bool

    @property
    def name(self) -> str:
        return f"moved-{self.number}{'-freely' if self.adds_up else ''}"

    def config(self) -> dict[str, object]:
        """What the original's probe is told."""
        return {
            "rounding": self.size,
            "rounding_seed": self.seed,
            "rounding_adds_up": self.adds_up,
        }


def trials(tolerance: float, *, adds_up: bool) -> Iterator[tuple[Trial, Trial]]:
    """Pairs of trials, each to be made where those before it were not enough.

    Free-running, the last one moves the weights by 1e-5, since few decisions are near in few steps.
    """
    for pair in range(_PAIRS):
        size = min(tolerance, _LARGEST)
        if adds_up and pair == _PAIRS - 1:
            size = _LARGEST
        first, second = (
            Trial(2 * pair + way, -size if way else size, 1_000_003 * pair, adds_up)
            for way in (0, 1)
        )
        yield first, second
