"""Collections that all towers share: losses that count those of the towers before, and reads by the name of a tower's scope."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

NET = "def net(x):\n"
DECAYED = (
    "    return tf.matmul(x, w) + b\n",
    "    tf.add_to_collection('parts', 0.05 * tf.nn.l2_loss(w))\n    return tf.matmul(x, w) + b\n",
)
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
SUM = "    return tf.add_n(tf.get_collection('parts'))\n"
FUNCTION = (
    "def tower_loss(out, y):\n"
    "    error = tf.reduce_mean(tf.square(out - y), name='error')\n"
    "    tf.add_to_collection('parts', error)\n"
)
CALLED = (LOSS, "                    loss = tower_loss(out, y)\n")
FORM = (DECAYED, (NET, FUNCTION + SUM + "\n\n" + NET), CALLED)
APPEND = "                    tower_grads.append(grads)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
START = "    tower_grads = []\n"
OPEN = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
SAVER = "    saver = tf.train.Saver()\n"
LISTED: tuple[Change, ...] = (
    (START, START + "    losses = []\n"),
    (APPEND, APPEND + "                    losses.append(loss)\n"),
)
MEAN = (AVERAGED, AVERAGED + "    mean = tf.reduce_mean(tf.stack(losses, 0), 0)\n")
TRAINED: tuple[Change, ...] = (
    ("                    grads = opt.compute_gradients(loss)\n" + APPEND, "                    losses.append(loss)\n"),
    (START, "    losses = []\n"),
    (AVERAGED, "    mean = tf.reduce_mean(tf.stack(losses, 0), 0)\n    grads = opt.compute_gradients(mean)\n"),
)  # fmt: skip
NUMBERED: Change = ("for i in range(2):", "for i in range(NUM):")
COUNT: Change = ("drawn = [0]\n", "drawn = [0]\nNUM = 2\n")
SUMMED: tuple[Change, ...] = (
    (SAVER, "    merged = tf.summary.merge(summaries)\n    writer = tf.summary.FileWriter('log')\n" + SAVER),
    (RUN, RUN + "            writer.add_summary(sess.run(merged, feed_dict={X: bx, Y: by}), step)\n"),
)  # fmt: skip
UNUSED = "def unused(x):\n    tf.add_to_collection('parts', tf.reduce_sum(x))\n    return x\n\n\n"


NAMED: tuple[Change, ...] = (
    DECAYED,
    (NET, FUNCTION.replace("(out, y)", "(out, y, name)", 1) + "    return tf.add_n(tf.get_collection('parts', name))\n\n\n" + NET),
    (LOSS, "                    loss = tower_loss(out, y, 'tower_%d' % i)\n                    loss += 0.1 * tf.add_n(tf.get_collection('parts', scope))\n"),
)  # fmt: skip
TEXT = "'tower_%d' % i)\n                    loss"
ENTERED = "with tf.name_scope('tower_%d' % i) as scope:"


def case(name: str, *changes: Change, form: tuple[Change, ...] = FORM) -> Any:
    return pytest.param((*form, *changes), id=name)


def other(name: str, rule: str, *changes: Change, form: tuple[Change, ...] = FORM) -> Any:
    return pytest.param((*form, *changes), rule, id=name)


def average(text: str) -> Change:
    return (
        "        stacked = tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0)\n        averaged.append((tf.reduce_mean(stacked, 0), pairs[0][1]))\n",
        text,
    )


TAKEN = [
    case("in a function"),
    case("named", ("get_collection('parts'))", "get_collection('parts'), name='total')")),
    case("bound first", (SUM, "    total = tf.add_n(tf.get_collection('parts'))\n    return total\n")),
    case("scaled", (SUM, "    return 0.5 * tf.add_n(tf.get_collection('parts')) + 1.0\n")),
    case("squared", (SUM, "    return tf.square(tf.add_n(tf.get_collection('parts')))\n")),
    case("with more beside it", (SUM, "    return tf.add_n(tf.get_collection('parts')) + 0.1 * error\n")),
    case("that every tower's tells", *LISTED, (RUN, RUN.replace("loss]", "losses]").replace("_, value", "_, values") + "            value = values[0] + 10.0 * values[1]\n")),
    case("whose mean is told", *LISTED, MEAN, (RUN, RUN.replace("loss]", "mean]"))),
    case("whose mean is trained", *TRAINED),
    case("that is looked at", (RUN, RUN + "            print('%.5f' % sess.run(loss, feed_dict={X: bx, Y: by}))\n")),
    case("of a number of towers", COUNT, NUMBERED),
    case("added up over the towers", average("        averaged.append((tf.add_n([g for g, _ in pairs]), pairs[0][1]))\n")),
    case("clipped behind the average", (AVERAGED, AVERAGED + "    grads = [(tf.clip_by_norm(g, 0.2), v) for g, v in grads]\n")),
    case("of Adam", ("MomentumOptimizer(0.1, 0.9)", "AdamOptimizer(0.05)")),
    case("beside a function that nothing calls", (NET, UNUSED + NET)),
    case("with a summary of its name", ("get_collection('parts'))", "get_collection('parts'), name='total')"), (CALLED[1], CALLED[1] + "                    summaries = [tf.summary.scalar(loss.op.name, loss)]\n"), *SUMMED),
    case("with a summary of a name behind it", (CALLED[1], CALLED[1] + "                    twice = tf.reduce_sum(tf.stack([loss, tf.identity(loss)]))\n                    summaries = [tf.summary.scalar(t.op.name, t) for t in [loss, twice]]\n"), *SUMMED),
    case("in the loop", (CALLED[1], "                    tf.add_to_collection('parts', tf.reduce_mean(tf.square(out - y)))\n                    loss = tf.add_n(tf.get_collection('parts'))\n")),
    case("in the loop, of two", (DECAYED[1], DECAYED[1].replace("    return", "    tf.add_to_collection('parts', 0.01 * tf.reduce_sum(tf.square(b)))\n    return")), (CALLED[1], "                    loss = tf.reduce_mean(tf.square(out - y)) + tf.add_n(tf.get_collection('parts'))\n")),
    case("in a method", (NET, "class Loss(object):\n    def total(self, out, y):\n        tf.add_to_collection('parts', tf.reduce_mean(tf.square(out - y)))\n        return tf.add_n(tf.get_collection('parts'))\n\n\n" + NET), ("tower_loss(out, y)\n", "Loss().total(out, y)\n")),
    case("of one part, named", (DECAYED[1], DECAYED[0]), ("get_collection('parts'))", "get_collection('parts'), name='total')")),
    case("by the key of TensorFlow's losses", ("'parts'", "'losses'")),
    case("of the tower's own, by the name of its scope", form=NAMED),
    case("by a name in two parts", (TEXT, "'%s_%d' % ('tower', i))\n                    loss"), form=NAMED),
    case("by a name that the scope has too", (ENTERED, "with tf.name_scope(own) as scope:"), ("                with tf.name_scope", "                own = 'tower_%d' % i\n                with tf.name_scope"), (TEXT, "own)\n                    loss"), form=NAMED),
    case("by the scope's name with a slash", (TEXT, "'tower_%d/' % i)\n                    loss"), form=NAMED),
    case("by another kind of name", ("'tower_%d'", "'%d_tower'"), form=NAMED),
    case("gone over", ("    return tf.add_n(tf.get_collection('parts', name))\n", "    parts = tf.get_collection('parts', name)\n    return sum(0.5 * part for part in parts)\n"), form=NAMED),
    case("beside all of them", ("    return tf.add_n(tf.get_collection('parts', name))\n", "    own = tf.add_n(tf.get_collection('parts', name))\n    return own + tf.add_n(tf.get_collection('parts'))\n"), form=NAMED),
    case("with a summary", (CALLED[1], CALLED[1] + "                    summaries = [tf.summary.scalar('total', loss)]\n"), *SUMMED),
]  # fmt: skip

LEFT = [
    other("in a list", "TM219", (SUM, "    parts = tf.get_collection('parts')\n    return tf.add_n(parts)\n")),
    other("of one part", "TM219", (DECAYED[1], DECAYED[0])),
    other("whose parts are gone over", "TM219", (SUM, "    return sum(p for p in tf.get_collection('parts'))\n")),
    other("whose parts are counted", "TM219", (SUM, SUM.rstrip("\n") + " / len(tf.get_collection('parts'))\n")),
    other("to which more is added behind", "TM219", (CALLED[1], CALLED[1] + "                    tf.add_to_collection('parts', 0.1 * loss)\n")),
    other("to which more is added before the towers", "TM219", (START, START + "    tf.add_to_collection('parts', tf.constant(0.5))\n")),
    other("to which a function adds before the towers", "TM219", (NET, UNUSED + NET), (START, START + "    unused(tf.ones([2]))\n")),
    other("to which something may add by a variable", "TM219", (NET, "KEY = 'parts'\n\n\n" + UNUSED.replace("'parts'", "KEY") + NET), (START, START + "    unused(tf.ones([2]))\n")),
    other("clipped in the tower", "TM219", ("                    grads = opt.compute_gradients(loss)\n", "                    grads = [(tf.clip_by_norm(g, 0.2), v) for g, v in opt.compute_gradients(loss)]\n")),
    other("whose gradient is told", "TM219", ("                    tower_grads.append(grads)\n", "                    size = tf.reduce_sum(grads[0][0])\n                    tower_grads.append(grads)\n"), (RUN, RUN.replace("loss]", "size]"))),
    other("by its gradients", "TM219", (SUM, "    total = tf.add_n(tf.get_collection('parts'))\n    return total + tf.reduce_sum(tf.square(tf.gradients(total, [out])[0]))\n")),
    other("of which those there are averaged", "TM219", average("        there = [g for g, _ in pairs if g is not None]\n        if there:\n            averaged.append((tf.reduce_mean(tf.stack(there), 0), pairs[0][1]))\n")),
    other("in one tower alone", "TM214", (SUM, "    if tf.get_variable_scope().reuse:\n        return error\n" + SUM)),
    other("in a branch of the graph", "TM222", (SUM, "    return tf.cond(error > 0.1, lambda: tf.add_n(tf.get_collection('parts')), lambda: error)\n")),
    other("that TensorFlow's losses have too", "TM219", ("'parts'", "'losses'"), ("    error = tf.reduce_mean(tf.square(out - y), name='error')\n", "    error = tf.losses.mean_squared_error(y, out)\n")),
    other("by another name than the scope's", "TM219", (TEXT, "'tow_%d' % i)\n                    loss"), form=NAMED),
    other("by the name of another tower", "TM219", (TEXT, "'tower_%d' % (i + 1))\n                    loss"), form=NAMED),
    other("by the name of a scope that is not read", "TM219", ("                    loss += 0.1 * tf.add_n(tf.get_collection('parts', scope))\n", ""), form=NAMED),
    other("by a pattern", "TM219", ("'tower_%d'", "'tower.*%d'"), form=NAMED),
    other("by the name of a scope in another", "TM219", ("    with tf.variable_scope(tf.get_variable_scope()):\n", "    with tf.variable_scope(tf.get_variable_scope()), tf.name_scope('all'):\n"), form=NAMED),
    other("behind another scope of the name", "TM219", (START, START + "    with tf.name_scope('tower_1'):\n        scale = tf.constant(2.0)\n"), form=NAMED),
    other("of what is added before the towers", "TM219", (START, START + "    tf.add_to_collection('parts', tf.constant(0.5, name='tower_1'))\n"), form=NAMED),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
