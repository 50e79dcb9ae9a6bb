"""A global step that is made in the call that needs it: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

MADE = "tf.train.get_or_create_global_step()"
STEP = f"    step_count = {MADE}\n"
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SAVE = "        saver.save(sess, 'ckpt/model')\n"
COUNTED = ("global_step=step_count", f"global_step={MADE}")
GOT = ("global_step=step_count", "global_step=tf.train.get_global_step()")
READ = (SAVE, SAVE + "        print(sess.run(tf.train.get_global_step()))\n")


def rate(schedule: str, *lines: str) -> Change:
    """A schedule over a step without a name, and the optimizer that has it."""
    own = "".join(f"    {each}\n" for each in lines)
    return STEP + OPT, f"{own}    opt = tf.train.MomentumOptimizer({schedule}, 0.9)\n"


DECAY = f"tf.train.exponential_decay(0.1, {MADE}, 2, 0.5)"
TAKEN = [
    taken("in the optimizer's call", rate(DECAY), COUNTED),
    taken("in a call of its own", rate("lr", f"lr = {DECAY}"), COUNTED),
    taken("asked for by another name", rate("lr", f"lr = {DECAY}"), GOT),
    taken("read at the end", rate(DECAY), COUNTED, READ),
    taken("saved under its number", rate(DECAY), COUNTED, (SAVE, SAVE.replace("'ckpt/model'", "'ckpt/model', global_step=tf.train.get_global_step()"))),
    taken("of a polynomial", rate(f"tf.train.polynomial_decay(0.1, {MADE}, 10)"), COUNTED),
    taken("of pieces", rate(f"tf.train.piecewise_constant({MADE}, [2, 3], [0.1, 0.05, 0.01])"), COUNTED),
    taken("under a comment", rate("lr", "# halved", f"lr = {DECAY}"), COUNTED),
    taken("in the update alone", (STEP, ""), COUNTED),
    taken("in the update alone, read at the end", (STEP, ""), COUNTED, READ),
    taken("where the name is taken", rate("lr", "global_step = 3", f"lr = {DECAY}"), COUNTED, (SAVE, SAVE + "        print(global_step)\n")),
]  # fmt: skip

LEFT = [
    left("beside what may make a variable", "TM211", (STEP + OPT, f"    opt = tf.train.MomentumOptimizer(rate({MADE}), 0.9)\n"), COUNTED, ("def average_gradients(", "def rate(step):\n    return tf.train.exponential_decay(0.1, step, 2, 0.5)\n\n\ndef average_gradients(")),
    left("in a branch", "TM211", (STEP + OPT, f"    lr = 0.1\n    if DEVICES:\n        lr = {DECAY}\n    opt = tf.train.MomentumOptimizer(lr, 0.9)\n"), COUNTED),
    left("where a condition holds", "TM211", rate("lr", f"lr = {DECAY} if DEVICES else 0.1"), COUNTED),
    left("of another graph", "TM211", (STEP + OPT, f"    with tf.Graph().as_default():\n        other = {DECAY}\n{OPT}"), COUNTED),
    left("behind another variable of the call", "TM211", rate("lr", f"lr = {DECAY.replace('0.1', 'tf.Variable(0.1, trainable=False)', 1)}"), COUNTED),
    left("of a function without a name", "TM211", rate("lr()", f"lr = lambda: {DECAY}"), COUNTED),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
