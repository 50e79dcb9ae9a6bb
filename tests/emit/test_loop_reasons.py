"""All that keeps a program from being written in loop style is said in one pass, with what the proof has to say."""

from __future__ import annotations

import pytest

from tests.recognize.programs import program, recognize
from towermigrate.emit import emit_tree
from towermigrate.findings import Finding

START = "    tower_grads = []\n"
APPLY = "    train_op = opt.apply_gradients(grads)\n"
LOSS = "            loss = tf.reduce_mean(tf.square(model(parts[i])))\n"
PRINT = "            print(value)\n"
SESSION = "    with tf.Session() as sess:\n"

EARLY_SAVER = (START, "    saver = tf.train.Saver()\n" + START)
EARLY_GRAPH = (START, "    unused = tf.layers.flatten(tf.ones([1, 1]))\n" + START)
RATE = ("    opt = tf.train.GradientDescentOptimizer(0.1)\n",
        "    rate = tf.placeholder(tf.float32, [])\n    opt = tf.train.GradientDescentOptimizer(rate)\n")  # fmt: skip
LATE_GRAPH = (PRINT, PRINT + "            print(tf.get_default_graph())\n")
LATE_VARIABLE = (APPLY, APPLY + "    best = tf.get_variable('best', [], trainable=False)\n")
PRINTED = (LOSS, LOSS + "            print(loss)\n")
PARTS_OF_NAMES = (APPLY, APPLY + "    saver = tf.train.Saver(tf.global_variables('model'))\n")

SETS = [
    pytest.param([EARLY_GRAPH, EARLY_SAVER], ["TM211", "TM210"], id="two of the emitter's"),
    pytest.param([EARLY_GRAPH, RATE, LATE_GRAPH, PARTS_OF_NAMES], ["TM211", "TM209", "TM210", "TM210", "TM231"], id="four of them, and one of the proof's"),
    pytest.param([EARLY_GRAPH, PRINTED], ["TM211", "TM223"], id="one, and one of the proof's"),
    pytest.param([EARLY_GRAPH, EARLY_SAVER, PRINTED, LATE_GRAPH], ["TM211", "TM210", "TM210", "TM223"], id="three, and one of the proof's"),
]  # fmt: skip


def not_loop(text: str) -> list[Finding]:
    (result,) = emit_tree({"program.py": text}, recognize(text)).results
    assert result.style == "session"
    return list(result.not_loop)


@pytest.mark.parametrize(("changes", "rules"), SETS)
def test_every_reason_is_said_most_important_first(
    changes: list[tuple[str, str]], rules: list[str]
) -> None:
    found = not_loop(program(*changes))
    assert [one.rule for one in found] == rules, [one.message for one in found]
    assert len(found) == len({(one.rule, one.line, one.column) for one in found})


def test_each_stands_at_its_line() -> None:
    text = program(EARLY_GRAPH, EARLY_SAVER, PRINTED)
    lines = text.splitlines()
    said = {one.rule: lines[one.line - 1].strip() for one in not_loop(text)}
    assert said["TM210"] == "saver = tf.train.Saver()"
    assert said["TM211"] == "unused = tf.layers.flatten(tf.ones([1, 1]))"
    assert said["TM223"] == "print(loss)"


def test_what_stands_beside_the_program_hides_nothing() -> None:
    text = program(PRINTED, EARLY_GRAPH) + "\n\nfor _ in range(2):\n    train()\n"
    assert [one.rule for one in not_loop(text)] == ["TM235", "TM211", "TM223"]


def test_of_a_program_whose_parts_were_not_read_nothing_is_made_up() -> None:
    changes = [("    grads = average_gradients(tower_grads)\n", "    grads = tower_grads[0]\n")]
    assert "never fetched" not in " ".join(one.message for one in not_loop(program(*changes)))
