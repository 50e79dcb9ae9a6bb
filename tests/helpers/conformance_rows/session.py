"""Rows of session style, which has a graph of its own: no mode changes what it gives."""

from __future__ import annotations

import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers.conformance import Results, Rows, Runner, numbers

ROWS = Rows()
v1 = tf.compat.v1


@ROWS.case(
    "mirror_variables",
    "towers",
    "device",
    row="mirror_variables, towers, device: a tower graph and its session",
    # Tower i's loss is w (i + 1), so the average of the gradients is the mean of i + 1.
    expect=lambda n: {
        "loss": [x * 2.0 for x in numbers(n)],
        "w": 2.0 - sum(numbers(n)) / n,
        "copies": [2.0 - sum(numbers(n)) / n] * n,
        "variables": ["w:0"],
    },
)
def _(run: Runner) -> Results:
    with tf.Graph().as_default():
        tm.mirror_variables(run.towers)
        sgd = v1.train.GradientDescentOptimizer(1.0)
        losses, gradients = [], []
        for i, x in tm.towers(enumerate(numbers(run.towers))):
            with tm.device(f"/gpu:{i}"), v1.variable_scope("", reuse=i > 0):
                w = v1.get_variable("w", [], initializer=v1.constant_initializer(2.0))
                losses.append(w * x)
                gradients.append(sgd.compute_gradients(losses[-1])[0][0])
        copies = [copy.read_value() for copy in getattr(w, "copies", [w])]
        train = sgd.apply_gradients([(tf.add_n(gradients) / run.towers, w)])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            loss, _ = session.run([losses, train])
            return {
                "loss": loss,
                "w": session.run(w),
                "copies": session.run(copies),
                "variables": [v.name for v in v1.global_variables()],
            }
