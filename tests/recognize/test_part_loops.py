"""Loops over parts of the devices convert where another loop goes over all of them, and keep their place."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from towermigrate.emit import Emission, emit_tree
from towermigrate.recognize import recognize_tree

FIXTURE = Path(__file__).parents[2] / "fixtures/critic_halves/before/spirals.py"
HEAD = """\
import tensorflow as tf

devices = FLAGS.devices


def cost(x, name):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        return tf.reduce_mean(tf.matmul(x, tf.get_variable('w', [3, 1])))


"""


def towers(over: str, target: str = "i, d", device: str = "d") -> str:
    return f"""\
for {target} in {over}:
    with tf.device({device}):
        costs.append(cost(x, 'critic'))
"""


ALL = towers("enumerate(devices)")
HALF = "part = devices[len(devices) // 2:]\n"


def trained(*lines: str, head: str = HEAD) -> str:
    inside = "x = tf.placeholder(tf.float32, [4, 3])\ncosts = []\n" + "".join(lines)
    inside += "return tf.train.AdamOptimizer().minimize(tf.add_n(costs))\n"
    return f"{head}def train(n, k):\n{textwrap.indent(inside, '    ')}"


def emitted(text: str, style: str = "auto") -> Emission:
    sources = {"m.py": text}
    return emit_tree(sources, recognize_tree(sources), style=style)


def headers(text: str) -> list[str]:
    emission = emitted(text)
    assert [each.style for each in emission.results] == ["session"] * len(emission.results)
    lines = [each.strip() for each in emission.sources["m.py"].splitlines()]
    return [each.removeprefix("for ") for each in lines if each.startswith("for ")]


FIRST = ", first=len(devices) // 2"
KEPT = [
    pytest.param(trained(ALL, HALF, towers("enumerate(part)")), f"i, d in tm.towers(enumerate(part){FIRST}):", id="a name"),
    pytest.param(trained(ALL, HALF, towers("part", "d")), f"d in tm.towers(part{FIRST}):", id="without numbers"),
    pytest.param(trained(ALL, HALF, towers("(part)", "d")), f"d in tm.towers(part{FIRST}):", id="in brackets"),
    pytest.param(trained(ALL, towers("enumerate(devices[2:])")), "i, d in tm.towers(enumerate(devices[2:]), first=2):", id="a slice"),
    pytest.param(trained(ALL, towers("devices[-k:]", "d")), None, id="from the end"),
    pytest.param(trained(ALL, towers("devices[n:n + k]", "d")), "d in tm.towers(devices[n:n + k], first=n):", id="from the middle"),
    pytest.param(trained(ALL, "part = devices[:k]\n", towers("part", "d")), "d in tm.towers(part):", id="from the first"),
    pytest.param(trained(ALL, "part = devices[int(len(devices) / 2):]\n", towers("part", "d")), "d in tm.towers(part, first=int(len(devices) / 2)):", id="a number made whole"),
    pytest.param(trained(ALL, towers("range(n, k)", "i", "'/gpu:%d' % i"), towers("range(k)", "i", "'/gpu:%d' % i")), "i in tm.towers(range(n, k), first=n):", id="a range"),
    pytest.param(trained(ALL, HALF, "rest = devices[:len(devices) // 2]\n", towers("rest", "d"), towers("part", "d")), f"d in tm.towers(part{FIRST}):", id="both halves"),
    pytest.param(trained(ALL, towers("part", "d"), head=HEAD + "part = devices[2:]\n\n\n"), "d in tm.towers(part, first=2):", id="made at module level"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "header"), KEPT)
def test_a_part_keeps_its_place(text: str, header: str | None) -> None:
    found = headers(text)
    assert len(found) > 1
    if header is None:  # what the text does not say is left to the order of the towers
        assert not any("first=" in each for each in found)
    else:
        assert header in found


def test_the_whole_says_how_many_towers_there_are() -> None:
    emission = emitted(FIXTURE.read_text("utf-8"))
    assert "\ntm.mirror_variables(len(DEVICES))\n" in emission.sources["m.py"]
    said = [each.rule for result in emission.results for each in result.findings]
    assert said == ["TM310"] * 4


REFUSED = [
    pytest.param(trained(HALF, towers("part", "d")), id="no loop over all"),
    pytest.param(trained(HALF, "rest = devices[:len(devices) // 2]\n", towers("rest", "d"), towers("part", "d")), id="two parts only"),
    pytest.param(trained(towers("enumerate(others)"), HALF, towers("part", "d")), id="all of others"),
    pytest.param(trained(ALL, "part = devices[k:]\nk = None\n", towers("part", "d")), id="another number by then"),
    pytest.param(trained(ALL, "part = devices[next(n):]\n", towers("part", "d")), id="a number of its own each time"),
    pytest.param(trained(ALL, towers("part", "d"), "first = 0\n", head=HEAD + "first = 2\npart = devices[first:]\n\n\n"), id="a name of the function by then"),
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_plain_part_is_refused(text: str) -> None:
    emission = emitted(text)
    assert emission.sources == {}
    rules = {each.rule for result in emission.results for each in result.findings}
    assert rules == {"TM251"}
