"""What the causes are read from: both recordings at the training run of the first difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from towermigrate.verify.comparison import Comparison, Difference, shared_slots
from towermigrate.verify.trace import Array, Arrays, Run, Trace

# How close a ratio or a replayed value must come to what a cause predicts: far from float32's rounding, and far
# closer than chance.
CLOSE = 1e-3
# Of a whole array that is predicted, in parts of its size.
EXACT = 1e-4


@dataclass(frozen=True)
class Diagnosis:
    """A likely cause and the numbers that speak for it."""

    cause: str
    evidence: str


@dataclass(frozen=True)
class Case:
    """One first difference. `before` is the state that the run began with, the same in both programs.

    `lockstep` says that every run of `actual` started from the original's state.
    """

    expected: Trace
    actual: Trace
    comparison: Comparison
    stages: tuple[str, ...]
    towers: int
    lockstep: bool
    first: Difference
    run: Run
    made: Run
    wanted: Arrays
    found: Arrays
    before: Arrays

    @property
    def here(self) -> list[Difference]:
        """All differences of this training run."""
        return [each for each in self.comparison.differences if each.run == self.run.index]

    def of(self, level: str) -> list[Difference]:
        return [each for each in self.here if each.level == level]

    def stage(self, number: int | None) -> str:
        if number is None or number >= len(self.stages):
            return "a stage that the original has not"
        return f"stage {self.stages[number]}"

    def gradients(self, stage: int) -> dict[str, tuple[Array, Array]]:
        """The averaged gradients of both programs by variable, where both have one of the same shape."""
        prefix = f"gradient/{stage}/"
        return {
            key[len(prefix) :]: (real(value), real(self.found[key]))
            for key, value in self.wanted.items()
            if key.startswith(prefix) and key in self.found and self.found[key].shape == value.shape
        }

    def tower_gradients(self, stage: int) -> dict[int, dict[str, Array]]:
        """Each tower's own gradients: the original's, or where it kept none at this step the rewritten program's."""
        for arrays in (self.wanted, self.found):
            found: dict[int, dict[str, Array]] = {}
            for key, value in arrays.items():
                if key.startswith(f"tower_gradient/{stage}/"):
                    _, _, tower, name = key.split("/", 3)
                    found.setdefault(int(tower), {})[name] = real(value)
            if len(found) == self.towers:
                return found
        return {}

    def losses(self) -> dict[tuple[int, int], tuple[float, float]]:
        """The losses of both programs by stage and tower."""
        return {
            (int(key.split("/")[1]), int(key.split("/")[2])): (
                float(np.mean(value)), float(np.mean(self.found[key])),
            )
            for key, value in self.wanted.items()
            if key.startswith("loss/") and key in self.found
        }  # fmt: skip

    def pairs(self) -> Iterator[tuple[Run, Arrays, Arrays, Arrays, Arrays]]:
        """Every training run that both made: its arrays, and the states before it (the original's, its own)."""
        made = {run.index: run for run in self.actual.runs}
        state = own = self.expected.initial()
        for run in self.expected.runs:
            if run.index not in made or made[run.index].stages != run.stages:
                return
            state = {**state, **self.expected.before(run)}
            own = state if self.lockstep else {**own, **self.actual.before(run)}
            wanted = self.expected.arrays(run)
            found = shared_slots(wanted, self.actual.arrays(made[run.index]))
            yield run, wanted, found, state, own
            state, own = states(wanted, state), states(found, own)


def case_of(
    expected: Trace,
    actual: Trace,
    comparison: Comparison,
    stages: tuple[str, ...],
    towers: int,
    lockstep: bool,
) -> Case | None:
    """The case of the first difference; None where one of the programs has no such training run."""
    first = comparison.first()
    if first is None:
        return None
    run = next((run for run in expected.runs if run.index == first.run), None)
    made = next((each for each in actual.runs if each.index == first.run), None)
    if run is None or made is None:
        return None
    before = expected.initial()
    for earlier in expected.runs:
        before = {**before, **expected.before(earlier)}
        if earlier.index == run.index:
            break
        before = states(expected.arrays(earlier), before)
    wanted = expected.arrays(run)
    found = shared_slots(wanted, actual.arrays(made))
    return Case(
        expected, actual, comparison, stages, towers, lockstep, first, run, made, wanted, found, before
    )  # fmt: skip


def states(arrays: Arrays, before: Arrays) -> Arrays:
    """The state after a run, by key without `state/`."""
    return {**before, **{k[6:]: v for k, v in arrays.items() if k.startswith("state/")}}


def real(array: Any) -> Array:
    return np.asarray(array).astype(np.float64) if np.asarray(array).dtype.kind in "fiub" else array


def fit(first: Array, second: Array) -> float | None:
    """The factor that makes `second` of `first`, None where no factor does."""
    one, other = np.ravel(first), np.ravel(second)
    square = float(one @ one) if one.shape == other.shape else 0.0
    if not square > 0:
        return None
    factor = float(one @ other) / square
    return factor if near(factor * one, other) else None


def near(predicted: Array, found: Array, part: float = EXACT) -> bool:
    """Whether an array is what was predicted, but for a small part of its size (sum of squares)."""
    if np.shape(predicted) != np.shape(found):
        return False
    off = np.asarray(predicted, np.float64) - np.asarray(found, np.float64)
    size = float(np.sqrt(np.sum(np.square(np.asarray(found, np.float64)))))
    return float(np.sqrt(np.sum(off * off))) <= part * size


def joined(arrays: Iterable[Array]) -> Array:
    return np.concatenate([np.ravel(each) for each in arrays] or [np.zeros(0)])


def few(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:4]) + (f" and {len(listed) - 4} more" if len(listed) > 4 else "")


def at_bounds(theirs: Array, ours: Array, what: str = "weights") -> str | None:
    """What clips the numbers that differ, by their sizes: those of one program all stand at one bound."""
    if not theirs.size:
        return None
    if _is_bound(theirs) and (ours > theirs.max()).all():
        if _is_bound(ours[ours >= ours.max() * (1 - 1e-6)]):
            return f"{what} are clipped to other bounds"
        return f"{what} are not clipped that the original clips"
    if _is_bound(ours) and (theirs > ours.max()).all():
        if _is_bound(theirs[theirs >= theirs.max() * (1 - 1e-6)]):
            return f"{what} are clipped to other bounds"
        return f"{what} are clipped that the original leaves"
    return None


def _is_bound(sizes: Array) -> bool:
    """Whether several numbers stand at one bound."""
    return sizes.size > 1 and np.allclose(sizes, sizes.max(), rtol=1e-6, atol=0)
