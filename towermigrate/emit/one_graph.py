"""Whether two tower loops build towers in the same graph, each on its replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from towermigrate.emit.blocks import Scope, path_to
from towermigrate.emit.openings import callers, openings
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.source import Tree

_Path = Sequence[tuple[Sequence[cst.CSTNode], int]]


def in_one_graph(tree: Tree, first: Candidate, second: Candidate) -> bool:
    """Whether one function runs both loops, itself or by a call, in a graph that begins at one place for both.

    Not where they are in branches of which one is taken.
    """
    for scope, node in _ways(tree, first):
        for other, beside in _ways(tree, second):
            if scope.file is other.file and scope.function is other.function and node is not beside:
                paths = [path_to(scope.file, scope.block, each) for each in (node, beside)]
                if not _are_exclusive(*paths):
                    return bool(_begun(tree, first) & _begun(tree, second))
    return False


def _ways(tree: Tree, candidate: Candidate) -> Iterator[tuple[Scope, cst.CSTNode]]:
    """Where a loop is run: where it stands, and where its function is called."""
    scope = Scope(candidate.file, candidate.function)
    yield scope, candidate.turns or candidate.loop
    if candidate.function is not None:
        yield from callers(tree, scope)


def _begun(tree: Tree, candidate: Candidate) -> set[tuple[str, int]]:
    node = candidate.turns or candidate.loop
    found = openings(tree, candidate.file, candidate.function, node, candidate.loop.iter)
    return {(each.file.path, id(each.before)) for each in found}


def _are_exclusive(first: _Path, second: _Path) -> bool:
    """Whether two nodes are in different branches, or one is in a branch that ends before the other comes."""
    for level, ((block, index), (other, place)) in enumerate(zip(first, second, strict=False)):
        if not block or not other or block[0] is not other[0]:
            return isinstance(first[level - 1][0][first[level - 1][1]], cst.If)
        if index != place:
            early = first if index < place else second
            return level + 1 < len(early) and _leaves(early[level + 1][0][-1])
    return False


def _leaves(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and any(
        isinstance(each, cst.Return | cst.Raise | cst.Continue | cst.Break) for each in node.body
    )
