"""What loop style was widened to: spellings that it takes, which do the same when run, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import all_do_the_same, leaves, takes
from towermigrate.rewrite import rewrite_tree

DEVICE = "tf.device('/gpu:%d' % i)"
LOOP = "        for i in range(2):\n"
HEAD = "drawn = [0]\n"
START = "    tower_grads = []\n"
FORWARD = "                    out = net(x)\n"
REUSED = "                    tf.get_variable_scope().reuse_variables()\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
APPENDED = "                    tower_grads.append(grads)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
SAVER = "    saver = tf.train.Saver()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
MATMUL = "    return tf.matmul(x, w) + b\n"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


# The towers' devices, which go: they may differ, but have no effect.
DEVICES = [
    case("an item", (DEVICE, "tf.device(DEVICES[i])")),
    case("an item, counted round", (DEVICE, "tf.device(DEVICES[i % len(DEVICES)])")),
    case("a spec", (DEVICE, "tf.device(tf.DeviceSpec(device_type='GPU', device_index=i))")),
    case("an item of a tuple of its own", (DEVICE, "tf.device(('/gpu:0', '/gpu:1')[i])")),
    case("an item in a text", (DEVICE, "tf.device('/job:localhost' + DEVICES[i])")),
    case("two at once", (DEVICE, "tf.device(None), tf.device(DEVICES[i])")),
]
NO_DEVICES = [
    other("one that is taken away", "TM222", (DEVICE, "tf.device(DEVICES.pop(0))")),
    other("one that an iterator gives", "TM223", (START, "    left = iter(DEVICES)\n" + START), (DEVICE, "tf.device(next(left))")),
    other("a name", "TM227", (LOOP, LOOP + "            device = DEVICES[i]\n"), (DEVICE, "tf.device(device)")),
    other("an item elsewhere", "TM227", (LOSS, LOSS.replace("out - y", "out - y * [[1.0], [2.0]][i]"))),
    other("what a function does too", "TM206", (HEAD, HEAD + "\n\ndef place(i):\n    drawn[0] += 1\n    return DEVICES[i]\n"), (DEVICE, "tf.device(place(i))")),
]  # fmt: skip

# A flag that says no more than that variables are reused, by whatever name.
FLAG = (START, START + "    reuse = None\n")
FLAGGED = (REUSED, "")
FLAGS = [
    case("a keyword of its name", FLAG, FLAGGED,
         (FORWARD, "                    with tf.variable_scope('net', reuse=reuse):\n                        out = net(x)\n                    reuse = True\n")),
    case("a keyword in a function", FLAG, FLAGGED,
         ("def net(x):\n", "def net(x, reuse):\n  with tf.variable_scope('net', reuse=reuse):\n"),
         (FORWARD, "                    out = net(x, reuse=reuse)\n                    reuse = True\n")),
    case("handed over by position, by the index", FLAGGED,
         ("def net(x):\n", "def net(x, reuse):\n  with tf.variable_scope('net', reuse=reuse):\n"),
         (FORWARD, "                    out = net(x, i > 0)\n")),
    case("a layer's keyword, by the index", FLAGGED,
         (FORWARD, "                    out = tf.layers.dense(x, 1, kernel_initializer=init(3, 1), name='fc', reuse=i > 0)\n")),
    case("a layer's keyword", FLAG, FLAGGED,
         (FORWARD, "                    out = tf.layers.dense(x, 1, kernel_initializer=init(3, 1), name='fc', reuse=reuse)\n                    reuse = True\n")),
]  # fmt: skip
NO_FLAGS = [
    other("a factor", "TM214", FLAG, FLAGGED,
          (FORWARD, "                    with tf.variable_scope('net', reuse=reuse):\n                        out = net(x) * (2.0 if reuse else 1.0)\n                    reuse = True\n")),
    other("another keyword", "TM214", FLAG, FLAGGED,
          ("def net(x):\n", "def net(x, half=None):\n    x = x if half is None else x * 0.5\n"),
          (FORWARD, "                    with tf.variable_scope('net', reuse=reuse):\n                        out = net(x, half=reuse)\n                    reuse = True\n")),
]  # fmt: skip

# Parts of variables' names.
LISTED = "                    params = [v for v in tf.trainable_variables() if {}]\n                    grads = opt.compute_gradients(loss, params)\n"
NAMES = [
    case("a letter", (GRADS, LISTED.format("'w' in v.name"))),
    case("not in", (GRADS, LISTED.format("'critic' not in v.name"))),
    case("two of them", (GRADS, LISTED.format("'w' in v.name or 'b' in v.name"))),
    case("a name with a number", (GRADS, LISTED.format("'fc1' not in v.name"))),
    case("a letter of what replicas are called", (GRADS, LISTED.format("'a' not in v.name"))),
    case("a letter and a number", (GRADS, LISTED.format("'a_1' not in v.name"))),
    case("a slash", (GRADS, LISTED.format("'w/' not in v.name"))),
    case("nothing", (GRADS, LISTED.format("'' in v.name"))),
    case("the beginning", (GRADS, LISTED.format("v.name.startswith('w')"))),
    case("the beginning, whole", (GRADS, LISTED.format("v.name.startswith('w/') or v.name.startswith('b')"))),
    case("behind the towers", (AVERAGED, AVERAGED + "    grads = [(g * 2.0, v) if 'w' in v.name else (g, v) for g, v in grads]\n")),
]  # fmt: skip
NO_NAMES = [
    other("a number", "TM227", (GRADS, LISTED.format("'0' in v.name"))),
    other("the end", "TM227", (GRADS, LISTED.format("'w:0' in v.name"))),
    other("the whole name", "TM227", (GRADS, LISTED.format("v.name == 'w:0'"))),
    other("the name in a text", "TM227", (GRADS, LISTED.format("v.name in 'w:0 b:0'"))),
]  # fmt: skip

# What no run fetches.
UNFETCHED = [
    case("histograms", (AVERAGED, AVERAGED + "    for g, v in grads:\n        tf.summary.histogram(v.op.name, g)\n")),
    case("histograms under a condition",
         (AVERAGED, AVERAGED + "    for g, v in grads:\n        if g is not None:\n            tf.summary.histogram(v.op.name, g)\n")),
    case("a summary", (APPLIED, APPLIED + "    tf.summary.scalar('loss', loss)\n")),
    case("a tensor with a name", (APPLIED, APPLIED + "    shown = tf.identity(loss, name='shown')\n")),
    case("a chain of tensors", (APPLIED, APPLIED + "    twice = loss * 2.0\n    more = twice + 1.0\n")),
    case("a list of variables", (APPLIED, APPLIED + "    params = tf.trainable_variables()\n")),
]  # fmt: skip
FETCHED_ELSEWHERE = [
    other("a variable", "TM211", (APPLIED, APPLIED + "    best = tf.get_variable('best', [], trainable=False)\n")),
    other("slots", "TM204", (APPLIED, APPLIED + "    again = opt.apply_gradients(grads)\n")),
    other("a print", "TM223", (APPLIED, APPLIED + "    print(loss.op.name, tf.identity(loss).op.name)\n")),
    other("a graph that is asked", "TM223", (APPLIED, APPLIED + "    shown = tf.identity(loss, name='shown')\n"),
          (SAVER, SAVER + "    print(shown.name)\n")),
]  # fmt: skip

# UPDATE_OPS of a program that has none.
COLLECTED = "    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n"
WAITED = "    with tf.control_dependencies({}):\n    " + APPLIED
NO_UPDATES = [
    case("waited for", (APPLIED, COLLECTED + WAITED.format("updates"))),
    case("by its text", (APPLIED, COLLECTED.replace("tf.GraphKeys.UPDATE_OPS", "'update_ops'") + WAITED.format("updates"))),
    case("in place", (APPLIED, WAITED.format("tf.get_collection(tf.GraphKeys.UPDATE_OPS)"))),
    case("grouped", (APPLIED, COLLECTED + APPLIED.replace("train_op", "apply_op") + "    train_op = tf.group(apply_op, *updates)\n")),
    case("in a scope", (APPLIED, COLLECTED.replace("OPS)", "OPS, 'tower_0')") + WAITED.format("updates"))),
    case("never used", (APPLIED, COLLECTED + APPLIED)),
]  # fmt: skip
UPDATES = [
    other("batch normalisation before the towers", "TM207", (APPLIED, COLLECTED + WAITED.format("updates")),
          (START, "    whole = tf.layers.batch_normalization(X, training=True, name='bn')\n" + START)),
    other("batch normalisation by its name", "TM207", (APPLIED, COLLECTED + WAITED.format("updates")),
          (MATMUL, "    x = getattr(tf.layers, 'batch_normalization')(x, training=True, name='bn')\n" + MATMUL)),
    other("an addition", "TM207", (APPLIED, COLLECTED + WAITED.format("updates")),
          (LOSS, LOSS + "                    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, loss)\n")),
    other("an addition by its text", "TM207", (APPLIED, COLLECTED + WAITED.format("updates")),
          (LOSS, LOSS + "                    tf.add_to_collection('update_ops', loss)\n")),
    other("a list that grows", "TM207", (APPLIED, COLLECTED + WAITED.format("updates")),
          (LOSS, LOSS + "                    tf.get_collection_ref('update_ops').append(loss)\n")),
    other("layers of another package", "TM207", (APPLIED, COLLECTED + WAITED.format("updates")),
          ("import numpy as np\n", "import numpy as np\nimport tflearn\n")),
    other("a graph that is loaded", "TM207", (APPLIED, COLLECTED + WAITED.format("updates")),
          (START, "    tf.train.import_meta_graph('graph.meta')\n" + START)),
    other("a number of them", "TM210", (APPLIED, COLLECTED + WAITED.format("updates")),
          (RUN, RUN + "            print(len(updates))\n")),
    other("fetched", "TM209", (APPLIED, COLLECTED + WAITED.format("updates")),
          ("_, value = sess.run([train_op, loss]", "_, value, _ = sess.run([train_op, loss, updates]")),
    other("gone through", "TM210", (APPLIED, COLLECTED + APPLIED + "    for one in updates:\n        loss = loss + tf.reduce_sum(one)\n")),
    other("another collection", "TM219", (APPLIED, COLLECTED.replace("UPDATE_OPS", "LOSSES") + WAITED.format("updates"))),
]  # fmt: skip

# The tags of summaries, which TF1 numbers where the graph has the name.
WRITTEN = [
    (SAVER, SAVER + "    writer = tf.summary.FileWriter('logs')\n"),
    (RUN, "            _, value, note = sess.run([train_op, loss, shown], feed_dict={X: bx, Y: by})\n            writer.add_summary(note, step)\n"),
    ("        print('draws'", "        writer.close()\n        print('draws'"),
]  # fmt: skip
BARE = (" with tf.name_scope('tower_%d' % i) as scope:", " with tf.device(None):")


def shown(tag: str, *changes: Change) -> tuple[Change, ...]:
    """The changes, and a summary of that tag that is made behind the towers, fetched and written."""
    return (*changes, (SAVER, f"    shown = tf.summary.scalar('{tag}', loss)\n{SAVER}"), *WRITTEN)


NAMED = (LOSS, LOSS.replace("out - y))", "out - y), name='loss')"))
TAGS = [
    case("its own", *shown("shown")),
    case("one that is another's in the towers", *shown("loss", NAMED)),
    case("with a slash", *shown("train/error")),
    case("of towers without a scope", *shown("error", BARE)),
    case("a placeholder's", *shown("fed", ("[None, 3])", "[None, 3], name='fed')"))),
]
NO_TAGS = [
    other("a tower's operation's", "TM231", *shown("loss", NAMED, BARE)),
    other("a tower's operation's, out of its scope", "TM231", *shown("fed"),
          (FORWARD, FORWARD), ("                with tf.name_scope('tower_%d' % i) as scope:\n                    x, y",
           "                half = tf.multiply(X, 0.5, name='fed')\n                with tf.name_scope('tower_%d' % i) as scope:\n                    x, y")),
    other("in other case", "TM231", *shown("LOSS", NAMED, BARE)),
    other("a placeholder's, by position", "TM231", *shown("fed", ("[None, 3])", "[None, 3], 'fed')"))),
    other("a variable's", "TM231", *shown("w")),
    other("the global step's", "TM231", *shown("global_step")),
    other("the optimizer's", "TM231", *shown("Momentum")),
    other("an average's", "TM231", *shown("concat")),
    other("a mean's", "TM231", *shown("Mean", BARE)),
    other("the gradients'", "TM231", *shown("gradients", BARE)),
    other("another summary's", "TM231", *shown("error", (APPLIED, APPLIED + "    tf.summary.scalar('error', loss * 2.0)\n"))),
    other("a tower's summary's", "TM231", *shown("error", BARE, (LOSS, LOSS + "                    tf.summary.scalar('error', loss)\n"))),
    other("one that is computed", "TM231", *shown("error"), ("'error'", "'err' + str(drawn[0])")),
]  # fmt: skip
SCOPED = (
    (
        SAVER,
        f"    with tf.name_scope('stats'):\n        shown = tf.summary.scalar('error', loss)\n{SAVER}",
    ),
    *WRITTEN,
)
TAGS.append(case("in a scope of its own", *SCOPED))

# All summaries of a program, merged.
MERGED = "    merged = tf.summary.merge_all()\n"
WRITES = [(old, new.replace("shown", "merged")) for old, new in WRITTEN]


def merged(*made: str) -> tuple[Change, ...]:
    """Summaries that statements make behind the towers, merged, fetched and written."""
    return (SAVER, "".join(f"    {line}\n" for line in made) + MERGED + SAVER), *WRITES


SCALAR = "tf.summary.scalar('error', loss)"
MERGES = [
    case("one", *merged(SCALAR)),
    case("two", *merged(SCALAR, "tf.summary.histogram('outs', out)")),
    case("one by a name", *merged(f"kept = {SCALAR}", "tf.summary.scalar('more', loss * 2.0)")),
    case("one by keywords", *merged("tf.summary.scalar(name='error', tensor=loss)")),
    case("some in a loop", *merged("for g, v in grads:", "    tf.summary.histogram(v.op.name, g)", SCALAR)),
    case("one that comes later", *merged(SCALAR), (MERGED, MERGED + "    tf.summary.scalar('late', loss)\n")),
    case("in a run of its own", *merged(SCALAR),
         ("[train_op, loss, merged], feed_dict={X: bx, Y: by})", "[train_op, loss], feed_dict={X: bx, Y: by}), 0"),
         ("_, value, note = sess.run([train_op, loss], feed_dict={X: bx, Y: by}), 0", "_, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n            note = sess.run(merged, feed_dict={X: bx, Y: by})")),
]  # fmt: skip
NO_MERGES = [
    other("none", "TM219", *merged()),
    other("one of an input, before the towers", "TM231", *merged(SCALAR), (START, "    tf.summary.scalar('fed', tf.reduce_mean(X))\n" + START)),
    other("one of a name that is bound again", "TM219", *merged(f"kept = {SCALAR}", "kept = loss * 2.0")),
    other("one by an alias", "TM219", *merged(SCALAR, "summary = tf.summary", "summary.scalar('other', loss)")),
    other("one of an older name", "TM219", *merged(SCALAR, "tf.scalar_summary('other', loss)")),
    other("one in a collection of its own", "TM219", *merged("tf.summary.scalar('error', loss, collections=['mine'])")),
    other("of another collection", "TM219", *merged(SCALAR), ("merge_all()", "merge_all('mine')")),
    other("a collection by its name", "TM219", *merged(SCALAR), (LOSS, LOSS + "                    tf.add_to_collection(tf.GraphKeys.SUMMARIES, loss)\n")),
    other("layers of another package", "TM219", *merged(SCALAR), ("import numpy as np\n", "import numpy as np\nimport tflearn\n")),
    other("two of one tag", "TM231", *merged(SCALAR, SCALAR.replace("loss)", "loss * 2.0)"))),
    other("written elsewhere", "TM231", *merged(SCALAR), ("writer.add_summary(note, step)", "print(len(note))")),
]  # fmt: skip

# What runs fetch.
MEANS = [
    (START, START + "    losses = []\n"), (APPENDED, APPENDED + "                    losses.append(loss)\n"),
    (AVERAGED, "    average = tf.reduce_mean(losses)\n" + AVERAGED),
    ("'%.6f' % value)", "'%.6f' % value, count)"),
]  # fmt: skip
FETCHES = [
    case("a mean and the global step", *MEANS,
         ("_, value = sess.run([train_op, loss]", "_, value, count = sess.run([train_op, average, step_count]")),
    case("the global step and a mean", *MEANS,
         ("_, value = sess.run([train_op, loss]", "count, value, _ = sess.run([step_count, average, train_op]")),
    case("a mean and the global step, of a name that is taken", *MEANS, ("drawn = [0]\n", "drawn = [0]\nstep_count_value = 0\n"),
         ("_, value = sess.run([train_op, loss]", "_, value, count = sess.run([train_op, average, step_count]")),
]  # fmt: skip
NAMED_FETCH = (RUN, RUN + "            print('%.6f' % sess.run(name, feed_dict={X: bx, Y: by}))\n")
NO_FETCHES = [
    other("a tensor's name", "TM209", (SAVER, "    name = loss.name\n" + SAVER), NAMED_FETCH),
    other("an operation's name", "TM209", (SAVER, "    name = loss.op.name + ':0'\n" + SAVER), NAMED_FETCH),
    other("a list in a list", "TM209", (SAVER, "    both = [loss, out]\n" + SAVER),
          ("_, value = sess.run([train_op, loss]", "_, (value, _) = sess.run([train_op, both]")),
]  # fmt: skip

# Updates and losses that runs pick of tables.
TABLES = "    train_ops = {'first': train_op, 'second': train_op}\n    losses = {'first': loss, 'second': spread}\n"
SPREAD = "                    spread = tf.reduce_max(out) - tf.reduce_min(out)\n"
KEY = "            key = 'first' if step % 2 == 0 else 'second'\n"
PICKED = (
    "            _, value = sess.run([train_ops[key], losses[key]], feed_dict={X: bx, Y: by})\n"
)
OF_TABLE = ((LOSS, LOSS + SPREAD), (SAVER, TABLES + SAVER), (RUN, KEY + PICKED))


def tables(*changes: Change) -> tuple[Change, ...]:
    return (*OF_TABLE, *changes)


PICKS = [
    case("two dicts", *tables()),
    case("the updates alone", (SAVER, "    train_ops = {'first': train_op, 'second': train_op}\n" + SAVER),
         (RUN, KEY + "            sess.run(train_ops[key], feed_dict={X: bx, Y: by})\n"), ("'loss', '%.6f' % value", "key")),
    case("one dict and a name", *tables((TABLES, TABLES.split("\n")[0] + "\n"), ("losses[key]", "loss"))),
    case("lists", *tables((TABLES, "    train_ops = [train_op, train_op]\n    losses = [loss, spread]\n"), (KEY, "            key = step % 2\n"))),
    case("a constant key", *tables(("train_ops[key], losses[key]", "train_ops['second'], losses['second']"))),
    case("keys that are gone through", *tables((KEY + PICKED, "            for key in sorted(train_ops):\n    " + PICKED))),
    case("numbers as keys", *tables(("'first': ", "0: "), ("'second': ", "1: "), (KEY, "            key = step % 2\n"))),
    case("a loss of a name that is bound again", *tables((SAVER, "    loss = loss * 2.0\n" + SAVER))),
    case("two keys in one run", *tables(("losses[key]", "losses['first']"))),
]  # fmt: skip
NO_PICKS = [
    other("a table that grows", "TM210", *tables((SAVER, "    train_ops['third'] = train_op\n" + SAVER))),
    other("a table that is gone through", "TM210", *tables((SAVER, "    print(sorted(train_ops.items())[0][0])\n" + SAVER))),
    other("a table by another name", "TM210", *tables((SAVER, "    steps = train_ops\n" + SAVER), ("train_ops[key]", "steps[key]"))),
    other("other keys", "TM209", *tables((", 'second': spread}", "}"), ("{'first': loss", "{'first': loss, 'third': spread"))),
    other("a key that is computed", "TM209", *tables(("train_ops[key]", "train_ops[key.lower()]"))),
    other("losses that are asked for keys", "TM209", *tables((SAVER, "    print(len(losses))\n" + SAVER))),
    other("updates beside losses", "TM209", *tables(("'second': spread}", "'second': train_op}"))),
    other("two runs that fetch different things", "TM209",
          *tables((PICKED, PICKED + "            sess.run(train_ops[key], feed_dict={X: bx, Y: by})\n"))),
    other("the whole table", "TM209", *tables((PICKED, PICKED + "            sess.run(train_ops, feed_dict={X: bx, Y: by})\n"))),
    other("a run of something else", "TM210",
          *tables((HEAD, HEAD + "\n\nclass Shown(object):\n    def run(self, given):\n        print(type(given) is None)\n"),
                  (PICKED, PICKED + "            Shown().run(train_ops[key])\n"))),
    other("losses alone", "TM209", *tables((PICKED, PICKED + "            sess.run(losses[key], feed_dict={X: bx, Y: by})\n"))),
]  # fmt: skip

# The trained variables, run one by one.
SHOWN = "        for {0} in tf.trainable_variables():\n            print({0}.{1}, '%.6f' % sess.run({0}).sum())\n"
ENDED = "        print('draws', drawn[0])\n"


def listed(text: str) -> Change:
    return (ENDED, text + ENDED)


VARIABLES = [
    case("with their names", listed(SHOWN.format("v", "name"))),
    case("with their operations' names", listed(SHOWN.format("var", "op.name"))),
    case("in a list", listed("        values = []\n        for v in tf.trainable_variables():\n            values.append(sess.run(v))\n        print([x.shape for x in values])\n")),
    case("all variables", listed(SHOWN.format("v", "name").replace("trainable", "global"))),
    case("by a collection", listed(SHOWN.format("v", "name").replace("tf.trainable_variables()", "tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)"))),
    case("twice", listed(SHOWN.format("v", "name") * 2)),
    case("before they are trained", (RUN, RUN.replace("            ", "            for v in tf.trainable_variables():\n                print(v.name, '%.6f' % sess.run(v).sum())\n            ", 1))),
]  # fmt: skip
NO_VARIABLES = [
    other("all of a scope", "TM210", listed(SHOWN.format("v", "name").replace("trainable_variables()", "global_variables('w')"))),
    other("their shapes", "TM209", listed(SHOWN.format("v", "get_shape()"))),
    other("a tensor of them", "TM209", listed(SHOWN.format("v", "name").replace("sess.run(v)", "sess.run(v * 2.0)"))),
    other("the last of them", "TM209", listed(SHOWN.format("v", "name") + "        print(v.name)\n")),
    other("in a run of something else", "TM209", (HEAD, HEAD + "\n\nclass Shown(object):\n    def run(self, given):\n        return given.shape\n"),
          listed(SHOWN.format("v", "name").replace("sess.run(v)", "sess.run(v) + len(Shown().run(v))"))),
    other("in a function", "TM209", listed(SHOWN.format("v", "name") + "        for v in tf.trainable_variables():\n            later = lambda: sess.run(v)\n")),
]  # fmt: skip

TAKEN = [
    *DEVICES,
    *FLAGS,
    *NAMES,
    *UNFETCHED,
    *NO_UPDATES,
    *TAGS,
    *MERGES,
    *FETCHES,
    *PICKS,
    *VARIABLES,
]
LEFT = [
    *NO_DEVICES,
    *NO_FLAGS,
    *NO_NAMES,
    *FETCHED_ELSEWHERE,
    *UPDATES,
    *NO_TAGS,
    *NO_MERGES,
    *NO_FETCHES,
    *NO_PICKS,
    *NO_VARIABLES,
]


@pytest.mark.parametrize("changes", TAKEN)
def test_it_is_in_loop_style(changes: tuple[Change, ...]) -> None:
    takes(changes)


@pytest.mark.parametrize(("changes", "rule"), LEFT)
def test_its_neighbour_is_not(changes: tuple[Change, ...], rule: str) -> None:
    leaves(changes, rule)


ELSEWHERE = [
    pytest.param((APPLIED, COLLECTED + WAITED.format("updates")), "tf.layers.batch_normalization(tf.zeros([2, 2]), training=True)", "TM207", id="an update"),
    pytest.param(merged(SCALAR)[0], "tf.summary.scalar('more', tf.zeros([]))", "TM219", id="a summary"),
    pytest.param(shown("error")[0], "tf.zeros([], name='error')", "TM231", id="a name"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "made", "rule"), ELSEWHERE)
def test_what_the_file_that_calls_it_makes_counts(change: Change, made: str, rule: str) -> None:
    text = program(change)["train.py"].partition("\n\nif __name__")[0] + "\n"
    main = "import tensorflow as tf\nimport train\n\n{}\ntrain.train()\n"
    plain = rewrite_tree({"train.py": text, "main.py": main.format("")}).programs
    assert [one.style for one in plain] == ["loop"]
    (result,) = rewrite_tree({"train.py": text, "main.py": main.format(made)}).programs
    assert rule in [one.rule for one in result.not_loop]


@pytest.mark.full
def test_all_of_them_do_the_same_rewritten() -> None:
    all_do_the_same(TAKEN)
