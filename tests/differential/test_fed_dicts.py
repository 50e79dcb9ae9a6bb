"""Dicts that runs are fed, made among the statements of the session: in front of its loop, behind it, for several runs."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

LOOP = "        for step in range(4):\n"
SAVE = "        saver.save(sess, 'ckpt/model')\n"
SHOWN = "            print('step'"
INIT = "        sess.run(tf.global_variables_initializer())\n"
BEFORE = "        vx, vy = batch(4)\n        valid = {X: vx, Y: vy}\n"
LEFT_OVER = "sess.run(loss, feed_dict=valid)"


def before(more: str = "", made: str = BEFORE) -> Change:
    return LOOP, made + more + LOOP


def each_step(text: str = f"print('%.6f' % {LEFT_OVER})") -> Change:
    return SHOWN, f"            {text}\n{SHOWN}"


def behind(*lines: str) -> Change:
    return SAVE, "".join(f"        {line}\n" for line in lines) + SAVE


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
MADE = "    Y = tf.placeholder(tf.float32, [None, 1])\n"
RATE = (MADE, MADE + "    factor = tf.placeholder_with_default(1.0, [])\n")
SCALED = ("tf.square(out - y))", "tf.square(out - y)) * factor")
LATER = "            if step % 2:\n                feed[factor] = 0.5 * step\n"


def filled(text: str, made: str = "{X: bx, Y: by}") -> tuple[Change, ...]:
    """A dict that is filled in front of the run that it is fed to."""
    fed = RUN.replace("{X: bx, Y: by}", "feed")
    return RATE, SCALED, (RUN, f"            feed = {made}\n" + text + fed)


OWN = ("placeholder_with_default(1.0, [])", "placeholder(tf.float32, [])")
OTHERWISE = "            else:\n                feed[factor] = 2.0\n"

TEST = ("bx, by = batch(4)", "test = {X: bx, Y: by}")
LOOKED = "print('%.6f' % sess.run(loss, feed_dict=test))"

TAKEN = [
    taken("behind the loop", behind(*TEST, LOOKED)),
    taken("behind the loop, for a value", behind(*TEST, "value = sess.run(loss, feed_dict=test)", "print('%.6f' % value)")),
    taken("behind the loop, for two runs", behind(*TEST, "sess.run(train_op, feed_dict=test)", LOOKED)),
    taken("in front of the loop", before(), each_step()),
    taken("in front of the loop, for one run", before("        print('%.6f' % sess.run(loss, feed_dict=valid))\n")),
    taken("of what is drawn once", before(made="        rng = np.random.RandomState(3)\n        valid = {X: rng.rand(4, 3), Y: rng.rand(4, 1)}\n"), each_step()),
    taken("of names that are bound anew", before("        vx, vy = None, None\n"), each_step()),
    taken("of arrays that are changed in place", before(), each_step(f"vx[0, 0] += 0.5\n            print('%.6f' % {LEFT_OVER})")),
    taken("of arrays that a method changes", before(), each_step(f"vx.sort(axis=0)\n            print('%.6f' % {LEFT_OVER})")),
    taken("of a function's result", before(made="        valid = {X: batch(4)[0], Y: batch(4)[1]}\n"), each_step()),
    taken("in front of the session", ("    with tf.Session(", "    vx, vy = batch(4)\n    valid = {X: vx, Y: vy}\n    with tf.Session("), each_step()),
    taken("filled under a condition", *filled(LATER)),
    taken("filled under a condition, behind others", *filled("            feed[Y] = by\n" + LATER, "{X: bx}")),
    taken("filled under a condition, in front of others", *filled(LATER + "            feed[Y] = by * 0.5\n", "{X: bx}")),
    taken("filled in one way or another", *filled(LATER + OTHERWISE)),
    taken("filled in one way or another, without a default", *filled(LATER + OTHERWISE), OWN),
    taken("set anew under a condition", *filled(LATER, "{X: bx, factor: 1.5, Y: by}"), OWN),
    taken("filled with a whole number", *filled(LATER.replace("0.5 * step", "2")), ("with_default(1.0, [])", "with_default(1, [])"), ("* factor", "* tf.cast(factor, tf.float32)")),
    taken("filled under a condition that draws", *filled(LATER.replace("step % 2", "batch(2)[0][0, 0] > 0.2"))),
    taken("under a condition", before("        if drawn[0]:\n            print('%.6f' % sess.run(loss, feed_dict=valid))\n")),
    taken("set anew under a condition, what was computed", *filled(LATER, "{X: bx, factor: batch(2)[0][0, 0], Y: by}"), OWN),
    taken("filled in a loop", *filled(LATER.replace("if step % 2:", "for _ in range(step % 2):"))),
    taken("filled in two ways with two inputs", *filled(LATER + OTHERWISE.replace("factor] = 2.0", "Y] = by * 2.0"))),
    taken("that is changed", before("        valid[X] = vx * 2.0\n"), each_step()),
    taken("that is changed in the loop", before(), each_step(f"valid[Y] = vy * step\n            print('%.6f' % {LEFT_OVER})")),
    taken("filled of itself", *filled(LATER.replace("0.5 * step", "feed[X].mean()"))),
]  # fmt: skip

LEFT = [
    left("filled under a condition, of no default", "TM209", *filled(LATER), OWN),
    left("filled under a condition, of a default that is computed", "TM209", *filled(LATER), ("with_default(1.0, [])", "with_default(tf.constant(1.0), [])")),
    left("taken out under a condition", "TM209", *filled("            if step % 2:\n                del feed[factor]\n", "{X: bx, factor: 0.5, Y: by}")),
    left("that is bound twice", "TM210", before("        valid = {X: vx * 2.0, Y: vy}\n"), each_step()),
    left("that is printed", "TM209", before("        print(len(valid))\n"), each_step()),
    left("that nobody is fed", "TM210", before("        print(len(valid))\n")),
    left("that another name is given", "TM209", before("        other = valid\n        other[X] = vx * 2.0\n"), each_step()),
    left("that feeds a tensor", "TM209", before(made="        vx, vy = batch(4)\n        valid = {X: vx, Y: vy, loss: 1.0}\n"), each_step()),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
