"""Rows of gradients, averages and clipping.

Tower i has the number x = i + 1. Its gradient by w is x · [3, 4] (norm 5x), by a row of the table
6x + 6x (norm 12x, in two slices), by `other` None. The norm of all is 13x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers.conformance import (
    EAGER,
    EAGER_2,
    XLA_2,
    Results,
    Rows,
    Runner,
    numbers,
)
from tests.helpers.conformance_rows.reasons import MEETS_TOWERS, NO_LOSS_TENSOR

ROWS = Rows()


class Model:
    """The variables and one tower's loss."""

    def __init__(self, run: Runner) -> None:
        self.w = run.variable([0.0, 0.0], "w")
        self.table = run.variable([0.0, 0.0, 0.0], "table")
        self.other = run.variable(7.0, "other")
        self.variables = [self.w, self.table, self.other]
        self.batch = (
            run.feed(numbers(run.towers)),
            run.feed([[tower % 2] * 2 for tower in range(run.towers)]),
        )

    def loss(self, x: Any, rows: Any) -> Any:
        embedded = tf.gather(self.table, rows)
        return x * (tf.reduce_sum(self.w * [3.0, 4.0]) + 6.0 * tf.reduce_sum(embedded))

    def gradients(self, x: Any, rows: Any) -> list[tuple[Any, Any]]:
        """One tower's, not scaled, as `compute_gradients` returns them."""
        with tf.GradientTape() as tape:
            loss = self.loss(x, rows)
        return list(zip(tape.gradient(loss, self.variables), self.variables, strict=True))

    def values(self) -> Results:
        return {
            "w": self.w.numpy(),
            "table": self.table.numpy(),
            "other": self.other.numpy(),
        }


def dense(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
    return [tf.convert_to_tensor(grad) for grad, _ in pairs]


def tower_gradient(tower: int) -> tuple[Any, Any]:
    """Of `w` and of `table`, as above."""
    x = tower + 1.0
    return np.array([3.0, 4.0]) * x, np.eye(3)[tower % 2] * 12.0 * x


def updated(n: int) -> Results:
    """`Model` after one update of rate 1."""
    towers = [tower_gradient(tower) for tower in range(n)]
    w, table = (-np.mean([tower[i] for tower in towers], axis=0) for i in range(2))
    return {"w": w, "table": table, "other": 7.0}


@ROWS.case("tower_gradients", row="tower_gradients of a tape", expect=updated)
def _(run: Runner) -> Results:
    model, sgd = Model(run), run.sgd()

    def gradients(x: Any, rows: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.loss(x, rows)
        pairs = tm.tower_gradients(tape, loss, model.variables, none="skip")
        return [grad for grad, _ in pairs]

    def update(grads: Any) -> Any:
        sgd.apply_gradients(zip(grads, model.variables[:2], strict=True))

    run.step(gradients, update)(*model.batch)
    return model.values()


@ROWS.case(
    "tower_gradients",
    row="tower_gradients of a v1 optimizer",
    expect=updated,
    cannot={EAGER: NO_LOSS_TENSOR, EAGER_2: NO_LOSS_TENSOR},
)
def _(run: Runner) -> Results:
    model, sgd = Model(run), run.sgd()

    def gradients(x: Any, rows: Any) -> Any:
        loss = model.loss(x, rows)
        pairs = tm.tower_gradients(sgd, loss, model.variables, none="skip")
        return [grad for grad, _ in pairs]

    def update(grads: Any) -> Any:
        sgd.apply_gradients(zip(grads, model.variables[:2], strict=True))

    run.step(gradients, update)(*model.batch)
    return model.values()


@ROWS.case(
    "average_gradients",
    row="average_gradients in a tower",
    expect=lambda n: {"w": [-updated(n)["w"]] * n, "table": [-updated(n)["table"]] * n},
    cannot={XLA_2: MEETS_TOWERS},
)
def _(run: Runner) -> Results:
    model = Model(run)

    def tower(x: Any, rows: Any) -> Any:
        return dense(tm.average_gradients(model.gradients(x, rows), none="skip"))

    w, table = run.step(tower)(*model.batch)
    return {"w": run.each(w), "table": run.each(table)}


@ROWS.case(
    "average_gradients",
    row="average_gradients of a list",
    expect=lambda n: {"w": [4.5, 6.0], "table": [6.0, 12.0, 0.0], "averages": 2},
    tf1=True,
)
def _(run: Runner) -> Results:
    model = Model(run)

    def tower(x: Any, rows: Any) -> Any:
        del x, rows
        grads = [model.gradients(tf.constant(i + 1.0), tf.constant([i, i])) for i in range(2)]
        return dense(tm.average_gradients(grads, none="skip"))

    averages = run.step(tower)(*model.batch)
    w, table = (run.each(average)[-1] for average in averages)
    return {"w": w, "table": table, "averages": len(averages)}


@ROWS.case(
    "apply_averaged",
    expect=updated,
    cannot={XLA_2: MEETS_TOWERS},
)
def _(run: Runner) -> Results:
    model, sgd = Model(run), run.sgd()

    def tower(x: Any, rows: Any) -> Any:
        pairs = tm.average_gradients(model.gradients(x, rows), none="skip")
        tm.apply_averaged(sgd, pairs)

    run.step(tower)(*model.batch)
    return model.values()


@ROWS.case(
    "filter_gradients",
    expect=lambda n: {
        "skip": [tower_gradient(i)[0] for i in range(n)],
        "zeros": [0.0] * n,
        "kept": [2, 1],
    },
    tf1=True,
)
def _(run: Runner) -> Results:
    model = Model(run)
    kept = []

    def tower(x: Any, rows: Any) -> Any:
        pairs = model.gradients(x, rows)
        skipped = tm.filter_gradients(pairs)
        zeros = tm.filter_gradients(pairs, none="zeros", var_list=[model.w, model.other])
        kept[:] = [len(skipped), len(zeros) - 1]
        return skipped[0][0], zeros[1][0]

    w, zeros = run.step(tower)(*model.batch)
    return {"skip": run.each(w), "zeros": run.each(zeros), "kept": kept}


def clipped(name: str, expect: Callable[[int], Results], clip: Callable[[Any], Any]) -> None:
    # Divisions by norms: one rounding of numbers up to 48 is 4e-6.
    @ROWS.case(name, expect=expect, tolerance=1e-5)
    def _(run: Runner) -> Results:
        model = Model(run)

        def tower(x: Any, rows: Any) -> Any:
            pairs, norm = clip(model.gradients(x, rows))
            assert pairs[2][0] is None
            return [*dense(pairs[:2]), norm]

        values = run.step(tower)(*model.batch)
        return dict(zip(("w", "table", "norm"), map(run.each, values), strict=True))


def towers_of(tower: Callable[[int], tuple[Any, ...]]) -> Callable[[int], Results]:
    def expect(n: int) -> Results:
        return {
            name: [tower(i)[place] for i in range(n)]
            for place, name in enumerate(("w", "table", "norm"))
        }

    return expect


clipped(
    "clip_by_global_norm",
    # Clipped to 13, the norm of tower 0's gradient.
    towers_of(lambda i: (*(grad / (i + 1) for grad in tower_gradient(i)), 13.0 * (i + 1))),
    lambda pairs: tm.clip_by_global_norm(pairs, 13.0),
)
clipped(
    "clip_by_norm",
    # To 5, that of w's in tower 0.
    towers_of(lambda i: (np.array([3.0, 4.0]), np.eye(3)[i % 2] * 5.0, 0.0)),
    lambda pairs: (tm.clip_by_norm(pairs, 5.0), tf.constant(0.0)),
)
clipped(
    "clip_by_value",
    towers_of(lambda i: (*(np.minimum(grad, 4.0) for grad in tower_gradient(i)), 0.0)),
    lambda pairs: (tm.clip_by_value(pairs, -4.0, 4.0), tf.constant(0.0)),
)
