"""Functions of the program that an expression calls, and whether they do more than give a value: who drops the call must ask."""

from __future__ import annotations

import ast
import textwrap

import libcst as cst

from towermigrate.recognize.source import Function, SourceFile
from towermigrate.recognize.syntax import calls, code

_ACTS = frozenset(
    "print append extend insert pop remove clear update add discard setdefault setattr delattr next open write seed "
    "debug info warning warn error critical exception log system".split()
)
"""What is called so that something happens."""


def may_act(file: SourceFile, node: cst.CSTNode, depth: int = 3) -> bool:
    """Whether an expression calls a function of the program that sets, prints or fills something."""
    tree = file.tree
    for call in calls(node) if tree is not None else ():
        function = tree.resolve(file, call.func) if tree is not None else None
        if function is None:
            continue
        if _acts(function) or depth and may_act(function.file, function.node.body, depth - 1):
            return True
    return False


def _acts(function: Function) -> bool:
    try:
        tree = ast.parse(textwrap.dedent(code(function.node)))
    except SyntaxError:
        return True
    for each in ast.walk(tree):
        if isinstance(each, ast.Global | ast.Nonlocal):
            return True
        if isinstance(each, ast.Attribute | ast.Subscript) and not isinstance(each.ctx, ast.Load):
            return True
        if isinstance(each, ast.Call):
            last = each.func.attr if isinstance(each.func, ast.Attribute) else ""
            if (each.func.id if isinstance(each.func, ast.Name) else last) in _ACTS:
                return True
    return False
