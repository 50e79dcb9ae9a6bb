"""Functions made of functions: decorators and partial functions that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
NET = "def net(x):\n"
RETURN = "    return tf.matmul(x, w) + b\n"
SAVER = "    saver = tf.train.Saver()\n"
START = "    tower_grads = []\n"


def in_tower(text: str) -> Change:
    """Statements of the tower, behind its loss."""
    return (LOSS, LOSS + "".join(f"                    {line}\n" for line in text.split("\n")))


def module(text: str) -> Change:
    return (NET, text + "\n\n\n" + NET)


def before(text: str) -> Change:
    return (START, START + "".join(f"    {line}\n" for line in text.split("\n")))


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def wrapped(inner: str, own: str = "", head: str = "") -> Change:
    """The model under a decorator; what the decorator has of its own, and its inner function's body."""
    lines = [f"def changed(fn):\n{own}    def inner(*args, **kwargs):\n"]
    lines += [f"        {line}\n" for line in inner.split("\n")]
    return (
        NET,
        "import functools\n\n\n" + head + "".join(lines) + "    return inner\n\n\n@changed\n" + NET,
    )


HALF = "return fn(*args, **kwargs) * 0.5"
PARTIAL = "import functools\n\n\ndef plus(value, by, scale=1.0):\n    return value * scale + by"

TAKEN = [
    case("a decorator", wrapped(HALF)),
    case("one that keeps a name", wrapped(HALF), ("    def inner(", "    @functools.wraps(fn)\n    def inner(")),
    case("one with a setting", wrapped("return fn(*args, **kwargs) * by", "    by = 0.25\n")),
    case("one with an argument", module("def scaled(by):\n    def changed(fn):\n        def inner(x):\n            return fn(x) * by\n        return inner\n    return changed"), (NET, "@scaled(0.5)\n" + NET)),
    case("two of them", module("def halved(fn):\n    def inner(x):\n        return fn(x) * 0.5\n    return inner\n\n\ndef moved(fn):\n    def inner(x):\n        return fn(x) + 0.125\n    return inner"), (NET, "@halved\n@moved\n" + NET)),
    case("one that gives its function", module("REGISTERED = {}\n\n\ndef same(fn):\n    return fn"), (NET, "@same\n" + NET)),
    case("one that asks its arguments", wrapped("if len(args) != 1:\n    raise ValueError(args)\nreturn fn(*args)")),
    case("one in the tower", in_tower("def halved(fn):\n    def inner(value):\n        return fn(value) * 0.5\n    return inner\n@halved\ndef squared(value):\n    return value * value\nloss = squared(loss)")),
    case("one by a name", module("def halved(fn):\n    def inner(x):\n        return fn(x) * 0.5\n    return inner"), ("                    out = net(x)\n", "                    out = halved(net)(x)\n")),
    case("a scope around its function", wrapped("with tf.variable_scope('model'):\n    return fn(*args, **kwargs)")),
    case("arguments by name", module("def plus(value, by, scale):\n    return value * scale + by\n\n\ndef handed(value, **kwargs):\n    return plus(value, **kwargs)"), in_tower("loss = handed(loss, by=0.5, scale=1.25)")),
    case("no arguments by name", module("def plus(value, by=0.5):\n    return value + by\n\n\ndef handed(value, **kwargs):\n    return plus(value, **kwargs)"), in_tower("loss = handed(loss)")),
    case("a partial function", module(PARTIAL), in_tower("loss = functools.partial(plus, by=0.5, scale=1.25)(loss)")),
    case("a partial function of the index", module(PARTIAL), in_tower("loss = functools.partial(plus, by=0.5 * i)(loss)")),
    case("a partial function with a tensor", module(PARTIAL), in_tower("add = functools.partial(plus, loss)\nloss = add(0.5) + add(by=0.25)")),
    case("a partial function of the module", module(PARTIAL + "\n\n\nmore = functools.partial(plus, by=0.5)"), in_tower("loss = more(loss)")),
    case("a partial function made before", module(PARTIAL), before("more = functools.partial(plus, by=0.5)"), in_tower("loss = more(loss, scale=0.5)")),
    case("a partial function of a partial function", module(PARTIAL), in_tower("more = functools.partial(functools.partial(plus, by=0.5), scale=0.5)\nloss = more(loss)")),
    case("a partial function of TensorFlow", module("import functools\n\n\nleaky = functools.partial(tf.nn.leaky_relu, alpha=0.3)"), (RETURN, "    x = leaky(x - 0.2)\n" + RETURN)),
]  # fmt: skip

LEFT = [
    other("a decorator that counts", "TM206", wrapped("calls[0] += 1\n" + HALF, "    calls = [0]\n")),
    other("one that keeps what was made", "TM206", wrapped("made.append(fn(*args, **kwargs))\nreturn made[-1]", "    made = []\n")),
    other("one that remembers", "TM206", wrapped("if 'out' not in kept:\n    kept['out'] = fn(*args, **kwargs)\nreturn kept['out']", "    kept = {}\n")),
    other("one that changes a list of the module", "TM206", wrapped("CALLS.append(1)\n" + HALF, head="CALLS = []\n\n\n")),
    other("one that prints", "TM223", wrapped("print('called')\n" + HALF)),
    other("one that catches", "TM223", wrapped("try:\n    return fn(*args)\nexcept ValueError:\n    return args[0]")),
    other("one with a name that is bound twice", "TM224", wrapped("return fn(*args, **kwargs) * by", "    by = 0.25\n    by = by * 2.0\n")),
    other("one with a name that changes", "TM223", wrapped("nonlocal by\nby = by * 0.5\nreturn fn(*args, **kwargs) * by", "    by = 0.5\n")),
    other("one that reads a setting that is changed", "TM224", wrapped("return fn(*args, **kwargs) * SETTINGS['by']", head="SETTINGS = {'by': 0.5}\n\n\n"), (SAVER, SAVER + "    SETTINGS['by'] = 2.0\n")),
    other("one of a library", "TM222", module("import functools"), (NET, "@functools.lru_cache(None)\n" + NET)),
    other("one of TensorFlow", "TM222", (NET, "@tf.custom_gradient\n" + NET)),
    other("one that is a class", "TM222", module("class Changed(object):\n    def __init__(self, fn):\n        self.fn = fn\n\n    def __call__(self, x):\n        return self.fn(x)"), (NET, "@Changed\n" + NET)),
    other("one that Python chooses", "TM222", module("import os\n\n\ndef halved(fn):\n    def inner(x):\n        return fn(x) * 0.5\n    if os.environ.get('HALF'):\n        return inner\n    return fn"), (NET, "@halved\n" + NET)),
    other("arguments by name that are changed", "TM222", module("def plus(value, by, scale):\n    return value * scale + by\n\n\ndef handed(value, **kwargs):\n    kwargs['by'] = 0.25\n    return plus(value, **kwargs)"), in_tower("loss = handed(loss, by=0.5, scale=1.25)")),
    other("arguments by name that are taken out", "TM222", module("def plus(value, by):\n    return value + by\n\n\ndef handed(value, **kwargs):\n    scale = kwargs.pop('scale')\n    return plus(value, **kwargs) * scale"), in_tower("loss = handed(loss, by=0.5, scale=1.25)")),
    other("arguments by name of a dict", "TM222", module("def plus(value, by, scale):\n    return value * scale + by\n\n\nGIVEN = {'by': 0.5, 'scale': 1.25}"), in_tower("loss = plus(loss, **GIVEN)")),
    other("a partial function with a list", "TM222", module("import functools\n\n\ndef plus(values, value):\n    return value + values[0]\n\n\nSHARES = [0.5]\nmore = functools.partial(plus, SHARES)"), in_tower("loss = more(loss)")),
    other("a partial function that fills a list", "TM206", module("import functools\n\n\ndef kept(values, value):\n    values.append(value)\n    return value"), before("seen = []"), in_tower("loss = functools.partial(kept, seen)(loss)")),
    other("a partial function that is bound anew", "TM224", module(PARTIAL), before("more = functools.partial(plus, by=0.5)"), in_tower("loss = more(loss)"), (SAVER, "    more = functools.partial(plus, by=2.5)\n" + SAVER)),
    other("a partial function with a tensor from before", "TM222", module(PARTIAL), before("more = functools.partial(plus, by=tf.constant(0.5))"), in_tower("loss = more(loss)")),
    other("a partial function of an object", "TM222", module("import functools\n\n\nclass Scale(object):\n    def __call__(self, value, by):\n        self.by = by\n        return value * by"), before("scale = functools.partial(Scale(), by=0.5)"), in_tower("loss = scale(loss)")),
    other("a partial function of what prints", "TM222", module("import functools"), in_tower("loss = functools.partial(tf.Print, loss)([loss])")),
    other("a partial layer with an initializer", "TM222", module("import functools\n\n\ndense = functools.partial(tf.layers.dense, kernel_initializer=tf.constant_initializer(0.5))"), (RETURN, "    x = dense(x, 3, name='more')\n" + RETURN)),
    other("a partial layer with a regulariser", "TM219", module("import functools\n\n\ndense = functools.partial(tf.layers.dense, kernel_regularizer=tf.nn.l2_loss)"), (RETURN, "    x = dense(x, 3, name='more')\n" + RETURN)),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
