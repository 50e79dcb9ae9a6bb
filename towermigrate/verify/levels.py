"""The ladder: each level that two programs are compared on gets a verdict of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from towermigrate.verify.comparison import LEVELS, Comparison, Difference, Level
from towermigrate.verify.probe.recording import read_arrays
from towermigrate.verify.trace import Trace

Verdict = Literal["equal", "different", "not compared"]
# What compares the arrays of single steps.
_OF_A_STEP: tuple[Level, ...] = ("forward", "gradient", "update")


@dataclass(frozen=True)
class LevelReport:
    """What one level of one run came to.

    `arrays` were compared at `steps` training runs; `largest` is the largest error, in units that the tolerance is
    in; None where a level has no sizes. `why` says what a verdict does not.
    """

    level: Level
    verdict: Verdict
    arrays: int = 0
    steps: int = 0
    largest: float | None = None
    excused: int = 0
    why: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "arrays": self.arrays,
            "steps": self.steps,
            "largest": None
            if self.largest is None
            else self.largest
            if self.largest < float("inf")
            else "inf",
            "excused": self.excused,
            "why": self.why,
        }


def ladder(
    first: Trace,
    made: Trace,
    free: Comparison,
    single: Comparison,
    shown: Comparison,
    doings: Collection[Difference],
    open_doings: Collection[str],
    *,
    synthetic: bool,
) -> tuple[LevelReport, ...]:
    """The verdicts of all levels, from structure to output.

    Args:
        made: the rewritten program's free-running recording.
        free: what comparing it found.
        single: the same where every step started from the original's state; `free` where that was not needed.
        shown: the comparison that the report shows, with what is excused.
        doings: where printed lines and files differ, and `open_doings` what two originals leave open.
    """
    found: dict[Level, list[Difference]] = {level: [] for level in LEVELS}
    for each in (*shown.differences, *doings):
        found[each.level].append(each)
    reports = {
        "structure": LevelReport(
            "structure",
            "different" if found["structure"] else "equal",
            arrays=len(first.variables()),
            steps=single.runs,
        ),
        "initial": _initial(first, made, found["initial"]),
        "input": _input(first, made, found["input"], synthetic),
        "trajectory": _trajectory(free, shown, single),
        "output": _output(first, found["output"], open_doings, shown),
    }
    for level in _OF_A_STEP:
        reports[level] = _of_a_step(level, single, found[level], shown)
    return tuple(reports[level] for level in LEVELS)


def levels_not_compared(levels: Iterable[LevelReport], *, synthetic: bool) -> list[str]:
    """The levels that were never compared, each a reason not to call the programs equal.

    Made-up inputs were asked for, and are said in the verdict.
    """
    return [
        f"level {each.level}: {each.why or 'nothing of it was recorded'}"
        for each in levels
        if each.verdict == "not compared"
        and not (each.level == "input" and synthetic)
        and each.level not in _OF_A_STEP  # `compare` lists the latter by stage
    ]


def worst_verdicts(runs: Iterable[Iterable[LevelReport]]) -> dict[str, Verdict]:
    """By level, the worst of several runs; not compared where there is none."""
    order: tuple[Verdict, ...] = ("equal", "not compared", "different")
    found: dict[str, Verdict] = {}
    for levels in runs:
        for each in levels:
            found[each.level] = max(
                found.get(each.level, each.verdict), each.verdict, key=order.index
            )
    return {level: found.get(level, "not compared") for level in LEVELS}


def _of_a_step(
    level: Level, single: Comparison, found: list[Difference], shown: Comparison
) -> LevelReport:
    counted = single.counted.get(level)
    excused = sum(1 for each in shown.excused if each.level == level and not each.free_running)
    if counted is None and not found:
        return LevelReport(level, "not compared")
    return LevelReport(
        level,
        "different" if found else "equal",
        arrays=len(counted.keys) if counted else 0,
        steps=len(counted.runs) if counted else 0,
        largest=max([counted.largest if counted else 0.0, *(each.error for each in found)]),
        excused=excused,
    )


def _trajectory(free: Comparison, shown: Comparison, single: Comparison) -> LevelReport:
    keys = [count for level in _OF_A_STEP if (count := free.counted.get(level)) is not None]
    if not keys:
        return LevelReport("trajectory", "not compared")
    excused = {(each.key, each.run) for each in shown.excused if each.free_running}
    beyond = [
        each.error
        for each in free.differences
        if each.level in (*_OF_A_STEP, "output") and (each.key, each.run) not in excused
    ]
    different = bool(shown.differences and beyond) or any(
        each.level == "trajectory" for each in shown.differences
    )
    why = None
    if free.differences and not different:
        why = "roundings add up: within the tolerance times one plus the updates made before"
    return LevelReport(
        "trajectory",
        "different" if different else "equal",
        arrays=sum(len(count.keys) for count in keys),
        steps=free.runs,
        largest=max([free.within, *beyond]),
        excused=sum(1 for each in shown.excused if each.free_running),
        why=why,
    )


def _initial(first: Trace, made: Trace, found: list[Difference]) -> LevelReport:
    both = first.initial().keys() & made.initial().keys()
    if not both and not found:
        return LevelReport(
            "initial", "not compared", why="the recorded values were given to both programs"
        )
    return LevelReport(
        "initial",
        "different" if found else "equal",
        arrays=len(both),
        steps=1,
        largest=max([0.0, *(each.error for each in found)]),
    )


def _input(first: Trace, made: Trace, found: list[Difference], synthetic: bool) -> LevelReport:
    agreed = set(made.meta.get("inputs_agreed", ()))
    steps = 0
    there = False
    by_index = {run.index: run for run in made.runs}
    for run in first.runs:
        recorded = {key for key in first.arrays(run) if key.startswith("input/")}
        there = there or bool(recorded)
        if run.index in by_index:
            own = {key[4:] for key in made.arrays(by_index[run.index]) if key.startswith("own/")}
            agreed |= own & recorded
            steps += bool(agreed & recorded)
    if found:
        return LevelReport("input", "different", len(agreed), steps)
    if not there:
        return LevelReport("input", "equal", why="no tower takes an input")
    if not agreed or (synthetic and not steps):
        why = "made-up inputs were given to both programs" if synthetic else None
        return LevelReport("input", "not compared", why=why)
    why = "by rank and type: made-up inputs were given to both" if synthetic else None
    return LevelReport("input", "equal", len(agreed), steps, why=why)


def _output(
    first: Trace, found: list[Difference], open_doings: Collection[str], shown: Comparison
) -> LevelReport:
    lines, files = len(first.meta.get("printed", ())), len(first.meta.get("files", ()))
    tensors = len(read_arrays(str(first.folder), "checkpoints"))
    returned: set[str] = set()
    for run in first.runs:
        returned |= {key for key in first.arrays(run) if key.startswith("output/")}
    there = lines + files + tensors + len(returned)
    for said in open_doings:
        lines = 0 if "prints" in said else lines
        files = 0 if "files" in said else files
    parts = ((lines, "lines"), (files, "files"), (tensors, "tensors"), (len(returned), "returned"))
    compared = lines + files + tensors + len(returned)
    why = ", ".join(f"{count} {what}" for count, what in parts if count) or None
    excused = sum(1 for each in shown.excused if each.level == "output")
    if found:
        return LevelReport("output", "different", compared, len(first.runs), why=why)
    if not there:
        return LevelReport("output", "equal", why="it prints, writes and returns nothing")
    if not compared:
        return LevelReport(
            "output", "not compared", why="two runs of the original print or write other things"
        )
    return LevelReport("output", "equal", compared, len(first.runs), excused=excused, why=why)
