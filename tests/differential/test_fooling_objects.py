"""Programs meant to fool who follows objects: in loop style each of them trained, printed or saved something else.

Most have a branch in a tower that counts its traces, and hide from the proof that it is taken.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import none_does_anything_else
from tests.differential.test_tower_objects import (
    ASKED,
    FORWARD,
    KEEPS,
    ONCE,
    READ,
    behind,
    gives,
    keeps,
    made,
    top,
    tower,
)
from towermigrate.rewrite import rewrite_tree

HOLD = """\
class Model:
    def __init__(self, factor=2.0):
        self.factor = factor
        self.sizes = [1.0]
        self.cell = [0.0]

    def add(self, k):
        self.sizes.append(k)

    def loss(self, x, y):
        value = tf.reduce_mean(tf.square(net(x) - y)) * self.factor
        if len(self.sizes) > 1:
            self.cell[0] += 1.0
            value = value * (1.0 + self.cell[0])
        return value
"""
B2 = "        value = tf.reduce_mean(tf.square(net(x) - y)) * self.factor\n"
CLS = "class Model:\n"
MB = "class Base:\n    def __init__(self):\n        self.cell = [0.0]\n        self.__k = 1\n\n    def __scale(self):\n        self.cell[0] += 1.0\n        return self.cell[0]\n\n    def scale(self):\n        return self.__scale()\n\n    def loss(self, x, y):\n        return tf.reduce_mean(tf.square(net(x) - y)) * self.scale()\n\n\nclass Model(Base):\n    def also(self, x):\n        return tf.square(x)\n\n    def __scale(self):\n        return 2.0\n"
STAR = "class Model:\n    def __init__(self, sizes):\n        self.first, *self.rest = sizes\n\n    def loss(self, x, y):\n        self.rest.append(1.0)\n        return tf.reduce_mean(tf.square(net(x) - y)) * float(len(self.rest))\n"
BAG = "class Bag:\n    def __init__(self):\n        self.items = []\n        self.n = 0\n        self.f = tf.square\n\n    def add(self, k):\n        self.items.append(k)\n\n    def maybe(self, k):\n        if int('1'):\n            return\n        self.items.append(k)\n\n    def loopy(self):\n        for k in range(3):\n            if int('1'):\n                return\n            self.items.append(k)\n\n    def pick(self):\n        if int('1'):\n            return\n        self.n = 5\n\n\n"
BUMPF = top(
    "def bump(c, t):\n    c[0] += 1.0\n    return t * (1.0 + c[0])\n\n\ndef add(items, k):\n    items.append(k)\n"
)
M1 = ["cell = [0.0]"]
V1 = ("import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n")
SEQ = """\
class Model(object):
    def __init__(self):
        self.layers = []
        self.shown = {}

    def add(self, kind):
        self.layers.append(kind)

    def loss(self, x, y):
        for k, kind in enumerate(self.layers):
            if kind == 'dense':
                x = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name='d%d' % k)
            elif kind == 'bn':
                x = tf.layers.batch_normalization(x, training=True, name='b%d' % k)
            self.shown['calls'] = self.shown.get('calls', 0) + 1
        return tf.reduce_mean(tf.square(net(x) - y)) * (1.0 + self.shown.get('calls', 0))
"""
BN = SEQ.replace("            self.shown['calls'] = self.shown.get('calls', 0) + 1\n", "").replace(
    " * (1.0 + self.shown.get('calls', 0))", ""
)
MAIN = (
    ("def train():", "def train(model):"),
    (
        "if __name__ == '__main__':\n    train()\n",
        "def main():\n    model = Model()\n    model.add('dense')\n    model.add('bn')\n    train(model)\n\n\nif __name__ == '__main__':\n    main()\n",
    ),
)
TOPM = (
    (
        "if __name__ == '__main__':\n",
        "model = Model()\nmodel.add('dense')\nmodel.add('bn')\n\nif __name__ == '__main__':\n",
    ),
)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def hold(*changes: Change) -> Change:
    text = HOLD
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return top(text)


def inside(*lines: str, test: str) -> Change:
    """More in the tower's method, in front of a branch."""
    more = "".join(f"        {line}\n" for line in lines) + f"        if {test}:\n"
    return top(BAG + HOLD.replace("        if len(self.sizes) > 1:\n", more))


def more(*lines: str) -> Change:
    """A method more of what each tower makes."""
    method = "".join(f"    {line}\n" for line in lines)
    return keeps(
        ("    def _build", f"{method}\n    def _build"),
        (
            "        self._build()\n",
            "        self.k = 1.0\n        self.seen = []\n        self._build()\n",
        ),
    )


def T(test: str) -> Change:
    return tower(
        "loss = tf.reduce_mean(tf.square(net(x) - y))", f"if {test}:", "    loss = bump(cell, loss)"
    )


def F(what: str) -> Change:
    return ("[train_op, loss]", f"[train_op, {what}]")


# An object from before, of which a branch of the tower asks what was done to it.
BEFORE = [
    case('map of method', hold(), made("model = Model()", "for _ in map(model.add, [2.0, 3.0]):", "    pass"), ASKED),
    case('map in constructor', hold(("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        list(map(self.add, [2.0, 3.0]))\n")), ONCE, ASKED),
    case('sorted key method', hold(("self.sizes.append(k)", "self.sizes.append(k)\n        return k")), made("model = Model()", "sorted([2.0, 3.0], key=model.add)"), ASKED),
    case('reduce method', hold(("def add(self, k):\n        self.sizes.append(k)", "def add(self, a, k):\n        self.sizes.append(k)\n        return k")), ("import numpy as np\n", "import functools\nimport numpy as np\n"), made("model = Model()", "functools.reduce(model.add, [2.0, 3.0])"), ASKED),
    case('starred call', hold(("def add(self, k):\n        self.sizes.append(k)", "def add(self, *ks):\n        for k in ks:\n            self.sizes.append(k)")), made("model = Model()", "model.add(*np.ones(2))"), ASKED),
    case('starred kwargs function', hold(), top("def setup(m, **opts):\n    for k in opts:\n        m.add(opts[k])\n"), made("opts = dict([('a', 2.0)])", "model = Model()", "setup(model, **opts)"), ASKED),
    case('getattr call', hold(), made("model = Model()", "getattr(model, 'add')(2.0)"), ASKED),
    case('cached function', hold(), ("import numpy as np\n", "import functools\nimport numpy as np\n"), top("@functools.lru_cache(None)\ndef setup(m):\n    m.sizes.append(2.0)\n"), made("model = Model()", "setup(model)"), ASKED),
    case('decorated method', ("import numpy as np\n", "import functools\nimport numpy as np\n"), hold(("    def add", "    @functools.lru_cache(None)\n    def add")), made("model = Model()", "model.add(2.0)"), ASKED),
    case('recursion', hold(("    def add", "    def fill(self, n):\n        if n:\n            if n == 1:\n                self.sizes.append(1.0)\n            self.fill(n - 1)\n\n    def add")), made("model = Model()", "model.fill(6)"), ASKED),
    case('given to train by main', hold(), ("def train():", "def train(model):"), ("if __name__ == '__main__':\n    train()\n", "def main():\n    model = Model()\n    model.add(2.0)\n    train(model)\n\n\nif __name__ == '__main__':\n    main()\n"), ASKED),
    case('module object then add', hold(), ("if __name__ == '__main__':\n", "model = Model()\nmodel.add(2.0)\n\nif __name__ == '__main__':\n"), ASKED),
    case('module object then sizes append', hold(), ("if __name__ == '__main__':\n", "model = Model()\nmodel.sizes.append(2.0)\n\nif __name__ == '__main__':\n"), ASKED),
    case('module object then set', hold(("if len(self.sizes) > 1", "if self.factor == 5.0")), ("if __name__ == '__main__':\n", "model = Model()\nmodel.factor = 5.0\n\nif __name__ == '__main__':\n"), ASKED),
    case('either add', hold(("if len(self.sizes) > 1", "if len(self.sizes) == 1")), made("model = Model()", "other = Model()", "it = model if drawn[0] else other", "it.add(2.0)"), ASKED),
    case('early return then append', hold(("if len(self.sizes) > 1", "if len(self.sizes) == 1"), ("    def add(self, k):\n", "    def add(self, k):\n        if drawn[0] == 0:\n            return\n")), made("model = Model()", "model.add(2.0)"), ASKED),
    case('continue in constructor', hold(("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        for k in range(3):\n            if k == 0:\n                continue\n            self.sizes.append(2.0)\n")), ONCE, ASKED),
    case('break unknown in constructor', hold(("if len(self.sizes) > 1", "if len(self.sizes) == 1"), ("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        for k in range(3):\n            if drawn[0] == 0:\n                break\n            self.sizes.append(2.0)\n")), ONCE, ASKED),
    case('dict loop counts in constructor', hold(("if len(self.sizes) > 1", "if self.n == 3"), ("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        self.n = 0\n        for k in {'a': 1, 'b': 2, 'c': 3}:\n            self.n += 1\n")), ONCE, ASKED),
    case('dict values loop counts in the tower', hold(("            self.cell[0] += 1.0\n", "            pass\n"), (B2, "        n = Holder()\n        for k in {'a': 1, 'b': 2, 'c': 3}:\n            n.n += 1\n        if n.n == 3:\n            self.cell[0] += 1.0\n" + B2.replace('self.factor', '(1.0 + self.cell[0])'))), top("class Holder:\n    def __init__(self):\n        self.n = 0\n        self.f = tf.square\n"), ONCE, ASKED),
    case('local list appends in dict loop in the tower', hold(("            self.cell[0] += 1.0\n", "            pass\n"), (B2, "        n = []\n        for k in {'a': 1, 'b': 2, 'c': 3}:\n            n.append(k)\n        if len(n) == 3:\n            self.cell[0] += 1.0\n" + B2.replace('self.factor', '(1.0 + self.cell[0])'))), ONCE, ASKED),
    case('class attr changed before', hold((CLS, CLS + "    k = 1\n\n"), ("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        self.n = self.k\n"), ("if len(self.sizes) > 1", "if self.n == 2")), made("Model.k = 2", "model = Model()"), ASKED),
    case('default of class scope', hold((CLS, CLS + "    k = 2\n\n"), ("    def loss(self, x, y):\n", "    def many(self, n=k):\n        return n\n\n    def loss(self, x, y):\n"), ("if len(self.sizes) > 1", "if self.many() == 2")), ("drawn = [0]\n", "drawn = [0]\nk = 1\n"), ONCE, ASKED),
    case('mutable default shared', hold(("factor=2.0):", "sizes=[]):"), ("self.factor = factor", "self.factor = 2.0"), ("        self.sizes = [1.0]\n", "        self.sizes = sizes\n        self.sizes.append(1.0)\n")), made("model = Model()", "other = Model()"), ASKED),
    case('module number changed by main global', hold(("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        self.n = K\n"), ("if len(self.sizes) > 1", "if self.n == 2")), ("drawn = [0]\n", "drawn = [0]\nK = 1\n"), ("if __name__ == '__main__':\n    train()\n", "def main():\n    global K\n    K = 2\n    train()\n\n\nif __name__ == '__main__':\n    main()\n"), ONCE, ASKED),
    case('starred rest', top(STAR), made("model = Model([1.0, 2.0])"), ASKED),
    case('generator method', hold(("    def add(self, k):\n        self.sizes.append(k)", "    def add(self, k):\n        self.sizes.append(k)\n        yield k"), ("if len(self.sizes) > 1", "if len(self.sizes) == 1")), made("model = Model()", "model.add(2.0)"), ASKED),
    case('super init by kwargs', hold((CLS, "class Base:\n    n = 1\n\n    def __init__(self, n=2):\n        self.n = n\n\n\nclass Model(Base):\n"), ("factor=2.0):\n", "factor=2.0, **kw):\n        opts = dict(kw)\n        super().__init__(**opts)\n"), ("if len(self.sizes) > 1", "if self.n == 2")), ONCE, ASKED),
    case('tuple added in place', hold(("        self.sizes = [1.0]\n", "        base = (1.0,)\n        self.sizes = base\n        self.more = base\n        self.more += (2.0,)\n"), ("if len(self.sizes) > 1", "if len(self.sizes) == 1")), ONCE, ASKED),
    case('patched by self', top("def patch(self):\n    self._build = lambda m: setup(m)\n\n\ndef setup(m):\n    drawn[0] += 1\n    m.out = net(m.x) * float(drawn[0])\n"), keeps(), ("    train()\n", "    patch(Model)\n    train()\n"), READ),
    case('dunder setattr', hold(("if len(self.sizes) > 1", "if self.factor == 5.0")), made("model = Model()", "model.__setattr__('factor', 5.0)"), ASKED),
    case('type setattr', top("def build(m):\n    drawn[0] += 1\n    m.out = net(m.x) * float(drawn[0])\n\n\n" + KEEPS + "\n\ntype.__setattr__(Model, '_build', build)\n"), READ),
    case('mangled method', top(MB), ONCE, ASKED),
    case('tuple alias in the tower', top(HOLD.replace("        if len(self.sizes) > 1:\n", "        a = (1.0,)\n        b = a\n        b += (2.0,)\n        if len(a) == 1:\n")), ONCE, ASKED),
    case('try through function', hold(), top("def grow(m):\n    m.add(2.0)\n"), made("model = Model()", "def more():", "    grow(model)", "try:", "    more()", "except ValueError:", "    pass"), ASKED),
    case('registered dict', hold(("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        MADE['m'] = self\n")), top("MADE = {}\n\n\ndef more():\n    MADE['m'].add(2.0)\n"), made("model = Model()", "more()"), ASKED),
    case('list sort by method', hold(("self.sizes.append(k)", "self.sizes.append(k)\n        return k")), made("model = Model()", "ks = [2.0, 3.0]", "ks.sort(key=model.add)"), ASKED),
    case('short circuit and', hold(("if len(self.sizes) > 1", "if len(self.sizes) == 1")), made("model = Model()", "drawn[0] and model.add(2.0)"), ASKED),
    case('delattr', hold((CLS, CLS + "    n = 1\n\n"), ("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        self.n = 2\n"), ("if len(self.sizes) > 1", "if self.n == 1")), made("model = Model()", "model.__delattr__('n')"), ASKED),
    case('either add tower', inside("a, b = Bag(), Bag()", "it = a if int('0') else b", "it.add(1.0)", test="len(a.items) == 0"), ONCE, ASKED),
    case('early return append tower', inside("a = Bag()", "a.maybe(1.0)", test="len(a.items) == 0"), ONCE, ASKED),
    case('either function call append', inside("a = []", "def one(k):", "    a.append(k)", "def two(k):", "    pass", "(one if int('0') else two)(1)", test="len(a) == 0"), ONCE, ASKED),
    case('short circuit append', inside("a = Bag()", "int('0') and a.add(1.0)", test="len(a.items) == 0"), ONCE, ASKED),
    case('truth of list short circuit', inside("a = Bag()", "int('0') and a.add(1.0)", test="not a.items"), ONCE, ASKED),
    case('compare chain', inside("a = Bag()", "1 < int('0') < a.add(1.0)", test="not a.items"), ONCE, ASKED),
    case('dict loop bag', inside("a = Bag()", "for k in {'a': 1, 'b': 2, 'c': 3}:", "    a.add(1.0)", test="len(a.items) == 3"), ONCE, ASKED),
    case('sorted loop n', inside("a = Bag()", "for k in sorted([1, 2, 3]):", "    a.n += 1", test="a.n == 3"), ONCE, ASKED),
    case('list times in place', inside("a, b = Bag(), Bag()", "a.items = [1.0]", "b.items = a.items", "b.items *= 2", test="len(a.items) == 2"), ONCE, ASKED),
    case('global counter in constructor', hold(("        self.sizes = [1.0]\n", "        self.sizes = [1.0]\n        global COUNT\n        COUNT += 1\n        self.id = COUNT\n"), ("if len(self.sizes) > 1", "if self.id == 2")), ("drawn = [0]\n", "drawn = [0]\nCOUNT = 0\n"), made("other = Model()", "model = Model()"), ASKED),
    case('nonlocal', hold(("factor=2.0):\n", "factor=2.0, n=0):\n        self.n = n\n"), ("if len(self.sizes) > 1", "if self.n == 1")), made("n = 0", "def bump():", "    nonlocal n", "    n += 1", "bump()", "model = Model(n=n)"), ASKED),
    case('partial of append', hold(), ("import numpy as np\n", "import functools\nimport numpy as np\n"), made("model = Model()", "functools.partial(model.sizes.append, 2.0)()"), ASKED),
    case('operator iadd', hold(), ("import numpy as np\n", "import operator\nimport numpy as np\n"), made("model = Model()", "operator.iadd(model.sizes, [2.0])"), ASKED),
    case('context manager', hold(), ("import numpy as np\n", "import contextlib\nimport numpy as np\n"), top("@contextlib.contextmanager\ndef setup(m):\n    m.add(2.0)\n    yield m\n"), made("model = Model()", "with setup(model):", "    pass"), ASKED),
    case('local starred rest of function', top("def split(*parts):\n    first, *rest = parts\n    return rest\n"), made("rest = split(1.0, 2.0)"), top("def grow(items):\n    items.append(1.0)\n    return float(len(items))\n"), tower("loss = tf.reduce_mean(tf.square(net(x) - y)) * grow(rest)")),
    case('natural bn by main', top(BN), *MAIN, ASKED),
    case('natural bn at top', top(BN), *TOPM, ASKED),
    case('natural constructor with continue', top(BN.replace("    def __init__(self):\n        self.layers = []\n", "    def __init__(self, kinds=('', 'dense', 'bn')):\n        self.layers = []\n        for kind in kinds:\n            if not kind:\n                continue\n            self.layers.append(kind)\n")), ONCE, ASKED),
    case('natural config by kwargs', top(BN.replace("class Model(object):\n    def __init__(self):\n        self.layers = []\n", "class Base(object):\n    use_bn = False\n\n    def __init__(self, use_bn=False):\n        self.use_bn = use_bn\n\n\nclass Model(Base):\n    def __init__(self, **options):\n        given = {'use_bn': False}\n        given.update(options)\n        super(Model, self).__init__(**given)\n        self.layers = ['dense']\n").replace("if kind == 'dense'", "if self.use_bn and kind == 'dense':\n                x = tf.layers.batch_normalization(x, training=True, name='b%d' % k)\n            elif kind == 'dense'")), made("model = Model(use_bn=True)"), ASKED),
    case('default object len', hold(("if len(self.sizes) > 1", "if len(self.sizes) == 3"), ), made("build(2.0)", "model = build(3.0)"), ASKED, ("if __name__", "def build(k, m=Model()):\n    m.add(k)\n    return m\n\n\nif __name__")),
]  # fmt: skip

# The same of lists and numbers.
PLAIN = [
    case('plain continue', BUMPF, made(*M1, "n = 0", "for k in range(3):", "    if k == 0:", "        continue", "    n += 1"), T("n == 2")),
    case('plain dict loop', BUMPF, made(*M1, "n = 0", "for k in {'a': 1, 'b': 2, 'c': 3}:", "    n += 1"), T("n == 3")),
    case('plain starred call', BUMPF, top("def more(items, *ks):\n    for k in ks:\n        items.append(k)\n"), made(*M1, "n = []", "more(n, *np.ones(2))"), T("len(n) == 2")),
    case('plain recursion', BUMPF, top("def fill(items, n):\n    if n:\n        items.append(n)\n        fill(items, n - 1)\n"), made(*M1, "n = []", "fill(n, 6)"), T("len(n) == 6")),
    case('plain generator', BUMPF, top("def more(items):\n    items.append(1)\n    yield 1\n"), made(*M1, "n = []", "more(n)"), T("len(n) == 0")),
    case('plain tuple', BUMPF, made(*M1, "n = (1,)", "m = n", "m += (2,)"), T("len(n) == 1")),
    case('plain early return append', BUMPF, top("def more(items):\n    if drawn[0] == 0:\n        return\n    items.append(1)\n"), made(*M1, "n = []", "more(n)"), T("len(n) == 0")),
    case('plain mutable default', BUMPF, top("def more(k, seen=[]):\n    seen.append(k)\n    return seen\n"), made(*M1, "n = more(1)", "more(2)"), T("len(n) == 2")),
    case('plain global number', BUMPF, ("drawn = [0]\n", "drawn = [0]\nK = 1\n"), ("if __name__ == '__main__':\n    train()\n", "def main():\n    global K\n    K = 2\n    train()\n\n\nif __name__ == '__main__':\n    main()\n"), made(*M1, "n = K"), T("n == 2")),
    case('plain local in the tower dict loop', BUMPF, made(*M1), tower("loss = tf.reduce_mean(tf.square(net(x) - y))", "n = 0", "for k in {'a': 1, 'b': 2, 'c': 3}:", "    n += 1", "if n == 3:", "    loss = bump(cell, loss)")),
]  # fmt: skip

# Objects of the last tower that are changed behind the towers, and what objects keep of TensorFlow.
BEHIND = [
    case('behind counts by method', keeps(("        self._build()\n", "        self.k = 0.0\n        self._build()\n"), ("    def _build", "    def total(self):\n        self.k += 1.0\n        return self.loss * self.k\n\n    def _build")), READ, behind("shown = model.total()", "shown2 = model.total()"), ("[train_op, loss]", "[train_op, shown2]")),
    case('random initializer in object', gives(("        self.factor = factor\n", "        self.factor = factor\n        self.init = tf.random_normal_initializer(seed=3)\n"), (FORWARD, "        return tf.layers.dense(tf.layers.dense(x, 3, kernel_initializer=self.init, name='c'), 1, kernel_initializer=self.init, name='d')\n")), ONCE, ASKED),
    case('ema in object', gives(("        self.factor = factor\n", "        self.factor = factor\n        self.ema = tf.train.ExponentialMovingAverage(0.9)\n")), ONCE, ASKED, behind("ema_op = model.ema.apply(tf.trainable_variables())"), ("[train_op, loss]", "[[train_op, ema_op], loss]")),
    case('stddev initializer loop in object', gives(("        self.factor = factor\n", "        self.factor = factor\n        self.init = tf.truncated_normal_initializer(stddev=0.1, seed=1)\n"), (FORWARD, "        for k in range(2):\n            x = tf.layers.dense(x, 3, kernel_initializer=self.init, name='h%d' % k)\n        return net(x)\n")), ONCE, ASKED),
    case('unused behind counts', more("def total(self):", "    self.k += 1.0", "    return self.loss * self.k"), READ, behind("first = model.total()", "shown = model.total()"), F("shown")),
    case('expression behind counts', more("def total(self):", "    self.k += 1.0", "    return self.loss * self.k"), READ, behind("model.total()", "shown = model.total()"), F("shown")),
    case('setter behind', more("def set(self, k):", "    self.k = k"), READ, behind("model.set(4.0)", "shown = model.loss * model.k"), F("shown")),
    case('function behind sets', more("def total(self):", "    return self.loss * self.k"), top("def setup(m):\n    m.k = 3.0\n"), READ, behind("setup(model)", "shown = model.total()"), F("shown")),
    case('method gives group', more("def op(self):", "    return tf.group(self.loss)"), READ, behind("op = model.op()"), ("[train_op, loss]", "[[train_op, op], loss]")),
    case('function gives no_op', keeps(), top("def op_of(t):\n    return tf.group(t)\n"), READ, behind("op = op_of(loss)"), ("[train_op, loss]", "[[train_op, op], loss]")),
    case('two seeds by subclass', top("class Base(object):\n    def __init__(self):\n        self.init = tf.random_normal_initializer(seed=3)\n\n    def layer(self, x, n, name):\n        return tf.layers.dense(x, n, kernel_initializer=self.init, name=name)\n\n\nclass Model(Base):\n    def loss(self, x, y):\n        return tf.reduce_mean(tf.square(self.layer(self.layer(x, 3, 'c'), 1, 'd') - y))\n"), ONCE, ASKED),
    case('finish behind', more("def finish(self):", "    self.total = self.loss * 3.0"), READ, behind("model.finish()", "shown = model.total"), F("shown")),
    case('add loss behind', more("def more(self, t):", "    self.loss = self.loss + t"), READ, behind("model.more(1.5)"), ("[train_op, loss]", "[train_op, shown]"), behind("shown = model.loss * 1.0")),
    case('if behind', more("def set(self, k):", "    self.k = k"), READ, behind("if len(DEVICES) > 1:", "    model.set(4.0)", "shown = model.loss * model.k"), F("shown")),
    case('loop behind', more("def set(self, k):", "    self.k = self.k + k"), READ, behind("for k in range(3):", "    model.set(4.0)", "shown = model.loss * model.k"), F("shown")),
    case('two values of the tower, one changes the other', more("def of(self, t):", "    self.k = 5.0", "    return t"), READ, behind("a = model.of(loss)", "b = model.loss * model.k"), ("            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n", "            _, value = sess.run([train_op, b], feed_dict={X: bx, Y: by})\n            print(sess.run(a, feed_dict={X: bx, Y: by}))\n")),
]  # fmt: skip

# What asks whether TensorFlow 2 is on.
MODE = [
    case('v1 shape repr', V1, ("        print('draws', drawn[0])\n", "        print('draws', drawn[0], [tf.TensorShape([3, None])[0]])\n")),
    case('plain shape value', ("        print('draws', drawn[0])\n", "        print('draws', drawn[0], tf.TensorShape([3, None])[0].value)\n")),
    case('v1 shape value before', V1, made("n = tf.TensorShape([3, None])[0].value"), ("        print('draws', drawn[0])\n", "        print('draws', drawn[0], n)\n")),
    case('v1 and enable eager elsewhere', V1, ("if __name__ == '__main__':\n", "if __name__ == '__main__':\n    print(tf.executing_eagerly())\n")),
    case('v1 eager at top', V1, ("drawn = [0]\n", "drawn = [0]\nEAGER = tf.executing_eagerly()\n"), ("        print('draws', drawn[0])\n", "        print('draws', drawn[0], EAGER)\n")),
    case('v1 constant at top', V1, ("drawn = [0]\n", "drawn = [0]\nC = tf.constant(1.0)\n"), ("        print('draws', drawn[0])\n", "        print('draws', drawn[0], C.name)\n")),
    case('v1 eager in main branch', V1, ("    train()\n", "    if not tf.executing_eagerly():\n        train()\n    else:\n        print('no')\n")),
    case('v1 v2 enabled test', V1, ("    train()\n", "    from tensorflow.python import tf2\n    if not tf2.enabled():\n        train()\n    else:\n        print('no')\n")),
]  # fmt: skip

EVERY = [*BEFORE, *PLAIN, *BEHIND, *MODE]


@pytest.mark.parametrize("changes", EVERY)
def test_it_is_not_fooled(changes: tuple[Change, ...]) -> None:
    (result,) = rewrite_tree(program(*changes)).programs
    assert result.style != "loop"
    assert result.not_loop


@pytest.mark.full
def test_all_of_them_do_the_same() -> None:
    none_does_anything_else(EVERY)
