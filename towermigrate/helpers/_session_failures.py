"""Runs that fail: the error that TF1 raised of variables without a value, and copies that stay alike."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_checks import handle_behind, is_write, written_handle
from towermigrate.helpers._session_graphs import TowerGraph
from towermigrate.helpers._session_order import needed_for

# Kernels of resources say each of these of a variable that has no value, those of references the last one only.
_MAY_BE_UNINITIALIZED = (
    tf.errors.InternalError,
    tf.errors.NotFoundError,
    tf.errors.FailedPreconditionError,
)
# After these the session is of no use, or closes.
_SESSION_ENDS = (tf.errors.AbortedError, tf.errors.CancelledError, tf.errors.UnavailableError)

# Fetches of tensors, operations to run, and feeds, in one run of the session that failed.
_Run = Callable[[list[Any], list[Any], dict[Any, Any]], Any]


def as_references_failed(error: Any, variable_of: Callable[[Any], Any], run: _Run) -> Any:
    """The error itself, or TF1's where the operation that failed met a variable without a value.

    Whether it did is asked of the session, as the words of the kernels change.

    Args:
      variable_of: gives the variable of a handle, or None.
    """
    operation = getattr(error, "op", None)
    if operation is None or not isinstance(error, _MAY_BE_UNINITIALIZED):
        return error
    handles = [handle_behind(each) for each in operation.inputs if each.dtype == tf.resource]
    found = {id(each): each for handle in handles if (each := variable_of(handle)) is not None}
    for variable in found.values():
        if _is_uninitialized(variable, run):
            said = f"Attempting to use uninitialized value {variable.op.name}\n\t [[{{{{node {operation.name}}}}}]]"
            return tf.errors.FailedPreconditionError(error.node_def, operation, said)
    return error


def bring_together(
    error: Exception, towers: TowerGraph, fetches: list[Any], targets: list[Any], run: _Run
) -> None:
    """Give the copies the first one's value, of what a run that failed writes.

    It may have ended between an optimizer's update and what hands it on.
    """
    if isinstance(error, _SESSION_ENDS):
        return
    written = {
        found[0].name: found[0]
        for op in needed_for([*fetches, *targets])
        if is_write(op) and (found := towers.variables.get(written_handle(op)))
    }
    variables = [each for each in written.values() if len(each.copies) > 1]
    values = _values([_first_read(each) for each in variables], run)
    if not values:  # one has none yet: what has is found one by one
        pairs = [(each, _values([_first_read(each)], run)) for each in variables]
        variables = [each for each, value in pairs if value]
        values = [value[0] for _, value in pairs if value]
    others = [
        (copy.initializer, value)
        for variable, value in zip(variables, values, strict=True)
        for copy in variable.copies[1:]
    ]
    if others:
        feeds = {initializer.inputs[1].ref(): value for initializer, value in others}
        with contextlib.suppress(tf.errors.OpError):  # what is to be told is the first one
            run([], [initializer for initializer, _ in others], feeds)


def _first_read(variable: Any) -> Any:
    return private.graph_element(getattr(variable, "copies", [variable])[0])


def _is_uninitialized(variable: Any, run: _Run) -> bool:
    try:
        run([_first_read(variable)], [], {})
    except tf.errors.FailedPreconditionError:
        return True
    except tf.errors.OpError:
        pass
    return False


def _values(reads: list[Any], run: _Run) -> list[Any]:
    """What the reads give; nothing where one of them fails."""
    try:
        return list(run(reads, [], {})) if reads else []
    except tf.errors.OpError:
        return []
