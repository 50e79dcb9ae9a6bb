"""Rows of the strategy and of what towers are fed."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers.conformance import (
    EAGER,
    EAGER_2,
    TPU,
    WORKERS,
    XLA,
    XLA_2,
    Cannot,
    Results,
    Rows,
    Runner,
    numbers,
)
from tests.helpers.conformance_rows.reasons import NO_PLACEHOLDER, XLA_PLACEHOLDER

v1 = tf.compat.v1

ROWS = Rows()


@ROWS.case(
    "tower_strategy",
    expect=lambda n: {"towers": n, "each": [[2.0 * x] for x in numbers(n)]},
)
def _(run: Runner) -> Results:
    if run.mode not in (WORKERS, TPU):  # theirs is made once a process, by the runner
        run = run.under(tm.tower_strategy(run.towers))
    values = run.step(lambda x: 2.0 * x)(run.feed([[x] for x in numbers(run.towers)]))
    return {"towers": run.towers, "each": run.each(values)}


@ROWS.case(
    "tower_index",
    expect=lambda n: {"index": range(n)},
    cannot={TPU: Cannot("one trace serves all towers of a TPU", "no Python value here")},
)
def _(run: Runner) -> Results:
    def tower() -> Any:
        return tf.constant(tm.tower_index())

    return {"index": run.each(run.step(tower)())}


@ROWS.case(
    "shard_batch",
    expect=lambda n: {
        "rows": [[[4.0 * i], [4.0 * i + 2]] for i in range(n)],
        "drop": np.arange(3 * n - 1)[: (3 * n - 1) // n * n].reshape(n, -1),
        "spread": [len(part) for part in np.array_split(np.arange(3 * n - 1), n)],
        "pad": np.pad(np.arange(3 * n - 1), (0, int(n > 1))).reshape(n, -1),
    },
)
def _(run: Runner) -> Results:
    n = run.towers
    rows = tm.shard_batch(np.arange(2.0 * n, dtype="f")[:, None], **run.where)
    ragged = np.arange(3 * n - 1)
    parts = {
        uneven: tm.shard_batch(ragged, uneven=uneven, **run.where)
        for uneven in ("drop", "spread", "pad")
    }
    size = run.step(lambda x: tf.size(x))
    return {
        "rows": run.each(run.step(lambda x: 2.0 * x)(*rows)),
        "drop": run.each(run.step(lambda x: x + 0)(*parts["drop"])),
        "spread": run.each(size(*parts["spread"])),
        "pad": run.each(run.step(lambda x: x + 0)(*parts["pad"])),
    }


@ROWS.case("same_batch", expect=lambda n: {"rows": [[2.0, 4.0]] * n})
def _(run: Runner) -> Results:
    batch = tm.same_batch(np.array([1.0, 2.0], "f"), **run.where)
    return {"rows": run.each(run.step(lambda x: 2.0 * x)(*batch))}


@ROWS.case("tower_values", expect=lambda n: {"rows": [[2.0 * i] * 2 for i in range(n)]})
def _(run: Runner) -> Results:
    values = tm.tower_values([np.full(2, i, "f") for i in range(run.towers)], **run.where)
    return {"rows": run.each(run.step(lambda x: 2.0 * x)(*values))}


@ROWS.case(
    "per_tower_batches",
    "TowerBatches",
    expect=lambda n: {
        "first": [[2 * i + 1, 2 * i + 2] for i in range(n)],
        "second": [[2 * i + 1, 2 * i + 2] for i in range(n, 2 * n)],
        "steps": 2,
    },
)
def _(run: Runner) -> Results:
    data = tf.data.Dataset.range(4 * run.towers).batch(2)
    batches = tm.per_tower_batches(data, **run.where)
    assert isinstance(batches, tm.TowerBatches)
    step = run.step(lambda x: x + 1)
    steps = [run.each(step(*batch)) for batch in batches]
    return {"first": steps[0], "second": steps[1], "steps": len(steps)}


@ROWS.case("same_batches", expect=lambda n: {"steps": [[[0, 2]] * n, [[4, 6]] * n]})
def _(run: Runner) -> Results:
    batches = tm.same_batches(tf.data.Dataset.range(4).batch(2), **run.where)
    step = run.step(lambda x: x * 2)
    return {"steps": [run.each(step(*batch)) for batch in batches]}


@ROWS.case(
    "legacy_input",
    "LegacyInput",
    expect=lambda n: {"steps": [range(1, n + 1), range(n + 1, 2 * n + 1)]},
)
def _(run: Runner) -> Results:
    def pipeline() -> Any:
        queue = v1.train.range_input_producer(2 * run.towers, num_epochs=1, shuffle=False)
        return queue.dequeue()

    step = run.step(lambda x: x + 1)
    with tm.legacy_input(pipeline) as source:
        assert isinstance(source, tm.LegacyInput)
        batches = tm.per_tower_batches(source, **run.where)
        return {"steps": [run.each(step(*batch)) for batch in batches]}


@ROWS.case(
    "legacy_inputs",
    "LegacyInputs",
    expect=lambda n: {"steps": [[11 + i for i in range(n)], [12 + i for i in range(n)]]},
)
def _(run: Runner) -> Results:
    def pipeline(tower: int) -> Any:
        queue = v1.train.range_input_producer(2, num_epochs=1, shuffle=False)
        return queue.dequeue() + 10 + tower

    step = run.step(lambda x: x + 1)
    with tm.legacy_inputs(pipeline, **run.where) as source:
        assert isinstance(source, tm.LegacyInputs)
        batches = tm.per_tower_batches(source, **run.where)
        return {"steps": [run.each(step(*batch)) for batch in batches]}


@ROWS.case(
    "unfed",
    expect=lambda n: {"each": [2.0 * x for x in numbers(n)]},
    cannot={
        EAGER: NO_PLACEHOLDER,
        EAGER_2: NO_PLACEHOLDER,
        XLA: XLA_PLACEHOLDER,
        XLA_2: XLA_PLACEHOLDER,
    },
)
def _(run: Runner) -> Results:
    def tower(x: Any) -> Any:
        tm.unfed(tf.TensorSpec([None, 3], tf.float32))
        return 2.0 * x

    return {"each": run.each(run.step(tower)(run.feed(numbers(run.towers))))}


@ROWS.case("mnist_input", expect=lambda n: {"sums": [[4 * i, 4 * i + 2] for i in range(n)]})
def _(run: Runner) -> Results:
    images = np.repeat(np.arange(2 * run.towers, dtype=np.uint8), 2).reshape(-1, 2, 1, 1)
    data = tm.mnist_input.DataSet(images, np.zeros(len(images)), dtype=np.uint8)
    batch, _labels = data.next_batch(2 * run.towers, shuffle=False)
    step = run.step(lambda x: tf.reduce_sum(tf.cast(x, tf.int32), axis=1))
    return {"sums": run.each(step(*tm.shard_batch(batch, **run.where)))}
