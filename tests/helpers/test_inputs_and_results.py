"""Fed arrays into towers, values out of them."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm


def parts(value: Any) -> Any:
    return [part.numpy().tolist() for part in value.values]


@pytest.mark.parametrize(
    ("rows", "kwargs", "expected"),
    [
        pytest.param(4, {}, [[0, 1], [2, 3]], id="equal parts"),
        pytest.param(5, {"batch_size": 2}, [[0, 1], [2, 3]], id="slices: what is over is not used"),
        pytest.param(3, {"batch_size": 2}, [[0, 1], [2]], id="slices: the last one short"),
        pytest.param(1, {"batch_size": 2}, [[0], []], id="slices: the last one empty"),
        pytest.param(5, {"uneven": "drop"}, [[0, 1], [2, 3]], id="drop: the last row is not used"),
        pytest.param(5, {"uneven": "spread"}, [[0, 1, 2], [3, 4]], id="spread: the first has more"),
        pytest.param(1, {"uneven": "spread"}, [[0], []], id="spread: one tower gets nothing"),
        pytest.param(0, {"uneven": "spread"}, [[], []], id="spread: nothing for anyone"),
        pytest.param(5, {"uneven": "pad"}, [[0, 1, 2], [3, 4, 0]], id="pad: equal parts"),
        pytest.param(4, {"uneven": "pad"}, [[0, 1], [2, 3]], id="pad: nothing to fill"),
        pytest.param(
            3, {"batch_size": 4, "uneven": "pad"}, [[0, 1, 2, 0], [0] * 4], id="pad: slices filled"
        ),
        pytest.param(
            5, {"batch_size": 2, "uneven": "pad"}, [[0, 1], [2, 3]], id="pad: full slices"
        ),
    ],
)
def test_shard_batch(two_towers: Any, rows: int, kwargs: Any, expected: Any) -> None:
    value, nest = tm.shard_batch(
        np.arange(rows), {"a": tf.range(rows)}, strategy=two_towers, **kwargs
    )
    assert parts(value) == expected
    assert parts(nest["a"]) == expected


def test_spread_is_array_split() -> None:
    for towers in (2, 3, 8):
        strategy = tm.tower_strategy(towers)
        for rows in range(2 * towers + 1):
            x = np.arange(rows * 3.0).reshape(rows, 3)
            (value,) = tm.shard_batch(x, strategy=strategy, uneven="spread")
            for found, expected in zip(value.values, np.array_split(x, towers), strict=True):
                np.testing.assert_array_equal(found, expected)


def test_padding_keeps_types_and_other_axes(two_towers: Any) -> None:
    text, x, flags = tm.shard_batch(
        np.array(["a", "b", "c"], object), np.ones([3, 2]), [True] * 3, uneven="pad"
    )
    assert parts(text) == [[b"a", b"b"], [b"c", b""]]
    assert parts(x) == [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]]
    assert x.values[1].dtype == tf.float64
    assert parts(flags) == [[True, True], [True, False]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(lambda: tm.shard_batch(np.ones([3, 2])), "2 equal parts: 3 rows", id="uneven"),
        pytest.param(lambda: tm.shard_batch(1.0), "a scalar has no rows", id="a scalar"),
        pytest.param(
            lambda: tm.shard_batch(1.0, uneven="pad"), "a scalar has no rows", id="a scalar, padded"
        ),
        pytest.param(
            lambda: tm.shard_batch([1.0], uneven="drop"), "would drop them all", id="all dropped"
        ),
        pytest.param(
            lambda: tm.shard_batch([1.0], uneven="cut"),
            "'cut' is not one of error, drop, spread, pad",
            id="no such policy",
        ),
        pytest.param(
            lambda: tm.shard_batch([1.0], uneven="spread", batch_size=1),
            "and so does batch_size=1: name one of them",
            id="two sizes",
        ),
        pytest.param(
            lambda: tm.shard_batch(*tm.shard_batch([1.0, 2.0])),
            "per-tower already",
            id="split twice",
        ),
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


def _checks(labels: Any) -> Any:
    """Three ways in which a graph asserts something of labels: by an operation, under a condition, in a function of TensorFlow."""
    size = tf.cast(labels, tf.float32)
    with tf.control_dependencies(
        [
            tf.compat.v1.assert_less(labels, 3),
            tf.compat.v1.Assert(tf.reduce_all(size < 3.0), [size, "too large"]),
        ]
    ):
        logits = tf.reshape(tf.one_hot(labels, 3), [-1, 1, 3])
        return tf.compat.v1.nn.sparse_softmax_cross_entropy_with_logits(
            logits=logits, labels=tf.reshape(labels, [-1, 1])
        )


def test_assertions_about_an_unfed_input_are_made_only_where_it_is_fed(two_towers: Any) -> None:
    spec = tf.TensorSpec([None], tf.int32)
    with two_towers.scope():
        variables = tm.TowerVariables()

    @variables.tower
    def tower(x: Any, labels: Any) -> Any:
        return _checks(labels), x * 2.0

    def run(*arguments: Any) -> Any:
        @tf.function(autograph=False)
        def step(x: Any, *labels: Any) -> Any:
            which = 0 if labels else 1
            inside = lambda x, *labels: tower(x, *labels or (tm.unfed(spec),))[which]  # noqa: E731
            return tm.concat_towers(two_towers.run(inside, args=(x, *labels)))

        return step(*tm.shard_batch(*arguments)).numpy().tolist()

    x = np.float32([1.0, 2.0])
    assert run(x) == [2.0, 4.0]
    assert len(run(x, np.int32([0, 2]))) == 2
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(x, np.int32([0, 3]))


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
    with pytest.raises(ValueError, match="not one for each tower: it would count 2 times"):
        tm.sum_over_towers(tf.constant(2.0))
    with two_towers.scope():
        mirrored = tf.Variable(2.0, name="rate")
    with pytest.raises(ValueError, match="the variable rate:0: it would count 2 times"):
        tm.sum_over_towers({"rate": mirrored})
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


PER_EXAMPLE = np.array([1.0, 2.0, 4.0, 8.0, 16.0], np.float32)  # exact sums, mean 6.2


@pytest.mark.parametrize("towers", [2, 4, 8])
def test_an_uneven_batch_has_the_loss_of_the_whole(towers: int) -> None:
    """What `uneven=` says of the losses; the tower average is wrong for both."""
    strategy = tm.tower_strategy(towers)
    (spread,) = tm.shard_batch(PER_EXAMPLE, uneven="spread")
    padded, weights = tm.shard_batch(PER_EXAMPLE, np.ones(5, "f"), uneven="pad")

    @tf.function(autograph=False)
    def losses() -> Any:
        return (
            tm.sum_over_towers(strategy.run(tm.global_batch_loss, args=(spread,))),
            tm.sum_over_towers(strategy.run(tm.token_normalized_loss, args=(padded, weights))),
            tm.mean_over_towers(strategy.run(tf.reduce_mean, args=(spread,))),
            tm.mean_over_towers(strategy.run(tf.reduce_mean, args=(padded,))),
        )

    of_spread, of_padded, average_spread, average_padded = tm.as_numpy(losses())
    # float32: the division by five, and shares of it, round once each.
    np.testing.assert_allclose([of_spread, of_padded], 6.2, rtol=3e-7)
    assert not np.isclose(average_spread, 6.2) and not np.isclose(average_padded, 6.2)


def test_a_batch_has_the_rows_of_its_placeholder_or_of_one_towers_part(two_towers: Any) -> None:
    rows = np.zeros([4, 3], np.float32)
    for known in (4, 2):
        (part,) = tm.shard_batch(rows, specs=(tf.TensorSpec([known, 3]),))
        assert [tuple(each.shape) for each in tm.each_tower(part)] == [(2, 3), (2, 3)]
    for given in (rows[:2], np.zeros([6, 3], np.float32)):
        with pytest.raises(ValueError, match=r"Cannot feed a value of shape \(\d, 3\)"):
            tm.shard_batch(given, specs=(tf.TensorSpec([4, 3]),))
        with pytest.raises(ValueError, match="Cannot feed a value of shape"):
            tm.same_batch(given, specs=(tf.TensorSpec([4, 3]),))
    tm.shard_batch(rows[:3], specs=(tf.TensorSpec([2, 3]),), uneven="pad")
    tm.shard_batch(rows[:3], specs=(tf.TensorSpec([2, 3]),), batch_size=2)


def test_a_batch_without_equal_parts_is_both_errors(two_towers: Any) -> None:
    for kind in (ValueError, tf.errors.InvalidArgumentError):
        with pytest.raises(kind, match="cannot be split into 2 equal parts"):
            tm.shard_batch([1.0, 2.0, 3.0])


def test_a_tuple_is_one_value_of_a_spec(two_towers: Any) -> None:
    (part,) = tm.shard_batch((1.0, 2.0), specs=(tf.TensorSpec([None]),))
    assert [each.numpy().tolist() for each in tm.each_tower(part)] == [[1.0], [2.0]]


def test_values_of_each_tower(two_towers: Any) -> None:
    spec = tf.TensorSpec([None, 1], tf.float32)
    (x,) = tm.tower_values([[[1]], [[2], [3]], [[4]]], specs=(spec,))
    parts = two_towers.experimental_local_results(x)
    assert [part.numpy().tolist() for part in parts] == [[[1.0]], [[2.0], [3.0]]]
    assert parts[0].dtype == tf.float32


@pytest.mark.parametrize(
    ("values", "shape", "says"),
    [
        ([[[1.0]]], [None, 1], "each of 2 towers"),
        ([[[1.0]], [1.0]], [None, 1], "Cannot feed"),
        ([[[1.0]], [[1.0], [2.0]]], [1, 1], "Cannot feed"),
    ],
)
def test_values_that_cannot_be_fed(
    two_towers: Any, values: Any, shape: list[int | None], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        tm.tower_values(values, specs=(tf.TensorSpec(shape, tf.float32),))
