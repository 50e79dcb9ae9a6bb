"""From a difference to its likely cause: the patterns that faults of a tower rewrite leave in the numbers.

Each level has its own causes (`causes/`), the most specific first; the first that its numbers prove is named, and what
follows from it is not. Where no test fits, no cause is named, or what is left is said to be open.
"""

from __future__ import annotations

from towermigrate.verify.causes import runs
from towermigrate.verify.causes.case import Case, Diagnosis, case_of
from towermigrate.verify.causes.gradients import of_gradients
from towermigrate.verify.causes.inputs import of_inputs
from towermigrate.verify.causes.losses import of_forward, of_losses
from towermigrate.verify.causes.updates import of_updates
from towermigrate.verify.comparison import Comparison, Difference
from towermigrate.verify.trace import Trace

__all__ = ["Diagnosis", "diagnose"]


def diagnose(
    expected: Trace,
    actual: Trace,
    comparison: Comparison,
    stages: tuple[str, ...],
    towers: int,
    *,
    lockstep: bool = False,
    doing: Difference | None = None,
) -> list[Diagnosis]:
    """Likely causes of the first difference, the surest first.

    Args:
        lockstep: every run of `actual` started from the state of `expected`.
        doing: the first difference in what is printed or written.
    """
    first = comparison.first()
    if first is None:
        if doing is None:
            return list(runs.of_open(comparison, actual))
        return [runs.of_shown(doing, actual)]
    if first.level == "trajectory":
        return list(runs.of_trajectory(first, comparison, expected, actual))
    if first.level == "initial":
        return [runs.of_start(first)]
    if first.key.startswith("between/"):
        return [runs.of_host(first)]
    if first.level == "structure":
        return list(runs.of_structure(first, expected, actual, stages))
    case = case_of(expected, actual, comparison, stages, towers, lockstep)
    if case is None:
        return []
    if first.level == "input":
        lost = None if doing is None else runs.of_lost_summary(first, doing)
        return list(of_inputs(case)) if lost is None else [lost]
    if first.level == "forward":
        return list(of_losses(case))
    if first.level == "gradient":
        return list(of_gradients(case)) or list(of_forward(case))
    if first.level == "update":
        return list(of_updates(case))
    return _returned(case)


def _returned(case: Case) -> list[Diagnosis]:
    actual = case.found.get(case.first.key)
    if actual is None:
        if "global_norm" in case.first.name:
            return [
                Diagnosis(
                    "the gradients are not clipped by their global norm",
                    f"{case.first.name} is nowhere in the rewritten program's step",
                )
            ]
        return []
    evidence = f"{case.first.name}: training agrees up to here"
    for (_, tower), (loss, _) in case.losses().items():
        if actual.size == 1 and loss and abs(float(actual.ravel()[0]) / loss - 1) < 1e-5:
            return [
                Diagnosis(
                    f"the loss of tower {tower} is given back in place of another's", evidence
                )
            ]
    return [Diagnosis("something else is fetched, or computed for the program to see", evidence)]
