"""Programs that train more than once in a process: each time in a graph of their own, or not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of
from towermigrate.rewrite import rewrite_tree

TRAIN = "def train():\n"
MAIN = "if __name__ == '__main__':\n    train()\n"
STEP = "    step_count = tf.train.get_or_create_global_step()\n"
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
SAVED = "        saver.save(sess, 'ckpt/model')\n"
RESET = (TRAIN, TRAIN + "    tf.reset_default_graph()\n")
AGAIN = (MAIN, "if __name__ == '__main__':\n    for turn in range(3):\n        train()\n")
TWICE = (MAIN, "if __name__ == '__main__':\n    train()\n    train()\n")
PICKED = (
    (TRAIN, "def train(rate, size):\n    tf.reset_default_graph()\n"),
    (OPT, OPT.replace("0.1,", "rate,")),
    (MAIN, "for rate in (0.1, 0.01):\n    for size in (2, 3):\n        train(rate, size)\n"),
    ("range(4)", "range(size)"),
)
W = "initializer=init(3, 1))"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def body(header: str) -> tuple[Change, ...]:
    """All that trains stands in a `with` of its own."""

    def deeper(text: str) -> str:
        return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())

    from tests.differential.loop_programs import TRAIN as WHOLE

    inner = WHOLE.removeprefix(TRAIN)
    return ((WHOLE, TRAIN + header + deeper(inner)),)


TAKEN = [
    case("the graph is reset", RESET, AGAIN),
    case("called twice", RESET, TWICE),
    case("a graph of its own", *body("    with tf.Graph().as_default():\n"), AGAIN),
    case("a graph of its own, under a name", *body("    graph = tf.Graph()\n    with graph.as_default():\n"), AGAIN),
    case("with other settings", *PICKED),
    case("by a function that is called once", RESET, (MAIN, "def search():\n    for turn in range(2):\n        train()\n\n\nif __name__ == '__main__':\n    search()\n")),
    case("a step by hand", RESET, AGAIN, (STEP, "    step_count = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0), trainable=False)\n")),
    case("a scheduled rate", RESET, AGAIN, (OPT, "    rate = tf.train.exponential_decay(0.1, step_count, 2, 0.5)\n" + OPT.replace("0.1,", "rate,"))),
    case("Adam", RESET, AGAIN, (OPT, "    opt = tf.train.AdamOptimizer(0.1)\n")),
    case("averages", RESET, AGAIN, ("    saver = tf", "    ema = tf.train.ExponentialMovingAverage(0.9, step_count)\n    with tf.control_dependencies([train_op]):\n        train_op = ema.apply(tf.trainable_variables())\n    saver = tf")),
    case("the last is restored", RESET, AGAIN, ("        for step in range(4):\n", "        if tf.train.latest_checkpoint('ckpt'):\n            saver.restore(sess, tf.train.latest_checkpoint('ckpt'))\n        for step in range(4):\n")),
    case("what is drawn goes on", RESET, AGAIN, (SAVED, SAVED + "        print(np.random.RandomState(drawn[0]).rand())\n")),
]  # fmt: skip

LEFT = [
    other("variables from seeds that are given by place", "TM235", RESET, AGAIN, (W, "initializer=tf.truncated_normal_initializer(0.0, 0.2, 3))")),
    other("variables from seeds that come first", "TM235", RESET, AGAIN, (W, "initializer=tf.glorot_uniform_initializer(3))")),
    other("one graph for all", "TM235", AGAIN),
    other("a graph of the file", "TM235", ("drawn = [0]\n", "drawn = [0]\nGRAPH = tf.Graph()\n"), *body("    with GRAPH.as_default():\n"), AGAIN),
    other("variables from seeds", "TM235", RESET, AGAIN, (W, "initializer=tf.truncated_normal_initializer(stddev=0.2, seed=3))")),
    other("variables from seeds, of layers", "TM235", RESET, AGAIN, ("    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n", "    x = tf.layers.dense(x, 3, tf.nn.relu, name='d', kernel_initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=5))\n    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


def test_another_number_of_towers_each_time_is_not() -> None:
    changes = (
        (TRAIN, "def train(count):\n    tf.reset_default_graph()\n"),
        ("for i in range(2)", "for i in range(count)"),
        (MAIN, "for count in (1, 2):\n    train(count)\n"),
    )
    found = rewrite_tree(program(*changes)).programs
    assert found and all(each.style != "loop" for each in found)
