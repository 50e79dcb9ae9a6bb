"""Sparse gradients (`tf.IndexedSlices`): divided, summed per row, or of no row at all."""

from typing import Any

import tensorflow as tf


def sum_duplicates(grad: Any) -> Any:
    """`grad` with each row at most once, the values of a repeated row added up.

    A row that is looked up twice has two entries in the gradient of `tf.gather`, and the towers'
    entries follow each other when they are averaged. Norms and limits are only right per row.

    Args:
      grad: `tf.IndexedSlices` (values `[n, …]`, indices `[n]`); anything else is returned as it is.

    Returns:
      `tf.IndexedSlices` in the order in which the rows first occur.

    Source: `_deduplicate_indexed_slices` in TensorFlow's `training/optimizer.py`.
    """
    if not isinstance(grad, tf.IndexedSlices):
        return grad
    indices, positions = tf.unique(grad.indices)
    values = tf.math.unsorted_segment_sum(grad.values, positions, tf.shape(indices)[0])
    return tf.IndexedSlices(values, indices, grad.dense_shape)


def divided(grad: Any, count: int) -> Any:
    """`grad / count`, sparse where `grad` is."""
    if count == 1:
        return grad
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(divided(grad.values, count), grad.indices, grad.dense_shape)
    return grad / tf.cast(count, grad.dtype)


def times(grad: Any, factor: Any) -> Any:
    """`grad * factor`, sparse where `grad` is."""
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(times(grad.values, factor), grad.indices, grad.dense_shape)
    return grad * tf.cast(factor, grad.dtype)


def no_rows(variable: Any, index: str) -> Any:
    """The sparse gradient of zeros: `tf.IndexedSlices` of `variable`'s shape with no row in it.

    Args:
      variable: what it is the gradient of.
      index: the dtype of its indices, that of the other towers'.
    """
    return tf.IndexedSlices(
        values=tf.zeros([0, *variable.shape[1:]], variable.dtype),
        indices=tf.zeros([0], index),
        dense_shape=tf.constant(variable.shape.as_list(), tf.int32),
    )
