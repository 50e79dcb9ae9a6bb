"""Values that mean another thing in a step: each spelling with the rule that must say so."""

from __future__ import annotations

import pytest

from tests.recognize.programs import GRADS, LOSS, program, reasons

START = "    tower_grads = []\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLY = "    train_op = opt.apply_gradients(grads)\n"
MODEL = "    return tf.matmul(x, w)\n"
MODEL_DEF = "def model(x):\n"
IMPORT = "import tensorflow as tf\n"
SCOPED = "        with tf.device('/gpu:%d' % i):\n"
NAMED = "        with tf.device('/gpu:%d' % i), tf.name_scope('tower_%d' % i) as scope:\n"

# `==`, `!=`, `in` and dict keys between tensors or variables.
COMPARED = [
    pytest.param([(MODEL, "    if w == x:\n        return x\n" + MODEL)], "TM226", id="two tensors"),
    pytest.param([(MODEL, "    if w != x:\n        x = x * 2.0\n" + MODEL)], "TM226", id="two tensors unlike"),
    pytest.param([(MODEL, "    if w in [w]:\n        x = x * 2.0\n" + MODEL)], "TM226", id="a variable in a list"),
    pytest.param([(MODEL, "    if x not in (w, w):\n        x = x * 2.0\n" + MODEL)], "TM226", id="a tensor not in a tuple"),
    pytest.param([(MODEL, "    if x == 0:\n        x = x * 2.0\n" + MODEL)], "TM226", id="a tensor and a number"),
    pytest.param([(MODEL, "    scale = {w: 2.0}\n    x = x * scale[w]\n" + MODEL)], "TM226", id="a variable as a key"),
    pytest.param([(MODEL, "    seen = set([w, x])\n" + MODEL)], "TM222", id="a set of tensors"),
    pytest.param([(MODEL, "    seen = {w, x}\n" + MODEL)], "TM226", id="a set display of tensors"),
    pytest.param(
        [(GRADS, "            kept = [v for v in tf.trainable_variables() if v != tf.trainable_variables()[0]]\n"
          "            grads = opt.compute_gradients(loss, var_list=kept)\n")],
        "TM226", id="variables by a comparison",
    ),
    pytest.param(
        [(AVERAGED, AVERAGED + "    first = tf.trainable_variables()[0]\n"
          "    grads = [(g * 2.0, v) if v == first else (g, v) for g, v in grads]\n")],
        "TM226", id="averaged gradients by a comparison",
    ),
    pytest.param(
        [(AVERAGED, AVERAGED + "    some = tf.trainable_variables()[:1]\n"
          "    grads = [(g, v) for g, v in grads if v in some]\n")],
        "TM226", id="averaged gradients by membership",
    ),
    pytest.param([(MODEL, "    x = x * (2.0 if w is x else 1.0)\n" + MODEL)], "TM226", id="identity of two tensors"),
]  # fmt: skip

# The tower's index where its name is bound again, or as a value.
INDEX = [
    pytest.param([(LOSS, LOSS + "            f = lambda i: i\n            loss = loss * f(1.0)\n")], "TM227", id="a lambda"),
    pytest.param(
        [(LOSS, LOSS + "            def f(i):\n                return i\n            loss = loss * f(1.0)\n")],
        "TM227", id="an inner function",
    ),
    pytest.param(
        [(LOSS, LOSS + "            loss = loss + sum([0.1 * i for i in range(3) for _ in range(2)])\n")], "TM227", id="a comprehension"
    ),
    pytest.param(
        [(LOSS, LOSS + "            loss = loss + sum(0.1 * i for i in range(3) for _ in range(2))\n")], "TM227", id="a generator"
    ),
    pytest.param(
        [(LOSS, LOSS + "            loss = loss + len({i: 1 for i in range(3) for _ in range(2)})\n")], "TM227", id="a dict comprehension"
    ),
    pytest.param(
        [(LOSS, LOSS + "            for i in range(2):\n                loss = loss + 0.1\n")], "TM227", id="an inner loop"
    ),
    pytest.param([(LOSS, LOSS + "            i = 3\n")], "TM227", id="bound anew"),
    pytest.param(
        [(LOSS, LOSS + "            def f():\n                i = 2\n                return i\n            loss = loss * f()\n")],
        "TM227", id="a local of an inner function",
    ),
    pytest.param(
        [(MODEL_DEF, "def model(x, k):\n"), (MODEL, "    for _ in range(k):\n        x = x + 1.0\n" + MODEL),
         ("model(parts[i])", "model(parts[i], i)")],
        "TM227", id="as many rounds as the index",
    ),
    pytest.param(
        [(MODEL_DEF, "def model(x, k):\n"), (MODEL, "    x = x if k else x * 2.0\n" + MODEL), ("model(parts[i])", "model(parts[i], i)")],
        "TM214", id="a choice by the index in a function",
    ),
]  # fmt: skip

# Collections by a text, and everything that registers for all towers.
COLLECTIONS = [
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            tf.add_to_collection('losses', loss)\n"
          "            loss = tf.add_n(tf.get_collection('losses', 'tower_%d' % i))\n")],
        "TM219", id="percent",
    ),
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            tf.add_to_collection('losses', loss)\n"
          "            loss = tf.add_n(tf.get_collection('losses', 'tower_{}'.format(i)))\n")],
        "TM219", id="format",
    ),
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            tf.add_to_collection('losses', loss)\n"
          "            loss = tf.add_n(tf.get_collection('losses', scope='tower_' + str(i)))\n")],
        "TM219", id="a sum of texts, by keyword",
    ),
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            tf.add_to_collection('losses', loss)\n"
          "            name = 'tower_%d' % i\n            loss = tf.add_n(tf.get_collection('losses', name))\n")],
        "TM219", id="a text bound to a name",
    ),
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            tf.add_to_collection('losses', loss)\n"
          "            loss = tf.add_n(tf.get_collection('losses', scope[:-1]))\n")],
        "TM219", id="a part of the scope's text",
    ),
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            tf.add_to_collection('losses', loss)\n"
          "            loss = tf.add_n(tf.get_collection('losses', scope + 'x'))\n")],
        "TM219", id="the scope's text and more",
    ),
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            tf.losses.add_loss(loss)\n            loss = tf.losses.get_total_loss(scope=scope)\n")],
        "TM219", id="the total loss of a scope",
    ),
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            loss = tf.losses.get_total_loss(scope='tower_%d' % i)\n")],
        "TM219", id="the total loss of a text",
    ),
    pytest.param(
        [(SCOPED, NAMED), (LOSS, LOSS + "            loss = loss + tf.add_n(tf.losses.get_losses())\n")],
        "TM219", id="the losses of all towers",
    ),
    pytest.param(
        [("tf.get_variable('w', [3, 1])", "tf.get_variable('w', [3, 1], regularizer=tf.nn.l2_loss)")], "TM219", id="a regulariser"
    ),
    pytest.param(
        [("tf.get_variable('w', [3, 1])", "tf.get_variable('w', [3, 1], tf.float32, None, tf.nn.l2_loss)")], "TM222",
        id="a regulariser by position",
    ),
    pytest.param(
        [(MODEL, "    return tf.layers.dense(x, 1, name='d', kernel_regularizer=tf.nn.l2_loss)\n")], "TM219", id="a layer's regulariser"
    ),
    pytest.param([(MODEL, "    tf.add_to_collection(x.op.name, x)\n" + MODEL)], "TM219", id="a collection named by a tensor"),
    pytest.param(
        [(MODEL, "    y = tf.losses.mean_squared_error(x, x, loss_collection='mine')\n" + MODEL)], "TM219", id="a collection for losses"
    ),
]  # fmt: skip

# Static shapes, sizes of inputs.
SHAPES = [
    pytest.param([(MODEL, "    n = x.get_shape()[0].value\n    if n is None:\n        n = tf.shape(x)[0]\n" + MODEL)], "TM228", id="value is None"),
    pytest.param([(MODEL, "    n = x.shape[0].value or tf.shape(x)[0]\n" + MODEL)], "TM228", id="value or"),
    pytest.param([(MODEL, "    n = x.get_shape().as_list()[0]\n    if n:\n        x = x * 2.0\n" + MODEL)], "TM228", id="truth of a size"),
    pytest.param([(MODEL, "    n = x.shape.as_list()[0]\n    x = x * (1.0 if n is not None else 2.0)\n" + MODEL)], "TM228", id="a choice"),
    pytest.param([(MODEL, "    if x.get_shape()[0] == 4:\n        x = x * 2.0\n" + MODEL)], "TM228", id="a comparison"),
    pytest.param([(MODEL, "    if x.shape.ndims == 2:\n        x = x * 2.0\n" + MODEL)], "TM228", id="the rank"),
    pytest.param([(MODEL, "    if None in x.get_shape().as_list():\n        x = x * 2.0\n" + MODEL)], "TM228", id="None in the shape"),
    pytest.param([(MODEL, "    if not x.get_shape().is_fully_defined():\n        x = x * 2.0\n" + MODEL)], "TM228", id="fully defined"),
    pytest.param(
        [("    parts = tf.split(x, num_gpus)\n", ""),
         ("model(parts[i])", "model(x[i * 2:(i + 1) * 2]) + tf.reduce_sum(x[i * 1:(i + 1) * 1])")],
        "TM208", id="two sizes of one placeholder",
    ),
    pytest.param(
        [("    parts = tf.split(x, num_gpus)\n", ""),
         (LOSS, "            a = x[i * 2:(i + 1) * 2]\n            b = x[i * 1:(i + 1) * 1]\n" + LOSS.replace("parts[i]", "a") + "            loss = loss + tf.reduce_sum(b)\n")],
        "TM208", id="two sizes of one placeholder, with names",
    ),
    pytest.param(
        [(LOSS, "            a = x[i * 2:(i + 1) * 2]\n" + LOSS + "            loss = loss + tf.reduce_sum(a)\n")],
        "TM208", id="a slice and a part of a split",
    ),
]  # fmt: skip

# Lists of variables taken early; batch norm handed on; terms that only the first tower has.
TOWERS = [
    pytest.param(
        [(LOSS, "            early = tf.trainable_variables()\n" + LOSS + "            loss = loss + tf.add_n([tf.nn.l2_loss(v) for v in early])\n")],
        "TM230", id="variables before the model",
    ),
    pytest.param(
        [(MODEL, "    early = tf.trainable_variables()\n    y = tf.layers.dense(x, 1, name='d')\n"
          "    return y + tf.add_n([tf.nn.l2_loss(v) for v in early])\n")],
        "TM230", id="variables before a layer of the model",
    ),
    pytest.param(
        [(MODEL, "    early = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)\n    y = tf.layers.dense(x, 1, name='d')\n"
          "    return y + tf.add_n([tf.nn.l2_loss(v) for v in early])\n")],
        "TM230", id="the collection before a layer of the model",
    ),
    pytest.param(
        [(START, "    early = tf.trainable_variables()\n" + START)], "TM230", id="variables before the towers"
    ),
    pytest.param(
        [(MODEL_DEF, "def decay():\n    return tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])\n\n\n" + MODEL_DEF),
         (MODEL, "    y = tf.matmul(x, w) + decay()\n    return y + tf.layers.dense(x, 1, name='d')\n")],
        "TM230", id="in a function called between layers",
    ),
    pytest.param(
        [(MODEL, "    return tf.layers.dense(x, 1, name='d', activation=tf.layers.batch_normalization)\n")], "TM222", id="batch norm as activation"
    ),
    pytest.param(
        [(MODEL, "    return tf.contrib.layers.fully_connected(x, 1, normalizer_fn=tf.contrib.layers.batch_norm)\n")], "TM218",
        id="normalizer_fn",
    ),
    pytest.param(
        [(MODEL_DEF, "def model(x, norm=tf.layers.batch_normalization):\n"), (MODEL, "    x = norm(x)\n" + MODEL)], "TM218", id="a default argument"
    ),
    pytest.param(
        [(IMPORT, IMPORT + "import functools\n"), (MODEL, "    norm = functools.partial(tf.layers.batch_normalization, training=True)\n    x = norm(x)\n" + MODEL)],
        "TM222", id="functools.partial",
    ),
    pytest.param(
        [(IMPORT, IMPORT + "import tensorflow.contrib.slim as slim\n"),
         (MODEL, "    with slim.arg_scope([slim.fully_connected], normalizer_fn=slim.batch_norm):\n        x = slim.fully_connected(x, 3)\n" + MODEL)],
        "TM218", id="arg_scope",
    ),
    pytest.param(
        [(MODEL, "    norm = tf.layers.batch_normalization\n    x = norm(x)\n" + MODEL)], "TM218", id="another name"
    ),
    pytest.param(
        [(MODEL, "    norms = {'batch': tf.layers.batch_normalization}\n    x = norms['batch'](x)\n" + MODEL)], "TM218", id="out of a dict"
    ),
    pytest.param(
        [(LOSS, LOSS + "            if not tf.get_variable_scope().reuse:\n                loss = loss + 1.0\n")], "TM214", id="a term if not reuse"
    ),
    pytest.param(
        [(MODEL, "    if tf.get_variable_scope().reuse:\n        x = x * 2.0\n" + MODEL)], "TM214", id="a factor if reuse"
    ),
    pytest.param(
        [(MODEL, "    scope = tf.get_variable_scope()\n    x = x * (1.0 if scope.reuse else 2.0)\n" + MODEL)], "TM214", id="a choice by reuse"
    ),
    pytest.param(
        [(MODEL, "    again = tf.get_variable_scope().reuse\n    if not again:\n        tf.add_to_collection('losses', tf.nn.l2_loss(w))\n" + MODEL)],
        "TM214", id="a term in a collection, by a name",
    ),
    pytest.param(
        [(MODEL, "    with tf.variable_scope('a', reuse=tf.AUTO_REUSE) as s:\n        if not s.reuse:\n            x = x * 2.0\n" + MODEL)],
        "TM214", id="the reuse of an opened scope",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "rule"), [*COMPARED, *INDEX, *COLLECTIONS, *SHAPES, *TOWERS])
def test_not_moved(changes: list[tuple[str, str]], rule: str) -> None:
    assert rule in reasons(program(*changes)), reasons(program(*changes))
