"""What towers print, constants in front of them, and gradients taken in a loop of their own: loop style where nothing else changes."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else
from towermigrate.rewrite import rewrite_tree

BEGIN = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
END = "                    tower_grads.append(grads)\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n" + END
SCOPE = "    with tf.variable_scope(tf.get_variable_scope()):\n"
BEFORE = "    tower_grads = []\n"
HEAD = "drawn = [0]\n"
SCALED = (LOSS, LOSS + "                    loss = loss * half\n")
SAVER = "    saver = tf.train.Saver()\n"


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def said(*lines: str) -> Change:
    return BEGIN, "".join(f"                    {line}\n" for line in lines) + BEGIN


def again(*lines: str, before: str = "", head: str = "        for i in range(2):\n") -> Change:
    """The gradients in a loop of their own behind that of the losses."""
    inner = "".join(f"                {line}\n" for line in lines)
    return GRADS, (
        f"                    losses.append(loss)\n{before}{head}            with tf.device('/gpu:%d' % i):\n{inner}"
    )


LISTED = (BEFORE, BEFORE + "    losses = []\n")
TAKE = ("grads = opt.compute_gradients(loss)", "tower_grads.append(grads)")

TAKEN = [
    taken("a print of the number", said("print('tower', i)")),
    taken("of a text of it", said("print('building tower %d of %d' % (i, 2))")),
    taken("two of them, in their order", said("print('tower', i)"), (LOSS, LOSS + "                    print('built', i)\n")),
    taken("of a name of the module", (HEAD, HEAD + "NAME = 'net'\n"), said("print('{} {}'.format(NAME, i))")),
    taken("of a name of the function", (BEFORE, "    size = 2\n" + BEFORE), said("print(f'{i}: {size}', str(size))")),
    taken("beside a print behind the towers", said("print('tower', i)"), (SAVER, "    print('built')\n" + SAVER)),
    taken("logged", said("tf.logging.info('tower %d', i)")),
    taken("a constant", (BEFORE, "    half = tf.constant(0.5)\n" + BEFORE), SCALED),
    taken("a constant with a type", (BEFORE, "    half = tf.constant(0.5, dtype=tf.float32)\n" + BEFORE), SCALED),
    taken("a constant list", (BEFORE, "    half = tf.constant([0.5, 0.25])\n" + BEFORE),
          (LOSS, LOSS + "                    loss = loss * tf.reduce_sum(half)\n")),
    taken("an item of a constant", (BEFORE, "    half = tf.constant([0.5, 0.25])\n" + BEFORE), (LOSS, LOSS + "                    loss = loss * half[0]\n")),
    taken("what is made of a constant", (BEFORE, "    half = tf.constant([0.5])\n" + BEFORE), (LOSS, LOSS + "                    loss = loss * tf.squeeze(half)\n")),
    taken("gradients in a loop of their own", LISTED, again("loss = losses[i]", *TAKE)),
    taken("of the items themselves", LISTED, again("grads = opt.compute_gradients(losses[i])", TAKE[1])),
    taken("without a name", LISTED, again("tower_grads.append(opt.compute_gradients(losses[i]))")),
    taken("with a comment between the loops", LISTED, again("loss = losses[i]", *TAKE, before="        # and their gradients\n")),
    taken("and a print in each loop", LISTED, said("print('tower', i)"), again("loss = losses[i]", *TAKE)),
    taken("a comprehension by the number's name", (LOSS, LOSS + "                    loss = loss * sum([i for i in range(3)])\n")),
    taken("variables and their shapes", (SAVER, "    for v in tf.trainable_variables():\n        print(v.name, v.get_shape())\n" + SAVER)),
    taken("as a text", (SAVER, "    for v in tf.trainable_variables():\n        print('%s: %s' % (v.op.name, v.shape))\n" + SAVER)),
]  # fmt: skip

LEFT = [
    left("a print of a tensor", "TM223", said("print('tower', i)"), (LOSS, LOSS + "                    print(loss.op.name)\n")),
    left("of a list that the towers fill", "TM223", said("print(len(tower_grads))")),
    left("of a list that is printed whole", "TM223", said("print(tower_grads)")),
    left("of what the tower counts", "TM223", (BEFORE, "    n = 0\n" + BEFORE), said("n = i * 2", "print(n)")),
    left("under a condition", "TM223", said("if i == 0:", "    print('first')")),
    left("by a function", "TM223", ("def net(x):\n", "def net(x):\n    print('net')\n")),
    left("of what a call gives", "TM223", said("print(batch(1)[0])")),
    left("a placeholder that is called as a variable is", "TM211", ("X = tf.placeholder(tf.float32, [None, 3])", "X = tf.placeholder(tf.float32, [None, 3], name='w')")),
    left("a name scope that is", "TM211", ("    X = tf.placeholder(tf.float32, [None, 3])\n", "    with tf.name_scope('W'):\n        X = tf.placeholder(tf.float32, [None, 3])\n")),
    left("shapes as `repr` shows them", "TM223", (SAVER, "    for v in tf.trainable_variables():\n        print('{!r}'.format(v.get_shape()))\n" + SAVER)),
    left("shapes by a format of objects", "TM223", (SAVER, "    for v in tf.trainable_variables():\n        print('%r' % v.get_shape())\n" + SAVER)),
    left("in a loop over what something counts", "TM223", (HEAD, HEAD + "class Count(object):\n    n = 2\n\n\ncount = Count()\n"),
         ("for i in range(2)", "for i in range(count.n)"), said("print('tower', i)")),
    left("behind what is called first", "TM223", (HEAD, HEAD + "def again():\n    print('again')\n    return None\n"),
         ("with tf.variable_scope(tf.get_variable_scope()):", "with tf.variable_scope(tf.get_variable_scope(), reuse=again()):"), said("print('tower', i)")),
    left("a constant with a name", "TM217", (BEFORE, "    half = tf.constant(0.5, name='w')\n" + BEFORE), SCALED),
    left("a constant that is read behind", "TM217", (BEFORE, "    half = tf.constant(0.5)\n" + BEFORE), SCALED,
         (SAVER, "    print(half.dtype)\n" + SAVER)),
    left("a constant that is bound anew", "TM217", (BEFORE, "    half = tf.constant(0.5)\n" + BEFORE), SCALED,
         (SAVER, "    half = 3\n" + SAVER)),
    left("a constant of a computed value", "TM217", (BEFORE, "    half = tf.constant(float(np.random.rand() > 2))\n" + BEFORE), SCALED),
]  # fmt: skip

APART = [
    left("a print in each loop", "TM221", LISTED, said("print('tower', i)"), again("print('grads', i)", "loss = losses[i]", *TAKE)),
    left("an item by a number of its own", "TM221", LISTED, again("extra = [losses[i] for i in [0]]", "grads = opt.compute_gradients(losses[i] + extra[0])", TAKE[1])),
    left("under a condition", "TM221", LISTED, again("if i == 0:", "    loss = losses[i]", *TAKE)),
    left("a list by another name too", "TM221", (BEFORE, BEFORE + "    losses = []\n    others = losses\n"), again("loss = losses[i]", *TAKE)),
    left("a count that something computes", "TM221", LISTED, (HEAD, HEAD + "class Count(object):\n    n = 2\n\n\ncount = Count()\n"),
         ("        for i in range(2):\n            with tf.device('/gpu:%d' % i):\n                with", "        for i in range(count.n):\n            with tf.device('/gpu:%d' % i):\n                with"),
         again("loss = losses[i]", *TAKE, head="        for i in range(count.n):\n")),
    left("the last tower's loss in each turn", "TM221", LISTED, again(*TAKE)),
    left("the item of another turn", "TM221", LISTED, again("loss = losses[i - 1]", *TAKE)),
    left("the items turned around", "TM221", LISTED, again("loss = losses[1 - i]", *TAKE)),
    left("another count", "TM221", LISTED, again("loss = losses[i]", *TAKE, head="        for i in range(1):\n")),
    left("another order", "TM221", LISTED, again("loss = losses[i]", *TAKE, head="        for i in reversed(range(2)):\n")),
    left("a list that is changed between", "TM221", LISTED,
         again("loss = losses[i]", *TAKE, before="        losses.reverse()\n")),
    left("what the first loop left is read", "TM221", LISTED, again("loss = losses[i] * tf.reduce_mean(out)", *TAKE)),
    left("a list that began with something", "TM221", (BEFORE, BEFORE + "    losses = [tf.constant(1.0)]\n"),
         again("loss = losses[i]", *TAKE)),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT)
)


@pytest.mark.parametrize(("changes", "rule"), APART)
def test_two_loops_that_are_not_one(changes: tuple[Change, ...], rule: str) -> None:
    results = rewrite_tree(program(*changes)).programs
    assert len(results) == 2
    for result in results:
        assert result.style != "loop"
        assert rule in [one.rule for one in result.not_loop]


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else([*LEFT, *APART])
