"""Statements that may not move into a step: each spelling with the rule that must say so."""

from __future__ import annotations

import pytest

from tests.recognize.programs import LOSS, program, reasons

START = "    tower_grads = []\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLY = "    train_op = opt.apply_gradients(grads)\n"
SESSION = "    with tf.Session() as sess:\n"
PRINT = "            print(value)\n"
MODEL = "    return tf.matmul(x, w)\n"
MODEL_DEF = "def model(x):\n"

# Lists, dicts and counters made before, and filled by statements that move.
OUTER = [
    pytest.param(
        [(AVERAGED, AVERAGED + "    capped = []\n    for g, v in grads:\n        capped.insert(0, (tf.clip_by_norm(g, 1.0), v))\n"),
         ("apply_gradients(grads)", "apply_gradients(capped)")],
        "TM206", id="a list filled from its end",
    ),
    pytest.param(
        [(AVERAGED, AVERAGED + "    capped = []\n    for g, v in grads:\n        capped += [(tf.clip_by_norm(g, 1.0), v)]\n"),
         ("apply_gradients(grads)", "apply_gradients(capped)")],
        "TM206", id="a list filled by +=",
    ),
    pytest.param(
        [(AVERAGED, AVERAGED + "    capped = list()\n    capped.extend([(tf.clip_by_norm(g, 1.0), v) for g, v in grads])\n"),
         ("apply_gradients(grads)", "apply_gradients(capped)")],
        "TM206", id="a list filled by extend",
    ),
    pytest.param(
        [(AVERAGED, AVERAGED + "    n = 0\n    for g, v in grads:\n        n += 1\n"
          "    grads = [(g / n, v) for g, v in grads]\n")],
        "TM206", id="a counter behind the towers",
    ),
    pytest.param(
        [(START, START + "    seen = {}\n"), (LOSS, LOSS + "            seen['loss'] = loss\n")],
        "TM206", id="a dict filled in the towers",
    ),
    pytest.param(
        [(START, START + "    count = [0]\n"), (LOSS, LOSS + "            count[0] += 1\n")],
        "TM206", id="a counter in a list",
    ),
    pytest.param(
        [(START, START + "    summaries = []\n"),
         (LOSS, LOSS + "            summaries.append(tf.summary.scalar('l', loss))\n"),
         (APPLY, APPLY + "    summary_op = tf.summary.merge(summaries)\n"),
         ("[train_op, loss]", "[train_op, summary_op]")],
        "TM231", id="summaries of all towers in a list",
    ),
    pytest.param(
        [(MODEL_DEF, "SEEN = []\n\n\n" + MODEL_DEF), (MODEL, "    SEEN.append(w)\n" + MODEL)],
        "TM206", id="a list of the module",
    ),
    pytest.param(
        [(MODEL_DEF, "def model(x, seen=[]):\n"), (MODEL, "    seen.append(w)\n" + MODEL)],
        "TM206", id="a default argument",
    ),
    pytest.param(
        [(MODEL_DEF, "def note(into, value):\n    into.append(value)\n\n\n" + MODEL_DEF),
         (START, START + "    seen = []\n"), (LOSS, LOSS + "            note(seen, loss)\n")],
        "TM206", id="a list handed to a function that fills it",
    ),
    pytest.param(
        [(MODEL_DEF, "def note(into, **named):\n    into.update(named)\n\n\n" + MODEL_DEF),
         (START, START + "    seen = {}\n"), (LOSS, LOSS + "            note(seen, loss=loss)\n")],
        "TM206", id="a dict handed to a function that fills it by keywords",
    ),
    pytest.param(
        [(MODEL_DEF, "def note(into, value):\n    into[len(into)] = value\n\n\n" + MODEL_DEF),
         (START, START + "    seen = {}\n"), (LOSS, LOSS + "            note(seen, loss)\n")],
        "TM206", id="a dict handed to a function that stores in it",
    ),
    pytest.param(
        [(MODEL_DEF, "def note(into, value):\n    into += [value]\n\n\n" + MODEL_DEF),
         (START, START + "    seen = []\n"), (LOSS, LOSS + "            note(seen, loss)\n")],
        "TM206", id="a list handed to a function that adds to it",
    ),
    pytest.param(
        [(START, START + "    seen = []\n    keep = seen.append\n"), (LOSS, LOSS + "            keep(loss)\n")],
        "TM222", id="a bound method of a list",
    ),
    pytest.param(
        [(START, START + "    def keep(value):\n        seen.append(value)\n    seen = []\n"),
         (LOSS, LOSS + "            keep(loss)\n")],
        "TM206", id="a closure that fills a list",
    ),
]  # fmt: skip

# Python that would run at every trace.
EFFECTS = [
    pytest.param([(LOSS, LOSS + "            print('tower', i, loss)\n")], "TM223", id="print in the tower"),
    pytest.param([(MODEL, "    print('model')\n" + MODEL)], "TM223", id="print in a function of the tower"),
    pytest.param([(AVERAGED, AVERAGED + "    assert len(grads) > 0\n")], "TM223", id="assert behind the towers"),
    pytest.param(
        [(MODEL, "    try:\n        y = tf.matmul(x, w)\n    except ValueError:\n        y = x\n    return y\n")],
        "TM223", id="try",
    ),
    pytest.param(
        [(MODEL, "    n = 0\n    while n < 2:\n        n += 1\n" + MODEL)], "TM223", id="while"
    ),
    pytest.param(
        [(MODEL_DEF, "CALLS = 0\n\n\n" + MODEL_DEF), (MODEL, "    global CALLS\n    CALLS += 1\n" + MODEL)],
        "TM206", id="global counter",
    ),
    pytest.param([(MODEL, "    tf.logging.info('built')\n" + MODEL)], "TM222", id="a log line"),
    pytest.param([(MODEL, "    x = x * np.random.rand()\n" + MODEL)], "TM206", id="NumPy randomness in a function"),
    pytest.param([("import numpy as np\n", "import random\nimport numpy as np\n"),
                  (MODEL, "    x = x * random.random()\n" + MODEL)], "TM206", id="Python randomness in a function"),
    pytest.param([("import numpy as np\n", "import time\nimport numpy as np\n"),
                  (MODEL, "    x = x * time.time()\n" + MODEL)], "TM222", id="the clock"),
    pytest.param([(MODEL_DEF, "import functools\n\n\n@functools.lru_cache(None)\n" + MODEL_DEF)], "TM222", id="a decorator"),
    pytest.param([(MODEL, "    exec('y = 1')\n" + MODEL)], "TM223", id="exec"),
    pytest.param([(MODEL, "    setattr(model, 'w', w)\n" + MODEL)], "TM223", id="setattr"),
    pytest.param([(MODEL, "    model.w = w\n" + MODEL)], "TM206", id="an attribute of a function"),
]  # fmt: skip

# TensorFlow that has an effect only in runs that need it, or keeps state.
GRAPH_EFFECTS = [
    pytest.param([(MODEL, "    x = tf.Print(x, [x])\n" + MODEL)], "TM225", id="tf.Print"),
    pytest.param([(LOSS, LOSS + "            tf.Print(loss, [loss])\n")], "TM225", id="tf.Print nobody fetches"),
    pytest.param([(MODEL, "    tf.assert_positive(x)\n" + MODEL)], "TM225", id="tf.assert_positive"),
    pytest.param([(MODEL, "    tf.assert_equal(tf.shape(x)[1], 3)\n" + MODEL)], "TM225", id="tf.assert_equal"),
    pytest.param([(MODEL, "    tf.Assert(tf.reduce_all(x > 0), [x])\n" + MODEL)], "TM225", id="tf.Assert"),
    pytest.param(
        [(MODEL, "    with tf.control_dependencies([tf.assert_positive(x)]):\n        x = tf.identity(x)\n" + MODEL)],
        "TM225", id="an assert that something waits for",
    ),
    pytest.param([(MODEL, "    x = tf.check_numerics(x, 'x')\n" + MODEL)], "TM225", id="check_numerics"),
    pytest.param([(LOSS, LOSS + "            acc, up = tf.metrics.mean(loss)\n")], "TM220", id="tf.metrics.mean"),
    pytest.param(
        [(LOSS, LOSS + "            acc = tf.metrics.accuracy(parts[i], parts[i])[1]\n")], "TM220", id="tf.metrics.accuracy"
    ),
    pytest.param(
        [(MODEL, "    tf.metrics.mean(x, updates_collections=['u'])\n" + MODEL)], "TM220", id="tf.metrics in a function"
    ),
    pytest.param([(MODEL, "    m = tf.metrics\n    m.mean(x)\n" + MODEL)], "TM220", id="tf.metrics by another name"),
    pytest.param(
        [("import tensorflow as tf\n", "import tensorflow as tf\nfrom tensorflow import metrics\n"),
         (MODEL, "    metrics.mean(x)\n" + MODEL)],
        "TM220", id="tf.metrics by import",
    ),
    pytest.param(
        [("import tensorflow as tf\n",
          "import tensorflow as tf\nfrom tensorflow.python.training import moving_averages\n"),
         (MODEL, "    moving_averages.assign_moving_average(w, x, 0.9)\n" + MODEL)],
        "TM222", id="assign_moving_average",
    ),
    pytest.param(
        [("import tensorflow as tf\n",
          "import tensorflow as tf\nfrom tensorflow.python.training.moving_averages import assign_moving_average\n"),
         (LOSS, LOSS + "            assign_moving_average(loss, loss, 0.9)\n")],
        "TM222", id="assign_moving_average by import",
    ),
    pytest.param([(MODEL, "    w.assign_add(w)\n" + MODEL)], "TM220", id="assign_add"),
    pytest.param([(MODEL, "    f = w.assign\n    f(w)\n" + MODEL)], "TM220", id="assign by another name"),
    pytest.param(
        [(START, START + "    ema = tf.train.ExponentialMovingAverage(0.9)\n"),
         (LOSS, LOSS + "            ema.apply([loss])\n")],
        "TM220", id="EMA of a loss in the tower",
    ),
    pytest.param(
        [(START, "    ema = tf.train.ExponentialMovingAverage(0.9)\n" + START),
         (APPLY, APPLY + "    track = ema.apply([loss])\n    train_op = tf.group(train_op, track)\n")],
        "TM220", id="EMA of a loss behind the towers",
    ),
    pytest.param(
        [(START, "    ema = tf.train.ExponentialMovingAverage(0.9)\n" + START),
         (APPLY, APPLY + "    track = ema.apply(tf.trainable_variables() + [loss])\n    train_op = tf.group(train_op, track)\n")],
        "TM220", id="EMA of variables and a loss",
    ),
    pytest.param(
        [(START, "    ema = tf.train.ExponentialMovingAverage(0.9)\n" + START),
         (APPLY, APPLY + "    track = ema.apply()\n    train_op = tf.group(train_op, track)\n")],
        "TM220", id="EMA of what there is",
    ),
    pytest.param(
        [(START, "    ema = tf.train.ExponentialMovingAverage(0.9)\n" + START),
         (APPLY, APPLY + "    tracked = [loss]\n    track = ema.apply(tracked)\n    train_op = tf.group(train_op, track)\n")],
        "TM220", id="EMA of a list with a loss",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "rule"), [*OUTER, *EFFECTS, *GRAPH_EFFECTS])
def test_not_moved(changes: list[tuple[str, str]], rule: str) -> None:
    assert rule in reasons(program(*changes)), reasons(program(*changes))
