"""Variables that start from a tensor, `tf.get_variable('w', initializer=tf.constant(…))`: constants, and others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

W = "    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n"
B = "    b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))\n"
NET = "def net(x):\n"
VALUES = "np.linspace(-0.4, 0.6, 3).reshape(3, 1).astype(np.float32)"
HELPER = (
    "def variable(name, values):\n"
    "    first = tf.constant(values)\n"
    "    return tf.get_variable(name, initializer=first)\n\n\n"
)
SAVER = "    saver = tf.train.Saver()\n"
TOLD = (SAVER, "    print(tf.trainable_variables())\n" + SAVER)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def w_of(value: str) -> Change:
    return W, f"    w = tf.get_variable('w', initializer={value})\n"


TAKEN = [
    case("a constant", w_of(f"tf.constant({VALUES})")),
    case("a constant of a list", w_of("tf.constant([[0.1], [-0.2], [0.3]])")),
    case("a number", (B, "    b = tf.get_variable('b', initializer=tf.constant(0.1))\n")),
    case("by a function", (NET, HELPER + NET), (W, f"    w = variable('w', {VALUES})\n"), (B, "    b = variable('b', np.float32([0.1]))\n")),
    case("filled", w_of("tf.fill([3, 1], 0.25)")),
    case("of another form", w_of("tf.reshape(tf.constant([0.1, -0.2, 0.3]), [3, 1])")),
    case("a constant of doubles, as floats", w_of(f"tf.cast(tf.constant({VALUES}.astype(np.float64)), tf.float32)")),
    case("that are told", w_of(f"tf.constant({VALUES})"), TOLD),
    case("a constant by AUTO_REUSE", w_of(f"tf.constant({VALUES})"), ("                    tf.get_variable_scope().reuse_variables()\n", ""), ("out = net(x)", "with tf.variable_scope('net', reuse=tf.AUTO_REUSE):\n                        out = net(x)")),
]  # fmt: skip

LEFT = [
    other("of an input", "TM222", w_of("tf.reshape(tf.reduce_mean(x, 0), [3, 1])")),
    other("with a shape", "TM222", (W, f"    w = tf.get_variable('w', [3, 1], initializer=tf.constant({VALUES}))\n")),
    other("of another variable", "TM222", (W + B, B + "    w = tf.get_variable('w', initializer=tf.fill([3, 1], 2.0) * b)\n")),
    other("that is drawn", "TM222", w_of("tf.random_normal([3, 1], stddev=0.1)")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
