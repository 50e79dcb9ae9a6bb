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
    taken("under a condition", before("        if drawn[0]:\n            print('%.6f' % sess.run(loss, feed_dict=valid))\n")),
]  # fmt: skip

LEFT = [
    left("that is changed", "TM209", before("        valid[X] = vx * 2.0\n"), each_step()),
    left("that is changed in the loop", "TM209", before(), each_step(f"valid[Y] = vy * step\n            print('%.6f' % {LEFT_OVER})")),
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
