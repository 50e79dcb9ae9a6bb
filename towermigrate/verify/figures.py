"""The figures of every step that a comparison made: what pages draw, and what programs read from the JSON report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from towermigrate.verify.trace import Array


@dataclass(frozen=True)
class Loss:
    """The loss of one tower in one training run, in both programs."""

    run: int
    stage: int
    step: int
    tower: int
    expected: float
    actual: float


@dataclass
class Figures:
    """Every loss, and by array the error at every training run, in units that the tolerance is in."""

    losses: list[Loss] = field(default_factory=list)
    arrays: dict[tuple[str, int | None, str], dict[int, float]] = field(default_factory=dict)

    def add(self, level: str, stage: int | None, name: str, run: int, error: float) -> None:
        """Note how far apart an array was at a training run; the larger one where several towers have it."""
        errors = self.arrays.setdefault((level, stage, name), {})
        errors[run] = max(error, errors.get(run, 0.0))

    def add_loss(
        self, run: int, stage: int, step: int, tower: int, pair: tuple[Array, Array]
    ) -> None:
        """Note a tower's loss; of one that is no scalar the mean."""
        if all(np.issubdtype(each.dtype, np.number) and each.size for each in pair):
            expected, actual = (float(np.mean(each)) for each in pair)
            self.losses.append(Loss(run, stage, step, tower, expected, actual))

    def to_json(self, stages: tuple[str, ...]) -> dict[str, Any]:
        """The `figures` of a run in verify's JSON document.

        Keys: `losses`, one entry per run, stage and tower; `arrays`, one per level and array with `errors`, pairs of
        a training run's number and the error there.
        """

        def named(stage: int | None) -> str | None:
            return stages[stage] if stage is not None and stage < len(stages) else None

        return {
            "losses": [
                {
                    "run": each.run, "stage": named(each.stage), "step": each.step, "tower": each.tower,
                    "expected": _short(each.expected, 9), "actual": _short(each.actual, 9),
                }
                for each in self.losses
            ],
            "arrays": [
                {
                    "level": level, "stage": named(stage), "name": name,
                    "errors": [[run, _short(error, 3)] for run, error in sorted(errors.items())],
                }
                for (level, stage, name), errors in sorted(
                    self.arrays.items(), key=lambda item: (item[0][0], item[0][1] or 0, item[0][2])
                )
            ],
        }  # fmt: skip


def _short(value: float, digits: int) -> float | str:
    """A number of few digits, since there are many; JSON knows no infinity and no NaN."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else str(value)
