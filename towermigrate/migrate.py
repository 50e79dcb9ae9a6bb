"""Rewrite trees on disk: the pipeline of `rewrite` between the reading and the writing of `project`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from towermigrate.choice import ChoiceError, Chosen
from towermigrate.comments import skips_file, without_suppressed
from towermigrate.config import excluded, read_config, settings
from towermigrate.faults import fault
from towermigrate.findings import Finding
from towermigrate.keeping import save, write_copy
from towermigrate.listing import NOTEBOOK, Listing, list_tree
from towermigrate.outcome import FileReport, TreeReport
from towermigrate.passes import Progress, Refused, Style
from towermigrate.project import ProjectError, SourceFile, decode, read_tree
from towermigrate.reading import parse_problem
from towermigrate.reports import reported
from towermigrate.rewrite import Python2, rewrite_tree
from towermigrate.tree import (
    deepest_files,
    entry_script,
    exhausted_stack,
    run_command,
)

STDIN = "<stdin>"


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
                if program.status == "converted" and not file.path.endswith(NOTEBOOK):
                    with suppress(Exception):  # all is written; what cannot be told is not told
                        at_module_level = program.function is None
                        script = entry_script(
                            texts, file.path, at_module_level, self.report.imports
                        )
                        if script is not None:
                            found.append(run_command(texts, script, str(out or self.root)))
        return sorted(set(found))


def plan(
    path: Path,
    *,
    refused: Refused = "keep",
    distribution: bool = False,
    function: str | None = None,
    exclude: Callable[[str], bool] = lambda _: False,
    gitignore: bool = True,
    py2: Python2 = "auto",
    style: Style = "auto",
    progress: Progress = lambda _: None,
) -> Migration:
    """Read a tree (or one file, in its folder) and work out its rewrite, writing nothing.

    Args:
        path: a folder, or a Python file or notebook; then only that file's programs and names are rewritten.
        refused: see `rewrite_tree`.
        distribution: also look for mistakes in code that uses `tf.distribute` already (rules TM4xx).
        function: convert only the program in this function of the file `path`; see `rewrite_tree`. Raises
            ChoiceError where there is none.
        exclude: says of a path relative to the tree whether the file is left out: not changed, not reported.
        py2: see `rewrite_tree`.
        style: see `rewrite_tree`.
        gitignore: leave out what `.gitignore` files name, unless it is `path` itself.
        progress: called with one line of text before each longer part.
    """
    single = path.is_file()
    notebook = single and path.name.endswith(NOTEBOOK)
    root = path.parent if single else path
    progress(f"reading {path}")
    listing = list_tree(root, gitignore=gitignore, suffixes=(".py", NOTEBOOK))
    if single:
        listing = _with_file(listing, path)
    files = read_tree(root, listing, python2=py2 == "auto", links=not single)
    if function is not None and path.name not in files:
        raise ChoiceError(f"{path} does not mention TensorFlow: it has no tower program")
    fixed = _fixed(files, exclude)
    hidden = {name for name in fixed if exclude(name) and not (single and name == path.name)}
    problems = [
        FileReport(name, "unparsable", (), (file.problem,))
        for name, file in files.items()
        if file.problem is not None and name not in fixed and (not single or name == path.name)
    ]
    read = {name: file.text for name, file in files.items() if file.text is not None}
    texts = {name: text for name, text in read.items() if not files[name].link}
    sources = {name: text for name, text in texts.items() if not name.endswith(NOTEBOOK)}
    notebooks: dict[str, TreeReport] = {}

    def rewrite_notebooks() -> None:
        for name, text in texts.items():
            if name.endswith(NOTEBOOK) and (not single or name == path.name):
                notebooks[name] = _notebook(
                    name, text, fixed.get(name), refused, function, py2, style
                )

    report = rewrite_tree(
        sources,
        refused=refused,
        only=[path.name] if single else None,
        fixed=fixed,
        chosen=None if function is None or notebook else Chosen(path.name, function),
        py2=py2,
        style=style,
        links={name: text for name, text in read.items() if files[name].link},
        meanwhile=rewrite_notebooks,
        progress=progress,
    )
    for own in notebooks.values():
        report = replace(
            report, files=(*report.files, *own.files), texts={**report.texts, **own.texts}
        )
    shown = [
        file
        for file in report.files
        if file.path not in hidden
        and (not single or file.path == path.name or file.status == "rewritten")
    ]
    not_followed = [
        FileReport(one.path, "unchanged", (), (Finding("TM108", one.path, 1, 0, one.reason),))
        for one in listing.left_out
        if one.problem and not single and not exclude(one.path)
    ]
    shown = sorted([*shown, *problems, *not_followed], key=lambda file: file.path)
    left_out = () if single else tuple(one for one in listing.left_out if one.on_purpose)
    report = replace(report, files=tuple(shown), left_out=left_out)
    if distribution:
        progress("reading code that uses tf.distribute already")
        readable = {name: text for name, text in sources.items() if name not in fixed}
        report = _with_distribution(readable, report, path.name if single else None)
    told = {file.path for file in report.files}  # reports ask for the lines of these
    files = {name: file for name, file in files.items() if not file.link or name in told}
    return Migration(root, files, _encodable(files, report))


def plan_text(
    raw: bytes,
    *,
    refused: Refused = "keep",
    distribution: bool = False,
    py2: Python2 = "auto",
    style: Style = "auto",
    progress: Progress = lambda _: None,
) -> Migration:
    """Work out the rewrite of one file that is on no disk; its name in the report is `<stdin>`."""
    file = decode(STDIN, raw)
    if file.text is None:
        assert file.problem is not None
        unread = FileReport(STDIN, "unparsable", (), (file.problem,))
        return Migration(Path(), {STDIN: file}, TreeReport((unread,), {}))
    sources = {STDIN: file.text}
    fixed = _fixed({STDIN: file}, lambda _: False)
    report = rewrite_tree(
        sources,
        refused=refused,
        only=[STDIN],
        fixed=fixed,
        py2=py2,
        style=style,
        progress=progress,
    )
    if distribution and not fixed:
        report = _with_distribution(sources, report, STDIN)
    return Migration(Path(), {STDIN: file}, _encodable({STDIN: file}, report))


def plan_configured(
    path: Path,
    given: Mapping[str, Any] = MappingProxyType({}),
    *,
    raw: bytes | None = None,
    function: str | None = None,
    distribution: bool = False,
    progress: Progress = lambda _: None,
) -> Migration:
    """`plan` as `[tool.towermigrate]` says, with only the findings that are to be reported.

    Args:
        path: see `plan`; with `raw` the folder whose settings count.
        given: the options of the command line by name, which win over the settings.
        raw: the bytes of a file that is on no disk, which is planned in place of `path`.
        function: see `plan`.
        distribution: see `plan`.
        progress: see `plan`.

    Raises:
        ConfigError: a setting or an option cannot be meant.
    """
    config, base = read_config(path)
    wanted = settings(config, given)
    if raw is not None:
        migration = plan_text(
            raw,
            refused=wanted.refused,
            distribution=distribution,
            py2=wanted.py2,
            style=wanted.style,
            progress=progress,
        )
    else:
        migration = plan(
            path,
            refused=wanted.refused,
            distribution=distribution,
            function=function,
            exclude=excluded(path, config, base, given.get("exclude", ())),
            gitignore=wanted.gitignore,
            py2=wanted.py2,
            style=wanted.style,
            progress=progress,
        )
    report = reported(migration.report, wanted.select, wanted.ignore)
    return replace(migration, report=report)


def _notebook(
    path: str,
    text: str,
    fixed: Finding | None,
    refused: Refused,
    function: str | None,
    py2: Python2,
    style: Style,
) -> TreeReport:
    """The report of one notebook, which is a program of its own."""
    if fixed is not None:
        return TreeReport((FileReport(path, "unchanged", (), (fixed,)),), {})
    from towermigrate.notebooks import rewrite_notebook

    try:
        return rewrite_notebook(
            text, path, refused=refused, function=function, py2=py2, style=style
        )
    except ChoiceError:
        raise
    except Exception as error:
        return TreeReport((FileReport(path, "unparsable", (), (fault(path, error),)),), {})


def _with_file(listing: Listing, path: Path) -> Listing:
    """A listing that has the file that was asked for, whatever its name and whatever `.gitignore` says."""
    if path.is_symlink():
        raise ProjectError(f"{path}: is a link; give the file that it leads to, {path.resolve()}")
    return replace(listing, files=tuple(sorted({*listing.files, path.name})))


def _fixed(files: Mapping[str, SourceFile], exclude: Callable[[str], bool]) -> dict[str, Finding]:
    """The files that are not to be changed, and what their reports say."""
    fixed: dict[str, Finding] = {}
    for name, file in files.items():
        line = None if file.text is None else skips_file(file.text)
        if exclude(name):
            fixed[name] = Finding("TM106", name, 1, 0, "not changed: it is excluded")
        elif line is not None:
            message = "not changed: a comment in it says skip-file"
            fixed[name] = Finding("TM106", name, line, 0, message)
    return fixed


def _with_distribution(sources: dict[str, str], report: TreeReport, only: str | None) -> TreeReport:
    """The report with what `scan_distribution` found in the files as they are."""
    broken = {file.path for file in report.files if file.status == "unparsable"}
    good = {
        path: text
        for path, text in sources.items()
        if path not in broken and parse_problem(path, text) is None
    }
    shown = {file.path for file in report.files}
    wanted = shown & good.keys() if only is None else {only} & good.keys()
    found: dict[str, list[Finding]] = {}
    for path, findings in _scanned(good, wanted).items():
        # A finding in a file that was not asked about, but is called, stands with the one that was.
        found.setdefault(path if path in shown or only is None else only, []).extend(
            without_suppressed(findings, good[path])
        )
    files = tuple(
        replace(file, findings=(*file.findings, *found.get(file.path, ()))) for file in report.files
    )
    return replace(report, files=files)


def _scanned(good: Mapping[str, str], wanted: Collection[str]) -> dict[str, list[Finding]]:
    """`scan_distribution` without the files that nest too deeply for it."""
    from towermigrate.lint import scan_distribution

    while True:
        try:
            return scan_distribution(good, wanted)
        except Exception as error:
            if not (good and exhausted_stack(error)):
                break
            deep = deepest_files(good)
            good = {path: text for path, text in good.items() if path not in deep}
            wanted = [path for path in wanted if path in good]
    found: dict[str, list[Finding]] = {}
    for path in wanted:  # one by one, so that the fault of one is not that of all
        try:
            scanned = scan_distribution(good, {path})
        except Exception as error:
            scanned = {path: [fault(path, error)]}
        for other, findings in scanned.items():
            there = found.setdefault(other, [])
            there += [each for each in findings if each not in there]
    return found


def _is_read_back(file: SourceFile, text: str) -> bool:
    try:
        raw = file.encode(text)
    except UnicodeEncodeError:
        return False
    if raw.isascii() and b"coding" not in raw:
        return True  # in whatever encoding Python takes it to be
    return decode(file.path, raw).text == text


def _encodable(files: dict[str, SourceFile], report: TreeReport) -> TreeReport:
    """The report without files whose bytes would not be read as their new text again.

    Their encoding may lack a character, or their coding line would no longer stand in the first two lines.
    """
    bad = [path for path, text in report.texts.items() if not _is_read_back(files[path], text)]
    if not bad:
        return report
    marked: Sequence[FileReport] = [
        replace(
            file,
            status="refused" if file.programs else "unchanged",
            programs=tuple(replace(one, status="refused", style=None) for one in file.programs),
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
    return replace(report, files=tuple(marked), texts=texts)
