"""Splice probes into a copy of the original, at the positions that TowerProgram gives.

Every probe is a call on the built-in name `_tm_probe_` (see `probe/probe.py`). Nothing of the program is
rebound: inputs are recorded and replayed by fetching and feeding the very tensors that the towers read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from towermigrate.program import Span, TowerProgram

_LINE_END = re.compile(r"\r\n|\n|\r")
_COMPOUND = re.compile(r"(with|for|if|while|try|def|class|async)\b|@")


@dataclass(frozen=True)
class Splice:
    """Text to put in place of the characters from `start` to `end`. Equal starts keep their order."""

    start: int
    end: int
    text: str


def offsets(text: str) -> list[int]:
    """Where each line begins."""
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


def splice(text: str, edits: Iterable[Splice]) -> str:
    """`text` with all edits made. Insertions at one place come out in the order given."""
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end > edit.start)):
        out.append(text[at : edit.start])
        out.append(edit.text)
        at = edit.end
    out.append(text[at:])
    return "".join(out)


class _File:
    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = offsets(text)
        self.edits: list[Splice] = []

    def start(self, span: Span) -> int:
        return self._lines[span.line - 1] + span.column

    def end(self, span: Span) -> int:
        return self._lines[span.end_line - 1] + span.end_column

    def source(self, span: Span) -> str:
        return self.text[self.start(span) : self.end(span)]

    def indent(self, span: Span) -> str:
        prefix = self.text[self._lines[span.line - 1] : self.start(span)]
        return prefix[: len(prefix) - len(prefix.lstrip())]

    def line_end(self) -> str:
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"

    def before(self, span: Span, statement: str) -> None:
        glue = "; "
        if _COMPOUND.match(self.source(span)):
            glue = self.line_end() + self.indent(span)
        self.edits.append(Splice(self.start(span), self.start(span), statement + glue))

    def after(self, span: Span, statement: str) -> None:
        end = self.end(span)
        if _COMPOUND.match(self.source(span)):
            if span.end_column == 0:
                new = self.indent(span) + statement + self.line_end()
            else:
                new = self.line_end() + self.indent(span) + statement
        else:
            new = "; " + statement
        self.edits.append(Splice(end, end, new))

    def wrap(self, span: Span, call: str) -> None:
        self.edits.append(Splice(self.start(span), self.start(span), call))
        self.edits.append(Splice(self.end(span), self.end(span), ")"))


def probed(sources: dict[str, str], program: TowerProgram) -> dict[str, str]:
    """The sources with probes: only the files that get one are in the result."""
    files: dict[str, _File] = {}

    def file(span: Span) -> _File:
        if span.path not in files:
            files[span.path] = _File(sources[span.path])
        return files[span.path]

    loop = program.loop
    file(loop.body).before(loop.body, "_tm_probe_.begin_tower()")
    same: list[tuple[str, str]] = []
    for tower_input in program.inputs:
        for expression in tower_input.expressions:
            file(expression).wrap(expression, f"_tm_probe_.inline({tower_input.names[0]!r}, ")
        if tower_input.statement is not None:
            where = tower_input.statement
            file(where).before(where, "_tm_probe_.input_begin()")
            file(where).after(where, _inputs([(name, name) for name in tower_input.names]))
        elif tower_input.asked is not None:
            name = tower_input.names[0]
            file(tower_input.asked).wrap(tower_input.asked, f"_tm_probe_.asked({name!r}, ")
        elif not tower_input.expressions:
            same.extend(zip(tower_input.names, tower_input.read or tower_input.names, strict=True))
    if same:
        file(loop.body).before(loop.body, _inputs(same))
    file(loop.statement).after(loop.statement, "_tm_probe_.end_towers()")
    for name in ("compute", "apply"):
        spans: dict[Span, list[int]] = {}
        for number, stage in enumerate(program.stages):
            if stage.tower_loss is None or name == "apply":
                spans.setdefault(getattr(stage, name), []).append(number)
        for span, numbers in spans.items():
            mean = [
                program.stages[number] for number in numbers if program.stages[number].tower_loss
            ]
            probe = "minimize" if any(stage.compute == span for stage in mean) else name
            file(span).wrap(span, f"_tm_probe_.{probe}({tuple(numbers)!r}, ")
    for number, stage in enumerate(program.stages):
        if stage.tower_loss is not None:
            probe = f"_tm_probe_.loss({number}, {stage.whole_mean}, "
            file(stage.tower_loss).wrap(stage.tower_loss, probe)
    for number, extra in enumerate(program.extras):
        if extra.kind == "update_ops" and not _reads_all(file(extra.call).source(extra.call)):
            continue
        file(extra.call).wrap(extra.call, f"_tm_probe_.extra({number}, ")
    return {path: splice(each.text, each.edits) for path, each in files.items()}


def _reads_all(text: str) -> bool:
    """Whether it is the author's own `tf.get_collection(UPDATE_OPS)`, and not what a list or a tower has in its place."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("get_collection")
        and len(node.args) + len(node.keywords) == 1
    )


def _inputs(named: Sequence[tuple[str, str]]) -> str:
    """A probe of inputs by name, each with the expression that gives it."""
    names = tuple(name for name, _ in named)
    return f"_tm_probe_.inputs({names!r}, ({', '.join(read for _, read in named)},))"


def trained_together(program: TowerProgram) -> dict[str, list[int]]:
    """For each stage, the stages that every run which trains it trains as well."""
    together: dict[str, list[int]] = {}
    for number in range(len(program.stages)):
        runs = [set(run.trains) for run in program.runs if number in run.trains]
        common = set.intersection(*runs) if runs else {number}
        together[str(number)] = sorted(common | {number})
    return together


def before_update(program: TowerProgram) -> list[list[int]]:
    """[extra, stage] for each moving average that the original puts beside its update with no order."""
    return [
        [number, extra.stage]
        for number, extra in enumerate(program.extras)
        if extra.kind == "moving_average" and not extra.ordered
    ]


def last_tower_first(program: TowerProgram) -> list[int]:
    """The extras that are batch norm's updates of all towers, which the original makes in no order."""
    return [number for number, extra in enumerate(program.extras) if extra.kind == "update_ops"]
