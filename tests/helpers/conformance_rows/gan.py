"""Rows of Wasserstein critics and of stages."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers.conformance import XLA_2, Results, Rows, Runner, numbers
from tests.helpers.conformance_rows.reasons import MEETS_TOWERS

ROWS = Rows()


@ROWS.case(
    "clip_weights",
    row="clip_weights in a tower",
    expect=lambda n: {"w": [[-1.0, 0.5, 1.0]] * n},
    cannot={XLA_2: MEETS_TOWERS},
)
def _(run: Runner) -> Results:
    w = run.variable([-3.0, 0.5, 3.0])

    def tower(x: Any) -> Any:
        tm.clip_weights([w], 1.0)
        return x

    run.step(tower)(run.feed(numbers(run.towers)))
    return {"w": run.each(run.step(lambda: w.read_value())())}


@ROWS.case(
    "clip_weights", row="clip_weights after the towers", expect=lambda n: {"w": [-1.0, 0.5, 1.0]}
)
def _(run: Runner) -> Results:
    w = run.variable([-3.0, 0.5, 3.0])

    def after(x: Any) -> Any:
        tm.clip_weights([w], 1.0)
        return x

    run.step(lambda x: x + 1.0, after=after)(run.feed(numbers(run.towers)))
    return {"w": w.numpy()}


@ROWS.case(
    "gradient_penalty",
    # A critic w · |x|² at (3s, 4s): slope 10ws, penalty (10ws - 1)², with w = 1 and s = i + 1.
    expect=lambda n: {
        "penalty": [(10.0 * s - 1) ** 2 for s in numbers(n)],
        "slope": [[10.0 * s] for s in numbers(n)],
        "w": 1.0 - sum(20.0 * s * (10.0 * s - 1) for s in numbers(n)) / n,
        "draws": n,
    },
)
def _(run: Runner) -> Results:
    w, sgd = run.variable(1.0), run.sgd()

    def critic(x: Any) -> Any:
        return w * tf.reduce_sum(x**2, axis=1)

    def tower(fake: Any) -> Any:
        real = tf.zeros_like(fake)
        with tf.GradientTape() as tape:
            penalty, slopes = tm.gradient_penalty(
                critic, real, fake, alpha=[0.5], return_slopes=True
            )
        [(grad, _)] = tm.tower_gradients(tape, penalty, [w])
        _, drawn = tm.gradient_penalty(
            critic, real, tf.ones_like(fake), seed=[17, 0], return_slopes=True
        )
        return grad, penalty, slopes, drawn

    def update(results: Any) -> Any:
        grad, *others = results
        sgd.apply_gradients([(grad, w)])
        return others

    batch = run.feed([[[6.0 * s, 8.0 * s]] for s in numbers(run.towers)])
    penalty, slopes, drawn = run.step(tower, update)(batch)
    return {
        "penalty": run.each(penalty),
        "slope": run.each(slopes),
        "w": w.numpy(),
        "draws": len({float(one[0]) for one in run.each(drawn)}),
    }


@ROWS.case(
    "Stages",
    "Stage",
    expect=lambda n: {
        "turns": ["critic", "critic", "generator"] * 2,
        "critic": -4 * (n + 1) / 2,
        "generator": -2 * (n + 1) / 2,
        "cycle": 2,
    },
)
def _(run: Runner) -> Results:
    w = {name: run.variable(0.0, name) for name in ("critic", "generator")}

    def stage(name: str, iterations: int) -> tm.Stage:
        variable, sgd = w[name], run.sgd()

        def gradient(x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = x * variable
            return tm.tower_gradients(tape, loss, [variable])[0][0]

        def update(grad: Any) -> None:
            sgd.apply_gradients([(grad, variable)])

        step = run.step(gradient, update)
        return tm.Stage(name, iterations, step, sgd, [variable])

    with run.scope():
        stages = tm.Stages(stage("critic", 2), stage("generator", 1), cycles=2)
    batch = run.feed(numbers(run.towers))
    turns = []
    for one in stages:
        one(batch)
        turns.append(one.name)
    values = {name: variable.numpy() for name, variable in w.items()}
    return {"turns": turns, **values, "cycle": stages.cycle}
