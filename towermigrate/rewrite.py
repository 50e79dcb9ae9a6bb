"""The pipeline over a tree of sources: recognise, emit, change names, check. Nothing here touches a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from towermigrate.findings import Finding
from towermigrate.program import Stage, TowerProgram
from towermigrate.symbols import rewrite_symbols
from towermigrate.symbols.apply import is_tf1
from towermigrate.symbols.scopes import file_names
from towermigrate.tree import import_closure, parse_python

if TYPE_CHECKING:  # libcst takes a tenth of a second to load: only where a tree is really rewritten
    from towermigrate.emit import ProgramResult

FileStatus = Literal["rewritten", "unchanged", "refused", "unparsable"]
Refused = Literal["keep", "symbols"]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class ProgramReport:
    """What became of one tower program. `style` is None when it was refused."""

    line: int
    function: str | None
    style: Literal["loop", "session"] | None
    status: Literal["converted", "refused"]
    stages: tuple[Stage, ...]
    findings: tuple[Finding, ...]
    recognised: TowerProgram | None = None


@dataclass(frozen=True)
class FileReport:
    """What became of one file that mentions TensorFlow."""

    path: str
    status: FileStatus
    programs: tuple[ProgramReport, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class TreeReport:
    """What became of a tree: one report per TensorFlow file, and the new text of each rewritten one."""

    files: tuple[FileReport, ...]
    texts: Mapping[str, str]

    @property
    def programs(self) -> list[ProgramReport]:
        return [program for file in self.files for program in file.programs]

    @property
    def refused(self) -> bool:
        return any(program.status == "refused" for program in self.programs)

    @property
    def unparsable(self) -> bool:
        return any(file.status == "unparsable" for file in self.files)


def parse_problem(path: str, text: str) -> Finding | None:
    """Why Python 3 cannot parse a file, None when it can."""
    try:
        parse_python(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        column = max((getattr(error, "offset", None) or 1) - 1, 0)
        reason = getattr(error, "msg", None) or str(error) or type(error).__name__
        return Finding("TM101", path, line, column, f"Python 3 cannot parse this file: {reason}")
    return None


def rewrite_tree(
    sources: Mapping[str, str],
    *,
    refused: Refused = "keep",
    only: Iterable[str] | None = None,
    progress: Progress = lambda _: None,
) -> TreeReport:
    """Rewrite every tower program of a tree and every TensorFlow 1 name around them.

    Args:
        sources: texts by path relative to the tree's root, forward slashes.
        refused: what happens to a file whose program was refused: `keep` leaves it byte for byte, `symbols`
            changes its names all the same.
        only: the files to rewrite (others may still change where a rewritten program needs it); None is all.
        progress: called with one line of text before each longer part.

    Returns:
        A report of every file. Each text in it parses, and rewriting it again would change nothing.

    Example:
        >>> report = rewrite_tree({"a.py": "import tensorflow as tf\\ntf.placeholder(tf.float32)\\n"})
        >>> report.texts["a.py"]
        'import tensorflow as tf\\ntf.compat.v1.placeholder(tf.float32)\\n'
    """
    problems = {path: parse_problem(path, text) for path, text in sources.items()}
    good = {path: text for path, text in sources.items() if problems[path] is None}
    wanted = frozenset(good if only is None else only)
    held: dict[str, Finding] = {}
    while True:
        files, texts = _once(good, wanted, refused, held, progress)
        progress("checking that a second rewrite changes nothing")
        unstable = _unstable(good, texts, refused) - held.keys()
        if not unstable:
            break
        for path in unstable:
            held[path] = Finding("TM104", path, 1, 0, "the result would be rewritten again")
    broken = [FileReport(path, "unparsable", (), (p,)) for path, p in problems.items() if p]
    shown = [file for file in files if file.path in wanted or file.status != "unchanged"]
    return TreeReport(tuple(sorted([*shown, *broken], key=lambda f: f.path)), texts)


def _once(
    good: Mapping[str, str],
    wanted: frozenset[str],
    refused: Refused,
    held: Mapping[str, Finding],
    progress: Progress,
) -> tuple[list[FileReport], dict[str, str]]:
    """One run of the passes. `held` files must not change; what they say is added to their reports."""
    from towermigrate.emit import emit_tree
    from towermigrate.recognize import recognize_tree

    progress("looking for tower programs")
    recognitions = [r for r in recognize_tree(good) if r.path in wanted]
    recognitions = [
        replace(r, program=None, findings=(*r.findings, held[r.path])) if r.path in held else r
        for r in recognitions
    ]
    progress("rewriting tower programs")
    emission = emit_tree(good, recognitions)
    results: dict[str, list[ProgramResult]] = {}
    for result in emission.results:
        results.setdefault(result.recognition.path, []).append(result)
    kept = _kept_files(good, results, held, refused)
    files: list[FileReport] = []
    texts: dict[str, str] = {}
    progress("changing TensorFlow 1 names")
    for path, before in good.items():
        programs = tuple(_program(result) for result in results.get(path, ()))
        findings: list[Finding] = []
        status: FileStatus = "unchanged"
        if any(program.status == "refused" for program in programs):
            status = "refused"
        if path in kept:
            findings.append(kept[path])
        elif path in wanted or path in emission.sources:
            emitted = emission.sources.get(path, before)
            tf1 = emitted != before or is_tf1(file_names(parse_python(before)))
            named = rewrite_symbols(emitted, path, tf1=tf1)
            findings.extend(named.findings)
            if named.text != before:
                problem = parse_problem(path, named.text)
                if problem is not None:
                    findings.append(replace(problem, rule="TM104"))
                    programs = tuple(_refuse(program) for program in programs)
                    status = "refused" if programs else "unchanged"
                else:
                    texts[path] = named.text
                    status = "refused" if status == "refused" else "rewritten"
        files.append(FileReport(path, status, programs, tuple(findings)))
    return files, texts


def _kept_files(
    good: Mapping[str, str],
    results: Mapping[str, Sequence[ProgramResult]],
    held: Mapping[str, Finding],
    refused: Refused,
) -> dict[str, Finding]:
    """Files that stay as they are, and why: those of refused programs, and what only these import.

    A refused program must go on running on TensorFlow 1, so the files it imports must not start to import
    `tf_slim`, unless a converted program needs them rewritten.
    """
    kept: dict[str, Finding] = {}
    bad = [path for path, group in results.items() if any(r.status == "refused" for r in group)]
    converted = [path for path in results if path not in bad]
    needed = import_closure(good, converted)
    if refused == "keep":
        for path in bad:
            line = results[path][0].recognition.line
            kept[path] = Finding("TM103", path, line, 0, "a program in it was refused: not changed")
            for other in import_closure(good, [path]) - needed:
                kept.setdefault(
                    other,
                    Finding(
                        "TM103", other, 1, 0, f"not changed: {path}, which was refused, uses it"
                    ),
                )
    for path, finding in held.items():
        kept.setdefault(path, finding)
    return kept


def _program(result: ProgramResult) -> ProgramReport:
    recognition = result.recognition
    return ProgramReport(
        line=recognition.line,
        function=recognition.function,
        style=result.style if result.status == "converted" else None,
        status=result.status,
        stages=recognition.program.stages if recognition.program else (),
        findings=result.findings,
        recognised=recognition.program,
    )


def _refuse(program: ProgramReport) -> ProgramReport:
    return replace(program, status="refused", style=None)


def _unstable(good: Mapping[str, str], texts: Mapping[str, str], refused: Refused) -> set[str]:
    """Files of a finished rewrite that another rewrite would change."""
    after = {**good, **texts}
    _, again = _once(after, frozenset(texts), refused, {}, lambda _: None)
    return {path for path, text in again.items() if path in texts and text != after[path]}
