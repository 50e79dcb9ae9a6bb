"""Which graphs are mirrored, over which devices, and the tower that is being built."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private

_ATTRIBUTE = "_towermigrate_session_style"


@dataclass(eq=False)
class TowerGraph:
    """What session style knows of one graph.

    `gpu_pieces` are the memory limits, in megabytes, of the logical devices of each physical GPU, empty where
    none is split. `told` is whether the program said how many towers it has, `begun` whether one was built, and `entered` counts the
    threads that build in the graph. `strategy` is None where nothing is mirrored: towers then only get their devices. `creator` makes its variables, and `variables` are the
    mirrored ones by the name of each copy's handle, with the copy's index. `read_after` are a variable and what reads it after an update of it.
    `checked` is the graph's version
    when its writes were last compared, `looked_at` how many operations it had, `writes` what was counted.
    `places` numbers variables by name, and `written_above` has the numbers, as bits, of those written before an operation;
    `in_step` are the names of writes of one copy that another hands on, or was handed. `writers` counts what writes
    a variable, and `together` has what gives all copies the first one's value, of variables that have two writers.
    `turns` numbers the variables that are written in turn, and `locks` are what they take turns by;
    `written_in_turn` are those writes, and `read_at_once` the reads that all of them come after. `looked_for_races` counts the sets of fetches that were, and `told_of` are the variables that a warning named.
    """

    graph: Any
    devices: tuple[str, ...]
    gpu_pieces: tuple[tuple[int, ...], ...] = ()
    told: bool = True
    begun: bool = False
    strategy: Any = None
    creator: Any = None
    entered: int = 0
    threads: Any = field(default_factory=threading.local)
    variables: dict[str, tuple[Any, int]] = field(default_factory=dict)
    plans: dict[Any, Any] = field(default_factory=dict)
    read_after: list[tuple[Any, Any]] = field(default_factory=list)
    checked: int = 0
    looked_at: int = 0
    writes: dict[str, list[Any]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    written_above: dict[Any, int] = field(default_factory=dict)
    in_step: set[str] = field(default_factory=set)
    writers: dict[str, int] = field(default_factory=dict)
    together: dict[str, Any] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    locks: dict[int, Any] = field(default_factory=dict)
    written_in_turn: dict[str, list[Any]] = field(default_factory=dict)
    read_at_once: dict[str, list[Any]] = field(default_factory=dict)
    looked_for_races: int = 0
    told_of: set[str] = field(default_factory=set)
    lock: Any = field(default_factory=threading.RLock)

    @property
    def replicas(self) -> int:
        return len(self.devices)

    def variable_of(self, handle: Any) -> Any:
        """The mirrored variable that a resource tensor is a copy of, or None."""
        if isinstance(handle, tf.Tensor) and handle.dtype == tf.resource:
            found = self.variables.get(handle.op.name)
            return None if found is None else found[0]
        return None


class _Here(threading.local):
    """What this thread builds: `replica` the tower's; which `tower`, if any; a slot of an optimizer.

    Where `writes` is a list, only the first copies are written, by the operations in it.
    """

    replica: int = 0
    tower: int | None = None
    making_slot: bool = False
    writes: list[Any] | None = None


here = _Here()


def find(graph: Any = None) -> TowerGraph | None:
    """What is known of a graph (the default one), None of one that no tower statement has seen."""
    if graph is None:
        graph = tf.compat.v1.get_default_graph()
    found: TowerGraph | None = getattr(private.outermost(graph), _ATTRIBUTE, None)
    return found


def mirrored(graph: Any = None) -> TowerGraph | None:
    """As `find`, but None also where nothing is mirrored."""
    found = find(graph)
    return found if found is not None and found.strategy is not None else None


def enter(towers: TowerGraph) -> None:
    """What this thread builds in the graph from now on is mirrored; outside of towers it is replica 0's."""
    if towers.strategy is None or getattr(towers.threads, "entered", None) is not None:
        return
    towers.threads.entered = TowerContext(towers.strategy, 0)
    towers.entered += 1
    private.add_variable_creator(towers.graph, towers.creator)
    private.enter_replica(towers.graph, towers.threads.entered)


def leave(towers: TowerGraph) -> bool:
    """Undo `enter`, where this thread alone did it, last, and no tower was begun; whether that could be."""
    if towers.begun:
        return False
    if towers.strategy is None:
        return True
    context = getattr(towers.threads, "entered", None)
    if context is None or towers.entered != 1:
        return False
    if not private.remove_variable_creator(towers.graph, towers.creator):
        return False
    private.leave_replica(towers.graph, context)
    return True


def remember(towers: TowerGraph) -> None:
    """Keep it with its graph, for as long as that lives."""
    setattr(towers.graph, _ATTRIBUTE, towers)


@contextlib.contextmanager
def without_strategy() -> Iterator[None]:
    """As if there were no strategy, for what would take the towers for replicas of one step."""
    graph = tf.compat.v1.get_default_graph()
    mode = private.enter_no_replica(graph)
    try:
        yield
    finally:
        private.leave_no_replica(graph, mode)


class TowerContext(tf.distribute.ReplicaContext):  # type: ignore[misc]
    """The replica that a tower is. What TensorFlow would do in all replicas at once, it does as TF1 did.

    Metrics, moving averages and `init_from_checkpoint` meet the other replicas in `merge_call`. A tower
    program has met them by hand: a variable is one to it, and each assignment reaches every copy.
    """

    def merge_call(self, merge_fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        with without_strategy():
            return tf.distribute.get_replica_context().merge_call(merge_fn, args, kwargs)


@contextlib.contextmanager
def replica(towers: TowerGraph, index: int) -> Iterator[None]:
    """What is built inside belongs to one replica: it reads that copy of each variable."""
    before = here.replica
    context = TowerContext(towers.strategy, index)
    graph = tf.compat.v1.get_default_graph()
    private.enter_replica(graph, context)
    here.replica = index
    try:
        yield
    finally:
        here.replica = before
        private.leave_replica(graph, context)


@contextlib.contextmanager
def writing_first(towers: TowerGraph) -> Iterator[list[Any]]:
    """As `replica` of the first one, and assignments inside write that copy only. Yields them, as they are made."""
    before = here.writes
    with replica(towers, 0):
        here.writes = []
        try:
            yield here.writes
        finally:
            here.writes = before
