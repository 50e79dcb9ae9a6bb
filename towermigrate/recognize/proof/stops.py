"""Run what ends a program: `assert` and `raise`. A program that trains passed them when TF1 built its graph.

What they ask must be the same whenever a step is traced: then they let pass again what they let pass once.
"""

from __future__ import annotations

import ast

from towermigrate.flow.values import Const, Value
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.own_scopes import OwnScopes
from towermigrate.recognize.proof.values import (
    Differs,
    Index,
    Items,
    Static,
)


class Stops(OwnScopes):
    """Evaluates the tests of asserts."""

    def stops(self, node: ast.Assert | ast.Raise, frame: Frame) -> bool:
        """Run an `assert` or a `raise`; whether what follows it can be reached."""
        if self.strict and self.where != "a tower" and not self.stack:
            said = "an `assert`" if isinstance(node, ast.Assert) else "a `raise`"
            self.report(
                "TM223", frame.code, node,
                f"{said} behind the towers: no step needs what it asks",
            )  # fmt: skip
        # A program that trains never came to its `raise`.
        return isinstance(node, ast.Assert) and self._asserted(node, frame)

    def _asserted(self, node: ast.Assert, frame: Frame) -> bool:
        # Its message is written only where it fails.
        for part in _parts(node.test):
            if self._of_a_rank(part, frame):
                continue
            value = self.value(part, frame)
            if isinstance(value, Index | Differs):
                self.report(
                    "TM227", frame.code, node,
                    f"`{frame.code.said(node)}` asks for the tower's index",
                )  # fmt: skip
            if self.truth(value, part, frame) is False:
                return False
        return True

    def _of_a_rank(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a test says what a tensor's rank is: where TF1 knew it to be so, a step knows it to be so as well."""
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            return False
        if not isinstance(node.ops[0], ast.Eq | ast.In) or not _asks_a_rank(node.left):
            return False
        left, right = self.value(node.left, frame), self.value(node.comparators[0], frame)
        if isinstance(node.ops[0], ast.In):
            numbers = isinstance(right, Items) and all(_is_number(v) for v, _ in right.values)
        else:
            numbers = _is_number(right)
        return isinstance(left, Static) and left.rank and numbers


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]


def _asks_a_rank(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("ndims", "rank")


def _is_number(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) is int
