"""The two trees that verify runs: the originals and their rewritten form, and scratch copies of them."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Mapping
from pathlib import Path

from towermigrate.config import read_config
from towermigrate.keeping import original_texts
from towermigrate.listing import NOTEBOOK, python_files
from towermigrate.migrate import plan_configured
from towermigrate.passes import Progress
from towermigrate.program import Recognition, TowerProgram
from towermigrate.project import decode
from towermigrate.python2 import in_python3
from towermigrate.reading import parse_problem
from towermigrate.recognize import recognize_tree
from towermigrate.tree import entry_script, import_closure
from towermigrate.verify.scratch import LINK_OVER, copy_files


class NothingToVerify(ValueError):
    """There is no tower program to compare, or it is not clear which; the message says what to do."""


def original_and_rewritten(
    root: Path, rewritten: Path | None = None, progress: Progress = lambda _: None
) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of both programs' trees, by path with forward slashes; undecodable files are left out.

    The originals are in Python 3, so that they run. The rewritten tree is as `rewrite` writes it.

    Args:
        root: the tree. After `rewrite` it holds the rewritten program and the originals are the kept ones;
            before, the rewritten program is what `rewrite` with the tree's settings would write.
        rewritten: a folder with the rewritten program; then `root` holds the originals.
        progress: called with one line of text before each longer part.

    Raises:
        NothingToVerify: `rewrite` would convert no program; the message says why.
        ConfigError: the tree's settings cannot be meant.
        ProjectError: a file cannot be read.
    """
    gitignore = read_config(root)[0].gitignore
    here = _read(root, gitignore)
    if rewritten is not None:
        return in_python3(here), _read(rewritten, gitignore)
    kept = _without_notebooks(original_texts(root))
    if kept:
        return in_python3({**here, **kept}), here
    return in_python3(here), {**here, **_would_be_written(root, progress)}


def _read(root: Path, gitignore: bool) -> dict[str, str]:
    texts = {
        path: decode(path, (root / path).read_bytes()).text
        for path in python_files(root, gitignore=gitignore)
    }
    return {path: text for path, text in texts.items() if text is not None}


def _would_be_written(root: Path, progress: Progress) -> dict[str, str]:
    """The new texts of the Python files that `rewrite` would change."""
    report = plan_configured(root, progress=progress).report
    refused = [
        f"{finding.path}:{finding.line}: {finding.rule} {finding.message}"
        for program in report.programs
        if program.status == "refused"
        for finding in program.findings
    ]
    if refused and not any(program.status == "converted" for program in report.programs):
        raise NothingToVerify(
            "The program was refused, so there is nothing to compare: " + "; ".join(refused)
        )
    return _without_notebooks(report.texts)


def _without_notebooks(texts: Mapping[str, str]) -> dict[str, str]:
    return {path: text for path, text in texts.items() if not path.endswith(NOTEBOOK)}


def copy_tree(
    root: Path, target: Path, sources: dict[str, str], link_over: int = LINK_OVER
) -> None:
    """A scratch copy of `root` with `sources` in place of its Python files (see `scratch.py`)."""
    copy_files(root, target, link_over)
    for name, text in sources.items():
        path = target / name
        if path.exists() and decode(name, path.read_bytes()).text == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        elif path.exists() and not os.access(path, os.W_OK):
            path.chmod(0o600)  # a copy of a read-only file
        encoding, _ = tokenize.detect_encoding(io.BytesIO(text.encode(errors="replace")).readline)
        path.write_bytes(text.encode(encoding))


def choose_program(
    sources: dict[str, str], rewritten: dict[str, str], entry: str | None
) -> tuple[TowerProgram, str]:
    """The tower program to verify and the script that runs it.

    Args:
        sources: the originals.
        rewritten: the rewritten tree; a program whose file is the same in it was left as it was.
        entry: the script, where it was said.

    Raises:
        NothingToVerify: none, several, refused, left as it was, or no script to run it with.
    """
    recognitions = recognize_tree(sources)
    programs = [each.program for each in recognitions if each.program is not None]
    if not programs:
        raise NothingToVerify(_none_found(recognitions, sources))
    if entry is not None and entry not in sources:
        raise NothingToVerify(f"--entry {entry}: there is no such file in the tree.")
    if entry is not None:
        reached = import_closure(sources, [entry])
        programs = [program for program in programs if program.path in reached]
        if not programs:
            raise NothingToVerify(f"{entry} imports no file that holds a tower program.")
    places = ", ".join(f"{program.path}:{program.line}" for program in programs)
    programs = [
        each
        for each in programs
        if (text := rewritten.get(each.path, "")) != sources[each.path]
        and parse_problem(each.path, text) is None  # else it stays Python 2
    ]
    if not programs:
        raise NothingToVerify(
            f"The tower programs that are there ({places}) stay as they are, so there is nothing to compare; "
            "`towermigrate scan` says why."
        )
    if len(programs) > 1:
        places = ", ".join(f"{program.path}:{program.line}" for program in programs)
        raise NothingToVerify(
            f"There are several tower programs ({places}); say with --entry which script to run."
        )
    program = programs[0]
    return program, entry if entry is not None else _entry(sources, program)


def _entry(sources: dict[str, str], program: TowerProgram) -> str:
    entry = entry_script(sources, program.path, program.function is None)
    if entry is None:
        raise NothingToVerify(
            f"{program.path} is no script, and there is not exactly one script that imports it. Say with "
            "--entry which script to run."
        )
    return entry


def _none_found(recognitions: list[Recognition], sources: dict[str, str]) -> str:
    refused = [
        f"{finding.path}:{finding.line}: {finding.rule} {finding.message}"
        for each in recognitions
        for finding in each.findings
    ]
    if refused:
        return "No tower program to verify; the ones that are there were refused: " + "; ".join(
            refused
        )
    none = "There is no tower program in this tree; nothing was compared."
    problems = [parse_problem(path, text) for path, text in sorted(sources.items())]
    unread = [f"{each.path}:{each.line}: {each.message}" for each in problems if each is not None]
    return " ".join([none, *unread[:5]])
