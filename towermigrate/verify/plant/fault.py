"""A fault to plant, as data: what kind it is, what was changed, where, and the edits that make it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from towermigrate.verify.probes import Splice, splice


@dataclass(frozen=True)
class Fault:
    """One fault in one file of the rewritten tree.

    `kind` names what goes wrong in training, the same in every program; `said` is a sentence about this place.
    """

    kind: str
    said: str
    path: str
    line: int
    edits: tuple[Splice, ...]

    @property
    def place(self) -> str:
        """`FILE:LINE`."""
        return f"{self.path}:{self.line}"


def planted(tree: dict[str, str], fault: Fault) -> dict[str, str]:
    """The tree with the fault in it."""
    return {**tree, fault.path: splice(tree[fault.path], fault.edits)}


def one_of_each_kind(faults: list[Fault]) -> Iterator[Fault]:
    """The first fault of every kind, in the order of the kinds."""
    seen: set[str] = set()
    for fault in faults:
        if fault.kind not in seen:
            seen.add(fault.kind)
            yield fault
