"""Weights made in front of the towers, once: what loop style takes, what it must not, and what is meant to fool its reader."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

MADE = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
NET = "def net(x):\n"
NET_BODY = """\
    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))
    b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))
    return tf.matmul(x, w) + b
"""
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
REUSED = "                    tf.get_variable_scope().reuse_variables()\n"
STEP = "    step_count = tf.train.get_or_create_global_step()\n"
OPTIMIZER = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
SAVER = "    saver = tf.train.Saver()\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
PRINT = "            print('step', step, 'loss', '%.6f' % value)\n"
LAST = "        print('draws'"
NUMPY = "import numpy"

# One statement for each variable, `w` of three rows and `b`.
GOT = (
    "    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n"
    "    b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))\n"
)
NAMED = (
    "    w = tf.Variable(tf.constant([[0.3], [-0.2], [0.5]]), name='weight')\n"
    "    b = tf.Variable(tf.zeros([1]), name='bias')\n"
)
COUNTED = NAMED.replace(", name='weight'", "").replace(", name='bias'", "")
USED = ("out = net(x)", "out = tf.matmul(x, w) + b")
# A dict that the model is handed.
DICT = """\
    weights = {
        'w': tf.Variable(tf.constant([[0.3], [-0.2], [0.5]])),
        'b': tf.Variable(tf.zeros([1])),
    }
"""
MODEL = (
    (NET, "def net(x, weights):\n"),
    (NET_BODY, "    return tf.matmul(x, weights['w']) + weights['b']\n"),
    ("out = net(x)", "out = net(x, weights)"),
)
WITH_OS = (NUMPY, "import os\nimport numpy")


def front(text: str) -> Change:
    return (MADE, MADE + text)


def inside(header: str, text: str) -> str:
    """Statements in a block of their own."""
    return f"    {header}\n" + "".join(f"    {line}\n" for line in text.splitlines())


def function(text: str) -> Change:
    return (NET, text + "\n\n" + NET)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def after(text: str) -> Change:
    return (AVERAGED, text + AVERAGED)


def last(text: str) -> Change:
    return (LAST, text + LAST)


WEIGHT = "def weight_variable(shape):\n    return tf.Variable(tf.constant(0.25, shape=shape))\n"
MAKES = "    w = weight_variable([3, 1])\n    b = weight_variable([1])\n"

TAKEN = [
    case("got by name", front(GOT), USED),
    case("variables with names", front(NAMED), USED),
    case("variables that TF1 numbers", front(COUNTED), USED),
    case("a dict that the model is handed", front(DICT), *MODEL),
    case("a dict that is filled", front("    weights = {}\n    weights['w'] = tf.Variable(tf.ones([3, 1]) * 0.2)\n    weights['b'] = tf.Variable(tf.zeros([1]))\n"), *MODEL),
    case("a dict of a loop", front("    weights = {}\n    for name, size in [('w', 3), ('b', 1)]:\n        weights[name] = tf.Variable(tf.ones([size, 1]) * 0.3)\n"), *MODEL),
    case("a dict of a comprehension", front("    weights = {name: tf.Variable(tf.ones([size, 1]) * 0.3) for name, size in [('w', 3), ('b', 1)]}\n"), *MODEL),
    case("a dict of a function", front("    weights = make()\n"), function("def make():\n    made = {}\n    made['w'] = tf.Variable(tf.ones([3, 1]) * 0.2)\n    made['b'] = tf.Variable(tf.zeros([1]))\n    return made\n"), *MODEL),
    case("a list", front("    ws = []\n    for k in range(2):\n        ws.append(tf.Variable(tf.ones([3, 1]) * 0.1, name='w%d' % k))\n"), ("out = net(x)", "out = tf.matmul(x, ws[0]) - tf.matmul(x, ws[1]) * 2.0")),
    case("functions that make one", front(MAKES), function(WEIGHT), USED),
    case("a function that makes two", front("    w, b = make()\n"), function("def make():\n    w = tf.Variable(tf.ones([3, 1]) * 0.2)\n    b = tf.Variable(tf.zeros([1]))\n    return w, b\n"), USED),
    case("on a device of a function", front("    w = on_cpu('w', [3, 1], init(3, 1))\n    b = on_cpu('b', [1], tf.constant_initializer(0.1))\n"), function("def on_cpu(name, shape, initializer):\n    with tf.device('/cpu:0'):\n        var = tf.get_variable(name, shape, initializer=initializer)\n    return var\n"), USED),
    case("in a variable scope", front(inside("with tf.variable_scope('weights'):", GOT)), USED),
    case("on a device", front(inside("with tf.device('/cpu:0'):", NAMED)), USED),
    case("of arrays", front("    w = tf.Variable(np.linspace(0, 1, 3).reshape(3, 1).astype(np.float32), name='weight')\n    b = tf.Variable(np.zeros(1, np.float32), name='bias')\n"), USED),
    case("drawn by seeds", front("    w = tf.Variable(tf.truncated_normal([3, 1], stddev=0.1, seed=4), name='weight')\n    b = tf.Variable(tf.random_normal([1], seed=4))\n"), USED),
    case("drawn by two seeds", (MADE, "    tf.set_random_seed(3)\n" + MADE + "    w = tf.Variable(tf.random_normal([3, 1], seed=2))\n    b = tf.Variable(tf.zeros([1]))\n"), USED),
    case("without a word of reuse", front(GOT), USED, (REUSED, "")),
    case("an optimizer between them", (OPTIMIZER, ""), front(GOT.split("    b")[0] + OPTIMIZER + "    b" + GOT.split("    b")[1]), USED),
    case("beside variables of the towers", front("    table = tf.get_variable('table', [7, 3], initializer=init(7, 3))\n"), ("out = net(x)", "out = net(x + tf.nn.embedding_lookup(table, [1, 2]))")),
    case("beside a layer that says reuse", front(GOT), ("out = net(x)", "out = tf.layers.dense(tf.matmul(x, w), 1, kernel_initializer=tf.ones_initializer(), name='d', reuse=i > 0) + b"), (REUSED, "")),
    case("one that is not trained", front(DICT.replace("tf.zeros([1])", "tf.zeros([1]), trainable=False")), *MODEL),
    case("a rate that is a variable", (OPTIMIZER, "    lr = tf.Variable(0.1, trainable=False, name='rate')\n    opt = tf.train.MomentumOptimizer(lr, 0.9)\n"), front(NAMED), USED),
    case("decay in the towers", front(GOT), USED, (LOSS, LOSS[:-1] + " + 0.01 * tf.nn.l2_loss(w)\n")),
    case("decay of all variables", front(GOT), USED, (LOSS, LOSS[:-1] + " + 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])\n")),
    case("some of them trained", front(DICT), *MODEL, ("compute_gradients(loss)", "compute_gradients(loss, var_list=[weights['w']])")),
    case("all of them by a list", front(DICT), *MODEL, ("compute_gradients(loss)", "compute_gradients(loss, var_list=list(weights.values()))")),
    case("an evaluation", front(GOT), USED, (SAVER, "    test = tf.placeholder(tf.float32, [None, 3])\n    seen = tf.reduce_sum(tf.matmul(test, w) + b)\n" + SAVER), last("        print('%.5f' % sess.run(seen, {test: bx}))\n")),
    case("a loss of them alone", front(GOT), USED, after("    decay = 0.01 * tf.nn.l2_loss(w)\n"), last("        print('%.5f' % sess.run(decay))\n")),
    case("a loss of them beside the update", front(GOT), USED, after("    decay = 0.01 * tf.nn.l2_loss(w)\n"), ("sess.run([train_op, loss]", "sess.run([train_op, decay]")),
    case("shown at the end", front(NAMED), USED, last("        ww, bb = sess.run([w, b])\n        print(ww.ravel().round(4), bb.round(4), w.eval().sum() > 0)\n")),
    case("an item shown at the end", front(DICT), *MODEL, last("        print(sess.run(weights['b']))\n")),
    case("a summary of one", front(GOT), USED, (SAVER, "    tf.summary.histogram('weight_hist', w)\n    merged = tf.summary.merge_all()\n" + SAVER), (INIT, INIT + "        writer = tf.summary.FileWriter('log', sess.graph)\n"), (PRINT, "            writer.add_summary(sess.run(merged), step)\n" + PRINT)),
    case("restored", front(DICT), *MODEL, last("        saver.restore(sess, 'ckpt/model')\n")),
]  # fmt: skip

LEFT = [
    other("a tensor of one", "TM217", front(GOT + "    half = w * 0.5\n"), ("out = net(x)", "out = tf.matmul(x, half) + b")),
    other("a tensor of a function", "TM217", front(MAKES), function(WEIGHT.replace("shape=shape))", "shape=shape)) * 2.0")), USED),
    other("a part of one", "TM217", front("    w = tf.Variable(tf.ones([2, 3, 1]))[0]\n    b = tf.Variable(tf.zeros([1]))\n"), USED),
    other("a dict of more", "TM217", front(DICT.replace("tf.zeros([1])),", "tf.zeros([1])),\n        'k': tf.ones([1]),")), *MODEL),
    other("a function that gives a loss, too", "TM217", front("    w, b = make()\n"), function("def make():\n    w = tf.Variable(tf.ones([3, 1]) * 0.2)\n    return w, tf.nn.l2_loss(w)\n"), USED),
    other("a function that prints", "TM217", front(MAKES), function("def weight_variable(shape):\n    w = tf.Variable(tf.constant(0.25, shape=shape))\n    print(w)\n    return w\n"), USED),
    other("a function that collects", "TM217", front(MAKES), function("def weight_variable(shape):\n    w = tf.Variable(tf.constant(0.25, shape=shape))\n    tf.add_to_collection('losses', tf.nn.l2_loss(w))\n    return w\n"), USED),
    other("a regulariser", "TM217", front(GOT.replace("init(3, 1))", "init(3, 1), regularizer=tf.nn.l2_loss)")), USED),
    other("a loss in front", "TM217", front(GOT + "    decay = 0.01 * tf.nn.l2_loss(w)\n"), USED, (LOSS, LOSS[:-1] + " + decay\n")),
    other("in a name scope", "TM217", front(inside("with tf.name_scope('front'):", NAMED)), USED),
    other("a name that something else has", "TM217", (MADE, MADE.replace("3])\n", "3], name='weight')\n", 1) + NAMED), USED),
    other("the name of an operation", "TM217", front(NAMED.replace("'weight'", "'Placeholder'")), USED),
    other("two that TF1 numbers", "TM217", (STEP, "    step_count = tf.Variable(0, trainable=False)\n"), front(COUNTED), USED),
    other("drawn by the graph's seed", "TM217", (MADE, "    tf.set_random_seed(3)\n" + MADE + "    w = tf.Variable(tf.random_normal([3, 1]))\n    b = tf.Variable(tf.zeros([1]))\n"), USED),
    other("assigned in the towers", "TM220", front(GOT), ("out = net(x)", "w.assign(w * 0.5)\n                    out = tf.matmul(x, w) + b")),
    other("fetched beside the update", "TM209", front(GOT), USED, ("_, value = sess.run([train_op, loss]", "_, value, ww = sess.run([train_op, loss, w]")),
    other("fed", "TM209", front(GOT), USED, ("Y: by}", "Y: by, w: np.ones((3, 1))}")),
    other("layers of the towers that share nothing", "TM218", front(GOT), ("out = net(x)", "out = tf.layers.dense(tf.matmul(x, w), 1, kernel_initializer=tf.ones_initializer()) + b"), (REUSED, "")),
    other("a tensor or a variable", "TM217", WITH_OS, front("    w = tf.Variable(tf.ones([3, 1])) if os.environ.get('HOME') else tf.ones([3, 1])\n    b = tf.Variable(tf.zeros([1]))\n"), USED),
    other("a tensor that may become one", "TM217", WITH_OS, front("    b = tf.Variable(tf.zeros([1]))\n    w = tf.ones([3, 1])\n    if os.environ.get('HOME'):\n        w = tf.Variable(tf.ones([3, 1]))\n"), USED),
]  # fmt: skip

FOOLING = [
    case("another name", front(GOT + "    a = w\n"), ("out = net(x)", "out = tf.matmul(x, a) + b")),
    case("a name bound anew", front(GOT), USED, after("    w = 3\n")),
    case("a dict changed behind", front(DICT), *MODEL, after("    weights['w'] = weights['b']\n")),
    case("a dict changed in front", front(DICT + "    weights['b'] = weights['w']\n"), *MODEL),
    case("a dict changed in the tower", front(DICT), *MODEL, (LOSS, LOSS + "                    weights['b'] = weights['w']\n")),
    case("a dict emptied", front(DICT), *MODEL, after("    weights.pop('w')\n")),
    case("a dict by another name", front(DICT + "    again = weights\n"), *MODEL, after("    again['w'] = again['b']\n")),
    case("a dict with a number", front(DICT.replace("tf.zeros([1])),", "tf.zeros([1])),\n        'k': 3.0,")), (NET_BODY, "    return tf.matmul(x, weights['w']) + weights['b'] * weights['k']\n"), (NET, "def net(x, weights):\n"), ("out = net(x)", "out = net(x, weights)")),
    case("one of two by a count", front("    b = tf.Variable(tf.zeros([1]))\n    if drawn[0] > 3:\n        w = tf.Variable(tf.ones([3, 1]), name='one')\n    else:\n        w = tf.Variable(tf.zeros([3, 1]), name='two')\n"), USED),
    case("a function that counts", front("    w = make()\n    b = make()\n"), ("out = net(x)", "out = tf.matmul(x, w) + tf.reduce_sum(b)"), function("made = [0]\n\n\ndef make():\n    made[0] += 1\n    return tf.Variable(tf.ones([3, 1]) * 0.2 * made[0])\n")),
    case("a name put together", (MADE, MADE.replace("3])\n", "3], name='weight')\n", 1) + "    w = make([3, 1], 'wei' + 'ght')\n    b = make([1], 'b')\n"), function("def make(shape, name):\n    return tf.Variable(tf.ones(shape) * 0.2, name=name)\n"), USED),
    case("a count in the feed", front(GOT), USED, ("bx, by = batch(4)", "bx, by = batch(4 if w is not None else 2)")),
    case("variables listed", front(GOT), USED, (INIT, INIT + "        for v in tf.global_variables():\n            print(v.name)\n")),
    case("a saver of some", front(GOT), USED, ("tf.train.Saver()", "tf.train.Saver([w])")),
    case("clipped behind each step", front(GOT), USED, (SAVER, "    clip = tf.assign(w, tf.clip_by_value(w, -0.1, 0.1))\n" + SAVER), (PRINT, "            sess.run(clip)\n" + PRINT)),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_none_of_these_is_rewritten_to_something_else() -> None:
    none_does_anything_else(FOOLING)
