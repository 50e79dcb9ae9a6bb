"""What comparing two recordings finds, as data, and what the keys of their arrays mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from towermigrate.verify.figures import Figures
from towermigrate.verify.trace import Array, Arrays, Run, Trace

Level = Literal[
    "structure", "initial", "input", "forward", "gradient", "update", "trajectory", "output"
]
LEVELS: tuple[Level, ...] = (
    "structure", "initial", "input", "forward", "gradient", "update", "trajectory", "output",
)  # fmt: skip
# The names of differences that are about no single input.
OF_A_LOOK = "input of a run that trains nothing"
BATCHES_TAKEN = "input batches"
# What stands for a summary, or a file, that one of the programs does not write.
NO_SUMMARY = "no such summary"
LOOKED = "what a run that trains nothing gives back"
FED = "what a run that trains nothing is fed for"
NO_FILE = "no such file"
QUANTITIES = ("loss", "gradient", "variable", "slot")


@dataclass(frozen=True)
class Difference:
    """One place where the rewritten program is not the original.

    `step` counts updates of that stage from 0; `error` is in units that the tolerance is in.
    """

    step: int
    stage: int | None
    level: Level
    name: str
    replica: int | None
    expected: float | str | None
    actual: float | str | None
    error: float
    key: str
    run: int

    @property
    def is_of_program(self) -> bool:
        """Whether it is in what the whole program prints and writes, which belongs to no step."""
        return self.key.startswith("doing/")

    def sort_key(self) -> tuple[int, int, float]:
        return (self.run, LEVELS.index(self.level), -self.error)


def of_input(
    trace: Trace,
    name: str,
    key: str,
    expected: str,
    actual: str,
    *,
    step: int = 0,
    tower: int | None = None,
) -> Difference:
    """What is said in words of an input, at the original's training run of a number or at its last one."""
    run = trace.runs[min(step, len(trace.runs) - 1)]
    return Difference(
        step=step,
        stage=run.stages[0],
        level="input",
        name=name,
        replica=tower,
        expected=expected,
        actual=actual,
        error=float("inf"),
        key=key,
        run=run.index,
    )


@dataclass(frozen=True)
class Excuse:
    """A difference of one array at one step that a rounding explains, and the numbers that show it."""

    step: int
    stage: int | None
    level: Level
    name: str
    replica: int | None
    error: float
    key: str
    run: int
    evidence: dict[str, float | int]
    free_running: bool = False


def arrays_excused(excused: Sequence[Excuse]) -> str:
    """How many arrays were excused, as part of a sentence: of single steps, and of the free run beside them."""
    freely = sum(each.free_running for each in excused)
    said = [f"{len(excused) - freely} arrays of single steps"] if len(excused) > freely else []
    said += [f"{freely} of the free run"] if freely else []
    return " and ".join(said)


@dataclass
class Counted:
    """What was compared on one level: the arrays, at which training runs, and the largest error allowed."""

    keys: set[str] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)
    largest: float = 0.0


@dataclass
class Comparison:
    """What came out of comparing two recordings.

    `within` is the largest error that the tolerance allowed, `times` at how many training runs a key was
    compared, `updates` how many of each stage were, and `refused` says why differences that were asked about are not excused.
    """

    steps: int = 0
    runs: int = 0
    max_abs: dict[str, float | None] = field(default_factory=lambda: dict.fromkeys(QUANTITIES))
    within: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    compared: int = 0
    updates: dict[int, int] = field(default_factory=dict)
    counted: dict[Level, Counted] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    excused: list[Excuse] = field(default_factory=list)
    refused: dict[tuple[str, int], str] = field(default_factory=dict)
    figures: Figures = field(default_factory=Figures, repr=False)

    @property
    def max_error(self) -> float:
        """The largest error of all that was compared and is not excused."""
        return max([self.within, *(each.error for each in self.differences)])

    def count(self, level: Level, key: str, run: int, error: float) -> None:
        """Note that a key was compared at a training run; `error` 0 where the tolerance did not allow it."""
        self.compared += 1
        self.times[key] = self.times.get(key, 0) + 1
        self.within = max(self.within, error)
        counted = self.counted.setdefault(level, Counted())
        counted.keys.add(key)
        counted.runs.add(run)
        counted.largest = max(counted.largest, error)

    def excuse(self, excuses: list[Excuse], refused: dict[tuple[str, int], str]) -> None:
        """Take the excused ones out of the differences."""
        gone = {(each.key, each.run) for each in excuses}
        self.excused += excuses
        self.refused.update(refused)
        self.differences = [each for each in self.differences if (each.key, each.run) not in gone]

    def first(self) -> Difference | None:
        return min(self.differences, key=Difference.sort_key, default=None)


@dataclass(frozen=True)
class Pairs:
    """One training run of both programs, and the state each had before it."""

    run: Run
    steps: dict[int, int]
    expected: Arrays
    actual: Arrays
    alternative: Arrays
    before: Arrays
    own_before: Arrays
    growth: int
    stages: tuple[str, ...]


def quantity_of(key: str) -> str | None:
    """Which of QUANTITIES a key holds, None for an input or a single tower's gradient."""
    if key.startswith("state/variable/"):
        return "variable"
    if key.startswith("state/slot/"):
        return "slot"
    kind = key.partition("/")[0]
    return kind if kind in ("loss", "gradient") else None


def level_of(key: str) -> Level:
    """The level that a difference of this key belongs to."""
    if key.startswith("state/"):
        return "update"
    return "forward" if key.startswith("loss/") else "gradient"


def describe_key(key: str) -> tuple[int | None, str, int | None]:
    """The stage, name and replica of a key, None where it has none."""
    parts = key.split("/")
    if parts[0] == "loss":
        return int(parts[1]), "loss", int(parts[2])
    if parts[0] in ("gradient", "tower_gradient"):
        return int(parts[1]), "/".join(parts[2:]), None
    if key.startswith("state/slot/"):
        return int(parts[2]), "/".join(parts[3:]), None
    return None, "/".join(parts[2:]), None


def key_said(pairs: Pairs, key: str) -> str:
    """A key as a person says it: `loss of tower 1, stage train`."""
    stage, name, replica = describe_key(key)
    what = quantity_of(key) if replica is not None else f"{quantity_of(key)} {name}"
    tower = "" if replica is None else f" of tower {replica}"
    return f"{what}{tower}" + ("" if stage is None else f", stage {pairs.stages[stage]}")


def beside(expected: Trace, actual: Trace, wanted: Arrays, found: Arrays) -> Arrays:
    """The arrays of one training run of the rewritten program, named and joined as the original's are."""
    # Only a graph that is watched from outside has one loss of all towers beside the replicas' own.
    styles = [each.meta.get("style") == "session" for each in (expected, actual)]
    if styles == [True, False]:
        found = joined_losses(wanted, found)
    elif styles == [False, False]:
        found = whole_losses(wanted, found)
    return shared_slots(wanted, found)


def whole_losses(expected: Mapping[str, Array], actual: Mapping[str, Array]) -> Arrays:
    """The rewritten program's arrays, with each tower's own loss where its loss is a share of the global one.

    `opt.compute_gradients(loss / N)`, whose sum over N replicas is applied, is TensorFlow's guide's way to write the mean. It is
    one where the gradients that are applied are the original's.
    """
    whole = dict(actual)
    for stage in {key.split("/")[1] for key in expected if key.startswith("loss/")}:
        losses = [key for key in expected if key.startswith(f"loss/{stage}/")]
        grads = [key for key in expected if key.startswith(f"gradient/{stage}/")]
        if len(losses) < 2 or not grads or not actual.keys() >= {*losses, *grads}:
            continue
        scaled = {key: (actual[key] * len(losses)).astype(actual[key].dtype) for key in losses}
        if (
            all(_near(expected[key], actual[key]) for key in grads)
            and any(np.any(expected[key]) for key in grads)
            and all(_near(expected[key], scaled[key]) for key in losses)
            and not any(_near(expected[key], actual[key]) for key in losses)
        ):
            whole.update(scaled)
    return whole


def _near(expected: Array, actual: Array) -> bool:
    """Whether an array is another one but for roundings, which are compared more closely elsewhere."""
    if expected.shape != actual.shape or expected.dtype.kind != "f":
        return False
    size = float(np.max(np.abs(expected), initial=0.0))
    return bool(np.all(np.abs(expected - actual) <= 1e-4 * size))


def joined_losses(expected: Mapping[str, Array], actual: Mapping[str, Array]) -> dict[str, Array]:
    """The rewritten program's arrays, with one loss for each stage for which the original has one of all towers.

    That is their mean; of shares of a global loss, the sum.
    """
    joined = dict(actual)
    for key, wanted in expected.items():
        kind, _, rest = key.partition("/")
        stage, _, number = rest.partition("/")
        if kind != "loss" or number != "0" or f"loss/{stage}/1" in expected:
            continue
        parts = [k for k in actual if k.startswith(f"loss/{stage}/")]
        if len(parts) < 2:
            continue
        values = [joined.pop(part) for part in parts]
        total = np.sum(values, axis=0, dtype=values[0].dtype)
        both = [(total / len(values)).astype(total.dtype), total]
        joined[key] = min(both, key=lambda each: float(np.max(np.abs(each - wanted), initial=0.0)))
    return joined


def shared_slots(expected: Mapping[str, Array], actual: Mapping[str, Array]) -> dict[str, Array]:
    """The rewritten program's arrays with slots under the original's stage.

    Stages that share an optimizer share its slots, and each program files them under the stage it saw
    first. A slot is renamed only where that leaves no choice.
    """
    missing: dict[str, list[str]] = {}
    for key in expected.keys() - actual.keys():
        if key.startswith("state/slot/"):
            missing.setdefault(key.split("/", 3)[3], []).append(key)
    renamed: dict[str, Array] = {}
    for key, value in actual.items():
        name = key
        if key.startswith("state/slot/") and key not in expected:
            wanted = missing.get(key.split("/", 3)[3], [])
            if len(wanted) == 1 and wanted[0] not in renamed:
                name = wanted[0]
        renamed[name] = value
    return renamed
