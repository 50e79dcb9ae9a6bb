"""The shapes that one of several towers' steps takes, and arguments of those shapes for a program of one tower."""

from __future__ import annotations

from typing import Any


def shapes_of(tf: Any, args: Any, kwargs: Any) -> list[Any]:
    """For each part of the arguments the type and shape that the first replica gets; None for what is no tensor."""

    def first(leaf: Any) -> Any:
        per_tower = isinstance(leaf, tf.distribute.DistributedValues)
        return leaf.values[0] if per_tower and not isinstance(leaf, tf.Variable) else leaf

    flat = tf.nest.flatten(tf.nest.map_structure(first, (args, kwargs)), expand_composites=True)
    return [_shape(tf, each) for each in flat]


def with_shapes(tf: Any, args: Any, kwargs: Any, shapes: list[Any]) -> tuple[Any, Any] | None:
    """The arguments with zeros of other shapes in place of tensors; None where the shapes are not of such arguments."""
    flat = tf.nest.flatten((args, kwargs), expand_composites=True)
    if len(flat) != len(shapes):
        return None
    made = []
    for value, wanted in zip(flat, shapes, strict=True):
        own = _shape(tf, value)
        if (own is None) != (wanted is None) or (own is not None and own[0] != wanted[0]):
            return None
        made.append(value if own == wanted else tf.zeros(wanted[1], wanted[0]))
    packed = tf.nest.pack_sequence_as((args, kwargs), made, expand_composites=True)
    return packed[0], packed[1]


def _shape(tf: Any, value: Any) -> list[Any] | None:
    if not tf.is_tensor(value) or not value.dtype.is_numpy_compatible:
        return None
    return [value.dtype.name, value.shape.as_list()]
