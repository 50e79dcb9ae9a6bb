"""Summaries that each tower keeps by its number, of which the first one's are merged: what loop style takes and leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

SCOPE = "                with tf.name_scope('tower_%d' % i) as scope:\n"
NO_SCOPE = (SCOPE, "                with tf.device('/cpu:0'):\n")
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
SAVER = "    saver = tf.train.Saver()\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
MERGED = "    merged = tf.summary.merge_all('model_0')\n"
WRITER = (INIT, INIT + "        writer = tf.summary.FileWriter('logs')\n")
WRITE = (
    RUN,
    RUN + "            writer.add_summary(sess.run(merged, feed_dict={X: bx, Y: by}), step)\n",
)
LOOP = "        for i in range(2):\n"
NET = "def net(x):\n"
CLASS = """\
class Model(object):
    def __init__(self, x, y, number=0):
        self.kept = ['model_' + str(number)]
        self.loss = tf.reduce_mean(tf.square(net(x) - y))
        self.tell()

    def tell(self):
        with tf.device('/cpu:0'):
            for k in range(2):
                tf.summary.scalar('told_' + str(k), self.loss * k, collections=self.kept)


"""


def kept(key: str = "'model_%d' % i", tag: str = "'said'", *, more: str = "") -> Change:
    return (
        LOSS,
        LOSS + f"                    tf.summary.scalar({tag}, loss, collections=[{key}])\n{more}",
    )


def behind(*lines: str, merged: str = MERGED) -> Change:
    return SAVER, "".join(f"    {line}\n" for line in lines) + merged + SAVER


def case(name: str, *changes: Change, scope: bool = False) -> Any:
    return pytest.param((*([] if scope else [NO_SCOPE]), *changes, WRITER, WRITE), id=name)


def other(name: str, rule: str, *changes: Change, scope: bool = False) -> Any:
    return pytest.param((*([] if scope else [NO_SCOPE]), *changes, WRITER, WRITE), rule, id=name)


MORE = ("drawn = [0]\n", "drawn = [0]\nMORE = bool(np.ones(1)[0])\n")
LAST = "tf.summary.scalar('last', loss, ['model_0'])"
MODEL = (
    (NET, CLASS + NET),
    (f"                    out = net(x)\n{LOSS}", "                    model = Model(x, y, i)\n                    loss = model.loss\n"),
)  # fmt: skip
OUT = "tf.expand_dims(tf.expand_dims(out, 0), 3)"

TAKEN = [
    case("of each tower", kept(), behind()),
    case("in scopes of their own", kept(), behind(), scope=True),
    case("a sum of texts", kept("'model_' + str(i)"), behind()),
    case("a text that is filled in", kept("'model_{}'.format(i)"), behind()),
    case("by a text", kept("'model_%s' % i"), behind()),
    case("of a key", kept(), behind(merged="    merged = tf.summary.merge_all(key='model_0')\n")),
    case("by its place", (LOSS, LOSS + "                    tf.summary.scalar('said', loss, ['model_%d' % i])\n"), behind()),
    case("of several", kept(more="                    tf.summary.histogram('out', out, collections=['model_%d' % i])\n"), behind()),
    case("an image", kept(more=f"                    tf.summary.image('shown', {OUT}, max_outputs=1, collections=['model_%d' % i])\n"), behind()),
    case("images", kept(more=f"                    tf.summary.image('shown', {OUT}, 2, ['model_%d' % i])\n"), behind()),
    case("with one behind", kept(), behind(LAST)),
    case("with one behind, by a word", kept(), behind("tf.summary.scalar('last', loss, collections=['model_0'])")),
    case("with one behind that has a name", kept(), behind("last = " + LAST)),
    case("with two behind", kept(), behind(LAST, LAST.replace("scalar('last'", "histogram('first'"))),
    case("with another behind", kept(), behind(LAST, "alone = tf.summary.scalar('alone', loss)")),
    case("of a model", *MODEL, behind(LAST)),
    case("fetched with the update", kept(), behind(), (RUN, "            _, value, said = sess.run([train_op, loss, merged], feed_dict={X: bx, Y: by})\n            writer.add_summary(said, step)\n" + RUN)),
    case("beside one that is kept at times", *MODEL, ("        with tf.device('/cpu:0'):\n            for", "        if MORE:\n            tf.summary.scalar('more', self.loss, collections=self.kept)\n        with tf.device('/cpu:0'):\n            for"), MORE, behind()),
    case("of a model whose number has a default", *MODEL, ("Model(x, y, i)", "Model(x, y, number=i)"), behind()),
    case("called as an input is", kept(tag="'x'"), behind()),
    case("called as an input is, but for the case", kept(tag="'Y'"), behind()),
    case("called as inputs are", kept(tag="'x'"), behind(LAST.replace("'last'", "'y'"))),
]  # fmt: skip

LEFT = [
    other("of the second tower", "TM219", kept(), behind(merged=MERGED.replace("_0", "_1"))),
    other("of no tower", "TM219", kept("'model'"), behind(merged=MERGED.replace("_0", ""))),
    other("that all towers keep together", "TM219", kept("'model_0'"), behind()),
    other("of the next number", "TM219", kept("'model_%d' % (i + 1)"), behind()),
    other("of another form", "TM219", kept("'tower_%d' % i"), behind()),
    other("of ten times the number", "TM219", kept("'model_%d0' % i"), behind()),
    other("kept twice over", "TM219", kept("'model_%d' % i, 'summaries'"), behind()),
    other("of one of two forms", "TM219", (LOSS, LOSS + "                    key = 'model_%d' % i if MORE else 'other_%d' % i\n                    tf.summary.scalar('said', loss, collections=[key])\n"), MORE, behind()),
    other("of a loop that begins later", "TM219", (LOOP, "        for i in range(1, 3):\n"), ("X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]", "X[:2], Y[:2]"), kept("'model_%d' % (i - 1)"), behind()),
    other("in front", "TM219", ("    tower_grads = []\n", "    tf.summary.scalar('first', X[0, 0], ['model_0'])\n    tower_grads = []\n"), kept(), behind()),
    other("of a function behind", "TM219", (NET, "def tell(value):\n    tf.summary.scalar('told', value, collections=['model_' + str(0)])\n\n\n" + NET), kept(), behind("tell(loss)")),
    other("added by hand", "TM219", kept(), behind("tf.add_to_collection('model_' + '0', tf.summary.scalar('last', loss))")),
    other("asked for by hand", "TM219", kept(), behind("print(len(tf.get_collection('model_0')))")),
    other("merged twice", "TM219", kept(), behind("again = tf.summary.merge_all('model_0')")),
    other("in a scope", "TM231", (LOSS, LOSS + "                    with tf.name_scope('told'):\n                        tf.summary.scalar('said', loss, collections=['model_%d' % i])\n"), behind()),
    other("called as an operation is", "TM231", kept(), ("[None, 3])\n    Y", "[None, 3], name='said')\n    Y"), behind()),
    other("called as an operation may be", "TM231", kept(tag="'Mean'"), behind()),
    other("called as one behind is", "TM231", kept(), behind(LAST.replace("'last'", "'said'"))),
    other("never for certain", "TM219", (LOSS, LOSS + "                    if len(DEVICES) > 1:\n                        tf.summary.scalar('said', loss, collections=['model_%d' % i])\n"), behind()),
    other("in the first tower", "TM219", (LOSS, LOSS + "                    if i == 0:\n                        tf.summary.scalar('said', loss, collections=['model_%d' % i])\n"), behind()),
    other("in a loop behind", "TM219", kept(), behind("for grad, var in grads:", "    tf.summary.histogram(var.op.name + '/g', grad, ['model_0'])")),
    other("of a model that is made behind too", "TM219", *MODEL, behind("with tf.variable_scope(tf.get_variable_scope(), reuse=True):", "    again = Model(X, Y)")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
