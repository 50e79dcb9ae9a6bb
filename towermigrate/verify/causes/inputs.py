"""Causes of inputs that are not the original's: rows of another tower, of another step, left out, another schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from towermigrate.verify.causes.case import CLOSE, Case, Diagnosis, fit
from towermigrate.verify.causes.gradients import rounded_to
from towermigrate.verify.causes.runs import out_of_turn
from towermigrate.verify.comparison import BATCHES_TAKEN, OF_A_LOOK
from towermigrate.verify.probe.recording import same
from towermigrate.verify.trace import Array

_Test = Callable[[Case, str, Array, Array], Diagnosis | None]


def of_inputs(case: Case) -> Iterator[Diagnosis]:
    """What the rewritten program would have read by itself, against what the original did."""
    other = out_of_turn(case.first, case.expected, case.actual)
    if other is not None:
        yield other
        return
    told = _of_drawn(case)
    if told is not None:
        yield told
        return
    key = case.first.key
    own, theirs = case.found.get("own/" + key), case.wanted.get(key)
    if own is None or theirs is None:
        yield _rows(case)
        return
    tests: tuple[_Test, ...] = (
        _constant,
        _same_for_all,
        _left_out,
        _of_another_tower,
        _schedule,
        _remainder,
        _incomplete,
        _of_another_step,
        _rounded,
        _order,
    )
    if case.first.replica is None and _towers(case, key):
        # Which tower gets which rows is chance: those of one tower tell nothing.
        tests = (_constant, _same_for_all, _left_out)
    for test in tests:
        found = test(case, key, own, theirs)
        if found is not None:
            yield found
            return
    yield _rows(case)


def _of_drawn(case: Case) -> Diagnosis | None:
    """What is said of inputs in an order of chance (`drawn.py`, `pairing.py`, `shuffling.py`), which have no rows to hold against others."""
    first = case.first
    evidence = f"{first.name}: {first.actual}, where the original has {first.expected}"
    if first.name == OF_A_LOOK:
        return Diagnosis(
            "a run that trains nothing (a summary, an evaluation) gets other rows", evidence
        )
    if first.name.startswith(BATCHES_TAKEN):
        return Diagnosis(
            "another number of batches is taken: rows are lost, or used twice", evidence
        )
    if first.key.startswith("shuffling/"):
        return Diagnosis("a shuffle was taken away, added, fixed or made smaller", evidence)
    if not first.key.startswith("pairing/"):
        return None
    if "its row" in str(first.expected):
        return Diagnosis("labels go with other rows than in the original", evidence)
    if "in every row" in str(first.expected):
        return Diagnosis("rows are scaled, shifted or normalised otherwise", evidence)
    return Diagnosis("rows are made of other data, or otherwise of the same", evidence)


def _rows(case: Case) -> Diagnosis:
    tower = "" if case.first.replica is None else f" of tower {case.first.replica}"
    return Diagnosis(
        "a tower gets other rows than in the original",
        f"{case.first.name}{tower}: {case.first.actual}",
    )


def _towers(case: Case, key: str) -> dict[int, str]:
    """The keys of one input by tower; of inputs that are fed for all towers at once there is none."""
    parts = key.split("/", 2)
    if not parts[1].isdigit():
        return {}
    return {
        tower: other
        for tower in range(case.towers)
        if (other := f"input/{tower}/{parts[2]}") in case.wanted
    }


def _constant(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    """One value in all rows of all towers: they are the same rows, but not as they are shared."""
    owns = [own] + [case.found.get("own/" + other, own) for other in _towers(case, key).values()]
    if (
        own.size < 2
        or any(np.unique(each).size != 1 for each in owns)
        or np.unique(theirs).size < 2
    ):
        return None
    return Diagnosis(
        "an input has one value in all rows, where the original's rows have several",
        f"{case.first.name}: {own.ravel()[0]} throughout",
    )


def _same_for_all(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    keys = _towers(case, key)
    owns = [case.found.get("own/" + other, case.wanted[other]) for other in keys.values()]
    if len(keys) < 2 or not all(same(own, other) for other in owns):
        return None
    if all(same(case.wanted[key], case.wanted[other]) for other in keys.values()):
        return None
    return Diagnosis(
        "every tower gets the same rows, in place of rows of its own",
        f"{case.first.name}: all {len(keys)} towers read the same batch, the original's differ",
    )


def _of_another_tower(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    keys = _towers(case, key)
    mine = int(key.split("/")[1]) if keys else None
    for tower, other in keys.items():
        if tower != mine and same(own, case.wanted[other]):
            return Diagnosis(
                "a tower gets rows that the original gave to another",
                f"{case.first.name}: tower {mine} reads the rows of tower {tower}",
            )
    return None


def _schedule(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    """A single number that is fed: a rate, say."""
    if theirs.size != 1 or theirs.dtype.kind != "f":
        return None
    values = [
        (float(wanted[key].ravel()[0]), float(found.get("own/" + key, wanted[key]).ravel()[0]))
        for run, wanted, found, _, _ in case.pairs()
        if key in wanted and case.run.stages == run.stages
    ]
    said = shifted([one for one, _ in values], [other for _, other in values])
    return Diagnosis(
        f"another schedule of a value that is fed{'' if said is None else f': {said}'}",
        f"{case.first.name}: {float(own.ravel()[0]):.6g} in place of {float(theirs.ravel()[0]):.6g}",
    )


def shifted(wanted: list[float], found: list[float]) -> str | None:
    """By how many steps `found` is ahead of `wanted` or behind it; None where it is no shift."""
    if len(wanted) < 3 or np.allclose(wanted, wanted[0], rtol=CLOSE):
        return None
    for steps in (1, 2, 3):
        if len(wanted) - steps < 2:
            break
        pairs = (
            (wanted[steps:], found[:-steps], "ahead"),
            (wanted[:-steps], found[steps:], "late"),
        )
        for theirs, own, way in pairs:
            if np.allclose(theirs, own, rtol=CLOSE / 10) and not np.allclose(
                theirs, theirs[0], rtol=CLOSE
            ):
                return f"it is {steps} step{'s' if steps > 1 else ''} {way}"
    return None


def _remainder(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    if not own.ndim or own.ndim != theirs.ndim or not 0 < len(own) < len(theirs):
        return None
    if not same(own, theirs[: len(own)]):
        return None
    return Diagnosis(
        "the remainder of the rows is dropped",
        f"{case.first.name}: {len(own)} rows in place of {len(theirs)}, the first ones",
    )


def _incomplete(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    """Fewer rows than the original ever has, which come in front of its own: those that a whole batch leaves over."""
    if not own.ndim or own.ndim != theirs.ndim or not 0 < len(own) < len(theirs):
        return None
    sizes = {
        len(wanted[key])
        for run, wanted, _, _, _ in case.pairs()
        if key in wanted and wanted[key].ndim
    }
    if len(own) in sizes:
        return None
    return Diagnosis(
        "an incomplete batch is taken, which the original drops",
        f"{case.first.name}: {len(own)} rows in place of {len(theirs)}, and the original never has as few",
    )


def _left_out(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    """Some of the original's rows come in no run, and the first ones of its next run in their place."""
    if theirs.ndim < 1 or theirs.size < 2 * len(theirs):
        return None  # Labels: many rows are alike.
    keys = list(_towers(case, key).values()) or [key]
    before: Counter[bytes] = Counter()
    missing: Counter[bytes] = Counter()
    ours: Counter[bytes] = Counter()
    extra: Counter[bytes] = Counter()
    total = 0
    for run, wanted, found, _, _ in case.pairs():
        if run.stages != case.run.stages or any(each not in wanted for each in keys):
            continue
        mine = _counted([found.get("own/" + each, wanted[each]) for each in keys])
        there = _counted([wanted[each] for each in keys])
        before += there
        ours += mine
        if run.index == case.run.index:
            missing, extra, total = there - mine, mine - there, there.total()
            if before == there or missing.total() == total:
                return None  # They begin with other rows, or a whole step is left out.
        elif missing:
            lost = missing & (before - ours)
            if lost == missing and not extra - there:
                return Diagnosis(
                    "rows are left out: the remainder of the rows is dropped",
                    f"{case.first.name}: {missing.total()} of the original's {total} rows do not come, "
                    "those of its next run do in their place",
                )
            return None
    return None


def _counted(arrays: list[Array]) -> Counter[bytes]:
    return Counter(row.tobytes() for each in arrays if each.ndim for row in each)


def _of_another_step(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    """Rows that the original gives at another step: a step is made twice, or left out."""
    if own.size < 2:
        return None
    # Rows that runs of another stage had are told only where no run of this one had them.
    for run in sorted(case.expected.runs, key=lambda each: each.stages != case.run.stages):
        other = case.expected.arrays(run).get(key)
        if run.index == case.run.index or other is None or not same(own, other):
            continue
        if run.stages != case.run.stages:
            cause = "a stage gets the rows that another stage had"
        elif run.index < case.run.index:
            cause = "a step is made twice: rows come again that an earlier step had"
        elif (ahead := _ahead(case, key)) is not None:
            return Diagnosis(
                f"the rows are {ahead} ahead from the first step on: the data begin later, or steps are skipped",
                f"{case.first.name}: at every step the rows that the original has {ahead} later",
            )
        elif _comes_later(case, key, theirs):
            cause = "the batches come in another order"
        else:
            cause = "a step is skipped: rows come that the original has at a later step"
        return Diagnosis(
            cause,
            f"{case.first.name}: training run {case.run.index} has the rows of run {run.index}",
        )
    return None


def _comes_later(case: Case, key: str, theirs: Array) -> bool:
    """Whether the rows that the original has here come at a later step."""
    return any(
        run.index > case.run.index and same(found.get("own/" + key, wanted.get(key)), theirs)
        for run, wanted, found, _, _ in case.pairs()
        if key in wanted
    )


def _ahead(case: Case, key: str) -> str | None:
    """By how many steps all rows are ahead of the original's, from the stage's first step on; None where they are not."""
    theirs: list[Array] = []
    ours: list[Array] = []
    for run, wanted, found, _, _ in case.pairs():
        if run.stages == case.run.stages and key in wanted:
            if not theirs and run.index != case.run.index:
                return None
            theirs.append(wanted[key])
            ours.append(found.get("own/" + key, wanted[key]))
    for steps in (1, 2, 3):
        if len(theirs) >= steps + 2 and all(map(same, ours, theirs[steps:])):
            return f"{steps} step{'s' if steps > 1 else ''}"
    return None


def _rounded(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    if own.shape != theirs.shape or own.dtype.kind != "f" or theirs.dtype.kind != "f":
        return None
    short = rounded_to([own], [theirs])
    if short is None or not np.allclose(own, theirs, rtol=1e-2, atol=1e-6):
        return None
    return Diagnosis(
        "an input is rounded", f"{case.first.name}: the original's rows, all numbers of {short}"
    )


def _order(case: Case, key: str, own: Array, theirs: Array) -> Diagnosis | None:
    if own.shape != theirs.shape or own.ndim < 1 or len(own) < 2:
        return None
    flat, other = own.reshape(len(own), -1), theirs.reshape(len(theirs), -1)
    if np.array_equal(flat[np.lexsort(flat.T)], other[np.lexsort(other.T)]):
        return Diagnosis("the rows come in another order", f"{case.first.name}: the same rows")
    if own.dtype.kind == "f" and (factor := fit(theirs, own)) is not None:
        return Diagnosis(
            "an input is scaled", f"{case.first.name}: {factor:.4g} times the original's rows"
        )
    return None
