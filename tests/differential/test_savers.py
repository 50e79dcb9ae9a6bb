"""Savers of some of the trained variables, and writers that are given the graph: loop style where the list is plain."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

SAVER = "    saver = tf.train.Saver()\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
SAVE = "        saver.save(sess, 'ckpt/model')\n"
END = "        print('draws', drawn[0])\n"
STEPS = "        for step in range(4):\n"
RESTORED = (
    END,
    "        saver.restore(sess, 'ckpt/model')\n        print(['%.6f' % v.sum() for v in sess.run(tf.trainable_variables())])\n"
    + END,
)


def saver(text: str) -> Change:
    return SAVER, f"    saver = tf.train.Saver({text})\n"


def named(text: str, given: str = "some") -> Change:
    return SAVER, f"    some = {text}\n    saver = tf.train.Saver({given})\n"


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


WITH_W = "[v for v in tf.trainable_variables() if 'w' in v.name]"

TAKEN = [
    taken("those whose names hold a text", saver(WITH_W), RESTORED),
    taken("that begin with one", saver("[v for v in tf.trainable_variables() if v.op.name.startswith('b')]"), RESTORED),
    taken("by two tests", saver("[v for v in tf.trainable_variables() if 'w' in v.name and not v.name.startswith('b')], max_to_keep=2")),
    taken("of a scope", ("    w = tf.get_variable", "    with tf.variable_scope('deep'):\n        w = tf.get_variable"), saver("tf.trainable_variables('deep')"), RESTORED),
    taken("trained ones and the steps", saver("tf.trainable_variables() + [step_count]"), RESTORED),
    taken("the steps and trained ones", saver("var_list=[step_count] + tf.trainable_variables(), max_to_keep=2"), RESTORED),
    taken("some of the trained ones, the steps and another", ("    tower_grads = []\n", "    seen = tf.Variable(3, trainable=False, name='seen')\n    tower_grads = []\n"), saver(WITH_W + " + [step_count, seen]")),
    taken("trained ones and the steps, with a name", named("tf.trainable_variables() + [step_count]"), RESTORED),
    taken("of a collection", saver("var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)"), RESTORED),
    taken("a list that has a name", named(WITH_W), RESTORED),
    taken("by a keyword", named(WITH_W, "var_list=some"), RESTORED),
    taken("that is printed too", named(WITH_W), (END, "        print(len(sess.run(tf.trainable_variables())))\n" + END)),
    taken("all variables by a name", named("tf.global_variables()"), RESTORED),
    taken("beside a saver of all", (SAVER, SAVER + f"    part = tf.train.Saver({WITH_W})\n"),
          (END, "        part.save(sess, 'part/model')\n" + END)),
    taken("all by their names", saver("{v.op.name: v for v in tf.global_variables()}"), RESTORED),
    taken("all by their names, made of pairs", saver("dict((v.op.name, v) for v in tf.global_variables())"), RESTORED),
    taken("all by what is in front of the colon", saver("{v.name.split(':')[0]: v for v in tf.global_variables()}"), RESTORED),
    taken("trained ones by their names", saver("{v.op.name: v for v in tf.trainable_variables() if 'w' in v.name}"), RESTORED),
    taken("by names in a dict", named("{v.op.name: v for v in tf.global_variables()}", "var_list=some"), RESTORED),
    taken("a list of all that is copied", saver("list(tf.global_variables())"), RESTORED),
    taken("a comprehension of all", saver("[v for v in tf.global_variables()]"), RESTORED),
    taken("that is asked for what it has saved", (SAVE, SAVE + "        print(saver.last_checkpoints)\n")),
    taken("that is asked before it has saved any, and keeps few", saver("max_to_keep=1"), (SAVE, "        print(saver.last_checkpoints)\n" + SAVE.replace("model'", "model', 1") + SAVE.replace("model'", "model', 2") + "        print(saver.last_checkpoints)\n")),
    taken("whose path is printed", (SAVE, "        path = saver.save(sess, 'ckpt/model', global_step=step_count)\n        print('saved', path)\n")),
    taken("a writer that is given the graph", (SAVER, SAVER + "    writer = tf.summary.FileWriter('logs', tf.get_default_graph())\n")),
    taken("by a keyword, in the session", (STEPS, "        writer = tf.summary.FileWriter('logs', graph=tf.get_default_graph())\n" + STEPS)),
]  # fmt: skip

APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"

LEFT = [
    left("all that there is before the slots are made", "TM231", (APPLY, "    some = tf.global_variables()\n" + APPLY), saver("some")),
    left("slots by their names", "TM231", saver("[v for v in tf.global_variables() if 'Momentum' not in v.name]")),
    left("by a test of the program's own", "TM231", ("def batch(rows)", "def wanted(v):\n    return 'w' in v.name\n\n\ndef batch(rows)"), saver("[v for v in tf.trainable_variables() if wanted(v)]")),
    left("trained ones and what is bound anew", "TM231", named("tf.trainable_variables() + [step_count]"), ("    saver = tf.train.Saver(some)\n", "    step_count = tf.Variable(7, trainable=False, name='other')\n    saver = tf.train.Saver(some)\n")),
    left("trained ones and a slot", "TM231", (SAVER, "    slot = opt.get_slot(tf.trainable_variables()[0], 'momentum')\n    saver = tf.train.Saver(tf.trainable_variables() + [slot])\n")),
    left("trained ones and some of them again", "TM231", saver("tf.trainable_variables() + tf.trainable_variables('w')[:0]")),
    left("trained ones and all others", "TM231", saver("tf.trainable_variables() + [v for v in tf.global_variables() if 'global_step' in v.name]")),
    left("a list that grows", "TM231", named(WITH_W), (SAVER.replace("Saver()", "Saver(some)"), "    some.append(step_count)\n    saver = tf.train.Saver(some)\n")),
    left("a list that is bound anew", "TM231", named(WITH_W), (SAVER.replace("Saver()", "Saver(some)"), "    some = some + [step_count]\n    saver = tf.train.Saver(some)\n")),
    left("a list that was made before the towers", "TM230", ("    tower_grads = []\n", "    some = tf.trainable_variables()\n    tower_grads = []\n"), saver("some or None")),
    left("by names of its own", "TM231", saver("{'all/' + v.op.name: v for v in tf.global_variables()}")),
    left("by names and what else is put there", "TM231", named("{v.op.name: v for v in tf.global_variables()}"), (SAVER.replace("Saver()", "Saver(some)"), "    some['more'] = step_count\n    saver = tf.train.Saver(some)\n")),
    left("of other variables by their names", "TM231", saver("{v.op.name: w for v, w in zip(tf.global_variables(), tf.global_variables())}")),
    left("whose list of checkpoints is set", "TM231", (SAVE, SAVE + "        saver.set_last_checkpoints([])\n")),
    left("a graph that is asked for more", "TM223", (SAVER, SAVER + "    print(len(tf.get_default_graph().get_operations()) > 3)\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
