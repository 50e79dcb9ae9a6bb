"""Summaries that loops behind the towers make, of gradients and variables, and merges of all that are collected."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
SAVER = "    saver = tf.train.Saver()\n"
LOOP = "        for step in range(4):\n"
SHOWN = "            print('step'"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
WRITTEN: tuple[Change, ...] = (
    (LOOP, "        writer = tf.summary.FileWriter('logs')\n" + LOOP),
    (SHOWN, "            text = sess.run(merged, feed_dict={X: bx, Y: by})\n            writer.add_summary(text, step)\n" + SHOWN),
)  # fmt: skip
OF_GRADIENTS = "    for g, v in grads:\n        tf.summary.histogram(v.op.name + '/grad', g)\n"
OF_VARIABLES = (
    "    for v in tf.trainable_variables():\n        tf.summary.histogram(v.op.name, v)\n"
)
OF_BOTH = "    for g, v in grads:\n        tf.summary.histogram(v.op.name + '/grad', g)\n        tf.summary.histogram(v.op.name, v)\n"
OF_LOSS = "                    tf.summary.scalar('loss', loss)\n"
ALL = "tf.summary.merge_all()"
COLLECTED = "tf.summary.merge(tf.get_collection(tf.GraphKeys.SUMMARIES))"


def taken(name: str, *changes: Change) -> object:
    return pytest.param((*changes, *WRITTEN), id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param((*changes, *WRITTEN), rule, id=name)


def before(text: str) -> Change:
    return APPLY, text + APPLY


def behind(text: str) -> Change:
    return APPLY, APPLY + text


def merged(text: str = ALL) -> Change:
    return SAVER, f"    merged = {text}\n{SAVER}"


def appended(begun: str = "[]") -> str:
    return f"    made = {begun}\n    for g, v in grads:\n        made.append(tf.summary.histogram(v.op.name + '/grad', g))\n"


TAKEN = [
    taken("of gradients", before(OF_GRADIENTS), merged()),
    taken("of gradients that are there", before("    for g, v in grads:\n        if g is not None:\n            tf.summary.histogram(v.op.name + '/grad', g)\n"), merged()),
    taken("of gradients by a format", before("    for grad, var in grads:\n        tf.summary.histogram('%s/grad' % var.op.name, grad)\n"), merged()),
    taken("of norms", before("    for g, v in grads:\n        tf.summary.scalar(v.op.name + '/norm', tf.norm(g))\n"), merged()),
    taken("of variables", behind(OF_VARIABLES), merged()),
    taken("of gradients, then of variables", before(OF_GRADIENTS), behind(OF_VARIABLES), merged()),
    taken("of gradients and variables in one loop", before(OF_BOTH), merged()),
    taken("beside one of its own", before(OF_GRADIENTS), behind("    tf.summary.scalar('first', tf.reduce_sum(grads[0][0]))\n"), merged()),
    taken("of a collection", before(OF_GRADIENTS), merged(COLLECTED)),
    taken("of a collection by its text", behind(OF_VARIABLES), merged("tf.summary.merge_all('summaries')")),
    taken("beside those of the towers", (GRADS, GRADS + OF_LOSS), before(OF_GRADIENTS), behind(OF_VARIABLES), merged()),
    taken("beside those of the towers, in one loop", (GRADS, GRADS + OF_LOSS), before(OF_BOTH), merged()),
    taken("in a list", before(appended()), merged("tf.summary.merge(made)")),
    taken("in a list with another", before(appended("[tf.summary.scalar('loss', loss)]")), merged("tf.summary.merge(made)")),
    taken("in a list, both", before(OF_BOTH.replace("tf.summary.histogram", "made.append(tf.summary.histogram").replace("g)\n", "g))\n").replace("name, v)", "name, v))").replace("    for", "    made = []\n    for", 1)), merged("tf.summary.merge(made)")),
    taken("in a list that is merged at once", before(appended() + "    merged = tf.summary.merge(made)\n")),
]  # fmt: skip

LEFT = [
    left("of the last pair behind the loop", "TM219", before(OF_GRADIENTS + "    print(v.op.name)\n"), merged()),
    left("of every second", "TM219", before("    for k, (g, v) in enumerate(grads):\n        if k % 2:\n            tf.summary.histogram(v.op.name + '/grad', g)\n"), merged()),
    left("that says something", "TM219", before(OF_GRADIENTS + "        print(v.op.name)\n"), merged()),
    left("that stops", "TM219", before(OF_GRADIENTS + "        break\n"), merged()),
    left("in a loop around it", "TM219", before("    for end in ('/a', '/b'):\n        for g, v in grads:\n            tf.summary.histogram(v.op.name + end, g)\n"), merged()),
    left("in a collection of their own", "TM219", before(OF_GRADIENTS.replace("g)\n", "g, collections=['mine'])\n")), behind("    tf.summary.scalar('loss', loss)\n"), merged()),
    left("of all variables", "TM219", before(OF_VARIABLES.replace("trainable", "global")), merged()),
    left("of all variables, behind the update", "TM219", behind(OF_VARIABLES.replace("trainable", "global")), merged()),
    left("of all variables, by their collection", "TM219", merged("tf.summary.merge([tf.summary.histogram(v.op.name, v) for v in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)])")),
    left("in a list that is asked before", "TM206", before(appended().replace("    for g", "    print(len(made))\n    for g")), merged("tf.summary.merge(made)")),
    left("in a list that is bound anew", "TM206", before(appended() + "    made = made[:1]\n"), merged("tf.summary.merge(made)")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
