"""How a variable with a copy on every tower stands in a checkpoint: as one variable."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private


class CopiesSaveable(private.SaveableObject):  # type: ignore[misc]
    """Saves the first copy of a variable and restores all of them."""

    def __init__(self, variable: Any, name: str, slice_spec: str = "") -> None:
        self._variable = variable
        first = variable.copies[0]

        def value() -> Any:
            with tf.device(first.device):
                read = first.read_value()
            with tf.device("/device:CPU:0"):
                return tf.identity(read)

        spec = private.SaveSpec(
            value, slice_spec, name, dtype=first.dtype.base_dtype, device=first.device
        )
        super().__init__(variable, [spec], name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        (value,) = restored_tensors
        if restored_shapes is not None:  # Saver(reshape=True)
            value = tf.reshape(value, restored_shapes[0])
        elif not value.shape.is_compatible_with(self._variable.shape):
            raise ValueError(
                f"{self.name} has the shape {value.shape} in the checkpoint and {self._variable.shape} here."
            )
        return self._variable.restored(value)
