"""Which names a statement reads before it certainly sets them: of these it needs the value that they have in front of it."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.syntax import binds, reads, statements

_Jump = cst.Break | cst.Continue | cst.Return | cst.Raise


def first_reads(node: cst.BaseStatement) -> frozenset[str]:
    """Names whose value from in front of a statement it may use.

    The body of a loop is taken to run at least once, and that of a `try` to its end. A function reads what it names
    where it is defined.
    """
    found: set[str] = set()
    _statement(node, set(), found)
    return frozenset(found)


def _statement(node: cst.BaseStatement, bound: set[str], found: set[str]) -> None:
    """Add to `found` what a statement reads that is not `bound`, and to `bound` what it certainly sets."""
    if isinstance(node, cst.SimpleStatementLine):
        for small in node.body:
            found |= set(reads(small)) - bound
            bound |= set(binds(small))
    elif isinstance(node, cst.If):
        found |= set(reads(node.test)) - bound
        sides = [_side(statements(node.body), bound, found)]
        if isinstance(node.orelse, cst.If):
            sides.append(_side([node.orelse], bound, found))
        elif node.orelse is not None:
            sides.append(_side(statements(node.orelse.body), bound, found))
        else:
            sides.append(set(bound))
        through = [side for side in sides if side is not None]
        if through:
            bound |= set.intersection(*through)
    elif isinstance(node, cst.For):
        found |= set(reads(node.iter)) - bound
        bound |= _targets(node.target)
        _block(statements(node.body), bound, found)
        if node.orelse is not None:
            _block(statements(node.orelse.body), bound, found)
    elif isinstance(node, cst.While):
        found |= set(reads(node.test)) - bound
        _block(statements(node.body), bound, found)
        if node.orelse is not None:
            _block(statements(node.orelse.body), bound, found)
    elif isinstance(node, cst.With):
        for item in node.items:
            found |= set(reads(item)) - bound
            bound |= set(binds(item))
        _block(statements(node.body), bound, found)
    elif isinstance(node, cst.Try):
        before = set(bound)
        _block(statements(node.body), bound, found)
        for handler in node.handlers:
            caught = set(before)
            if handler.type is not None:
                found |= set(reads(handler.type)) - caught
            if handler.name is not None:
                caught |= _targets(handler.name.name)
            _block(statements(handler.body), caught, found)
        for part in (node.orelse, node.finalbody):
            if part is not None:
                _block(statements(part.body), bound, found)
    else:
        found |= set(reads(node)) - bound
        bound |= set(binds(node))


def _block(block: Sequence[cst.BaseStatement], bound: set[str], found: set[str]) -> None:
    for node in block:
        _statement(node, bound, found)


def _targets(node: cst.CSTNode) -> set[str]:
    """The names of a target: `a`, `(a, *b)`."""
    if isinstance(node, cst.Name):
        return {node.value}
    if isinstance(node, cst.Tuple | cst.List):
        return {name for element in node.elements for name in _targets(element.value)}
    return set()


def _side(block: Sequence[cst.BaseStatement], bound: set[str], found: set[str]) -> set[str] | None:
    """What is bound behind a branch, None where nothing comes behind it."""
    inside = set(bound)
    _block(block, inside, found)
    last = block[-1] if block else None
    if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], _Jump):
        return None
    return inside
