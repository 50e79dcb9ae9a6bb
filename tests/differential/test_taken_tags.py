"""Summaries whose tag is another name of the graph: TF1 numbers it where both are made at the same place, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential import loop_programs
from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
APPEND = "                    tower_grads.append(grads)\n"
RATE = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
SAVER = "    saver = tf.train.Saver()\n"
START = "    tower_grads = []\n"
MEAN = "    mean_loss = tf.reduce_mean(losses)\n"
TOLD = "    tf.summary.scalar('loss', mean_loss)\n"
MERGED = "    merged = tf.summary.merge_all()\n    writer = tf.summary.FileWriter('logs')\n"
WRITTEN = "            writer.add_summary(sess.run(merged, feed_dict={X: bx, Y: by}), step)\n"
FED_RATE = (
    (
        RATE,
        "    rate = tf.placeholder(tf.float32, [], name='rate')\n" + RATE.replace("0.1,", "rate,"),
    ),
    ("Y: by}", "Y: by, rate: 0.1 / (step + 1)}"),
)


def program(*changes: Change) -> dict[str, str]:
    """The program with the mean of the losses in summaries, and each `(old, new)` applied to it."""
    (text,) = loop_programs.program(
        (START, START + "    losses = []\n"),
        (APPEND, APPEND + "                    losses.append(loss)\n"),
        (APPLIED, APPLIED + MEAN + TOLD + MERGED),
        (RUN, RUN + WRITTEN),
    ).values()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, *changes: Change, rule: str = "TM231") -> Any:
    return pytest.param(changes, rule, id=name)


def named(name: str, made: str = "reduce_mean(losses") -> Change:
    """The mean under a name of its own."""
    return MEAN, f"    mean_loss = tf.{made}, name='{name}')\n"


IN_TOWER = (LOSS, LOSS.replace("y))", "y), name='loss')"))
SCOPED = (MEAN, "    with tf.name_scope('loss'):\n        mean_loss = tf.reduce_mean(losses)\n")
RATE_TOLD = (TOLD, TOLD + "    tf.summary.scalar('rate', rate)\n")
STEPPED = (RATE, "    rate = tf.train.exponential_decay(0.1, step_count, 2, 0.5, name='rate')\n" + RATE.replace("0.1,", "rate,"))  # fmt: skip

TAKEN = [
    case("of no other's name"),
    case("of a name in the towers", IN_TOWER),
    case("of a scope's name in the towers", (LOSS, "                    with tf.name_scope('loss'):\n    " + LOSS)),
    case("of a name that the towers put together", (LOSS, LOSS.replace("y))", "y), name='%s' % 'loss')"))),
    case("of a name with a number in the towers", (LOSS, LOSS.replace("y))", "y), name='loss_1')"))),
    case("of the name of what it shows", named("loss")),
    case("of the name of a sum", named("loss", "add_n(losses")),
    case("of its name, and one in the towers", IN_TOWER, named("loss")),
    case("of a scope's name", SCOPED),
    case("of a placeholder's name", *FED_RATE, (TOLD, TOLD + "    tf.summary.scalar('rate', mean_loss * 2.0)\n")),
    case("of a schedule's name", STEPPED, RATE_TOLD),
    case("a histogram", named("loss"), (TOLD, "    tf.summary.histogram('loss', mean_loss)\n")),
    case("bound to a name", named("loss"), (TOLD, "    told =" + TOLD[3:])),
    case("beside another one", named("loss"), (TOLD, TOLD + "    tf.summary.scalar('twice', mean_loss * 2.0)\n")),
    case("in a scope of their own", (TOLD, "    with tf.name_scope('told'):\n    " + TOLD + "        tf.summary.histogram('more', mean_loss)\n")),
    case("in a scope of its own, and outside of it", (TOLD, TOLD + "    with tf.name_scope('told'):\n        tf.summary.scalar('more', mean_loss)\n")),
    case("in double quotes", named("loss"), (TOLD, TOLD.replace("'", '"'))),
]  # fmt: skip

LEFT = [
    other("of a name in other case", named("Loss")),
    other("of two names", named("loss"), (TOLD, "    more = tf.identity(mean_loss, name='loss')\n" + TOLD)),
    other("of a name with a number", named("loss"), (TOLD, "    more = tf.identity(mean_loss, name='loss_1')\n" + TOLD)),
    other("of a name that comes behind it", (TOLD, TOLD + "    more = tf.identity(mean_loss, name='loss')\n")),
    other("of a name that is made in a loop", (MEAN, MEAN + "    for _ in range(2):\n        more = tf.identity(mean_loss, name='loss')\n")),
    other("of a name that a function makes", (MEAN, MEAN + "    more = twice(mean_loss)\n"), ("def batch(", "def twice(x):\n    return tf.identity(x, name='loss')\n\n\ndef batch(")),
    other("of a name that may be put together", named("loss"), (TOLD, "    more = tf.identity(mean_loss, name='%s' % 'loss')\n" + TOLD)),
    other("of a name that nothing may have", (MEAN, "    mean_loss = tf.cast(tf.reduce_mean(losses), tf.float32, name='loss')\n")),
    other("of a name in a scope of its own", (MEAN, "    with tf.name_scope('more'):\n        mean_loss = tf.reduce_mean(losses, name='loss')\n")),
    other("in a scope with what it shows", (MEAN + TOLD, "    with tf.name_scope('told'):\n    " + MEAN + "    " + TOLD)),
    other("in a scope, of what is made there", (TOLD, "    with tf.name_scope('told'):\n        tf.summary.scalar('Mean', tf.reduce_mean(losses))\n")),
    other("in a scope of a name that is there", (TOLD, "    more = tf.identity(mean_loss, name='told')\n    with tf.name_scope('told'):\n    " + TOLD)),
    other("in a scope that is opened twice", (TOLD, "    for k in range(2):\n        with tf.name_scope('told'):\n        " + TOLD)),
    other("in two scopes", (TOLD, "    with tf.name_scope('told'):\n    " + TOLD + "    with tf.name_scope('told'):\n        tf.summary.scalar('more', mean_loss)\n")),
    other("twice in a scope", (TOLD, "    with tf.name_scope('told'):\n    " + TOLD + "    " + TOLD)),
    other("twice", named("loss"), (TOLD, TOLD + TOLD.replace("mean_loss", "mean_loss * 2.0"))),
    other("of towers that have no scope", IN_TOWER, ("                with tf.name_scope('tower_%d' % i) as scope:\n", "                if True:\n")),
    other("of a function that is called in a scope", named("loss"), ("__main__':\n    train()", "__main__':\n    with tf.name_scope('all'):\n        train()")),
    other("of an operation's own name", (TOLD, TOLD.replace("'loss'", "'Mean'"))),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, program)
