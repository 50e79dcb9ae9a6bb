"""Session style: a TF1 tower program under `tf.distribute.MirroredStrategy`, in its graph and its session."""

from __future__ import annotations

import contextlib
import itertools
import logging
import operator
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeVar, overload

import tensorflow as tf

from towermigrate.helpers import _session_graphs as graphs
from towermigrate.helpers import _session_hooks, _session_tensorflow, _session_variables
from towermigrate.helpers._quiet import no_lines_of_strategies
from towermigrate.helpers._session_graphs import TowerGraph, here
from towermigrate.helpers.strategy import replica_devices

_log = logging.getLogger("towermigrate")
_v1 = tf.compat.v1
_T = TypeVar("_T")

_VARIABLES = ("VariableV2", "Variable", "VarHandleOp")
_strategies: dict[tuple[str, ...], Any] = {}


def mirror_variables(num_towers: int | None = None, *more: int | None) -> None:
    """From here on, each variable of the default graph has a copy on every replica's device.

    The program goes on as it was: names, collections, savers, optimizers, sessions and summaries mean what
    they meant under TensorFlow 1. Call it where the graph is begun, before the first variable; a second call
    for the same graph changes nothing, but that a call with a number, before the first variable and the first
    tower, settles what one without a number could not know.

    Args:
      num_towers: how many towers the program has. The environment variable `TOWERMIGRATE_DEVICES`
        (`cpu:4`, `gpu:0,1`, `gpu:2`) chooses the replicas' devices; without it they are as many GPUs as
        there are towers, or all that are here, or else so many virtual CPUs. Fewer replicas than towers
        are shared by them. None takes every GPU, or one CPU.
      *more: how many towers other loops of the same graph have: the largest number counts.

    On one device nothing needs a copy: variables stay what they were. If the graph has variables already,
    none is mirrored, which one warning says; the towers then only get their devices.

    Raises:
      RuntimeError: TensorFlow executes eagerly, also around a `tf.function`: there is no graph for a
        session.
      ValueError: the devices named are not here.

    Example:
      >>> with tf.Graph().as_default():
      ...     mirror_variables(2)
      ...     w = tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.ones_initializer())
      ...     w.name, [copy.device[-5:] for copy in w.copies]
      ('w:0', ['CPU:0', 'CPU:1'])

    Source: `tf.distribute.MirroredStrategy`; the TF1 idiom is "towers" in the TensorFlow 1 tutorial
    "Convolutional Neural Networks" (cifar10_multi_gpu_train.py).
    """
    # The graph of a tf.function is no session's, and what is entered would outlive it.
    if _v1.executing_eagerly_outside_functions():
        raise RuntimeError(
            "mirror_variables() was called, or towers(), while TensorFlow executes eagerly. Session style needs a graph: "
            "call tf.compat.v1.disable_v2_behavior() at the top of the script, or build inside of "
            "`with tf.Graph().as_default():`."
        )
    told = [each for each in (num_towers, *more) if each is not None and each >= 1]
    graph = _session_tensorflow.outermost(_v1.get_default_graph())
    found = graphs.find(graph)
    has_variables = any(operation.type in _VARIABLES for operation in graph.get_operations())
    if found is not None:
        if not told or found.told or has_variables or not graphs.leave(found):
            graphs.enter(found)
            return
    devices, pieces = replica_devices(max(told, default=None))
    towers = TowerGraph(graph, tuple(devices), gpu_pieces=pieces, told=bool(told))
    if has_variables:
        _log.warning(
            "towermigrate: the graph has variables already, so none is mirrored: the towers share them, as "
            "they did. Call mirror_variables() before the first variable."
        )
    elif len(devices) > 1:
        no_lines_of_strategies()
        if towers.devices not in _strategies:
            _strategies[towers.devices] = tf.distribute.MirroredStrategy(
                devices, cross_device_ops=tf.distribute.ReductionToOneDevice()
            )
        towers.strategy = _strategies[towers.devices]
        towers.creator = _session_variables.create
    _session_hooks.install()
    graphs.remember(towers)
    graphs.enter(towers)


@overload
def towers(iterable: Iterable[_T], first: int = 0) -> Iterator[_T]: ...
@overload
def towers(iterable: Callable[[], object], first: int = 0) -> Iterator[int]: ...
def towers(iterable: Any, first: int = 0) -> Iterator[Any]:
    """The header of a tower loop: `for i in tm.towers(range(num_gpus)):`.

    What turn k builds belongs to replica `first + k` modulo the number of replicas: it is placed on that device
    and reads that copy of each variable. The body stays what it was, so appends, `break`, `continue`,
    `return`, scopes and reuse mean what they meant.

    Args:
      iterable: what the loop goes over; each turn is given its next item. Or the condition of a `while`, as
        a function of no arguments that is asked before each turn, outside of the towers:
        `for _ in tm.towers(lambda: i < num_gpus):` is `while i < num_gpus:`.
      first: the replica of the first turn, for a loop over a part of the devices (`devices[2:]`: 2). No value
        depends on it, only which device computes it.

    Yields:
      The items; for a condition, the number of the turn, from 0.

    Where `mirror_variables` has not been called and the graph has no variables yet, it is called here, with
    the length of `iterable`. In eager mode nothing is mirrored or placed.

    Raises:
      RuntimeError: in a `tf.function` of an eager program.

    Example:
      >>> with tf.Graph().as_default():
      ...     mirror_variables(2)
      ...     for i in towers(range(2)):
      ...         with tf.compat.v1.variable_scope("net", reuse=i > 0):
      ...             w = tf.compat.v1.get_variable("w", [3])
      ...         print(w.name, w.device[-5:])
      net/w:0 CPU:0
      net/w:0 CPU:1

    Source: the TF1 tower loop, `for i in range(num_gpus): with tf.device("/gpu:%d" % i):`.
    """
    items = iterable
    if callable(iterable) and not hasattr(iterable, "__iter__"):
        items = itertools.takewhile(lambda _: iterable(), itertools.count())
    begin = operator.index(first)
    for index, item in enumerate(items):
        if graphs.find() is None and not tf.executing_eagerly():
            mirror_variables(len(iterable) if isinstance(iterable, Sized) else None)
        with _tower(index, begin + index):
            yield item


@contextlib.contextmanager
def _tower(index: int, place: int) -> Iterator[None]:
    found = graphs.find()
    before = here.tower
    with contextlib.ExitStack() as stack:
        if found is not None:  # not eager, nor in another graph by now
            graphs.enter(found)
            found.begun = True
            _session_hooks.install_where_loaded()
            replica = place % found.replicas
            stack.enter_context(_v1.device(None))
            stack.enter_context(_v1.device(found.devices[replica]))
            if found.strategy is not None:
                stack.enter_context(graphs.replica(found, replica))
        here.tower = index
        try:
            yield
        finally:
            here.tower = before


@contextlib.contextmanager
def device(device_name_or_function: Any) -> Iterator[None]:
    """As `tf.device`, but in a tower GPUs and device functions are not heard: its replica has its device.

    Args:
      device_name_or_function: as for `tf.device`. In a tower, a CPU that is named is heard where the
        replicas are not CPUs themselves.

    Example:
      >>> with tf.Graph().as_default():
      ...     mirror_variables(2)
      ...     for i in towers(range(2)):
      ...         with device("/gpu:%d" % i):
      ...             print(tf.constant(1.0).device[-5:])
      CPU:0
      CPU:1

    Source: `tf.device`; TF1 tower programs pinned each tower to a GPU, and variables by a function.
    """
    found = graphs.find() if here.tower is not None else None
    if found is not None:
        device_name_or_function = _heard(device_name_or_function, found)
    with _v1.device(device_name_or_function):
        yield


def _heard(wanted: Any, found: TowerGraph) -> Any:
    if wanted is None or (callable(wanted) and not isinstance(wanted, str)):
        return ""
    named = wanted if isinstance(wanted, str) else wanted.to_string()
    is_cpu = tf.DeviceSpec.from_string(named).device_type == "CPU"
    return named if is_cpu and not any("CPU" in each for each in found.devices) else ""
