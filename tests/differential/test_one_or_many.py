"""What is done with one tower beside what is done with several, towers told by an item of a list, and `eval` in methods."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import all_do_the_same, asked_of, none_does_anything_else

AVERAGE = "    grads = average_gradients(tower_grads)\n"
BEGIN = "    tower_grads = []\n"
LISTS = (BEGIN, "    tower_grads, losses = [], []\n")
KEPT = (
    "tower_grads.append(grads)\n",
    "tower_grads.append(grads)\n                    losses.append(loss)\n",
)
COUNTED = (
    ("def train():\n", "TOWERS = 2\n\n\ndef train():\n"),
    ("for i in range(2)", "for i in range(TOWERS)"),
)
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
MEAN = (RUN, RUN.replace("loss]", "mean]"))


def chosen(many: str, one: str, test: str = "len(tower_grads) > 1") -> Change:
    lines = [f"    if {test}:", *(f"        {each}" for each in many.split("; ")), "    else:", *(f"        {each}" for each in one.split("; "))]  # fmt: skip
    return AVERAGE, "\n".join(lines) + "\n"


MANY = "mean = tf.add_n(losses) / len(losses); grads = average_gradients(tower_grads)"
ONE = "mean = losses[0]; grads = tower_grads[0]"
BOTH = (LISTS, KEPT, chosen(MANY, ONE), MEAN)
LISTED = ("for i in range(2)", "for i, gpu in enumerate(GPUS)"), ("'/gpu:%d' % i", "'/gpu:%d' % gpu"), ("'tower_%d' % i", "'tower_%d' % gpu")  # fmt: skip
SAID = (
    "                    tf.get_variable_scope()",
    "                    tf.summary.scalar('tower_loss', loss)\n                    tf.get_variable_scope()",
)
MERGE = (
    "    saver = tf.train.Saver()\n",
    "    merged = tf.summary.merge_all()\n    saver = tf.train.Saver()\n",
)
TOLD = (RUN, RUN.replace("value = ", "value, text = ").replace("loss]", "loss, merged]") + "            writer.add_summary(text, step)\n")  # fmt: skip
INIT = "        sess.run(tf.global_variables_initializer())\n"
OPENED = (INIT, INIT + "        writer = tf.summary.FileWriter('logs')\n")

CLASS = """\
class Trainer(object):
    def __init__(self, sess):
        self.sess = sess
        self.build()

    def build(self):
        self.x = tf.placeholder(tf.float32, [None, 3])
        self.y = tf.placeholder(tf.float32, [None, 1])
        opt = tf.train.MomentumOptimizer(0.1, 0.9)
        tower_grads = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(2):
                with tf.device('/gpu:%d' % i):
                    loss = tf.reduce_mean(tf.square(net(self.x[i * 2:(i + 1) * 2]) - self.y[i * 2:(i + 1) * 2]))
                    tf.get_variable_scope().reuse_variables()
                    tower_grads.append(opt.compute_gradients(loss))
        self.loss = loss
        self.train_op = opt.apply_gradients(average_gradients(tower_grads))

    def train(self):
        self.sess.run(tf.global_variables_initializer())
        for step in range(4):
            bx, by = batch(4)
            self.sess.run(self.train_op, feed_dict={self.x: bx, self.y: by})
            value = self.loss.eval({self.x: bx, self.y: by})
            print('step', step, 'loss', '%.6f' % value)


def train():
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        trainer = Trainer(sess)
        trainer.train()
"""


GATHERED = (
    "    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n",
    "    w = tf.gather(tf.get_variable('w', [4, 1], initializer=init(4, 1)), [0, 1, 2])\n",
)


def in_class(*changes: Change) -> tuple[Change, ...]:
    from tests.differential.loop_programs import TRAIN

    return (TRAIN, CLASS), *changes


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    taken("means of lists", *BOTH),
    taken("by another list", LISTS, KEPT, chosen(MANY, ONE, "len(losses) > 1"), MEAN),
    taken("by the count", LISTS, KEPT, *COUNTED, chosen(MANY.replace("len(losses)", "TOWERS"), ONE, "TOWERS > 1"), MEAN),
    taken("by the count, the other way round", LISTS, KEPT, *COUNTED, chosen(ONE, MANY, "TOWERS == 1"), MEAN),
    taken("a mean of means", LISTS, KEPT, chosen(MANY.replace("tf.add_n(losses) / len(losses)", "tf.reduce_mean(losses)"), ONE), MEAN),
    taken("gradients alone", chosen("grads = average_gradients(tower_grads)", "grads = tower_grads[0]")),
    taken("of rows, of two towers", LISTS, KEPT, chosen(MANY, ONE), MEAN, GATHERED),
    taken("of rows, of a number of towers that is written out", LISTS, KEPT, *COUNTED, chosen(MANY, ONE), MEAN, GATHERED),
    taken("an item beside its number", *LISTED, SAID, MERGE, TOLD, OPENED, ("drawn = [0]\n", "drawn = [0]\nGPUS = [1, 0]\n")),
    taken("an item of a range", *LISTED, SAID, MERGE, TOLD, OPENED, ("drawn = [0]\n", "drawn = [0]\nGPUS = list(range(2))\n")),
    taken("an item of a list of the function's own", *LISTED, SAID, MERGE, TOLD, OPENED, (BEGIN, "    GPUS = [0, 1]\n" + BEGIN)),
    taken("eval in a method", *in_class()),
    taken("eval in a method, by name", *in_class(("eval({self.x: bx, self.y: by})", "eval(feed_dict={self.x: bx, self.y: by})"))),
    taken("settings of a class at the module's level", ("def train():\n", "class Settings(object):\n    rows = 2\n    towers = 2\n\n\nsettings = Settings()\n\n\ndef train():\n"), ("X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]", "X[i * settings.rows:(i + 1) * settings.rows], Y[i * settings.rows:(i + 1) * settings.rows]")),
    taken("a constant of a rate", ("    opt = ", "    steps = tf.constant(4.0)\n    done = tf.cast(step_count, tf.float32) / steps\n    opt = "), ("MomentumOptimizer(0.1,", "MomentumOptimizer(0.1 * (1.0 - done),")),
]  # fmt: skip

LEFT = [
    left("of rows, of any number of towers", "TM204", LISTS, KEPT, *COUNTED, ("TOWERS = 2\n", "TOWERS = int(str(2))\n"), chosen(MANY, ONE), MEAN, GATHERED),
    left("half of one", "TM204", LISTS, KEPT, chosen(MANY, ONE.replace("losses[0]", "losses[0] * 0.5")), MEAN),
    left("a loss of one that is no list's", "TM204", LISTS, KEPT, chosen(MANY, ONE.replace("losses[0]", "loss")), MEAN),
    left("more for several", "TM204", LISTS, KEPT, chosen(MANY + "; drawn[0] += 1", ONE), MEAN),
    left("more than two", "TM204", LISTS, KEPT, chosen(MANY, ONE, "len(tower_grads) > 2"), MEAN),
    left("by another count", "TM204", LISTS, KEPT, chosen(MANY, ONE, "drawn[0] + 2 > 1"), MEAN),
    left("the last of one list", "TM204", LISTS, KEPT, chosen(MANY, ONE.replace("losses[0]", "losses[-1]")), MEAN),
    left("a maximum", "TM204", LISTS, KEPT, chosen(MANY.replace("tf.add_n(losses) / len(losses)", "tf.reduce_max(losses)"), ONE), MEAN),
    left("an item of a list that changes", "TM211", *LISTED, SAID, MERGE, TOLD, OPENED, ("drawn = [0]\n", "drawn = [0]\nGPUS = [1, 0]\n"), (BEGIN, BEGIN + "    GPUS.reverse()\n")),
    left("an item that a tower changes", "TM219", *LISTED, SAID, MERGE, TOLD, OPENED, ("drawn = [0]\n", "drawn = [0]\nGPUS = [1, 0]\n"), ("                    x, y =", "                    gpu = gpu + 1\n                    x, y =")),
    left("eval in a method, with two sessions", "TM210", *in_class(("        trainer.train()\n", "        trainer.train()\n    with tf.Session() as other:\n        print('again')\n"))),
    left("eval in a method, of a session that is no default", "TM210", *in_class(("    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n", "    sess = tf.InteractiveSession(config=tf.ConfigProto(allow_soft_placement=True))\n    if True:\n"))),
    left("eval in a method with a session of its own", "TM210", *in_class(("eval({self.x: bx, self.y: by})", "eval({self.x: bx, self.y: by}, self.sess)"))),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT)


@pytest.mark.full
def test_one_tower_does_the_same() -> None:
    def alone(*changes: Change) -> dict[str, str]:
        return {"train.py": program(*changes)["train.py"].replace("TOWERS = 2", "TOWERS = 1")}

    counted = [each for each in TAKEN if "by the count" in str(each.id)]  # type: ignore[attr-defined]
    assert len(counted) == 2
    all_do_the_same(counted, alone, towers=1)
