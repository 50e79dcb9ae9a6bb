"""Layers of slim, scopes of arguments and losses of regularisers: what loop style takes of them, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import MODEL, Change
from tests.differential.spellings import all_do_the_same, leaves, takes

IMPORT = "import numpy as np\n"
W = "    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n"
NET = MODEL[MODEL.index("def net(x):\n") : MODEL.index("\n\ndef average_gradients")]
START = "    tower_grads = []\n"
BEGUN = "def train():\n"
SCOPED = "    with tf.variable_scope(tf.get_variable_scope()):\n"
FORWARD = "                    out = net(x)\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
REUSED = "                    tf.get_variable_scope().reuse_variables()\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
MAIN = "if __name__ == '__main__':\n    train()\n"

SLIM: Change = (IMPORT, IMPORT + "import tf_slim as slim\n")


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def net(*lines: str, more: str = "") -> Change:
    """Another model, and what stands before it."""
    return NET, more + "def net(x):\n" + "".join(f"    {line}\n" for line in lines)


FIRST = "x = slim.fully_connected(x, 4, activation_fn=tf.nn.tanh, weights_initializer=init(3, 4), scope='fc1')"
LAST = "return slim.fully_connected(x, 1, activation_fn=None, weights_initializer=init(4, 1), scope='fc2')"
PLAIN = "return slim.fully_connected(x, 1, {}, weights_initializer=init(3, 1), scope='fc')"
VALUES = "weights_initializer=tf.constant_initializer(0.2), activation_fn=tf.nn.tanh"
OWN_SCOPE = """\
def plain_scope(value=0.2):
    with slim.arg_scope([slim.fully_connected], activation_fn=tf.nn.tanh):
        with slim.arg_scope([slim.fully_connected, slim.conv2d], weights_initializer=tf.constant_initializer(value)) as scope:
            return scope


"""

LAYERS = [
    case("layers", SLIM, net(FIRST, LAST)),
    case("of contrib", net("slim = tf.contrib.slim", FIRST, LAST)),
    case("imported by name", (IMPORT, IMPORT + "from tf_slim import fully_connected\n"),
         net(PLAIN.replace("slim.", "").format("activation_fn=tf.nn.sigmoid"))),
    case("an activation of its own", SLIM, net(PLAIN.format("activation_fn=lambda v: tf.nn.relu(v) * 0.5"))),
    case("no bias", SLIM, net(PLAIN.format("biases_initializer=None"))),
    case("a scope of arguments", SLIM, net(f"with slim.arg_scope([slim.fully_connected], {VALUES}):", "    x = slim.fully_connected(x, 4, scope='fc1')", LAST)),
    case("a scope of arguments in another", SLIM,
         net(f"with slim.arg_scope([slim.fully_connected], {VALUES}):", "    with slim.arg_scope([slim.fully_connected], activation_fn=None):",
             "        x = slim.fully_connected(x, 4, scope='fc1')", "    return slim.fully_connected(x, 1, scope='fc2')")),
    case("a scope of arguments that a function gives", SLIM,
         net("with slim.arg_scope(plain_scope()):", "    x = slim.fully_connected(x, 4, scope='fc1')", LAST, more=OWN_SCOPE)),
    case("a scope of arguments around a function", SLIM,
         (FORWARD, "                    with slim.arg_scope(plain_scope(0.3)):\n                        out = net(x)\n"),
         net("x = slim.fully_connected(x, 4, scope='fc1')", LAST, more=OWN_SCOPE)),
    case("a scope of arguments that holds elsewhere", SLIM, net(FIRST, LAST),
         (MAIN, f"def elsewhere():\n    with slim.arg_scope([slim.fully_connected], {VALUES}):\n        return 1\n\n\n" + MAIN)),
    case("one name several times", SLIM,
         net(f"with slim.arg_scope([slim.fully_connected], {VALUES}):", "    x = slim.repeat(x, 2, slim.fully_connected, 4, scope='many')", LAST)),
    case("a stack", SLIM,
         net(f"with slim.arg_scope([slim.fully_connected], {VALUES}):", "    x = slim.stack(x, slim.fully_connected, [3, 4], scope='many')", LAST)),
    case("no names, in a scope", SLIM,
         net("with tf.variable_scope('net'):", "    x = slim.fully_connected(x, 4, weights_initializer=init(3, 4))",
             "    return slim.fully_connected(x, 1, activation_fn=None, weights_initializer=init(4, 1))")),
    case("a scope of arguments of a dict", SLIM, net("more = dict_of()", "with slim.arg_scope([slim.fully_connected, slim.separable_conv2d], **more):", "    x = slim.fully_connected(x, 4, scope='fc1')", LAST,
         more="def dict_of():\n    return {'activation_fn': tf.nn.tanh, 'weights_initializer': tf.constant_initializer(0.2)}\n\n\n")),
    case("arguments of a dict", SLIM, net("more = {'scope': 'fc', 'weights_initializer': init(3, 1)}", "return slim.fully_connected(x, 1, **more)")),
    case("an image", SLIM,
         net("x = tf.reshape(tf.tile(x, [1, 6]), [-1, 3, 3, 2])",
             f"with slim.arg_scope([slim.conv2d, slim.max_pool2d], padding='SAME'), slim.arg_scope([slim.conv2d], {VALUES}):",
             "    x = slim.conv2d(x, 4, [3, 3], scope='conv1')", "    x = slim.max_pool2d(x, [2, 2], scope='pool1')",
             "    x = slim.conv2d(x, 2, 1, padding='VALID', scope='conv2')", "    x = slim.avg_pool2d(x, [2, 2], scope='pool2')",
             "x = slim.dropout(slim.flatten(x), 0.5, is_training=False)",
             "return slim.fully_connected(slim.softmax(x), 1, None, weights_initializer=tf.constant_initializer(0.3), scope='fc')")),
    case("a weight decay that nothing reads", SLIM, net(PLAIN.format("weights_regularizer=slim.l2_regularizer(0.1)"))),
]  # fmt: skip
AROUND = f"slim.arg_scope([slim.fully_connected], {VALUES})"
NO_LAYERS = [
    other("a layer that is not known", "TM222", SLIM, net("x = slim.unit_norm(x, 1)", FIRST, LAST)),
    other("a net of the library", "TM222", SLIM, (IMPORT, IMPORT + "from tf_slim.nets import vgg\n"), net("return vgg.vgg_a(x)[0]")),
    other("a variable", "TM222", SLIM, net("w = slim.model_variable('w', [3, 1], initializer=init(3, 1))", "return tf.matmul(x, w)")),
    other("a name for each tower", "TM218", SLIM, (FORWARD, FORWARD.replace("net(x)", "net(x, 'fc%d' % i)")),
          (NET, "def net(x, name):\n    return slim.fully_connected(x, 1, weights_initializer=init(3, 1), scope=name)\n")),
    other("no name", "TM218", SLIM, net("return slim.fully_connected(x, 1, weights_initializer=init(3, 1))")),
    other("several without a name", "TM222", SLIM, net("return slim.repeat(x, 2, slim.fully_connected, 3)[:, :1]")),
    other("a layer of its own several times", "TM222", SLIM,
          net("return slim.repeat(x, 2, lambda v, scope: v * 2.0, scope='many')[:, :1]")),
    other("a collection of variables", "TM219", SLIM, net(PLAIN.format("variables_collections=['mine']"))),
    other("a collection of outputs", "TM219", SLIM, net(PLAIN.format("outputs_collections='ends'"))),
    other("a collection by a scope", "TM219", SLIM, net("with slim.arg_scope([slim.fully_connected], outputs_collections='ends'):", "    " + FIRST, LAST)),
    other("a scope of arguments around the towers", "TM201", SLIM, net(FIRST, LAST), (SCOPED, f"    with {AROUND}:\n"), ),
    other("a scope of arguments around the program", "TM222", SLIM, net("x = slim.fully_connected(x, 4, scope='fc1')", LAST),
          (MAIN, f"if __name__ == '__main__':\n    with {AROUND}:\n        train()\n")),
    other("a scope of arguments around its caller", "TM222", SLIM, net("x = slim.fully_connected(x, 4, scope='fc1')", LAST),
          (MAIN, f"def begin():\n    train()\n\n\ndef main():\n    with {AROUND}:\n        begin()\n\n\nif __name__ == '__main__':\n    main()\n")),
    other("a scope of arguments that is entered by hand", "TM222", SLIM, net("x = slim.fully_connected(x, 4, scope='fc1')", LAST),
          (MAIN, f"if __name__ == '__main__':\n    {AROUND}.__enter__()\n    train()\n")),
    other("a scope of arguments of a name", "TM223", SLIM, net(f"kept = {AROUND}", "with kept:", "    " + FIRST, LAST)),
    other("a scope of arguments for a function of its own", "TM223", SLIM,
          net("with slim.arg_scope([mine], by=2.0):", "    x = mine(x)", FIRST, LAST, more="@slim.add_arg_scope\ndef mine(x, by=1.0):\n    return x * by\n\n\n")),
    other("a tensor in a scope of arguments", "TM223", SLIM,
          net("with slim.arg_scope([slim.dropout], is_training=tf.constant(True)):", "    x = slim.dropout(x)", FIRST, LAST)),
    other("dropout by a tensor", "TM222", SLIM, net("x = slim.dropout(x, is_training=tf.reduce_sum(x) > 0)", FIRST, LAST)),
    other("dropout by the tower", "TM227", SLIM, (FORWARD, FORWARD.replace("net(x)", "net(slim.dropout(x, is_training=i > 0))"))),
    other("dropout with a seed", "TM232", SLIM, net("x = slim.dropout(x, seed=3)", FIRST, LAST)),
    other("numbers that a seed fixes", "TM232", SLIM, net("return slim.fully_connected(x, 1, scope='fc')"), (START, "    tf.set_random_seed(1)\n" + START)),
    other("an initializer of its own", "TM222", SLIM,
          net("return slim.fully_connected(x, 1, weights_initializer=lambda shape, dtype=None, partition_info=None: tf.ones(shape), scope='fc')")),
    other("an activation with an effect", "TM206", SLIM,
          net(PLAIN.format("activation_fn=mine"), more="seen = []\n\n\ndef mine(v):\n    seen.append(v)\n    return v\n\n\n")),
    other("arguments of a dict that was made before", "TM222", SLIM, net("return slim.fully_connected(x, 1, **MORE)", more="MORE = {'scope': 'fc', 'weights_initializer': init(3, 1)}\n\n\n")),
    other("arguments of a dict that is changed", "TM222", SLIM, net("more = {'weights_initializer': init(3, 1)}", "more['scope'] = 'fc'", "return slim.fully_connected(x, 1, **more)")),
    other("a layer that is known to a scope alone", "TM222", SLIM, net("with slim.arg_scope([slim.separable_conv2d], stride=1):", "    x = slim.separable_conv2d(tf.reshape(x, [-1, 1, 3, 1]), 1, [1, 1], 1, scope='a')", "return tf.reshape(x, [-1, 3])[:, :1]")),
    other("a scope of arguments for variables", "TM223", SLIM, net("with slim.arg_scope([slim.model_variable], trainable=False):", "    " + FIRST, LAST)),
    other("arguments that are not followed", "TM222", SLIM, net("more = dict(scope='fc')", "return slim.fully_connected(x, 1, **more)")),
    other("another normaliser", "TM207", SLIM, net(PLAIN.format("normalizer_fn=lambda v: v * 0.5"))),
]  # fmt: skip

ALL_LOSSES = "tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES{})"
DECAYED = (W, W.replace("1))\n", "1), regularizer=lambda v: 0.1 * tf.nn.l2_loss(v))\n"))
LAYER = net(
    "return tf.layers.dense(x, 1, kernel_initializer=init(3, 1), kernel_regularizer=lambda v: 0.1 * tf.nn.l2_loss(v), name='fc')"
)


def added(text: str) -> Change:
    return LOSS, LOSS + f"                    loss = loss + {text}\n"


ADDED = added(f"tf.add_n({ALL_LOSSES.format('')})")
OWN_ADDED = added(f"tf.add_n([0.0] + {ALL_LOSSES.format(', scope')})")
MEAN = [
    ("tower_grads = []", "tower_grads = []\n    losses = []"),
    ("                    tower_grads.append(grads)\n", "                    tower_grads.append(grads)\n                    losses.append(loss)\n"),
    ("sess.run([train_op, loss]", "sess.run([train_op, losses]"),
    ("'%.6f' % value)", "['%.6f' % one for one in value])"),
]  # fmt: skip
DECAYS = [
    case("a variable's", DECAYED, ADDED, *MEAN),
    case("by its text", DECAYED, added("tf.add_n(tf.get_collection('regularization_losses'))")),
    case("a layer's", LAYER, ADDED, *MEAN),
    case("a layer's, of each tower's scope", LAYER, OWN_ADDED, *MEAN),
    case("a variable's, of each tower's scope", DECAYED, OWN_ADDED, *MEAN),
    case("of a scope of variables", DECAYED, (FORWARD, "                    with tf.variable_scope('a'):\n    " + FORWARD), added(f"tf.add_n([0.0] + {ALL_LOSSES.format(', ' + repr('a'))})"), *MEAN),
    case("of another scope of variables", DECAYED, added(f"tf.add_n([0.0] + {ALL_LOSSES.format(', ' + repr('b'))})"), *MEAN),
    case("of the scope of all variables", (FORWARD, "                    with tf.variable_scope('net', regularizer=lambda v: 0.1 * tf.nn.l2_loss(v)):\n                        out = net(x)\n"),
         ADDED, *MEAN),
    case("slim's", SLIM, net(PLAIN.format("activation_fn=None, weights_regularizer=slim.l2_regularizer(0.1), biases_regularizer=slim.l1_regularizer(0.05)")), ADDED, *MEAN),
    case("slim's, by a scope of arguments", SLIM, net("with slim.arg_scope([slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.1)):", "    " + FIRST, "    " + LAST), ADDED, *MEAN),
    case("slim's, of each tower's scope", SLIM, net("with slim.arg_scope([slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.1)):", "    " + FIRST, "    " + LAST), OWN_ADDED, *MEAN),
    case("their sum", LAYER, added("tf.losses.get_regularization_loss()"), *MEAN),
    case("their list", LAYER, added("sum(tf.losses.get_regularization_losses())"), *MEAN),
    case("with the losses of each tower's scope", LAYER, (LOSS, "                    tf.losses.mean_squared_error(y, out)\n                    loss = tf.losses.get_total_loss(scope=scope)\n"), *MEAN),
    case("the losses of each tower's scope alone", LAYER, (LOSS, "                    tf.losses.mean_squared_error(y, out)\n                    loss = tf.add_n(tf.losses.get_losses(scope))\n"), *MEAN),
]  # fmt: skip
NO_DECAYS = [
    other("read before all variables are made", "TM230", DECAYED, (FORWARD, FORWARD + f"                    decay = tf.add_n({ALL_LOSSES.format('')})\n                    out = tf.layers.dense(out, 1, name='more')\n"),
          added("decay")),
    other("more that a tower adds", "TM219", DECAYED, (FORWARD, FORWARD + "                    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, 0.1 * tf.reduce_sum(out))\n"), ADDED),
    other("more that a tower adds by the text", "TM219", DECAYED, (FORWARD, FORWARD + "                    tf.add_to_collection('regularization_losses', 0.1 * tf.reduce_sum(out))\n"), ADDED),
    other("more that a tower adds behind", "TM219", DECAYED, ADDED, (REUSED, REUSED + "                    tf.add_to_collection('regularization_losses', 0.1 * tf.reduce_sum(out))\n")),
    other("more that is added before the towers", "TM219", DECAYED, (START, "    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(0.5))\n" + START), ADDED),
    other("a variable before the towers", "TM219", DECAYED, (START, "    kept = tf.get_variable('kept', [], trainable=False, regularizer=lambda v: 0.1 * v)\n" + START), ADDED),
    other("a list that grows", "TM219", DECAYED, (START, "    tf.get_collection_ref('regularization_losses').append(tf.constant(0.5))\n" + START), ADDED),
    other("the model before the towers", "TM219", DECAYED, (START, "    early = net(X)\n" + START),
          (SCOPED, SCOPED.replace("get_variable_scope()", "get_variable_scope(), reuse=tf.AUTO_REUSE")), ADDED),
    other("behind the towers", "TM219", DECAYED, (APPLIED, APPLIED + f"    decay = tf.add_n({ALL_LOSSES.format('')})\n"), ("[train_op, loss]", "[train_op, decay]")),
    other("losses of all towers", "TM219", DECAYED, (LOSS, "                    tf.losses.mean_squared_error(y, out)\n                    loss = tf.losses.get_total_loss()\n")),
    other("losses of all towers' list", "TM219", DECAYED, (LOSS, "                    tf.losses.mean_squared_error(y, out)\n                    loss = tf.add_n(tf.losses.get_losses())\n")),
    other("a scope by a text for its tower", "TM219", LAYER, added(f"tf.add_n([0.0] + {ALL_LOSSES.format(', ' + repr('tower_%d') + ' % i')})")),
    other("a scope that is a pattern", "TM219", LAYER, added(f"tf.add_n([0.0] + {ALL_LOSSES.format(', ' + repr('.*kernel'))})")),
    other("a regulariser that counts", "TM206", (W, W.replace("1))\n", "1), regularizer=mine)\n")), (NET[:10], "seen = []\n\n\ndef mine(v):\n    seen.append(1)\n    return 0.1 * tf.nn.l2_loss(v)\n\n\n" + NET[:10]), ADDED),
    other("a regulariser that is an object", "TM219", (W, W.replace("1))\n", "1), regularizer=Mine())\n")), (NET[:10], "class Mine(object):\n    def __call__(self, v):\n        return 0.1 * tf.nn.l2_loss(v)\n\n\n" + NET[:10]), ADDED),
    other("what a layer gives", "TM219", net("return tf.layers.dense(x, 1, kernel_initializer=init(3, 1), activity_regularizer=lambda v: 0.1 * tf.nn.l2_loss(v), name='fc')"), ADDED),
]  # fmt: skip


@pytest.mark.parametrize("changes", [*LAYERS, *DECAYS])
def test_taken(changes: tuple[Change, ...]) -> None:
    takes(changes)


@pytest.mark.parametrize(("changes", "rule"), [*NO_LAYERS, *NO_DECAYS])
def test_left(changes: tuple[Change, ...], rule: str) -> None:
    leaves(changes, rule)


@pytest.mark.full
def test_taken_does_the_same() -> None:
    all_do_the_same([*LAYERS, *DECAYS])
