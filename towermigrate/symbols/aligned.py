"""Lines that stand below an opening bracket stay there when what is before the bracket becomes longer or shorter."""

from __future__ import annotations

import ast
import tokenize
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from towermigrate.symbols.edits import Edit, Text

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_BLANK = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
# From 3.12 on the parts of an f-string are tokens of their own.
_STARTS = {getattr(tokenize, "FSTRING_START", -1)}
_ENDS = {getattr(tokenize, "FSTRING_END", -1)}


@dataclass(frozen=True)
class _Bracket:
    """An open bracket: its row and column, and the column of what follows it on the row, None where nothing does."""

    row: int
    column: int
    content: int | None


def aligned(text: Text, tree: ast.Module, edits: Collection[Edit]) -> list[Edit]:
    """The edits that move continuation lines along with the brackets that they are aligned with.

    Args:
        text: the text before the edits.
        tree: the syntax tree of it.
        edits: what changes in it.

    Returns:
        Edits of white space at the beginning of lines.
    """
    by_row: dict[int, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_row[bisect_right(text.starts, edit.start)].append(edit)
    rows = [row for row in sorted(by_row) if _may_move(text, row, by_row[row])]
    begins = _starts_of_statements(tree) if rows else []
    moved: list[Edit] = []
    done = 0
    for row in rows:
        if row > done:
            first = begins[bisect_right(begins, row) - 1]
            shifts, done = _shifts(text, first, by_row)
            moved += [_shifted(text, each, by) for each, by in shifts.items() if by]
    return moved


def _starts_of_statements(tree: ast.Module) -> list[int]:
    """The lines on which the statements of a file begin, and its decorators and handlers, sorted."""
    found = {1}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                waiting += inner
                found.update(each.lineno for each in inner if hasattr(each, "lineno"))
        for decorator in getattr(node, "decorator_list", ()):
            found.add(decorator.lineno)
    return sorted(found)


def _may_move(text: Text, row: int, edits: Collection[Edit]) -> bool:
    """Whether the line below begins to the right of an edit."""
    if row >= len(text.starts):
        return False
    below = text.line(row + 1)
    indent = len(below) - len(below.lstrip(" "))
    return indent > min(edit.start for edit in edits) - text.starts[row - 1]


def _shifts(text: Text, first: int, by_row: dict[int, list[Edit]]) -> tuple[dict[int, int], int]:
    """By how much each line of one logical line moves, and the last line that was looked at."""
    shifts: dict[int, int] = defaultdict(int)
    row = first
    brackets: list[_Bracket] = []
    in_fstring = 0
    try:
        tokens = list(_logical_line(text, first))
    except (tokenize.TokenError, SyntaxError):
        return {}, first
    for number, token in enumerate(tokens):
        begins = token.start[0] + first - 1
        if begins > row and not in_fstring and token.type not in _BLANK:
            if not _is_plain(text, begins, token.start[1]):
                return {}, row
            shifts[begins] = _shift(token, brackets, shifts, by_row, text)
        row = max(row, token.end[0] + first - 1)
        in_fstring += (token.type in _STARTS) - (token.type in _ENDS)
        if token.type == tokenize.OP and token.string in _OPENING:
            after = tokens[number + 1] if number + 1 < len(tokens) else token
            follows = after.type not in (*_BLANK, tokenize.COMMENT)
            brackets.append(_Bracket(begins, token.start[1], after.start[1] if follows else None))
        elif token.type == tokenize.OP and token.string in _CLOSING and brackets:
            brackets.pop()
    rows = range(first, row + 1)
    if any(not _keeps_lines(text, edit) for each in rows for edit in by_row.get(each, ())):
        return {}, row
    return shifts, row


def _shift(
    token: tokenize.TokenInfo,
    brackets: Sequence[_Bracket],
    shifts: dict[int, int],
    by_row: dict[int, list[Edit]],
    text: Text,
) -> int:
    """By how much a line moves that begins with a token."""
    if not brackets:
        return 0
    bracket, column = brackets[-1], token.start[1]
    shift = shifts[bracket.row]
    closes = token.string in _CLOSING and column == bracket.column
    if bracket.content is None or not (closes or column == bracket.content):
        return shift
    place = text.starts[bracket.row - 1] + bracket.column
    return shift + sum(
        len(edit.new) - (edit.end - edit.start)
        for edit in by_row.get(bracket.row, ())
        if edit.end <= place and not edit.new.endswith(text.newline)
    )


def _logical_line(text: Text, first: int) -> Iterator[tokenize.TokenInfo]:
    """The tokens from a line to the end of the statement's head."""
    numbers = iter(range(first, len(text.starts) + 1))
    for token in tokenize.generate_tokens(lambda: text.line(next(numbers))):
        if token.type == tokenize.NEWLINE:
            return
        yield token


def _is_plain(text: Text, row: int, column: int) -> bool:
    """Whether nothing but spaces stands before a column."""
    start = text.starts[row - 1]
    return not text.text[start : start + column].strip(" ")


def _keeps_lines(text: Text, edit: Edit) -> bool:
    """Whether an edit changes no line but its own; what is put before a whole line does not count."""
    old = text.text[edit.start : edit.end]
    if "\n" in old or "\r" in old:
        return False
    added = edit.new.removesuffix(text.newline) if edit.start == edit.end else edit.new
    return "\n" not in added and "\r" not in added


def _shifted(text: Text, row: int, by: int) -> Edit:
    start = text.starts[row - 1]
    return Edit(start, start, " " * by) if by > 0 else Edit(start, start - by, "")
