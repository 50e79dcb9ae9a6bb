"""Functions that TensorFlow calls while it builds the graph: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
NET = "def net(x):\n"
START = "    tower_grads = []\n"
RETURN = "    return tf.matmul(x, w) + b\n"


def in_tower(text: str) -> Change:
    """Statements of the tower, behind its loss."""
    return (LOSS, LOSS + "".join(f"                    {line}\n" for line in text.split("\n")))


def module(text: str) -> Change:
    return (NET, text + "\n\n\n" + NET)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def chosen(true: str, false: str = "loss", before: str = "") -> Change:
    return in_tower(f"{before}loss = tf.cond(loss > 0.2, lambda: {true}, lambda: {false})")


TAKEN = [
    case("one of two losses", chosen("loss * 1.5", "loss * 0.5")),
    case("one as it is", chosen("loss * 1.5")),
    case("a number", chosen("loss * 1.5", "0.125")),
    case("by functions of the tower", in_tower("def more():\n    twice = loss * 2.0\n    return twice + 0.5\ndef less():\n    return loss * 0.25\nloss = tf.cond(loss > 0.2, more, less)")),
    case("by keywords", in_tower("loss = tf.cond(pred=loss > 0.2, true_fn=lambda: loss * 1.5, false_fn=lambda: loss, name='chosen')")),
    case("of what the model computes", chosen("tf.reduce_mean(tf.abs(out - y))", "loss * 0.5")),
    case("with a variable inside", (RETURN, "    out = tf.matmul(x, w) + b\n    return tf.cond(tf.reduce_mean(x) > 0.1, lambda: out * w[0], lambda: out + b)\n")),
    case("one in another", chosen("tf.cond(loss > 1.0, lambda: loss * 0.1, lambda: loss * 0.7)", "loss * 0.5")),
    case("by a function of the module", module("def capped(value):\n    return tf.cond(value > 1.0, lambda: value * 0.5, lambda: value)"), in_tower("loss = capped(loss)")),
    case("of a gradient penalty", in_tower("slope = tf.reduce_sum(tf.square(tf.gradients(out, [x])[0]))\nloss = loss + tf.cond(slope > 0.1, lambda: slope * 0.01, lambda: slope * 0.02)")),
    case("every row", in_tower("loss = loss + 0.1 * tf.reduce_mean(tf.map_fn(lambda row: tf.reduce_sum(row), x))")),
    case("every row of the output", in_tower("loss = loss + 0.1 * tf.reduce_mean(tf.map_fn(lambda row: tf.square(row) * 0.5, out))")),
    case("every row by a variable", (RETURN, "    return tf.map_fn(lambda row: tf.matmul(tf.expand_dims(row, 0), w)[0] + b, x)\n")),
    case("every row by a function", module("def row_loss(row):\n    scaled = row * 0.5\n    return tf.reduce_max(scaled)"), in_tower("loss = loss + tf.reduce_mean(tf.map_fn(row_loss, x, dtype=tf.float32))")),
    case("every row by one of two", in_tower("loss = loss + tf.reduce_mean(tf.map_fn(lambda row: tf.cond(row[0] > 0.2, lambda: row[1], lambda: row[2]), x))")),
    case("functions of other modules of TensorFlow", in_tower("loss = tf.math.log1p(loss) + 0.1 * tf.linalg.norm(out) + tf.math.softplus(tf.math.reduce_std(out))")),
    case("the mean and variance of a batch", (RETURN, "    mean, variance = tf.nn.moments(x, [0])\n    x = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)\n" + RETURN)),
    case("a loop of the graph", in_tower("_, loss = tf.while_loop(lambda k, v: k < 3, lambda k, v: (k + 1, v * 0.9), [0, loss])")),
    case("a loop of the graph by functions", in_tower("def goes_on(k, v):\n    return k < 3\ndef halved(k, v):\n    return k + 1, v * 0.5 + tf.reduce_mean(out) * 0.1\nk, loss = tf.while_loop(goes_on, halved, (tf.constant(0), loss), name='halve')")),
    case("a loop of the graph with a variable", (RETURN, "    u = tf.ones([1, 3])\n    _, u = tf.while_loop(lambda k, u: k < 3, lambda k, u: (k + 1, tf.nn.l2_normalize(tf.matmul(tf.matmul(u, w), w, transpose_b=True), 1)), [0, u])\n    sigma = tf.norm(tf.matmul(tf.stop_gradient(u), w))\n    return tf.matmul(x, w / sigma) + b\n")),
    case("a list that is folded", ("import numpy as np\n", "from functools import reduce\n\nimport numpy as np\n"), in_tower("loss = reduce(lambda a, b: a + b, [loss, 0.1 * tf.reduce_mean(out), tf.reduce_sum(tf.abs(out))])")),
    case("a list that is folded by a function of TensorFlow", ("import numpy as np\n", "import functools\n\nimport numpy as np\n"), in_tower("loss = functools.reduce(tf.add, [tf.reduce_sum(out), 0.1 * loss], loss)")),
    case("a determinant", in_tower("loss = loss + 0.1 * tf.matrix_determinant(tf.matmul(x, x, transpose_a=True) + tf.eye(3))")),
]  # fmt: skip

LEFT = [
    other("a list of branches", "TM222", in_tower("loss = tf.cond(loss > 0.2, lambda: [loss * 1.5], lambda: [loss])")),
    other("two values of branches", "TM222", in_tower("loss, more = tf.cond(loss > 0.2, lambda: (loss, out), lambda: (loss * 2.0, out))")),
    other("a list of one that a function gives", "TM222", chosen("tf.split(out, 1)", "tf.split(y, 1)")),
    other("an input", "TM222", in_tower("chosen = tf.cond(loss > 0.2, lambda: x, lambda: x * 2.0)\nloss = loss + tf.reduce_mean(chosen)")),
    other("a branch that gives nothing", "TM222", in_tower("more = tf.cond(loss > 0.2, lambda: None, lambda: None)")),
    other("a branch that gives a variable", "TM222", (RETURN, "    b = tf.cond(tf.reduce_mean(x) > 0.1, lambda: b, lambda: b * 2.0)\n".replace("b = tf", "c = tf") + RETURN.replace("+ b", "+ c"))),
    other("a branch that makes a variable", "TM222", chosen("loss * tf.get_variable('extra', [], initializer=tf.constant_initializer(0.5))")),
    other("a branch that makes a layer", "TM222", chosen("tf.reduce_mean(tf.layers.dense(x, 1, name='extra'))")),
    other("a branch that assigns", "TM220", (START, START + "    seen = tf.Variable(0.0, trainable=False, name='seen')\n"), chosen("loss * tf.assign_add(seen, 1.0)")),
    other("a branch that prints", "TM222", chosen("tf.Print(loss, [loss])")),
    other("a branch that prints in Python", "TM223", in_tower("def more():\n    print('more')\n    return loss * 2.0\nloss = tf.cond(loss > 0.2, more, lambda: loss)")),
    other("a branch that fills a list", "TM206", in_tower("kept = []\ndef more():\n    kept.append(loss * 2.0)\n    return loss * 2.0\nloss = tf.cond(loss > 0.2, more, lambda: loss)\nloss = loss * len(kept)")),
    other("a branch that adds to a list", "TM206", in_tower("kept = [loss]\ndef more(into=kept):\n    into += [loss * 2.0]\n    return loss * 2.0\nloss = tf.cond(loss > 0.2, more, lambda: loss)")),
    other("a branch that stores", "TM206", in_tower("kept = {}\ndef more():\n    kept['loss'] = loss * 2.0\n    return loss * 2.0\nloss = tf.cond(loss > 0.2, more, lambda: loss)")),
    other("a branch that binds a name around it", "TM223", in_tower("def chosen():\n    kept = loss\n    def more():\n        nonlocal kept\n        kept = loss * 2.0\n        return kept\n    made = tf.cond(loss > 0.2, more, lambda: loss)\n    return made + kept\nloss = chosen()")),
    other("a branch that collects", "TM222", in_tower("def more():\n    tf.add_to_collection('kept', loss)\n    return loss * 2.0\nloss = tf.cond(loss > 0.2, more, lambda: loss)")),
    other("a branch that draws", "TM222", chosen("loss * tf.random_uniform([])")),
    other("a branch with dropout", "TM222", chosen("tf.reduce_mean(tf.nn.dropout(out, 0.5))")),
    other("a branch with a summary", "TM222", in_tower("def more():\n    tf.summary.scalar('more', loss)\n    return loss * 2.0\nloss = tf.cond(loss > 0.2, more, lambda: loss)")),
    other("a branch that lists variables", "TM222", chosen("loss + tf.add_n([tf.reduce_sum(v) for v in tf.trainable_variables()])")),
    other("what Python decides", "TM222", in_tower("loss = tf.cond(True, lambda: loss * 1.5, lambda: loss)")),
    other("what the tower's index decides", "TM222", in_tower("loss = tf.cond(i > 0, lambda: loss * 1.5, lambda: loss)")),
    other("what a variable decides", "TM222", (START, START + "    flag = tf.Variable(True, trainable=False, name='flag')\n"), in_tower("loss = tf.cond(flag, lambda: loss * 1.5, lambda: loss)")),
    other("a function that is not known", "TM222", in_tower("loss = tf.cond(loss > 0.2, tf.no_op, tf.no_op)")),
    other("strictly", "TM222", in_tower("loss = tf.cond(loss > 0.2, lambda: loss * 1.5, lambda: loss, strict=True)")),
    other("a gradient", "TM222", ("    train_op = opt", "    grads = [(tf.cond(tf.reduce_sum(g) > 0.0, lambda: g, lambda: g * 0.5), v) for g, v in grads]\n    train_op = opt")),
    other("a loop of the graph that draws", "TM222", in_tower("_, loss = tf.while_loop(lambda k, v: k < 3, lambda k, v: (k + 1, v * tf.random_uniform([])), [0, loss])")),
    other("a loop of the graph with one value", "TM222", in_tower("loss = tf.while_loop(lambda v: v > 0.05, lambda v: v * 0.5, [loss])")),
    other("a loop of the graph with shapes that change", "TM222", in_tower("_, rows = tf.while_loop(lambda k, v: k < 3, lambda k, v: (k + 1, tf.concat([v, v], 0)), [0, out], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 1])])\nloss = loss + tf.reduce_mean(rows)")),
    other("rows of two tensors", "TM222", in_tower("loss = loss + tf.reduce_mean(tf.map_fn(lambda pair: tf.reduce_sum(pair[0]) * pair[1][0], (x, y), dtype=tf.float32))")),
    other("rows that give two tensors", "TM222", in_tower("first, second = tf.map_fn(lambda row: (row[0], row[1]), x, dtype=(tf.float32, tf.float32))\nloss = loss + tf.reduce_mean(first * second)")),
    other("rows that draw", "TM222", in_tower("loss = loss + tf.reduce_mean(tf.map_fn(lambda row: row * tf.random_uniform([]), x))")),
    other("rows that are counted", "TM206", (START, START + "    count = [0]\n"), module("def counted(row, count):\n    count[0] += 1\n    return row"), in_tower("loss = loss + tf.reduce_mean(tf.map_fn(lambda row: counted(row, count), x))")),
    other("rows by a method", "TM222", module("class Rows(object):\n    def __init__(self):\n        self.seen = 0\n    def __call__(self, row):\n        self.seen += 1\n        return row"), (START, START + "    rows = Rows()\n"), in_tower("loss = loss + tf.reduce_mean(tf.map_fn(rows, x))")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
