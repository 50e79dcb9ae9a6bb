"""Losses that are made where their gradients are asked for."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else

IN = "                    "
LOSS = f"{IN}loss = tf.reduce_mean(tf.square(out - y))\n"
MADE = "tf.reduce_mean(tf.square(out - y))"
TAKE = f"{IN}grads = opt.compute_gradients(loss)\n{IN}tower_grads.append(grads)\n"
FETCH = "_, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})"
ALONE = "value = 0.0\n            sess.run(train_op, feed_dict={X: bx, Y: by})"
REUSE = "tf.get_variable_scope().reuse_variables()"
LATE_REUSE = (f"{IN}{REUSE}\n", ""), (f"{IN}out = net(x)\n", "")
COST = "def cost(out, y):\n    return tf.reduce_mean(tf.square(out - y))\n\n\ndef net(x):\n"


def made(*lines: str, more: tuple[Change, ...] = ()) -> tuple[Change, ...]:
    """The program whose loss has no name, with other lines where its gradients are taken."""
    take = "".join(f"{IN}{line}\n" for line in lines)
    return ((LOSS, ""), (TAKE, take), (FETCH, ALONE), *more)


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    taken("in an append", *made(f"tower_grads.append(opt.compute_gradients({MADE}))")),
    taken("under a name of their own", *made(f"grads = opt.compute_gradients({MADE})", "tower_grads.append(grads)")),
    taken("of a function", *made("tower_grads.append(opt.compute_gradients(cost(out, y)))", more=(("def net(x):\n", COST),))),
    taken("of a model's output", *LATE_REUSE, *made("tower_grads.append(opt.compute_gradients(tf.reduce_mean(tf.square(net(x) - y))))", REUSE)),
    taken("of another model beside the one that is fetched", (TAKE, f"{IN}tower_grads.append(opt.compute_gradients(tf.reduce_mean(tf.abs(net(x) - y))))\n")),
    taken("for some variables", *made(f"tower_grads.append(opt.compute_gradients({MADE}, var_list=tf.trainable_variables()))")),
    taken("a sum", *made(f"tower_grads.append(opt.compute_gradients({MADE} + 0.01 * tf.reduce_sum(tf.square(out))))")),
    taken("a name that is taken", *made(f"tower_grads.append(opt.compute_gradients({MADE}))", more=(("    tower_grads = []\n", "    tower_grads = []\n    loss = 3\n"), ("print('draws', drawn[0])", "print('draws', drawn[0], loss)")))),
]  # fmt: skip

LATER = "class Late(object):\n    opt = None\n\n\nlate = Late()\n\n\ndef net(x):\n    late.opt = tf.train.GradientDescentOptimizer(0.1)\n"
LEFT = [
    left("asked for under a condition", "TM227", *made(f"tower_grads.append(opt.compute_gradients({MADE}) if scope else None)")),
    left("of an optimizer that the model makes", "TM202", ("def net(x):\n", LATER), *LATE_REUSE,
         *made("tower_grads.append(late.opt.compute_gradients(tf.reduce_mean(tf.square(net(x) - y))))", REUSE)),
    left("a second one beside it", "TM202", *made(f"tower_grads.append(opt.compute_gradients({MADE}) and opt.compute_gradients({MADE}))")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
