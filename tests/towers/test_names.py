"""What towers call their variables, by running them for the first tower and for another."""

from __future__ import annotations

import pytest

from tests.towers.looping import HEAD, towers
from towermigrate.towers.names import differing_name
from towermigrate.towers.twice import TowerLoop, Turns, turns


def name_of(found: Turns) -> int | None:
    """The line, counted from that of the loop's end backwards, of the name that differs."""
    event = differing_name(found)
    return None if event is None else event.place.line


SCOPE = "with tf.variable_scope({}):\n    pass\n"
RESET = """
class Net(object):
    def __init__(self):
        self.count = 0
    def build(self):
        for _ in range(2):
            with tf.variable_scope('bn%d' % self.count):
                self.count += 1
    def reset(self):
        self.count = 0
"""
SIZES = """
class Net(object):
    def __init__(self):
        self.sizes = [16, 16, 32, 32, 64, 64, 128, 128, 256, 256]
        self.outs = []
    def build(self, sizes):
        for k, size in enumerate(sizes):
            with tf.variable_scope('encoder_{}_{}'.format(k, size)):
                pass
        self.outs.append(tf.zeros([]))
"""
LAYER = """
def layer(x, name, reuse):
    given = {'units': 8, 'name': name, 'reuse': reuse}
    given['activation'] = None
    return tf.layers.dense(x, **given)
def named(x, name='w', **others):
    return tf.layers.dense(x, 8, name=name, **others)
"""
COUNTER = "class Net(object):\n    made = 0\n    def __init__(self):\n        self.count = 0\n"
BUILD = "    def build(self):\n        with tf.variable_scope('net_%d' % self.count):\n            pass\n"

OTHERS = [
    pytest.param(towers(SCOPE.format("'a' if names[i] else 'b'")), id="a choice by what is not known of the tower"),
    pytest.param(
        towers(SCOPE.format("named(i)"), "def named(k):\n    if names[k]:\n        return 'a'\n    return 'b'\n"),
        id="one of two texts that a function returns by it",
    ),
    pytest.param(
        towers("for name in ['a', 'b']:\n    if names[i] == name:\n        break\n" + SCOPE.format("name")),
        id="what a loop was left with",
    ),
    pytest.param(
        towers("k += 1\n" + SCOPE.format("'w%d' % k"), inside="k = 0\n"), id="a number that is counted up"
    ),
    pytest.param(
        towers(SCOPE.format("'w%d' % (k // 2)") + "k += 1\n", inside="k = 0\n"),
        id="a number that is counted up and changes at every second tower",
    ),
    pytest.param(
        towers(SCOPE.format("'w%d' % len(seen)") + "seen.append(i)\n", inside="seen = []\n"),
        id="the length of a list that grows",
    ),
    pytest.param(
        towers("net.build()\n", COUNTER + BUILD + "        self.count += 1\n", "net = Net()\n"),
        id="a number that an object counts up",
    ),
    pytest.param(
        towers("with build(i):\n    pass\n",
               "import contextlib\n@contextlib.contextmanager\ndef build(k):\n"
               "    with tf.variable_scope('w%d' % k):\n        yield\n"),
        id="a context of its own",
    ),
    pytest.param(
        towers("build = lambda: tf.get_variable('w%d' % i)\ntf.cond(x, build, build)\n", inside="x = None\n"),
        id="a function that TensorFlow calls",
    ),
    pytest.param(
        towers("config.scope = 'w%d' % i\n" + SCOPE.format("config.scope")), id="an attribute of an argument"
    ),
    pytest.param(
        towers("config['scope'] = 'w%d' % i\n" + SCOPE.format("config['scope']")), id="an entry of an argument"
    ),
    pytest.param(
        towers("tf.app.flags.FLAGS.scope = 'w%d' % i\n" + SCOPE.format("tf.app.flags.FLAGS.scope")), id="a flag"
    ),
    pytest.param(
        towers("build(config, i)\n",
               "def build(c, k):\n    c.set(k)\n    with tf.variable_scope(c.scope):\n        pass\n"
               "class Config(object):\n    def set(self, k):\n        self.scope = 'w%d' % k\n"),
        id="what a method sets of an object of which only that is known",
    ),
    pytest.param(
        towers("if i == 0:\n    " + SCOPE.format("'a'").replace("\n", "\n    ") + "\nelse:\n    "
               + SCOPE.format("'b'").replace("\n", "\n    ")),
        id="one name in the first tower and one in the others",
    ),
    pytest.param(
        towers("first, second = ('a', 'b') if i == 0 else ('b', 'a')\n"
               "with tf.variable_scope(first):\n    pass\nwith tf.variable_scope(second):\n    pass\n"),
        id="names that change places",
    ),
    pytest.param(
        towers("build(**{'name': 'w%d' % i})\n", "def build(**given):\n    tf.get_variable(**given)\n"),
        id="an argument of a table",
    ),
    pytest.param(
        towers("tf.layers.dense(config, 1, name=next(names))\n"), id="the next of an iterator"
    ),
    pytest.param(
        towers("net(config, i)\n",
               "class Layer(tf.keras.layers.Layer):\n    def call(self, x, k):\n        return tf.get_variable('w%d' % k)\n",
               "net = Layer()\n"),
        id="a layer of the program's own",
    ),
    pytest.param(towers(SCOPE.format("'w%(i)d' % locals()")), id="a text of all names"),
    pytest.param(
        towers("tf.make_template('net', build, layer='w%d' % i)(config)\n",
               "def build(x, layer):\n    tf.layers.dense(x, 1, name=layer)\n"),
        id="a name that a template is given",
    ),
    pytest.param(
        towers("for _ in range(config.views):\n    layer(config, 'w%d' % i, i > 0)\n", LAYER),
        id="a table's name in a loop",
    ),
    pytest.param(
        towers("for _ in range(config.views):\n    given = {'name': 'w'}\n    tables.append(given)\n"
               "    tables[0]['name'] = 'w%d' % i\n    tf.layers.dense(config, 1, **given)\n", inside="tables = []\n"),
        id="a name of a table that a list has, too",
    ),
    pytest.param(
        towers("given = {}\nif names[i]:\n    given['a'] = 1\n" + SCOPE.format("'w' if 'a' in given else 'v'")),
        id="whether a table has an entry",
    ),
    pytest.param(
        towers("given = {}\nif names[0]:\n    given['name'] = 'w%d' % i\ntf.layers.dense(config, 1, **given)\n"),
        id="a name that a table has on some ways",
    ),
    pytest.param(
        towers("given = {}\nif names[i]:\n    given['name'] = 'v'\nnamed(config, **given)\n", LAYER),
        id="a name that a table has for some towers",
    ),
    pytest.param(
        towers("given = {}\nif names[0]:\n    given['name'] = 'w%d' % i\nnamed(config, **given)\n", LAYER),
        id="a name that a function of the tree is given on some ways",
    ),
    pytest.param(
        towers("given = {}\nif names[0]:\n    given['scope'] = 'w%d' % i\n"
               "def build(**other):\n    with tf.variable_scope(other.get('scope', 'w')):\n        pass\nbuild(**given)\n"),
        id="a name that a table hands on on some ways",
    ),
    pytest.param(
        towers("build(names[0], i)\n",
               "def build(x, k):\n    if isinstance(x, (tf.Tensor, str)):\n        return\n    tf.get_variable('w%d' % k)\n"),
        id="what is made of no tensor",
    ),
    pytest.param(towers("net.build()\nif i == 0:\n    net.reset()\n", RESET, "net = Net()\n"), id="a counter that the first tower resets"),
    pytest.param(towers("net.build()\nif i > 0:\n    net.reset()\n", RESET, "net = Net()\n"), id="a counter that the others reset"),
    pytest.param(towers("net.build()\nif i == 1:\n    net.reset()\n", RESET, "net = Net()\n"), id="a counter that the second tower resets"),
    pytest.param(towers("net.build()\nif names[0]:\n    net.reset()\n", RESET, "net = Net()\n"), id="a counter that is reset on some ways"),
    pytest.param(towers("net.build()\ntry:\n    config.check()\n    net.reset()\nexcept ValueError:\n    pass\n", RESET, "net = Net()\n"), id="a counter that an error may keep"),
    pytest.param(towers("net.build()\nnet.count = 1\n", RESET, "net = Net()\n"), id="a counter that is reset to another number"),
    pytest.param(towers("net.build()\nnet.reset()\nnet.build()\n", RESET, "net = Net()\n"), id="a counter that is reset before the last layers"),
    pytest.param(
        towers(SCOPE.format("'w%d' % k") + "if i > 0:\n    k += 1\n", inside="k = 0\n"), id="a number that the others count up"
    ),
    pytest.param(
        towers(SCOPE.format("name") + "if i == 1:\n    name = 'b'\n", inside="name = 'a'\n"), id="a text of the third tower"
    ),
    pytest.param(
        towers(SCOPE.format("'w%d' % seen.get('k', 0)") + "if i > 0:\n    seen['k'] = 1\n", inside="seen = {}\n"),
        id="an entry that the others set",
    ),
    pytest.param(
        towers("net.build(net.sizes)\nnet.sizes.append(8)\n", SIZES, "net = Net()\n"), id="layers of a list that grows"
    ),
    pytest.param(
        towers("net.build(net.sizes)\nnet.sizes = net.sizes[::-1]\n", SIZES, "net = Net()\n"),
        id="layers of a list that is turned round",
    ),
    pytest.param(
        towers("net.build(net.sizes[i:])\n", SIZES, "net = Net()\n"), id="layers of a part by the tower"
    ),
    pytest.param(
        towers(SCOPE.format("'a' if hasattr(net, 'built') else 'b'") + "net.built = True\n", SIZES, "net = Net()\n"),
        id="whether an object has an attribute that the first tower sets",
    ),
    pytest.param(
        towers("if names[i]:\n    net.built = True\n" + SCOPE.format("'a' if hasattr(net, 'built') else 'b'"),
               SIZES, "net = Net()\n"),
        id="whether an object has an attribute that some towers set",
    ),
    pytest.param(
        towers("if names[0]:\n    seen['a'] = 1\n    seen['b'] = 1\nfor key in ('ab' if names[i] else 'ba'):\n    seen[key] = 2\n"
               "for key in seen:\n    " + SCOPE.format("key").replace("\n", "\n    "), inside="seen = {}\n"),
        id="the order of a table's keys",
    ),
    pytest.param(
        towers(SCOPE.format("'a' if parts[i] is not None else 'b'"),
               inside="parts = names.parts if config.large else [None] * n\n"),
        id="a list of which nothing is known, or of nothing",
    ),
    pytest.param(
        towers(SCOPE.format("'a' if parts[i] is not None else 'b'"),
               inside="parts = [None] * n\nif config.large:\n    parts = [None] * n\n    parts[0] = 1\n"),
        id="a list with an entry for the first tower",
    ),
    pytest.param(towers(SCOPE.format("'w{}_{}'.format(*names[i])")), id="a text of what a star takes apart"),
    pytest.param(
        towers(SCOPE.format("'w{}'.format(*seen)") + "seen.append(seen[0])\n", inside="seen = [n for n in names]\n"),
        id="a text of a list of unknown length that grows",
    ),
    pytest.param(
        towers("build(config, **names.given(i))\n", "def build(x, name='w'):\n    tf.get_variable(name)\n"),
        id="a default that a table may replace",
    ),
    pytest.param(
        towers("if i == 0:\n    build(*names)\nelse:\n    build('x', *names)\n",
               "def build(x, name='w', size=1):\n    tf.get_variable(name)\n"),
        id="arguments that a star gives at other places",
    ),
    pytest.param(
        towers("config.given['name'] = 'w%d' % i\ntf.layers.dense(config, 1, **config.given)\n"),
        id="an entry of a table of arguments",
    ),
    pytest.param(
        towers("config.given.update(name='w%d' % i)\ntf.layers.dense(config, 1, **config.given)\n"),
        id="an entry that a table of arguments is updated with",
    ),
    pytest.param(
        towers("build(config, i, **names)\n",
               "def build(x, k, **given):\n    given['name'] = 'w%d' % k\n    tf.layers.dense(x, 1, **given)\n"),
        id="an entry of what a function takes by name",
    ),
    pytest.param(towers(SCOPE.format("names.pop()")), id="what is taken from a list of which nothing is known"),
    pytest.param(
        towers(SCOPE.format("'w%d' % len(config.seen)") + "config.seen.append(1)\n"),
        id="the length of a list of which nothing is known",
    ),
    pytest.param(
        towers("x = tf.placeholder(tf.float32, [None, names[i]])\nsize = x.get_shape().as_list()\n"
               + SCOPE.format("'w{}_{}'.format(*size)")),
        id="a shape that goes by the tower",
    ),
    pytest.param(
        towers("x = tf.layers.dense(tf.image.resize_images(config.x, [names[i], 8]), 4)\n"
               "_, size = x.get_shape().as_list()\n" + SCOPE.format("'w%d' % size")),
        id="a shape behind one that goes by the tower",
    ),
    pytest.param(
        towers("x = tf.identity(config.x)[:, :8 * i]\n" + SCOPE.format("'w%d' % x.shape[1]")),
        id="columns by the tower",
    ),
]  # fmt: skip


@pytest.mark.parametrize("found", OTHERS)
def test_towers_with_variables_of_their_own(found: Turns) -> None:
    assert found.whole
    assert name_of(found) is not None


def test_code_that_is_made_while_the_program_runs_may_name_anything() -> None:
    assert not towers("exec('name = %r' % i)\n" + SCOPE.format("name"), inside="name = 'a'\n").whole


ALIKE = [
    pytest.param(towers(SCOPE.format("'a' if i >= 0 else 'b'")), id="a choice that is the same for all towers"),
    pytest.param(
        towers("if i == 0:\n    " + SCOPE.format("config.name").replace("\n", "\n    ") + "\nelse:\n    "
               + SCOPE.format("config.name, reuse=True").replace("\n", "\n    ")),
        id="one name in two branches",
    ),
    pytest.param(towers(SCOPE.format("'a' if config.large else 'b'")), id="a choice by a setting"),
    pytest.param(towers(SCOPE.format("'{}/{}'.format(config.name, names[0])")), id="a text of what is not known"),
    pytest.param(towers(SCOPE.format("'a' if not config.large else f'{config.name}'")), id="an f-string"),
    pytest.param(
        towers("for k in range(config.depth):\n    " + SCOPE.format("'layer_%d' % k").replace("\n", "\n    ")),
        id="numbered layers",
    ),
    pytest.param(
        towers("for k, size in enumerate(sizes):\n    " + SCOPE.format("'layer_%d' % k").replace("\n", "\n    "),
               inside="sizes = list(range(70))\n"),
        id="more layers than are read one by one",
    ),
    pytest.param(
        towers("for k, size in enumerate(sizes):\n    " + SCOPE.format("'layer_%d' % k").replace("\n", "\n    "),
               inside="if config.large:\n    sizes = [1, 2]\nelse:\n    sizes = [1]\n"),
        id="layers of a list that a branch chose",
    ),
    pytest.param(
        towers("net.build()\n", COUNTER + BUILD, "net = Net()\n"), id="a number that an object keeps"
    ),
    pytest.param(
        towers("Net().build()\n", COUNTER + BUILD + "        self.count += 1\n"), id="a number of an object of the tower"
    ),
    pytest.param(
        towers("config.build(names[0], i)\n",
               "class A(object):\n    def build(self, name, k):\n        with tf.variable_scope(name):\n            pass\n"),
        id="a method of an argument that is given the index for something else",
    ),
    pytest.param(
        towers("size = names.size\nwhile size < config.most:\n    size *= 2\n" + SCOPE.format("'a_%d' % size")),
        id="a number that a loop over what is not known changes",
    ),
    pytest.param(
        towers("try:\n    name = config.name\nexcept AttributeError:\n    name = 'a'\n" + SCOPE.format("name")),
        id="a text of a `try`",
    ),
    pytest.param(
        towers("a, b = (x, y) if config.large else (y, x)\n" + SCOPE.format("a"), inside="x, y = 'x', 'y'\n"),
        id="one of two pairs",
    ),
    pytest.param(
        towers("net(config)\n",
               "def build(x, sizes):\n    for k, _ in enumerate(sizes):\n        tf.layers.dense(x, 1, name='layer%d' % k)\n",
               "net = tf.make_template('net', build, sizes=[2, 2])\n"),
        id="layers of what a template was given",
    ),
    pytest.param(
        towers("for _ in range(config.views):\n    layer(config, 'w', i > 0)\n", LAYER),
        id="a name of a table in a loop",
    ),
    pytest.param(
        towers("given = {}\nif names[0]:\n    given['name'] = 'v'\nnamed(config, units=8, **given)\n", LAYER),
        id="one name on some ways",
    ),
    pytest.param(
        towers("given = {'name': 'w'}\nif names[i]:\n    given['trainable'] = False\ntf.layers.dense(config, 8, **given)\n"),
        id="a table with something that no name goes by",
    ),
    pytest.param(
        towers("build('a', i)\n",
               "def build(x, k):\n    if not isinstance(x, (str, tf.Tensor)):\n        tf.get_variable('w%d' % k)\n"),
        id="a text is a text",
    ),
    pytest.param(
        towers("named(config, 'w', name='w%d' % i)\n" + SCOPE.format("'w'"), LAYER), id="a call that is an error"
    ),
    pytest.param(towers("net.build()\nnet.reset()\n", RESET, "net = Net()\n"), id="a counter that each tower resets"),
    pytest.param(towers("net.build()\nif names[0]:\n    net.reset()\nelse:\n    net.count = 0\n", RESET, "net = Net()\n"), id="a counter that is reset on all ways"),
    pytest.param(towers("net.reset()\nnet.build()\n", RESET, "net = Net()\n"), id="a counter that each tower starts with"),
    pytest.param(
        towers("if hasattr(net, 'built'):\n    tf.get_variable_scope().reuse_variables()\nif config.large(net):\n    config.go()\n"
               "net.build(net.sizes)\nnet.built = True\n", SIZES, "net = Net()\n"),
        id="many layers of an object that changes",
    ),
    pytest.param(
        towers(SCOPE.format("'a' if parts[i] is not None else 'b'"),
               inside="parts = [tf.zeros([]) for _ in range(n)] if config.large else [None] * n\n"),
        id="a list for each tower, or nothing for all",
    ),
    pytest.param(
        towers("seen = {}\nfor k in range(2):\n    if names[0]:\n        seen['a'] = seen.get('a', 0) + 1\n"
               "    seen['b'] = k\n" + SCOPE.format("'w_{}'.format('a' if 'a' in seen else 'b')")),
        id="a table in an order that is not known",
    ),
    pytest.param(
        towers("size = names[i].get_shape().as_list()\nif size[1] is None:\n    kernel = config.kernel\n"
               "else:\n    kernel = [min(size[1], 5), min(size[2], 5)]\n"
               + SCOPE.format("'conv_{}x{}'.format(*kernel)")),
        id="a text of what a star takes apart that goes by a shape",
    ),
    pytest.param(
        towers("x = tf.identity(config.x)[8 * i:8 * i + 8]\n" + SCOPE.format("'w%d' % x.shape[1]")),
        id="a shape of the tower's rows",
    ),
    pytest.param(
        towers("Net(config, **names)\n",
               "class Net(object):\n    def __init__(self, x, name='w'):\n        tf.get_variable(name)\n"),
        id="an argument that a table may give",
    ),
    pytest.param(
        towers("build(*names)\n", "def build(*given):\n    tf.get_variable(*given)\n"),
        id="arguments that are handed on",
    ),
    pytest.param(
        towers("config.given.update(name='w')\ntf.layers.dense(config, 1, **config.given)\n"),
        id="a table that is updated with the same",
    ),
    pytest.param(
        towers("config.given.update(size=i)\n" + SCOPE.format("'w'")), id="a table that no name goes by"
    ),
]  # fmt: skip


@pytest.mark.parametrize("found", ALIKE)
def test_towers_with_the_same_variables(found: Turns) -> None:
    assert found.whole
    assert name_of(found) is None


def test_a_function_that_is_called_for_something_else_first() -> None:
    train = "def train(n, training):\n    for i in range(n):\n"
    body = "        with tf.variable_scope('w%d' % i if training else 'w'):\n            pass\n"
    text = f"{HEAD}{train}{body}train(2, False)\ntrain(2, True)\n"
    assert name_of(turns({"a.py": text}, TowerLoop("a.py", 3, 4))) == 4
