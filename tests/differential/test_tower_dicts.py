"""Dicts and lists that a tower makes and stores in: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

AVERAGED = "    grads = average_gradients(tower_grads)\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
NET = "def net(x):\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
START = "    tower_grads = []\n"


def in_tower(text: str) -> Change:
    """Statements of the tower, behind its loss."""
    return (LOSS, LOSS + "".join(f"                    {line}\n" for line in text.split("\n")))


def before(text: str) -> Change:
    return (START, START + text)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("terms by their names", in_tower("terms = {}\nterms['fit'] = loss\nterms['size'] = 0.01 * tf.reduce_mean(tf.abs(out))\nloss = terms['fit'] + terms['size']")),
    case("terms of a loop", in_tower("terms = {}\nfor key in ('a', 'b'):\n    terms[key] = loss * 0.5\nloss = terms['a'] + terms['b']")),
    case("numbers", in_tower("shifts = {}\nfor key in ('a', 'b'):\n    shifts[key] = 0.1 * (i + 1)\nloss = loss + shifts['a'] - shifts['b'] * 0.5")),
    case("an item of a list", in_tower("terms = [loss, loss]\nterms[1] = loss * 2.0\nloss = tf.add_n(terms)")),
    case("a dict with something in it", in_tower("terms = {'fit': loss}\nterms['fit'] = terms['fit'] * 0.5\nloss = terms['fit']")),
    case("a dict handed to a function", (NET, "def summed(terms):\n    return tf.add_n([terms['fit'], terms['size']])\n\n\n" + NET), in_tower("terms = dict()\nterms['fit'] = loss\nterms['size'] = tf.reduce_mean(tf.abs(out))\nloss = summed(terms)")),
    case("one that a run fetches", in_tower("terms = {}\nterms['fit'] = loss * 2.0\ntwice = terms['fit']"), (RUN, "            print('%.5f' % sess.run(twice, feed_dict={X: bx, Y: by}))\n" + RUN)),
]  # fmt: skip

LEFT = [
    other("a dict from before", "TM206", before("    terms = {}\n"), in_tower("terms['fit'] = loss")),
    other("a dict from before by another name", "TM206", before("    every = {}\n"), in_tower("terms = every\nterms['fit'] = loss")),
    other("a dict of the module", "TM206", (NET, "TERMS = {}\n\n\n" + NET), in_tower("terms = TERMS\nterms['fit'] = loss")),
    other("a part of one from before", "TM206", before("    every = {'a': {}}\n"), in_tower("terms = every['a']\nterms['fit'] = loss")),
    other("one that a function keeps", "TM206", (NET, "KEPT = []\n\n\ndef kept(given):\n    KEPT.append(given)\n    return given\n\n\n" + NET), in_tower("terms = kept({})\nterms['fit'] = loss")),
    other("one that a function gives", "TM206", (NET, "KEPT = {}\n\n\ndef kept():\n    return KEPT\n\n\n" + NET), in_tower("terms = kept()\nterms['fit'] = loss")),
    other("one made behind", "TM206", before("    terms = {}\n"), in_tower("terms['fit'] = loss\nterms = {}")),
    other("one of a default", "TM206", (NET, "def kept(terms={}):\n    return terms\n\n\n" + NET), in_tower("terms = kept()\nterms['fit'] = loss")),
    other("an object's attribute", "TM206", (NET, "class Terms(object):\n    pass\n\n\n" + NET), before("    every = Terms()\n"), in_tower("terms = every\nterms.fit = loss")),
    other("an array from before", "TM206", before("    counts = np.zeros(2)\n"), in_tower("terms = counts\nterms[0] = 1.0")),
    other("by a variable", "TM226", in_tower("terms = {}\nfor v in tf.trainable_variables():\n    terms[v] = loss\nloss = loss + 0.0 * len(terms)")),
    other("by a tensor", "TM226", in_tower("terms = {}\nterms[loss] = out")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
