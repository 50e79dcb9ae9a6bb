"""Tensors that are computed with a tower's index: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

AVERAGED = "    grads = average_gradients(tower_grads)\n"
FORWARD = "                    out = net(x)\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
NET = "def net(x):\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
START = "    tower_grads = []\n"


def in_tower(text: str) -> Change:
    """Statements of the tower, behind its loss."""
    return (LOSS, LOSS + "".join(f"                    {line}\n" for line in text.split("\n")))


def behind(text: str) -> Change:
    return (AVERAGED, AVERAGED + text)


def before(text: str) -> Change:
    return (START, START + text)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("a factor", in_tower("loss = loss * (1.0 + 0.5 * i)")),
    case("a term", in_tower("loss = loss + 0.25 * i")),
    case("of the right side", in_tower("loss = (2 - i) * loss")),
    case("an exponent", in_tower("loss = (loss + 1.0) ** (i + 1)")),
    case("a quotient", in_tower("loss = loss / (i + 1)")),
    case("in place", in_tower("loss *= 1.0 + i")),
    case("nothing of one tower", in_tower("loss = loss * i")),
    case("whether it is the first", in_tower("loss = loss * float(i == 0) + 0.5 * loss")),
    case("one of two numbers", in_tower("loss = loss * (2.0 if i > 0 else 0.5)")),
    case("of a list", before("    shares = [0.25, 0.75]\n"), in_tower("loss = loss * shares[i]")),
    case("by a function of the tower", in_tower("def scaled(value):\n    return value * (i + 1)\nloss = scaled(loss)")),
    case("by a lambda", in_tower("loss = (lambda value, by=i: value * (by + 1.5))(loss)")),
    case("given to a function", (NET, "def scaled(value, by):\n    return tf.multiply(value, 0.5 + by)\n\n\n" + NET), in_tower("loss = scaled(loss, by=i)")),
    case("given to the model", (NET, "def net(x, k=0):\n    x = x + 0.125 * k\n"), (FORWARD, FORWARD.replace("(x)", "(x, k=i)"))),
    case("as a constant", in_tower("loss = loss * tf.constant(0.5 * i + 1.0)")),
    case("as a tensor that is cast", in_tower("loss = loss * (tf.cast(i, tf.float32) + 1.0)")),
    case("in a list of numbers", in_tower("scales = [1.0 / (k + 1 + i) for k in range(2)]\nloss = loss * scales[1]")),
    case("by a Python function", (NET, "import math\n\n\ndef share(k):\n    return math.exp(-k)\n\n\n" + NET), in_tower("loss = loss * share(i)")),
    case("where the gradients are computed", (GRADS, "                    rate = 0.5 + 0.5 * i\n" + GRADS.replace("(loss)", "(loss * rate)"))),
    case("in the call that computes the gradients", (GRADS, GRADS.replace("(loss)", "(loss * (1.0 + i))"))),
    case("in what the runs fetch", in_tower("marked = out * (i + 1)"), (RUN, "            print(np.round(sess.run(marked, feed_dict={X: bx, Y: by}), 5).tolist())\n" + RUN)),
    case("in the loss of some variables", in_tower("w = tf.get_variable('extra', [], initializer=tf.constant_initializer(0.5))\nloss = loss + tf.square(w) * i")),
    case("in what a variable starts from, which the first tower makes", in_tower("w = tf.get_variable('extra', [], initializer=tf.constant_initializer(0.5 + i))\nloss = loss + tf.square(w) * i")),
]  # fmt: skip

LEFT = [
    other("one of two tensors", "TM214", in_tower("loss = loss * 2.0 if i > 0 else loss")),
    other("one of two tensors, by `or`", "TM214", in_tower("loss = loss * 2.0 + (i and loss)")),
    other("a branch", "TM214", in_tower("if i == 1:\n    loss = loss * 2.0")),
    other("a branch of a function", "TM214", (NET, "def scaled(value, k):\n    if k > 0:\n        return value * 2.0\n    return value\n\n\n" + NET), in_tower("loss = scaled(loss, i)")),
    other("a part of a tensor", "TM227", in_tower("loss = loss + out[i, 0]")),
    other("how often a loop runs", "TM227", in_tower("for k in range(i + 1):\n    loss = loss * 2.0")),
    other("how long a list is", "TM227", in_tower("loss = tf.add_n([loss] * (i + 1))")),
    other("a size", "TM227", in_tower("loss = loss + tf.reduce_sum(tf.zeros([i + 1]))")),
    other("a size of a constant", "TM227", in_tower("loss = loss + tf.reduce_sum(tf.constant(0.5, shape=[i + 1]))")),
    other("an axis", "TM227", in_tower("loss = loss + tf.reduce_sum(tf.reduce_mean(out, axis=i))")),
    other("behind the towers", "TM227", behind("    grads = [(g * (1.0 + i), v) for g, v in grads]\n")),
    other("behind the towers by a function of theirs", "TM227", in_tower("def scaled(value):\n    return value * (i + 1)"), behind("    grads = [(scaled(g), v) for g, v in grads]\n")),
    other("which variables have gradients", "TM227", (GRADS, GRADS.replace("(loss)", "(loss, [v for v in tf.trainable_variables()][i:])"))),
    other("a number of the towers behind them", "TM227", in_tower("weight = 1.0 + i"), behind("    grads = [(g * weight, v) for g, v in grads]\n")),
    other("rows by a number made of it", "TM227", ("X[i * 2:(i + 1) * 2]", "X[(i + 0) * 2:(i + 1) * 2]"), (FORWARD, FORWARD + "                    k = i + 0\n                    y = y + X[k:k + 1, :1]\n")),
    other("bound anew", "TM227", in_tower("i = i + 1\nloss = loss * i")),
    other("added to", "TM227", in_tower("i += 1\nloss = loss * i")),
    other("bound anew by a loop", "TM227", in_tower("for i in range(3):\n    loss = loss + 0.1 * i")),
    other("bound anew by a comprehension", "TM227", in_tower("loss = loss * sum([i for i in range(3) for _ in range(1)]) + 0.1 * i")),
    other("bound anew by a lambda", "TM227", in_tower("loss = (lambda i: i * 2.0)(loss) + 0.1 * i")),
    other("bound anew by a function", "TM227", in_tower("def scaled(i):\n    return i * 2.0\nloss = scaled(loss) * i")),
    other("of a list that is changed", "TM224", before("    shares = [0.25, 0.75]\n"), in_tower("loss = loss * shares[i]"), behind("    shares[0] = 1.0\n")),
    other("of a list that grows", "TM206", before("    shares = [0.25, 0.75]\n"), in_tower("loss = loss * shares[i]\nshares.append(loss)")),
    other("of a list of tensors", "TM227", before("    shares = [tf.constant(0.25), tf.constant(0.75)]\n"), in_tower("loss = loss * shares[i]")),
    other("of a list by two", "TM227", before("    shares = [0.25, 0.75, 1.0]\n"), in_tower("loss = loss * shares[i + 1]")),
    other("in a variable's name", "TM218", in_tower("w = tf.get_variable('w%d' % i, [], initializer=tf.constant_initializer(0.5))\nloss = loss * w")),
    other("in a variable's shape", "TM227", in_tower("w = tf.get_variable('extra', [i + 1], initializer=tf.constant_initializer(0.5))\nloss = loss * tf.reduce_sum(w)")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
