"""Programs meant to fool who follows Python: in loop style a branch that counts its traces was not seen.

Numbers, lists and returns as Python has them: defaults, loops, `**kwargs`, aliases, and what code that stays does to them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import none_does_anything_else
from tests.differential.test_fooling_objects import BUMPF, T
from tests.differential.test_tower_objects import (
    ASKED,
    COLLECTED,
    COMPUTE,
    READ,
    behind,
    keeps,
    made,
    top,
    tower,
)
from towermigrate.rewrite import rewrite_tree

K2 = keeps(
    ("        self._build()\n", "        self.k = 1.0\n        self._build()\n"),
    (
        "    def _build",
        "    @property\n    # the loss\n    def loss(self):\n        self.k += 1.0\n        return self.base * self.k\n\n    def _build",
    ),
    ("self.loss = ", "self.base = "),
)
K3 = keeps(
    (
        "    def _build",
        "    @property\n    def total(self):\n        self.loss = self.loss * 3.0\n        return self.loss\n\n    def _build",
    )
)
K5 = (
    keeps(
        (
            "        self.loss = ",
            "        self.parts = Parts()\n        self.parts.of = self\n        self.loss = ",
        )
    ),
    top("class Parts:\n    def triple(self):\n        self.of.loss = self.of.loss * 3.0\n"),
)
KEPT = (
    made("losses = []"),
    (COLLECTED, COLLECTED + "                    losses.append(model.loss)\n"),
    behind("mean_loss = tf.reduce_mean(losses)"),
    ("[train_op, loss]", "[train_op, mean_loss]"),
)
DR = "def hidden(x, name, use_bn=False):\n    x = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name=name)\n    if use_bn:\n        x = tf.layers.batch_normalization(x, training=True, name=name + '_bn')\n    return x\n\n\ndef block(x, name, **kw):\n    kw.setdefault('use_bn', True)\n    return hidden(x, name, **kw)\n"
BNM = "class Model(object):\n    def __init__(self, use_bn):\n        self.use_bn = use_bn\n\n    def loss(self, x, y):\n        x = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name='h')\n        if self.use_bn:\n            x = tf.layers.batch_normalization(x, training=True, name='bn')\n        return tf.reduce_mean(tf.square(net(x) - y))\n"
BNF = "def model_loss(x, y, use_bn):\n    x = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name='h')\n    if use_bn:\n        x = tf.layers.batch_normalization(x, training=True, name='bn')\n    return tf.reduce_mean(tf.square(net(x) - y))\n"
H = "class Model(object):\n    def __init__(self, x, y, **kw):\n        self.cell = []\n        self.n = 0\n        x = self.hidden(x, **kw)\n        self.loss = tf.reduce_mean(tf.square(net(x) - y))\n\n    def dense(self, x, name, bn):\n        x = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name=name)\n        if bn:\n            x = tf.layers.batch_normalization(x, training=True, name=name + '_bn')\n        return x\n\n"
F = "def hidden(x, name, **kwargs):\n    use_bn = kwargs.get('use_bn', False)\n    x = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name=name)\n    if use_bn:\n        x = tf.layers.batch_normalization(x, training=True, name=name + '_bn')\n    return x\n"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def imp(name: str) -> Change:
    return ("import numpy as np\n", f"import {name}\n\nimport numpy as np\n")


def before(name: str, lines: list[str], test: str, *changes: Change) -> Any:
    """Lines before the towers, and a branch in a tower that asks for what they did."""
    return case(name, BUMPF, *changes, made("cell = [0.0]", *lines), T(test))


def within(name: str, lines: list[str], test: str, *changes: Change) -> Any:
    """The same in a tower."""
    loss = "loss = tf.reduce_mean(tf.square(net(x) - y))"
    asked = tower(loss, *lines, f"if {test}:", "    loss = bump(cell, loss)")
    return case(f"{name}, in a tower", BUMPF, *changes, made("cell = [0.0]"), asked)


def ordinary(name: str, text: str, read: Change = READ, *changes: Change) -> Any:
    """A model whose layer is normalised where Python says so."""
    return case(f"{name}, in a model", *changes, top(text), read)


SHIFTED = [
    "for k in range(100):",
    "    d[0] = c[0]",
    "    c[0] = b[0]",
    "    b[0] = a[0]",
    "    a[0] = 1",
]
BOX = top(
    "class Box:\n    a = b = c = d = 0\n\n    def __init__(self):\n        self.a, self.b, self.c, self.d = 0, 0, 0, 0\n        self.f = tf.square\n"
)
HANDED = ["    box.d = box.c", "    box.c = box.b", "    box.b = box.a", "    box.a = 1"]
EVERY = [
    within("s shift in lists", ["a, b, c, d = [0], [0], [0], [0]", *SHIFTED], "d[0] == 1"),
    within("s shift in an object", ["box = Box()", "for k in range(100):", *HANDED], "box.d == 1", BOX),
    before("a number of one that a module has set", ["n = K + 1"], "n == 3", ("drawn = [0]\n", "drawn = [0]\nK = 1\n"), ("\n    train()\n", "\n    import __main__\n    __main__.K = 2\n    train()\n")),
    before('try return', ["n = count()"], "n == 2", top("def count():\n    try:\n        return int('2')\n    except ValueError:\n        pass\n    return 1\n")),
    before('try return append', ["n = []", "count(n)"], "len(n) == 0", top("def count(n):\n    try:\n        return 2\n    except ValueError:\n        pass\n    n.append(1)\n")),
    before('while return', ["n = count()"], "n == 4", top("def count():\n    n = 0\n    while True:\n        n += 1\n        if n > 3:\n            return n\n    return 1\n")),
    before('for direct return append', ["n = []", "count(n)"], "len(n) == 0", top("def count(n):\n    for k in (1, 2):\n        return 1\n    n.append(1)\n")),
    before('for else', ["n = 5", "for k in (1, 2):", "    if k == 2:", "        break", "else:", "    n = 0"], "n == 5"),
    before('with suppress', ["n = 1", "with contextlib.suppress(KeyError):", "    k = {}['a']", "    n = 2"], "n == 1", imp('contextlib')),
    before('lambda default early', ["k = 1", "f = lambda n=k: n", "k = 2", "n = f()"], "n == 1"),
    before('lambda default comp', ["fs = [lambda k=k: k for k in range(3)]", "n = fs[0]()"], "n == 0"),
    before('lambda default loop', ["fs = []", "for k in range(3):", "    fs.append(lambda k=k: k)", "n = fs[0]()"], "n == 0"),
    before('walrus and', ["n = 1", "drawn[0] and (n := 5)"], "n == 1"),
    before('walrus ifexp', ["n = 1", "k = (n := 5) if drawn[0] else 0"], "n == 1"),
    before('walrus compare', ["n = 1", "k = 1 < int('0') < (n := 5)"], "n == 1"),
    before('list times zero', ["n = 1", "for k in [1] * 0:", "    n = 5"], "n == 1"),
    before('shift', ["a, b, c, d = 0, 0, 0, 0", "for k in range(100):", "    d = c", "    c = b", "    b = a", "    a = 1"], "d == 1"),
    before('instance store', ["cfg = Cfg()", "n = []", "cfg.sizes = n", "cfg.grow()"], "len(n) == 1", top("class Cfg:\n    def __init__(self):\n        self.sizes = None\n\n    def grow(self):\n        self.sizes.append(1)\n")),
    before('setting store', ["n = []", "REG['n'] = n", "grow()"], "len(n) == 1", top("REG = {}\n\n\ndef grow():\n    for k in REG:\n        REG[k].append(1)\n")),
    before('setting store attr', ["n = []", "CFG.n = n", "grow()"], "len(n) == 1", imp("types"), top("CFG = types.SimpleNamespace()\n\n\ndef grow():\n    CFG.n.append(1)\n")),
    before('func attr store', ["n = []", "grow.n = n", "grow()"], "len(n) == 1", top("def grow():\n    grow.n.append(1)\n")),
    before('class attr store', ["n = []", "Cfg.n = n", "Cfg.grow()"], "len(n) == 1", top("class Cfg:\n    n = None\n\n    @classmethod\n    def grow(cls):\n        cls.n.append(1)\n")),
    before('tuple plus alias', ["n = (1,) + (2,)", "m = n", "m += (3,)"], "len(n) == 2"),
    before('loop self grow', ["n = [1, 1]", "m = 0", "for k in n:", "    m += 1", "    if m == 1:", "        n.append(1)"], "m == 3"),
    before('kwargs setdefault', ["n = f()"], "n == 5", top("def g(n=1):\n    return n\n\n\ndef f(**kw):\n    kw.setdefault('n', 5)\n    return g(**kw)\n")),
    before('kwargs branch', ["n = f(n=1)"], "n == 5", top("def g(n=1):\n    return n\n\n\ndef f(**kw):\n    if int('1'):\n        kw['n'] = 5\n    return g(**kw)\n")),
    within('lambda default comp', ["fs = [lambda k=k: k for k in range(3)]"], "fs[0]() == 0"),
    within('lambda default loop', ["fs = []", "for k in range(3):", "    fs.append(lambda k=k: k)"], "fs[0]() == 0"),
    within('lambda default early', ["k = 1", "f = lambda n=k: n", "k = 2"], "f() == 1"),
    within('tuple plus alias', ["n = (1,) + (2,)", "m = n", "m += (3,)"], "len(n) == 2"),
    within('self grow', ["n = [1, 1]", "m = 0", "for k in n:", "    m += 1", "    if m == 1:", "        n.append(1)"], "m == 3"),
    within('list times zero', ["n = 1", "for k in [1] * 0:", "    n = 5"], "n == 1"),
    within('shift', ["a, b, c, d = 0, 0, 0, 0", "for k in range(100):", "    d = c", "    c = b", "    b = a", "    a = 1"], "d == 1"),
    within('for if return', ["n = []", "count(n)"], "len(n) == 0", top("def count(n):\n    for k in (1, 2):\n        if k == 1:\n            return 1\n    n.append(1)\n")),
    within('kwargs setdefault', ["n = f()"], "n == 5", top("def g(n=1):\n    return n\n\n\ndef f(**kw):\n    kw.setdefault('n', 5)\n    return g(**kw)\n")),
    within('kwargs branch', ["n = f(n=1)"], "n == 5", top("def g(n=1):\n    return n\n\n\ndef f(**kw):\n    if int('1'):\n        kw['n'] = 5\n    return g(**kw)\n")),
    ordinary('early return sets', H + "    def hidden(self, x):\n        self.find('bn')\n        return self.dense(x, 'h', self.n == 0)\n\n    def find(self, kind):\n        for k in ('bn', 'ln'):\n            if k == kind:\n                return k\n        self.n = 5\n"),
    ordinary('kwargs get', H + "    def hidden(self, x, **kw):\n        bn = kw.get('bn', False)\n        return self.dense(x, 'h', bn)\n", tower("model = Model(x, y, bn=True)", "loss = model.loss")),
    ordinary('lambda defaults', H + "    def hidden(self, x):\n        layers = [lambda t, k=k, bn=bn: self.dense(t, 'h%d' % k, bn) for k, bn in enumerate([True, False])]\n        for layer in layers:\n            x = layer(x)\n        return x\n"),
    ordinary('tuple sizes', H + "    def hidden(self, x):\n        base = (3,) + (3,)\n        more = base\n        more += (3,)\n        return self.dense(x, 'h', len(base) == 2)\n"),
    ordinary('counter in default', H + "    def hidden(self, x):\n        k = 1\n        def layer(t, k=k):\n            return self.dense(t, 'h%d' % k, k == 1)\n        k = 2\n        return layer(x)\n"),
    ordinary('repeats zero', H + "    def hidden(self, x):\n        bn = True\n        for _ in ['x'] * 0:\n            bn = False\n        return self.dense(x, 'h', bn)\n"),
    ordinary('shift', H + "    def hidden(self, x):\n        a = b = c = d = False\n        for k in range(100):\n            d = c\n            c = b\n            b = a\n            a = True\n        return self.dense(x, 'h', d)\n"),
    ordinary('seen list', H + "    def hidden(self, x):\n        todo = ['a']\n        for k in todo:\n            if k == 'a':\n                todo.append('b')\n            x = self.dense(x, k, k == 'b')\n        return x\n"),
    ordinary('module list lambda', H + "    def hidden(self, x):\n        return self.dense(x, 'h', len(KS) == 2)\n", READ, ("drawn = [0]\n", "drawn = [0]\nKS = [1, 2, 3]\n(lambda: KS)().pop()\n")),
    ordinary('module list return', H + "    def hidden(self, x):\n        return self.dense(x, 'h', len(KS) == 2)\n", READ, ("drawn = [0]\n", "drawn = [0]\nKS = [1, 2, 3]\n\n\ndef kinds():\n    return KS\n\n\nkinds().pop()\n")),
    case('kept property comment', K2, tower("model = Model(x, y)"), COMPUTE, *KEPT),
    case('kept property changes', K3, tower("model = Model(x, y)"), made("losses = []"), ("grads = opt.compute_gradients(loss)\n", "losses.append(model.loss)\n                    total = model.total\n                    grads = opt.compute_gradients(model.loss)\n"), behind("mean_loss = tf.reduce_mean(losses)"), ("[train_op, loss]", "[train_op, mean_loss]")),
    case('kept by part', *K5, tower("model = Model(x, y)"), made("losses = []"), ("grads = opt.compute_gradients(loss)\n", "losses.append(model.loss)\n                    model.parts.triple()\n                    grads = opt.compute_gradients(model.loss)\n"), behind("mean_loss = tf.reduce_mean(losses)"), ("[train_op, loss]", "[train_op, mean_loss]")),
    case('strict kwargs setdefault bn', top(DR), tower("loss = tf.reduce_mean(tf.square(net(block(x, 'h')) - y))")),
    case('strict kwargs update seed', top("def fc(x, name, **kw):\n    kw.update(kernel_initializer=tf.random_uniform_initializer(seed=3))\n    return tf.layers.dense(x, 3, name=name, **kw)\n"), tower("loss = tf.reduce_mean(tf.square(net(fc(fc(x, 'a'), 'b')) - y))")),
    case('strict lambda layers bn', top("def hidden(x, name, kind):\n    x = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name=name)\n    if kind == 'bn':\n        x = tf.layers.batch_normalization(x, training=True, name=name + '_bn')\n    return x\n"), tower("layers = [lambda t, kind=kind: hidden(t, 'h_' + kind, kind) for kind in ('bn', 'plain')]", "h = x", "for layer in layers:", "    h = layer(h)", "loss = tf.reduce_mean(tf.square(net(h) - y))")),
    case('bn object read flag', top(BNM + "\n\ndef read_flag():\n    try:\n        return True\n    except ValueError:\n        pass\n"), made("model = Model(read_flag())"), ASKED),
    case('seed scope initializer', tower("with tf.variable_scope('s', initializer=tf.random_uniform_initializer(seed=7)):", "    h = tf.layers.dense(tf.layers.dense(x, 3, name='a'), 3, name='b')", "loss = tf.reduce_mean(tf.square(net(h) - y))")),
    case('seed default arg', top("def fc(x, name, ini=tf.random_uniform_initializer(seed=7)):\n    return tf.layers.dense(x, 3, name=name, kernel_initializer=ini)\n"), tower("h = fc(fc(x, 'a'), 'b')", "loss = tf.reduce_mean(tf.square(net(h) - y))")),
    case('kwargs get fn', top(F), tower("loss = tf.reduce_mean(tf.square(net(hidden(x, 'h', use_bn=True)) - y))")),
    case('kwargs get strict cell', BUMPF, top("def size(**kwargs):\n    n = kwargs.get('n', 1)\n    return n\n"), made("cell = [0.0]"), tower("loss = tf.reduce_mean(tf.square(net(x) - y))", "n = size(n=2)", "if n == 2:", "    loss = bump(cell, loss)")),
    case('object default twice', BUMPF, top("class M(object):\n    def __init__(self, **kw):\n        act = kw.get('act')\n        self.act = act\n\n    def loss(self, x, y, cell):\n        t = tf.reduce_mean(tf.square(net(x) - y))\n        return t if self.act is None else self.act(cell, t)\n"), made("cell = [0.0]"), tower("loss = M(act=bump).loss(x, y, cell)")),
]  # fmt: skip
# What decides is not known, so that both of its ways were followed: loop style is right.
RIGHT = frozenset(
    {
        "early return sets, in a model",
        "kwargs get, in a model",
        "lambda defaults, in a model",
        "tuple sizes, in a model",
        "counter in default, in a model",
        "repeats zero, in a model",
        "shift, in a model",
        "module list lambda, in a model",
        "module list return, in a model",
        "strict lambda layers bn",
        "bn object read flag",
        "kwargs get fn",
        # Variables of towers start from a seed as in a graph.
        "seed scope initializer",
        "seed default arg",
    }
)


@pytest.mark.parametrize("changes", EVERY)
def test_it_is_not_fooled(changes: tuple[Change, ...], request: pytest.FixtureRequest) -> None:
    (result,) = rewrite_tree(program(*changes)).programs
    assert (result.style == "loop") == (request.node.callspec.id in RIGHT)


@pytest.mark.full
def test_all_of_them_do_the_same() -> None:
    none_does_anything_else(EVERY)
