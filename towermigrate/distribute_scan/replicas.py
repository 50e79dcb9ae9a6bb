"""Calls that start replicas, and that put together what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from towermigrate.distribute_scan import checks
from towermigrate.distribute_scan import values as v

if TYPE_CHECKING:
    from towermigrate.distribute_scan.calls import Call


def is_mean(reduce_op: v.Value | None) -> bool:
    match reduce_op:
        case v.External(name=name):
            return name.endswith("ReduceOp.MEAN")
        case v.Text(text=text):
            return text.upper() == "MEAN"
    return False


def _run(found: Call, strategy: v.Strategy) -> v.Value:
    function = found.get(0, "fn")
    given = found.get(1, "args")
    args = given.values if isinstance(given, v.Items) else ()
    if not isinstance(function, v.Function) or found.reader.mode == "replica":
        return v.unknown()
    # Values that are the same on every replica keep their meaning; batches are unknown.
    local = [arg.value if isinstance(arg, v.PerReplica) else arg for arg in args]
    with found.reader.in_mode("replica" if strategy.sure else "plain"):
        return v.PerReplica(found.reader.call(function, local, {}))


def _reduce(found: Call, strategy: v.Strategy) -> v.Value:
    value = found.get(1, "value")
    if isinstance(value, v.PerReplica) and is_mean(found.get(0, "reduce_op")):
        return checks.mean_of_shares(found, value.value)
    return v.unknown()


def _mean_over_towers(found: Call) -> v.Value:
    value = found.get(0, "value")
    if isinstance(value, v.PerReplica):
        return checks.mean_of_shares(found, value.value)
    return v.unknown()


def _current_strategy(found: Call) -> v.Value:
    """`tf.distribute.get_strategy()`: surely one that was made only inside of its scope."""
    return v.Strategy(found.reader.mode == "cross")


def _tower_strategy(found: Call) -> v.Value:
    return v.Strategy()


METHODS: dict[str, Callable[[Call, v.Strategy], v.Value]] = {
    "run": _run,
    "experimental_run_v2": _run,
    "experimental_run": _run,
    "reduce": _reduce,
}
"""Methods of a strategy."""

FUNCTIONS: dict[str, Callable[[Call], v.Value]] = {
    "tensorflow.distribute.get_strategy": _current_strategy,
    "towermigrate.helpers.tower_strategy": _tower_strategy,
    "towermigrate.helpers.mean_over_towers": _mean_over_towers,
}
