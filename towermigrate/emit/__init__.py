"""TowerProgram -> source: write recognised programs anew, or refuse and leave their files alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from towermigrate.emit.check import lost_comments, parses, unbound
from towermigrate.emit.cleanup import Unpin, add_import, remove_unused
from towermigrate.emit.loop_style import LoopStyle
from towermigrate.emit.templates import Templates, tidy_first
from towermigrate.findings import Finding
from towermigrate.program import Recognition
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.refusal import Refused
from towermigrate.recognize.syntax import reads

Style = Literal["loop", "session"]


@dataclass(frozen=True)
class ProgramResult:
    """What became of one tower loop. `style` is None when it was refused."""

    recognition: Recognition
    status: Literal["converted", "refused"]
    style: Style | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Emission:
    """New texts of the files that change (and only those), and one result per recognition."""

    sources: dict[str, str]
    results: tuple[ProgramResult, ...]


def emit_tree(
    sources: Mapping[str, str],
    recognitions: Sequence[Recognition],
    fixed: Collection[str] = (),
) -> Emission:
    """Write every recognised program of a tree.

    Args:
        sources: the texts that `recognize_tree` read.
        recognitions: what it found.
        fixed: files that must not change; a program that needs a change in one is refused.

    Returns:
        The changed texts before the symbol pass, which still has to turn TF1 names into TF2's. A file that
        holds a refused program is not changed for any of its programs.
    """
    changed: dict[str, str] = {}
    results: list[ProgramResult] = []
    per_file: dict[str, list[Recognition]] = {}
    for recognition in recognitions:
        per_file.setdefault(recognition.path, []).append(recognition)
    for path, group in per_file.items():
        refused = [r for r in group if r.program is None]
        if refused or len(group) > 1:
            for recognition in group:
                findings = recognition.findings
                if recognition.program is not None:
                    others = refused or [r for r in group if r is not recognition]
                    findings = (
                        *findings,
                        Finding(
                            "TM211", path, recognition.line, 0,
                            f"another tower loop of the file (line {others[0].line}) keeps it from being rewritten",
                        ),
                    )  # fmt: skip
                results.append(ProgramResult(recognition, "refused", None, findings))
            continue
        recognition = group[0]
        analysis = recognition.analysis
        assert isinstance(analysis, Analysis)
        try:
            texts, more = _emit_program({**sources, **changed}, analysis)
            out_of_reach = sorted(texts.keys() & set(fixed))
            if out_of_reach:
                raise _failed(
                    analysis, f"{', '.join(out_of_reach)} would have to change as well", "TM107"
                )
        except Refused as refusal:
            results.append(
                ProgramResult(
                    recognition, "refused", None, (*recognition.findings, refusal.finding)
                )
            )
            continue
        changed.update(texts)
        results.append(ProgramResult(recognition, "converted", "loop", tuple(more)))
    return Emission(changed, tuple(results))


def _emit_program(
    sources: Mapping[str, str], analysis: Analysis
) -> tuple[dict[str, str], list[Finding]]:
    file = analysis.file
    if sources[file.path] != file.text:
        raise _failed(analysis, "another program already changed this file")
    style = LoopStyle(analysis)
    body = style.statements()
    module = _with_body(analysis, body)
    gone = _names_of_removed(analysis, style)
    module, removed = remove_unused(module, gone, sources, file.path)
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
    problem = parses(texts[file.path])
    if problem is not None:
        raise _failed(analysis, f"the output does not parse: {problem}")
    fresh = set(unbound(texts[file.path])) - set(unbound(file.text))
    if fresh:
        raise _failed(
            analysis,
            f"`{'`, `'.join(sorted(fresh))}` would be read after it was taken away",
            "TM210",
        )
    style.findings.extend(pins)
    style.findings.extend(_lost(analysis, texts, removed))
    return texts, style.findings


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
        elif sources[path] != other.text:
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


def _lost(analysis: Analysis, texts: Mapping[str, str], removed: list[str]) -> list[Finding]:
    """One finding a file that lists the comments that went, those inside removed functions aside."""
    findings: list[Finding] = []
    for path, text in texts.items():
        other = analysis.tree.file(path)
        assert other is not None
        spans: list[tuple[int, int]] = []
        if path == analysis.file.path:
            for name in removed:
                function = other.functions.get(name)
                if function is not None:
                    where = other.span(function.node)
                    spans.append((where.line, where.end_line))
        lost = [
            (line, comment)
            for line, comment in lost_comments(other.text, text)
            if not any(start <= line <= end for start, end in spans)
        ]
        if lost:
            listed = "; ".join(f"{line}: {comment}" for line, comment in lost)
            findings.append(
                Finding(
                    "TM305",
                    path,
                    lost[0][0],
                    0,
                    f"comments gone with the statements they stood at: {listed}",
                )
            )
    return findings
