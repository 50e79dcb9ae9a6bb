"""Inputs with a default, `tf.placeholder_with_default`: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

FORWARD = "out = net(x)\n"
INPUT = "    Y = tf.placeholder(tf.float32, [None, 1])\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"


def look(fed: str = "") -> str:
    return f"            print('%.5f' % sess.run(loss, feed_dict={{X: bx, Y: by{fed}}}))\n"


def made(call: str, read: str = "out = net(x) * part\n") -> tuple[Change, Change]:
    return (INPUT, INPUT + f"    part = {call}\n"), (FORWARD, read)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


HALF = made("tf.placeholder_with_default(0.5, [])")
FED = ("{X: bx, Y: by}", "{X: bx, Y: by, part: 0.25 * (step + 1)}")

TAKEN = [
    case("never fed", *HALF),
    case("always fed", *HALF, FED),
    case("fed to one of two runs", *HALF, FED, (RUN.replace("Y: by}", "Y: by, part: 0.25 * (step + 1)}"), look() + RUN.replace("Y: by}", "Y: by, part: 0.25 * (step + 1)}"))),
    case("fed to the other", *HALF, (RUN, look(", part: 2.0") + RUN)),
    case("by keywords", *made("tf.placeholder_with_default(input=1.5, shape=(), name='part')"), (RUN, look(", part: 2.0") + RUN)),
    case("a whole number", *made("tf.placeholder_with_default(3, [])", "out = net(x) / tf.cast(part, tf.float32)\n"), (RUN, look(", part: 2") + RUN)),
    case("a number below zero", *made("tf.placeholder_with_default(-0.5, [])"), (RUN, look(", part: 2.0") + RUN)),
    case("a bool", *made("tf.placeholder_with_default(False, [])", "out = net(x) * tf.cond(part, lambda: 1.0, lambda: 0.5)\n") ),
]  # fmt: skip

LEFT = [
    other("of a tensor", "TM208", *made("tf.placeholder_with_default(tf.constant(0.5), [])")),
    other("of an array", "TM208", *made("tf.placeholder_with_default(np.float32(0.5), [])")),
    other("of a name", "TM208", *made("tf.placeholder_with_default(drawn[0], [])", "out = net(x) * tf.cast(part, tf.float32)\n")),
    other("of a list", "TM208", *made("tf.placeholder_with_default([0.5], [1])")),
    other("with axes", "TM208", *made("tf.placeholder_with_default([0.5], [None])")),
    other("that is split", "TM208", *made("tf.split(tf.placeholder_with_default([0.5, 0.5], [2]), 2)", "out = net(x) * part[i]\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
