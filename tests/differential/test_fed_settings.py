"""Fed learning rates: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
FEED = "feed_dict={X: bx, Y: by}"
DEF = "def batch(rows):\n"
STEPS = "        for step in range(4):\n"
SAVER = "    saver = tf.train.Saver()\n"
DRAW = "            bx, by = batch(4)\n"
BY_DECAY = "0.1 * 0.9 ** step"


def made(optimizer: str, placeholder: str = "tf.placeholder(tf.float32, [])") -> Change:
    return OPT, f"    lr = {placeholder}\n    opt = {optimizer}\n"


def fed(value: str) -> Change:
    return FEED, FEED.replace("}", f", lr: {value}}}")


def run(text: str) -> Change:
    return RUN, text


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


MOMENTUM = made("tf.train.MomentumOptimizer(lr, 0.9)")
DECAYED = fed(BY_DECAY)
RATE = (DEF, "def rate_of(step):\n    return 0.1 if step < 2 else 0.01\n\n\n" + DEF)
NAMED = "            feed = {X: bx, Y: by, lr: rate}\n"
SHOWN = "            _, value = sess.run([train_op, loss], feed_dict=feed)\n"
SUMMARY = (
    SAVER,
    "    shown = tf.summary.scalar('rate', lr)\n    writer = tf.summary.FileWriter('log')\n"
    + SAVER,
)

OPTIONS = (
    DEF,
    "class Options(object):\n    def __init__(self):\n        self.rate = 0.1\n\n\noptions = Options()\n\n\n"
    + DEF,
)
BY_OPTION = run(
    "            feed = {X: bx, Y: by + 0.0 * by.sum(), lr: options.rate / (1 + step)}\n" + SHOWN
)
BESIDE_PARTS = run(
    RUN.replace("X: bx, Y: by", "X: bx[:], Y: by.copy(), lr: options.rate * 0.5 ** step")
)
TAKEN = [
    case("a setting's, in a dict with a name", OPTIONS, MOMENTUM, BY_OPTION),
    case("a setting's, beside parts", OPTIONS, MOMENTUM, BESIDE_PARTS),
    case("of a class", (DEF, "class options(object):\n    rate = 0.1\n\n\n" + DEF), MOMENTUM, BY_OPTION),
    case("of arguments", (DEF, "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--rate', type=float, default=0.1)\noptions = parser.parse_args([])\n\n\n" + DEF), MOMENTUM, BESIDE_PARTS),
    case("by position", MOMENTUM, DECAYED),
    case("no shape", made("tf.train.MomentumOptimizer(lr, 0.9)", "tf.placeholder(tf.float32)"), DECAYED),
    case("by keywords", made("tf.train.MomentumOptimizer(learning_rate=lr, momentum=0.9)", "tf.placeholder(dtype=tf.float32, shape=(), name='lr')"), DECAYED),
    case("a dtype in words", made("tf.train.MomentumOptimizer(lr, 0.9)", "tf.placeholder('float', [])"), DECAYED),
    case("a wider dtype", made("tf.train.MomentumOptimizer(lr, 0.9)", "tf.placeholder(tf.float64, [])"), DECAYED),
    case("adam", made("tf.train.AdamOptimizer(lr, beta1=0.5)"), DECAYED),
    case("plain descent", made("tf.train.GradientDescentOptimizer(lr)"), DECAYED),
    case("rmsprop", made("tf.train.RMSPropOptimizer(lr, momentum=0.5)"), DECAYED),
    case("a number of numpy's", MOMENTUM, fed("np.float64(0.1) * 0.9 ** step")),
    case("a whole number of numpy's", MOMENTUM, fed("np.int64(1)")),
    case("a whole number", MOMENTUM, fed("1 if step else 0")),
    case("an array of no axes", MOMENTUM, fed("np.array(0.1 / (step + 1))")),
    case("a function's", RATE, MOMENTUM, fed("rate_of(step)")),
    case("a name that falls", MOMENTUM, (STEPS, "        rate = 0.1\n" + STEPS), fed("rate"), (RUN.replace("Y: by}", "Y: by, lr: rate}"), "            if step == 2:\n                rate *= 0.1\n" + RUN.replace("Y: by}", "Y: by, lr: rate}"))),
    case("the largest", MOMENTUM, fed("max(0.1 * 0.5 ** step, 0.03)")),
    case("a dict with a name", MOMENTUM, run("            rate = 0.1 * 0.9 ** step\n" + NAMED + SHOWN)),
    case("a dict filled", MOMENTUM, run("            rate = 0.1 * 0.9 ** step\n            feed = {X: bx, Y: by}\n            feed[lr] = rate\n" + SHOWN)),
    case("a schedule of it", made("tf.train.MomentumOptimizer(tf.train.exponential_decay(lr, step_count, 2, 0.5), 0.9)"), fed("0.1")),
    case("a schedule of it with a name", made("tf.train.MomentumOptimizer(rate, 0.9)", "tf.placeholder(tf.float32, [])\n    rate = tf.train.exponential_decay(lr, step_count, 2, 0.5)"), DECAYED),
    case("two settings", made("tf.train.MomentumOptimizer(lr, more)", "tf.placeholder(tf.float32, [])\n    more = tf.placeholder(tf.float32, [])"), fed("0.1, more: 0.5 + 0.1 * step")),
    case("a look at the loss without it", MOMENTUM, DECAYED, (STEPS, "        bx, by = batch(4)\n        print('%.5f' % sess.run(loss, feed_dict={X: bx, Y: by}))\n" + STEPS)),
    case("a look at the loss with it", MOMENTUM, DECAYED, (STEPS, "        bx, by = batch(4)\n        print('%.5f' % sess.run(loss, feed_dict={X: bx, Y: by, lr: 5.0}))\n" + STEPS)),
    case("fetched", MOMENTUM, run("            _, value, rate = sess.run([train_op, loss, lr], feed_dict={X: bx, Y: by, lr: 0.1 * 0.9 ** step})\n            print('%.6f' % rate)\n")),
    case("fetched and shown", MOMENTUM, run("            _, value, rate = sess.run([train_op, loss, lr], feed_dict={X: bx, Y: by, lr: 0.1 * 0.9 ** step})\n            print(step, rate, 'rate {:.4f}'.format(rate), f'{rate:.3f}', rate * 2, float(rate))\n")),
    case("fetched alone", MOMENTUM, DECAYED, (STEPS, "        print('%.6f' % sess.run(lr, feed_dict={lr: 0.25}))\n" + STEPS)),
    case("summarized", MOMENTUM, SUMMARY, run("            _, value, text = sess.run([train_op, loss, shown], feed_dict={X: bx, Y: by, lr: 0.1 * 0.9 ** step})\n            writer.add_summary(text, step)\n")),
    case("summarized with all others", MOMENTUM, (SAVER, "    tf.summary.scalar('rate', lr)\n    shown = tf.summary.merge_all()\n    writer = tf.summary.FileWriter('log')\n" + SAVER), run("            _, value, text = sess.run([train_op, loss, shown], feed_dict={X: bx, Y: by, lr: 0.1 * 0.9 ** step})\n            writer.add_summary(text, step)\n")),
    case("the update's own run", MOMENTUM, run("            train_op.run(feed_dict={X: bx, Y: by, lr: 0.1 * 0.9 ** step})\n            value = loss.eval(feed_dict={X: bx, Y: by})\n")),
    case("a statement behind a condition", MOMENTUM, run("            value = 0.0\n            if step % 2:\n" + RUN.replace("            _", "                _", 1).replace("Y: by}", "Y: by, lr: 0.3}") + "            else:\n" + RUN.replace("            _", "                _", 1).replace("Y: by}", "Y: by, lr: 0.1}"))),
    case("with comments", MOMENTUM, run("            # One update.\n" + RUN.replace("Y: by}", "Y: by, lr: 0.1}").replace("\n", "  # here\n"))),
    case("fed first", MOMENTUM, (FEED, "feed_dict={lr: 0.1 * 0.9 ** step, X: bx, Y: by}")),
    case("an expression of the run", MOMENTUM, run("            value = sess.run([train_op, loss], feed_dict={X: bx, Y: by, lr: 0.1})[1]\n")),
    case("computed of it with a name", made("tf.train.MomentumOptimizer(half, 0.9)", "tf.placeholder(tf.float32, [])\n    half = lr * 0.5"), DECAYED),
    case("computed of it", made("tf.train.MomentumOptimizer(lr * 0.5, 0.9)"), DECAYED),
    case("with a default", made("tf.train.MomentumOptimizer(lr, 0.9)", "tf.placeholder_with_default(0.1, [])"), DECAYED),
]  # fmt: skip

LEFT = [
    other("a setting that a draw sets", "TM209", (DEF, OPTIONS[1] + "    options.rate *= 0.9\n"), MOMENTUM, (DRAW, ""), run(RUN.replace("X: bx, Y: by", "X: batch(4)[0], Y: np.ones([4, 1]), lr: options.rate"))),
    other("a setting that is set in between", "TM209", OPTIONS, MOMENTUM, run("            feed = {X: bx, Y: by, lr: options.rate / (1 + step)}\n            options.rate = 0.5\n" + SHOWN)),
    other("a setting that is computed", "TM209", (DEF, "class Options(object):\n    @property\n    def rate(self):\n        return 0.1 * drawn[0]\n\n\noptions = Options()\n\n\n" + DEF), MOMENTUM, (DRAW, ""), run(RUN.replace("X: bx, Y: by", "X: batch(4)[0], Y: np.ones([4, 1]), lr: options.rate"))),
    other("a setting of any object", "TM209", (DEF, "class Options(object):\n    def __getattr__(self, name):\n        return 0.1 * drawn[0]\n\n\noptions = Options()\n\n\n" + DEF), MOMENTUM, (DRAW, ""), run(RUN.replace("X: bx, Y: by", "X: batch(4)[0], Y: np.ones([4, 1]), lr: options.rate"))),
    other("a setting by a text", "TM209", OPTIONS, (DEF, DEF + "    setattr(options, 'rate', 0.05)\n"), MOMENTUM, (DRAW, ""), run(RUN.replace("X: bx, Y: by", "X: batch(4)[0], Y: np.ones([4, 1]), lr: options.rate"))),
    other("fetched into a list", "TM209", MOMENTUM, run("            _, value, rate = sess.run([train_op, loss, lr], feed_dict={X: bx, Y: by, lr: 0.1 * 0.9 ** step})\n            print([rate])\n")),
    other("fetched and asked what it is", "TM209", MOMENTUM, run("            _, value, rate = sess.run([train_op, loss, lr], feed_dict={X: bx, Y: by, lr: 0.1 * 0.9 ** step})\n            print(type(rate).__name__)\n")),
    other("fetched with all others", "TM209", MOMENTUM, run("            found = sess.run([train_op, loss, lr], feed_dict={X: bx, Y: by, lr: 0.1 * 0.9 ** step})\n            print(found)\n")),
    other("a global that a call between sets", "TM209", (DEF, "rate = 0.5\n\n\ndef halve():\n    global rate\n    rate *= 0.5\n\n\n" + DEF), MOMENTUM, run(NAMED + "            halve()\n" + SHOWN)),
    other("an item that a draw may change", "TM209", (DEF, "rates = [0.1]\n\n\n" + DEF + "    rates[0] *= 0.5\n"), MOMENTUM, (DRAW, ""), run("            value = sess.run([train_op, loss], feed_dict={X: batch(4)[0], Y: np.ones((4, 1)), lr: rates[0]})[1]\n")),
    other("a run without it", "TM209", MOMENTUM, run(RUN.replace("Y: by}", "Y: by, lr: 0.1}") + "            if step > 9:\n    " + RUN)),
    other("read by the towers too", "TM211", MOMENTUM, DECAYED, ("out = net(x)\n", "out = net(x) * lr\n")),
    other("printed", "TM223", MOMENTUM, DECAYED, (STEPS, "        text = str(lr)\n" + STEPS)),
    other("asked what it is", "TM227", MOMENTUM, DECAYED, (SAVER, "    print(lr.dtype)\n" + SAVER)),
    other("in a lambda", "TM205", MOMENTUM, run("            one = lambda: sess.run([train_op, loss], feed_dict={X: bx, Y: by, lr: 0.1})\n            value = one()[1]\n")),
    other("in one of two", "TM209", MOMENTUM, run("            value = sess.run([train_op, loss], feed_dict={X: bx, Y: by, lr: 0.1})[1] if step < 9 else 0.0\n")),
    other("in a condition", "TM209", MOMENTUM, run("            value = 1.0\n            if sess.run([train_op, loss], feed_dict={X: bx, Y: by, lr: 0.1})[1] < 9:\n                value = 0.5\n")),
    other("a draw behind a draw", "TM209", RATE, MOMENTUM, run("            value = sess.run([train_op, loss], feed_dict={X: batch(4)[0], Y: batch(4)[1], lr: rate_of(drawn[0])})[1]\n")),
    other("a dict made before what it feeds changes", "TM209", MOMENTUM, (STEPS, "        rate = 0.1\n" + STEPS), run(NAMED + "            rate = 0.5\n" + SHOWN)),
    other("a dict made outside", "TM209", MOMENTUM, (STEPS, "        rate = 0.1\n        bx, by = batch(4)\n        feed = {X: bx, Y: by, lr: rate}\n" + STEPS), run("            rate = 0.5\n" + SHOWN)),
    other("by a global that a call sets", "TM209", (DEF, "rate = 0.5\n\n\n" + DEF + "    global rate\n    rate = 0.1 * drawn[0]\n"), MOMENTUM, (DRAW, ""), run("            value = sess.run([train_op, loss], feed_dict={X: batch(4)[0], Y: np.ones((4, 1)), lr: rate})[1]\n")),
    other("of a whole number's dtype", "TM209", made("tf.train.MomentumOptimizer(0.1, 0.9)", "tf.placeholder(tf.int32, [])"), fed("3")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
