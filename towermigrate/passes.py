"""One run of the passes over the files of a tree that can be read: towers first, then names."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from towermigrate.choice import ChoiceError, Chosen, put_back
from towermigrate.comments import without_suppressed
from towermigrate.faults import fault
from towermigrate.findings import Finding
from towermigrate.hints import may_hold_towers
from towermigrate.outcome import FileReport, FileStatus, ProgramReport
from towermigrate.program import Recognition
from towermigrate.reading import Reading, Readings
from towermigrate.symbols.neighbours import Unswitched, left_behind, unswitched
from towermigrate.symbols.sessions import settled
from towermigrate.tree import (
    TF1_COPY,
    exhausted_stack,
    import_closure,
    import_graph,
)

if TYPE_CHECKING:  # libcst takes a tenth of a second to load: only where there may be a tower
    from towermigrate.emit import ProgramResult
    from towermigrate.symbols import SymbolResult

Refused = Literal["keep", "symbols"]
Style = Literal["auto", "loop", "session"]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """The files of a tree that can be read, and what is to be done with them.

    `wanted` are those that may change; `fixed` those that must not, each with the finding that says why. `ported`
    are not on disk as they are in `sources`: they are written even where nothing else changes. `towers` are the
    files to look for tower programs in, None where that is to be found out. `launchers` are the files that may run
    modules without a word of TensorFlow, None where only some files of the tree were asked for. `style` is the
    style that programs are to have, `fixed_links` those of the readings' links that must not change.
    """

    sources: Mapping[str, str]
    readings: Readings
    wanted: frozenset[str]
    refused: Refused
    fixed: Mapping[str, Finding]
    chosen: Chosen | None = None
    ported: Collection[str] = ()
    towers: Collection[str] | None = None
    launchers: Mapping[str, str] | None = None
    style: Style = "auto"
    fixed_links: frozenset[str] = frozenset()
    progress: Progress = lambda _: None


@dataclass
class Passed:
    """What the passes gave: the reports, the new texts, and the files whose other programs could not be kept.

    `links` are files without TensorFlow that a program needs changed: they must be read like the others first.
    `imports` says which files of the tree each file imports.
    """

    files: list[FileReport] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    spoiled: dict[str, Finding] = field(default_factory=dict)
    links: frozenset[str] = frozenset()
    imports: Mapping[str, set[str]] = field(default_factory=dict)


def run_passes(job: Job, held: Mapping[str, Finding] = MappingProxyType({})) -> Passed:
    """Run them. `held` files must not change; what they say is added to their reports."""
    job.progress("looking for tower programs")
    before = {path: job.readings.of(path, text) for path, text in job.sources.items()}
    graph = _imports(job, before)
    towers, others = _towers(job, before, graph, held)
    links = towers.texts.keys() & job.readings.links.keys()
    if links:
        return Passed(links=frozenset(links))
    names = _Names.of(job, before, graph, towers, held)
    if job.towers is None:
        changed = names.changing - towers.texts.keys()
        job.readings.read_on(job.sources, {path: names.of_file[path].text for path in changed})
    job.progress("changing TensorFlow 1 names")
    passed = Passed(spoiled=dict(names.faults), imports=names.graph)
    for path in job.sources:
        try:
            report = _pass_file(job, path, before[path], towers, names, others, passed)
        except Exception as error:
            passed.spoiled[path] = fault(path, error)
            passed.texts.pop(path, None)
            report = FileReport(path, "unparsable", (), (passed.spoiled[path],))
        passed.files.append(report)
    for path in names.unrun.findings.keys() & job.readings.links.keys():
        said = without_suppressed([names.unrun.findings[path]], job.readings.links[path])
        status: FileStatus = "unchanged"
        if path in names.unrun.texts:
            passed.texts[path] = names.unrun.texts[path]
            status = "rewritten"
        if said or status == "rewritten":
            passed.files.append(FileReport(path, status, (), said, link=True))
    return passed


def _imports(job: Job, before: Mapping[str, Reading]) -> dict[str, set[str]]:
    """The files of the tree that each file imports."""
    modules = {path: each.modules for path, each in before.items()}
    paths = job.sources.keys() | job.readings.links.keys()
    return import_graph(paths, {**modules, **job.readings.link_modules})


@dataclass(frozen=True)
class _Towers:
    """What became of the tower programs: new texts of files, and the results by the programs' files."""

    texts: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, Sequence[ProgramResult]] = field(default_factory=dict)


def _towers(
    job: Job,
    before: Mapping[str, Reading],
    graph: Mapping[str, set[str]],
    held: Mapping[str, Finding],
) -> tuple[_Towers, list[Recognition]]:
    """The tower programs converted, but for those of held files; and those of the chosen one's file that are not.

    In a large tree two processes work on them, and then on what the files will become.
    """
    towers = job.towers
    if towers is None:
        hints = {path: each.hints for path, each in before.items() if each.hints is not None}
        assert len(hints) == len(before)
        # A function of the tree that a loop calls stands in a file that this one leads to.
        towers = {
            path
            for group in _apart(hints, graph).values()
            for path in may_hold_towers({each: hints[each] for each in group})
        }
    wanted = job.wanted & set(towers)
    groups = _apart(wanted, graph) if job.chosen is None else {}
    together = _Together(graph)
    if len(groups) > 1 and job.readings.may_be_two(job.sources):
        works = job.readings.spread(
            {name: sum(len(job.sources[path]) for path in group) for name, group in groups.items()},
            lambda name: _without_nodes(
                _emitted(job, _recognized(job, groups[name], graph), held, together)
            ),
            least=0,
        )
        made = _joined(list(works.values()))
        if made is not None:
            return made, []
    if job.towers is None:
        job.readings.read_on(job.sources)
    if not wanted:
        return _Towers(), []
    found, others = _recognized(job, wanted, graph), []
    if job.chosen is not None:
        path, function = job.chosen.path, job.chosen.function
        others = [each for each in found if each.path == path and each.function != function]
        found = [each for each in found if each not in others]
    if found:
        job.progress("rewriting tower programs")
    return _emitted(job, found, held, together), others


def _apart(paths: Collection[str], graph: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Files in groups of which no file of the tree sees two: nothing that one imports or that imports it, however far."""
    near: dict[str, set[str]] = {path: set(imported) for path, imported in graph.items()}
    for path, imported in graph.items():
        for other in imported:
            near.setdefault(other, set()).add(path)
    groups: dict[str, set[str]] = {}
    left = set(paths)
    for path in sorted(paths):
        if path in left:
            groups[path] = import_closure({}, [path], near) & left
            left -= groups[path]
    return groups


def _without_nodes(towers: _Towers) -> _Towers:
    """The same without syntax trees, which are too much to send to another process."""
    return replace(
        towers,
        results={
            path: [replace(one, recognition=one.recognition.without_nodes()) for one in results]
            for path, results in towers.results.items()
        },
    )


def _joined(parts: Sequence[_Towers]) -> _Towers | None:
    """What became of several groups; None where two changed the same file, each without knowing of the other."""
    texts = {path: text for part in parts for path, text in part.texts.items()}
    if len(texts) < sum(len(part.texts) for part in parts):
        return None
    results = {path: each for part in parts for path, each in part.results.items()}
    return _Towers(texts, dict(sorted(results.items())))


def _recognized(
    job: Job, wanted: Collection[str], graph: Mapping[str, set[str]]
) -> list[Recognition]:
    """`recognize_tree`; where it fails, file by file, so that the other files have their programs."""
    from towermigrate.recognize import recognize_tree

    sources, links = job.sources, job.readings.links
    try:
        return recognize_tree(sources, wanted, links, graph)
    except Exception as error:
        if exhausted_stack(error):
            raise  # `rewrite_tree` looks for the files that nest too deeply
    found: list[Recognition] = []
    for path in sorted(wanted):
        try:
            found += recognize_tree(sources, {path}, links, graph)
        except Exception as error:
            problem = fault(path, error)
            found.append(Recognition(path, None, problem.line, None, (problem,)))
    return found


def _emitted(
    job: Job, programs: Sequence[Recognition], held: Mapping[str, Finding], together: _Together
) -> _Towers:
    """The tower programs converted, but for those of held files."""
    if not programs:
        return _Towers()
    from towermigrate.emit import emit_tree

    emission = emit_tree(
        {**job.readings.links, **job.sources},
        programs,
        job.fixed.keys() | job.fixed_links,
        style=job.style,
        held=held,
        together=together,
    )
    results: dict[str, list[ProgramResult]] = {}
    for result in emission.results:
        results.setdefault(result.recognition.path, []).append(result)
    return _Towers(emission.sources, results)


class _Together:
    """Tells whether one process may run two files: a script that imports both, directly or not."""

    def __init__(self, graph: Mapping[str, set[str]]) -> None:
        self._graph = graph
        self._known: dict[tuple[str, str], bool] = {}

    def __call__(self, first: str, second: str) -> bool:
        if first == second:
            return True
        key = (min(first, second), max(first, second))
        if key not in self._known:
            self._known[key] = any(
                first in reach and second in reach for reach in self._reaches.values()
            )
        return self._known[key]

    @cached_property
    def _reaches(self) -> dict[str, set[str]]:
        return {path: import_closure({}, [path], self._graph) for path in self._graph}


@dataclass(frozen=True)
class _Names:
    """What the symbol pass made of every file, and of the tree.

    `graph` says which file imports which; `kept` files stay as they are, each with the finding that says why,
    `changing` ones need not. `unrun` need a graph that nothing makes. `stay` is what files that change are told of
    those that they import and that do not. `faults` are the files at which this failed.
    """

    of_file: Mapping[str, SymbolResult]
    graph: Mapping[str, set[str]]
    kept: Mapping[str, Finding]
    changing: Set[str]
    unrun: Unswitched
    stay: Mapping[str, Finding]
    faults: Mapping[str, Finding]

    @classmethod
    def of(
        cls,
        job: Job,
        before: Mapping[str, Reading],
        imports: Mapping[str, set[str]],
        towers: _Towers,
        held: Mapping[str, Finding],
    ) -> _Names:
        graph = dict(imports)
        paths = job.sources.keys() | job.readings.links.keys()
        kept = {**_kept_files(job, graph, towers, held), **job.fixed}
        changed = {path: job.readings.of_emitted(path, text) for path, text in towers.texts.items()}
        graph.update(import_graph(paths, {path: each.modules for path, each in changed.items()}))
        symbols = {path: each.symbols for path, each in {**before, **changed}.items()}
        changing = job.sources.keys() & (job.wanted | towers.texts.keys()) - kept.keys()
        faults: dict[str, Finding] = {}
        own = dict(symbols)
        for path in changing:
            try:
                symbols[path] = _switched(path, own, graph)
            except Exception as error:
                faults[path] = fault(path, error)
        unrun = Unswitched()
        stay = dict(job.fixed)
        if job.launchers is not None:
            unrun = unswitched(graph, symbols, job.launchers, kept)
            for path in unrun.texts.keys() & changing:
                symbols[path] = replace(symbols[path], text=unrun.texts[path])
        elif job.towers is None:
            stay.update(
                (each, Finding("TM106", each, 1, 0, "it was not asked for"))
                for each in job.sources.keys() - changing - kept.keys()
                if posixpath.basename(each) != TF1_COPY
            )
        return cls(symbols, graph, kept, changing, unrun, stay, faults)


def _pass_file(
    job: Job,
    path: str,
    reading: Reading,
    towers: _Towers,
    names: _Names,
    others: Sequence[Recognition],
    passed: Passed,
) -> FileReport:
    """What becomes of one file; its new text is put into `passed`. `others` are programs that were not chosen."""
    before = job.sources[path]
    programs = tuple(_program(result, job.sources) for result in towers.results.get(path, ()))
    refused = bool(programs) and all(program.status == "refused" for program in programs)
    status: FileStatus = "refused" if refused else "unchanged"
    findings: list[Finding] = []
    if path in names.kept:
        findings.append(names.kept[path])
    elif path in names.changing:
        named = names.of_file[path]
        findings.extend(without_suppressed(named.findings, towers.texts.get(path, before)))
        stay = names.stay if named.text != before else job.fixed
        around = left_behind(job.sources, path, names.graph[path], names.of_file, stay)
        around += [names.unrun.findings[path]] if path in names.unrun.findings else []
        findings.extend(without_suppressed([*around, *reading.python2], before))
        text = named.text
        if others and path == others[0].path:
            try:
                text = _only_chosen(job, path, text, others)
            except ChoiceError as error:
                passed.spoiled[path] = Finding("TM107", path, others[0].line, 0, str(error))
                text = before
            findings.extend(_left_alone(others))
        if text != before or path in job.ported:
            problem = job.readings.of(path, text).problem
            if problem is not None:
                found = problem if problem.rule == "TM100" else replace(problem, rule="TM104")
                findings.append(found)
                programs = tuple(
                    replace(program, status="refused", style=None) for program in programs
                )
                status = "refused" if programs else "unchanged"
            else:
                passed.texts[path] = text
                findings.extend(_names_moved(job, path, programs))
                status = "refused" if refused else "rewritten"
    if status == "unchanged" and any(finding.rule == "TM100" for finding in findings):
        status = "unparsable"
    return FileReport(path, status, programs, tuple(findings))


def _only_chosen(job: Job, path: str, text: str, others: Sequence[Recognition]) -> str:
    """The new text of the chosen program's file with the other programs as they were; raises ChoiceError."""
    assert job.chosen is not None
    if path in job.ported:
        raise ChoiceError("the file is Python 2: all of it would change")
    if any(job.chosen.function.startswith(f"{each.function}.") for each in others):
        raise ChoiceError(f"`{job.chosen.function}` is a part of another program")
    return put_back(job.sources[path], text, {other.function for other in others})


def _switched(
    path: str, symbols: Mapping[str, SymbolResult], graph: Mapping[str, Collection[str]]
) -> SymbolResult:
    """What the symbol pass made of a file, switched where it is a script that runs a graph."""
    own = symbols[path]
    if own.script is None or own.mode.switched:
        return own
    others = sorted((import_closure({}, [path], graph) - {path}) & symbols.keys())
    eager = [each for each in symbols if symbols[each].mode.eager and each not in others]
    used = any(path in import_closure({}, [each], graph) for each in eager if each != path)
    return settled(own, [(each, symbols[each]) for each in others], used_eagerly=used)


def _names_moved(job: Job, path: str, programs: Sequence[ProgramReport]) -> list[Finding]:
    """What the report says of refused programs whose file changes for the sake of others."""
    converted = [program for program in programs if program.status == "converted"]
    if job.refused != "keep" or not converted:
        return []
    others = ", ".join(dict.fromkeys(map(_named, converted)))
    said = [
        Finding(
            "TM312", path, program.line, 0,
            f"the program {_named(program)} was refused; its TensorFlow 1 names were changed all the same, with "
            f"those of the one {others}",
        )
        for program in programs
        if program.status == "refused"
    ]  # fmt: skip
    return list(without_suppressed(said, job.sources[path]))


def _named(program: ProgramReport) -> str:
    return "at module level" if program.function is None else f"in `{program.function}`"


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


def _kept_files(
    job: Job, graph: Mapping[str, Collection[str]], towers: _Towers, held: Mapping[str, Finding]
) -> dict[str, Finding]:
    """Files that stay as they are, and why: those of refused programs, and what only these import.

    A refused program must go on running on TensorFlow 1, so the files it imports must not start to import
    `tf_slim`, unless a converted program needs them rewritten.
    """
    kept: dict[str, Finding] = {}
    results = towers.results
    bad = [path for path, group in results.items() if all(r.status == "refused" for r in group)]
    converted = [path for path in results if path not in bad]
    needed = import_closure(job.sources, converted, graph)
    if job.refused == "keep":
        for path in bad:
            line = results[path][0].recognition.line
            kept[path] = Finding("TM103", path, line, 0, "a program in it was refused: not changed")
            for other in import_closure(job.sources, [path], graph) - needed:
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
        not_loop=result.not_loop,
    )
