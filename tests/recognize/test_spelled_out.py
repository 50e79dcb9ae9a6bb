"""What keeps towers of a `while`, a comprehension or `map` from loop style: all of it, at the author's lines."""

from __future__ import annotations

import textwrap

import pytest

from towermigrate.findings import Finding
from towermigrate.recognize import recognize_tree
from towermigrate.recognize.spelled_out import SpelledOut
from towermigrate.rewrite import rewrite_tree

PROGRAM = """\
import tensorflow as tf


def tower(x, i):
    with tf.device('/gpu:%d' % i):
        with tf.variable_scope('m', reuse=i > 0):
            w = tf.get_variable('w', [3])
            print('tower', i)
            return opt.compute_gradients(tf.reduce_sum(w * x))


opt = tf.train.GradientDescentOptimizer(0.1)


def train(xs, n):
{built}
    train_op = opt.apply_gradients(average(tower_grads))
    with tf.Session() as sess:
        sess.run(train_op)


for again in range(2):
    train([1., 2.], 2)
"""

LOOP = """\
tower_grads = []
for i in range(n):
    tower_grads.append(tower(xs[i], i))
"""
FORMS = {
    "a list": "tower_grads = [tower(xs[i], i) for i in range(n)]",
    "over lines": "tower_grads = [  # all\n    tower(\n        xs[i], i)\n    for i in range(\n        n)\n]",
    "with a condition": "tower_grads = [tower(xs[i], i) for i in range(n) if i < 4]",
    "a generator": "tower_grads = tuple(tower(xs[i], i) for i in range(n))",
    "inside a call": "tower_grads = list(\n    reversed([tower(xs[i], i) for i in range(n)])\n)",
    "in a header": "with tf.name_scope(''):\n    tower_grads = []\nfor one in [tower(xs[i], i) for i in range(n)]:\n    tower_grads.append(one)",
    "map with a lambda": "tower_grads = list(map(lambda i: tower(xs[i], i), range(n)))",
    "map": "def of(i):\n    return tower(xs[i], i)\ntower_grads = list(map(of, range(n)))",
    "a counter": "i = 0\ntower_grads = []\nwhile i < n:\n    tower_grads.append(tower(xs[i], i))\n    i += 1",
    "a condition over lines": "i = 0\ntower_grads = []\nwhile (i < n\n       and xs):\n    tower_grads.append(tower(xs[i], i))\n    i += 1",
    "else": "i = 0\ntower_grads = []\nwhile i < n:\n    tower_grads.append(tower(xs[i], i))\n    i += 1\nelse:\n    print(i)",
}  # fmt: skip


def not_loop(text: str) -> tuple[Finding, ...]:
    (program,) = rewrite_tree({"m.py": text}).programs
    assert (program.status, program.style) == ("converted", "session")
    return program.not_loop


def program(built: str) -> str:
    return PROGRAM.format(built=textwrap.indent(built.rstrip("\n"), "    "))


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize("name", FORMS)
def test_every_reason_is_said_at_the_line_of_the_author(name: str) -> None:
    text = program(FORMS[name])
    found = not_loop(text)
    lines = {
        rule: [one.line for one in found if one.rule == rule] for rule in {f.rule for f in found}
    }
    assert len(lines["TM201"]) == 1
    assert lines["TM223"] == [line_of(text, "print('tower'")]
    assert lines["TM235"] == [line_of(text, "train([1.")]
    assert lines["TM204"] == [line_of(text, "opt.apply_gradients")]
    rows = text.split("\n")
    assert all(one.column <= len(rows[one.line - 1]) for one in found)


@pytest.mark.parametrize(
    "name", [name for name in FORMS if "condition" not in name and name != "map"]
)
def test_the_reasons_are_those_of_a_for_and_the_form(name: str) -> None:
    of_for = {one.rule for one in not_loop(program(LOOP))}
    assert "TM201" not in of_for and len(of_for) > 5
    # `tower_grads.append` is a line of the `for` only.
    assert {one.rule for one in not_loop(program(FORMS[name]))} == of_for | {"TM201"}


def test_what_only_the_spelled_out_form_has_is_not_said() -> None:
    for name in ("a list", "a generator", "map with a lambda"):
        said = " ".join(one.message for one in not_loop(program(FORMS[name])))
        assert "append" not in said and "`towers`" not in said and "changes" not in said


def test_lines_that_a_message_names_are_the_author_s() -> None:
    text = "a = [\n    f(x)\n    for x in xs\n]\nb = 1\n"
    found = SpelledOut("m.py", text, 2, (1, 1, 2, 5), (0, 5, -3, 0))
    message = "as at m.py:4 and other.py:4, line 4 and line 4 of n.py"
    own = found.original(Finding("TM224", "m.py", 2, 10, message))
    assert (own.line, own.column) == (1, 15)
    assert own.message == "as at m.py:5 and other.py:4, line 5 and line 4 of n.py"
    other = found.original(Finding("TM224", "n.py", 2, 10, "line 4 and line 4 of m.py"))
    assert (other.line, other.column, other.message) == (2, 10, "line 4 and line 5 of m.py")


@pytest.mark.parametrize(
    "built",
    [
        "tower_grads = (lambda k: [tower(xs[i], i) for i in range(k)])(n)",
        "tower_grads = [g for g in [tower(xs[i], i) for i in range(n)]]",
    ],
)
def test_where_no_statement_can_stand_in_front_the_form_is_the_reason(built: str) -> None:
    found = recognize_tree({"m.py": program(built)})
    assert [one.rule for each in found for one in each.findings] == ["TM201"]
