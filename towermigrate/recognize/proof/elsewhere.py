"""The graph of a program, asked for outside of the function that builds it: loop style has none there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import External
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.switched import calls_of_tensorflow, read_at_once
from towermigrate.recognize.proof.towers import TowerProof

_ASKS = library.LISTS | {
    "tf.get_collection", "tf.get_collection_ref", "tf.get_default_graph", "tf.get_default_session",
    "tf.local_variables", "tf.model_variables", "tf.moving_average_variables",
}  # fmt: skip
_NEEDS_A_GRAPH = frozenset({
    "tf.placeholder", "tf.Session", "tf.InteractiveSession", "tf.train.Saver", "tf.summary.FileWriter",
    "tf.train.SummaryWriter",
})  # fmt: skip
_LAST = frozenset(name.rpartition(".")[2] for name in _ASKS | _NEEDS_A_GRAPH)
_DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def check_elsewhere(proof: TowerProof) -> None:
    """Report what other functions, and code around the program's, ask of its graph."""
    builder: ast.AST = proof.function[0] if proof.function else proof.code.tree
    own = {id(n) for n in own_nodes(getattr(builder, "body", []))}
    own |= {id(n) for statement in proof.moved_nodes for n in ast.walk(statement)}
    files = proof.files
    mentioned = {name for code in files for name in _mentioned(code)}
    for code in files:
        at_once = {id(n) for n in own_nodes(read_at_once(proof, code))}
        for call, name in _names(proof, code):
            if id(call) in own or id(call) in proof.moved_calls:
                continue
            if name in _NEEDS_A_GRAPH:
                said = "stands outside of the function that builds the towers, where loop style has no graph"
                if id(call) in proof.staying_calls:
                    continue
            elif name in _ASKS:
                said = "asks for the graph outside of the function that builds it; loop style has none there"
            else:
                continue
            if _may_run(code, call, at_once, mentioned) and not _has_its_own_graph(code, call):
                proof.always("TM210", code, call, f"`{code.said(call)}` {said}")


def _names(proof: TowerProof, code: Code) -> Iterator[tuple[ast.AST, str]]:
    """Where a file calls one of these functions, or hands it on, with its name."""
    called = {id(call.func) for call, _ in calls_of_tensorflow(proof, code)}
    yield from calls_of_tensorflow(proof, code)
    for node in code.nodes:
        if isinstance(node, ast.Attribute) and node.attr in _LAST and id(node) not in called:
            with proof.mode(False):
                value = proof.value(node, proof.module(code))
            if isinstance(value, External):
                yield node, value.name


def _mentioned(code: Code) -> Iterator[str]:
    for node in code.nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def _around(code: Code, node: ast.AST) -> Iterator[ast.AST]:
    inner: ast.AST | None = node
    while (inner := code.parents.get(id(inner))) is not None:
        yield inner


def _may_run(code: Code, call: ast.AST, at_once: set[int], mentioned: set[str]) -> bool:
    """Whether a call stands in code that runs when its file is read, or in a function that something names."""
    functions = [each for each in _around(code, call) if isinstance(each, _DEFINITION)]
    if not functions:
        return id(call) in at_once
    names = [each.name for each in functions if not isinstance(each, ast.Lambda)]
    return all(name in mentioned or name.startswith("__") for name in names)


def _has_its_own_graph(code: Code, call: ast.AST) -> bool:
    """Whether a call stands in `with tf.Graph().as_default():`, or in the like."""
    return any(
        isinstance(each, ast.With)
        and any("as_default" in ast.unparse(item.context_expr) for item in each.items)
        for each in _around(code, call)
    )
