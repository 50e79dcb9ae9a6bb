"""Checks of what is only known while a step runs; `TOWERMIGRATE_CHECKS=1` in the environment makes them.

They cost an all-reduce each, so that they are for tests and for the first steps of a new program.
"""

import os
from typing import Any

import tensorflow as tf

VARIABLE = "TOWERMIGRATE_CHECKS"


def wanted() -> bool:
    """Whether the environment asks for the checks."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def equal(found: Any, expected: Any, said: str) -> list[Any]:
    """What must run so that an error comes where two tensors are not (nearly) equal; `said` is its text."""
    expected = tf.cast(expected, found.dtype)
    near = tf.abs(found - expected) <= 1e-4 * tf.abs(expected) + 1e-30
    # A gradient that overflowed is infinite on all, or NaN.
    neither = tf.logical_not(tf.math.is_finite(found) | tf.math.is_finite(expected))
    with tf.device("/cpu:0"):
        check = tf.debugging.assert_equal(tf.reduce_all(near | neither), True, said)
    return [] if check is None else [check]
