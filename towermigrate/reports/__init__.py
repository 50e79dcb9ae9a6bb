"""What `scan` and `rewrite` say: on the terminal, as JSON, as SARIF and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from towermigrate.config import is_shown
from towermigrate.findings import Finding
from towermigrate.rewrite import TreeReport


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
    return replace(report, files=tuple(files))
