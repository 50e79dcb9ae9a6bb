"""Towers built by a function that is given the model, the inputs and the optimizer, and run by one that others use too."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

IMPORTS = "import numpy as np\nimport tensorflow as tf\n"
DEVICES = """\
def placed(device, controller):
    def place(op):
        kind = op.type if isinstance(op, tf.Operation) else op.op
        return controller if kind in ('Variable', 'VariableV2', 'VarHandleOp') else device

    return place
"""
DATA = """\
def rows(epochs):
    x = (np.arange(96).reshape(32, 3) % 7 * 0.1).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).repeat(epochs).batch(2)
"""
NET = """\
def model(input_fn):
    inputs = input_fn()
    x, y = inputs[0], inputs[1]
    hidden = tf.layers.dense(x, 4, name='hidden', activation=tf.nn.relu, kernel_initializer=tf.constant_initializer(0.2))
    out = tf.layers.dense(hidden, 1, name='out', kernel_initializer=tf.constant_initializer(0.1))
    return tf.reduce_mean(tf.square(out - y))
"""
AVERAGE = """\
def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        grads = [g for g, _ in pairs]
        averaged.append((tf.reduce_mean(grads, 0), pairs[0][1]))
    return averaged
"""
BUILD = """\
def parallel(model_fn, input_fn, optimizer, devices=['/gpu:0', '/gpu:1'], controller='/cpu:0'):
    tower_grads = []
    losses = []
    with tf.variable_scope(tf.get_variable_scope()) as outer:
        for i, device in enumerate(devices):
            with tf.device(placed(device, controller)), tf.name_scope('tower_{}'.format(i)):
                # one loss for each device
                loss = model_fn(input_fn)
                with tf.name_scope('compute_gradients'):
                    grads = optimizer.compute_gradients(loss)
                    tower_grads.append(grads)
                losses.append(loss)
            outer.reuse_variables()
    # all of them together
    with tf.name_scope('apply_gradients'), tf.device(controller):
        averaged = average_gradients(tower_grads)
        step = tf.train.get_or_create_global_step()
        update = optimizer.apply_gradients(averaged, step)
        mean_loss = tf.reduce_mean(losses)
    return update, mean_loss
"""
RUN = """\
def run(update, loss):
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        try:
            number = 0
            while True:
                _, value = sess.run((update, loss))
                if number % 2 == 0:
                    print('step', number, 'loss', '%.6f' % value)
                number += 1
        except tf.errors.OutOfRangeError:
            # the data is at its end
            pass
    print('last', '%.6f' % value)
"""
INPUTS = """\
    def input_fn():
        with tf.device(None):
            return iterator.get_next()

"""
CALL = "    update, loss = parallel(model, input_fn, optimizer)\n"
MAIN = f"""\
def main():
    dataset = rows(2)
    iterator = dataset.make_one_shot_iterator()

{INPUTS}    optimizer = tf.train.AdamOptimizer(1e-2)
{CALL}    run(update, loss)
"""
START = "if __name__ == '__main__':\n    main()\n"
FILE, MOVED = "file ", "moved to another file"
ALONE = """\
import tensorflow as tf
from tools import model, rows, run


def main():
    loss = model(rows(1).make_one_shot_iterator().get_next)
    update = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    run(update, loss)


if __name__ == '__main__':
    main()
"""


def program(*changes: Change) -> dict[str, str]:
    """One file, with each change; some of its functions may stand in another one, and files beside it."""
    parts = {"placed": DEVICES, "rows": DATA, "model": NET, "average_gradients": AVERAGE, "parallel": BUILD, "run": RUN}  # fmt: skip
    files: dict[str, str] = {}
    moved: list[str] = []
    main, imports = MAIN, IMPORTS
    for old, new in changes:
        if old.startswith(FILE):
            files[old.removeprefix(FILE)] = new
        elif old == MOVED:
            moved = new.split()
        elif old == IMPORTS:
            imports = new
        else:
            places = [name for name, text in parts.items() if old in text]
            assert len(places) + (old in main) == 1, old
            main = main.replace(old, new)
            parts = {name: text.replace(old, new) for name, text in parts.items()}
    if moved:
        files["tools.py"] = IMPORTS + "\n\n" + "\n\n".join(parts.pop(name) for name in moved)
        imports += f"from tools import {', '.join(moved)}\n"
    files["train.py"] = "\n\n".join([imports, *parts.values(), main, START])
    return files


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def called(text: str) -> Change:
    return CALL, CALL.replace("model, input_fn, optimizer", text)


WHOLE = "placed rows model average_gradients parallel run"
SHARED = (MOVED, "rows model average_gradients run"), (FILE + "alone.py", ALONE)
GIVEN = "model_fn, input_fn, optimizer, devices=['/gpu:0', '/gpu:1'], controller='/cpu:0'"
SAVED = (
    "    with tf.Session(",
    "    saver = tf.train.Saver()\n    with tf.Session(",
), ("                number += 1\n", "                number += 1\n                saver.save(sess, 'ckpt/model')\n")  # fmt: skip

TAKEN = [
    taken("as people write it"),
    taken("inputs by a lambda", (INPUTS, ""), called("model, lambda: iterator.get_next(), optimizer")),
    taken("inputs by the method itself", (INPUTS, ""), called("model, iterator.get_next, optimizer")),
    taken("inputs by name", called("model, optimizer=optimizer, input_fn=input_fn")),
    taken("everything by name", called("input_fn=input_fn, model_fn=model, optimizer=optimizer")),
    taken("the model last, and devices where they are given", (GIVEN, "input_fn, optimizer, devices, controller, model_fn"), called("input_fn, optimizer, ['/gpu:0', '/gpu:1'], '/cpu:0', model")),
    taken("inputs asked for in the tower", ("loss = model_fn(input_fn)", "batch = input_fn()\n                loss = model_fn(batch)"), ("def model(input_fn):\n    inputs = input_fn()\n", "def model(inputs):\n")),
    taken("inputs asked for where they are given", ("loss = model_fn(input_fn)", "loss = model_fn(input_fn())"), ("def model(input_fn):\n    inputs = input_fn()\n", "def model(inputs):\n")),
    taken("devices that are given", (CALL, "    devices = ['/gpu:0', '/gpu:1']\n" + CALL.replace("optimizer)", "optimizer, devices)"))),
    taken("devices by a comprehension", (CALL, "    devices = ['/gpu:%d' % i for i in range(2)]\n" + CALL.replace("optimizer)", "optimizer, devices)"))),
    taken("a default for the first of them", (GIVEN, "model_fn, input_fn, optimizer, controller='/cpu:0', devices=('/gpu:0', '/gpu:1')")),
    taken("a number of devices", ("devices=['/gpu:0', '/gpu:1']", "count=2"), ("i, device in enumerate(devices)", "i in range(count)"), ("tf.device(placed(device, ", "tf.device(placed('/gpu:%d' % i, ")),
    taken("an optimizer of slots only", ("AdamOptimizer(1e-2)", "MomentumOptimizer(0.1, 0.9)"), *SAVED),
    taken("the rest in another file", (MOVED, "rows model average_gradients run")),
    taken("a runner that another program uses", *SHARED),
    taken("its imports on lines of their own", SHARED[1], (FILE + "tools.py", f"{IMPORTS}\n\n{DATA}\n\n{NET}\n\n{AVERAGE}\n\n{RUN}"), (IMPORTS, IMPORTS + "from tools import model, rows\nfrom tools import run\nfrom tools import average_gradients\n"),
          (DATA, ""), (NET, ""), (AVERAGE, ""), (RUN, "")),
    taken("a runner that reads what its file has", *SHARED, ("number % 2 ==", "number % EVERY =="), (DATA, "EVERY = 2\n\n\n" + DATA)),
    taken("no scope of names around the update", ("with tf.name_scope('apply_gradients'), tf.device(controller):", "with tf.device(controller):"), *SAVED),
]  # fmt: skip

LEFT = [
    left("Adam's variables, whose names are kept", "TM211", *SAVED),
    left("Adam's variables, which are listed", "TM211", ("    print('last', '%.6f' % value)\n", "    print([v.name for v in tf.get_collection(tf.GraphKeys.VARIABLES)])\n    print('last', '%.6f' % value)\n")),
    left("a function that is called twice", "TM205", (CALL, CALL * 2)),
    left("a model that is bound anew", "TM208", ("    tower_grads = []\n", "    model_fn = model_fn or None\n    tower_grads = []\n")),
    left("a model that may be another", "TM208", (NET, NET + "\n\nif len('a') > 2:\n    def model(input_fn):\n        return tf.zeros([])\n")),
    left("a model that a function replaces", "TM208", (NET, NET + "\n\ndef other():\n    global model\n    model = None\n")),
    left("an iterator that is bound anew behind its function", "TM208", (CALL, "    iterator = rows(3).make_one_shot_iterator()\n" + CALL)),
    left("inputs that are counted", "TM208", (INPUTS, INPUTS.replace("        with", "        print('asked')\n        with"))),
    left("inputs that are asked for twice", "TM208", ("    x, y = inputs[0]", "    again = input_fn()\n    x, y = inputs[0]")),
    left("inputs that are not asked for first", "TM208", ("    inputs = input_fn()\n", "    print('model')\n    inputs = input_fn()\n")),
    left("inputs that are changed on their way", "TM208", (INPUTS, INPUTS.replace("iterator.get_next()", "[2 * each for each in iterator.get_next()]"))),
    left("a runner that is used twice", "TM205", *SHARED, ("    run(update, loss)\n", "    run(update, loss)\n    run(update, loss)\n")),
    left("a runner that another file takes from this one", "TM205", *SHARED[:1], (FILE + "alone.py", ALONE.replace("rows, run\n", "rows\nfrom train import run\n"))),
    left("a runner that is replaced in its file", "TM205", *SHARED, (FILE + "start.py", "import tools\n\nran = tools.run\ntools.run = lambda update, loss: (print('runs'), ran(update, loss))\n\nimport train\n\ntrain.main()\n")),
    left("a runner that another file takes from this one by its module", "TM205", *SHARED[:1], (FILE + "alone.py", ALONE.replace("rows, run\n", "rows\nimport train\n").replace("    run(update", "    train.run(update"))),
    left("a runner whose file keeps a count", "TM205", (FILE + "alone.py", ALONE), (MOVED, "rows model average_gradients run"), ("def run(update, loss):\n", "def run(update, loss):\n    global ran\n    ran = 1\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT, program)
