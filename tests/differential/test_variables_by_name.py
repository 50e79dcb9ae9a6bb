"""Gradients for variables that the towers make and list by their names: `compute_gradients(loss, [w, b])`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

MADE = """\
                    scale = tf.get_variable('scale', [1], initializer=tf.constant_initializer(0.5))
                    shift = tf.get_variable('shift', [1], initializer=tf.constant_initializer(0.3))
"""
NET = "                    out = net(x) * scale + shift\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
BUILT = """\
def build(x, y):
    scale = tf.get_variable('scale', [1], initializer=tf.constant_initializer(0.5))
    shift = tf.get_variable('shift', [1], initializer=tf.constant_initializer(0.3))
    return tf.reduce_mean(tf.square(net(x) * scale + shift - y)), [scale, shift]


def train():
"""


def listed(variables: str, before: str = "") -> Change:
    lines = "".join(f"                    {line}\n" for line in before.splitlines())
    return GRADS, lines + GRADS.replace("(loss)", f"(loss, {variables})")


def case(name: str, *changes: Change) -> Any:
    return pytest.param((("                    out = net(x)\n", MADE + NET), *changes), id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(
        (("                    out = net(x)\n", MADE + NET), *changes), rule, id=name
    )


TAKEN = [
    case("one", listed("[scale]")),
    case("two", listed("[scale, shift]")),
    case("in another order, by keyword", listed("var_list=[shift, scale]")),
    case("a tuple", listed("(shift, scale)")),
    case("a list that has a name", listed("params", "params = [scale, shift]")),
    case("a list that is named before the loss", (NET, "                    params = [scale]\n" + NET), listed("params")),
    case("a list that is filled", listed("params", "params = []\nparams.append(scale)")),
    case("a part of a list", listed("params[:1]", "params = [scale, shift]")),
    case("a sum of lists", listed("[scale] + [shift]")),
    case("of a dict", listed("[held['a']]", "held = {'a': scale, 'b': shift}")),
    case("by another name", listed("[kept]", "kept = scale\nscale = scale * 2.0")),
    case("a name that is bound anew", listed("[scale]", "scale = shift")),
    case("a list that is read at the end", listed("[scale]"), ("        saver.save", "        print('%.5f' % sess.run(scale)[0])\n        saver.save")),
    case("and the first of them clipped", listed("[shift, scale]"), ("    train_op = ", "    grads = [(tf.clip_by_value(grads[0][0], -0.01, 0.01), grads[0][1])] + grads[1:]\n    train_op = ")),
    case("a list that a function returns", ("def train():\n", BUILT), (MADE + NET, ""), ("                    loss = tf.reduce_mean(tf.square(out - y))\n", "                    loss, params = build(x, y)\n"), listed("params")),
]  # fmt: skip

LEFT = [
    other("as many as the tower's number says", "TM227", listed("[scale, shift][:i + 1]")),
    other("others in the first tower", "TM214", listed("params", "params = [scale] if i == 0 else [scale, shift]")),
    other("a list that all towers fill", "TM203", ("    tower_grads = []\n", "    tower_grads = []\n    theta = []\n"), listed("theta", "theta.append(scale)")),
    other("one that is fetched beside its update", "TM209", listed("[scale]"), ("            _, value = sess.run([train_op, loss]", "            _, value, now = sess.run([train_op, loss, scale]")),
    other("one of them twice", "TM211", listed("[scale] + [v for v in tf.trainable_variables() if v.op.name == 'scale']")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
