"""Lists of the towers' objects: what loop style takes, and what it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

PROGRAM = """\
import numpy as np
import tensorflow as tf

TOWERS = 2


def init(*shape):
    return tf.constant_initializer(np.linspace(-0.5, 0.6, int(np.prod(shape))).reshape(shape))


class Model(object):
    def __init__(self, x, y):
        self.x, self.y = x, y
        with tf.variable_scope('model', reuse=tf.AUTO_REUSE):
            w = tf.get_variable('w', [3, 1], initializer=init(3, 1))
        self.out = tf.matmul(x, w)
        self.build()

    def build(self):
        self.loss = tf.reduce_mean(tf.square(self.out - self.y))
        self.error = tf.reduce_mean(tf.abs(self.out - self.y))

    def scaled(self):
        return self.loss * 2.0


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        averaged.append((tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0), pairs[0][1]))
    return averaged


def main():
    rng = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.placeholder(tf.float32, [None, 1])
    xs, ys = tf.split(x, TOWERS), tf.split(y, TOWERS)
    opt = tf.train.AdamOptimizer(0.05)
    models = []
    tower_grads = []
    for i in range(TOWERS):
        with tf.device('/gpu:%d' % i):
            with tf.name_scope('tower_%d' % i):
                model = Model(xs[i], ys[i])
                models.append(model)
                grads = opt.compute_gradients(model.loss)
                tower_grads.append(grads)
    loss = tf.reduce_mean([m.loss for m in models])
    train_op = opt.apply_gradients(average_gradients(tower_grads))
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(3):
            feed = {x: rng.randn(4, 3), y: rng.randn(4, 1)}
            _, value = sess.run([train_op, loss], feed_dict=feed)
            print(step, '%.5f' % value)


if __name__ == '__main__':
    main()
"""
MEAN = "    loss = tf.reduce_mean([m.loss for m in models])\n"
MADE = "                model = Model(xs[i], ys[i])\n                models.append(model)\n"
GRADS = "                grads = opt.compute_gradients(model.loss)\n"
APPEND = "                tower_grads.append(grads)\n"
BEGUN = "    models = []\n    tower_grads = []\n"
LOOP = "    for i in range(TOWERS):\n        with tf.device('/gpu:%d' % i):\n            with tf.name_scope('tower_%d' % i):\n"
SHOWN = "            print(step, '%.5f' % value)\n"
BUILD = "    def build(self):\n"
AT_ONCE = (MADE, "                models.append(Model(xs[i], ys[i]))\n")
STEPS = "        for step in range(3):\n"


def program(*changes: Change) -> dict[str, str]:
    """The program with each `(old, new)` applied; every `old` must be there."""
    text = PROGRAM
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def apart(*changes: Change) -> dict[str, str]:
    """The class in a file of its own."""
    (text,) = program(*changes).values()
    start, end = text.index("def init"), text.index("def average")
    own = "import numpy as np\nimport tensorflow as tf\n\n\n" + text[start:end].rstrip() + "\n"
    rest = text[:start] + text[end:]
    return {"model.py": own, "train.py": rest.replace("TOWERS = 2", "from model import Model\n\nTOWERS = 2", 1)}  # fmt: skip


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def mean(text: str) -> Change:
    return MEAN, f"    loss = {text}\n"


def looked(fetched: str, shown: str) -> Change:
    """What each step looks at."""
    return (
        SHOWN,
        SHOWN
        + f"            found = sess.run({fetched}, feed_dict=feed)\n            print({shown})\n",
    )


TAKEN = [
    case("a mean"),
    case("a sum", mean("tf.add_n([m.loss for m in models]) / TOWERS")),
    case("of another name", mean("tf.reduce_mean([each.loss for each in models])")),
    case("of the same name", mean("tf.reduce_mean([model.loss for model in models])")),
    case("begun together", (BEGUN, "    models, tower_grads = [], []\n")),
    case("of the stacked", mean("tf.reduce_mean(tf.stack([m.loss for m in models]))")),
    case("of two values", (MEAN, MEAN + "    error = tf.reduce_mean([m.error for m in models])\n"), looked("error", "'%.5f' % found")),
    case("of the first", mean("models[0].loss")),
    case("of the last", mean("models[-1].loss")),
    case("that a run asks for", looked("models[0].out", "found.shape, '%.5f' % found.sum()")),
    case("that a run asks the last one for", looked("models[-1].error", "'%.5f' % found")),
    case("all of which a run asks for", looked("[m.error for m in models]", "['%.5f' % v for v in found]")),
    case("made where they are listed", AT_ONCE, (GRADS, GRADS.replace("model.loss", "models[i].loss"))),
    case("the last one of the list", AT_ONCE, (GRADS, GRADS.replace("model.loss", "models[-1].loss"))),
    case("listed at the end", (MADE, MADE.split("\n")[0] + "\n"), (APPEND, APPEND + "                models.append(model)\n")),
    case("gone over in two loops", (BEGUN + LOOP + MADE + GRADS + APPEND, "    models = []\n" + LOOP + MADE + "    tower_grads = []\n" + LOOP.split("            with")[0] + "            tower_grads.append(opt.compute_gradients(models[i].loss))\n")),
]  # fmt: skip

LEFT = [
    other("of a list that is gone over with others", "TM203", (MEAN, MEAN + "    for m, k in zip(models, range(2)):\n        print(k)\n")),
    other("of an object that is bound anew", "TM203", (MADE, MADE + "                model = Model(xs[i], ys[i])\n")),
    other("of a method", "TM203", mean("tf.reduce_mean([m.scaled() for m in models])")),
    other("of a property", "TM203", (BUILD, "    @property\n    def twice(self):\n        return self.loss * 2.0\n\n" + BUILD), mean("tf.reduce_mean([m.twice for m in models])")),
    other("of a value that is set behind", "TM203", (MEAN, "    models[0].loss = models[1].loss\n" + MEAN)),
    other("of a value that is set by another method", "TM203", ("    def scaled(self):\n", "    def more(self):\n        self.loss = self.loss * 2.0\n\n    def scaled(self):\n"), (MEAN, "    for m in models:\n        m.more()\n" + MEAN)),
    other("of a list that is changed", "TM203", (MEAN, "    models.reverse()\n" + MEAN)),
    other("of a list that is handed on", "TM203", mean("mean_of(models)"), ("def main():\n", "def mean_of(models):\n    return tf.reduce_mean([m.loss for m in models])\n\n\ndef main():\n")),
    other("of some", "TM203", mean("tf.reduce_mean([m.loss for m in models if m is not models[0]])")),
    other("of an object that is kept", "TM203", (MEAN, "    best = models[0]\n    best.loss = best.loss * 2.0\n" + MEAN)),
    other("of a class made of another", "TM203", ("class Model(object):\n", "class Base(object):\n    loss = 0.0\n\n\nclass Model(Base):\n")),
    other("of a class that answers for itself", "TM203", (BUILD, "    def __getattr__(self, name):\n        return 1.0\n\n" + BUILD)),
    other("under a condition", "TM203", (MADE, MADE.replace("                models", "                if i > 0:\n                    models")), mean("tf.reduce_mean([m.loss for m in models])")),
    other("listed twice", "TM203", (MADE, MADE + "                models.append(model)\n")),
    other("an object that a function sees", "TM203", (MADE, MADE + "                keep(model)\n"), ("def main():\n", "def keep(model):\n    model.loss = model.loss * 3.0\n\n\ndef main():\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, program)
(
    test_it_is_in_loop_style_in_files,
    test_its_neighbour_is_not_in_files,
    test_all_of_them_do_the_same_in_files,
) = asked_of(TAKEN, LEFT, apart)
