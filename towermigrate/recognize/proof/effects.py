"""Checks and prints in the towers: `tf.check_numerics`, `tf.Print`, assertions, functions of Python.

TF1 runs them in the runs that need them, a step in every one. So each of them is something that all runs must be shown to
need, in every tower, as they must need all that is drawn of inputs. The gradient of a value does not need the check of it: what is
checked is known to be needed by what is computed of it, not by gradients.
"""

from __future__ import annotations

_TESTS = (
    "equal none_equal less less_equal greater greater_equal positive negative non_positive non_negative near"
).split()
TESTS = frozenset(
    {
        "tf.Assert",
        *(f"tf.assert_{one}" for one in _TESTS),
        *(f"tf.debugging.assert_{one}" for one in _TESTS),
    }
)
"""Assertions, which are operations that something waits for."""
CHECKED = frozenset(
    {"tf.check_numerics", "tf.debugging.check_numerics", "tf.verify_tensor_all_finite", "tf.Print"}
)
"""What gives the first of its arguments, and looks at it."""
ASSERTED = frozenset({"tf.confusion_matrix", "tf.math.confusion_matrix"})
"""Functions of the library that assert something of the numbers that they are given."""
CALLS = "tf.py_func"
_MARK = "tower:effect:"


def effect(number: int) -> str:
    """What stands in the needs of a tensor for one of them."""
    return f"{_MARK}{number}"


def effects_in(needs: frozenset[str]) -> frozenset[str]:
    return frozenset(need for need in needs if need.startswith(_MARK))


def of_gradients(needs: frozenset[str]) -> frozenset[str]:
    """What gradients need of what their loss needs."""
    return needs - effects_in(needs)
