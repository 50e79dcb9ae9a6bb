"""Gradient accumulation: micro-batches on several towers train as one device does on all their examples at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

keras: Any = pytest.importorskip("keras")
tf_keras: Any = pytest.importorskip("tf_keras")
v1 = tf.compat.v1

ROWS, WIDTH = 9, 3
# Two updates of micro-batches, in sizes that leave towers without rows and one micro-batch without any.
SIZES = [[5, 0, 1], [3, 7]]

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: v1.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: v1.train.MomentumOptimizer(0.5, 0.9),
    "adam": lambda: v1.train.AdamOptimizer(0.1),
    "rmsprop": lambda: v1.train.RMSPropOptimizer(0.1, momentum=0.5),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.5),
    "Keras 2": lambda: tf_keras.optimizers.Adam(0.1),
    "Keras 2, clipped": lambda: tf_keras.optimizers.SGD(0.5, global_clipnorm=0.1),
    "Keras 3": lambda: keras.optimizers.Adam(0.1),
    "Keras 3, clipped": lambda: keras.optimizers.SGD(0.5, global_clipnorm=0.1),
}


def _batches() -> list[list[tuple[Any, Any]]]:
    random = np.random.RandomState(3)
    return [
        [(random.randint(0, ROWS, size), random.randn(size).astype(np.float32)) for size in micro]
        for micro in SIZES
    ]


def _losses(table: Any, weight: Any, ids: Any, labels: Any) -> Any:
    return tf.square(tf.reduce_sum(tf.gather(table, ids) * weight, 1) - labels)


def _variables() -> list[Any]:
    random = np.random.RandomState(4)
    table = tf.Variable(random.randn(ROWS, WIDTH).astype(np.float32), name="table")
    return [table, tf.Variable(random.randn(WIDTH).astype(np.float32), name="weight")]


def _alone(made: Callable[[], Any]) -> list[Any]:
    """One device, all examples of an update in one batch, an optimizer given what the tape gives."""
    variables, optimizer = _variables(), made()
    for micro in _batches():
        ids, labels = (np.concatenate(each) for each in zip(*micro, strict=True))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(_losses(*variables, ids, labels))
        table, weight = tape.gradient(loss, variables)
        # Each row once: the norm of a row that is looked up twice is that of the sum, whatever Keras clips.
        indices, places = tf.unique(table.indices)
        values = tf.math.unsorted_segment_sum(table.values, places, tf.size(indices))
        table = tf.IndexedSlices(values, indices, table.dense_shape)
        optimizer.apply_gradients(list(zip([table, weight], variables, strict=True)))
    return [v.numpy() for v in variables]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("towers", [1, 2, pytest.param(4, marks=pytest.mark.full)])
@pytest.mark.parametrize("eager", [False, True], ids=["traced", "eager"])
def test_micro_batches_train_as_one_batch(name: str, towers: int, eager: bool) -> None:
    made = OPTIMIZERS[name]
    strategy = tm.tower_strategy(towers)
    with strategy.scope():
        variables, optimizer = _variables(), made()
        accumulator = tm.GradientAccumulator(variables)
        if hasattr(optimizer, "build"):
            optimizer.build(variables)

    def add(ids: Any, labels: Any) -> None:
        def tower(ids: Any, labels: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(_losses(*variables, ids, labels))
            grads = tape.gradient(loss, variables)
            accumulator.add(zip(grads, variables, strict=True), examples=tf.shape(ids)[0])

        strategy.run(tower, args=(ids, labels))

    def update() -> None:
        strategy.run(lambda: tm.apply_averaged(optimizer, accumulator.average()))

    if not eager:
        add = tf.function(add, autograph=False, reduce_retracing=True)
        update = tf.function(update, autograph=False)
    for micro in _batches():
        for ids, labels in micro:
            add(*tm.shard_batch(ids, labels, uneven="spread"))
        update()
    for found, expected in zip(variables, _alone(made), strict=True):
        # Sums in another order: the roundings of a few float32 additions, through two updates.
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-5, atol=2e-6)
        for copy in getattr(found, "values", ()):
            np.testing.assert_array_equal(copy.numpy(), found.numpy())


def test_sparse_gradients_touch_the_rows_that_were_looked_up(two_towers: Any) -> None:
    with two_towers.scope():
        table = tf.Variable(tf.ones([4, 2]))
        accumulator = tm.GradientAccumulator([table])

    def tower(ids: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.gather(table, ids))
        accumulator.add([(tape.gradient(loss, table), table)], tf.shape(ids)[0])

    @tf.function(autograph=False)
    def averaged(ids: Any, sparse: Any) -> Any:
        two_towers.run(tower, args=(ids,))

        def average() -> Any:
            [(grad, _)] = accumulator.average(sparse=sparse)
            if sparse == "dense":
                return grad
            return grad.indices, grad.values

        return tm.first_tower(two_towers.run(average))

    (ids,) = tm.shard_batch(np.array([3, 1, 3, 3]))
    indices, values = averaged(ids, "keep")
    assert indices.numpy().tolist() == [1, 3]
    np.testing.assert_allclose(values.numpy(), [[0.125] * 2, [0.375] * 2])
    dense = averaged(ids, "dense").numpy()
    np.testing.assert_allclose(dense[:, 0], [0.0, 0.125, 0.0, 0.375])


def _accumulated(strategy: Any, accumulator: Any, w: Any, x: Any) -> None:
    def tower(x: Any) -> None:
        accumulator.add([(tf.reduce_mean(x), w)], tf.shape(x)[0])

    strategy.run(tower, args=tm.shard_batch(np.asarray(x, np.float32), uneven="spread"))


def _average(strategy: Any, accumulator: Any) -> float:
    return float(tm.first_tower(strategy.run(lambda: accumulator.average()[0][0])))


def test_no_examples_are_a_gradient_of_zeros(two_towers: Any) -> None:
    with two_towers.scope():
        w = tf.Variable(1.0)
        accumulator = tm.GradientAccumulator([w])
    _accumulated(two_towers, accumulator, w, [1.0, 2.0, 6.0])
    assert _average(two_towers, accumulator) == 3.0
    assert _average(two_towers, accumulator) == 0.0  # begun anew
    _accumulated(two_towers, accumulator, w, np.zeros([0]))
    assert _average(two_towers, accumulator) == 0.0


def test_a_restored_program_goes_on_between_two_updates(two_towers: Any, tmp_path: Path) -> None:
    with two_towers.scope():
        w = tf.Variable(1.0)
        first = tm.GradientAccumulator([w])
        second = tm.GradientAccumulator([w])
    _accumulated(two_towers, first, w, [1.0, 2.0, 6.0])
    path = tf.train.Checkpoint(accumulator=first).save(os.fspath(tmp_path / "model"))
    tf.train.Checkpoint(accumulator=second).restore(path).assert_consumed()
    _accumulated(two_towers, second, w, [7.0])
    assert _average(two_towers, second) == 4.0


def test_a_variable_that_nothing_reached(two_towers: Any) -> None:
    with two_towers.scope():
        w, other = tf.Variable(1.0), tf.Variable(1.0)
        accumulator = tm.GradientAccumulator([w, other])
    _accumulated(two_towers, accumulator, w, [1.0, 3.0])
    for none, expected in (("skip", [2.0]), ("zeros", [0.0, 0.0])):
        grads = two_towers.run(lambda none=none: [g for g, _ in accumulator.average(none)])
        assert [float(tm.first_tower(grad)) for grad in grads] == expected


def test_half_precision_is_added_up_in_float32(two_towers: Any) -> None:
    with two_towers.scope():
        w = tf.Variable(tf.constant(1.0, tf.float16))
        accumulator = tm.GradientAccumulator([w])
    for _ in range(30):  # 3000 + 1 is 3000 in float16
        two_towers.run(lambda: accumulator.add([(tf.constant(100.0, tf.float16), w)], 1))
    two_towers.run(lambda: accumulator.add([(tf.constant(131.0, tf.float16), w)], 1))
    [(grad, _)] = two_towers.run(accumulator.average)
    assert tm.first_tower(grad).dtype == tf.float16
    assert float(tm.first_tower(grad)) == 101.0


def test_what_cannot_be_right_says_so(two_towers: Any) -> None:
    with two_towers.scope():
        w, other = tf.Variable(1.0, name="w"), tf.Variable(1.0, name="other")
        opt = v1.train.GradientDescentOptimizer(1.0)
        accumulator = tm.GradientAccumulator([w])

    def share(x: Any) -> None:
        accumulator.add(opt.compute_gradients(tm.global_batch_loss(w * x), [w]), 2)

    def divided(x: Any) -> None:
        accumulator.add(tm.tower_gradients(opt, tf.reduce_mean(w * x), [w]), 2)

    def averaged(x: Any) -> None:
        grads = tm.average_gradients(opt.compute_gradients(tf.reduce_mean(w * x), [w]))
        accumulator.add(grads, 2)

    def of_another(x: Any) -> None:
        accumulator.add([(tf.reduce_mean(x), other)], 2)

    def of_another_without_a_gradient(x: Any) -> None:
        accumulator.add([(None, other), (tf.reduce_mean(x), w)], 2)

    def weights(x: Any) -> None:
        accumulator.add([(tf.reduce_mean(x), w)], x)

    def nothing(x: Any) -> None:
        tm.GradientAccumulator.average(accumulator)

    for body, says in (
        (nothing, "nothing to average"),
        (share, "of a share of the global loss.*mean over this tower's micro-batch"),
        (divided, "comes from tower_gradients"),
        (averaged, "average_gradients has averaged these"),
        (of_another, "other:0 is not one of those"),
        (of_another_without_a_gradient, "other:0 is not one of those"),
        (weights, "expected one number"),
    ):
        with pytest.raises(ValueError, match=says):
            tf.function(lambda x, body=body: two_towers.run(body, args=(x,)), autograph=False)(
                *tm.shard_batch(np.ones(4, np.float32))
            )
    with pytest.raises(ValueError, match="outside of a replica"):
        accumulator.add([(tf.constant(1.0), w)], 1)
    with pytest.raises(ValueError, match="listed twice"):
        tm.GradientAccumulator([w, w])
    with pytest.raises(ValueError, match="no variables"):
        tm.GradientAccumulator([])
    two_towers.run(lambda: accumulator.add([(tf.constant(1.0), w)], 1))
    with pytest.raises(ValueError, match="outside of a replica"):
        accumulator.average()
    with pytest.raises(ValueError, match="expected 'zeros' or 'skip'"):
        two_towers.run(lambda: accumulator.average("present"))  # type: ignore[arg-type]


def test_sums_over_rows_grow_with_them_already(two_towers: Any) -> None:
    with two_towers.scope():
        w = tf.Variable(1.0)
        accumulator = tm.GradientAccumulator([w])

    def run(loss: Callable[[Any], Any], share: Any = None) -> float:
        @tf.function(autograph=False)
        def step(x: Any) -> Any:
            def body(x: Any) -> Any:
                with tf.GradientTape() as tape:
                    value = loss(x)
                pairs = [(tape.gradient(value, w), w)]
                accumulator.add(pairs, examples=tf.shape(x)[0], share=share)
                return accumulator.average()[0][0]

            return tm.first_tower(two_towers.run(body, args=(x,)))

        return float(step(*tm.shard_batch(np.array([1.0, 3.0, 8.0], np.float32), uneven="spread")))

    with pytest.raises(ValueError, match="of a sum over them"):
        run(lambda x: tf.reduce_sum(tf.abs(w * x)))
    with pytest.raises(ValueError, match="of a sum over them"):
        run(lambda x: tf.reduce_sum(tf.square(w * x)) + 0.1 * tf.reduce_sum(w * w))
    assert run(lambda x: tf.reduce_mean(w * x)) == pytest.approx(4.0)
    of_columns = run(lambda x: tf.reduce_mean(tf.reduce_sum(w * x[:, tf.newaxis], 1)))
    assert of_columns == pytest.approx(4.0)
    with_penalty = run(lambda x: tf.reduce_mean(w * x) + tf.reduce_sum(tf.square(w)))
    assert with_penalty == pytest.approx(6.0)
    of_parts = run(lambda x: tf.reduce_sum(w * x / tf.cast(tf.size(x), tf.float32)))
    assert of_parts == pytest.approx(4.0)
    by_size = run(lambda x: tf.reduce_sum(w * x) / tf.cast(tf.size(x), tf.float32))
    assert by_size == pytest.approx(4.0)
    # The sums of 4 and 8, each as often as its tower has rows.
    said = run(lambda x: tf.reduce_sum(tf.abs(w * x)), share=False)
    assert said == pytest.approx((2 * 4.0 + 8.0) / 3.0)
