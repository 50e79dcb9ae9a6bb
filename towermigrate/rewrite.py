"""The pipeline over a tree of sources: recognise, emit, change names, check. Nothing here touches a disk."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from towermigrate.choice import ChoiceError, Chosen, has_function
from towermigrate.collector import without_collector
from towermigrate.comments import without_suppressed
from towermigrate.findings import Finding, with_places
from towermigrate.outcome import FileReport, TreeReport
from towermigrate.passes import Job, Passed, Progress, Refused, Style, run_passes
from towermigrate.python2 import Ported, Together, ported_together
from towermigrate.reading import Readings
from towermigrate.symbols.brought import brought
from towermigrate.tree import TF1_COPY, deepest_files, exhausted_stack, import_graph

Python2 = Literal["auto", "never"]


@without_collector()
def rewrite_tree(
    sources: Mapping[str, str],
    *,
    refused: Refused = "keep",
    only: Iterable[str] | None = None,
    fixed: Mapping[str, Finding] | None = None,
    chosen: Chosen | None = None,
    py2: Python2 = "auto",
    style: Style = "auto",
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
        style: the style of rewritten programs: `loop`, `session`, or the better of those that fit.
        links: texts of the tree's other files, by path; none where not all of the tree is given. What they import
            counts. One that gets TensorFlow's names from another file is rewritten as all TensorFlow files are, and
            one that runs a module which needs a graph gets the switch for that.
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
    wish = _Wish(
        refused, None if only is None else frozenset(only), fixed or {}, chosen, style, progress
    )
    progress("reading the files")
    with Readings(links) as readings:
        every = {**links, **sources}

        def while_reading() -> None:
            readings.given = brought(every)
            meanwhile()

        python2 = _maybe_python2(sources, wish) if py2 == "auto" else frozenset()
        readings.read_ahead(sources, python2, while_reading)
        taken = readings.taken_links(readings.given)
        if taken:
            late = _maybe_python2(taken, wish) if py2 == "auto" else frozenset()
            readings.read_ahead(taken, late)
            python2 |= late
            sources = {**taken, **sources}
        problems = {path: readings.of(path, text).problem for path, text in sources.items()}
        ported = _port(sources, problems, python2, wish, readings) if py2 == "auto" else {}
        together = _together(sources, problems, ported, wish, readings)
        ported.update(together.ported)
        sources = {**sources, **readings.taken_links(together.ported)}
        problems.update(dict.fromkeys(together.ported))
        while True:
            texts = {**sources, **{path: one.text for path, one in ported.items()}}
            good = {path: texts[path] for path, problem in problems.items() if problem is None}
            try:
                report = _rewrite_good(good, problems, ported, wish, readings)
                if isinstance(report, TreeReport):
                    return _with_findings(report, together.findings, texts)
                sources = {**sources, **readings.taken_links(report)}
                problems.update(dict.fromkeys(report, None))
            except Exception as error:
                if not (good and exhausted_stack(error)):
                    raise
                for path in deepest_files(good):
                    message = "it is nested too deeply to be read"
                    problems[path] = Finding("TM101", path, 1, 0, message)


@dataclass(frozen=True)
class _Wish:
    """What was asked of `rewrite_tree`."""

    refused: Refused
    only: frozenset[str] | None
    fixed: Mapping[str, Finding]
    chosen: Chosen | None
    style: Style
    progress: Progress


def _maybe_python2(sources: Mapping[str, str], wish: _Wish) -> frozenset[str]:
    """The files to bring to Python 3 where only Python 2 parses them."""
    return frozenset(
        path
        for path, text in sources.items()
        if path not in wish.fixed
        and (wish.only is None or path in wish.only or "tensorflow" in text)
    )


def _port(
    sources: Mapping[str, str],
    problems: dict[str, Finding | None],
    python2: Collection[str],
    wish: _Wish,
    readings: Readings,
) -> dict[str, Ported]:
    """Bring what only Python 2 parses to Python 3; its problem goes, or says why it could not be done.

    What is neither Python 3 nor Python 2 and does not mention TensorFlow is no concern of ours and goes too.
    """
    ported: dict[str, Ported] = {}
    for path, problem in list(problems.items()):
        if problem is None or path in wish.fixed or problem.rule == "TM100":
            continue
        if path not in python2:
            del problems[path]
            continue
        result = readings.ported(path, sources[path])
        if isinstance(result, Ported):
            problems[path] = readings.of(path, result.text).problem
            if problems[path] is not None:
                continue
            findings = without_suppressed(result.findings, sources[path])
            ported[path] = replace(result, findings=findings)
        elif result.fault is not None:
            problems[path] = result.fault
        elif "tensorflow" in sources[path] or result.python2 or path in (wish.only or ()):
            message = f"{problem.message}; {result.reason}"
            problems[path] = replace(problem, message=message)
        else:
            del problems[path]
    return ported


def _together(
    sources: Mapping[str, str],
    problems: Mapping[str, Finding | None],
    ported: Mapping[str, Ported],
    wish: _Wish,
    readings: Readings,
) -> Together:
    """The files that Python 3 parses and that ran with Python 2 ones, where all of the tree was asked for."""
    if not ported or wish.only is not None:
        return Together({}, {})
    good = {p: text for p, text in sources.items() if p in problems and problems[p] is None}
    texts = {
        path: ported[path].text if path in ported else text
        for path, text in {**readings.links, **good}.items()
        if path not in wish.fixed
    }
    modules = {path: readings.of(path, texts[path]).modules for path in texts.keys() & good.keys()}
    graph = import_graph(texts.keys(), {**readings.link_modules, **modules})
    graph = {path: graph.get(path, set()) for path in texts}
    together = ported_together(texts, ported, graph, readings.spread)
    return Together(
        {
            path: one
            for path, one in together.ported.items()
            if readings.of(path, one.text).problem is None
        },
        together.findings,
    )


def _with_findings(
    report: TreeReport, findings: Mapping[str, Sequence[Finding]], texts: Mapping[str, str]
) -> TreeReport:
    """The report with more findings of some files, which are those of other files where they are not in it yet."""
    files = [
        replace(
            file,
            findings=(
                *file.findings,
                *without_suppressed(findings.get(file.path, ()), texts.get(file.path, "")),
            ),
        )
        for file in report.files
    ]
    there = {file.path for file in files}
    files += [
        FileReport(path, "unchanged", (), tuple(said), link=True)
        for path, said in findings.items()
        if path not in there
    ]
    return replace(report, files=tuple(sorted(files, key=lambda file: file.path)))


def _rewrite_good(
    good: Mapping[str, str],
    problems: Mapping[str, Finding | None],
    ported: Mapping[str, Ported],
    wish: _Wish,
    readings: Readings,
) -> TreeReport | frozenset[str]:
    """`rewrite_tree` of the files that can be parsed; `problems` are those of all.

    Links that a program needs changed come back in its place: nothing can be said before they are read.
    """
    # Our own file for TensorFlow 1 is read, to know its average, and never written: TensorFlow 2 runs it too.
    asked = good if wish.only is None else wish.only
    fixed = {path: finding for path, finding in wish.fixed.items() if path in good}
    job = Job(
        good,
        readings,
        frozenset(p for p in asked if posixpath.basename(p) != TF1_COPY and p not in fixed),
        wish.refused,
        fixed,
        wish.chosen,
        ported.keys(),
        launchers=_launchers(good, readings, wish.fixed) if wish.only is None else None,
        style=wish.style,
        fixed_links=frozenset(wish.fixed.keys() & readings.links.keys()),
        progress=wish.progress,
    )
    passed = _stable(job)
    if passed is None:
        assert wish.chosen is not None
        return TreeReport((_without_program(good, wish.chosen),), {})
    if passed.links:
        return passed.links
    broken = [
        FileReport(path, "unchanged", (), (wish.fixed[path],))
        if path in wish.fixed
        else FileReport(path, "unparsable", (), (problem,))
        for path, problem in problems.items()
        if problem is not None
    ]
    listed = job.wanted | fixed.keys() | readings.links.keys()
    shown = [file for file in passed.files if file.path in listed or file.status != "unchanged"]
    if ported:
        shown = [_as_of_python2(file, ported, file.path in passed.texts) for file in shown]
    files = tuple(sorted([*shown, *broken], key=lambda file: file.path))
    return TreeReport(files, passed.texts, imports=passed.imports)


def _stable(job: Job) -> Passed | None:
    """What the passes give, without the files that another run would change; None where the chosen program is not there."""
    held: dict[str, Finding] = {}
    while True:
        passed = run_passes(job, held)
        if passed.links:
            return passed
        if job.chosen is not None and not _holds(passed.files, job.chosen):
            return None
        if passed.spoiled and not passed.spoiled.keys() <= held.keys():
            held.update(passed.spoiled)
            continue
        job.progress("checking that a second rewrite changes nothing")
        unstable = _unstable(job, passed)
        if unstable.keys() <= held.keys():
            return passed
        held.update(unstable)


def _unstable(job: Job, passed: Passed) -> dict[str, Finding]:
    """Files of a finished rewrite that another rewrite would change, or at which it fails.

    Towers are looked for only where some were: names change nothing about that.
    """
    after = {**job.sources, **passed.texts}
    again = run_passes(
        replace(
            job,
            sources=after,
            wanted=frozenset(passed.texts),
            ported=(),
            towers={file.path for file in passed.files if file.programs},
            launchers=None,
            progress=lambda _: None,
        )
    )
    message = "the result would be rewritten again"
    changed = {
        path: Finding("TM104", path, 1, 0, message)
        for path in passed.texts
        if again.texts.get(path, after[path]) != after[path]
    }
    return {**changed, **again.spoiled}


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
        path, line = finding.path, ported[finding.path].line
        message = with_places(finding.message, path, lambda number: f"{path}:{line(number)}")
        return replace(finding, line=line(finding.line), message=message)

    own = ported.get(file.path)
    return replace(
        file,
        programs=tuple(
            replace(
                program,
                line=program.line if own is None else own.line(program.line),
                findings=tuple(map(original, program.findings)),
                not_loop=tuple(map(original, program.not_loop)),
            )
            for program in file.programs
        ),
        findings=(
            *(own.findings if own is not None and written else ()),
            *map(original, file.findings),
        ),
    )


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
