"""Calls that compute gradients and apply them: tapes, optimizers, clipping."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace

from towermigrate.flow import Call
from towermigrate.flow.values import Function, Items, Many, Value
from towermigrate.lint import arithmetic, checks
from towermigrate.lint import values as v
from towermigrate.lint.replicas import is_mean


def _gradient(found: Call, target: Value) -> Value:
    """`tape.gradient(loss, variables)`."""
    func = found.node.func
    assert isinstance(func, ast.Attribute)
    if not (isinstance(target, v.Tensor) and target.source == "tensorflow.GradientTape"):
        name = ast.unparse(func.value).lower()
        if not v.is_blank(target) or "tape" not in name:
            return v.unknown()
    checks.all_variables(found, found.get(1, "sources"))
    loss = found.get(0, "target")
    return v.Gradients(loss, found.place) if isinstance(loss, v.Loss) else v.unknown()


def _compute_gradients(found: Call, target: Value) -> Value:
    loss = found.get(0, "loss")
    return v.Gradients(loss, found.place) if isinstance(loss, v.Loss) else v.unknown()


def _apply_gradients(found: Call, target: Value) -> Value:
    checks.cross_replica(found)
    if not _foreign(target):
        checks.applied(found, _gradients(found.get(0, "grads_and_vars")))
    return v.unknown()


def _minimize(found: Call, target: Value) -> Value:
    loss = found.get(0, "loss")
    if isinstance(loss, Function):
        loss = found.interpreter.call_with(loss, [], found.node, found.scope)
    if isinstance(loss, v.Loss) and not _foreign(target):
        checks.applied(found, v.Gradients(loss, found.place))
    return v.unknown()


def _foreign(optimizer: Value) -> bool:
    """Optimizers that average over replicas themselves."""
    pattern = r"CrossShard|CrossReplica|horovod|hvd|\bipu\b"
    return isinstance(optimizer, v.Tensor) and re.search(pattern, optimizer.source) is not None


def _loss_scaling(found: Call, target: Value) -> Value:
    """`get_scaled_loss` and `get_unscaled_gradients`, which undo each other."""
    first = found.get(0)
    return first if isinstance(first, v.Loss | v.Gradients) else v.unknown()


def _all_reduce(found: Call, target: Value) -> Value:
    """`replica_context.all_reduce(op, value)`."""
    value = _gradients(found.get(1, "value"))
    if value is None or value.reduced:
        return v.unknown()
    summed = replace(value, reduced=True)
    if found.args and is_mean(found.args[0]):
        return arithmetic.scale(summed, v.Number(-1), found.place)
    return summed


def _gradients(value: Value | None) -> v.Gradients | None:
    """Gradients, also as a list that was made of them (`[g / n for g in gradients]`)."""
    if isinstance(value, Items):
        held = value.held
        value = held.entry if isinstance(held, Many) else held.entries[0] if held.entries else None
        if isinstance(value, Items) and value.entries:
            value = value.entries[0]  # a gradient and its variable
    return value if isinstance(value, v.Gradients) else None


def _clip(found: Call) -> Value:
    first = found.get(0)
    return _gradients(first) or v.unknown()


def _clip_by_global_norm(found: Call) -> Value:
    return found.interpreter.items((_clip(found), v.unknown()), found.place, "tuple")


def _tower_gradients(found: Call) -> Value:
    """`tm.tower_gradients`: divides a tower's loss itself, and takes a share as it is."""
    checks.twice_divided(found, found.get(1, "loss"))
    return v.unknown()


METHODS: dict[str, Callable[[Call, Value], Value]] = {
    "gradient": _gradient,
    "compute_gradients": _compute_gradients,
    "apply_gradients": _apply_gradients,
    "minimize": _minimize,
    "get_scaled_loss": _loss_scaling,
    "get_unscaled_gradients": _loss_scaling,
    "all_reduce": _all_reduce,
}

FUNCTIONS: dict[str, Callable[[Call], Value]] = {
    "tensorflow.clip_by_global_norm": _clip_by_global_norm,
    "tensorflow.clip_by_norm": _clip,
    "tensorflow.clip_by_value": _clip,
    "towermigrate.helpers.tower_gradients": _tower_gradients,
}
