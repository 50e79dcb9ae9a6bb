"""Summaries that each tower keeps in a collection that is called after its number: `collections=['model_%d' % i]`.

A step has such a collection for each tower, as TF1's graph had. Nothing but the towers may keep anything there.
"""

from __future__ import annotations

import ast

from towermigrate.recognize.proof.code import last_name
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.towers import TowerProof

_MAKERS = frozenset("scalar histogram image audio text tensor_summary".split())
_ADDS = frozenset("add_to_collection add_to_collections get_collection_ref".split())


def check_kept(proof: TowerProof) -> None:
    """Report what may add to the collections of the towers' numbers, where one of them is read."""
    if not proof.read_by_number:
        return
    for code in files_beside(proof.codes, proof.code.path) or ():
        for node in code.nodes:
            if not isinstance(node, ast.Call):
                continue
            of_tower = id(node) in proof.moved_calls and id(node) not in proof.staying_calls
            if _keeps(node) and not of_tower or _adds(node):
                proof.always(
                    "TM219", code, node,
                    f"`{code.said(node)}` may add to the collection of a tower from outside of it",
                )  # fmt: skip


def _keeps(call: ast.Call) -> bool:
    """Whether a call makes a summary for a collection that it is given."""
    if last_name(call.func) not in _MAKERS or "summary" not in ast.unparse(call.func):
        return False
    return len(call.args) > 2 or any(each.arg in ("collections", None) for each in call.keywords)


def _adds(call: ast.Call) -> bool:
    """Whether a call adds to a collection that may be any."""
    if last_name(call.func) not in _ADDS:
        return False
    key = call.args[0] if call.args else None
    plain = isinstance(key, ast.Attribute) and "GraphKeys" in ast.unparse(key)
    return not plain and not (isinstance(key, ast.Constant) and not str(key.value)[-1:].isdigit())
