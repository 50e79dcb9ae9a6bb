"""Which reads of UPDATE_OPS are of batch-norm updates that a step makes with the tower.

`tf.get_collection(UPDATE_OPS, scope)` has those of one tower, `tf.get_collection(UPDATE_OPS)` behind the towers those of
all. The read goes away; what waited for it says which steps move the moving averages. That `scope` has all updates of its
tower, and that nothing else adds updates, is the proof's to show.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.analysis import Scope
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.scope import Item, dissolves, reads_updates
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    binds,
    calls,
    changes,
    code,
    reads,
    statements,
    walk,
)
from towermigrate.recognize.tower import Body


def updates_of_towers(candidate: Candidate, file: SourceFile) -> tuple[set[int], set[int]]:
    """The calls, by identity, that read UPDATE_OPS where the read can go away: all of them, and those of all towers.

    It is bound to a name by a statement of its own, or what stands behind the towers waits for it where it is written.
    """
    scope = candidate.function or file.module
    inside = {id(call) for call in calls(candidate.loop)}
    scopes = _scopes(candidate.loop, file)
    plain: set[int] = set()
    for node in walk(scope):
        if isinstance(node, cst.SimpleStatementLine):
            found = assigned(node)
            if found is not None and len(found[0]) == 1:
                plain.add(id(found[1]))
        elif isinstance(node, cst.With):
            for item in node.items:
                call = item.item
                if isinstance(call, cst.Call) and id(call) not in inside and len(call.args) == 1:
                    if file.tf(call.func) == "tf.control_dependencies":
                        plain.add(id(call.args[0].value))
    taken: set[int] = set()
    of_all: set[int] = set()
    end = file.span(candidate.loop).end_line
    for call in calls(scope):
        if id(call) not in plain or not reads_updates(file, call):
            continue
        by = argument(call, 1, "scope")
        if len(call.args) == 1 and file.span(call).line > end:
            of_all.add(id(call))
        elif len(call.args) == 2 and isinstance(by, cst.Name) and by.value in scopes:
            taken.add(id(call))
    return taken | of_all, of_all


def _scopes(loop: cst.For, file: SourceFile) -> set[str]:
    """What `with tf.name_scope(…) as scope` of a loop's body binds."""
    found: set[str] = set()
    for node in walk(loop.body):
        if isinstance(node, cst.With):
            for item in node.items:
                call, name = item.item, item.asname.name if item.asname is not None else None
                if isinstance(call, cst.Call) and isinstance(name, cst.Name):
                    if file.tf(call.func) in ("tf.name_scope", "tf.op_scope"):
                        found.add(name.value)
    return found


def check_updates(scope: Scope, body: Body, after: Sequence[Item]) -> None:
    """Say where batch-norm updates are more than what an update of the variables waits for.

    Args:
        scope: what is known of the scope around the tower loop.
        body: the loop's body.
        after: the statements behind it.
    """
    kinds, file, reasons = scope.kinds, scope.file, scope.reasons
    names = kinds.updates
    items = [*body.updates, *(item for item in after if item.updates)]
    read = {id(found[1]) for item in items if (found := assigned(item.node)) is not None}
    read |= _waited_for(scope.candidate.block, file)
    for call in calls(scope.candidate.function or file.module):
        if id(call) in kinds.updates_taken - read:
            reasons.say(
                "TM207", file, call,
                f"`{code(call)}` stands under a condition or in other statements",
            )  # fmt: skip
    if kinds.updates_of_all and kinds.updates_taken - kinds.updates_of_all:
        reasons.say(
            "TM207", file, items[-1].node,
            "the batch-norm updates of one tower and of all towers are read",
        )  # fmt: skip
    if body.first_updates and len(items) > 1:
        reasons.say(
            "TM207", file, items[-1].node,
            "the batch-norm updates of the first tower and of another one are run",
        )  # fmt: skip
    said = "a tower waits for its batch-norm updates, or changes them"
    for node in body.kept:
        if names & {*reads(node), *binds(node), *changes(node)}:
            reasons.say("TM207", file, node, said)
    for block in walk(
        scope.candidate.loop
    ):  # the gradients too, which are none of the statements that are kept
        if isinstance(block, cst.With):
            for entered in block.items:
                if names & {*reads(entered.item)}:
                    reasons.say("TM207", file, entered.item, said)
    for item in after:
        own = item.updates and item.kind is Kind.OP
        if names & (item.changes | (frozenset() if own else item.binds)):
            reasons.say(
                "TM207", file, item.node,
                f"`{sorted(names & (item.changes | item.binds))[0]}`, batch-norm updates, is changed or bound anew",
            )  # fmt: skip
        waits = item.updates or item.ordered_after & names
        found = assigned(item.node)
        if not waits or found is not None and id(found[1]) in kinds.updates_taken:
            continue
        made = found[1] if found is not None else None
        operation = isinstance(made, cst.Call) and item.kind in (Kind.APPLY, Kind.OP, Kind.AVERAGED)
        if not operation:
            reasons.say(
                "TM207", file, item.node,
                f"`{code(item.node).strip().splitlines()[0]}` waits for batch-norm updates and is no update itself",
            )  # fmt: skip


def _waited_for(block: Sequence[cst.BaseStatement], file: SourceFile) -> set[int]:
    """The calls that dissolved `with tf.control_dependencies(call)` of a scope wait for."""
    found: set[int] = set()
    for node in block:
        if isinstance(node, cst.With) and all(dissolves(item, file) for item in node.items):
            for item in node.items:
                if isinstance(item.item, cst.Call):
                    found |= {id(arg.value) for arg in item.item.args}
            found |= _waited_for(statements(node.body), file)
    return found
