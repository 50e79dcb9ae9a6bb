"""Sums of a collection of all towers: in a step each replica adds those of the replicas before it."""

from __future__ import annotations

import ast

import libcst as cst

from towermigrate.emit.expressions import replace
from towermigrate.emit.templates import Templates
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.syntax import code


def with_towers_before(analysis: Analysis, text: str) -> str:
    """The text of the towers' file with `tm.with_towers_before(…)` around what sums a collection of all towers.

    Raises:
        LookupError: one of the sums is not there any more.
    """
    module = cst.parse_module(text)
    templates = Templates(module)
    missing = set(analysis.sums)

    def written(call: cst.Call) -> str:
        return ast.unparse(ast.parse(f"({code(call)})", mode="eval"))

    body: list[cst.SimpleStatementLine | cst.BaseCompoundStatement] = []
    for node in module.body:
        name = node.name.value if isinstance(node, cst.FunctionDef) else None
        wanted = {call for function, call in analysis.sums if function == name}

        def new(
            inner: cst.CSTNode, wanted: set[str] = wanted, name: str | None = name
        ) -> cst.CSTNode | None:
            if not isinstance(inner, cst.Call) or written(inner) not in wanted:
                return None
            missing.discard((name or "", written(inner)))
            wrapped = templates.expression("tm.with_towers_before(_)")
            assert isinstance(wrapped, cst.Call)
            return wrapped.with_changes(args=[cst.Arg(inner)])

        changed = replace(node, new) if wanted else node
        assert isinstance(changed, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        body.append(changed)
    if missing:
        raise LookupError(f"`{sorted(missing)[0][1]}` is not where it was")
    return module.with_changes(body=body).code
