"""What stands around the towers: settings, runs, services, averages, names; each spelling with its rule."""

from __future__ import annotations

import pytest

from tests.recognize.programs import AVERAGE, LOSS, program, reasons

START = "    tower_grads = []\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLY = "    train_op = opt.apply_gradients(grads)\n"
SESSION = "    with tf.Session() as sess:\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={x: np.ones([4, 3])})\n"
PRINT = "            print(value)\n"
MODEL = "    return tf.matmul(x, w)\n"
MODEL_DEF = "def model(x):\n"
IMPORT = "import tensorflow as tf\n"
TRAIN = "def train(num_gpus=2):\n"
SCALED = ("tf.square(model(parts[i]))", "scale * tf.square(model(parts[i]))")

# Settings that change between building and running.
SETTINGS = [
    pytest.param([(START, "    scale = 2.0\n" + START), SCALED, (SESSION, "    scale = 1.0\n" + SESSION)], "TM224", id="a local"),
    pytest.param([(START, "    scale = 2.0\n" + START), SCALED, (PRINT, PRINT + "            scale *= 0.5\n")], "TM224", id="a local in the session loop"),
    pytest.param(
        [(TRAIN, "def train(num_gpus=2, scale=2.0):\n"), SCALED, (SESSION, "    scale = 1.0\n" + SESSION)], "TM224", id="a parameter"
    ),
    pytest.param(
        [(START, "    scales = [2.0]\n" + START), ("tf.square(model(parts[i]))", "scales[0] * tf.square(model(parts[i]))"),
         (PRINT, PRINT + "            scales[0] = 1.0\n")],
        "TM224", id="an item of a list",
    ),
    pytest.param(
        [(START, "    scales = [2.0]\n    same = scales\n" + START), ("tf.square(model(parts[i]))", "scales[0] * tf.square(model(parts[i]))"),
         (PRINT, PRINT + "            same.append(1.0)\n")],
        "TM224", id="a list by another name",
    ),
    pytest.param(
        [(START, "    settings = {'scale': 2.0}\n" + START),
         ("tf.square(model(parts[i]))", "settings['scale'] * tf.square(model(parts[i]))"),
         (PRINT, PRINT + "            settings.update(scale=1.0)\n")],
        "TM224", id="a dict",
    ),
    pytest.param(
        [(START, "    scale = np.ones([1])\n" + START), SCALED, (PRINT, PRINT + "            scale[0] = 0.0\n")], "TM224", id="an array"
    ),
    pytest.param(
        [(START, "    scale = np.ones([1])\n" + START), SCALED, (PRINT, PRINT + "            scale.fill(0.0)\n")], "TM224", id="an array filled"
    ),
    pytest.param(
        [(MODEL_DEF, "class Settings(object):\n    scale = 2.0\n\n\nsettings = Settings()\n\n\n" + MODEL_DEF),
         (MODEL, "    x = x * settings.scale\n" + MODEL), (SESSION, "    settings.scale = 1.0\n" + SESSION)],
        "TM224", id="an attribute of an object of the module",
    ),
    pytest.param(
        [(MODEL_DEF, "class Settings(object):\n    scale = 2.0\n\n\nsettings = Settings()\n\n\ndef anneal():\n    settings.scale *= 0.5\n\n\n" + MODEL_DEF),
         (MODEL, "    x = x * settings.scale\n" + MODEL), (PRINT, PRINT + "            anneal()\n")],
        "TM224", id="an attribute that a function changes",
    ),
    pytest.param(
        [(MODEL_DEF, "SCALE = 2.0\n\n\ndef anneal():\n    global SCALE\n    SCALE = 1.0\n\n\n" + MODEL_DEF),
         (MODEL, "    x = x * SCALE\n" + MODEL), (PRINT, PRINT + "            anneal()\n")],
        "TM224", id="a global",
    ),
    pytest.param(
        [(MODEL_DEF, "FLAGS = tf.app.flags.FLAGS\n\n\n" + MODEL_DEF), (MODEL, "    x = x * FLAGS.scale\n" + MODEL),
         (SESSION, "    FLAGS.scale = 1.0\n" + SESSION)],
        "TM224", id="a flag",
    ),
    pytest.param(
        [(MODEL_DEF, "FLAGS = tf.app.flags.FLAGS\n\n\n" + MODEL_DEF), (MODEL, "    x = x * FLAGS.scale\n" + MODEL),
         (SESSION, "    setattr(FLAGS, 'scale', 1.0)\n" + SESSION)],
        "TM224", id="a flag by setattr",
    ),
    pytest.param(
        [(TRAIN, "def train(config, num_gpus=2):\n"), ("tf.square(model(parts[i]))", "config.scale * tf.square(model(parts[i]))"),
         (PRINT, PRINT + "            config.update(scale=1.0)\n")],
        "TM224", id="a method of a parameter",
    ),
    pytest.param(
        [(MODEL_DEF, "def halve(values):\n    values[0] *= 0.5\n\n\n" + MODEL_DEF), (START, "    scales = [2.0]\n" + START),
         ("tf.square(model(parts[i]))", "scales[0] * tf.square(model(parts[i]))"), (PRINT, PRINT + "            halve(scales)\n")],
        "TM224", id="a list handed to a function that changes it",
    ),
    pytest.param(
        [(START, "    scale = 2.0\n    def set_scale():\n        nonlocal scale\n        scale = 1.0\n" + START), SCALED,
         (PRINT, PRINT + "            set_scale()\n")],
        "TM224", id="nonlocal",
    ),
]  # fmt: skip

# Runs whose results have a form of their own, and what savers and writers are asked.
RUNS = [
    pytest.param([(PRINT, "            print(sess.run((train_op, loss), feed_dict={x: np.ones([4, 3])}))\n")], "TM231", id="a tuple kept whole"),
    pytest.param([(PRINT, "            print(sess.run((loss,), feed_dict={x: np.ones([4, 3])}))\n")], "TM231", id="a tuple of one"),
    pytest.param([(PRINT, "            print(sess.run((loss, loss), feed_dict={x: np.ones([4, 3])}))\n")], "TM231", id="a tuple in a call"),
    pytest.param([(PRINT, "            print(sess.run({'loss': loss}, feed_dict={x: np.ones([4, 3])}))\n")], "TM231", id="a dict"),
    pytest.param([(RUN, "            value = sess.run(dict(loss=loss), feed_dict={x: np.ones([4, 3])})\n")], "TM209", id="a dict that is made"),
    pytest.param([(PRINT, "            print(sess.run([train_op, [loss]], feed_dict={x: np.ones([4, 3])}))\n")], "TM231", id="a list in a list"),
    pytest.param([(PRINT, "            print(sess.run([[train_op, loss]], feed_dict={x: np.ones([4, 3])})[0])\n")], "TM231", id="a list of a list"),
    pytest.param(
        [(SESSION, "    fetches = [train_op, loss]\n" + SESSION), (RUN, "            _, value = sess.run(fetches, feed_dict={x: np.ones([4, 3])})\n            print(len(fetches))\n")],
        "TM231", id="a list by name",
    ),
    pytest.param(
        [(SESSION, "    fetches = (train_op, loss)\n" + SESSION), (RUN, "            _, value = sess.run(fetches, feed_dict={x: np.ones([4, 3])})\n            print(len(fetches))\n")],
        "TM231", id="a tuple by name",
    ),
    pytest.param(
        [(SESSION, "    fetches = {'t': train_op, 'l': loss}\n" + SESSION), (RUN, "            value = sess.run(fetches, feed_dict={x: np.ones([4, 3])})\n            print(len(fetches))\n")],
        "TM231", id="a dict by name",
    ),
    pytest.param([(RUN, "            _, value = sess.run([train_op] + list([loss]), feed_dict={x: np.ones([4, 3])})\n")], "TM209", id="a sum of lists, one of them made"),
    pytest.param([(RUN, "            for op in [train_op, loss]:\n                value = sess.run(op, feed_dict={x: np.ones([4, 3])})\n")], "TM209", id="a loop over fetches"),
    pytest.param([(RUN, "            _, loss = sess.run([train_op, loss], feed_dict={x: np.ones([4, 3])})\n"), (PRINT, "            print(loss)\n")], "TM209", id="a fetched name bound anew"),
    pytest.param([(RUN, "            fetch = lambda: sess.run([train_op, loss], feed_dict={x: np.ones([4, 3])})\n            _, value = fetch()\n")], "TM205", id="a lambda that runs"),
    pytest.param([(RUN, RUN + "            evaluate(sess, loss)\n")], "TM205", id="a session handed on"),
    pytest.param([(RUN, RUN + "            value = (loss * 2.0).eval(feed_dict={x: np.ones([4, 3])})\n")], "TM210", id="eval"),
    pytest.param([(PRINT, PRINT + "        more = tf.reduce_mean(loss)\n        sess.run(more, feed_dict={x: np.ones([4, 3])})\n")], "TM234", id="a graph that grows"),
    pytest.param(
        [(APPLY, APPLY + "    again = opt.apply_gradients(grads)\n"), ("[train_op, loss]", "[train_op, again]")], "TM204", id="one average in two updates"
    ),
]  # fmt: skip


def saver(made: str, used: str) -> list[tuple[str, str]]:
    return [(SESSION, f"    saver = {made}\n{SESSION}"), (PRINT, f"{PRINT}            {used}\n")]


SERVICES = [
    pytest.param(saver("tf.train.Saver()", "saver.save(sess, 'm', write_meta_graph=bx is None)"), "TM231", id="write_meta_graph"),
    pytest.param(saver("tf.train.Saver()", "saver.save(sess, 'm', latest_filename='x')"), "TM231", id="latest_filename"),
    pytest.param(saver("tf.train.Saver()", "saver.save(sess, 'm', meta_graph_suffix='x')"), "TM231", id="meta_graph_suffix"),
    pytest.param(saver("tf.train.Saver()", "saver.save(sess, 'm', write_state=False)"), "TM231", id="write_state"),
    pytest.param(saver("tf.train.Saver()", "saver.save(sess, 'm', 3, 'latest')"), "TM231", id="latest_filename by position"),
    pytest.param(saver("tf.train.Saver()", "saver.save(sess, **{'save_path': 'm'})"), "TM231", id="keywords of a dict"),
    pytest.param(saver("tf.train.Saver()", "saver.export_meta_graph('m')"), "TM231", id="export_meta_graph"),
    pytest.param(saver("tf.train.Saver()", "print(saver.saver_def)"), "TM231", id="an attribute of the saver"),
    pytest.param(saver("tf.train.Saver()", "saver.recover_last_checkpoints(['m'])"), "TM231", id="recover_last_checkpoints"),
    pytest.param(saver("tf.train.Saver(write_version=1)", "saver.save(sess, 'm')"), "TM231", id="write_version"),
    pytest.param(saver("tf.train.Saver(name='s')", "saver.save(sess, 'm')"), "TM231", id="the saver's name"),
    pytest.param(saver("tf.train.Saver({'w': tf.trainable_variables()[0]})", "saver.save(sess, 'm')"), "TM231", id="a dict of variables"),
    pytest.param(saver("tf.train.Saver(tf.trainable_variables()[:1])", "saver.save(sess, 'm')"), "TM231", id="some variables"),
    pytest.param(saver("tf.summary.FileWriter('log', filename_suffix='.x')", "saver.flush()"), "TM231", id="filename_suffix"),
    pytest.param(saver("tf.summary.FileWriter('log')", "saver.add_graph(tf.get_default_graph())"), "TM231", id="add_graph"),
    pytest.param([(SESSION, "    with tf.Session('grpc://localhost:2222') as sess:\n")], "TM231", id="another process"),
    pytest.param([(PRINT, PRINT + "            print(len(tf.trainable_variables()))\n")], "TM210", id="variables counted between runs"),
    pytest.param([(PRINT, PRINT + "            print(tf.get_default_graph().version)\n")], "TM210", id="the graph asked for"),
]  # fmt: skip

# Averaging functions that look classic and are not.
GATHER = "        grads = []\n        for g, _ in grad_and_vars:\n            grads.append(tf.expand_dims(g, 0))\n"
AVERAGES = [
    pytest.param([("    average_grads = []\n", "    average_grads = []\n    grads = []\n"), ("        grads = []\n", "")], id="a list that is not reset"),
    pytest.param([(GATHER, "        for g, _ in grad_and_vars:\n            grads = [tf.expand_dims(g, 0)]\n")], id="only the last tower is kept"),
    pytest.param([(GATHER, "        for g, _ in grad_and_vars:\n            grads = []\n            grads.append(tf.expand_dims(g, 0))\n")], id="a list reset in the inner loop"),
    pytest.param([("def average_gradients", "def zip(*lists):\n    return [lists[0]]\n\n\ndef average_gradients")], id="a redefined zip"),
    pytest.param([(IMPORT, IMPORT + "from mine import zip\n")], id="an imported zip"),
    pytest.param([(IMPORT, IMPORT + "from mine import *\n")], id="a star import"),
    pytest.param([("def average_gradients(tower_grads):\n", "def average_gradients(tower_grads, zip=max):\n")], id="zip as a parameter"),
    pytest.param([("tf.reduce_mean(tf.concat(grads, 0), 0)", "tf.reduce_mean(tf.concat(grads, 0), 1)")], id="a mean over another axis"),
    pytest.param([("tf.reduce_mean(tf.concat(grads, 0), 0)", "tf.reduce_mean(tf.concat(grads, 1), 0)")], id="joined along another axis"),
    pytest.param([("tf.expand_dims(g, 0)", "tf.expand_dims(g, -1)")], id="expanded at the end"),
    pytest.param([("        average_grads.append((grad, grad_and_vars[0][1]))\n", "        average_grads.append((grad, grad_and_vars[0][1]))\n        return average_grads\n")], id="an early return"),
    pytest.param([("        average_grads.append((grad, grad_and_vars[0][1]))\n    return", "    average_grads.append((grad, grad_and_vars[0][1]))\n    return")], id="only the last variable"),
    pytest.param([("    return average_grads\n", "    average_grads[:] = average_grads[:1]\n    return average_grads\n")], id="filtered in place"),
    pytest.param([("    return average_grads\n", "    average_grads.pop()\n    return average_grads\n")], id="the last one removed"),
    pytest.param([("    return average_grads\n", "    return list(reversed(average_grads))\n")], id="in another order"),
    pytest.param([("average_grads.append((grad, grad_and_vars[0][1]))", "average_grads.insert(0, (grad, grad_and_vars[0][1]))")], id="inserted in front"),
    pytest.param([("(grad, grad_and_vars[0][1])", "(grad_and_vars[0][0], grad_and_vars[0][1])")], id="the first tower's gradient"),
    pytest.param([("            grads.append(tf.expand_dims(g, 0))\n", "            grads.append(tf.expand_dims(g, 0))\n            break\n")], id="only the first tower"),
    pytest.param([("def average_gradients", "def reduce_mean(x, axis):\n    return x\n\n\ndef average_gradients"), ("tf.reduce_mean(tf.concat", "reduce_mean(tf.concat")], id="a reduce_mean of the program"),
    pytest.param([("def average_gradients", "class tf(object):\n    pass\n\n\ndef average_gradients")], id="another tf"),
]  # fmt: skip

# Names that are not what they are spelled.
NAMES = [
    pytest.param([(IMPORT, IMPORT + "tf.matmul = tf.multiply\n")], "TM229", id="a patched function"),
    pytest.param([(IMPORT, IMPORT + "tf.nn.relu = tf.identity\n")], "TM229", id="a patched function of a module"),
    pytest.param([(IMPORT, IMPORT + "np.ones = np.zeros\n")], "TM229", id="a patched NumPy"),
    pytest.param([(IMPORT, IMPORT + "\n\ndef patch():\n    tf.layers.dense = None\n")], "TM229", id="patched in a function"),
    pytest.param([(MODEL_DEF, "def model(x):\n    return x\n\n\n" + MODEL_DEF)], "TM222", id="a function defined twice"),
    pytest.param([(MODEL, "    x = sum([x, x])\n" + MODEL), (MODEL_DEF, "def sum(values):\n    print(values)\n    return values[0]\n\n\n" + MODEL_DEF)], "TM223", id="a redefined sum"),
    pytest.param([(IMPORT, IMPORT + "from mine import *\n"), (MODEL, "    x = sum([x, x])\n" + MODEL)], "TM229", id="a sum that a star import may bind"),
    pytest.param([(IMPORT, IMPORT + "import mine as tf\n")], "TM222", id="tf bound by two imports"),
    pytest.param([(MODEL_DEF, "tf = None\n\n\n" + MODEL_DEF)], "TM229", id="tf bound to something else"),
    pytest.param([(MODEL_DEF, "def model(x, tf=np):\n")], "TM222", id="tf as a parameter"),
    pytest.param([(MODEL, "    tf = np\n" + MODEL)], "TM222", id="tf as a local"),
    pytest.param([(TRAIN, "def other(x):\n    return x\n\n\n" + TRAIN), (SESSION, "    model = other\n" + SESSION)], "TM224", id="a function's name bound in the scope"),
]  # fmt: skip

# Seeds.
SEEDS = [
    pytest.param([(START, "    tf.set_random_seed(1)\n" + START)], id="the graph's seed and an unseeded variable"),
    pytest.param([(IMPORT, IMPORT + "tf.random.set_random_seed(1)\n"), (MODEL, "    x = tf.nn.dropout(x, 0.5)\n" + MODEL)], id="the graph's seed at module level and a dropout"),
    pytest.param([(MODEL, "    x = tf.nn.dropout(x, 0.5, seed=3)\n" + MODEL)], id="a seeded dropout"),
    pytest.param([(MODEL, "    x = x + tf.random_normal([3], seed=3)\n" + MODEL)], id="a seeded draw"),
    pytest.param([(MODEL, "    x = tf.layers.dropout(x, 0.5, training=True, seed=3)\n" + MODEL)], id="a seeded layer"),
    pytest.param([(MODEL, "    x = x + tf.truncated_normal([3], 0.0, 1.0, tf.float32, 3)\n" + MODEL)], id="a seed by position"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "rule"), [*SETTINGS, *RUNS, *SERVICES, *NAMES])
def test_not_in_loop_style(changes: list[tuple[str, str]], rule: str) -> None:
    assert rule in reasons(program(*changes)), reasons(program(*changes))


@pytest.mark.parametrize("changes", AVERAGES)
def test_an_average_that_is_none(changes: list[tuple[str, str]]) -> None:
    assert AVERAGE in program()
    assert {"TM203", "TM204"} & set(reasons(program(*changes))), reasons(program(*changes))


@pytest.mark.parametrize("changes", SEEDS)
def test_a_seed(changes: list[tuple[str, str]]) -> None:
    assert {"TM232", "TM222"} & set(reasons(program(*changes))), reasons(program(*changes))


def test_two_updates_of_one_run() -> None:
    text = program(
        (START, "    more = []\n" + START),
        (LOSS, LOSS + "            twice = opt.compute_gradients(loss * 2.0)\n            more.append(twice)\n"),
        (APPLY, "    doubled = average_gradients(more)\n" + APPLY + "    second = opt.apply_gradients(doubled)\n"),
        ("[train_op, loss]", "[train_op, second]"),
    )  # fmt: skip
    assert "TM233" in reasons(text)
