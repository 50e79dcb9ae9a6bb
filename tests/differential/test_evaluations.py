"""Evaluations that are built behind the towers: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
FORWARD = "                    out = net(x)\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
MODEL = "def net(x):\n"
OUTER = "    with tf.variable_scope(tf.get_variable_scope()):\n"
REUSED = "                    tf.get_variable_scope().reuse_variables()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SAVER = "    saver = tf.train.Saver()\n"
START = "    tower_grads = []\n"

FED = "    test_x = tf.placeholder(tf.float32, [None, 3])\n"
BOTH = FED + "    test_y = tf.placeholder(tf.float32, [None, 1])\n"
REUSE = "    with tf.variable_scope(tf.get_variable_scope(), reuse=True):\n"
BUILT = REUSE + "        test_out = net(test_x)\n"
ROWS = "np.arange(9).reshape(3, 3) * 0.1"
SHOWN = "            print('test', np.round({}, 5).tolist())\n"
LOOK = SHOWN.format(f"sess.run(test_out, feed_dict={{test_x: {ROWS}}})")
ERROR = "    error = tf.reduce_mean(tf.abs(test_out - test_y))\n"
LAYERS = """\
def net(x, training=True):
    with tf.variable_scope('layers'):
        h = tf.layers.dense(x, 4, kernel_initializer=init(3, 4), activation=tf.nn.tanh)
        h = tf.layers.dense(h, 4, kernel_initializer=init(4, 4), use_bias=False)
        h = tf.layers.dropout(h, rate=0.5, training=False)
        return tf.layers.dense(h, 1, kernel_initializer=init(4, 1))


def old(x):
"""
LOOPED = """\
def net(x):
    for i in range(3):
        with tf.variable_scope('layer%d' % i):
            w = tf.get_variable('w', [3, 3], initializer=init(3, 3))
            x = tf.nn.tanh(tf.matmul(x, w))
    return tf.reduce_sum(x, 1, keepdims=True)


def old(x):
"""
BY_FLAG = "def net(x, reuse=None):\n  with tf.variable_scope('net', reuse=reuse):\n"
AUTO = "def net(x):\n  with tf.variable_scope('net', reuse=tf.AUTO_REUSE):\n"
MORE = """\
def more(x):
    with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
        return net(x) {}


def batch(rows):
"""


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def built(text: str) -> Change:
    """Statements behind the towers."""
    return (APPLIED, APPLIED + text)


def looked(text: str) -> Change:
    """Statements of each step."""
    return (RUN, RUN + text)


LOOKED = looked(LOOK)

TAKEN = [
    case("of its own placeholder", built(FED + BUILT), LOOKED),
    case("of a scope's own name", built(FED + "    with tf.variable_scope('net', reuse=True):\n        test_out = net(test_x)\n"), LOOKED,
         (FORWARD, "                    with tf.variable_scope('net', reuse=i > 0):\n                        out = net(x)\n"), (REUSED, "")),
    case("reuse that is switched on", built(FED + "    tf.get_variable_scope().reuse_variables()\n    test_out = net(test_x)\n"), LOOKED),
    case("reuse as an argument", built(FED + "    test_out = net(test_x, reuse=True)\n"), LOOKED, (MODEL, BY_FLAG), (REUSED, ""),
         (FORWARD, FORWARD.replace("net(x)", "net(x, reuse=i > 0)"))),
    case("AUTO_REUSE", built(FED + "    test_out = net(test_x)\n"), LOOKED, (MODEL, AUTO), (REUSED, "")),
    case("before the average", (AVERAGED, FED + BUILT + AVERAGED), LOOKED),
    case("of what the towers are fed", built(REUSE + "        test_out = net(X)\n    error = tf.reduce_mean(tf.abs(test_out - Y))\n"),
         looked(SHOWN.format(f"sess.run(error, feed_dict={{X: {ROWS}, Y: [[1], [2], [3]]}})"))),
    case("of the whole batch", built(REUSE + "        whole = net(X)\n"), looked(SHOWN.format("sess.run(whole, feed_dict={X: bx})"))),
    case("several values", built(BOTH + BUILT + ERROR),
         looked(f"            a, b = sess.run([test_out, error], feed_dict={{test_x: {ROWS}, test_y: [[1.0], [2.0], [3.0]]}})\n" + SHOWN.format("a") + SHOWN.format("b"))),
    case("several runs", built(BOTH + BUILT + ERROR), LOOKED,
         ("        saver.save", f"        tx, ty = {ROWS}, np.ones([3, 1])\n        print('%.5f' % sess.run(error, {{test_x: tx, test_y: ty}}))\n        saver.save")),
    case("a list of one", built(FED + BUILT), looked(SHOWN.format(f"sess.run([test_out], feed_dict={{test_x: {ROWS}}})[0]"))),
    case("a list used whole", built(FED + BUILT + "    best = tf.argmax(test_out, 0)\n"), looked(f"            print([np.round(v, 5).tolist() for v in sess.run([best, test_out], {{test_x: {ROWS}}})])\n")),
    case("a dict with a name", built(FED + BUILT), looked(f"            given = {{test_x: {ROWS}}}\n" + SHOWN.format("sess.run(test_out, feed_dict=given)"))),
    case("before the first step", built(FED + BUILT), ("        for step in range(4):\n", LOOK[4:] + "        for step in range(4):\n")),
    case("whole numbers", built(FED + BUILT), looked(SHOWN.format("sess.run(test_out, feed_dict={test_x: [[1, 2, 3]]})"))),
    case("more rows than before", built(FED + BUILT), looked(SHOWN.format("sess.run(test_out, feed_dict={test_x: np.ones([step + 1, 3], np.int64)})"))),
    case("layers without names", built(FED + BUILT), LOOKED, (MODEL, LAYERS)),
    case("another argument", built(FED + BUILT.replace("net(test_x)", "net(test_x, training=False)")), LOOKED, (MODEL, LAYERS)),
    case("scopes with numbers", built(FED + BUILT), LOOKED, (MODEL, LOOPED)),
    case("scopes with numbers, formatted", built(FED + BUILT), LOOKED, (MODEL, LOOPED.replace("'layer%d' % i", "'layer{}'.format(i)"))),
    case("scopes with numbers, put together", built(FED + BUILT), LOOKED, (MODEL, LOOPED.replace("'layer%d' % i", "'layer' + str(i)"))),
    case("scopes of a list", built(FED + BUILT), LOOKED, (MODEL, LOOPED.replace("'layer%d' % i", "NAMES[i]")),
         ("drawn = [0]\n", "drawn = [0]\nNAMES = ('a', 'b', 'c')\n")),
    case("a variable alone", built(REUSE + "        size = tf.reduce_sum(tf.square(tf.get_variable('w', [3, 1])))\n"), looked(SHOWN.format("sess.run(size)"))),
    case("in a function", built(FED + "    test_out = more(test_x)\n"), LOOKED, ("def batch(rows):\n", MORE.format("* 2.0"))),
    case("in a name scope", built(FED + "    with tf.name_scope('test'):\n" + BUILT.replace("    ", "        ", 1).replace("        test_out", "            test_out")), LOOKED),
    case("beside the step", built(FED + BUILT + "    scaled = test_out * tf.cast(step_count, tf.float32)\n"), looked(LOOK.replace("test_out", "scaled"))),
    case("that no run fetches", built(FED + BUILT)),
    case("twice", built(FED + BUILT + "    with tf.variable_scope(tf.get_variable_scope(), reuse=True):\n        again = test_out + net(test_x * 2.0)\n"), looked(LOOK.replace("test_out", "again"))),
    case("a name that is bound anew", built(FED + BUILT.replace("test_out", "out")), looked(LOOK.replace("test_out", "out"))),
]  # fmt: skip

LEFT = [
    other("a variable of its own", "TM211", built(FED + "    test_out = more(test_x)\n"), LOOKED,
          ("def batch(rows):\n", MORE.format("+ tf.get_variable('more', [1], initializer=tf.constant_initializer(0.5))"))),
    other("a scope of its own", "TM211", built(FED + "    with tf.variable_scope('test', reuse=tf.AUTO_REUSE):\n        test_out = net(test_x)\n"), LOOKED),
    other("a layer of its own", "TM211", built(FED + BUILT + "    test_out = tf.layers.dense(test_out, 1, kernel_initializer=init(1, 1), name='head')\n"), LOOKED),
    other("one layer more", "TM211", built(FED + BUILT), LOOKED,
          (MODEL, LAYERS.replace("        return", "        if not training:\n            h = tf.layers.dense(h, 4, kernel_initializer=init(4, 4))\n        return")),
          ("net(test_x)", "net(test_x, training=False)")),
    other("a layer with a bias", "TM211", built(FED + BUILT.replace("net(test_x)", "net(test_x, training=False)")), LOOKED,
          (MODEL, LAYERS.replace("use_bias=False", "use_bias=not training"))),
    other("a name that is not known", "TM211", built(FED + BUILT), LOOKED, (MODEL, LOOPED.replace("'layer%d' % i", "'layer%s' % NAMES[i]")),
          ("drawn = [0]\n", "drawn = [0]\nNAMES = list('abc')\n")),
    other("a name of a list that is changed", "TM211", built(FED + BUILT), LOOKED, (MODEL, LOOPED.replace("'layer%d' % i", "NAMES[i]")),
          ("drawn = [0]\n", "drawn = [0]\nNAMES = ['a', 'b', 'c']\nNAMES[0] = 'd'\n")),
    other("a variable that some towers may have", "TM211", built(FED + BUILT), LOOKED,
          (MODEL, "def net(x):\n    if WIDE:\n        x = x * tf.get_variable('scale', [3], initializer=tf.constant_initializer(0.9))\n"),
          ("drawn = [0]\n", "drawn = [0]\nWIDE = np.ones(1)[0] > 0\n")),
    other("the step beside it", "TM209", built(FED + BUILT),
          (RUN, f"            _, value, t = sess.run([train_op, loss, test_out], feed_dict={{X: bx, Y: by, test_x: {ROWS}}})\n            print(t.shape)\n")),
    other("the loss beside it", "TM209", built(FED + BUILT),
          looked(f"            a, t = sess.run([loss, test_out], feed_dict={{X: bx, Y: by, test_x: {ROWS}}})\n            print(t.shape)\n")),
    other("a tower's tensor", "TM211", built(FED + BUILT.replace("net(test_x)", "net(test_x) + loss")), looked(SHOWN.format(f"sess.run(test_out, feed_dict={{X: bx, Y: by, test_x: {ROWS}}})"))),
    other("another tensor", "TM209", built(FED + BUILT + "    more = tf.abs(test_out)\n"), looked(SHOWN.format("sess.run(more, feed_dict={test_out: [[1.0]]})"))),
    other("more than it needs", "TM209", built(BOTH + BUILT), looked(SHOWN.format(f"sess.run(test_out, feed_dict={{test_x: {ROWS}, test_y: [[1.0]]}})"))),
    other("less than it needs", "TM209", built(BOTH + BUILT + ERROR), looked(f"            try:\n                sess.run(error, feed_dict={{test_x: {ROWS}}})\n            except Exception:\n                print('not fed')\n")),
    other("behind a run", "TM234", ("        for step in range(4):\n", "        print('%.5f' % sess.run(loss, feed_dict={X: np.ones([4, 3]), Y: np.ones([4, 1])}))\n"
          + "        " + FED.strip() + "\n        test_out = more(test_x)\n        for step in range(4):\n"), LOOKED, ("def batch(rows):\n", MORE.format(""))),
    other("behind the update", "TM211", built(FED + "    with tf.control_dependencies([train_op]):\n" + "        test_out = more(test_x)\n"),
          looked(SHOWN.format(f"sess.run(test_out, feed_dict={{X: bx, Y: by, test_x: {ROWS}}})")), ("def batch(rows):\n", MORE.format(""))),
    other("that trains", "TM220", built(FED + "    test_out = more(test_x)\n"), LOOKED,
          ("def batch(rows):\n", MORE.replace("return net(x) {}", "w = tf.get_variable('w', [3, 1])\n        return tf.assign(w, w * 0.9)"))),
    other("with an optimizer", "TM220", built(FED + "    test_out = more(test_x)\n"), looked(f"            sess.run(test_out, feed_dict={{test_x: {ROWS}}})\n"),
          ("def batch(rows):\n", MORE.replace("return net(x) {}", "opt = tf.train.GradientDescentOptimizer(0.1)\n        return opt.apply_gradients(opt.compute_gradients(tf.reduce_mean(net(x))))"))),
    other("the variables' list", "TM219", built(FED + "    test_out = more(test_x)\n"), LOOKED, ("def batch(rows):\n", MORE.format("+ tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])"))),
    other("a collection", "TM219", built(FED + "    test_out = more(test_x)\n"), LOOKED, ("def batch(rows):\n", MORE.format("+ tf.add_n(tf.get_collection('more'))")),
          (LOSS, LOSS + "                    tf.add_to_collection('more', loss)\n")),
    other("a summary", "TM231", built(FED + BUILT + "    look = tf.summary.scalar('look', tf.reduce_mean(test_out))\n"),
          looked(f"            print(len(sess.run(look, feed_dict={{test_x: {ROWS}}})))\n")),
    other("a name that is bound anew, and read by a function", "TM211", built("    def shown():\n        return out\n\n" + FED + BUILT.replace("test_out", "out")), looked(LOOK.replace("test_out", "shown()"))),
    other("a placeholder that is bound anew", "TM211", built(FED.replace("test_x", "X") + BUILT.replace("test_x", "X")), looked(SHOWN.format(f"sess.run(test_out, feed_dict={{X: {ROWS}}})"))),
    other("its name", "TM223", built(FED + BUILT), (SAVER, SAVER + "    print(test_out.name)\n"), LOOKED),
    other("a flag of the towers", "TM211", built(FED + "    test_out = net(test_x, reuse=again)\n"), LOOKED, (MODEL, BY_FLAG), (REUSED, ""), (START, START + "    again = None\n"),
          (FORWARD, FORWARD.replace("net(x)", "net(x, reuse=again)") + "                    again = True\n")),
    other("a setting that changes", "TM210", built("    rate = 2.0\n" + FED + BUILT.replace("net(test_x)", "net(test_x) * rate") + "    rate = 3.0\n"), LOOKED),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
