"""Batch-norm moving averages under towers: which tower's updates count, and when.

In TF1 there is one moving average, and a tower program usually runs the updates of one tower, the
last (`get_collection(UPDATE_OPS, scope)` after the loop) or the first. Under `tf.distribute` each
replica has a component of its own, and reading them gives the mean, which is another number (FACTS
traps 9 and 18).
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib, values, values_util
from tensorflow.python.ops import control_flow_util, resource_variable_ops
from tensorflow.python.training import moving_averages

POLICIES = ("last", "first", "mean")

_state = threading.local()


class _StillWhileLooking:
    """A moving average that a tower which only looks leaves as it is; mixed into a variable."""

    def assign(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return value if _looking() else super().assign(value, *args, **kwargs)  # type: ignore[misc]

    def assign_sub(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if _looking():
            return self.value()  # type: ignore[attr-defined]
        return super().assign_sub(value, *args, **kwargs)  # type: ignore[misc]

    def assign_add(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if _looking():
            return self.value()  # type: ignore[attr-defined]
        return super().assign_add(value, *args, **kwargs)  # type: ignore[misc]


class MeanStatistic(_StillWhileLooking, values.SyncOnReadVariable):  # type: ignore[misc]
    """A moving average read as the mean of the towers' own, TensorFlow's meaning."""


class TowerStatistic(MeanStatistic):
    """A moving average that one tower owns: every read, on every replica, is of its component.

    Every replica still updates its own component, so that no replica waits for another; those of
    the other towers are never read.
    """

    _owner: int = 0

    def _get_cross_replica(self) -> Any:
        return self._get_replica(self._owner)

    def _get(self) -> Any:
        if values_util.is_saving_non_distributed():
            return self._primary
        graph = tf.compat.v1.get_default_graph()
        # A compiled region holds one device's resources only.
        if not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(graph):
            return super()._get()
        return self._get_replica(self._owner)

    def value(self) -> Any:
        if values_util.is_saving_non_distributed():
            return self._primary.value()
        return self._get().value()


_plain_statistics: dict[Any, type] = {}


def _plain_statistic(kind: Any) -> type:
    if kind not in _plain_statistics:
        _plain_statistics[kind] = type(f"Tower{kind.__name__}", (_StillWhileLooking, kind), {})
    return _plain_statistics[kind]


def as_statistic(variable: Any, policy: str) -> Any:
    """`variable`, a variable synchronised on reading, with the towers' meaning of `policy`."""
    if not isinstance(variable, values.SyncOnReadVariable):
        if isinstance(variable, resource_variable_ops.BaseResourceVariable):
            # No strategy, so one variable and no policy. It stays the same object: a second one
            # would delete its resource.
            variable.__class__ = _plain_statistic(type(variable))
        return variable  # as it is where it is one of a TPU's own kinds
    made = (MeanStatistic if policy == "mean" else TowerStatistic)(
        variable.distribute_strategy, variable.values, variable.aggregation
    )
    if policy != "mean":
        made._owner = len(variable.values) - 1 if policy == "last" else 0
    return made


@contextlib.contextmanager
def tower_statistics(policy: str, looking: bool) -> Iterator[None]:
    """The meaning of moving-average updates in one tower call, on this thread."""
    before = getattr(_state, "current", None)
    _state.current = (policy, looking)
    _patch_assign_moving_average()
    try:
        yield
    finally:
        _state.current = before


def _looking() -> bool:
    current = getattr(_state, "current", None)
    return current is not None and bool(current[1])


_tensorflow_assign_moving_average = moving_averages.assign_moving_average


def _assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """`assign_moving_average` (what `tf_slim` calls) with the policy of the tower that calls it.

    TensorFlow's takes the mean of the replicas' values; outside of towers nothing changes.
    """
    current = getattr(_state, "current", None)
    if current is None:
        return _tensorflow_assign_moving_average(variable, value, decay, zero_debias, name)
    policy, looking = current
    if looking:
        return tf.identity(variable)
    if not isinstance(variable, values.DistributedVariable):
        return _tensorflow_assign_moving_average(variable, value, decay, zero_debias, name)
    context = distribute_lib.get_replica_context()
    if context is None or policy == "mean":
        return _tensorflow_assign_moving_average(variable, value, decay, zero_debias, name)

    def chosen(strategy: Any, per_tower: Any) -> Any:
        local = strategy.experimental_local_results(per_tower)
        return strategy.extended.broadcast_to(local[-1 if policy == "last" else 0], variable)

    value = context.merge_call(chosen, args=(value,))
    return _tensorflow_assign_moving_average(variable, value, decay, zero_debias, name)


def _patch_assign_moving_average() -> None:
    # Looked up by attribute on the module at each call, in TensorFlow and in tf_slim.
    moving_averages.assign_moving_average = _assign_moving_average
