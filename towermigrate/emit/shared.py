"""Collections that all towers of a graph share: what a replica, which has its own, reads and sums of them."""

from __future__ import annotations

import ast

import libcst as cst

from towermigrate.emit.expressions import replace
from towermigrate.emit.templates import Templates
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.syntax import code


def as_shared(analysis: Analysis, text: str) -> str:
    """The text of the towers' file where its functions sum a collection, or read it by a scope, as the graph's one.

    Raises:
        LookupError: one of their calls is not there any more.
    """
    module = cst.parse_module(text)
    templates = Templates(module)
    missing = {*analysis.sums, *analysis.scoped}
    body: list[cst.SimpleStatementLine | cst.BaseCompoundStatement] = []
    for node in module.body:
        name = node.name.value if isinstance(node, cst.FunctionDef | cst.ClassDef) else ""

        def new(inner: cst.CSTNode, name: str = name) -> cst.CSTNode | None:
            if not isinstance(inner, cst.Call):
                return None
            key = name, ast.unparse(ast.parse(f"({code(inner)})", mode="eval"))
            missing.discard(key)
            if key in analysis.sums:
                first, *more = inner.args
                own = _given(templates, "tm.with_towers_before(_)", first.value)
                return inner.with_changes(args=[first.with_changes(value=own), *more])
            if key in analysis.scoped:
                first, second = inner.args
                own = _given(templates, "tm.scope_in_replica(_)", second.value)
                return inner.with_changes(args=[first, second.with_changes(value=own)])
            return None

        changed = replace(node, new) if any(function == name for function, _ in missing) else node
        assert isinstance(changed, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        body.append(changed)
    if missing:
        raise LookupError(f"`{sorted(missing)[0][1]}` is not where it was")
    return module.with_changes(body=body).code


def _given(templates: Templates, call: str, value: cst.BaseExpression) -> cst.Call:
    """A call with one argument."""
    made = templates.expression(call)
    assert isinstance(made, cst.Call)
    return made.with_changes(args=[cst.Arg(value)])
