"""How a recogniser says that a form is not understood: raise, with the rule and the place."""

from __future__ import annotations

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.recognize.source import SourceFile


class Refused(Exception):
    """The program stays as it is; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def note(rule: str, file: SourceFile, node: cst.CSTNode, message: str) -> Finding:
    """A finding at a node."""
    where = file.span(node)
    # Quoted code may run over several lines.
    message = " ".join(message.split())
    return Finding(rule, file.path, where.line, where.column, message)


def refuse(rule: str, file: SourceFile, node: cst.CSTNode, message: str) -> Refused:
    """The exception to raise for a form at `node` that is not understood."""
    return Refused(note(rule, file, node, message))
