"""Try one program: write it, rewrite it, run both, and say what became of it."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.differential.grammar import Choices
from tests.differential.judging import difference, never_updated
from tests.differential.originals import run_original, write_tree
from tests.differential.program import ENTRY, files_of, settled
from tests.differential.reducing import Files, smaller_choices, smaller_files
from tests.differential.running import run_program

Style = Literal["auto", "loop", "session"]

LOOP, SESSION, REFUSED, NOT_FOUND = "loop-equal", "session-equal", "refused", "not-found"
WRONG, CRASH, TOOL, BAD, RACY = (
    "WRONG",
    "CRASH-OF-RESULT",
    "CRASH-OF-TOOL",
    "BAD-ORIGINAL",
    "RACY-ORIGINAL",
)
# Differs, and the result's run said that it would: the original assigns a variable and reads it in no order, so
# that TensorFlow may give either value though it gave the same one in every repetition.
TOLD = "RACE-TOLD"
_TOLD = "in no order that holds for both"
FAILURES = (WRONG, CRASH, TOOL)
_REPEATS = 4


@dataclass(frozen=True)
class Wish:
    """How programs are tried.

    Args:
        style: see `towermigrate rewrite --style`.
        run_refused: run the originals of refused programs too, to know that they are right.
        tf1_python: see `run_original`.
    """

    style: Style = "auto"
    run_refused: bool = False
    tf1_python: str | None = None


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


def try_program(files: Files, towers: int, wish: Wish, keep: Path | None = None) -> Verdict:
    """What becomes of a program.

    Args:
        keep: a folder for the program, its rewritten form and what they printed.
    """
    scratch = Path(tempfile.mkdtemp(prefix="tower-program-"))
    try:
        return _tried(files, towers, wish, scratch)
    finally:
        if keep is not None:
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(scratch, keep)
        shutil.rmtree(scratch, ignore_errors=True)


def try_choices(text: str, wish: Wish) -> Verdict:
    """`try_program` of the program of some choices."""
    choices = settled(Choices.parse(text))
    return try_program(files_of(choices), int(choices["towers"]), wish)


def reduce_choices(text: str, wish: Wish, found: Verdict, keep: Path | None) -> str:
    """The smallest choices of which becomes what became of others.

    Args:
        text: the others.
        found: what became of them.
        keep: a folder for the smallest program, without the statements that do not matter.
    """
    kind = kind_of(found.cause)

    def alike(files: Files, towers: int) -> bool:
        verdict = try_program(files, towers, wish)
        return verdict.outcome == found.outcome and kind_of(verdict.cause) == kind

    def fails(choices: Choices) -> bool:
        return alike(files_of(choices), int(choices["towers"]))

    small = smaller_choices(settled(Choices.parse(text)), fails, settled)
    if keep is not None:
        towers = int(small["towers"])
        files = smaller_files(files_of(small), lambda files: alike(files, towers))
        try_program(files, towers, wish, keep)
        (keep / "cause.txt").write_text(f"{text}\n{small}\n{found.outcome}\n{found.cause}\n")
    return str(small)


def kind_of(cause: str) -> str:
    """What is alike in the causes of one failure: the last line's words, without numbers and names in quotes."""
    last = cause.strip().split("\n")[-1]
    return re.sub(r"['\"`<].*", "", re.sub(r"[-\d.]+", "#", last))[:60]


def _tried(files: Files, towers: int, wish: Wish, scratch: Path) -> Verdict:
    before, after = scratch / "before", scratch / "after"
    write_tree(before, files)
    started = time.monotonic()
    try:
        rewritten, styles, rules = _rewritten(before, wish.style)
    except Exception:
        return Verdict(TOOL, cause=traceback.format_exc(limit=-4))
    seconds = time.monotonic() - started
    if rewritten is None:
        outcome = REFUSED if rules else NOT_FOUND
        if wish.run_refused:
            ran = run_original(files, ENTRY, scratch, wish.tf1_python)
            if ran.status != 0:
                return Verdict(BAD, cause=ran.last_words)
        return Verdict(outcome, cause=" ".join(rules), seconds=(seconds, 0.0, 0.0))
    write_tree(after, {**files, **rewritten})
    original = run_original(files, ENTRY, scratch, wish.tf1_python)
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
        again = run_original(files, ENTRY, scratch, wish.tf1_python, again=True)
        alike = again.status == original.status if crashed else difference(original, again) is None
        if not alike:
            lost = None if crashed else never_updated(original, result)
            return Verdict(WRONG if lost else RACY, styles, lost or found, spent)
    if not crashed and _TOLD in result.errors:
        return Verdict(TOLD, styles, found, spent)
    if crashed:
        return Verdict(CRASH, styles, result.last_words, spent)
    return Verdict(WRONG, styles, found, spent)


def _rewritten(tree: Path, style: Style) -> tuple[Mapping[str, str] | None, str, list[str]]:
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
