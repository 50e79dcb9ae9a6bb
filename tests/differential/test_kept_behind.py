"""Collections that only summaries behind the towers are kept in, merged by their name: what loop style takes and leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else
from towermigrate.rewrite import rewrite_tree

SAVER = "    saver = tf.train.Saver()\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
NET = "def net(x):\n"
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
GRADS = "    tower_grads = []\n"
MERGED = "    merged = tf.summary.merge_all('train')\n"
LAST = "tf.summary.scalar('last', loss, ['train'])"
WRITER = (INIT, INIT + "        writer = tf.summary.FileWriter('logs')\n")
WRITE = (
    RUN,
    RUN + "            writer.add_summary(sess.run(merged, feed_dict={X: bx, Y: by}), step)\n",
)
RATE = (
    OPT,
    "    rate = tf.train.exponential_decay(0.1, step_count, 2, 0.5)\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n",
)
MODEL = (
    (NET, """\
class Model(object):
    def __init__(self, x, y, number=0):
        self.kept = ['model_' + str(number)]
        self.loss = tf.reduce_mean(tf.square(net(x) - y))


""" + NET),
    (f"                    out = net(x)\n{LOSS}", "                    model = Model(x, y, i)\n                    loss = model.loss\n"),
)  # fmt: skip
OUT = "tf.expand_dims(tf.expand_dims(out, 0), 3)"


def behind(*lines: str, merged: str = MERGED) -> Change:
    return SAVER, "".join(f"    {line}\n" for line in lines) + merged + SAVER


def case(name: str, *changes: Change) -> Any:
    return pytest.param((*changes, WRITER, WRITE), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((*changes, WRITER, WRITE), rule, id=name)


ZERO = "    merged = tf.summary.merge_all('model_0')\n"
ALONE = (RUN, RUN + "            writer.add_summary(sess.run(alone, feed_dict={X: bx, Y: by}), step)\n")  # fmt: skip

TAKEN = [
    case("of one", behind(LAST)),
    case("of a key", behind(LAST, merged=MERGED.replace("'train'", "key='train'"))),
    case("by a word", behind(LAST.replace("['train']", "collections=['train']"))),
    case("of one that has a name", behind("last = " + LAST)),
    case("of what has no number", behind("tf.summary.histogram('out', out, ['train'])")),
    case("of an image", behind(f"tf.summary.image('shown', {OUT}, 2, ['train'])")),
    case("of several", RATE, behind("tf.summary.scalar('rate', rate, ['train'])", LAST, LAST.replace("'last'", "'again'"))),
    case("beside one for all", behind(LAST, "alone = tf.summary.scalar('alone', loss)"), ALONE),
    case("beside one of another collection", behind(LAST, "alone = tf.summary.scalar('alone', loss, ['other'])"), ALONE),
    case("of two collections", behind(LAST, "tf.summary.scalar('twice', loss * 2.0, ['other'])", "alone = tf.summary.merge_all('other')"), ALONE),
    case("beside a collection of losses", (LOSS, LOSS + "                    tf.add_to_collection('losses', loss)\n"), behind(LAST)),
    case("called as what a first tower's are", behind(LAST.replace("train", "model_0"), merged=ZERO)),
    case("of a model that names a collection, and keeps nothing there", *MODEL, behind(LAST.replace("train", "model_0"), merged=ZERO)),
    case("fetched with the update", behind(LAST), (RUN, "            _, value, said = sess.run([train_op, loss, merged], feed_dict={X: bx, Y: by})\n            writer.add_summary(said, step)\n" + RUN)),
]  # fmt: skip

LEFT = [
    other("of none", "TM219", behind()),
    other("of another one", "TM219", behind(LAST.replace("train", "test"))),
    other("merged twice", "TM219", behind(LAST, "again = tf.summary.merge_all('train')")),
    other("merged with all", "TM219", behind(LAST, "again = tf.summary.merge_all()")),
    other("looked at", "TM219", behind(LAST, "print(len(tf.get_collection('train')))")),
    other("all of them looked at", "TM219", behind(LAST, "print(len(tf.get_collection(tf.GraphKeys.SUMMARIES)))")),
    other("the collections looked at", "TM219", behind(LAST, "print(sorted(tf.get_default_graph().get_all_collection_keys()))")),
    other("kept twice over", "TM219", behind(LAST.replace("['train']", "['train', 'all']"))),
    other("in front too", "TM219", (GRADS, "    tf.summary.scalar('first', X[0, 0], ['train'])\n" + GRADS), behind(LAST)),
    other("in a tower too", "TM219", (LOSS, LOSS + "                    tf.summary.scalar('said', loss, ['train'])\n"), behind(LAST)),
    other("in a tower's number too", "TM219", (LOSS, LOSS + "                    tf.summary.scalar('said', loss, ['train_%d' % i])\n"), behind(LAST.replace("train", "train_1"), merged=MERGED.replace("train", "train_1"))),
    other("at times", "TM219", behind(LAST, "if len(DEVICES) > 1:", "    " + LAST.replace("'last'", "'more'"))),
    other("in a loop", "TM219", behind(LAST, "for grad, var in grads:", "    tf.summary.histogram(var.op.name + '/g', grad, ['train'])")),
    other("in a function", "TM219", (NET, "def tell(value):\n    tf.summary.scalar('told', value, ['train'])\n\n\n" + NET), behind(LAST, "tell(loss)")),
    other("in a function that is told where", "TM219", (NET, "def tell(value, kept):\n    tf.summary.scalar('told', value, kept)\n\n\n" + NET), behind(LAST, "tell(loss, ['train'])")),
    other("in a function that is told all", "TM219", (NET, "def tell(*told, **more):\n    tf.summary.scalar(*told, **more)\n\n\n" + NET), behind(LAST, "tell('told', loss, collections=['train'])")),
    other("by another name", "TM219", (NET, "say = tf.summary.scalar\n\n\n" + NET), behind(LAST, "say('told', loss, ['train'])")),
    other("by another name of the module", "TM219", (NET, "summary = tf.summary\n\n\n" + NET), behind(LAST, "summary.scalar('told', loss, ['train'])")),
    other("by a name that is looked up", "TM219", behind(LAST, "getattr(tf.summary, 'scalar')('told', loss, ['train'])")),
    other("by TensorFlow 2's name", "TM219", behind(LAST, "tf.compat.v1.summary.scalar('told', loss, ['train'])")),
    other("in a list that has a name", "TM219", (NET, "KEPT = ['train']\n\n\n" + NET), behind(LAST, "tf.summary.scalar('told', loss, KEPT)")),
    other("added by hand", "TM219", behind(LAST, "alone = tf.summary.scalar('alone', loss, [])", "tf.add_to_collection('tr' + 'ain', alone)")),
    other("added by the collection's list", "TM219", behind(LAST, "alone = tf.summary.scalar('alone', loss, [])", "tf.get_collection_ref('tr' + 'ain').append(alone)")),
    other("by a layer", "TM219", behind(LAST, "from tensorflow.contrib import layers", "layers.fully_connected(X, 2, outputs_collections='train')")),
    other("behind the merge", "TM219", (SAVER, f"    {LAST}\n{MERGED}    {LAST.replace('last', 'late')}\n{SAVER}")),
    other("of a collection of TensorFlow's", "TM219", behind(LAST.replace("train", "losses"), merged=MERGED.replace("train", "losses"))),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        ("pass", True),
        ("tf.summary.scalar('told', value, ['other'])", True),
        ("tf.summary.scalar('told', value, ['train'])", False),
        ("tf.summary.scalar('told', value, ['tr' + 'ain'])", False),
        ("tf.add_to_collection('train', tf.summary.scalar('told', value))", False),
        ("tf.get_collection(value.op.name)", False),
        ("tf.summary.merge_all('train')", False),
        ("tf.summary.merge_all()", False),
        ("exec('tf.summary.' + value)", False),
        ("tf.train.import_meta_graph(value)", False),
    ],
)
def test_what_another_file_keeps_counts(told: str, taken: bool) -> None:
    imported = ("import tensorflow as tf\n", "import tensorflow as tf\nimport told\n")
    more = f"import tensorflow as tf\n\n\ndef tell(value):\n    {told}\n"
    files = {**program(imported, behind(LAST), WRITER, WRITE), "told.py": more}
    (result,) = rewrite_tree(files).programs
    assert (result.style == "loop") is taken


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT)
