"""Variables that are picked by the first part of their names: by how these begin.

`v.name.split("/")[0] == "critic"` is `v.name.startswith("critic/")`: behind a variable's own name stands `:0`.
"""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.source import Tree
from towermigrate.tree import import_closure

_LISTS = ("tf.trainable_variables", "tf.global_variables", "tf.all_variables", "tf.get_collection")


def name_parts(tree: Tree, file: PlainFile) -> list[Change]:
    """The tests of the first part of a variable's name, of lists of variables."""
    if ".split(" not in file.text or ".name" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for each in own_nodes(scope):
            tests: list[ast.AST] = []
            if isinstance(each, ast.ListComp) and len(each.generators) == 1:
                (only,) = each.generators
                target, over, tests = only.target, only.iter, [each.elt, *only.ifs]
            elif isinstance(each, ast.For):
                target, over, tests = each.target, each.iter, list(each.body)
            else:
                continue
            if isinstance(target, ast.Name) and _lists(file, scope, over):
                for test in tests:
                    for node in ast.walk(test):
                        text = _as_begin(tree, file, node, target.id)
                        if text is not None:
                            assert isinstance(node, ast.expr)
                            found.append(Change(*file.span(node), (text,), where))
    return found


def _lists(file: PlainFile, scope: Scope, over: ast.expr) -> bool:
    """Whether an expression lists variables of the graph."""
    if isinstance(over, ast.Name):
        if bindings(scope, over.id) != 1 or over.id in file.shared_between_functions:
            return False
        bound = [
            each.value
            for each in own_nodes(scope)
            if isinstance(each, ast.Assign)
            and [ast.unparse(target) for target in each.targets] == [over.id]
        ]
        return (
            len(bound) == 1 and not isinstance(bound[0], ast.Name) and _lists(file, scope, bound[0])
        )
    if not isinstance(over, ast.Call):
        return False
    called = ast.unparse(over.func)
    if called == "tf.get_collection":
        return bool(over.args) and "VARIABLES" in ast.unparse(over.args[0])
    return called in _LISTS


def _as_begin(tree: Tree, file: PlainFile, node: ast.AST, name: str) -> str | None:
    """What a test of the first part of a name is as one of how the name begins."""
    match node:
        case ast.Compare(
            left=left,
            ops=[ast.Eq() | ast.NotEq() as op],
            comparators=[ast.Constant(value=str(text))],
        ):
            texts, no = [text], isinstance(op, ast.NotEq)
        case ast.Compare(
            left=left,
            ops=[ast.In() | ast.NotIn() as op],
            comparators=[ast.Tuple(elts=parts) | ast.List(elts=parts)],
        ):
            texts, no = [], isinstance(op, ast.NotIn)
            for each in parts:
                if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
                    return None
                texts.append(each.value)
        case _:
            return None
    match left:
        case ast.Subscript(
            value=ast.Call(
                func=ast.Attribute(value=asked, attr="split"),
                args=[ast.Constant(value="/")],
                keywords=[],
            ),
            slice=ast.Constant(value=0),
        ):
            told = ast.unparse(asked)
        case _:
            return None
    if told not in (f"{name}.name", f"{name}.op.name") or not texts:
        return None
    if not all(re.fullmatch(r"[A-Za-z0-9_.\-]+", text) for text in texts):
        return None
    if told == f"{name}.op.name" and any(_may_be_a_variable(tree, file, each) for each in texts):
        return None
    begins = " or ".join(f"{name}.name.startswith({text + '/'!r})" for text in texts)
    if no:
        return f"not ({begins})" if len(texts) > 1 else f"not {begins}"
    return f"({begins})" if len(texts) > 1 else begins


def _may_be_a_variable(tree: Tree, file: PlainFile, text: str) -> bool:
    """Whether a variable may be called so that stands in no scope: its operation has that name, and nothing behind it."""
    near = import_closure(tree.sources, [file.path, *tree.users.get(file.path, ())], tree.imports)
    for path in sorted(near & tree.sources.keys() | {file.path}):
        source = file.text if path == file.path else tree.sources[path]
        if text not in source:
            continue
        try:
            parsed = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return True
        for call in ast.walk(parsed):
            if not isinstance(call, ast.Call):
                continue
            last = ast.unparse(call.func).rpartition(".")[2]
            if last in ("variable_scope", "name_scope", "trainable_variables", "get_collection"):
                continue
            given = [*call.args, *(each.value for each in call.keywords)]
            if any(isinstance(each, ast.Constant) and each.value == text for each in given):
                return True
    return False


__all__ = ["name_parts"]
