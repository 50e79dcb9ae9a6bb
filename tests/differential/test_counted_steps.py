"""Steps that are counted beside the update, and steps that are asked for again: loop style, and neighbours that must not be."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

STEP = "    step_count = tf.train.get_or_create_global_step()\n"
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
PRINTS = (RUN, RUN + "            print(sess.run(step_count))\n")
DECAY = (OPT, "    lr = tf.train.exponential_decay(0.1, step_count, 1, 0.5)\n    opt = tf.train.MomentumOptimizer(lr, 0.9)\n")  # fmt: skip


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def grouped(*lines: str) -> Change:
    return APPLY, "".join(f"    {each}\n" for each in lines)


BOTH = grouped("train_op = tf.group(opt.apply_gradients(grads), tf.assign_add(step_count, 1))")
NAMED = grouped(
    "apply_op = opt.apply_gradients(grads)",
    "count = tf.assign_add(step_count, 1)",
    "train_op = tf.group(apply_op, count)",
)
OWN = (STEP, "    step_count = tf.Variable(0, trainable=False, name='global_step')\n")

TAKEN = [
    taken("in a group", BOTH, PRINTS),
    taken("in a group, first", grouped("train_op = tf.group(tf.assign_add(step_count, 1), opt.apply_gradients(grads))"), PRINTS),
    taken("in a group, by the variable's method", grouped("train_op = tf.group(opt.apply_gradients(grads), step_count.assign_add(1))"), PRINTS),
    taken("in a group, by a sum", grouped("train_op = tf.group(opt.apply_gradients(grads), tf.assign(step_count, step_count + 1))"), PRINTS),
    taken("in a group, by the method's sum", grouped("train_op = tf.group(opt.apply_gradients(grads), step_count.assign(step_count + 1))"), PRINTS),
    taken("with names", NAMED, PRINTS),
    taken("the count with a name", grouped("count = step_count.assign_add(1)", "train_op = tf.group(opt.apply_gradients(grads, name='apply'), count)"), PRINTS),
    taken("over lines", grouped("train_op = tf.group(", "    opt.apply_gradients(grads),", "    tf.assign_add(step_count, 1))"), PRINTS),
    taken("a variable of its own", OWN, BOTH, PRINTS),
    taken("a variable of its own, of get_variable", (STEP, "    step_count = tf.get_variable('steps', [], dtype=tf.int32, initializer=tf.zeros_initializer(), trainable=False)\n"), BOTH, PRINTS),
    taken("read by tf.train.global_step", BOTH, (RUN, RUN + "            print(tf.train.global_step(sess, step_count))\n")),
    taken("saved by its number", BOTH, ("saver.save(sess, 'ckpt/model')", "saver.save(sess, 'ckpt/model', global_step=sess.run(step_count))")),
    taken("saved by the step itself", BOTH, ("saver.save(sess, 'ckpt/model')", "saver.save(sess, 'ckpt/model', global_step=step_count)")),
    taken("asked for again", (APPLY, APPLY.replace("=step_count", "=tf.train.get_global_step()")), PRINTS),
    taken("made again", (APPLY, APPLY.replace("=step_count", "=tf.train.get_or_create_global_step()")), PRINTS),
    taken("asked for again for a schedule", (OPT, "    lr = tf.train.exponential_decay(0.1, tf.train.get_global_step(), 1, 0.5)\n    opt = tf.train.MomentumOptimizer(lr, 0.9)\n"), (APPLY, APPLY.replace("=step_count", "=tf.train.get_global_step()"))),
    taken("asked for again in a graph of its own", ("def train():\n", "def train():\n    with tf.Graph().as_default():\n        fit()\n\n\ndef fit():\n"), (APPLY, APPLY.replace("=step_count", "=tf.train.get_global_step()")), PRINTS),
]  # fmt: skip

LEFT = [
    left("read by a schedule", "TM204", DECAY, BOTH),
    left("read by a schedule, with names", "TM204", DECAY, NAMED),
    left("asked for by a schedule", "TM204", (OPT, "    lr = tf.train.exponential_decay(0.1, tf.train.get_global_step(), 1, 0.5)\n    opt = tf.train.MomentumOptimizer(lr, 0.9)\n"), BOTH),
    left("fetched with the update", "TM204", BOTH, (RUN, "            _, value, number = sess.run([train_op, loss, step_count], feed_dict={X: bx, Y: by})\n")),
    left("summarized", "TM204", BOTH, ("    saver = tf.train.Saver()\n", "    tf.summary.scalar('step', step_count)\n    saver = tf.train.Saver()\n")),
    left("counted by two", "TM204", grouped("train_op = tf.group(opt.apply_gradients(grads), tf.assign_add(step_count, 2))"), PRINTS),
    left("counted twice", "TM204", grouped("train_op = tf.group(opt.apply_gradients(grads), tf.assign_add(step_count, 1), tf.assign_add(step_count, 1))"), PRINTS),
    left("counted by the update too", "TM204", grouped("train_op = tf.group(opt.apply_gradients(grads, global_step=step_count), tf.assign_add(step_count, 1))"), PRINTS),
    left("counted alone too", "TM204", NAMED, (RUN, RUN + "            if step == 1:\n                sess.run(count)\n")),
    left("a variable that is trained", "TM204", (STEP, "    step_count = tf.Variable(0.0, name='steps')\n"), grouped("train_op = tf.group(opt.apply_gradients(grads), tf.assign_add(step_count, 1))"), PRINTS),
    left("with a comment", "TM204", grouped("train_op = tf.group(", "    opt.apply_gradients(grads),  # all towers", "    tf.assign_add(step_count, 1))"), PRINTS),
    left("of an average with as many updates", "TM204", grouped("ema = tf.train.ExponentialMovingAverage(0.9, step_count)", "average_op = ema.apply(tf.trainable_variables())", "train_op = tf.group(opt.apply_gradients(grads), average_op, tf.assign_add(step_count, 1))"), PRINTS),
    left("of two updates", "TM204", grouped("train_op = tf.group(opt.apply_gradients(grads), opt.apply_gradients(grads), tf.assign_add(step_count, 1))"), PRINTS),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT)
