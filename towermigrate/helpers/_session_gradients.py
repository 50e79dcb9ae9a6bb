"""Gradients with respect to mirrored variables, and an optimizer's update of every copy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_graphs import TowerGraph, mirrored, writing
from towermigrate.helpers._session_variables import TowerVariable, copies_of

_v1 = tf.compat.v1


def summed_over_copies(gradients_of: Callable[..., Any]) -> Callable[..., Any]:
    """The function that stands in for TensorFlow's `_GradientsHelper`.

    The gradient with respect to a mirrored variable is the sum of those with respect to its copies: the
    towers read different ones. A copy that is not reached adds nothing.
    """

    arguments = inspect.signature(gradients_of)

    def gradients(*args: Any, **kwargs: Any) -> Any:
        towers = mirrored()
        if towers is None:
            return gradients_of(*args, **kwargs)
        asked = arguments.bind(*args, **kwargs).arguments
        copies = [_copies_behind(x, towers) for x in _as_list(asked["xs"])]
        asked["xs"] = [copy for each in copies for copy in each]
        if asked.get("stop_gradients") is not None:
            asked["stop_gradients"] = [
                copy
                for x in _as_list(asked["stop_gradients"])
                for copy in _copies_behind(x, towers)
            ]
        found = iter(gradients_of(**asked))
        return [_sum([next(found) for _ in each]) for each in copies]

    return gradients


def _as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _copies_behind(x: Any, towers: TowerGraph) -> Sequence[Any]:
    """The copies of a variable; also of one that is named by a handle or by its value.

    The value of a reference variable was one tensor, through which everything read it.
    """
    if isinstance(x, tf.Tensor):
        named = x.op.inputs[0] if x.op.type == "ReadVariableOp" else x
        variable = towers.variable_of(named)
        return [copy.handle for copy in variable.copies] if variable is not None else [x]
    return copies_of(x)


def _sum(gradients: Iterable[Any]) -> Any:
    there = [gradient for gradient in gradients if gradient is not None]
    if len(there) < 2:
        return there[0] if there else None
    if all(isinstance(gradient, tf.IndexedSlices) for gradient in there):
        return tf.IndexedSlices(
            tf.concat([each.values for each in there], 0),
            tf.concat([each.indices for each in there], 0),
            there[0].dense_shape,
        )
    return tf.add_n([tf.convert_to_tensor(gradient) for gradient in there])


def applied_to_copies(apply: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for `Optimizer.apply_gradients`: as TF1's, with one update for each copy."""

    def apply_gradients(
        self: Any, grads_and_vars: Any, global_step: Any = None, name: Any = None, **kwargs: Any
    ) -> Any:
        towers = mirrored()
        if towers is None:
            return apply(self, grads_and_vars, global_step, name, **kwargs)
        pairs = list(_checked(grads_and_vars))
        with tf.init_scope():
            self._create_slots([variable for _, variable in pairs])
        with _v1.name_scope(name, self._name) as scope:
            self._prepare()
            updates = [
                update
                for gradient, variable in pairs
                for update in _updates(self, gradient, variable, towers)
            ]
            if global_step is None:
                operation = self._finish(updates, scope)
            else:
                with tf.control_dependencies([self._finish(updates, "update")]):
                    operation = _v1.assign_add(
                        global_step, tf.constant(1, global_step.dtype.base_dtype)
                    )
                operation = tf.group(operation, name=scope)
        if isinstance(operation, tf.Tensor):
            operation = operation.op
        train_ops = _v1.get_collection_ref(_v1.GraphKeys.TRAIN_OP)
        if operation not in train_ops:
            train_ops.append(operation)
        return operation

    return apply_gradients


def _checked(grads_and_vars: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs that have a gradient, after TF1's own checks and with its messages."""
    pairs = tuple(grads_and_vars)
    if not pairs:
        raise ValueError("No variables provided.")
    if all(gradient is None for gradient, _ in pairs):
        raise ValueError(
            f"No gradients provided for any variable: {[str(variable) for _, variable in pairs]}."
        )
    for gradient, variable in pairs:
        private.processor_of(variable)  # raises for what cannot be updated
        if gradient is not None:
            if not isinstance(gradient, (tf.Tensor, tf.IndexedSlices)):
                gradient = tf.convert_to_tensor(gradient)
            yield gradient, variable


def _updates(optimizer: Any, gradient: Any, variable: Any, towers: TowerGraph) -> Iterator[Any]:
    """One update for each copy, with that copy's slots."""
    for index, copy in enumerate(copies_of(variable)):
        with (
            writing(towers, index),
            _v1.name_scope("update_" + copy.op.name),
            private.colocate_with(copy, ignore_existing=True),
        ):
            yield private.processor_of(copy).update_op(_Written(optimizer), gradient)


class _Written:
    """An optimizer whose author wrote the update of reference variables only, with assignments."""

    def __new__(cls, optimizer: Any) -> Any:
        base = _v1.train.Optimizer
        own = type(optimizer)
        if (
            own._resource_apply_dense is base._resource_apply_dense
            and own._apply_dense is not base._apply_dense
        ):
            return super().__new__(cls)
        return optimizer

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    def _resource_apply_dense(self, gradient: Any, variable: Any) -> Any:
        return self._optimizer._apply_dense(gradient, variable)

    def _resource_apply_sparse_duplicate_indices(
        self, values: Any, variable: Any, indices: Any
    ) -> Any:
        return self._optimizer._apply_sparse_duplicate_indices(
            tf.IndexedSlices(values, indices, tf.shape(variable)), variable
        )


def refused(self: Any, *args: Any, **kwargs: Any) -> Any:
    """What stands in for a method that cannot work on copies."""
    raise RuntimeError(
        f"{type(self).__name__} keeps gradients in accumulators of its own and cannot update variables that "
        "are mirrored by session style. Average the towers' gradients and apply them with the optimizer that "
        "it wraps."
    )


__all__ = ["TowerVariable", "applied_to_copies", "refused", "summed_over_copies"]
