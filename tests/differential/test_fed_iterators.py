"""Iterators that are started with what placeholders are fed: spellings that loop style takes, and neighbours that it must
not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of
from tests.differential.test_iterators import EPOCHS as UNFED
from tests.differential.test_iterators import (
    FED,
    INIT,
    INPUTS,
    RUN,
    SLICES,
    STEPS,
)

DATA = """\
    rows = (np.arange(48).reshape(16, 3) % 7 * 0.1).astype(np.float32)
    sums = rows.sum(1, keepdims=True)
    order = np.random.RandomState(0)
    features = tf.placeholder(tf.float32, [None, 3])
    labels = tf.placeholder(tf.float32, [None, 1])
    dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(4)
    iterator = tf.data.make_initializable_iterator(dataset)
    X, Y = iterator.get_next()
    xs = tf.split(X, 2)
    ys = tf.split(Y, 2)
"""
START = "sess.run(iterator.initializer, feed_dict={features: rows[picked], labels: sums[picked]})"
EPOCHS = (
    UNFED[0],
    UNFED[1].replace(
        "sess.run(iterator.initializer)", f"picked = order.permutation(16)\n            {START}"
    ),
)
PIPED = ((INPUTS, DATA), (SLICES, "xs[i], ys[i]"), (FED, ""))
ONCE = (
    (INIT, INIT + "        picked = order.permutation(16)\n        " + START + "\n"),
    (").batch(4)", ").repeat().batch(4)"),
)
SPEC = "    labels = tf.placeholder(tf.float32, [None, 1])\n"


def epochs(name: str, *changes: Change) -> Any:
    return pytest.param((*PIPED, EPOCHS, *changes), id=name)


def once(name: str, *changes: Change) -> Any:
    return pytest.param((*PIPED, *ONCE, *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((*PIPED, EPOCHS, *changes), rule, id=name)


def other_once(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((*PIPED, *ONCE, *changes), rule, id=name)


LOOKS = """\
            sess.run(iterator.initializer, {features: rows[:8] + 1, labels: sums[:8]})
            print('%.5f' % sess.run(loss))
            print('%.5f' % sess.run(loss))
"""
TAKEN = [
    epochs("in each epoch"),
    epochs("in each epoch, and left early", ("while True:", "for _ in range(2 + epoch):")),
    epochs("in some epochs", (f"            {START}", f"            if epoch != 1:\n                {START}")),
    epochs("in each epoch, with other rows in the last one", (f"            {START}", f"            if epoch < 2:\n                {START}\n            else:\n                sess.run(iterator.initializer, {{features: rows[:8], labels: sums[:8]}})")),
    epochs("in each epoch, and for an evaluation", ("            step = epoch\n", LOOKS + "            step = epoch\n")),
    epochs("in each epoch, by position", ("feed_dict=", "")),
    epochs("in each epoch, of types that are not the placeholders'", ("features: rows[picked]", "features: rows[picked].astype(np.float64)"), ("labels: sums[picked]", "labels: sums[picked].tolist()")),
    epochs("in each epoch, with draws where they are fed", ("features: rows[picked], labels: sums[picked]", "features: order.rand(16, 3), labels: order.rand(16, 1)")),
    epochs("in each epoch, the labels first", ("features: rows[picked], labels: sums[picked]", "labels: order.rand(16, 1), features: order.rand(16, 3)")),
    epochs("in each epoch, rows that are shuffled by a seed of their own", (".batch(4)", ".shuffle(16, seed=3).batch(4)")),
    epochs("in each epoch, rows that are mapped", (".batch(4)", ".map(lambda a, b: (a * 2.0, b)).batch(4).prefetch(2)")),
    epochs("in each epoch, with a number of rows that is fed", (SPEC, SPEC + "    size = tf.placeholder(tf.int64, [])\n"), (".batch(4)", ".batch(size)"), ("labels: sums[picked]", "labels: sums[picked], size: 4")),
    epochs("in each epoch, shapes of the rows", ("tf.placeholder(tf.float32, [None, 3])", "tf.placeholder(rows.dtype, rows.shape)"), (SPEC, "    labels = tf.placeholder(shape=sums.shape, dtype=sums.dtype)\n")),
    epochs("in each epoch, one placeholder", (SPEC, ""), ("(features, labels)", "features"), (", labels: sums[picked]", ""), ("X, Y = iterator", "X = iterator"), ("    ys = tf.split(Y, 2)\n", ""), ("xs[i], ys[i]", "xs[i], tf.reduce_sum(xs[i], 1, keepdims=True)")),
    epochs("in each epoch, in a line that divides", ("features: rows[picked]", "features: rows[picked] / 2.0")),
    epochs("in each epoch, of a batch for each tower", (".batch(4)", ".batch(2)"), ("    X, Y = iterator.get_next()\n    xs = tf.split(X, 2)\n    ys = tf.split(Y, 2)\n", ""), ("x, y = xs[i], ys[i]", "x, y = iterator.get_next()"),
           ("rows = (np.arange(48).reshape(16, 3) % 7 * 0.1)", "rows = np.ones([16, 3])")),
    epochs("what the towers read too", (SPEC, SPEC + "    scale = tf.placeholder(tf.float32, [])\n"), (").batch(4)", ").map(lambda a, b: (a * scale, b)).batch(4)"), ("labels: sums[picked]", "labels: sums[picked], scale: 2.0"), ("tf.square(out - y)", "scale * tf.square(out - y)"),
          ("sess.run([train_op, loss])", "sess.run([train_op, loss], {scale: 1.0})")),
    epochs("what an evaluation reads too", ("    saver = ", "    mean = tf.reduce_mean(features)\n    saver = "), ("            step = epoch\n", "            print('%.5f' % sess.run(mean, {features: rows[:4] + epoch}))\n            step = epoch\n")),
    epochs("what is not in the pipeline", (SPEC, SPEC + "    unused = tf.placeholder(tf.float32, [])\n"), ("labels: sums[picked]", "labels: sums[picked], unused: 2.0")),
    epochs("a number with a default", (SPEC, SPEC + "    size = tf.placeholder_with_default(4, [])\n"), (".batch(4)", ".batch(tf.cast(size, tf.int64))"), ("labels: sums[picked]", "labels: sums[picked], size: 8")),
    once("once"),
    once("once, before the variables", (INIT, "        picked = order.permutation(16)\n        " + START + "\n" + INIT), ("        picked = order.permutation(16)\n        " + START + "\n" + INIT + "        picked = order.permutation(16)\n        " + START + "\n", "        picked = order.permutation(16)\n        " + START + "\n" + INIT)),
    once("once, and the data end", (").repeat().batch", ").batch"), (STEPS, "        for step in range(9):\n"),
         (RUN, "            try:\n                _, value = sess.run([train_op, loss])\n            except tf.errors.OutOfRangeError:\n                print('end at', step)\n                break\n")),
    once("once, too late for the first step", (STEPS, "        try:\n            sess.run(train_op)\n        except tf.errors.FailedPreconditionError:\n            print('not started')\n" + STEPS), ("        picked = order.permutation(16)\n        " + START + "\n", ""), (STEPS, STEPS + "            if step == 0:\n                picked = order.permutation(16)\n                " + START + "\n")),
]  # fmt: skip

LEFT = [
    other("a dict that has a name", "TM209", (START, "feed = {features: rows[picked], labels: sums[picked]}\n            sess.run(iterator.initializer, feed)")),
    other("a dict that unpacks another", "TM209", ("features: rows[picked], labels", "**{features: rows[picked]}, labels")),
    other("in another order the second time", "TM209", ("            step = epoch\n", "            sess.run(iterator.initializer, {labels: sums, features: rows})\n            step = epoch\n")),
    other("without a feed the second time", "TM209", ("            step = epoch\n", "            sess.run(iterator.initializer)\n            step = epoch\n")),
    other("a placeholder twice", "TM209", ("labels: sums[picked]", "labels: sums[picked], features: rows[picked]")),
    other("what a step is fed too", "TM209", ("sess.run([train_op, loss])", "sess.run([train_op, loss], {features: rows, labels: sums})")),
    other("in a try", "TM209", (f"            {START}\n", f"            try:\n                {START}\n            except ValueError:\n                print('odd')\n")),
    other("with another fetch", "TM209", ("iterator.initializer, feed", "[iterator.initializer, step_count], feed")),
    other("whose value is kept", "TM209", (START, "nothing = " + START)),
    other("with a placeholder that is asked for its shape", "TM210", ("            step = epoch\n", "            print(features.shape)\n            step = epoch\n")),
    other("with a placeholder that has another value by then", "TM209", ("            step = epoch\n", "            features = epoch\n            step = epoch\n")),
    other("that shuffles by the seed of the graph", "TM232", ("    step_count", "    tf.set_random_seed(5)\n    step_count"), (".batch(4)", ".shuffle(16).batch(4)")),
    other_once("with a placeholder that nobody feeds", "TM208", (", labels: sums[picked]", "")),
    other_once("in a function", "TM209", (INIT, INIT + "        def start(picked):\n            " + START + "\n        start(order.permutation(16))\n"), ("        picked = order.permutation(16)\n        " + START + "\n", "")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
