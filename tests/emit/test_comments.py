"""Comments of a program in loop style: each stands in the output still, or the report names it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.differential import (
    test_fed_settings,
    test_fetched_lists,
    test_plain_spellings,
    test_rates,
    test_written_averages,
)
from tests.differential.loop_programs import program
from towermigrate.rewrite import rewrite_tree

TABLES = {
    "rates": test_rates,
    "fed settings": test_fed_settings,
    "fetched lists": test_fetched_lists,
    "written averages": test_written_averages,
    "plain spellings": test_plain_spellings,
}

PROGRAM = """\
import numpy as np
import tensorflow as tf

def average_gradients(tower_grads):
    average = []
    for both in zip(*tower_grads):
        # of a function that goes
        average.append((tf.reduce_mean(tf.stack([g for g, _ in both]), 0), both[0][1]))
    return average


x = tf.placeholder(tf.float32, [None, 8])  # behind x
y = tf.placeholder(
    tf.float32,
    # in front of the shape
    [None, 1],  # behind the shape
)
lr = tf.placeholder(tf.float32, [])
opt = tf.train.GradientDescentOptimizer(lr)
xs, ys = tf.split(x, 2), tf.split(y, 2)
tower_grads = []
losses = []
for i in range(2):
    with tf.device("/gpu:%d" % i):
        with tf.variable_scope("net", reuse=i > 0):
            w = tf.get_variable("w", [8, 1])
            loss = tf.reduce_mean(
                tf.square(tf.matmul(xs[i], w) - ys[i])  # in the model
            )
            tower_grads.append(opt.compute_gradients(loss))
            losses.append(loss)
grads = average_gradients(tower_grads)  # behind the average
train_op = opt.apply_gradients(grads)  # behind the update
mean = tf.add_n(losses) / 2
saver = tf.train.Saver(
    max_to_keep=3,  # in the saver
)  # behind the saver
rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())  # behind what goes
    for step in range(3):
        batch = rng.rand(8, 8).astype("float32")
        # in front of the run
        _, l = sess.run(
            [train_op, mean],  # behind the fetches
            feed_dict={
                x: batch,
                y: batch[:, :1],  # behind y
                # in front of the rate
                lr: 0.1 * 0.9 ** step,
            },
        )  # behind the run
        print(l)
"""


def comments(text: str) -> list[tuple[str, int]]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(one.string, one.start[0]) for one in tokens if one.type == tokenize.COMMENT]


def written(text: str) -> tuple[str, str]:
    """What is written for a program, and what the report says of comments."""
    report = rewrite_tree({"train.py": text})
    (found,) = report.programs
    assert found.style == "loop"
    said = [each.message for each in found.findings if each.rule == "TM305"]
    return report.texts["train.py"], "\n".join(said)


def test_those_inside_of_brackets_come_in_front() -> None:
    text, said = written(PROGRAM)
    assert "x = tf.TensorSpec([None, 8], tf.float32)  # behind x\n" in text
    assert (
        "# in front of the shape\n# behind the shape\ny = tf.TensorSpec([None, 1], tf.float32)\n"
        in text
    )
    assert (
        "\n# in the saver\nsaver = tm.tf1_saver(variables, optimizers=[opt], max_to_keep=3)  # behind the saver\n"
        in text
    )
    assert text.rstrip().endswith(
        """
    # in front of the run
    # behind the fetches
    # behind y
    # in front of the rate
    lr.assign(0.1 * 0.9 ** step)
    l = train_step(*tm.shard_batch(batch, batch[:, :1], specs=(x, y))).numpy()  # behind the run
    print(l)"""
    )
    assert re.search(r"grads = tm.tower_gradients\(.*\)  # behind the average\n", text)
    assert "opt.apply_gradients(grads)  # behind the update\n" in text
    assert "# in the model" in text
    assert said == "comments gone with the statements they stood at: 40: # behind what goes"


def commented(text: str) -> str:
    """A text with a comment behind each of its lines that can have one, and in brackets behind each comma that ends a line."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    has = {one.start[0] for one in tokens if one.type == tokenize.COMMENT}
    ends = {
        one.start[0]
        for one in tokens
        if one.type in (tokenize.NEWLINE, tokenize.NL) and one.string and one.line.strip()
    }
    return "".join(
        f"{line}  # c{number}.\n" if number in ends - has else line + "\n"
        for number, line in enumerate(text.splitlines(), 1)
    )


def rows() -> Iterator[object]:
    for name, table in TABLES.items():
        for row in table.TAKEN:
            marks = () if table is test_fed_settings else pytest.mark.full
            yield pytest.param(row.values[0], id=f"{name}: {row.id}", marks=marks)


@pytest.mark.parametrize("changes", [*rows()])
def test_each_stands_or_is_named(changes: tuple[tuple[str, str], ...]) -> None:
    files = {path: commented(text) for path, text in program(*changes).items()}
    report = rewrite_tree(files)
    said = "\n".join(
        each.message for one in report.programs for each in one.findings if each.rule == "TM305"
    )
    after = "".join(report.texts.get(path, text) for path, text in files.items())
    kept = {node.name for node in ast.walk(ast.parse(after)) if isinstance(node, ast.FunctionDef)}
    for text in files.values():
        gone = [
            range(node.lineno, (node.end_lineno or 0) + 1)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef) and node.name not in kept
        ]
        for comment, line in comments(text):
            if not any(line in each for each in gone):
                assert comment in after or comment in said, f"{line}: {comment}"


def test_those_in_front_of_a_second_tower_loop_stand_in_the_step() -> None:
    margin = "                    "
    (text,) = program(
        (f"{margin}tf.get_variable_scope().reuse_variables()\n", f"{margin}losses.append(loss)\n"),
        ("    tower_grads = []\n", "    tower_grads = []\n    losses = []\n"),
        ("    with tf.variable_scope(tf.get_variable_scope()):\n        for", "    for"),
        ("            with tf.device('/gpu:%d' % i):\n", "            with tf.device('/gpu:%d' % i), tf.variable_scope('net', reuse=i > 0):\n"),
        (f"{margin}grads = opt.compute_gradients(loss)\n", "    # the gradients,\n    # tower by tower\n    for i in range(2):\n            grads = opt.compute_gradients(losses[i])\n"),
        (f"{margin}tower_grads.append(grads)\n", "            tower_grads.append(grads)\n"),
    ).values()  # fmt: skip
    report = rewrite_tree({"train.py": text})
    (result,) = report.programs
    assert [each.message for each in result.not_loop] == []
    lines = report.texts["train.py"].split("\n")
    at = lines.index("            # the gradients,")
    assert lines[at + 1] == "            # tower by tower"
    assert lines[at + 2].startswith("            grads = tm.tower_gradients(")
