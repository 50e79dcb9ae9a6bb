"""Towers that no `for` of their own builds: comprehensions, `map`, and a loop of attempts around the towers."""

from __future__ import annotations

import textwrap

import pytest

from towermigrate.rewrite import rewrite_tree

PROGRAM = """\
import functools

import tensorflow as tf


def train(xs, n):
    opt = tf.train.GradientDescentOptimizer(0.1)

    def tower(i):
        with tf.device('/gpu:%d' % i), tf.variable_scope('m', reuse=tf.AUTO_REUSE):
            w = tf.get_variable('w', [3, 1])
            return tf.reduce_mean(tf.matmul(xs[i], w))

    def scaled(factor, i, bias):
        return factor * tower(i) + bias

    {towers}
    return opt.minimize(tf.add_n(losses) / n)
"""

FORMS = [
    pytest.param("losses = [tower(i) for i in range(n)]", "losses = [tower(i) for i in tm.towers(range(n))]", id="a list"),
    pytest.param("losses = list(tower(i) for i in range(n))", "losses = list(tower(i) for i in tm.towers(range(n)))", id="a generator"),
    pytest.param("losses = list(map(tower, range(n)))", "losses = list(map(tower, tm.towers(range(n))))", id="map"),
    pytest.param(
        "losses = list(map(lambda k: tower(k), range(n)))",
        "losses = list(map(lambda k: tower(k), tm.towers(range(n))))",
        id="map of a lambda",
    ),
    pytest.param(
        "losses = list(map(functools.partial(tower), range(n)))",
        "losses = list(map(functools.partial(tower), tm.towers(range(n))))",
        id="map of a partial function",
    ),
    pytest.param(
        "losses = list(map(functools.partial(scaled, 2.0, bias=0.0), range(n)))",
        "losses = list(map(functools.partial(scaled, 2.0, bias=0.0), tm.towers(range(n))))",
        id="map of a function that is partly given",
    ),
    pytest.param("losses = [tower(i) * 2 for i in (0, 1)]", "losses = [tower(i) * 2 for i in tm.towers((0, 1))]", id="a tuple"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), FORMS)
def test_towers_spread_over_an_expression(before: str, after: str) -> None:
    report = rewrite_tree({"m.py": PROGRAM.format(towers=before)})
    assert [program.style for program in report.programs] == ["session"]
    assert after in report.texts["m.py"]
    assert "tm.device('/gpu:%d' % i)" in report.texts["m.py"]
    again = rewrite_tree(report.texts)
    assert again.texts == {} and again.programs == []


def test_what_only_picks_variables_is_no_tower() -> None:
    text = PROGRAM.format(towers="losses = [tf.nn.l2_loss(v) for v in tf.trainable_variables()]")
    assert rewrite_tree({"m.py": text}).programs == []


def test_a_loop_of_attempts_around_the_towers_is_none_itself() -> None:
    towers = """\
    for attempt in range(1):
        losses = []
        for i in range(n):
            with tf.device('/gpu:%d' % i):
                losses.append(opt.compute_gradients(tower(i)))
"""
    text = PROGRAM.format(towers=textwrap.dedent(towers).replace("\n", "\n    "))
    report = rewrite_tree({"m.py": text})
    assert [(p.status, p.style) for p in report.programs] == [("converted", "session")]
    assert "for attempt in range(1):" in report.texts["m.py"]
    assert "for i in tm.towers(range(n)):" in report.texts["m.py"]


def test_a_script_without_tensorflow_mirrors_and_is_switched() -> None:
    main = "\n\nif __name__ == '__main__':\n    main()\n"
    sources = {
        "m.py": PROGRAM.format(towers="losses = [tower(i) for i in range(n)]")
        + "\n\ndef fit(xs, n):\n    with tf.Session() as session:\n        session.run(train(xs, n))\n",
        # As a script of TensorFlow's runs the module, the module is not switched itself.
        "other.py": "import tensorflow as tf\nimport m\n\n\ndef main():\n    tf.Session()\n" + main,
    }
    script = "from m import fit\n\n\ndef main():\n    fit([[1.0]], 2)\n" + main
    report = rewrite_tree(sources, links={"run.py": script})
    text = report.texts["run.py"]
    assert "    tm.mirror_variables(2)\n    fit([[1.0]], 2)\n" in text
    assert "\ntf.compat.v1.disable_v2_behavior()\n" in text
    assert rewrite_tree({**sources, **report.texts}).texts == {}
