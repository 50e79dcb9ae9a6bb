"""What a strategy owns, where the functions that make it were read as one: a scope in each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import libcst as cst

from towermigrate.recognize.joined import MARK

_Scoped = Callable[[Sequence[cst.BaseStatement]], cst.BaseStatement]


def in_scopes(owned: Sequence[cst.BaseStatement], scoped: _Scoped) -> list[cst.BaseStatement]:
    """The statements in one scope of the strategy; in two, where one function begins among them and ends behind them.

    Args:
        owned: the statements, with the marks of the functions that they are of.
        scoped: makes the scope of some of them.
    """
    marks = [_mark(each) for each in owned]
    for begin, mark in enumerate(marks):
        if mark is None or mark[1] != "begin" or not begin:
            continue
        number = mark[0]
        if (number, "end") not in marks and (number, "body") in marks:
            body = marks.index((number, "body")) + 1
            if body < len(owned):
                before, after = owned[:begin], owned[body:]
                return [scoped(before), *owned[begin:body], *in_scopes(after, scoped)]
    return [scoped(owned)]


def is_marked(node: cst.BaseStatement) -> bool:
    """Whether a statement marks where a function begins or ends that was read as a part of another."""
    return _mark(node) is not None


def _mark(node: cst.BaseStatement) -> tuple[str, str] | None:
    """The number of a function that was read as a part of another, and which mark of it a statement is."""
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() as text)]):
            found = re.fullmatch(rf"{MARK} (\d+) (\w+)", text.raw_value)
            return None if found is None else (found[1], found[2])
    return None


__all__ = ["in_scopes", "is_marked"]
