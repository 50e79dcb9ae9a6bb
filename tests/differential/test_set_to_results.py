"""`sess.run(best.assign(value))` of what a run gave: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

SAVER = "    saver = tf.train.Saver()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
LOOP = "        for step in range(4):\n"
BEST = "best = tf.Variable(9.0, trainable=False, name='best')"
GOT = (
    "best = tf.get_variable('best', [], initializer=tf.constant_initializer(9.0), trainable=False)"
)
LOOK = "print('best', sess.run(best))"


def kept(made: str, *lines: str) -> tuple[Change, Change]:
    """A variable behind the update, and lines behind the training run of each step."""
    at_run = "".join(f"            {each}\n" for each in lines)
    return (SAVER, f"    {made}\n{SAVER}"), (RUN, RUN + at_run)


TAKEN = [
    taken("where it is less", *kept(BEST, "if value < sess.run(best):", "    sess.run(best.assign(value))", LOOK)),
    taken("of get_variable", *kept(GOT, "if value < sess.run(best):", "    sess.run(best.assign(value))", LOOK)),
    taken("by tf.assign", *kept(BEST, "sess.run(tf.assign(best, value))", LOOK)),
    taken("NumPy's mean", *kept(BEST, "sess.run(best.assign(np.mean(value)))", LOOK)),
    taken("Python's number", *kept(BEST, "sess.run(best.assign(float(value)))", LOOK)),
    taken("computed with", *kept(BEST, "score = float(value) * 2 + 1.0", "sess.run(best.assign(score))", LOOK)),
    taken("added up", *kept(BEST, "total += value", "sess.run(best.assign(total / 4))", LOOK), (LOOP, "        total = 0.0\n" + LOOP)),
    taken("of a run that only looks", *kept(BEST, "seen = sess.run(loss, feed_dict={X: bx, Y: by})", "sess.run(best.assign(seen))", LOOK)),
    taken("of what nothing trains, though it is not said", *kept("best = tf.Variable(9.0, name='best')", "sess.run(best.assign(value))", LOOK)),
    taken("what it was, and a result", *kept(BEST, "before = sess.run(best)", "sess.run(best.assign(before * 0.9 + value * 0.1))", LOOK)),
]  # fmt: skip

LEFT = [
    left("a tensor", "TM209", *kept(BEST, "sess.run(best.assign(loss), feed_dict={X: bx, Y: by})", LOOK)),
    left("a tensor now and then", "TM209", *kept(BEST, "if step:", "    value = tf.constant(3.0)", "sess.run(best.assign(value))", LOOK)),
    left("a tensor of a function", "TM209", *kept(BEST, "value = graph_value()", "sess.run(best.assign(value))", LOOK), ("def average_gradients(", "def graph_value():\n    return tf.constant(3.0)\n\n\ndef average_gradients(")),
    left("a whole number", "TM209", *kept("best = tf.Variable(9, trainable=False, name='best')", "sess.run(best.assign(value))", LOOK)),
    left("a result that is read too", "TM209", *kept(BEST, "print(sess.run(best.assign(value)))")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
