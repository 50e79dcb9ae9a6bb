"""Teaches TensorFlow's classes what mirrored variables need; once, and only for graphs that have them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_exports import without_copies
from towermigrate.helpers._session_gradients import summed_over_copies
from towermigrate.helpers._session_graphs import enter, find, here, mirrored, without_strategy
from towermigrate.helpers._session_optimizers import (
    applied_to_copies,
    dense_of_both_kinds,
    refused,
    sparse_of_both_kinds,
    tensorflows_optimizers,
)
from towermigrate.helpers._session_order import reads_after_its_controls
from towermigrate.helpers._session_runs import (
    callables_that_run,
    element_by_name,
    variables_fed_by_name,
    with_devices,
    with_variables,
)
from towermigrate.helpers._session_savers import restoring_copies
from towermigrate.helpers._session_variables import TowerVariable

_v1 = tf.compat.v1
_installed = False
_hooked: list[Any] = []

# Where in TensorFlow, and what makes the function that stands there from the one that stood there.
_Hook = tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]]


def install() -> None:
    """Put the hooks in place, if they are not."""
    global _installed
    if _installed:
        return
    _installed = True
    _v1.Variable.register(TowerVariable)
    for hook in _hooks():
        _put(*hook)
    install_where_loaded()


def install_where_loaded() -> None:
    """The hooks in Keras, once a program has loaded it, which takes a second."""
    losses = sys.modules.get("tf_keras.src.losses")
    if losses is not None and losses not in _hooked:
        _hooked.append(losses)
        _put(losses.Loss, "__call__", _without_strategy)


def _put(
    owner: Any, name: str, made_from: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    before = getattr(owner, name)
    hook = made_from(before)
    hook.__doc__ = before.__doc__
    setattr(owner, name, hook)


def _hooks() -> Iterator[_Hook]:
    yield (*private.GRADIENTS, summed_over_copies)
    yield (*private.SAVEABLES, restoring_copies)
    yield (*private.SUMMARIES, _summaries_of_all_towers)
    yield (*private.INITIAL_VALUES, _after_what_they_read)
    for slots in private.SLOTS:
        yield (*slots, _though_variables_are_shared)
    yield (*private.SESSIONS, with_devices)
    yield (*private.RUNS, with_variables)
    yield (*private.OPERATIONS, reads_after_its_controls)
    yield private.SESSIONS[0], "make_callable", callables_that_run
    yield private.SESSIONS[0], "run", variables_fed_by_name
    yield tf.Graph, "as_default", _mirrored_in_every_thread
    yield tf.Graph, "get_tensor_by_name", element_by_name
    yield tf.Graph, "as_graph_def", without_copies
    yield _v1.train.Optimizer, "apply_gradients", applied_to_copies
    for owner in tensorflows_optimizers():
        for method, of_both_kinds in (
            ("_apply_dense", dense_of_both_kinds),
            ("_apply_sparse", sparse_of_both_kinds),
        ):
            if method in vars(owner):
                yield owner, method, of_both_kinds(owner)
    yield _v1.train.SyncReplicasOptimizer, "apply_gradients", _only_unmirrored


def _summaries_of_all_towers(skip: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: False if mirrored() is not None else skip()


def _mirrored_in_every_thread(as_default: Callable[..., Any]) -> Callable[..., Any]:
    """A thread that builds in a graph begins with `with graph.as_default():`."""

    def in_this_thread(self: Any) -> Any:
        towers = find(self)
        if towers is not None:
            enter(towers)
        return as_default(self)

    return in_this_thread


def _without_strategy(call: Callable[..., Any]) -> Callable[..., Any]:
    """Keras's losses refuse to take a mean in a replica; a tower's mean is the tower's."""

    def in_a_tower(self: Any, *args: Any, **kwargs: Any) -> Any:
        if mirrored() is None:
            return call(self, *args, **kwargs)
        with without_strategy():
            return call(self, *args, **kwargs)

    return in_a_tower


def _after_what_they_read(safe: Callable[..., Any]) -> Callable[..., Any]:
    """An initial value that reads a variable: it then is made from that one's initial value."""

    def safe_initial_value_from_op(name: Any, op: Any, op_cache: Any) -> Any:
        towers = mirrored()
        if towers is not None and op.type == "ReadVariableOp":
            variable = towers.variable_of(op.inputs[0])
            if variable is not None:
                return variable.initialized_value().op
        return safe(name, op, op_cache)

    return safe_initial_value_from_op


def _only_unmirrored(apply: Callable[..., Any]) -> Callable[..., Any]:
    def apply_gradients(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (apply if mirrored() is None else refused)(self, *args, **kwargs)

    return apply_gradients


def _though_variables_are_shared(create: Callable[..., Any]) -> Callable[..., Any]:
    """Slots are new variables also where the towers left `reuse_variables()` on in the outermost scope.

    TensorFlow 0.x made them so, and many programs of that time rely on it.
    """

    def create_slot(primary: Any, *args: Any, **kwargs: Any) -> Any:
        towers = find()
        if towers is None:
            return create(primary, *args, **kwargs)
        # In an update that makes its slots as it goes, it is the copy that is updated.
        primary = towers.variable_of(getattr(primary, "handle", None)) or primary
        scope, before = _v1.get_variable_scope(), here.making_slot
        reused = scope.reuse is True
        here.making_slot = True
        if reused:
            private.set_reuse(scope, False)
        try:
            return create(primary, *args, **kwargs)
        finally:
            here.making_slot = before
            if reused:
                private.set_reuse(scope, True)

    return create_slot
