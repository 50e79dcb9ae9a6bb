"""None, sparse and unreachable gradients; the one update of averaged ones."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import towermigrate.helpers as tm
from towermigrate.helpers import _hooks

v1 = tf.compat.v1


def in_towers(strategy: Any, function: Any) -> Any:
    """`function(index)` in each tower of one traced step; the local results of the first output."""

    @tf.function(autograph=False)
    def step() -> Any:
        return strategy.run(lambda: function(tm.tower_index()))

    return step()


def make(strategy: Any, *values: Any) -> Any:
    with strategy.scope():
        return [tf.Variable(value, name=f"v{n}") for n, value in enumerate(values)]


# The loss of tower 0 reaches a and b, that of tower 1 only a; none reaches c. d(loss)/da = 2, 2; db
# = 6, -.
NONE_CASES = [
    pytest.param(
        "zeros", {"a": 2.0, "b": 3.0, "c": 0.0}, id="zeros: the mean over all, zero where no tower"
    ),
    pytest.param(
        "skip", {"a": 2.0, "b": 3.0}, id="skip: the mean over all, left out where no tower"
    ),
    pytest.param("present", {"a": 2.0, "b": 6.0}, id="present: the mean over those that have it"),
]


def losses(a: Any, b: Any, index: int) -> Any:
    return 2.0 * a + (6.0 * b if index == 0 else 0.0)


@pytest.mark.parametrize(("none", "expected"), NONE_CASES)
@pytest.mark.parametrize("how", ["shares", "averages", "classic"])
def test_none(two_towers: Any, none: Any, expected: dict[str, float], how: str) -> None:
    a, b, c = variables = make(two_towers, 1.0, 1.0, 1.0)
    with two_towers.scope():
        opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        loss = losses(a, b, index)
        if how == "shares":
            pairs = tm.tower_gradients(opt, loss, variables, none)
        else:
            pairs = tm.average_gradients(opt.compute_gradients(loss, variables), none)
        return [g for g, _ in pairs]

    if how == "classic":
        first = [(tf.constant(2.0), a), (tf.constant(6.0), b), (None, c)]
        second = [(tf.constant(2.0), a), (None, b), (None, c)]
        averages = [float(g) for g, _ in tm.average_gradients([first, second], none)]
        assert dict(zip(expected, averages, strict=True)) == expected
        return
    results = in_towers(two_towers, tower)
    assert len(results) == len(expected)
    reduce = tm.sum_over_towers if how == "shares" else tm.last_tower
    values = tm.as_numpy(reduce(results))
    assert dict(zip(expected, map(float, values), strict=True)) == expected


def test_nothing_reached_names_loss_and_variables(two_towers: Any) -> None:
    (a,) = make(two_towers, 1.0)
    opt = v1.train.GradientDescentOptimizer(1.0)
    with pytest.raises(ValueError, match=r"The loss my_loss.* reaches none of its variables: v0:0"):
        in_towers(
            two_towers,
            lambda i: [tm.tower_gradients(opt, tf.constant(1.0, name="my_loss"), [a])[0][0]],
        )


def test_unknown_policies_are_named() -> None:
    with pytest.raises(ValueError, match="none is 'drop'; expected 'zeros', 'skip' or 'present'"):
        tm.average_gradients([], none="drop")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sparse is 'no'"):
        tm.average_gradients([], sparse="no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reduce is 'max'; expected 'mean' or 'sum'"):
        tm.average_gradients([], reduce="max")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reduce is 'max'; expected 'mean' or 'sum'"):
        tm.average_gradients([], reduce="max")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no tower's gradients"):
        tm.average_gradients([])
    with pytest.raises(ValueError, match="outside of a replica|no gradient for any|No tower has"):
        tm.average_gradients([[(None, tf.Variable(1.0))]])


def test_a_tape_serves_as_source(two_towers: Any) -> None:
    (a,) = make(two_towers, 3.0)

    def tower(index: int) -> Any:
        with tf.GradientTape() as tape:
            loss = a * a * float(index + 1)
        return tm.tower_gradients(tape, loss, [a])[0][0]

    assert float(tm.sum_over_towers(in_towers(two_towers, tower))) == 9.0  # the mean of 6 and 12


@pytest.mark.parametrize("how", ["shares", "averages"])
@pytest.mark.parametrize("only_first", [False, True], ids=["both towers", "one tower has None"])
def test_indexed_slices_stay_sparse(two_towers: Any, how: str, only_first: bool) -> None:
    (table,) = make(two_towers, np.ones([5, 2], np.float32))
    with two_towers.scope():
        opt = v1.train.MomentumOptimizer(1.0, 0.9)

    def tower(index: int) -> Any:
        rows = tf.gather(table, [index, 4])
        loss = tf.constant(0.0) if only_first and index else tf.reduce_sum(rows)
        if how == "shares":
            pairs = tm.tower_gradients(opt, loss, [table])
            opt.apply_gradients(pairs)
        else:
            pairs = tm.average_gradients(opt.compute_gradients(loss, [table]))
            tm.apply_averaged(opt, pairs)
        assert isinstance(pairs[0][0], tf.IndexedSlices)
        return tf.constant(0)

    in_towers(two_towers, tower)
    expected = np.ones([5, 2])
    expected[0] -= 0.5
    expected[1] -= 0.0 if only_first else 0.5
    expected[4] -= 0.5 if only_first else 1.0
    for copy in table.values:
        np.testing.assert_array_equal(copy.numpy(), expected)


def test_dense_makes_sparse_gradients_what_expand_dims_made_them(two_towers: Any) -> None:
    (table,) = make(two_towers, np.ones([3, 2], np.float32))
    opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        loss = tf.reduce_sum(tf.gather(table, [index]))
        return tm.tower_gradients(opt, loss, [table], sparse="dense")[0][0]

    total = tm.sum_over_towers(in_towers(two_towers, tower)).numpy()
    np.testing.assert_array_equal(total, [[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])


def test_apply_averaged_updates_once_in_and_out_of_replicas(two_towers: Any) -> None:
    (a,) = make(two_towers, 1.0)
    with two_towers.scope():
        opt = v1.train.MomentumOptimizer(1.0, 0.5)
        step = tf.Variable(0, name="step", trainable=False)

    def tower(index: int) -> Any:
        tm.apply_averaged(opt, [(tf.constant(2.0), a), (None, a)], step)
        return tf.constant(0)

    in_towers(two_towers, tower)
    assert (a.numpy(), step.numpy()) == (-1.0, 1)
    tf.function(lambda: tm.apply_averaged(opt, [(tf.constant(2.0), a)], step), autograph=False)()
    assert (a.numpy(), step.numpy()) == (-4.0, 2)  # momentum 0.5 * 2 + 2
    with pytest.raises(ValueError, match="no gradient"):
        tm.apply_averaged(opt, [(None, a)])


def test_an_optimizer_with_its_own_apply_gradients_is_called(two_towers: Any) -> None:
    (a,) = make(two_towers, 1.0)

    class Assigning(v1.train.GradientDescentOptimizer):  # type: ignore[misc,name-defined]
        def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
            return tf.group(*[v.assign_sub(3.0 * g) for g, v in pairs])

    with two_towers.scope():
        opt = Assigning(1.0)

    @tf.function(autograph=False)
    def apply() -> None:
        tm.apply_averaged(opt, [(tf.constant(1.0), a)])

    apply()
    assert [copy.numpy() for copy in a.values] == [-2.0, -2.0]


def test_hooks_hear_of_unscaled_gradients_and_applications(
    two_towers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []

    class Listener:
        def created(self, variables: Any) -> None:
            heard.append("created")

        def tower_begin(self, index: Any, names: Any, args: Any) -> Any:
            heard.append(("begin", index, names))
            return tuple(10.0 * arg for arg in args)

        def tower_end(self, index: Any) -> None:
            heard.append(("end", index))

        def gradients(self, index: Any, loss: Any, pairs: Any) -> None:
            heard.append(("gradients", index, loss is None, len(pairs)))

        def applied(self, optimizer: Any, pairs: Any, averaged: bool) -> None:
            heard.append(("applied", averaged))

    monkeypatch.setattr(_hooks, "active", Listener())
    with two_towers.scope():
        opt = v1.train.GradientDescentOptimizer(1.0)
        variables = tm.TowerVariables()

    @variables.tower
    def tower(x: Any) -> Any:
        return x * v1.get_variable("w", [], initializer=v1.ones_initializer())

    @tf.function(autograph=False)
    def train(x: Any) -> Any:
        def step(x: Any) -> Any:
            loss = tower(x=x)
            grads = tm.average_gradients(opt.compute_gradients(loss, variables.trainable()))
            tm.apply_averaged(opt, grads)
            return loss

        return tm.first_tower(two_towers.run(step, args=(x,)))

    assert train(*tm.same_batch(np.float32(2.0))).numpy() == 20.0
    assert {event for event in heard if event != "created"} == {
        ("begin", 0, ("x",)), ("begin", 1, ("x",)), ("end", 0), ("end", 1),
        ("gradients", 0, True, 1), ("gradients", 1, True, 1), ("applied", True),
    }  # fmt: skip
    assert heard[0] == "created"


def check_optimizer_updates_once(strategy: Any, opt: Any, a: Any, table: Any) -> None:
    """One step of SGD on averages: a falls by (1 + 2) / 2, row 1 of the table by 2."""

    def tower(index: int) -> Any:
        with tf.GradientTape() as tape:
            loss = a * float(index + 1) + tf.reduce_sum(tf.gather(table, [1, 1]))
        pairs = zip(tape.gradient(loss, [a, table]), [a, table], strict=True)
        tm.apply_averaged(opt, tm.average_gradients(list(pairs)))
        return tf.constant(0)

    in_towers(strategy, tower)
    for copy in range(2):
        assert a.values[copy].numpy() == -1.5
        np.testing.assert_array_equal(table.values[copy].numpy(), [[0.0], [-2.0], [0.0]])
    assert opt.iterations.numpy() == 1


@pytest.mark.parametrize(
    "make_optimizer",
    [
        pytest.param(lambda: keras.optimizers.SGD(1.0), id="Keras 3"),
        pytest.param(lambda: tf_keras.optimizers.SGD(1.0), id="tf_keras"),
        pytest.param(lambda: tf_keras.optimizers.legacy.SGD(1.0), id="tf_keras legacy"),
    ],
)
def test_keras_optimizers_apply_averages_in_a_replica(two_towers: Any, make_optimizer: Any) -> None:
    a, table = make(two_towers, 0.0, np.zeros([3, 1], np.float32))
    with two_towers.scope():
        opt = make_optimizer()
        if hasattr(opt, "build"):
            opt.build([a, table])
    check_optimizer_updates_once(two_towers, opt, a, table)
    with two_towers.scope(), pytest.raises(ValueError, match="SGD .* in the function that"):
        tm.apply_averaged(opt, [(tf.constant(1.0), a)])
    with pytest.raises(ValueError, match="counts its own `iterations`: leave global_step out"):
        tm.apply_averaged(opt, [(tf.constant(1.0), a)], tf.Variable(0))


@pytest.mark.parametrize("none", ["zeros", "skip", "present"])
@pytest.mark.parametrize("how", ["shares", "averages", "classic"])
def test_sums_are_not_divided(two_towers: Any, none: Any, how: str) -> None:
    # d(loss)/da is 2 on both towers, d(loss)/db 6 on the first and None on the other.
    a, b = variables = make(two_towers, 1.0, 1.0)
    opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        loss = losses(a, b, index)
        if how == "shares":
            pairs = tm.tower_gradients(opt, loss, variables, none, reduce="sum")
        else:
            grads = opt.compute_gradients(loss, variables)
            pairs = tm.average_gradients(grads, none, reduce="sum")
        return [grad for grad, _ in pairs]

    if how == "classic":
        first, second = [(tf.constant(2.0), a), (tf.constant(6.0), b)], [(tf.constant(2.0), a)]
        towers = [first, [*second, (None, b)]]
        sums = [grad for grad, _ in tm.average_gradients(towers, none, reduce="sum")]
    else:
        reduce = tm.sum_over_towers if how == "shares" else tm.first_tower
        sums = reduce(in_towers(two_towers, tower))
    assert [float(value) for value in sums] == [4.0, 6.0]


@pytest.mark.parametrize("reduce", ["mean", "sum"])
@pytest.mark.parametrize("how", ["in replicas", "classic"])
@pytest.mark.parametrize("towers", [1, 2, 4])
def test_sparse_averages_have_each_row_once(towers: int, how: str, reduce: Any) -> None:
    rng = np.random.default_rng(towers)
    rows = rng.integers(0, 4, [towers, 6])  # six entries in four rows: always duplicates
    entries = rng.normal(size=[towers, 6, 2]).astype(np.float32)
    expected = np.zeros([5, 2])
    np.add.at(expected, rows.ravel(), entries.reshape(-1, 2).astype(np.float64))
    expected /= towers if reduce == "mean" else 1
    strategy = tm.tower_strategy(towers)
    (table,) = make(strategy, np.zeros([5, 2], np.float32))

    def gradient(tower: int) -> Any:
        return tf.IndexedSlices(tf.constant(entries[tower]), tf.constant(rows[tower]), [5, 2])

    if how == "classic":
        lists = [[(gradient(tower), table)] for tower in range(towers)]
        [(average, _)] = tm.average_gradients(lists, reduce=reduce)
    else:

        def tower(index: int) -> Any:
            [(grad, _)] = tm.average_gradients([(gradient(index), table)], reduce=reduce)
            assert isinstance(grad, tf.IndexedSlices)
            return grad.values, grad.indices

        values, indices = tm.last_tower(in_towers(strategy, tower))
        average = tf.IndexedSlices(values, indices, [5, 2])
    assert sorted(average.indices.numpy()) == sorted(set(rows.ravel()))
    # float32 sums of up to 24 numbers of order 1 against float64.
    np.testing.assert_allclose(tf.convert_to_tensor(average), expected, rtol=1e-5, atol=1e-6)


def test_towers_with_lists_of_different_lengths_are_told(two_towers: Any) -> None:
    a, b = make(two_towers, 1.0, 1.0)

    def tower(index: int) -> Any:
        pairs = [(tf.constant(1.0), a), (tf.constant(1.0), b)]
        return tm.average_gradients(pairs[: 2 - index])[0][0]

    with pytest.raises(ValueError, match=r"gradients of \[2, 1\] variables.*with None where"):
        in_towers(two_towers, tower)


FILTERS = [
    pytest.param("skip", None, {"a": 1.0, "c": 3.0}, id="skip leaves None out"),
    pytest.param("zeros", None, {"a": 1.0, "b": 0.0, "c": 3.0}, id="zeros keeps None as zeros"),
    pytest.param("skip", "cb", {"c": 3.0}, id="skip within a var_list"),
    pytest.param("zeros", "cb", {"b": 0.0, "c": 3.0}, id="the order of the gradients is kept"),
    pytest.param("skip", "ad", {"a": 1.0}, id="a var_list may name what has no gradient at all"),
]


@pytest.mark.parametrize(("none", "kept", "expected"), FILTERS)
def test_filter(none: Any, kept: str | None, expected: dict[str, float]) -> None:
    named = {name: tf.Variable(0.0, name=name) for name in "abcd"}
    pairs = [(tf.constant(1.0), named["a"]), (None, named["b"]), (tf.constant(3.0), named["c"])]
    var_list = None if kept is None else [named[name] for name in kept]
    found = tm.filter_gradients(pairs, none, var_list)
    assert [(float(grad), v.name) for grad, v in found] == [
        (value, f"{name}:0") for name, value in expected.items()
    ]


def test_filter_tells_variables_of_one_name_apart() -> None:
    first, second = tf.Variable(0.0, name="w"), tf.Variable(0.0, name="w")
    pairs = [(tf.constant(1.0), first), (tf.constant(2.0), second)]
    [(grad, variable)] = tm.filter_gradients(pairs, var_list=[second])
    assert (float(grad), variable is second) == (2.0, True)


def test_filter_takes_a_mirrored_variable_and_its_copies_as_one(two_towers: Any) -> None:
    a, b = make(two_towers, 0.0, 0.0)
    pairs = [(tf.constant(1.0), a.values[1]), (tf.constant(2.0), b)]
    assert [v is a.values[1] for _, v in tm.filter_gradients(pairs, var_list=[a])] == [True]
    assert [v is b for _, v in tm.filter_gradients(pairs, var_list=[b.values[0]])] == [True]


def test_filter_refuses_what_would_train_nothing() -> None:
    a, b = tf.Variable(0.0, name="a"), tf.Variable(0.0, name="b")
    for none in ("skip", "zeros"):
        with pytest.raises(ValueError, match="for any of the variables: a:0, b:0"):
            tm.filter_gradients([(None, a), (None, b)], none)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"None of var_list \(b:0\) is among .*: a:0"):
        tm.filter_gradients([(tf.constant(1.0), a)], var_list=[b])
    with pytest.raises(ValueError, match="a list of towers' lists"):
        tm.filter_gradients([[(None, a), (None, b)]] * 2)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="none is 'present'; expected 'skip' or 'zeros'"):
        tm.filter_gradients([], none="present")  # type: ignore[arg-type]


@pytest.mark.parametrize("none", ["skip", "zeros"])
def test_filter_keeps_on_every_tower_what_one_tower_reaches(two_towers: Any, none: Any) -> None:
    a, b, c, table = variables = make(two_towers, 1.0, 1.0, 1.0, np.ones([3, 1], np.float32))
    with two_towers.scope():
        opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        loss = losses(a, b, index)
        if index:
            loss += tf.reduce_sum(tf.gather(table, [2]))
        pairs = tm.filter_gradients(opt.compute_gradients(loss, variables), none)
        assert [v is not c for _, v in pairs].count(False) == (1 if none == "zeros" else 0)
        assert isinstance(pairs[-1][0], tf.IndexedSlices)
        opt.apply_gradients(pairs)  # it sums; a None on one tower would be an AssertionError
        return tf.constant(0)

    in_towers(two_towers, tower)
    assert [v.numpy() for v in (a, b, c)] == [-3.0, -5.0, 1.0]
    np.testing.assert_array_equal(table.numpy(), [[1.0], [1.0], [0.0]])


@pytest.mark.parametrize(
    "use",
    [tm.average_gradients, lambda pairs: tm.average_gradients([pairs, pairs])],
    ids=["in a replica", "in a list of towers"],
)
def test_shares_are_not_averaged_again(two_towers: Any, use: Any) -> None:
    [a] = make(two_towers, 1.0)
    opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        return use(tm.tower_gradients(opt, (index + 1.0) * a, [a]))

    with pytest.raises(ValueError, match=r"a second time.*gradient of v0:0 .*sum over 2"):
        in_towers(two_towers, tower)


def test_the_sum_of_shares_is_the_average(two_towers: Any) -> None:
    [a] = make(two_towers, 1.0)
    opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        pairs = tm.tower_gradients(opt, (2.0 * index + 1.0) * a, [a])
        return tm.average_gradients(pairs, reduce="sum")[0][0]

    assert tm.as_numpy(tm.each_tower(in_towers(two_towers, tower))) == [2.0, 2.0]


def test_shares_are_not_applied_without_a_sum(two_towers: Any) -> None:
    [a] = make(two_towers, 1.0)
    opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        tm.apply_averaged(opt, tm.tower_gradients(opt, (index + 1.0) * a, [a]))

    with pytest.raises(ValueError, match="drift apart: the gradient of v0:0"):
        in_towers(two_towers, tower)
    assert [float(copy) for copy in a.values] == [1.0, 1.0]


@pytest.mark.parametrize("how", ["shares", "averages", "classic"])
def test_towers_that_list_their_variables_in_other_orders_are_told(
    two_towers: Any, how: str
) -> None:
    a, b = make(two_towers, 1.0, 1.0)
    opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        variables = [b, a] if index else [a, b]
        if how == "shares":
            return tm.tower_gradients(opt, a + b, variables)
        pairs = opt.compute_gradients(a + b, variables)
        return tm.average_gradients(pairs if how == "averages" else [pairs, pairs[::-1]])

    with pytest.raises(ValueError, match=r"place 0 tower 0 has v\d:0, and tower 1 v\d:0"):
        in_towers(two_towers, tower)


def test_every_tower_may_have_variables_of_its_own() -> None:
    one, two = tf.Variable(0.0), tf.Variable(0.0)
    [(grad, variable)] = tm.average_gradients(
        [[(tf.constant(1.0), one)], [(tf.constant(3.0), two)]]
    )
    assert (float(grad), variable is one) == (2.0, True)


@pytest.mark.parametrize("how", ["shares", "averages"])
def test_a_row_index_of_64_bits_on_one_tower_only(two_towers: Any, how: str) -> None:
    table, b = make(two_towers, np.ones([3, 1], np.float32), 1.0)
    with two_towers.scope():
        opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(index: int) -> Any:
        loss = b * 1.0
        if index:
            loss += tf.reduce_sum(tf.gather(table, tf.constant([2], tf.int64)))
        if how == "shares":
            pairs = tm.tower_gradients(opt, loss, [table, b])
            assert pairs[0][0].indices.dtype == tf.int64
            opt.apply_gradients(pairs)
        else:
            pairs = tm.average_gradients(opt.compute_gradients(loss, [table, b]))
            tm.apply_averaged(opt, pairs)
        return tf.constant(0)

    in_towers(two_towers, tower)
    np.testing.assert_array_equal(table.numpy(), [[1.0], [1.0], [0.5]])


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["Keras 3", "tf_keras"])
def test_a_keras_optimizer_is_no_source(library: Any) -> None:
    with pytest.raises(TypeError, match=r"SGD; expected a tf.GradientTape.*Keras optimizers too"):
        tm.tower_gradients(library.optimizers.SGD(1.0), tf.constant(1.0), [tf.Variable(1.0)])


def test_outside_of_a_replica_there_is_no_share(two_towers: Any) -> None:
    [a] = make(two_towers, 1.0)
    with two_towers.scope(), pytest.raises(ValueError, match="in the function that strategy.run"):
        tm.tower_gradients(tf.GradientTape(), tf.constant(1.0), [a])


class Halving(v1.train.GradientDescentOptimizer):  # type: ignore[misc]
    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: Any = None
    ) -> Any:
        halves = [(grad / 2.0, variable) for grad, variable in grads_and_vars]
        return super().apply_gradients(halves, global_step, name)


def test_an_apply_gradients_that_sums_over_replicas_is_explained(two_towers: Any) -> None:
    [a] = make(two_towers, 0.0)
    with two_towers.scope():
        opt = Halving(1.0)

    def tower(index: int, whole: bool) -> Any:
        averages = tm.average_gradients(opt.compute_gradients((2.0 * index + 1.0) * a, [a]))
        if whole:
            tm.apply_averaged(opt, averages)
        else:  # as the error says
            opt.apply_gradients([(grad / 2, variable) for grad, variable in averages])
        return tf.constant(0)

    with pytest.raises(ValueError, match="Halving has .* each average divided by the number"):
        in_towers(two_towers, lambda index: tower(index, True))
    in_towers(two_towers, lambda index: tower(index, False))
    assert a.numpy() == -1.0  # half of the mean of 1 and 3


@pytest.mark.parametrize("on_cpus", [True, False], ids=["stacked on CPUs", "all-reduced"])
def test_an_average_that_apply_gradients_would_sum_again_is_refused_whatever_the_devices(
    two_towers: Any, monkeypatch: pytest.MonkeyPatch, on_cpus: bool
) -> None:
    monkeypatch.setattr("towermigrate.helpers.averages._on_cpus", lambda strategy: on_cpus)
    [a] = make(two_towers, 0.0)
    with two_towers.scope():
        opt = v1.train.GradientDescentOptimizer(1.0)

    def tower(parts: float) -> Any:
        index = tf.distribute.get_replica_context().replica_id_in_sync_group
        pairs = tm.average_gradients(
            opt.compute_gradients((tf.cast(index, tf.float32) + 1.0) * a, [a])
        )
        opt.apply_gradients([(grad / parts, v) for grad, v in pairs] if parts != 1 else pairs)
        return tf.constant(0)

    with pytest.raises(ValueError, match="average_gradients has done so already"):
        in_towers(two_towers, lambda index: tower(1))
    in_towers(two_towers, lambda index: tower(2.0))
    assert a.numpy() == -1.5
