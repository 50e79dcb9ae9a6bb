"""What holds where a run stands: the branch of a setting that is asked when the graph is built, and again around the run.

`if FLAGS.log: summaries.append(…)` and, in the loop, `if FLAGS.log: sess.run(summary_op)`: the run is made only where the
summaries were.
"""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.proof.towers import TowerProof


def settings_around(proof: TowerProof, call: ast.Call) -> list[str]:
    """The tests of settings, as they are unparsed, under which a call of the program's scope stands."""
    root: ast.AST = proof.function[0] if proof.function else proof.code.tree
    return [
        ast.unparse(node.test)
        for node in ast.walk(root)
        if isinstance(node, ast.If)
        and any(inner is call for statement in node.body for inner in ast.walk(statement))
        and _is_setting(proof, node.test)
    ]


def _is_setting(proof: TowerProof, test: ast.expr) -> bool:
    """Whether a test is `FLAGS.name`, which nothing in the tree sets."""
    if not isinstance(test, ast.Attribute) or not isinstance(test.value, ast.Name):
        return False
    made = [
        node
        for node in proof.code.nodes
        if isinstance(node, ast.Name)
        and node.id == test.value.id
        and not isinstance(node.ctx, ast.Load)
    ]
    flags = [
        node
        for node in proof.code.tree.body
        if isinstance(node, ast.Assign)
        and [ast.unparse(each) for each in node.targets] == [test.value.id]
        and ast.unparse(node.value).endswith("flags.FLAGS")
    ]
    sets = re.compile(
        rf"\.\s*{test.attr}\s*(?:[-+*/|&]|//)?=(?!=)|\bdel\b.*\b{test.attr}\b|\b{test.value.id}\s*\["
        r"|\bsetattr\(|\b__(?:dict|setattr)__\b|\bset_default\b|\bSetDefault\b|\bunparse_flags\b"
    )
    return len(made) == len(flags) == 1 and not any(
        sets.search(text) for text in proof.codes.tree.sources.values()
    )
