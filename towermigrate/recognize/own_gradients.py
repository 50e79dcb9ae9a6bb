"""Read what a tower makes of its own gradients before they are averaged: clipped, scaled, or taken by `tf.gradients`.

Such statements move into the steps, behind the tower: each replica does to its own gradients what each tower did.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.evaluation import called_by
from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.scope import Item
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import argument, assigned, binds, calls, code, reads, walk
from towermigrate.recognize.tower import Body, Compute

_EFFECTS = (
    "tf.get_variable", "tf.Variable", "tf.layers.", "tf.contrib.", "tf.variable_scope", "tf.make_template", "tf.summary.",
    "tf.add_to_collection", "tf.get_collection", "tf.keras.",
)  # fmt: skip
"""What makes variables, or adds to collections: behind the tower it would not be the tower's."""
_QUIET = {"name", "colocate_gradients_with_ops", "gate_gradients", "aggregation_method", None}


def roots(node: cst.CSTNode, kinds: Kinds, file: SourceFile) -> list[cst.Call]:
    """The calls below a node that take the gradients of variables."""
    found: list[cst.Call] = []
    for call in calls(node):
        variables = argument(call, 1, "xs") if file.tf(call.func) == "tf.gradients" else None
        if variables is not None and kinds.of(variables) is Kind.VARLIST:
            found.append(call)
        elif kinds.of(call) is Kind.GRADIENTS:
            found.append(call)
    return found


def of_variables(file: SourceFile, call: cst.Call) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """The loss and the variables of a call of `tf.gradients`."""
    loss, variables = argument(call, 0, "ys"), argument(call, 1, "xs")
    known = {"ys", "xs", *_QUIET}
    plain = sum(arg.keyword is None for arg in call.args) <= 2 and all(
        not arg.star and (arg.keyword.value if arg.keyword else None) in known for arg in call.args
    )
    if not plain or not isinstance(loss, cst.Name) or variables is None:
        raise refuse(
            "TM202", file, call,
            f"`{code(call)}` takes gradients in a way that is not understood",
        )  # fmt: skip
    return loss, variables


class OwnGradients:
    """The names of a tower's gradients, and the statements that change them."""

    def __init__(self, file: SourceFile, kinds: Kinds, body: Body) -> None:
        self.file = file
        self.kinds = kinds
        self.body = body
        self.of: dict[str, Compute] = {}

    def changed(self, node: cst.BaseStatement, compute: Compute, lead: list[cst.EmptyLine]) -> None:
        """Note a statement that makes something of a tower's gradients."""
        found = assigned(node)
        if found is None:
            raise refuse(
                "TM211", self.file, node,
                "one tower's gradients are used, or changed in place, before they are averaged",
            )  # fmt: skip
        if compute.list_name is not None:
            raise refuse(
                "TM211", self.file, node,
                "one tower's gradients are used after they were put on a list over the towers",
            )  # fmt: skip
        item = Item.of(node, lead)
        item.kind = Kind.GRADIENTS
        compute.items.append(item)
        for name in found[0]:
            self.of[name] = compute

    def one_of(self, node: cst.CSTNode) -> Compute | None:
        """The gradients that a node reads; None where it reads none."""
        found = {id(self.of[n]): self.of[n] for n in reads(node) if n in self.of}
        if len(found) > 1:
            raise refuse(
                "TM211", self.file, node, "gradients of two losses are put together in the tower"
            )
        return next(iter(found.values()), None)

    def appended(self, value: cst.BaseExpression, compute: Compute) -> None:
        """Note what of a tower's gradients goes on the list over the towers."""
        plain = isinstance(value, cst.Name) and not compute.items
        if not plain and value is not compute.call:
            compute.appended = value
        self._collapse(compute)

    def _collapse(self, compute: Compute) -> None:
        """`zip(tf.gradients(loss, params), params)` is what `compute_gradients(loss, params)` gives."""
        if self.file.tf(compute.call.func) != "tf.gradients" or compute.appended is None:
            return
        made = {
            found[0][0]: found[1]
            for item in compute.items
            for found in [assigned(item.node)]
            if found is not None and len(found[0]) == 1
        }
        pairs = compute.appended
        if len(made) != len(compute.items):
            return
        target = pairs.value if isinstance(pairs, cst.Name) else None
        used = set(reads(pairs)) & set(made)
        if target is not None:
            pairs = made[target]
            used |= set(reads(pairs)) & set(made)
        zipped = _zipped(pairs)
        if zipped is None or used != set(made):
            return
        first, second = zipped
        if isinstance(first, cst.Name):
            first = made.get(first.value, first)
        if first is compute.call and compute.var_list is not None:
            if code(second) == code(compute.var_list):
                whole = self.file.tf(getattr(second, "func", second)) == "tf.trainable_variables"
                compute.var_list = None if whole and not getattr(second, "args", ()) else second
                compute.items, compute.appended, compute.target = [], None, target


def _zipped(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """`a` and `b` of `zip(a, b)` and `list(zip(a, b))`."""
    for name in ("list", "zip"):
        if isinstance(node, cst.Call) and code(node.func) == name:
            args = [a.value for a in node.args if not a.star and a.keyword is None]
            if name == "list" and len(args) == len(node.args) == 1:
                node = args[0]
            elif name == "zip" and len(args) == len(node.args) == 2:
                return args[0], args[1]
    return None


def check_own(kinds: Kinds, file: SourceFile, body: Body, after: Sequence[Item]) -> None:
    """Say where what a tower makes of its gradients would mean something else behind the tower."""
    kept = {name for node in body.kept for name in binds(node)}
    listed = {name for item in body.step_items for name in item.binds}
    seen: set[str] = set()
    for compute in body.computes:
        made = {name for item in compute.items for name in item.binds}
        read = {name for item in compute.items for name in item.reads}
        read |= set(reads(compute.appended)) if compute.appended is not None else set()
        loss = set(reads(compute.loss))
        towers = (read - made - loss - ({compute.target} if compute.target else set())) & kept
        if compute.plain:
            continue
        parts: list[cst.CSTNode] = [item.node for item in compute.items]
        for part in [*parts, *([compute.appended] if compute.appended is not None else [])]:
            for call in calls(part):
                effects = [n for n in called_by(kinds, file, call) if n.startswith(_EFFECTS)]
                if effects and kinds.of(call) is not Kind.VARLIST:
                    raise refuse(
                        "TM211", file, call,
                        f"`{code(call.func)}` makes more of a tower's gradients than tensors: `{sorted(effects)[0]}`",
                    )  # fmt: skip
        known = {compute.target}
        for item in compute.items:
            if item.reads & made - known:
                raise refuse(
                    "TM206", file, item.node,
                    f"a tower reads `{sorted(item.reads & made - known)[0]}` before it sets it: the value of the tower before",
                )  # fmt: skip
            known |= item.binds
        if towers or (read & loss and not _only_in_call(compute, loss)):
            raise refuse(
                "TM211", file, compute.call,
                f"a tower's gradients are changed by `{sorted(towers or read & loss)[0]}`, a value of the tower",
            )  # fmt: skip
        made |= {compute.target} if compute.target else set()
        if made & (kept | listed | seen | set(body.parameters)):
            raise refuse(
                "TM211", file, compute.call,
                f"`{sorted(made & (kept | listed | seen | set(body.parameters)))[0]}` is one tower's gradients and another "
                "value of the tower too",
            )  # fmt: skip
        seen |= made
    names = seen | {compute.target for compute in body.computes if compute.target is not None}
    for item in after:
        used = item.reads & names - (item.binds if item.kind is Kind.PYTHON else frozenset())
        if used:
            raise refuse(
                "TM211", file, item.node,
                f"`{sorted(used)[0]}`, which is of one tower's gradients, is read behind the towers",
            )  # fmt: skip
        names -= item.binds


def _only_in_call(compute: Compute, names: set[str]) -> bool:
    """Whether names are read by the call that takes the gradients and by nothing else of them."""
    inside = {id(n) for n in walk(compute.call)}
    nodes: list[cst.CSTNode] = [item.node for item in compute.items]
    nodes += [compute.appended] if compute.appended is not None else []
    return not any(
        isinstance(n, cst.Name) and n.value in names and id(n) not in inside
        for node in nodes
        for n in walk(node)
    )
