"""Helpers given what a reader of their docstrings may give them: other containers, other types, once more, from a thread."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
tm = pytest.importorskip("towermigrate.helpers")
v1 = tf.compat.v1

ROWS = np.array([1.0, 1.0, 5.0, 5.0], np.float32)  # mean 3
MODES = pytest.mark.parametrize("eager", [True, False], ids=["eager", "tf.function"])


def towers(number: int) -> Any:
    return tm.tower_strategy(number, devices=f"cpu:{number}")


def called(strategy: Any, tower: Callable[..., Any], *values: Any, eager: bool = True) -> Any:
    """What `strategy.run` returns of a tower."""

    def step(*values: Any) -> Any:
        return strategy.run(tower, args=values)

    return (step if eager else tf.function(step, autograph=False))(*values)


# ---- lists ---------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("form", ["iterator", "values of a dict", "dict"])
def test_variables_come_in_any_container(two_towers: Any, form: str, eager: bool) -> None:
    with two_towers.scope():
        a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
        accumulator = tm.GradientAccumulator(_in_form([a, b], form))

    def tower(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(a * x + b * b)
        grads = tm.tower_gradients(tape, loss, _in_form([a, b], form))
        assert [v is own for (_, v), own in zip(grads, [a, b], strict=True)] == [True, True]
        kept = tm.filter_gradients(grads, var_list=_in_form([b], form))
        return [grad for grad, _ in grads + kept]

    shares = called(two_towers, tower, *tm.shard_batch(ROWS), eager=eager)
    assert [float(tm.sum_over_towers(each)) for each in shares] == [3.0, 4.0, 4.0]
    tm.clip_weights(_in_form([a, b], form), 0.5)
    assert [float(v.read_value()) for v in (a, b)] == [0.5, 0.5]
    assert len(accumulator.trainable_variables) == 0


def _in_form(values: list[Any], form: str) -> Any:
    named = dict(zip("ab", values, strict=False))
    return {"iterator": iter(values), "values of a dict": named.values(), "dict": named}[form]


@MODES
@pytest.mark.parametrize("form", ["iterator", "values of a dict", "dict"])
def test_penalties_come_in_any_container(two_towers: Any, form: str, eager: bool) -> None:
    def tower() -> Any:
        return tm.regularization_loss(_in_form([tf.constant(1.0), tf.constant(2.0)], form))

    assert float(tm.sum_over_towers(called(two_towers, tower, eager=eager))) == 3.0


def test_a_named_tuple_of_arrays_stays_one(two_towers: Any) -> None:
    pair = collections.namedtuple("pair", "x y")
    (made,) = tm.shard_batch(pair(ROWS, ROWS[:, np.newaxis]))
    assert float(tm.sum_over_towers(two_towers.run(lambda z: tf.reduce_sum(z.x), (made,)))) == 12.0
    (made,) = tm.tower_values([pair(1.0, 2.0), pair(3.0, 4.0)])
    assert float(tm.sum_over_towers(two_towers.run(lambda z: z.y, (made,)))) == 6.0


def test_what_has_no_order_of_towers_is_refused(two_towers: Any) -> None:
    for values in ({0: 1.0, 1: 2.0}, {1.0, 2.0}):
        with pytest.raises(ValueError, match="no order of towers"):
            tm.tower_values(values)


@pytest.mark.parametrize("number", ["cpu:2", "2", 2.0])
def test_a_number_of_towers_is_one(number: Any) -> None:
    with pytest.raises(ValueError, match="num_towers is .*; expected a whole number"):
        tm.tower_strategy(number)


@pytest.mark.parametrize("inside", [True, False], ids=["in a tower", "outside"])
@pytest.mark.parametrize("kind", ["variable", "copy", "Keras 3"])
def test_every_copy_of_a_weight_is_clipped(two_towers: Any, kind: str, inside: bool) -> None:
    import keras

    with two_towers.scope():
        made = keras.Variable(1.0) if kind == "Keras 3" else tf.Variable(1.0)
    w = getattr(made, "value", made) if kind == "Keras 3" else made
    given = w.values[0] if kind == "copy" else made
    if inside:
        two_towers.run(lambda: tm.clip_weights([given], 0.5))
    else:
        tm.clip_weights([given], 0.5)
    assert [float(copy) for copy in w.values] == [0.5, 0.5]
    with pytest.raises(ValueError, match="give > 0"):
        tm.clip_weights([given], tf.constant(-0.5))


@pytest.mark.parametrize("size", [0, -1, 1.5, 2.0])
def test_a_batch_size_is_a_number_of_rows(two_towers: Any, size: Any) -> None:
    with pytest.raises(ValueError, match="batch_size is"):
        tm.shard_batch(ROWS, batch_size=size)
    assert [len(part) for part in tm.shard_batch(ROWS, batch_size=np.int32(1))[0].values] == [1, 1]


@pytest.mark.parametrize("iterations", [2.5, lambda cycle: 1.5], ids=["number", "function"])
def test_a_part_of_an_iteration_is_refused(iterations: Any) -> None:
    with pytest.raises(ValueError, match=r"has (2\.5|1\.5) iterations; expected a whole number"):
        list(tm.Stages(tm.Stage("critic", iterations), cycles=1))
    with pytest.raises(ValueError, match=r"cycles is 1\.5; expected a whole number"):
        tm.Stages(tm.Stage("critic", 1), cycles=1.5)
    assert len(list(tm.Stages(tm.Stage("critic", np.int64(2)), cycles=np.int64(1)))) == 2


# ---- types ---------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("path", ["tower_gradients", "average", "sum", "accumulator"])
def test_gradients_of_other_types(path: str, dtype: str, number: int, eager: bool) -> None:
    strategy = towers(number)
    with strategy.scope():
        w, opt = (
            tf.Variable(np.ones(3), dtype=dtype),
            v1.train.GradientDescentOptimizer(1.0),
        )
        accumulator = tm.GradientAccumulator([w])

    def tower(x: Any) -> None:
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum(w * x[:, tf.newaxis], 1)
            loss = tm.global_batch_loss(losses) if path == "sum" else tf.reduce_mean(losses)
        if path == "tower_gradients":
            opt.apply_gradients(tm.tower_gradients(tape, loss, [w]))
            return
        grads = [(tape.gradient(loss, w), w)]
        if path == "accumulator":
            accumulator.add(grads, examples=tf.shape(x)[0])
            grads = accumulator.average()
        else:
            grads = tm.average_gradients(grads, reduce="sum" if path == "sum" else "mean")
        tm.apply_averaged(opt, grads)

    called(strategy, tower, *tm.shard_batch(tf.cast(ROWS, dtype)), eager=eager)
    assert tf.cast(w.read_value(), tf.float32).numpy().tolist() == [-2.0] * 3


@MODES
def test_complex_losses_are_not_cut(two_towers: Any, eager: bool) -> None:
    x = tm.shard_batch(tf.complex(ROWS, ROWS))
    for loss in (
        tm.global_batch_loss,
        lambda z: tm.token_normalized_loss(z, tf.ones_like(z)),
        lambda z: tm.regularization_loss([z[0]], examples=2),
    ):
        with pytest.raises(ValueError, match="drop the imaginary part"):
            called(two_towers, loss, *x, eager=eager)


def test_integers_are_not_averaged() -> None:
    w = tf.Variable(0.0)
    for grads in ([1, 2], [np.int64(1), np.int64(2)], [tf.constant(1), tf.constant(2)]):
        with pytest.raises(ValueError, match="mean of integers drops its fraction"):
            tm.average_gradients([[(grad, w)] for grad in grads])
    [(total, _)] = tm.average_gradients(
        [[(tf.constant(1), w)], [(tf.constant(2), w)]], reduce="sum"
    )
    assert int(total) == 3


def test_ragged_and_sparse_results_are_joined(two_towers: Any) -> None:
    parts = tm.tower_values([[1.0], [2.0, 3.0]])
    ragged = two_towers.run(lambda x: tf.RaggedTensor.from_row_lengths(x, [tf.size(x)]), parts)
    assert tm.concat_towers(ragged).to_list() == [[1.0], [2.0, 3.0]]
    sparse = two_towers.run(tf.sparse.from_dense, tm.shard_batch([[0.0, 1.0], [2.0, 0.0]]))
    joined = tf.sparse.to_dense(tm.concat_towers(sparse))
    assert joined.numpy().tolist() == [[0.0, 1.0], [2.0, 0.0]]


def test_scores_of_one_class_are_no_classes() -> None:
    with towers(1).scope():
        metric = tm.token_accuracy()
    with pytest.raises(ValueError, match="a single class"):
        towers(1).run(metric.update_state, ([0, 1], [[0.5], [2.0]]))


# ---- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", ["number", "rows", "tokens"])
def test_a_replicas_own_count_is_seen_eagerly(without_checks: None, count: str) -> None:
    """It would make the loss as large as the sum of the replicas' means."""
    strategy = towers(2)

    def tower(x: Any) -> Any:
        if count == "tokens":
            return tm.token_normalized_loss(x, x, tf.reduce_sum(x))
        return tm.global_batch_loss(x, global_batch_size=2 if count == "number" else tf.shape(x)[0])

    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be the"):
        strategy.run(tower, tm.shard_batch(np.ones(4, np.float32), strategy=strategy))


def test_the_one_row_of_a_last_batch_is_all_of_it(two_towers: Any, without_checks: None) -> None:
    one = tm.shard_batch(np.array([3.0], np.float32), uneven="spread")
    size = two_towers.run(lambda x: tm.global_batch_loss(x, global_batch_size=1), one)
    assert float(tm.sum_over_towers(size)) == 3.0
    tokens = two_towers.run(lambda x: tm.token_normalized_loss(x, x, 3.0), one)
    assert float(tm.sum_over_towers(tokens)) == 3.0


# ---- updates -------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("form", ["0.1 * g", "g * 0.1", "-g"])
@pytest.mark.parametrize("aggregation", ["MEAN", "NONE", "ONLY_FIRST_REPLICA"])
def test_a_part_times_a_number_is_a_part(
    two_towers: Any, aggregation: str, form: str, eager: bool
) -> None:
    """Of a single number too, which was taken for a factor of the number."""
    with two_towers.scope():
        w = tf.Variable(1.0, aggregation=getattr(tf.VariableAggregation, aggregation))

    def tower(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tm.global_batch_loss(w * x)
        g = tape.gradient(loss, w)
        w.assign_sub({"0.1 * g": 0.1 * g, "g * 0.1": g * 0.1, "-g": -g}[form])

    with pytest.raises(ValueError, match="got a part of a gradient"):
        called(two_towers, tower, *tm.shard_batch(ROWS), eager=eager)


@MODES
@pytest.mark.parametrize("form", ["where it is finite", "of a stack"])
@pytest.mark.parametrize("summed", [True, False])
def test_a_part_is_known_whatever_is_made_of_it_before_it_is_clipped(
    two_towers: Any, form: str, summed: bool, eager: bool
) -> None:
    with two_towers.scope():
        w, opt = tf.Variable([1.0, 2.0]), v1.train.GradientDescentOptimizer(1.0)

    def tower(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tm.global_batch_loss(tf.reduce_sum(w) * x)
        pairs = [(tape.gradient(loss, w), w)]
        [(g, _)] = tm.average_gradients(pairs, reduce="sum") if summed else pairs
        finite = tf.where(tf.math.is_finite(g), g, tf.zeros_like(g))
        given = finite if form == "where it is finite" else tf.stack([g, g])[0]
        tm.apply_averaged(opt, tm.clip_by_value([(given, w)], -2.0, 2.0))

    if summed:
        called(two_towers, tower, *tm.shard_batch(ROWS), eager=eager)
        assert w.numpy().tolist() == [-1.0, 0.0]
    else:
        with pytest.raises(ValueError, match="Clipping would limit one tower's part"):
            called(two_towers, tower, *tm.shard_batch(ROWS), eager=eager)


_SUMMED: dict[str, Any] = {
    "the new value": ("assign", lambda w, g: w - 0.1 * g, "would count 2 times"),
    "weight decay": ("assign_sub", lambda w, g: 0.1 * (g + 0.01 * w), "would count 2 times"),
    "divided once more": ("assign_sub", lambda w, g: 0.1 * (g / 2.0), "once more"),
    "its sign": ("assign_sub", lambda w, g: 0.1 * tf.sign(g), "function of one tower's part"),
}


@MODES
@pytest.mark.parametrize("case", _SUMMED)
def test_a_variable_that_sums_is_given_parts_alone(two_towers: Any, case: str, eager: bool) -> None:
    method, value, said = _SUMMED[case]
    with two_towers.scope():
        w = tf.Variable([1.0, 2.0], aggregation=tf.VariableAggregation.SUM)

    def tower(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tm.global_batch_loss(tf.reduce_sum(w * x[:, tf.newaxis], 1))
        getattr(w, method)(value(w, tape.gradient(loss, w)))

    with pytest.raises(ValueError, match=said):
        called(two_towers, tower, *tm.shard_batch(ROWS), eager=eager)


@MODES
def test_what_a_step_returned_of_each_tower_is_no_average(two_towers: Any, eager: bool) -> None:
    with two_towers.scope():
        w, opt = tf.Variable(1.0), v1.train.GradientDescentOptimizer(1.0)

    def step(x: Any, of_all: bool) -> None:
        def tower(x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(w * x)
            pairs = [(tape.gradient(loss, w), w)]
            return (tm.average_gradients(pairs) if of_all else pairs)[0][0]

        tm.apply_averaged(opt, [(two_towers.run(tower, args=(x,)), w)])

    run: Any = step if eager else tf.function(step, autograph=False)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="have other gradients"):
        run(*tm.shard_batch(ROWS), False)
    assert float(w.read_value()) == 1.0
    run(*tm.shard_batch(ROWS), True)
    assert float(w.read_value()) == -2.0


@MODES
@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_two_optimizers_in_one_step_count_it(number: int, averaged: bool, eager: bool) -> None:
    """On one tower TensorFlow compared the second update with the first one's counter."""
    strategy = towers(number)
    with strategy.scope():
        w, count = tf.Variable(1.0), tf.Variable(0, dtype=tf.int64)
        first, second = (v1.train.GradientDescentOptimizer(rate) for rate in (1.0, 0.5))

    def tower(x: Any) -> None:
        for optimizer, step in ((first, count), (second, None), (first, count)):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(w * x)
            if averaged:
                grads = tm.average_gradients([(tape.gradient(loss, w), w)])
                tm.apply_averaged(optimizer, grads, global_step=step)
            else:
                grads = tm.tower_gradients(tape, loss, [w])
                optimizer.apply_gradients(grads, global_step=step)

    called(strategy, tower, *tm.shard_batch(ROWS), eager=eager)
    assert (float(w.read_value()), int(count.read_value())) == (-6.5, 2)


@MODES
def test_an_optimizer_whose_copies_drift_apart_is_refused(two_towers: Any, eager: bool) -> None:
    import tf_keras

    def trained(make: Callable[..., Any], strategy: Any) -> list[float]:
        with strategy.scope():
            w, optimizer = tf.Variable([1.0, 2.0]), make(0.1)
            if hasattr(optimizer, "build"):
                optimizer.build([w])

        def tower(x: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(w) * x[:, tf.newaxis])
            optimizer.apply_gradients(tm.tower_gradients(tape, loss, [w]))

        for _ in range(2):
            called(strategy, tower, *tm.shard_batch(ROWS, strategy=strategy), eager=eager)
        return list(w.numpy())

    with pytest.raises(ValueError, match="by a fault of its own"):
        trained(tf_keras.optimizers.Nadam, two_towers)
    legacy = tf_keras.optimizers.legacy.Nadam
    np.testing.assert_allclose(trained(legacy, two_towers), trained(legacy, towers(1)), rtol=1e-6)


# ---- inputs --------------------------------------------------------------------------------------


def test_a_second_loop_over_what_has_ended_says_so(two_towers: Any) -> None:
    batches = tm.per_tower_batches(tf.data.Dataset.range(4).batch(1))
    assert len(list(batches)) == 2
    with pytest.raises(ValueError, match="a second loop over them would do nothing"):
        list(batches)
    with pytest.raises(StopIteration):
        next(batches)


def test_a_second_loop_over_an_input_says_so(two_towers: Any) -> None:
    def rows() -> Any:
        return v1.data.make_initializable_iterator(tf.data.Dataset.range(4)).get_next()

    with tm.legacy_input(rows) as source:
        assert len(list(source)) == 4
        for again in (lambda: list(source), lambda: tm.per_tower_batches(source)):
            with pytest.raises(ValueError, match="a second loop over it would do nothing"):
                again()
        source.restart()
        batches = tm.per_tower_batches(source)
        for _ in range(2):
            assert len(list(batches)) == 2
            batches.restart()


@pytest.mark.parametrize("prefetch", [0, 3])
def test_threads_read_one_input(prefetch: int) -> None:
    def rows() -> Any:
        queue = v1.train.range_input_producer(60, num_epochs=1, shuffle=False)
        return queue.dequeue()

    found: list[int] = []
    failed: list[BaseException] = []
    with tm.legacy_input(rows, prefetch=prefetch) as source:

        def read() -> None:
            try:
                while True:
                    found.append(next(source)[0].item())
            except StopIteration:
                pass
            except BaseException as error:
                failed.append(error)

        readers = [threading.Thread(target=read, daemon=True) for _ in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(60)
        assert not any(reader.is_alive() for reader in readers)
    assert not failed
    assert sorted(found) == list(range(60))


# ---- accumulation --------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("none", ["zeros", "skip"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_towers_that_add_gradients_of_other_variables_in_one_step(
    number: int, none: Any, eager: bool
) -> None:
    """A tower averaged before it was known what the next one adds: they added up other variables' gradients, or failed."""
    strategy = towers(number)
    with strategy.scope():
        all_reach, first, no_one = (tf.Variable(1.0, name=name) for name in ("a", "b", "c"))
        table = tf.Variable(tf.ones([3, 1]), name="table")
        accumulator = tm.GradientAccumulator([all_reach, first, no_one, table])
    var_list = [all_reach, first, no_one, table]

    def tower(x: Any) -> Any:
        index = tm.tower_index()
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(all_reach * x)
            if index == 0:
                loss += 2.0 * first
            if index == number - 1:
                loss += 3.0 * tf.reduce_sum(tf.gather(table, [0, 0, 2]))
        grads = tape.gradient(loss, var_list)
        accumulator.add(list(zip(grads, var_list, strict=True)), tf.size(x), share=False)
        averages = accumulator.average(none=none)
        names = [v.name for _, v in averages]
        assert names == ["a:0", "b:0", *["c:0"] * (none == "zeros"), "table:0"]
        return [tf.convert_to_tensor(grad) for grad, _ in averages]

    batch = tm.shard_batch(np.arange(6, dtype=np.float32), strategy=strategy)
    found = tm.first_tower(called(strategy, tower, *batch, eager=eager), strategy)
    zeros = [0.0] * (none == "zeros")
    expected: list[Any] = [2.5, 2.0 / number, *zeros, [6.0 / number, 0.0, 3.0 / number]]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.squeeze(one.numpy()), other, rtol=1e-6)
