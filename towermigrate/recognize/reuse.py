"""How the towers of a loop say that they share their variables, as far as the saying goes away with the loop.

`tf.get_variable_scope().reuse_variables()` at a tower's end means nothing to one function that all replicas run.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.kinds import Kinds
from towermigrate.recognize.scope import bare_call
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import statements
from towermigrate.recognize.tower import Body, makes_variables


def is_reuse(node: cst.BaseStatement) -> bool:
    """Whether a statement is `scope.reuse_variables()`."""
    call = bare_call(node)
    return (
        call is not None
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "reuse_variables"
    )


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
