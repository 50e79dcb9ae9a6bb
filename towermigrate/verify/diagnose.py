"""From a difference to its likely cause: the patterns that faults of a tower rewrite leave in the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from towermigrate.verify.comparison import Comparison, Difference
from towermigrate.verify.trace import Arrays, Run, Trace

_CLOSE = 1e-3


@dataclass(frozen=True)
class Diagnosis:
    """A likely cause and the numbers that speak for it."""

    cause: str
    evidence: str


def diagnose(
    expected: Trace,
    actual: Trace,
    comparison: Comparison,
    stages: tuple[str, ...],
    towers: int,
) -> list[Diagnosis]:
    """Likely causes of the first difference, the surest first."""
    first = comparison.first()
    if first is None:
        return []
    run = next((run for run in expected.runs if run.index == first.run), None)
    made = next((each for each in actual.runs if each.index == first.run), None)
    if first.level == "trajectory":
        return [
            Diagnosis(
                "rounding that this training amplifies, not a fault of one step",
                "from the original's state every single step is equal; fewer --steps or a larger "
                "--tolerance would show how fast it grows",
            )
        ]
    if first.level == "initial":
        return [
            Diagnosis(
                "another initial value: the initializer, its settings, or a restore that did not happen",
                f"{first.name} before anything was loaded; the original starts with the same each time",
            )
        ]
    if run is None or made is None:
        return []
    wanted, found = expected.arrays(run), actual.arrays(made)
    here = [difference for difference in comparison.differences if difference.run == first.run]
    causes: list[Diagnosis] = []
    causes += _inputs(first)
    if first.key.startswith("between/"):
        causes.append(
            Diagnosis(
                "what the program runs between two training runs does something else, or is gone",
                f"{first.name}: assigned, clipped or restored after training run {first.run - 1}",
            )
        )
    if first.level == "output":
        causes += _returned(first, wanted, found)
    if causes:
        return causes  # All else follows from it.
    causes += _scaled(wanted, found, here, stages, towers)
    causes += _applied_beside(wanted, found, stages)
    causes += _only_some_towers(wanted, found, here, stages)
    causes += _moved(expected, run, wanted, found, here)
    causes += _losses(wanted, found, here, towers)
    if made.replicas_differ:
        causes.append(
            Diagnosis(
                "the replicas hold different values of one variable",
                f"{', '.join(list(made.replicas_differ)[:4])} after training run {run.index}",
            )
        )
    if not causes and first.level == "update":
        causes.append(
            Diagnosis(
                "another optimizer, optimizer formula or hyperparameter",
                f"the gradients of this step agree, {first.name} after the update does not",
            )
        )
    return causes


def _inputs(first: Difference) -> list[Diagnosis]:
    if not first.key.startswith("input/"):
        return []
    return [
        Diagnosis(
            "a tower gets rows that the original gave to another, or other rows",
            f"{first.name} of tower {first.replica}: {first.actual}",
        )
    ]


def _returned(first: Difference, wanted: Arrays, found: Arrays) -> list[Diagnosis]:
    actual = found.get(first.key)
    if actual is None:
        return []
    theirs = [
        key for key, value in wanted.items() if key.startswith("loss/") and _near(value, actual)
    ]
    evidence = f"{first.name}: training agrees up to here"
    if theirs:
        return [
            Diagnosis(
                f"the loss of tower {theirs[0].rpartition('/')[2]} is given back in place of another's",
                evidence,
            )
        ]
    return [Diagnosis("something else is fetched, or computed for the program to see", evidence)]


def _scaled(
    wanted: Arrays, found: Arrays, here: list[Difference], stages: tuple[str, ...], towers: int
) -> list[Diagnosis]:
    by_stage: dict[int, list[float]] = {}
    for difference in here:
        if difference.level == "gradient" and difference.stage is not None:
            ratio = _ratio(wanted.get(difference.key), found.get(difference.key))
            if ratio is not None:
                by_stage.setdefault(difference.stage, []).append(ratio)
    causes = []
    for stage, ratios in by_stage.items():
        middle = float(np.median(ratios))
        if towers > 1 and abs(middle / towers - 1) < _CLOSE:
            causes.append(
                Diagnosis(
                    f"the division by the number of towers is missing (sum applied, not mean; ×{towers})",
                    f"stage {stages[stage]}: gradients are {middle:.4f} times the original's "
                    f"({len(ratios)} variables). Use tm.tower_gradients, not the optimizer's own.",
                )
            )
        elif towers > 1 and abs(middle * towers - 1) < _CLOSE:
            causes.append(
                Diagnosis(
                    "the gradients are divided by the number of towers twice",
                    f"stage {stages[stage]}: gradients are 1/{1 / middle:.4f} of the original's "
                    f"({len(ratios)} variables).",
                )
            )
        elif abs(middle - 1) > _CLOSE and np.allclose(ratios, middle, rtol=_CLOSE):
            causes.append(
                Diagnosis(
                    "the loss or its gradients are scaled",
                    f"stage {stages[stage]}: every gradient is {middle:.4f} times the original's.",
                )
            )
    return causes


def _applied_beside(wanted: Arrays, found: Arrays, stages: tuple[str, ...]) -> list[Diagnosis]:
    """Gradients for variables that the original's stage did not apply any to."""
    causes = []
    for stage, name in enumerate(stages):
        prefix = f"gradient/{stage}/"
        ours = {key for key in found if key.startswith(prefix)}
        theirs = {key for key in wanted if key.startswith(prefix)}
        if not theirs or not ours:
            continue
        beside = sorted(key[len(prefix) :] for key in ours - theirs)
        if beside:
            zero = all(not np.any(found[prefix + variable]) for variable in beside)
            causes.append(
                Diagnosis(
                    "zeros are applied to variables that the stage leaves out (None became zeros); "
                    "a stateful optimizer still moves them"
                    if zero
                    else "the stage's variable list has variables that the original's has not",
                    f"stage {name}: {_few(beside)}",
                )
            )
        lacking = sorted(key[len(prefix) :] for key in theirs - ours)
        if lacking:
            causes.append(
                Diagnosis(
                    "the stage's variable list lacks variables of the original's",
                    f"stage {name}: no gradient for {_few(lacking)}",
                )
            )
    return causes


def _only_some_towers(
    wanted: Arrays, found: Arrays, here: list[Difference], stages: tuple[str, ...]
) -> list[Diagnosis]:
    causes = []
    for difference in here:
        if (
            difference.level != "gradient"
            or difference.stage is None
            or not difference.stage < 1000
        ):
            continue
        actual = found.get(difference.key)
        if actual is None:
            continue
        for key, local in wanted.items():
            kind, _, rest = key.partition("/")
            if kind != "tower_gradient":
                continue
            stage, tower, name = rest.split("/", 2)
            if int(stage) == difference.stage and name == difference.name and _near(local, actual):
                if not _near(local, wanted[difference.key]):
                    causes.append(
                        Diagnosis(
                            f"the gradient of tower {tower} is applied, not the average",
                            f"stage {stages[difference.stage]}, {name}",
                        )
                    )
        if causes:
            break
    return causes


def _moved(
    expected: Trace, run: Run, wanted: Arrays, found: Arrays, here: list[Difference]
) -> list[Diagnosis]:
    """Variables that the original's step left alone."""
    before = expected.initial()
    for earlier in expected.runs:
        if earlier.index == run.index - 1:
            before = {
                key[len("state/") :]: value
                for key, value in expected.arrays(earlier).items()
                if key.startswith("state/")
            }
    moved = []
    stayed = []
    for difference in here:
        key = difference.key.partition("state/")[2]
        if difference.level != "update" or key not in before or difference.key not in found:
            continue
        if np.array_equal(before[key], wanted[difference.key]):
            moved.append(difference.name)
        elif np.array_equal(before[key], found[difference.key]):
            stayed.append(difference.name)
    causes = []
    if moved:
        causes.append(
            Diagnosis("variables move that the original's step leaves alone", _few(moved))
        )
    if stayed:
        causes.append(Diagnosis("variables stay that the original's step moves", _few(stayed)))
    return causes


def _losses(wanted: Arrays, found: Arrays, here: list[Difference], towers: int) -> list[Diagnosis]:
    losses = [difference for difference in here if difference.key.startswith("loss/")]
    causes: list[Diagnosis] = []
    for difference in losses:
        if difference.key not in found or difference.key not in wanted:
            continue
        actual = found[difference.key]
        mine = difference.key.rpartition("/")[0]
        same = [key for key in wanted if key.startswith(mine + "/") and _near(wanted[key], actual)]
        if same and difference.key not in same:
            causes.append(
                Diagnosis(
                    f"tower {difference.replica} computes the loss of tower {same[0].rpartition('/')[2]}",
                    f"{difference.actual} in place of {difference.expected}",
                )
            )
        ratio = _ratio(wanted[difference.key], actual)
        if ratio is not None and towers > 1:
            for factor, cause in (
                (float(towers), "the loss is multiplied by the number of towers"),
                (1 / towers, "the loss is divided by the number of towers"),
            ):
                if abs(ratio / factor - 1) < _CLOSE:
                    causes.append(Diagnosis(cause, f"ratio {ratio:.4f}"))
    extra = [
        float(found[d.key]) - float(wanted[d.key])
        for d in losses
        if d.key in found and np.ndim(found[d.key]) == 0 and d.replica not in (0, None)
    ]
    if losses and not causes and extra and all(d.replica != 0 for d in losses):
        causes.append(
            Diagnosis(
                "a term is counted once more on every tower after the first (regularisers or other "
                "collections seen by later towers)",
                f"the loss of tower 0 agrees, those of later towers are off by {extra[0]:.6g}",
            )
        )
    if losses and not causes:
        causes.append(
            Diagnosis(
                "the forward computation differs: randomness, batch-norm mode, inputs or the model itself",
                f"{len(losses)} losses differ on the same inputs and variables",
            )
        )
    return causes


def _ratio(expected: Any, actual: Any) -> float | None:
    if expected is None or actual is None or np.shape(expected) != np.shape(actual):
        return None
    first = np.asarray(expected, np.float64).ravel()
    second = np.asarray(actual, np.float64).ravel()
    square = float(first @ first)
    if not square > 0:
        return None
    ratio = float(first @ second) / square
    rest = second - ratio * first
    if float(rest @ rest) > _CLOSE**2 * float(second @ second):
        return None
    return ratio


def _near(first: Any, second: Any) -> bool:
    return np.shape(first) == np.shape(second) and bool(
        np.allclose(first, second, rtol=1e-4, atol=1e-7)
    )


def _few(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
