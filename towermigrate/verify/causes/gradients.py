"""Causes of averaged gradients that differ where the losses agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from towermigrate.verify.causes.case import (
    CLOSE,
    EXACT,
    Case,
    Diagnosis,
    at_bounds,
    few,
    fit,
    joined,
    near,
    real,
)
from towermigrate.verify.trace import Array

_Pairs = dict[str, tuple[Array, Array]]


def of_gradients(case: Case) -> Iterator[Diagnosis]:
    """All stages of the training run whose gradients differ; the first of each that fits counts."""
    stages = dict.fromkeys(each.stage for each in case.of("gradient") if each.stage is not None)
    for stage in stages:
        beside = _applied_beside(case, stage)
        if beside is not None:
            yield beside
            continue
        pairs = case.gradients(stage)
        off = {name for name, (wanted, found) in pairs.items() if not near(wanted, found, 1e-6)}
        for test in (
            _clipped,
            _clipped_values,
            _weights_of_towers,
            _sparse,
            _rounded,
            _zeros,
            _scaled,
            _decay,
        ):
            found = test(case, stage, pairs, off) if off else None
            if found is not None:
                yield found
                break


def _applied_beside(case: Case, stage: int) -> Diagnosis | None:
    """Gradients for variables that only one of the programs applies any to."""
    prefix = f"gradient/{stage}/"
    ours = {key[len(prefix) :] for key in case.found if key.startswith(prefix)}
    theirs = {key[len(prefix) :] for key in case.wanted if key.startswith(prefix)}
    if not theirs or not ours:
        return None
    beside, lacking = sorted(ours - theirs), sorted(theirs - ours)
    said = case.stage(stage)
    if beside and not any(np.any(case.found[prefix + name]) for name in beside):
        return Diagnosis(
            "zeros are applied to variables that the stage leaves out (None became zeros); a stateful optimizer "
            "still moves them",
            f"{said}: {few(beside)}",
        )
    if beside:
        return Diagnosis(
            "the stage's variable list has variables that the original's has not",
            f"{said}: {few(beside)}",
        )
    if lacking and not any(np.any(case.wanted[prefix + name]) for name in lacking):
        return Diagnosis(
            "variables are skipped that the original applies zeros to (None is left out)",
            f"{said}: no gradient for {few(lacking)}",
        )
    if lacking:
        return Diagnosis(
            "the stage's variable list lacks variables of the original's",
            f"{said}: no gradient for {few(lacking)}",
        )
    return None


def _weights_of_towers(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    """How much each tower's own gradient counts, by least squares; a sum, one tower alone, a tower lost."""
    number = case.towers
    towers = case.tower_gradients(stage)
    names = [name for name in pairs if all(name in own for own in towers.values())]
    if number < 2 or not towers or len(names) < len(pairs):
        return _times_towers(case, stage, pairs, off)
    columns = np.stack([joined(towers[t][name] for name in names) for t in sorted(towers)], 1)
    wanted, found = (joined(pairs[name][k] for name in names) for k in (0, 1))
    if not near(columns.mean(1), wanted, CLOSE):
        return _times_towers(case, stage, pairs, off)
    if columns.shape[0] < 2 * number:
        return _of_one_tower(case, stage, columns, found) or _times_towers(case, stage, pairs, off)
    weights, _, rank, _ = np.linalg.lstsq(columns, found, rcond=None)
    if rank < number or not near(columns @ weights, found, CLOSE):
        return None
    share = weights * number
    said = (
        f"{case.stage(stage)}: the towers' gradients count {', '.join(f'{w:.4g}' for w in weights)}"
    )
    if np.allclose(share, number, atol=CLOSE * number):
        return _sum(case, stage, len(pairs))
    if np.allclose(share * number, 1, atol=CLOSE * number):
        return _divided(case, stage, len(pairs))
    if np.allclose(share, share[0], rtol=CLOSE):
        return None  # all alike: a factor on the whole, which `_scaled` names
    lost = [k for k in range(number) if abs(share[k]) < CLOSE]
    kept = [k for k in range(number) if k not in lost]
    if len(kept) == 1 and number > 1 and abs(weights[kept[0]] - 1) < CLOSE:
        return Diagnosis(f"the gradient of tower {kept[0]} is applied, not the average", said)
    if lost and kept and np.allclose(share[kept], share[kept[0]], rtol=CLOSE):
        return Diagnosis(
            f"a replica is lost: the gradient of tower {few(map(str, lost))} does not count", said
        )
    odd = [k for k in range(number) if abs(share[k] - 1) > CLOSE]
    if len(odd) == 1:
        return Diagnosis(f"the gradient of tower {odd[0]} is scaled, not those of the others", said)
    return None


def _of_one_tower(case: Case, stage: int, columns: Array, found: Array) -> Diagnosis | None:
    """One tower's own gradient is what is applied: of a model so small that nothing is left to fit weights with."""
    mine = [k for k in range(columns.shape[1]) if near(columns[:, k], found)]
    if len(mine) != 1 or columns.shape[0] < 2:
        return None
    return Diagnosis(
        f"the gradient of tower {mine[0]} is applied, not the average",
        f"{case.stage(stage)}: all {columns.shape[0]} numbers are those of its own gradient",
    )


def _times_towers(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    ratios = _ratios(pairs, set(pairs))
    if case.towers < 2 or ratios is None:
        return None
    if np.allclose(ratios, case.towers, rtol=CLOSE):
        return _sum(case, stage, len(pairs))
    if np.allclose(np.multiply(ratios, case.towers), 1, rtol=CLOSE):
        return _divided(case, stage, len(pairs))
    return None


def _sum(case: Case, stage: int, variables: int) -> Diagnosis:
    return Diagnosis(
        f"the division by the number of towers is missing (sum applied, not mean; ×{case.towers})",
        f"{case.stage(stage)}: gradients are {case.towers} times the original's ({variables} variables). "
        "Use tm.tower_gradients, not the optimizer's own.",
    )


def _divided(case: Case, stage: int, variables: int) -> Diagnosis:
    return Diagnosis(
        "the gradients are divided by the number of towers twice",
        f"{case.stage(stage)}: gradients are 1/{case.towers} of the original's ({variables} variables).",
    )


def _ratios(pairs: _Pairs, names: set[str]) -> list[float] | None:
    """The factor of each variable that has a gradient; None where one of them is off by no factor."""
    found = []
    for name in names:
        wanted, own = pairs[name]
        if not np.any(wanted) and not np.any(own):
            continue
        ratio = fit(wanted, own)
        if ratio is None:
            return None
        found.append(ratio)
    return found or None


def _scaled(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    ratios = _ratios(pairs, off)
    if ratios is None or not np.allclose(ratios, ratios[0], rtol=CLOSE / 10):
        return None
    if abs(ratios[0] - 1) < CLOSE / 10:  # by no more than factors of one kind may be apart
        return None
    moved = {name for name, (wanted, found) in pairs.items() if np.any(wanted) or np.any(found)}
    if off == moved:
        return Diagnosis(
            "the loss or its gradients are scaled",
            f"{case.stage(stage)}: every gradient is {ratios[0]:.6g} times the original's",
        )
    return Diagnosis(
        f"the gradient of {few(sorted(off))} is scaled",
        f"{case.stage(stage)}: {ratios[0]:.6g} times the original's, those of the other variables agree",
    )


def _sparse(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    """Gradients of rows that were looked up are summed over the towers, all others averaged."""
    ratios = _ratios(pairs, off)
    if case.towers < 2 or ratios is None or not np.allclose(ratios, case.towers, rtol=CLOSE):
        return None
    sparse = {name for name, (wanted, _) in pairs.items() if _has_empty_rows(wanted)}
    if off != sparse or off == set(pairs):
        return None
    return Diagnosis(
        "sparse gradients are summed over the towers, not averaged",
        f"{case.stage(stage)}: {few(sorted(off))} {case.towers} times the original's, dense ones agree",
    )


def _has_empty_rows(gradient: Array) -> bool:
    return gradient.ndim > 1 and float(np.mean(~gradient.reshape(len(gradient), -1).any(1))) >= 0.25


def _zeros(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    empty = sorted(name for name in off if not np.any(pairs[name][1]))
    if not empty or set(empty) != off:
        return None
    return Diagnosis(
        "zeros stand in place of gradients",
        f"{case.stage(stage)}: {few(empty)}, not so in the original",
    )


_MANY = 32
"""Numbers whose last bits are not empty by chance."""


def rounded_to(found: Sequence[Array], wanted: Sequence[Array]) -> str | None:
    """The short type of which all numbers of `found` are, and most of `wanted` are not."""
    one, other = (
        np.concatenate([np.ravel(a).astype(np.float32) for a in s]) for s in (found, wanted)
    )
    one, other = one[one != 0], other[other != 0]
    if one.size < 2 or not np.isfinite(one).all():
        return None
    bits = one.view(np.uint32), other.view(np.uint32)
    for name, mask in (("bfloat16", 0xFFFF), ("float16", 0x1FFF)):
        if not (bits[0] & mask).any() and np.mean((bits[1] & mask) != 0) > 0.9:
            return name
    # Means of a few such numbers need more bits than they have, but leave the last ones empty too.
    mask = 0x3F
    if one.size >= _MANY and np.mean((bits[0] & mask) == 0) > 0.95:
        if np.mean((bits[1] & mask) != 0) > 0.9:
            return "a shorter type, or means of such"
    return None


def _rounded(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    name = rounded_to([pairs[each][1] for each in off], [pairs[each][0] for each in off])
    if name is None or not near(
        joined(pairs[each][0] for each in off), joined(pairs[each][1] for each in off), 1e-2
    ):
        return None
    return Diagnosis(
        "another precision: the gradients are rounded",
        f"{case.stage(stage)}: all numbers of {len(off)} gradients are of {name}, the original's are not",
    )


def regulariser(case: Case, stage: int) -> str | None:
    """Whether what the gradients are off by is a multiple of the weights, and of which; None where not."""
    pairs = case.gradients(stage)
    off = {name for name, (wanted, found) in pairs.items() if not near(wanted, found, 1e-6)}
    factors = {}
    for name in off:
        weights = case.before.get("variable/" + name)
        wanted, found = pairs[name]
        if weights is None or weights.size < 3:
            return None
        square = float((real(weights) ** 2).sum())
        if not square > 0:
            return None
        factor = float((real(weights) * (found - wanted)).sum()) / square
        # The difference of two gradients has lost digits: it is held to what float32 leaves of it.
        rest = found - wanted - factor * real(weights)
        size = float(np.sqrt(((found - wanted) ** 2).sum()))
        noise = 1e-6 * float(np.sqrt((wanted**2).sum()))
        if float(np.sqrt((rest**2).sum())) > 10 * CLOSE * size + noise:
            return None
        factors[name] = factor
    if not factors:
        return None
    values = list(factors.values())
    return (
        f"the gradients of {few(sorted(factors))} are off by {values[0]:.4g} times the weights"
        + ("" if np.allclose(values, values[0], rtol=0.01) else f" to {values[-1]:.4g}")
    )


def _decay(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    found = regulariser(case, stage)
    if found is None:
        return None
    return Diagnosis(
        "a regulariser (weight decay) counts more or less than in the original",
        f"{case.stage(stage)}: {found}",
    )


def _clipped(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    """By norms: constant in one program at several steps, or what clipping each tower's gradient gives."""
    at_steps: list[tuple[Array, Array]] = []
    prefix = f"gradient/{stage}/"
    norms: dict[str, list[tuple[float, float]]] = {}
    for run, wanted, found, _, _ in case.pairs():
        if stage not in run.stages or not (case.lockstep or run.index <= case.run.index):
            continue
        keys = [k for k in wanted if k.startswith(prefix) and k in found]
        at_steps.append(
            (joined(real(wanted[k]) for k in keys), joined(real(found[k]) for k in keys))
        )
        for key in keys:
            norms.setdefault(key[len(prefix) :], []).append((_norm(wanted[key]), _norm(found[key])))
    whole = [(_norm(a), _norm(b)) for a, b in at_steps]
    said = case.stage(stage)
    clipped, own = (_constant([pair[k] for pair in whole]) for k in (0, 1))
    parallel = all(fit(a, b) is not None for a, b in at_steps if a.any())
    if clipped is not None and parallel:
        limit = [found for wanted, found in whole if abs(wanted / clipped - 1) < EXACT]
        if own is not None and abs(own / clipped - 1) > CLOSE:
            if _is_factor(whole, own / clipped):
                if any(wanted < clipped * (1 - CLOSE) for wanted, _ in whole):
                    return None
                if abs(own / clipped * case.towers - 1) < CLOSE:
                    return Diagnosis(
                        "the gradients are clipped by another norm, or divided by the number of towers once more",
                        f"{said}: their global norm is {own:.6g} in place of {clipped:.6g} at all {len(whole)} steps; all of "
                        "them are clipped, so both would look like this",
                    )
            return Diagnosis(
                "the gradients are clipped by another norm",
                f"{said}: their global norm is {own:.6g} in place of {clipped:.6g}",
            )
        if own is None and min(limit) > clipped * (1 + EXACT):
            return Diagnosis(
                "the gradients are not clipped",
                f"{said}: the original's global norm is {clipped:.6g} at {len(limit)} of {len(whole)} steps, here up to {max(limit):.6g}",
            )
    if own is not None and parallel and _is_clipped_sum(whole, own, case.towers):
        return Diagnosis(
            f"the division by the number of towers is missing (sum applied, not mean; ×{case.towers})",
            f"{said}: what is clipped at norm {own:.6g} is {case.towers} times what the original clips",
        )
    if clipped is None and own is not None and parallel:
        if all(
            wanted >= own * (1 - EXACT) for wanted, found in whole if abs(found / own - 1) < EXACT
        ):
            return Diagnosis(
                "the gradients are clipped, which the original's are not",
                f"{said}: their global norm is {own:.6g}, the original's is larger",
            )
    each = [_constant([found for _, found in pair]) for pair in norms.values()]
    known = [c for c in each if c is not None]
    if len(known) > 1 and np.allclose(known, known[0], rtol=EXACT) and clipped is not None:
        return Diagnosis(
            "each gradient is clipped by its own norm, not all by the global one",
            f"{said}: {len(known)} gradients have the norm {known[0]:.6g}, the original's global norm is {clipped:.6g}",
        )
    return _clipped_towers(case, stage, pairs, clipped)


def _clipped_values(case: Case, stage: int, pairs: _Pairs, off: set[str]) -> Diagnosis | None:
    """By single numbers (`tf.clip_by_value`): those that differ all stand at one bound in one of the programs."""
    sides: tuple[list[Array], list[Array]] = ([], [])
    for name in sorted(off):
        wanted, found = (real(each) for each in pairs[name])
        if wanted.shape != found.shape:
            return None
        differ = ~np.isclose(wanted, found, rtol=1e-5, atol=1e-8)
        for side, each in zip(sides, (wanted, found), strict=True):
            side.append(np.abs(each[differ]).ravel())
    theirs, ours = (joined(side) for side in sides)
    said = at_bounds(theirs, ours, "single numbers of the gradients")
    if said is None or not theirs.any() or not ours.any():  # zeros have causes of their own
        return None
    return Diagnosis(
        said,
        f"{case.stage(stage)}: {few(sorted(off))}: {theirs.size} numbers differ, all others agree",
    )


def _is_factor(norms: list[tuple[float, float]], ratio: float) -> bool:
    """Whether the gradients of all steps are off by one factor."""
    return all(abs(found / wanted / ratio - 1) < CLOSE for wanted, found in norms if wanted)


def _is_clipped_sum(norms: list[tuple[float, float]], limit: float, towers: int) -> bool:
    """Whether the sum was clipped where the original clips the mean, or leaves it as it is below the limit."""
    below = [pair for pair in norms if pair[0] < limit * (1 - CLOSE)]
    return bool(below) and all(
        abs(found / min(limit, towers * wanted) - 1) < EXACT for wanted, found in below if wanted
    )


def _clipped_towers(case: Case, stage: int, pairs: _Pairs, limit: float | None) -> Diagnosis | None:
    """The mean of clipped gradients in place of the clipped mean, or the other way round."""
    towers = case.tower_gradients(stage)
    if case.towers < 2 or not towers or not all(set(pairs) <= set(own) for own in towers.values()):
        return None
    own = [joined(towers[t][name] for name in pairs) for t in sorted(towers)]
    wanted, found = (joined(pairs[name][k] for name in pairs) for k in (0, 1))
    mean = np.mean(own, 0)
    for bound, said, one, other in (
        (limit, "before the mean over the towers, not after it", wanted, found),
        (_norm(found), "after the mean over the towers, not before it", found, wanted),
    ):
        if bound is None or not near(mean * min(1.0, bound / max(_norm(mean), 1e-30)), one):
            continue
        if _norm(mean) <= bound:
            continue
        clipped = np.mean([g * min(1.0, bound / max(_norm(g), 1e-30)) for g in own], 0)
        if near(clipped, other) and not near(clipped, one, CLOSE):
            return Diagnosis(
                f"the gradients are clipped {said}",
                f"{case.stage(stage)}: so at norm {bound:.6g} the towers' gradients give what is applied",
            )
    return None


def _norm(array: Array) -> float:
    return float(np.sqrt((real(array) ** 2).sum()))


def _constant(values: list[float]) -> float | None:
    """The bound that the values show: the largest, met at two steps or more, or a round number."""
    most = max(values, default=0.0)
    if not most > 0:
        return None
    alike = [value for value in values if abs(value / most - 1) < EXACT / 10]
    # Two digits: of all norms, 1 in 1,000 is as near to such a number by chance.
    is_round = abs(most / float(f"{most:.1e}") - 1) < EXACT / 10
    return most if len(alike) >= 2 or is_round else None
