"""What a program asks of its checkpoints that those of loop style have not: the graph's own file, variables without a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import External
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.proof.code import Code, last_name
from towermigrate.recognize.proof.towers import TowerProof

_LISTS = frozenset({
    "listdir", "scandir", "glob", "iglob", "walk", "iterdir", "rglob", "Glob", "ListDirectory", "Walk",
})  # fmt: skip
_EVERYWHERE = frozenset(
    {
        "os",
        "path",
        "join",
        "format",
        "str",
        "FLAGS",
        "flags",
        "args",
        "self",
        "config",
        "tf",
        "app",
        "np",
        "",
    }
)
_DEPTH = 3
"""From a name to what it was bound to, and on from there."""


def check_saved(proof: TowerProof) -> None:
    """Report what asks for more of a checkpoint than its values, and variables that its saver would not hold."""
    savers = {name for name, kind in proof.facts.kinds.env.items() if kind is Kind.SAVER}
    if not savers:
        return
    saves = [
        call
        for call in proof.code.nodes
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "save"
        and last_name(call.func.value) in savers
    ]
    written = {word for call in saves for word in _words(proof.code, call, _DEPTH)}
    written -= savers | _EVERYWHERE | {"save", "sess", "session"}
    for code in proof.files:
        for node in code.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if ".meta" in node.value and not isinstance(code.parents.get(id(node)), ast.Expr):
                    proof.always(
                        "TM231", code, node,
                        f"`{code.said(node)}` names the file of the graph, which the helpers' saver does not write",
                    )  # fmt: skip
            elif isinstance(node, ast.Call) and last_name(node.func) in _LISTS:
                asked = set(_words(code, node, _DEPTH)) - _EVERYWHERE - _LISTS
                if asked & written or not asked:
                    proof.always(
                        "TM231", code, node,
                        f"`{code.said(node)}` may list the checkpoints, which the helpers' saver writes without the graph's file",
                    )  # fmt: skip
    _nameless(proof)


def _words(code: Code, node: ast.AST, depth: int) -> Iterator[str]:
    """The names, attributes and parts of paths of an expression, and of what its names were bound to."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield from each.value.strip("./").split("/")
        elif isinstance(each, ast.Name):
            yield each.id
            for bound in code.nodes if depth and each.id not in _EVERYWHERE else ():
                if isinstance(bound, ast.Assign) and any(
                    isinstance(target, ast.Name) and target.id == each.id
                    for target in bound.targets
                ):
                    yield from _words(code, bound.value, depth - 1)


def _nameless(proof: TowerProof) -> None:
    """Report variables that the function makes and gives no name: a saver is handed those that it can name."""
    builder: ast.AST = proof.function[0] if proof.function else proof.code.tree
    moved = {id(n) for statement in proof.moved_nodes for n in ast.walk(statement)}
    for node in own_nodes(getattr(builder, "body", [])):
        if not isinstance(node, ast.Call) or id(node) in moved:
            continue
        if last_name(node.func) not in ("Variable", "get_variable"):
            continue
        if isinstance(proof.code.parents.get(id(node)), ast.Assign | ast.AnnAssign | ast.Attribute):
            continue
        with proof.mode(False):
            value = proof.value(node.func, proof.top)
        if isinstance(value, External) and value.name in ("tf.Variable", "tf.get_variable"):
            proof.always(
                "TM231", proof.code, node,
                f"`{proof.code.said(node)}` makes a variable without a name of its own, which the saver would not hold",
            )  # fmt: skip
