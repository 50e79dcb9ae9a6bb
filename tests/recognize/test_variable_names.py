"""TM218: a tower's index in the names of variables, so that no two towers share one."""

from __future__ import annotations

import textwrap

import pytest

from tests.recognize.programs import MODEL, emit, program, rules

LOSS = "            loss = tf.reduce_mean(tf.square(model(parts[i])))\n"
SCOPE = "    with tf.variable_scope('model', reuse=tf.AUTO_REUSE):\n"


def in_loop(opened: str, before: str = "") -> str:
    """The loss computed inside `with opened:`, after the line `before`."""
    lead = " " * 12
    first = f"{lead}{before}\n" if before else ""
    return program((LOSS, f"{first}{lead}with {opened}:\n    {LOSS}"))


def in_model(argument: str, parameter: str, changes: tuple[str, str], more: str = "") -> str:
    """The model called with one more argument, its function changed, and the functions `more` before it."""
    old, new = changes
    assert old in MODEL, old
    model = MODEL.replace(old, new).replace("def model(x)", f"def model(x, {parameter})")
    return program((MODEL, more + model), ("model(parts[i])", f"model(parts[i], {argument})"))


def in_object(parameter: str, value: str, argument: str) -> str:
    """The model as a method of an object that keeps the name of its scope."""
    model = f"""\
class Model(object):
    def __init__(self, {parameter}):
        self.scope = {value}

    def build(self, x):
        with tf.variable_scope(self.scope, reuse=tf.AUTO_REUSE):
            w = tf.get_variable('w', [3, 1])
        return tf.matmul(x, w)
"""
    return program((MODEL, model), ("model(parts[i])", f"Model({argument}).build(parts[i])"))


NUMBERED = (SCOPE, SCOPE.replace("'model'", "'model_%d' % n"))
NAMED = (SCOPE, SCOPE.replace("'model'", "name"))
BUILD = MODEL.replace("def model", "def build").replace("'model'", "'model_%d' % i")
TOWER_NAME = "def tower_name(k):\n    return 'tower_%d' % k\n\n\n"

PARTS = """\
    for name, part in zip(['a', 'b'], [y[0], y[1]]):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            x = x + part * tf.get_variable('v', [3])
    with tf.variable_scope('model', reuse=tf.AUTO_REUSE):
"""
PARTS_BY_INDEX = """\
    for name in ['a', 'b_%d' % n]:
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            x = x + tf.get_variable('v', [3])
    with tf.variable_scope('model', reuse=tf.AUTO_REUSE):
"""
MORE_BY_INDEX = PARTS_BY_INDEX.replace("['a', 'b_%d' % n]", "['a', *['b'] * n]")
AS_MANY_AS_INDEX = PARTS_BY_INDEX.replace(
    "name in ['a', 'b_%d' % n]", "name, _ in zip(['a', 'b'], range(n))"
)

COUNTED_UP = """\
COUNT = [0]


def counted():
    COUNT[0] += 1
    return COUNT[0]


"""
ONE_OF_TWO = """\
    if n == 0:
        with tf.variable_scope('one', reuse=tf.AUTO_REUSE):
            x = x * tf.get_variable('v', [3])
    else:
        with tf.variable_scope('two', reuse=tf.AUTO_REUSE):
            x = x * tf.get_variable('v', [3])
    with tf.variable_scope('model', reuse=tf.AUTO_REUSE):
"""

NOT_SHARED = [
    pytest.param(in_model("i", "n", (SCOPE, PARTS_BY_INDEX)), id="one of a loop's names"),
    pytest.param(in_model("counted()", "n", NUMBERED, COUNTED_UP), id="a number that a function counts up"),
    pytest.param(in_model("i", "n", (SCOPE, ONE_OF_TWO)), id="one scope in the first tower and one in the others"),
    pytest.param(in_model("i", "n", (SCOPE, MORE_BY_INDEX)), id="more names in some towers"),
    pytest.param(in_model("i", "n", (SCOPE, AS_MANY_AS_INDEX)), id="fewer names in some towers"),
    pytest.param(in_loop("tf.variable_scope(names[i, 'w'])", "names = {}"), id="a text of a dict by index"),
    pytest.param(in_model("given[i]", "y", (SCOPE, PARTS), "def zip(a, b):\n    return b\n\n\n"), id="an own zip"),
    pytest.param(in_loop("tf.variable_scope('tower_%d' % i)"), id="a percent sign"),
    pytest.param(in_loop("tf.variable_scope(f'tower_{i}')"), id="an f-string"),
    pytest.param(in_loop("tf.variable_scope('tower_{}'.format(i))"), id="format"),
    pytest.param(in_loop("tf.variable_scope('tower' + str(i))"), id="a sum of texts"),
    pytest.param(in_loop("tf.variable_scope('/'.join(['tower', str(i)]))"), id="joined texts"),
    pytest.param(in_loop("tf.variable_scope('a' if i == 0 else 'b')"), id="a choice by the index"),
    pytest.param(in_loop("tf.variable_scope(None, 'tower_%d' % i)"), id="a default name"),
    pytest.param(in_loop("tf.variable_scope(name_or_scope='tower_%d' % i)"), id="a keyword"),
    pytest.param(in_loop("tf.variable_scope(name)", "name = 'tower_%d' % i"), id="a name bound before"),
    pytest.param(in_loop("tf.variable_scope(names[i])", "names = ['a', 'b']"), id="one name of a list"),
    pytest.param(
        in_loop("tf.name_scope('tower_%d' % i) as scope, tf.variable_scope(scope)"),
        id="the text that a name scope gives",
    ),
    pytest.param(
        in_loop("tf.variable_scope(tf.get_variable_scope().name + str(i))"),
        id="the outer scope's name and the index",
    ),
    pytest.param(in_model("i", "n", NUMBERED), id="a function called with the index"),
    pytest.param(in_model("n=i", "n", NUMBERED), id="a function called with the index by keyword"),
    pytest.param(in_model("**{'n': i}", "n", NUMBERED), id="a function called with a dict of it"),
    pytest.param(in_model("'tower_%d' % i", "name", NAMED), id="a function called with the name"),
    pytest.param(in_model("tower_name(i)", "name", NAMED, TOWER_NAME), id="a function that makes the name"),
    pytest.param(
        in_model("i", "n", (SCOPE, "    name = 'model_{}'.format(n)\n" + NAMED[1])),
        id="a name bound in the function",
    ),
    pytest.param(
        in_model("i", "n", (SCOPE, "    name = 'a'\n    if n > 0:\n        name = 'b'\n" + NAMED[1])),
        id="a name that the function chooses by the index",
    ),
    pytest.param(
        in_model("i", "n", (SCOPE, "    if x is None:\n        return x\n    elif n > 0:\n        name = 'b'\n"
                            "    else:\n        name = 'a'\n" + NAMED[1])),
        id="a name that an elif of the function chooses by the index",
    ),
    pytest.param(
        in_model("i", "n", ("tf.get_variable('w'", "tf.get_variable('w_%d' % n")), id="a variable's own name"
    ),
    pytest.param(
        in_model("i", "n", ("tf.matmul(x, w)", "tf.layers.dense(tf.matmul(x, w), 1, name='fc_%d' % n)")),
        id="a layer's name",
    ),
    pytest.param(
        in_model("i", "n", ("tf.matmul(x, w)", "inner(tf.matmul(x, w), 'fc_%d' % n)"),
                 "def inner(x, name):\n    return tf.layers.dense(x, 1, name=name)\n\n\n"),
        id="a function that the function calls",
    ),
    pytest.param(in_object("name", "name", "'tower_%d' % i"), id="an object made with the name"),
    pytest.param(in_object("n", "'model_%d' % n", "i"), id="an object made with the index"),
    pytest.param(
        program((LOSS, textwrap.indent(BUILD, " " * 12) + LOSS), ("model(parts[i])", "build(parts[i])")),
        id="a function of the loop that reads the index",
    ),
    pytest.param(
        program(
            ("    tower_grads = []\n", "    tower_grads = []\n" + textwrap.indent(BUILD, " " * 4)),
            ("model(parts[i])", "build(parts[i])"),
        ),
        id="a function before the loop that reads the index",
    ),
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_SHARED)
def test_a_variable_named_by_the_tower_is_refused(text: str) -> None:
    assert "TM218" in rules(text)
    assert emit(text).sources == {}


def test_a_function_that_reads_the_index_of_a_loop_at_module_level_is_refused() -> None:
    head, train = program().split("def train(num_gpus=2):\n")
    text = f"{head}num_gpus = 2\n{textwrap.dedent(train)}"
    assert rules(text) == []
    assert "TM218" in rules(text.replace("variable_scope('model'", "variable_scope('model_%d' % i"))


SCOPE_TWICE = """\
    with tf.name_scope('t_%d' % n) as scope:
        x = x * 2.0
    with tf.variable_scope('model', reuse=tf.AUTO_REUSE) as scope:
        tf.get_variable('w', [3, 1])
    with tf.variable_scope(scope, reuse=True):
"""

COUNTED = PARTS.replace(
    "name, part in zip(['a', 'b'], [y[0], y[1]])",
    "k, (name, part) in enumerate(zip(['a', 'b'], [y[0], y[1]]))",
)

DEEP = """\
    for k in range(500):
        with tf.variable_scope('layer_%d' % k, reuse=tf.AUTO_REUSE):
            x = x + y * tf.get_variable('v', [3])
""" + SCOPE  # fmt: skip

SHARED = [
    pytest.param(in_loop("tf.name_scope('tower_%d' % i)"), id="a name scope"),
    pytest.param(
        in_model("i", "n", (SCOPE, ONE_OF_TWO.replace("'two'", "'one'"))), id="the same scope in two branches"
    ),
    pytest.param(in_loop("tf.name_scope('tower_%d' % i) as scope"), id="a name scope with a name"),
    pytest.param(in_loop("tf.variable_scope('shared', reuse=i > 0)"), id="reuse by the index"),
    pytest.param(
        in_loop("tf.variable_scope(tf.get_variable_scope(), reuse=i > 0)"),
        id="reuse of the outer scope by the index",
    ),
    pytest.param(
        in_model("i", "n", (SCOPE, "    tf.summary.scalar('x_%d' % n, tf.reduce_mean(x))\n" + SCOPE)),
        id="a summary's name",
    ),
    pytest.param(
        in_model("i", "n", (SCOPE, "    with tf.name_scope('t_%d' % n):\n        x = x * 2.0\n" + SCOPE)),
        id="a name scope in a function",
    ),
    pytest.param(
        in_model("i", "n", ("tf.matmul(x, w)", "tf.nn.relu(tf.matmul(x, w), name='relu_%d' % n)")),
        id="an operation's name",
    ),
    pytest.param(
        in_model("'tower_%d' % i", "scope", (SCOPE, "    tf.get_collection('losses', scope)\n" + SCOPE)),
        id="a collection's scope",
    ),
    pytest.param(
        in_model("i", "n", (SCOPE, SCOPE_TWICE)),
        id="a name that stands for another scope by then",
    ),
    pytest.param(
        in_model("i", "n", (SCOPE, "    depth = x.get_shape()[1].value\n"
                            + SCOPE.replace("'model'", "'model_%s' % depth"))),
        id="a size of the tower's input",
    ),
    pytest.param(
        in_model("i", "n", (SCOPE, "    x = x * n\n" + SCOPE.replace("'model'", "'model_%s' % x.shape[1]"))),
        id="a size of a tensor that the index changes",
    ),
    pytest.param(
        in_model("i", "n", (SCOPE, SCOPE.replace("'model'", "'model_%d' % np.ndim(x)"))),
        id="what a function that is not known says of the tower's input",
    ),
    pytest.param(in_object("n", "'model'", "i"), id="an object made with the index that is named otherwise"),
    pytest.param(in_model("given[:, i]", "y", (SCOPE, PARTS)), id="a loop over parts of what differs"),
    pytest.param(in_model("given[i]", "y", (SCOPE, COUNTED)), id="a loop that counts parts of what differs"),
    pytest.param(in_model("1.0", "y", (SCOPE, DEEP)), id="a loop over many layers"),
]  # fmt: skip


@pytest.mark.parametrize("text", SHARED)
def test_an_index_that_names_no_variable_is_no_such_reason(text: str) -> None:
    assert "TM218" not in rules(text)
