"""Edits of a text by character offset, so that everything that is not edited stays byte for byte."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate

_NEWLINE = re.compile(r"\r\n|\r|\n")
_ADDED = re.compile(r"(?:\.\w+)+")
_NAMES = re.compile(r"\w+(?:\s*\.\s*\w+)*")


@dataclass(frozen=True)
class Edit:
    """Replace `text[start:end]` by `new`; `start == end` inserts.

    Of two insertions at one place the one of lower `depth` comes first.
    """

    start: int
    end: int
    new: str
    depth: int = 0


class Text:
    """A source text and the way from `ast` positions (line, UTF-8 column) to character offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        if "\r" in text:
            self.starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
        else:
            lengths = map(len, text.split("\n")[:-1])
            self.starts = list(accumulate(map((1).__add__, lengths), initial=0))
        found = _NEWLINE.search(text)
        self.newline = found.group() if found else "\n"

    def line(self, number: int) -> str:
        """Line `number`, counted from 1, with its line end."""
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[self.starts[number - 1] : end]

    def offset(self, line: int, column: int) -> int:
        text = self.line(line)
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.alias | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno, node.end_col_offset),
        )

    def of(self, node: ast.expr | ast.stmt | ast.alias) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def line_end(self, offset: int) -> int:
        """The offset of the line end (or the end of the text) at or after `offset`."""
        found = _NEWLINE.search(self.text, offset)
        return found.start() if found else len(self.text)

    def indentation(self, offset: int) -> str | None:
        """The white space before `offset` on its line; None when something else stands there."""
        start = self.starts[bisect_right(self.starts, offset) - 1]
        before = self.text[start:offset]
        return before if not before.strip() else None


def changes_names_only(text: str, edits: Collection[Edit]) -> bool:
    """Whether all that is done to a text that Python parses is `tf` -> `tf.compat.v1`: then it parses the result.

    Lines in brackets may move to the right or left.
    """
    return all(
        not (text[edit.start : edit.end] + edit.new).strip(" ")
        or text[edit.start - 1 : edit.start].isidentifier()
        and _ADDED.fullmatch(edit.new)
        if edit.start == edit.end
        else _NAMES.fullmatch(edit.new) and _NAMES.fullmatch(text, edit.start, edit.end)
        for edit in edits
    )


def splice(text: str, edits: Collection[Edit]) -> str:
    """Apply the edits; raises ValueError where two of them overlap."""
    if not edits:
        return text
    pieces: list[str] = []
    done = 0
    for edit in sorted(set(edits), key=lambda e: (e.start, e.end, e.depth, e.new)):
        if edit.start < done:
            raise ValueError(f"edits overlap at offset {edit.start}")
        pieces += [text[done : edit.start], edit.new]
        done = edit.end
    return "".join([*pieces, text[done:]])
