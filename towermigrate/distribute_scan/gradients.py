"""Calls that compute gradients and apply them: tapes, optimizers, clipping."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from towermigrate.distribute_scan import arithmetic, checks
from towermigrate.distribute_scan import values as v
from towermigrate.distribute_scan.replicas import is_mean

if TYPE_CHECKING:
    from towermigrate.distribute_scan.calls import Call


def _gradient(found: Call, target: v.Value) -> v.Value:
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


def _compute_gradients(found: Call, target: v.Value) -> v.Value:
    loss = found.get(0, "loss")
    return v.Gradients(loss, found.place) if isinstance(loss, v.Loss) else v.unknown()


def _apply_gradients(found: Call, target: v.Value) -> v.Value:
    checks.cross_replica(found)
    if not _foreign(target):
        checks.applied(found, found.get(0, "grads_and_vars"))
    return v.unknown()


def _minimize(found: Call, target: v.Value) -> v.Value:
    loss = found.get(0, "loss")
    if isinstance(loss, v.Function):
        loss = found.reader.call(loss, [], {})
    if isinstance(loss, v.Loss) and not _foreign(target):
        checks.applied(found, v.Gradients(loss, found.place))
    return v.unknown()


def _foreign(optimizer: v.Value) -> bool:
    """Optimizers that average over replicas themselves."""
    pattern = r"CrossShard|CrossReplica|horovod|hvd|\bipu\b"
    return isinstance(optimizer, v.Tensor) and re.search(pattern, optimizer.source) is not None


def _loss_scaling(found: Call, target: v.Value) -> v.Value:
    """`get_scaled_loss` and `get_unscaled_gradients`, which undo each other."""
    first = found.first()
    return first if isinstance(first, v.Loss | v.Gradients) else v.unknown()


def _all_reduce(found: Call, target: v.Value) -> v.Value:
    """`replica_context.all_reduce(op, value)`."""
    value = found.get(1, "value")
    if not isinstance(value, v.Gradients) or value.reduced:
        return v.unknown()
    summed = replace(value, reduced=True)
    if found.args and is_mean(found.args[0]):
        return arithmetic.scale(summed, v.Number(-1), found.place)
    return summed


def _clip(found: Call) -> v.Value:
    first = found.first()
    return first if isinstance(first, v.Gradients) else v.unknown()


def _clip_by_global_norm(found: Call) -> v.Value:
    return v.listed((_clip(found), v.unknown()))


def _tower_gradients(found: Call) -> v.Value:
    """`tm.tower_gradients`: divides a tower's loss itself, and takes a share as it is."""
    checks.twice_divided(found, found.get(1, "loss"))
    return v.unknown()


METHODS: dict[str, Callable[[Call, v.Value], v.Value]] = {
    "gradient": _gradient,
    "compute_gradients": _compute_gradients,
    "apply_gradients": _apply_gradients,
    "minimize": _minimize,
    "get_scaled_loss": _loss_scaling,
    "get_unscaled_gradients": _loss_scaling,
    "all_reduce": _all_reduce,
}

FUNCTIONS: dict[str, Callable[[Call], v.Value]] = {
    "tensorflow.clip_by_global_norm": _clip_by_global_norm,
    "tensorflow.clip_by_norm": _clip,
    "tensorflow.clip_by_value": _clip,
    "towermigrate.helpers.tower_gradients": _tower_gradients,
}
