"""The pipeline over a tree of sources: recognise, emit, change names, check. Nothing here touches a disk."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from towermigrate.choice import ChoiceError, Chosen, has_function, put_back
from towermigrate.collector import without_collector
from towermigrate.comments import without_suppressed
from towermigrate.findings import Finding
from towermigrate.hints import may_hold_towers
from towermigrate.program import Recognition, Stage, TowerProgram
from towermigrate.python2 import Ported
from towermigrate.reading import Readings, read
from towermigrate.symbols.neighbours import left_behind, unswitched
from towermigrate.symbols.sessions import settled
from towermigrate.tree import (
    TF1_COPY,
    deepest_files,
    exhausted_stack,
    import_closure,
    import_graph,
)

if TYPE_CHECKING:  # libcst takes a tenth of a second to load: only where there may be a tower
    from towermigrate.emit import ProgramResult
    from towermigrate.listing import LeftOut
    from towermigrate.symbols import SymbolResult

FileStatus = Literal["rewritten", "unchanged", "refused", "unparsable"]
Refused = Literal["keep", "symbols"]
Python2 = Literal["auto", "never"]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class ProgramReport:
    """What became of one tower program. `style` is None when it was refused.

    `line` and `cell` are as in a `Finding`.
    """

    line: int
    function: str | None
    style: Literal["loop", "session"] | None
    status: Literal["converted", "refused"]
    stages: tuple[Stage, ...]
    findings: tuple[Finding, ...]
    recognised: TowerProgram | None = None
    cell: int | None = None


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
    `left_out` are the files and folders that were not read on purpose.
    """

    files: tuple[FileReport, ...]
    texts: Mapping[str, str]
    left_out: tuple[LeftOut, ...] = ()

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


@without_collector()
def rewrite_tree(
    sources: Mapping[str, str],
    *,
    refused: Refused = "keep",
    only: Iterable[str] | None = None,
    fixed: Mapping[str, Finding] | None = None,
    chosen: Chosen | None = None,
    py2: Python2 = "auto",
    links: Mapping[str, str] = MappingProxyType({}),
    meanwhile: Callable[[], None] = lambda: None,
    progress: Progress = lambda _: None,
) -> TreeReport:
    """Rewrite every tower program of a tree and every TensorFlow 1 name around them.

    Args:
        sources: texts by path relative to the tree's root, forward slashes.
        refused: what happens to a file whose program was refused: `keep` leaves it byte for byte, `symbols`
            changes its names all the same.
        only: the files to rewrite (others may still change where a rewritten program needs it); None is all.
        fixed: files that must not change, each with the finding that says why. They are read all the same,
            and a program that cannot be converted without a change in one is refused.
        chosen: convert this program only; the other programs of its file stay byte for byte. Raises
            ChoiceError where the file has no such function.
        py2: whether files that only Python 2 parses are brought to Python 3 first; `never` leaves them alone.
        links: texts of the tree's other files, by path; none where not all of the tree is given. They do not
            change. What they import counts, and one that runs a module as TensorFlow 2 cannot is reported.
        meanwhile: called once, when a second process reads a large tree: what it does costs less time then.
        progress: called with one line of text before each longer part.

    Returns:
        A report of every file. Each text in it parses, and rewriting it again would change nothing.
        A file that nests too deeply for the passes is reported as one that cannot be parsed.

    Example:
        >>> report = rewrite_tree({"a.py": "import tensorflow as tf\\ntf.placeholder(tf.float32)\\n"})
        >>> report.texts["a.py"]
        'import tensorflow as tf\\ntf.compat.v1.placeholder(tf.float32)\\n'
    """
    with Readings(links) as readings:
        return _rewrite_tree(
            sources, readings, refused, only, fixed, chosen, py2, meanwhile, progress
        )


def _rewrite_tree(
    sources: Mapping[str, str],
    readings: Readings,
    refused: Refused,
    only: Iterable[str] | None,
    fixed: Mapping[str, Finding] | None,
    chosen: Chosen | None,
    py2: Python2,
    meanwhile: Callable[[], None],
    progress: Progress,
) -> TreeReport:
    progress("reading the files")
    only = None if only is None else frozenset(only)
    python2 = _maybe_python2(sources, only, fixed or ()) if py2 == "auto" else frozenset()
    readings.read_ahead(sources, python2)
    meanwhile()
    problems = {path: readings.of(path, text).problem for path, text in sources.items()}
    ported = _port(sources, problems, python2, only, fixed or (), readings) if py2 == "auto" else {}
    while True:
        texts = {**sources, **{path: one.text for path, one in ported.items()}}
        good = {path: texts[path] for path, problem in problems.items() if problem is None}
        try:
            return _rewrite_good(
                good, readings, problems, refused, only, fixed, chosen, ported, progress
            )
        except Exception as error:
            if not (good and exhausted_stack(error)):
                raise
            for path in deepest_files(good):
                problems[path] = Finding("TM101", path, 1, 0, "it is nested too deeply to be read")


def _maybe_python2(
    sources: Mapping[str, str], only: Collection[str] | None, fixed: Collection[str]
) -> frozenset[str]:
    """The files to bring to Python 3 where only Python 2 parses them."""
    return frozenset(
        path
        for path, text in sources.items()
        if path not in fixed and (only is None or path in only or "tensorflow" in text)
    )


def _port(
    sources: Mapping[str, str],
    problems: dict[str, Finding | None],
    python2: Collection[str],
    only: Collection[str] | None,
    fixed: Collection[str],
    readings: Readings,
) -> dict[str, Ported]:
    """Bring what only Python 2 parses to Python 3; its problem goes, or says why it could not be done.

    What is neither Python 3 nor Python 2 and does not mention TensorFlow is no concern of ours and goes too.
    """
    ported: dict[str, Ported] = {}
    for path, problem in list(problems.items()):
        if problem is None or path in fixed:
            continue
        if path not in python2:
            del problems[path]
            continue
        result = readings.ported(path, sources[path])
        if isinstance(result, Ported):
            problems[path] = None
            findings = without_suppressed(result.findings, sources[path])
            ported[path] = replace(result, findings=findings)
        elif "tensorflow" in sources[path] or result.python2 or path in (only or ()):
            message = f"{problem.message}; {result.reason}"
            problems[path] = replace(problem, message=message)
        else:
            del problems[path]
    return ported


def _rewrite_good(
    good: Mapping[str, str],
    readings: Readings,
    problems: Mapping[str, Finding | None],
    refused: Refused,
    only: Iterable[str] | None,
    fixed: Mapping[str, Finding] | None,
    chosen: Chosen | None,
    ported: Mapping[str, Ported],
    progress: Progress,
) -> TreeReport:
    """`rewrite_tree` of the files that can be parsed; `problems` are those of all."""
    # Our own file for TensorFlow 1 is read, to know its average, and never written: TensorFlow 2 runs it too.
    asked = good if only is None else only
    left = fixed or {}
    fixed = {path: finding for path, finding in left.items() if path in good}
    wanted = frozenset(
        path for path in asked if posixpath.basename(path) != TF1_COPY and path not in fixed
    )
    held: dict[str, Finding] = {}
    while True:
        files, texts, spoiled = _once(
            good,
            readings,
            wanted,
            refused,
            held,
            progress,
            fixed,
            chosen,
            ported.keys(),
            launchers=_launchers(good, readings, left) if only is None else None,
        )
        if chosen is not None and not _holds(files, chosen):
            return TreeReport((_without_program(good, chosen),), {})
        if spoiled and not spoiled.keys() <= held.keys():
            held.update(spoiled)
            continue
        progress("checking that a second rewrite changes nothing")
        unstable = _unstable(good, readings, files, texts, refused, fixed, chosen) - held.keys()
        if not unstable:
            break
        for path in unstable:
            held[path] = Finding("TM104", path, 1, 0, "the result would be rewritten again")
    broken = [
        FileReport(path, "unchanged", (), (left[path],))
        if path in left
        else FileReport(path, "unparsable", (), (problem,))
        for path, problem in problems.items()
        if problem is not None
    ]
    listed = wanted | fixed.keys() | readings.links.keys()
    shown = [file for file in files if file.path in listed or file.status != "unchanged"]
    if ported:
        shown = [_as_of_python2(file, ported, file.path in texts) for file in shown]
    return TreeReport(tuple(sorted([*shown, *broken], key=lambda f: f.path)), texts)


def _launchers(
    good: Mapping[str, str], readings: Readings, fixed: Collection[str]
) -> dict[str, str]:
    """The files without TensorFlow, which may run modules that have it, but for those that are left alone."""
    plain = {path: text for path, text in good.items() if "tensorflow" not in text}
    texts = {**readings.links, **plain}
    return {path: text for path, text in texts.items() if path not in fixed}


def _as_of_python2(file: FileReport, ported: Mapping[str, Ported], written: bool) -> FileReport:
    """A report whose lines are those of the Python 2 files, with what was found while they were ported."""

    def original(finding: Finding) -> Finding:
        if finding.path not in ported:
            return finding
        return replace(finding, line=ported[finding.path].line(finding.line))

    own = ported.get(file.path)
    return replace(
        file,
        programs=tuple(
            replace(
                program,
                line=program.line if own is None else own.line(program.line),
                findings=tuple(map(original, program.findings)),
            )
            for program in file.programs
        ),
        findings=(
            *(own.findings if own is not None and written else ()),
            *map(original, file.findings),
        ),
    )


def _once(
    good: Mapping[str, str],
    readings: Readings,
    wanted: frozenset[str],
    refused: Refused,
    held: Mapping[str, Finding],
    progress: Progress,
    fixed: Mapping[str, Finding],
    chosen: Chosen | None,
    ported: Collection[str] = (),
    towers: Collection[str] | None = None,
    launchers: Mapping[str, str] | None = None,
) -> tuple[list[FileReport], dict[str, str], dict[str, Finding]]:
    """One run of the passes. `held` files must not change; what they say is added to their reports.

    `ported` files are not on disk as they are in `good`: they are written even where nothing else changes.
    `towers` are the files to look for tower programs in; None finds that out. `launchers` are the files that may
    run modules without a word of TensorFlow, None where only some files of the tree were asked for.

    Returns the reports, the new texts, and the files whose other programs could not be kept as they were.
    """
    progress("looking for tower programs")
    read_before = {path: readings.of(path, text) for path, text in good.items()}
    again = towers is not None
    if towers is None:
        hints = {path: each.hints for path, each in read_before.items() if each.hints is not None}
        assert len(hints) == len(read_before)
        towers = may_hold_towers(hints)
    recognitions: list[Recognition] = []
    if wanted & set(towers):
        from towermigrate.recognize import recognize_tree

        recognitions = recognize_tree(good, wanted & set(towers))
    others: list[Recognition] = []
    if chosen is not None:
        others = [
            r for r in recognitions if r.path == chosen.path and r.function != chosen.function
        ]
        recognitions = [r for r in recognitions if r not in others]
    recognitions = [
        replace(r, program=None, findings=(*r.findings, held[r.path])) if r.path in held else r
        for r in recognitions
    ]
    emitted: Mapping[str, str] = {}
    results: dict[str, list[ProgramResult]] = {}
    if recognitions:
        from towermigrate.emit import emit_tree

        progress("rewriting tower programs")
        emission = emit_tree(good, recognitions, fixed)
        emitted = emission.sources
        for result in emission.results:
            results.setdefault(result.recognition.path, []).append(result)
    paths = good.keys() | readings.links.keys()
    modules = {path: each.modules for path, each in read_before.items()}
    graph = import_graph(paths, {**modules, **readings.link_modules})
    kept = {**_kept_files(good, graph, results, held, refused), **fixed}
    spoiled: dict[str, Finding] = {}
    files: list[FileReport] = []
    texts: dict[str, str] = {}
    changed = {path: read(path, text, tf1=True) for path, text in emitted.items()}
    whole = {**read_before, **changed}
    graph.update(import_graph(paths, {path: each.modules for path, each in changed.items()}))
    named_in = {path: each.symbols for path, each in whole.items()}
    changing = good.keys() & (wanted | emitted.keys()) - kept.keys()
    named_in.update({path: _switched(path, named_in, graph) for path in changing})
    unrun = {} if launchers is None else unswitched(graph, named_in, launchers, kept)
    stay = dict(fixed)
    if launchers is None and not again:
        left_out = good.keys() - changing - kept.keys()
        stay.update(
            (each, Finding("TM106", each, 1, 0, "it was not asked for"))
            for each in left_out
            if posixpath.basename(each) != TF1_COPY
        )
    progress("changing TensorFlow 1 names")
    for path, before in good.items():
        programs = tuple(_program(result, good) for result in results.get(path, ()))
        findings: list[Finding] = []
        status: FileStatus = "unchanged"
        if any(program.status == "refused" for program in programs):
            status = "refused"
        if path in kept:
            findings.append(kept[path])
        elif path in changing:
            named = named_in[path]
            findings.extend(without_suppressed(named.findings, emitted.get(path, before)))
            around = left_behind(
                good, path, graph[path], named_in, stay if named.text != before else fixed
            )
            around += [unrun[path]] if path in unrun else []
            findings.extend(without_suppressed([*around, *read_before[path].python2], before))
            if others and chosen is not None and path == chosen.path:
                try:
                    if path in ported:
                        raise ChoiceError("the file is Python 2: all of it would change")
                    if any(chosen.function.startswith(f"{each.function}.") for each in others):
                        raise ChoiceError(f"`{chosen.function}` is a part of another program")
                    text = put_back(before, named.text, {other.function for other in others})
                except ChoiceError as error:
                    spoiled[path] = Finding("TM107", path, others[0].line, 0, str(error))
                    text = before
                named = replace(named, text=text)
                findings.extend(_left_alone(others))
            if named.text != before or path in ported:
                problem = readings.of(path, named.text).problem
                if problem is not None:
                    findings.append(replace(problem, rule="TM104"))
                    programs = tuple(_refuse(program) for program in programs)
                    status = "refused" if programs else "unchanged"
                else:
                    texts[path] = named.text
                    status = "refused" if status == "refused" else "rewritten"
        files.append(FileReport(path, status, programs, tuple(findings)))
    for path in unrun.keys() & readings.links.keys():
        said = without_suppressed([unrun[path]], readings.links[path])
        files += [FileReport(path, "unchanged", (), said, link=True)] if said else []
    return files, texts, spoiled


def _switched(
    path: str, symbols: Mapping[str, SymbolResult], graph: Mapping[str, Collection[str]]
) -> SymbolResult:
    """What the symbol pass made of a file, switched where it is a script that runs a graph."""
    own = symbols[path]
    if own.script is None or own.mode.switched:
        return own
    others = sorted((import_closure({}, [path], graph) - {path}) & symbols.keys())
    return settled(own, [(each, symbols[each].mode) for each in others])


def _left_alone(others: Sequence[Recognition]) -> list[Finding]:
    """What the report says of programs that were not chosen."""
    return [
        Finding(
            "TM106",
            other.path,
            other.line,
            0,
            f"the program in `{other.function}` was not asked for: it stays as it is",
        )
        for other in others
    ]


def _holds(files: Sequence[FileReport], chosen: Chosen) -> bool:
    return any(
        program.function == chosen.function
        for file in files
        if file.path == chosen.path
        for program in file.programs
    )


def _without_program(good: Mapping[str, str], chosen: Chosen) -> FileReport:
    """The report where the chosen function holds no tower program; raises ChoiceError where it is not there."""
    from towermigrate.recognize import recognize_tree

    path, function = chosen.path, chosen.function
    programs = [r.function for r in recognize_tree(good) if r.path == path]
    if path not in good or not has_function(good[path], function):
        there = ", ".join(f"`{name}`" if name else "one at module level" for name in programs)
        raise ChoiceError(
            f"{path} has no function `{function}`; its tower programs: {there or 'none'}"
        )
    message = f"`{function}` holds no tower program (any more): nothing was changed"
    return FileReport(path, "unchanged", (), (Finding("TM106", path, 1, 0, message),))


def _kept_files(
    good: Mapping[str, str],
    graph: Mapping[str, Collection[str]],
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
    needed = import_closure(good, converted, graph)
    if refused == "keep":
        for path in bad:
            line = results[path][0].recognition.line
            kept[path] = Finding("TM103", path, line, 0, "a program in it was refused: not changed")
            for other in import_closure(good, [path], graph) - needed:
                kept.setdefault(
                    other,
                    Finding(
                        "TM103", other, 1, 0, f"not changed: {path}, which was refused, uses it"
                    ),
                )
    for path, finding in held.items():
        kept.setdefault(path, finding)
    return kept


def _program(result: ProgramResult, texts: Mapping[str, str]) -> ProgramReport:
    recognition = result.recognition
    findings = [
        finding
        for finding in result.findings
        if without_suppressed([finding], texts.get(finding.path, ""))
    ]
    return ProgramReport(
        line=recognition.line,
        function=recognition.function,
        style=result.style if result.status == "converted" else None,
        status=result.status,
        stages=recognition.program.stages if recognition.program else (),
        findings=tuple(findings),
        recognised=recognition.program,
    )


def _refuse(program: ProgramReport) -> ProgramReport:
    return replace(program, status="refused", style=None)


def _unstable(
    good: Mapping[str, str],
    readings: Readings,
    files: Sequence[FileReport],
    texts: Mapping[str, str],
    refused: Refused,
    fixed: Mapping[str, Finding],
    chosen: Chosen | None,
) -> set[str]:
    """Files of a finished rewrite that another rewrite would change.

    Towers are looked for only where some were: names change nothing about that.
    """
    after = {**good, **texts}
    towers = {file.path for file in files if file.programs}
    _, again, spoiled = _once(
        after, readings, frozenset(texts), refused, {}, lambda _: None, fixed, chosen, (), towers
    )
    changed = {path for path, text in again.items() if path in texts and text != after[path]}
    return changed | spoiled.keys()
