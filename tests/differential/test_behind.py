"""Values that a program makes of what all of its towers gave: spellings that loop style takes, and neighbours it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

APPENDED = "                    tower_grads.append(grads)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
FORWARD = "                    out = net(x)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
START = "    tower_grads = []\n"

EMPTY = (START, START + "    losses, outs, counts = [], [], []\n")
FILLED = (
    APPENDED,
    APPENDED
    + "                    losses.append(loss)\n                    outs.append(out)\n"
    + "                    count = tf.reduce_sum(tf.cast(tf.greater(out, 0.1), tf.int32))\n"
    + "                    counts.append(count)\n",
)
SPLIT = (
    (START, START + "    xs, ys = tf.split(X, 2), tf.split(Y, 2)\n"),
    ("x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]", "x, y = xs[i], ys[i]"),
)
FEED = ", feed_dict={X: bx, Y: by})"


def told(names: str) -> tuple[str, str]:
    """The targets of a run for these names, and a line that prints what they got."""
    targets = ", ".join(f"{name}_value" for name in names.split(", "))
    return targets, f"            print([np.round(each, 5).tolist() for each in [{targets}]])\n"


def case(name: str, *changes: Change) -> Any:
    return pytest.param((EMPTY, FILLED, *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param((EMPTY, FILLED, *changes), rule, id=name)


def behind(text: str, names: str = "shown") -> tuple[Change, Change]:
    """Statements behind the towers, and what they bind shown beside the update and the loss."""
    targets, show = told(names)
    run = f"            _, value, {targets} = sess.run([train_op, loss, {names}]{FEED}\n"
    return (AVERAGED, AVERAGED + text), (RUN, run + show)


def alone(text: str, names: str = "shown") -> tuple[Change, Change]:
    """The same in a run of its own, which does not train."""
    targets, show = told(names)
    run = f"            value, {targets} = sess.run([loss, {names}]{FEED}\n"
    return (AVERAGED, AVERAGED + text), (RUN, run + show + RUN)


def summary(text: str) -> tuple[Change, ...]:
    """Statements behind the towers that bind a summary, which a run writes."""
    return (
        (AVERAGED, AVERAGED + text),
        ("    with tf.Session", "    writer = tf.summary.FileWriter('logs')\n    with tf.Session"),
        (RUN, f"            _, value, note = sess.run([train_op, loss, shown]{FEED}\n            writer.add_summary(note, step)\n"),
        ("        print('draws'", "        writer.close()\n        print('draws'"),
    )  # fmt: skip


def more(value: str) -> tuple[Change, Change]:
    """Another list over the towers."""
    kept = f"                    more = {value}\n                    mores.append(more)\n"
    lists = "losses, outs, counts = [], [], []"
    return (lists, "mores, " + lists.replace("= [],", "= [], [],")), (FILLED[1], FILLED[1] + kept)


TAKEN = [
    case("a mean", *behind("    shown = tf.reduce_mean(outs)\n")),
    case("a mean by itself", *alone("    shown = tf.reduce_mean(outs)\n")),
    case("a mean of whole numbers", *behind("    shown = tf.reduce_mean(counts)\n")),
    case("a mean over the first axis", *behind("    shown = tf.reduce_mean(outs, 0)\n")),
    case("a mean of a stack", *behind("    shown = tf.reduce_mean(tf.stack(counts))\n")),
    case("beside the mean loss", *behind("    mean_loss = tf.reduce_mean(losses)\n    shown = tf.reduce_mean(outs)\n", "mean_loss, shown")),
    case("beside a list", *behind("    shown = tf.reduce_mean(outs)\n", "losses, shown")),
    case("beside the list it is made of", *behind("    shown = tf.reduce_mean(outs)\n", "shown, outs")),
    case("beside the value of the last tower", *behind("    shown = tf.reduce_max(outs)\n", "shown, out")),
    case("rows one after the other", *behind("    shown = tf.concat(outs, 0)\n")),
    case("rows by keyword", *behind("    shown = tf.concat(values=outs, axis=0)\n")),
    case("rows, then more", *behind("    rows = tf.concat(outs, axis=0)\n    shown = tf.reduce_mean(rows, axis=0)\n    most = tf.argmax(tf.abs(rows), 0)\n", "shown, most")),
    case("a sum", *behind("    shown = tf.add_n(counts)\n")),
    case("a sum by Python", *behind("    shown = sum(counts)\n")),
    case("a sum by the count", *behind("    shown = tf.add_n(counts) / len(counts)\n")),
    case("a sum by a number", *behind("    shown = tf.add_n(outs) / 2.0\n")),
    case("a comprehension", *behind("    shown = tf.stack([tf.reduce_max(each) for each in outs])\n")),
    case("one of them", *behind("    shown = losses[0] * 2.0\n")),
    case("the last of them", *behind("    shown = tf.sqrt(losses[-1])\n")),
    case("a difference of two", *behind("    shown = losses[0] - losses[1]\n")),
    case("of two lists", *behind("    shown = tf.add_n(losses) + tf.cast(tf.add_n(counts), tf.float32)\n")),
    case("pairs of two lists", *behind("    shown = tf.add_n([a * tf.cast(b, tf.float32) for a, b in zip(losses, counts)])\n")),
    case("what a mean loss makes", *behind("    mean_loss = tf.reduce_mean(losses)\n    shown = tf.sqrt(mean_loss)\n")),
    case("what a fetched mean loss makes", *behind("    mean_loss = tf.reduce_mean(losses)\n    shown = tf.exp(mean_loss)\n", "mean_loss, shown")),
    case("two at once", *behind("    shown, most = tf.reduce_mean(outs), tf.reduce_max(outs)\n", "shown, most")),
    case("under the name of a tower's value", *behind("    out = tf.reduce_mean(outs)\n", "out")),
    case("of a list by another name", *behind("    known = outs\n    shown = tf.reduce_mean(known)\n")),
    case("with a number", (START, START + "    half = 0.5\n"), *behind("    shown = half * tf.add_n(losses)\n")),
    case("with a name", *behind("    shown = tf.reduce_mean(outs, name='mean_out')\n")),
    case("with comments", *behind("    # How far it is.\n    shown = tf.reduce_mean(outs)  # of all\n")),
    case("with the whole of an input", *SPLIT, *behind("    rows = tf.concat(outs, 0)\n    shown = tf.reduce_mean(tf.abs(rows - tf.reduce_mean(Y)))\n")),
    case("with the whole of an input, by itself", *SPLIT, *alone("    shown = tf.concat(outs, 0) - Y\n")),
    case("with two whole inputs", *SPLIT, *behind("    shown = tf.reduce_sum(tf.concat(outs, 0) * Y) + tf.reduce_sum(X)\n")),
    case("in a summary", *summary("    cost = tf.reduce_mean(losses)\n    shown = tf.summary.scalar('cost/all', cost)\n")),
    case("in a summary of all", *summary("    shown = tf.summary.histogram('rows/all', tf.concat(outs, 0))\n")),
    case("in summaries that are merged", *summary("    tf.summary.scalar('cost/all', tf.reduce_mean(losses))\n    tf.summary.scalar('rows/all', tf.reduce_mean(outs))\n    shown = tf.summary.merge_all()\n")),
    case("by runs of two kinds", (AVERAGED, AVERAGED + "    mean_loss = tf.reduce_mean(losses)\n    shown = tf.reduce_mean(outs)\n"), (RUN, f"            _, value = sess.run([train_op, mean_loss]{FEED}\n            shown_value, mean_loss_value = sess.run([shown, mean_loss]{FEED}\n" + told("shown, mean_loss")[1])),
]  # fmt: skip

LEFT = [
    other("of tuples", "TM203", *more("(loss, tf.reduce_max(out))"), *behind("    shown = tf.add_n([each[0] for each in mores])\n")),
    other("of lists", "TM203", *more("[loss, tf.reduce_max(out)]"), *behind("    shown = tf.add_n([each[0] for each in mores])\n")),
    other("of dicts", "TM203", *more("{'loss': loss}"), *behind("    shown = tf.add_n([each['loss'] for each in mores])\n")),
    other("of parts", "TM203", *more("tf.split(out, 2)"), *behind("    shown = tf.add_n([each[0] for each in mores])\n")),
    other("of variables", "TM203", *more("tf.trainable_variables()[0]"), *behind("    shown = tf.reduce_mean(tf.stack(mores))\n")),
    other("of None", "TM203", *more("None"), *behind("    shown = tf.reduce_mean(outs) * len([each for each in mores if each is None])\n")),
    other("of numbers of Python", "TM203", *more("2"), *behind("    shown = tf.reduce_mean(outs) + sum(mores)\n")),
    other("under the name of a number of a step", "TM203", (START, START + "    scale = 0.5\n"), *behind("    grads = [(g * scale, v) for g, v in grads]\n    scale = tf.reduce_mean(outs)\n", "scale")),
    other("that reads a variable", "TM203", (START, START + "    scale = tf.Variable(2.0, trainable=False)\n"), *behind("    shown = scale * tf.add_n(losses)\n")),
    other("that reads a value of the last tower", "TM203", *behind("    shown = tf.add_n(losses) - loss\n")),
    other("that reads an averaged gradient", "TM203", *behind("    shown = tf.add_n(losses) + tf.reduce_sum(grads[0][0])\n")),
    other("that reads the global step", "TM203", (START, START + "    at = tf.train.get_or_create_global_step()\n"), *behind("    shown = tf.add_n(losses) + tf.cast(at, tf.float32)\n")),
    other("that reads an input which is not fed", "TM209", *SPLIT, *behind("    shown = tf.concat(outs, 0) - Y\n"), (f"[train_op, loss, shown]{FEED}", "[train_op, loss, shown], feed_dict={X: bx})")),
    other("that reads an input of which the towers have slices", "TM203", *behind("    shown = tf.concat(outs, 0) - Y\n")),
    other("that reads a part of an input", "TM203", *SPLIT, *behind("    shown = outs[0] - ys[0]\n")),
    other("that draws", "TM203", *behind("    shown = tf.reduce_mean(tf.nn.dropout(outs[0], 0.5))\n")),
    other("that asserts", "TM203", *behind("    shown = tf.Print(tf.add_n(losses), [counts[0]])\n")),
    other("that reads a collection", "TM203", *behind("    shown = tf.add_n(losses) + tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])\n")),
    other("that takes gradients", "TM203", *behind("    shown = tf.gradients(tf.add_n(losses), outs)[0]\n")),
    other("that the update reads", "TM203", (AVERAGED, AVERAGED + "    scale = tf.reduce_mean(losses)\n    grads = [(g * scale, v) for g, v in grads]\n")),
    other("that waits for the update", "TM203", ("    saver = tf.train.Saver()\n", "    with tf.control_dependencies([train_op]):\n        shown = tf.add_n(losses)\n    saver = tf.train.Saver()\n"), (RUN, f"            shown_value, value = sess.run([shown, loss]{FEED}\n")),
    other("that is bound twice", "TM203", *behind("    shown = tf.reduce_mean(outs)\n    shown = shown * 2.0\n")),
    other("by the program's own function", "TM203", ("def batch(rows):\n", "def mean(given):\n    return tf.add_n(given) / len(given)\n\n\ndef batch(rows):\n"), *behind("    shown = mean(outs)\n")),
    other("by a method", "TM203", *behind("    shown = tf.reduce_mean(tf.stack(outs).get_shape().as_list())\n")),
    other("that changes the list", "TM206", *behind("    shown = tf.stack(losses)\n    losses.append(loss)\n")),
    other("in place", "TM206", *behind("    losses[0] = losses[0] * 2.0\n    shown = tf.stack(losses)\n")),
    other("of a list of the gradients", "TM210", *behind("    shown = tf.reduce_mean([tf.reduce_sum(each[0][0]) for each in tower_grads])\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
