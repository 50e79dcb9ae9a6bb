"""What a comparison comes to: how close printed numbers must be, what is too free to be compared, and what is said of it."""

from __future__ import annotations

import math

import numpy as np

from towermigrate.verify.comparison import Comparison, Difference, Excuse, arrays_excused
from towermigrate.verify.devices import DeviceSpec
from towermigrate.verify.files_compare import SAVED
from towermigrate.verify.lines_compare import LEAST_DRIFT, MOST_PRINTED, PRINTED
from towermigrate.verify.programs import Recorded
from towermigrate.verify.report import Reference
from towermigrate.verify.trace import Trace

# Beyond this part of its size, a value that differs between two runs of the original was not compared.
_TOO_FREE = 0.01
# So many times as far apart as arrays of training may be what else a program computes of them: 5e-5 where all are equal.
_LOST = 50

# Of programs that train the same to the last bit: what is made of variables on the way to a file may be rounded once.
_SAME = 1e-6
# How far apart numbers are taken to be, in what was seen of arrays.
_TIMES = 10
# What roundings of a float32 or two come to, as a part of it.
_ROUNDING = 1e-7


def has_other_kernels(reference: Reference, spec: DeviceSpec) -> bool:
    """Whether the two programs ran on kernels that round otherwise at every step: of TensorFlow 1, or made by XLA."""
    return (reference.mode or "").startswith("TensorFlow 1") or spec.kind in ("xla", "tpu")


def numbers_within(
    excused: list[Excuse], reference: Reference, spec: DeviceSpec, apart: float
) -> float | None:
    """How far printed and summarised numbers may be off; None where they are not compared.

    Where the arrays of training are nearer (`apart`, of `drift`) than printed numbers may ever be, what is computed of them
    is too, but for a few digits that differences of like numbers lose. Where kernels round otherwise at every step, what is
    made of an excused variable is off with it.
    """
    carried = [each for each in excused if each.free_running]
    if any(each.error > PRINTED for each in carried):
        return None
    if not has_other_kernels(reference, spec):
        return min(PRINTED, _LOST * max(LEAST_DRIFT, apart / _TIMES))
    off = max((float(each.evidence.get("off_by", 0.0)) for each in carried), default=0.0)
    return min(max(PRINTED, off), MOST_PRINTED)


def saved_within(
    excused: list[Excuse], reference: Reference, spec: DeviceSpec, apart: float, bitwise: bool
) -> float:
    """How far a tensor of a checkpoint may be off, of its largest number: as far as the arrays of training are."""
    if excused or has_other_kernels(reference, spec):
        return SAVED
    return _SAME if bitwise else min(SAVED, apart)


def drift(free: Comparison, shown: Comparison, bitwise: bool = False) -> float:
    """How far apart numbers of the two programs are taken to be, in parts of them: ten times what was seen of arrays.

    Where those are bitwise the same, and of the same kernels, a number that is computed of them in another order is off by
    a rounding of float32.
    """
    if bitwise:
        return _ROUNDING
    seen = [shown.within, *(each.error for each in shown.excused)]
    largest = max((error for error in seen if math.isfinite(error)), default=0.0)
    # What is forgiven free-running grows with the updates made.
    grown = max(1, free.steps) if free.differences else 1
    return min(max(LEAST_DRIFT, _TIMES * largest * grown), PRINTED)


def updates_per_step(made: Trace) -> float | None:
    """How many updates of each stage a run makes, where it is not one as in most."""
    counts = [run.updates / len(run.stages) for run in made.runs if run.updates is not None]
    return max(counts, key=lambda count: abs(count - 1)) if counts else None


def too_free(recorded: Recorded, stages: tuple[str, ...]) -> list[str]:
    """What two runs of the original leave so open that no rewritten program could be told from another."""
    variables = recorded.first.variables()
    return [
        f"{said(key, stages)}: two runs of the original are apart by {error:.0%} themselves"
        for key, error in sorted(recorded.free.items())
        if error > _TOO_FREE
        and not key.startswith("tower_")
        and variables.get(key.partition("state/")[2], {"trainable": True})["trainable"]
    ]


def not_excused(shown: Comparison, stages: tuple[str, ...]) -> tuple[str, ...]:
    """Why differences that a rounding might have made are none of its making."""
    kept = [each for each in shown.differences if (each.key, each.run) in shown.refused]
    kept.sort(key=Difference.sort_key)
    return tuple(
        f"{said(each.key, stages) or each.name} at step {each.step}: {shown.refused[each.key, each.run]}"
        for each in kept
        if np.isfinite(each.error)
    )


def jumps_said(excused: list[Excuse]) -> str:
    """What the report notes where roundings were excused."""
    worst = max(excused, key=lambda each: each.error)
    return (
        f"equal but for {arrays_excused(excused)} that are excused, {worst.name} at step {worst.step} "
        f"by most ({worst.error:.1g}): roundings decide there (ReLU, max-pooling), or it is not determined any better, "
        "as in the original itself when its weights move by as much; see `excuses` in --json"
    )


def said(key: str, stages: tuple[str, ...]) -> str:
    """The key of an array, as a person reads it."""
    parts = key.split("/")
    if parts[0] in ("loss", "gradient", "tower_gradient") and int(parts[1]) < len(stages):
        return f"{parts[0]} of {stages[int(parts[1])]}: {'/'.join(parts[2:])}"
    return "/".join(parts[1:])
