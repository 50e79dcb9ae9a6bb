"""TowerProgram -> source: write recognised programs anew, or refuse and leave their files alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import libcst as cst

from towermigrate.emit.again import may_run_again
from towermigrate.emit.apart import apart
from towermigrate.emit.check import lost_comments, parses, unbound
from towermigrate.emit.cleanup import Unpin, add_import, remove_unused
from towermigrate.emit.loop_style import LoopStyle
from towermigrate.emit.one_graph import in_one_graph
from towermigrate.emit.openings import above, runs_again
from towermigrate.emit.parting import NotParted
from towermigrate.emit.session import Headline, SessionStyle
from towermigrate.emit.shared import as_shared
from towermigrate.emit.templates import Templates, tidy_first
from towermigrate.faults import what_failed
from towermigrate.findings import Finding
from towermigrate.program import Recognition
from towermigrate.recognize import Place
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.entered import around_of
from towermigrate.recognize.joined import Joined
from towermigrate.recognize.loop_devices import on_other_devices
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.part_loops import has_whole, part_of
from towermigrate.recognize.plain import NOTHING
from towermigrate.recognize.refusal import Refused, Unwritten, by_importance, note
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import reads
from towermigrate.recognize.unfit import unfit

_OPENED = re.compile(r"\w\.mirror_variables\(")
Style = Literal["loop", "session"]
Wanted = Literal["auto", "loop", "session"]


@dataclass(frozen=True)
class ProgramResult:
    """What became of one tower loop.

    `style` is None when it was refused; `not_loop` is all that keeps it from loop style, most important first.
    """

    recognition: Recognition
    status: Literal["converted", "refused"]
    style: Style | None
    findings: tuple[Finding, ...]
    not_loop: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Emission:
    """New texts of the files that change (and only those), and one result per recognition."""

    sources: dict[str, str]
    results: tuple[ProgramResult, ...]


def emit_tree(
    sources: Mapping[str, str],
    recognitions: Sequence[Recognition],
    fixed: Collection[str] = (),
    *,
    style: Wanted = "auto",
    held: Mapping[str, Finding] = MappingProxyType({}),
    together: Callable[[str, str], bool] = str.__eq__,
) -> Emission:
    """Write every tower program of a tree: in loop style where it is proved, else in session style.

    Args:
        sources: the texts that `recognize_tree` read.
        recognitions: what it found.
        fixed: files that must not change; a program that needs a change in one is refused.
        style: the one style that is wanted; `auto` takes the better of those that fit.
        held: files none of whose programs may be converted, each with the finding that says why.
        together: whether two files may be run by one process: it is eager, or runs a graph in a session.

    Returns:
        The changed texts before the symbol pass, which still has to turn TF1 names into TF2's.
    """
    work = _Emission(sources, recognitions, frozenset(fixed), held)
    if style != "session":
        work.loop_style()
    else:
        work.keep_from_loop("another style was asked for: `--style session`")
    work.keep_apart(together)
    if style != "loop":
        work.session_style(together)
    return work.outcome()


class _NotWritten(Exception):
    """Programs cannot be written in a style: the rule that says so, and the message."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message


class _Emission:
    """The programs of a tree on their way: what was converted, how, and what kept the others from it."""

    def __init__(
        self,
        sources: Mapping[str, str],
        recognitions: Sequence[Recognition],
        fixed: frozenset[str],
        held: Mapping[str, Finding],
    ) -> None:
        self.sources = sources
        self.recognitions = recognitions
        self.fixed = fixed
        self.held = held
        self.not_loop: dict[int, list[Finding]] = {
            key: list(each.findings) if each.program is None else []
            for key, each in enumerate(recognitions)
        }
        self.not_session: dict[int, list[Finding]] = {}
        self.in_loop: dict[int, tuple[dict[str, str], list[Finding]]] = {}
        self.in_session: dict[int, list[Finding]] = {}
        self.session_texts: dict[str, str] = {}

    def _said(self, key: int, rule: str, message: str) -> Finding:
        each = self.recognitions[key]
        return Finding(rule, each.path, each.line, 0, message)

    # ---- loop style ------------------------------------------------------------------------------

    def keep_from_loop(self, message: str) -> None:
        for key in range(len(self.recognitions)):
            self.not_loop[key].append(self._said(key, "TM221", message))

    def loop_style(self) -> None:
        """Convert what recognition proved; a file's only program, as the others would run a graph beside it."""
        changed: dict[str, str] = {}
        for key, each in enumerate(self.recognitions):
            analysis = each.analysis
            if not isinstance(analysis, Analysis) or each.path in self.held:
                continue
            reasons = list(map(each.original, self._beside(each, analysis)))
            if each.program is None or reasons:
                reasons += map(each.original, _unwritable(analysis))
            else:
                try:
                    texts, more = self._emitted({**self.sources, **changed}, analysis)
                    changed.update(texts)
                    self.in_loop[key] = texts, more
                    continue
                except Unwritten as unwritten:
                    reasons = list(map(each.original, unwritten.findings))
                except Exception as error:  # one program's fault is no other's
                    reasons = [self._said(key, "TM290", what_failed(error))]
            self.not_loop[key] = by_importance([*each.findings, *reasons], each.path)

    def _beside(self, each: Recognition, analysis: Analysis) -> list[Finding]:
        """What around a program keeps it from loop style: others of its file, and a second run."""
        found: list[Finding] = []
        others = [
            other
            for other in self.recognitions
            if other.path == each.path and other is not each and other.part_of != each.line
        ]
        if others:
            message = f"the file has another tower loop, at line {others[0].line}"
            found.append(Finding("TM221", each.path, each.line, 0, message))
        function = analysis.candidate.qualified if analysis.candidate.function else None
        around = around_of(analysis.tree, analysis.file.path, function)
        again = runs_again(analysis.tree, analysis.file, analysis.candidate.function)
        other = around.again() if around is not None and again is None else None
        if (again is not None or other is not None) and not may_run_again(analysis):
            message = f"`{each.function}` may run more than once in a process: it is called here"
            if again is not None:
                found.append(note("TM235", *again, message))
            elif other is not None:
                found.append(Finding("TM235", other[0], other[1], 0, message))
        entered = around.found() if around is not None else None
        if entered is not None:
            path, line, text = entered
            message = f"`{text}` is entered around the program, where loop style has no graph"
            found.append(Finding("TM210", path, line, 0, message))
        return found

    def _emitted(
        self, sources: Mapping[str, str], analysis: Analysis
    ) -> tuple[dict[str, str], list[Finding]]:
        """A program in loop style; raises `Unwritten`."""
        try:
            texts, more = _emit_program(sources, analysis)
            out_of_reach = sorted(texts.keys() & self.fixed)
            if out_of_reach:
                message = f"{', '.join(out_of_reach)} would have to change as well"
                raise _failed(analysis, message, "TM107")
        except Refused as refusal:
            raise Unwritten([refusal.finding]) from refusal
        return texts, more

    def keep_apart(self, together: Callable[[str, str], bool]) -> None:
        """Take back what shares a process with a program that an earlier rewrite put into session style."""
        graphs = [
            path
            for path, text in self.sources.items()
            if "mirror_variables" in text and _OPENED.search(text)
        ]
        for key in list(self.in_loop):
            path = self.recognitions[key].path
            for other in graphs:
                if together(path, other):
                    del self.in_loop[key]
                    message = f"a process that runs it may run {other}, which is in session style"
                    self.not_loop[key].append(self._said(key, "TM221", message))
                    break

    # ---- session style ---------------------------------------------------------------------------

    def session_style(self, together: Callable[[str, str], bool]) -> None:
        """Convert the others, and those of loop style that share a process with one of them."""
        wanted = [
            key for key in self.not_loop if key not in self.in_loop and not self._is_written(key)
        ]
        wanted = [key for key in wanted if self._fits(key)]
        self._keep_devices_apart(wanted)
        wanted = self._whole([key for key in wanted if not self.not_session[key]])
        while True:
            demoted = [
                (key, other)
                for key in self.in_loop
                for other in wanted
                if together(self.recognitions[key].path, self.recognitions[other].path)
            ]
            if not demoted:
                break
            for key, other in demoted:
                if key in self.in_loop:
                    del self.in_loop[key]
                    at = self.recognitions[other]
                    message = f"a process that runs it may run {at.path}:{at.line}, which is in session style"
                    self.not_loop[key].append(self._said(key, "TM221", message))
                    parts = [each for each in self.not_loop if self._main(each) == key]
                    wanted += [each for each in (key, *parts) if self._fits(each)]
        loop_files = {path for texts, _ in self.in_loop.values() for path in texts}
        while wanted:
            failed = self._write_session(wanted, self.fixed | loop_files)
            if not failed:
                break
            wanted = self._whole([key for key in wanted if key not in failed])

    def _main(self, key: int) -> int | None:
        """The program that has the towers of a loop together with its own."""
        part = self.recognitions[key]
        return next(
            (
                other
                for other, each in enumerate(self.recognitions)
                if part.part_of is not None and (each.path, each.line) == (part.path, part.part_of)
            ),
            None,
        )

    def _is_written(self, key: int) -> bool:
        """Whether a loop is a part of a program that is in loop style."""
        return self._main(key) in self.in_loop

    def _whole(self, wanted: Sequence[int]) -> list[int]:
        """The programs without those that share a function with one that no style can do: they are parts of it."""
        unfit: dict[tuple[str, str | None], list[Finding]] = {}
        for key, found in self.not_session.items():
            each = self.recognitions[key]
            unfit.setdefault((each.path, each.function), []).extend(found)
        kept: list[int] = []
        for key in wanted:
            each = self.recognitions[key]
            of_others = unfit[each.path, each.function]
            if of_others:
                self.not_session[key] = list(of_others)
            else:
                kept.append(key)
        return kept

    def _fits(self, key: int) -> bool:
        """Whether session style can do it; all that it cannot is put on record."""
        each = self.recognitions[key]
        if not isinstance(each.place, Place):  # it could not even be read
            self.not_session[key] = list(each.findings)
            return False
        if each.path in self.held or each.path in self.fixed:
            return False
        candidate = each.place.candidate
        try:
            around = above(each.place.tree, candidate.file, candidate.function)
            found = unfit(
                each.place.tree, each.place.traits, candidate, around, self._others(candidate)
            )
        except Exception as error:  # one program's fault is no other's
            found = [self._said(key, "TM290", what_failed(error))]
        self.not_session[key] = found
        return not found

    def _others(self, candidate: Candidate) -> list[Candidate]:
        """The other tower loops, those that cannot be read aside."""
        places = [each.place for each in self.recognitions]
        return [
            each.candidate
            for each in places
            if isinstance(each, Place) and each.candidate is not candidate
        ]

    def _is_part(self, candidate: Candidate) -> bool:
        """Whether it goes over a part of what another loop of its function goes over."""
        part = part_of(candidate)
        return part is not None and has_whole(candidate, part, self._others(candidate))

    def _keep_devices_apart(self, wanted: Sequence[int]) -> None:
        """Put loops on record that build towers in one graph, each on devices of its own."""
        for key in wanted:
            place = self.recognitions[key].place
            for other in wanted:
                beside = self.recognitions[other].place
                if key == other or not isinstance(place, Place) or not isinstance(beside, Place):
                    continue
                own, its = place.candidate, beside.candidate
                try:
                    if self._is_part(own) or self._is_part(its):
                        continue
                    found = on_other_devices(place.tree, own, its)
                    if found is not None and in_one_graph(place.tree, own, its):
                        self.not_session[key].append(found)
                        break
                except Exception as error:  # one program's fault is no other's
                    self.not_session[key].append(self._said(key, "TM290", what_failed(error)))
                    break

    def _write_session(self, wanted: Sequence[int], fixed: frozenset[str]) -> set[int]:
        """Write the programs; those that cannot be written after all, then nothing is."""
        try:
            self.session_texts, self.in_session = self._written(wanted, fixed)
            return set()
        except _NotWritten as why:
            problem = why
        failed: dict[int, _NotWritten] = {}
        for key in wanted if len(wanted) > 1 else ():
            try:
                self._written([key], fixed)
            except _NotWritten as why:  # one program's fault is no other's
                failed[key] = why
        # Where each can be written alone, they are in each other's way.
        for key, each in (failed or dict.fromkeys(wanted, problem)).items():
            self.not_session[key].append(self._said(key, each.rule, each.message))
        return set(failed or wanted)

    def _written(
        self, wanted: Sequence[int], fixed: frozenset[str]
    ) -> tuple[dict[str, str], dict[int, list[Finding]]]:
        """Programs in session style: the new texts, and what is to be said of each; raises `_NotWritten`."""
        places = {key: self.recognitions[key].place for key in wanted}
        try:
            first = places[wanted[0]]
            assert isinstance(first, Place)
            style = SessionStyle(first.tree, fixed)
            said: dict[int, list[Finding]] = {}
            for key, place in places.items():
                assert isinstance(place, Place)
                candidate = place.candidate
                part = part_of(candidate) if self._is_part(candidate) else None
                said[key] = style.convert(Headline.of(candidate, part))
            for path, finding in style.left({(r.path, r.line) for r in self.recognitions}).items():
                key = next(key for key in wanted if self.recognitions[key].path == path)
                said[key].append(finding)
            texts = style.texts()
        except ValueError as error:  # edits that overlap
            raise _NotWritten("TM213", str(error)) from error
        except Exception as error:
            raise _NotWritten("TM290", what_failed(error)) from error
        for text in texts.values():
            problem = parses(text)
            if problem is not None:
                raise _NotWritten("TM213", f"the output does not parse: {problem}")
        return texts, said

    # ---- the end ---------------------------------------------------------------------------------

    def outcome(self) -> Emission:
        results: list[ProgramResult] = []
        texts = dict(self.session_texts)
        for key, each in enumerate(self.recognitions):
            not_loop = tuple(dict.fromkeys(self.not_loop[key]))
            if self._is_written(key):
                continue
            if key in self.in_loop:
                own, more = self.in_loop[key]
                texts.update(own)
                results.append(ProgramResult(each, "converted", "loop", tuple(more)))
            elif key in self.in_session:
                found = tuple(self.in_session[key])
                results.append(ProgramResult(each, "converted", "session", found, not_loop))
            else:
                results.append(ProgramResult(each, "refused", None, self._refusal(key), not_loop))
        return Emission(texts, tuple(results))

    def _refusal(self, key: int) -> tuple[Finding, ...]:
        """Why neither style was taken."""
        each = self.recognitions[key]
        found = list(self.not_session.get(key, ()))
        if each.path in self.held:
            found.append(self.held[each.path])
        elif each.path in self.fixed:
            found.append(self._said(key, "TM107", f"{each.path} would have to change"))
        return tuple(dict.fromkeys(found or self.not_loop[key]))


def _unwritable(analysis: Analysis) -> list[Finding]:
    """What else would keep a program from being written in loop style, where other reasons do already."""
    if analysis.program is None:
        return []
    try:
        LoopStyle(analysis).statements()
    except Unwritten as unwritten:
        return unwritten.findings
    except Exception:  # it was not to be written, so that it cannot be is no fault
        return []
    return []


def _emit_program(
    sources: Mapping[str, str], analysis: Analysis
) -> tuple[dict[str, str], list[Finding]]:
    file, made = analysis.file, analysis.joined
    own, sources = sources, _in_plain_spelling(sources, analysis)
    before = {file.path: file.text} if made is None else made.befores
    if any(sources[path] != text for path, text in before.items()):
        raise _failed(analysis, "another program already changed this file")
    style = LoopStyle(analysis)
    body = style.statements()
    module = _with_body(analysis, body)
    gone = _names_of_removed(analysis, style)
    module, removed = remove_unused(module, gone, analysis.tree, file.path)
    line = Templates(file.module).statement("import towermigrate.helpers as tm")
    assert isinstance(line, cst.SimpleStatementLine)
    imported = add_import(module, line)
    if imported is module:
        raise _failed(
            analysis, "TensorFlow is not imported by a plain `import tensorflow as tf`", "TM211"
        )
    module = imported
    texts = {file.path: module.code}
    pins = _unpinned(sources, analysis, texts)
    if analysis.sums or analysis.scoped:
        texts[file.path] = as_shared(analysis, texts[file.path])
    if analysis.plain is not None:  # functions of other files that the towers call
        beside = {*before, *([] if made is None else made.befores)}
        for path, text in analysis.plain.texts.items():
            if path not in beside:
                texts.setdefault(path, text)
    problem = parses(texts[file.path])
    if problem is not None:
        raise _failed(analysis, f"the output does not parse: {problem}")
    style.findings.extend(pins)
    if made is not None:
        style.findings = [made.original(each) for each in style.findings]
    if analysis.plain is not None:
        style.findings = [analysis.plain.original(each) for each in style.findings]
    if made is not None:
        texts.update(_own_files(analysis, texts, made, line, gone))
        for path in before:
            problem = parses(texts[path])
            if problem is not None:
                raise _failed(analysis, f"the output does not parse: {problem}")
    if analysis.plain is not None and any(NOTHING in text for text in texts.values()):
        raise _failed(analysis, "what a run gives is kept, and is no value in it", "TM209")
    fresh = {
        name
        for path, text in before.items()
        for name in set(unbound(texts[path])) - set(unbound(text))
    }
    if fresh:
        raise _failed(
            analysis,
            f"`{'`, `'.join(sorted(fresh))}` would be read after it was taken away",
            "TM210",
        )
    style.findings.extend(_lost(own, texts, removed))
    return texts, style.findings


def _in_plain_spelling(sources: Mapping[str, str], analysis: Analysis) -> Mapping[str, str]:
    """The texts that a program was read in."""
    made = analysis.plain
    if made is None:
        return sources
    if any(sources[path] not in (text, made.texts[path]) for path, text in made.befores.items()):
        raise _failed(analysis, "another program already changed this file")
    return {**sources, **made.texts}


def _own_files(
    analysis: Analysis,
    texts: Mapping[str, str],
    made: Joined,
    helpers: cst.SimpleStatementLine,
    gone: set[str],
) -> dict[str, str]:
    """The texts of a program whose functions were read as one, with each function where its author has it."""
    try:
        new = apart(texts, made)
    except NotParted as problem:
        raise _failed(analysis, str(problem), "TM205") from problem
    if len(new) == 1:
        return new
    own = cst.Module([helpers]).code.strip()
    tree = Tree({**analysis.tree.sources, **new}, like=analysis.tree)
    for path, text in new.items():
        module = cst.parse_module(text)
        if path != made.path:
            module, _ = remove_unused(module, gone, tree, path)
            if "tm." in module.code:
                if re.search(r"\btm\b", made.befores[path]):
                    message = (
                        f"{path} uses the name `tm`, which rewritten programs give to the helpers"
                    )
                    raise _failed(analysis, message, "TM211")
                imported = add_import(module, helpers)
                if imported is module:
                    message = (
                        f"TensorFlow is not imported by a plain `import tensorflow as tf` in {path}"
                    )
                    raise _failed(analysis, message, "TM211")
                module = imported
            new[path] = module.code
        elif "tm." not in text.replace(own, ""):
            new[path] = text.replace(own + "\n", "", 1)
    return new


def _failed(analysis: Analysis, message: str, rule: str = "TM213") -> Refused:
    where = analysis.file.span(analysis.candidate.loop)
    return Refused(Finding(rule, analysis.file.path, where.line, where.column, message))


def _with_body(analysis: Analysis, body: list[cst.BaseStatement]) -> cst.Module:
    """The module with the program's scope replaced by its new statements."""
    target = analysis.candidate.function
    if target is None:
        return analysis.file.module.with_changes(body=body)

    assert isinstance(target.body, cst.IndentedBlock)
    changed = target.with_changes(body=target.body.with_changes(body=tidy_first(body)))
    module = analysis.file.module
    if target in module.body:
        return module.with_changes(
            body=[changed if node is target else node for node in module.body]
        )
    replaced: cst.CSTNode = module
    replaced = replaced.deep_replace(target, changed)
    assert isinstance(replaced, cst.Module)
    return replaced


def _names_of_removed(analysis: Analysis, style: LoopStyle) -> set[str]:
    """Names read by the machinery that went: candidates for removal where nobody else reads them."""
    names: set[str] = set()
    for stage in analysis.stages:
        names |= set(reads(stage.average.func))
    names |= set(reads(analysis.loop_item.node))
    for item in style.removed_items:
        names |= set(item.reads)
    return names


def _unpinned(
    sources: Mapping[str, str], analysis: Analysis, texts: dict[str, str]
) -> list[Finding]:
    """Dissolve device pins in the functions that the towers call, in whichever file they stand.

    Puts the changed texts into `texts` and returns a finding for each pin.
    """
    findings: list[Finding] = []
    by_file: dict[str, list[cst.FunctionDef]] = {}
    for file, function in analysis.tower_functions:
        by_file.setdefault(file.path, []).append(function)
    for path, functions in by_file.items():
        other = analysis.tree.file(path)
        if other is None or "device" not in other.text:
            continue
        module = other.module
        if path == analysis.file.path:
            names = {f.name.value for f in functions}
            module = cst.parse_module(texts[path])
            functions = [
                n for n in module.body if isinstance(n, cst.FunctionDef) and n.name.value in names
            ]
        elif sources[path] != _before(analysis, other):
            continue
        unpin = Unpin(other, functions)
        changed = module.visit(unpin)
        assert isinstance(changed, cst.Module)
        if not unpin.pins:
            continue
        texts[path] = changed.code
        # Positions are those of the original, which the main file's new module no longer has.
        line = other.line(unpin.pins[0]) if path != analysis.file.path else analysis.program_line
        findings.append(
            Finding(
                "TM307",
                path,
                line,
                0,
                f"{len(unpin.pins)} device pin(s) dissolved in functions that the towers call",
            )
        )
    return findings


def _before(analysis: Analysis, file: SourceFile) -> str:
    """The author's text of a file."""
    made = analysis.joined
    return made.befores[file.path] if made is not None and file.path in made.befores else file.text


def _lost(own: Mapping[str, str], texts: Mapping[str, str], removed: list[str]) -> list[Finding]:
    """One finding a file that lists the comments that went, those inside removed functions aside.

    A comment that is in another of the files now, with the statements it stands at, did not go.
    """
    findings: list[Finding] = []
    came = [comment for path in texts for _, comment in lost_comments(texts[path], own[path])]
    for path in texts:
        spans = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(ast.parse(own[path]))
            if isinstance(node, ast.FunctionDef) and node.name in removed
        ]
        lost: list[tuple[int, str]] = []
        for line, comment in lost_comments(own[path], texts[path]):
            if comment in came:
                came.remove(comment)
            elif not any(start <= line <= end for start, end in spans):
                lost.append((line, comment))
        if lost:
            listed = "; ".join(f"{line}: {comment}" for line, comment in lost)
            gone = f"comments gone with the statements they stood at: {listed}"
            findings.append(Finding("TM305", path, lost[0][0], 0, gone))
    return findings
