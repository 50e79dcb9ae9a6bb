"""Towers that make their inputs themselves: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import all_do_the_same, leaves, takes
from towermigrate.rewrite import rewrite_tree

FED_INPUTS = """\
    X = tf.placeholder(tf.float32, [None, 3])
    Y = tf.placeholder(tf.float32, [None, 1])
"""
SLICES = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
FORWARD = "                    out = net(x)\n                    loss = tf.reduce_mean(tf.square(out - y))\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
BATCH = "def batch(rows):\n"
RUN = "            _, value = sess.run([train_op, loss])\n"
STEPS = "        for step in range(4):\n"
APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
SAVER = "    saver = tf.train.Saver()\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"

ROWS = "    rows = (np.arange(48).reshape(16, 3) % 7 * 0.1).astype(np.float32)\n"
READ = f"""\
def rows_of(size):
{ROWS}    x, y = tf.train.slice_input_producer([rows, rows.sum(1, keepdims=True)], shuffle=False)
    return tf.train.batch([x, y], size)


"""
DATASET = f"""\
def data(size):
{ROWS}    return tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True))).repeat().batch(size)


"""
OWN = "                    x, y = rows_of(2)\n"
TOWER = """\
def tower_loss():
    x, y = rows_of(2)
    return tf.reduce_mean(tf.square(net(x) - y))


"""
CALL = "                    loss = tower_loss()\n"
SCOPED = "                    loss = tower_loss(scope)\n"
QUEUES = (INIT, INIT + "        tf.train.start_queue_runners(sess=sess)\n")
BY_FEED = ((FED_INPUTS, ""), (", feed_dict={X: bx, Y: by}", ""))
IN_LOOP = (*BY_FEED, (BATCH, READ + BATCH), (SLICES, OWN), QUEUES)
IN_FUNCTION = (*BY_FEED, (BATCH, READ + TOWER + BATCH), (SLICES + FORWARD, CALL), QUEUES)
ITERATED = (*BY_FEED, (BATCH, DATASET + BATCH))
IMAGES = "    tf.summary.image('rows', tf.reshape(x, [-1, 3, 1, 1]))\n"
SUMMED = "                    summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)\n"
MERGED = "    for grad, var in grads:\n        summaries.append(tf.summary.histogram(var.op.name, grad))\n    merged = tf.summary.merge(summaries)\n"
WRITE = (
    "            if step % 2 == 0:\n                writer.add_summary(sess.run(merged), step)\n"
)
SUMMARIZED = (
    (GRADS, "                    tf.summary.scalar('loss', loss)\n" + SUMMED + GRADS), (APPLY, MERGED + APPLY),
    (STEPS, "        writer = tf.summary.FileWriter('log')\n" + STEPS), (RUN, RUN + WRITE),
)  # fmt: skip
FLAGS = (
    "drawn = [0]\n",
    "drawn = [0]\nFLAGS = tf.app.flags.FLAGS\ntf.app.flags.DEFINE_boolean('log', True, 'Whether to write summaries')\ntf.app.flags.DEFINE_boolean('more', True, 'Whether to write more of them')\n",
)
UNDER = "    if FLAGS.log:\n        for grad, var in grads:\n            summaries.append(tf.summary.histogram(var.op.name, grad))\n    merged = tf.summary.merge(summaries)\n"
WRITE_UNDER = "            if FLAGS.log:\n                if step % 2 == 0:\n                    writer.add_summary(sess.run(merged), step)\n"
BY_SETTING = (
    FLAGS, (GRADS, SUMMED + GRADS), (APPLY, UNDER + APPLY),
    (STEPS, "        writer = tf.summary.FileWriter('log')\n" + STEPS), (RUN, RUN + WRITE_UNDER),
)  # fmt: skip
EPOCHS = (
    ("shuffle=False)", "shuffle=False, num_epochs=1)"), (STEPS, "        for step in range(20):\n"),
    (INIT, INIT + "        sess.run(tf.local_variables_initializer())\n"),
    (RUN, "            try:\n                _, value = sess.run([train_op, loss])\n            except tf.errors.OutOfRangeError:\n                print('end at', step)\n                break\n"),
)  # fmt: skip
RECORD = """\
def read(rows):
    class Record(object):
        pass
    record = Record()
    record.x, record.y = tf.train.slice_input_producer([rows, rows.sum(1, keepdims=True)], shuffle=False)
    record.x = tf.cast(record.x, tf.float32)
    record.x.set_shape([3])
    print('reads rows')
    return record


def rows_of(size):
    record = read((np.arange(48).reshape(16, 3) % 7 * 0.1).astype(np.float32))
    if not size:
        raise ValueError('no rows')
    x, y = tf.train.batch([record.x, record.y], batch_size=size, capacity=3 * size)
    return x, tf.reshape(y, [size, 1])


"""


def of_class(*changes: Change) -> dict[str, str]:
    """The program as a class that builds its towers in one method and runs them in another."""
    head, rest = program(*changes)["train.py"].split("def train():\n")
    body, end = rest.split("\n\nif __name__")
    build, run = body.split(SAVER)
    run = run.replace("        saver.save(sess, 'ckpt/model')\n", "").replace(
        "[train_op, loss]", "[self.train_op, self.loss]"
    )
    made = "        self.train_op = train_op\n        self.loss = loss\n"
    return {
        "train.py": f"{head}class Trainer(object):\n    def __init__(self):\n        self.build()\n\n    def build(self):\n{textwrap.indent(build, '    ')}{made}\n"
        f"    def run(self):\n{textwrap.indent(run, '    ')}\n\n"
        f"def train():\n    Trainer().run()\n\n\nif __name__{end}"
    }


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("in the loop", *IN_LOOP),
    case("at the beginning of the tower's function", *IN_FUNCTION),
    case("behind its docstring, on several lines", *IN_FUNCTION,
         ("def tower_loss():\n    x, y = rows_of(2)\n", "def tower_loss(scope):\n    '''The loss of a tower.'''\n\n    # Rows.\n    x, y = rows_of(\n        2)\n\n"), (CALL, SCOPED)),
    case("where the function is given names", *IN_FUNCTION, ("tower_loss():", "tower_loss(scope):"), (CALL, CALL.replace("()", "(scope=scope)"))),
    case("by a parameter of the function", *IN_FUNCTION, ("tower_loss():\n    x, y = rows_of(2)", "tower_loss(scope, size):\n    x, y = rows_of(size)"), (CALL, CALL.replace("()", "(scope, size=2)"))),
    case("by the tower's number, as a parameter", *IN_FUNCTION, ("(size):", "(size, tower):"), ("% 7 * 0.1", "% (7 + tower) * 0.1"), ("tower_loss():\n    x, y = rows_of(2)", "tower_loss(k):\n    x, y = rows_of(2, k)"), (CALL, CALL.replace("()", "(i)"))),
    case("under a device", *IN_LOOP, (OWN, "                    with tf.device('/cpu:0'):\n                        x, y = rows_of(2)\n")),
    case("under a device in the function", *IN_FUNCTION, ("    x, y = rows_of(2)\n", "    # On the host.\n    with tf.device('/cpu:0'):\n        x, y = rows_of(\n            2)\n\n")),
    case("some of which it gives back", *IN_FUNCTION, ("    return tf.reduce_mean(tf.square(net(x) - y))\n", "    out = net(x)\n    return tf.reduce_mean(tf.square(out - y)), out\n"),
         (CALL, "                    loss, out = tower_loss()\n")),
    case("by an iterator, in three statements", *ITERATED, (SLICES, "                    dataset = data(2)\n                    rows = dataset.make_one_shot_iterator()\n                    x, y = rows.get_next()\n")),
    case("by an iterator, in the function", *ITERATED, (BATCH, TOWER.replace("    x, y = rows_of(2)\n", "    rows = tf.data.make_one_shot_iterator(data(2))\n    x, y = rows.get_next()\n") + BATCH), (SLICES + FORWARD, CALL)),
    case("by one expression", *ITERATED, (SLICES, "                    x, y = tf.data.make_one_shot_iterator(data(2)).get_next()\n")),
    case("that shuffle by a seed of their own", *ITERATED, (".repeat()", ".shuffle(16, seed=3).repeat()"), (SLICES, "                    x, y = data(2).make_one_shot_iterator().get_next()\n")),
    case("that are read behind the towers", *IN_LOOP, (SAVER, SAVER + "    largest = tf.reduce_max(x)\n"), (RUN, RUN.replace("_, value", "_, value, top").replace("loss]", "loss, largest]")), ("'step', step", "'step', step, top")),
    case("that have one value", *IN_LOOP, (", y = rows_of(2)", " = rows_of(2)"), ("[x, y], size)", "[x], size)"), ("out - y", "out - tf.reduce_sum(x, 1, keepdims=True)")),
    case("other ones for each tower", *IN_LOOP, ("(size):", "(size, tower):"), ("% 7 * 0.1", "% (7 + tower) * 0.1"), ("rows_of(2)", "rows_of(2, i)")),
    case("that end", *IN_LOOP, *EPOCHS),
    case("by a record, with a line printed", *IN_LOOP, (READ, RECORD)),
    case("with what they summarize", *IN_LOOP, *SUMMARIZED),
    case("with what they show", *IN_FUNCTION, ("    return tf.train.batch([x, y], size)\n", "    x, y = tf.train.batch([x, y], size)\n" + IMAGES + "    return x, y\n"), *SUMMARIZED),
    case("with an iterator's images", *ITERATED, (SLICES, "                    x, y = shown(2)\n"), *SUMMARIZED,
         (BATCH, "def shown(size):\n    x, y = data(size).make_one_shot_iterator().get_next()\n" + IMAGES + "    return x, y\n\n\n" + BATCH)),
    case("with summaries of a setting", *IN_LOOP, *BY_SETTING),
    case("without the summaries of a setting", *IN_LOOP, *BY_SETTING, ("'log', True", "'log', False")),
    case("with a saver that splits its files", *IN_LOOP, ("tf.train.Saver()", "tf.train.Saver(tf.global_variables(), sharded=True)"), (INIT, "        tf.gfile.MakeDirs('ckpt')\n" + INIT)),
    case("whose summaries nobody reads", *IN_LOOP, ("    return tf.train.batch([x, y], size)\n", "    x, y = tf.train.batch([x, y], size)\n" + IMAGES + "    return x, y\n")),
]  # fmt: skip

VARIABLE = (
    "    return tf.train.batch([x, y], size)\n",
    "    scale = tf.get_variable('scale', [], initializer=tf.constant_initializer(1.0))\n    return tf.train.batch([x * scale, y], size)\n",
)
LEFT = [
    other("that make a variable", "TM208", *IN_LOOP, VARIABLE),
    other("that add to a collection", "TM208", *IN_LOOP, (ROWS, ROWS + "    tf.add_to_collection('losses', tf.constant(0.5))\n")),
    other("that count in Python", "TM208", *IN_LOOP, (ROWS, "    global total\n    total = size\n" + ROWS)),
    other("by an object", "TM208", *IN_LOOP, (ROWS, ROWS + "    rows = source.prepared(rows)\n")),
    other("of one list of rows for all towers", "TM208", *IN_LOOP, ("    tower_grads = []\n", "    order = tf.train.range_input_producer(16, shuffle=False)\n    tower_grads = []\n"),
          ("rows_of(2)", "rows_of(2, order)"), ("(size):", "(size, order):"), ("    x, y = tf.train.slice_input_producer([rows, rows.sum(1, keepdims=True)], shuffle=False)\n", "    x = tf.gather(rows, order.dequeue())\n    y = tf.reduce_sum(x, keepdims=True)\n")),
    other("of what the tower made", "TM208", *IN_LOOP, (OWN, "                    size = 2 * (1 + tf.get_variable_scope().reuse)\n" + OWN), ("rows_of(2)", "rows_of(size)")),
    other("of which one is not read", "TM225", *IN_LOOP, ("out - y", "out - tf.reduce_sum(x, 1, keepdims=True)")),
    other("that are fetched", "TM209", *IN_LOOP, (RUN, RUN.replace("_, value", "_, value, top").replace("loss]", "loss, x]"))),
    other("that count what the model reads", "TM224", *IN_LOOP, (ROWS, ROWS + "    drawn[0] += 1\n"), ("tf.matmul(x, w) + b", "tf.matmul(x, w) + b * drawn[0]")),
    other("that wait for an operation", "TM208", *IN_LOOP, (OWN, "                    with tf.control_dependencies([tf.no_op()]):\n                        x, y = rows_of(2)\n")),
    other("of the tower's device", "TM208", *IN_LOOP, ("for i in range(2):", "for i, where in enumerate(DEVICES):"), ("(size):", "(size, where):"), ("rows_of(2)", "rows_of(2, where)")),
    other("of a value of the module's graph", "TM208", *IN_LOOP, ("drawn = [0]", "drawn = [0]\nshift = tf.constant(0.5)"), ("    return tf.train.batch([x, y], size)\n", "    return tf.train.batch([x + shift, y], size)\n")),
    other("with all summaries merged", "TM219", *IN_LOOP, (SAVER, "    tf.summary.scalar('count', step_count)\n    merged = tf.summary.merge_all()\n" + SAVER), (RUN, RUN.replace("_, value", "_, value, _").replace("loss]", "loss, merged]"))),
    other("bound twice", "TM208", *IN_LOOP, (OWN, OWN + OWN)),
    other("for some towers", "TM214", *IN_LOOP, (OWN, "                    if i == 0:\n                        x, y = rows_of(2)\n")),
    other("behind a variable in the function", "TM208", *IN_FUNCTION, ("    x, y = rows_of(2)\n", "    tf.get_variable('early', [], initializer=tf.constant_initializer(1.0))\n    x, y = rows_of(2)\n")),
    other("by a parameter that the function binds anew", "TM208", *IN_FUNCTION, ("tower_loss():\n    x, y = rows_of(2)", "tower_loss(size):\n    x, y = rows_of(size)\n    size = 3"), (CALL, CALL.replace("()", "(2)"))),
    other("by what a call gives for a parameter", "TM208", *IN_FUNCTION, ("tower_loss():\n    x, y = rows_of(2)", "tower_loss(size):\n    x, y = rows_of(size)"), (CALL, CALL.replace("()", "(int(2))"))),
    other("under a device, with an operation beside", "TM208", *IN_FUNCTION, ("    x, y = rows_of(2)\n", "    with tf.device('/cpu:0'):\n        x, y = rows_of(2)\n        tf.add_to_collection('rows', x)\n")),
    other("in a function that is called elsewhere", "TM208", *IN_FUNCTION, (SAVER, "    other = tower_loss()\n" + SAVER)),
    other("of names that the caller has", "TM208", *IN_FUNCTION, ("    tower_grads = []\n", "    x = 3\n    tower_grads = []\n")),
    other("that a run needs of the last tower alone", "TM225", *IN_LOOP, (RUN, RUN + "            print('%.5f' % sess.run(loss))\n")),
    other("in the order that a seed of the graph fixes", "TM232", *IN_LOOP, ("    step_count", "    tf.set_random_seed(3)\n    step_count")),
    other("with summaries fetched beside the loss", "TM219", *IN_LOOP, *SUMMARIZED, ("writer.add_summary(sess.run(merged), step)", "shown, late = sess.run([merged, loss])\n                writer.add_summary(shown, step)")),
    other("with summaries merged by parts", "TM219", *IN_LOOP, *SUMMARIZED, ("merge(summaries)", "merge(summaries[1:])")),
    other("with summaries of a setting, run without", "TM225", *IN_LOOP, *BY_SETTING, ("            if FLAGS.log:\n                if step", "            if True:\n                if step")),
    other("with summaries of a setting, run under another", "TM225", *IN_LOOP, *BY_SETTING, ("            if FLAGS.log:\n                if step", "            if FLAGS.more:\n                if step")),
    other("with summaries of a setting, run where it is off", "TM225", *IN_LOOP, *BY_SETTING, ("            if FLAGS.log:\n                if step", "            if FLAGS.log:\n                pass\n            else:\n                if step")),
    other("with summaries of a setting that changes", "TM225", *IN_LOOP, *BY_SETTING, (STEPS, "        FLAGS.log = True\n" + STEPS)),
    other("with summaries of a setting that is set by its name", "TM225", *IN_LOOP, *BY_SETTING, (STEPS, "        FLAGS['log'].value = True\n" + STEPS)),
    other("with summaries of a global name", "TM225", *IN_LOOP, *BY_SETTING, ("FLAGS.log", "drawn[0] < 9")),
    other("with summaries that are counted", "TM219", *IN_LOOP, *SUMMARIZED, (SAVER, SAVER + "    print(len(summaries))\n")),
]  # fmt: skip


IN_CLASS = [
    each
    for each in TAKEN
    if each.id
    in ("in the loop", "behind its docstring, on several lines", "by an iterator, in the function")
]


@pytest.mark.parametrize("changes", TAKEN)
def test_it_is_in_loop_style(changes: tuple[Change, ...]) -> None:
    takes(changes)


@pytest.mark.parametrize("changes", IN_CLASS)
def test_it_is_in_loop_style_in_a_class(changes: tuple[Change, ...]) -> None:
    takes(changes, of_class)


@pytest.mark.parametrize(("changes", "rule"), LEFT)
def test_its_neighbour_is_not(changes: tuple[Change, ...], rule: str) -> None:
    leaves(changes, rule)


def test_that_a_saver_no_longer_splits_its_files_is_said() -> None:
    changes = next(
        each.values[0] for each in TAKEN if each.id == "with a saver that splits its files"
    )
    (result,) = rewrite_tree(program(*changes)).programs
    assert "TM314" in [one.rule for one in result.findings]


def test_one_of_them_does_the_same_rewritten() -> None:
    all_do_the_same([each for each in TAKEN if each.id == "other ones for each tower"])


@pytest.mark.full
def test_all_of_them_do_the_same_rewritten() -> None:
    all_do_the_same(TAKEN)


@pytest.mark.full
def test_classes_do_the_same_rewritten() -> None:
    all_do_the_same(IN_CLASS, of_class)
