"""Edits of a file at the places of its libcst nodes, for what is changed where it stands."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from tokenize import OP, generate_tokens

import libcst as cst

from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import walk
from towermigrate.symbols.edits import Edit, Text, splice


class Splices:
    """The edits of one file, by places of the tree that was parsed from its text.

    Everything that is not edited stays byte for byte, comments included.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.text = Text(file.text)
        self.edits: set[Edit] = set()
        self._inner_lines: set[int] | None = None
        self._removed: set[tuple[int, int]] = set()
        self._dedents: list[_Dedent] = []

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Where a node begins and ends, in characters."""
        where = self.file.span(node)
        return (
            self.text.starts[where.line - 1] + where.column,
            self.text.starts[where.end_line - 1] + where.end_column,
        )

    def whole(self, node: cst.BaseExpression) -> tuple[int, int]:
        """Where an expression begins and ends with its parentheses."""
        start, end = self.span(node)
        for _ in node.lpar:
            # There may be comments in between, and brackets in these.
            start = max(place for place in self._brackets["("] if place < start)
            end = min(place for place in self._brackets[")"] if place >= end) + 1
        return start, end

    @cached_property
    def _brackets(self) -> dict[str, list[int]]:
        """Where the text has round brackets, those in strings and comments aside."""
        lines = iter(range(1, len(self.text.starts) + 1))
        found: dict[str, list[int]] = {"(": [], ")": []}
        for token in generate_tokens(lambda: self.text.line(next(lines))):
            if token.type == OP and token.string in found:
                row, column = token.start
                found[token.string].append(self.text.starts[row - 1] + column)
        return found

    def of(self, node: cst.CSTNode) -> str:
        """The text of a node, as its author wrote it."""
        start, end = self.span(node)
        return self.text.text[start:end]

    def insert(self, offset: int, new: str, depth: int = 0) -> None:
        self.edits.add(Edit(offset, offset, new, depth))

    def replace(self, start: int, end: int, new: str) -> None:
        self.edits.add(Edit(start, end, new))

    def indentation(self, line: int) -> str:
        """The white space that a line begins with."""
        text = self.text.line(line)
        return text[: len(text) - len(text.lstrip(" \t\f"))]

    def line_of(self, offset: int) -> int:
        """The number of the line that a place of the text is in, from 1."""
        return bisect_right(self.text.starts, offset)

    def with_comments(self, line: int, indentation: str) -> int:
        """The last line of the comments that end a block, whose last statement ends in `line`."""
        for number in range(line + 1, len(self.text.starts) + 1):
            text = self.text.line(number)
            if text.lstrip().startswith("#") and self.indentation(number).startswith(indentation):
                line = number
            elif text.strip():
                break
        return line

    def inside_string(self, line: int) -> bool:
        """Whether a line begins inside a string, whose text must not change."""
        if self._inner_lines is None:
            self._inner_lines = set()
            for node in walk(self.file.module):
                if isinstance(node, cst.SimpleString | cst.FormattedString):
                    where = self.file.span(node)
                    self._inner_lines.update(range(where.line + 1, where.end_line + 1))
        return line in self._inner_lines

    def remove(self, start: int, end: int) -> None:
        """Take a stretch of the text out, with whatever is edited inside of it."""
        self._removed.add((start, end))

    def dedent(self, first: int, last: int, inner: str, outer: str) -> None:
        """Move the lines `first` to `last` of one block out, from the indentation `inner` to `outer`.

        Lines inside of strings stay. One that is indented less than its block, as comments and continuation
        lines may be, moves as far as it can.
        """
        self._dedents.append(_Dedent(first, last, inner, outer))

    def result(self) -> str:
        """The text with its edits; raises ValueError where two of them overlap."""
        edits = {edit for edit in self.edits if not any(_inside(edit, *r) for r in self._removed)}
        edits |= {Edit(start, end, "") for start, end in self._removed}
        starts = sorted(self._removed)
        for line in {n for each in self._dedents for n in range(each.first, each.last + 1)}:
            start = self.text.starts[line - 1]
            place = bisect_right(starts, (start, len(self.text.text))) - 1
            if place >= 0 and start < starts[place][1]:
                continue  # it went
            own = new = self.indentation(line)
            for each in sorted(self._dedents, key=lambda d: -len(d.inner)):  # inner blocks first
                if each.first <= line <= each.last:
                    new = each.of(new, comment=self.text.line(line).lstrip().startswith("#"))
            if new != own and not self.inside_string(line) and self.text.line(line).strip():
                edits.add(Edit(start, start + len(own), new))
        return splice(self.file.text, edits)


@dataclass(frozen=True)
class _Dedent:
    """Lines that move out from one indentation to another."""

    first: int
    last: int
    inner: str
    outer: str

    def of(self, own: str, *, comment: bool) -> str:
        """The new indentation of a line."""
        if own.startswith(self.inner):
            return self.outer + own[len(self.inner) :]
        if comment:
            return min(own, self.outer, key=len)
        extra = self.inner[len(self.outer) :]
        return own[: -len(extra)] if len(own) > len(self.outer) and own.endswith(extra) else own


def _inside(edit: Edit, start: int, end: int) -> bool:
    """Whether an edit is one of a stretch of the text, and not beside it."""
    return start <= edit.start and edit.end <= end and not edit.start == edit.end in (start, end)
