"""`/` between integers: `//` where both operands are known to be, a remark where they might be.

Python 2 rounds `/` of two integers down, Python 3 does not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.python2.flags import Kind
from towermigrate.python2.kinds import Kinds
from towermigrate.python2.remarks import Remark
from towermigrate.python2.source import Source

_DIVISION = re.compile(r"#[^\r\n]*|/")
_Division = ast.BinOp | ast.AugAssign


def divide(source: Source) -> list[Remark]:
    """Make `//` of every `/` between integers; gives those that might be one and stay.

    In a slice or a `range`, where a fraction is an error, both operands are nearly always integers. What is not known to
    be one stays all the same; the remark says where it stands.
    """
    stay: list[Remark] = []
    for node, kinds in _divisions(source):
        if kinds == {"int"}:
            left, right = _operands(node)
            between = source.text.span(left)[1], source.text.span(right)[0]
            position = _operator(source.text.text, *between)
            source.edits.append((position, position + 1, "//"))
        elif "float" not in kinds:
            stay.append((node.lineno, _where(source, node)))
    return sorted(set(stay))


def between_integers(source: Source) -> list[int]:
    """The lines of every `/` whose operands are both known to be integers."""
    return sorted({node.lineno for node, kinds in _divisions(source) if kinds == {"int"}})


def _divisions(source: Source) -> Iterator[tuple[_Division, set[Kind]]]:
    """Every `/` and `/=`, and the kinds of what it divides."""
    binary, augmented = source.all(ast.BinOp), source.all(ast.AugAssign)
    every: list[_Division] = [*binary, *augmented]
    found = [node for node in every if isinstance(node.op, ast.Div)]
    if not found:
        return
    kinds = Kinds(source)
    for node in found:
        left, right = _operands(node)
        yield node, {kinds.kind(left), kinds.kind(right)}


def _operands(node: _Division) -> tuple[ast.expr, ast.expr]:
    return (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)


def _operator(text: str, start: int, end: int) -> int:
    found = _DIVISION.finditer(text, start, end)
    return next(match.start() for match in found if match[0] == "/")


def _where(source: Source, node: ast.AST) -> str:
    """What to say of a division in a slice or a `range`, which take integers only; nothing of others."""
    parent = source.parents.get(node)
    while isinstance(parent, ast.BinOp | ast.UnaryOp):
        node, parent = parent, source.parents.get(parent)
    if isinstance(parent, ast.Slice):
        place = "a slice"
    elif isinstance(parent, ast.Call) and source.is_builtin(parent.func, "range", "xrange"):
        place = "a range"
    else:
        return ""
    return (
        f"in {place}: a fraction raises an error there in Python 3, write `//` if both are integers"
    )
