"""What verify found: the report, its JSON form and its table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from towermigrate.verify.amounts import Amount
from towermigrate.verify.comparison import QUANTITIES, Difference, Excuse, arrays_excused
from towermigrate.verify.diagnose import Diagnosis
from towermigrate.verify.levels import LevelReport, worst_verdicts
from towermigrate.verify.tpu.report import ADD_NUMBERS, CompileReport, print_compiled

if TYPE_CHECKING:
    from rich.console import Console

# So many things that were left open stand in the verdict's sentence; all are listed above it, and in the JSON document.
_NAMED = 6


@dataclass(frozen=True)
class Reference:
    """What the original ran under. `mode` says where it is not the original as it stands."""

    tensorflow: str | None = None
    python: str | None = None
    mode: str | None = None


@dataclass(frozen=True)
class DeviceReport:
    """The comparison on one device spec. `smallest_tolerance` is the least that would pass."""

    devices: str
    replicas: int
    equal: bool
    steps: int
    updates_per_step: float | None
    max_abs: dict[str, float | None]
    tolerance: float
    smallest_tolerance: float | None
    first_difference: Difference | None = None
    stage: str | None = None
    diagnosis: tuple[Diagnosis, ...] = ()
    note: str | None = None
    excuses: tuple[Excuse, ...] = ()
    not_excused: tuple[str, ...] = ()
    levels: tuple[LevelReport, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict, repr=False)
    amount: Amount | None = None
    # What this run could not compare, though training was: files that are too large, say.
    left_out: tuple[str, ...] = ()
    # What else it prints and writes otherwise, beside the first difference.
    more_outputs: tuple[Difference, ...] = ()

    @property
    def trains_alike(self) -> bool:
        """Whether nothing differs but what the program prints, writes and gets back."""
        first = self.first_difference
        trained = [each for each in self.levels if each.level != "output"]
        return first is None or (
            first.level == "output" and all(each.verdict == "equal" for each in trained)
        )

    def to_json(self) -> dict[str, Any]:
        """The entry of `runs` in verify's JSON contract."""
        difference = self.first_difference
        return {
            "devices": self.devices,
            "replicas": self.replicas,
            "equal": self.equal,
            "steps": self.steps,
            "updates_per_step": self.updates_per_step,
            "updates_made": {} if self.amount is None else self.amount.made,
            "updates_compared": {} if self.amount is None else self.amount.compared,
            "stopped": self.amount is not None and self.amount.stopped,
            "levels": {each.level: each.to_json() for each in self.levels},
            "figures": self.figures,
            "max_abs": {name: _number(self.max_abs.get(name)) for name in QUANTITIES},
            "tolerance": self.tolerance,
            "smallest_tolerance": _number(self.smallest_tolerance),
            "first_difference": None
            if difference is None
            else {
                "step": None if difference.is_of_program else difference.step,
                "stage": self.stage,
                "level": difference.level,
                "name": difference.name,
                "replica": difference.replica,
                "expected": _number(difference.expected),
                "actual": _number(difference.actual),
            },
            "more_outputs": [
                {
                    "name": each.name,
                    "expected": _number(each.expected),
                    "actual": _number(each.actual),
                }
                for each in self.more_outputs
            ],
            "diagnosis": [{"cause": d.cause, "evidence": d.evidence} for d in self.diagnosis],
            "note": self.note,
            "not_excused": list(self.not_excused),
            "left_out": list(self.left_out),
            "compiled": None,
        }

    def excuses_to_json(self, stages: tuple[str, ...]) -> list[dict[str, Any]]:
        """The entries of `excuses`: one array at one step each, with the numbers that show it."""
        return [
            {
                "devices": self.devices,
                "step": each.step,
                "stage": None
                if each.stage is None or each.stage >= len(stages)
                else stages[each.stage],
                "level": each.level,
                "name": each.name,
                "replica": each.replica,
                "error": _number(each.error),
                "evidence": {name: _number(value) for name, value in each.evidence.items()},
                "free_running": each.free_running,
            }
            for each in self.excuses
        ]


@dataclass(frozen=True)
class VerifyReport:
    """The outcome of `run_verify`: `exit_code` is 0 (equal), 1 (a difference) or 3 (could not be run).

    `equal` is about numbers, so it is False where all that was asked for is to compile; if that went well, the exit code
    is 0 all the same.
    """

    equal: bool
    error: str | None = None
    not_compared: tuple[str, ...] = ()
    nondeterministic: tuple[str, ...] = ()
    reference: Reference = field(default_factory=Reference)
    runs: tuple[DeviceReport, ...] = ()
    stages: tuple[str, ...] = ()
    # What kept the programs from changing files of the user's, and what they were kept from though they went on.
    protection: str | None = None
    kept_out: tuple[str, ...] = ()
    compiled: tuple[CompileReport, ...] = ()

    @property
    def exit_code(self) -> int:
        if self.error is not None:
            return 3
        return 0 if self.equal or self.only_compiled else 1

    @property
    def only_compiled(self) -> bool:
        """Whether all that was asked for is to compile for TPUs, and that went well."""
        return (
            self.error is None
            and not self.runs
            and bool(self.compiled)
            and not self.not_compared
            and all(each.compiles for each in self.compiled)
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the runs print and write that could not be compared."""
        return tuple(dict.fromkeys(item for run in self.runs for item in run.left_out))

    @property
    def verdict(self) -> str | None:
        """The verdict as a sentence that names all it is not about; None where there is an error, or only TPUs' compilers ran."""
        if self.error is not None or not self.runs:
            return None
        return "".join(_verdict(self, most=None))

    def to_json(self) -> dict[str, Any]:
        """The JSON contract of `towermigrate verify`: all keys always present."""
        return {
            "equal": self.equal,
            "error": self.error,
            "not_compared": list(self.not_compared),
            "nondeterministic": list(self.nondeterministic),
            "levels": worst_verdicts(run.levels for run in self.runs),
            "excuses": [each for run in self.runs for each in run.excuses_to_json(self.stages)],
            "reference": {
                "tensorflow": self.reference.tensorflow,
                "python": self.reference.python,
                "mode": self.reference.mode,
            },
            "runs": [{**run.to_json(), "verdict": self.verdict} for run in self.runs]
            + [each.to_json() for each in self.compiled],
            "protection": self.protection,
            "kept_out": list(self.kept_out),
        }


def print_report(report: VerifyReport, console: Console, *, error: bool = True) -> None:
    """Print the report as a table, with the first difference and its likely causes below it.

    `error` False leaves the report's error to the caller.
    """
    from rich.table import Table
    from rich.text import Text

    reference = report.reference
    if reference.tensorflow:
        console.print(
            Text(
                f"Original: TensorFlow {reference.tensorflow}, Python {reference.python}, {reference.mode}"
            )
        )
    if report.runs:
        table = Table(box=None, pad_edge=False)
        for name in ("devices", "training"):
            table.add_column(name, no_wrap=True)
        for name in ("steps", "updates", *QUANTITIES):
            table.add_column(name, justify="right", no_wrap=True)
        for run in report.runs:
            verdict = "[green]equal[/]" if run.equal else "[red]different[/]"
            if run.equal and all(value in (0, None) for value in run.max_abs.values()):
                verdict = "[green]bitwise[/]"
            table.add_row(
                run.devices,
                verdict,
                str(run.steps),
                "-" if run.updates_per_step is None else f"{run.updates_per_step:g}",
                *(_shown(run.max_abs.get(name)) for name in QUANTITIES),
            )
        console.print(table)
        console.print(
            Text("updates: of each stage in one run; loss to slot: the largest absolute difference")
        )
        _print_levels(report, console)
    print_compiled(report.compiled, console)
    for run in report.runs:
        difference = run.first_difference
        if run.amount is not None:
            console.print(Text(f"{run.devices}: {run.amount.said()}"))
        if run.note:
            console.print(Text(f"{run.devices}: {run.note}"))
        if difference is None:
            _print_causes(run, console)
            continue
        replica = "" if difference.replica is None else f", tower {difference.replica}"
        if replica and run.devices.startswith("workers:"):
            replica += f" (worker {difference.replica})"
        stage = "" if run.stage is None else f" stage {run.stage},"
        step = "" if difference.is_of_program else f" step {difference.step},"
        console.print(
            Text(
                f"{run.devices}: first difference at{step}{stage} level "
                f"{difference.level}: {difference.name}{replica}\n"
                f"    expected {_value(difference.expected)}, got {_value(difference.actual)}"
            )
        )
        if run.more_outputs:
            names = "; ".join(each.name for each in run.more_outputs[:3])
            count = len(run.more_outputs)
            rest = f" and {count - 3} more, see --json" if count > 3 else ""
            console.print(Text(f"    other outputs that differ: {names}{rest}"))
        if run.not_excused:
            more = len(run.not_excused) - 1
            rest = f" (and {more} more, see --json)" if more else ""
            console.print(Text(f"    no rounding: {run.not_excused[0]}{rest}"))
        _print_causes(run, console)
        if run.smallest_tolerance is None:
            console.print(Text("    no tolerance would pass"))
        else:
            console.print(
                Text(
                    f"    the smallest tolerance that would pass is {run.smallest_tolerance:.2g} "
                    f"(--tolerance is {run.tolerance:g})"
                )
            )
    for title, items in (
        ("not compared", report.not_compared),
        ("nondeterministic in the original", report.nondeterministic),
        ("left out", report.left_out),
        ("kept from changing (see --allow-write)", report.kept_out),
    ):
        for item in items[:10]:
            console.print(Text(f"{title}: {item}"))
        if len(items) > 10:
            console.print(Text(f"{title}: {len(items) - 10} more, see --json"))
    if report.protection is not None:
        console.print(
            Text(f"files outside of the scratch copies were protected {report.protection}")
        )
    if report.error is not None:
        if error:
            console.print(Text(f"error: {report.error}"))
    elif report.compiled and not report.runs:
        _print_only_compiled(report, console)
    else:
        word, sentence = _verdict(report, most=_NAMED)
        console.print(Text.assemble((word, "green" if report.equal else "red"), sentence))


def _verdict(report: VerifyReport, most: int | None) -> tuple[str, str]:
    """The verdict's word and the rest of its sentence; of what was left open it names the first `most`."""
    rest = f"{_left_out(report, most)}{_compiled(report)}"
    if report.equal:
        return "equal:", f" the rewritten program trains as the original does{rest}"
    if all(run.equal for run in report.runs):
        compiles = all(each.compiles for each in report.compiled)
        but = ", but not everything could be compared" if compiles else ""
        return "no pass:", f" nothing differs{but}{rest}"
    if all(run.trains_alike for run in report.runs):
        but = "trains as the original does, but prints, writes or returns something else"
        return "different:", f" the rewritten program {but}{rest}"
    return "different:", f" the rewritten program does not train as the original does{rest}"


def _print_only_compiled(report: VerifyReport, console: Console) -> None:
    """The verdict where nothing but compiling was asked for."""
    from rich.text import Text

    for each in report.compiled:
        colour = "green" if each.compiles else "red"
        console.print(Text.assemble((each.verdict, colour), f"; {ADD_NUMBERS}"))
    if report.not_compared:
        console.print(Text.assemble(("no pass:", "red"), " not every stage could be compiled"))


def _compiled(report: VerifyReport) -> str:
    """What the TPU compiler says, as part of the verdict's sentence."""
    return "".join(f"; {each.verdict}" for each in report.compiled)


def _left_out(report: VerifyReport, most: int | None) -> str:
    """What the verdict is not about, as part of its sentence; of what was left open the first `most`."""
    levels = [
        level
        for level, verdict in worst_verdicts(run.levels for run in report.runs).items()
        if verdict == "not compared"
    ]
    said = [f"not compared: {', '.join(levels)}"] if levels and report.runs else []
    stopped = [run.amount for run in report.runs if run.amount is not None and run.amount.stopped]
    if stopped:
        count = max(amount.most() for amount in stopped)
        said.append(f"stopped after {count} updates: --steps all runs to the end")
    excuses = [each for run in report.runs for each in run.excuses]
    if excuses:
        said.append(f"excused: {arrays_excused(excuses)}")
    # What was not compared says first on which devices; the verdict names what it is.
    named = [run.devices for run in report.runs] + [each.devices for each in report.compiled]
    devices = tuple(f"{each}: " for each in named)
    missing = [_less(item, devices) for item in report.not_compared]
    items = [*missing, *report.nondeterministic, *report.left_out]
    names = list(dict.fromkeys(item.partition(": ")[0] for item in items))
    if names:
        more = "" if most is None or len(names) <= most else f" and {len(names) - most} more"
        said.append(f"left open: {', '.join(names[:most])}{more}")
    return f" ({'; '.join(said)})" if said else ""


def _less(item: str, beginnings: tuple[str, ...]) -> str:
    return next((item[len(each) :] for each in beginnings if item.startswith(each)), item)


def _print_levels(report: VerifyReport, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in ("devices", "level", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("arrays", "steps", "largest", "excused"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    colours = {"equal": "green", "different": "red", "not compared": "yellow"}
    for run in report.runs:
        for each in run.levels:
            table.add_row(
                run.devices,
                each.level,
                f"[{colours[each.verdict]}]{each.verdict}[/]",
                str(each.arrays) if each.verdict != "not compared" else "-",
                str(each.steps) if each.verdict != "not compared" else "-",
                "-" if each.largest is None else _shown(each.largest),
                str(each.excused) if each.excused else "-",
                Text(each.why or ""),
            )
    console.print(table)
    console.print(Text("largest: the largest error, in units that --tolerance is in"))


def _print_causes(run: DeviceReport, console: Console) -> None:
    from rich.text import Text

    for diagnosis in run.diagnosis:
        console.print(Text(f"    likely: {diagnosis.cause}. {diagnosis.evidence}"))


def _number(value: float | str | None) -> float | str | None:
    """JSON knows no infinity and no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _shown(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else f"{value:.1e}"


def _value(value: float | str | None) -> str:
    return "nothing" if value is None else f"{value:.9g}" if isinstance(value, float) else value
