"""What became of a tree: a report of every program and file, and the new texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from towermigrate.findings import Finding
from towermigrate.program import Stage, TowerProgram

if TYPE_CHECKING:
    from towermigrate.listing import LeftOut

FileStatus = Literal["rewritten", "unchanged", "refused", "unparsable"]


@dataclass(frozen=True)
class ProgramReport:
    """What became of one tower program. `style` is None when it was refused.

    `line` and `cell` are as in a `Finding`. `not_loop` is all that keeps the program from loop style, most
    important first.
    """

    line: int
    function: str | None
    style: Literal["loop", "session"] | None
    status: Literal["converted", "refused"]
    stages: tuple[Stage, ...]
    findings: tuple[Finding, ...]
    recognised: TowerProgram | None = None
    cell: int | None = None
    not_loop: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class FileReport:
    """What became of one file. `link` tells that it does not mention TensorFlow: it is there for its findings."""

    path: str
    status: FileStatus
    programs: tuple[ProgramReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    link: bool = False


@dataclass(frozen=True)
class TreeReport:
    """What became of a tree: one report per TensorFlow file, and the new text of each rewritten one.

    `files` has also the files without TensorFlow of which something is to be said.
    `left_out` are the files and folders that were not read on purpose. `imports` says of the files that could be read
    which files of the tree each imports.
    """

    files: tuple[FileReport, ...]
    texts: Mapping[str, str]
    left_out: tuple[LeftOut, ...] = ()
    imports: Mapping[str, Collection[str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def tensorflow_files(self) -> int:
        return sum(not file.link for file in self.files)

    @property
    def programs(self) -> list[ProgramReport]:
        return [program for file in self.files for program in file.programs]

    @property
    def refused(self) -> bool:
        return any(program.status == "refused" for program in self.programs)

    @property
    def unparsable(self) -> bool:
        return any(file.status == "unparsable" for file in self.files)
