"""Functions among the statements of the session that hold runs: `def evaluate(batch): return sess.run(loss, …)`.

What such a function runs is looked at where it is defined. That is as good as where it is called if every name of the graph that it
uses is still the same then, and if nobody has the function but those who call it.
"""

from __future__ import annotations

import ast

from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.proof.towers import TowerProof

_NOT_PLAIN = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await)


def runs_as_written(proof: TowerProof, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether a run in an inner function of a statement may be looked at as one of the statement's own."""
    inside = [
        node
        for node in ast.walk(statement)
        if isinstance(
            node,
            ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | ast.GeneratorExp | ast.ClassDef,
        )
        and any(each is call for each in ast.walk(node))
    ]
    if inside != [statement] or not isinstance(statement, ast.FunctionDef):
        return False
    nodes = list(ast.walk(statement))
    if statement.decorator_list or any(isinstance(node, _NOT_PLAIN) for node in nodes):
        return False
    scope: ast.AST = proof.function[0] if proof.function else proof.code.tree
    own = _own_names(statement)
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    graph = {name for name in names | own if proof.facts.kinds.of_name(name) is not Kind.PYTHON}
    return (
        not own & graph
        and _only_called(proof, statement)
        and not _set_behind(scope, statement, graph)
        and _while_open(proof, scope, statement, [])
    )


def callers_of(proof: TowerProof, statement: ast.AST) -> list[ast.Call]:
    """The calls of a function of the scope."""
    if not isinstance(statement, ast.FunctionDef):
        return []
    return [
        call
        for call in proof.code.nodes
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == statement.name
    ]


def _while_open(proof: TowerProof, scope: ast.AST, function: ast.AST, seen: list[ast.AST]) -> bool:
    """Whether every call stands where the session is open that is open at the definition; what runs behind is an error in TF1."""
    if any(each is function for each in seen):
        return True
    blocks = [block for block in _around(proof, function) if isinstance(block, ast.With)]
    for call in callers_of(proof, function):
        above = _around(proof, call)
        inner = next((each for each in above if isinstance(each, ast.FunctionDef)), None)
        if inner is function:
            continue
        if inner is not None and inner is not scope:
            known = _only_called(proof, inner) and _while_open(
                proof, scope, inner, [*seen, function]
            )
            if not known:
                return False
        elif not all(any(block is each for each in above) for block in blocks):
            return False
        elif any(each.lineno < call.lineno for each in _closings(proof, scope)):
            return False
    return True


def _around(proof: TowerProof, node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    inner: ast.AST | None = node
    while (inner := proof.code.parents.get(id(inner))) is not None:
        found.append(inner)
    return found


def _closings(proof: TowerProof, scope: ast.AST) -> list[ast.Call]:
    return [
        call
        for call in ast.walk(scope)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "close"
        and isinstance(call.func.value, ast.Name)
        and proof.facts.kinds.of_name(call.func.value.id) in (Kind.SESSION, Kind.PYTHON)
    ]


def _own_names(function: ast.FunctionDef) -> set[str]:
    """Every name that a function, or what stands in it, binds."""
    inside = [node for node in ast.walk(function) if node is not function]
    texts = {name for node in inside for name in _names_of(node)}
    return {name for name in texts if any(_binds(node, name) for node in inside)}


def _names_of(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler():
            return [node.name] if node.name else []
        case ast.Name():
            return [node.id]
        case ast.alias():
            return [(node.asname or node.name).partition(".")[0]]
        case ast.arg():
            return [node.arg]
    return []


def _only_called(proof: TowerProof, function: ast.FunctionDef) -> bool:
    """Whether a function's name is bound once, and all that is done with it is to call it."""
    called = {id(call.func) for call in callers_of(proof, function)}
    uses = [
        node for node in proof.code.nodes if isinstance(node, ast.Name) and node.id == function.name
    ]
    texts = [
        node.value
        for node in proof.code.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    bound = sum(_binds(node, function.name) for node in proof.code.nodes)
    return bound == 1 and function.name not in texts and all(id(node) in called for node in uses)


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node itself binds a name."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == name
        case ast.Name():
            return node.id == name and not isinstance(node.ctx, ast.Load)
        case ast.alias():
            return (node.asname or node.name).partition(".")[0] == name
        case ast.arg():
            return node.arg == name
        case ast.ExceptHandler():
            return node.name == name
    return False


def _set_behind(scope: ast.AST, function: ast.FunctionDef, graph: set[str]) -> bool:
    """Whether a name of the graph that a function uses may be bound anew once it is defined."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Global | ast.Nonlocal) and graph & set(node.names):
            return True
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in graph:
            if (node.lineno, node.col_offset) > (function.lineno, function.col_offset):
                return True
    # A loop around the definition brings what stands in front of it behind it.
    return any(
        isinstance(node, ast.For | ast.While) and any(each is function for each in ast.walk(node))
        for node in ast.walk(scope)
    )
