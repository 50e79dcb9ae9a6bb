"""Variables of one number that are made behind the towers: loop style, and neighbours that must not be."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else
from towermigrate.recognize.plain.changes import PlainFile
from towermigrate.recognize.plain.made_behind import variables_behind

STEP = ("    step_count = tf.train.get_or_create_global_step()\n", "")
APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
SAVER = "    saver = tf.train.Saver()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
PRINTS = (RUN, RUN + "            print(sess.run(step_count))\n")
TOWER = "                    tower_grads.append(grads)\n"


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def counted(made: str) -> tuple[Change, Change, Change]:
    """A step made right in front of the update."""
    return STEP, (APPLY, f"    step_count = {made}\n{APPLY}"), PRINTS


def behind(*lines: str) -> Change:
    """Lines behind the update, in front of the saver."""
    return SAVER, "".join(f"    {each}\n" for each in lines) + SAVER


def at_run(*lines: str) -> Change:
    return RUN, RUN + "".join(f"            {each}\n" for each in lines)


BEST = "best = tf.Variable(1e9, trainable=False, name='best')"
FED = behind(
    BEST, "best_value = tf.placeholder(tf.float32, [])", "set_best = tf.assign(best, best_value)"
)

TAKEN = [
    taken("the step", *counted("tf.Variable(0, trainable=False, name='global_step')")),
    taken("the step, without a name", *counted("tf.Variable(0, trainable=False)")),
    taken("the step, not said to be untrained", *counted("tf.Variable(0, name='step')")),
    taken("the step, not said to be untrained, by a keyword", *counted("tf.Variable(initial_value=0, dtype=tf.int64)")),
    taken("the step of get_variable", *counted("tf.get_variable('global_step', [], initializer=tf.constant_initializer(0), trainable=False)")),
    taken("the step of get_variable, from zeros", *counted("tf.get_variable('global_step', shape=(), dtype=tf.int64, initializer=tf.zeros_initializer(), trainable=False)")),
    taken("the step of get_variable, from a number", *counted("tf.get_variable('global_step', initializer=0, trainable=False)")),
    taken("the step, under its comment", STEP, (APPLY, "    # counts the updates\n    step_count = tf.Variable(0, trainable=False)\n" + APPLY)),
    taken("a best value that nothing changes", behind("best = tf.Variable(float('inf'), trainable=False, name='best')")),
    taken("a best value that is fed", FED, at_run("sess.run(set_best, {best_value: value})", "print(sess.run(best))")),
    taken("a best value that is read and set", FED, at_run("if value < sess.run(best):", "    sess.run(set_best, {best_value: value})", "print('best', sess.run(best))")),
    taken("an epoch that is counted", behind("epoch = tf.Variable(0, trainable=False, name='epoch')", "next_epoch = tf.assign_add(epoch, 1)"), at_run("sess.run(next_epoch)", "print(sess.run(epoch))")),
    taken("two of them", STEP, (APPLY, "    step_count = tf.Variable(0, trainable=False, name='step')\n" + APPLY), behind(BEST), PRINTS),
    taken("saved with all", FED, (SAVER, "    saver = tf.train.Saver(tf.global_variables(), max_to_keep=3)\n"), at_run("sess.run(set_best, {best_value: value})")),
    taken("saved with some", behind(BEST), (SAVER, "    saver = tf.train.Saver(tf.trainable_variables() + [best])\n")),
    taken("of a graph of its own", STEP, (APPLY, "    step_count = tf.Variable(0, trainable=False, name='step')\n" + APPLY), PRINTS, ("def train():\n", "def train():\n    with tf.Graph().as_default():\n        fit()\n\n\ndef fit():\n")),
]  # fmt: skip

LEFT = [
    left("listed in their order", "TM211", behind(BEST, "print([v.op.name for v in tf.global_variables()])")),
    left("listed by a collection", "TM211", behind(BEST, "print([v.op.name for v in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)])")),
    left("not of a saver that is made before", "TM211", (SAVER, SAVER + f"    {BEST}\n")),
    left("not of a saver that a function makes before", "TM211", ("def batch(rows):\n", "def saves():\n    return tf.train.Saver()\n\n\ndef batch(rows):\n"), (SAVER, f"    saver = saves()\n    {BEST}\n")),
    left("not started", "TM211", (SAVER, SAVER + f"    start = tf.global_variables_initializer()\n    {BEST}\n"), ("sess.run(tf.global_variables_initializer())", "sess.run(start)")),
    left("trained by another update", "TM211", behind("scale = tf.Variable(1.0, name='scale')", "print([v.op.name for v in tf.trainable_variables()])")),
    left("of a name that is taken", "TM211", ("                with tf.name_scope('tower_%d' % i) as scope:\n", "                with tf.name_scope('best'):\n"), behind(BEST)),
    left("of a weight's value", "TM211", behind("first = tf.Variable(tf.trainable_variables()[1].initialized_value(), trainable=False, name='first')"), at_run("print(sess.run(first))")),
    left("of a number that is computed", "TM211", behind("size = tf.Variable(float(len(tower_grads)), trainable=False, name='size')")),
    left("of several numbers", "TM211", behind("sizes = tf.Variable([0., 1.], trainable=False, name='sizes')")),
    left("with a comment behind it", "TM211", behind(BEST + "  # of all steps")),
    left("made where it is decided", "TM218", behind("if NUM > 1:", f"    {BEST}"), ("drawn = [0]\n", "drawn = [0]\nNUM = 2\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.parametrize(
    ("line", "moved"),
    [
        ("names = []", True),
        ("scope = tf.get_variable_scope()", True),
        ("weights = tf.get_variable('w')", True),
        ("restored = slim.get_variables_to_restore(exclude=['fc'])", False),
        ("restored = tf.contrib.framework.get_variables()", False),
        ("restored = slim.get_model_variables('net')", False),
        ("restored = ema.variables_to_restore()", False),
        ("tf.train.init_from_checkpoint('net', {'/': '/'})", False),
    ],
)
def test_what_takes_the_variables_that_there_are(line: str, moved: bool) -> None:
    made = f"    {line}\n    step_count = tf.Variable(0, trainable=False, name='steps')\n"
    (text,) = program(STEP, (APPLY, made + APPLY)).values()

    assert bool(variables_behind(PlainFile("train.py", text))) == moved


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT)
