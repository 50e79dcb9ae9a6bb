"""Methods of the object that trains that are called several times: what loop style takes, and what it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of
from tests.differential.test_method_results import BEGIN, MADE, SHOWN, STEP, program

EVALUATE = """
    def evaluate(self, sess, x, y):
        total = 0.0
        for k in range(2):
            total += sess.run(self.loss, feed_dict={self.x: x * k, self.y: y})
        return total / 2
"""
TELL = """
    # What it has come to.
    def tell(self, sess, x, y, what='loss'):
        \"\"\"Prints the loss.\"\"\"
        value = sess.run(self.loss, feed_dict={self.x: x, self.y: y})
        print(what, '%.6f' % value)
"""
EPOCH = """
    def train_epoch(self, sess, steps):
        for _ in range(steps):
            x, y = batch(4)
            loss, _ = sess.run([self.loss, self.train_op], feed_dict={self.x: x, self.y: y})
            print('%.6f' % loss)
"""
LOOP = "        for number in range(4):\n            x, y = batch(4)\n" + SHOWN
INIT = "        sess.run(tf.global_variables_initializer())\n"
DRAWS = "        print('draws'"
IN_LOOP = (
    "            if number % 2:\n                print('%.6f' % trainer.evaluate(sess, x, y))\n"
)
BEHIND = "        last = trainer.evaluate(sess, x, y)\n        print('last %.6f' % last)\n"
TWICE = ((STEP, STEP + EVALUATE), (SHOWN, SHOWN + IN_LOOP), (DRAWS, BEHIND + DRAWS))
FIT = """
    def fit(self, sess):
        for number in range(4):
            x, y = batch(4)
            loss, _ = sess.run([self.loss, self.train_op], feed_dict={self.x: x, self.y: y})
            print(number, '%.6f' % loss)
            if number % 2:
                print('%.6f' % self.evaluate(sess, x, y))
        print('last', self.evaluate(sess, 2 * x, y).round(5))
"""
WITH = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
CONFIG = (
    ("class Trainer(", "class Config(object):\n    towers = 2\n    rate = 0.1\n\n\nclass Trainer("),
    ("__init__(self, rate)", "__init__(self, config)"),
    ("        self.rate = rate\n", "        self.config = config\n"),
    ("self.rate, 0.9)\n", "self.config.rate, 0.9)\n        n = self.config.towers\n"),
    ("tf.split(self.x, 2), tf.split(self.y, 2)", "tf.split(self.x, n), tf.split(self.y, n)"),
    ("for i in range(2)", "for i in range(n)"),
    ("Trainer(0.1)", "Trainer(Config())"),
)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def once(*lines: str, method: str = EVALUATE) -> tuple[Change, ...]:
    """One more method, and what the loop of steps does with it."""
    text = "".join(f"            {line}\n" for line in lines)
    return (STEP, STEP + method), (SHOWN, SHOWN + text)


TAKEN = [
    case("in the loop and behind it", *TWICE),
    case("in front of the loop too", *TWICE, (LOOP, "        x, y = batch(4)\n        print('first %.6f' % trainer.evaluate(sess, x, y))\n" + LOOP)),
    case("without a value", (STEP, STEP + TELL), (SHOWN, SHOWN + "            trainer.tell(sess, x, y)\n"), (DRAWS, "        trainer.tell(sess, x, y, what='last')\n" + DRAWS)),
    case("an epoch in two loops", (STEP, EPOCH), (LOOP, "        for _ in range(2):\n            trainer.train_epoch(sess, 2)\n        for k in range(2):\n            trainer.train_epoch(sess, k + 1)\n")),
    case("an epoch and an evaluation", (STEP, EPOCH + EVALUATE), (LOOP, "        x, y = batch(4)\n        for _ in range(2):\n            trainer.train_epoch(sess, 2)\n            print('%.6f' % trainer.evaluate(sess, x, y))\n        trainer.train_epoch(sess, 3)\n        print('%.6f' % trainer.evaluate(sess, x, y))\n")),
    case("by another method", (STEP, EVALUATE.lstrip("\n") + FIT), (LOOP, "        trainer.fit(sess)\n"), ("drawn[0], '%.6f' % total", "drawn[0]"), ("self.evaluate(sess, 2 * x, y).round(5)", "'%.6f' % self.evaluate(sess, 2 * x, y)")),
    case("in a session of its own", ("        self.build()\n", "        self.build()\n        self.sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))\n        self.sess.run(tf.global_variables_initializer())\n"), (WITH + INIT, "    if True:\n"),
         (STEP, STEP.replace("self, sess, ", "self, ").replace("= sess", "= self.sess") + EVALUATE.replace("self, sess, ", "self, ").replace("+= sess", "+= self.sess")), (SHOWN, SHOWN + IN_LOOP), (DRAWS, BEHIND + DRAWS), ("(sess, ", "(")),
    case("by keywords", *TWICE, ("        last = trainer.evaluate(sess, x, y)", "        last = trainer.evaluate(y=y, x=x, sess=sess)")),
    case("another name for the session", *TWICE, (EVALUATE, EVALUATE.replace("sess", "session"))),
    case("an inner function that calls it", *TWICE, (LOOP, "        def look(x, y):\n            return trainer.evaluate(sess, x, y) * 2\n\n" + LOOP), ("        last = trainer.evaluate(sess, x, y)", "        last = look(x, y)")),
    case("in a comprehension", *once("print(['%.6f' % trainer.evaluate(sess, x * k, y) for k in range(3)])")),



    case("an early return", *once("value = trainer.evaluate(sess, x, y)", "print('%.6f' % value)", method=EVALUATE.replace("        total = 0.0\n", "        if len(x) == 3:\n            return 0.0\n        total = 0.0\n"))),

    case("at the module's own level", *TWICE, ("def main():\n", "if __name__ == '__main__':\n"), (BEGIN, "")),
    case("a number of towers that settings say", *CONFIG),
    case("settings and an evaluation in two places", *TWICE, *CONFIG),
]  # fmt: skip

LEFT = [
    other("that counts", "TM205", *TWICE, (EVALUATE, EVALUATE.replace("        return", "        self.count += 1\n        return"))),
    other("under a name that is taken", "TM205", *TWICE, ("    total = 0.0\n", "    total = evaluate = 0.0\n")),
    other("under a parameter's name", "TM205", *TWICE, (EVALUATE, EVALUATE.replace("x, y", "x, y, evaluate=1.0"))),
    other("two sessions", "TM205", *TWICE, (DRAWS, "        with tf.Session() as again:\n            again.run(tf.global_variables_initializer())\n            print('%.6f' % trainer.evaluate(again, x, y))\n" + DRAWS)),
    other("a session of a loop", "TM205", *TWICE, (DRAWS, "        for sess in [sess]:\n            print('%.6f' % trainer.evaluate(sess, x, y))\n" + DRAWS)),
    other("a session of a comprehension", "TM205", *TWICE, (DRAWS, "        print(['%.6f' % trainer.evaluate(sess, x, y) for sess in [sess]])\n" + DRAWS)),
    other("a session that a function is given", "TM205", *TWICE, (DRAWS, "        def look(sess):\n            return trainer.evaluate(sess, x, y)\n\n        print('%.6f' % look(sess))\n" + DRAWS)),
    other("handed on as it is", "TM205", *TWICE, (DRAWS, "        run = trainer.evaluate\n        print('%.6f' % run(sess, x, y))\n" + DRAWS)),
    other("asked for by a text", "TM205", *TWICE, (DRAWS, "        print('%.6f' % getattr(trainer, 'evaluate')(sess, x, y))\n" + DRAWS)),
    other("by another name of the object", "TM205", *TWICE, (DRAWS, "        same = trainer\n        print('%.6f' % same.evaluate(sess, x, y))\n" + DRAWS)),
    other("by a function that is given the object", "TM205", *TWICE, (DRAWS, "        print('%.6f' % look(trainer, sess, x, y))\n" + DRAWS), ("def main():\n", "def look(trainer, sess, x, y):\n    return trainer.evaluate(sess, x, y)\n\n\ndef main():\n")),
    other("that calls itself", "TM205", *TWICE, (EVALUATE, EVALUATE.replace("        total = 0.0\n", "        if len(x) > 4:\n            return self.evaluate(sess, x[:4], y[:4])\n        total = 0.0\n"))),
    other("of two objects", "TM205", *TWICE, (MADE, MADE + "    with tf.variable_scope('more'):\n        second = Trainer(0.2)\n"), (DRAWS, "        print('%.6f' % second.evaluate(sess, x, y))\n" + DRAWS)),
    other("of an object that is made anew", "TM205", *TWICE, (MADE, MADE + "    if drawn[0]:\n        trainer = Trainer(0.2)\n")),
    other("replaced in the object", "TM205", *TWICE, (MADE, MADE + "    trainer.evaluate = lambda sess, x, y: 1.0\n")),
    other("replaced in the class", "TM205", *TWICE, (MADE, "    Trainer.evaluate = lambda self, sess, x, y: 1.0\n" + MADE)),
    other("of a class made of it", "TM205", *TWICE, ("def main():\n", "class More(Trainer):\n    def evaluate(self, sess, x, y):\n        return 1.0\n\n\ndef main():\n"), (MADE, "    trainer = More(0.1)\n")),
    other("decorated", "TM205", *TWICE, (EVALUATE, EVALUATE.replace("    def", "    @kept\n    def", 1)), ("class Trainer(", "def kept(f):\n    return f\n\n\nclass Trainer(")),
    other("that waits", "TM205", *TWICE, (EVALUATE, EVALUATE.replace("return", "yield")), ("trainer.evaluate(sess, x, y)", "next(trainer.evaluate(sess, x, y))")),
    other("with a default that is made", "TM205", *TWICE, (EVALUATE, EVALUATE.replace("x, y)", "x, y, rng=np.random.RandomState(3))").replace("x * k", "x * rng.rand()"))),
    other("what the module knows otherwise", "TM205", *TWICE, (EVALUATE, EVALUATE.replace("range(2)", "range(len(kept))")), ("drawn = [0]\n", "drawn = [0]\nkept = [1, 2]\n")),
    other("what runs later", "TM205", *TWICE, (EVALUATE, EVALUATE.replace("        return", "        print(sum(self.count for _ in range(2)))\n        return"))),
    other("settings that are changed behind", "TM211", *CONFIG, ("        self.build()\n", "        self.build()\n        self.config.towers = 3\n"), ("        n = self.config.towers\n", "        self.config.towers = 2\n        n = self.config.towers\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, program)
