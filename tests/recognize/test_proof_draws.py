"""Runs that may need less of the input pipeline than a step draws."""

from __future__ import annotations

import pytest

from tests.recognize.programs import program, reasons

FED = "    x = tf.placeholder(tf.float32, [None, 3])\n    parts = tf.split(x, num_gpus)\n"
LOSS = "            loss = tf.reduce_mean(tf.square(model(parts[i])))\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={x: np.ones([4, 3])})\n"
TRAINED = "            _, value = sess.run([train_op, loss])\n"
APPLY = "    train_op = opt.apply_gradients(grads)\n"
PRINT = "            print(value)\n"
MODEL_DEF = "def model(x):\n"
START = "    tower_grads = []\n"

QUEUE = """\
    point, label = tf.train.slice_input_producer([np.ones([8, 3], np.float32), np.ones([8], np.float32)])
    points, labels = tf.train.batch([point, label], 2)
    queue = tf.contrib.slim.prefetch_queue.prefetch_queue([points, labels], capacity=4)
"""
SHARED = """\
    point, label = tf.train.slice_input_producer([np.ones([8, 3], np.float32), np.ones([8], np.float32)])
    points, labels = tf.train.batch([point, label], 2)
"""
TWO = """\
    points = tf.train.batch(tf.train.slice_input_producer([np.ones([8, 3], np.float32)]), 2)
    labels = tf.train.batch(tf.train.slice_input_producer([np.ones([8], np.float32)]), 2)
"""
FUNCTION = """\
def inputs(count):
    point, label = tf.train.slice_input_producer([np.ones([8, 3], np.float32), np.ones([8], np.float32)])
    points, labels = tf.train.batch([point, label], count)
    return points, tf.reshape(labels, [count])


"""
DEQUEUED = (
    "            points_, labels_ = queue.dequeue()\n"
    "            loss = tf.reduce_mean(tf.square(model(points_)[:, 0] - labels_))\n"
)
READ = "            loss = tf.reduce_mean(tf.square(model(points)[:, 0] - labels))\n"
EACH = [(FED, QUEUE), (LOSS, DEQUEUED), (RUN, TRAINED)]
SAME = [(FED, SHARED), (LOSS, READ), (RUN, TRAINED)]
SUMMARY = "            summary = tf.summary.scalar('mean', loss)\n"

LESS = [
    pytest.param([*EACH, (PRINT, "            print(sess.run(loss))\n")], id="the last tower's loss alone"),
    pytest.param([*EACH, (PRINT, "            print(sess.run([loss]))\n")], id="the last tower's loss in a list"),
    pytest.param(
        [(FED, QUEUE), (LOSS, DEQUEUED + SUMMARY), (RUN, TRAINED), (PRINT, "            text = sess.run(summary)\n")],
        id="the last tower's summary",
    ),
    pytest.param(
        [(FED, QUEUE), (RUN, TRAINED), (LOSS, DEQUEUED + "            if i == 0:\n                first = loss * 2.0\n"),
         (PRINT, "            print(sess.run(first))\n")],
        id="a value of the first tower",
    ),
    pytest.param(
        [(FED, QUEUE), (RUN, TRAINED),
         (LOSS, "            points_, labels_ = queue.dequeue()\n            more, _ = queue.dequeue()\n"
          "            loss = tf.reduce_mean(tf.square(model(points_)[:, 0] - labels_))\n            other = tf.reduce_mean(more)\n")],
        id="a second draw that the loss does not need",
    ),
    pytest.param(
        [(FED, TWO), (LOSS, "            loss = tf.reduce_mean(tf.square(model(points)))\n            seen = tf.reduce_mean(labels)\n"),
         (RUN, TRAINED)],
        id="labels of a queue of their own that nobody trains on",
    ),
    pytest.param(
        [(FED, TWO), (LOSS, "            out = model(points)\n            loss = tf.reduce_mean(tf.square(out[:, 0] - labels))\n"
          "            mean = tf.reduce_mean(out)\n"),
         (RUN, TRAINED), (PRINT, "            print(sess.run(mean))\n")],
        id="a look that needs no labels of their own queue",
    ),
    pytest.param(
        [(FED, SHARED), (LOSS, READ + "            ones = tf.ones_like(points)\n"), (RUN, TRAINED), (PRINT, "            print(sess.run(ones))\n")],
        id="ones like the input",
    ),
    pytest.param(
        [(FED, SHARED), (LOSS, READ + "            size = tf.shape(points)[0]\n"), (RUN, TRAINED), (PRINT, "            print(sess.run(size))\n")],
        id="the input's size",
    ),
    pytest.param(
        [(FED, SHARED), (RUN, TRAINED), (LOSS, READ + "            weight = tf.constant(1.0)\n"), (PRINT, "            print(sess.run(weight))\n")],
        id="a constant of the tower",
    ),
    pytest.param(
        [(FED, SHARED), (RUN, TRAINED), (MODEL_DEF, "def zero(points):\n    return tf.zeros([2])\n\n\n" + MODEL_DEF),
         (LOSS, READ + "            nothing = zero(points)\n"), (PRINT, "            print(sess.run(nothing))\n")],
        id="a function that does not use its argument",
    ),
    pytest.param(
        [(FED, SHARED), (RUN, TRAINED), (MODEL_DEF, "def some(points, use):\n    if use:\n        return points\n    return tf.zeros([2])\n\n\n" + MODEL_DEF),
         ("def train(num_gpus=2):\n", "def train(num_gpus=2, use=False):\n"),
         (LOSS, READ + "            part = some(points, use)\n"), (PRINT, "            print(sess.run(part))\n")],
        id="a function that may not use its argument",
    ),
]  # fmt: skip

ALL = [
    pytest.param(EACH, id="the update needs every tower's batch"),
    pytest.param(SAME, id="one batch for all"),
    pytest.param([*SAME, (PRINT, "            print(sess.run(loss))\n")], id="a look at what one batch gives"),
    pytest.param(
        [(MODEL_DEF, FUNCTION + MODEL_DEF), (FED, "    points, labels = inputs(2)\n"), (LOSS, READ), (RUN, TRAINED)],
        id="a pipeline in a function",
    ),
    pytest.param(
        [(MODEL_DEF, FUNCTION + MODEL_DEF), (FED, "    points, labels = inputs(2)\n"),
         (LOSS, READ + "            mean = tf.reduce_mean(model(points))\n"), (RUN, TRAINED), (PRINT, "            print(sess.run(mean))\n")],
        id="a look at the points that come with their labels",
    ),
    pytest.param(
        [*EACH, (APPLY, APPLY + "    summaries = []\n    for g, v in grads:\n        if g is not None:\n"
          "            summaries.append(tf.summary.histogram(v.op.name, g))\n    summary_op = tf.summary.merge(summaries)\n"),
         (APPLY, APPLY)],
        id="histograms of all gradients",
    ),
]  # fmt: skip


@pytest.mark.parametrize("changes", LESS)
def test_a_run_that_may_draw_less(changes: list[tuple[str, str]]) -> None:
    assert "TM225" in reasons(program(*changes)), reasons(program(*changes))


@pytest.mark.parametrize("changes", ALL)
def test_a_run_that_draws_all(changes: list[tuple[str, str]]) -> None:
    assert "TM225" not in reasons(program(*changes)), reasons(program(*changes))
