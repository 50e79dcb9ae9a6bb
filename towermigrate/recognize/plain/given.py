"""Expressions with others in the place of their names, and the whole numbers that a module gives names to."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping

from towermigrate.recognize.plain.changes import PlainFile, stores


class _Given(ast.NodeTransformer):
    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self.given = given
        self.counts: Counter[str] = Counter()

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.given:
            return node
        self.counts[node.id] += 1
        return self.given[node.id]


def given(names: Mapping[str, ast.expr], node: ast.expr) -> tuple[ast.expr, Counter[str]]:
    """A copy of an expression with what its names are, and how often each of them stood there."""
    places = _Given(names)
    copy: ast.expr = places.visit(ast.parse(ast.unparse(node), mode="eval").body)
    return copy, places.counts


def whole_constants(file: PlainFile) -> dict[str, ast.expr]:
    """The names that a module binds to whole numbers, once and for all, and these."""
    return {
        each.targets[0].id: each.value
        for each in file.tree.body
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Name)
        and isinstance(each.value, ast.Constant)
        and type(each.value.value) is int
        and len(stores(file.tree, each.targets[0].id)) == 1
        and each.targets[0].id not in file.words_of_users
    }
