"""Blocks around the towers that always run once, and names that towers delete: spellings, and neighbours that must stay."""

from __future__ import annotations

import textwrap

import pytest

from tests.differential.loop_programs import TRAIN, Change, program
from tests.differential.spellings import asked_of, none_does_anything_else

HEADER = "    with tf.variable_scope(tf.get_variable_scope()):\n"
TOWERS = TRAIN[TRAIN.index(HEADER) : TRAIN.index("    grads = average_gradients")]
LOOP = TOWERS.removeprefix(HEADER)
CONSTANT = ("drawn = [0]\n", "drawn = [0]\nCOUNT = 2\n")
GRADS = "                    grads = opt.compute_gradients(loss)\n"
APPEND = "                    tower_grads.append(grads)\n"
FLAGS = ("drawn = [0]\n", "drawn = [0]\nflags = tf.app.flags\nflags.DEFINE_integer('count', 2, '')\nFLAGS = flags.FLAGS\n")  # fmt: skip


def block(header: str, *inside: Change) -> Change:
    """The tower loop in a block."""
    text = LOOP
    for old, new in inside:
        assert old in text
        text = text.replace(old, new)
    return LOOP, f"        {header}\n{textwrap.indent(text, '    ')}"


def around(header: str) -> Change:
    """All of the towers in a block, the scope too."""
    return TOWERS, f"    {header}\n{textwrap.indent(TOWERS, '    ')}"


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    taken("a constant of the file", CONSTANT, block("if COUNT > 1:")),
    taken("around the scope too", CONSTANT, around("if COUNT > 1:")),
    taken("two of them", CONSTANT, ("COUNT = 2\n", "COUNT = 2\nON = True\n"), block("if ON and not COUNT == 3:")),
    taken("a comment in front of the loop", CONSTANT, block("if COUNT % 2 == 0:\n            # each of them")),
    taken("one in the other", CONSTANT, ("    with tf.variable_scope(tf.get_variable_scope()):\n" + LOOP, "    if COUNT:\n        with tf.variable_scope(tf.get_variable_scope()):\n            for again in range(1):\n" + textwrap.indent(LOOP, "        "))),
    taken("one turn", block("for again in range(1):")),
    taken("a text of several lines", CONSTANT, block("if COUNT > 1:", ("                    out = net(x)\n", "                    '''What a tower\n    computes.'''\n                    out = net(x)\n"))),
    taken("a name that the tower deletes", (APPEND, APPEND + "                    del grads\n")),
    taken("several of them", (GRADS, "                    del x, out\n" + GRADS)),
]  # fmt: skip

LEFT = [
    left("a setting", "TM201", FLAGS, block("if FLAGS.count > 1:")),
    left("a constant that a function sets", "TM201", CONSTANT, ("def batch(rows):\n", "def more():\n    global COUNT\n    COUNT = 0\n\n\ndef batch(rows):\n"), block("if COUNT > 1:")),
    left("a constant that is bound twice", "TM201", CONSTANT, ("COUNT = 2\n", "COUNT = 0\nCOUNT = 2\n"), block("if COUNT > 1:")),
    left("a star that may bring another", "TM201", ("drawn = [0]\n", "drawn = [0]\nCOUNT = 2\nfrom math import *\n"), block("if COUNT > 1:")),
    left("a parameter of that name", "TM201", CONSTANT, ("def train():\n", "def train(COUNT=3):\n"), block("if COUNT > 1:")),
    left("something else behind it", "TM201", CONSTANT, (LOOP, f"        if COUNT > 1:\n{textwrap.indent(LOOP, '    ')}        else:\n            print('one')\n")),
    left("two turns", "TM201", block("for again in range(2):")),
    left("a turn whose number is read", "TM201", block("for again in range(1):", (GRADS, GRADS + "                    print(again)\n"))),
    left("a turn that may end early", "TM201", (LOOP, f"        for again in range(1):\n{textwrap.indent(LOOP, '    ')}            break\n")),
    left("a range of the program's own", "TM201", ("drawn = [0]\n", "drawn = [0]\n\n\ndef range(n):\n    return [0, 1]\n"), block("for again in range(1):")),
    left("a name that is read in the next turn", "TM223", (GRADS, "                    if i > 0:\n                        print(kept)\n                    kept = 1\n                    del kept\n" + GRADS)),
    left("a name that was there before", "TM223", ("    tower_grads = []\n", "    tower_grads = []\n    kept = 1\n"), (APPEND, APPEND + "                    kept = 2\n                    del kept\n")),
    left("an item", "TM223", (GRADS, "                    parts = [out]\n                    del parts[0]\n" + GRADS)),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_no_neighbour_does_anything_else() -> None:
    none_does_anything_else(LEFT, program)
