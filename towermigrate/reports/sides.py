"""Two texts side by side: which lines belong together, and what differs within a line."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Lines of unchanged text that are shown around a change.
CONTEXT = 3
_TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
_LONG_LINE = 400

# Pieces of a line and whether each differs from the other side.
Pieces = tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Row:
    """One line of the table. A side is None where the other has no counterpart; numbers count from 1."""

    changed: bool
    old_number: int | None = None
    old: Pieces | None = None
    new_number: int | None = None
    new: Pieces | None = None


@dataclass(frozen=True)
class Fold:
    """A stretch of unchanged lines between changes."""

    rows: tuple[Row, ...]


def lines_of(text: str) -> list[str]:
    """Lines without their ends, as an editor shows them: form feeds and the like end no line."""
    lines = re.split(r"\r\n|\r|\n", text)
    return lines[:-1] if lines[-1] == "" else lines


def side_by_side(before: str, after: str) -> list[Row | Fold]:
    """The lines of two texts in order, unchanged stretches folded.

    Example:
        >>> side_by_side("a\\nb\\n", "a\\nc\\n")[1].new
        (('c', True),)
    """
    old, new = lines_of(before), lines_of(after)
    found: list[Row | Fold] = []
    same: list[Row] = []
    for tag, i1, i2, j1, j2 in _opcodes(old, new):
        if tag == "equal":
            pairs = zip(range(i1, i2), range(j1, j2), strict=True)
            same = [
                Row(False, i + 1, ((old[i], False),), j + 1, ((new[j], False),)) for i, j in pairs
            ]
            head = CONTEXT if found else 0
            tail = CONTEXT if i2 < len(old) or j2 < len(new) else 0
            if len(same) > head + tail + 1:
                end = len(same) - tail
                found += [*same[:head], Fold(tuple(same[head:end])), *same[end:]]
            else:
                found += same
        else:
            found += _changed_rows(old, new, i1, i2, j1, j2)
    return found


def _opcodes(old: list[str], new: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """As `SequenceMatcher.get_opcodes`, which is slow where only few of many lines differ."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if start:
        yield "equal", 0, start, 0, start
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    matcher = difflib.SequenceMatcher(None, middle_old, middle_new)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        yield tag, i1 + start, i2 + start, j1 + start, j2 + start
    if end:
        yield "equal", len(old) - end, len(old), len(new) - end, len(new)


def _changed_rows(
    old: list[str], new: list[str], i1: int, i2: int, j1: int, j2: int
) -> Iterator[Row]:
    paired = i2 - i1 == j2 - j1
    for step in range(max(i2 - i1, j2 - j1)):
        i, j = i1 + step, j1 + step
        if paired:
            left, right = within_line(old[i], new[j])
            yield Row(True, i + 1, left, j + 1, right)
        else:
            yield Row(
                True,
                i + 1 if i < i2 else None,
                ((old[i], False),) if i < i2 else None,
                j + 1 if j < j2 else None,
                ((new[j], False),) if j < j2 else None,
            )


def within_line(old: str, new: str) -> tuple[Pieces, Pieces]:
    """The pieces of two lines that belong together; whole lines where they have little in common.

    Example:
        >>> within_line("tf.log(x)", "tf.math.log(x)")[1]
        (('tf.', False), ('math.', True), ('log(x)', False))
    """
    if max(len(old), len(new)) > _LONG_LINE:
        return ((old, False),), ((new, False),)
    left, right = _TOKENS.findall(old), _TOKENS.findall(new)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    if left != right and matcher.quick_ratio() < 0.4:
        return ((old, False),), ((new, False),)
    old_marks, new_marks = [False] * len(left), [False] * len(right)
    codes = matcher.get_opcodes()
    # Every difference is followed by an equal stretch, or by the end.
    for (tag, i1, i2, j1, j2), after in itertools.zip_longest(codes, codes[1:]):
        if tag != "equal":
            _mark(left, old_marks, i1, i2, after[2] if after and tag == "delete" else i2)
            _mark(right, new_marks, j1, j2, after[4] if after and tag == "insert" else j2)
    return _pieces(left, old_marks), _pieces(right, new_marks)


def _mark(tokens: Sequence[str], marks: list[bool], start: int, end: int, limit: int) -> None:
    """Mark a stretch, as far right as it may stand up to `limit`: `compat.v1.` rather than `.compat.v1`."""
    while end < limit and tokens[start] == tokens[end]:
        start, end = start + 1, end + 1
    marks[start:end] = [True] * (end - start)


def _pieces(tokens: Sequence[str], marks: Sequence[bool]) -> Pieces:
    groups = itertools.groupby(zip(tokens, marks, strict=True), key=lambda pair: pair[1])
    return tuple(("".join(token for token, _ in group), differs) for differs, group in groups)
