"""Loops of one graph whose towers are on different devices are refused; all others are not."""

from __future__ import annotations

import textwrap

import pytest

from towermigrate.emit import Emission, emit_tree
from towermigrate.recognize import recognize_tree

HEAD = """\
import tensorflow as tf


def cost(x, name):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        return tf.reduce_mean(tf.matmul(x, tf.get_variable('w', [3, 1])))


"""


def towers(over: str, device: str = "'/gpu:%d' % i", name: str = "a", target: str = "i") -> str:
    return f"""\
for {target} in {over}:
    with tf.device({device}):
        {name}.append(opt.compute_gradients(cost(x, '{name}')))
"""


def trained(*loops: str, before: str = "") -> str:
    inside = f"""\
opt = tf.train.GradientDescentOptimizer(0.1)
x = tf.placeholder(tf.float32, [4, 3])
a, b = [], []
{before}{"".join(loops)}return opt.apply_gradients(a[0] + b[0])
"""
    return f"{HEAD}def train(n, k, devices):\n{textwrap.indent(inside, '    ')}"


def emitted(text: str) -> Emission:
    sources = {"m.py": text}
    return emit_tree(sources, recognize_tree(sources), style="session")


OTHERS = [
    pytest.param(trained(towers("[0,]"), towers("[1,]", name="b")), "`/gpu:0`, those of the loop at line 16 on `/gpu:1`", id="lists of one"),
    pytest.param(trained(towers("[0, 1]"), towers("(2, 3)", name="b")), "`/gpu:0`, `/gpu:1`, those of the loop at line 16 on `/gpu:2`, `/gpu:3`", id="pairs"),
    pytest.param(trained(towers("range(2)"), towers("range(2, 4)", name="b")), "`/gpu:2`, `/gpu:3`", id="ranges"),
    pytest.param(trained(towers("range(n)"), towers("range(n, 2 * n)", name="b")), "on other devices than", id="ranges of a number"),
    pytest.param(trained(towers("range(n // 2)"), towers("range(n // 2, n)", name="b")), "on other devices than", id="halves of a number"),
    pytest.param(trained(towers("range(2)"), towers("range(2)", "'/gpu:%d' % (i + 2)", "b")), "`/gpu:2`, `/gpu:3`", id="an offset in the device"),
    pytest.param(trained(towers("range(2)"), towers("range(2)", "'/gpu:{}'.format(i + 2)", "b")), "`/gpu:2`, `/gpu:3`", id="an offset in another form"),
    pytest.param(trained(towers("['/gpu:0']", "d", target="d"), towers("['/gpu:1']", "d", "b", "d")), "`/gpu:1`", id="names of devices"),
    pytest.param(trained(towers("first"), towers("second", name="b"), before="first = [0]\nsecond = [1]\n"), "`/gpu:1`", id="lists with names"),
    pytest.param(trained(towers("[0, 1]"), towers("[1]", name="b")), "`/gpu:0`, `/gpu:1`", id="one of the other's, which is its second"),
    pytest.param(trained(towers("enumerate([0, 1])", "'/gpu:%d' % k", target="i, k"), towers("enumerate([2, 3])", "'/gpu:%d' % k", "b", "i, k")), "`/gpu:2`", id="with their numbers"),
    pytest.param(trained("with tf.variable_scope('s'):\n" + textwrap.indent(towers("[0]") + towers("[1]", name="b"), "    ")), "`/gpu:1`", id="in a scope"),
    pytest.param(trained("if n:\n" + textwrap.indent(towers("[0]"), "    "), towers("[1]", name="b")), "`/gpu:1`", id="one of them in a branch"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), OTHERS)
def test_towers_on_devices_of_their_own_are_refused(text: str, said: str) -> None:
    emission = emitted(text)
    assert [each.status for each in emission.results] == ["refused", "refused"]
    assert emission.sources == {}
    for result in emission.results:
        assert [each.rule for each in result.findings] == ["TM251"]
    assert said in emission.results[0].findings[0].message


IN_FUNCTIONS = (
    HEAD
    + "def first(opt, x, a):\n"
    + textwrap.indent(towers("[0]"), "    ")
    + "\n\ndef second(opt, x, b):\n"
    + textwrap.indent(towers("[1]", name="b"), "    ")
    + "\n\ndef train():\n    opt = tf.train.AdamOptimizer()\n    a, b = [], []\n"
)


def test_loops_in_functions_that_one_function_calls_are_refused_too() -> None:
    text = IN_FUNCTIONS + "    first(opt, 1, a)\n    second(opt, 1, b)\n"
    assert [each.status for each in emitted(text).results] == ["refused"] * 2


def branches(first: str, second: str) -> str:
    return f"if n:\n{textwrap.indent(first, '    ')}else:\n{textwrap.indent(second, '    ')}"


def graph(loop: str) -> str:
    return "with tf.Graph().as_default():\n" + textwrap.indent(loop, "    ")


STAY = [
    pytest.param(trained(towers("[0, 1]"), towers("[0, 1]", name="b")), ["2"], id="the same devices"),
    pytest.param(trained(towers("range(n)"), towers("range(n)", name="b")), ["n"], id="the same number"),
    pytest.param(trained(towers("[0, 1]"), towers("[0]", name="b")), ["2"], id="only the first"),
    pytest.param(trained(towers("[0]"), towers("[0, 1]", name="b")), ["2"], id="the first, then all"),
    pytest.param(trained(towers("range(1)"), towers("range(n)", name="b")), ["n"], id="one, then a number"),
    pytest.param(trained(towers("range(3)"), towers("range(n)"), towers("range(k)", name="b")), ["n, k, 3"], id="several numbers"),
    pytest.param(trained(towers("[0, 1]"), towers("[1, 0]", name="b")), ["2"], id="the other way round"),
    pytest.param(trained(branches(towers("[0]"), towers("[1]", name="b"))), ["1"], id="in branches of which one is taken"),
    pytest.param(trained("if n:\n" + textwrap.indent(towers("[0]"), "    ") + "    return a\n", towers("[1]", name="b")), ["1"], id="a branch that returns"),
    pytest.param(trained(graph(towers("[0]")), graph(towers("[1]", name="b"))), ["1", "1"], id="each in a graph of its own"),
    pytest.param(trained(towers("range(n)"), towers("range(n)", "'/gpu:%d' % (i + FLAGS.first)", "b")), ["n"], id="an offset that may be none"),
    pytest.param(trained(towers("devices", "d", target="d"), towers("others()", "d", "b", "d")), [""], id="what the text does not say"),
    pytest.param(IN_FUNCTIONS + "    if a:\n        first(opt, 1, a)\n    else:\n        second(opt, 1, b)\n", ["1"], id="functions of which one is called"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "counts"), STAY)
def test_others_stay_in_session_style(text: str, counts: list[str]) -> None:
    emission = emitted(text)
    assert [each.style for each in emission.results] == ["session"] * len(emission.results)
    assert len(emission.results) > 1
    lines = [each.strip() for each in emission.sources["m.py"].splitlines()]
    found = [each for each in lines if each.startswith("tm.mirror_variables(")]
    assert found == [f"tm.mirror_variables({count})" for count in counts]
