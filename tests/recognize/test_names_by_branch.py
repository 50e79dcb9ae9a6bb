"""TM218 where the tower's index decides a variable's name by a branch, a default or a loop."""

from __future__ import annotations

import textwrap

import pytest

from tests.recognize.programs import MODEL, emit, program, rules

CALL = ("model(parts[i])", "model(parts[i], i)")
LOSS = "            loss = tf.reduce_mean(tf.square(model(parts[i])))\n"
SCOPE = "    with tf.variable_scope('model'"


def with_index(before: str, scope: str, more: str = "") -> str:
    """The model called with the index, lines before its scope, and the functions `more` above it."""
    head = MODEL.replace("def model(x)", "def model(x, n)")
    lines = textwrap.indent(before, "    ")
    return program(
        (MODEL, more + head.replace(SCOPE, f"{lines}    with tf.variable_scope({scope}")), CALL
    )


INNER = """\
            def build(x, i=i):
                with tf.variable_scope('tower_%d' % i, reuse=tf.AUTO_REUSE):
                    w = tf.get_variable('w', [3, 1])
                return tf.matmul(x, w)
"""
CHOICE = "def chosen(n):\n    if n > 0:\n        return 'b'\n    return 'a'\n\n\n"

NOT_SHARED = [
    pytest.param(
        program((LOSS, INNER + LOSS.replace("model(", "build("))), id="the default of a parameter"
    ),
    pytest.param(with_index("", "chosen(n)", CHOICE), id="a name that a branch returns"),
    pytest.param(with_index("k = 0\nif n > 0:\n    k = 1\n", "'m%d' % k"), id="a number of a branch"),
    pytest.param(
        with_index("if n > 0:\n    a = 'm%d' % 1\nelse:\n    a = 'm%d' % 2\n", "a"), id="a text of a branch"
    ),
    pytest.param(
        with_index("if n > 0:\n    a, b = 'x', 'y'\nelse:\n    a, b = 'p', 'q'\n", "a"),
        id="one of two texts of a branch",
    ),
    pytest.param(
        program((MODEL, MODEL.replace("def model(x)", "def model(x, n)").replace(
            "w = tf.get_variable('w', [3, 1])",
            "for k in range(2):\n            if k == n:\n                w = tf.get_variable('w%d' % k, [3, 1])")), CALL),
        id="a count that equals the index",
    ),
    pytest.param(with_index("k = 0\nwhile k < n:\n    k += 1\n", "'m%d' % k"), id="a count in a loop"),
    pytest.param(
        program((MODEL, MODEL.replace("def model(x)", "def model(x, n)").replace(
            "w = tf.get_variable('w', [3, 1])", "w = [tf.get_variable(k, [3, 1]) for k in ['w_%d' % n]][0]")), CALL),
        id="the name of a comprehension",
    ),
    pytest.param(with_index("k = 0\nfor k in range(9):\n    if k == n:\n        break\n", "'m%d' % k"), id="a count up to a break"),
    pytest.param(
        with_index("k, ends = 0, False\nwhile not ends:\n    k += 1\n    ends = k > n\n", "'m%d' % k"),
        id="a count up to a flag",
    ),
    pytest.param(
        with_index("k = 0\nfor j in range(9):\n    if j < n:\n        continue\n    k += 1\n", "'m%d' % k"),
        id="a count of the rounds that are not passed over",
    ),
    pytest.param(
        with_index("a = b = c = 'm'\nfor j in range(9):\n    a = b\n    b = c\n    c = 'm%d' % n\n", "a"),
        id="a name handed on from round to round",
    ),
    pytest.param(with_index("if n > 0:\n    def named():\n        return 'a'\nelse:\n    def named():\n        return 'b'\n",
                            "named()"), id="a function of a branch"),
    pytest.param(with_index("def named(k=n):\n    return 'm%d' % k\n", "named()"), id="a default of what makes the name"),
    pytest.param(
        with_index("made = lambda k=n: tf.get_variable('w_%d' % k, [3, 1])\nmade()\n", "'model'"), id="the default of a lambda"
    ),
    pytest.param(with_index("a = 'm'\ntry:\n    a = 'm%d' % n\nfinally:\n    b = a\n", "b"), id="a name in a finally"),
    pytest.param(
        with_index("if n > 0:\n    x.scope = 'a'\nelse:\n    x.scope = 'b'\n", "x.scope"), id="an attribute of a branch"
    ),
    pytest.param(with_index("if x is None:\n    for j in range(n):\n        a = 'a'\nelse:\n    a = 'b'\n", "a"),
                 id="a text bound in a loop over the index"),
    pytest.param(with_index("tf.contrib.layers.spatial_softmax(x, name='s_%d' % n)\n", "'model'"),
                 id="a softmax that has a variable"),
    pytest.param(with_index("tf.keras.layers.PReLU(name='p_%d' % n)(x)\n", "'model'"), id="an activation that has a variable"),
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_SHARED)
def test_a_variable_named_by_the_tower_in_a_roundabout_way_is_refused(text: str) -> None:
    assert "TM218" in rules(text)
    assert emit(text).sources == {}


SHARED = [
    pytest.param("tf.keras.layers.Activation('relu', name='act_%d' % n)(tf.matmul(x, w))", id="Keras's activation"),
    pytest.param("tf.contrib.layers.unit_norm(tf.matmul(x, w), 1, scope='norm_%d' % n)", id="a norm without variables"),
]  # fmt: skip


@pytest.mark.parametrize("result", SHARED)
def test_a_layer_that_makes_no_variables_may_have_the_index_in_its_name(result: str) -> None:
    model = MODEL.replace("def model(x)", "def model(x, n)").replace("tf.matmul(x, w)", result)
    assert "TM218" not in rules(program((MODEL, model), CALL))


HARMLESS = [
    pytest.param("if n > 0:\n    tf.get_variable_scope().reuse_variables()\n", id="reuse"),
    pytest.param("reuse = True\nif n == 0:\n    reuse = None\nwith tf.variable_scope('o', reuse=reuse):\n    x = x + 0.0\n", id="a reuse that is bound"),
    pytest.param("if n == 0:\n    tf.summary.histogram('x', x)\n", id="a summary"),
    pytest.param("if n == 0:\n    y = tf.reduce_mean(x)\n    tf.summary.scalar('y', y)\n", id="a tensor for a summary"),
    pytest.param("a = 'x'\nif n == 0:\n    a = 'y'\na = 'model'\n", id="a name that is bound anew"),
    pytest.param("for n in ['model']:\n    a = n\n", id="an index whose name a loop takes over"),
    pytest.param("a = ['m' for n in range(2)][0]\n", id="an index whose name a comprehension takes over"),
    pytest.param("def named(k=n):\n    return 'm'\na = named()\n", id="a default that nothing reads"),
]  # fmt: skip


@pytest.mark.parametrize("lines", HARMLESS)
def test_a_branch_by_the_index_that_names_no_variable_is_no_such_reason(lines: str) -> None:
    scope = "a" if "a = " in lines else "'model'"
    assert "TM218" not in rules(with_index(lines, scope))
