"""Recognise a tower's part of an array: `x[i * n:(i + 1) * n]`."""

from __future__ import annotations

import re

import libcst as cst

from towermigrate.recognize.syntax import (
    code,
    integer,
)


def slice_size(node: cst.Slice, index: str | None) -> str | None:
    """`b` of `i * b:(i + 1) * b` in any order of the factors."""
    if node.lower is None or node.upper is None or node.step is not None:
        return None
    low, high = node.lower, node.upper
    if not isinstance(low, cst.BinaryOperation) or not isinstance(low.operator, cst.Multiply):
        return None
    if not isinstance(high, cst.BinaryOperation) or not isinstance(high.operator, cst.Multiply):
        return None
    for a, size in ((low.left, low.right), (low.right, low.left)):
        if code(a) != index:
            continue
        for b, other in ((high.left, high.right), (high.right, high.left)):
            if _bare(size) == _bare(other) and _is_next(b, index):
                return code(size)
    return None


_COUNTED = re.compile(r"\(?tf\.shape\((\w+)\)\[0\] // (.+?)\)?$")


def counted_rows(size: str) -> tuple[str, str] | None:
    """`("x", "2")` of rows that the graph counts: a tower has `tf.shape(x)[0] // 2` of them."""
    found = _COUNTED.match(size)
    if found is None:
        return None
    parts = found[2]
    return found[1], parts + ")" * (parts.count("(") - parts.count(")"))


def _bare(node: cst.CSTNode) -> str:
    """Text of an expression without blanks and outer parentheses, to compare spellings."""
    return code(node).replace(" ", "").strip("()")


def _is_next(node: cst.CSTNode, index: str | None) -> bool:
    return (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, cst.Add)
        and (
            (code(node.left) == index and integer(node.right) == 1)
            or (code(node.right) == index and integer(node.left) == 1)
        )
    )
