"""Rows of losses and metrics.

Towers have 2, 6, 0, 8, 2, … examples or tokens, each of loss w · (i + 1), with w = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers.conformance import XLA_2, Cannot, Results, Rows, Runner, numbers

ROWS = Rows()


def sizes(towers: int) -> list[int]:
    return [(2, 6, 0, 8)[tower % 4] for tower in range(towers)]


def shares(towers: int) -> list[float]:
    """Each tower's part of the mean over all examples."""
    return [
        size * x / sum(sizes(towers))
        for size, x in zip(sizes(towers), numbers(towers), strict=True)
    ]


def trained(
    row: str,
    helper: str,
    feed: Callable[[Runner], tuple[Any, ...]],
    loss: Callable[..., Any],
    expect: Callable[[int], list[float]] = shares,
    cannot: dict[str, Cannot] | None = None,
) -> None:
    """A row of a loss: the towers' shares, and `w` after an update by their summed gradients."""

    @ROWS.case(
        helper,
        row=row,
        expect=lambda n: {"shares": expect(n), "w": 1.0 - sum(expect(n))},
        cannot=cannot,
    )
    def _(run: Runner) -> Results:
        w, sgd = run.variable(1.0), run.sgd()

        def tower(*batch: Any) -> Any:
            with tf.GradientTape() as tape:
                share = loss(run, w, *batch)
            [(grad, _)] = tm.tower_gradients(tape, share, [w])
            return grad, share

        def update(results: Any) -> Any:
            grad, share = results
            sgd.apply_gradients([(grad, w)])
            return share

        share = run.step(tower, update)(*feed(run))
        return {"shares": run.each(share), "w": w.numpy()}


def examples(run: Runner) -> tuple[Any, ...]:
    """Per tower [b, 2] with the mean i + 1."""
    ragged = zip(sizes(run.towers), numbers(run.towers), strict=True)
    return (run.feed([np.tile(np.array([0.0, 2 * x], "f"), [size, 1]) for size, x in ragged]),)


def tokens(run: Runner) -> tuple[Any, ...]:
    """Per tower factors [1, 8], what is added to a token's loss, and the tokens' weights."""
    real = [np.arange(8)[np.newaxis] < size for size in sizes(run.towers)]
    factors = [np.full([1, 8], x, "f") for x in numbers(run.towers)]
    padding = [np.where(one, 0.0, np.inf).astype("f") for one in real]
    return run.feed(factors), run.feed(padding), run.feed(real)


def replaced(instead: str) -> Cannot:
    return Cannot(
        f"it adds up over the towers, which a function compiled for itself cannot; give it "
        f"`{instead}` there, as the next row does",
        "cannot meet",
    )


trained(
    "global_batch_loss",
    "global_batch_loss",
    examples,
    lambda run, w, x: tm.global_batch_loss(w * x),
    cannot={XLA_2: replaced("global_batch_size=")},
)
trained(
    "global_batch_loss of a given size",
    "global_batch_loss",
    examples,
    lambda run, w, x: tm.global_batch_loss(w * x, global_batch_size=sum(sizes(run.towers))),
)
trained(
    "token_normalized_loss",
    "token_normalized_loss",
    tokens,
    lambda run, w, x, padding, real: tm.token_normalized_loss(w * x + padding, real),
    cannot={XLA_2: replaced("global_tokens=")},
)
trained(
    "token_normalized_loss of given tokens",
    "token_normalized_loss",
    tokens,
    lambda run, w, x, padding, real: tm.token_normalized_loss(
        w * x + padding, real, global_tokens=sum(sizes(run.towers))
    ),
)
trained(
    "regularization_loss",
    "regularization_loss",
    lambda run: (),
    lambda run, w: tm.regularization_loss([w, 3.0 * w]),
    lambda n: [4.0 / n] * n,
)


@ROWS.case(
    "per_example_loss",
    expect=lambda n: {"squares": [[x**2, 4 * x**2] for x in numbers(n)]},
)
def _(run: Runner) -> Results:
    square = tf.keras.losses.MeanSquaredError(reduction="none")

    def tower(predictions: Any) -> Any:
        return tm.per_example_loss(square, tf.zeros_like(predictions), predictions)

    return {
        "squares": run.each(
            run.step(tower)(run.feed([np.array([[x], [2 * x]], "f") for x in numbers(run.towers)]))
        )
    }


@ROWS.case(
    "loss_metric",
    "LossMetric",
    expect=lambda n: {
        "examples": sum(shares(n)),
        "shares": sum(numbers(n)),
        "in the step": sum(shares(n)),
        "reset": 0.0,
    },
)
def _(run: Runner) -> Results:
    with run.scope():
        of_examples, of_shares = tm.loss_metric(), tm.loss_metric()
    assert isinstance(of_examples, tm.LossMetric)

    def tower(per_example: Any, share: Any) -> Any:
        of_examples.update_state(per_example)
        of_shares.update_state(share, share=True)
        return share

    step = run.step(tower, after=lambda share: (share, of_examples.result())[1])
    in_step = step(*examples(run), run.feed(numbers(run.towers)))
    results = {
        "examples": of_examples.result(),
        "shares": of_shares.result(),
        "in the step": in_step,
    }
    of_examples.reset_state()
    return {**results, "reset": of_examples.result()}


@ROWS.case(
    "loss_metric",
    row="loss_metric read in a tower",
    expect=lambda n: {"each": [sum(shares(n))] * n},
    cannot={
        XLA_2: Cannot(
            "it adds up over the towers, which a function compiled for itself cannot; ask for it "
            "outside of the tower",
            "cannot meet",
        )
    },
)
def _(run: Runner) -> Results:
    with run.scope():
        metric = tm.loss_metric()

    def tower(per_example: Any) -> Any:
        metric.update_state(per_example)
        return metric.result()

    return {"each": run.each(run.step(tower)(*examples(run)))}


@ROWS.case(
    "token_accuracy",
    "TokenAccuracy",
    # Tower i has i + 1 tokens, of which the first is wrong.
    expect=lambda n: {"accuracy": 1.0 - n / sum(numbers(n))},
    tolerance=1e-6,  # thirds and tenths
)
def _(run: Runner) -> Results:
    with run.scope():
        metric = tm.token_accuracy()
    assert isinstance(metric, tm.TokenAccuracy)
    n = run.towers
    labels = np.arange(n)[np.newaxis] > 0
    weights = [np.arange(n)[np.newaxis] <= tower for tower in range(n)]

    def tower(labels: Any, weights: Any) -> Any:
        metric.update_state(labels, tf.constant([[[0.0, 1.0]] * n]), weights)
        return tf.zeros([])

    run.step(tower)(run.feed([labels.astype(int)] * n), run.feed(weights))
    return {"accuracy": metric.result()}
