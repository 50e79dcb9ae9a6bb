"""Calls that start replicas, and that put together what they return."""

from __future__ import annotations

from collections.abc import Callable

from towermigrate.flow import Call
from towermigrate.flow.values import Const, External, Function, Items, Value
from towermigrate.lint import checks
from towermigrate.lint import values as v
from towermigrate.lint.noting import noting


def is_mean(reduce_op: Value | None) -> bool:
    match reduce_op:
        case External(name=name):
            return name.endswith("ReduceOp.MEAN")
        case Const(value=str() as text):
            return text.upper() == "MEAN"
    return False


def _run(found: Call, strategy: v.Strategy) -> Value:
    function = found.get(0, "fn")
    given = found.get(1, "args")
    args = (given.entries or ()) if isinstance(given, Items) else ()
    notes = noting(found)
    if not isinstance(function, Function) or notes.mode == "replica":
        return v.unknown()
    # Values that are the same on every replica keep their meaning; batches are unknown.
    local = [_of_replica(arg) for arg in args]
    notes.modes.append("replica" if strategy.sure else "plain")
    try:
        if not local:
            # What it is given is not known, rather than nothing.
            return v.PerReplica(found.interpreter.call_unknown(function))
        return v.PerReplica(found.interpreter.call_with(function, local, found.node, found.scope))
    finally:
        notes.modes.pop()


def _of_replica(value: Value) -> Value:
    return value.value if isinstance(value, v.PerReplica) else value


def _scope(found: Call, strategy: v.Strategy) -> Value:
    return v.StrategyScope(strategy)


def _reduce(found: Call, strategy: v.Strategy) -> Value:
    value = found.get(1, "value")
    if isinstance(value, v.PerReplica) and is_mean(found.get(0, "reduce_op")):
        return checks.mean_of_shares(found, value.value)
    return v.unknown()


def _mean_over_towers(found: Call) -> Value:
    value = found.get(0, "value")
    if isinstance(value, v.PerReplica):
        return checks.mean_of_shares(found, value.value)
    return v.unknown()


def _current_strategy(found: Call) -> Value:
    """`tf.distribute.get_strategy()`: surely one that was made only inside of its scope."""
    return v.Strategy(noting(found).mode == "cross")


def _tower_strategy(found: Call) -> Value:
    return v.Strategy()


METHODS: dict[str, Callable[[Call, v.Strategy], Value]] = {
    "run": _run,
    "experimental_run_v2": _run,
    "experimental_run": _run,
    "reduce": _reduce,
    "scope": _scope,
}
"""Methods of a strategy."""

FUNCTIONS: dict[str, Callable[[Call], Value]] = {
    "tensorflow.distribute.get_strategy": _current_strategy,
    "towermigrate.helpers.tower_strategy": _tower_strategy,
    "towermigrate.helpers.mean_over_towers": _mean_over_towers,
}
