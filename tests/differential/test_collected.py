"""What towers collect without a name, and names of theirs that are bound anew behind them: taken spellings, and others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

EMPTY = "    tower_grads = []\n"
APPENDED = "                    tower_grads.append(grads)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SAVER = "    saver = tf.train.Saver()\n"
DEF = "def batch(rows):\n"
LOSSES = (
    (EMPTY, EMPTY + "    losses = []\n"),
    (APPENDED, APPENDED + "                    losses.append(loss)\n"),
)
MEAN = "    loss = tf.reduce_mean(losses)\n"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def collected(value: str) -> tuple[Change, Change]:
    return (EMPTY, EMPTY + "    errors = []\n"), (APPENDED, APPENDED + f"                    errors.append({value})\n")  # fmt: skip


def behind(text: str) -> Change:
    return APPLIED, text + APPLIED


def showing(name: str) -> Change:
    return RUN, f"            _, value, more = sess.run([train_op, loss, {name}], feed_dict={{X: bx, Y: by}})\n            print('%.5f' % more)\n"  # fmt: skip


ERRORS = collected("tf.reduce_mean(tf.abs(out - y))")


def added(first: str, value: str = "loss") -> tuple[Change, Change]:
    return (EMPTY, EMPTY + f"    total = {first}\n"), (APPENDED, APPENDED + f"                    total += {value}\n")  # fmt: skip


TOTAL = added("0")

TAKEN = [
    case("a call", *ERRORS, behind("    error = tf.reduce_mean(errors)\n"), showing("error")),
    case("an operation", *collected("loss * 2.0 + 1.0"), behind("    error = tf.reduce_mean(errors)\n"), showing("error")),
    case("over lines", *collected("tf.reduce_max(\n                        tf.abs(out - y))"), behind("    error = tf.reduce_mean(errors)\n"), showing("error")),
    case("two of them", (EMPTY, EMPTY + "    errors, shown = [], []\n"), (APPENDED, APPENDED + "                    errors.append(tf.reduce_mean(tf.abs(out - y)))\n                    shown.append(tf.reduce_max(out))\n"), behind("    error = tf.reduce_mean(errors) + tf.reduce_max(shown)\n"), showing("error")),
    case("a name that is there", *ERRORS, ("out = net(x)\n", "out = net(x)\n                    error = out - y\n"), behind("    mean = tf.reduce_mean(errors)\n"), showing("mean")),
    case("the mean of the losses, before the average", *LOSSES, (AVERAGED, MEAN + AVERAGED)),
    case("the last one's loss, before the average", (AVERAGED, "    loss = loss * 3.0\n" + AVERAGED)),
    case("a list of variables that is bound anew", ("grads = opt.compute_gradients(loss)", "params = tf.trainable_variables('w')\n                    grads = opt.compute_gradients(loss, params)"), (AVERAGED, "    params = tf.trainable_variables()\n" + AVERAGED), (APPLIED, APPLIED.replace("train_op", "moved") + "    ema = tf.train.ExponentialMovingAverage(0.9)\n    with tf.control_dependencies([moved]):\n        train_op = ema.apply(params)\n")),
    case("summaries of all towers", (EMPTY, EMPTY + "    summaries = []\n"), (APPENDED, APPENDED + "                    summaries.append(tf.summary.scalar('loss', loss))\n"), (SAVER, "    shown = tf.summary.merge(summaries)\n    writer = tf.summary.FileWriter('log')\n" + SAVER), (RUN, "            _, value, text = sess.run([train_op, loss, shown], feed_dict={X: bx, Y: by})\n            writer.add_summary(text, step)\n")),
    case("the mean of the losses", *LOSSES, behind(MEAN)),
    case("their sum by their number", *LOSSES, behind("    loss = tf.add_n(losses) / len(losses)\n")),
    case("their sum", *LOSSES, behind("    loss = tf.add_n(losses)\n")),
    case("behind the update", *LOSSES, (SAVER, MEAN + SAVER)),
    case("summarized", *LOSSES, behind(MEAN + "    tf.summary.scalar('loss', loss)\n    shown = tf.summary.merge_all()\n    writer = tf.summary.FileWriter('log')\n"), (RUN, "            _, value, text = sess.run([train_op, loss, shown], feed_dict={X: bx, Y: by})\n            writer.add_summary(text, step)\n")),
    case("read between", *LOSSES, behind("    last = loss * 2.0\n" + MEAN), showing("last")),
    case("a name that functions have too", *LOSSES, behind(MEAN), (DEF, "def other():\n    loss = 1.0\n    return loss\n\n\n" + DEF)),
    case("an attribute of that name", *LOSSES, behind(MEAN), ("'loss', '%.6f' % value", "'loss', '%.6f' % value, np.float32(0).real")),
    case("losses that are added up", *TOTAL, behind("    mean = total / 2\n"), showing("mean")),
    case("losses that are added up from 0.0", *added("0.0"), showing("total")),
    case("losses that are added up, and divided under their name", *TOTAL, behind("    total = total / 2\n"), showing("total")),
]  # fmt: skip

LEFT = [
    other("added up where `sum` is another function", "TM206", ("def batch(rows):\n", "def sum(xs):\n    return xs[0] * 3.0\n\n\ndef batch(rows):\n"), *TOTAL, showing("total")),
    other("read by an f-string", "TM223", *LOSSES, behind(MEAN), (SAVER, "    text = f'{loss}'\n" + SAVER)),
    other("added up from another number", "TM206", *added("1.0"), showing("total")),
    other("added up and read between", "TM206", *TOTAL, (APPENDED, APPENDED + "                    half = total * 0.5\n"), showing("total")),
    other("added up for some", "TM206", (EMPTY, EMPTY + "    total = 0\n"), (APPENDED, APPENDED + "                    if i == 1:\n                        total += loss\n"), showing("total")),
    other("of the last one too", "TM203", *LOSSES, behind("    loss = loss + tf.reduce_mean(losses)\n")),
    other("bound under a condition", "TM203", *LOSSES, behind("    if len(losses) > 1:\n        loss = tf.reduce_mean(losses)\n")),
    other("bound twice", "TM203", *LOSSES, behind(MEAN + "    loss = loss * 2.0\n")),
    other("read by a function", "TM210", *LOSSES, behind(MEAN + "    def shown():\n        return loss\n    extra = shown()\n"), showing("extra")),
    other("found by a text", "TM210", *LOSSES, behind(MEAN + "    extra = locals()['loss']\n"), showing("extra")),
    other("bound in the loop of the runs", "TM209", *LOSSES, (RUN, RUN + "            loss = tf.reduce_mean(losses)\n")),
    other("deleted", "TM234", *LOSSES, behind(MEAN), ("        print('draws', drawn[0])\n", "        print('draws', drawn[0])\n        del loss\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
