"""Objects that carry a graph's values from where it is built to where it is run: classes that loop style takes, and neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import HEAD, MODEL, Change
from tests.differential.spellings import asked_of
from towermigrate.rewrite import rewrite_tree

TRAINER = '''\
class Trainer(object):
    """Trains on two towers."""

    def __init__(self, rate):
        self.rate = rate
        self.count = 0
        self.build()

    def build(self):
        self.X = tf.placeholder(tf.float32, [None, 3])
        self.Y = tf.placeholder(tf.float32, [None, 1])
        self.step_count = tf.train.get_or_create_global_step()
        opt = tf.train.MomentumOptimizer(self.rate, 0.9)
        tower_grads = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(2):
                with tf.device('/gpu:%d' % i):
                    with tf.name_scope('tower_%d' % i) as scope:
                        x, y = self.X[i * 2:(i + 1) * 2], self.Y[i * 2:(i + 1) * 2]
                        # The model
                        out = net(x)
                        loss = tf.reduce_mean(tf.square(out - y))
                        tf.get_variable_scope().reuse_variables()
                        grads = opt.compute_gradients(loss)
                        tower_grads.append(grads)
        self.loss = loss
        grads = average_gradients(tower_grads)
        self.train_op = opt.apply_gradients(grads, global_step=self.step_count)
        self.saver = tf.train.Saver()

    def train(self, steps):
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(steps):
                bx, by = batch(4)
                _, value = sess.run([self.train_op, self.loss], feed_dict={self.X: bx, self.Y: by})
                self.count += 1
                print('step', step, 'loss', '%.6f' % value)
            self.saver.save(sess, 'ckpt/model')
            print('draws', drawn[0], self.count)


'''
MAIN = """\
def main():
    trainer = Trainer(0.1)
    trainer.train(4)


if __name__ == '__main__':
    main()
"""
MADE = "    trainer = Trainer(0.1)\n"
TRAINED = "    trainer.train(4)\n"
CLASS = "class Trainer(object):\n"
INIT = "    def __init__(self, rate):\n        self.rate = rate\n"
LOSS = "        self.loss = loss\n"
TRAIN = "    def train(self, steps):\n"
RUN = "                _, value = sess.run([self.train_op, self.loss], feed_dict={self.X: bx, self.Y: by})\n"
SESSION = "        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
START = "            sess.run(tf.global_variables_initializer())\n"
STEPS = TRAIN + SESSION + START
NET = "                        out = net(x)\n"


def trainer(*changes: Change) -> dict[str, str]:
    """The files of the program with each `(old, new)` applied; every `old` must be there."""
    text = "\n\n".join([HEAD, MODEL, TRAINER + MAIN])
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def behind(text: str) -> Change:
    """Statements of the caller, behind the object's making."""
    return (MADE, MADE + text)


OWN_SESSION = (
    (
        LOSS,
        LOSS + "        self.sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))\n",
    ),
    (
        SESSION + START,
        "        if True:\n            self.sess.run(tf.global_variables_initializer())\n",
    ),
    ("sess.run([", "self.sess.run(["),
    ("save(sess", "save(self.sess"),
)
GIVEN_SESSION = (
    ("__init__(self, rate):\n", "__init__(self, sess, rate):\n        self.sess = sess\n"),
    (MAIN[: MAIN.index("\n\n\n")], "def main():\n    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n        trainer = Trainer(sess, 0.1)\n        trainer.train(4)"),
    (SESSION + START, "        if True:\n            self.sess.run(tf.global_variables_initializer())\n"),
    ("sess.run([", "self.sess.run(["),
    ("save(sess", "save(self.sess"),
)  # fmt: skip
OUTSIDE = (
    (TRAIN, "\ndef train(model, steps):\n"),
    ("self.train_op, self.loss", "model.train_op, model.loss"),
    ("{self.X: bx, self.Y: by}", "{model.X: bx, model.Y: by}"),
    ("self.count += 1", "model.count += 1"),
    ("self.saver.save", "model.saver.save"),
    ("drawn[0], self.count", "drawn[0], model.count"),
    (TRAINED, "    train(trainer, 4)\n"),
)

AVERAGE = """\
        grads = []
        for pairs in zip(*tower_grads):
            grads.append((tf.add_n([grad for grad, _ in pairs]) / len(pairs), pairs[0][1]))
"""
OWN_AVERAGE = ("grads = average_gradients(", "grads = self._average(")
METHOD = (TRAIN, f"    def _average(self, tower_grads):\n{AVERAGE}        return grads\n\n{TRAIN}")
STATIC = (
    TRAIN,
    METHOD[1].replace("    def _average(self, ", "    @staticmethod\n    def _average("),
)

TAKEN = [
    case("built by `__init__`"),
    case("built from outside", ("        self.build()\n", ""), behind("    trainer.build()\n")),
    case("made and run in one statement", (MADE + TRAINED, "    Trainer(0.1).train(4)\n")),
    case("built in `__init__` itself", ("        self.build()\n\n    def build(self):\n", "")),
    case("without a base", (CLASS, "class Trainer:\n")),
    case("made where the file is the program", (MAIN, "if __name__ == '__main__':\n    trainer = Trainer(0.1)\n    trainer.train(4)\n")),
    case("run by a function", *OUTSIDE),
    case("handed to a function as it is made", *OUTSIDE, (MADE + "    train(trainer, 4)\n", "    train(Trainer(0.1), 4)\n")),
    case("run by the caller", *OUTSIDE, (MADE + "    train(trainer, 4)\n", ""), ("def train(model, steps):\n", "def main():\n        steps = 4\n        model = Trainer(0.1)\n"), ("def main():\n\n\nif", "if")),
    case("a method in between", ("        self.build()\n", "        self._prepare()\n"), ("    def build(self):\n", "    def _prepare(self):\n        # All of it\n        self.build()\n\n    def build(self):\n")),
    case("a value under another name", (LOSS, "        self.shown = loss\n"), ("self.loss]", "self.shown]")),
    case("values of all towers", ("        tower_grads = []\n", "        tower_grads, losses, outs = [], [], []\n"), ("tower_grads.append(grads)\n", "tower_grads.append(grads)\n                        losses.append(loss)\n                        outs.append(out)\n"), (LOSS, "        self.loss = tf.reduce_mean(losses)\n        # The farthest.\n        self.most = tf.reduce_max(outs)\n        self.mean = tf.reduce_mean(outs)  # of all\n"), ("_, value = sess.run([self.train_op, self.loss]", "_, value, most, mean = sess.run([self.train_op, self.loss, self.most, self.mean]"), ("'%.6f' % value)", "'%.6f' % value, '%.5f' % most, '%.5f' % mean)")),
    case("an import of a method's own", (TRAIN, TRAIN + "        import time\n\n        time.sleep(0)\n")),
    case("a class of a method's own", (START, START + "            class Keep(object):\n                def told(this):\n                    return self.count\n\n            keep = Keep()\n            print(keep.told())\n")),
    case("`with` in `__init__`", ("        self.build()\n\n", "        with tf.device('/cpu:0'):\n            self.build()\n\n")),
    case("an own graph", ("        self.build()\n\n", "        self.graph = tf.Graph()\n        with self.graph.as_default():\n            self.build()\n\n"), (SESSION, SESSION.replace("tf.Session(", "tf.Session(graph=self.graph, "))),
    case("a loss that is bound anew", (LOSS, LOSS + "        self.loss = self.loss * 2.0\n")),
    case("a list that each step fills", ("        self.count = 0\n", "        self.count = 0\n        self.values = []\n"), (RUN, RUN + "                self.values.append(value)\n")),
    case("a method with a step's name", (RUN, "                self.train_step(sess, bx, by)\n                value = self.value\n"), (TRAIN, "    def train_step(self, sess, bx, by):\n        _, self.value = sess.run([self.train_op, self.loss], feed_dict={self.X: bx, self.Y: by})\n\n" + TRAIN)),
    case("a method for each step", (RUN, "                self._step(sess, bx, by)\n                value = self.value\n"), (TRAIN, "    def _step(self, sess, bx, by):\n        _, self.value = sess.run([self.train_op, self.loss], feed_dict={self.X: bx, self.Y: by})\n\n" + TRAIN)),
    case("a method for the model", (NET, "                        out = self.net(x)\n"), ("    def train(", "    def net(self, x):\n        return net(x) * 1.0\n\n    def train(")),
    case("a method that calls a method", (NET, "                        out = self.net(x)\n"), ("    def train(", "    def scaled(self, x):\n        return x * 1.5\n\n    def net(self, x):\n        return self.scaled(net(x))\n\n    def train(")),
    case("a method that nobody calls", ("    def train(", "    def nothing(self):\n        return 0\n\n    def train(")),
    case("averages in a method", OWN_AVERAGE, METHOD),
    case("averages in a static method", OWN_AVERAGE, STATIC),
    case("averages written out", ("        grads = average_gradients(tower_grads)\n", AVERAGE)),
    case("a loss that is bound anew behind", (LOSS, LOSS + "        loss = loss * 2.0\n        self.double = loss\n"), ("self.loss]", "self.double]")),
    case("its own session", *OWN_SESSION),
    case("its own session, closed", *OWN_SESSION, (TRAIN, "    def close(self):\n        self.sess.close()\n\n" + TRAIN), (TRAINED, TRAINED + "    trainer.close()\n")),
    case("a session that it is given", *GIVEN_SESSION),
    case("names that two methods have", ("bx, by = ", "x, y = "), ("X: bx, self.Y: by", "X: x, self.Y: y")),
    case("an attribute with a local's name", ("self.X", "self.x"), ("self.Y", "self.y")),
    case("an attribute with a module's name", ("self.X", "self.net")),
    case("a parameter with a default", ("def train(self, steps):", "def train(self, steps=4):"), (TRAINED, "    trainer.train()\n")),
    case("an argument by its name", ("trainer.train(4)", "trainer.train(steps=4)")),
    case("an argument of its caller", ("def main():", "def main(steps):"), ("trainer.train(4)", "trainer.train(steps)"), ("    main()\n", "    main(4)\n")),
    case("an argument of its caller under another name", ("def main():", "def main(number):"), ("trainer.train(4)", "trainer.train(number)"), ("    main()\n", "    main(4)\n")),
    case("an argument that is computed", ("trainer.train(4)", "trainer.train(len(DEVICES) + 2)")),
    case("a value for each step, of a name that its caller has", (RUN, "                self._step(sess, bx, by)\n                value = self.value\n"), (TRAIN, "    def _step(self, sess, x, y):\n        _, self.value = sess.run([self.train_op, self.loss], feed_dict={self.X: x, self.Y: y})\n\n" + TRAIN)),
    case("a graph of its own", (MADE + TRAINED, "    with tf.Graph().as_default():\n        trainer = Trainer(0.1)\n        trainer.train(4)\n")),
    case("a lambda that reads it", ("                self.count += 1\n", "                self.count += 1\n                told = lambda: self.count\n                told()\n")),
    case("the step beside the loss", ("_, value = sess.run([self.train_op, self.loss]", "_, value, number = sess.run([self.train_op, self.loss, self.step_count]"), ("'%.6f' % value)", "'%.6f' % value, number)")),
    case("a run that only looks", (RUN, RUN + "                print('%.6f' % sess.run(self.loss, feed_dict={self.X: bx, self.Y: by}))\n")),
    case("an attribute that is the first tower's", (LOSS, ""), ("                        tower_grads.append(grads)\n", "                        tower_grads.append(grads)\n                        if i == 0:\n                            self.loss = loss\n")),
    case("a comment and a docstring in each", (TRAIN, TRAIN + '        """Trains."""\n        # Begin\n'), ("    def build(self):\n", '    def build(self):\n        """Builds."""\n\n        # The inputs\n')),
]  # fmt: skip

LEFT = [
    other("a base of its own", "TM205", (CLASS, "class Base(object):\n    pass\n\n\nclass Trainer(Base):\n")),
    other("a class of it", "TM205", (MAIN, "class More(Trainer):\n    pass\n\n\n" + MAIN)),
    other("two objects", "TM205", behind("    other = Trainer(0.2)\n")),
    other("an object in a loop", "TM205", (MADE + TRAINED, "    for rate in (0.1, 0.2):\n        with tf.Graph().as_default():\n            trainer = Trainer(rate)\n            trainer.train(2)\n")),
    other("a method called twice", "TM205", (TRAINED, TRAINED + TRAINED)),
    other("an object in a list", "TM205", (TRAINED, "    trainers = [trainer]\n    trainers[0].train(4)\n")),
    other("an object with another name", "TM205", (TRAINED, "    other = trainer\n    other.train(4)\n")),
    other("an object that a name keeps", "TM205", (TRAINED, "    kept.append(trainer)\n    trainer.train(4)\n"), (CLASS, "kept = []\n\n\n" + CLASS)),
    other("an object that is copied", "TM205", (TRAINED, "    copy.copy(trainer).train(4)\n"), ("import numpy as np\n", "import copy\n\nimport numpy as np\n")),
    other("an object that is pickled", "TM205", (TRAINED, "    try:\n        pickle.dumps(trainer)\n    except Exception:\n        print('no')\n    trainer.train(4)\n"), ("import numpy as np\n", "import pickle\n\nimport numpy as np\n")),
    other("an object read by another", "TM205", (CLASS, "class Reader(object):\n    def __init__(self, model):\n        self.model = model\n\n    def told(self):\n        return self.model.count\n\n\n" + CLASS), (TRAINED, "    reader = Reader(trainer)\n    trainer.train(4)\n    print(reader.told())\n")),
    other("an object in a closure that is called later", "TM205", (TRAINED, "    def later():\n        trainer.train(4)\n\n    later()\n")),
    other("a value of the class", "TM205", (CLASS + '    """Trains on two towers."""\n', CLASS + "    count = 3\n"), ("        self.count = 0\n", "")),
    other("a default of the class", "TM205", (TRAIN, "    def told(self, of=build):\n        return of\n\n" + TRAIN)),
    other("a private name", "TM205", (TRAIN, TRAIN + "        __steps = steps\n"), ("range(steps)", "range(__steps)")),
    other("a loss that each step binds anew", "TM209", (RUN, RUN + "                self.loss = tf.identity(self.loss)\n")),
    other("a count that the towers read and the steps set", "TM224", (NET, "                        out = net(x) * (self.count + 1)\n")),
    other("an input that its caller sets", "TM224", (TRAINED, "    trainer.X = trainer.X\n" + TRAINED)),
    other("a property that computes", "TM205", (LOSS, "        self._loss = loss\n"), (TRAIN, "    @property\n    def loss(self):\n        return tf.identity(self._loss)\n\n" + TRAIN)),
    other("a static method", "TM205", (TRAIN, "    @staticmethod\n    def nothing():\n        return 0\n\n" + TRAIN)),
    other("`__getattr__`", "TM205", (TRAIN, "    def __getattr__(self, name):\n        return 0\n\n" + TRAIN)),
    other("`__setattr__`", "TM205", (TRAIN, "    def __setattr__(self, name, value):\n        object.__setattr__(self, name, value)\n\n" + TRAIN)),
    other("`__slots__`", "TM205", (CLASS + '    """Trains on two towers."""\n', CLASS + "    __slots__ = ('rate', 'count', 'X', 'Y', 'step_count', 'loss', 'train_op', 'saver')\n")),
    other("a decorator", "TM205", (CLASS, "def plain(given):\n    return given\n\n\n@plain\n" + CLASS)),
    other("`setattr`", "TM205", (LOSS, "        setattr(self, 'loss', loss)\n")),
    other("`getattr`", "TM205", ("self.train_op, self.loss", "self.train_op, getattr(self, 'loss')")),
    other("`vars`", "TM205", (LOSS, LOSS + "        print(len(vars(self)))\n")),
    other("`__dict__`", "TM205", (LOSS, LOSS + "        print(len(self.__dict__))\n")),
    other("`hasattr`", "TM205", (LOSS, "        if not hasattr(self, 'loss'):\n            self.loss = loss\n")),
    other("`isinstance`", "TM205", (TRAINED, "    assert isinstance(trainer, object)\n" + TRAINED)),
    other("an error that is caught", "TM205", (LOSS, LOSS + "        try:\n            self.early = self.later\n        except AttributeError:\n            self.early = 0\n")),
    other("an attribute that is deleted", "TM205", (LOSS, LOSS + "        self.more = 1\n        del self.more\n")),
    other("an attribute that a function of its own sets", "TM205", ("                self.count += 1\n", "                def more():\n                    self.count += 1\n                more()\n")),
    other("a private attribute", "TM205", ("self.count", "self.__count")),
    other("a method as a value", "TM205", (TRAINED, "    run = trainer.train\n    run(4)\n")),
    other("a method that returns", "TM205", (LOSS, LOSS + "        return self\n"), ("        self.build()\n", ""), (TRAINED, "    trainer.build().train(4)\n")),
    other("a method that returns early", "TM205", (LOSS, LOSS + "        if self.rate < 0:\n            return\n")),
    other("a method in an expression", "TM205", (TRAINED, "    print(trainer.train(4))\n")),
    other("a method that reads what is set, for the towers", "TM205", (NET, "                        out = self.net(x)\n"), ("    def train(", "    def net(self, x):\n        return net(x) * self.rate\n\n    def train(")),
    other("an attribute of a method's name", "TM205", ("self.count", "self.train")),
    other("averages in a static method of the class", "TM205", (OWN_AVERAGE[0], OWN_AVERAGE[1].replace("self", "Trainer")), STATIC),
    other("averages in a static method that is named elsewhere", "TM205", OWN_AVERAGE, STATIC, (TRAINED, TRAINED + "    print(trainer._average([]))\n")),
    other("a generator", "TM205", ("                print('step', step", "                yield step\n                print('step', step"), (TRAINED, "    for step in trainer.train(4):\n        pass\n")),
    other("an argument that is computed before the object", "TM205", *OUTSIDE, (MADE + "    train(trainer, 4)\n", "    train(Trainer(0.1), len(batch(4)) * 2)\n")),
    other("arguments in another order", "TM205", ("def train(self, steps):", "def train(self, steps, more):"), ("trainer.train(4)", "trainer.train(more=batch(4), steps=len(batch(2)))")),
    other("a function that is given it twice", "TM205", *OUTSIDE, ("    train(trainer, 4)\n", "    train(trainer, 2)\n    train(trainer, 2)\n")),
    other("a function that keeps it", "TM205", *OUTSIDE, ("model.count += 1", "model.count += 1\n                kept.append(model)"), (CLASS, "kept = []\n\n\n" + CLASS)),
    other("a class that is named elsewhere", "TM205", (TRAINED, TRAINED + "    print(Trainer.__name__)\n")),
    other("two graphs", "TM235", ("    main()\n", "    main()\n    tf.reset_default_graph()\n    main()\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, trainer)


def test_a_class_stays_a_class() -> None:
    text = rewrite_tree(trainer(*GIVEN_SESSION)).texts["train.py"]
    assert "    def __init__(self, rate):\n        self.rate = rate\n" in text
    assert "        self.X = tf.TensorSpec([None, 3], tf.float32)\n" in text
    assert "\n\n        self.train_step = train_step\n" in text
    assert "value = self.train_step(*tm.shard_batch(bx, by" in text
    assert "\ndef main():\n    trainer = Trainer(0.1)\n    trainer.train(4)\n" in text
    assert "sess" not in text
