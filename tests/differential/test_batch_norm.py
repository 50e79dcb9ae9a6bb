"""Batch normalisation: whose updates of its moving averages loop style takes, when, and what it must leave."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import all_do_the_same, leaves, takes
from tests.differential.test_slim import (
    APPLIED,
    BEGUN,
    FORWARD,
    LOSS,
    MEAN,
    NET,
    SLIM,
    START,
    case,
    net,
    other,
)

APPENDED = "                    tower_grads.append(grads)\n"
SCOPE = "                with tf.name_scope('tower_%d' % i) as scope:\n"
SAVER = "    saver = tf.train.Saver()\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
READ = "updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)\n"

LAST: Change = (APPENDED, APPENDED + " " * 20 + READ)
FIRST: Change = (APPENDED, APPENDED + " " * 20 + "if i == 0:\n" + " " * 24 + READ)
WAITED: Change = (APPLIED, "    with tf.control_dependencies(updates):\n    " + APPLIED)
BEHIND: Change = (APPLIED, "    " + READ + WAITED[1])
HIDDEN = "h = tf.layers.dense(x, 4, kernel_initializer=init(3, 4), name='fc1')"
NORM = "h = tf.layers.batch_normalization(h, momentum=0.7, training={}, name='bn')"
OUT = "return tf.layers.dense(h, 1, kernel_initializer=init(4, 1), name='fc2')"
LAYERS = net(HIDDEN, NORM.format(True), OUT)
EITHER = (
    NET,
    LAYERS[1]
    .replace("def net(x)", "def net(x, training=True)")
    .replace("training=True, name", "training=training, name"),
)
LOOKED: Change = (
    RUN,
    RUN + "            print('look', '%.6f' % sess.run(loss, feed_dict={X: bx, Y: by}))\n",
)
EVALUATED: list[Change] = [
    (SAVER, "    test_x = tf.placeholder(tf.float32, [None, 3])\n    with tf.variable_scope(tf.get_variable_scope(), reuse=True):\n"
            "        test_out = tf.reduce_mean(net(test_x, training=False))\n" + SAVER),
    (RUN, RUN + "            print('test', '%.6f' % sess.run(test_out, feed_dict={test_x: bx * 0.5}))\n"),
]  # fmt: skip
BY_SLIM = net(
    "with slim.arg_scope([slim.fully_connected], weights_initializer=tf.constant_initializer(0.3), normalizer_fn=slim.batch_norm,",
    "                    normalizer_params={'decay': 0.7, 'is_training': True, 'scale': True}):",
    "    h = slim.fully_connected(x + [0.1, 0.2, 0.3], 4, scope='fc1')",
    "    h = slim.fully_connected(h, 3, activation_fn=tf.nn.tanh, scope='fc2')",
    "return slim.fully_connected(h, 1, None, weights_initializer=init(3, 1), scope='fc3')",
)
IMAGE = net(
    "h = tf.reshape(tf.tile(x, [1, 6]), [-1, 3, 3, 2])",
    "with slim.arg_scope([slim.batch_norm], decay=0.7, is_training=True), slim.arg_scope([slim.conv2d], weights_initializer=tf.constant_initializer(0.2)):",
    "    with slim.arg_scope([slim.conv2d], padding='VALID', normalizer_fn=slim.batch_norm):",
    "        h = slim.conv2d(h, 4, [2, 2], scope='conv1')",
    "    h = slim.conv2d(h, 3, [3, 3], scope='conv2')",
    "    h = slim.batch_norm(h, scope='bn')",
    "return slim.fully_connected(slim.flatten(h), 1, None, weights_initializer=tf.constant_initializer(0.1), scope='fc')",
)
BY_LAYERS_IMAGE = net(
    "h = tf.reshape(tf.tile(x, [1, 6]), [-1, 3, 3, 2])",
    "h = tf.layers.conv2d(h, 4, 2, kernel_initializer=tf.constant_initializer(0.2), name='conv')",
    "h = tf.nn.relu(tf.layers.batch_normalization(h, axis=-1, momentum=0.7, epsilon=1e-4, training=True, name='bn'))",
    "return tf.layers.dense(tf.reduce_mean(h, [1, 2]), 1, kernel_initializer=init(4, 1), name='fc2')",
)

TAKEN = [
    case("trained by what is fed", (NET, LAYERS[1].replace("def net(x)", "def net(x, training)").replace("training=True", "training=training")),
          (START, "    training = tf.placeholder_with_default(True, [])\n" + START), (FORWARD, FORWARD.replace("net(x)", "net(x, training)")), LAST, WAITED),
    case("of the last tower", LAYERS, LAST, WAITED, *MEAN),
    case("of the first tower", LAYERS, FIRST, WAITED, *MEAN),
    case("read behind the towers", LAYERS, BEHIND),
    case("waited for where they are read", LAYERS, (APPLIED, "    with tf.control_dependencies(tf.get_collection('update_ops', scope=scope)):\n    " + APPLIED)),
    case("grouped", LAYERS, LAST, (APPLIED, APPLIED.replace("train_op", "apply_op") + "    train_op = tf.group(apply_op, *updates)\n")),
    case("grouped in a group", LAYERS, LAST, (APPLIED, APPLIED.replace("train_op", "apply_op") + "    train_op = tf.group(apply_op, tf.group(*updates))\n")),
    case("grouped by themselves", LAYERS, LAST, (APPLIED, APPLIED.replace("train_op", "apply_op") + "    moved = tf.group(*updates)\n    train_op = tf.group(apply_op, moved)\n")),
    case("run beside the update", LAYERS, LAST, (APPLIED, APPLIED + "    moved = tf.group(*updates)\n"), ("[train_op, loss]", "[train_op, moved, loss]"), ("_, value", "_, _, value")),
    case("run in some steps", LAYERS, LAST, (APPLIED, APPLIED + "    moved = tf.group(*updates)\n    both = tf.group(train_op, moved)\n"),
         (RUN, "            if step % 2:\n    " + RUN.replace("train_op", "both") + "            else:\n    " + RUN)),
    case("run by themselves", LAYERS, LAST, (APPLIED, APPLIED + "    moved = tf.group(*updates)\n"), (RUN, RUN + "            sess.run(moved, {X: bx, Y: by})\n")),
    case("run with a step", LAYERS, LAST, (APPLIED, APPLIED + "    moved = tf.group(*updates)\n"), (RUN, RUN + "            print(sess.run([moved, step_count], {X: bx, Y: by})[1])\n")),
    case("run before the update", LAYERS, LAST, (APPLIED, APPLIED.replace("train_op", "apply_op") + "    moved = tf.group(*updates)\n    train_op = tf.group(apply_op, moved)\n"), ("        for step in range(4):\n", "        sess.run(moved, dict(zip((X, Y), batch(4))))\n        for step in range(4):\n")),
    case("run with an average", LAYERS, LAST, (APPLIED, APPLIED + "    ema = tf.train.ExponentialMovingAverage(0.9)\n    averaged = ema.apply(tf.trainable_variables())\n    moved = tf.group(*updates)\n    both = tf.group(moved, averaged)\n"), (RUN, RUN + "            sess.run(both, {X: bx, Y: by})\n")),
    case("waited for by what does nothing", LAYERS, LAST, (APPLIED, APPLIED + "    moved = tf.group(*updates)\n    with tf.control_dependencies([moved]):\n        done = tf.no_op()\n"), (RUN, RUN + "            sess.run(done, {X: bx, Y: by})\n")),
    case("never run", LAYERS, *MEAN),
    case("read and never run", LAYERS, LAST),
    case("a run that looks", LAYERS, LAST, WAITED, LOOKED),
    case("a run that looks, of the first tower", LAYERS, FIRST, WAITED, LOOKED),
    case("a run that looks at values that are computed", LAYERS, LAST, WAITED, (APPLIED, APPLIED + "    twice = loss * 2.0\n"), (RUN, RUN + LOOKED[1][len(RUN):].replace("(loss", "(twice"))),
    case("an evaluation", EITHER, LAST, WAITED, *EVALUATED),
    case("an evaluation, of the first tower", EITHER, FIRST, WAITED, *EVALUATED),
    case("an evaluation, never run", EITHER, *EVALUATED),
    case("by a setting", (NET, LAYERS[1].replace("training=True", "training=TRAINS")), (START, START), ("drawn = [0]\n", "drawn = [0]\nTRAINS = True\n"), LAST, WAITED),
    case("as it was saved", (NET, LAYERS[1].replace("training=True", "training=False"))),
    case("two", net(HIDDEN, NORM.format(True), "h = tf.layers.batch_normalization(tf.nn.tanh(h), training=True, name='bn2')", OUT), LAST, WAITED),
    case("two of a function", net("h = block(x, 4, 'a')", "h = block(h, 4, 'b')", OUT, more="def block(x, size, name):\n    with tf.variable_scope(name):\n"
         "        h = tf.layers.dense(x, size, kernel_initializer=tf.constant_initializer(0.3), name='fc')\n        return tf.nn.tanh(tf.layers.batch_normalization(h + x[:, :1], training=True))\n\n\n"), LAST, WAITED),
    case("images", BY_LAYERS_IMAGE, LAST, WAITED),
    case("slim's", SLIM, BY_SLIM, LAST, WAITED, *MEAN),
    case("slim's, of the first tower", SLIM, BY_SLIM, FIRST, WAITED, LOOKED),
    case("slim's, never run", SLIM, BY_SLIM, LOOKED),
    case("slim's, of images", SLIM, IMAGE, LAST, WAITED, LOOKED),
    case("slim's, of images, of the first tower", SLIM, IMAGE, FIRST, WAITED),
    case("slim's, by a dict", SLIM, (NET, BY_SLIM[1].replace("def net(x):\n", "def net(x):\n    more = {'decay': 0.7, 'is_training': True}\n").replace("normalizer_params={'decay': 0.7, 'is_training': True, 'scale': True}):", "normalizer_params=more), slim.arg_scope([slim.batch_norm], scale=True):")), LAST, WAITED),
    case("slim's, with losses of regularisers", SLIM, (NET, BY_SLIM[1].replace("normalizer_fn", "weights_regularizer=slim.l2_regularizer(0.1), normalizer_fn")), LAST, WAITED,
         (LOSS, LOSS + " " * 20 + "loss = loss + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))\n"), *MEAN),
    case("slim's, with losses of each tower's regularisers", SLIM, (NET, BY_SLIM[1].replace("normalizer_fn", "weights_regularizer=slim.l2_regularizer(0.1), normalizer_fn")), FIRST, WAITED,
         (LOSS, LOSS + " " * 20 + "loss = loss + tf.add_n([0.0] + tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES, scope))\n"), *MEAN),
    case("with all variables listed", LAYERS, LAST, WAITED, (SAVER, "    saver = tf.train.Saver(tf.global_variables())\n")),
]  # fmt: skip

MORE = "                    out = out + tf.layers.batch_normalization(out, training=True, name='more')\n"
LEFT = [
    other("of all towers so far", "TM207", LAYERS, (LAST[0], LAST[1].replace(", scope", "")), WAITED),
    other("a tower that waits for them", "TM207", LAYERS, (LOSS, " " * 20 + READ + LOSS + " " * 20 + "with tf.control_dependencies(updates):\n" + " " * 24 + "loss = tf.identity(loss)\n")),
    other("a tower that waits for them in place", "TM207", LAYERS,
          (LOSS, LOSS + " " * 20 + "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)):\n" + " " * 24 + "loss = tf.identity(loss)\n")),
    other("a function of the tower that waits for them", "TM207",
          net(HIDDEN, NORM.format(True), "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)):", "    h = tf.identity(h)", OUT), ("def net(x)", "def net(x, scope)"), (FORWARD, FORWARD.replace("net(x)", "net(x, scope)"))),
    other("read before the last layer", "TM207", LAYERS, (FORWARD, FORWARD + " " * 20 + READ + MORE), WAITED),
    other("of a scope in the tower", "TM207", LAYERS, (FORWARD, FORWARD + " " * 20 + "with tf.name_scope('more') as inner:\n    " + MORE), (APPENDED, APPENDED + " " * 20 + READ.replace("scope)", "inner)")), WAITED),
    other("of a scope that was left", "TM207", LAYERS, (FORWARD, " " * 20 + "with tf.name_scope('net') as inner:\n    " + FORWARD + MORE), (APPENDED, APPENDED + " " * 20 + READ.replace("scope)", "inner)")), WAITED),
    other("a layer in no scope", "TM207", LAYERS, (FORWARD, FORWARD + " " * 20 + "with tf.name_scope(None):\n    " + MORE), LAST, WAITED),
    other("by a text", "TM207", LAYERS, (LAST[0], LAST[1].replace(", scope", ", 'tower_1'")), WAITED),
    other("by a text for the tower", "TM207", LAYERS, (LAST[0], LAST[1].replace(", scope", ", 'tower_%d' % i")), WAITED),
    other("by a name that is bound anew", "TM207", LAYERS, (APPLIED, "    scope = 'tower_0/'\n    " + READ + WAITED[1])),
    other("under a condition", "TM207", LAYERS, (START, START + "    updates = []\n"), (APPENDED, APPENDED + " " * 20 + "if drawn:\n" + " " * 24 + READ), WAITED),
    other("under a condition behind the towers", "TM207", LAYERS, (APPLIED, "    updates = []\n    if drawn:\n        " + READ + WAITED[1])),
    other("of the second tower", "TM214", LAYERS, (APPENDED, APPENDED + " " * 20 + "if i == 1:\n" + " " * 24 + READ), WAITED),
    other("of two towers", "TM207", LAYERS, FIRST, (APPLIED, "    more = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)\n" + WAITED[1].replace("(updates)", "(updates), tf.control_dependencies(more)"))),
    other("a part of them", "TM207", LAYERS, (APPLIED, "    updates = [u for u in tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope) if 'mean' in u.name]\n" + WAITED[1])),
    other("fetched", "TM209", LAYERS, LAST, WAITED, ("_, value = sess.run([train_op, loss]", "_, value, _ = sess.run([train_op, loss, updates]")),
    other("counted", "TM223", LAYERS, LAST, WAITED, (SAVER, SAVER + "    print(len(updates))\n")),
    other("a value that waits for them", "TM207", LAYERS, LAST, (APPLIED, APPLIED + "    with tf.control_dependencies(updates):\n        shown = tf.identity(loss)\n"), ("[train_op, loss]", "[train_op, shown]")),
    other("a name that waits for them", "TM207", LAYERS, LAST, (APPLIED, APPLIED.replace("train_op", "apply_op") + "    with tf.control_dependencies(updates):\n        train_op = apply_op\n")),
    other("more that a tower adds", "TM207", LAYERS, (FORWARD, FORWARD + " " * 20 + "tf.add_to_collection('update_ops', tf.identity(out))\n"), LAST, WAITED),
    other("one layer twice", "TM207", net(HIDDEN, NORM.format(True), NORM.format(True).replace("name=", "reuse=True, name="), OUT), LAST, WAITED),
    other("a layer that trains and does not", "TM207", net(HIDDEN, NORM.format(True), "h = h + " + NORM.format(False)[4:].replace("name=", "reuse=True, name="), OUT), LAST, WAITED),
    other("the model twice", "TM207", LAYERS, LAST, WAITED, (FORWARD, FORWARD + " " * 20 + "with tf.variable_scope(tf.get_variable_scope(), reuse=True):\n" + " " * 24 + "out = out + net(-x)\n")),
    other("trained by the tower", "TM207", EITHER, (FORWARD, FORWARD.replace("net(x)", "net(x, training=i > 0)")), LAST, WAITED),
    other("a name for the tower", "TM218", (NET, LAYERS[1].replace("def net(x)", "def net(x, name)").replace("'bn'", "name")), (FORWARD, FORWARD.replace("net(x)", "net(x, 'bn%d' % i)")), LAST, WAITED),
    other("no name", "TM218", net(HIDDEN, "h = tf.layers.batch_normalization(h, training=True)", OUT), LAST, WAITED),
    other("renormalised", "TM207", net(HIDDEN, NORM.format(True).replace("name=", "renorm=True, name="), OUT), LAST, WAITED),
    other("regularised", "TM207", net(HIDDEN, NORM.format(True).replace("name=", "gamma_regularizer=tf.nn.l2_loss, name="), OUT), LAST, WAITED),
    other("slim's, made in place", "TM207", SLIM, (NET, BY_SLIM[1].replace("'decay'", "'updates_collections': None, 'decay'"))),
    other("slim's, of another collection", "TM207", SLIM, (NET, BY_SLIM[1].replace("'decay'", "'updates_collections': 'mine', 'decay'"))),
    other("slim's, unbiased at first", "TM207", SLIM, (NET, BY_SLIM[1].replace("'decay'", "'zero_debias_moving_mean': True, 'decay'")), LAST, WAITED),
    other("slim's, of settings that are not known", "TM207", SLIM, (NET, BY_SLIM[1].replace("normalizer_params={", "normalizer_params=dict(**{").replace("True}", "True})")), LAST, WAITED),
    other("slim's, of settings that change", "TM207", SLIM, (NET, BY_SLIM[1].replace("def net(x):\n", "def net(x):\n    more = {'decay': 0.7}\n    more['is_training'] = True\n").replace("{'decay': 0.7, 'is_training': True, 'scale': True}", "more")), LAST, WAITED),
    other("slim's, of settings made before", "TM207", SLIM, (START, "    more['decay'] = 0.5\n" + START), (NET, BY_SLIM[1].replace("{'decay': 0.7, 'is_training': True, 'scale': True}", "more")), (BEGUN, "more = {'decay': 0.7, 'is_training': True}\n\n\n" + BEGUN), LAST, WAITED),
    other("a layer's object", "TM207", net(HIDDEN, "h = tf.layers.BatchNormalization(name='bn')(h, training=True)", OUT), LAST, WAITED),
    other("bound anew", "TM207", LAYERS, LAST, (APPLIED, "    updates = []\n" + WAITED[1])),
    other("bound anew in the tower", "TM207", LAYERS, (APPENDED, LAST[1] + " " * 20 + "updates = []\n"), WAITED),
    other("a list that grows", "TM207", LAYERS, LAST, (APPLIED, "    updates.append(loss)\n" + WAITED[1])),
    other("a list that is added to", "TM207", LAYERS, LAST, (APPLIED, "    updates += [loss]\n" + WAITED[1])),
    other("a list by another name that grows", "TM206", LAYERS, LAST, (APPLIED, "    waited = updates\n    waited.append(loss)\n" + WAITED[1].replace("updates", "waited"))),
    other("averages of all variables by their key", "TM207", LAYERS, LAST, WAITED, (SAVER, "    ema = tf.train.ExponentialMovingAverage(0.9)\n    averaged = ema.apply(tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES))\n    train_op = tf.group(train_op, averaged)\n" + SAVER)),
    other("averages of all variables", "TM207", LAYERS, LAST, WAITED, (SAVER, "    ema = tf.train.ExponentialMovingAverage(0.9)\n    averaged = ema.apply(tf.global_variables())\n    train_op = tf.group(train_op, averaged)\n" + SAVER)),
]  # fmt: skip


@pytest.mark.parametrize("changes", TAKEN)
def test_taken(changes: tuple[Change, ...]) -> None:
    takes(changes)


@pytest.mark.parametrize(("changes", "rule"), LEFT)
def test_left(changes: tuple[Change, ...], rule: str) -> None:
    leaves(changes, rule)


@pytest.mark.full
def test_taken_does_the_same() -> None:
    all_do_the_same(TAKEN)
