"""What a program says of its variables before it trains: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
NET = "def net(x):\n"
START = "    tower_grads = []\n"
END = "        print('draws', drawn[0])\n"
MERGED = "    saver = tf.train.Saver()\n"


def at_end(text: str) -> Change:
    """A statement behind the last run."""
    return (END, END + f"        {text}\n")


def behind(text: str) -> Change:
    """Statements behind the update."""
    return (APPLIED, APPLIED + "".join(f"    {line}\n" for line in text.split("\n")))


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


SCOPED = (
    "    w = tf.get",
    "    with tf.variable_scope('hidden'):\n        more = tf.layers.dense(x, 3, kernel_initializer=init(3, 3), name='fc')\n    x = x + more * 0.5\n    w = tf.get",
)

OPT = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
FED_RATE = (
    (
        OPT,
        "    rate = tf.placeholder(tf.float32, [])\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n",
    ),
    ("Y: by}", "Y: by, rate: 0.1}"),
)
NO_STEP = ("    step_count = tf.train.get_or_create_global_step()\n", "")

TAKEN = [
    case("their names", behind("for v in tf.trainable_variables():\n    print(v.op.name)")),
    case("their names with the output", SCOPED, behind("for v in tf.trainable_variables():\n    print(v.name, v.op.name)")),
    case("their shapes", SCOPED, behind("for v in tf.trainable_variables():\n    print('%s %s' % (v.op.name, v.get_shape().as_list()))")),
    case("how many there are", behind("print(len(tf.trainable_variables()), 'variables')")),
    case("how many there are, by their collection", behind("print(len(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)))")),
    case("how many of all there are, kept in a list", behind("kept = tf.global_variables()\nprint(len(kept))")),
    case("how many numbers they hold", SCOPED, behind("total = sum(int(np.prod(v.get_shape().as_list())) for v in tf.trainable_variables())\nprint('parameters', total)")),
    case("how many numbers they hold, by a loop", SCOPED, behind("total = 0\nfor v in tf.trainable_variables():\n    size = 1\n    for d in v.shape.as_list():\n        size *= d\n    total += size\nprint('parameters', total)")),
    case("in a list", behind("names = [v.op.name for v in tf.trainable_variables()]\nprint(sorted(names))")),
    case("in a dict", behind("shapes = {v.name: v.get_shape().as_list() for v in tf.trainable_variables()}\nprint(sorted(shapes.items()))")),
    case("some of them", SCOPED, behind("print([v.op.name for v in tf.trainable_variables() if 'hidden' in v.name])")),
    case("numbered", behind("for k, name in enumerate([v.op.name for v in tf.trainable_variables()]):\n    print(k, name)")),
    case("added to a list", behind("names = []\nfor v in tf.trainable_variables():\n    names.append(v.name)\nprint(names)")),
    case("under a condition", behind("if DEVICES:\n    print(len(tf.trainable_variables()))")),
    case("in the session", (INIT, INIT + "        print([v.op.name for v in tf.trainable_variables()])\n")),
    case("all variables", behind("for v in tf.global_variables():\n    print(v.op.name, v.name, v.get_shape().as_list())")),
    case("how many of all", behind("print(len(tf.global_variables()))")),
    case("all of them beside a fed rate", *FED_RATE, behind("for v in tf.global_variables():\n    print(v.op.name)")),
    case("how many of all beside a fed rate", *FED_RATE, behind("print(len(tf.global_variables()))")),
    case("the first of all beside a fed rate", *FED_RATE, NO_STEP, (APPLIED, "    train_op = opt.apply_gradients(grads)\n"), at_end("print(sess.run(tf.global_variables()[0]))")),
    case("all of them beside a rate that is a variable", (OPT, "    rate = tf.Variable(0.1, trainable=False, name='rate')\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n"), behind("print([v.name for v in tf.global_variables()])")),
    case("all of a collection", behind("print([v.op.name for v in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)])")),
    case("all of Adam's too", ("MomentumOptimizer(0.1, 0.9)", "AdamOptimizer(0.05)"), SCOPED, behind("print([v.op.name for v in tf.global_variables()])\nprint(tf.global_variables())")),
    case("all of before the update", (AVERAGED, AVERAGED + "    print(tf.global_variables())\n")),
    case("all with moving averages", (APPLIED, APPLIED + "    print(len(tf.global_variables()))\n    ema = tf.train.ExponentialMovingAverage(0.9, step_count)\n    with tf.control_dependencies([train_op]):\n        train_op = ema.apply(tf.trainable_variables())\n    print(tf.global_variables())\n")),
    case("all in the session", (INIT, INIT + "        print([v.name for v in tf.global_variables()])\n")),
    case("themselves", SCOPED, behind("for v in tf.trainable_variables():\n    print(v)")),
    case("the list", behind("print(tf.trainable_variables())")),
    case("the list in a text", behind("print('variables: %s' % tf.trainable_variables())\nprint('all {} of {}'.format(tf.global_variables(), len(tf.global_variables())))")),
    case("themselves in a text", behind("for v in tf.global_variables():\n    print('%s at %s' % (v, str(v)))")),
    case("their kinds of numbers", behind("for v in tf.global_variables():\n    print(v.op.name, v.dtype, v.shape)")),
    case("before the last of the graph", (AVERAGED, AVERAGED + "    print(len(tf.trainable_variables()))\n")),
    case("one of them run", at_end("print(['%.6f' % n for n in sess.run(tf.trainable_variables()[0]).ravel()])")),
    case("the last of them run", at_end("print('%.6f' % sess.run(tf.trainable_variables()[-1])[0])")),
    case("some of them run", SCOPED, at_end("print(['%.6f' % v.sum() for v in sess.run(tf.trainable_variables()[:2])])")),
    case("one by a name", (MERGED, MERGED + "    first = tf.trainable_variables()[0]\n"), at_end("print('%.6f' % sess.run(first)[0][0])")),
    case("one evaluated", at_end("last = tf.trainable_variables()[-1]\n        print('%.6f' % last.eval()[0])")),
    case("one that is computed with", (MERGED, MERGED + "    first = tf.trainable_variables()[0]\n    size = tf.size(first)\n"), at_end("print(sess.run(first)[0][0], sess.run(size))")),
    case("their shapes with what they are", SCOPED, at_end("for v in tf.trainable_variables():\n            print(v.op.name, v.get_shape().as_list(), v.shape.as_list(), '%.6f' % sess.run(v).sum())")),
    case("beside numbers of a run that are asked for more", (START, START + "    losses = []\n"), ("                    tower_grads.append(grads)\n", "                    tower_grads.append(grads)\n                    losses.append(loss)\n"),
         ("[train_op, loss]", "[train_op, losses]"), ("'%.6f' % value)", "'%.6f' % value[0].item(), value.pop())")),
    case("beside a name that the graph has too", (AVERAGED, AVERAGED + "    grads = [(g * 0.5, v) for g, v in grads]\n"), behind("print([v.op.name for v in tf.trainable_variables()])")),
]  # fmt: skip

LEFT = [
    other("those of a scope", "TM223", behind("print(len(tf.trainable_variables('hidden')))")),
    other("all with a variable behind them", "TM211", (APPLIED, APPLIED + "    seen = tf.Variable(0, trainable=False, name='seen')\n    print(tf.global_variables())\n")),
    other("all of a scope", "TM223", behind("print(len(tf.global_variables('hidden')))")),
    other("all, which are resources", "TM223", ("tf.get_variable('b', [1],", "tf.get_variable('b', [1], use_resource=True,"), behind("print(tf.global_variables())")),
    other("all, of Keras too", "TM223", SCOPED, ("    with tf.variable_scope('hidden'):\n", "    assert not hasattr(x, '_keras_history')\n    with tf.variable_scope('hidden'):\n"), behind("print(tf.global_variables())")),
    other("all, with a function's own", "TM223", (NET, "def more():\n    tf.Variable(0, trainable=False, name='more')\n\n\n" + NET), (START, "    more()\n" + START), behind("print(tf.global_variables())")),
    other("whose kinds of numbers are compared", "TM223", behind("print([v.op.name for v in tf.trainable_variables() if v.dtype == tf.float32])")),
    other("their shapes as they are", "TM223", behind("print([np.prod(v.get_shape()) for v in tf.trainable_variables()])")),
    other("a size of a shape", "TM223", behind("for v in tf.trainable_variables():\n    print([d.value for d in v.get_shape()])")),
    other("their classes", "TM223", behind("print([isinstance(v, tf.Variable) for v in tf.trainable_variables()])")),
    other("what they start from", "TM223", behind("print([v.initial_value.get_shape().as_list() for v in tf.trainable_variables()])")),
    other("whether one is another", "TM223", behind("print([v.op.name for v in tf.trainable_variables() if v == v])")),
    other("by a function", "TM223", (NET, "def said(v):\n    return v.op.name\n\n\n" + NET), behind("print([said(v) for v in tf.trainable_variables()])")),
    other("with the loss", "TM223", behind("print([v.op.name for v in tf.trainable_variables()], loss.op.name)")),
    other("with a tensor", "TM223", behind("print(tf.zeros([len(tf.trainable_variables())]).op.name)")),
    other("for the update", "TM230", (AVERAGED, AVERAGED + "    count = len(tf.trainable_variables())\n    grads = [(g / count, v) for g, v in grads]\n")),
    other("kept for later", "TM206", behind("kept = []\nfor v in tf.trainable_variables():\n    kept.append(v)\nprint(len(kept))")),
    other("by a lambda", "TM223", behind("print(sorted(tf.trainable_variables(), key=lambda v: v.op.name)[0].op.name)")),
    other("beside another", "TM223", behind("print([(v.op.name, u.op.name) for v in tf.trainable_variables() for u in tf.trainable_variables()])")),
    other("one of a number", "TM209", at_end("print(sess.run(tf.trainable_variables()[drawn[0] % 2]))")),
    other("one of before the towers", "TM211", (START, "    firsts = tf.trainable_variables()[:1]\n" + START), at_end("print(sess.run(firsts))")),
    other("read behind its loop", "TM223", behind("for v in tf.trainable_variables():\n    print(v.op.name)\nprint(v)")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
