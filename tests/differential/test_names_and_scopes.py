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
RATE = "    rate = tf.train.exponential_decay(0.2, step_count, 2, 0.5)\n"
RATED = (OPT, RATE + OPT.replace("0.1,", "rate,"))


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def behind(*lines: str) -> Change:
    """More lines behind what each step prints."""
    return SHOWN, SHOWN + "".join(f"            {line}\n" for line in lines)


def parts(x: str, y: str) -> Change:
    return SLICES, f"{MARGIN}x, y = {x}, {y}\n"


def of_mean(update: str, *before: str) -> tuple[Change, ...]:
    """The mean of the towers' losses is trained."""
    text = f"{MARGIN}losses.append(loss)\n    loss = tf.reduce_mean(losses)\n"
    text += "".join(f"    {line}\n" for line in before) + f"    {update}\n"
    return (GRADS, text), (TOWERS, "    losses = []\n")


def within(scope: str, reuse: str = "tf.get_variable_scope()") -> tuple[Change, ...]:
    return (SCOPE, f"    with {scope}:\n"), (REUSE, f"{MARGIN}{reuse}.reuse_variables()\n")


NAMELESS = (LOSS, ""), ("losses.append(loss)", "losses.append(tf.reduce_mean(tf.square(out - y)))")

TAKEN = [
    case("split in the towers", parts("tf.split(X, 2)[i]", "tf.split(Y, 2)[i]")),
    case("split in the towers, along a written axis", parts("tf.split(X, 2, axis=0)[i]", "tf.split(Y, 2, 0)[i]")),
    case("split once of two", parts("tf.split(X, 2)[i]", "Y[i * 2:(i + 1) * 2]")),
    case("the scope by its name", *within("tf.variable_scope(tf.get_variable_scope()) as vs", "vs")),
    case("a scope around", *within("tf.variable_scope('model')")),
    case("a scope around, by its name", *within("tf.variable_scope('model') as vs", "vs")),
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
    case("names printed, and the same name in a comprehension", (INIT, INIT + "        print(sum(int(np.prod(v.shape.as_list())) for v in tf.trainable_variables()))\n        for v in tf.trainable_variables():\n            print(v.name, v.get_shape().as_list())\n")),
]  # fmt: skip

LEFT = [
    other("split of what the tower makes", "TM227", parts("tf.split(X * 2.0, 2)[i]", "tf.split(Y, 2)[i]")),
    other("the other part", "TM227", parts("tf.split(X, 2)[1 - i]", "tf.split(Y, 2)[i]")),
    other("a scope around, without reuse", "TM218", (SCOPE, "    with tf.variable_scope('model'):\n"), (REUSE, "")),
    other("another scope's reuse", "TM211", (SCOPE, "    with tf.variable_scope('other') as vs:\n        pass\n    with tf.variable_scope('model'):\n"), (REUSE, f"{MARGIN}vs.reuse_variables()\n")),
    other("a scope around more than the towers", "TM201", *within("tf.variable_scope('model')"), (LOOP, "        extra = tf.get_variable('extra', [])\n" + LOOP)),
    other("a scope around that is named in summaries", "TM201", *within("tf.variable_scope('model')"), (LOSS, LOSS + f"{MARGIN}tf.summary.scalar('loss', loss)\n")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
