"""Model objects, one for each tower or one for all: loop style where all that they keep is followed."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

DEF = "def net(x):\n"
BODY = "    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n    b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))\n    return tf.matmul(x, w) + b\n"
OUT = "                    out = net(x)\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
BEFORE = "    tower_grads = []\n"
AFTER = "    grads = average_gradients(tower_grads)\n"
NET = DEF + BODY


def top(text: str) -> Change:
    """More behind the model's function, at the top of the module."""
    return NET, f"{NET}\n\n{text}\n"


def tower(*lines: str) -> Change:
    return OUT + LOSS, "".join(f"                    {line}\n" for line in lines)


def made(*lines: str) -> Change:
    """More before the towers."""
    return BEFORE, "".join(f"    {line}\n" for line in lines) + BEFORE


def behind(*lines: str) -> Change:
    return AFTER, "".join(f"    {line}\n" for line in lines) + AFTER


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


KEEPS = """\
class Model(object):
    def __init__(self, x, y):
        self.x, self.y = x, y
        self._build()
        self.loss = tf.reduce_mean(tf.square(self.out - self.y))

    def _build(self):
        self.out = net(self.x)
"""
READ = tower("model = Model(x, y)", "loss = model.loss")
GIVES = """\
class Model:
    scale = 1.0

    def __init__(self, factor=2.0):
        self.factor = factor

    def forward(self, x):
        return net(x) * self.scale

    def loss(self, x, y):
        return tf.reduce_mean(tf.square(self.forward(x) - y)) * self.factor
"""
ASKED = tower("loss = model.loss(x, y)")
ONCE = made("model = Model()")


def keeps(*changes: Change) -> Change:
    text = KEEPS
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return top(text)


def gives(*changes: Change) -> Change:
    text = GIVES
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return top(text)


ENDS = """\
from collections import namedtuple

Ends = namedtuple('Ends', 'loss, out')


def build(x, y):
    out = net(x)
    return Ends(tf.reduce_mean(tf.square(out - y)), out=out)
"""
COLLECTED = "                    tower_grads.append(grads)\n"
COMPUTE = ("compute_gradients(loss)", "compute_gradients(model.loss)")
COLLECT = (COLLECTED, COLLECTED + "                    losses.append(model.loss)\n")
INIT = "    def __init__(self, x, y):\n"
BUILD = "        self.out = net(self.x)\n"
FORWARD = "        return net(x) * self.scale\n"
BASE = """\
class Base(object):
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.out = self.forward()
        self.loss = self.weight * tf.reduce_mean(tf.square(self.out - self.y))

    def forward(self):
        return net(self.x)


"""
CHILD = "class Model(Base):\n    weight = 0.5\n"
LAYER = """\
class Layer(object):
    def __init__(self, name, size):
        self.name, self.size = name, size

    def __call__(self, x):
        w = tf.get_variable(self.name, [3, self.size], initializer=init(3, self.size))
        return tf.matmul(x, w)


"""

TAKEN = [
    taken("made in the tower, asked for what it keeps", keeps(), READ),
    taken("its values have names of their own", keeps(), tower("m = Model(x, y)", "out = m.out", "loss = tf.reduce_mean(tf.square(out - y)) + 0.0 * m.loss")),
    taken("a property", keeps(("    def _build", "    @property\n    def total(self):\n        return self.loss * 2.0\n\n    def _build")),
          tower("model = Model(x, y)", "loss = model.total")),
    taken("a static method", keeps((BUILD, "        self.out = self.of(self.x)\n\n    @staticmethod\n    def of(x):\n        return net(x)\n")), READ),
    taken("a number of the class", keeps((INIT, "    weight = 0.5\n\n" + INIT), ("self.loss = ", "self.loss = self.weight * ")), READ),
    taken("a number of the class that the object has another of", keeps((INIT, "    weight = 0.5\n\n" + INIT), ("self._build()", "self.weight = 2.0\n        self._build()"), ("self.loss = ", "self.loss = self.weight * ")), READ),
    taken("made by a class above", top(BASE + CHILD), READ),
    taken("super", top(BASE + CHILD + "\n    def __init__(self, x, y):\n        super().__init__(x, y)\n        self.loss = self.loss * 2.0\n"), READ),
    taken("super as Python 2 has it", top(BASE + CHILD + "\n    def forward(self):\n        return 2.0 * super(Model, self).forward()\n"), READ),
    taken("the class above by its name", top(BASE + CHILD + "\n    def __init__(self, x, y):\n        Base.__init__(self, x, y)\n"), READ),
    taken("nothing above has a constructor", keeps((INIT, INIT + "        super(Model, self).__init__()\n")), READ),
    taken("a list that it keeps", keeps((BUILD, "        self.parts = []\n        for k in range(3):\n            self.parts.append(net(self.x) * k if k else 0.1)\n        self.out = self.parts[1] if len(self.parts) > 5 else net(self.x)\n"), ("self._build()", "with tf.variable_scope('m', reuse=tf.AUTO_REUSE):\n            self._build()")), READ),
    taken("a dict that it keeps", keeps((BUILD, "        self.ends = {}\n        self.ends['out'] = net(self.x)\n        self.out = self.ends['out']\n")), READ),
    taken("a number that it counts", keeps((BUILD, "        self.count = 0\n        self.out = self.part() + self.part()\n\n    def part(self):\n        self.count += 1\n        with tf.variable_scope('part%d' % self.count):\n            return net(self.x)\n")), READ),
    taken("objects in objects", top(LAYER + KEEPS.replace(BUILD, "        self.layers = [Layer('a', 2), Layer('b', 1)]\n        self.out = self.layers[1](self.x) + tf.reduce_sum(self.layers[0](self.x), 1, keepdims=True)\n")), READ),
    taken("what some objects keep is another", keeps((INIT, "    def __init__(self, x, y, scale=None):\n        self.scale = 1.0\n        if scale is not None:\n            self.scale = scale\n"), (BUILD, "        self.out = net(self.x) * self.scale\n")), tower("model = Model(x, y, 0.5)", "loss = model.loss")),
    taken("a method that ends early", keeps((BUILD, "        self.out = net(self.x)\n        if DEVICES:\n            return\n        self.out = self.out * 2.0\n")), READ),
    taken("made before, asked by a method", gives(), ONCE, ASKED),
    taken("made in the tower, asked by a method", gives(), tower("model = Model()", "loss = model.loss(x, y)")),
    taken("made before of settings", gives(), made("factor = 0.5 * len(DEVICES)", "model = Model(factor=factor)"), ASKED),
    taken("made at the top of the module", top(GIVES + "\n\nmodel = Model(3.0)"), ASKED),
    taken("set before the towers", gives(), ONCE, made("model.factor = 5.0"), ASKED),
    taken("handed to the function", gives(), ("def train():", "def train(model):"), ("\n    train()\n", "\n    train(Model(0.5))\n"), ASKED),
    taken("called", gives(("def loss", "def __call__")), ONCE, tower("loss = model(x, y)")),
    taken("handed to a function", gives(), top("def loss_of(m, x, y):\n    return m.loss(x, y)"), ONCE, tower("loss = loss_of(model, x, y)")),
    taken("a method as an activation", gives((FORWARD, "        return tf.layers.dense(x, 1, activation=self.squash, kernel_initializer=init(3, 1), name='d')\n\n    def squash(self, t):\n        return tf.tanh(t) * self.scale\n")), ONCE, ASKED),
    taken("a method in a comprehension", gives(("        return tf.reduce_mean(tf.square(self.forward(x) - y)) * self.factor\n", "        with tf.variable_scope('m', reuse=tf.AUTO_REUSE):\n            outs = [self.forward(x) for _ in range(2)]\n        return tf.reduce_mean(tf.square(outs[0] + outs[1] - y)) * self.factor\n")), ONCE, ASKED),
    taken("trained without a name", keeps(), tower("model = Model(x, y)"), COMPUTE, ("[train_op, loss]", "[train_op, step_count]")),
    taken("collected without a name", keeps(), tower("model = Model(x, y)"), COMPUTE, made("losses = []"), COLLECT, behind("mean_loss = tf.reduce_mean(losses)"), ("[train_op, loss]", "[train_op, mean_loss]")),
    taken("two of it collected", keeps(), tower("model = Model(x, y)"), COMPUTE, made("losses = []", "outs = []"), (COLLECTED, COLLECTED + "                    losses.append(model.loss)\n                    outs.append(model.out)\n"),
          behind("mean_loss = tf.reduce_mean(losses) + tf.reduce_sum(tf.concat(outs, 0))"), ("[train_op, loss]", "[train_op, mean_loss]")),
    taken("settings in a named tuple", top("from collections import namedtuple\n\nParams = namedtuple('Params', ['factor', 'power'])"), ("def train():", "def train(params):"),
          ("\n    train()\n", "\n    train(Params(factor=0.5, power=2))\n"), tower("loss = tf.reduce_mean(tf.square(net(x) - y)) * params.factor")),
    taken("a function gives a named tuple", top(ENDS), tower("ends = build(x, y)", "loss = ends.loss")),
    taken("an ordered dict", keeps((BUILD, "        self.ends = collections.OrderedDict()\n        self.ends['out'] = net(self.x)\n        self.out = self.ends['out']\n")), ("import numpy as np\n", "import collections\n\nimport numpy as np\n"), READ),
    taken("a named tuple taken apart", top(ENDS), tower("loss, out = build(x, y)")),
    taken("of the last tower, behind the towers", keeps(), READ, behind("shown = tf.reduce_mean(model.loss)"), ("[train_op, loss]", "[train_op, shown]")),
    taken("of the last tower, by a method", gives(), ONCE, ASKED, behind("shown = model.factor * loss"), ("[train_op, loss]", "[train_op, shown]")),
    taken("objects are collected", keeps(), made("models = []"), tower("model = Model(x, y)", "models.append(model)", "loss = model.loss"), behind("mean_loss = tf.reduce_mean([m.loss for m in models])"), ("[train_op, loss]", "[train_op, mean_loss]")),
]  # fmt: skip

LEFT = [
    left("what is built is kept by an object from before", "TM206", gives(("    def loss(self, x, y):\n        return ", "    def loss(self, x, y):\n        self.value = ")),
         ONCE, tower("model.loss(x, y)", "loss = model.value")),
    left("a method that is another one later", "TM224", keeps(), READ, behind("Model._build = lambda self: None")),
    left("a method that was another one before", "TM224", top(KEEPS + "\n\ndef other(self):\n    self.out = 2.0 * net(self.x)\n\n\nModel._build = other"), READ),
    left("a method of one object that is another one", "TM224", gives(), ONCE, made("model.forward = lambda x: net(x) * 3.0"), ASKED),
    left("set by its name", "TM224", gives(), ONCE, ("    saver = ", "    setattr(model, 'scale', 0.5)\n    saver = "), ASKED),
    left("changed by its dict", "TM224", gives(), ONCE, made("model.__dict__['factor'] = 0.25"), ASKED),
    left("of another class since", "TM224", top(GIVES + "\n\nclass Other(Model):\n    scale = 3.0"), ONCE, made("model.__class__ = Other"), ASKED),
    left("set behind the towers", "TM224", gives(), ONCE, behind("model.factor = 0.5"), ASKED),
    left("a method sets it behind the towers", "TM224", gives(("    def loss", "    def halve(self):\n        self.factor = 0.5\n\n    def loss")), ONCE, behind("model.halve()"), ASKED),
    left("a function sets what it holds behind the towers", "TM224", gives(("self.factor = factor", "self.factor = [factor]"), ("* self.factor\n", "* self.factor[0]\n")),
         top("def halve(m):\n    m.factor[0] = 0.5"), ONCE, behind("halve(model)"), ASKED),
    left("a special method for attributes", "TM222", keeps((INIT, "    def __getattr__(self, name):\n        drawn[0] += 1\n        return 1.0\n\n" + INIT)), READ),
    left("attributes are set by a method of its own", "TM222", keeps((INIT, "    def __setattr__(self, name, value):\n        drawn[0] += 1\n        object.__setattr__(self, name, value)\n\n" + INIT)), READ),
    left("slots", "TM222", keeps((INIT, "    __slots__ = ('x', 'y', 'out', 'loss')\n\n" + INIT)), READ),
    left("a decorated method", "TM222", top("def counted(f):\n    def inner(self):\n        drawn[0] += 1\n        return f(self)\n    return inner\n\n\n" + KEEPS.replace("    def _build", "    @counted\n    def _build")), READ),
    left("a decorated class", "TM222", top("def changed(made):\n    made._build = lambda self: setattr(self, 'out', 3.0 * net(self.x))\n    return made\n\n\n@changed\n" + KEEPS), READ),
    left("a metaclass", "TM222", top("class Meta(type):\n    def __call__(cls, *args):\n        drawn[0] += 1\n        return type.__call__(cls, *args)\n\n\n" + KEEPS.replace("(object)", "(metaclass=Meta)")), READ),
    left("two classes above", "TM222", top("class Loud(object):\n    pass\n\n\n" + KEEPS.replace("(object)", "(Loud, object)")), READ),
    left("a class above of a library", "TM222", top("import threading\n\n\n" + KEEPS.replace("(object)", "(threading.local)")), READ),
    left("the class counts its objects", "TM206", keeps((INIT, "    count = 0\n\n" + INIT + "        Model.count += 1\n"), ("self.loss = ", "self.loss = Model.count * ")), READ),
    left("a list of the class", "TM222", keeps((INIT, "    sizes = []\n\n" + INIT + "        self.sizes.append(1.0)\n"), ("self.loss = ", "self.loss = len(self.sizes) * ")), READ),
    left("a descriptor", "TM222", top("class Cell(object):\n    def __get__(self, of, owner):\n        drawn[0] += 1\n        return 1.0 * drawn[0]\n\n\n" + KEEPS.replace(INIT, "    weight = Cell()\n\n" + INIT).replace("self.loss = ", "self.loss = self.weight * ")), READ),
    left("a property that sets", "TM222", keeps((INIT, "    @property\n    def loss(self):\n        return self._loss\n\n    @loss.setter\n    def loss(self, value):\n        drawn[0] += 1\n        self._loss = value\n\n" + INIT)), READ),
    left("a property of an object from before that counts", "TM206", gives(("    def loss", "    @property\n    def seen(self):\n        self.factor += 1.0\n        return self.factor\n\n    def loss"), ("* self.factor\n", "* self.seen\n")), ONCE, ASKED),
    left("its number decides", "TM222", keeps((INIT, "    def __len__(self):\n        drawn[0] += 1\n        return 0\n\n" + INIT)), tower("model = Model(x, y)", "loss = model.loss * 2.0 if model else model.loss")),
    left("a tensor from before", "TM217", gives(("self.factor = factor", "self.factor = tf.constant(2.0) * factor")), ONCE, ASKED),
    left("it prints", "TM223", keeps((BUILD, BUILD + "        print('built')\n")), READ),
    left("it draws from Python's numbers", "TM206", keeps((BUILD, "        self.out = net(self.x) * np.random.uniform()\n")), READ),
    left("read behind the towers", "TM234", keeps(), READ, ("print('draws', drawn[0])", "print('draws', drawn[0], model.loss.shape)")),
    left("of the last tower, trained", "TM202", keeps(), READ, behind("extra = tf.gradients(model.loss, tf.trainable_variables())[0]"), ("[train_op, loss]", "[train_op, extra]")),
    left("a loss that is made anew each time that it is asked for", "TM211", keeps(("        self.loss = tf.reduce_mean(tf.square(self.out - self.y))\n", ""), ("    def _build", "    @property\n    def loss(self):\n        with tf.variable_scope('n', reuse=tf.AUTO_REUSE):\n            return tf.reduce_mean(tf.square(net(self.x) - self.y))\n\n    def _build")),
         tower("model = Model(x, y)"), COMPUTE, made("losses = []"), COLLECT, behind("mean_loss = tf.reduce_mean(losses)"), ("[train_op, loss]", "[train_op, mean_loss]")),
    left("a named tuple with another value", "TM222", top(ENDS), tower("ends = build(x, y)", "loss = ends._replace(loss=ends.loss * 2.0).loss")),
    left("set by the tower's index", "TM214", keeps(), tower("model = Model(x, y)", "if i == 0:", "    model.loss = model.loss * 2.0", "loss = model.loss")),
    left("an object of a list from before", "TM222", gives(), made("models = [Model(), Model(3.0)]"), tower("loss = models[0].loss(x, y)")),
    left("given to code that is not seen", "TM222", gives(("    def loss", "    def more(self, by):\n        self.factor += by\n        return by\n\n    def loss")), made("model = Model()", "np.vectorize(model.more, otypes=[float])([1.0])"), ASKED),
]  # fmt: skip


(
    test_objects_are_taken,
    test_neighbours_are_left,
    test_what_is_taken_does_the_same,
) = asked_of(TAKEN, LEFT)
