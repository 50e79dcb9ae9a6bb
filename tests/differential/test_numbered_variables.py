"""Variables whose name something else of TF1's graph has first: they are numbered there (`b_1`), and in checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all

REUSE = "                    tf.get_variable_scope().reuse_variables()\n"
NO_SCOPE = (
    ("                with tf.name_scope('tower_%d' % i) as scope:\n", "                with tf.variable_scope(tf.get_variable_scope(), reuse=(i > 0)):\n"),
    (REUSE, ""),
)  # fmt: skip
OF_ALL = (
    ("tf.get_variable_scope()):", "tf.get_variable_scope(), reuse=tf.AUTO_REUSE):"),
    (REUSE, ""),
)
W = "    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n"
MADE = "def made(name):\n    return tf.get_variable(name, [3, 1], initializer=init(3, 1))\n\n\n"
PARTS = (
    ("    tower_grads = []\n", "    parts = tf.split(scaled(X), 2)\n    tower_grads = []\n"),
    ("x, y = X[i * 2:(i + 1) * 2]", "x, y = parts[i]"),
)


def first(*lines: str) -> Change:
    return "def net(x):\n", "def net(x):\n" + "".join(f"    {line}\n" for line in lines)


def in_front(*lines: str) -> tuple[Change, ...]:
    made = "".join(f"    {line}\n" for line in lines)
    return ("    tower_grads = []\n", made + "    tower_grads = []\n"), (
        "out = net(x)",
        "out = net(x) * k",
    )


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, *changes: Change, rule: str = "TM211") -> Any:
    return pytest.param(changes, rule, id=name)


K = "k = tf.get_variable('k', [], initializer=tf.constant_initializer(1.0))"
DENSE = "x = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name='b')"

TAKEN = [
    case("towers without scopes of their own", *NO_SCOPE),
    case("a layer in the tower's scope", first(DENSE), *OF_ALL),
    case("a scope of variables in the tower's scope", first("with tf.variable_scope('b'):", "    x = x * tf.get_variable('v', [], initializer=tf.constant_initializer(1.0))"), *OF_ALL),
    case("a scope of names in the tower's scope", first("with tf.name_scope('b'):", "    x = x * 1.0"), *OF_ALL),
    case("an operation in the tower's scope", first("x = tf.multiply(x, 2.0, name='b')"), *OF_ALL),
    case("other names", first("x = tf.multiply(x, 2.0, name='scaled')"), *NO_SCOPE),
    case("a function called as its variable", ("def net(x):\n" + W, MADE.replace("made(name)", "w()").replace("(name", "('w'") + "def net(x):\n    kernel = w()\n"), ("matmul(x, w)", "matmul(x, kernel)"), *NO_SCOPE),
    case("a variable by a function", ("def net(x):\n" + W, MADE + "def net(x):\n    x = tf.identity(x, name='v')\n    w = made('w')\n"), *NO_SCOPE),
]  # fmt: skip

LEFT = [
    other("a layer", first(DENSE), *NO_SCOPE),
    other("an operation", first("x = tf.identity(x, name='w')"), *NO_SCOPE),
    other("an operation of a variable with a keyword", first("x = tf.identity(x, name='w')"), ("get_variable('w', [3, 1]", "get_variable(name='w', shape=[3, 1]"), *NO_SCOPE),
    other("an operation of a variable by a function", ("def net(x):\n" + W, MADE + "def net(x):\n    x = tf.identity(x, name='w')\n    w = made('w')\n"), *NO_SCOPE),
    other("an operation without a name", ("'w', [3", "'relu', [3"), first("x = tf.nn.relu(x)"), *NO_SCOPE),
    other("an operator", ("'w', [3", "'mul', [3"), first("x = x * 2.0"), *NO_SCOPE),
    other("a mean", ("'w', [3", "'mean', [3"), first("x = x - tf.reduce_mean(x)"), *NO_SCOPE),
    other("a scope of variables in front", *in_front("with tf.variable_scope('b'):", "    " + K)),
    other("a scope of names in front", *in_front("with tf.name_scope('b'):", "    " + K)),
    other("an operation of a function in front", ("def batch(", "def scaled(x):\n    return tf.multiply(x, 2.0, name='b')\n\n\ndef batch("), *PARTS),
    other("a scope of a function in front", ("def batch(", "def scaled(x):\n    with tf.name_scope('b'):\n        return tf.multiply(x, 2.0)\n\n\ndef batch("), *PARTS),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
