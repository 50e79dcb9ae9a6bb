"""Variables that towers assign themselves: after the step, every copy has what one tower left.

In TF1 there was one variable, and whichever tower's operation ran last had the last word. A mirrored variable has a
copy on every replica, and TensorFlow lets each replica assign its own: what differs stays apart, and outside of
replicas the first copy is read.
"""

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import values as _values
from tensorflow.python.ops import control_flow_util

_thread = threading.local()


class _Step:
    """Of one graph: which towers are in it, and by a variable's id the variable and the copies that were assigned."""

    def __init__(self) -> None:
        self.towers: set[int] = set()
        self.written: dict[int, tuple[Any, set[int]]] = {}


_steps: "weakref.WeakKeyDictionary[Any, _Step]" = weakref.WeakKeyDictionary()


def note(variable: Any) -> None:
    """Called where a replica assigns to a variable."""
    call = getattr(_thread, "call", None)
    # A trained variable is assigned what is the same on all replicas (clipped weights), and is large.
    if call is None or not isinstance(variable, _values.MirroredVariable) or variable.trainable:
        return
    if variable.aggregation == tf.VariableAggregation.NONE:
        step, place = call
        step.written.setdefault(id(variable), (variable, set()))[1].add(place)


@contextlib.contextmanager
def of_one_tower(index: int | None, policy: str) -> Iterator[None]:
    """Around a tower's body; at the end of the last one's, what the towers assigned is given to all copies.

    Args:
      index: the tower's, None where one trace is every tower's.
      policy: whose values they are: the first tower's of those that assigned where it is "first", else the last's.
    """
    copies = _copies() if index is not None else 1
    if index is None or copies == 1:
        yield
        return
    graph = tf.compat.v1.get_default_graph()
    step = _steps.setdefault(graph, _Step())
    step.towers.add(index % copies)
    before = getattr(_thread, "call", None)
    _thread.call = step, index % copies
    try:
        yield
    finally:
        _thread.call = before
    # A function of each tower's own runs beside the others', in no order; what XLA compiles has one device's resources.
    is_whole = index % copies == copies - 1 and len(step.towers) == copies
    if is_whole and not control_flow_util.GraphOrParentsInXlaContext(graph):
        for variable, places in step.written.values():
            _give_to_all(variable, min(places) if policy == "first" else max(places))
        step.written.clear()


def _copies() -> int:
    """How many copies a variable has in this process."""
    if not tf.distribute.has_strategy():
        return 1
    return len(tf.distribute.get_strategy().extended.worker_devices)


def _give_to_all(variable: Any, place: int) -> None:
    copies = variable.values
    with tf.device(copies[place].device):
        value = copies[place].read_value()
    for index, copy in enumerate(copies):
        if index != place:
            with tf.device(copy.device):
                copy.assign(value, read_value=False)
