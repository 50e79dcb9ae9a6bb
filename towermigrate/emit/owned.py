"""What a strategy owns: in its scope, in one of each function where several were read as one, and weights in blocks beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum

import libcst as cst

from towermigrate.recognize.joined import MARK

_Scoped = Callable[[Sequence[cst.BaseStatement]], cst.BaseStatement]


class Owned(Enum):
    """What a statement in front of the towers makes that the strategy owns."""

    OBJECT = "object"
    WEIGHTS = "weights"


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


def with_weights(
    stay: Sequence[tuple[cst.BaseStatement, Owned | None]],
    variables: cst.BaseStatement,
    hoisted: Sequence[cst.BaseStatement],
    scoped: _Scoped,
    shared: _Scoped,
) -> list[cst.BaseStatement]:
    """A block for each run of objects and each of weights, in order; what stands between two that differ is in neither.

    Args:
        stay: the statements, with what of the strategy's each makes.
        variables: the statement that makes what the weights are of.
        hoisted: objects that are made behind all of them.
        scoped: makes the block of objects.
        shared: makes that of weights.
    """
    parts: list[tuple[Owned | None, list[cst.BaseStatement]]] = [(Owned.OBJECT, [])]
    waiting: list[cst.BaseStatement] = []
    for node, owned in [*stay, *((each, Owned.OBJECT) for each in hoisted)]:
        if owned is None:
            waiting.append(node)
        elif owned is parts[-1][0]:
            parts[-1][1].extend([*waiting, node])
            waiting = []
        else:
            parts += [(None, waiting), (owned, [node])]
            waiting = []
    parts[0][1].append(variables)
    blocks = {Owned.OBJECT: scoped, Owned.WEIGHTS: shared}
    made: list[cst.BaseStatement] = []
    for of, body in [*parts, (None, waiting)]:
        made += body if of is None else [blocks[of](body)]
    return made


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


__all__ = ["Owned", "in_scopes", "is_marked", "with_weights"]
