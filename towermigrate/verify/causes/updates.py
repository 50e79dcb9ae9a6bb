"""Causes of variables and slots that differ after a step whose gradients agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from towermigrate.verify.causes.case import (
    CLOSE,
    Case,
    Diagnosis,
    at_bounds,
    few,
    fit,
    joined,
    real,
)
from towermigrate.verify.causes.formulas import Fitted, fitted
from towermigrate.verify.causes.inputs import shifted
from towermigrate.verify.comparison import Difference
from towermigrate.verify.probe.recording import same
from towermigrate.verify.trace import Array

_AVERAGE = "/ExponentialMovingAverage"
# What is told of a slot alone, once it is not zero.
_OF_SLOTS = ("momentum",)
_NONE = 1e-6  # of momentums, decays and betas: what is less is none
_STATISTICS = ("moving_mean", "moving_variance")


def of_updates(case: Case) -> Iterator[Diagnosis]:
    """The first test that fits: what tells most about a variable comes first."""
    if case.made.replicas_differ:
        yield Diagnosis(
            "the replicas hold different values of one variable",
            f"{few(case.made.replicas_differ)} after training run {case.run.index}",
        )
        return
    off = case.of("update")
    for test in (_shared, _global_step, _averages, _batch_norm, _moved, _clipped, _optimizer):
        found = test(case, off)
        if found is not None:
            yield found
            return


def _shared(case: Case, off: list[Difference]) -> Diagnosis | None:
    """Stages whose slots the original keeps apart have one set of them."""

    def owners(keys: object) -> set[str]:
        return {str(key).split("/")[1] for key in keys if str(key).startswith("slot/")}  # type: ignore[attr-defined]

    theirs, ours = owners(case.expected.variables()), owners(case.actual.variables())
    ran = {str(stage) for run in case.actual.runs for stage in run.stages}
    if len(theirs) > len(ours) >= 1 and theirs & ran > ours:
        return Diagnosis(
            "stages share one optimizer that have optimizers of their own in the original",
            f"slots of {few(case.stage(int(each)) for each in sorted(theirs - ours))} are those of another stage",
        )
    if len(ours) > len(theirs) >= 1 and ours > theirs:
        return Diagnosis(
            "stages have optimizers of their own that share one in the original",
            f"{few(case.stage(int(each)) for each in sorted(ours - theirs))} has slots beside those of the others",
        )
    return None


def _changes(case: Case, key: str) -> tuple[Array, Array] | None:
    """What the step changed in a variable, in the original and in the rewritten program."""
    old = case.before.get(key[6:])
    if old is None or key not in case.wanted or key not in case.found:
        return None
    wanted, found = case.wanted[key], case.found[key]
    if not np.shape(old) == np.shape(wanted) == np.shape(found):
        return None
    return real(wanted) - real(old), real(found) - real(old)


def _global_step(case: Case, off: list[Difference]) -> Diagnosis | None:
    for each in off:
        changes = _changes(case, each.key)
        if changes is None or case.wanted[each.key].dtype.kind not in "iu":
            continue
        if np.size(changes[0]) != 1:
            continue
        wanted, found = (float(np.ravel(change)[0]) for change in changes)
        if wanted == found:
            continue
        said = "is not counted" if found == 0 else f"counts {found:g} in one step"
        return Diagnosis(
            f"the global step {said}",
            f"{each.name}: the original counts {wanted:g} in this training run",
        )
    return None


def _averages(case: Case, off: list[Difference]) -> Diagnosis | None:
    """A moving average: average = decay * average + (1 - decay) * variable, before the update or after it."""
    mine = [each for each in off if each.name.endswith(_AVERAGE)]
    gone = [each.name for each in mine if each.key not in case.found]
    if gone:
        return Diagnosis("the moving average of the variables is gone", few(gone))
    if not mine or len(mine) < len(
        [each for each in off if each.key.startswith("state/variable/")]
    ):
        return None
    for each in mine:
        key, variable = each.key, each.key[: -len(_AVERAGE)]
        changes = _changes(case, key)
        if changes is None or variable not in case.found or variable[6:] not in case.before:
            continue
        if not np.any(changes[1]) and np.any(changes[0]):
            return Diagnosis("the moving average does not follow its variable", each.name)
        old = real(case.before[key[6:]])
        ways = {"before": real(case.before[variable[6:]]), "after": real(case.wanted[variable])}
        fits = [
            {way: fit(value - old, change) for way, value in ways.items()} for change in changes
        ]
        for way, other in (("before", "after"), ("after", "before")):
            one, two = fits[0][way], fits[1][other]
            if one is not None and two is not None and abs(one / two - 1) < CLOSE:
                if fits[1][way] is None:
                    return Diagnosis(
                        f"the moving average takes its variable {other} the update, not {way} it",
                        f"{each.name}: decay {1 - one:.6g} in both",
                    )
        for way in ways:
            one, two = fits[0][way], fits[1][way]
            if one is not None and two is not None and abs(one / two - 1) > CLOSE:
                if not (0 < one < 1 and 0 < two < 1):
                    continue  # no decay at all: it is made of something else
                return Diagnosis(
                    "the moving average has another decay",
                    f"{each.name}: {1 - two:.6g} in place of {1 - one:.6g}",
                )
    return None


def _batch_norm(case: Case, off: list[Difference]) -> Diagnosis | None:
    mine = [each for each in off if each.name.rpartition("/")[2] in _STATISTICS]
    if not mine or len(mine) < len(off):
        return None
    ratios: list[float | None] = []
    stay = []
    for each in mine:
        changes = _changes(case, each.key)
        if changes is None:
            return None
        if not np.any(changes[1]):
            stay.append(each.name)
        ratios.append(fit(*changes) if np.size(changes[0]) > 1 else None)
    names = few(each.name for each in mine)
    keys = [each.key for each in mine]
    if _at_another_stage(case, keys):
        return Diagnosis(
            "batch norm's moving averages are updated with another stage than the original's",
            f"{names}: they move in training runs in which the original's stay",
        )
    if stay and len(stay) == len(mine):
        return Diagnosis(
            "batch norm's moving averages stay that the original's step moves (its updates are left out)",
            names,
        )
    told = [ratio for ratio in ratios if ratio is not None]
    if len(told) == len(ratios) and np.allclose(told, told[0], rtol=10 * CLOSE):
        return Diagnosis(
            "batch norm's moving averages have another momentum, or are updated another number of times",
            f"{names}: they move {told[0]:.4g} times as far",
        )
    if case.towers < 2 or stay:
        return None
    return Diagnosis(
        "batch norm's moving averages are another tower's, or made another way of the towers'",
        names,
    )


def _at_another_stage(case: Case, keys: list[str]) -> bool:
    """Whether variables move in runs of a stage in which the original leaves them alone, while it moves them in others."""
    theirs: set[tuple[int, ...]] = set()
    ours: set[tuple[int, ...]] = set()
    for run, wanted, found, before, own in case.pairs():
        for stages, arrays, old in ((theirs, wanted, before), (ours, found, own)):
            moved = [k for k in keys if k in arrays and not same(arrays[k], old.get(k[6:]))]
            if moved:
                stages.add(run.stages)
    return len({run.stages for run in case.expected.runs}) > 1 and bool(ours - theirs)


def _moved(case: Case, off: list[Difference]) -> Diagnosis | None:
    moved, stayed = [], []
    for each in off:
        changes = _changes(case, each.key)
        if changes is None or not each.key.startswith("state/variable/"):
            continue
        if not np.any(changes[0]):
            moved.append(each.name)
        elif not np.any(changes[1]):
            stayed.append(each.name)
    if moved and not stayed:
        return Diagnosis("variables move that the original's step leaves alone", few(moved))
    if stayed and not moved:
        return Diagnosis("variables stay that the original's step moves", few(stayed))
    return None


def _clipped(case: Case, off: list[Difference]) -> Diagnosis | None:
    """Weights that are clipped to bounds behind the update: in one program only, or to other bounds."""
    names: list[str] = []
    sides: tuple[list[Array], list[Array]] = ([], [])
    for each in off:
        wanted, found = case.wanted.get(each.key), case.found.get(each.key)
        if not each.key.startswith("state/variable/") or wanted is None or found is None:
            continue
        if wanted.dtype.kind != "f" or wanted.shape != found.shape:
            continue
        differ = ~np.isclose(wanted, found, rtol=1e-5, atol=1e-8)
        names.append(each.name)
        for side, numbers in zip(sides, (wanted, found), strict=True):
            side.append(np.abs(numbers[differ]).ravel())
    theirs, ours = (joined(side) for side in sides)
    said = at_bounds(theirs, ours)
    if said is None:
        return None
    return Diagnosis(said, f"{few(names)}: {theirs.size} numbers differ, all others agree")


def _optimizer(case: Case, off: list[Difference]) -> Diagnosis | None:
    """Both updates by the optimizers' formulas: which number is another, or whether the formula is."""
    names = [name for each in off if (name := _trained(case, each)) is not None]
    if not names:
        return None
    unknown = ""
    for name in dict.fromkeys(names):
        stage = next(s for s in case.run.stages if f"gradient/{s}/{name}" in case.wanted)
        gradient = case.wanted[f"gradient/{stage}/{name}"]
        theirs = fitted(name, stage, case.wanted, case.before, gradient)
        like = None if theirs is None else theirs.numbers
        ours = fitted(name, stage, case.found, case.before, gradient, like)
        if theirs is None or (ours is not None and ours == theirs):
            continue
        if ours is None:  # of one whose gradient is of roundings alone none may be found
            unknown = unknown or f"{name}: the original's update is that of {theirs.formula}"
            continue
        if ours.formula != theirs.formula:
            return Diagnosis(
                "another optimizer formula",
                f"{name}: the original's update is that of {theirs.formula}, this one of {ours.formula}",
            )
        other = _other_numbers(theirs, ours)
        if not other:
            continue
        if set(other) == {"learning rate"}:
            return _rate(case, name, stage, theirs, ours)
        # What a rate is off by beside another number comes of it.
        told = {key: pair for key, pair in other.items() if key != "learning rate"}
        key, (one, two) = next(iter(told.items()))
        # An epsilon is told only where it is not lost beside what it is added to.
        said = f"{two:.6g} in place of {one:.6g}"
        if key == "epsilon" and not (one and two):
            said = f"{one or two:.6g} in {'the original' if one else 'this one'}, and too small to be told in "
            said += "this one" if one else "the original"
        return Diagnosis(
            f"another optimizer hyperparameter: {key}",
            f"{name}: {said}, by the formula of {theirs.formula}",
        )
    if unknown:
        return Diagnosis(
            "another optimizer formula", f"{unknown}, this one of no formula that is known"
        )
    return Diagnosis(
        "another optimizer, optimizer formula or hyperparameter",
        f"the gradients of this step agree, {case.first.name} after the update does not",
    )


def _trained(case: Case, each: Difference) -> str | None:
    """The variable that a difference of it or of its slot is about, where its gradient is there."""
    name = each.name
    if each.key.startswith("state/slot/"):
        name = each.key.split("/", 4)[4] if each.key.count("/") >= 4 else ""
    if any(f"gradient/{stage}/{name}" in case.wanted for stage in case.run.stages):
        return name
    return None


def _other_numbers(theirs: Fitted, ours: Fitted) -> dict[str, tuple[float, float]]:
    found = {}
    for key in sorted(theirs.numbers, key=lambda key: key == "learning rate"):
        one, two = theirs.numbers[key], ours.numbers.get(key, 0.0)
        size = max(abs(one), abs(two))
        if key != "learning rate" and key != "epsilon" and size < _NONE:
            continue  # both keep nothing, but for roundings
        # Rates show to 1e-5 in an update; betas near 1 are told by what they leave.
        if size and abs(one - two) > (1e-5 if key == "learning rate" else CLOSE / 10) * size:
            found[key] = (one, two)
    return found


def _rate(case: Case, name: str, stage: int, theirs: Fitted, ours: Fitted) -> Diagnosis:
    """One learning rate, or a schedule: by the rates of all steps."""
    rates: list[tuple[float, float]] = []
    for run, wanted, found, before, own in case.pairs():
        key = f"gradient/{stage}/{name}"
        if stage not in run.stages or key not in wanted or key not in found:
            continue
        # A schedule moves the rate alone.
        like = {key: number for key, number in theirs.numbers.items() if key != "learning rate"}
        mine = fitted(name, stage, wanted, before, wanted[key], like)
        other = fitted(name, stage, found, own, found[key], like)
        if mine is None or other is None:
            break
        if mine.formula != other.formula:  # Told apart only by a slot that is not zero any more.
            return Diagnosis(
                "another optimizer formula",
                f"{name}: the original's update is that of {mine.formula}, this one of {other.formula} "
                f"(training run {run.index})",
            )
        # Momentum that comes with the gradient (Nesterov's) looks like a rate until its slot holds something.
        beside = [pair for pair in _other_numbers(mine, other).items() if pair[0] in _OF_SLOTS]
        if beside:
            (number, (one, two)), *_ = beside
            return Diagnosis(
                f"another optimizer hyperparameter: {number}",
                f"{name}: {two:.6g} in place of {one:.6g}, by the formula of {mine.formula} (training run {run.index})",
            )
        rates.append((mine.numbers["learning rate"], other.numbers["learning rate"]))
    one, two = theirs.numbers["learning rate"], ours.numbers["learning rate"]
    evidence = f"{name}: {two:.6g} in place of {one:.6g}, by the formula of {theirs.formula}"
    moves = theirs.formula not in (
        "Adam",
    )  # its rate of a step is corrected by the number of the step
    wanted_rates, found_rates = [pair[0] for pair in rates], [pair[1] for pair in rates]
    said = shifted(wanted_rates, found_rates) if moves else None
    if said is not None:
        return Diagnosis(f"the learning-rate schedule: {said}", evidence)
    ratios = [b / a for a, b in rates if a]
    if len(ratios) > 1 and not np.allclose(ratios, ratios[0], rtol=CLOSE):
        return Diagnosis(
            "another learning-rate schedule",
            f"{evidence}; {min(ratios):.5g} to {max(ratios):.5g} times the original's over {len(ratios)} steps",
        )
    return Diagnosis(
        "another optimizer hyperparameter: learning rate",
        f"{evidence}, {two / one:.6g} times the original's",
    )
