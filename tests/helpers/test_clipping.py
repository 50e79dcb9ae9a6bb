"""Clipping against NumPy on dense gradients, sparse ones with repeated rows, per tower and after."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1

DENSE = np.array([[3.0, 0.0], [0.0, -4.0]], np.float32)
# Row 1 three times: its gradient is [6, 0], though no entry is larger than 3.
ROWS, ENTRIES = [1, 1, 0, 1], np.array([[3, 0], [2, 0], [0, 8], [1, 0]], np.float32)
SPARSE = np.array([[0.0, 8.0], [6.0, 0.0], [0.0, 0.0]], np.float32)


def pairs() -> Any:
    """A dense gradient of norm 5, a sparse one of norm 10 and a None."""
    sparse = tf.IndexedSlices(tf.constant(ENTRIES), tf.constant(ROWS), [3, 2])
    variables = [tf.Variable(np.zeros(shape, "f")) for shape in ([2, 2], [3, 2], [])]
    return list(zip([tf.constant(DENSE), sparse, None], variables, strict=True))


def by_global_norm(limit: float) -> Any:
    scale = min(1.0, limit / np.sqrt(125.0))
    return lambda given: tm.clip_by_global_norm(given, limit)[0], DENSE * scale, SPARSE * scale


CLIPS = [
    pytest.param(*by_global_norm(1.0), id="global norm: both by one factor"),
    pytest.param(*by_global_norm(12.0), id="global norm: unchanged below the limit"),
    pytest.param(
        lambda given: tm.clip_by_norm(given, 6.0),
        DENSE,
        SPARSE * 0.6,
        id="norm: only the variable above the limit",
    ),
    pytest.param(
        lambda given: tm.clip_by_value(given, -3.5, 5.0),
        np.clip(DENSE, -3.5, 5.0),
        np.clip(SPARSE, -3.5, 5.0),
        id="value: a row's sum is limited, not its entries",
    ),
]


@pytest.mark.parametrize("how", ["eagerly", "in a tf.function", "compiled by XLA"])
@pytest.mark.parametrize(("clip", "dense", "sparse"), CLIPS)
def test_clips(clip: Any, dense: Any, sparse: Any, how: str) -> None:
    given = pairs()

    def clipped() -> Any:
        found = clip(given)
        assert [v is w for (_, v), (_, w) in zip(found, given, strict=True)] == [True] * 3
        assert isinstance(found[1][0], tf.IndexedSlices)
        assert found[2][0] is None
        return found[0][0], tf.convert_to_tensor(found[1][0]), found[1][0].indices

    if how != "eagerly":
        clipped = tf.function(clipped, autograph=False, jit_compile=how == "compiled by XLA")
    found_dense, found_sparse, rows = clipped()
    # One square root and a product in float32.
    np.testing.assert_allclose(found_dense, dense, rtol=1e-6)
    np.testing.assert_allclose(found_sparse, sparse, rtol=1e-6)
    assert rows.numpy().tolist() == [1, 0]


def test_the_global_norm_is_that_of_the_dense_gradients() -> None:
    _, norm = tm.clip_by_global_norm(pairs(), 1.0)
    np.testing.assert_allclose(norm, np.sqrt(np.sum(DENSE**2) + np.sum(SPARSE**2)), rtol=1e-6)
    plain, same = tf.clip_by_global_norm([tf.constant(DENSE)], 2.0)
    [(grad, _)], norm = tm.clip_by_global_norm([(tf.constant(DENSE), None)], 2.0)
    assert float(norm) == float(same)
    np.testing.assert_array_equal(grad, plain[0])  # TensorFlow's own, to the last bit


def test_a_tower_that_reaches_nothing_passes_through() -> None:
    given = [(None, tf.Variable(1.0))]
    clipped, norm = tm.clip_by_global_norm(given, 1.0)
    assert (clipped, float(norm)) == (given, 0.0)
    assert tm.clip_by_norm(given, 1.0) == tm.clip_by_value(given, -1.0, 1.0) == given


@pytest.mark.parametrize(("low", "high"), [(0.5, 1.0), (-1.0, -0.5)])
def test_limits_that_exclude_zero_are_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match=rf"limited to {low} … {high}: 0 lies outside"):
        tm.clip_by_value(pairs(), low, high)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # Gradients 30 and -10; limit 4.
        pytest.param("the average", 1.0 - 4.0, id="the average, 10, becomes 4"),
        pytest.param("each tower", 1.0 - 0.0, id="each tower: 4 and -4 average to 0"),
        pytest.param("one tower has none", 1.0 - 2.0, id="each tower: 4 and None average to 2"),
    ],
)
@pytest.mark.parametrize("traced", [True, False], ids=["tf.function", "eager"])
def test_two_places_in_a_tower_program(
    two_towers: Any, where: str, expected: float, traced: bool
) -> None:
    with two_towers.scope():
        w = tf.Variable(1.0)
        opt = v1.train.GradientDescentOptimizer(1.0)

    def tower() -> None:
        index = tm.tower_index()
        one_none = where == "one tower has none" and index == 1
        loss = (lambda: tf.constant(1.0)) if one_none else (lambda: w * [30.0, -10.0][index])
        grads = opt.compute_gradients(loss if tf.executing_eagerly() else loss(), [w])
        if where == "the average":
            grads, _ = tm.clip_by_global_norm(tm.average_gradients(grads), 4.0)
        else:
            grads, _ = tm.clip_by_global_norm(grads, 4.0)
            grads = tm.average_gradients(grads)
        tm.apply_averaged(opt, grads)

    def step() -> None:
        two_towers.run(tower)

    (tf.function(step, autograph=False) if traced else step)()
    assert [copy.numpy() for copy in w.values] == [expected] * 2


def test_clipping_the_average_does_not_depend_on_the_number_of_towers() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 3)).astype("f"), rng.normal(size=(8, 1)).astype("f")
    updated = {}
    for towers in (1, 2, 4):
        strategy = tm.tower_strategy(towers)
        with strategy.scope():
            w = tf.Variable(np.ones([3, 1], "f"))
            opt = v1.train.GradientDescentOptimizer(1.0)

        def tower(x: Any, y: Any, w: Any = w, opt: Any = opt) -> None:
            loss = tf.reduce_mean((tf.matmul(x, w) - y) ** 2)
            grads = tm.average_gradients(opt.compute_gradients(loss, [w]))
            tm.apply_averaged(opt, tm.clip_by_global_norm(grads, 0.1)[0])

        tf.function(lambda *xy, s=strategy, t=tower: s.run(t, args=xy), autograph=False)(
            *tm.shard_batch(x, y)
        )
        updated[towers] = w.numpy()
        np.testing.assert_allclose(np.linalg.norm(updated[towers] - 1.0), 0.1, rtol=1e-5)
    for towers in (2, 4):  # another order of summation
        np.testing.assert_allclose(updated[towers], updated[1], rtol=1e-6)


@pytest.mark.parametrize(
    "clip",
    [
        pytest.param(lambda pairs: tm.clip_by_global_norm(pairs, 1.0), id="by the norm of all"),
        pytest.param(lambda pairs: tm.clip_by_norm(pairs, 1.0), id="by the norm of each"),
        pytest.param(lambda pairs: tm.clip_by_value(pairs, -1.0, 1.0), id="by value"),
    ],
)
def test_a_share_is_not_clipped(clip: Any) -> None:
    strategy = tm.tower_strategy(2)
    with strategy.scope():
        w = tf.Variable(1.0, name="w")
    opt = v1.train.GradientDescentOptimizer(1.0)

    @tf.function(autograph=False)
    def step() -> Any:
        return strategy.run(lambda: clip(tm.tower_gradients(opt, w * 3.0, [w])))

    with pytest.raises(ValueError, match="gradient of w:0 comes from tower_gradients"):
        step()


def test_pairs_may_come_from_zip_and_not_from_all_towers() -> None:
    w = tf.Variable(1.0)
    [(grad, variable)] = tm.clip_by_norm(zip([tf.constant(3.0)], [w], strict=True), 1.0)  # type: ignore[arg-type]
    assert (float(grad), variable is w) == (1.0, True)
    with pytest.raises(ValueError, match="a list of towers' lists"):
        tm.clip_by_norm([[(tf.constant(3.0), w)]] * 2, 1.0)  # type: ignore[list-item]


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("how", ["clipnorm", "global_clipnorm", "clipvalue"])
@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_an_optimizer_that_clips_parts_before_the_sum_is_refused_them(
    two_towers: Any, package: str, how: str, eager: bool
) -> None:
    optimizers: Any = pytest.importorskip(package).optimizers
    with two_towers.scope():
        w = tf.Variable(1.0)
        optimizer = optimizers.SGD(1.0, **{how: 1.0})
        optimizer.build([w])

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tm.global_batch_loss(w * x)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    def step(x: Any) -> None:
        two_towers.run(body, args=(x,))

    def train() -> float:
        run = step if eager else tf.function(step, autograph=False)
        run(*tm.shard_batch(np.array([1.0, 3.0, 2.0, 6.0], np.float32)))
        return float(w.read_value())

    if package == "keras":
        with pytest.raises(ValueError, match="one tower's part of a gradient"):
            train()
    else:  # it sums first
        assert train() == pytest.approx(0.0)
