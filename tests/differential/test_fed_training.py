"""Batch normalisation that is fed whether it trains: what loop style takes, what it must not, and what is meant to fool it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

MADE = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
PRINT = "            print('step', step, 'loss', '%.6f' % value)\n"
OUT = "                    out = net(x)\n"
NORMAL = OUT.replace("net(x)", "tf.layers.batch_normalization(net(x), training=training, momentum=0.5, name='bn')")  # fmt: skip
FUSED = (
    "                    h = tf.reshape(tf.concat([x, x], 1), [-1, 1, 2, 3])\n"
    "                    h = tf.layers.batch_normalization(h, training=training, momentum=0.5, name='bn', fused=True)\n"
    "                    out = net(h[:, 0, 0])\n"
)
FED = (RUN, RUN.replace("Y: by}", "Y: by, training: True}"))
HOLDER = (MADE, MADE + "    training = tf.placeholder(tf.bool, [])\n")
LAST = "    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)\n    with tf.control_dependencies(updates):\n    "
LOOKED = (
    PRINT,
    PRINT
    + "            print('%.5f' % sess.run(loss, {X: bx, Y: by, training: False}))\n"
    + "            print('%.5f' % sess.run(loss, {X: bx, Y: by, training: True}))\n",
)
LAYER = (OUT, NORMAL)
UPDATED = (APPLY, LAST + APPLY)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def fed(what: str) -> Change:
    return (RUN, RUN.replace("Y: by}", f"Y: by, training: {what}}}"))


TAKEN = [
    case("updates of the last tower", HOLDER, LAYER, FED, UPDATED),
    case("runs that only look", HOLDER, LAYER, FED, UPDATED, LOOKED),
    case("fused", HOLDER, (OUT, FUSED), FED, UPDATED, LOOKED),
    case("what changes from step to step", HOLDER, LAYER, fed("step % 2 == 0"), UPDATED, LOOKED),
    case("fused, what changes", HOLDER, (OUT, FUSED), fed("step % 2 == 0"), UPDATED, LOOKED),
    case("a default", (MADE, MADE + "    training = tf.placeholder_with_default(False, [])\n"), LAYER, FED, UPDATED, (PRINT, PRINT + "            print('%.5f' % sess.run(loss, {X: bx, Y: by}))\n")),
    case("updates that nothing runs", HOLDER, LAYER, FED, LOOKED),
    case("a function of the model", HOLDER, (OUT, OUT.replace("net(x)", "norm(net(x), training)")), ("def net(x):\n", "def norm(x, training):\n    return tf.layers.batch_normalization(x, training=training, momentum=0.5, name='bn')\n\n\ndef net(x):\n"), FED, UPDATED, LOOKED),
    case("what is not trained", HOLDER, (OUT, NORMAL.replace("training=training", "training=tf.logical_not(training)")), FED, UPDATED, LOOKED),
]  # fmt: skip

LEFT = [
    other("slim's", "TM207", HOLDER, (OUT, OUT.replace("net(x)", "slim.batch_norm(net(x), is_training=training, scope='bn')")), ("import tensorflow as tf\n", "import tensorflow as tf\nimport tensorflow.contrib.slim as slim\n"), FED, UPDATED),
]  # fmt: skip

FOOLING = [
    case("a number for a bool", (MADE, MADE + "    training = tf.placeholder(tf.int32, [])\n"), (OUT, NORMAL.replace("training=training", "training=training > 0")), fed("1"), UPDATED),
    case("by the tower's data", HOLDER, (OUT, NORMAL.replace("training=training", "training=tf.reduce_sum(x) > 0.5")), FED, UPDATED),
    case("updates run apart", HOLDER, LAYER, FED, (APPLY, "    updates = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope))\n" + APPLY), (PRINT, PRINT + "            sess.run(updates, {X: bx * 2, Y: by, training: step > 1})\n")),
    case("two layers, one fed", HOLDER, (OUT, NORMAL + NORMAL.replace("out = tf", "out = out + tf").replace("net(x)", "x[:, :1]").replace("training=training", "training=True").replace("'bn'", "'bn2'")), fed("False"), UPDATED, LOOKED),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_none_of_these_is_rewritten_to_something_else() -> None:
    none_does_anything_else(FOOLING)
