"""Layers that are told whether they reuse variables: `net(x, i > 0)` with `tf.layers.dense(…, reuse=reuse)` in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all

OWN_SCOPE = "                with tf.name_scope('tower_%d' % i) as scope:\n"
REUSED = "                with tf.variable_scope(tf.get_variable_scope(), reuse=(i > 0)):\n"
REUSE = "                    tf.get_variable_scope().reuse_variables()\n"
FIRST = "tf.layers.dense(x, 3, kernel_initializer=init(3, 3){}, reuse={})"
SECOND = "tf.layers.dense(x, 3, kernel_initializer=tf.constant_initializer(0.2){}, reuse={})"
NAMES = (", name='in'", ", name='out'")
FLAG = (
    ("    tower_grads = []\n", "    tower_grads = []\n    reuse = False\n"),
    (
        "tower_grads.append(grads)\n",
        "tower_grads.append(grads)\n                    reuse = True\n",
    ),
)


def layers(
    call: str,
    reuse: str = "reuse",
    names: tuple[str, str] = NAMES,
    head: str = "",
    before: str = "",
) -> tuple[Change, ...]:
    head = head or "def net(x, reuse=False):\n"
    made = f"    x = {FIRST.format(names[0], reuse)}\n    x = {SECOND.format(names[1], reuse)}\n"
    return (
        ("def net(x):\n", head + before + made),
        ("net(x)\n", call + "\n"),
        (OWN_SCOPE, REUSED),
        (REUSE, ""),
    )


def scoped(call: str, reuse: str = "reuse") -> tuple[Change, ...]:
    made = (
        f"    with tf.variable_scope('in', reuse=reuse):\n        x = {FIRST.format('', reuse)}\n"
    )
    return (
        ("def net(x):\n", "def net(x, reuse=False):\n" + made),
        ("net(x)\n", call + "\n"),
        (OWN_SCOPE, REUSED),
        (REUSE, ""),
    )


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("a comparison", *layers("net(x, i > 0)")),
    case("by keyword", *layers("net(x, reuse=i > 0)")),
    case("true or none", *layers("net(x, True if i else None)")),
    case("not the first", *layers("net(x, not i)", "not reuse")),
    case("of the number", *layers("net(x, i)", "reuse > 0")),
    case("as a truth", *layers("net(x, bool(i))")),
    case("a flag", *layers("net(x, reuse)"), *FLAG),
    case("automatic behind the first", *layers("net(x, tf.AUTO_REUSE if i else False)")),
    case("in scopes, without names", *scoped("net(x, i > 0)")),
    case("in scopes that say it alone", *scoped("net(x, i > 0)", "None")),
    case("the scope reuses too", *layers("net(x, i > 0)", before="    if reuse:\n        tf.get_variable_scope().reuse_variables()\n")),
    case("in the tower itself", (OWN_SCOPE, REUSED), (REUSE, ""), ("                    out = net(x)\n", f"                    x = {FIRST.format(NAMES[0], 'i > 0')}\n                    out = net(x)\n")),
    case("by the second tower", (OWN_SCOPE, REUSED), (REUSE, ""), ("                    out = net(x)\n", f"                    x = {FIRST.format(NAMES[0], 'i == 1')}\n                    out = net(x)\n")),
    case("in a scope of the tower", ("net(x)\n", "net(x, i > 0)\n"), ("def net(x):\n", f"def net(x, reuse=False):\n    x = {FIRST.format(NAMES[0], 'reuse')}\n")),
]  # fmt: skip

LEFT = [
    other("another activation", "TM227", *layers("net(x, i > 0)", names=(", name='in', activation=tf.nn.relu if reuse else None", NAMES[1]))),
    other("trained by the first alone", "TM227", *layers("net(x, i > 0)", names=(", name='in', trainable=not reuse", NAMES[1]))),
    other("another rate", "TM227", *layers("net(x, i > 0)", before="    x = tf.layers.dropout(x, 0.5 if reuse else 0.1, training=True)\n")),
    other("a list of flags", "TM227", *layers("net(x, [False, True][i])")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
