"""Random numbers that a seed fixes: a step draws others, since TF1 numbers operations by their place in the graph."""

from __future__ import annotations

import ast

from towermigrate.recognize.proof.towers import TowerProof


def check_random(proof: TowerProof) -> None:
    """Report draws whose numbers a seed fixes in TF1 and not, or not the same, in steps."""
    seeds = [
        (code, node)
        for code in proof.codes.closure(proof.code.path)
        for node in code.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "set_random_seed"
    ]
    for code, node, kind in proof.random:
        if kind == "seeded":
            proof.always(
                "TM232", code, node,
                f"`{code.said(node)}` draws by a seed of its own: each step would draw its numbers from the start",
            )  # fmt: skip
        elif seeds:
            where, seed = seeds[0]
            proof.always(
                "TM232", code, node,
                f"`{code.said(node)}` is fixed by `{where.said(seed)}` (line {where.place(seed)[0]} of {where.path}), "
                "which numbers the operations of the whole graph",
            )  # fmt: skip
    pipelines = [
        i
        for i in (proof.body.inputs if proof.body else [])
        if i.kind in ("queue", "iterator", "same", "split", "own")
    ]
    if seeds and any(
        i.source not in proof.facts.placeholders
        and proof.facts.splits.get(i.source) not in proof.facts.placeholders
        for i in pipelines
    ):
        where, seed = seeds[0]
        proof.always(
            "TM232",
            where,
            seed,
            f"`{where.said(seed)}` also fixes the order in which the input pipeline shuffles",
        )
