"""Batch-norm moving averages under towers: which tower's updates count, and when.

In TF1 there is one moving average, and a tower program usually runs the updates of one tower, the
last (`get_collection(UPDATE_OPS, scope)` after the loop), the first, or all of them
(`get_collection(UPDATE_OPS)`). Under `tf.distribute` each replica has a component of its own, and reading
them gives the mean, which is another number (FACTS traps 9 and 18).
"""

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib, values, values_util
from tensorflow.python.ops import control_flow_util, resource_variable_ops
from tensorflow.python.training import moving_averages

from towermigrate.helpers._all_reduce import all_reduced
from towermigrate.helpers._reached import may_meet

POLICIES = ("last", "first", "all", "mean")

# `current` is the policy of the tower that is traced and whether it only looks; `moves` the averages, and how far they
# go, of an update that is only told, and `meet` whether replicas can meet behind it.
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
    """A moving average that goes on from the mean of what the towers make of it.

    TensorFlow's own reads the mean outside of the towers only, and in a tower, where an evaluation reads it, the tower's.
    Where towers cannot meet, each keeps its own.
    """

    def meets(self) -> bool:
        """Whether replicas tell each other their updates."""
        return bool(getattr(_state, "meet", False))

    def moved_to(self, value: Any, rate: Any) -> Any:
        """Update the average by the mean of what the replicas would make of it."""
        del rate
        towers = distribute_lib.get_replica_context().num_replicas_in_sync
        return self.assign(all_reduced(value, *_CANNOT_MEET) / towers)


class TowerStatistic(MeanStatistic):
    """A moving average that one tower owns: every read, on every replica, is of its component.

    Every replica still updates its own component, so that no replica waits for another; those of
    the other towers are never read. On several workers, whose replicas do not see each other's
    components, all of them take the one tower's update, so that the chief saves what TF1 saved.
    """

    _owner: int = 0
    _is_first: bool = False

    def assign(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return super().assign(self._of_the_one(value), *args, **kwargs)

    def assign_sub(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return super().assign_sub(self._of_the_one(value), *args, **kwargs)

    def _of_the_one(self, value: Any) -> Any:
        if not self.meets() or not _in_training_tower():
            return value
        return _of_one_replica(value, self._is_first)

    def meets(self) -> bool:
        """Whether replicas tell each other their updates."""
        return _on_several_workers(self.distribute_strategy)

    def moved_to(self, value: Any, rate: Any) -> Any:
        """Update the average by what the one replica alone would make of it."""
        del rate
        return self.assign(value)

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


class SharedStatistic(MeanStatistic):
    """A moving average that every tower moves, one after another, as a run of all updates does in TF1.

    TF1 gives these updates no order. Its executor takes first what was built last: of 25 runs of small programs, 18 to 25
    went from the last tower to the first (TF 1.15.5, two and four towers, CPU), and so it is here.
    The components are alike: each replica makes the moves of all. A move by the rate r of the difference to what all
    saw counts (1 - r) ** (towers that go on from where it left the average) of it.
    """

    def _get_cross_replica(self) -> Any:
        return self._get_replica(0)

    def value(self) -> Any:
        if values_util.is_saving_non_distributed():
            return self._primary.value()
        return self._get().value()

    def assign(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        self._refuse_in_towers()
        return super().assign(value, *args, **kwargs)

    def assign_sub(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        self._refuse_in_towers()
        return super().assign_sub(value, *args, **kwargs)

    def _refuse_in_towers(self) -> None:
        if _in_training_tower():
            raise ValueError(
                'batch_norm="all" knows the moving averages of tf.layers.batch_normalization and of tf_slim; '
                f"{self.name} is updated by something else. Take the last or the first tower's update, or the mean."
            )

    def meets(self) -> bool:
        """Whether replicas tell each other their updates."""
        return True

    def moved_to(self, value: Any, rate: Any) -> Any:
        """Update the average by what every replica alone would make of it, `rate` of the way to its own statistic."""
        return super().assign_sub(_of_all(self._get().value() - value, rate))


# What stands in the errors where replicas cannot tell each other their updates.
_CANNOT_MEET = (
    "Batch normalisation whose moving averages every tower updates",
    "Take the last or the first tower's update in a tower that is compiled by itself.",
)


def _of_all(move: Any, rate: Any) -> Any:
    """What the moves of all replicas come to where each went `rate` of the way, the first replica's last."""
    behind = distribute_lib.get_replica_context().replica_id_in_sync_group
    left = 1 - tf.cast(rate, move.dtype)
    return all_reduced(move * left ** tf.cast(behind, move.dtype), *_CANNOT_MEET)


def _in_training_tower() -> bool:
    """Whether a tower is traced, in a replica, whose updates count."""
    current = getattr(_state, "current", None)
    if current is None or current[1]:
        return False
    return tf.distribute.has_strategy() and distribute_lib.get_replica_context() is not None


def _on_several_workers(strategy: Any) -> bool:
    return bool(strategy.extended._in_multi_worker_mode())


def _of_one_replica(value: Any, first: bool) -> Any:
    """The value of the first replica of all workers, or of the last, on every one."""
    context = distribute_lib.get_replica_context()
    the_one = 0 if first else context.num_replicas_in_sync - 1
    value = tf.convert_to_tensor(value)
    # Not a product: another tower's infinity would be a NaN.
    own = tf.where(context.replica_id_in_sync_group == the_one, value, tf.zeros_like(value))
    return all_reduced(own, *_CANNOT_MEET)


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
    kind = {"mean": MeanStatistic, "all": SharedStatistic}.get(policy, TowerStatistic)
    made = kind(variable.distribute_strategy, variable.values, variable.aggregation)
    if isinstance(made, TowerStatistic):
        made._is_first = policy == "first"
        made._owner = 0 if made._is_first else len(variable.values) - 1
    return made


@contextlib.contextmanager
def tower_statistics(policy: str, looking: bool) -> Iterator[None]:
    """The meaning of moving-average updates in one tower call, on this thread."""
    before = getattr(_state, "current", None)
    _state.current = (policy, looking)
    _patch_assign_moving_average()
    _patch_layers()
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
    if distribute_lib.get_replica_context() is None:
        return _tensorflow_assign_moving_average(variable, value, decay, zero_debias, name)
    if policy == "all" and zero_debias:
        raise ValueError(
            f'batch_norm="all" cannot be with zero_debias_moving_mean, which {variable.name} is updated with. Take '
            "the last or the first tower's update, or the mean."
        )
    meeting = _before_the_branch(variable, value, zero_debias)
    if meeting is None:
        if policy != "mean":  # which TensorFlow takes
            value = _of_towers(variable, value, decay, policy)
        return _tensorflow_assign_moving_average(variable, value, decay, zero_debias, name)
    # TensorFlow's would meet the other replicas in the branch. What all of them come to is the same, so that each may
    # move its own copy, as long as all take the same branch.
    with meeting.as_default():
        moved = _of_towers(variable, value, decay, policy)
    own = variable._get()
    return own.assign_sub((own - tf.cast(moved, own.dtype)) * tf.cast(1.0 - decay, own.dtype))


def _before_the_branch(variable: Any, value: Any, zero_debias: bool) -> Any:
    """The graph of the replica, where an update stands in a branch inside of it: slim's, for `is_training` of a tensor."""
    graph = getattr(threading.current_thread(), "graph", None)
    if graph is None or may_meet():
        return None
    if zero_debias or getattr(value, "graph", None) is not graph:
        raise ValueError(
            f"{variable.name} is a moving average that is updated where the replicas cannot meet: in a tf.cond, a loop or a "
            "tf.function of its own (jit_compile) inside of a tower. Make the statistic before it"
            f"{', without zero_debias' if zero_debias else ''}, or take the branch in Python."
        )
    return graph


def _of_towers(variable: Any, value: Any, decay: Any, policy: str) -> Any:
    """What the average is moved towards, the same on every replica."""
    context = distribute_lib.get_replica_context()
    if policy == "mean":
        return (
            all_reduced(tf.convert_to_tensor(value), *_CANNOT_MEET) / context.num_replicas_in_sync
        )
    if policy == "all":
        own = variable.value()
        difference = own - tf.cast(value, own.dtype)
        return own - _of_all(difference, 1.0 - tf.cast(decay, own.dtype))
    if _on_several_workers(variable.distribute_strategy):
        # TensorFlow takes the mean over the replicas, of what is the same on all of them.
        return _of_one_replica(value, policy == "first")

    def chosen(strategy: Any, per_tower: Any) -> Any:
        local = strategy.experimental_local_results(per_tower)
        return strategy.extended.broadcast_to(local[-1 if policy == "last" else 0], variable)

    return context.merge_call(chosen, args=(value,))


def _patch_assign_moving_average() -> None:
    # Looked up by attribute on the module at each call, in TensorFlow and in tf_slim.
    moving_averages.assign_moving_average = _assign_moving_average


def _patch_layers() -> None:
    """Have layers of batch normalisation update an average outside of their `tf.cond`, where replicas can meet."""
    for layer in tf.compat.v1.layers.BatchNormalization.__mro__:
        if "_assign_moving_average" in vars(layer) and "_towermigrate" not in vars(layer):
            layer._towermigrate = True
            layer._assign_moving_average = _held_average(layer._assign_moving_average)
            layer._assign_new_value = _held_value(layer._assign_new_value)
            layer.add_update = _moving_once(layer)


def _moving_once(layer_class: Any) -> Any:
    def add_update(layer: Any, updates: Any, *args: Any, **kwargs: Any) -> None:
        def moved() -> Any:
            before = getattr(_state, "moves", None), getattr(_state, "meet", False)
            moves: list[tuple[Any, Any]] = []
            _state.moves, _state.meet = moves, may_meet()
            try:
                value = updates()
            finally:
                _state.moves, _state.meet = before
            if not moves:
                return value
            variable, rate = moves[0]  # those of a condition's branches are of one average
            return variable.moved_to(value, rate)

        training = callable(updates) and _in_training_tower()
        super(layer_class, layer).add_update(moved if training else updates, *args, **kwargs)

    return add_update


def _holds(variable: Any) -> bool:
    """Whether an update of an average is to be told and not made."""
    if getattr(_state, "moves", None) is None:
        return False
    return isinstance(variable, MeanStatistic) and variable.meets()


def _held_average(update: Any) -> Any:
    @functools.wraps(update)
    def told(layer: Any, variable: Any, value: Any, momentum: Any, inputs_size: Any) -> Any:
        if not _holds(variable):
            return update(layer, variable, value, momentum, inputs_size)
        _state.moves.append((variable, 1.0 - momentum))
        own = variable._get().value()
        moved = own - (own - tf.cast(value, own.dtype)) * tf.cast(1.0 - momentum, own.dtype)
        return moved if inputs_size is None else tf.where(inputs_size > 0, moved, own)

    return told


def _held_value(update: Any) -> Any:
    @functools.wraps(update)
    def told(layer: Any, variable: Any, value: Any) -> Any:
        if not _holds(variable):
            return update(layer, variable, value)
        _state.moves.append((variable, 1.0 - layer.momentum))
        return value

    return told
