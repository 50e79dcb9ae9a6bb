"""Causes of losses that differ on the same inputs and the same variables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from towermigrate.verify.causes.case import CLOSE, Case, Diagnosis, few, joined, real
from towermigrate.verify.causes.gradients import regulariser, rounded_to
from towermigrate.verify.causes.runs import out_of_turn
from towermigrate.verify.trace import Array

# What float32 may leave of a loss, in parts of its size.
_ROUNDING = 1e-5
_SHORT = frozenset({"float16", "bfloat16"})
# Dropout and noise move the loss of a small batch by more than that.
_CHANCE = 1e-2
_SAMPLES = 6
# A term of the weights changes from step to step by no more than they do.
_SLOWLY = 0.1
# Gradients of the same rows are alike (cosine), and more so than those of other rows.
_ALIKE, _MORE = 0.7, 0.1


# So near is a tower's loss to another one's that is computed of the same rows, in parts of it.
_SAME_LOSS = 2e-6


def of_losses(case: Case) -> Iterator[Diagnosis]:
    stage = case.first.stage if case.first.stage is not None else case.run.stages[0]
    losses = {tower: pair for (each, tower), pair in case.losses().items() if each == stage}
    off = {t for t, (wanted, found) in losses.items() if abs(found - wanted) > 1e-6 * abs(wanted)}
    if not off:
        return
    other = out_of_turn(case.first, case.expected, case.actual)
    if other is not None:
        yield other
        return
    for test in (
        _batch_norm,
        _of_another,
        _rows,
        _factor,
        _regulariser,
        _of_weights,
        _of_later_towers,
        _of_one,
        _in_half,
        _chance,
    ):
        found = test(case, stage, losses, off)
        if found is not None:
            yield found
            return
    yield _forward(case, stage, len(off), len(losses))


def of_forward(case: Case) -> Iterator[Diagnosis]:
    """Of gradients that no cause of their own fits: losses differ too, by less, at this step or another."""
    stage = case.first.stage
    made = [
        key
        for run, wanted, _, _, _ in case.pairs()
        if stage in run.stages
        for key in wanted
        if key.startswith(f"loss/{stage}/")
    ]
    differ = [d for d in case.comparison.differences if d.level == "forward" and d.stage == stage]
    # From its own state a program has other losses anyway, once its gradients were others.
    if case.lockstep and differ:
        yield _forward(case, differ[0].stage, len(differ), len(made))


def _forward(case: Case, stage: int | None, differ: int, losses: int) -> Diagnosis:
    return Diagnosis(
        "the forward computation differs: randomness, batch-norm mode, inputs or the model itself",
        f"{case.stage(stage)}: {differ} of {losses} losses differ on the same inputs and variables",
    )


_Losses = dict[int, tuple[float, float]]


def _batch_norm(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    """The moving statistics stay where the original's move, and the loss is another: they are used for training."""
    names = [
        key
        for key in case.wanted
        if key.startswith("state/variable/")
        and key.rpartition("/")[2] in ("moving_mean", "moving_variance")
        and key in case.found
        and key[6:] in case.before
    ]
    stay = [key for key in names if np.array_equal(case.found[key], case.before[key[6:]])]
    moved = [key for key in names if not np.array_equal(case.wanted[key], case.before[key[6:]])]
    if not stay or stay != moved:
        return None
    return Diagnosis(
        "batch norm uses its moving averages in training",
        f"{few(key[15:] for key in stay)}: the original's step moves them, the losses differ",
    )


def _of_another(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    for tower in sorted(off):
        for other, (wanted, _) in losses.items():
            if other != tower and abs(losses[tower][1] - wanted) <= _SAME_LOSS * abs(wanted):
                if (
                    len(off) == len(losses) - 1
                    and all(
                        abs(losses[each][1] - wanted) <= _SAME_LOSS * abs(wanted) for each in off
                    )
                    and len(off) > 1
                ):
                    return Diagnosis(
                        "every tower gets the same rows, in place of rows of its own",
                        f"{case.stage(stage)}: all towers compute the loss of tower {other}",
                    )
                return Diagnosis(
                    f"tower {tower} computes the loss of tower {other}, as of the same rows",
                    f"{losses[tower][1]:.6g} in place of {losses[tower][0]:.6g}",
                )
    return None


def _factor(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    """One factor for all towers, at all steps from this one on that started from the original's state."""
    if len(off) != len(losses):
        return None
    parts = _relative(case, stage, case.run.index)
    if not _is_one(parts):
        return None
    ratio = 1 + float(np.mean(parts))
    evidence = f"{case.stage(stage)}: {len(parts)} losses are {ratio:.6g} times the original's"
    if case.towers > 1 and abs(ratio / case.towers - 1) < 1e-5:
        return Diagnosis("the loss is multiplied by the number of towers", evidence)
    if case.towers > 1 and abs(ratio * case.towers - 1) < 1e-5:
        return Diagnosis("the loss is divided by the number of towers", evidence)
    return Diagnosis("the loss is scaled", evidence) if len(parts) > 1 else None


def _is_one(parts: list[float]) -> bool:
    """Whether losses are all off by the same part of their size, and by more than roundings make."""
    return (
        bool(parts)
        and abs(parts[0]) > _ROUNDING
        and np.allclose(parts, parts[0], rtol=1e-2, atol=_ROUNDING / 10)
    )


def _regulariser(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    extra = [losses[tower][1] - losses[tower][0] for tower in sorted(off)]
    if not np.allclose(extra, extra[0], rtol=CLOSE, atol=1e-6 * abs(losses[min(off)][0])):
        return None
    found = regulariser(case, stage)
    if found is None:
        return None
    more = "more" if extra[0] > 0 else "less"
    where = "" if len(off) == len(losses) else f" on tower {', '.join(map(str, sorted(off)))}"
    return Diagnosis(
        f"a regulariser (weight decay) counts {more} than in the original{where}",
        f"{case.stage(stage)}: the loss is off by {extra[0]:.6g} on {len(off)} of {len(losses)} towers; {found}",
    )


def _of_weights(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    """All towers' losses are off by one amount, though their rows are others: a term of the weights alone.

    The gradients, which say it plainly (`_regulariser`), may be clipped behind it.
    """
    if len(losses) < 2 or off != set(losses) or not case.of("gradient"):
        return None
    extras: list[float] = []
    for run, wanted, found, _, _ in case.pairs():
        if stage not in run.stages or not (case.lockstep or run.index == case.run.index):
            continue
        keys = [f"loss/{stage}/{tower}" for tower in sorted(losses)]
        theirs = np.array([float(np.mean(wanted[key])) for key in keys])
        extra = np.array([float(np.mean(found[key])) for key in keys]) - theirs
        left = (
            _ROUNDING / 10 * np.abs(theirs).max()
        )  # what rounding leaves of a difference of losses
        apart = float(np.ptp(theirs))
        if np.ptp(extra) > left or np.abs(extra).min() < 100 * left or apart < 100 * left:
            return None
        extras.append(float(extra.mean()))
    if len(extras) < 2 or not np.allclose(extras, extras[0], rtol=_SLOWLY * len(extras)):
        return None
    more = "more" if extras[0] > 0 else "less"
    return Diagnosis(
        f"a regulariser (weight decay) counts {more} than in the original",
        f"{case.stage(stage)}: the losses of all {len(losses)} towers are off by {extras[0]:.6g}, "
        f"at {len(extras)} steps by one amount in every tower",
    )


def _of_later_towers(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    """The same is added on every later tower, and hardly anything else at the next step: a term of the weights."""
    extras = []
    for run, wanted, found, _, _ in case.pairs():
        if stage not in run.stages or run.index < case.run.index or not case.lockstep:
            continue
        keys = [f"loss/{stage}/{tower}" for tower in sorted(losses)]
        extra = [float(np.mean(found[key])) - float(np.mean(wanted[key])) for key in keys]
        size = max(abs(part) for part in extra)
        if abs(extra[0]) > CLOSE * size or min(extra[1:], default=0.0) <= 0:
            return None
        steps = extra[1] * np.arange(
            1, len(extra)
        )  # every later tower may see those of all before it
        if not (
            np.allclose(extra[1:], extra[1], rtol=CLOSE)
            or np.allclose(extra[1:], steps, rtol=CLOSE)
        ):
            return None
        extras.append(extra[1])
    if len(extras) < 2 or not np.allclose(extras, extras[0], rtol=_SLOWLY):
        return None
    return Diagnosis(
        "a term is counted once more on every tower after the first (regularisers or other collections "
        "seen by later towers)",
        f"the loss of tower 0 agrees, those of later towers are off by {extras[0]:.6g} at {len(extras)} steps",
    )


def _likeness(case: Case, stage: int) -> Array | None:
    """The cosines of the towers' own gradients: of this program's (rows) with the original's (columns)."""
    own: list[list[Array]] = []
    for arrays in (case.found, case.wanted):
        prefix = f"tower_gradient/{stage}/"
        names = sorted({key.split("/", 3)[3] for key in arrays if key.startswith(prefix)})
        keys = [[f"{prefix}{tower}/{name}" for name in names] for tower in range(case.towers)]
        if not names or any(key not in arrays for each in keys for key in each):
            return None
        own.append([joined(real(arrays[key]) for key in each) for each in keys])
    if len({each.size for side in own for each in side}) > 1:
        return None
    units = [[each / max(float(np.linalg.norm(each)), 1e-30) for each in side] for side in own]
    return np.array([[float(a @ b) for b in units[1]] for a in units[0]])


def _rows(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    """Towers whose gradients are like those that another tower has in the original."""
    likeness = _likeness(case, stage) if case.towers > 1 else None
    if likeness is None:
        return None
    like = likeness.argmax(1)
    others = [tower for tower in sorted(off) if like[tower] != tower]
    if not others or any(
        likeness[t, like[t]] < _ALIKE or likeness[t, like[t]] - likeness[t, t] < _MORE
        for t in others
    ):
        return None
    said = ", ".join(f"those of tower {tower} like tower {like[tower]}'s" for tower in others)
    if len(set(like.tolist())) == 1:
        if int(like[0]) in off:  # it does not get the original's rows itself
            return None
        cause = "every tower gets the same rows, in place of rows of its own"
    else:
        cause = "a tower gets rows that the original gave to another"
    return Diagnosis(cause, f"{case.stage(stage)}: by the towers' own gradients, {said}")


def _of_one(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    if len(off) != 1 or len(losses) < 2:
        return None
    (tower,) = off
    pairs = [
        (float(np.mean(wanted[key])), float(np.mean(found[key])))
        for _, wanted, found, _, _ in case.pairs()
        if (key := f"loss/{stage}/{tower}") in wanted and key in found
    ]
    parts = [found / wanted - 1 for wanted, found in pairs if wanted]
    if case.lockstep and len(parts) > 1 and _is_one(parts):
        return Diagnosis(
            f"the loss of tower {tower} is scaled",
            f"{case.stage(stage)}: {1 + parts[0]:.6g} times the original's at {len(parts)} steps, others agree",
        )
    return None


def _relative(case: Case, stage: int, since: int = 0) -> list[float]:
    """By what part each loss of the stage is off, at all towers and steps, from the same states."""
    off = []
    for run, wanted, found, _, _ in case.pairs():
        if run.index < since or stage not in run.stages:
            continue
        if case.lockstep or run.index == case.run.index:
            for key, value in wanted.items():
                if key.startswith(f"loss/{stage}/") and key in found and np.mean(value):
                    off.append(float(np.mean(found[key]) / np.mean(value)) - 1)
    return off


def _in_half(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    values = [np.asarray(case.found[f"loss/{stage}/{tower}"]) for tower in losses]
    other = [np.asarray(case.wanted[f"loss/{stage}/{tower}"]) for tower in losses]
    name = rounded_to(values, other)
    if name is not None:
        return Diagnosis(
            "another precision: the losses are rounded",
            f"{case.stage(stage)}: all {len(values)} losses are numbers of {name}, the original's are not",
        )
    types = [set(trace.meta.get("floats", ())) for trace in (case.expected, case.actual)]
    short = sorted((types[1] - types[0]) & _SHORT)
    if short and types[0]:
        return Diagnosis(
            f"another precision: a part is computed in {' and '.join(short)}",
            f"{case.stage(stage)}: losses are off by {np.median(np.abs(_relative(case, stage))):.1g} of their size; "
            "the original computes nothing in it",
        )
    return None


def _chance(case: Case, stage: int, losses: _Losses, off: set[int]) -> Diagnosis | None:
    """Off by much, now up, now down: other random numbers, or other odds."""
    off_by = np.array(_relative(case, stage))
    if len(off_by) < _SAMPLES or np.median(np.abs(off_by)) < _CHANCE:
        return None
    if abs(off_by.mean()) > off_by.std(ddof=1) / np.sqrt(len(off_by)) * 2:
        return None
    if not 1 / 4 <= np.mean(off_by > 0) <= 3 / 4:
        return None
    # On other rows losses are off in the same way; but then the gradients are not like those of the same tower.
    likeness = _likeness(case, stage)
    if likeness is None or any(likeness[t].argmax() != t or likeness[t, t] < _ALIKE for t in off):
        return None
    return Diagnosis(
        "other random numbers: dropout or noise",
        f"{case.stage(stage)}: {len(off_by)} losses are off by {np.abs(off_by).mean():.1%} on average, up and down",
    )
