"""Edits of a file at the places of its libcst nodes, for what is changed where it stands."""

from __future__ import annotations

from collections.abc import Iterator

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
        self._gone: set[int] = set()
        self._dedents: list[tuple[int, int, str]] = []

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
            start = self.text.text.rindex("(", 0, start)
            end = self.text.text.index(")", end) + 1
        return start, end

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

    def inside_string(self, line: int) -> bool:
        """Whether a line begins inside a string, whose text must not change."""
        if self._inner_lines is None:
            self._inner_lines = set()
            for node in walk(self.file.module):
                if isinstance(node, cst.SimpleString | cst.FormattedString):
                    where = self.file.span(node)
                    self._inner_lines.update(range(where.line + 1, where.end_line + 1))
        return line in self._inner_lines

    def remove_lines(self, first: int, last: int) -> None:
        self._gone.update(range(first, last + 1))

    def dedent(self, first: int, last: int, outer: str) -> None:
        """Move the lines `first` to `last` of one block out to the indentation `outer`.

        Lines inside of strings stay. One that is indented less than its block, as comments and continuation
        lines may be, moves as far as it can.
        """
        self._dedents.append((first, last, outer))

    def result(self) -> str:
        """The text with its edits; raises ValueError where two of them overlap."""
        edits = set(self.edits)
        for line in self._gone:
            end = self.text.starts[line] if line < len(self.text.starts) else len(self.text.text)
            edits.add(Edit(self.text.starts[line - 1], end, ""))
        for first, last, outer in self._dedents:
            edits.update(self._dedented(first, last, outer))
        return splice(self.file.text, edits)

    def _dedented(self, first: int, last: int, outer: str) -> Iterator[Edit]:
        inner = self.indentation(first)
        nested = inner.startswith(outer)
        extra = inner[len(outer) :] if nested else inner
        for line in range(first, last + 1):
            if line in self._gone or self.inside_string(line) or not self.text.line(line).strip():
                continue
            own = self.indentation(line)
            start = self.text.starts[line - 1]
            if nested and own.startswith(inner):
                yield Edit(start + len(outer), start + len(inner), "")
            elif own.startswith(inner):
                yield Edit(start, start + len(inner), outer)
            elif own.endswith(extra) and len(own) > len(outer):
                yield Edit(start + len(own) - len(extra), start + len(own), "")
