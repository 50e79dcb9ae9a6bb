"""Functions that make placeholders, or a learning rate, for the function that builds the towers: loop style where they are called once."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

BATCH = ("def batch(rows)", "BATCH_SIZE = 4\n\n\ndef batch(rows)")
INPUTS = """\
def placeholder_inputs(batch_size):
    images = tf.placeholder(tf.float32, shape=(batch_size, 3))
    labels = tf.placeholder(tf.float32, shape=(batch_size, 1))
    return images, labels


"""
HELD = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n    Y = tf.placeholder(tf.float32, [None, 1])\n"
)
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
RATES = """\
def get_learning_rate(step):
    rate = tf.train.exponential_decay(0.1, step * BATCH_SIZE, 8, 0.5, staircase=True)
    rate = tf.maximum(rate, 0.001)
    return rate


"""
COMPUTED = """\
def get_learning_rate(step):
    return 0.1 * tf.minimum(1.0, tf.cast(step + 1, tf.float32) / 3.0)


"""
STEPPED = """\
def get_learning_rate(step):
    count = tf.cast(step + 1, tf.float32)
    return 0.1 * tf.minimum(1.0, count / 3.0)


"""
CHOOSES = """\
def get_learning_rate(step):
    warm = 0.02 * tf.cast(step + 1, tf.float32)
    return tf.cond(step < 2, lambda: warm, lambda: tf.constant(0.1))


"""
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
LINE = "            print('step', step, 'loss', '%.6f' % value)\n"
SPLIT = "x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"


def made(text: str, call: str = "X, Y = placeholder_inputs(BATCH_SIZE)") -> tuple[Change, ...]:
    return (
        BATCH,
        ("def batch(rows)", text + "def batch(rows)"),
        (HELD, f"    {call}\n"),
    )


def rate(
    text: str = RATES, call: str = "rate = get_learning_rate(step_count)"
) -> tuple[Change, ...]:
    return (
        BATCH,
        ("def batch(rows)", text + "def batch(rows)"),
        (OPT, f"    {call}\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n"),
    )


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


FETCHED = (
    RUN,
    "            _, value, r = sess.run([train_op, loss, rate], feed_dict={X: bx, Y: by})\n            print('%.6f' % r)\n",
)
SLICED = "x, y = tf.slice(X, [i * SIZE, 0], [SIZE, -1]), tf.slice(Y, [i * SIZE, 0], [SIZE, 1])\n"
SIZED = (
    ("drawn = [0]\n", "drawn = [0]\nTOWERS = 2\nROWS = 4\nSIZE = ROWS // TOWERS\n"),
    ("for i in range(2)", "for i in range(TOWERS)"),
    ("[None, 3]", "[ROWS, 3]"),
    ("[None, 1]", "[ROWS, 1]"),
    (SPLIT, SLICED),
)

CHOSEN = (
    "    X = tf.placeholder(tf.float32, [None, 3])\n",
    "    if WIDE == 'yes':\n        X = tf.placeholder(tf.float32, [None, 5], name='x')\n    else:\n        X = tf.placeholder(tf.float32, [None, 3], name='x')\n",
)
WIDE = ("drawn = [0]\n", "drawn = [0]\nWIDE = 'no'\n")

TAKEN = [
    taken("a placeholder of a chosen shape", WIDE, CHOSEN),
    taken("placeholders", *made(INPUTS)),
    taken("placeholders without arguments", *made(INPUTS.replace("(batch_size)", "()").replace("batch_size", "None"), "X, Y = placeholder_inputs()")),
    taken("placeholders by name", *made(INPUTS, "X, Y = placeholder_inputs(batch_size=BATCH_SIZE)")),
    taken("placeholders with a default", *made(INPUTS.replace("(batch_size)", "(batch_size=4)"), "X, Y = placeholder_inputs()")),
    taken("placeholders with other names there", *made(INPUTS.replace("images", "X").replace("labels", "targets"))),
    taken("placeholders of a local size", *made(INPUTS, "rows = 4\n    X, Y = placeholder_inputs(rows)")),
    taken("placeholders returned at once", *made("def placeholder_inputs(batch_size):\n    return tf.placeholder(tf.float32, [batch_size, 3]), tf.placeholder(tf.float32, [batch_size, 1])\n\n\n")),
    taken("one placeholder each", BATCH, ("def batch(rows)", "def make_x():\n    X = tf.placeholder(tf.float32, [None, 3])\n    return X\n\n\ndef make_y():\n    Y = tf.placeholder(tf.float32, [None, 1])\n    return Y\n\n\ndef batch(rows)"), (HELD, "    X = make_x()\n    Y = make_y()\n")),
    taken("a rate", *rate()),
    taken("a rate in one statement", *rate("def get_learning_rate(step):\n    return tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)\n\n\n")),
    taken("a rate that is chosen by what a function counts", *rate(RATES.replace("    rate = tf.train", "    drawn[0] += 1\n    rate = tf.train"))),
    taken("a rate that is fetched", *rate(), FETCHED),
    taken("a rate that is computed", *rate(COMPUTED)),
    taken("a rate that is computed in two statements", *rate(STEPPED)),
    taken("a rate that is computed, over lines", *rate(COMPUTED.replace("(1.0, ", "(\n        1.0, "))),
    taken("a rate that is computed, fetched", *rate(COMPUTED), FETCHED),
    taken("a rate that is computed of settings", *rate(COMPUTED.replace("3.0", "BATCH_SIZE").replace("(step)", "(step, base=0.1)").replace("0.1 *", "base *"))),
    taken("a rate that is computed of what a function counts", *rate(STEPPED.replace("    count", "    drawn[0] += 1\n    count"))),
    taken("a rate that is computed where the optimizer is made", BATCH, ("def batch(rows)", COMPUTED + "def batch(rows)"), (OPT, "    opt = tf.train.MomentumOptimizer(get_learning_rate(step_count), 0.9)\n")),
    taken("a rate that is computed by name", BATCH, ("def batch(rows)", COMPUTED + "def batch(rows)"), (OPT, "    opt = tf.train.MomentumOptimizer(learning_rate=get_learning_rate(step=step_count), momentum=0.9)\n")),
    taken("a rate that is computed, with a comment", *rate(COMPUTED.replace("(1.0, ", "(  # at most\n        1.0, "))),
    taken("a rate that tf.cond chooses", *rate(CHOOSES)),
    taken("a rate that is computed of a schedule", *rate("def get_learning_rate(step):\n    lr = tf.train.exponential_decay(0.1, step, 2, 0.5)\n    return tf.maximum(lr, 0.02)\n\n\n")),
    taken("a rate that is bound anew", BATCH, (OPT, "    rate = tf.train.exponential_decay(0.1, step_count * BATCH_SIZE, 8, 0.5, staircase=True)\n    rate = tf.maximum(rate, 0.001)\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n")),
    taken("a rate that is bound anew twice", BATCH, (OPT, "    rate = tf.train.exponential_decay(0.1, step_count, 2, 0.5)\n    rate = tf.maximum(rate, 0.001)\n    rate = rate * 0.5\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n")),
    taken("placeholders and a rate", *made(INPUTS), *rate()[1:]),
    taken("slices by tf.slice", *SIZED),
    taken("slices by tf.slice, the size in front", *SIZED, ("[i * SIZE, 0], [SIZE, -1]", "[SIZE * i, 0], [SIZE, 3]")),
    taken("slices by tf.slice, of whole rows by the size", *SIZED, ("ROWS = 4\nSIZE = ROWS // TOWERS\n", "SIZE = 2\nROWS = SIZE * TOWERS\n")),
    taken("slices by tf.slice of what a function makes", BATCH, ("BATCH_SIZE = 4", "BATCH_SIZE = 4\nSIZE = BATCH_SIZE // 2"), *made(INPUTS)[1:], (SPLIT, SLICED)),
]  # fmt: skip

LEFT = [
    left("a placeholder of a chosen type", "TM217", WIDE, CHOSEN, ("tf.placeholder(tf.float32, [None, 5]", "tf.placeholder(tf.float64, [None, 5]")),
    left("a placeholder of a chosen shape, and more", "TM217", WIDE, CHOSEN, ("[None, 5], name='x')\n", "[None, 5], name='x')\n        drawn[0] += 1\n")),
    left("a placeholder of a chosen shape, of three", "TM217", WIDE, CHOSEN, ("    else:\n        X", "    elif WIDE == 'very':\n        X = tf.placeholder(tf.float32, [None, 7], name='x')\n    else:\n        X")),
    left("placeholders of a function that is called twice", "TM217", *made(INPUTS), ("    train_op =", "    others = placeholder_inputs(3)\n    train_op =")),
    left("placeholders of a decorated function", "TM208", *made("def once(function):\n    return function\n\n\n@once\n" + INPUTS)),
    left("placeholders of a generator", "TM208", *made("def placeholder_inputs(batch_size):\n    yield tf.placeholder(tf.float32, [batch_size, 3])\n    yield tf.placeholder(tf.float32, [batch_size, 1])\n\n\n")),
    left("placeholders under a condition", "TM208", *made(INPUTS.replace("    return", "    if drawn[0]:\n        return labels, images\n    return"))),
    left("a rate of a function that is called twice", "TM211", *rate(), ("    train_op =", "    other = get_learning_rate(step_count)\n    train_op =")),
    left("a rate that is computed, of a function that is called twice", "TM211", *rate(COMPUTED), ("    train_op =", "    other = get_learning_rate(step_count)\n    train_op =")),
    left("a rate that is computed of a global that changes", "TM211", *rate(COMPUTED.replace("3.0", "WARM")), ("drawn = [0]\n", "drawn = [0]\nWARM = 3.0\n"), ("    drawn[0] += 1\n", "    global WARM\n    WARM = 9.0\n    drawn[0] += 1\n")),
    left("a rate that is computed of an item", "TM211", *rate(COMPUTED.replace("3.0", "(3.0 + drawn[0])"))),
    left("a rate that is computed or not", "TM211", *rate("def get_learning_rate(step):\n    if drawn[0]:\n        return 0.1\n    return 0.1 * tf.minimum(1.0, tf.cast(step + 1, tf.float32) / 3.0)\n\n\n")),
    left("a rate that is drawn", "TM211", *rate("def get_learning_rate(step):\n    return 0.1 * tf.random_uniform([], seed=3)\n\n\n")),
    left("a rate that tf.cond chooses, of an item", "TM211", *rate(CHOOSES.replace("lambda: warm", "lambda: warm * drawn[0]"))),
    left("a rate that is bound anew under a condition", "TM211", BATCH, (OPT, "    rate = tf.train.exponential_decay(0.1, step_count, 2, 0.5)\n    if BATCH_SIZE > 8:\n        rate = tf.maximum(rate, 0.001)\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n")),
    left("slices by tf.slice of any rows", "TM227", *SIZED, ("[ROWS, 3]", "[None, 3]")),
    left("slices by tf.slice of too few rows", "TM227", *SIZED, ("ROWS // TOWERS", "ROWS")),
    left("slices by tf.slice of a part of the columns", "TM227", *SIZED, ("[SIZE, -1]", "[SIZE, 2]"), ("[3, 1]", "[2, 1]"), ("init(3, 1)", "init(2, 1)")),
    left("slices by tf.slice from the second column on", "TM227", *SIZED, ("tf.slice(X, [i * SIZE, 0]", "tf.slice(X, [i * SIZE, 1]"), ("[3, 1]", "[2, 1]"), ("init(3, 1)", "init(2, 1)")),
    left("slices by tf.slice of a size that is set anew", "TM227", *SIZED, ("def train():\n", "def train():\n    global SIZE\n    SIZE = 2\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT)
