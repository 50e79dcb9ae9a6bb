"""Tower loops that are no `for`, spelled out as one, to learn what else keeps their programs from loop style.

A `while`, a comprehension and a call of `map` never get loop style. What else stands in the way of their program is
found out from the same file with a plain `for` in their place; every place is told as that of the author's text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from towermigrate.findings import Finding, with_places
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import children, code, walk
from towermigrate.recognize.while_loops import counted_steps, counters

_LINE = re.compile(r"\bline (\d+)(?: of ([\w./-]+))?")


@dataclass(frozen=True)
class SpelledOut:
    """The file with a `for` in place of what builds the towers.

    `line` is that of the `for`; `lines` are the lines of the author's file that the file's lines stand for, `columns`
    what is to be added to their columns. `invented` are the beginnings of what is only in this file.
    """

    path: str
    text: str
    line: int
    lines: tuple[int, ...]
    columns: tuple[int, ...]
    invented: tuple[str, ...] = ()

    def is_of_author(self, finding: Finding) -> bool:
        """Whether a finding of this file speaks of what the author wrote."""
        return not any(each in finding.message for each in self.invented)

    def original(self, finding: Finding) -> Finding:
        """A finding of this file, or of one that speaks of it, as one of the author's."""

        def said(found: re.Match[str]) -> str:
            own = found[2] == self.path if found[2] else finding.path == self.path
            return (
                found[0].replace(found[1], str(self._line(int(found[1]))), 1) if own else found[0]
            )

        message = _LINE.sub(said, finding.message)
        message = with_places(message, self.path, lambda line: f"{self.path}:{self._line(line)}")
        if finding.path != self.path:
            return replace(finding, message=message)
        column = max(finding.column + self.columns[min(finding.line, len(self.columns)) - 1], 0)
        return replace(finding, message=message, line=self._line(finding.line), column=column)

    def _line(self, line: int) -> int:
        return self.lines[min(line, len(self.lines)) - 1]


def spelled_out(candidate: Candidate) -> SpelledOut | None:
    """The file of a candidate with a plain `for` in it; None where there is no place for one."""
    if candidate.turns is not None:
        return _while(candidate, candidate.turns)
    return None if candidate.written is None else _comprehension(candidate, candidate.written)


class _Lines:
    """The lines of a new text, each with where it comes from."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.lines: list[int] = []
        self.columns: list[int] = []

    def add(self, text: str, line: int, column: int = 0) -> None:
        """Text that begins in a line of the author's; `column` is added to the columns of its first line."""
        for offset, each in enumerate(text.split("\n")):
            self.texts.append(each)
            self.lines.append(line + offset)
            self.columns.append(0 if offset else column)


class _Text:
    """The author's text, in which places are lines and columns."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.rows = file.text.split("\n")

    def of(self, node: cst.CSTNode) -> str:
        where = self.file.span(node)
        return self.between((where.line, where.column), (where.end_line, where.end_column))

    def between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        rows = self.rows[start[0] - 1 : end[0]]
        rows[-1] = rows[-1][: end[1]]
        rows[0] = rows[0][start[1] :]
        return "\n".join(rows)


def _in_brackets(text: str) -> str:
    return f"({text})" if "\n" in text else text


def _while(candidate: Candidate, loop: cst.While) -> SpelledOut | None:
    """The same lines, with another header; the step of a counter goes."""
    file = candidate.file
    text, where, test = _Text(file), file.span(loop), file.span(loop.test)
    row = text.rows[test.end_line - 1]
    colon = row.find(":", test.end_column)
    if colon < 0:
        return None
    names = counters(loop)
    header = f"for {', '.join(names) or '_'} in {_in_brackets(code(candidate.loop.iter))}:"
    rows = list(text.rows)
    rows[where.line - 1 : test.end_line] = [
        rows[where.line - 1][: where.column] + header + row[colon + 1 :],
        *[""] * (test.end_line - where.line - header.count("\n")),
    ]
    if candidate.loop.iter is not loop.test:  # it counts
        for step in counted_steps(loop):
            at = file.span(step)
            old = rows[at.line - 1]
            rows[at.line - 1] = f"{old[: at.column]}pass{old[at.end_column :]}"
    count = len(rows)
    new = "\n".join(rows)
    return SpelledOut(file.path, new, where.line, tuple(range(1, count + 1)), (0,) * count)


def _comprehension(candidate: Candidate, written: cst.BaseExpression) -> SpelledOut | None:
    """A list that is filled in front of the statement in which the comprehension stands."""
    file, loop = candidate.file, candidate.loop
    statement = _statement_of(file.module, written)
    if statement is None:
        return None
    text = _Text(file)
    at, inside = file.span(statement), file.span(written)
    margin = text.rows[at.line - 1][: at.column]
    if margin.strip() or text.rows[at.line - 1][at.column :].startswith("elif"):
        return None
    target = _only_target(statement, written)
    name = target or next(
        each for each in ("towers", "all_towers", "_towers") if each not in file.text
    )
    new = _Lines()
    for number, row in enumerate(text.rows[: at.line - 1], 1):
        new.add(row, number)
    new.add(f"{margin}{name} = []", inside.line, inside.column - len(margin))
    header = f"{margin}for {code(loop.target)} in "
    over = _part(text, loop.iter)
    line = len(new.texts) + 1
    new.add(f"{header}{over[2]}:", over[0], over[1] - len(header))
    deeper = margin + "    "
    for condition in _conditions(written):
        start, column, part = _part(text, condition)
        new.add(f"{deeper}if {part}:", start, column - len(deeper) - 3)
        deeper += "    "
    start, column, part = _part(text, _built(loop))
    call = f"{deeper}{name}.append("
    new.add(f"{call}{part})", start, column - len(call))
    if target is None:
        first = text.between((at.line, 0), (inside.line, inside.column))
        new.add(first, at.line)
        rest = text.rows[inside.end_line - 1][inside.end_column :]
        new.texts[-1] += name + rest
        following = inside.end_line
    else:
        following = at.end_line
    for number in range(following + 1, len(text.rows) + 1):
        new.add(text.rows[number - 1], number)
    invented = (f"`{name}.append", f"changes `{name}`") if target else (f"`{name}.", f"`{name}`")
    return SpelledOut(
        file.path, "\n".join(new.texts), line, tuple(new.lines), tuple(new.columns), invented
    )


def _part(text: _Text, node: cst.CSTNode) -> tuple[int, int, str]:
    """Line and column of an expression, and its text; what was made of the author's nodes is where they are."""
    written = [each for each in walk(node) if each in text.file.places]
    where = text.file.span(written[0])
    if written[0] is node:
        return where.line, where.column, _in_brackets(text.of(node))
    return where.line, where.column, _in_brackets(code(node))


def _built(loop: cst.For) -> cst.BaseExpression:
    """What a comprehension builds in each turn: the one statement of the loop that it stands for."""
    line = loop.body.body[0]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Expr)
    return line.body[0].value


def _conditions(written: cst.BaseExpression) -> Sequence[cst.BaseExpression]:
    if isinstance(written, cst.ListComp | cst.SetComp | cst.GeneratorExp):
        return [each.test for each in written.for_in.ifs]
    return []


def _only_target(statement: cst.CSTNode, written: cst.BaseExpression) -> str | None:
    """The name of `name = [… for …]`."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    if not isinstance(only, cst.Assign) or only.value is not written or len(only.targets) != 1:
        return None
    target = only.targets[0].target
    return target.value if isinstance(target, cst.Name) else None


def _statement_of(module: cst.Module, wanted: cst.CSTNode) -> cst.BaseStatement | None:
    """The innermost statement around an expression, which is worked out before anything else of that statement is.

    None where it is not: in a `while`, in a lambda or in another comprehension.
    """
    found: cst.BaseStatement | None = None
    node: cst.CSTNode = module
    while node is not wanted:
        for child in children(node):
            if any(each is wanted for each in walk(child)):
                node = child
                break
        else:
            return None
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            found = node
        elif isinstance(node, cst.Lambda | cst.BaseComp) and node is not wanted:
            return None
    return None if isinstance(found, cst.While) else found
