"""Averaging functions that limit what they average: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

HEAD = "drawn = [0]\n"
STACKED = "        stacked = tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0)\n"
APPENDED = "        averaged.append((tf.reduce_mean(stacked, 0), pairs[0][1]))\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
CALLED = "    return averaged\n"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def appended(*lines: str) -> Change:
    """What the loop over the variables does with what it stacked."""
    return APPENDED, "".join(f"        {line}\n" for line in lines)


MEAN = "grad = tf.reduce_mean(stacked, 0)"
PAIR = "averaged.append((grad, pairs[0][1]))"

TAKEN = [
    case("by norm, in place", appended("averaged.append((tf.clip_by_norm(tf.reduce_mean(stacked, 0), 0.05), pairs[0][1]))")),
    case("by value, in place", appended("averaged.append((tf.clip_by_value(tf.reduce_mean(stacked, 0), -0.1, 0.02), pairs[0][1]))")),
    case("by norm, in a statement", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", PAIR)),
    case("by value and by norm", appended(MEAN, "grad = tf.clip_by_value(grad, -0.05, 0.02)", "grad = tf.clip_by_norm(grad, 0.04)", PAIR)),
    case("by a setting", (HEAD, "LIMIT = 0.05\n" + HEAD), appended(MEAN, "grad = tf.clip_by_norm(grad, LIMIT)", PAIR)),
    case("before the variable is picked", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", "var = pairs[0][1]", "averaged.append((grad, var))")),
    case("of a pair that has a name", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", "pair = (grad, pairs[0][1])", "averaged.append(pair)")),
    case("limited behind too", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", PAIR), (AVERAGED, AVERAGED + "    grads = [(tf.clip_by_value(g, -0.03, 0.03), v) for g, v in grads]\n")),
]  # fmt: skip

LEFT = [
    other("each tower's", "TM203", (STACKED, STACKED.replace("expand_dims(g, 0)", "expand_dims(tf.clip_by_norm(g, 0.05), 0)"))),
    other("before the mean", "TM203", appended("stacked = tf.clip_by_value(stacked, -0.05, 0.05)", MEAN, PAIR)),
    other("and halved behind", "TM203", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", "grad = grad * 0.5", PAIR)),
    other("by a number of the loop", "TM203", ("    for pairs in zip(*tower_grads):\n", "    limit = 0.05\n    for pairs in zip(*tower_grads):\n"), appended(MEAN, "grad = tf.clip_by_norm(grad, limit)", "limit = limit * 0.5", PAIR)),
    other("by a setting that changes", "TM203", (HEAD, "LIMIT = 0.05\n" + HEAD), appended(MEAN, "grad = tf.clip_by_norm(grad, LIMIT)", PAIR), ("    return averaged\n", "    return averaged\n\n\ndef looser():\n    global LIMIT\n    LIMIT = 1.0\n")),
    other("of some of the variables", "TM203", appended(MEAN, "if len(averaged) == 0:", "    grad = tf.clip_by_norm(grad, 0.05)", PAIR)),
    other("of a function that two call", "TM203", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", PAIR), (AVERAGED, "    print(len(average_gradients(tower_grads)))\n" + AVERAGED)),
    other("whose mean is returned too", "TM203", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", PAIR), ("    return averaged\n", "    return averaged, grad\n"), (AVERAGED, AVERAGED.replace("grads =", "grads, _ ="))),
    other("with a comment above", "TM203", appended(MEAN, "# Small steps.", "grad = tf.clip_by_norm(grad, 0.05)", PAIR)),
    other("with a comment behind", "TM203", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)  # small steps", PAIR)),
    other("in place, with a comment above", "TM203", appended("# Small steps.", "averaged.append((tf.clip_by_norm(tf.reduce_mean(stacked, 0), 0.05), pairs[0][1]))")),
    other("that something reads behind its limit", "TM203", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", "print(grad.op.type)", PAIR)),
    other("that another name is given behind its limit", "TM203", appended(MEAN, "grad = tf.clip_by_norm(grad, 0.05)", "kept = grad", "averaged.append((kept * 1.0, pairs[0][1]))")),
    other("by the tower's loss", "TM203", appended(MEAN, "grad = tf.clip_by_norm(grad, tf.reduce_max(stacked))", PAIR)),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
