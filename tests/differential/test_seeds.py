"""Variables that start from one seed: TF1 gives each the first numbers of the seed, whatever else was drawn from it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import MODEL, Change
from tests.differential.spellings import asked_of

NET = MODEL[MODEL.index("def net(x):\n") : MODEL.index("\n\ndef average_gradients")]
FORWARD = "                    out = net(x)\n"
BEGUN = "def train():\n"
STEPS = "    step_count = tf.train.get_or_create_global_step()\n"
NORMAL = "tf.truncated_normal_initializer(stddev=0.1, seed=SEED)"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def net(*lines: str, more: str = "SEED = 66478\n\n\n", given: str = "x") -> Change:
    """Another model, and what stands before it."""
    return NET, more + f"def net({given}):\n" + "".join(f"    {line}\n" for line in lines)


def dense(rows: str, name: str, start: str = NORMAL) -> str:
    return (
        f"x = tf.layers.dense(x, {rows}, kernel_initializer={start}{name and f', name={name!r}'})"
    )


def variable(name: str, start: str = NORMAL) -> str:
    return f"{name} = tf.get_variable('{name}', [3, 3], initializer={start})"


SUM = "return tf.reduce_sum(tf.matmul(x, w + v), 1, keepdims=True)"
FRONT = "    {0} = tf.get_variable('{0}', [3, 3], initializer=tf.random_normal_initializer(seed={1}), trainable=False)\n"
NOW = "                    out = net(x, start)\n"
MADE = (
    (STEPS, f"    start = {NORMAL}\n" + STEPS),
    net("w = tf.get_variable('w', [3, 1], initializer=start)", "v = tf.get_variable('v', [1], initializer=start)", "return tf.matmul(x, w) + v", given="x, start"),
    (FORWARD, NOW),
)  # fmt: skip
TAKEN = [
    case("a variable before the towers", net(variable("w"), variable("v"), SUM), (STEPS, STEPS + f"    scale = tf.get_variable('scale', [], initializer={NORMAL})\n"),
          ("tf.square(out - y)", "tf.square(out * scale - y)")),
    case("one that is made in front of the towers", *MADE),
    case("one for several variables", net(variable("w"), variable("v"), SUM)),
    case("one for several layers", net(dense("3", "a"), dense("3", "b"), dense("1", "c"), "return x")),
    case("of a variable in front of the towers, too", net(variable("w"), variable("v"), SUM), (STEPS, STEPS + FRONT.format("one", "SEED"))),
    case("of two in front of the towers, each its own", net(variable("w"), variable("v"), SUM), (STEPS, STEPS + FRONT.format("one", 7) + FRONT.format("two", 8))),
    case("one initializer", net(f"start = {NORMAL}", variable("w", "start"), variable("v", "start"), SUM)),
    case("of a scope", net(f"with tf.variable_scope('s', initializer={NORMAL}):", "    w = tf.get_variable('w', [3, 3])", "    v = tf.get_variable('v', [3, 3])", SUM)),
    case("other kinds", net(variable("w", "tf.orthogonal_initializer(seed=SEED)"), variable("v", "tf.glorot_uniform_initializer(seed=SEED)"), SUM)),
    case("other sizes", net("u = tf.get_variable('u', [3, 4], initializer=tf.random_normal_initializer(seed=SEED))", "v = tf.get_variable('v', [4, 3], initializer=tf.random_normal_initializer(seed=SEED))", "return tf.reduce_sum(tf.matmul(x, tf.matmul(u, v)), 1, keepdims=True)")),
    case("of slim", ("import numpy as np\n", "import numpy as np\nimport tf_slim as slim\n"),
         net("with slim.arg_scope([slim.fully_connected], weights_initializer=slim.xavier_initializer(seed=SEED)):",
             "    x = slim.fully_connected(x, 3, scope='a')", "    x = slim.fully_connected(x, 3, scope='b')", "    return slim.fully_connected(x, 1, scope='c')")),
    case("beside one that the program fixes", net(variable("w"), variable("v"), SUM), (BEGUN, BEGUN + "    tf.set_random_seed(7)\n")),
    case("of a model that is asked for again", net("with tf.variable_scope('net', reuse=reuse):", "    " + dense("4", ""), "    " + dense("1", ""), "    return x", given="x, reuse=False"),
         (FORWARD, FORWARD + "                    again = net(x * 0.5, True)\n"), ("tf.square(out - y)", "tf.square(out + again - y)")),
    case("of two models", net("with tf.variable_scope(name):", "    " + dense("4", "", "tf.glorot_normal_initializer(seed=1)"), "    " + dense("1", "", "tf.glorot_normal_initializer(seed=2)"), "    return x", given="x, name='net'"),
         (FORWARD, FORWARD + "                    again = net(x * 0.5, 'more')\n"), ("tf.square(out - y)", "tf.square(out + again - y)")),
    case("of two models of one function", net("with tf.variable_scope(name, reuse=tf.AUTO_REUSE):", "    " + variable("w"), "    " + variable("v"), "    " + SUM, given="x, name='net'"),
         (FORWARD, FORWARD + "                    again = net(x * 0.5, 'net') + net(x, 'more')\n"), ("tf.square(out - y)", "tf.square(out + again - y)")),
]  # fmt: skip
LEFT = [
    other("two variables in front of the towers", "TM232", net(variable("w"), variable("v"), SUM), (STEPS, STEPS + FRONT.format("one", 7) + FRONT.format("two", 7))),
    other("by a name", "TM232", net(variable("w"), variable("v"), SUM), (STEPS, STEPS + FRONT.format("one", "SEED") + FRONT.format("two", "SEED + 0"))),
    other("an initializer of both", "TM232", *MADE, (STEPS, STEPS + "    one = tf.get_variable('one', [2], initializer=start, trainable=False)\n    two = tf.get_variable('two', [2], initializer=start, trainable=False)\n")),
    other("values that an initializer makes in front of the towers", "TM217", *MADE, (NOW, NOW + "                    out = out + tf.reduce_sum(noise)\n"), (STEPS, STEPS + "    noise = start([3])\n")),
    other("by another name", "TM222", *MADE, (NOW, NOW + "                    out = out + tf.reduce_sum(noise)\n"), (STEPS, STEPS + "    make = start\n    noise = make([3])\n")),
    other("values that are run", "TM211", *MADE, (STEPS, STEPS + "    noise = start([3])\n"), ("            _, value =", "            print(sess.run(noise).shape)\n            _, value =")),
    other("numbers that only the graph fixes", "TM232", net("return tf.layers.dense(x, 1, name='a')"), (BEGUN, BEGUN + "    tf.set_random_seed(7)\n")),
    other("a draw in a tower", "TM232", net(variable("w"), variable("v"), "x = x + tf.random_normal([2, 3], seed=SEED)", SUM)),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)
