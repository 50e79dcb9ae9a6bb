"""How the towers of a loop say that they share their variables, as far as the saying goes away with the loop.

`tf.get_variable_scope().reuse_variables()` at a tower's end, and a flag that is False in the first tower and True
in the others, mean nothing to one function that all replicas run.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.kinds import Kinds
from towermigrate.recognize.scope import Item, bare_call, literal_default
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import assigned, statements, walk
from towermigrate.recognize.tower import Body, makes_variables


def is_reuse(node: cst.BaseStatement) -> bool:
    """Whether a statement is `scope.reuse_variables()`."""
    call = bare_call(node)
    return (
        call is not None
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "reuse_variables"
    )


def reuse_flags(loop: cst.For, before: Sequence[Item]) -> dict[str, str]:
    """Names set to False or None before the loop and to True in it, with their value for the first tower."""
    starts: dict[str, str] = {}
    for item in before:
        found = assigned(item.node)
        if found and len(found[0]) == 1:
            value = literal_default(found[1])
            if value is not None:
                starts[found[0][0]] = value
            else:
                starts.pop(found[0][0], None)
    flags: dict[str, str] = {}
    for node in walk(loop.body):
        if isinstance(node, cst.SimpleStatementLine):
            found = assigned(node)
            if found and len(found[0]) == 1 and found[0][0] in starts:
                if literal_default(found[1]) == "True":
                    flags[found[0][0]] = starts[found[0][0]]
    return flags


def drop_tail_reuse(file: SourceFile, kinds: Kinds, body: Body) -> None:
    """Drop `reuse_variables()` where nothing after it in the tower makes variables."""

    def without(
        block: Sequence[cst.BaseStatement], model_after: bool
    ) -> tuple[list[cst.BaseStatement], bool]:
        kept: list[cst.BaseStatement] = []
        for node in reversed(block):
            if is_reuse(node) and not model_after:
                body.sharing.append("reuse_variables")
                body.dropped.append(node)
                continue
            if isinstance(node, cst.With) and isinstance(node.body, cst.IndentedBlock):
                inner, model_after = without(statements(node.body), model_after)
                if inner:
                    kept.append(node.with_changes(body=node.body.with_changes(body=inner)))
                continue
            if makes_variables(kinds, file, node):
                model_after = True
            kept.append(node)
        return list(reversed(kept)), model_after

    body.kept = without(body.kept, False)[0]
