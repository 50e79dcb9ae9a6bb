"""The JSON document of `scan` and `rewrite`, and unified diffs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from towermigrate import __version__
from towermigrate.findings import Finding
from towermigrate.outcome import ProgramReport, TreeReport


def finding_json(finding: Finding, path: str) -> dict[str, Any]:
    """A finding of the file `path`; one about another file, which a tower calls, says so in its message.

    In a notebook `line` and `column` count in a cell, whose number (from 1, over all cells) is `cell`.
    """
    elsewhere = f"{finding.path}:{finding.line}: " if finding.path != path else ""
    if finding.cell is not None:
        elsewhere = f"cell {finding.cell}: "
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        **_cell(finding.cell),
        "line": finding.line,
        "column": finding.column,
        "message": elsewhere + finding.message,
    }


def _cell(number: int | None) -> dict[str, int]:
    return {} if number is None else {"cell": number}


def _program_json(program: ProgramReport, path: str) -> dict[str, Any]:
    return {
        **_cell(program.cell),
        "line": program.line,
        "function": program.function,
        "style": program.style,
        "status": program.status,
        "stages": [
            {"loss": stage.loss, "optimizer": stage.optimizer, "var_list": stage.var_list}
            for stage in program.stages
        ],
        "findings": [finding_json(finding, path) for finding in program.findings],
        "not_loop": [_reason_json(finding, path) for finding in program.not_loop],
    }


def _reason_json(finding: Finding, path: str) -> dict[str, Any]:
    """What keeps a program from loop style: as a finding, but no judgement."""
    found = finding_json(finding, path)
    return {key: value for key, value in found.items() if key != "severity"}


def tree_json(reports: Sequence[tuple[Path, TreeReport]], error: str | None) -> dict[str, Any]:
    """The JSON document of `scan` and `rewrite`.

    Args:
        reports: one report per PATH, with the folder it is about as the user wrote it. Paths in the document
            are relative to the one PATH; with several, that folder stands in front.
        error: what could not be read or written, None when everything could.
    """
    files: list[dict[str, Any]] = []
    left_out: list[dict[str, str]] = []
    for root, report in reports:
        for one in report.left_out:
            path = one.path if len(reports) == 1 else f"{root.as_posix()}/{one.path}"
            left_out.append({"path": path, "reason": one.reason})
        for file in report.files:
            path = file.path if len(reports) == 1 else (root / file.path).as_posix()
            files.append(
                {
                    "path": path,
                    "status": file.status,
                    "programs": [_program_json(program, file.path) for program in file.programs],
                    "findings": [finding_json(finding, file.path) for finding in file.findings],
                }
            )
    programs = [program for _, report in reports for program in report.programs]
    statuses = [file["status"] for file in files]
    changed = sum(len(report.texts) for _, report in reports)
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
        "left_out": left_out,
    }


def diff(path: str, before: str, after: str) -> str:
    """A unified diff whose lines keep their line ends; a missing last one is said as `diff` says it."""
    # Only \\n ends a line of a diff; `splitlines` would also break at form feeds and the like.
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    lines: list[str] = []
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)
