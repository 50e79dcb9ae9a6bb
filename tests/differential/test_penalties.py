"""Penalties that stand behind the towers, beside the mean of their losses: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

START = "    tower_grads = []\n"
STEPS = "    step_count = tf.train.get_or_create_global_step()\n"
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
LISTED = "                    losses.append(loss)\n"
APPENDED = "                    tower_grads.append(grads)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SQUARES = "tf.reduce_mean(tf.square(out - y))"
MEAN = "    mean = tf.reduce_mean(losses)\n"
DECAY = "    decay = 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if 'b' not in v.name])\n"
TRAIN = "    train_op = opt.minimize(mean + decay, global_step=step_count)\n"

Changes = tuple[tuple[str, str], ...]


def behind(
    update: str, *more: tuple[str, str], fetched: str = "mean", listed: str = LISTED
) -> Changes:
    """Towers that only list their losses, and an update behind them; the runs fetch some values of it."""
    names = fetched.split()
    bound = ", ".join(["value", *(f"more_{number}" for number in range(1, len(names)))])
    shown = "".join(
        f"            print('%.6f' % more_{number})\n" for number in range(1, len(names))
    )
    run = RUN.replace("value", bound).replace("loss]", f"{', '.join(names)}]") + shown
    return (
        (START, "    losses = []\n"),
        (GRADS, listed),
        (APPENDED, ""),
        (AVERAGED, ""),
        (APPLIED, update),
        (RUN, run),
        *more,
    )


TOTAL = "    total = mean + decay\n    train_op = opt.minimize(total, global_step=step_count)\n"
LASSO = (
    "    lasso = 0.001 * tf.add_n([tf.reduce_sum(tf.abs(v)) for v in tf.trainable_variables()])\n"
)
COMPUTED = "    grads = opt.compute_gradients(mean + decay)\n"
CLIPPED = "    grads = [(tf.clip_by_value(g, -0.01, 0.01), v) for g, v in grads]\n"
WEIGHT = (STEPS, "    weight = 0.02\n" + STEPS)
FLAG = (
    "DEVICES =",
    "FLAGS = tf.app.flags.FLAGS\ntf.app.flags.DEFINE_float('weight', 0.02, '')\nDEVICES =",
)
VECTOR = (SQUARES, "tf.reduce_sum(tf.square(out - y), 1)")
FRONT = (
    STEPS,
    "    first = tf.get_variable('first', [2], initializer=tf.ones_initializer())\n" + STEPS,
)

TAKEN = [
    taken("in place", *behind(MEAN + DECAY + TRAIN)),
    taken("and fetched", *behind(MEAN + DECAY + TRAIN, fetched="mean decay")),
    taken("the sum under a name", *behind(MEAN + DECAY + TOTAL, fetched="total mean decay")),
    taken("in front of the mean", *behind(MEAN + DECAY + TOTAL.replace("mean + decay", "decay + mean"), fetched="total")),
    taken("of a sum by the number of towers", *behind("    mean = tf.add_n(losses) / 2\n" + DECAY + TRAIN, fetched="mean decay")),
    taken("gradients computed", *behind(MEAN + DECAY + COMPUTED + APPLIED)),
    taken("gradients computed and clipped", *behind(MEAN + DECAY + COMPUTED + CLIPPED + APPLIED)),
    taken("the mean in place", *behind(DECAY + TRAIN.replace("mean +", "tf.reduce_mean(losses) +"), fetched="loss")),
    taken("weighed by a name", *behind(MEAN + DECAY.replace("0.01", "weight") + TRAIN, WEIGHT)),
    taken("weighed by a flag", *behind(MEAN + DECAY.replace("0.01", "FLAGS.weight") + TRAIN, FLAG)),
    taken("two of them", *behind(MEAN + DECAY + LASSO + TRAIN.replace("decay,", "decay + lasso,"), fetched="mean decay lasso")),
    taken("of losses by rows", *behind(MEAN + DECAY + TRAIN, VECTOR)),
    taken("of sums of losses by rows", *behind("    mean = tf.add_n(losses) / 2\n" + DECAY + TRAIN, VECTOR, fetched="decay")),
    taken("with a variable in front", *behind(MEAN + DECAY + TRAIN, FRONT, fetched="mean decay")),
    taken("of Adam", *behind(MEAN + DECAY + TRAIN, (OPT, "    opt = tf.train.AdamOptimizer(0.05)\n"))),
    taken("multiplied by TensorFlow", *behind(MEAN + "    decay = tf.multiply(0.01, tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()]))\n" + TRAIN)),
    taken("with a total that is used further", *behind(MEAN + DECAY + TOTAL + "    double = total * 2\n", fetched="double")),
    taken("of a loss whose name runs bind anew", *behind(MEAN + DECAY + TRAIN), ("_, value = sess.run([train_op, mean]", "_, loss = sess.run([train_op, mean]"), ("'%.6f' % value", "'%.6f' % loss")),
]  # fmt: skip

LEFT = [
    left("of the sum of the losses", "TM202", *behind("    mean = tf.add_n(losses)\n" + DECAY + TRAIN)),
    left("of the sum by another number", "TM202", *behind("    mean = tf.add_n(losses) / 4\n" + DECAY + TRAIN)),
    left("taken away", "TM202", *behind(MEAN + DECAY + TRAIN.replace("mean +", "mean -"))),
    left("multiplied", "TM202", *behind(MEAN + DECAY + TRAIN.replace("mean +", "mean *"))),
    left("beside twice the mean", "TM202", *behind(MEAN + DECAY + TRAIN.replace("mean +", "mean + mean +"))),
    left("of what a tower computes", "TM202", *behind(MEAN + "    decay = 0.01 * tf.reduce_sum(out)\n" + TRAIN)),
    left("of an input", "TM202", *behind(MEAN + "    decay = 0.01 * tf.reduce_sum(X)\n" + TRAIN)),
    left("of the step", "TM202", *behind(MEAN + DECAY.replace("0.01", "0.01 * tf.to_float(step_count)") + TRAIN)),
    left("weighed by what is bound anew", "TM202", *behind(MEAN + "    weight = 0.5\n" + DECAY.replace("0.01", "weight") + TRAIN, WEIGHT)),
    left("that is bound anew", "TM202", *behind(MEAN + DECAY + TRAIN + "    decay = tf.constant(1.0)\n", fetched="mean decay")),
    left("of a name that the towers have", "TM202", *behind(MEAN + DECAY + TRAIN, ("                    out = net(x)\n", "                    decay = 0.5\n                    out = net(x) * decay\n"))),
    left("behind a variable", "TM211", *behind(MEAN + "    extra = tf.get_variable('extra', [2], initializer=tf.ones_initializer())\n" + DECAY + TRAIN)),
    left("by a part of a name that copies have", "TM227", *behind(MEAN + DECAY.replace("'b'", "'r'") + TRAIN)),
    left("not summed up", "TM202", *behind(MEAN + "    decay = tf.add_n([0.01 * tf.square(v) for v in tf.trainable_variables() if 'b' in v.name])\n" + TRAIN)),
    left("of the variables themselves", "TM202", *behind(MEAN + "    decay = 0.01 * tf.add_n([v for v in tf.trainable_variables() if 'b' in v.name])\n" + TRAIN)),
    left("weighed by a flag that is set", "TM202", *behind(MEAN + "    FLAGS.weight = 0.5\n" + DECAY.replace("0.01", "FLAGS.weight") + TRAIN, FLAG)),
    left("alone in a scope", "TM202", *behind(MEAN + "    with tf.name_scope('decay'):\n    " + DECAY + TRAIN)),
    left("of losses that one tower lists twice", "TM202", *behind(MEAN + DECAY + TRAIN, listed=LISTED + "                    if i == 1:\n                        losses.append(loss)\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
