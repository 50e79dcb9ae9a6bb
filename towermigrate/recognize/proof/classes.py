"""Whether the classes that moved code uses are what their text says, whenever a step is traced."""

from __future__ import annotations

import ast

from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.towers import TowerProof

_BY_NAME = frozenset({"setattr", "delattr", "exec", "eval", "vars"})
_INSIDE = frozenset({"__dict__", "__class__", "__bases__"})


def check_classes(proof: TowerProof) -> None:
    """Report what may give a class other methods than those that were followed, or an object what no line shows."""
    if not proof.members:
        return
    files = files_beside(proof.codes, proof.code.path) or proof.codes.closure(proof.code.path)
    for code in files:
        for node in code.nodes:
            how = _changes(proof, node)
            if how is not None:
                proof.always("TM224", code, node, f"`{_said(code, node)}` {how}")


def _changes(proof: TowerProof, node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        if node.attr in _INSIDE:
            return "may change classes or objects that moved statements use"
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if isinstance(node.ctx, ast.Store | ast.Del) and node.attr in proof.members and not own:
            return "may be another method, or value, of a class that moved statements use"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_NAME:
        return "may change classes or objects that moved statements use"
    return None


def _said(code: Code, node: ast.AST) -> str:
    return code.said(node) + (" = …" if isinstance(node, ast.Attribute) else "")
