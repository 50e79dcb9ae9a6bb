"""What `scan` and `rewrite` say: as JSON for programs, as text for people."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from towermigrate import __version__
from towermigrate.findings import Finding
from towermigrate.program import TowerProgram
from towermigrate.rewrite import FileReport, ProgramReport, TreeReport

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


def finding_json(finding: Finding, path: str) -> dict[str, Any]:
    """A finding of the file `path`; one about another file, which a tower calls, says so in its message."""
    elsewhere = f"{finding.path}:{finding.line}: " if finding.path != path else ""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "line": finding.line,
        "column": finding.column,
        "message": elsewhere + finding.message,
    }


def _program_json(program: ProgramReport, path: str) -> dict[str, Any]:
    return {
        "line": program.line,
        "function": program.function,
        "style": program.style,
        "status": program.status,
        "stages": [
            {"loss": stage.loss, "optimizer": stage.optimizer, "var_list": stage.var_list}
            for stage in program.stages
        ],
        "findings": [finding_json(finding, path) for finding in program.findings],
    }


def tree_json(reports: Mapping[str, TreeReport], error: str | None) -> dict[str, Any]:
    """The JSON document of `scan` and `rewrite`.

    Args:
        reports: one report per PATH, by the PATH as the user wrote it. Paths in the document are relative
            to the one PATH; with several, PATH stands in front.
        error: what could not be read or written, None when everything could.
    """
    files: list[dict[str, Any]] = []
    for prefix, report in reports.items():
        for file in report.files:
            path = file.path if len(reports) == 1 else (Path(prefix) / file.path).as_posix()
            files.append(
                {
                    "path": path,
                    "status": file.status,
                    "programs": [_program_json(program, file.path) for program in file.programs],
                    "findings": [finding_json(finding, file.path) for finding in file.findings],
                }
            )
    programs = [program for report in reports.values() for program in report.programs]
    statuses = [file["status"] for file in files]
    changed = sum(len(report.texts) for report in reports.values())
    return {
        "tool": f"towermigrate {__version__}",
        "error": error,
        "summary": {
            "files": len(files),
            "changed": changed,
            "unparsable": statuses.count("unparsable"),
            "programs": len(programs),
            "converted": sum(program.status == "converted" for program in programs),
            "refused": sum(program.status == "refused" for program in programs),
        },
        "files": files,
    }


def diff(path: str, before: str, after: str) -> str:
    """A unified diff whose lines keep their line ends; a missing last one is said as `diff` says it."""
    # Only \\n ends a line of a diff; `splitlines` would also break at form feeds and the like.
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    lines: list[str] = []
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


def _show_findings(console: Console, root: Path, findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        colour = _COLOURS[finding.severity]
        place = f"{root / finding.path}:{finding.line}:{finding.column + 1}"
        console.print(
            f"  [{colour}]{finding.severity}[/] {finding.rule} {escape(place)} "
            f"{escape(finding.message)}",
            soft_wrap=True,
            highlight=False,
        )


def show_tree(console: Console, root: Path, report: TreeReport, verb: str) -> None:
    """Print the programs with their stages, the findings and a summary. `verb` says what happened to the changed files."""
    for file in report.files:
        for program in file.programs:
            _show_program(console, f"{root / file.path}:{program.line}", program)
    for file in report.files:
        _show_file(console, root, file)
    programs = report.programs
    refused = sum(program.status == "refused" for program in programs)
    console.print(
        f"{len(report.files)} TensorFlow files, {len(report.texts)} {verb}; {len(programs)} tower programs, "
        f"{len(programs) - refused} converted, {refused} refused.",
        soft_wrap=True,
        highlight=False,
    )
    rules = sorted({f.rule for f in _all_findings(report) if f.severity == "error"})
    if rules:
        console.print(f"Why and what to do: towermigrate explain {rules[0]}", highlight=False)


def _show_program(console: Console, where: str, program: ProgramReport) -> None:
    becomes = f"{program.style} style" if program.status == "converted" else "refused"
    colour = "green" if program.status == "converted" else "red"
    place = f"in {program.function}" if program.function else "at module level"
    console.print(
        f"[bold]{escape(where)}[/] towers {escape(place)}: [{colour}]{becomes}[/]",
        soft_wrap=True,
        highlight=False,
    )
    if program.recognised is not None:
        for line in _loop_lines(program.recognised):
            console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
    for stage in program.stages:
        over = f", variables {stage.var_list}" if stage.var_list else ""
        console.print(
            f"  stage {stage.name}: loss {stage.loss}, optimizer {stage.optimizer}{over}",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )


def _loop_lines(program: TowerProgram) -> list[str]:
    """The towers and what each of them is given, a line each."""
    count = program.loop.count
    number = f" = {count.value}" if count.value is not None and count.name else ""
    shared = (
        f", variables shared by {', '.join(program.loop.sharing)}" if program.loop.sharing else ""
    )
    lines = [f"towers {count.expression}{number} ({count.kind}){shared}"]
    for given in program.inputs:
        lines.append(f"input {', '.join(given.names)} from {given.source} ({given.kind})")
    return lines


def _show_file(console: Console, root: Path, file: FileReport) -> None:
    for program in file.programs:
        _show_findings(console, root, program.findings)
    _show_findings(console, root, file.findings)


def _all_findings(report: TreeReport) -> list[Finding]:
    return [f for file in report.files for f in file.findings] + [
        f for program in report.programs for f in program.findings
    ]
