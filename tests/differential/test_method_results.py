"""Methods of the object that trains, and what they give back: loop style where each stands in one place, and returns at its end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import HEAD, MODEL, Change
from tests.differential.spellings import asked_of

CLASS = """\
class Trainer(object):
    def __init__(self, rate):
        self.rate = rate
        self.count = 0
        self.x = tf.placeholder(tf.float32, [None, 3])
        self.y = tf.placeholder(tf.float32, [None, 1])
        self.build()

    def build(self):
        opt = tf.train.MomentumOptimizer(self.rate, 0.9)
        xs, ys = tf.split(self.x, 2), tf.split(self.y, 2)
        tower_grads, losses = [], []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(2):
                with tf.device('/gpu:%d' % i):
                    with tf.name_scope('tower_%d' % i):
                        loss = tf.reduce_mean(tf.square(net(xs[i]) - ys[i]))
                        losses.append(loss)
                        tf.get_variable_scope().reuse_variables()
                        tower_grads.append(opt.compute_gradients(loss))
        self.loss = tf.reduce_mean(losses)
        self.train_op = opt.apply_gradients(average_gradients(tower_grads))

    def step(self, sess, x, y):
        loss, _ = sess.run([self.loss, self.train_op], feed_dict={self.x: x, self.y: y})
        return loss
"""
MAIN = """\
def main():
    trainer = Trainer(0.1)
    total = 0.0
    kept = []
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for number in range(4):
            x, y = batch(4)
            loss = trainer.step(sess, x, y)
            print(number, '%.6f' % loss)
        print('draws', drawn[0], '%.6f' % total, trainer.count, len(kept))
"""
BEGIN = "if __name__ == '__main__':\n    main()\n"
STEP = CLASS[CLASS.index("    def step(") :]
CALLED = "            loss = trainer.step(sess, x, y)\n"
SHOWN = CALLED + "            print(number, '%.6f' % loss)\n"
MADE = "    trainer = Trainer(0.1)\n"
EVALUATE = """
    def evaluate(self, sess, x, y):
        return sess.run(self.loss, feed_dict={self.x: x, self.y: y})
"""
OWN_SESSION = (
    (STEP, "    def start(self):\n        self.sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))\n        self.sess.run(tf.global_variables_initializer())\n\n" + STEP),
    ("step(self, sess, x, y):\n        loss, _ = sess.run", "step(self, x, y):\n        loss, _ = self.sess.run"),
    ("    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n        sess.run(tf.global_variables_initializer())\n        for", "    trainer.start()\n    if True:\n        for"),
    (CALLED, CALLED.replace("sess, ", "")),
)  # fmt: skip


def program(*changes: Change) -> dict[str, str]:
    """The files of the program with each `(old, new)` applied; every `old` must be there."""
    text = "\n\n".join([HEAD, MODEL, CLASS, MAIN, BEGIN])
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def apart(*changes: Change) -> dict[str, str]:
    """The class in a file of its own."""
    (text,) = program(*changes).values()
    start = text.index("class Trainer")
    end = text.index("\ndef ", start) + 1
    model = text[text.index("def init(") : text.index("def batch(")]
    own = "import numpy as np\nimport tensorflow as tf\n\n\n" + model + text[start:end]
    rest = text[:start].replace(model, "") + text[end:]
    return {"trainer.py": own, "train.py": rest.replace("DEVICES", "from trainer import Trainer\n\nDEVICES", 1)}  # fmt: skip


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def evaluated(*lines: str) -> tuple[Change, ...]:
    """A method that evaluates, and what is done with its value in the loop of steps."""
    text = "".join(f"            {line}\n" for line in lines)
    return (STEP, STEP + EVALUATE), (SHOWN, SHOWN + text)


def returning(text: str, shown: str) -> tuple[Change, ...]:
    """A step that returns something else, and how that is shown."""
    return ("        return loss\n", f"        return {text}\n"), (SHOWN, shown)


HISTORY = (
    ("        self.count = 0\n", "        self.count = 0\n        self.history = []\n"),
    ("        return loss\n", "        self.history.append(1)\n        return loss\n"),
    (MADE, MADE + "    history = trainer.history\n"),
)
TAKEN = [
    case("printed behind what it changes, itself", *HISTORY, (SHOWN, "            print(history, '%.6f' % trainer.step(sess, x, y))\n")),
    case("printed behind a number", (SHOWN, "            print(number + 1, '%.6f' % trainer.step(sess, x, y))\n")),
    case("with comments", ("        return loss\n", "        # what it was\n        return loss  # of this step\n"), (CALLED, "            # one step\n" + CALLED.rstrip() + "  # trains\n")),
    case("a step"),
    case("a step and an evaluation", *evaluated("test = trainer.evaluate(sess, x, y)", "print('test %.6f' % test)")),
    case("an evaluation that is printed", *evaluated("print('test %.6f' % trainer.evaluate(sess, x, y))")),
    case("printed among others", *evaluated("print('test', number, '{:.6f}'.format(trainer.evaluate(sess, x, y)), drawn[0])")),
    case("added up", (SHOWN, "            total += trainer.step(sess, x, y)\n")),
    case("kept in a list", (SHOWN, "            kept.append(trainer.step(sess, x, y))\n            print('%.6f' % kept[-1])\n")),
    case("several values", *returning("loss, len(x)", "            loss, rows = trainer.step(sess, x, y)\n            print(rows, '%.6f' % loss)\n")),
    case("a run itself", (STEP, STEP[: STEP.index("        loss, _")] + "        return sess.run([self.loss, self.train_op], feed_dict={self.x: x,\n                                                               self.y: y})[0]\n")),
    case("a run itself, of which some is left", (STEP, STEP[: STEP.index("        loss, _")] + "        return sess.run([self.train_op, self.loss], feed_dict={self.x: x, self.y: y})\n"), (CALLED, CALLED.replace("loss =", "_, loss ="))),
    case("a run itself, of several values", (STEP, STEP[: STEP.index("        loss, _")] + "        return sess.run([self.loss, self.twice, self.train_op], feed_dict={self.x: x, self.y: y})\n"), (CALLED, CALLED.replace("loss =", "loss, twice, _ =") + "            print('%.6f' % twice)\n"), ("        self.train_op =", "        self.twice = tf.add_n(losses)\n        self.train_op =")),
    case("what is computed of it", *returning("float(loss) * 2.0", SHOWN)),
    case("a count of its own", ("        return loss\n", "        self.count += 1\n        return loss\n")),
    case("a text that tells what it does", ("    def step(self, sess, x, y):\n", "    def step(self, sess, x, y):\n        \"\"\"Trains once, and returns the loss.\"\"\"\n")),
    case("arguments by name", (CALLED, CALLED.replace("x, y)", "y=y, x=x)"))),
    case("a default", ("step(self, sess, x, y)", "step(self, sess, x, y, scale=2.0)"), ("return loss", "return loss * scale")),
    case("under a condition", (CALLED, "            if number != 2:\n                loss = trainer.step(sess, x, y)\n")),
    case("where it may fail", (CALLED, "            try:\n                loss = trainer.step(sess, x, y)\n            except ValueError:\n                loss = 0.0\n")),
    case("what it keeps", ("        self.count = 0\n", "        self.count = 0\n        self.kept = []\n"), ("        return loss\n", "        self.kept.append(loss)\n        return sum(self.kept) / len(self.kept)\n")),
    case("an array that it changes", ("        loss, _ = sess.run", "        x[0] = 0.0\n        loss, _ = sess.run"), (CALLED, CALLED + "            print(x.sum())\n")),
    case("printed behind a sum", (SHOWN, "            print(total, '%.6f' % trainer.step(sess, x, y))\n            total += 1\n")),
    case("a step in two layers", (STEP, STEP + "\n    def twice(self, sess, x, y):\n        first = self.step(sess, x, y)\n        return first * 2.0\n"), (CALLED, CALLED.replace("trainer.step", "trainer.twice"))),
    case("in a session of its own", *OWN_SESSION),
    case("the same name on both sides", ("loss, _ = sess.run", "value, _ = sess.run"), ("return loss", "return value"), ("            loss = trainer", "            value = trainer"), ("'%.6f' % loss)", "'%.6f' % value)")),
    case("called by another method", (STEP, STEP + "\n    def fit(self, sess, steps):\n        for number in range(steps):\n            x, y = batch(4)\n            loss = self.step(sess, x, y)\n            print(number, '%.6f' % loss)\n"),
         ("        for number in range(4):\n            x, y = batch(4)\n" + SHOWN, "        trainer.fit(sess, 4)\n")),
    case("a function that is given the object", (STEP, ""), (CALLED, CALLED.replace("trainer.step(sess, ", "one_step(sess, trainer, ")),
         ("def main():\n", "def one_step(sess, model, x, y):\n    loss, _ = sess.run([model.loss, model.train_op], feed_dict={model.x: x, model.y: y})\n    return loss\n\n\ndef main():\n")),
    case("of which one more evaluates", ("def main():\n", "def evaluate(sess, model, x, y):\n    feed = {model.x: x, model.y: y}\n    return sess.run(model.loss, feed)\n\n\ndef main():\n"),
         (SHOWN, SHOWN + "            test = evaluate(sess, trainer, x * 0.5, y)\n            print('test %.6f' % test)\n")),
]  # fmt: skip

LEFT = [
    other("no value", "TM205", ("        return loss\n", "")),
    other("printed behind an attribute", "TM205", ("        return loss\n", "        self.count += 1\n        return loss\n"), (SHOWN, "            print(trainer.count, '%.6f' % trainer.step(sess, x, y))\n")),
    other("handed on as it is", "TM205", (SHOWN, "            run = trainer.step\n            print('%.6f' % run(sess, x, y))\n")),
    other("a function that is given the object and gives it back", "TM205", ("def main():\n", "def same(model):\n    model.count += 1\n    return model\n\n\ndef main():\n"), (MADE, MADE + "    trainer = same(trainer)\n")),
    other("printed behind what it changes", "TM205", ("drawn = [0]\n", "drawn = [0]\nseen = 0\n"), ("        return loss\n", "        global seen\n        seen += 1\n        return loss\n"), (SHOWN, "            print(seen, '%.6f' % trainer.step(sess, x, y))\n")),
    other("replaced in the object", "TM205", (MADE, MADE + "    trainer.step = lambda sess, x, y: 1.0\n")),
    other("replaced in the class", "TM205", (MADE, "    Trainer.step = lambda self, sess, x, y: 1.0\n" + MADE)),
    other("of a class made of it", "TM205", ("def main():\n", "class More(Trainer):\n    def step(self, sess, x, y):\n        return 1.0\n\n\ndef main():\n"), (MADE, "    trainer = More(0.1)\n")),
    other("two objects", "TM205", (MADE, MADE + "    with tf.variable_scope('more'):\n        second = Trainer(0.2)\n"), (SHOWN, SHOWN + "            print('%.6f' % second.step(sess, x, y))\n")),
]  # fmt: skip

IN_ONE_FILE = [
    other("two ways to return", "TM205", ("        return loss\n", "        if loss > 100.0:\n            return 0.0\n        return loss\n")),
    other("bound to a place", "TM205", (SHOWN, "            kept.append(0.0)\n            kept[number] = trainer.step(sess, x, y)\n            print('%.6f' % kept[number])\n")),
    other("printed behind what counts", "TM205", *evaluated("print(batch(4)[0].shape, '%.6f' % trainer.evaluate(sess, x, y))")),
    other("printed in braces", "TM205", *evaluated("print(f'{trainer.evaluate(sess, x, y):.6f}')")),
    other("asked under a condition", "TM205", *evaluated("if number and trainer.evaluate(sess, x, y) < 100.0:", "    print('small')")),
    other("one of two values", "TM205", (SHOWN, "            print('%.6f' % (trainer.step(sess, x, y) if number else 0.0))\n")),
    other("printed behind a text of what it changes", "TM205", *HISTORY, (SHOWN, "            print('%s' % history, '%.6f' % trainer.step(sess, x, y))\n")),
    other("printed behind a copy of it", "TM205", *HISTORY, (SHOWN, "            print(history * 2, '%.6f' % trainer.step(sess, x, y))\n")),
]  # fmt: skip
"""What loop style takes where the class stands in the file that runs it: the method is a function of the one that calls it."""

ALONE = [case(each.id, *each.values[0]) for each in IN_ONE_FILE]

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of([*TAKEN, *ALONE], LEFT, program)
)
(
    test_it_is_in_loop_style_in_files,
    test_its_neighbour_is_not_in_files,
    test_all_of_them_do_the_same_in_files,
) = asked_of(
    [each for each in TAKEN if each.id != "called by another method"], [*LEFT, *IN_ONE_FILE], apart
)
