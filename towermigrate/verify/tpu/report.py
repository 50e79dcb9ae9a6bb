"""What compiling for a TPU came to: a verdict and figures for each step, as JSON and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

ADD_NUMBERS = "numbers were not compared: add --devices cpu:N"


@dataclass(frozen=True)
class Blocker:
    """What stands in the way of compiling a step. `file`, `line` and `source` are the rewritten program's, None where unknown."""

    why: str
    operation: str | None = None
    name: str | None = None
    file: str | None = None
    line: int | None = None
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def said(self) -> str:
        where = "" if self.file is None else f"{self.file}:{self.line}: "
        operation = "" if self.operation is None else f"{self.operation}: "
        return f"{where}{operation}{self.why}"


@dataclass(frozen=True)
class StepCompiled:
    """One training step on one replica. `hbm_bytes` and the like are None where it does not compile.

    `inputs` are what it takes where the batch is for `towers` towers. `flops` is the compiler's estimate for one call; of loops it may count one turn. `left_out` are the summaries and
    prints that were taken out of the step.
    """

    step: str
    file: str
    line: int
    updates: tuple[str, ...]
    inputs: tuple[str, ...]
    towers: int = 1
    left_out: tuple[str, ...] = ()
    compiles: bool = False
    seconds: float | None = None
    hbm_bytes: dict[str, int] | None = None
    flops: float | None = None
    blockers: tuple[Blocker, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "file": self.file,
            "line": self.line,
            "updates": list(self.updates),
            "inputs": list(self.inputs),
            "towers": self.towers,
            "left_out": list(self.left_out),
            "compiles": self.compiles,
            "seconds": self.seconds,
            "hbm_bytes": self.hbm_bytes,
            "flops": self.flops,
            "blockers": [each.to_json() for each in self.blockers],
        }


@dataclass(frozen=True)
class CompileReport:
    """What came of one `tpu-compile:TYPE`. `compiler` has the versions, and what the compiler calls the device."""

    devices: str
    tpu: str
    steps: tuple[StepCompiled, ...]
    compiler: dict[str, str] = field(default_factory=dict)

    @property
    def compiles(self) -> bool:
        return bool(self.steps) and all(step.compiles for step in self.steps)

    @property
    def verdict(self) -> str:
        return f"{'compiles' if self.compiles else 'does not compile'} for {self.tpu}"

    def to_json(self) -> dict[str, Any]:
        """An entry of `runs` in verify's JSON contract, in which no number is compared: `equal` is null."""
        return {
            "devices": self.devices,
            "replicas": 1,
            "equal": None,
            "steps": 0,
            "updates_per_step": None,
            "updates_made": {},
            "updates_compared": {},
            "stopped": False,
            "levels": {},
            "figures": {},
            "max_abs": dict.fromkeys(("loss", "gradient", "variable", "slot")),
            "tolerance": None,
            "smallest_tolerance": None,
            "first_difference": None,
            "diagnosis": [],
            "note": f"{self.verdict}; nothing numerical was compared",
            "not_excused": [],
            "compiled": {
                "tpu": self.tpu,
                "compiles": self.compiles,
                "compiler": self.compiler,
                "steps": [step.to_json() for step in self.steps],
            },
        }


def print_compiled(reports: Sequence[CompileReport], console: Console) -> None:
    """Print a row for each step, and below it what stands in the way of those that do not compile."""
    from rich.table import Table
    from rich.text import Text

    if not reports:
        return
    table = Table(box=None, pad_edge=False)
    for name in ("devices", "step", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("HBM", "arguments", "outputs", "temporaries", "FLOPs", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for report in reports:
        for step in report.steps:
            verdict = "[green]compiles[/]" if step.compiles else "[red]does not[/]"
            table.add_row(report.devices, Text(step.step), verdict, *figures_said(step))
    console.print(table)
    console.print(
        Text(
            "HBM to seconds: one replica's step, on one core, as the TPU compiler has it; no TPU ran"
        )
    )
    for report in reports:
        for line in _lines(report):
            console.print(Text(line))


def figures_said(step: StepCompiled) -> tuple[str, ...]:
    """The figures of one step, for a table: bytes in all, of arguments, outputs and temporaries, FLOPs, seconds."""
    if step.hbm_bytes is None:
        return ("-",) * 6
    sizes = (step.hbm_bytes[name] for name in ("total", "arguments", "outputs", "temporaries"))
    return (
        *(bytes_said(size) for size in sizes),
        "-" if step.flops is None else f"{step.flops:,.0f}",
        "-" if step.seconds is None else f"{step.seconds:.1f}",
    )


def bytes_said(size: int) -> str:
    """`12.5 KiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


def _lines(report: CompileReport) -> Iterator[str]:
    compiler = report.compiler
    if compiler:
        yield (
            f"{report.devices}: {compiler['device']}, by libtpu {compiler['libtpu']} and jax {compiler['jax']}"
        )
    for step in report.steps:
        towers = "the only tower" if step.towers == 1 else f"one of {step.towers} towers"
        takes = ", ".join(step.inputs) or "no input"
        yield f"{report.devices}: {step.step} ({step.file}:{step.line}) takes {takes}, as {towers}"
        if step.left_out:
            yield f"    left out, as no part of what a TPU computes: {', '.join(step.left_out)}"
        for each in step.blockers:
            yield f"    {each.said()}"
            if each.source:
                yield f"        {each.source}"
