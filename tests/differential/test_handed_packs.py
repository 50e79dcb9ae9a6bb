"""Dicts of what was built that functions are handed with the session, and models that are built once for their variables."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of, none_does_anything_else

LOOP = """\
        for step in range(4):
            bx, by = batch(4)
            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})
            print('step', step, 'loss', '%.6f' % value)
"""
DICT = "        ops = {'x': X, 'y': Y, 'train_op': train_op, 'loss': loss, 'step': step_count}\n"
EPOCH = """\
def run_epoch(sess, ops, steps):
    total = 0.0
    for step in range(steps):
        bx, by = batch(4)
        feed_dict = {ops['x']: bx, ops['y']: by}
        _, value = sess.run([ops['train_op'], ops['loss']], feed_dict=feed_dict)
        total += value
    print('mean', '%.6f' % (total / steps))


"""
EVALUATE = """\
def evaluate(sess, ops):
    global seen
    bx, by = batch(4)
    value, count = sess.run([ops['loss'], ops['step']], feed_dict={ops['x']: bx, ops['y']: by})
    seen += 1
    print('evaluated', seen, '%.6f' % value, count)


"""
CALLED = DICT + "        for epoch in range(2):\n            run_epoch(sess, ops, 2)\n"
BOTH = CALLED + "            evaluate(sess, ops)\n"
BATCH = "def batch(rows)"
LOSS = "                    out = net(x)\n"
BEGIN = "    tower_grads = []\n"
REUSED = (
    "                    out = net(x)\n",
    "                    with tf.variable_scope(tf.get_variable_scope(), reuse=True):\n                        out = net(x)\n",
)
SET = "                    tf.get_variable_scope().reuse_variables()\n"


def program_of(text: str = EPOCH, called: str = CALLED) -> tuple[Change, ...]:
    return (
        (BATCH, text + BATCH),
        (LOOP, called),
        ("drawn = [0]\n", "drawn = [0]\nseen = 0\n"),
    )


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def prebuilt(line: str = "net(X)", *more: Change) -> tuple[Change, ...]:
    return (BEGIN, f"    {line}\n{BEGIN}"), REUSED, (SET, ""), *more


TAKEN = [
    taken("a dict", *program_of()),
    taken("a dict, by name", *program_of(called=CALLED.replace("sess, ops, 2", "sess, steps=2, ops=ops"))),
    taken("a dict, before the session opens", *program_of(called=CALLED.replace(DICT, "")), ("    saver = ", DICT[4:] + "    saver = ")),
    taken("a dict that is filled", *program_of(called=CALLED.replace(DICT, "        ops = {}\n        ops['x'], ops['y'] = X, Y\n        ops['train_op'] = train_op\n        ops['loss'] = loss\n        ops['step'] = step_count\n"))),
    taken("a dict by keywords", *program_of(called=CALLED.replace(DICT, "        ops = dict(x=X, y=Y, train_op=train_op, loss=loss, step=step_count)\n"))),
    taken("with what is not used", *program_of(called=CALLED.replace("'step': step_count", "'more': grads"))),
    taken("two functions, one of which counts", *program_of(EPOCH + EVALUATE, BOTH)),
    taken("a function that hands it on", *program_of(EPOCH + "def run_all(sess, ops):\n    print('epoch')\n    run_epoch(sess, ops, 2)\n\n\n", CALLED.replace("run_epoch(sess, ops, 2)", "run_all(sess, ops)"))),
    taken("names of the function's own", *program_of(EPOCH.replace("bx, by", "X, Y").replace(": bx", ": X").replace(": by", ": Y"))),
    taken("a tuple", *program_of(EPOCH.replace("ops['x']", "ops[0]").replace("ops['y']", "ops[1]").replace("ops['train_op']", "ops[2]").replace("ops['loss']", "ops[3]"), CALLED.replace(DICT, "        ops = (X, Y, train_op, loss)\n"))),
    taken("a function that takes it apart", *program_of(EPOCH.replace("    total = 0.0\n", "    total = 0.0\n    train_op = ops['train_op']\n    loss = ops['loss']\n").replace("[ops['train_op'], ops['loss']]", "[train_op, loss]"))),
    taken("a model built in front", *prebuilt()),
    taken("a model built in front, on a device", *prebuilt("with tf.device('/cpu:0'):\n        net(X)")),
    taken("a model built in front, whose value is not used", *prebuilt("unused = net(X)")),
    taken("a model built in front, of splits", *prebuilt(), ("x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]", "x, y = xs[i], ys[i]"), (BEGIN, "    xs, ys = tf.split(X, 2), tf.split(Y, 2)\n" + BEGIN)),
]  # fmt: skip

LEFT = [
    left("a function that changes it", "TM210", *program_of(EPOCH.replace("    total = 0.0\n", "    total = 0.0\n    ops['more'] = 1\n"))),
    left("a function that asks for a key that may be missing", "TM210", *program_of(EPOCH.replace("ops['loss']]", "ops.get('loss')]"))),
    left("a function that goes over it", "TM210", *program_of(EPOCH.replace("    total = 0.0\n", "    total = 0.0\n    print(sorted(ops))\n"))),
    left("a function that keeps it", "TM210", *program_of(EPOCH.replace("    total = 0.0\n", "    total = 0.0\n    drawn.append(ops)\n"))),
    left("a function that is given another one, too", "TM210", *program_of(EPOCH, CALLED + "        run_epoch(sess, {'x': X, 'y': Y, 'train_op': train_op, 'loss': loss * 2.0}, 1)\n")),
    left("a key that is chosen", "TM210", *program_of(EPOCH.replace("ops['loss']]", "ops[['loss', 'loss'][seen]]]"))),
    left("a dict that is changed between the calls", "TM210", *program_of(called=CALLED + "            ops['loss'] = loss * 2.0\n")),
    left("a counter that its caller reads", "TM205", *program_of(EPOCH + EVALUATE, BOTH + "            print(seen)\n")),
    left("a model built in front that is used", "TM211", *prebuilt("first = net(X)"), ("    train_op =", "    print(first.shape)\n    train_op =")),
    left("a model built in front with a summary", "TM211", *prebuilt(), ("    w = tf.get_variable", "    tf.summary.histogram('x', x)\n    w = tf.get_variable")),
    left("a model built in front with a loss", "TM211", *prebuilt(), ("    return tf.matmul(x, w) + b", "    tf.add_to_collection('losses', tf.nn.l2_loss(w))\n    return tf.matmul(x, w) + b")),
    left("a model built in front that counts", "TM211", *prebuilt(), ("    w = tf.get_variable", "    drawn.append(0)\n    w = tf.get_variable")),
    left("another model built in front", "TM211", *prebuilt("net(X[:, :3] * 1.0)")),
    left("a model built in front, of which the towers have more", "TM211", *prebuilt(), (REUSED[1], REUSED[1].replace("reuse=True", "reuse=tf.AUTO_REUSE"))),
    left("a model built in front of a variable of its own", "TM211", *prebuilt(), (BEGIN, "    more = tf.get_variable('more', [], initializer=init(1, 1), trainable=False)\n" + BEGIN)),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT)
