"""Programs that were brought to `tf.compat.v1` already: read as if they were still TensorFlow 1's."""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import ALWAYS, Change, PlainFile, bindings
from towermigrate.recognize.source import Tree
from towermigrate.recognize.switched import is_statement

_V1 = "tensorflow.compat.v1"
_SESSION = re.compile(r"Session\(|Supervisor\(|\bEstimator\b|placeholder\(")


def switches(tree: Tree, file: PlainFile) -> list[Change]:
    """`import tensorflow.compat.v1 as tf` as TensorFlow 1 was imported; `tf.disable_v2_behavior()` goes with its line.

    Loop style is TensorFlow 2. Where another program of the tree may rest on the switch, it stays, and is a reason.
    """
    found = _imports(file)
    if _others(tree, file.path):
        return found
    for block in _blocks(file.tree):
        gone = [each for each in block if is_statement(each)]
        if len(gone) < len(block) and all(file.alone(each) is not None for each in gone):
            found += [Change(*file.without(each), (), ALWAYS) for each in gone]
    return found


def _imports(file: PlainFile) -> list[Change]:
    """The file's own import of TensorFlow, where it is of `tf.compat.v1` and the only one of its name."""
    found: list[Change] = []
    for each in file.tree.body:
        if not isinstance(each, ast.Import | ast.ImportFrom) or len(each.names) != 1:
            continue
        (only,) = each.names
        if only.asname is None or bindings(file.tree, only.asname) > 1:
            continue
        whole = only.name
        if isinstance(each, ast.ImportFrom):
            whole = "" if each.level else f"{each.module}.{only.name}"
        if whole == _V1 and not file.commented(*file.span(each)):
            found.append(Change(*file.span(each), (f"import tensorflow as {only.asname}",), ALWAYS))
    return found


def _blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    """The module's own statements, those behind `if __name__ == …`, and those of functions."""
    found = [tree.body]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found.append(node.body)
    for each in tree.body:
        if isinstance(each, ast.If) and not each.orelse and "__name__" in ast.unparse(each.test):
            found.append(each.body)
    return found


def switched_lines(tree: Tree, file: PlainFile) -> frozenset[int]:
    """The lines that go with what they switch, so that they are no reason of their own."""
    if _others(tree, file.path):
        return frozenset()
    return frozenset(
        each.lineno
        for block in _blocks(file.tree)
        for each in block
        if is_statement(each) and file.alone(each) is not None
    )


def _others(tree: Tree, path: str) -> list[str]:
    """The files that import one and build or run a graph of TensorFlow 1 themselves: they may rest on its switch."""
    users = tree.users.get(path, {path}) - {path}
    return [each for each in sorted(users) if _SESSION.search(tree.sources.get(each, ""))]
