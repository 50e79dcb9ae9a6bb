"""Functions of the tree that the towers may call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import calls, code, dotted


def tower_functions(
    tree: Tree, file: SourceFile, kept: Sequence[cst.BaseStatement]
) -> list[Function]:
    """Functions of the tree that the towers may call, directly or not; methods are matched by name."""
    found: dict[int, Function] = {}

    def add(function: Function) -> None:
        if id(function.node) not in found:
            found[id(function.node)] = function
            visit(function.file, function.node)

    def visit(where: SourceFile, node: cst.CSTNode) -> None:
        for call in calls(node):
            for function in reached(tree, where, call):
                add(function)

    for statement in kept:
        visit(file, statement)
    return list(found.values())


def reached(tree: Tree, file: SourceFile, call: cst.Call) -> list[Function]:
    """The function of the tree that a call names, else the methods that it may mean; none for TensorFlow's."""
    if file.tf(call.func) is not None:
        return []
    function = tree.resolve(file, call.func)
    return list(methods_by_name(tree, file, call)) if function is None else [function]


def methods_by_name(tree: Tree, file: SourceFile, call: cst.Call) -> Iterator[Function]:
    """Methods a call may reach: those of a class it names, or any of that name in the files at hand."""
    name = (dotted(call.func) or "").split(".")[-1]
    if not name:
        return
    attribute = "." in code(call.func)
    for other in tree.near(file):
        for of_class, function in other.methods.get(name, ()):
            if of_class or attribute:
                yield function
