"""Plant one fault of each kind that fits into a program's rewritten form, and see that `verify` finds each.

    report = run_self_test(VerifyOptions(Path("src")))
    sys.exit(report.exit_code)

The original is recorded once (`references.py`); only the rewritten side runs for each fault.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towermigrate.project import ProjectError
from towermigrate.tree import import_closure
from towermigrate.verify.devices import parse_devices
from towermigrate.verify.options import VerifyOptions, check_options
from towermigrate.verify.plant import Fault, plant, planted
from towermigrate.verify.report import VerifyReport
from towermigrate.verify.run import run_verify
from towermigrate.verify.tree import NothingToVerify, copy_tree, original_and_rewritten

if TYPE_CHECKING:
    from rich.console import Console

# Faults of one kind that are tried where the program cannot run with the first.
_TRIES = 3


@dataclass(frozen=True)
class FaultOutcome:
    """What `verify` said of one planted fault. `found` is None where the program could not run with it."""

    fault: Fault
    found: bool | None
    level: str | None = None
    first: str | None = None
    diagnosis: tuple[str, ...] = ()
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.fault.kind,
            "place": self.fault.place,
            "said": self.fault.said,
            "found": self.found,
            "level": self.level,
            "first_difference": self.first,
            "diagnosis": list(self.diagnosis),
            "error": self.error,
        }


@dataclass(frozen=True)
class SelfTestReport:
    """The verdict on the program as it is, and what came of every fault."""

    unchanged: VerifyReport
    outcomes: tuple[FaultOutcome, ...] = ()
    error: str | None = None

    @property
    def exit_code(self) -> int:
        """0: all were found; 1: one was missed, or the program itself does not pass; 3: nothing could be tested."""
        if self.error is not None or self.unchanged.error is not None:
            return 3
        if self.unchanged.exit_code:
            return self.unchanged.exit_code
        return 1 if any(outcome.found is False for outcome in self.outcomes) else 0

    def to_json(self) -> dict[str, Any]:
        """The JSON contract of `verify` for the unchanged program, and `self_test` beside it."""
        document = self.unchanged.to_json()
        document["error"] = document["error"] or self.error
        document["self_test"] = {
            "all_found": self.exit_code == 0,
            "faults": [outcome.to_json() for outcome in self.outcomes],
        }
        return document


def run_self_test(options: VerifyOptions) -> SelfTestReport:
    """Verify the program, then each of its forms with one fault planted, on the first device spec that compares numbers.

    Raises:
        ValueError: the options are not usable (see `check_options`).
        ConfigError: the tree's settings cannot be meant.
    """
    check_options(options)
    scratch = Path(tempfile.mkdtemp(prefix="towermigrate-self-test-"))
    try:
        return _test(options, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _test(options: VerifyOptions, scratch: Path) -> SelfTestReport:
    try:
        originals, rewritten = original_and_rewritten(
            options.root, options.rewritten, options.progress
        )
        copy_tree(options.root, scratch / "original", originals)
        copy_tree(options.rewritten or options.root, scratch / "rewritten", rewritten)
    except (NothingToVerify, ProjectError, OSError) as problem:
        return SelfTestReport(VerifyReport(False, str(problem)))
    devices = [each for each in options.devices if not each.startswith("tpu-compile")][:1]
    if not devices:
        said = (
            "A fault is found by its numbers, and tpu-compile compares none: give --devices cpu:2."
        )
        return SelfTestReport(VerifyReport(False, said))
    kept = options.reference or scratch / "reference"
    name = options.path.name if options.path.is_file() else ""
    base = replace(
        options,
        path=scratch / "original" / name,
        rewritten=scratch / "rewritten",
        devices=tuple(devices),
        save=None if options.reference else kept,
    )
    unchanged = run_verify(base)
    if unchanged.exit_code:
        return SelfTestReport(unchanged)
    base = replace(base, save=None, reference=kept, keep=None)
    towers = parse_devices(base.devices[0]).replicas
    about = json.loads((kept / f"towers-{towers}" / "reference.json").read_text(encoding="utf-8"))
    paths = import_closure(rewritten, [about["entry"]])
    faults = plant(rewritten, towers, paths)
    outcomes = tuple(_outcomes(base, rewritten, faults, scratch))
    error = None if outcomes else "No fault fits into the rewritten program; nothing was tested."
    return SelfTestReport(unchanged, outcomes, error)


def _outcomes(
    base: VerifyOptions, rewritten: dict[str, str], faults: list[Fault], scratch: Path
) -> Iterator[FaultOutcome]:
    """What came of one fault of each kind, the next of its kind where a program cannot run with one."""
    kinds: dict[str, list[Fault]] = {}
    for fault in faults:
        kinds.setdefault(fault.kind, []).append(fault)
    for number, (kind, same) in enumerate(kinds.items(), 1):
        base.progress(f"Fault {number} of {len(kinds)}: {kind}")
        quiet = replace(base, progress=lambda _: None)
        for fault in same[:_TRIES]:
            outcome = _outcome(quiet, planted(rewritten, fault), fault, scratch / "planted")
            if outcome.found is not None:
                break
        yield outcome


def _outcome(
    options: VerifyOptions, sources: dict[str, str], fault: Fault, folder: Path
) -> FaultOutcome:
    assert options.rewritten is not None
    copy_tree(options.rewritten, folder, sources)
    try:
        report = run_verify(replace(options, rewritten=folder))
    finally:
        shutil.rmtree(folder)
    if report.error is not None:
        return FaultOutcome(fault, None, error=report.error)
    run = report.runs[0]
    first = run.first_difference
    level: str | None = None if first is None else first.level
    if report.exit_code == 1 and first is None:
        level = "not compared"
    return FaultOutcome(
        fault,
        report.exit_code == 1,
        level,
        None if first is None else first.name,
        tuple(each.cause for each in run.diagnosis),
    )


def print_self_test(report: SelfTestReport, console: Console) -> None:
    """Print a line for each fault, and what it adds up to."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in ("fault", "place", "verdict", "level", "likely cause"):
        table.add_column(name)
    for outcome in report.outcomes:
        verdict = {
            True: Text("found", "green"),
            False: Text("MISSED", "bold red"),
            None: Text("cannot run", "yellow"),
        }[outcome.found]
        table.add_row(
            Text(outcome.fault.kind),
            Text(outcome.fault.place),
            verdict,
            Text(outcome.level or "-"),
            Text(outcome.diagnosis[0] if outcome.diagnosis else "-"),
        )
    if report.outcomes:
        console.print(table)
    for outcome in report.outcomes:
        if outcome.found is False:
            console.print(
                Text(f"MISSED: {outcome.fault.kind} at {outcome.fault.place}: {outcome.fault.said}")
            )
    ran = [outcome for outcome in report.outcomes if outcome.found is not None]
    if report.exit_code == 0:
        console.print(f"[green]all found:[/] {len(ran)} planted faults, one of each kind that fits")
    elif ran:
        missed = sum(outcome.found is False for outcome in ran)
        console.print(f"[red]{missed} missed[/] of {len(ran)} planted faults")
