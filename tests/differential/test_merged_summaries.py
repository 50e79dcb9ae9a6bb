"""`tf.summary.merge_all()` behind towers that make summaries: loop style where it is known what it merges."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
SAID = (LOSS, LOSS + "                    tf.summary.scalar('tower_loss', loss)\n")
SAVER = "    saver = tf.train.Saver()\n"
MERGED = "    merged = tf.summary.merge_all()\n"
MERGE = (SAVER, MERGED + SAVER)
INIT = "        sess.run(tf.global_variables_initializer())\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
WRITER = (INIT, INIT + "        writer = tf.summary.FileWriter('logs')\n")
WRITE = (
    RUN,
    RUN + "            writer.add_summary(sess.run(merged, feed_dict={X: bx, Y: by}), step)\n",
)
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
RATE = (
    OPT,
    "    rate = tf.train.exponential_decay(0.1, step_count, 2, 0.5)\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n",
)


def taken(name: str, *changes: Change) -> object:
    return pytest.param((*changes, WRITER, WRITE), id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param((*changes, WRITER, WRITE), rule, id=name)


def behind(*lines: str) -> Change:
    return SAVER, "".join(f"    {line}\n" for line in lines) + MERGED + SAVER


TAKEN = [
    taken("of each tower", SAID, MERGE),
    taken("two of each tower", SAID, (LOSS, LOSS + "                    tf.summary.histogram('out', out)\n"), MERGE),
    taken("in a scope without a name", SAID, MERGE, (" as scope:", ":")),
    taken("one behind", SAID, behind("tf.summary.scalar('last', loss)")),
    taken("one behind that has a name", SAID, behind("last = tf.summary.scalar('last', loss)")),
    taken("one in front", RATE, SAID, MERGE, ("    tower_grads = []\n", "    tf.summary.scalar('rate', rate)\n    tower_grads = []\n")),
    taken("in front and behind", RATE, SAID, behind("tf.summary.scalar('last', loss)"), ("    tower_grads = []\n", "    tf.summary.scalar('rate', rate)\n    tower_grads = []\n")),
    taken("of a function of the towers", ("    w = tf.get_variable", "    tf.summary.histogram('x', x)\n    w = tf.get_variable"), MERGE),
    taken("beside another collection", SAID, (LOSS, LOSS + "                    tf.add_to_collection('losses', loss)\n"), MERGE),
    taken("fetched with the update", SAID, MERGE, (RUN, "            _, value, said = sess.run([train_op, loss, merged], feed_dict={X: bx, Y: by})\n            writer.add_summary(said, step)\n" + RUN)),
    taken("one more behind the merge", SAID, (SAVER, MERGED + "    alone = tf.summary.scalar('alone', loss)\n" + SAVER),
          (RUN, RUN + "            writer.add_summary(sess.run(alone, feed_dict={X: bx, Y: by}), step)\n")),
    taken("in a loop behind", SAID, behind("for grad, var in grads:", "    tf.summary.histogram(var.op.name + '/gradients', grad)")),
]  # fmt: skip

LEFT = [
    left("beside what a collection is given", "TM219", SAID, behind("tf.add_to_collection(tf.GraphKeys.SUMMARIES, tf.summary.scalar('kept', loss, collections=[]))")),
    left("outside of the tower's scope", "TM219", ("                with tf.name_scope('tower_%d' % i) as scope:\n", "                tf.summary.scalar('number', tf.constant(1.0))\n                with tf.name_scope('tower_%d' % i) as scope:\n"), MERGE),
    left("in a function behind", "TM219", SAID, ("def batch(rows)", "def tell(value):\n    tf.summary.scalar('told', value)\n\n\ndef batch(rows)"), behind("tell(loss)")),
    left("in a function that one behind calls", "TM219", SAID, ("def batch(rows)", "def tell(value):\n    tf.summary.scalar('told', value)\n\n\ndef tell_all(value):\n    tell(value)\n\n\ndef batch(rows)"), behind("tell_all(loss)")),
    left("in a method behind", "TM219", SAID, ("def batch(rows)", "class Teller(object):\n    def tell(self, value):\n        tf.summary.scalar('told', value)\n\n\nteller = Teller()\n\n\ndef batch(rows)"), behind("teller.tell(loss)")),
    left("in a lambda behind", "TM219", SAID, ("def batch(rows)", "tell = lambda value: tf.summary.scalar('told', value)\n\n\ndef batch(rows)"), behind("tell(loss)")),
    left("in a function under another name", "TM219", SAID, ("def batch(rows)", "def tell(value):\n    tf.summary.scalar('told', value)\n\n\nsaid_of = tell\n\n\ndef batch(rows)"), behind("said_of(loss)")),
    left("by a module under another name", "TM219", SAID, ("def batch(rows)", "summary = tf.summary\n\n\ndef batch(rows)"), behind("summary.scalar('told', loss)")),
    left("by TensorFlow 2's name", "TM219", SAID, behind("tf.compat.v1.summary.scalar('told', loss)")),
    left("merged twice", "TM219", SAID, behind("again = tf.summary.merge_all()")),
    left("of a collection", "TM219", SAID, (SAVER, "    merged = tf.summary.merge_all(key='summaries')\n" + SAVER)),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
