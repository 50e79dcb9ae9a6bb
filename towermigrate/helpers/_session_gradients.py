"""Gradients with respect to mirrored variables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers._session_graphs import TowerGraph, mirrored
from towermigrate.helpers._session_variables import copies_of


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
