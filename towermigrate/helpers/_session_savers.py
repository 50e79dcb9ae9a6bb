"""Checkpoints: a variable is saved once, by its TF1 name, and restored to every copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_graphs import mirrored
from towermigrate.helpers._session_saveable import CopiesSaveable
from towermigrate.helpers._session_variables import TowerVariable


def restoring_copies(saveables_for: Callable[..., Any]) -> Callable[..., Any]:
    """The function that stands in for TensorFlow's `saveable_objects_for_op`."""

    def saveable_objects_for_op(op: Any, name: Any) -> Iterator[Any]:
        parts = list(op) if isinstance(op, (list, tuple, private.PartitionedVariable)) else None
        if isinstance(name, str) and parts and all(isinstance(p, TowerVariable) for p in parts):
            for part in parts:
                slice_info = private.slice_of(part)
                if not slice_info:
                    raise ValueError(f"Slices must all be slices: {part}")
                yield CopiesSaveable(part, name, slice_info.spec)
            return
        variable = op if isinstance(op, TowerVariable) else _read_by(op)
        if isinstance(name, str) and variable is not None:
            yield CopiesSaveable(variable, name)
        else:
            yield from saveables_for(op, name)

    return saveable_objects_for_op


def _read_by(op: Any) -> TowerVariable | None:
    """The variable whose value a tensor is."""
    towers = mirrored()
    if towers is None or not isinstance(op, tf.Tensor) or op.op.type != "ReadVariableOp":
        return None
    variable: TowerVariable | None = towers.variable_of(op.op.inputs[0])
    return variable
