"""What the lint notes while it reads: findings, and whether the code at hand runs on every replica."""

from __future__ import annotations

from typing import Literal

from towermigrate.findings import Finding
from towermigrate.flow import Call, Domain
from towermigrate.flow.values import Place

Mode = Literal["replica", "cross", "plain"]
"""In a function given to `strategy.run`; directly in `with strategy.scope():`; anywhere else."""


class Noting(Domain):
    """A domain with findings. `corrected` are places of TM403 whose value is put right later."""

    def __init__(self) -> None:
        self.findings: set[Finding] = set()
        self.corrected: set[Place] = set()
        self.modes: list[Mode] = ["plain"]

    @property
    def mode(self) -> Mode:
        return self.modes[-1]

    def report(self, rule: str, place: Place, message: str) -> None:
        self.findings.add(Finding(rule, place.path, place.line, place.column, message))


def noting(call: Call) -> Noting:
    """The notes of whoever reads a call."""
    domain = call.interpreter.domain
    assert isinstance(domain, Noting)
    return domain
