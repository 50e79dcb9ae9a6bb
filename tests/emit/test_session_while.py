"""Towers that a `while` builds: its condition is asked before each turn, and its body stays."""

from __future__ import annotations

import textwrap

import pytest

from towermigrate.rewrite import rewrite_tree

PROGRAM = """\
import tensorflow as tf


def train(xs, n):
    opt = tf.train.GradientDescentOptimizer(0.1)
    tower_grads = []
{loop}
    return opt.apply_gradients(average(tower_grads))
"""
BODY = """\
with tf.device('/gpu:%d' % i):
    with tf.variable_scope('m', reuse=i > 0):
        tower_grads.append(opt.compute_gradients(loss(xs[i])))
"""
DROPPED = """\
with tf.variable_scope('m', reuse=i > 0):
    tower_grads.append(opt.compute_gradients(loss(xs[i])))
"""


def program(before: str, header: str, body: str, after: str = "") -> str:
    loop = before + header + "\n" + textwrap.indent(body, "    ") + after
    return PROGRAM.format(loop=textwrap.indent(loop, "    ").rstrip("\n"))


HEADERS = [
    pytest.param("i = 0\n", "while i < n:", "for _ in tm.towers(lambda: i < n):", id="a counter"),
    pytest.param("i = 0\n", "while(i < n):", "for _ in tm.towers(lambda: (i < n)):", id="brackets"),
    pytest.param("i = 0\n", "while not i >= n :", "for _ in tm.towers(lambda: not i >= n) :", id="not"),
    pytest.param("i = 0\n", "while (i < n and\n       xs):  # all", "for _ in tm.towers(lambda: (i < n and\n       xs)):  # all", id="lines"),
    pytest.param("i = 0\n", "while \\\n        i < n:", "for _ in tm.towers(lambda: i < n):", id="a continued line"),
    pytest.param("i, _ = 0, 1\n", "while i < n:", "for _turn in tm.towers(lambda: i < n):", id="a name that is taken"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "header", "becomes"), HEADERS)
def test_the_header_goes_over_towers(before: str, header: str, becomes: str) -> None:
    text = program(before, header, BODY + "i += 1\n")
    report = rewrite_tree({"m.py": text})
    assert [one.style for one in report.programs] == ["session"]
    result = report.texts["m.py"]
    assert (
        textwrap.indent(f"{becomes}\n" + textwrap.indent(DROPPED_NAMES, "    "), "    ") in result
    )
    again = rewrite_tree(report.texts)
    assert again.texts == {} and again.programs == []


DROPPED_NAMES = DROPPED.replace("tf.variable_scope", "tf.compat.v1.variable_scope") + "i += 1\n"

FORMS = {
    "the index changes in the middle": ("i = 0\n", "while i < n:", "k, i = i, i + 1\n" + BODY.replace("% i", "% k"), ""),
    "continue and break": ("i = -1\n", "while True:", "i += 1\nif i == 1:\n    continue\nif i > n:\n    break\n" + BODY, ""),
    "else": ("i = 0\n", "while i < n:", BODY + "i += 1\n", "else:\n    print(i)\n"),
    "a list that is used up": ("left = list(range(n))\n", "while left:", "i = left.pop(0)\n" + BODY, ""),
    "an iterator": ("numbers = iter(range(n))\n", "while True:", "i = next(numbers, None)\nif i is None:\n    break\n" + BODY, ""),
    "epochs around it": ("i = 0\nwhile xs:\n  if i:\n    break\n", "  while i < n:", textwrap.indent(BODY + "i += 1\n", "  "), ""),
    "no device": ("i = 0\n", "while i < num_gpus:", "tower_grads.append(opt.compute_gradients(loss(xs[i])))\ni += 1\n", ""),
    "a counter of steps of two": ("i = 0\n", "while i < 2 * n:", BODY.replace("% i", "% (i // 2)") + "i += 2\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_converted_where_it_stands(name: str) -> None:
    text = program(*FORMS[name])
    report = rewrite_tree({"m.py": text})
    assert [(one.status, one.style) for one in report.programs] == [("converted", "session")]
    assert "TM201" in [one.rule for one in report.programs[0].not_loop]
    result = report.texts["m.py"]
    assert result.count("tm.towers(lambda: ") == 1
    assert "tf.device(" not in result
    again = rewrite_tree(report.texts)
    assert again.texts == {} and again.programs == []


def test_the_number_of_towers_is_read_from_a_loop_that_counts() -> None:
    text = program("i = 0\n", "while i < n:", BODY + "i += 1\n")
    report = rewrite_tree({"m.py": text})
    assert "tm.mirror_variables(n)" in report.texts["m.py"]
    text = program("i = 0\n", "while i < n:", BODY + "i += 2\n")
    report = rewrite_tree({"m.py": text})
    assert "tm.mirror_variables()" in report.texts["m.py"]


TIED = {
    "while (i := i + 1) < n:": "it binds a name",
    "while i < (yield):": "it waits or yields",
    "while i < len(locals()):": "it calls `locals`",
    "while super().goes_on(i):": "it calls `super`",
}


@pytest.mark.parametrize("header", TIED)
def test_a_condition_that_no_function_can_ask_is_refused(header: str) -> None:
    text = program("i = 0\n", header, BODY + "i += 1\n")
    report = rewrite_tree({"m.py": text})
    assert report.texts == {}
    found = [(each.rule, each.line) for each in report.programs[0].findings]
    assert found == [("TM257", 8)]
    assert report.programs[0].findings[0].message.endswith(TIED[header])


OTHERS = [
    pytest.param("while not coord.should_stop():\n    sess.run(train_op)\n    step += 1\n", id="a session's loop"),
    pytest.param("while step < n:\n    with tf.device('/cpu:0'):\n        h = tf.layers.dense(h, 4)\n    step += 1\n", id="layers on one device"),
    pytest.param("while i < n:\n    h = tf.layers.dense(h, 4)\n    i += 1\n", id="layers"),
]  # fmt: skip


@pytest.mark.parametrize("loop", OTHERS)
def test_other_loops_are_no_towers(loop: str) -> None:
    text = "import tensorflow as tf\n\n\ndef f(opt, h, i, n, step):\n" + textwrap.indent(
        loop, "    "
    )
    assert rewrite_tree({"m.py": text}).programs == []
