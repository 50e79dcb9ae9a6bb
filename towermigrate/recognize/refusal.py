"""How a recogniser says that a form is not understood: with the rule and the place, and all others as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.recognize.source import SourceFile


class Refused(Exception):
    """The program stays as it is; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Unwritten(Exception):
    """A program cannot be written in loop style; `findings` say why, in the order in which they were found."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__(findings[0].message)
        self.findings = findings


def note(rule: str, file: SourceFile, node: cst.CSTNode, message: str) -> Finding:
    """A finding at a node."""
    where = file.span(node)
    # Quoted code may run over several lines.
    message = " ".join(message.split())
    return Finding(rule, file.path, where.line, where.column, message)


def refuse(rule: str, file: SourceFile, node: cst.CSTNode, message: str) -> Refused:
    """The exception to raise for a form at `node` that is not understood."""
    return Refused(note(rule, file, node, message))


class Reasons:
    """Everything that readers found that keeps a program from loop style, in the order in which they found it."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def say(self, rule: str, file: SourceFile, node: cst.CSTNode, message: str) -> None:
        """A finding at a node; the reader goes on."""
        self.findings.append(note(rule, file, node, message))

    def settle(self) -> None:
        """Raise `Unwritten` where there is anything."""
        if self.findings:
            raise Unwritten(self.findings)

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep what is raised inside, where a reader cannot go on at one statement but can at the next."""
        try:
            yield
        except Refused as refusal:
            self.findings.append(refusal.finding)


_ORDER = (
    "TM205 TM212 TM221 TM235 TM201 TM202 TM218 TM214 TM217 TM208 TM203 TM204 TM207 TM219 TM206 TM220 TM211 TM209 TM210 TM225 TM233 "
    "TM234 TM230 TM226 TM228 TM227 TM224 TM229 TM232 TM231 TM223 TM222 TM236"
).split()
"""Rules by how much of a program would have to change: its structure, what trains, then single statements."""


STRUCTURE = frozenset("TM201 TM202 TM203 TM204 TM205 TM208 TM209 TM212 TM217 TM218 TM290".split())
"""Rules that leave parts of a program unread: what could be written of such a program says nothing of it."""


def by_importance(findings: list[Finding], own: str) -> list[Finding]:
    """The findings without what is said twice, most important first: by rule, then by place.

    Args:
        findings: in the order in which they were found.
        own: the path of the file with the tower loop, whose places come before others'.
    """
    kept: dict[tuple[str, str, int, int], Finding] = {}
    for one in findings:
        kept.setdefault((one.rule, one.path, one.line, one.column), one)

    def rank(one: Finding) -> tuple[int, bool, str, int, int]:
        place = _ORDER.index(one.rule) if one.rule in _ORDER else -1
        return place, one.path != own, one.path, one.line, one.column

    return sorted(kept.values(), key=rank)
