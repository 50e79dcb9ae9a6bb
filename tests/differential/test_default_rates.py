"""Rates with a default, and rates picked from a table: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
STEPS = "        for step in range(4):\n"
SHOWN = "'%.6f' % value)\n"
END = "        print('draws', drawn[0])\n"
DEFAULT = "tf.placeholder_with_default(0.1, [])"
TABLE = "    rates = [0.1, 0.05, 0.02, 0.01]\n"
HOLDER = "    lr = tf.placeholder(tf.float32, [])\n    opt = tf.train.MomentumOptimizer(lr, 0.9)\n"

Changes = tuple[tuple[str, str], ...]


def made(
    call: str, *more: tuple[str, str], optimizer: str = "MomentumOptimizer(rate, 0.9)"
) -> Changes:
    """The rate under a name of its own, which the optimizer is made of."""
    return ((OPT, f"    rate = {call}\n    opt = tf.train.{optimizer}\n"), *more)


def fed(rate: str, table: str = TABLE, *more: tuple[str, str]) -> Changes:
    """A rate that runs are fed beside what a method gives."""
    return (
        (OPT, table + HOLDER),
        (RUN, RUN.replace("Y: by}", f"Y: by.max(-1, keepdims=True), lr: {rate}}}")),
        *more,
    )


FED = (RUN, RUN.replace("Y: by}", "Y: by, rate: 0.05}"))
GROUPED = (
    "    saver =",
    "    ema = tf.train.ExponentialMovingAverage(0.9)\n    with tf.control_dependencies([train_op]):\n        averages = ema.apply(tf.trainable_variables())\n    step_op = tf.group(train_op, averages)\n    saver =",
)
WAITED = (
    "    saver =",
    "    with tf.control_dependencies([train_op]):\n        step_op = tf.no_op()\n    saver =",
)
SOMETIMES = (RUN, f"            if step % 2:\n    {RUN}            else:\n    {FED[1]}")
LOOKS = (SHOWN, SHOWN + "            print('%.6f' % sess.run(loss, feed_dict={X: bx, Y: by}))\n")

TAKEN = [
    taken("a default, never fed", *made(DEFAULT)),
    taken("a default, always fed", *made(DEFAULT, FED)),
    taken("a default of no axes", *made("tf.placeholder_with_default(0.1, ())", FED)),
    taken("a default, fed in every other step", *made(DEFAULT, SOMETIMES)),
    taken("a default, and a run that looks", *made(DEFAULT, FED, LOOKS)),
    taken("a default by a keyword", *made("tf.placeholder_with_default(0.05, [])", optimizer="AdamOptimizer(learning_rate=rate)")),
    taken("a default, of updates in a group", *made(DEFAULT, SOMETIMES, GROUPED, ("[train_op, loss]", "[step_op, loss]"))),
    taken("a default, of what waits for an update", *made(DEFAULT, SOMETIMES, WAITED, ("[train_op, loss]", "[step_op, loss]"))),
    taken("a default, of updates in a dict", *made(DEFAULT, ("    saver =", "    ops = {'train': train_op, 'loss': loss}\n    saver ="), (RUN, "            value = sess.run(ops, feed_dict={X: bx, Y: by})['loss']\n"))),
    taken("a default, of an update that is run", *made(DEFAULT, (RUN, "            train_op.run(feed_dict={X: bx, Y: by}, session=sess)\n            value = sess.run(loss, feed_dict={X: bx, Y: by})\n"))),
    taken("a default that an inner function feeds", *made(DEFAULT, (STEPS, "        def fed():\n            return {X: bx, Y: by, rate: 0.05}\n" + STEPS), (RUN, RUN.replace("{X: bx, Y: by}", "fed()")))),
    taken("an item of a list", *fed("rates[step]")),
    taken("an item of a list, and a number", *fed("rates[step] * 0.5")),
    taken("an item of an array", *fed("rates[step]", "    rates = np.logspace(-1, -3, 4)\n")),
    taken("a number made of an item", *fed("float(rates[step // 2])", "    rates = np.linspace(0.1, 0.01, 4)\n")),
    taken("an item of a tuple of the module", *fed("RATES[step]", "", ("DEVICES =", "RATES = (0.1, 0.05, 0.02, 0.01)\nDEVICES ="))),
]  # fmt: skip

LEFT = [
    left("a default that is fetched", "TM209", *made(DEFAULT, (RUN, "            _, value, r = sess.run([train_op, loss, rate], feed_dict={X: bx, Y: by})\n            print(r)\n"))),
    left("a default that is shown", "TM209", *made(DEFAULT, ("    saver =", "    tf.summary.scalar('rate', rate)\n    merged = tf.summary.merge_all()\n    saver ="), (END, END + "        print(len(sess.run(merged)))\n"))),
    left("a default that weighs the loss too", "TM211", *made(DEFAULT, ("tf.square(out - y))\n", "tf.square(out - y)) * rate\n"))),
    left("a default that is fed by its name", "TM209", *made(DEFAULT, (RUN, RUN.replace("Y: by}", "Y: by, 'PlaceholderWithDefault:0': 0.05}")))),
    left("a default that a dict may feed", "TM209", *made(DEFAULT, (RUN, "            feed = {X: bx, Y: by}\n            if step % 2:\n                feed[rate] = 0.05\n            _, value = sess.run([train_op, loss], feed_dict=feed)\n"))),
    left("a default that is bound anew", "TM209", *made(DEFAULT, ("    saver =", "    rate = 0.5\n    saver ="))),
    left("an item that is set", "TM209", *fed("rates[step]", TABLE, (STEPS, "        rates[0] = 0.2\n" + STEPS))),
    left("an item that each step halves", "TM209", *fed("rates[0]", TABLE, (SHOWN, SHOWN + "            rates[0] *= 0.5\n"))),
    left("an item of a list with another name", "TM209", *fed("rates[step]", TABLE, (STEPS, "        other = rates\n        other[0] = 0.3\n" + STEPS))),
    left("an item of a list that is handed on", "TM209", *fed("rates[step]", TABLE, (STEPS, "        print(len(rates))\n" + STEPS))),
    left("an item of an array of another list", "TM209", *fed("rates[step]", "    rates = np.asarray(drawn * 4) * 0.1\n")),
    left("an item that a loop sets", "TM209", *fed("rates[step]", TABLE, (STEPS, "        for rates[0] in (0.1, 0.2):\n            pass\n" + STEPS))),
    left("an item of an array that a part of it changes", "TM209", *fed("rates[step]", "    rates = np.ones(4)\n", (STEPS, "        part = rates[1:]\n        part[0] = 0.9\n" + STEPS))),
    left("an item of an array that what is fed changes by a part", "TM209", (OPT, "    rates = np.ones(4)\n    view = rates[:]\n" + HOLDER), ("def batch(rows)", "def halve(view, y):\n    view *= 0.5\n    return y\n\n\ndef batch(rows)"), (RUN, RUN.replace("Y: by}", "Y: halve(view, by), lr: rates[step]}"))),
    left("an item that what is fed sets", "TM209", (OPT, HOLDER), ("drawn = [0]\n", "drawn = [0]\nrates = [0.1, 0.2]\n"), ("    drawn[0] += 1\n", "    drawn[0] += 1\n    rates[0] = 0.1 * drawn[0]\n"), ("            bx, by = batch(4)\n", ""), (RUN, "            value = sess.run([train_op, loss], feed_dict={X: batch(4)[0], Y: np.ones((4, 1)), lr: rates[0]})[1]\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
