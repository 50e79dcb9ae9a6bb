"""Where session style begins to mirror: through classes, their bases and branches, and what is said where that is not sure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from towermigrate.emit import emit_tree
from towermigrate.recognize import recognize_tree
from towermigrate.rewrite import rewrite_tree

REPOSITORY = Path(__file__).parent.parent.parent
TF = "import tensorflow as tf\n"
SURE = "where the graph of the towers begins"
UNSURE = "where the graph of the towers seems to begin"

BUILD = """\
def build(self):
    self.x = tf.placeholder(tf.float32, [4, 3])
    parts = tf.split(self.x, self.count)
    grads = []
    for i in range(self.count):
        with tf.device('/gpu:%d' % i), tf.variable_scope('net', reuse=i > 0):
            w = tf.get_variable('w', [3, 1], initializer=tf.ones_initializer())
            self.loss = tf.reduce_mean(tf.square(tf.matmul(parts[i], w) - 1.0))
            grads.append(self.opt.compute_gradients(self.loss))
    means = [(sum(g for g, _ in pair) / self.count, pair[0][1]) for pair in zip(*grads)]
    self.step = self.opt.apply_gradients(means)

"""
RATE = """\
self.rate = tf.Variable(0.1, trainable=False)
self.opt = tf.train.GradientDescentOptimizer(self.rate)
"""
RUN = """\
import numpy as np

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    x = np.arange(12.0).reshape(4, 3) / 12
    for _ in range(3):
        print('%.6f' % session.run([made.step, made.loss], {made.x: x})[1])
    print(['%.6f' % each for each in session.run(tf.trainable_variables()[0])[:, 0]])
"""


def inside(*blocks: str, depth: int = 1) -> str:
    return textwrap.indent("".join(blocks), "    " * depth)


def method(name: str, *lines: str) -> str:
    return inside(f"def __init__(self, {name}):\n", inside(*lines)) + "\n"


BASE = "class Base(object):\n" + method("count", "self.count = count\n", "self.build()\n")
OTHER = "class Other(Base):\n" + method("size", "super(Other, self).__init__(size)\n")
OTHER += inside("def build(self):\n    self.step = tf.no_op()\n\n")
OWN = "class Own(Base):\n"


def placed(sources: dict[str, str]) -> tuple[dict[str, list[str]], list[str]]:
    """Each line in front of which variables begin to be mirrored, with the call; and what is said of it."""
    emission = emit_tree(sources, recognize_tree(sources), style="session")
    assert [each.style for each in emission.results] == ["session"]
    found: dict[str, list[str]] = {}
    for path, text in emission.sources.items():
        lines = [each.strip() for each in text.splitlines()]
        for number, line in enumerate(lines):
            if line.startswith("tm.mirror_variables("):
                found.setdefault(path, []).append(f"{line} {lines[number + 1]}")
    return found, [each.message for each in emission.results[0].findings if each.rule == "TM310"]


PLACES = [
    pytest.param(
        {"m.py": TF + BASE + OTHER + OWN + method("n", RATE, "super(Own, self).__init__(n)\n") + inside(BUILD) + "made = Own(2)\nOther(1)\n"},
        {"m.py": ["tm.mirror_variables(n) self.rate = tf.Variable(0.1, trainable=False)"]}, SURE, id="before super",
    ),
    pytest.param(
        {"m.py": TF + BASE + OWN + method("n", RATE, "super().__init__(count=n)\n") + inside(BUILD) + "made = Own(2)\n"},
        {"m.py": ["tm.mirror_variables(n) self.rate = tf.Variable(0.1, trainable=False)"]}, SURE, id="before super, of Python 3",
    ),
    pytest.param(
        {"m.py": TF + BASE + OWN + method("n", RATE, "Base.__init__(self, n)\n") + inside(BUILD) + "made = Own(2)\n"},
        {"m.py": ["tm.mirror_variables(n) self.rate = tf.Variable(0.1, trainable=False)"]}, SURE, id="before the base by its name",
    ),
    pytest.param(
        {"m.py": TF + BASE + OWN + method("n", RATE, "super(Own, self).__init__(n)\n") + inside(BUILD)},
        {"m.py": ["tm.mirror_variables(n) self.rate = tf.Variable(0.1, trainable=False)"]}, UNSURE, id="of which no object is seen to be made",
    ),
    pytest.param(
        {"m.py": TF + BASE + "class Odd(object):\n" + inside("def go(self):\n    tf.Variable(0)\n    self.build()\n\ndef build(self):\n    pass\n\n") + OWN + method("n", RATE, "super(Own, self).__init__(n)\n") + inside(BUILD) + "made = Own(2)\n"},
        {"m.py": ["tm.mirror_variables(n) self.rate = tf.Variable(0.1, trainable=False)"]}, SURE, id="beside another class with a method of that name",
    ),
    pytest.param(
        {"m.py": TF + BASE + "class Own(Base):\n" + inside(BUILD) + "class Least(Own):\n" + method("n", RATE, "super(Least, self).__init__(n)\n") + "made = Least(2)\n"},
        {"m.py": ["tm.mirror_variables(n) self.rate = tf.Variable(0.1, trainable=False)"]}, SURE, id="in a class below",
    ),
    pytest.param(
        {
            "base.py": TF + "class Base(object):\n" + inside("def start(self):\n    with tf.Graph().as_default():\n        self.global_step = tf.Variable(0)\n        self.build()\n"),
            "m.py": TF + "from base import Base\n\nclass Own(Base):\n" + method("n", "self.count = n\n") + inside(BUILD) + "def main():\n    tf.set_random_seed(1)\n    Own(2).start()\n\nmain()\n",
        },
        {"base.py": ["tm.mirror_variables() self.global_step = tf.Variable(0)"]}, SURE, id="in a graph of the base, in another file",
    ),
    pytest.param(
        {
            "base.py": TF + "class Base(object):\n" + inside("def start(self):\n    with tf.get_default_graph().as_default():\n        self.global_step = tf.Variable(0)\n        self.build()\n"),
            "m.py": TF + "from base import Base\n\nclass Own(Base):\n" + method("n", "self.count = n\n") + inside(BUILD) + "Own(2).start()\n",
        },
        {"base.py": ["tm.mirror_variables() self.global_step = tf.Variable(0)"]}, UNSURE, id="in a graph that is there already",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sources", "calls", "said"), PLACES)
def test_a_class_begins_to_mirror_before_its_first_variable(
    sources: dict[str, str], calls: dict[str, list[str]], said: str
) -> None:
    found, messages = placed(sources)
    assert found == calls
    assert len(messages) == 1 and said in messages[0]


LOOP = """\

def go(opt, n):
    grads = []
    for i in range(n):
        with tf.device('/gpu:%d' % i):
            grads.append(opt.compute_gradients(loss(i)))
    return opt.apply_gradients(grads[0])


"""
BRANCHES = [
    pytest.param("if args.many:\n    go(opt(), args.n)\nelse:\n    single()\n", "args = parse()\n", ["tm.mirror_variables(args.n) go(opt(), args.n)"], id="in its branch"),
    pytest.param("if args.one:\n    single()\nelif args.many:\n    go(opt(), args.n)\n", "args = parse()\n", ["tm.mirror_variables(args.n) go(opt(), args.n)"], id="in the second branch"),
    pytest.param("if args.many:\n    if args.two:\n        go(opt(), 2)\n    else:\n        go(opt(), 4)\nelse:\n    single()\n", "args = parse()\n", ["tm.mirror_variables(2) go(opt(), 2)", "tm.mirror_variables(4) go(opt(), 4)"], id="in branches of a branch"),
    pytest.param("if tf.Variable(0) is None:\n    go(opt(), 2)\n", "", ["tm.mirror_variables(2) if tf.Variable(0) is None:"], id="not behind what makes a variable"),
    pytest.param("step = tf.Variable(0)\nif args.many:\n    go(opt(), 2)\n", "", ["tm.mirror_variables(2) step = tf.Variable(0)"], id="not behind a variable"),
    pytest.param("if single():\n    pass\nelif args.many:\n    go(opt(), 2)\n", "", ["tm.mirror_variables(2) if single():"], id="not behind a question that makes one"),
]  # fmt: skip


@pytest.mark.parametrize(("main", "first", "calls"), BRANCHES)
def test_only_the_branch_of_the_towers_is_mirrored(main: str, first: str, calls: list[str]) -> None:
    helpers = "import sys\n\n\ndef parse():\n    return sys\n\n\ndef single():\n    return tf.Variable(1)\n\n\n"
    text = TF + helpers + LOOP
    text += "def main():\n" + inside(first, main) + "\n\nif __name__ == '__main__':\n    main()\n"
    found, messages = placed({"m.py": text})
    assert found == {"m.py": calls}
    assert SURE in messages[0]


def test_a_question_in_front_of_the_program_may_make_a_variable() -> None:
    text = TF + LOOP + "if tf.Variable(0) is not None:\n    go(tf.train.AdamOptimizer(), 2)\n"
    found, _ = placed({"m.py": text})
    assert found == {"m.py": ["tm.mirror_variables(2) if tf.Variable(0) is not None:"]}


@pytest.mark.parametrize(("reset", "said"), [("tf.reset_default_graph()", SURE), ("if n > 1: tf.reset_default_graph()", UNSURE)])  # fmt: skip
def test_a_reset_that_may_not_be_made_is_no_beginning(reset: str, said: str) -> None:
    text = TF + LOOP + f"def main(n):\n    step = tf.Variable(0)\n    {reset}\n    go(opt(), 2)\n"
    found, messages = placed({"m.py": text})
    assert found == {"m.py": ["tm.mirror_variables(2) go(opt(), 2)"]}
    assert said in messages[0]


@pytest.mark.full
@pytest.mark.parametrize("number", range(3))
def test_what_is_mirrored_in_a_class_trains_as_it_did(tmp_path: Path, number: int) -> None:
    (sources, _, _) = PLACES[number].values
    assert isinstance(sources, dict)
    session = rewrite_tree({"m.py": sources["m.py"] + RUN}, style="session").texts["m.py"]
    graph = re.sub(r" *tm\.mirror_variables\([^()\n]*\)\n", "", session)
    graph = re.sub(r"tm\.towers\((range\([^()\n]*\))\)", r"\1", graph)
    printed = []
    for name, text in (("graph", graph), ("session", session)):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, path],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TOWERMIGRATE_DEVICES": "cpu:2"},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "has variables already" not in done.stderr
        printed.append(done.stdout)
    assert len(printed[0].split()) == 6
    assert printed[0] == printed[1]
