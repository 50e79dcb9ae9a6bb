"""Objects that are made with the input pipeline, which they keep: what loop style takes, and neighbours that it must not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.loop_programs import program as one_file
from tests.differential.spellings import asked_of

TRAIN = "def train():\n"
HOLDERS = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
TAKES = "x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]"
RUN = "_, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
STEPS = "        for step in range(4):\n"
MAKE = "    loader = Loader(4)\n"
LEFT_OF = "    X = loader.images\n    Y = loader.targets\n"
SPLIT = "    xs = tf.split(X, 2)\n    ys = tf.split(Y, 2)\n"
CLASS = '''\
class Loader(object):
    """Rows and what they add up to."""

    def __init__(self, rows, mode='train'):
        self.rows = rows
        self.mode = mode
        self.images = None
        self.targets = None
        first = np.linspace(-1.0, 1.0, 36).reshape(12, 3).astype(np.float32)
        row, = tf.train.slice_input_producer([tf.constant(first)], shuffle=False)
        if self.mode == 'train':
            row = self.scaled(row)
        self.images, self.targets = tf.train.batch([row, tf.reduce_sum(row, 0, keepdims=True)], rows)

    def scaled(self, row):
        return row * 0.5
'''
FORM: tuple[Change, ...] = (
    (HOLDERS, MAKE + LEFT_OF + SPLIT),
    (TAKES, "x, y = xs[i], ys[i]"),
    ("            bx, by = batch(4)\n", ""),
    (RUN, "_, value = sess.run([train_op, loss])\n"),
    (STEPS, "        tf.train.start_queue_runners(sess=sess)\n" + STEPS),
)


def program(*changes: Change, form: tuple[Change, ...] = FORM, apart: str = "") -> dict[str, str]:
    """The program with a loader; `apart` is how a file beside it is imported that has its class."""
    files = one_file((TRAIN, CLASS + "\n\n" + TRAIN), *form)
    text = files["train.py"]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    if not apart:
        return {"train.py": text}
    start = text.index("class Loader")
    end = text.index("\n\n\n", start)
    own = "import numpy as np\nimport tensorflow as tf\n\n\n" + text[start:end] + "\n"
    text = text[:start] + text[end + 3 :]
    text = text.replace("import tensorflow as tf\n", f"import tensorflow as tf\n{apart}\n", 1)
    return {"train.py": text, "loading.py": own}


def made(
    changes: tuple[Change, ...], apart: str = "", form: tuple[Change, ...] = FORM
) -> Mapping[str, str]:
    return program(*changes, form=form, apart=apart)


def case(name: str, *changes: Change, apart: str = "", form: tuple[Change, ...] = FORM) -> Any:
    return pytest.param((changes, apart, form), id=name)


def other(
    name: str, rule: str, *changes: Change, apart: str = "", form: tuple[Change, ...] = FORM
) -> Any:
    return pytest.param((changes, apart, form), rule, id=name)


RUN_BARE = "            _, value = sess.run([train_op, loss])\n"
PRINTS = ("        self.rows = rows\n", "        self.rows = rows\n        print('makes', rows)\n")
BATCHED = "        self.images, self.targets = tf.train.batch([row, tf.reduce_sum(row, 0, keepdims=True)], rows)\n"

TAKEN = [
    case("of the file"),
    case("of a module, by its name", apart="from loading import Loader"),
    case("of a module, by a star", apart="from loading import *"),
    case("of a module", (MAKE, "    loader = loading.Loader(4)\n"), apart="import loading"),
    case("of a module by another name", (MAKE, "    loader = data.Loader(4)\n"), apart="import loading as data"),
    case("of no object's class", ("class Loader(object):", "class Loader:")),
    case("that is asked for a mode", (MAKE, "    loader = Loader(4, mode='test')\n")),
    case("that prints", PRINTS),
    case("that prints behind what prints", PRINTS, (MAKE, "    print('makes')\n" + MAKE)),
    case("of which every tower takes the same", (SPLIT, ""), ("x, y = xs[i], ys[i]", "x, y = X * 1.0, Y * 1.0")),
    case("that keeps what it is given", ("        self.rows = rows\n", "        self.rows = rows\n        self.seen = []\n        self.seen.append(rows)\n")),
    case("of which only rows are taken", (LEFT_OF + SPLIT, "    X = loader.images\n    xs = tf.split(X, 2)\n"), ("x, y = xs[i], ys[i]", "x = xs[i]\n                    y = tf.reduce_sum(x, 1, keepdims=True)")),
    case("that is set from without", (LEFT_OF, "    loader.images = loader.images * 2.0\n" + LEFT_OF)),
]  # fmt: skip

LEFT = [
    other("that is asked for a number", "TM211", (MAKE, MAKE + "    print(loader.rows)\n")),
    other("whose number has a name", "TM211", (MAKE, MAKE + "    rows = loader.rows\n"), (RUN_BARE, RUN_BARE + "            print(rows)\n")),
    other("of another class", "TM208", (CLASS, "class Base(object):\n    pass\n\n\n" + CLASS.replace("(object)", "(Base)"))),
    other("with a class of its class", "TM208", (CLASS, "class Meta(type):\n    def __call__(cls, rows):\n        made = super().__call__(rows)\n        made.images = made.images * 2.0\n        return made\n\n\n" + CLASS.replace("(object)", "(object, metaclass=Meta)"))),
    other("of a class that is decorated", "TM208", (CLASS, "def doubled(cls):\n    cls.scaled = lambda self, row: row * 2.0\n    return cls\n\n\n@doubled\n" + CLASS)),
    other("with a property", "TM208", ("    def scaled", "    @property\n    def first(self):\n        return self.images * 2.0\n\n    def scaled"), ("X = loader.images", "X = loader.first")),
    other("with a special method", "TM208", ("    def scaled", "    def __getattribute__(self, name):\n        print(name)\n        return object.__getattribute__(self, name)\n\n    def scaled")),
    other("of a class that is bound anew", "TM224", (CLASS, CLASS + "\n\nLoader.scaled = lambda self, row: row * 2.0\n")),
    other("of a class of two", "TM208", (CLASS, CLASS + "\n\nif len(DEVICES) > 5:\n    Loader = dict\n")),
    other("that may be of another module", "TM208", apart="from loading import *\nfrom six.moves import *"),
    other("that makes a variable", "TM208", ("        self.rows = rows\n", "        self.rows = rows\n        self.seen = tf.get_variable('seen', [], initializer=tf.constant_initializer(0.0), trainable=False)\n")),
    other("that changes what it is given", "TM208", (MAKE, "    files = []\n    loader = Loader(4, mode=files)\n"), ("        self.rows = rows\n", "        self.rows = rows\n        mode.append('seen')\n"), (RUN_BARE, RUN_BARE + "            print(files)\n")),
    other("that sets what it is given", "TM208", (MAKE, "    files = {}\n    loader = Loader(4, mode=files)\n"), ("        self.rows = rows\n", "        self.rows = rows\n        mode['seen'] = 1\n"), (RUN_BARE, RUN_BARE + "            print(files)\n")),
    other("that sets a name of the module", "TM208", ("        self.rows = rows\n", "        global drawn\n        self.rows = rows\n        drawn = [7]\n")),
    other("that calls what is not known", "TM208", ("        self.rows = rows\n", "        import setup\n        self.rows = setup.rows(rows)\n")),
    other("that is handed on", "TM211", (LEFT_OF, LEFT_OF + "    print(len(vars(loader)) > 0)\n")),
    other("by another name", "TM217", (LEFT_OF, "    other = loader\n" + LEFT_OF.replace("loader", "other"))),
    other("that is asked behind the towers", "TM209", (RUN_BARE, RUN_BARE + "            print(sess.run(loader.images).shape)\n")),
    other("whose method gives more", "TM217", ("    def scaled", "    def more(self):\n        return self.images * 3.0\n\n    def scaled"), ("X = loader.images", "X = loader.more()")),
    other("that prints in front of what prints", "TM208", PRINTS, (MAKE, MAKE + "    print('made')\n")),
    other("that draws in front of what draws", "TM208", ("        first = np.linspace(", "        first = np.random.RandomState(np.random.randint(9)).rand(12, 3).astype(np.float32)\n        later = np.linspace("), (MAKE, "    np.random.seed(3)\n" + MAKE + "    print('%.6f' % np.random.rand())\n")),
    other("that draws of a generator that it is given", "TM208", (MAKE, "    rng = np.random.RandomState(3)\n    loader = Loader(4, mode=rng)\n    print('%.6f' % rng.rand())\n"), ("        first = np.linspace(", "        print(self.mode.rand() < 2.0)\n        first = np.linspace(")),
    other("that prints a tensor", "TM208", ("        if self.mode == 'train':", "        print(row)\n        if self.mode == 'train':")),
    other("that prints a shape", "TM208", ("    def scaled(self, row):\n", "    def scaled(self, row):\n        print('rows of', row.get_shape())\n")),
    other("that counts what is read behind it", "TM208", ("        self.rows = rows\n", "        self.rows = rows\n        drawn[0] += 10\n"), (MAKE, MAKE + "    offset = drawn[0]\n"), (RUN_BARE, RUN_BARE + "            print(offset)\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, lambda *given: made(*given))
