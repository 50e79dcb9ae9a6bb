"""Variables that a step updates itself: what the replicas assign is put together as the gradient or loss needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

ROWS = np.array([1.0, 3.0, 2.0, 6.0], np.float32)
RATE = 0.25  # 1/2 may be the part of one of two towers
MEAN, SUM, FIRST = (
    tf.VariableAggregation.MEAN,
    tf.VariableAggregation.SUM,
    tf.VariableAggregation.ONLY_FIRST_REPLICA,
)
_Gradient = Callable[[Any, Any], Any]


def _share(w: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = tm.global_batch_loss(tf.reduce_sum(w * x[:, tf.newaxis], 1))
    return tape.gradient(loss, w)


def _tower(w: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.reduce_sum(w * x[:, tf.newaxis], 1))
    return tm.tower_gradients(tape, loss, [w])[0][0]


def _averaged(w: Any, x: Any) -> Any:
    return tm.average_gradients([(_share(w, x), w)], reduce="sum")[0][0]


def _all_reduced(w: Any, x: Any) -> Any:
    return tf.distribute.get_replica_context().all_reduce("SUM", _share(w, x))


def _updated(
    strategy: Any, gradient: _Gradient, aggregation: Any, eager: bool, *, is_read: bool
) -> Any:
    with strategy.scope():
        w = tf.Variable([1.0, 2.0], aggregation=aggregation)
        rate = tf.Variable(RATE)

    def step(x: Any) -> None:
        w.assign_sub((rate if is_read else RATE) * gradient(w, x))

    def run(x: Any) -> None:
        strategy.run(step, args=(x,))

    (run if eager else tf.function(run, autograph=False))(*tm.shard_batch(ROWS))
    return w.numpy()


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("is_read", [False, True], ids=["a number", "a variable"])
@pytest.mark.parametrize(
    ("gradient", "right", "wrong"),
    [
        (_share, SUM, (MEAN, FIRST)),
        (_tower, SUM, (MEAN, FIRST)),
        (_averaged, MEAN, (SUM,)),
        (_averaged, FIRST, ()),
        (_all_reduced, MEAN, (SUM,)),
    ],
)
def test_the_aggregation_fits_the_gradient(
    two_towers: Any, gradient: _Gradient, right: Any, wrong: Any, is_read: bool, eager: bool
) -> None:
    for aggregation in wrong:
        with pytest.raises(ValueError, match="aggregation="):
            _updated(two_towers, gradient, aggregation, eager, is_read=is_read)
    updated = _updated(two_towers, gradient, right, eager, is_read=is_read)
    np.testing.assert_allclose(updated, [1.0 - RATE * 3.0, 2.0 - RATE * 3.0], rtol=1e-6)


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("synchronization", ["ON_READ", "AUTO"])
def test_a_total_of_shares_is_a_sum(two_towers: Any, synchronization: str, eager: bool) -> None:
    def total(aggregation: Any) -> float:
        with two_towers.scope():
            made = tf.Variable(
                0.0,
                trainable=False,
                aggregation=aggregation,
                synchronization=getattr(tf.VariableSynchronization, synchronization),
            )

        def step(x: Any) -> None:
            made.assign_add(tm.global_batch_loss(x))

        def run(x: Any) -> None:
            two_towers.run(step, args=(x,))

        for _ in range(2):
            (run if eager else tf.function(run, autograph=False))(*tm.shard_batch(ROWS))
        return float(made.numpy())

    with pytest.raises(ValueError, match="aggregation=MEAN"):
        total(MEAN)
    assert total(SUM) == pytest.approx(2.0 * 3.0)


def test_what_a_program_counts_is_its_own(two_towers: Any) -> None:
    with two_towers.scope():
        steps = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=FIRST)
        mean = tf.Variable(0.0, trainable=False, aggregation=MEAN)

    def step(x: Any) -> None:
        steps.assign_add(1)
        mean.assign(tf.reduce_mean(x))

    two_towers.run(step, args=tm.shard_batch(ROWS))
    assert int(steps.numpy()) == 1
    assert float(mean.numpy()) == pytest.approx(3.0)


# ---- in tower functions ----------------------------------------------------------------------------


def _zero(shape: tuple[int, ...] = ()) -> Any:
    start = tf.compat.v1.zeros_initializer()
    return tf.compat.v1.get_variable("c", shape, initializer=start, trainable=False)


def _assigns(x: Any) -> Any:
    with tf.control_dependencies([_zero().assign(x[1])]):
        return tf.identity(x)


def _averages(x: Any) -> Any:
    c = _zero()
    return c.assign(0.5 * c + 0.5 * x[1])


def _adds(x: Any) -> Any:
    return _zero().assign_add(x[1])


def _counts(x: Any) -> Any:
    return _zero().assign_add(1.0)


def _in_a_branch(x: Any) -> Any:
    c = _zero()
    return tf.cond(x[1] > 0.0, lambda: c.assign(x[1]), c.read_value)


def _in_a_function(x: Any) -> Any:
    c = _zero()
    return tf.function(lambda: c.assign(x[1]), autograph=False)()


def _one_tower(x: Any) -> Any:
    if tm.tower_index() == 0:
        _zero().assign(x[1])
    return x


def _rows(x: Any) -> Any:
    c = _zero((3,))
    c.scatter_update(tf.IndexedSlices(x[1:], [1]))
    return tf.reduce_sum(c)


def _rows_of_tf1(x: Any) -> Any:
    return tf.compat.v1.scatter_update(_zero((3,)), [1], x[1:])


def _slice(x: Any) -> Any:
    return _zero((3,))[1].assign(x[1])


_ROWS_WRITTEN = (_rows, _rows_of_tf1, _slice)


def _twice(strategy: Any, variables: Any, body: Any) -> Any:
    """What the towers gave in the second of two steps, in which they have 3 and 6."""
    tower = variables.tower(body)
    step = tf.function(lambda x: strategy.run(tower, args=(x,)), autograph=False)
    step(*tm.shard_batch(ROWS))
    seen = strategy.experimental_local_results(step(*tm.shard_batch(ROWS)))
    return [each.numpy().tolist() for each in seen]


@pytest.mark.parametrize(
    ("body", "last", "first"),
    [
        (_assigns, 6.0, 3.0),
        (_averages, 4.5, 2.25),
        (_adds, 12.0, 6.0),
        (_counts, 2.0, 2.0),
        (_in_a_branch, 6.0, 3.0),
        (_in_a_function, 6.0, 3.0),
        (_one_tower, 3.0, 3.0),
        *((rows, [0.0, 6.0, 0.0], [0.0, 3.0, 0.0]) for rows in _ROWS_WRITTEN),
    ],
)
def test_what_towers_assign_is_one_value(two_towers: Any, body: Any, last: Any, first: Any) -> None:
    for policy, expected in (("last", last), ("first", first)):
        with two_towers.scope():
            variables = tm.TowerVariables(batch_norm=policy)
        _twice(two_towers, variables, body)
        [made] = variables._owned.by_name.values()
        assert [copy.numpy().tolist() for copy in made.variable.values] == [expected, expected]


def test_a_tower_sees_what_it_assigned_and_keeps_what_is_its_own(two_towers: Any) -> None:
    with two_towers.scope():
        variables = tm.TowerVariables()
        own = tf.Variable(
            0.0, trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )  # fmt: skip

    def body(x: Any) -> Any:
        own.assign_add(x[1])
        c = _zero()
        before = c.read_value()
        c.assign(x[1])
        return tf.stack([before, c.read_value()])

    seen = _twice(two_towers, variables, body)
    assert seen == [[6.0, 3.0], [6.0, 6.0]]
    assert [float(copy) for copy in own.values] == [6.0, 12.0]
