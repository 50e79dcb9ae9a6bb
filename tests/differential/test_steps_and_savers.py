"""Global steps that are made behind the towers, and savers of all variables: one that is made before a step does not save it."""

from __future__ import annotations

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

SAVER = "    saver = tf.train.Saver()\n"
APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
MADE = "    step_count = tf.train.get_or_create_global_step()\n"
IN_PLACE = APPLY.replace("=step_count", "=tf.train.get_or_create_global_step()")
LISTED = SAVER.replace("()", "(tf.global_variables())")
EMA = """\
    ema = tf.train.ExponentialMovingAverage(0.9)
    averaged = ema.apply(tf.trainable_variables())
    train_op = tf.group(train_op, averaged)
"""
KEEP: Change = ("def batch(", "def keep():\n    return tf.train.Saver()\n\n\ndef batch(")
CALLED = SAVER.replace("tf.train.Saver", "keep")


def order(*lines: str) -> tuple[Change, ...]:
    """The step is made in these lines, which take the place of those that update and make the saver."""
    return (MADE, ""), (APPLY + SAVER, "".join(lines))


TAKEN = [
    taken("in place", *order(IN_PLACE, SAVER)),
    taken("by a name", *order(MADE, APPLY, SAVER)),
    taken("a saver that lists all", *order(IN_PLACE, LISTED)),
    taken("a saver before the slots", (APPLY + SAVER, SAVER + APPLY)),
    taken("a saver of all before the slots", (APPLY + SAVER, LISTED + APPLY)),
    taken("a saver before the averages", (APPLY + SAVER, APPLY + SAVER + EMA)),
]  # fmt: skip

LEFT = [
    left("a saver before", "TM211", *order(SAVER, IN_PLACE)),
    left("a saver that lists all, before", "TM211", *order(LISTED, IN_PLACE)),
    left("a saver before a step that has a name", "TM211", *order(SAVER, MADE, APPLY)),
    left("a saver by a function, before", "TM211", KEEP, *order(CALLED, IN_PLACE)),
    left("a saver by a function of a function, before", "TM211", (KEEP[0], KEEP[1].replace("def batch(", "def kept():\n    return keep()\n\n\ndef batch(")), *order(CALLED.replace("keep", "kept"), IN_PLACE)),
    left("a saver by a lambda, before", "TM210", *order("    keep = lambda: tf.train.Saver()\n" + CALLED, IN_PLACE)),
    left("a variable that a saver before it does not save", "TM211", (APPLY + SAVER, APPLY + SAVER + "    best = tf.Variable(0.5, name='best', trainable=False)\n"), ("        saver.save", "        print(sess.run(best))\n        saver.save")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
