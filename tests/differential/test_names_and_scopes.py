"""Parts, losses and optimizers without a name, scopes around the towers, rates read alone: what loop style takes, and neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

SLICES = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
MARGIN = "                    "
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SHOWN = "            print('step', step, 'loss', '%.6f' % value)\n"
TOWERS = "    tower_grads = []\n"
SCOPE = "    with tf.variable_scope(tf.get_variable_scope()):\n"
LOOP = "        for i in range(2):\n"
REUSE = "                    tf.get_variable_scope().reuse_variables()\n"
GRADS = (
    "                    grads = opt.compute_gradients(loss)\n"
    "                    tower_grads.append(grads)\n"
    "    grads = average_gradients(tower_grads)\n"
    "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
)
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
STEP = "    step_count = tf.train.get_or_create_global_step()\n"
UPDATE = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
UNDER: tuple[Change, ...] = ((UPDATE, "    with tf.name_scope('train'):\n    " + UPDATE),)
SAVER = "    saver = tf.train.Saver()\n"
GATHERED = ((LOSS, LOSS + f"{MARGIN}tf.add_to_collection('shown', loss)\n"),)
MADE = "def batch(rows):\n"
OWN = """\
class Graph(object):
    def finalize(self):
        print('closed')


class Keeper(object):
    def __init__(self):
        self.graph = Graph()

    def save(self, path, write_meta_graph=True):
        print('kept', path, write_meta_graph)


"""
COUNT = """\
        count = 0
        for v in tf.trainable_variables():
            size = 1
            for d in {}:
                size *= d.value
            count += size
        print('parameters', count)
"""
RATE = "    rate = tf.train.exponential_decay(0.2, step_count, 2, 0.5)\n"
RATED = (OPT, RATE + OPT.replace("0.1,", "rate,"))


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def behind(*lines: str) -> Change:
    """More lines behind what each step prints."""
    return SHOWN, SHOWN + "".join(f"            {line}\n" for line in lines)


def penalty(test: str) -> Change:
    """A penalty of the weights whose names pass a test, in the tower."""
    of = f"[tf.nn.l2_loss(v) for v in tf.trainable_variables() if {test}]"
    return LOSS, LOSS + f"{MARGIN}loss = loss + 0.01 * tf.add_n({of} or [0.0])\n"


def parts(x: str, y: str) -> Change:
    return SLICES, f"{MARGIN}x, y = {x}, {y}\n"


def of_mean(update: str, *before: str) -> tuple[Change, ...]:
    """The mean of the towers' losses is trained."""
    text = f"{MARGIN}losses.append(loss)\n    loss = tf.reduce_mean(losses)\n"
    text += "".join(f"    {line}\n" for line in before) + f"    {update}\n"
    return (GRADS, text), (TOWERS, "    losses = []\n")


def within(scope: str, reuse: str = "tf.get_variable_scope()") -> tuple[Change, ...]:
    return (SCOPE, f"    with {scope}:\n"), (REUSE, f"{MARGIN}{reuse}.reuse_variables()\n")


LISTED: tuple[Change, ...] = (
    (TOWERS, TOWERS + "    losses = []\n"),
    (GRADS, f"{MARGIN}losses.append(loss)\n" + GRADS),
)
NAMELESS = (LOSS, ""), ("losses.append(loss)", "losses.append(tf.reduce_mean(tf.square(out - y)))")

SHARED: tuple[Change, ...] = (
    (SCOPE, "    with tf.variable_scope('net', reuse=tf.AUTO_REUSE):\n"),
    (REUSE, ""),
)
OUT = "    return tf.matmul(x, w) + b\n"
LAYER = "tf.layers.dense(x, 1, kernel_initializer=init(3, 1))"
UNNAMED = "    with tf.variable_scope(None, default_name='part'):\n        v = tf.get_variable('v', [3, 1], initializer=init(3, 1))\n    return tf.matmul(x, w + v) + b\n"
STARTLESS: tuple[Change, ...] = (
    (", initializer=init(3, 1))", ")"),
    (", initializer=tf.constant_initializer(0.1))", ")"),
)

TAKEN = [
    case("a penalty by how names begin", penalty("v.name.startswith('w')")),
    case("a penalty by how names do not begin", penalty("not v.name.startswith('b')")),
    case("a penalty by how names begin, with a scope", penalty("not v.name.startswith('w/v')")),
    case("split in the towers", parts("tf.split(X, 2)[i]", "tf.split(Y, 2)[i]")),
    case("split in the towers, along a written axis", parts("tf.split(X, 2, axis=0)[i]", "tf.split(Y, 2, 0)[i]")),
    case("split once of two", parts("tf.split(X, 2)[i]", "Y[i * 2:(i + 1) * 2]")),
    case("the scope by its name", *within("tf.variable_scope(tf.get_variable_scope()) as vs", "vs")),
    case("a scope around", *within("tf.variable_scope('model')")),
    case("a scope around, by its name", *within("tf.variable_scope('model') as vs", "vs")),
    case("a scope around, split in the towers", *within("tf.variable_scope('model') as vs", "vs"), parts("tf.split(X, 2)[i]", "tf.split(Y, 2)[i]")),
    case("a scope around, with what variables start from", *within("tf.variable_scope('model', initializer=tf.constant_initializer(0.3))"), *STARTLESS),
    case("by a name", *within("tf.variable_scope('model', reuse=None, initializer=starts)"), *STARTLESS, (TOWERS, TOWERS + "    starts = tf.random_uniform_initializer(-0.1, 0.1, seed=3)\n")),
    case("by a name of the module", *within("tf.variable_scope('model', reuse=False, initializer=tf.random_normal_initializer(stddev=-SCALE * 2, seed=3))"), *STARTLESS, ("DEVICES = ", "SCALE = -0.1\nDEVICES = ")),
    case("by settings", *within("tf.variable_scope('model', initializer=tf.random_uniform_initializer(-Config.scale, Config.scale, seed=3)) as vs", "vs"), *STARTLESS, ("DEVICES = ", "class Config(object):\n    scale = 0.1\n\n\nDEVICES = ")),
    case("in the scope of all", *within("tf.variable_scope(tf.get_variable_scope(), initializer=tf.constant_initializer(0.3))"), *STARTLESS),
    case("losses without a name", *of_mean("train_op = opt.minimize(loss, step_count)"), *NAMELESS),
    case("losses of arithmetic", *of_mean("train_op = opt.minimize(loss, step_count)"), (LOSS, ""), ("losses.append(loss)", "losses.append(0.5 * tf.reduce_mean(tf.square(out - y)))")),
    case("losses without a name, in lines", *of_mean("train_op = opt.minimize(loss, step_count)"), (LOSS, ""), ("losses.append(loss)", "losses.append(\n" + MARGIN + "    tf.reduce_mean(tf.square(out - y)))")),
    case("an optimizer without a name", *of_mean("train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step_count)"), (OPT, "")),
    case("an optimizer without a name, in lines", *of_mean("train_op = tf.train.MomentumOptimizer(\n        0.1, 0.9).minimize(\n            loss, global_step=step_count)"), (OPT, "")),
    case("a step of that name", *of_mean("train_step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step_count)"), (OPT, ""), (RUN, RUN.replace("train_op", "train_step"))),
    case("a rate alone", RATED, behind("print('%.6f' % sess.run(rate))")),
    case("a rate alone, in a text", RATED, behind("print(f'{step} {sess.run(rate):.5f}')")),
    case("a rate before the first step", RATED, (INIT, INIT + "        print('%.6f' % sess.run(rate))\n")),
    case("a rate and the step", RATED, behind("r, s = sess.run([rate, step_count])", "print('%.6f %d' % (r, s))")),
    case("the step by TensorFlow's function", behind("print(tf.train.global_step(sess, step_count))")),
    case("the step by TensorFlow's function, counted with", behind("if tf.train.global_step(sess, step_count) % 2 == 0:", "    print('even')")),
    case("an update in a scope of names", *UNDER),
    case("logging of the program's own", ("import numpy as np\n", "import logging\nimport sys\n\nimport numpy as np\n"), ("DEVICES = ", "logging.basicConfig(level=logging.INFO, stream=sys.stdout)\nDEVICES = ")),
    case("all variables at once", behind("print([a.sum() for a in sess.run(tf.trainable_variables())])")),
    case("all variables one by one, in a list", behind("print(max([np.abs(sess.run(v)).max() for v in tf.trainable_variables()]))")),
    case("all variables by their names", behind("print(sorted(sess.run({v.op.name: v for v in tf.trainable_variables()})))")),
    case("all variables, listed", behind("print([a.shape for a in sess.run([v for v in tf.trainable_variables()])])")),
    case("all variables by their names, beside another list of that name", behind("kept = {v.name: sess.run(v) for v in tf.trainable_variables()}", "print(sorted(kept), [round(float(v), 4) for v in [value]])")),
    case("all variables one by one, beside another list of that name", behind("for v in tf.trainable_variables():", "    print(v.op.name, sess.run(v).sum())", "print([v * 2 for v in drawn])")),
    case("some variables, listed", behind("print([a.shape for a in sess.run([v for v in tf.trainable_variables() if 'w' in v.op.name])])")),
    case("a list of variables by its name", (SAVER, SAVER + "    weights = tf.trainable_variables()\n"), behind("print([a.sum() for a in sess.run(weights)])")),
    case("values that a collection gathers", *GATHERED, (GRADS, GRADS + "    mean = tf.add_n(tf.get_collection('shown')) / 2\n"), behind("print('%.6f' % sess.run(mean, feed_dict={X: bx, Y: by}))")),
    case("values that a collection gathers, under a name", *GATHERED, (GRADS, GRADS + "    shown = tf.get_collection('shown')\n    mean = tf.reduce_mean(shown)\n"), (RUN, RUN.replace("value = ", "value, m = ").replace("loss]", "loss, mean]")), behind("print('%.6f' % m)")),
    case("a graph that is closed", (INIT, INIT + "        tf.get_default_graph().finalize()\n")),
    case("a session's graph that is closed", (INIT, INIT + "        sess.graph.finalize()\n")),
    case("a graph that is not written", ("saver.save(sess, 'ckpt/model')", "saver.save(sess, 'ckpt/model', global_step=step_count, write_meta_graph=False)")),
    case("objects with methods of those names", (MADE, OWN + MADE), ("        saver.save(sess, 'ckpt/model')\n", "        saver.save(sess, 'ckpt/model')\n        keeper = Keeper()\n        keeper.save('x', write_meta_graph=False)\n        keeper.graph.finalize()\n")),
    case("a saver without a name", (SAVER, ""), ("        saver.save(sess, 'ckpt/model')\n", "        tf.train.Saver().save(sess, 'ckpt/model')\n")),
    case("a saver without a name, with settings", (SAVER, ""), ("        saver.save(sess, 'ckpt/model')\n", "        tf.train.Saver(max_to_keep=2).save(sess, 'ckpt/model', global_step=4)\n")),
    case("the last of the losses", *LISTED, (RUN, RUN.replace("loss]", "losses[-1]]"))),
    case("the first of the losses", *LISTED, (RUN, RUN.replace("loss]", "losses[0]]"))),
    case("a scope around that shares", (SCOPE, SCOPE.replace("())", "(), reuse=tf.AUTO_REUSE)")), (REUSE, "")),
    case("a scope of a name around that shares", (SCOPE, "    with tf.variable_scope('net', reuse=tf.AUTO_REUSE):\n"), (REUSE, "")),
    case("a scope of a name around that shares, and a layer without one in a scope", *SHARED, (OUT, f"    with tf.variable_scope('part'):\n        return tf.matmul(x, w) + b + {LAYER}\n")),
    case("a scope without a name in one that each tower enters", (SCOPE, "    if True:\n"), (REUSE, ""), ("    if True:\n        for i", "    for i"), ("            with tf.device('/gpu:%d' % i):\n                with tf.name_scope('tower_%d' % i) as scope:", "        with tf.device('/gpu:%d' % i):\n                with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):"), (OUT, UNNAMED)),
    case("a step that is made behind the towers", (STEP, ""), (UPDATE, STEP + UPDATE)),
    case("parameters counted", (INIT, INIT + COUNT.format("v.get_shape()"))),
    case("parameters counted, by a name", (INIT, INIT + COUNT.format("shape").replace("            size = 1\n", "            shape = v.shape\n            size = 1\n"))),
    case("a statement on the line of the average", ("    grads = average_gradients(tower_grads)\n", "    grads = average_gradients(tower_grads); print('averaged')\n")),
    case("statements that share a line", (LOSS + REUSE, LOSS[:-1] + "; tf.get_variable_scope().reuse_variables()\n")),
    case("names printed, and the same name in a comprehension", (INIT, INIT + "        print(sum(int(np.prod(v.shape.as_list())) for v in tf.trainable_variables()))\n        for v in tf.trainable_variables():\n            print(v.name, v.get_shape().as_list())\n")),
]  # fmt: skip

LEFT = [
    other("a penalty by a beginning that copies alone have", "TM227", penalty("v.name.startswith('w/')")),
    other("a penalty by a beginning with a number of a copy", "TM227", penalty("v.name.startswith('w/replica_1')")),
    other("a penalty by part of the beginning of a copy", "TM227", penalty("not v.name.startswith('w/rep')")),
    other("a penalty by a whole name", "TM227", penalty("v.name.startswith('w:')")),
    other("a penalty by how names end", "TM227", penalty("v.name.endswith('w:0')")),
    other("a penalty by one of two beginnings", "TM227", penalty("v.name.startswith(('w', 'v'))")),
    other("the last of the losses, bound anew", "TM209", *LISTED, (UPDATE, UPDATE + "    loss = tf.add_n(losses)\n"), (RUN, RUN.replace("loss]", "losses[-1]]"))),
    other("the last of losses of some towers", "TM209", *LISTED[:1], (GRADS, f"{MARGIN}if i == 0:\n{MARGIN}    losses.append(loss)\n" + GRADS), (RUN, RUN.replace("loss]", "losses[-1]]"))),
    other("the last of the losses, bound anew in the tower", "TM209", *LISTED[:1], (GRADS, f"{MARGIN}losses.append(loss)\n{MARGIN}loss = loss * 2.0\n" + GRADS), (RUN, RUN.replace("loss]", "losses[-1]]"))),
    other("the last of losses that are changed", "TM209", *LISTED, (UPDATE, UPDATE + "    losses.reverse()\n"), (RUN, RUN.replace("loss]", "losses[-1]]"))),
    other("a saver without a name in a loop", "TM205", (SHOWN, SHOWN + "            tf.train.Saver().save(sess, 'ckpt/more')\n")),
    other("a step that is made behind the towers, and listed", "TM211", (STEP, ""), (UPDATE, STEP + UPDATE), behind("print([v.op.name for v in tf.global_variables()])")),
    other("Adam's update in a scope of names", "TM211", *UNDER, (OPT, "    opt = tf.train.AdamOptimizer(0.1)\n")),
    other("a step in a scope of names", "TM211", (STEP, "    with tf.name_scope('train'):\n        step_count = tf.Variable(0, trainable=False, name='step')\n")),
    other("two variables without a name", "TM211", (STEP, "    step_count = tf.Variable(0, trainable=False)\n    other = tf.Variable(1.0, trainable=False)\n")),
    other("a variable with the name of one of the model", "TM211", (STEP, "    step_count = tf.Variable(0, trainable=False, name='w')\n")),
    other("a collection that a function reads too", "TM219", *GATHERED, ("def train():", "def shown():\n    return tf.get_collection('shown')\n\n\ndef train():"), (GRADS, GRADS + "    mean = tf.add_n(tf.get_collection('shown')) / 2\n"), behind("print(sess.run(mean, feed_dict={X: bx, Y: by}), len(shown()))")),
    other("a collection by a name", "TM219", *GATHERED, (GRADS, GRADS + "    key = 'shown'\n    mean = tf.add_n(tf.get_collection(key)) / 2\n"), behind("print(sess.run(mean, feed_dict={X: bx, Y: by}))")),
    other("a collection that functions of the towers fill too", "TM219", *GATHERED, ("    return tf.matmul(x, w) + b\n", "    tf.add_to_collection('shown', tf.reduce_sum(w))\n    return tf.matmul(x, w) + b\n"), (GRADS, GRADS + "    mean = tf.add_n(tf.get_collection('shown')) / 2\n"), behind("print(sess.run(mean, feed_dict={X: bx, Y: by}))")),
    other("TensorFlow's own collection", "TM219", *((old, new.replace("'shown'", "'losses'")) for old, new in GATHERED), (GRADS, GRADS + "    mean = tf.add_n(tf.get_collection('losses')) / 2\n"), behind("print(sess.run(mean, feed_dict={X: bx, Y: by}))")),
    other("variables listed before the towers", "TM209", (TOWERS, TOWERS + "    weights = tf.trainable_variables()\n"), behind("print(len(sess.run(weights)))")),
    other("split of what the tower makes", "TM227", parts("tf.split(X * 2.0, 2)[i]", "tf.split(Y, 2)[i]")),
    other("the other part", "TM227", parts("tf.split(X, 2)[1 - i]", "tf.split(Y, 2)[i]")),
    other("a scope around, without reuse", "TM218", (SCOPE, "    with tf.variable_scope('model'):\n"), (REUSE, "")),
    other("a layer without a name in a scope around that shares", "TM218", *SHARED, (OUT, f"    return {LAYER}\n")),
    other("a layer without a name in the scope itself, around", "TM218", (SCOPE, SCOPE.replace("())", "(), reuse=tf.AUTO_REUSE)")), (REUSE, ""), (OUT, f"    return {LAYER}\n")),
    other("a scope without a name in a scope around that shares", "TM218", *SHARED, (OUT, UNNAMED)),
    other("a scope without a name around one that shares", "TM218", (SCOPE + LOOP, "    for i in range(2):\n"), (REUSE, ""), ("    w = tf.get_variable", "  with tf.variable_scope(None, default_name='part'), tf.variable_scope('own', reuse=tf.AUTO_REUSE):\n    w = tf.get_variable")),
    other("a session's configuration that is said to be made", "TM223", ("def batch(rows)", "def settings():\n    print('made')\n    return tf.ConfigProto(allow_soft_placement=True)\n\n\ndef batch(rows)"), ("config=tf.ConfigProto(allow_soft_placement=True)", "config=settings()")),
    other("a session's configuration that is counted", "TM223", ("def batch(rows)", "def settings():\n    drawn[0] += 1\n    return tf.ConfigProto(allow_soft_placement=True)\n\n\ndef batch(rows)"), ("config=tf.ConfigProto(allow_soft_placement=True)", "config=settings()")),
    other("another scope's reuse", "TM211", (SCOPE, "    with tf.variable_scope('other') as vs:\n        pass\n    with tf.variable_scope('model'):\n"), (REUSE, f"{MARGIN}vs.reuse_variables()\n")),
    other("a scope around more than the towers", "TM201", *within("tf.variable_scope('model')"), (LOOP, "        extra = tf.get_variable('extra', [])\n" + LOOP)),
    other("a scope around, with what variables start from, which a tower sets", "TM201", *within("tf.variable_scope('model', initializer=starts)"), *STARTLESS, (TOWERS, TOWERS + "    starts = tf.constant_initializer(0.3)\n"), (LOSS, LOSS + f"{MARGIN}starts = tf.constant_initializer(0.4)\n")),
    other("which is bound twice", "TM201", *within("tf.variable_scope('model', initializer=starts)"), *STARTLESS, (TOWERS, TOWERS + "    starts = tf.constant_initializer(0.3)\n"), (UPDATE, UPDATE + "    starts = None\n")),
    other("which a function of such a name gives", "TM201", *within("tf.variable_scope('model', initializer=my_initializer())"), *STARTLESS, ("def batch(rows)", "def my_initializer():\n    drawn[0] += 1\n    return tf.constant_initializer(0.3)\n\n\ndef batch(rows)")),
    other("which a function gives", "TM201", *within("tf.variable_scope('model', initializer=starts())"), *STARTLESS, ("def batch(rows)", "def starts():\n    print('made')\n    return tf.constant_initializer(0.3)\n\n\ndef batch(rows)")),
    other("with a regulariser", "TM201", *within("tf.variable_scope('model', regularizer=lambda v: tf.nn.l2_loss(v))")),
    other("a scope around that is named in summaries", "TM201", *within("tf.variable_scope('model')"), (LOSS, LOSS + f"{MARGIN}tf.summary.scalar('loss', loss)\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
