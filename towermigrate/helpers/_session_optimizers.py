"""An optimizer's update of a variable: of its first copy, whose value the others get.

So an update and its slots cost what they cost TF1, copies cannot drift apart, and what an author's optimizer does in its
update it does once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_graphs import TowerGraph, mirrored, writing_first
from towermigrate.helpers._session_variables import TowerVariable, copies_of, hand_on

_v1 = tf.compat.v1


def applied_to_copies(apply: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for `Optimizer.apply_gradients`: as TF1's, and the other copies are given the new values."""

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
        if isinstance(global_step, TowerVariable):
            # Hooks and loops fetch it beside the update in every step: this way in the same run.
            with tf.control_dependencies([operation]), tf.device(global_step.copies[0].device):
                towers.read_after.append((global_step, global_step.copies[0].value()))
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
    """The update of the first copy, and what hands on all that it wrote."""
    first = copies_of(variable)[0]
    with (
        _v1.name_scope("update_" + first.op.name),
        private.colocate_with(first, ignore_existing=True),
    ):
        with writing_first(towers) as writes:
            update = private.processor_of(first).update_op(_AsWritten(optimizer), gradient)
        yield update
        yield from hand_on(towers, update, writes)


class _AsWritten:
    """An optimizer that updates a copy as its author's class would have updated a reference variable.

    TensorFlow asks `_apply_dense` and `_apply_sparse` of reference variables, which TF1's were, and the
    `_resource_` methods of copies. Where the author wrote the former, the latter is another formula, or
    TensorFlow's own of the class beneath.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    def _resource_apply_dense(self, gradient: Any, variable: Any) -> Any:
        return self._either(
            ("_apply_dense",),
            lambda: self._optimizer._apply_dense(gradient, variable),
            lambda: self._optimizer._resource_apply_dense(gradient, variable),
        )

    def _resource_apply_sparse_duplicate_indices(
        self, values: Any, variable: Any, indices: Any
    ) -> Any:
        slices = tf.IndexedSlices(values, indices, tf.shape(variable))
        return self._either(
            ("_apply_sparse", "_apply_sparse_duplicate_indices"),
            lambda: self._optimizer._apply_sparse_duplicate_indices(slices, variable),
            lambda: self._optimizer._resource_apply_sparse_duplicate_indices(
                values, variable, indices
            ),
        )

    def _either(
        self, names: tuple[str, ...], of_references: Callable[[], Any], of_copies: Callable[[], Any]
    ) -> Any:
        kind = type(self._optimizer)
        if not any(_is_the_authors(kind, name) for name in names):
            return of_copies()
        try:
            return of_references()
        except (AttributeError, NotImplementedError, TypeError, ValueError):
            # It calls TensorFlow's kernels of references itself; then its author wrote both methods.
            if not any(_is_the_authors(kind, "_resource" + name) for name in names):
                raise
            return of_copies()


def _is_the_authors(kind: type, method: str) -> bool:
    for owner in kind.__mro__:
        if method in vars(owner):
            return not owner.__module__.startswith("tensorflow.")
    return False


def tensorflows_optimizers() -> Iterator[type]:
    """TensorFlow's own classes of optimizers."""
    for name in dir(_v1.train):
        if name.endswith("Optimizer") and name not in ("Optimizer", "SyncReplicasOptimizer"):
            yield getattr(_v1.train, name)


def dense_of_both_kinds(owner: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What stands in for a class's `_apply_dense`: an author's own may call it with a copy."""

    def made_from(apply: Callable[..., Any]) -> Callable[..., Any]:
        def _apply_dense(self: Any, grad: Any, var: Any) -> Any:
            if hasattr(var, "handle") and mirrored() is not None:
                return owner._resource_apply_dense(self, grad, var)  # type: ignore[attr-defined]
            return apply(self, grad, var)

        return _apply_dense

    return made_from


def sparse_of_both_kinds(owner: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `dense_of_both_kinds`, for `_apply_sparse`."""

    def made_from(apply: Callable[..., Any]) -> Callable[..., Any]:
        def _apply_sparse(self: Any, grad: Any, var: Any) -> Any:
            if hasattr(var, "handle") and mirrored() is not None:
                update = owner._resource_apply_sparse  # type: ignore[attr-defined]
                return update(self, grad.values, var, grad.indices)
            return apply(self, grad, var)

        return _apply_sparse

    return made_from


def refused(self: Any, *args: Any, **kwargs: Any) -> Any:
    """What stands in for a method that cannot work on copies."""
    raise RuntimeError(
        f"{type(self).__name__} keeps gradients in accumulators of its own and cannot update variables that "
        "are mirrored by session style. Average the towers' gradients and apply them with the optimizer that "
        "it wraps."
    )
