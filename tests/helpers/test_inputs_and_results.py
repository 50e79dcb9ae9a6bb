"""Batches into towers, values out of them."""

import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1


def parts(value: Any) -> Any:
    return [part.numpy().tolist() for part in value.values]


@pytest.mark.parametrize(
    ("rows", "batch_size", "expected"),
    [
        pytest.param(4, None, [[0, 1], [2, 3]], id="equal parts"),
        pytest.param(5, 2, [[0, 1], [2, 3]], id="slices: what is over is not used"),
        pytest.param(3, 2, [[0, 1], [2]], id="slices: the last one short"),
        pytest.param(1, 2, [[0], []], id="slices: the last one empty"),
    ],
)
def test_shard_batch(two_towers: Any, rows: int, batch_size: Any, expected: Any) -> None:
    value, nest = tm.shard_batch(
        np.arange(rows), {"a": tf.range(rows)}, batch_size=batch_size, strategy=two_towers
    )
    assert parts(value) == expected
    assert parts(nest["a"]) == expected


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(lambda: tm.shard_batch(np.ones([3, 2])), "2 equal parts: 3 rows", id="uneven"),
        pytest.param(lambda: tm.shard_batch(1.0), "a scalar has no rows", id="a scalar"),
        pytest.param(
            lambda: tm.shard_batch(np.ones([2, 3]), specs=[tf.TensorSpec([None, 4])]),
            r"Cannot feed a value of shape \(2, 3\) for an input of shape \(None, 4\)",
            id="another shape",
        ),
        pytest.param(lambda: tm.same_batch(1, specs=[]), "1 arrays, but 0 specs", id="specs"),
    ],
)
def test_what_cannot_be_fed(two_towers: Any, call: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_specs_give_the_placeholders_dtype(two_towers: Any) -> None:
    specs = (tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.int64))
    x, y = tm.shard_batch(np.array([1.0, 2.0]), [1, 2], specs=specs)
    (text,) = tm.same_batch("a", specs=[tf.TensorSpec([], tf.string)])
    dtypes = [value.values[0].dtype for value in (x, y, text)]
    assert dtypes == [tf.float32, tf.int64, tf.string]


def test_an_unfed_input_fails_only_where_it_is_read(two_towers: Any) -> None:
    spec = tf.TensorSpec([None, 2], tf.float32)

    def step(read: bool) -> Any:
        @tf.function(autograph=False)
        def run(x: Any) -> Any:
            def tower(x: Any) -> Any:
                y = tm.unfed(spec) * 2.0
                return x + y if read else x

            return tm.first_tower(two_towers.run(tower, args=(x,)))

        return run(*tm.same_batch(np.float32(1.0)))

    assert step(False).numpy() == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="unfed"):
        step(True)


def queue_pipeline() -> Any:
    counter = v1.get_variable("counter", [], tf.int32, initializer=v1.constant_initializer(10))
    index = v1.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
    return v1.train.batch([index + counter, tf.constant("text")], 1)


def test_legacy_input_runs_queues_and_ends_its_threads(two_towers: Any) -> None:
    before = threading.active_count()
    batches = tm.per_tower_batches(tm.legacy_input(queue_pipeline))
    assert batches.element_spec == (tf.TensorSpec([1], tf.int32), tf.TensorSpec([1], tf.string))
    # Five elements serve two towers twice; the fifth is dropped, as the TF1 run that met the end
    # was.
    assert [parts(numbers) for numbers, _ in batches] == [[[10], [11]], [[12], [13]]]
    assert next(batches, None) is None
    assert threading.active_count() == before


def test_same_batches_share_one_element(two_towers: Any) -> None:
    batches = tm.same_batches(tm.legacy_input(queue_pipeline))
    assert parts(next(batches)[0]) == [[10], [10]]
    assert parts(next(batches)[0]) == [[11], [11]]
    batches.close()
    assert next(batches, None) is None


def test_a_readers_error_comes_over() -> None:
    def broken() -> Any:
        def read(n: Any) -> Any:
            if n > 1:
                raise OSError("the disk is gone")
            return np.int64(n)

        index = v1.train.range_input_producer(9, shuffle=False).dequeue()
        value = v1.py_func(read, [index], tf.int64)
        value.set_shape([])
        return v1.train.batch([value], 1)

    with (
        tm.legacy_input(broken) as elements,
        pytest.raises(tf.errors.OpError, match="the disk is gone"),
    ):
        for _ in range(4):
            next(elements)


def test_an_input_function_must_return_its_tensors() -> None:
    with pytest.raises(ValueError, match="'forgot' returned None"):

        def forgot() -> None:
            pass

        tm.legacy_input(forgot)


def test_batches_of_a_dataset_and_of_a_generator(two_towers: Any) -> None:
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(4.0), np.arange(4))).batch(1)
    batches = tm.per_tower_batches(dataset)
    assert [spec.dtype for spec in batches.element_spec] == [tf.float64, tf.int64]
    assert [parts(x) for x, _ in batches] == [[[0.0], [1.0]], [[2.0], [3.0]]]
    plain = tm.per_tower_batches(np.full([n, 2], n, "f") for n in (1, 2))
    assert plain.element_spec == (tf.TensorSpec([None, 2], tf.float32),)
    assert parts(next(plain)[0]) == [[[1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]]]


RESULTS = [
    pytest.param(tm.last_tower, [3.0, 4.0], id="last_tower"),
    pytest.param(tm.first_tower, [1.0, 2.0], id="first_tower"),
    pytest.param(tm.mean_over_towers, [2.0, 3.0], id="mean_over_towers"),
    pytest.param(tm.sum_over_towers, [4.0, 6.0], id="sum_over_towers"),
    pytest.param(tm.concat_towers, [1.0, 2.0, 3.0, 4.0], id="concat_towers"),
]


@pytest.mark.parametrize(("result", "expected"), RESULTS)
@pytest.mark.parametrize("where", ["eagerly", "in a function", "in the scope"])
def test_results(two_towers: Any, result: Any, expected: Any, where: str) -> None:
    def run(x: Any) -> Any:
        return result(two_towers.run(lambda x: {"x": (x, None), "c": [x * 0.0]}, args=(x,)))

    (x,) = tm.shard_batch([1.0, 2.0, 3.0, 4.0])
    if where == "eagerly":
        value = run(x)
    elif where == "in a function":
        value = tf.function(run, autograph=False)(x)
    else:
        with two_towers.scope():
            value = run(x)
    value = tm.as_numpy(value)
    np.testing.assert_array_equal(value["x"][0], expected)
    assert value["x"][1] is None
    assert list(value["c"][0]) == [0.0] * len(expected)


def test_a_value_that_is_the_same_on_every_tower(two_towers: Any) -> None:
    assert tm.as_numpy(tm.sum_over_towers(tf.constant(2.0))) == 4.0
    assert tm.as_numpy(tm.last_tower(tf.constant(2.0))) == 2.0


def test_results_are_of_all_towers(two_towers: Any) -> None:
    with pytest.raises(RuntimeError, match="inside of one tower"):
        two_towers.run(lambda: tm.last_tower(1.0))


def test_as_numpy_of_sparse_and_per_tower_values(two_towers: Any) -> None:
    slices = tm.as_numpy(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([3])))
    assert slices.indices.tolist() == [3] and slices.dense_shape is None
    sparse = tm.as_numpy(tf.sparse.from_dense([0, 5]))
    assert sparse.values.tolist() == [5]
    assert tm.as_numpy(tm.shard_batch([1, 2])[0])[1].tolist() == [2]
