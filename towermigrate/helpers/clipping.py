"""Clipping `[(gradient, variable)]`: by the norm of all, by the norm of each, by value.

TF1's tower programs clip in one of two places, and the two train differently:

- *the average*, between `average_gradients` and `apply_averaged`: the norm is that of the whole
  batch's gradient, as one device would have seen it. The result does not depend on the number of
  towers.
- *each tower's own gradient*, between `compute_gradients` and `average_gradients`: the norm is that
  of one tower's batch; one tower with a wild batch cannot outweigh the others, and the average's
  norm is at most `clip_norm`. It does depend on how the batch is split.

A tower's own clipped gradients are averaged and applied with `apply_averaged`: an optimizer's `apply_gradients` would
add them up over the replicas, and raises.

What `tower_gradients` gives is a share, divided by the number of towers: its norm is neither of the
two, and it is refused.

Tower gradients of 30 and -10, clipped at 4: as they average to 10, the average gives 4; clipped one
by one they are 4 and -4, and average to 0.

  >>> w = tf.Variable(0.0)
  >>> towers = [[(tf.constant(30.0), w)], [(tf.constant(-10.0), w)]]
  >>> pairs, norm = clip_by_global_norm(average_gradients(towers), 4.0)
  >>> float(pairs[0][0]), float(norm)
  (4.0, 10.0)
  >>> clipped = [clip_by_global_norm(pairs, 4.0)[0] for pairs in towers]
  >>> float(average_gradients(clipped)[0][0])
  0.0

`tf.IndexedSlices` stay sparse, and entries of one row are summed first: `tf.clip_by_global_norm`
and `tf.clip_by_norm` take the norm of the entries, 1.41 for two entries of 1 in one row, whose
gradient is 2. A program that has to repeat TF1's number there keeps TensorFlow's function.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _marks, _slices
from towermigrate.helpers._policies import GradsAndVars


def clip_by_global_norm(
    grads_and_vars: Sequence[tuple[Any, Any]], clip_norm: Any
) -> tuple[GradsAndVars, Any]:
    """Scale all gradients by one factor, so that their common norm is at most `clip_norm`.

    Args:
      grads_and_vars: `[(gradient, variable)]`, float tensors or `tf.IndexedSlices`; pairs with None
        pass through and count nothing.
      clip_norm: the largest norm, a positive scalar.

    Returns:
      `(grads_and_vars, global_norm)`: the clipped pairs in the same order, and the norm before
      clipping, a scalar tensor (0 where every gradient is None). A norm that is not finite makes
      every gradient NaN.

    Raises:
      ValueError: gradients of `tower_gradients`; a list of towers' lists.

    Example:
      >>> a, b = tf.Variable([0.0]), tf.Variable([0.0])
      >>> pairs, norm = clip_by_global_norm([(tf.constant([3.0]), a), (tf.constant([4.0]), b)], 1.0)
      >>> float(norm), [round(float(grad[0]), 3) for grad, _ in pairs]
      (5.0, [0.6, 0.8])

    Source: `tf.clip_by_global_norm`; Pascanu et al., "On the difficulty of training recurrent
    neural networks", 2013.
    """
    pairs = _summed(grads_and_vars)
    grads, norm = tf.clip_by_global_norm([grad for grad, _ in pairs], clip_norm)
    return _paired("clip_by_global_norm", grads, pairs), norm


def clip_by_norm(grads_and_vars: Sequence[tuple[Any, Any]], clip_norm: Any) -> GradsAndVars:
    """Scale each variable's gradient for itself, so that its norm is at most `clip_norm`.

    Args:
      grads_and_vars: as for `clip_by_global_norm`.
      clip_norm: the largest norm of one variable's gradient, a positive scalar.

    Returns:
      The clipped pairs in the same order.

    Example:
      >>> a, b = tf.Variable([0.0]), tf.Variable([0.0])
      >>> pairs = clip_by_norm([(tf.constant([3.0]), a), (tf.constant([0.5]), b)], 1.0)
      >>> [float(grad[0]) for grad, _ in pairs]
      [1.0, 0.5]

    Source: `tf.clip_by_norm`.
    """
    pairs = _summed(grads_and_vars)
    grads = [None if grad is None else tf.clip_by_norm(grad, clip_norm) for grad, _ in pairs]
    return _paired("clip_by_norm", grads, pairs)


def clip_by_value(grads_and_vars: Sequence[tuple[Any, Any]], low: Any, high: Any) -> GradsAndVars:
    """Limit every number of every gradient to `low` … `high`.

    Args:
      grads_and_vars: as for `clip_by_global_norm`.
      low: the least value, a scalar.
      high: the greatest value, a scalar. Zero must lie between the two: a sparse gradient has no
        entry where it is zero.

    Returns:
      The clipped pairs in the same order.

    Raises:
      ValueError: zero does not lie between `low` and `high`.

    Example:
      >>> w = tf.Variable([0.0, 0.0])
      >>> [(grad, _)] = clip_by_value([(tf.constant([3.0, -0.5]), w)], -1.0, 1.0)
      >>> grad.numpy()
      array([ 1. , -0.5], dtype=float32)

    Source: `tf.clip_by_value`.
    """
    least, greatest = tf.get_static_value(low), tf.get_static_value(high)
    if (least is not None and least > 0) or (greatest is not None and greatest < 0):
        raise ValueError(f"Gradients cannot be limited to {low} … {high}: 0 lies outside.")
    pairs = _summed(grads_and_vars)
    grads = [None if grad is None else tf.clip_by_value(grad, low, high) for grad, _ in pairs]
    return _paired("clip_by_value", grads, pairs)


def _summed(grads_and_vars: Sequence[tuple[Any, Any]]) -> GradsAndVars:
    pairs = list(grads_and_vars)
    if any(isinstance(pair[0], (list, tuple)) for pair in pairs):
        raise ValueError(
            "Clipping got a list of towers' lists; give it one tower's list of (gradient, "
            "variable), in the loop that collects them, or the average."
        )
    _marks.refuse_gradients(
        pairs,
        "Clipping would limit neither a tower's gradient nor the average",
        "Clip what optimizer.compute_gradients or average_gradients returns.",
    )
    _marks.refuse_to_clip_shares([grad for grad, _ in pairs if grad is not None])
    return [(_slices.sum_duplicates(grad), variable) for grad, variable in pairs]


def _paired(name: str, grads: Sequence[Any], pairs: GradsAndVars) -> GradsAndVars:
    known = _marks.mark_clipped(grads, name)
    return [(grad, variable) for grad, (_, variable) in zip(known, pairs, strict=True)]
