"""Rows of Keras 2 (`tf_keras`) and Keras 3 optimizers, of mixed precision and of gradient accumulation.

Tower i has the number x = i + 1; its gradient by w is x · [3, 4], by one row of the table 12x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import towermigrate.helpers as tm
from tests.helpers.conformance import (
    EAGER_2,
    MIRRORED_2,
    MIRRORED_4,
    WORKERS,
    XLA_2,
    Cannot,
    Results,
    Rows,
    Runner,
    numbers,
)
from tests.helpers.conformance_rows.gradients import Model, updated

ROWS = Rows()
_KERAS: dict[str, Any] = {"Keras 2": tf_keras, "Keras 3": keras}
_SCALE = 16.0
_STEPS = 2

CLIPS_SHARES = Cannot(
    "Keras 3 clips in each replica, before the sum over them; `average_gradients` and `apply_averaged` clip the average",
    "clips in each replica",
)


def made(run: Runner, variables: list[Any], optimizer: Callable[[], Any]) -> Any:
    """An optimizer with its slots, which a step that is traced must not make."""
    with run.scope():
        keras_optimizer = optimizer()
        keras_optimizer.build(variables)
    return keras_optimizer


def moved(n: int) -> Results:
    """After two steps of momentum 0.5 at the rate 1: 1 + 1.5 of the gradient."""
    return {name: 2.5 * np.asarray(value) for name, value in updated(n).items() if name != "other"}


def values_of(model: Model) -> Results:
    return {"w": model.w.numpy(), "table": model.table.numpy()}


def plain(name: str, library: Any) -> None:
    def sgd() -> Any:
        return library.optimizers.SGD(1.0, momentum=0.5)

    @ROWS.case("tower_gradients", row=f"tower_gradients, {name}", expect=moved)
    def _(run: Runner) -> Results:
        model = Model(run)
        variables = [model.w, model.table]
        optimizer = made(run, variables, sgd)

        def gradients(x: Any, rows: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = model.loss(x, rows)
            return [grad for grad, _ in tm.tower_gradients(tape, loss, variables)]

        def update(grads: Any) -> Any:
            optimizer.apply_gradients(list(zip(grads, variables, strict=True)))

        step = run.step(gradients, update)
        for _ in range(_STEPS):
            step(*model.batch)
        return values_of(model)

    @ROWS.case("average_gradients", "apply_averaged", row=f"apply_averaged, {name}", expect=moved)
    def _(run: Runner) -> Results:
        model = Model(run)
        variables = [model.w, model.table]
        optimizer = made(run, variables, sgd)

        def gradients(x: Any, rows: Any) -> Any:
            return [grad for grad, _ in model.gradients(x, rows)[:2]]

        def update(grads: Any) -> Any:
            averaged = tm.average_gradients(list(zip(grads, variables, strict=True)))
            tm.apply_averaged(optimizer, averaged)

        step = run.step(gradients, update)
        for _ in range(_STEPS):
            step(*model.batch)
        return values_of(model)


def clipping(name: str, library: Any) -> None:
    # The norm of w's average is 5 times the mean of x; a quotient by it is one rounding of numbers up to 2.
    def expect(n: int) -> Results:
        del n
        return {"w": [-1.5, -2.0]}

    @ROWS.case(
        "average_gradients",
        "apply_averaged",
        row=f"apply_averaged, {name}, global_clipnorm",
        expect=expect,
        tolerance=1e-6,
    )
    def _(run: Runner) -> Results:
        model = Model(run)
        optimizer = made(run, [model.w], lambda: library.optimizers.SGD(1.0, global_clipnorm=2.5))

        def gradients(x: Any, rows: Any) -> Any:
            return model.gradients(x, rows)[0][0]

        def update(grad: Any) -> Any:
            tm.apply_averaged(optimizer, tm.average_gradients([(grad, model.w)]))

        run.step(gradients, update)(*model.batch)
        return {"w": model.w.numpy()}


@ROWS.case(
    "tower_gradients",
    row="tower_gradients, Keras 3, global_clipnorm",
    expect=lambda n: {"w": [-1.5, -2.0]},
    tolerance=1e-6,
    cannot=dict.fromkeys([EAGER_2, MIRRORED_2, MIRRORED_4, XLA_2, WORKERS], CLIPS_SHARES),
)
def _(run: Runner) -> Results:
    model = Model(run)
    optimizer = made(run, [model.w], lambda: keras.optimizers.SGD(1.0, global_clipnorm=2.5))

    def gradients(x: Any, rows: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.loss(x, rows)
        return tm.tower_gradients(tape, loss, [model.w])[0][0]

    def update(grad: Any) -> Any:
        optimizer.apply_gradients([(grad, model.w)])

    run.step(gradients, update)(*model.batch)
    return {"w": model.w.numpy()}


def mixed(name: str, library: Any) -> None:
    """The loss in float16, its gradient scaled, averaged, and taken as it is or clipped after the scale is off."""

    def scaled(optimizer: Any, loss: Any) -> Any:
        keras_3 = hasattr(optimizer, "scale_loss")
        return optimizer.scale_loss(loss) if keras_3 else optimizer.get_scaled_loss(loss)

    def optimizer_of(run: Runner, w: Any, **clip: float) -> Any:
        def build() -> Any:
            inner = library.optimizers.SGD(1.0, **clip)
            if library is keras:
                return keras.optimizers.LossScaleOptimizer(inner, initial_scale=_SCALE)
            return tf_keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=_SCALE)

        return made(run, [w], build)

    def trained(run: Runner, factor: float, **clip: float) -> Results:
        model = Model(run)
        optimizer = optimizer_of(run, model.w, **clip)

        def gradients(x: Any, rows: Any) -> Any:
            del rows
            with tf.GradientTape() as tape:
                half = tf.cast(model.w, tf.float16) * tf.constant([3.0, 4.0], tf.float16)
                loss = tf.cast(tf.reduce_sum(half), tf.float32) * x * factor
                loss = scaled(optimizer, loss)
            return tape.gradient(loss, model.w)

        def update(grad: Any) -> Any:
            if library is not keras:
                (grad,) = optimizer.get_unscaled_gradients([grad])
            tm.apply_averaged(optimizer, tm.average_gradients([(grad, model.w)]))

        run.step(gradients, update)(*model.batch)
        scale = optimizer.dynamic_scale if library is keras else optimizer.loss_scale
        return {"w": model.w.numpy(), "scale": np.asarray(scale)}

    def mean(n: int) -> Any:
        return np.mean(numbers(n)) * np.array([3.0, 4.0])

    covers = ("average_gradients", "apply_averaged")

    @ROWS.case(
        *covers, row=f"mixed precision, {name}", expect=lambda n: {"w": -mean(n), "scale": _SCALE}
    )
    def _(run: Runner) -> Results:
        return trained(run, 1.0)

    @ROWS.case(
        *covers,
        row=f"mixed precision, {name}, clipnorm",
        expect=lambda n: {"w": [-1.5, -2.0], "scale": _SCALE},
        tolerance=1e-6,
    )
    def _(run: Runner) -> Results:
        return trained(run, 1.0, clipnorm=2.5)

    # 2 ** 16 is infinite in float16: the update is left out, the scale halved.
    @ROWS.case(
        *covers,
        row=f"mixed precision, {name}, a gradient that overflows",
        expect=lambda n: {"w": [0.0, 0.0], "scale": _SCALE / 2},
    )
    def _(run: Runner) -> Results:
        return trained(run, 2.0**16)


for _name, _library in _KERAS.items():
    plain(_name, _library)
    clipping(_name, _library)
    mixed(_name, _library)


@ROWS.case(
    "GradientAccumulator",
    expect=lambda n: {name: value for name, value in updated(n).items() if name != "other"},
)
def _(run: Runner) -> Results:
    return accumulated(run, "keep")


@ROWS.case(
    "GradientAccumulator",
    row="GradientAccumulator, dense",
    expect=lambda n: {name: value for name, value in updated(n).items() if name != "other"},
)
def _(run: Runner) -> Results:
    return accumulated(run, "dense")


def accumulated(run: Runner, sparse: Any) -> Results:
    """Each tower's batch once, and once more a batch without examples."""
    model, sgd = Model(run), run.sgd()
    variables = [model.w, model.table]
    with run.scope():
        accumulator = tm.GradientAccumulator(variables)

    def gradients(x: Any, rows: Any) -> Any:
        return [grad for grad, _ in model.gradients(x, rows)[:2]]

    def update(grads: Any) -> Any:
        pairs = list(zip(grads, variables, strict=True))
        accumulator.add(pairs, examples=1)
        accumulator.add(pairs, examples=0)
        tm.apply_averaged(sgd, accumulator.average(sparse=sparse))

    run.step(gradients, update)(*model.batch)
    return values_of(model)
