"""What `scan` and `rewrite` say: on the terminal, as JSON, as SARIF and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from towermigrate.config import is_shown
from towermigrate.findings import Finding
from towermigrate.outcome import TreeReport


def reported(report: TreeReport, select: Sequence[str], ignore: Sequence[str]) -> TreeReport:
    """A report with only the findings that are to be shown; what became of the files stays."""

    def shown(findings: Sequence[Finding]) -> tuple[Finding, ...]:
        return tuple(finding for finding in findings if is_shown(finding, select, ignore))

    files = [
        replace(
            file,
            programs=tuple(
                replace(program, findings=shown(program.findings)) for program in file.programs
            ),
            findings=shown(file.findings),
        )
        for file in report.files
    ]
    told = [file for file in files if file.findings or not file.link or file.status == "rewritten"]
    return replace(report, files=tuple(told))


def place(file: Path, line: int, cell: int | None, column: int | None = None) -> str:
    """A place as a person finds it; lines and columns count from 1.

    Example:
        >>> place(Path("m.py"), 3, None, 1), place(Path("n.ipynb"), 3, 2)
        ('m.py:3:1', 'n.ipynb, cell 2, line 3')
    """
    if cell is not None:
        return f"{file.as_posix()}, cell {cell}, line {line}"
    return f"{file.as_posix()}:{line}" + ("" if column is None else f":{column}")
