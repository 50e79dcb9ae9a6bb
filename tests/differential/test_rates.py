"""Learning rates that are computed in the graph: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SAVER = "    saver = tf.train.Saver()\n"
DEVICES = "DEVICES = ['/gpu:0', '/gpu:1']\n"
STEPS = "        for step in range(4):\n"
APPENDED = "                    tower_grads.append(grads)\n"
COUNT = "tf.cast(step_count, tf.float32)"


def made(*lines: str, optimizer: str = "tf.train.MomentumOptimizer(lr, 0.9)") -> Change:
    return OPT, "".join(f"    {line}\n" for line in (*lines, f"opt = {optimizer}"))


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


WARM = f"lr = 0.1 * tf.minimum({COUNT} / 3.0 + 0.2, 1.0)"
SHOWN = (RUN, "            _, value, rate = sess.run([train_op, loss, lr], feed_dict={X: bx, Y: by})\n            print('%.6f' % rate)\n")  # fmt: skip
WRITTEN = (SAVER, "    tf.summary.scalar('rate', lr)\n    shown = tf.summary.merge_all()\n    writer = tf.summary.FileWriter('log')\n" + SAVER), (RUN, "            _, value, text = sess.run([train_op, loss, shown], feed_dict={X: bx, Y: by})\n            writer.add_summary(text, step)\n")  # fmt: skip
MERGED = (
    (WRITTEN[0][0], WRITTEN[0][1].replace("    tf.summary.scalar('rate', lr)\n", "")),
    WRITTEN[1],
)
MEAN = (
    MERGED[0][0],
    "    loss = tf.reduce_mean(losses)\n    tf.summary.scalar('mean_loss', loss)\n" + MERGED[0][1],
)
FED = ("feed_dict={X: bx, Y: by}", "feed_dict={X: bx, Y: by, part: 0.5 ** step}")
PART = "part = tf.placeholder(tf.float32, [])"

OWN = "lr = tf.Variable(0.05, trainable=False)"
NEW = "new_lr = tf.placeholder(tf.float32, [], name='new_lr')"
DRAW = "            bx, by = batch(4)\n"
SET = (DRAW, "            sess.run(lr_update, feed_dict={new_lr: 0.1 * 0.5 ** step})\n" + DRAW)
ASSIGNED = made(OWN, NEW, "lr_update = tf.assign(lr, new_lr)")

TAKEN = [
    case("fetched alone", made(WARM), (RUN, RUN + "            print('%.6f' % sess.run(lr))\n")),
    case("a variable that runs set", ASSIGNED, SET),
    case("a variable that runs set, by a method", made(OWN, NEW, "lr_update = lr.assign(new_lr)"), SET),
    case("a variable that is loaded", made(OWN), (DRAW, "            lr.load(0.1 * 0.5 ** step, sess)\n" + DRAW)),
    case("a variable that runs set at times", ASSIGNED, (DRAW, "            if step % 2:\n                sess.run(lr_update, {new_lr: 0.3})\n" + DRAW)),
    case("a variable that runs set, of a schedule's", made("base = tf.get_variable('base', [], initializer=tf.constant_initializer(0.1), trainable=False)", NEW, "lr_update = tf.assign(base, new_lr)", "lr = tf.train.exponential_decay(base, step_count, 2, 0.5)"), SET),
    case("a variable that runs set, fetched", ASSIGNED, SET, (RUN, RUN + "            print('%.5f' % sess.run(lr))\n")),
    case("a warm-up", made(WARM)),
    case("summarized in front of the towers", made(WARM, "tf.summary.scalar('rate', lr)"), *MERGED),
    case("summarized in front of the towers, beside a mean of them", made(WARM, "losses = []", "tf.summary.scalar('rate', lr)"), (APPENDED, APPENDED + "                    losses.append(loss)\n"), MEAN, MERGED[1]),
    case("in two statements", made(f"warm = tf.minimum({COUNT} / 3.0 + 0.2, 1.0)", "lr = 0.1 * warm")),
    case("of a schedule", made("decayed = tf.train.exponential_decay(0.1, step_count, 2, 0.5)", "lr = tf.maximum(decayed, 0.04)")),
    case("of a schedule in it", made("lr = tf.maximum(tf.train.exponential_decay(0.1, step_count, 2, 0.5), 0.04)")),
    case("steps of another dtype", made("lr = tf.train.piecewise_constant(tf.cast(step_count, tf.int32), [1, 2], [0.1, 0.05, 0.01])")),
    case("steps of another dtype, with a name", made("count = tf.cast(step_count, tf.int32)", "lr = tf.train.piecewise_constant(count, [1, 2], [0.1, 0.05, 0.01])")),
    case("the square root of the steps", made(f"lr = 0.1 * tf.rsqrt({COUNT} + 1.0) * tf.minimum(1.0, {COUNT} * 0.3 + 0.1)")),
    case("by a condition", made("lr = tf.where(tf.less(step_count, 2), 0.1, 0.02)")),
    case("by an operator", made("lr = tf.where(step_count < 2, 0.1, 0.02)")),
    case("of a constant of the module", (DEVICES, DEVICES + "WARM = 3.0\n"), made(f"lr = 0.1 * tf.minimum({COUNT} / WARM + 0.2, 1.0)")),
    case("of a name of the function", made("warm = 3.0", f"lr = 0.1 * tf.minimum({COUNT} / warm + 0.2, 1.0)")),
    case("over lines", made(f"lr = 0.1 * tf.minimum(\n        {COUNT} / 3.0 + 0.2,\n        1.0)")),
    case("with a comment", made("# It grows.", WARM + "  # to 0.1")),
    case("fetched", made(WARM), SHOWN),
    case("a schedule that is fetched", made("lr = tf.train.exponential_decay(0.1, step_count, 2, 0.5)"), SHOWN),
    case("fetched with the steps", made(WARM), (RUN, "            _, value, rate, number = sess.run([train_op, loss, lr, step_count], feed_dict={X: bx, Y: by})\n            print('%.6f' % rate)\n")),
    case("fetched without the update", made(WARM), (RUN, RUN + "            print('%.6f' % sess.run([loss, lr], feed_dict={X: bx, Y: by})[1])\n")),
    case("summarized", made(WARM), *WRITTEN),
    case("of what is fed", made(PART, "lr = 0.1 * part"), FED),
    case("of what is fed and of the steps", made(PART, f"lr = part * tf.minimum({COUNT} / 3.0 + 0.2, 1.0)"), FED),
    case("where the optimizer is made", made(optimizer=f"tf.train.MomentumOptimizer(0.1 * tf.minimum({COUNT} / 3.0 + 0.2, 1.0), 0.9)")),
    case("where the optimizer is made, by a keyword", made(optimizer=f"tf.train.MomentumOptimizer(momentum=0.9, learning_rate=tf.minimum({COUNT} / 3.0 + 0.2,\n        1.0))")),
    case("steps of another dtype, of lists with names", made("bounds = [1, 2]", "values = [0.1, 0.05, 0.01]", "lr = tf.train.piecewise_constant(tf.cast(step_count, tf.int32), bounds, values)")),
    case("a schedule of a schedule", made("lr = tf.train.exponential_decay(tf.train.piecewise_constant(step_count, [2], [0.3, 0.1]), step_count, 2, 0.5)")),
    case("chosen by tf.cond", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda: 0.02)")),
    case("chosen by tf.cond, with names", made("lr = tf.cond(pred=tf.less(step_count, 2), true_fn=lambda: 0.1, false_fn=lambda: tf.constant(0.02))")),
    case("chosen by tf.cond, of a rate in front", made("warm = 0.02 * tf.cast(step_count + 1, tf.float32)", "lr = tf.cond(step_count < 2, lambda: warm, lambda: tf.constant(0.1))")),
    case("chosen by tf.cond, of a schedule and a constant", made("decayed = tf.train.exponential_decay(0.1, step_count, 2, 0.5)", "fast = tf.constant(0.1)", "lr = tf.cond(tf.greater(step_count, 1), lambda: decayed, lambda: fast)")),
    case("chosen by tf.cond, fetched alone", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda: 0.02)"), (RUN, RUN + "            print('%.12f' % sess.run(lr))\n")),
    case("chosen by tf.cond, fetched", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda: 0.02)"), SHOWN),
    case("chosen by tf.cond, summarized", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda: 0.02)"), *WRITTEN),
    case("chosen by tf.cond, in another", made("lr = tf.cond(step_count < 1, lambda: 0.1, lambda: tf.cond(step_count < 2, lambda: 0.05, lambda: 0.02))")),
    case("chosen by tf.cond, and halved", made("lr = 0.5 * tf.cond(step_count < 2, lambda: 0.1, lambda: 0.02)")),
    case("chosen by tf.cond, where the optimizer is made", made(optimizer="tf.train.MomentumOptimizer(tf.cond(step_count < 2, lambda: 0.1, lambda: 0.02), 0.9)")),
    case("chosen by tf.cond, of adam", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda: 0.02)", optimizer="tf.train.AdamOptimizer(lr, beta1=0.5)")),
    case("chosen by tf.cond, of variables", made("base = tf.Variable(0.05, trainable=False, name='base')", "slow = tf.Variable(0.01, trainable=False, name='slow')", "lr = tf.cond(step_count < 2, lambda: base, lambda: slow)"), (RUN, RUN + "            print('%.12f' % sess.run(lr))\n")),
    case("chosen by tf.cond, of a variable that decides", made("fast = tf.Variable(True, trainable=False, name='fast')", "lr = tf.cond(fast, lambda: 0.1, lambda: 0.02)")),
    case("chosen by tf.case", made("lr = tf.case([(step_count < 1, lambda: 0.1), (step_count < 2, lambda: 0.05)], default=lambda: 0.02)")),
    case("chosen by tf.case, of one that excludes the others", made("lr = tf.case(((tf.less(step_count, 1), lambda: 0.1), (tf.greater(step_count, 2), lambda: 0.05)), default=lambda: tf.constant(0.02), exclusive=True)")),
    case("of adam", made(WARM, optimizer="tf.train.AdamOptimizer(lr, beta1=0.5)")),
    case("a setting with its name", (DEVICES, DEVICES + "\n\nclass Settings:\n    lr = 0.1\n\n\nsettings = Settings()\n"), made(WARM.replace("0.1", "settings.rate").replace("settings.rate", "0.1"))),
]  # fmt: skip

LEFT = [
    other("of a property", "TM211", (DEVICES, DEVICES + "\n\nclass Settings(object):\n    n = [0]\n\n    @property\n    def warm(self):\n        self.n[0] += 1\n        return 2.0 + self.n[0]\n\n\nsettings = Settings()\n"), made(f"lr = 0.1 * tf.minimum({COUNT} / settings.warm + 0.2, 1.0)")),
    other("of a list that a loop reads too", "TM211", made("values = [0.1, 0.05, 0.01]", "lr = tf.train.piecewise_constant(tf.cast(step_count, tf.int32), [1, 2], values)"), ("print('step'", "values[0] = 9.0\n            print('step'")),
    other("of a list with two names", "TM211", made("values = [0.1, 0.05, 0.01]", "other = values", "lr = tf.train.piecewise_constant(tf.cast(step_count, tf.int32), [1, 2], values)", "other[0] = 9.0")),
    other("what sets a variable, with a comment", "TM211", ASSIGNED, (DRAW, "            sess.run(lr_update,  # slower\n                     feed_dict={new_lr: 0.1 * 0.5 ** step})\n" + DRAW)),
    other("what sets a variable, fetched with others", "TM211", ASSIGNED, (RUN, "            _, value, _ = sess.run([train_op, loss, lr_update], feed_dict={X: bx, Y: by, new_lr: 0.1})\n")),
    other("what sets a variable, waited for", "TM211", ASSIGNED, SET, (SAVER, "    with tf.control_dependencies([lr_update]):\n        more = tf.constant(1.0)\n" + SAVER)),
    other("what sets a variable, kept", "TM211", ASSIGNED, (DRAW, "            value = sess.run(lr_update, feed_dict={new_lr: 0.1 * 0.5 ** step})\n" + DRAW)),
    other("a variable that is loaded in a function", "TM205", made(OWN, "def set_rate(session, rate):\n        lr.load(rate, session)\n"), (DRAW, "            set_rate(sess, 0.1)\n" + DRAW)),
    other("read by a function", "TM211", made(WARM, "def scaled(x):\n        return x * lr\n"), ("out = net(x)\n", "out = scaled(net(x))\n")),
    other("of a name that changes", "TM211", made("warm = 3.0", f"lr = 0.1 * tf.minimum({COUNT} / warm + 0.2, 1.0)", "warm = 5.0")),
    other("of a name that changes in a loop", "TM211", made("warm = 3.0", f"lr = 0.1 * tf.minimum({COUNT} / warm + 0.2, 1.0)"), (STEPS, STEPS + "            warm = 9.0\n")),
    other("of a global that changes", "TM211", (DEVICES, DEVICES + "WARM = 3.0\n"), made(f"lr = 0.1 * tf.minimum({COUNT} / WARM + 0.2, 1.0)"), ("def batch(rows):\n", "def batch(rows):\n    global WARM\n    WARM = 9.0\n")),
    other("of an item", "TM211", made("warm = [3.0]", f"lr = 0.1 * tf.minimum({COUNT} / warm[0] + 0.2, 1.0)")),
    other("of a setting that is set", "TM211", (DEVICES, DEVICES + "\n\nclass Settings(object):\n    warm = 3.0\n\n\nsettings = Settings()\n"), made(f"lr = 0.1 * tf.minimum({COUNT} / settings.warm + 0.2, 1.0)"), (STEPS, "        settings.warm = 9.0\n" + STEPS)),
    other("drawn", "TM211", made("lr = 0.1 * tf.random_uniform([], seed=3)")),
    other("of a function of Python's own", "TM211", made(f"lr = 0.1 * tf.py_func(lambda x: x, [{COUNT}], tf.float32)")),
    other("chosen by tf.cond, of a name that changes", "TM211", made("slow = 0.02", "lr = tf.cond(step_count < 2, lambda: 0.1, lambda: slow)", "slow = 0.05")),
    other("chosen by tf.cond, of a name that changes in a loop", "TM211", made("slow = 0.02", "lr = tf.cond(step_count < 2, lambda: 0.1, lambda: slow)"), (STEPS, STEPS + "            slow = 9.0\n")),
    other("chosen by tf.cond, of an item", "TM211", made("slow = [0.02]", "lr = tf.cond(step_count < 2, lambda: 0.1, lambda: slow[0])")),
    other("chosen by tf.cond, drawn", "TM211", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda: 0.1 * tf.random_uniform([], seed=3))")),
    other("chosen by tf.cond, of a function with a default", "TM211", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda slow=0.02: slow)")),
    other("chosen by tf.cond, of functions with names", "TM211", made("def slow():\n        return 0.02\n", "lr = tf.cond(step_count < 2, lambda: 0.1, slow)")),
    other("chosen by tf.cond, of functions that are kept", "TM211", made("slow = lambda: 0.02", "lr = tf.cond(step_count < 2, lambda: 0.1, slow)")),
    other("chosen by tf.cond, of stars", "TM211", made("lr = tf.cond(step_count < 2, *[lambda: 0.1, lambda: 0.02])")),
    other("chosen by tf.case, of a list with a name", "TM211", made("pairs = [(step_count < 1, lambda: 0.1)]", "lr = tf.case(pairs, default=lambda: 0.02)")),
    other("chosen by tf.cond, where a number is another", "TM211", made("lr = tf.cond(step_count == 2, lambda: 0.1, lambda: 0.02)")),
    other("chosen by tf.cond, of the number that a draw gives", "TM211", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda: drawn[0] * 0.1 + 0.02)")),
    other("chosen by tf.case, of a dict", "TM211", made("lr = tf.case({tf.less(step_count, 1): lambda: 0.1, tf.greater(step_count, 2): lambda: 0.05}, default=lambda: 0.02, exclusive=True)")),
    other("chosen by tf.cond, read by the towers", "TM217", made("lr = tf.cond(step_count < 2, lambda: 0.1, lambda: 0.02)"), ("out = net(x)\n", "out = net(x) * lr\n")),
    other("equal to a number", "TM211", made("lr = tf.where(step_count == 2, 0.1, 0.02)")),
    other("read by the towers", "TM217", made(WARM), ("out = net(x)\n", "out = net(x) * lr\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
