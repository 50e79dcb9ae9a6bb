"""Names that are not what they are spelled: shadowed modules, patched libraries, one name for two things."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.flow.scopes import names_of, own_nodes, parameters
from towermigrate.flow.values import External
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.code import root_of
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.recognize.proof.values import (
    Module,
)

_SPECIAL = {
    Kind.PLACEHOLDER, Kind.SPLITS, Kind.SCHEDULE, Kind.TOWER_LIST, Kind.GRADIENTS, Kind.OPTIMIZER, Kind.SESSION,
    Kind.EMA, Kind.SAVER, Kind.QUEUE, Kind.APPLY,
}  # fmt: skip
"""Kinds whose names the rewrite follows by their spelling."""


def check_spelling(proof: TowerProof) -> None:
    """Report names that mean two things, and libraries that the program changes."""
    _patched(proof)
    _patched_by_name(proof)
    _nested(proof)
    _tensorflow(proof)


def _patched(proof: TowerProof) -> None:
    """Attributes set on modules: `tf.nn.relu = mine`."""
    for code in proof.codes.closure(proof.code.path):
        for node in code.nodes:
            if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del)):
                continue
            bound = code.bindings.get(root_of(node) or "", [])
            if any(isinstance(b, ast.Import | ast.ImportFrom) for b in bound):
                with proof.mode(False):
                    value = proof.value(node.value, proof.module(code))
                if isinstance(value, External) and value.name.split(".")[0] in (
                    "tf",
                    "numpy",
                    "builtins",
                    "math",
                ):
                    proof.always(
                        "TM229",
                        code,
                        node,
                        f"`{code.said(node)}` of `{value.name}` is replaced by the program",
                    )


def _patched_by_name(proof: TowerProof) -> None:
    """Functions put in the place of TensorFlow's where it is not spelled on what: `module.reduce_mean = mine`."""
    names = {n.rpartition(".")[2] for n in library.PURE}
    for code in proof.codes.closure(proof.code.path):
        mocks = any(
            "mock" in ast.unparse(n)
            for n in code.nodes
            if isinstance(n, ast.Import | ast.ImportFrom)
        )
        for node in code.nodes:
            replaced = False
            if isinstance(node, ast.Assign):
                made = isinstance(node.value, ast.Lambda | ast.Call | ast.Name | ast.Attribute)
                replaced = made and any(
                    isinstance(t, ast.Attribute)
                    and t.attr in names
                    and not (isinstance(t.value, ast.Name) and t.value.id in ("self", "cls"))
                    for t in node.targets
                )
            elif isinstance(node, ast.Call):
                last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                called = node.func.id if isinstance(node.func, ast.Name) else last
                texts = {a.value for a in node.args if isinstance(a, ast.Constant)}
                replaced = called == "setattr" and bool(texts & names)
                replaced = replaced or (mocks and called in ("patch", "object", "multiple", "dict"))
            if replaced:
                proof.always(
                    "TM229", code, node, f"`{code.said(node)}` may replace a function of TensorFlow"
                )


def _nested(proof: TowerProof) -> None:
    """Names of the tower loop that inner scopes bind for something else."""
    kinds = proof.facts.kinds.env
    special = {name for name, kind in kinds.items() if kind in _SPECIAL}
    body = proof.body
    if body is not None:
        special |= set(body.flags) | {i.source.split(".")[0] for i in body.inputs}
        special |= set(body.parameters)
    if proof.index is not None:
        special.add(proof.index)
    for name, node in _inner_bindings(proof.moved_nodes):
        if name in special:
            what = "the tower's index" if name == proof.index else "another value"
            proof.always(
                "TM227",
                proof.code,
                node,
                f"`{name}` is {what} outside and is bound again in an inner scope",
            )
    own = list(own_nodes(proof.loop.body))
    for node in own:
        targets: list[ast.AST] = []
        if isinstance(node, ast.For):
            targets = [node.target]
        elif isinstance(node, ast.Assign):
            targets = list(node.targets)
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.With):
            targets = [i.optional_vars for i in node.items if i.optional_vars is not None]
        for target in targets:
            if proof.index is not None and proof.index in names_of(target):
                proof.always(
                    "TM227",
                    proof.code,
                    node,
                    f"the tower's index `{proof.index}` is bound again in the loop",
                )


def _inner_bindings(statements: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Names bound by the functions, lambdas and comprehensions inside statements that move."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
                for name in parameters(node):
                    yield name, node
                if not isinstance(node, ast.Lambda):
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                            yield inner.id, inner
            elif isinstance(node, ast.comprehension):
                for name in names_of(node.target):
                    yield name, node.target


def _tensorflow(proof: TowerProof) -> None:
    """TensorFlow's name must be TensorFlow in every file that moved code comes from."""
    files = {proof.code.path: proof.code}
    for read in proof.reads:
        files.setdefault(read.code.path, read.code)
    for code in files.values():
        for name, nodes in code.bindings.items():
            imports = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
            if not imports or len(imports) == len(nodes):
                continue
            with proof.mode(False):
                value = proof.bound_by(name, imports[0], proof.module(code))
            if isinstance(value, External | Module):
                other = next(n for n in nodes if n not in imports)
                proof.always(
                    "TM229",
                    code,
                    other,
                    f"`{name}` is imported and bound to something else as well",
                )
