"""Try one program: write it, rewrite it, run both, and say what became of it."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import shutil
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.differential.grammar import Choices
from tests.differential.judging import difference
from tests.differential.program import ENTRY, files_of, settled
from tests.differential.reducing import Files, smaller_choices, smaller_files
from tests.differential.running import Ran, run_program

LOOP, SESSION, REFUSED, NOT_FOUND = "loop-equal", "session-equal", "refused", "not-found"
WRONG, CRASH, TOOL, BAD, RACY = (
    "WRONG",
    "CRASH-OF-RESULT",
    "CRASH-OF-TOOL",
    "BAD-ORIGINAL",
    "RACY-ORIGINAL",
)
CACHE = "TOWER_PROGRAMS_CACHE"
"""Names a folder for what originals did, so that they run once for many versions of the tool."""

FAILURES = (WRONG, CRASH, TOOL)
_REPEATS = 4


@dataclass(frozen=True)
class Verdict:
    """What became of a program.

    `style` is that of the result, and `cause` says more: the rules that refused it, the first difference, the error's last words.
    """

    outcome: str
    style: str = ""
    cause: str = ""
    seconds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of the rewrite, the original's run and the result's run."""

    @property
    def failed(self) -> bool:
        return self.outcome in FAILURES


def try_program(
    files: Files,
    towers: int,
    *,
    style: str = "auto",
    run_refused: bool = False,
    keep: Path | None = None,
) -> Verdict:
    """What becomes of a program.

    Args:
        style: see `towermigrate rewrite --style`.
        run_refused: run the originals of refused programs too, to know that they are right.
        keep: a folder for the program, its rewritten form and what they printed.
    """
    scratch = Path(tempfile.mkdtemp(prefix="tower-program-"))
    try:
        return _tried(files, towers, style, run_refused, scratch)
    finally:
        if keep is not None:
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(scratch, keep)
        shutil.rmtree(scratch, ignore_errors=True)


def try_choices(job: tuple[str, str, bool]) -> Verdict:
    """`try_program` of a job: choices as text, style, `run_refused`."""
    text, style, run_refused = job
    choices = settled(Choices.parse(text))
    files, towers = files_of(choices), int(choices["towers"])
    return try_program(files, towers, style=style, run_refused=run_refused)


def reduce_choices(job: tuple[str, str, Verdict, str | None]) -> str:
    """Smaller choices that fail alike, as text.

    Args:
        job: choices as text, the style, what became of them, and a folder for the smallest program.
    """
    text, style, verdict, keep = job
    to = None if keep is None else Path(keep)
    small, _ = reduced(settled(Choices.parse(text)), style, verdict, to)
    if to is not None:
        (to / "cause.txt").write_text(f"{text}\n{small}\n{verdict.outcome}\n{verdict.cause}\n")
    return str(small)


def reduced(choices: Choices, style: str, found: Verdict, to: Path | None) -> tuple[Choices, Files]:
    """The smallest choices and files that become of a program what became of `choices`.

    Args:
        found: what became of it.
        to: a folder for the small program, its rewritten form and what they printed.
    """
    wanted, kind = found.outcome, kind_of(found.cause)

    def alike(files: Files, towers: int) -> bool:
        verdict = try_program(files, towers, style=style)
        return verdict.outcome == wanted and kind_of(verdict.cause) == kind

    small = smaller_choices(choices, lambda one: alike(files_of(one), int(one["towers"])), settled)
    towers = int(small["towers"])
    if to is None:
        return small, files_of(small)
    files = smaller_files(files_of(small), lambda files: alike(files, towers))
    try_program(files, towers, style=style, keep=to)
    return small, files


def kind_of(cause: str) -> str:
    """What is alike in the causes of one failure: the last line's words, without numbers and names in quotes."""
    last = cause.strip().split("\n")[-1]
    return re.sub(r"['\"`<].*", "", re.sub(r"[-\d.]+", "#", last))[:60]


def _tried(files: Files, towers: int, style: str, run_refused: bool, scratch: Path) -> Verdict:
    before, after = scratch / "before", scratch / "after"
    _write(before, files)
    started = time.monotonic()
    try:
        rewritten, styles, rules = _rewritten(before, style)
    except Exception:
        return Verdict(TOOL, cause=traceback.format_exc(limit=-4))
    seconds = time.monotonic() - started
    if rewritten is None:
        outcome = REFUSED if rules else NOT_FOUND
        if run_refused:
            ran = _run_original(files, scratch)
            if ran.status != 0:
                return Verdict(BAD, cause=ran.last_words)
        return Verdict(outcome, cause=" ".join(rules), seconds=(seconds, 0.0, 0.0))
    _write(after, {**files, **rewritten})
    original = _run_original(files, scratch)
    if original.status != 0:
        return Verdict(BAD, styles, original.last_words)
    environment = {"TOWERMIGRATE_DEVICES": f"cpu:{towers}"}
    result = run_program(after, ENTRY, environment, as_tf1=False)
    spent = (seconds, original.seconds, result.seconds)
    found = difference(original, result)
    if found is None:
        return Verdict(SESSION if "session" in styles else LOOP, styles, "", spent)
    crashed = result.status != original.status
    for _ in range(_REPEATS):
        again = _run_original(files, scratch, again=True)
        alike = again.status == original.status if crashed else difference(original, again) is None
        if not alike:
            return Verdict(RACY, styles, found, spent)
    if crashed:
        return Verdict(CRASH, styles, result.last_words, spent)
    return Verdict(WRONG, styles, found, spent)


def _rewritten(tree: Path, style: str) -> tuple[Mapping[str, str] | None, str, list[str]]:
    """The new texts (None where a program was refused or none was found), the styles, the rules that refused."""
    from towermigrate.migrate import plan

    report = plan(tree, style=style).report
    programs = report.programs
    if not programs or report.refused or report.unparsable:
        errors = [one for file in report.files for one in file.findings]
        errors += [one for program in programs for one in program.findings]
        rules = sorted({one.rule for one in errors if one.severity == "error"})
        return None, "", rules if programs or report.unparsable else []
    return report.texts, " ".join(sorted({str(one.style) for one in programs})), []


def _run_original(files: Files, scratch: Path, *, again: bool = False) -> Ran:
    """What the author's files do, where `tensorflow` is `tensorflow.compat.v1`.

    Args:
        again: run it even where it is known from an earlier run what it does (`CACHE`).
    """
    folder = os.environ.get(CACHE)
    kept = (
        Path(folder, hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest())
        if folder
        else None
    )
    if kept is not None and kept.exists() and not again:
        return cast(Ran, pickle.loads(kept.read_bytes()))
    tree = scratch / "original"
    shutil.rmtree(tree, ignore_errors=True)
    _write(tree, files)
    ran = run_program(tree, ENTRY, {}, as_tf1=True)
    if kept is not None and not again:
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(ran))
        part.rename(kept)
    return ran


def _write(folder: Path, files: Files) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
