"""Iterators that a run starts: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

INPUTS = """\
    X = tf.placeholder(tf.float32, [None, 3])
    Y = tf.placeholder(tf.float32, [None, 1])
"""
DATA = """\
    rows = (np.arange(48).reshape(16, 3) % 7 * 0.1).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True))).repeat().batch(4)
    iterator = tf.data.make_initializable_iterator(dataset)
    X, Y = iterator.get_next()
    xs = tf.split(X, 2)
    ys = tf.split(Y, 2)
"""
SLICES = "X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]"
FED = ", feed_dict={X: bx, Y: by}"
INIT = "        sess.run(tf.global_variables_initializer())\n"
STARTED = "        sess.run(iterator.initializer)\n"
RUN = "            _, value = sess.run([train_op, loss])\n"
STEPS = "        for step in range(4):\n"
PIPED = ((INPUTS, DATA), (SLICES, "xs[i], ys[i]"), (FED, ""))
START = (INIT, INIT + STARTED)


def case(name: str, *changes: Change) -> Any:
    return pytest.param((*PIPED, *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((*PIPED, *changes), rule, id=name)


def ends(does: str, what: str = "tf.errors.OutOfRangeError") -> tuple[Change, ...]:
    """The data end, and what catches the error does something with it."""
    tried = f"            try:\n                _, value = sess.run([train_op, loss])\n            except {what} as error:\n                {does}\n"
    return (
        START,
        (".repeat().batch", ".batch"),
        (STEPS, "        for step in range(9):\n"),
        (RUN, tried),
    )


EPOCHS = (
    STEPS + "            bx, by = batch(4)\n" + RUN,
    """\
        for epoch in range(3):
            sess.run(iterator.initializer)
            while True:
                try:
                    _, value = sess.run([train_op, loss])
                except tf.errors.OutOfRangeError:
                    break
            step = epoch
""",
)


FUNCTION = (
    (
        "def train():\n",
        "def input_fn(rows):\n    dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True))).batch(4)\n    return dataset.make_initializable_iterator()\n\n\ndef train():\n",
    ),
    (
        "    dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True))).repeat().batch(4)\n    iterator = tf.data.make_initializable_iterator(dataset)\n",
        "    iterator = input_fn(rows)\n",
    ),
)
TAKEN = [
    case("once", START),
    case("by the dataset's method", START, ("tf.data.make_initializable_iterator(dataset)", "tf.compat.v1.data.make_initializable_iterator(dataset)")),
    case("before the variables", (INIT, STARTED + INIT)),
    case("with the variables", (INIT, INIT.replace("tf.global_variables_initializer()", "[tf.global_variables_initializer(), iterator.initializer]"))),
    case("that shuffles by a seed of its own", START, (".repeat()", ".shuffle(16, seed=3).repeat()")),
    case("that ends", START, (".repeat().batch", ".batch"), (STEPS, "        for step in range(9):\n"),
         (RUN, "            try:\n                _, value = sess.run([train_op, loss])\n            except tf.errors.OutOfRangeError:\n                print('end at', step)\n                break\n")),
    case("that ends, and its error goes on", START, (".repeat().batch", ".batch"), (STEPS, "        for step in range(9):\n"),
         (RUN, "            try:\n                _, value = sess.run([train_op, loss])\n            except (StopIteration, tf.errors.OutOfRangeError) as error:\n                print('end at', step, error.error_code)\n                break\n")),
    case("in each round", (STEPS, STEPS + STARTED.replace("        ", "            ", 1))),
    case("in each epoch, to its end", (".repeat().batch", ".batch"), EPOCHS),
    case("in each epoch, to its end, of rows that are shuffled", (".repeat().batch", ".shuffle(16, seed=3).batch"), EPOCHS),
    case("in each epoch, after a start of its own", START, (".repeat().batch", ".batch"), EPOCHS),
    case("in each epoch, and left early", (".repeat().batch", ".batch"), (EPOCHS[0], EPOCHS[1].replace("while True:", "for _ in range(2 + epoch):"))),
    case("in each epoch, of a batch for each tower", (".repeat().batch(4)", ".batch(2)"), EPOCHS, ("    X, Y = iterator.get_next()\n    xs = tf.split(X, 2)\n    ys = tf.split(Y, 2)\n", ""),
         ("x, y = xs[i], ys[i]", "x, y = iterator.get_next()"), ("rows = (np.arange(48).reshape(16, 3) % 7 * 0.1)", "rows = np.ones([16, 3])")),
    case("in each epoch, made by a function", *FUNCTION, EPOCHS),
    case("of a batch for each tower", START, (".batch(4)", ".batch(2)"), ("    X, Y = iterator.get_next()\n    xs = tf.split(X, 2)\n    ys = tf.split(Y, 2)\n", ""),
         ("x, y = xs[i], ys[i]", "x, y = iterator.get_next()"), ("rows = (np.arange(48).reshape(16, 3) % 7 * 0.1)", "rows = np.ones([16, 3])")),
]  # fmt: skip

EACH = (
    (".batch(4)", ".batch(2)"),
    ("    X, Y = iterator.get_next()\n    xs = tf.split(X, 2)\n    ys = tf.split(Y, 2)\n", ""),
    ("x, y = xs[i], ys[i]", "x, y = iterator.get_next()"),
    # Which tower gets which batch is chance in TF1.
    ("rows = (np.arange(48).reshape(16, 3) % 7 * 0.1)", "rows = np.ones([16, 3])"),
)
METHOD = ("tf.data.make_initializable_iterator(dataset)", "dataset.make_initializable_iterator()")
NAMED = (METHOD[0], METHOD[1] + "\n    start = iterator.initializer")
TAKEN += [
    case("of a batch for each tower, by the dataset's method", START, *EACH, METHOD),
    case("that needs no start", *EACH, (METHOD[0], "dataset.make_one_shot_iterator()")),
    case("in each epoch, by the dataset's method", *EACH, (".repeat().batch", ".batch"), EPOCHS, METHOD),
    case("in each epoch, with a batch too few", *EACH, (".repeat().batch", ".take(14).batch"), EPOCHS, METHOD),
    case("by a name", *EACH, NAMED, (INIT, INIT + "        sess.run(start)\n")),
    case("in each epoch, by a name", *EACH, (".repeat().batch", ".batch"), (EPOCHS[0], EPOCHS[1].replace("iterator.initializer", "start")), NAMED),
    case("in a group with the variables", (INIT, INIT.replace("tf.global_variables_initializer()", "tf.group(tf.global_variables_initializer(), iterator.initializer)"))),
    case("of rows that a generator in the function gives", START, ("    dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True)))", "    def pairs():\n        for row in rows:\n            yield row, row[:1]\n\n    dataset = tf.data.Dataset.from_generator(pairs, (tf.float32, tf.float32), ([3], [1]))")),
    case("in each epoch, past rows that are bad", (".repeat().batch", ".map(lambda a, b: (tf.check_numerics(a, 'bad'), b)).batch"), ("    dataset = ", "    rows[5] = np.nan\n    dataset = "), (EPOCHS[0], EPOCHS[1].replace("                except tf", "                except tf.errors.InvalidArgumentError:\n                    print('bad')\n                except tf"))),
    case("in each epoch, up to rows that are bad", (".repeat().batch", ".map(lambda a, b: (tf.check_numerics(a, 'bad'), b)).batch"), ("    dataset = ", "    rows[9] = np.nan\n    dataset = "), (EPOCHS[0], EPOCHS[1].replace("except tf.errors.OutOfRangeError", "except (tf.errors.OutOfRangeError, tf.errors.InvalidArgumentError)"))),
    case("beside a group that has a name", ("    saver = ", "    init = tf.global_variables_initializer()\n    saver = "), (INIT, "        sess.run([init, iterator.initializer])\n")),
]  # fmt: skip

SEED = ("    step_count", "    tf.set_random_seed(5)\n    step_count")
TAKEN += [
    case("beside a seed, where nothing is drawn", START, SEED),
    case("beside a seed, with rows that NumPy draws", START, SEED, ("(np.arange(48).reshape(16, 3) % 7 * 0.1)", "np.random.RandomState(0).rand(16, 3)")),
]  # fmt: skip

LEFT = [
    other("that shuffles by the seed of the graph", "TM232", START, SEED, (".repeat()", ".shuffle(16).repeat()")),
    other("beside a seed and a package that is not known", "TM232", START, SEED, ("import numpy as np\n", "import numpy as np\nimport tensorpack\n")),
    other("of files in an order that is drawn", "TM232", START, SEED, ("    dataset = ", "    files = tf.data.Dataset.list_files('*')\n    dataset = ")),
    other("whose rows TensorFlow draws", "TM232", START, SEED, (".repeat()", ".map(lambda a, b: (a + tf.random.uniform([3]), b)).repeat()")),
    other("one more batch behind the towers", "TM209", *EACH, (METHOD[0], "dataset.make_one_shot_iterator()"),
          ("    saver = ", "    more = iterator.get_next()\n    saver = "), (RUN, RUN + "            print(sess.run(more)[0].shape)\n")),
    other("its name bound anew", "TM209", *EACH, NAMED, ("    saver = ", "    start = step_count.initializer\n    saver = "),
          (INIT, INIT + "        sess.run(start)\n")),
    other("in some rounds", "TM209", (STEPS, STEPS + "            if step % 2 == 0:\n    " + STARTED.replace("        ", "            ", 1))),
    other("in each round, with other runs", "TM209", (STEPS, STEPS + "            sess.run([iterator.initializer, loss])\n")),
    other("whose end is asked for its class", "TM231", *ends("print('end', type(error).__name__)\n                break")),
    other("whose end is asked for what it says", "TM231", *ends("print('end', 'End of sequence' in str(error))\n                break")),
    other("whose end is asked for its message", "TM231", *ends("print('end', 'End of sequence' in error.message)\n                break", "Exception")),
    other("whose end is asked whether it is another one", "TM231", *ends("print('end', isinstance(error, StopIteration))\n                break")),
    other("whose end is another one of Python's", "TM231", *ends("raise\n            except tf.errors.OutOfRangeError:\n                print('end')\n                break", "StopIteration")),
    other("of a program that asks which variables it has", "TM236", START, ("DEVICES = ", "print(tf.resource_variables_enabled(), tf.control_flow_v2_enabled())\nDEVICES = ")),
    other("twice", "TM209", (INIT, INIT + STARTED * 2)),
    other("again behind the steps", "TM209", START, ("        saver.save", STARTED + "        print('%.5f' % sess.run(loss))\n        saver.save")),
    other("behind a run", "TM209", (INIT, INIT + "        print(sess.run(step_count))\n" + STARTED)),
    other("under a condition", "TM209", (INIT, INIT + "        if DEVICES:\n    " + STARTED)),
    other("with what it is fed", "TM209", (INIT, INIT + STARTED.replace("initializer)", "initializer, feed_dict={})"))),
    other("whose run's value is kept", "TM209", (INIT, INIT + STARTED.replace("sess", "nothing = sess"))),
    other("of another dataset", "TM209", START, ("    xs = tf", "    more = tf.data.make_initializable_iterator(dataset)\n    xs = tf"), (INIT, INIT + STARTED.replace("iterator", "more")),
          (RUN, RUN + "            sess.run(more.get_next())\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
