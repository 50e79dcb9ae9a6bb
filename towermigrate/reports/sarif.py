"""Findings as SARIF 2.1.0, the format in which code hosts and editors read what checkers find.

What a comment hides is left out, not marked as suppressed: GitHub's code scanning does not read that property and
shows such results as open alerts (github/codeql-action, issue 1230).

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from towermigrate import __version__
from towermigrate.findings import RULES, Finding
from towermigrate.migrate import Migration
from towermigrate.notebooks import Positions
from towermigrate.outcome import TreeReport
from towermigrate.reports.sides import lines_of
from towermigrate.reports.terminal import reasons_against_loop
from towermigrate.rule import Rule, Severity

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def tree_sarif(migrations: Mapping[str, Migration], error: str | None) -> dict[str, Any]:
    """The SARIF log of a run.

    Args:
        migrations: by the PATH that the user wrote. Places in the log are relative to the working folder,
            as code hosts want them, and absolute for a tree outside it.
        error: what could not be read or written, None when everything could.
    """
    results: list[dict[str, Any]] = []
    found = [(migration, _told(migration.report)) for migration in migrations.values()]
    used = sorted({finding.rule for _, told in found for finding, _ in told})
    seen: Counter[str] = Counter()
    for migration, told in found:
        lines = {
            path: lines_of(migration.files[path].text or "")
            for path in {finding.path for finding, _ in told} & migration.files.keys()
        }
        positions = {
            path: Positions(migration.files[path].text or "")
            for path in {finding.path for finding, _ in told if finding.cell is not None}
        }
        for finding, level in told:
            on_disk = finding
            if finding.cell is not None:
                on_disk = _on_disk(finding, positions[finding.path])
            results.append(
                _result(
                    on_disk,
                    level,
                    used.index(finding.rule),
                    _uri(migration.root, finding.path),
                    _fingerprint(on_disk, lines.get(finding.path, []), seen),
                )
            )
    invocation: dict[str, Any] = {"executionSuccessful": error is None}
    if error is not None:
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": {"text": error}}]
    driver = {
        "name": "towermigrate",
        "semanticVersion": __version__,
        "rules": [_rule(RULES[rule]) for rule in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _told(report: TreeReport) -> list[tuple[Finding, str]]:
    """What the log holds, each with its level: by file, that of its programs first.

    What keeps a program from loop style is a note, whatever its rule is elsewhere: nothing is wrong with it.
    (Not of kind `informational`: the standard, 3.27.10, gives that the level `none`, which viewers leave out.)
    """
    told: list[tuple[Finding, str]] = []
    reasons: set[Finding] = set()
    for file in report.files:
        for program in file.programs:
            told += [(finding, _LEVELS[finding.severity]) for finding in program.findings]
            for reason in dict.fromkeys(reasons_against_loop(program)):
                if reason not in reasons:  # several programs may share one
                    reasons.add(reason)
                    told.append(
                        (replace(reason, message=f"not loop style: {reason.message}"), "note")
                    )
        told += [(finding, _LEVELS[finding.severity]) for finding in file.findings]
    return told


def _on_disk(finding: Finding, positions: Positions) -> Finding:
    """A finding of a notebook where it stands in the file; for people, its message names cell and line."""
    assert finding.cell is not None
    line, column = positions.of(finding.cell, finding.line, finding.column)
    message = f"cell {finding.cell}, line {finding.line}: {finding.message}"
    return replace(finding, line=line, column=column, message=message)


def _rule(rule: Rule) -> dict[str, Any]:
    example = "\n".join(f"    {line}" for line in rule.example.splitlines())
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {
            "text": f"{rule.why}\n\nWhat to do: {rule.advice}\n\nExample:\n{rule.example}",
            "markdown": f"{rule.why}\n\n**What to do:** {rule.advice}\n\nExample:\n\n{example}\n",
        },
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(
    finding: Finding, level: str, rule_index: int, uri: str, fingerprint: str
) -> dict[str, Any]:
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": level,
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": {
                        "startLine": max(finding.line, 1),
                        "startColumn": finding.column + 1,
                    },
                }
            }
        ],
        "partialFingerprints": {"lineText/v1": fingerprint},
    }


def _fingerprint(finding: Finding, lines: Sequence[str], seen: Counter[str]) -> str:
    """The same after lines were added above: rule, file, the line's text, and the how-manieth of these."""
    line = lines[finding.line - 1].strip() if 0 < finding.line <= len(lines) else ""
    text = f"{finding.rule}\0{finding.path}\0{line}"
    seen[text] += 1
    return hashlib.sha256(f"{text}\0{seen[text]}".encode("utf-8", "replace")).hexdigest()[:32]


def _uri(root: Path, path: str) -> str:
    folder = root.resolve()
    relative = os.path.relpath(folder)
    if relative.split(os.sep)[0] == os.pardir:
        return (folder / path).as_uri()
    return quote((Path(relative) / path).as_posix())
