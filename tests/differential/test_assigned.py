"""Runs that give a variable a number: what loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

COUNT = "    step_count = tf.train.get_or_create_global_step()\n"
OWN = (COUNT, "    step_count = tf.Variable(0, trainable=False)\n")
SESSION = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
STEPS = "        for step in range(4):\n"
DRAW = "            bx, by = batch(4)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SAVE = "        saver.save(sess, 'ckpt/model')\n"
SAVER = "    saver = tf.train.Saver()\n"
SHOWN = (RUN, RUN + "            print('count', sess.run(step_count))\n")
LR = (
    "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n",
    "    lr = tf.get_variable('lr', [], initializer=tf.constant_initializer(0.1), trainable=False)\n"
    "    opt = tf.train.MomentumOptimizer(lr, 0.9)\n",
)
VARIABLE = (
    LR[0],
    "    lr = tf.Variable(0.1, trainable=False, name='lr')\n    opt = tf.train.MomentumOptimizer(lr, 0.9)\n",
)
SEEN = (RUN, RUN + "            print('rate', '%.9f' % sess.run(lr))\n")


def before(*lines: str) -> Change:
    """Statements in front of the loop of steps."""
    return STEPS, "".join(f"        {line}\n" for line in lines) + STEPS


def each(*lines: str) -> Change:
    """Statements of every step."""
    return DRAW, "".join(f"            {line}\n" for line in lines) + DRAW


def case(name: str, *changes: Change) -> Any:
    return pytest.param((*changes, SHOWN), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((*changes, SHOWN), rule, id=name)


TAKEN = [
    case("steps that begin anew", before("sess.run(step_count.assign(0))")),
    case("of a variable of its own", OWN, before("sess.run(step_count.assign(7))")),
    case("by the function", OWN, before("sess.run(tf.assign(step_count, 7))")),
    case("where it is asked for", OWN, before("if len(DEVICES) > 1:", "    sess.run(step_count.assign(100))")),
    case("below zero", OWN, before("sess.run(step_count.assign(-3))")),
    case("a rate", LR, each("if step == 2:", "    sess.run(lr.assign(0.01))")),
    case("a rate, by the function", LR, each("sess.run(tf.assign(lr, 0.05))")),
    case("the number of a loop", OWN, each("sess.run(step_count.assign(step))")),
    case("of numbers of loops", OWN, each("sess.run(step_count.assign(step + 10 * 2))")),
    case("a whole number of something else", OWN, each("sess.run(step_count.assign(int(drawn[0] * 1.5)))")),
    case("a rate of something else", LR, each("sess.run(lr.assign(float(np.exp(-1.0 * step))))")),
    case("by a name", OWN, (SAVER, SAVER + "    reset = step_count.assign(0)\n"), before("sess.run(reset)")),
    case("by a name, twice", OWN, (SAVER, SAVER + "    reset = tf.assign(step_count, 5)\n"), before("sess.run(reset)"), each("if step == 2:", "    sess.run(reset)")),
    case("with an initialiser that has a name", OWN, (INIT, "        begin = tf.global_variables_initializer()\n        sess.run(begin)\n"), before("sess.run(step_count.assign(7))")),
    case("behind the steps", OWN, (SAVE, "        sess.run(step_count.assign(1000))\n" + SAVE)),
    case("a rate that decays", LR, each("sess.run(lr.assign(0.1 * 0.5 ** step))")),
    case("a rate over others", LR, each("sess.run(tf.assign(lr, 0.3 / (step + 1) + 0.01 * (step % 2)))")),
    case("that is added", OWN, each("sess.run(step_count.assign_add(1))")),
    case("that is added, by the function", OWN, each("sess.run(tf.assign_add(step_count, step))")),
    case("that is added, by a name", OWN, (SAVER, SAVER + "    more = step_count.assign_add(10)\n"), each("if step == 2:", "    sess.run(more)")),
    case("that is added, by a name in front of the towers", (COUNT, OWN[1] + "    more = tf.assign_add(step_count, 2)\n"), each("sess.run(more)")),
    case("of a sum", OWN, each("sess.run(step_count.assign(step_count + 1))")),
    case("of a sum, by the function", OWN, each("sess.run(tf.assign(step_count, tf.add(step_count, 3)))")),
    case("a whole number that is added to others", LR, each("sess.run(lr.assign_add(1))", "sess.run(lr.assign(lr + -1))")),
    case("that is added, and is no whole number", LR, each("sess.run(lr.assign_add(0.01))")),
    case("that is added, and may be no whole number", LR, each("sess.run(lr.assign_add(step / 2))")),
    case("a rate that is halved", LR, each("if step == 2:", "    sess.run(lr.assign(lr * 0.5))"), SEEN),
    case("a rate times a number that is rounded", VARIABLE, each("sess.run(tf.assign(lr, 0.94 * lr))"), SEEN),
    case("a rate over a whole number", VARIABLE, each("sess.run(lr.assign(lr / 3))"), SEEN),
    case("a rate times a number, by the function", LR, each("sess.run(lr.assign(tf.multiply(lr, 0.97)))"), SEEN),
    case("a rate less a number", VARIABLE, each("sess.run(lr.assign(lr - 0.013))", "sess.run(lr.assign_sub(0.007))"), SEEN),
    case("a rate times a number of a loop", LR, each("sess.run(lr.assign(lr * (1.0 - step * 0.1)))"), SEEN),
    case("a rate times a setting", ("drawn = [0]\n", "DECAY = 0.93\ndrawn = [0]\n"), LR, each("sess.run(lr.assign(lr * DECAY))"), SEEN),
    case("a rate that decays, by a name in front of the optimizer", (VARIABLE[0], VARIABLE[1].replace("    opt", "    decay = lr.assign(lr * 0.9)\n    opt")), each("if step > 1:", "    sess.run(decay)"), SEEN),
    case("a rate that decays, by a name behind the towers", LR, (SAVER, "    decay = tf.assign(lr, lr * 0.9)\n" + SAVER), each("sess.run(decay)"), SEEN),
    case("with a schedule", ("    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n", "    rate = tf.train.exponential_decay(0.1, step_count, 2, 0.5)\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n"), before("sess.run(step_count.assign(4))")),
]  # fmt: skip

LEFT = [
    other("before the variables start", "TM209", OWN, (INIT, "        sess.run(step_count.assign(7))\n" + INIT)),
    other("before the variables start, which has a name", "TM209", OWN, (SAVER, SAVER + "    begin = tf.global_variables_initializer()\n"), (INIT, "        sess.run(step_count.assign(7))\n        sess.run(begin)\n")),
    other("a variable that is loaded before all start", "TM209", OWN, (INIT, "        step_count.load(7, sess)\n" + INIT)),
    other("that is kept", "TM209", OWN, before("print(sess.run(step_count.assign(7)))")),
    other("of a tensor", "TM209", OWN, (SAVER, SAVER + "    twice = step_count * 2\n"), each("sess.run(step_count.assign(twice))")),
    other("of a trained variable", "TM209", ("    tower_grads = []\n", "    extra = tf.Variable(1.0)\n    tower_grads = []\n"), each("sess.run(extra.assign(0.5))")),
    other("of a number that may be an array", "TM209", OWN, before("first = np.int64(7)", "sess.run(step_count.assign(first))")),
    other("that is added and kept", "TM209", OWN, each("print(sess.run(step_count.assign_add(1)))")),
    other("that is added, and is a tensor", "TM209", OWN, (SAVER, SAVER + "    more = tf.constant(1)\n"), each("sess.run(step_count.assign_add(more))")),
    other("of a sum with another variable", "TM209", OWN, LR, each("sess.run(lr.assign(tf.cast(step_count, tf.float32) + 1.0))")),
    other("of a difference", "TM209", OWN, each("sess.run(step_count.assign_sub(1))")),
    other("a rate of another type", "TM209", (LR[0], "    lr = tf.Variable(0.1, trainable=False, dtype=tf.float64)\n    opt = tf.train.MomentumOptimizer(tf.cast(lr, tf.float32), 0.9)\n"), each("sess.run(lr.assign(lr * 0.94))")),
    other("a rate of a type that a tensor tells", "TM209", (LR[0], LR[1].replace("[], initializer=tf.constant_initializer(0.1)", "initializer=tf.constant(0.1)")), each("sess.run(lr.assign(lr * 0.94))")),
    other("a rate of a scope's type", "TM209", (LR[0], "    with tf.variable_scope('rates', dtype=tf.float32):\n    " + LR[1]), each("sess.run(lr.assign(lr * 0.94))")),
    other("a rate times itself", "TM209", LR, each("sess.run(lr.assign(lr * lr))")),
    other("a rate times a setting that a function changes", "TM209", ("drawn = [0]\n", "DECAY = 0.93\ndrawn = [0]\n\n\ndef slower():\n    global DECAY\n    DECAY = 0.5\n"), LR, each("sess.run(lr.assign(lr * DECAY))", "slower()")),
    other("a rate that decays and is kept", "TM209", LR, each("print('%.9f' % sess.run(lr.assign(lr * 0.94)))")),
    other("a rate by NumPy of another name", "TM209", ("import numpy as np\n", "import numpy as np\nimport numpy\n"), LR, each("sess.run(lr.assign(lr * 0.94))")),
    other("a number of when it was made", "TM220", LR, (SAVER, "    reset = lr.assign(float(drawn[0] + 0.05))\n" + SAVER), each("sess.run(reset)")),
    other("a rate times a number of when it was made", "TM220", LR, (SAVER, "    decay = lr.assign(lr * float(drawn[0] + 0.5))\n" + SAVER), each("sess.run(decay)")),
    other("a rate times the number of a loop in front", "TM220", LR, (SAVER, "    for k in range(3):\n        print(k)\n    decay = lr.assign(lr * k)\n" + SAVER), each("sess.run(decay)")),
    other("beside the update", "TM220", OWN, (SAVER, SAVER + "    reset = step_count.assign(0)\n"), each("if step == 2:", "    sess.run([reset, train_op], feed_dict={X: np.ones([4, 3]), Y: np.ones([4, 1])})")),
    other("by a name that is asked for more", "TM220", OWN, (SAVER, SAVER + "    reset = step_count.assign(0)\n    print(reset is not None)\n"), before("sess.run(reset)")),
    other("by a name that is bound anew", "TM220", OWN, (SAVER, SAVER + "    reset = step_count.assign(0)\n    reset = step_count.assign(1)\n"), before("sess.run(reset)")),
    other("by the number of a loop that is bound anew", "TM209", OWN, each("sess.run(step_count.assign(step))", "step = np.int64(step)")),
    other("by the number of a range of another kind", "TM209", (COUNT, "    range = np.arange\n" + OWN[1]), each("sess.run(step_count.assign(step))")),
    other("by a tower's variable", "TM209", each("sess.run(tf.trainable_variables()[0].assign(np.zeros([3, 1])))")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
