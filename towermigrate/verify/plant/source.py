"""One file of a rewritten tree, read for places to plant faults in: calls, statements, loops, and edits to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.verify.plant.fault import Fault
from towermigrate.verify.probes import Splice, offsets

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)

_LATE = 6
"""Turns of a loop that are made before a late fault, where it has as many."""


class Source:
    """A file that can be parsed.

    Args:
        path: relative to the root of the tree, with forward slashes.
        text: what it holds.
        towers: how many towers the program is run with.
        loop: the tree is in loop style (else in session style).
    """

    def __init__(self, path: str, text: str, towers: int, *, loop: bool) -> None:
        self.path = path
        self.text = text
        self.towers = towers
        self.loop = loop
        self.tree = ast.parse(text)
        self._lines = offsets(text)
        self._bytes = text.split("\n")
        self._parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }

    # ---- what is there ---------------------------------------------------------------------------

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """The calls of functions and methods with one of these last names, in the order of the text."""
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and last_name(node.func) in names
        ]
        yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
        return node

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, from the inside out."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        return next((each for each in self.above(node) if isinstance(each, _Function)), None)

    def functions(self) -> Iterator[ast.FunctionDef]:
        yield from (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef))

    def counted_loop(self, node: ast.AST) -> tuple[ast.For, str] | None:
        """The innermost `for NAME in range(…)` around a node whose counter has a name of its own."""
        for each in self.above(node):
            if isinstance(each, _Function):
                return None
            if (
                isinstance(each, ast.For)
                and isinstance(each.target, ast.Name)
                and each.target.id != "_"
                and isinstance(each.iter, ast.Call)
                and last_name(each.iter.func) in ("range", "xrange")
            ):
                return each, each.target.id
        return None

    def late_turn(self, loop: ast.For, left: int) -> int | None:
        """A late turn of a counted loop, with `left` turns behind it; None where there are too few."""
        turns = None
        if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1:
            number = loop.iter.args[0]
            if isinstance(number, ast.Name):
                number = self.assigned(number.id, loop) or self.constant(number.id) or number
            if isinstance(number, ast.Constant) and isinstance(number.value, int):
                turns = number.value
        turn = _LATE if turns is None else min(_LATE, turns - 1 - left)
        return turn if turn > 2 else None

    def constant(self, name: str) -> ast.expr | None:
        """What a name is assigned at the file's outermost level, where one statement does it."""
        found = [
            node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(each, ast.Name) and each.id == name for each in node.targets)
        ]
        return found[0] if len(found) == 1 else None

    def code(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self._span(node)
        return self.text[start:end]

    def assigned(self, name: str, near: ast.AST) -> ast.expr | None:
        """What a name is assigned, where one assignment in the same function or file does it."""
        found = [
            node.value
            for node in ast.walk(self.function(near) or self.tree)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        ]
        return found[0] if len(found) == 1 else None

    # ---- edits -----------------------------------------------------------------------------------

    def replace(self, node: ast.AST, text: str) -> Splice:
        return Splice(*self._span(node), text)

    def wrap(self, node: ast.AST, before: str, after: str) -> Splice:
        return self.replace(node, f"{before}{self.code(node)}{after}")

    def add_argument(self, call: ast.Call, text: str) -> Splice:
        """One more argument, the last one."""
        end = self._span(call)[1] - 1
        inside = self.text[:end].rstrip()
        glue = "" if inside.endswith(("(", ",")) else ", "
        return Splice(len(inside), len(inside), glue + text)

    def drop_keyword(self, call: ast.Call, name: str) -> Splice | None:
        """Without the keyword argument, and without the comma before it."""
        for keyword in call.keywords:
            if keyword.arg == name:
                start, end = self._span(keyword)
                before = self.text[:start].rstrip()
                if before.endswith(","):
                    return Splice(len(before) - 1, end, "")
        return None

    def can_stand_beside(self, statement: ast.stmt) -> bool:
        """Whether a statement begins its line, so that others can be put before and after it."""
        return not self._prefix(statement).strip()

    def before(self, statement: ast.stmt, *lines: str) -> Splice:
        start, _ = self._span(statement)
        indent = self._prefix(statement)
        return Splice(start, start, "".join(f"{line}\n{indent}" for line in lines))

    def after(self, statement: ast.stmt, *lines: str) -> Splice:
        _, end = self._span(statement)
        indent = self._prefix(statement)
        return Splice(end, end, "".join(f"\n{indent}{line}" for line in lines))

    def fault(self, kind: str, said: str, node: ast.AST, *edits: Splice | None) -> Iterator[Fault]:
        """The fault, unless an edit cannot be made."""
        if all(edit is not None for edit in edits):
            line = getattr(node, "lineno", 1)
            yield Fault(kind, said, self.path, line, tuple(e for e in edits if e is not None))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        start = self._at(line, getattr(node, "col_offset", 0))
        return start, self._at(end_line, getattr(node, "end_col_offset", 0))

    def _at(self, line: int, column: int) -> int:
        text = self._bytes[line - 1].encode()[:column].decode()
        return self._lines[line - 1] + len(text)

    def _prefix(self, statement: ast.stmt) -> str:
        start, _ = self._span(statement)
        return self.text[self._lines[statement.lineno - 1] : start]


def last_name(node: ast.AST) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """An argument by its place or its name."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if place < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args):
        return call.args[place]
    return None


def is_number(node: ast.AST | None) -> bool:
    """Whether a node is a number as it stands."""
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float))
        and not isinstance(node.value, bool)
    )


# The replica that code in a tower runs for, in both styles.
REPLICA = "tf.distribute.get_replica_context().replica_id_in_sync_group"


def on_replica(number: int, yes: str, no: str) -> str:
    """A float32 that is `yes` on one replica and `no` on the others."""
    return f"tf.where(tf.equal({REPLICA}, {number}), {yes}, {no})"
