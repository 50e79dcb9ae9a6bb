"""Whether the classes that a proof has followed are what their text says, whenever a step is traced."""

from __future__ import annotations

import ast

from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.towers import TowerProof

_BY_NAME = frozenset({"setattr", "delattr", "exec", "eval", "vars"})
_INSIDE = frozenset({
    "__dict__", "__class__", "__bases__", "__setattr__", "__delattr__", "__setstate__", "__code__", "__defaults__",
})  # fmt: skip


def check_classes(proof: TowerProof) -> None:
    """Report what may give a class other methods than those that were followed, or an object what no line shows."""
    if not proof.members | proof.values_of_classes:
        return
    files = proof.files
    for code in files:
        own = _of_objects(code)
        for node in code.nodes:
            how = _changes(proof, node, own)
            if how is not None:
                proof.always("TM224", code, node, f"`{_said(code, node)}` {how}")


def _of_objects(code: Code) -> set[int]:
    """The `self` of methods: what is set of it is an object's, and no class's."""
    found: set[int] = set()
    for made in code.nodes:
        for method in made.body if isinstance(made, ast.ClassDef) else ():
            if (
                isinstance(method, ast.FunctionDef)
                and method.args.args
                and not method.decorator_list
            ):
                holder = method.args.args[0].arg
                found |= {
                    id(each)
                    for each in code.below(method)
                    if isinstance(each, ast.Name) and each.id == holder
                }
    return found


def _changes(proof: TowerProof, node: ast.AST, own: set[int]) -> str | None:
    if isinstance(node, ast.Attribute):
        if node.attr in _INSIDE or node.attr == "__init__" and not _of_class(node):
            return "may change classes or objects that moved statements use"
        if isinstance(node.ctx, ast.Store | ast.Del):
            of_object = id(node.value) in own and node.attr not in proof.members
            if node.attr in proof.members | proof.values_of_classes and not of_object:
                return "may be another method, or value, of a class that moved statements use"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_NAME:
        return "may change classes or objects that moved statements use"
    return None


def _of_class(node: ast.Attribute) -> bool:
    """Whether `….__init__` is that of `super()`, or of a class that begins with a capital as classes do."""
    of = node.value
    if isinstance(of, ast.Call):
        return isinstance(of.func, ast.Name) and of.func.id == "super"
    last = of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")
    return bool(last.lstrip("_")[:1].isupper())


def _said(code: Code, node: ast.AST) -> str:
    return code.said(node) + (" = …" if isinstance(node, ast.Attribute) else "")
