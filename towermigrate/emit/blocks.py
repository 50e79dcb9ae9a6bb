"""Blocks of statements and the functions around them: where in a file something stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import children, extent, reads


@dataclass(frozen=True)
class Scope:
    """A function, or a module's outermost level (`function` None)."""

    file: SourceFile
    function: cst.FunctionDef | None

    @property
    def block(self) -> cst.BaseSuite | cst.Module:
        return self.file.module if self.function is None else self.function.body


def path_to(
    file: SourceFile, block: cst.BaseSuite | cst.Module, node: cst.CSTNode
) -> list[tuple[Sequence[cst.CSTNode], int]]:
    """The blocks from a scope's outermost one down to a node: each with the place of its statement."""
    where = file.span(node)
    wanted = (where.line, where.column)
    found: list[tuple[Sequence[cst.CSTNode], int]] = []
    inside: list[Sequence[cst.CSTNode]] = [lines_of(block)]
    while inside:
        for lines in inside:
            index = next((i for i, each in enumerate(lines) if holds(file, each, wanted)), None)
            if index is not None:
                found.append((lines, index))
                inside = [lines_of(suite) for suite in suites_of(lines[index])]
                break
        else:
            return found
    return found


def guards(path: Sequence[tuple[Sequence[cst.CSTNode], int]]) -> int:
    """How many blocks on the way to a node are left by entering `if __name__ == "__main__":`."""
    for level, (block, index) in enumerate(path[:-1]):
        node = block[index]
        if isinstance(node, cst.If) and "__name__" in reads(node.test):
            if all(line is not each for line in path[level + 1][0] for each in _else_of(node)):
                return level + 1
    return 0


def _else_of(node: cst.If) -> Sequence[cst.CSTNode]:
    return lines_of(node.orelse.body) if isinstance(node.orelse, cst.Else) else ()


def holds(file: SourceFile, node: cst.CSTNode, place: tuple[int, int]) -> bool:
    where = file.span(node)
    return (where.line, where.column) <= place < (where.end_line, where.end_column)


def has_line(file: SourceFile, node: cst.CSTNode, line: int) -> bool:
    where = file.span(node)
    return where.line <= line <= where.end_line


def lines_of(block: cst.CSTNode) -> Sequence[cst.CSTNode]:
    if isinstance(block, cst.SimpleStatementSuite):
        return [block]
    return [each for each in getattr(block, "body", ()) if isinstance(each, cst.BaseStatement)]


def suites_of(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The blocks of a compound statement, but for those of functions and classes, which are scopes of their own."""
    if isinstance(node, cst.FunctionDef) or not isinstance(node, cst.CSTNode):
        return []
    found: list[cst.CSTNode] = []
    for child in children(node):
        if isinstance(child, cst.BaseSuite):
            found.append(child)
        elif isinstance(child, cst.If | cst.Else | cst.ExceptHandler | cst.Finally):
            found.extend(suites_of(child))
    return found


def scope_of(file: SourceFile, node: cst.CSTNode) -> Scope:
    """The innermost function around a node."""
    where = extent(file.module, node)
    assert where is not None
    best: cst.FunctionDef | None = None
    begin = -1
    for function in file.functions.values():
        around = extent(file.module, function.node)
        if around is not None and begin < around[0] <= where[0] and where[1] <= around[1]:
            best, begin = function.node, around[0]
    return Scope(file, best)


def around(scope: Scope) -> Scope:
    """The function that a function is defined in."""
    assert scope.function is not None
    own = scope.file.span(scope.function)
    best, line = None, 0
    for each in scope.file.functions.values():
        around = scope.file.span(each.node)
        if line < around.line < own.line and own.end_line <= around.end_line:
            best, line = each.node, around.line
    return Scope(scope.file, best)
