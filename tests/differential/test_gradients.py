"""Gradients in other forms than one list of each tower's, averaged by one call: what loop style takes of them, and what not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import all_do_the_same, leaves, takes
from towermigrate.rewrite import rewrite_tree

START = "    tower_grads = []\n"
FORWARD = "                    out = net(x)\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
APPENDED = "                    tower_grads.append(grads)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
SAVER = "    saver = tf.train.Saver()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
HEAD = "drawn = [0]\n"
LOOP = "        for i in range(2):\n"

# Each tower's loss on a list, and nothing else.
LISTED = "                    losses.append(loss)\n"
LOSSES = ((START, "    losses = []\n"), (GRADS, LISTED), (APPENDED, ""), (AVERAGED, ""))
VECTOR = (LOSS, "                    loss = tf.reduce_sum(tf.square(out - y), 1)\n")
MEAN = "    mean = tf.reduce_mean(losses)\n"
MINIMIZED = "    train_op = opt.minimize(mean, global_step=step_count)\n"
COMPUTED = "    grads = opt.compute_gradients(mean)\n"
ROWS = (
    ("    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n",
     "    w = tf.get_variable('w', [3, 1], initializer=init(3, 1))\n    table = tf.get_variable('t', [4, 1], initializer=init(4, 1))\n"),
    ("    return tf.matmul(x, w) + b\n", "    return tf.matmul(x, w) + b + tf.nn.embedding_lookup(table, tf.constant([1, 1]))\n"),
)  # fmt: skip


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def of_mean(update: str, *more: Change) -> tuple[Change, ...]:
    """An update of what the towers' losses have in common, by these statements behind the towers."""
    return (*LOSSES, (APPLIED, update), *more)


def fetching(what: str) -> Change:
    return RUN, RUN.replace("loss]", f"{what}]")


# The gradients of the mean of the towers' losses.
MEANS = [
    case("minimized", *of_mean(MEAN + MINIMIZED)),
    case("minimized in place", *of_mean("    train_op = opt.minimize(tf.reduce_mean(losses), step_count)\n")),
    case("minimized without a step", *of_mean(MEAN + "    train_op = opt.minimize(loss=mean)\n")),
    case("by its name", *of_mean(MEAN + MINIMIZED.replace("step_count)", "step_count, name='train')"))),
    case("a sum by the number of losses", *of_mean("    mean = tf.add_n(losses) / len(losses)\n" + MINIMIZED)),
    case("a sum by the number of towers", *of_mean("    mean = tf.add_n(losses) / 2\n" + MINIMIZED)),
    case("a sum by a part", *of_mean("    mean = tf.multiply(1.0 / 2, tf.add_n(losses))\n" + MINIMIZED)),
    case("a sum of Python's", *of_mean("    mean = sum(losses) / float(len(losses))\n" + MINIMIZED)),
    case("a quotient", *of_mean("    mean = tf.div(tf.add_n(losses), 2.0, name='mean')\n" + MINIMIZED)),
    case("of what is stacked", *of_mean("    mean = tf.reduce_mean(tf.stack(values=losses, axis=0), 0)\n" + MINIMIZED)),
    case("in two statements", *of_mean("    total = tf.add_n(losses)\n    mean = total / 2\n" + MINIMIZED)),
    case("in two statements of one name", *of_mean("    mean = tf.stack(losses)\n    mean = tf.reduce_mean(mean, axis=[0])\n" + MINIMIZED)),
    case("called as each tower's loss", *of_mean(MEAN.replace("mean =", "loss =") + MINIMIZED.replace("mean,", "loss,"))),
    case("of another name of the list", *of_mean("    all_losses = losses\n    mean = tf.reduce_mean(all_losses)\n" + MINIMIZED)),
    case("fetched too", *of_mean(MEAN + MINIMIZED, fetching("mean"))),
    case("with the list", *of_mean(MEAN + MINIMIZED, (RUN, "            _, all_of = sess.run([train_op, losses], feed_dict={X: bx, Y: by})\n            value = sum(all_of)\n"))),
    case("of some variables", *of_mean(MEAN + "    params = tf.trainable_variables()\n" + MINIMIZED.replace("mean,", "mean, var_list=params,"))),
    case("of variables by their name", *of_mean(MEAN + "    params = [v for v in tf.trainable_variables() if 'w' in v.name]\n" + MINIMIZED.replace("mean,", "mean, var_list=params,"))),
    case("of a variable that no loss reaches", *of_mean(MEAN + MINIMIZED),
         ("    return tf.matmul(x, w) + b\n", "    c = tf.get_variable('c', [1], initializer=tf.constant_initializer(0.1))\n    return tf.matmul(x, w) + b + tf.stop_gradient(c)\n")),
    case("of losses of examples", *of_mean(MEAN + MINIMIZED, VECTOR, (RUN, RUN.replace("loss]", "mean]")))),
    case("of losses of examples, by row", *of_mean("    mean = tf.reduce_mean(losses, 0)\n" + MINIMIZED, VECTOR, (RUN, RUN.replace("_, value", "_, values")), ("% value)", "% values.sum())"))),
    case("of losses of examples, twice a mean", *of_mean("    mean = tf.reduce_mean(tf.add_n(losses) / 2)\n" + MINIMIZED, VECTOR, fetching("mean"))),
    case("of rows of a table", *of_mean(MEAN + MINIMIZED, *ROWS)),
    case("of rows of a table, by Adam", *of_mean(MEAN + MINIMIZED, *ROWS, (OPT, "    opt = tf.train.AdamOptimizer(0.02)\n"))),
    case("computed, then applied", *of_mean(MEAN + COMPUTED + APPLIED)),
    case("computed and applied in one", *of_mean(MEAN + APPLIED.replace("grads,", "opt.compute_gradients(mean),"))),
    case("computed with hints", *of_mean(MEAN + COMPUTED.replace("mean)", "mean, colocate_gradients_with_ops=True, aggregation_method=0)") + APPLIED)),
    case("computed and limited", *of_mean(MEAN + COMPUTED + "    grads = [(tf.clip_by_value(g, -0.1, 0.1), v) for g, v in grads]\n" + APPLIED)),
    case("computed and limited together", *of_mean(MEAN + COMPUTED + "    gs, vs = zip(*grads)\n    gs, _ = tf.clip_by_global_norm(gs, 0.1)\n" + APPLIED.replace("grads,", "list(zip(gs, vs)),"))),
    case("in turns with another optimizer", *of_mean(
        "    other = tf.train.AdamOptimizer(0.01)\n" + MEAN + MINIMIZED + "    other_op = other.minimize(mean, var_list=[v for v in tf.trainable_variables() if 'b' in v.name])\n",
        (RUN, RUN + "            sess.run(other_op, feed_dict={X: bx, Y: by})\n"))),
    case("beside the greatest", *of_mean("    top = tf.reduce_max(tf.stack(losses))\n" + MEAN + MINIMIZED, fetching("top"))),
    case("without a name", *of_mean(MEAN + "    train_op = [opt.minimize(mean)]\n"), (RUN, RUN.replace("train_op", "train_op[0]"))),
]  # fmt: skip
AGAIN = "    again = opt.minimize(mean)\n"
NO_MEANS = [
    other("a sum", "TM202", *of_mean("    mean = tf.add_n(losses)\n" + MINIMIZED)),
    other("a sum of Python's", "TM202", *of_mean("    mean = sum(losses)\n" + MINIMIZED)),
    other("the greatest", "TM202", *of_mean("    mean = tf.reduce_max(losses)\n" + MINIMIZED)),
    other("one tower's", "TM202", *of_mean("    mean = losses[0]\n" + MINIMIZED)),
    other("the last tower's", "TM202", *of_mean(MINIMIZED.replace("mean,", "loss,"))),
    other("some towers'", "TM202", *of_mean("    mean = tf.reduce_mean(losses[:1])\n" + MINIMIZED)),
    other("by another number", "TM202", *of_mean("    mean = tf.add_n(losses) / 3\n" + MINIMIZED)),
    other("by whole numbers", "TM202", *of_mean("    mean = tf.add_n(losses) * (1 // 2)\n" + MINIMIZED)),
    other("by a count that is bound anew", "TM202", ("def train():\n", "def train():\n    n = 2\n"), (LOOP, "        for i in range(n):\n"),
          *of_mean("    n = 4\n    mean = tf.add_n(losses) / n\n" + MINIMIZED)),
    other("by a count that the towers bind", "TM202", ("def train():\n", "def train():\n    n = 2\n"), (LOOP, "        for i in range(n):\n"),
          *of_mean("    mean = tf.add_n(losses) / n\n" + MINIMIZED, (FORWARD, FORWARD + "                    n = 3\n"))),
    other("twice the mean", "TM202", *of_mean("    mean = tf.reduce_mean(losses) * 2.0\n" + MINIMIZED)),
    other("the mean and a penalty", "TM202", *of_mean("    mean = tf.reduce_mean(losses) + 0.1 * tf.nn.l2_loss(tf.trainable_variables()[0])\n" + MINIMIZED)),
    other("of two lists", "TM202", *of_mean("    mean = tf.reduce_mean(losses + losses)\n" + MINIMIZED)),
    other("of losses with weights", "TM202", *of_mean("    mean = tf.add_n([k * l for k, l in zip([0.3, 0.7], losses)]) / 2\n" + MINIMIZED)),
    other("along another axis", "TM202", *of_mean("    mean = tf.reduce_mean(tf.stack(losses), 1)\n" + MINIMIZED, VECTOR)),
    other("of losses in a row", "TM202", *of_mean("    mean = tf.reduce_mean(tf.concat(losses, 0))\n" + MINIMIZED, VECTOR)),
    other("a sum of what is not Python's", "TM202", (HEAD, HEAD + "\n\ndef sum(values):\n    return values[0]\n\n"), *of_mean("    mean = sum(losses) / 2\n" + MINIMIZED)),
    other("by a length that is not Python's", "TM202", (HEAD, HEAD + "\n\ndef len(values):\n    return 3\n\n"), *of_mean("    mean = tf.add_n(losses) / len(losses)\n" + MINIMIZED)),
    other("bound anew", "TM202", *of_mean(MEAN + "    mean = mean * 2.0\n" + MINIMIZED)),
    other("of a list that held something", "TM203", *of_mean(MEAN + MINIMIZED), ("    losses = []\n", "    losses = []\n    losses.append(tf.constant(1.0))\n")),
    other("of a list that starts with something", "TM202", *of_mean(MEAN + MINIMIZED), ("    losses = []\n", "    losses = [tf.constant(1.0)]\n")),
    other("of a list that grows", "TM202", *of_mean("    losses.append(loss)\n" + MEAN + MINIMIZED)),
    other("of a list that shrinks", "TM202", *of_mean("    losses.pop()\n" + MEAN + MINIMIZED)),
    other("of a list that a function changes", "TM206", (HEAD, HEAD + "\n\ndef change(values):\n    values.append(values[0])\n\n"), *of_mean("    change(losses)\n" + MEAN + MINIMIZED)),
    other("of a list that gets more in a tower", "TM211", *of_mean(MEAN + MINIMIZED), (LISTED, LISTED + LISTED)),
    other("of a list that gets some towers' only", "TM211", *of_mean(MEAN + MINIMIZED), (LISTED, "                    if drawn:\n    " + LISTED)),
    other("of a list that gets the first tower's only", "TM214", *of_mean(MEAN + MINIMIZED), (LISTED, "                    if i == 0:\n    " + LISTED)),
    other("of a loss that the tower binds anew", "TM211", *of_mean(MEAN + MINIMIZED), (LISTED, LISTED + "                    loss = loss * 2.0\n")),
    other("of a loss that is bound anew behind", "TM211", *of_mean("    loss = loss * 2.0\n" + MEAN + MINIMIZED)),
    other("with a gradient of its own", "TM202", *of_mean(MEAN + MINIMIZED.replace("mean,", "mean, grad_loss=tf.constant(2.0),"))),
    other("with arguments that are not seen", "TM202", *of_mean(MEAN + "    more = {'grad_loss': tf.constant(2.0)}\n" + MINIMIZED.replace("mean,", "mean, **more,"))),
    other("of a variable twice", "TM211", *of_mean(MEAN + "    params = tf.trainable_variables() + tf.trainable_variables()\n" + MINIMIZED.replace("mean,", "mean, var_list=params,"))),
    other("also in a summary", "TM231", *of_mean(MEAN + "    shown = tf.summary.scalar('mean', mean)\n" + MINIMIZED), fetching("shown")),
    other("a sum that is fetched too", "TM203", *of_mean("    total = tf.add_n(losses)\n    mean = total / 2\n" + MINIMIZED, fetching("total"))),
    other("beside itself", "TM202", *of_mean(MEAN + MINIMIZED.replace("mean,", "mean, aggregation_method=int(mean is None),"))),
    other("twice in one run", "TM233", *of_mean(MEAN + MINIMIZED + AGAIN), (RUN, RUN.replace("_, value", "_, value, _").replace("loss]", "loss, again]"))),
    other("by an optimizer of its own", "TM202", (HEAD, HEAD + "\n\nclass Own(tf.train.GradientDescentOptimizer):\n    pass\n\n"), (OPT, "    opt = Own(0.1)\n"), *of_mean(MEAN + MINIMIZED)),
    other("in a tower", "TM222", (GRADS, "                    train_op = opt.minimize(loss)\n"), (APPENDED, ""), (AVERAGED, ""), (APPLIED, "")),
    other("of what is used further", "TM204", *of_mean(MEAN + "    train_op = tf.identity(opt.minimize(mean))\n")),
    other("applied by another optimizer", "TM204", *of_mean("    other = tf.train.AdamOptimizer(0.1)\n" + MEAN + COMPUTED + APPLIED.replace("opt.", "other."))),
    other("limited by their number", "TM204", *of_mean(MEAN + COMPUTED + "    grads = [(g / len(grads), v) for g, v in grads]\n" + APPLIED)),
    other("the last one twice", "TM204", *of_mean(MEAN + COMPUTED + "    grads = grads + [grads[-1]]\n" + APPLIED)),
    other("paired with variables anew", "TM204", *of_mean(MEAN + COMPUTED + "    gs, _ = zip(*grads)\n    grads = list(zip(gs, tf.trainable_variables()))\n" + APPLIED)),
    other("by a value of the last tower", "TM204", *of_mean(MEAN + COMPUTED + "    grads = [(g * loss, v) for g, v in grads]\n" + APPLIED)),
    other("of rows of a table, limited", "TM204", *of_mean(MEAN + COMPUTED + "    grads = [(tf.clip_by_norm(g, 0.1), v) for g, v in grads]\n" + APPLIED, *ROWS)),
]  # fmt: skip

# What a tower makes of its own gradients before they are averaged.
INSIDE = "                    "
CLIPPED = "grads = [(tf.clip_by_norm(g, 0.2), v) for g, v in grads]"
PARAMS = "params = tf.trainable_variables()"
MATMUL = "    return tf.matmul(x, w) + b\n"
UNREACHED = (
    MATMUL,
    "    c = tf.get_variable('c', [1], initializer=tf.constant_initializer(0.1))\n    return tf.matmul(x, w) + b + tf.stop_gradient(c)\n",
)
DROPPED = (
    "        stacked = tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0)\n",
    "        present = [g for g, _ in pairs if g is not None]\n        if not present:\n            continue\n        stacked = tf.stack(present)\n",
)


def own(*lines: str, to: str = "grads", more: tuple[Change, ...] = ()) -> tuple[Change, ...]:
    """A tower that makes its gradients by these statements, and puts them on the list."""
    made = "".join(f"{INSIDE}{line}\n" for line in lines)
    return (GRADS, made), (APPENDED, f"{INSIDE}tower_grads.append({to})\n"), *more


def clipped(*lines: str, more: tuple[Change, ...] = ()) -> tuple[Change, ...]:
    return own("grads = opt.compute_gradients(loss)", *lines, more=more)


OWN = [
    case("limited one by one", *clipped(CLIPPED)),
    case("limited by value", *clipped("grads = [(tf.clip_by_value(g, -0.1, 0.1), v) for g, v in grads]")),
    case("limited as another list", *own("gvs = opt.compute_gradients(loss, tf.trainable_variables())", "capped = [(tf.clip_by_norm(g, 0.2), v) for g, v in gvs]", to="capped")),
    case("limited together", *own("gs, vs = zip(*opt.compute_gradients(loss))", "gs, _ = tf.clip_by_global_norm(gs, 0.2)", to="zip(gs, vs)")),
    case("limited where they are collected", *own("grads = opt.compute_gradients(loss)", to="[(tf.clip_by_norm(g, 0.2), v) for g, v in grads]")),
    case("limited where they are taken", *own("grads = [(tf.clip_by_norm(g, 0.2), v) for g, v in opt.compute_gradients(loss)]")),
    case("limited by a setting", *clipped(CLIPPED.replace("0.2", "LIMIT"), more=((HEAD, HEAD + "LIMIT = 0.3\n"),))),
    case("limited by a function", (HEAD, HEAD + "\n\ndef limit(pairs):\n    gs, vs = zip(*pairs)\n    gs, _ = tf.clip_by_global_norm(gs, 0.1)\n    return list(zip(gs, vs))\n\n"), *clipped("grads = limit(grads)")),
    case("limited in a scope", *clipped("with tf.name_scope('clip'):", "    " + CLIPPED)),
    case("limited, and again behind the towers", *clipped(CLIPPED, more=((AVERAGED, AVERAGED + "    grads = [(tf.clip_by_norm(g, 0.1), v) for g, v in grads]\n"),))),
    case("halved", *clipped("grads = [(g * 0.5, v) for g, v in grads]")),
    case("divided by the number of towers", *clipped("grads = [(g / 2.0, v) for g, v in grads]")),
    case("of some variables, by name", *clipped("grads = [(g * 2.0, v) if 'w' in v.name else (g, v) for g, v in grads]")),
    case("those that there are", *clipped("grads = [(tf.clip_by_norm(g, 0.2), v) for g, v in grads if g is not None]", more=(UNREACHED,))),
    case("those that there are, with None dropped", *clipped("grads = [(tf.clip_by_norm(g, 0.2) if g is not None else None, v) for g, v in grads]", more=(UNREACHED, DROPPED))),
    case("of rows of a table", *clipped(CLIPPED, more=ROWS)),
    case("of rows of a table, together", *own("gs, vs = zip(*opt.compute_gradients(loss))", "gs, _ = tf.clip_by_global_norm(gs, 0.2)", to="zip(gs, vs)", more=ROWS)),
    case("of a loss of a sum", *clipped(CLIPPED, more=((LOSS, "                    loss = tf.reduce_sum(tf.square(out - y)) / 4\n"),))),
    case("of a loss of a sum, by the number of rows", *clipped(CLIPPED, more=((LOSS, "                    loss = tf.reduce_sum(tf.square(out - y)) / tf.to_float(tf.shape(x)[0])\n"),))),
    case("taken by tf.gradients", *own(PARAMS, "grads = list(zip(tf.gradients(loss, params), params))")),
    case("taken by tf.gradients in two statements", *own(PARAMS, "gs = tf.gradients(loss, params)", "grads = zip(gs, params)")),
    case("taken by tf.gradients where they are collected", *own(PARAMS, to="zip(tf.gradients(loss, params), params)")),
    case("taken by tf.gradients, of all variables", *own("gs = tf.gradients(loss, tf.trainable_variables())", to="list(zip(gs, tf.trainable_variables()))")),
    case("taken by tf.gradients, limited together", *own(PARAMS, "gs = tf.gradients(loss, params, colocate_gradients_with_ops=True)", "gs, norm = tf.clip_by_global_norm(gs, 0.1)", to="zip(gs, params)")),
    case("taken by tf.gradients, limited in one", *own(PARAMS, "gs, _ = tf.clip_by_global_norm(tf.gradients(loss, params), 0.1)", "grads = list(zip(gs, params))")),
    case("taken by tf.gradients, of rows of a table", *own(PARAMS, "gs, _ = tf.clip_by_global_norm(tf.gradients(loss, params), 0.1)", "grads = list(zip(gs, params))", more=ROWS)),
    case("taken by tf.gradients, in a comprehension", *own(PARAMS, "gs = [tf.clip_by_norm(g, 0.1) for g in tf.gradients(loss, params)]", to="zip(gs, params)")),
    case("taken by tf.gradients, of a loss that is computed there", *own(PARAMS, "gs = tf.gradients(loss * 2.0, params)", to="zip(gs, params)")),
    case("taken by tf.gradients, of none for some", *own(PARAMS, "grads = list(zip(tf.gradients(loss, params), params))", more=(UNREACHED, DROPPED))),
]  # fmt: skip
NO_OWN = [
    other("by the loss", "TM211", *clipped("grads = [(g * loss, v) for g, v in grads]")),
    other("by a value of the tower", "TM211", *clipped("grads = [(g * k, v) for g, v in grads]", more=((LOSS, LOSS + INSIDE + "k = tf.reduce_max(out)\n"),))),
    other("by the tower's number", "TM210", *clipped("grads = [(g * (i + 1.0), v) for g, v in grads]")),
    other("of one tower", "TM214", *clipped("if i == 0:", "    " + CLIPPED)),
    other("under a setting", "TM211", *clipped("if drawn:", "    " + CLIPPED)),
    other("in a loop", "TM211", *clipped("for k in range(2):", "    " + CLIPPED)),
    other("in place", "TM211", *clipped("grads[0] = (grads[0][0] * 2.0, grads[0][1])")),
    other("with one more", "TM211", *clipped("grads.append(grads[0])")),
    other("by another tower's", "TM206", *clipped("grads = [(g + l, v) for (g, v), l in zip(grads, last)]", "last = [g for g, _ in grads]", more=((START, START + "    last = [0.0, 0.0]\n"),))),
    other("with noise", "TM204", *clipped("grads = [(g + tf.random_normal([1]), v) for g, v in grads]")),
    other("shown", "TM211", *clipped("tf.summary.histogram('w', grads[0][0])")),
    other("asked", "TM211", *clipped("print(len(grads))")),
    other("of another value then", "TM211", *clipped("grads = [(loss, v) for v in tf.trainable_variables()]")),
    other("after they were collected", "TM211", *clipped(more=((APPENDED, APPENDED + INSIDE + CLIPPED + "\n"),))),
    other("read behind the towers", "TM211", *clipped(CLIPPED, more=((AVERAGED, "    norm = tf.global_norm([g for g, _ in grads])\n" + AVERAGED), fetching("norm")))),
    other("a norm that is fetched", "TM209", *own("gs, vs = zip(*opt.compute_gradients(loss))", "gs, norm = tf.clip_by_global_norm(gs, 0.2)", to="zip(gs, vs)", more=(fetching("norm"),))),
    other("by the name of a value of the tower", "TM211", *own("gs, vs = zip(*opt.compute_gradients(loss))", "gs, out = tf.clip_by_global_norm(gs, 0.2)", to="zip(gs, vs)", more=(fetching("out"),))),
    other("of two losses", "TM211", *own("grads = opt.compute_gradients(loss)", "more = opt.compute_gradients(out)", "grads = [(g + h, v) for (g, v), (h, _) in zip(grads, more)]")),
    other("of two losses in one statement", "TM211", *own(PARAMS, "gs = [g + h for g, h in zip(tf.gradients(loss, params), tf.gradients(out, params))]", to="zip(gs, params)")),
    other("on two lists", "TM211", *clipped(CLIPPED, more=((START, START + "    others = []\n"), (APPENDED, APPENDED + INSIDE + "others.append(grads)\n")))),
    other("by the number of gradients of its own", "TM202", *own(PARAMS, "gs = tf.gradients(loss, params, grad_ys=tf.constant(2.0))", to="zip(gs, params)")),
    other("with a stop", "TM202", *own(PARAMS, "gs = tf.gradients(loss, params, stop_gradients=[out])", to="zip(gs, params)")),
    other("of a loss that is bound anew", "TM211", *own(PARAMS, "gs = tf.gradients(loss, params)", "loss = loss * 2.0", to="zip(gs, params)")),
    other("of the variables that are there by then", "TM230", *own(PARAMS, "grads = list(zip(tf.gradients(loss, params), params))"),
          (LOSS, LOSS.replace("loss =", "first =") + INSIDE + PARAMS + "\n" + INSIDE + "loss = first + tf.nn.l2_loss(tf.get_variable('late', [1], initializer=tf.constant_initializer(0.5)))\n"), (PARAMS + "\n" + INSIDE + "grads", "grads")),
    other("by an optimizer of its own", "TM202", (HEAD, HEAD + "\n\nclass Own(tf.train.GradientDescentOptimizer):\n    pass\n\n"), (OPT, "    opt = Own(0.1)\n"),
          *own(PARAMS, "grads = list(zip(tf.gradients(loss, params), params))")),
    other("by a function with an effect", "TM206", (HEAD, HEAD + "\n\ndef limit(g):\n    drawn.append(1)\n    return g\n\n"), *clipped("grads = [(limit(g), v) for g, v in grads]")),
    other("by a variable that they make", "TM211", *clipped("grads = [(g * tf.get_variable('k' + str(len(v.shape)), [], initializer=tf.constant_initializer(0.5), trainable=False), v) for g, v in grads]")),
    other("by a variable that a function makes", "TM211", (HEAD, HEAD + "\n\ndef limit(g):\n    return g * tf.get_variable('k', [], initializer=tf.constant_initializer(0.5), trainable=False)\n\n"), *clipped("grads = [(limit(g), v) for g, v in grads]")),
    other("by a function that collects", "TM211", (HEAD, HEAD + "\n\ndef limit(g):\n    tf.add_to_collection('gs', g)\n    return g\n\n"), *clipped("grads = [(limit(g), v) for g, v in grads]")),
    other("by a setting that changes later", "TM224", (HEAD, HEAD + "LIMIT = [0.3]\n"), *clipped(CLIPPED.replace("0.2", "LIMIT[0]"), more=((SAVER, SAVER + "    LIMIT[0] = 5.0\n"),))),
]  # fmt: skip


def applied(what: str) -> str:
    return APPLIED.replace("grads,", f"{what},")


def in_place(what: str) -> tuple[Change, ...]:
    """An update of what is made of an average in the same statement."""
    return (AVERAGED, ""), (APPLIED, applied(what))


# Averaged gradients of variables that no tower reaches: None in TF1, left out in a step.
PASSED = (
    "        stacked = tf.concat(",
    "        if pairs[0][0] is None:\n            averaged.append((None, pairs[0][1]))\n            continue\n        stacked = tf.concat(",
)
FIX = (
    HEAD,
    HEAD
    + "\n\ndef fix(pairs):\n    return [(tf.ones_like(v) if g is None else g, v) for g, v in pairs]\n\n",
)
LIMIT = (
    HEAD,
    HEAD
    + "\n\ndef limit(pairs):\n    return [(tf.clip_by_norm(g, 0.1), v) for g, v in pairs if g is not None]\n\n",
)


def missing(
    *lines: str, to: str = "grads", more: tuple[Change, ...] = ()
) -> list[tuple[Change, ...]]:
    """What these statements make of averaged gradients, or of those of a mean, one of which is None."""
    text = "".join(f"    {line}\n" for line in lines)
    mean = of_mean(MEAN + COMPUTED + text + applied(to), UNREACHED, *more)
    return [(PASSED, UNREACHED, (AVERAGED, AVERAGED + text), (APPLIED, applied(to)), *more), mean]


def both(name: str, *rule: str, changes: list[tuple[Change, ...]]) -> list[Any]:
    ids = (f"{name}", f"{name}, of a mean")
    return [
        pytest.param(each, *rule, id=f"None {one}") for one, each in zip(ids, changes, strict=True)
    ]


NONE = [
    *both("dropped", changes=missing("grads = [(tf.clip_by_norm(g, 0.1), v) for g, v in grads if g is not None]")),
    *both("dropped by a function", changes=missing("grads = limit(grads)", more=(LIMIT,))),
    *both("passed on", changes=missing("grads = [(None if g is None else g * 0.5, v) for g, v in grads]")),
    *both("passed on, by pairs", changes=missing("grads = [(tf.clip_by_norm(p[0], 0.1) if p[0] is not None else p[0], p[1]) for p in grads]")),
    *both("limited with the others", changes=missing("gs, vs = zip(*grads)", "gs, _ = tf.clip_by_global_norm(gs, 0.1)", to="list(zip(gs, vs))")),
]  # fmt: skip
NO_NONE = [
    *both("made ones", "TM204", changes=missing("grads = [(g if g is not None else tf.ones_like(v), v) for g, v in grads]")),
    *both("made zeros by Adam", "TM204", changes=missing("grads = [(tf.zeros_like(v) if g is None else g, v) for g, v in grads]", more=((OPT, "    opt = tf.train.AdamOptimizer(0.02)\n"),))),
    *both("made ones by a function", "TM204", changes=missing("grads = fix(grads)", more=(FIX,))),
    *both("made ones where they are applied", "TM204", changes=missing(to="[(g if g is not None else tf.ones_like(v), v) for g, v in grads]")),
    *both("made ones by a function where they are applied", "TM204", changes=missing(to="fix(grads)", more=(FIX,))),
    *both("counted", "TM204", changes=missing("grads = [(g * (1.0 + k), v) for k, (g, v) in enumerate(grads) if g is not None]")),
    *both("sliced", "TM204", changes=missing("grads = grads[1:]")),
    *both("sliced where they are applied", "TM204", changes=missing(to="grads[:-1]")),
    *both("paired with variables anew", "TM204", changes=missing("gs, _ = zip(*grads)", "params = tf.trainable_variables()", to="list(zip(gs, params))")),
    other("None made ones in one statement with the average", "TM204", PASSED, UNREACHED, *in_place("[(tf.ones_like(v) if g is None else g, v) for g, v in average_gradients(tower_grads)]")),
    other("None made ones in one statement, of a mean", "TM204", *of_mean(MEAN + applied("[(tf.ones_like(v) if g is None else g, v) for g, v in opt.compute_gradients(mean)]"), UNREACHED)),
]  # fmt: skip

# Averaged gradients and those of one tower, which a replica must not mix.
NO_MIXED = [
    other("averaged ones by a tower's loss", "TM204", (AVERAGED, AVERAGED + "    grads = [(g * loss, v) for g, v in grads]\n")),
    other("averaged ones by what is made of a tower's loss", "TM204", (AVERAGED, "    scale = 1.0 / (1.0 + loss)\n" + AVERAGED + "    grads = [(g * scale, v) for g, v in grads]\n")),
    other("averaged ones by a tower's value, bound anew", "TM204", (AVERAGED, AVERAGED + "    out = tf.reduce_mean(out)\n    grads = [(g * out, v) for g, v in grads]\n")),
    other("averaged ones by a tower's loss, where they are applied", "TM204", (APPLIED, APPLIED.replace("grads,", "[(g * loss, v) for g, v in grads],"))),
    other("those of the last tower, behind", "TM211", (AVERAGED, "    norm = tf.global_norm([g for g, _ in grads])\n" + AVERAGED), fetching("norm")),
    other("averaged ones by a tower's loss, in one statement with the average", "TM204", *in_place("[(g * loss, v) for g, v in average_gradients(tower_grads)]")),
    other("averaged ones by what is made of a tower's loss, in one statement", "TM204", (AVERAGED, "    k = 1.0 / (1.0 + loss)\n"), (APPLIED, applied("[(g * k, v) for g, v in average_gradients(tower_grads)]"))),
    other("averaged ones by a function of a tower's loss, in one statement", "TM204", (AVERAGED, "    scale = lambda g: g * loss\n"), (APPLIED, applied("[(scale(g), v) for g, v in average_gradients(tower_grads)]"))),
    other("with noise made before, in one statement with the average", "TM204", (AVERAGED, "    k = tf.random_uniform([])\n"), (APPLIED, applied("[(g * k, v) for g, v in average_gradients(tower_grads)]"))),
    other("with noise, in one statement with the average", "TM204", *in_place("[(g + tf.random_normal([1]), v) for g, v in average_gradients(tower_grads)]")),
    other("those of a mean by a tower's loss, in one statement", "TM204", *of_mean(MEAN + applied("[(g * loss, v) for g, v in opt.compute_gradients(mean)]"))),
    other("those of a mean, of rows of a table, in one statement", "TM204", *of_mean(MEAN + applied("[(tf.clip_by_norm(g, 0.1), v) for g, v in opt.compute_gradients(mean)]"), *ROWS)),
    other("bound anew before they are collected", "TM211", (APPENDED, INSIDE + "grads = [(loss, v) for v in tf.trainable_variables()]\n" + APPENDED)),
]  # fmt: skip

# Optimizers that settings choose.
KIND = (HEAD, HEAD + "KIND = 'Adam'\n")
CHOSEN = "    if {}:\n        opt = tf.train.AdamOptimizer({})\n    else:\n        opt = tf.train.MomentumOptimizer({}, momentum=0.9)\n"
MAKER = "\n\ndef make(kind, rate, momentum=0.9):\n    if kind == 'Momentum':\n        return tf.train.MomentumOptimizer(rate, momentum)\n    return tf.train.AdamOptimizer(rate)\n\n"


def chosen(text: str, *more: Change) -> tuple[Change, ...]:
    return (KIND, (OPT, text), *more)


def maker(text: str, call: str = "make(KIND, 0.02)", *more: Change) -> tuple[Change, ...]:
    return (HEAD, HEAD + "KIND = 'Adam'\n" + text), (OPT, f"    opt = {call}\n"), *more


RATE = "    rate = tf.train.exponential_decay(0.1, step_count, 2, 0.5)\n"
CHOICES = [
    case("by an if", *chosen(CHOSEN.format("KIND == 'Adam'", 0.02, 0.1))),
    case("by an if that asks a text", *chosen(CHOSEN.format("KIND.lower() == 'momentum'", 0.02, 0.1))),
    case("by an elif, or none", *chosen("    if KIND == 'sgd':\n        opt = tf.train.GradientDescentOptimizer(0.1)\n    elif KIND == 'Adam':\n        opt = tf.train.AdamOptimizer(0.02)\n    else:\n        raise ValueError(KIND)\n")),
    case("by an if, with a schedule", *chosen(RATE + CHOSEN.format("KIND == 'Adam'", "rate", "rate"))),
    case("by an if, for a mean", *chosen(CHOSEN.format("KIND == 'Adam'", 0.02, 0.1)), *of_mean(MEAN + MINIMIZED)),
    case("by a function", *maker(MAKER)),
    case("by a function, by keywords", *maker(MAKER, "make(kind='Momentum', rate=0.1)")),
    case("by a function of one name", *maker(MAKER.replace("return tf.train.Adam", "opt = tf.train.Adam").replace("(rate)\n", "(rate)\n    return opt\n"))),
    case("behind the towers, for a mean", *of_mean(MEAN + CHOSEN.format("KIND == 'Adam'", 0.02, 0.1) + MINIMIZED), KIND, (OPT, "")),
]  # fmt: skip
NO_CHOICES = [
    other("by a call", "TM202", *chosen(CHOSEN.format("drawn.pop() == 1", 0.02, 0.1))),
    other("by a tensor", "TM202", *chosen(CHOSEN.format("tf.constant(1).op.name == 'Const'", 0.02, 0.1))),
    other("by a name of the graph", "TM211", *chosen(CHOSEN.format("X.op.name == 'Placeholder'", 0.02, 0.1).replace("    if X", "    X = tf.placeholder(tf.float32, [None, 3])\n    if X")), ("    X = tf.placeholder(tf.float32, [None, 3])\n    Y =", "    Y =")),
    other("with something else", "TM202", *chosen(CHOSEN.format("KIND == 'Adam'", 0.02, 0.1) + "        drawn.append(1)\n")),
    other("one that is there already", "TM202", *chosen("    opt = None\n" + CHOSEN.format("KIND == 'Adam'", 0.02, 0.1))),
    other("and made anew", "TM211", *chosen(CHOSEN.format("KIND == 'Adam'", 0.02, 0.1) + "    opt = tf.train.AdamOptimizer(0.1)\n")),
    other("one of the program's own", "TM202", (HEAD, HEAD + "KIND = 'Adam'\n\n\nclass Own(tf.train.AdamOptimizer):\n    pass\n\n"), (OPT, CHOSEN.format("KIND == 'Adam'", 0.02, 0.1).replace("tf.train.AdamOptimizer", "Own"))),
    other("with a rate that is computed", "TM202", *chosen(RATE + CHOSEN.format("KIND == 'Adam'", "tf.maximum(rate, 0.01)", 0.1))),
    other("with a schedule that it does not call", "TM211", *chosen(RATE + CHOSEN.format("KIND == 'Adam'", "rate", "rate").replace("MomentumOptimizer(rate, momentum=0.9)", "FtrlOptimizer(rate)"))),
    other("with a schedule, by a function", "TM211", *maker(MAKER, "make(KIND, rate)", ("    X = tf.placeholder", RATE + "    X = tf.placeholder")), ("    opt = make(KIND, rate)\n", ""), ("    tower_grads = []\n", "    opt = make(KIND, rate)\n    tower_grads = []\n")),
    other("by a function that counts", "TM202", *maker(MAKER.replace("    if kind", "    drawn[0] += 1\n    if kind"))),
    other("by a function that makes variables", "TM202", *maker(MAKER.replace("    if kind", "    rate = tf.get_variable('rate', [], initializer=tf.constant_initializer(0.1), trainable=False)\n    if kind"))),
    other("by a function that computes the rate", "TM202", *maker(MAKER.replace("Optimizer(rate)", "Optimizer(tf.constant(rate))"))),
    other("by a function with another around it", "TM202", *maker("\n\ndef twice(f):\n    return f\n\n\n@twice" + MAKER[1:])),
    other("by a function that may give another thing", "TM202", *maker(MAKER.replace("return tf.train.AdamOptimizer(rate)", "return kind"), "make('Momentum', 0.1)")),
]  # fmt: skip

TAKEN = [*MEANS, *OWN, *NONE, *CHOICES]
REFUSED = [*NO_MEANS, *NO_OWN, *NO_NONE, *NO_MIXED, *NO_CHOICES]


@pytest.mark.parametrize("changes", TAKEN)
def test_is_taken(changes: tuple[Change, ...]) -> None:
    takes(changes)


@pytest.mark.full
def test_taken_programs_do_the_same() -> None:
    all_do_the_same(TAKEN)


@pytest.mark.parametrize(("changes", "rule"), REFUSED)
def test_is_left(changes: tuple[Change, ...], rule: str) -> None:
    leaves(changes, rule)


def test_what_is_written() -> None:
    """An update of a mean reads like any other stage."""
    text = rewrite_tree(program(*of_mean(MEAN + MINIMIZED))).texts["train.py"]
    assert (
        '            grads = tm.tower_gradients(opt, loss, variables.trainable(), none="skip")\n'
        in text
    )
    assert "            opt.apply_gradients(grads, global_step=step_count)\n" in text
