"""Which differences a rounding explains: one array at one step, by what the original itself does at that step.

A ReLU or a max-pooling decides by a comparison. Where two values are within a rounding of each other, another kernel, or
another order of a sum, decides otherwise, and a gradient jumps: one decision in a batch of the cifar10 tutorial moves
all of conv1's gradient by 0.7 %, while every other gradient agrees to 1e-6. No fixed tolerance can tell that from a
fault. What can:

* A jump is rare: of one array, and of all of them, most steps are within the tolerance, and most arrays are.
* A jump is irregular: it is no factor over the array, and not the same again at another step. A missing division,
  a rate that is off or a loss that is scaled is uniform, and is never excused.
* The original jumps at the same step in the same elements when its weights are moved by a rounding, up and down
  (`rounding.py`). A unit that is within a rounding of its threshold passes it one way or the other.
* What a jump moves in a variable, a slot or a returned value comes with the jump of a gradient in that very step.

All of this must hold of an array at a step; else the difference stays. Losses do not jump: ReLU and max-pooling are
continuous.

Beside the jumps there is what a program does not determine any better: a bias before batch norm has a gradient that is
nothing but what the roundings of a large sum leave, at every step, and an optimizer that divides by its size makes whole
steps of it. There the original itself is as far away when its weights move by the tolerance, which is what numerical
analysis calls a backward error. That must hold of all of an array's difference, whose factor must be the original's own too;
and what an update carries further is only excused where its gradient is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from towermigrate.verify.comparison import Comparison, Difference, Excuse, beside, shared_slots
from towermigrate.verify.limits import group_of, largest
from towermigrate.verify.trace import Array, Arrays, Trace

# A jump is a small part of a gradient; what is farther off is none.
LARGEST_JUMP = 0.25
# Of all arrays at all steps, as many may be excused at most: one unit moves all layers below its own.
_MOST_ARRAYS = 1 / 3
# The original's own jump need not be the same: more units than one are near their threshold, or fewer.
_MARGIN = 2.0
# Other kernels round in other places than the moves are made, in hundreds of arrays at every step: the farthest of
# those goes beyond twice the farthest of six moves (2.7 times was seen, and 4.6 by factor).
_MARGIN_MOVED = 4.0
# This part of a difference (its sum of squares) must lie where the original jumps too.
_EXPLAINED = 0.9
# The cosine of an angle from which on two arrays are one direction: a difference and its array, or two differences.
_ALIKE = 0.9
# In tolerances: how far from 1 a factor may be that roundings make.
_NO_FACTOR = 10.0
# Of the tolerance: what a gradient is off by that its update may be off by more.
_NEARLY = 0.25
# With fewer elements, a direction says nothing.
_FEW = 4

Place = tuple[str, int]


@dataclass
class Judgement:
    """The differences that are excused, and why each of the others is not."""

    excuses: list[Excuse] = field(default_factory=list)
    refused: dict[Place, str] = field(default_factory=dict)


def cannot_be_rounding(
    expected: Trace, actual: Trace, result: Comparison, tolerance: float
) -> dict[Place, str]:
    """The differences of single steps that no trial could excuse, and why; empty where it is worth asking.

    Args:
        result: the comparison in lock-step, every step from the original's state.
    """
    refused = _none_by_itself(result)
    refused.update(_too_often(result))
    if not refused:
        refused.update(_regular(expected, actual, result, tolerance))
    return refused


def _none_by_itself(result: Comparison) -> dict[Place, str]:
    """The differences that are no jump whatever the others are, and why."""
    refused: dict[Place, str] = {}
    jumps = {(each.name, each.run) for each in result.differences if _is_jump(each)}
    runs_with_jumps = {run for _, run in jumps}
    for each in result.differences:
        why = None
        if not np.isfinite(each.error) or each.level in ("structure", "initial", "input"):
            why = "it is no matter of size"
        elif each.level == "forward":
            why = "ReLU and max-pooling are continuous: a loss that no gradient is part of does not jump"
        elif each.level == "gradient" and not _is_jump(each):
            why = f"it is {each.error:.2g} of the array's size, and a jump is less than {LARGEST_JUMP:g}"
        elif each.key.startswith("between/"):
            why = "nothing decides between two training runs"
        elif each.level == "output" and each.run not in runs_with_jumps:
            why = "no gradient jumps in this step"
        elif each.level == "update" and not _comes_with_a_jump(each, jumps):
            why = "its gradient does not jump in this step"
        if why is not None:
            refused[each.key, each.run] = why
    return refused


def before_what_is_none(
    expected: Trace, actual: Trace, result: Comparison, tolerance: float, *, other_kernels: bool
) -> Comparison | None:
    """The part of a comparison that comes before the first difference that no rounding can be, None where nothing does.

    What is wrong later says nothing about a rounding before it, which would else be named as where the programs part.
    Arguments as for `cannot_be_rounding`.
    """
    if other_kernels:
        by_factor = _by_factor(expected, actual, result, tolerance)
        none = [
            each
            for each in result.differences
            if not _is_near(each) or (each.key, each.run) in by_factor
        ]
    else:
        refused = _none_by_itself(result)
        none = [each for each in result.differences if (each.key, each.run) in refused]
    first = min((each.sort_key()[:2] for each in none), default=None)
    if first is None:
        return None
    earlier = [each for each in result.differences if each.sort_key()[:2] < first]
    if not earlier:
        return None
    runs = sum(run.index <= first[0] for run in expected.runs)
    return Comparison(
        runs=runs,
        compared=result.compared * runs // max(result.runs, 1),
        times={key: min(times, runs) for key, times in result.times.items()},
        differences=earlier,
    )


def as_far_as_moved(
    expected: Trace,
    actual: Trace,
    result: Comparison,
    tolerance: float,
    trials: Sequence[Trace],
    moved_by: float,
) -> list[Excuse]:
    """Differences of single steps that are no larger than what moving its weights does to the original.

    Arguments as for `single_steps`.
    """
    excuses = []
    for run, found in _by_run(result.differences):
        wanted, made, moved = _arrays(expected, actual, trials, run)
        gradients = {
            (each.name, run)
            for each in result.excused
            if each.level == "gradient" and each.run == run
        }
        gradients |= {(name, run) for name in _nearly_off(wanted, made, tolerance)}
        # What an update carries further is a gradient's, which is looked at first.
        for each in sorted(found, key=lambda each: each.level == "update"):
            if each.level == "update" and not _comes_with_a_jump(each, gradients):
                continue
            if not _is_near(each) or each.key not in wanted or each.key not in made:
                continue
            array, off = _off(wanted, made, each.key)
            evidence = _as_far(array, off, _tried(array, moved, each.key), tolerance)
            if evidence is None:
                continue
            excuses.append(_excuse(each, {**evidence, "weights_moved_by": moved_by}))
            if each.level == "gradient":
                gradients.add((each.name, run))
    return excuses


def _nearly_off(wanted: Arrays, made: Arrays, tolerance: float) -> set[str]:
    """Variables whose gradients are off by so much that what an update makes of it may be beyond the tolerance."""
    found = set()
    for key, array in wanted.items():
        if key.startswith("gradient/") and key in made and made[key].shape == array.shape:
            off = largest(made[key].astype(np.float64) - array)
            if off > _NEARLY * tolerance * largest(array):
                found.add(key.split("/", 2)[2])
    return found


def _as_far(
    array: Array, off: Array, tried: list[Array], tolerance: float
) -> dict[str, float | int] | None:
    """The numbers of a difference that the original's own moves reach, None where they do not."""
    size, own = _size(off), max(map(_size, tried), default=0.0)
    most = max((float(np.abs(trial).max()) for trial in tried), default=0.0)
    if size > _MARGIN_MOVED * own or float(np.abs(off).max()) > _MARGIN_MOVED * most:
        return None
    factor = _factor(array, off)
    own_factor = max((abs(_factor(array, trial)) for trial in tried), default=0.0)
    # What is as large as the original's moves and points anywhere has about this factor by chance.
    by_chance = own / (_size(array) * array.size**0.5) if array.any() else 0.0
    if abs(factor) > _MARGIN_MOVED * max(own_factor, by_chance) + tolerance:
        return None
    return {
        "off_by": _relative(size, array),
        "original_moves": _relative(own, array),
        "factor": 1 + factor,
        "factor_of_original": 1 + own_factor,
        "trials": len(tried),
    }


def may_be_moved(expected: Trace, actual: Trace, result: Comparison, tolerance: float) -> bool:
    """Whether it is worth asking if the original moves as far: nothing is far apart, and no gradient off by a factor.

    Noise on a few elements, as of a bias before batch norm, is in line with anything at one step, but not at half of them.
    """
    if not all(map(_is_near, result.differences)):
        return False
    return not _by_factor(expected, actual, result, tolerance)


def _by_factor(expected: Trace, actual: Trace, result: Comparison, tolerance: float) -> set[Place]:
    """Where gradients are off by a factor, of those that are at half of the steps."""
    places: set[Place] = set()
    for run, found in _by_run(result.differences):
        wanted, made, _ = _arrays(expected, actual, (), run)
        for each in found:
            if each.level == "gradient" and each.key in wanted and each.key in made:
                if made[each.key].shape != wanted[each.key].shape:
                    continue
                array, off = _off(wanted, made, each.key)
                if _is_uniform(array, off) and abs(_factor(array, off)) > _NO_FACTOR * tolerance:
                    places.add((each.key, run))
    often = Counter(key for key, _ in places)
    return {(key, run) for key, run in places if 2 * often[key] >= result.times.get(key, 1)}


def _is_near(each: Difference) -> bool:
    """Whether a difference is one of numbers that are not far apart."""
    if each.level in ("forward", "gradient"):
        return each.error < LARGEST_JUMP
    return bool(np.isfinite(each.error)) and each.level in ("update", "output")


def single_steps(
    expected: Trace,
    actual: Trace,
    result: Comparison,
    tolerance: float,
    trials: Sequence[Trace],
    moved_by: float,
) -> Judgement:
    """Excuse differences of single steps where the original jumps at that step too.

    Args:
        trials: runs of the original from the recorded state of each step, its weights moved by `moved_by` of
            their size.
    """
    judgement = Judgement(refused=cannot_be_rounding(expected, actual, result, tolerance))
    if judgement.refused:
        return judgement
    for run, found in _by_run(result.differences):
        wanted, made, moved = _arrays(expected, actual, trials, run)
        for each in found:
            array, off = _off(wanted, made, each.key)
            tried = _tried(array, moved, each.key)
            why, evidence = _explained(each, array, off, tried, tolerance)
            if why is None:
                evidence = {**evidence, "trials": len(tried), "weights_moved_by": moved_by}
                judgement.excuses.append(_excuse(each, evidence))
            else:
                judgement.refused[each.key, run] = why
    return judgement


def free_running(
    expected: Trace,
    actual: Trace,
    result: Comparison,
    trials: Sequence[Trace],
    moved_by: float,
) -> Judgement:
    """Excuse what programs carry along whose every single step is equal, as far as the original does so itself.

    A jump in one step is in all steps after it, so neither its size nor how often it shows says anything here; what
    does is how far the original is, at that very step, from where it was with its weights moved.
    """
    judgement = Judgement()
    for run, found in _by_run(result.differences):
        wanted, made, moved = _arrays(expected, actual, trials, run)
        for each in found:
            if not np.isfinite(each.error) or each.key not in wanted or each.key not in made:
                judgement.refused[each.key, run] = "it is no matter of size"
                continue
            array, off = _off(wanted, made, each.key)
            tried = _tried(array, moved, each.key)
            size, own = _size(off), max(map(_size, tried), default=0.0)
            if array.size < _FEW:  # Of a number, two courses may happen to cross.
                own = max(own, _peers_move(each.key, wanted, moved) * _size(array))
            factor = _factor(array, off)
            own_factor = max((abs(_factor(array, trial)) for trial in tried), default=0.0)
            if not tried or size > _MARGIN * own:
                judgement.refused[each.key, run] = (
                    f"the original is only {_part(own, array)} of its size away when its weights move by "
                    f"{moved_by:g}, the rewritten program {_part(size, array)}"
                )
            elif _is_uniform(array, off) and abs(factor) > _MARGIN * own_factor:
                judgement.refused[each.key, run] = (
                    f"all of it is {1 + factor:.6g} times the original's"
                )
            else:
                judgement.excuses.append(
                    _excuse(
                        each,
                        {
                            "off_by": _relative(size, array),
                            "original_moves": _relative(own, array),
                            "factor": 1 + factor,
                            "trials": len(tried),
                            "weights_moved_by": moved_by,
                        },
                        free_running=True,
                    )
                )
    return judgement


def _is_jump(each: Difference) -> bool:
    return each.level == "gradient" and each.error < LARGEST_JUMP


def _comes_with_a_jump(each: Difference, jumps: set[tuple[str, int]]) -> bool:
    """Whether the gradient of this variable or slot, or of what it averages, jumps in the same step."""
    name = "/" + each.name + "/"
    return any(run == each.run and f"/{variable}/" in name for variable, run in jumps)


def _too_often(result: Comparison) -> dict[Place, str]:
    """Too many steps or arrays, or one array at too many steps."""
    steps = {each.run for each in result.differences}
    if 2 * len(steps) >= result.runs:
        why = f"most steps must be within the tolerance, and {len(steps)} of {result.runs} are not"
        return {(each.key, each.run): why for each in result.differences}
    if len(result.differences) > _MOST_ARRAYS * result.compared:
        why = f"{len(result.differences)} of {result.compared} arrays (over all steps) are not within the tolerance"
        return {(each.key, each.run): why for each in result.differences}
    refused = {}
    for key in {each.key for each in result.differences}:
        mine = [each for each in result.differences if each.key == key]
        times = result.times.get(key, len(mine))
        if 2 * len(mine) >= times:
            for each in mine:
                refused[key, each.run] = (
                    f"it is off at {len(mine)} of {times} steps, and a jump is rare"
                )
    return refused


def _regular(
    expected: Trace, actual: Trace, result: Comparison, tolerance: float
) -> dict[Place, str]:
    """Gradients that are off by a factor, or by the same again at another step."""
    refused: dict[Place, str] = {}
    before: dict[str, list[tuple[int, Array]]] = {}
    for run, found in _by_run(result.differences):
        wanted, made, _ = _arrays(expected, actual, (), run)
        for each in found:
            if each.level != "gradient":
                continue
            array, off = _off(wanted, made, each.key)
            if _is_uniform(array, off):
                refused[each.key, run] = (
                    f"all of it is {1 + _factor(array, off):.6g} times the original's: a jump is irregular"
                )
            for other, earlier in before.setdefault(each.key, []):
                if earlier.shape == off.shape and _is_uniform(earlier, off):
                    refused[each.key, run] = (
                        f"it is off in the direction in which it was off in training run {other}: a drift"
                    )
            before[each.key].append((run, off))
    return refused


def _explained(
    each: Difference, array: Array, off: Array, tried: list[Array], tolerance: float
) -> tuple[str | None, dict[str, float | int]]:
    """Why the trials do not explain a difference, None where they do, and the numbers."""
    if not tried:
        return "the original could not be asked", {}
    own = np.max([np.abs(trial) for trial in tried], axis=0)
    allowed = tolerance * float(np.abs(off).max()) / each.error  # of each element, as was compared
    where = np.abs(off) > allowed
    square = float((off[where] ** 2).sum())
    covered = where & (np.abs(off) <= _MARGIN * own + allowed)
    explained = float((off[covered] ** 2).sum()) / square if square else 0.0
    size, most = _size(off), max(map(_size, tried))
    factor = _factor(array, off)
    own_factor = max(abs(_factor(array, trial)) for trial in tried)
    evidence: dict[str, float | int] = {
        "elements_beyond": int(where.sum()),
        "elements": int(off.size),
        "off_by": _relative(size, array),
        "original_moves": _relative(most, array),
        "explained": explained,
        "factor": 1 + factor,
        "factor_of_original": 1 + own_factor,
    }
    if size > _MARGIN * most:
        return (
            f"at this step the original moves by {_part(most, array)} of its size, the difference is {_part(size, array)}",
            evidence,
        )
    if explained < _EXPLAINED:
        return (
            f"only {explained:.0%} of it lies where the original moves at this step",
            evidence,
        )
    if abs(factor) > _MARGIN * own_factor + tolerance:
        return (
            f"it is {1 + factor:.6g} times the original's, which moves by a factor of {1 + own_factor:.6g} at most",
            evidence,
        )
    return None, evidence


def _is_uniform(array: Array, off: Array) -> bool:
    """Whether `off` is a multiple of `array`, its largest element left out: one element is in line with anything."""
    at = array.ravel() != 0
    first, second = array.ravel()[at], off.ravel()[at]
    if first.size < _FEW:
        return False
    ratio = _factor(first, second)
    rest = np.arange(first.size) != int(np.argmax(np.abs(second)))
    first, second = first[rest], second[rest]
    sizes = _size(first) * _size(second)
    if sizes == 0 or abs(float(first @ second)) < _ALIKE * sizes:
        return False
    return bool(abs(_factor(first, second)) > abs(ratio) / 2)


def _factor(array: Array, off: Array) -> float:
    """By how much the ratio of found to wanted, by least squares, differs from 1."""
    square = float((array * array).sum())
    return float((array * off).sum()) / square if square > 0 else 0.0


def _peers_move(key: str, wanted: Arrays, moved: list[Arrays]) -> float:
    """By what part of their sizes the arrays of a kind move: all losses of a step, say."""
    kind = group_of(key)
    return max(
        (
            _relative(_size(trial), wanted[other].astype(np.float64))
            for other in wanted
            if group_of(other) == kind and wanted[other].any() and wanted[other].dtype.kind == "f"
            for trial in _tried(wanted[other].astype(np.float64), moved, other)
        ),
        default=0.0,
    )


def _off(wanted: Arrays, made: Arrays, key: str) -> tuple[Array, Array]:
    """The original's array in double precision, and what the other one is off by."""
    array = wanted[key].astype(np.float64)
    return array, made[key].astype(np.float64) - array


def _tried(array: Array, moved: Iterable[Arrays], key: str) -> list[Array]:
    arrays = [each[key] for each in moved if key in each and each[key].shape == array.shape]
    tried = [each.astype(np.float64) - array for each in arrays]
    return [each for each in tried if np.isfinite(each).all()]


def _arrays(
    expected: Trace, actual: Trace, trials: Sequence[Trace], run: int
) -> tuple[Arrays, Arrays, list[Arrays]]:
    """The arrays of one training run in all recordings, slots under the original's names."""
    wanted = _of(expected, run)
    made = beside(expected, actual, wanted, _of(actual, run))
    return wanted, made, [shared_slots(wanted, _of(trial, run)) for trial in trials]


def _of(trace: Trace, index: int) -> Arrays:
    return next((trace.arrays(run) for run in trace.runs if run.index == index), {})


def _by_run(differences: list[Difference]) -> Iterable[tuple[int, list[Difference]]]:
    for run in sorted({each.run for each in differences}):
        yield run, [each for each in differences if each.run == run]


def _excuse(
    each: Difference, evidence: dict[str, float | int], *, free_running: bool = False
) -> Excuse:
    return Excuse(
        step=each.step,
        stage=each.stage,
        level=each.level,
        name=each.name,
        replica=each.replica,
        error=each.error,
        key=each.key,
        run=each.run,
        evidence=evidence,
        free_running=free_running,
    )


def _size(array: Array) -> float:
    return float(np.sqrt((array * array).sum()))


def _relative(size: float, array: Array) -> float:
    whole = _size(array)
    return size / whole if whole > 0 else float("inf")


def _part(size: float, array: Array) -> str:
    return f"{_relative(size, array):.2g}"
