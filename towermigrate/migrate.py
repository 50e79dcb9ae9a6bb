"""Rewrite trees on disk: the pipeline of `rewrite` between the reading and the writing of `project`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from towermigrate.findings import Finding
from towermigrate.project import ProjectError, SourceFile, read_tree, save, write_copy
from towermigrate.rewrite import FileReport, Progress, Refused, TreeReport, rewrite_tree
from towermigrate.tree import entry_script, run_command


@dataclass(frozen=True)
class Migration:
    """A tree as read, and what rewriting it would give. Nothing is written before `apply`."""

    root: Path
    files: dict[str, SourceFile]
    report: TreeReport

    @property
    def changes(self) -> dict[str, bytes]:
        """New bytes of every file that changes, by path relative to the root."""
        return {path: self.files[path].encode(text) for path, text in self.report.texts.items()}

    def apply(self, out: Path | None = None) -> None:
        """Write the changes in place, or to a copy of the tree in `out`; raises ProjectError."""
        try:
            if out is not None:
                write_copy(self.root, out, self.changes)
            else:
                save(self.root, self.changes, {path: self.files[path].raw for path in self.changes})
        except OSError as error:
            raise ProjectError(
                f"{error.filename or self.root}: cannot be written: {error.strerror}; files that were not "
                "reached are as they were, `towermigrate undo` puts the others back"
            ) from error

    def commands(self, out: Path | None = None) -> list[str]:
        """The shell commands that run the converted programs."""
        texts = {path: file.text for path, file in self.files.items() if file.text is not None}
        texts.update(self.report.texts)
        found: list[str] = []
        for file in self.report.files:
            for program in file.programs:
                if program.status == "converted":
                    script = entry_script(texts, file.path, program.function is None)
                    if script is not None:
                        found.append(run_command(texts, script, str(out or self.root)))
        return sorted(set(found))


def plan(
    path: Path, *, refused: Refused = "keep", progress: Progress = lambda _: None
) -> Migration:
    """Read a tree (or one file, in its folder) and work out its rewrite, writing nothing.

    Args:
        path: a folder, or a Python file; then only that file's programs and names are rewritten.
        refused: see `rewrite_tree`.
        progress: called with one line of text before each longer part.
    """
    single = path.is_file()
    root = path.parent if single else path
    progress(f"reading {path}")
    files = read_tree(root)
    problems = [
        FileReport(name, "unparsable", (), (file.problem,))
        for name, file in files.items()
        if file.problem is not None and (not single or name == path.name)
    ]
    sources = {name: file.text for name, file in files.items() if file.text is not None}
    report = rewrite_tree(
        sources, refused=refused, only=[path.name] if single else None, progress=progress
    )
    shown = [
        f for f in report.files if not single or f.path == path.name or f.status == "rewritten"
    ]
    report = replace(report, files=tuple(sorted([*shown, *problems], key=lambda f: f.path)))
    return Migration(root, files, _encodable(files, report))


def _encodable(files: dict[str, SourceFile], report: TreeReport) -> TreeReport:
    """The report without files whose encoding cannot hold their new text."""
    bad: list[str] = []
    for path, text in report.texts.items():
        try:
            files[path].encode(text)
        except UnicodeEncodeError:
            bad.append(path)
    if not bad:
        return report
    marked: Sequence[FileReport] = [
        replace(
            file,
            status="unchanged",
            findings=(
                *file.findings,
                Finding("TM102", file.path, 1, 0, "its encoding cannot hold the result"),
            ),
        )
        if file.path in bad
        else file
        for file in report.files
    ]
    texts = {path: text for path, text in report.texts.items() if path not in bad}
    return TreeReport(tuple(marked), texts)
