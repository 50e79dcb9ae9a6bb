"""Penalties and clipped weights of Wasserstein critics, on one device and on several towers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1

# The reference: a critic of two tanh layers, its input gradient by hand, all in float64 NumPy.
SHAPES = {"w1": [6, 5], "b1": [5], "w2": [5, 4], "b2": [4], "w3": [4, 1]}


def weights_of(seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {name: generator.normal(size=shape) for name, shape in SHAPES.items()}


def examples(rows: int, seed: int = 1, shape: tuple[int, ...] = (6,)) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(seed)
    real = generator.normal(size=(rows, *shape)).astype("f")
    fake = (generator.normal(size=(rows, *shape)) + 0.5).astype("f")
    return real, fake, generator.uniform(size=rows).astype("f")


def numpy_slopes(weights: dict[str, Any], real: Any, fake: Any, alpha: Any) -> Any:
    real, fake = (np.reshape(x, [len(x), -1]).astype("d") for x in (real, fake))
    x = real + alpha.astype("d")[:, None] * (fake - real)
    first = np.tanh(x @ weights["w1"] + weights["b1"])
    second = np.tanh(first @ weights["w2"] + weights["b2"])
    gradient = (1 - second**2) * weights["w3"][:, 0]
    gradient = (1 - first**2) * (gradient @ weights["w2"].T)
    return np.sqrt(np.sum((gradient @ weights["w1"].T) ** 2, axis=1))


def numpy_penalty(weights: dict[str, Any], *batch: Any) -> Any:
    return 10.0 * np.mean((numpy_slopes(weights, *batch) - 1.0) ** 2)


def numpy_gradients(weights: dict[str, Any], *batch: Any) -> dict[str, Any]:
    """By central differences in float64: right to about 1e-9 here."""
    result = {}
    for name, value in weights.items():
        result[name] = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = value.copy()
                moved[index] += step
                sides.append(numpy_penalty({**weights, name: moved}, *batch))
            result[name][index] = (sides[0] - sides[1]) / 2e-5
    return result


def critic_of(variables: dict[str, Any], column: bool = True) -> Callable[[Any], Any]:
    def critic(x: Any) -> Any:
        x = tf.reshape(x, [-1, 6])
        x = tf.tanh(x @ variables["w1"] + variables["b1"])
        x = tf.tanh(x @ variables["w2"] + variables["b2"]) @ variables["w3"]
        return x if column else x[:, 0]

    return critic


def variables_of(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: tf.Variable(value, dtype=tf.float32) for name, value in weights.items()}


def with_tape(variables: dict[str, Any], *batch: Any) -> Any:
    with tf.GradientTape() as tape:
        penalty = tm.gradient_penalty(critic_of(variables), *batch[:2], 10.0, alpha=batch[2])
    return penalty, tape.gradient(penalty, list(variables.values()))


def with_optimizer(variables: dict[str, Any], *batch: Any) -> Any:
    penalty = tm.gradient_penalty(critic_of(variables), *batch[:2], 10.0, alpha=batch[2])
    pairs = v1.train.AdamOptimizer().compute_gradients(penalty, list(variables.values()))
    return penalty, [grad for grad, _ in pairs]


def with_gradients(variables: dict[str, Any], *batch: Any) -> Any:
    penalty = tm.gradient_penalty(critic_of(variables), *batch[:2], 10.0, alpha=batch[2])
    return penalty, tf.gradients(penalty, list(variables.values()))


WAYS = [
    pytest.param(with_tape, "eagerly", id="a tape, eagerly"),
    pytest.param(with_tape, "function", id="a tape in a function"),
    pytest.param(with_tape, "unknown rows", id="a tape in a function of any number of rows"),
    pytest.param(with_tape, "xla", id="a tape compiled by XLA"),
    pytest.param(with_optimizer, "function", id="a v1 optimizer in a function"),
    pytest.param(with_optimizer, "xla", id="a v1 optimizer compiled by XLA"),
    pytest.param(with_gradients, "function", id="tf.gradients in a function"),
    pytest.param(with_optimizer, "session", id="a v1 optimizer in a TF1 session"),
    pytest.param(with_tape, "session", id="a tape in a TF1 session"),
]


@pytest.mark.parametrize(("way", "where"), WAYS)
@pytest.mark.parametrize("shape", [(6,), (1, 2, 3)], ids=["vectors", "images"])
def test_penalty_and_gradient_equal_a_float64_reference(
    way: Any, where: str, shape: tuple[int, ...]
) -> None:
    weights = {name: value.astype("f").astype("d") for name, value in weights_of().items()}
    batch = examples(7, shape=shape)
    if where == "session":
        with tf.Graph().as_default(), v1.Session() as session:
            results = way(variables_of(weights), *map(tf.constant, batch))
            session.run(v1.global_variables_initializer())
            penalty, gradients = session.run(results)
    else:
        variables = variables_of(weights)

        def step(*batch: Any) -> Any:
            return way(variables, *batch)

        if where != "eagerly":
            rows = None if where == "unknown rows" else 7
            signature = [tf.TensorSpec([rows, *np.shape(x)[1:]], tf.float32) for x in batch]
            step = tf.function(
                step,
                input_signature=signature,
                autograph=False,
                jit_compile=True if where == "xla" else None,
            )
        penalty, gradients = step(*map(tf.constant, batch))
    # float32 against float64, on values of order 1: 1e-5 is some eighty units in the last place.
    np.testing.assert_allclose(penalty, numpy_penalty(weights, *batch), rtol=1e-5, atol=1e-5)
    expected = numpy_gradients(weights, *batch)
    assert max(np.abs(value).max() for value in expected.values()) > 1.0
    for name, gradient in zip(expected, gradients, strict=True):
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-4, atol=1e-4, err_msg=name)


def test_scores_may_lack_the_last_axis_and_slopes_come_along() -> None:
    weights, batch = weights_of(), examples(5)
    variables = variables_of(weights)
    for column in (True, False):
        penalties, slopes = tm.gradient_penalty(
            critic_of(variables, column),
            *batch[:2],
            weight=3.0,
            target=0.5,
            alpha=batch[2],
            per_example=True,
            return_slopes=True,
        )
        expected = numpy_slopes(weights, *batch)
        np.testing.assert_allclose(slopes, expected, rtol=1e-5)
        np.testing.assert_allclose(penalties, 3.0 * (expected - 0.5) ** 2, rtol=1e-5, atol=1e-6)


def test_a_critic_that_gathers_from_its_input() -> None:
    def critic(x: Any) -> Any:  # the gradient of tf.gather over the rows is tf.IndexedSlices
        return tf.reduce_sum(tf.gather(x, [0, 1, 1]), 1)[:2] + tf.reduce_sum(tf.gather(x, [0, 1]))

    penalty, slopes = tm.gradient_penalty(
        critic, np.zeros([2, 4], "f"), np.ones([2, 4], "f"), alpha=[0, 1], return_slopes=True
    )
    np.testing.assert_allclose(slopes, [6.0, 6.0])
    np.testing.assert_allclose(penalty, 25.0)


def zero_slope(x: Any, w: Any) -> Any:
    """Every unit of the only layer is off: the slope is exactly 0."""
    return tf.nn.relu(x @ w - 100.0) @ tf.ones([3, 1])


@pytest.mark.parametrize("compiled", [None, True], ids=["plain", "compiled by XLA"])
def test_a_slope_of_zero_has_a_finite_gradient(compiled: bool | None) -> None:
    w = tf.Variable(tf.ones([2, 3]))

    @tf.function(autograph=False, jit_compile=compiled)
    def step() -> Any:
        with tf.GradientTape() as tape:
            penalty = tm.gradient_penalty(
                lambda x: zero_slope(x, w), tf.ones([4, 2]), tf.zeros([4, 2])
            )
        return penalty, tape.gradient(penalty, w)

    penalty, gradient = step()
    assert float(penalty) == 1.0
    np.testing.assert_array_equal(gradient, np.zeros([2, 3]))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_half_precision_inputs_give_a_float32_penalty(dtype: Any) -> None:
    # The square of 300 is above float16's largest number, 65504.
    real, fake = tf.zeros([2, 1], dtype), tf.ones([2, 1], dtype)
    penalty, slopes = tm.gradient_penalty(lambda x: x * 300.0, real, fake, return_slopes=True)
    assert penalty.dtype == slopes.dtype == tf.float32
    assert slopes.numpy().tolist() == [300.0, 300.0] and float(penalty) == 299.0**2


# Several towers.


def in_towers(strategy: Any, tower: Any, *args: Any) -> Any:
    """`tower` on every tower, in one traced step."""

    @tf.function(autograph=False)
    def step(*args: Any) -> Any:
        return strategy.run(tower, args=args)

    return step(*args)


@pytest.mark.parametrize("source", ["optimizer", "tape"])
@pytest.mark.parametrize("towers", [1, 2, 4])
def test_shares_of_towers_add_up_to_the_penalty_of_the_whole_batch(
    towers: int, source: str
) -> None:
    strategy = tm.tower_strategy(towers)
    weights, batch = weights_of(), examples(8)
    with strategy.scope():
        variables = variables_of(weights)
    optimizer = v1.train.AdamOptimizer()

    def tower(*batch: Any) -> Any:
        with tf.GradientTape() as tape:
            penalty = tm.gradient_penalty(critic_of(variables), *batch[:2], 10.0, alpha=batch[2])
        pairs = tm.tower_gradients(
            optimizer if source == "optimizer" else tape, penalty, list(variables.values())
        )
        return penalty, [grad for grad, _ in pairs]

    results = in_towers(strategy, tower, *tm.shard_batch(*batch))
    # The bounds of one device: see above.
    penalty = tm.mean_over_towers(results[0])
    np.testing.assert_allclose(penalty, numpy_penalty(weights, *batch), rtol=1e-5)
    expected = numpy_gradients(weights, *batch)
    for name, gradient in zip(expected, tm.sum_over_towers(results[1]), strict=True):
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-4, atol=1e-4, err_msg=name)


def test_a_tf1_critic_of_tower_variables(two_towers: Any) -> None:
    with two_towers.scope():
        variables = tm.TowerVariables()
        optimizer = v1.train.AdamOptimizer()

    def critic(x: Any, reuse: bool) -> Any:
        with v1.variable_scope("critic", reuse=reuse):
            x = v1.layers.dense(x, 4, tf.tanh, kernel_initializer=v1.ones_initializer())
            return v1.layers.dense(x, 1, kernel_initializer=v1.ones_initializer())

    @variables.tower
    def tower(real: Any, fake: Any, alpha: Any) -> Any:
        loss = tf.reduce_mean(critic(fake, False)) - tf.reduce_mean(critic(real, True))
        penalty = tm.gradient_penalty(lambda x: critic(x, True), real, fake, 10.0, alpha=alpha)
        return loss, penalty

    def replica(*batch: Any) -> Any:
        loss, penalty = tower(*batch)
        critics = variables.trainable("critic")
        optimizer.apply_gradients(tm.tower_gradients(optimizer, loss + penalty, critics))
        return penalty

    real, fake, alpha = examples(4)
    penalties = in_towers(two_towers, replica, *tm.shard_batch(real, fake, alpha))
    x = real + alpha[:, None] * (fake - real)
    # Both kernels are ones, so the input gradient is 4 · (1 - tanh²) in each of six directions.
    slopes = 4.0 * (1.0 - np.tanh(x.sum(1)) ** 2) * np.sqrt(6.0)
    expected = (10.0 * (slopes - 1.0) ** 2).reshape(2, 2).mean(1)
    np.testing.assert_allclose(tm.as_numpy(tm.each_tower(penalties)), expected, rtol=1e-4)
    assert [v.name for v in variables.trainable()] == [
        "critic/dense/kernel:0",
        "critic/dense/bias:0",
        "critic/dense_1/kernel:0",
        "critic/dense_1/bias:0",
    ]


def test_a_tower_without_examples_adds_nothing(two_towers: Any) -> None:
    with two_towers.scope():
        variables = variables_of(weights_of())
    optimizer = v1.train.AdamOptimizer()
    batch = examples(3)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.int32)])
    def step(rows: Any) -> Any:
        def tower() -> Any:
            # Tower 0 gets every row, tower 1 none.
            mine = [tf.constant(x)[: rows * (1 - tm.tower_index())] for x in batch]
            penalty = tm.gradient_penalty(critic_of(variables), *mine[:2], alpha=mine[2])
            pairs = tm.tower_gradients(optimizer, penalty, list(variables.values()))
            return penalty, [grad for grad, _ in pairs]

        return two_towers.run(tower)

    penalties, gradients = step(3)
    values = tm.as_numpy(tm.each_tower(penalties))
    assert values[0] > 0.0 and values[1] == 0.0
    for _, empty in (tm.each_tower(one) for one in gradients):
        np.testing.assert_array_equal(empty, np.zeros(empty.shape))


def test_towers_of_different_sizes_through_the_global_batch(two_towers: Any) -> None:
    weights, batch = weights_of(), examples(5)
    with two_towers.scope():
        variables = variables_of(weights)
    optimizer = v1.train.AdamOptimizer()

    def tower() -> Any:
        # Four rows and one: the mean of the towers' means would weigh the fifth row four times.
        rows = slice(4, 5) if tm.tower_index() else slice(0, 4)
        penalties = tm.gradient_penalty(
            critic_of(variables),
            *(x[rows] for x in batch[:2]),
            10.0,
            alpha=batch[2][rows],
            per_example=True,
        )
        share = tm.global_batch_loss(penalties)
        pairs = tm.tower_gradients(optimizer, share, list(variables.values()))
        return share, [grad for grad, _ in pairs]

    penalty, gradients = tm.sum_over_towers(in_towers(two_towers, tower))
    np.testing.assert_allclose(penalty, numpy_penalty(weights, *batch), rtol=1e-5)
    expected = numpy_gradients(weights, *batch)
    for name, gradient in zip(expected, gradients, strict=True):
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-4, atol=1e-4, err_msg=name)


# The random points.


def alphas(rows: int = 64, **options: Any) -> Any:
    """The alphas themselves: from 0 to 1 in one dimension, x² has the slope 2 · alpha."""
    real, fake = tf.zeros([rows, 1]), tf.ones([rows, 1])
    _, slopes = tm.gradient_penalty(
        lambda x: x[:, 0] ** 2, real, fake, return_slopes=True, **options
    )
    return slopes / 2.0


DRAWS = [
    pytest.param("eagerly", {}, None, id="eagerly"),
    pytest.param("function", {}, None, id="in a function"),
    pytest.param("function", {}, 7, id="in a function, with a global seed"),
    pytest.param("xla", {}, None, id="compiled by XLA"),
    pytest.param("xla", {}, 7, id="compiled by XLA, with a global seed"),
    pytest.param("nested", {}, None, id="in a nested function"),
    pytest.param("nested", {"seed": [1, 2]}, 7, id="in a nested function, all seeded"),
    pytest.param("function", {"seed": [1, 2]}, None, id="seeded, in a function"),
    pytest.param("eagerly", {"seed": [1, 2]}, None, id="seeded, eagerly"),
    pytest.param("xla", {"seed": [1, 2]}, None, id="seeded, compiled by XLA"),
]


@pytest.mark.parametrize(("where", "options", "global_seed"), DRAWS)
def test_every_tower_draws_its_own_points(
    where: str, options: dict[str, Any], global_seed: int | None
) -> None:
    strategy = tm.tower_strategy(4)
    tf.random.set_seed(global_seed)

    def draw() -> Any:
        return alphas(**options)

    if where in ("xla", "nested"):
        draw = tf.function(draw, autograph=False, jit_compile=True if where == "xla" else None)

    def step() -> Any:
        return strategy.run(lambda: draw())

    if where != "eagerly":
        step = tf.function(step, autograph=False)
    first, second = (tm.concat_towers(step()).numpy() for _ in range(2))
    assert first.shape == (256,)
    assert len(np.unique(first)) > 250  # two of 256 floats rarely agree by chance
    # Uniform from 0 to 1: the mean of 256 has a standard deviation of 0.018.
    assert 0.0 <= first.min() < 0.05 and 0.95 < first.max() <= 1.0
    assert abs(first.mean() - 0.5) < 0.1
    assert (first == second).all() == bool(options), "a seed repeats, no seed does not"


def test_a_seed_gives_the_same_points_everywhere_and_others_at_each_step(two_towers: Any) -> None:
    def draw(step: Any) -> Any:
        return alphas(seed=[17, step])

    traced = in_towers(two_towers, draw, tf.constant(3))
    eager = two_towers.run(draw, args=(3,))
    np.testing.assert_array_equal(tm.concat_towers(traced), tm.concat_towers(eager))
    np.testing.assert_array_equal(tm.first_tower(traced), draw(3))  # under no strategy: tower 0
    assert not (draw(4).numpy() == draw(3).numpy()).any()


def test_without_a_seed_the_draw_is_the_one_op_of_tf1_programs() -> None:
    with tf.Graph().as_default() as graph:
        batch = v1.placeholder(tf.float32, [None, 8, 8, 3])
        tm.gradient_penalty(lambda x: tf.reduce_sum(x, [1, 2, 3]), batch, batch + 1.0)
        (draw,) = [op for op in graph.get_operations() if "Random" in op.type]
        assert draw.type == "RandomUniform"
        assert draw.outputs[0].shape.as_list() == [None, 1, 1, 1]


# What is refused.

REAL = np.zeros([3, 2], "f")


def score(x: Any) -> Any:
    return tf.reduce_sum(x, 1)


REFUSED = [
    pytest.param(
        score, REAL, REAL[:1], {}, r"real has shape \(3, 2\) and fake \(1, 2\)", id="rows"
    ),
    pytest.param(score, REAL, REAL[:, :1], {}, "must be the same", id="columns"),
    pytest.param(score, REAL, REAL.astype("d"), {}, "fake is float64", id="dtypes"),
    pytest.param(score, REAL.astype(int), REAL.astype(int), {}, "floating dtype", id="integers"),
    pytest.param(score, np.float32(1), np.float32(1), {}, r"expected \[b, …\]", id="scalars"),
    pytest.param(
        lambda x: tf.reduce_mean(score(x)),
        REAL,
        REAL,
        {},
        "Do not average over the batch",
        id="a mean over the batch",
    ),
    pytest.param(
        lambda x: tf.zeros([3, 4, 4, 1]), REAL, REAL, {}, r"\[3\] or \[3, 1\]", id="patches"
    ),
    pytest.param(lambda x: (score(x), x), REAL, REAL, {}, r"critic\(x\)\[0\]", id="two outputs"),
    pytest.param(lambda x: None, REAL, REAL, {}, "returned a NoneType", id="no output"),
    pytest.param(lambda x: tf.ones([3]), REAL, REAL, {}, "do not depend on", id="no gradient"),
    pytest.param(score, REAL, REAL, {"alpha": [0.5]}, r"one number for each", id="one alpha"),
    pytest.param(score, REAL, REAL, {"alpha": 0.5}, r"one number for each", id="a scalar alpha"),
    pytest.param(
        score, REAL, REAL, {"alpha": [0, 0, 0], "seed": [1, 2]}, "both alpha= and seed=", id="both"
    ),
    pytest.param(score, REAL, REAL, {"seed": 3}, r"\[17, step\]", id="one integer as seed"),
    pytest.param(score, REAL, REAL, {"seed": [0.5, 1.0]}, "two integers", id="floats as seed"),
]


@pytest.mark.parametrize(("critic", "real", "fake", "options", "message"), REFUSED)
def test_refused(critic: Any, real: Any, fake: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tm.gradient_penalty(critic, real, fake, **options)


@pytest.mark.parametrize("where", ["function", "session"])
def test_rows_that_differ_only_when_the_step_runs_are_refused(where: str) -> None:
    # [1, 2] would broadcast against [3, 2] and give a wrong penalty.
    if where == "function":
        signature = [tf.TensorSpec([None, 2], tf.float32)] * 2
        step = tf.function(
            lambda real, fake: tm.gradient_penalty(score, real, fake), input_signature=signature
        )
        step(REAL, REAL)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="(?s)fake_minus_real.*same size and shape"
        ):
            step(REAL, REAL[:1])
        return
    with tf.Graph().as_default(), v1.Session() as session:
        real, fake = (v1.placeholder(tf.float32, [None, 2]) for _ in range(2))
        penalty = tm.gradient_penalty(score, real, fake)
        session.run(penalty, {real: REAL, fake: REAL})
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="(?s)fake_minus_real.*same size and shape"
        ):
            session.run(penalty, {real: REAL, fake: REAL[:1]})


def test_a_step_that_does_not_read_the_penalty_does_not_need_its_inputs() -> None:
    # A generator's step is not fed real examples; in TF1 the penalty is pruned from it.
    @tf.function(autograph=False)
    def generator_step(fake: Any) -> Any:
        tm.gradient_penalty(score, tm.unfed(tf.TensorSpec([None, 2])), fake)
        return tf.reduce_sum(fake)

    assert float(generator_step(tf.ones([3, 2]))) == 6.0


# What is reported.


@pytest.mark.parametrize("towers", [1, 2, 4])
def test_the_critic_loss_is_reported_once_and_seen_on_each_tower(towers: int) -> None:
    strategy = tm.tower_strategy(towers)
    weights, batch = weights_of(), examples(8)
    with strategy.scope():
        variables = variables_of(weights)

    def tower(real: Any, fake: Any, alpha: Any) -> Any:
        critic = critic_of(variables)
        distance = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real))
        penalty, slopes = tm.gradient_penalty(
            critic, real, fake, 10.0, alpha=alpha, return_slopes=True
        )
        return {"loss": distance + penalty, "slope": tf.reduce_mean(slopes)}

    results = in_towers(strategy, tower, *tm.shard_batch(*batch))
    whole = tm.as_numpy(tower(*map(tf.constant, batch)))
    reported = tm.as_numpy(tm.mean_over_towers(results))
    watched = tm.as_numpy(tm.each_tower(results))
    parts = [np.split(x, towers) for x in batch]
    for name in ("loss", "slope"):
        # Means of float32 numbers taken in another order.
        np.testing.assert_allclose(reported[name], whole[name], rtol=1e-5)
        alone = [tower(*map(tf.constant, part))[name] for part in zip(*parts, strict=True)]
        np.testing.assert_allclose(watched[name], alone, rtol=1e-5)


@pytest.mark.parametrize("where", ["eagerly", "in a function", "in the scope"])
def test_each_tower_gives_lists_in_the_nest(two_towers: Any, where: str) -> None:
    def run(x: Any) -> Any:
        results = two_towers.run(lambda x: {"x": (x, None), "s": [x[0]]}, args=(x,))
        return tm.each_tower(results), tm.each_tower(tf.constant(5.0))

    (x,) = tm.shard_batch([1.0, 2.0, 3.0, 4.0])
    if where == "eagerly":
        values, same = run(x)
    elif where == "in a function":
        values, same = tf.function(run, autograph=False)(x)
    else:
        with two_towers.scope():
            values, same = run(x)
    values = tm.as_numpy(values)
    assert [part.tolist() for part in values["x"][0]] == [[1.0, 2.0], [3.0, 4.0]]
    assert values["x"][1] is None
    assert values["s"] == [[1.0, 3.0]]
    assert tm.as_numpy(same) == [5.0, 5.0]


def test_each_tower_is_of_all_towers(two_towers: Any) -> None:
    with pytest.raises(RuntimeError, match="inside of one tower"):
        two_towers.run(lambda: tm.each_tower(1.0))


# Clipped weights.

PLACES = ["a step's replicas", "eager replicas", "a step", "eagerly", "the scope"]


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("limit", [0.01, tf.float32], ids=["a float limit", "a tensor as limit"])
def test_clip_weights_clips_every_copy(two_towers: Any, where: str, limit: Any) -> None:
    with two_towers.scope():
        mirrored = tf.Variable([3.0, -3.0, 0.005])
    plain = tf.Variable([-1.0, 0.002])

    def clip() -> None:
        tm.clip_weights([mirrored, plain], tf.constant(0.01) if limit is tf.float32 else limit)

    if where == "a step's replicas":
        in_towers(two_towers, clip)
    elif where == "eager replicas":
        two_towers.run(clip)
    elif where == "a step":
        tf.function(clip, autograph=False)()
    elif where == "eagerly":
        clip()
    else:
        with two_towers.scope():
            clip()
    for copy in mirrored.values:
        np.testing.assert_array_equal(copy, np.array([0.01, -0.01, 0.005], "f"))
    np.testing.assert_array_equal(plain, np.array([-0.01, 0.002], "f"))


def test_clip_weights_after_the_update_of_the_same_step(two_towers: Any) -> None:
    with two_towers.scope():
        w = tf.Variable([0.0, 0.0])
        optimizer = v1.train.GradientDescentOptimizer(1.0)

    def tower(x: Any) -> None:
        optimizer.apply_gradients(tm.tower_gradients(optimizer, tf.reduce_sum(w * x), [w]))
        tm.clip_weights([w], 0.5)

    in_towers(two_towers, tower, *tm.shard_batch(np.array([1.0, -0.25, 3.0, -0.25], "f")))
    for copy in w.values:
        np.testing.assert_array_equal(copy, [-0.5, 0.25])


def test_clip_weights_is_an_operation_in_a_tf1_graph() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            w = v1.get_variable("w", initializer=[2.0, -0.5])
        one = v1.get_variable("one", initializer=2.0)
        in_replicas = strategy.group(strategy.run(lambda: tm.clip_weights([w], 1.0)))
        outside = tm.clip_weights([one], 1.0)
        assert isinstance(outside, tf.Operation)
        session.run(v1.global_variables_initializer())
        session.run([in_replicas, outside])
        for copy in [*w.values, one]:
            assert np.abs(session.run(copy)).max() == 1.0


def test_clip_weights_refuses_what_it_cannot_mean() -> None:
    w = tf.Variable([1.0], name="w")
    with pytest.raises(ValueError, match="no variable"):
        tm.clip_weights([], 0.01)
    with pytest.raises(ValueError, match="count:0, which is int64"):
        tm.clip_weights([w, tf.Variable(1, dtype=tf.int64, name="count")], 0.01)
    for limit in (0.0, -0.01):
        with pytest.raises(ValueError, match=f"limit is {limit}"):
            tm.clip_weights([w], limit)
    assert w.numpy().tolist() == [1.0]


def test_a_mean_over_a_batch_of_unknown_size_is_refused() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def penalty(x: Any) -> Any:
        return tm.gradient_penalty(lambda z: tf.reduce_mean(z, [0, 1])[tf.newaxis], x, x + 1.0)

    with pytest.raises(ValueError, match=r"shape \(1,\); expected one an example"):
        penalty(REAL)
