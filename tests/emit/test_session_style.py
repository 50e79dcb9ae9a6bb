"""Session style in the text: what is written at the loop, at its devices, where the graph begins, and at the imports.

Each row of a table shows a program as it becomes; `before` takes out what the rewrite puts in, so that nothing else
can change unnoticed.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.recognize.programs import program
from towermigrate.emit import Emission, emit_tree, tower_count
from towermigrate.recognize import recognize_tree
from towermigrate.rewrite import rewrite_tree

REPOSITORY = Path(__file__).parent.parent.parent
SWITCH = "\ntf.compat.v1.disable_v2_behavior()\n"


def emitted(sources: dict[str, str]) -> Emission:
    emission = emit_tree(sources, recognize_tree(sources), style="session")
    for result in emission.results:
        assert result.style == "session", [finding.message for finding in result.findings]
    return emission


def converted(text: str) -> str:
    """One file in session style, before its names change; a second rewrite of the whole must change nothing."""
    new = emitted({"m.py": text}).sources["m.py"]
    report = rewrite_tree({"m.py": text}, style="session")
    again = rewrite_tree(report.texts, style="session")
    assert (dict(again.texts), again.programs) == ({}, [])
    return new


def rules(text: str) -> list[str]:
    (result,) = emitted({"m.py": text}).results
    return [finding.rule for finding in result.findings]


# The loop

TRAIN = """\
import tensorflow as tf


def train(n, devices, parts):
    opt = tf.train.GradientDescentOptimizer(0.1)
    tower_grads = []
    {header}
{body}
    return opt.apply_gradients(average_gradients(tower_grads))
"""
GRADS = "tower_grads.append(opt.compute_gradients(loss(i)))"


def train(header: str, body: str = GRADS) -> str:
    return TRAIN.format(header=header, body=textwrap.indent(body, " " * 8))


def inside(text: str) -> str:
    """What stands between the fixed lines of `train`."""
    start = text.index("    tower_grads = []\n") + len("    tower_grads = []\n")
    return text[start : text.index("    return opt.apply")]


HEADERS = [
    pytest.param("for i in range(n):", "for i in tm.towers(range(n)):", id="range"),
    pytest.param("for i, d in enumerate(devices):", "for i, d in tm.towers(enumerate(devices)):", id="enumerate"),
    pytest.param("for i, (d, x) in enumerate(zip(devices, parts)):", "for i, (d, x) in tm.towers(enumerate(zip(devices, parts))):", id="zip"),
    pytest.param("for i in [0, 1]:", "for i in tm.towers([0, 1]):", id="a list"),
    pytest.param("for i in (0, 1):", "for i in tm.towers((0, 1)):", id="a tuple"),
    pytest.param("for i in 0, 1:", "for i in tm.towers((0, 1)):", id="a tuple without brackets"),
    pytest.param("for i in 0,:", "for i in tm.towers((0,)):", id="a tuple of one"),
    pytest.param("for i in (0), (1):", "for i in tm.towers(((0), (1))):", id="a tuple whose elements have brackets"),
    pytest.param("for i in ((0, 1)):", "for i in tm.towers((0, 1)):", id="a tuple in two pairs of brackets"),
    pytest.param("for i in *parts, 9:", "for i in tm.towers((*parts, 9)):", id="a tuple that is spread"),
    pytest.param("for i in (range(n)):", "for i in tm.towers(range(n)):", id="brackets that only group"),
    pytest.param("for i in (x for x in parts):", "for i in tm.towers(x for x in parts):", id="a generator"),
    pytest.param("for i in range(n) if n else []:", "for i in tm.towers(range(n) if n else []):", id="a choice"),
    pytest.param("for i in(0, 1):", "for i in tm.towers((0, 1)):", id="no blank before a bracket"),
    pytest.param("for i in[0, 1]:", "for i in tm.towers([0, 1]):", id="no blank before a list"),
    pytest.param("for i in  range(n) :  # all", "for i in  tm.towers(range(n)) :  # all", id="blanks and a comment"),
    pytest.param("for i in (\n            range(n)  # (all)\n    ):", "for i in tm.towers(\n            range(n)  # (all)\n    ):", id="over lines"),
    pytest.param("for i in (  # (these\n            0, 1):", "for i in tm.towers((  # (these\n            0, 1)):", id="a bracket in a comment"),
    pytest.param("for i in \\\n            range(n):", "for i in \\\n            tm.towers(range(n)):", id="a continued line"),
    pytest.param("for i in (')', '(('):", "for i in tm.towers((')', '((')):", id="brackets in strings"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "becomes"), HEADERS)
def test_the_loop_goes_over_towers(header: str, becomes: str) -> None:
    assert inside(converted(train(header))) == inside(train(becomes))


# Its devices

DEVICE = "with tf.device('/gpu:%d' % i):"
BODIES = [
    pytest.param(f"{DEVICE}\n    {GRADS}", GRADS, id="one statement"),
    pytest.param(
        f"{DEVICE}\n    with tf.name_scope('t%d' % i) as scope:\n        # A comment.\n        x = 1\n\n        {GRADS}\n    # of the device\n\n    # too\n# of the loop",
        f"with tf.name_scope('t%d' % i) as scope:\n    # A comment.\n    x = 1\n\n    {GRADS}\n# of the device\n\n# too\n# of the loop",
        id="a block in it, and comments at its end",
    ),
    pytest.param(f"{DEVICE}\n    # one\n\n    # two\n    {GRADS}", f"# one\n\n# two\n{GRADS}", id="comments at its beginning"),
    pytest.param(f"{DEVICE}\n# low\n    x = 1\n  # between\n    {GRADS}", f"# low\nx = 1\n# between\n{GRADS}", id="comments out of line"),
    pytest.param(f"{DEVICE}  # each on its own\n    {GRADS}", f"# each on its own\n{GRADS}", id="a comment at its header"),
    pytest.param(f"{DEVICE} {GRADS}", GRADS, id="a suite on its line"),
    pytest.param(f"{DEVICE} x = 1; {GRADS}", f"x = 1; {GRADS}", id="two statements on its line"),
    pytest.param(f"if i >= 0:\n    {DEVICE} {GRADS}", f"if i >= 0:\n    {GRADS}", id="a suite on its line, in a block"),
    pytest.param(f"with tf.device('/gpu:%d' %\n               i):\n    {GRADS}", GRADS, id="a header over lines"),
    pytest.param(f"with (tf.device('/gpu:%d' % i)):\n    {GRADS}", GRADS, id="brackets around it"),
    pytest.param(f"with tf.device('/gpu:%d' % i), tf.name_scope('t'):\n    {GRADS}", f"with tf.name_scope('t'):\n    {GRADS}", id="the first of two"),
    pytest.param(f"with tf.name_scope('t') as s, tf.device('/gpu:%d' % i):\n    {GRADS}", f"with tf.name_scope('t') as s:\n    {GRADS}", id="the last of two"),
    pytest.param(f"with a(), tf.device('/gpu:%d' % i), b() as s:\n    {GRADS}", f"with a(), b() as s:\n    {GRADS}", id="the middle of three"),
    pytest.param(f"with tf.device('/gpu:%d' % i), tf.device('/gpu:%s' % i):\n    {GRADS}", GRADS, id="two of two"),
    pytest.param(f"with tf.device(devices[i]):\n    {GRADS}", f"with tm.device(devices[i]):\n    {GRADS}", id="one of a list that may be too short"),
    pytest.param(f"with tf.device('/gpu:%d' % i), a(), tf.device('/gpu:%s' % i), b():\n    {GRADS}", f"with a(), b():\n    {GRADS}", id="two of four"),
    pytest.param(f"with tf.device('/gpu:%d' % i), \\\n        tf.name_scope('t'):\n    {GRADS}", f"with tf.name_scope('t'):\n    {GRADS}", id="items on continued lines"),
    pytest.param(f"with (\n    a(),\n    tf.device('/gpu:%d' % i),\n):\n    {GRADS}", f"with (\n    a(),\n):\n    {GRADS}", id="items in brackets"),
    pytest.param(f"with (\n    tf.device('/gpu:%d' % i),  # this\n    a(),\n):\n    {GRADS}", f"with (\n    tm.device('/gpu:%d' % i),  # this\n    a(),\n):\n    {GRADS}", id="a comment at an item is not lost"),
    pytest.param(f"{DEVICE}\n    with tf.device(tf.train.replica_device_setter(i)):\n        {GRADS}", GRADS, id="one in the other"),
    pytest.param(f"{DEVICE}\n    with tf.device('/gpu:0'):\n        {GRADS}", f"with tm.device('/gpu:0'):\n    {GRADS}", id="another device in it"),
    pytest.param(f"{DEVICE}\n    with tf.device('/cpu:0'):\n        w = tf.get_variable('w', [])\n    {GRADS}", f"with tf.device('/cpu:0'):\n    w = tf.get_variable('w', [])\n{GRADS}", id="the CPU in it"),
    pytest.param(f"{DEVICE}\n    with tf.device(None):\n        {GRADS}", f"with tf.device(None):\n    {GRADS}", id="no device in it"),
    pytest.param(f"with tf.device('/gpu:%d' % i) as d:\n    {GRADS}", f"with tm.device('/gpu:%d' % i) as d:\n    {GRADS}", id="one that is named"),
    pytest.param(f"d = '/gpu:%d' % i\nwith tf.device(d):\n    {GRADS}", f"d = '/gpu:%d' % i\n{GRADS}", id="by a name"),
    pytest.param(f"with tf.device(f'/gpu:{{i}}' if i else '/cpu:0'):\n    {GRADS}", GRADS, id="a choice"),
    pytest.param(f"with tf.device(assign_to('/gpu:%d' % i, '/cpu:0')):\n    {GRADS}", GRADS, id="a device function"),
    pytest.param(
        f"def named(k):\n    print(k)\n    return '/gpu:%d' % k\n\nwith tf.device(named(i)):\n    {GRADS}",
        f"def named(k):\n    print(k)\n    return '/gpu:%d' % k\n\nwith tm.device(named(i)):\n    {GRADS}",
        id="a function that says which",
    ),
    pytest.param(f"if i:\n    {DEVICE}\n        {GRADS}\nelse:\n    with tf.device('/gpu:7'):\n        {GRADS}", f"if i:\n    {GRADS}\nelse:\n    with tm.device('/gpu:7'):\n        {GRADS}", id="in branches"),
    pytest.param(
        f"def gradients():\n    {DEVICE}\n        return opt.compute_gradients(loss(i))\n\ntower_grads.append(gradients())",
        "def gradients():\n    return opt.compute_gradients(loss(i))\n\ntower_grads.append(gradients())",
        id="in a function of the loop",
    ),
    pytest.param(
        f"{DEVICE}\n    note = '''a\n            b\n  c''' + ('d'\n      'e'\n)\n    {GRADS}",
        f"note = '''a\n            b\n  c''' + ('d'\n  'e'\n)\n{GRADS}",
        id="lines of a string stay, other lines move",
    ),
    pytest.param(f"{DEVICE}\n    x = 1 + \\\n        2\n    {GRADS}", f"x = 1 + \\\n    2\n{GRADS}", id="continued lines"),
    pytest.param(f"{DEVICE}\n\n  # deep\n  if i:\n        x = 2\n  {GRADS}\n\n", f"\n# deep\nif i:\n      x = 2\n{GRADS}\n\n", id="odd indentations"),
    pytest.param(GRADS, GRADS, id="no device"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "becomes"), BODIES)
def test_the_devices_of_the_towers_go(body: str, becomes: str) -> None:
    # Lines inside of a string have no indentation that could be added here.
    before, after = (
        train("for i in range(n):", body),
        train("for i in tm.towers(range(n)):", becomes),
    )
    for text in ("            b\n", "  c'''"):
        before, after = (each.replace(" " * 8 + text, text) for each in (before, after))
    assert inside(converted(before)) == inside(after)


BLOCK = f"{DEVICE}\n    with tf.name_scope('t'):\n        # A comment.\n        {GRADS}\n    # last"
LAYOUTS = [
    pytest.param("    ", "\t", id="tabs"),
    pytest.param("    ", "  ", id="two blanks"),
    pytest.param("    ", "   ", id="three blanks"),
    pytest.param("\n", "\r\n", id="CRLF"),
    pytest.param("\n", "\r", id="CR"),
    pytest.param("\n\n\ndef", "\n\n\x0c\ndef", id="a form feed"),
    pytest.param("    tower_grads = []\n", "    tower_grads = []  # \xe4\U0001f600\n", id="characters of several bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), LAYOUTS)
def test_the_layout_of_the_file_is_kept(old: str, new: str) -> None:
    text = train("for i in range(n):", BLOCK)
    assert old in text
    assert converted(text.replace(old, new)) == converted(text).replace(old, new)


def test_tabs_and_blanks_that_cannot_be_compared_are_left_alone() -> None:
    body = f"{DEVICE}\n\t{GRADS}"
    text = train("for i in range(n):", body).replace(" " * 8 + "\t", " " * 8 + "\t")
    assert inside(converted(text)) == inside(train("for i in tm.towers(range(n)):", GRADS))


def test_a_file_without_a_last_line_end() -> None:
    text = train("for i in range(n):", BLOCK).rstrip("\n")
    assert converted(text) == converted(text + "\n").rstrip("\n")


# Loops beside the towers

HALVES = "for k in range(len(parts)):\n    with tf.device('/gpu:%d' % k):\n        halves.append(tf.cast(parts[k], tf.float16))\n"
BESIDE = [
    pytest.param(HALVES, "`tf.device('/gpu:%d' % k)` stays in what is taken for no towers: line 14", id="a loop of its own"),
    pytest.param(HALVES + HALVES, "lines 14, 17", id="two"),
    pytest.param("for d in devices:\n    name = '/' + d\n    with tf.device(name):\n        halves.append(tf.cast(1, tf.float16))\n", "`tf.device(name)` stays in what is taken for no towers: line 14", id="by a name"),
    pytest.param(HALVES.replace("'/gpu:%d' % k", "'/cpu:0'"), None, id="on one CPU"),
    pytest.param(HALVES.replace("'/gpu:%d' % k", "'/gpu:0'"), None, id="on one device"),
    pytest.param("for k in range(2):\n    halves.append(k)\n", None, id="without a device"),
]  # fmt: skip


@pytest.mark.parametrize(("beside", "said"), BESIDE)
def test_loops_that_keep_devices_are_named(beside: str, said: str | None) -> None:
    text = train("for i in range(n):") + "\n\ndef halved(parts, devices):\n    halves = []\n"
    text += textwrap.indent(beside, "    ") + "    return halves\n"
    (result,) = emitted({"m.py": text}).results
    found = [each.message for each in result.findings if each.rule == "TM317"]
    assert len(found) == (said is not None) and (said or "") in "".join(found)
    assert converted(text).endswith(text[text.index("    halves = []") :])


def test_loops_in_functions_that_towers_call_are_no_loops_beside_them() -> None:
    text = train("for i in range(n):", GRADS.replace("loss(i)", "loss(halved(i))"))
    text += "\n\ndef halved(parts):\n    halves = []\n" + textwrap.indent(HALVES, "    ")
    assert "TM317" not in rules(text) and "tm.device('/gpu:%d' % k)" in converted(text)


# Functions that the towers call

MODEL = """\
import tensorflow as tf


def loss(i):
    with tf.device('/gpu:0'), tf.name_scope('a'):
        x = helper(i)
    with tf.device('/cpu:0'):
        w = tf.get_variable('w', [])
    return x * w


def helper(i):
    return tf.device(choose(i))(tf.zeros)([])


def no_tower():
    with tf.device('/gpu:0'):
        return tf.zeros([])
"""


def test_functions_that_towers_call_hear_no_device_there() -> None:
    sources = {
        "m.py": train("for i in range(n):").replace("\n\n\n", "\nfrom model import loss\n\n\n"),
        "model.py": MODEL,
    }
    after = MODEL.replace("as tf\n", "as tf\nimport towermigrate.helpers as tm\n", 1)
    after = after.replace("with tf.device('/gpu:0'), tf", "with tm.device('/gpu:0'), tf")
    after = after.replace("tf.device(choose", "tm.device(choose")
    assert emitted(sources).sources["model.py"] == after


def test_a_function_in_a_file_that_must_not_change_is_left_alone() -> None:
    sources = {
        "m.py": train("for i in range(n):").replace("\n\n\n", "\nfrom model import loss\n\n\n"),
        "model.py": MODEL,
    }
    emission = emit_tree(sources, recognize_tree(sources), ["model.py"], style="session")
    assert emission.sources.keys() == {"m.py"}
    assert emission.results[0].style == "session"


# Where the graph begins

LOOP = """\
opt = tf.train.GradientDescentOptimizer(0.1)
grads = []
for i in tm.towers(range(n)):
    grads.append(opt.compute_gradients(loss(i)))
op = opt.apply_gradients(average_gradients(grads))
"""
IMPORTS = "import tensorflow as tf\nimport towermigrate.helpers as tm\n\n\n"
BUILD = "def build(n):\n" + textwrap.indent(LOOP, "    ") + "\n\n"


def loop(depth: int = 1, count: str = "n") -> str:
    return textwrap.indent(LOOP.replace("range(n)", f"range({count})"), "    " * depth)


PLACES = [
    pytest.param("def train(n):\n    data = read()\n    with tf.Graph().as_default():\n        tm.mirror_variables(n)\n        step = tf.Variable(0)\n" + loop(2), id="in a graph"),
    pytest.param("def train(n):\n    with tf.Graph().as_default(), tf.device('/cpu:0'):\n        tm.mirror_variables(n)\n        # The step.\n        step = tf.Variable(0)\n" + loop(2), id="in a graph, above a comment"),
    pytest.param("def train(n):\n    with tf.Graph().as_default():\n        with tf.Graph().as_default() as g:\n            tm.mirror_variables(n)\n            step = tf.Variable(0)\n" + loop(3), id="in the inner one of two graphs"),
    pytest.param("def train(n):\n    g = tf.Graph()\n    with tf.Session(graph=g) as sess:\n        tm.mirror_variables(n)\n" + loop(2), id="in the session of a graph"),
    pytest.param("def train(n):\n    tm.mirror_variables(n)\n    with tf.Session() as sess:\n" + loop(2), id="before the session of the graph at hand"),
    pytest.param("def train(n):\n    tf.reset_default_graph()\n    tm.mirror_variables(n)\n    step = tf.Variable(0)\n" + loop(), id="behind a reset"),
    pytest.param("def train(n):\n    tf.reset_default_graph()\n    warm_up()\n    tf.reset_default_graph()\n    tm.mirror_variables(n)\n    step = tf.Variable(0)\n" + loop(), id="behind the last reset"),
    pytest.param("def train(n):\n    if n > 1:\n        tf.reset_default_graph()\n    tm.mirror_variables(n)\n    step = tf.Variable(0)\n" + loop(), id="behind a reset that may be"),
    pytest.param("def fresh():\n    tf.reset_default_graph()\n\n\ndef train(n):\n    fresh()\n    tm.mirror_variables(n)\n    step = tf.Variable(0)\n" + loop(), id="behind a reset in a function"),
    pytest.param("def train(n):\n    tm.mirror_variables(n)\n    try:\n        step = tf.Variable(0)\n" + loop(2) + "    except ValueError:\n        pass\n", id="in front of a try"),
    pytest.param("def train(n, opt, grads):\n    tm.mirror_variables(n)\n    # Over all.\n    for i in tm.towers(range(n)):\n        grads.append(opt.compute_gradients(loss(i)))\n", id="in front of the loop and its comment"),
    pytest.param("def train(n):\n    '''Train.'''\n    import os\n    name = os.environ['X']\n    tm.mirror_variables(n)\n    step = tf.Variable(0)\n" + loop(), id="behind what makes nothing"),
    pytest.param("def train(n):\n    tm.mirror_variables(n)\n    # Shared.\n    @wrap\n    def inner():\n        return tf.Variable(0)\n\n    inner()\n" + loop(), id="in front of a decorator"),
    pytest.param("def train(n):\n    text = '''\n    # no comment'''\n    tm.mirror_variables(n)\n    step = tf.Variable(0)\n" + loop(), id="behind a string that looks like a comment"),
    pytest.param(BUILD + "def main():\n    tm.mirror_variables(2)\n    step = tf.Variable(0)\n    build(2)\n", id="in the function that calls"),
    pytest.param(BUILD + "def main():\n    tm.mirror_variables(2)\n    args = parse()\n    build(n=2)\n\n\nif __name__ == '__main__':\n    main()\n", id="in main"),
    pytest.param("def build(n=4):\n" + loop() + "\n\ndef main():\n    tm.mirror_variables(4)\n    step = tf.Variable(0)\n    build()\n", id="the number is a default"),
    pytest.param(BUILD + "def main():\n    tm.mirror_variables()\n    step = tf.Variable(0)\n    n = 3\n    build(n)\n", id="the number is made later"),
    pytest.param(BUILD + "def main():\n    tm.mirror_variables()\n    step = tf.Variable(0)\n    build(*numbers)\n", id="the number is not seen"),
    pytest.param(BUILD + "def one():\n    tm.mirror_variables(2)\n    step = tf.Variable(0)\n    build(2)\n\n\ndef two():\n    with tf.Graph().as_default():\n        tm.mirror_variables(4)\n        build(4)\n", id="at each of two calls"),
    pytest.param(BUILD + "def main():\n    for run in range(3):\n        tf.reset_default_graph()\n        tm.mirror_variables(2)\n        build(2)\n", id="in a loop over runs"),
    pytest.param(BUILD + "def main():\n    with tf.Graph().as_default(): tm.mirror_variables(2); build(2)\n", id="on the line of a with"),
    pytest.param(BUILD + "def main(): tm.mirror_variables(2); build(2)\n", id="on the line of a function"),
    pytest.param("def main(n):\n    tm.mirror_variables(n)\n    step = tf.Variable(0)\n\n    def build():\n" + loop(2) + "\n    build()\n", id="around a function in the function"),
    pytest.param("def main(n):\n    tm.mirror_variables()\n    step = tf.Variable(0)\n\n    def build():\n        n = count()\n" + loop(2) + "\n    build()\n", id="the function in the function has a number of its own"),
    pytest.param(BUILD + "if __name__ == '__main__':\n    number = 2\n    tm.mirror_variables(number)\n    step = tf.Variable(0)\n    build(number)\n", id="under the main guard"),
    pytest.param("if __name__ == '__main__':\n    n = 2\n    tm.mirror_variables(n)\n    step = tf.Variable(0)\n" + loop(), id="all under the main guard"),
    pytest.param("n = 2\ntm.mirror_variables(n)\nstep = tf.Variable(0)\n" + loop(0), id="at module level"),
    pytest.param("def f():\n    return 1\n\n\nn = 2\n\ntm.mirror_variables(n)\n# The step.\nstep = tf.Variable(0)\n" + loop(0), id="at module level, behind functions, above a comment"),
    pytest.param("FLAGS = tf.app.flags.FLAGS\n\n\ndef train():\n    with tf.Graph().as_default():\n        tm.mirror_variables(FLAGS.n)\n" + loop(2, "FLAGS.n"), id="a flag"),
    pytest.param("n = 2\n\n\ndef train():\n    with tf.Graph().as_default():\n        tm.mirror_variables(n)\n" + loop(2, "0, n"), id="a number from zero"),
    pytest.param("def train(n):\n    with tf.Graph().as_default():\n        tm.mirror_variables(max(n, 1))\n" + loop(2, "max(n, 1)"), id="one at least"),
    pytest.param("from pylab import *\n\n\ndef train(n):\n    with tf.Graph().as_default():\n        tm.mirror_variables()\n" + loop(2, "max(n, 1)"), id="one at least, by a function that may be another's"),
    pytest.param("def train(n, max):\n    with tf.Graph().as_default():\n        tm.mirror_variables()\n" + loop(2, "max(n, 1)"), id="one at least, by a function that is given"),
    pytest.param("def train(n, found):\n    with tf.Graph().as_default():\n        tm.mirror_variables()\n" + loop(2, "max(len(found), 1)"), id="one at least of what may have no length"),
    pytest.param("def train(n):\n    with tf.Graph().as_default():\n        tm.mirror_variables(n)\n" + loop(2, "0, n, 1"), id="a number from zero, in ones"),
    pytest.param("def train(n):\n    with tf.Graph().as_default():\n        tm.mirror_variables(n)\n" + loop(2, "0, n").replace("range", "xrange"), id="a number from zero, of Python 2"),
    pytest.param("def train(n):\n    with tf.Graph().as_default():\n        tm.mirror_variables()\n" + loop(2, "1, n"), id="a number from one"),
    pytest.param("def train(n):\n    with tf.Graph().as_default():\n        tm.mirror_variables()\n" + loop(2, "0, n, 2"), id="a number in twos"),
    pytest.param("class Trainer:\n    def build(self):\n        '''Build.'''\n        tm.mirror_variables(self.n)\n        step = tf.Variable(0)\n" + loop(2, "self.n"), id="a method"),
    pytest.param("class Trainer:\n    def __init__(self, n):\n        self.n = n\n        self.graph = tf.Graph()\n        with self.graph.as_default():\n            tm.mirror_variables(self.n)\n            self.build()\n\n    def build(self):\n" + loop(2, "self.n"), id="a method that the constructor calls in a graph"),
    pytest.param("class Trainer:\n    def __init__(self, n):\n        self.n = n\n        tm.mirror_variables(self.n)\n        step = tf.Variable(0)\n" + loop(2, "self.n"), id="the constructor"),
    pytest.param("class Trainer:\n    def __init__(self, n):\n        tm.mirror_variables()\n        self.step = tf.Variable(0)\n        self.n = n\n" + loop(2, "self.n"), id="the constructor makes the number later"),
    pytest.param("class Trainer:\n    def build(self):\n" + loop(2, "self.n") + "\n\ndef main():\n    tm.mirror_variables()\n    trainer = Trainer()\n    trainer.build()\n", id="the number belongs to an object"),
]  # fmt: skip


def before(text: str) -> str:
    """A program as it was, from what it becomes."""
    text = re.sub(r" *tm\.mirror_variables\((?:[^()\n]|\([^()\n]*\))*\)\n", "", text)
    text = re.sub(r"tm\.mirror_variables\([^()\n]*\); ", "", text)
    text = re.sub(
        r"tm\.towers\((x?range\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\))\)", r"\1", text
    )
    return text.replace("import towermigrate.helpers as tm\n", "")


@pytest.mark.parametrize("after", PLACES)
def test_variables_are_mirrored_where_the_graph_begins(after: str) -> None:
    text = IMPORTS + after
    assert "tm." not in before(text).split("def average")[0]
    assert converted(before(text)).replace(SWITCH, "", 1) == text
    assert rules(before(text)) == ["TM310"] + ["TM311"] * ("mirror_variables()" in text)


def test_the_finding_names_the_places() -> None:
    text = before(IMPORTS + BUILD + "def main():\n    step = tf.Variable(0)\n    build(2)\n")
    (result,) = emitted({"m.py": text}).results
    (finding,) = result.findings
    lines = text.splitlines()
    assert lines[finding.line - 1].lstrip().startswith("for i in range")
    line = lines.index("    step = tf.Variable(0)") + 1
    assert f"from m.py:{line} on" in finding.message


def test_the_graph_begins_in_another_file() -> None:
    main = (
        "import tensorflow as tf\nimport towermigrate.helpers as tm\nfrom train import build\n\n\ndef main():\n"
        "    tm.mirror_variables(2)\n    step = tf.Variable(0)\n    build(2)\n\n\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    train = IMPORTS + BUILD
    sources = emitted({"main.py": before(main), "train.py": before(train)}).sources
    assert sources == {"main.py": main, "train.py": train}


def test_several_loops_of_a_file_are_opened_each_where_its_graph_begins() -> None:
    text = IMPORTS + (
        "def one(n):\n    tm.mirror_variables(n)\n" + loop() + loop() + "\n\n"
        "def two(k):\n    with tf.Graph().as_default():\n        tm.mirror_variables(k)\n"
        + loop(2, "k")
    )
    emission = emitted({"m.py": before(text)})
    assert len(emission.results) == 3
    assert emission.sources["m.py"].replace(SWITCH, "", 1) == text


def test_a_loop_in_a_function_that_another_loop_calls() -> None:
    inner = (
        "def model(x):\n    grads = []\n    for j in range(2):\n        with tf.device('/gpu:%d' % j):\n"
        "            grads.append(opt.compute_gradients(x))\n    return grads\n\n\n"
    )
    text = train("for i in range(n):", f"{DEVICE}\n    {GRADS.replace('loss(', 'model(')}")
    after = converted(text.replace("def train", inner + "def train"))
    assert after.count("in tm.towers(range(") == 2 and "tf.device" not in after


# The imports

USE = "def train(n):\n    tm.mirror_variables(n)\n" + loop()
TF = "import tensorflow as tf\n"
TM = "import towermigrate.helpers as tm\n"
INSIDE = USE.replace("    tm.m", "    import tensorflow as tf\n    tm.m")
NAMED = [
    pytest.param(TF + TM + USE, id="behind TensorFlow"),
    pytest.param("'''Doc.'''\nfrom __future__ import print_function\nimport os\n" + TF + TM + "import zlib\n" + USE, id="a docstring, the future, other imports"),
    pytest.param("import os; import tensorflow as tf; import sys\n" + TM + USE, id="three on a line"),
    pytest.param("import tensorflow as tf  # of old\n" + TM + USE, id="a comment behind it"),
    pytest.param("try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\n" + TM + USE, id="a try"),
    pytest.param("import tensorflow.contrib.slim as slim\nimport os\n" + TF + TM + USE, id="a part of TensorFlow first"),
    pytest.param("from tensorflow import *\n" + TM + "import os\n" + USE.replace("tf.train", "train"), id="a star"),
    pytest.param("'''Doc.'''\n" + TM + INSIDE, id="TensorFlow in a function, a docstring"),
    pytest.param("from __future__ import division\n" + TM + "import os\n" + INSIDE, id="TensorFlow in a function, the future"),
    pytest.param(TM + "import os\n" + INSIDE, id="TensorFlow in a function, another import"),
    pytest.param(TM + "\n\n" + INSIDE, id="TensorFlow in a function, nothing above"),
    pytest.param("#!/usr/bin/env python\n# coding: utf-8\n" + TM + "\n\n" + INSIDE, id="lines that must be first"),
    pytest.param("# Licence.\n\n" + TM + "\n\n# Trains.\n" + INSIDE, id="a licence and a comment"),
    pytest.param(TM + "import os\nif __name__ == '__main__':\n    import tensorflow as tf\n    n = 2\n    tm.mirror_variables(n)\n" + loop(), id="TensorFlow under the main guard, where the loop is"),
    pytest.param("import tensorflow.compat.v1 as tf\n" + TM + "tf.disable_v2_behavior()\n" + USE, id="the switch is there"),
]  # fmt: skip


def without_switch(text: str) -> str:
    """A text without the switch that a file gets where no script has it, and without the line above it."""
    return re.sub(r"\n\w+(\.compat\.v1)?\.disable_v2_behavior\(\)\n", "", text)


@pytest.mark.parametrize("after", NAMED)
def test_the_helpers_are_imported(after: str) -> None:
    text = before(after)
    text = text.removeprefix("\n\n").replace("utf-8\n\n\n", "utf-8\n").replace(".\n\n\n\n", ".\n\n")
    new = emitted({"m.py": text}).sources["m.py"]
    assert without_switch(new) == without_switch(after)


ALIASES = [
    pytest.param("", "import towermigrate.helpers as tm", "tm", id="the usual name"),
    pytest.param("import my as tm\n", "import towermigrate.helpers as towermigrate_helpers", "towermigrate_helpers", id="it is another module's"),
    pytest.param("def f():\n    tm = 1\n", "import towermigrate.helpers as towermigrate_helpers", "towermigrate_helpers", id="it is a variable"),
    pytest.param("x.tm = f(tm=1)\n", "import towermigrate.helpers as tm", "tm", id="it is an attribute and a keyword"),
    pytest.param("import towermigrate.helpers as th\n", "import towermigrate.helpers as th", "th", id="the helpers have a name"),
    pytest.param("from towermigrate import helpers\n", "from towermigrate import helpers", "helpers", id="the helpers are imported by name"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "line", "alias"), ALIASES)
def test_the_helpers_have_a_name_that_is_free(more: str, line: str, alias: str) -> None:
    new = converted(TF + more + before(USE))
    assert new.count("towermigrate") == new.count(line) * line.count("towermigrate") + (
        new.count(f"{alias}.") * alias.count("towermigrate")
    )
    assert new.count(f"\n{line}\n") == 1
    assert f"    {alias}.mirror_variables(n)\n" in new
    assert f"in {alias}.towers(range(n)):" in new


def test_the_examples_of_the_count() -> None:
    done = doctest.testmod(tower_count)
    assert done.attempted and not done.failed


# One process, one style

SESSION = IMPORTS + USE


def styles(sources: dict[str, str], together: bool) -> list[str | None]:
    found = recognize_tree(sources)
    emission = emit_tree(sources, found, together=lambda a, b: a == b or together)
    return [result.style for result in emission.results]


def test_no_loop_style_beside_session_style_in_a_process() -> None:
    strange = program(("= average_gradients(", "= strange("))
    assert styles({"a.py": program(), "b.py": strange}, together=False) == ["loop", "session"]
    assert styles({"a.py": program(), "b.py": strange}, together=True) == ["session", "session"]


def test_no_loop_style_beside_what_an_earlier_rewrite_put_into_session_style() -> None:
    assert styles({"a.py": program(), "b.py": SESSION}, together=False) == ["loop"]
    assert styles({"a.py": program(), "b.py": SESSION}, together=True) == ["session"]


# One program's fault


def test_a_program_that_cannot_be_written_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from towermigrate.emit import session

    convert = session.SessionStyle.convert

    def fails(self: session.SessionStyle, head: session.Headline) -> list[session.Finding]:
        if head.file.path == "b.py":
            raise KeyError("odd")
        return convert(self, head)

    monkeypatch.setattr(session.SessionStyle, "convert", fails)
    sources = {f"{name}.py": before(IMPORTS + USE) for name in "abc"}
    emission = emit_tree(sources, recognize_tree(sources), style="session")
    assert [result.style for result in emission.results] == ["session", None, "session"]
    (finding,) = emission.results[1].findings
    assert (finding.rule, finding.path) == ("TM290", "b.py") and "KeyError" in finding.message
    assert emission.sources.keys() == {"a.py", "c.py"}


# What is written runs


@pytest.mark.full
def test_a_program_in_session_style_prints_what_it_printed(tmp_path: Path) -> None:
    text = program(("            print(value)", "            print('%.5f' % value)"))
    text = text.replace("    opt = ", "    tf.set_random_seed(1)\n    opt = ", 1) + "\n\ntrain()\n"
    session = rewrite_tree({"m.py": text}, style="session").texts["m.py"]
    graph = before(session)  # the tower graph as it was, with the names of TensorFlow 2
    assert "tm." in session and "tm." not in graph
    printed = []
    for name, new in (("graph", graph), ("session", session)):
        path = tmp_path / f"{name}.py"
        path.write_text(new)
        done = subprocess.run(
            [sys.executable, path],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TOWERMIGRATE_DEVICES": "cpu:2"},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert len(printed[0].split()) == 10
    assert printed[0] == printed[1]
