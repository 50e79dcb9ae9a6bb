"""Shares of a global loss sum to the single-device loss, and are never divided twice."""

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import towermigrate.helpers as tm
from towermigrate.helpers import _loss_parts

v1 = tf.compat.v1

# Float32 sums in another order; losses and gradients here are at most about 1.
TOLERANCE = 1e-6


def in_towers(strategy: Any, function: Callable[[int], Any], eager: bool = False) -> list[Any]:
    """`function(index)` in each tower, traced or eagerly: one NumPy result for each tower."""

    def step() -> Any:
        return strategy.run(lambda: function(tm.tower_index()))

    results = step() if eager else tf.function(step, autograph=False)()
    return [np.array(one) for one in strategy.experimental_local_results(results)]


@pytest.fixture(params=[False, True], ids=["traced", "eager"])
def eager(request: Any) -> bool:
    return bool(request.param)


class RaggedModel:
    """An embedding, one head of masked attention and a layer: float32, deterministic."""

    VOCABULARY, WIDTH = 11, 6

    def __init__(self, strategy: Any) -> None:
        random = np.random.RandomState(7)
        shapes = [(self.VOCABULARY, self.WIDTH), *[(self.WIDTH, self.WIDTH)] * 3]
        shapes.append((self.WIDTH, self.VOCABULARY))
        with strategy.scope():
            self.variables = [
                tf.Variable(random.normal(0, 0.4, shape).astype(np.float32)) for shape in shapes
            ]

    def losses(self, tokens: Any, weights: Any) -> Any:
        """The cross entropy of each token, `[b, t]`; what is padding changes nothing elsewhere."""
        embedding, query, key, value, output = self.variables
        x = tf.gather(embedding, tokens)
        scores = tf.matmul(x @ query, x @ key, transpose_b=True) - 1e9 * (
            1.0 - weights[:, tf.newaxis, :]
        )
        x = x + tf.nn.softmax(scores) @ (x @ value)
        targets = (tokens * 3 + 1) % self.VOCABULARY
        return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, tf.tanh(x) @ output)


def ragged_batches(count: int, replicas: int) -> Iterator[list[tuple[Any, Any]]]:
    """`count` steps; in each, for every replica (tokens, weights) of its own shape, some empty."""
    random = np.random.RandomState(replicas)
    for step in range(count):
        batches = []
        for replica in range(replicas):
            rows, length = random.randint(1, 5), random.randint(1, 9)
            if step % 2 and replica == step // 2 % replicas:
                rows = 0  # every second step, one replica has no example at all
            # Some rows are all padding, but one replica has tokens in every row.
            shortest = 1 if replica == (step // 2 + 1) % replicas else 0
            lengths = random.randint(shortest, length + 1, rows)
            weights = (np.arange(length) < lengths[:, np.newaxis]).astype(np.float32)
            tokens = random.randint(0, RaggedModel.VOCABULARY, [rows, length])
            batches.append((tokens.astype(np.int32), weights))
        yield batches


def one_batch(batches: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """All replicas' examples in one padded batch, as one device would get them."""
    length = max(tokens.shape[1] for tokens, _ in batches)

    def padded(array: Any) -> Any:
        return np.pad(array, [(0, 0), (0, length - array.shape[1])])

    tokens, weights = zip(*batches, strict=True)
    return np.concatenate(list(map(padded, tokens))), np.concatenate(list(map(padded, weights)))


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_50_ragged_batches_have_the_loss_and_gradients_of_one_device(replicas: int) -> None:
    strategy = tm.tower_strategy(replicas)
    model = RaggedModel(strategy)
    alone = RaggedModel(tf.distribute.get_strategy())
    spec = [tf.TensorSpec([None, None], tf.int32)] * replicas
    spec_weights = [tf.TensorSpec([None, None], tf.float32)] * replicas

    @tf.function(autograph=False, input_signature=[spec, spec_weights])
    def over_replicas(tokens: Any, weights: Any) -> Any:
        def replica() -> Any:
            mine = tokens[tm.tower_index()], weights[tm.tower_index()]
            with tf.GradientTape() as tape:
                loss = tm.token_normalized_loss(model.losses(*mine), mine[1])
            pairs = tm.tower_gradients(tape, loss, model.variables)
            return loss, [tf.convert_to_tensor(grad) for grad, _ in pairs]

        return tm.sum_over_towers(strategy.run(replica), strategy)

    @tf.function(autograph=False, input_signature=[spec[0], spec_weights[0]])
    def on_one_device(tokens: Any, weights: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = alone.losses(tokens, weights) * weights
            loss = tf.reduce_sum(losses) / tf.reduce_sum(weights)
        return loss, [tf.convert_to_tensor(g) for g in tape.gradient(loss, alone.variables)]

    empty = 0
    for batches in ragged_batches(50, replicas):
        empty += any(len(tokens) == 0 for tokens, _ in batches)
        whole = one_batch(batches)
        loss, grads = over_replicas(*map(list, zip(*batches, strict=True)))
        expected_loss, expected = on_one_device(*whole)
        np.testing.assert_allclose(loss, expected_loss, rtol=0, atol=TOLERANCE)
        for grad, one in zip(grads, expected, strict=True):
            np.testing.assert_allclose(grad, one, rtol=0, atol=TOLERANCE)
    assert empty == 25


def test_padding_that_is_not_finite_reaches_neither_loss_nor_gradient(
    two_towers: Any, eager: bool
) -> None:
    with two_towers.scope():
        w = tf.Variable(2.0)

    def replica(index: int) -> Any:
        with tf.GradientTape() as tape:
            row = tf.concat([w * [1.0, 3.0], [np.nan, np.inf]], 0)
            weights = [True, index == 0, False, False]
            loss = tm.token_normalized_loss(row, weights)
        return tf.stack([loss, tm.tower_gradients(tape, loss, [w])[0][0]])

    # (2·1 + 2·3) on the first replica and 2·1 on the second, of three tokens; by w: half of that.
    results = in_towers(two_towers, replica, eager)
    np.testing.assert_allclose(results, [[8 / 3, 4 / 3], [2 / 3, 1 / 3]], rtol=1e-6)


def test_no_token_on_any_replica_is_a_loss_of_zero(two_towers: Any, eager: bool) -> None:
    with two_towers.scope():
        w = tf.Variable(2.0)

    def replica(index: int) -> Any:
        with tf.GradientTape() as tape:
            loss = tm.token_normalized_loss(w * tf.ones([index, 3]), tf.zeros([index, 3]))
        return tf.stack([loss, tm.tower_gradients(tape, loss, [w])[0][0]])

    np.testing.assert_array_equal(in_towers(two_towers, replica, eager), np.zeros([2, 2]))


def test_a_replica_without_examples_gives_gradients_of_zero(two_towers: Any, eager: bool) -> None:
    with two_towers.scope():
        w = tf.Variable(2.0)

    def replica(index: int) -> Any:
        with tf.GradientTape() as tape:
            examples = tf.constant([[1.0], [3.0], [5.0]])[: 3 * index]
            loss = tm.global_batch_loss((w * examples)[:, 0])
        return tf.stack([loss, tm.tower_gradients(tape, loss, [w])[0][0]])

    results = in_towers(two_towers, replica, eager)
    np.testing.assert_array_equal(results, [[0.0, 0.0], [6.0, 3.0]])


@pytest.mark.parametrize("known", [False, True], ids=["tokens added up", "tokens given"])
def test_weights_that_a_variable_makes_get_no_gradient_through_the_denominator(known: bool) -> None:
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tokens = 2.0 * w if known else None
        loss = tm.token_normalized_loss(tf.constant([3.0, 5.0]), w * [1.0, 1.0], tokens)
        loss += tm.global_batch_loss(tf.constant([1.0, 2.0]), None, w)
    assert float(tape.gradient(loss, w)) == 2.0  # 8 / 4, the denominator held


# per_example and sample_weight of the two towers; the mean that one device would give.
BATCHES = [
    pytest.param([[2.0, 3.0], [4.0, 5.0]], None, 3.5, id="one loss for each example"),
    pytest.param([[2.0], [4.0, 5.0, 1.0]], None, 3.0, id="towers of different sizes"),
    pytest.param([[], [4.0, 5.0]], None, 4.5, id="an empty tower"),
    pytest.param([[], []], None, 0.0, id="an empty global batch"),
    pytest.param(
        [[2.0, 3.0], [4.0, 5.0]], [[1.0, 0.0], [2.0, 1.0]], 15 / 4, id="weights of examples"
    ),
    pytest.param(
        [[2.0, np.nan], [4.0]], [[1.0, 0.0], [1.0]], 2.0, id="a weight of 0 takes out a NaN"
    ),
    pytest.param(
        [[[1.0, 3.0]], [[4.0, 6.0], [0.0, 2.0]]], None, 8 / 3, id="two losses for each example"
    ),
    pytest.param(
        [[[1.0, 3.0]], [[4.0, 6.0], [0.0, 2.0]]],
        [[2.0], [1.0, 0.0]],
        3.0,
        id="weights of examples with two losses each",
    ),
    pytest.param(
        [[[1.0, 3.0], [2.0, 2.0]], [[4.0, 6.0]]],
        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]]],
        (0.5 + 1.0 + 3.0) / 3,
        id="weights of the single losses",
    ),
    pytest.param(
        [[2.0, 3.0], [4.0, 5.0]],
        [[[1.0], [0.0]], [[2.0], [1.0]]],
        15 / 4,
        id="weights in a column, as Keras takes them",
    ),
]


@pytest.mark.parametrize(("per_example", "sample_weight", "expected"), BATCHES)
@pytest.mark.parametrize("known", [False, True], ids=["size added up", "size given"])
def test_global_batch_loss(
    two_towers: Any, per_example: Any, sample_weight: Any, expected: float, known: bool
) -> None:
    size = sum(map(len, per_example))

    def replica(index: int) -> Any:
        weights = None if sample_weight is None else tf.constant(sample_weight[index])
        losses = tf.constant(per_example[index], tf.float32)
        return tm.global_batch_loss(losses, weights, size if known else None)

    if known and not size:
        with pytest.raises(ValueError, match="global_batch_size is 0"):
            in_towers(two_towers, replica)
        return
    np.testing.assert_allclose(sum(in_towers(two_towers, replica)), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_half_precision_is_summed_in_float32(dtype: Any) -> None:
    loss = tm.global_batch_loss(tf.ones([5000], dtype))
    assert loss.dtype == tf.float32
    assert float(loss) == 1.0


def test_unknown_ranks_are_averaged_per_example() -> None:
    @tf.function(autograph=False, input_signature=[tf.TensorSpec(None, tf.float32)])
    def loss(per_example: Any) -> Any:
        return tm.global_batch_loss(per_example)

    assert float(loss(tf.constant([[1.0, 3.0], [4.0, 6.0]]))) == 3.5
    assert float(loss(tf.constant([1.0, 3.0]))) == 2.0
    assert float(loss(tf.zeros([0, 3]))) == 0.0


def test_a_dynamic_size_may_be_a_tensor(two_towers: Any) -> None:
    def replica(index: int) -> Any:
        return tm.global_batch_loss(tf.constant([2.0 + 2 * index, 3.0]), None, tf.constant(4))

    assert sum(in_towers(two_towers, replica)) == 3.0


def test_regularization_counts_once(two_towers: Any, eager: bool) -> None:
    with two_towers.scope():
        w = tf.Variable(3.0)

    def replica(index: int) -> Any:
        del index
        with tf.GradientTape() as tape:
            loss = tm.regularization_loss([w * w, 2.0 * w])
        return tf.stack([loss, tm.tower_gradients(tape, loss, [w])[0][0]])

    np.testing.assert_array_equal(sum(in_towers(two_towers, replica, eager)), [15.0, 8.0])


def test_no_regularizer_is_a_loss_of_zero(two_towers: Any, eager: bool) -> None:
    assert in_towers(two_towers, lambda _: tm.regularization_loss([]), eager) == [0.0, 0.0]


# A loss that is compiled on its own cannot meet the other replicas; with its denominator given, it
# need not.
@pytest.mark.parametrize(
    ("loss", "names"),
    [
        pytest.param(
            lambda x, size: tm.global_batch_loss(x, None, size),
            "global_batch_size=",
            id="global_batch_loss",
        ),
        pytest.param(
            lambda x, size: tm.token_normalized_loss(x, tf.ones_like(x), size),
            "global_tokens=",
            id="token_normalized_loss",
        ),
    ],
)
def test_under_xla(two_towers: Any, loss: Any, names: str) -> None:
    with two_towers.scope():
        w = tf.Variable(2.0)

    @tf.function(autograph=False)
    def step(size: Any) -> Any:
        @tf.function(jit_compile=True, autograph=False)
        def compiled(size: Any) -> Any:
            with tf.GradientTape() as tape:
                value = loss(w * [1.0, 3.0], size)
            return value, tm.tower_gradients(tape, value, [w])[0][0]

        # In a frame of its own: given to run itself, it would be compiled around both towers.
        return two_towers.run(lambda: compiled(size))

    values = tm.as_numpy(tm.sum_over_towers(step(tf.constant(4))))
    np.testing.assert_array_equal(values, [4.0, 2.0])
    with pytest.raises(ValueError, match=f"{names}.* tf.function of their own"):
        step(None)


def test_shares_work_in_a_tf1_graph_of_towers(two_towers: Any) -> None:
    def replica() -> Any:
        index = tm.tower_index()
        return tm.token_normalized_loss(
            tf.constant([[2.0, 3.0], [4.0, 5.0]][index]),
            tf.constant([[1.0, 1.0], [1.0, 0.0]][index]),
        )

    config = v1.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        with two_towers.scope():
            shares = two_towers.experimental_local_results(two_towers.run(replica))
        np.testing.assert_allclose(session.run(shares), [5 / 3, 4 / 3], rtol=1e-6)


def test_shares_work_in_a_tf1_graph() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=2.0, use_resource=True)
        loss = tm.global_batch_loss(w * [1.0, 3.0]) + tm.regularization_loss([w])
        pairs = tm.tower_gradients(v1.train.GradientDescentOptimizer(1.0), loss, [w])
        session.run(v1.global_variables_initializer())
        assert session.run([loss, pairs[0][0]]) == [6.0, 3.0]


# --- errors ---------------------------------------------------------------------------------------

ERRORS = [
    pytest.param(
        lambda: tm.global_batch_loss(tf.constant(1.0)),
        r"global_batch_loss got a scalar.*SUM_OVER_BATCH_SIZE \(write reduction='none'\)",
        id="a scalar: reduced before",
    ),
    pytest.param(
        lambda: tm.global_batch_loss([1.0, 2.0], None, 0),
        "global_batch_size is 0; expected at least one",
        id="a global batch of no example",
    ),
    pytest.param(
        lambda: tm.global_batch_loss([1.0, 2.0], None, 1),
        "global_batch_size is 1, but this replica alone has 2",
        id="a global batch smaller than the replica's",
    ),
    pytest.param(
        lambda: tm.global_batch_loss([1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]]),
        r"sample_weight has the shape \(2, 2\) and the losses \(2,\)",
        id="weights with more axes than losses",
    ),
    pytest.param(
        lambda: tm.token_normalized_loss([[1.0, 2.0]], [1.0]),
        r"losses of shape \(1, 2\) and weights of shape \(1,\)",
        id="token weights of another shape",
    ),
    pytest.param(
        lambda: tm.regularization_loss([tf.ones([2])]),
        r"a loss of shape \(2,\); expected scalars",
        id="a regularisation that is no scalar",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_token_weights_are_not_broadcast_at_run_time_either() -> None:
    spec = tf.TensorSpec([None, None], tf.float32)
    loss = tf.function(tm.token_normalized_loss, autograph=False, input_signature=[spec, spec])
    assert float(loss(tf.ones([2, 3]), tf.ones([2, 3]))) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="one weight for each loss"):
        loss(tf.ones([2, 3]), tf.ones([2, 1]))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda: tm.global_batch_loss([1.0]), id="global_batch_loss"),
        pytest.param(lambda: tm.token_normalized_loss([1.0], [1]), id="token_normalized_loss"),
        pytest.param(lambda: tm.regularization_loss([1.0]), id="regularization_loss"),
    ],
)
def test_outside_of_a_replica_is_an_error(two_towers: Any, call: Any) -> None:
    with two_towers.scope(), pytest.raises(ValueError, match="was called outside of a replica"):
        call()


# --- Keras losses ---------------------------------------------------------------------------------

# NumPy, not tensors: TensorFlow must not start before the CPU is split.
B = np.array([1.0, 0.0], np.float32)
B1 = np.array([[0.2], [0.9]], np.float32)
BC = np.array([[0.2, 0.8]] * 2, np.float32)
KERAS = [pytest.param(keras, id="Keras 3"), pytest.param(tf_keras, id="tf_keras")]


@pytest.mark.parametrize("library", KERAS)
@pytest.mark.parametrize("reduction", ["default", "sum_over_batch_size", "sum"])
def test_a_keras_loss_that_reduces_is_an_error(library: Any, reduction: str) -> None:
    kwargs = {} if reduction == "default" else {"reduction": reduction}
    loss = library.losses.MeanSquaredError(**kwargs)
    with pytest.raises(ValueError, match="Make it with reduction='none'"):
        tm.per_example_loss(loss, B1, B1)


@pytest.mark.parametrize("library", KERAS)
@pytest.mark.parametrize(
    ("name", "labels", "predictions", "message"),
    [
        pytest.param(
            "MeanSquaredError", B, B, r"only the batch axis: write labels\[:, tf", id="[b], [b]"
        ),
        pytest.param(
            "MeanSquaredError", B, B1, r"broadcasts to \[b, b\].*write labels\[:", id="[b], [b, 1]"
        ),
        pytest.param(
            "MeanSquaredError", B1, B, r"broadcasts to.*write predictions\[:", id="[b, 1], [b]"
        ),
        pytest.param(
            "CategoricalCrossentropy", B, BC, "labels lack an axis.*tf.one_hot", id="[b], [b, c]"
        ),
        pytest.param(
            "SparseCategoricalCrossentropy", B, B1, "labels lack the last axis", id="one class"
        ),
    ],
)
def test_axes_that_would_reduce_the_batch_are_errors(
    library: Any, name: str, labels: Any, predictions: Any, message: str
) -> None:
    loss = getattr(library.losses, name)(reduction="none")
    with pytest.raises(ValueError, match=message):
        tm.per_example_loss(loss, labels, predictions)


@pytest.mark.parametrize("library", KERAS)
@pytest.mark.parametrize(
    ("name", "labels", "predictions"),
    [
        pytest.param("MeanSquaredError", B1, B1 + 0.5, id="[b, 1]"),
        pytest.param("BinaryCrossentropy", np.round(B1), B1, id="[b, 1] of a probability"),
        pytest.param("SparseCategoricalCrossentropy", np.array([1, 0]), BC, id="sparse [b]"),
        pytest.param("SparseCategoricalCrossentropy", np.array([[1], [0]]), BC, id="sparse [b, 1]"),
        pytest.param("CategoricalCrossentropy", np.eye(2, dtype=np.float32), BC, id="one-hot"),
        pytest.param(
            "MeanSquaredError",
            np.ones([2, 3, 4], np.float32),
            np.zeros([2, 3, 4], np.float32),
            id="[b, t, d]",
        ),
    ],
)
def test_a_keras_loss_of_single_examples_passes(
    library: Any, name: str, labels: Any, predictions: Any
) -> None:
    loss = getattr(library.losses, name)(reduction="none")
    losses = tm.per_example_loss(loss, labels, predictions)
    assert losses.shape[0] == 2
    np.testing.assert_allclose(losses, loss(tf.constant(labels), predictions), rtol=1e-6)
    # What Keras' own reduction gives on one device.
    whole = getattr(library.losses, name)(reduction="sum_over_batch_size")
    expected = whole(tf.constant(labels), predictions)
    np.testing.assert_allclose(tm.global_batch_loss(losses), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "labels", "predictions", "message"),
    [
        pytest.param(
            keras.losses.mean_squared_error, B, B, "is a scalar.*labels.:, tf", id="reduces [b]"
        ),
        pytest.param(
            lambda y, p: tf.reduce_mean((y - p) ** 2), B1, B1, "is a scalar", id="reduces [b, 1]"
        ),
        pytest.param(lambda y, p: (y - p) ** 2, B, B1, "broadcasts", id="[b] against [b, 1]"),
        pytest.param(
            lambda y, p: tf.concat([y, p], 0), B, B, "one loss for each example", id="4 for 2"
        ),
    ],
)
def test_a_function_that_loses_the_examples_is_an_error(
    function: Any, labels: Any, predictions: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tm.per_example_loss(function, labels, predictions)


def test_a_function_and_weights() -> None:
    losses = tm.per_example_loss(lambda y, p: (y - p) ** 2, B, B + 2.0, sample_weight=[0.5, 0.0])
    np.testing.assert_array_equal(losses, [2.0, 0.0])


# --- the double division --------------------------------------------------------------------------


def share(w: Any) -> Any:
    """One of two replicas' share, each with the same two examples: together the loss is 2.5 · w."""
    return tm.global_batch_loss(w * [2.0, 3.0])


def known_share(w: Any) -> Any:
    """The same, with no all-reduce."""
    return tm.global_batch_loss(w * [2.0, 3.0], None, 4)


def gradient(strategy: Any, loss: Any, eager: bool, source: str = "tape", **kwargs: Any) -> float:
    """The sum over the towers of the gradient by w = 2 of `loss(w)`."""
    with strategy.scope():
        w = tf.Variable(2.0)

    def replica(index: int) -> Any:
        del index
        if source == "optimizer":
            opt = v1.train.GradientDescentOptimizer(1.0)
            value = (lambda: loss(w)) if tf.executing_eagerly() else loss(w)
            return tm.tower_gradients(opt, value, [w], **kwargs)[0][0]
        with tf.GradientTape(persistent=source == "persistent tape") as tape:
            value = loss(w)
        return tm.tower_gradients(tape, value, [w], **kwargs)[0][0]

    return float(sum(in_towers(strategy, replica, eager)))


# Two replicas with the same examples: the gradient that the loss of all has.
SHARES = [
    pytest.param(lambda w: share(w), 2.5, id="a share"),
    pytest.param(lambda w: share(w) + tm.regularization_loss([w * w]), 6.5, id="a sum of shares"),
    pytest.param(lambda w: 3.0 * share(w) - share(w), 5.0, id="multiples of a share"),
    pytest.param(
        lambda w: tf.add_n([share(w), tf.reduce_sum(tf.stack([share(w), -share(w)]))]),
        2.5,
        id="add_n, stack, reduce_sum, negative",
    ),
    pytest.param(
        lambda w: tf.cast(tf.identity(share(w)), tf.float64) / 10.0, 0.25, id="cast and quotient"
    ),
    pytest.param(lambda w: tf.nn.scale_regularization_loss(w) + share(w), 3.5, id="with TF's own"),
    pytest.param(
        lambda w: share(w) + 2.0 * tf.constant(3.0) + tf.stop_gradient(w), 2.5, id="with constants"
    ),
]
TRACED_ONLY = {"with constants"}


@pytest.mark.parametrize("source", ["tape", "persistent tape", "optimizer"])
@pytest.mark.parametrize(("loss", "expected"), SHARES)
def test_shares_are_not_divided_again(
    two_towers: Any, loss: Any, expected: float, source: str, eager: bool, request: Any
) -> None:
    stated = None
    if eager and any(name in request.node.name for name in TRACED_ONLY):
        # Eagerly a loss is known by its value: what is no marked share must be vouched for.
        with pytest.raises(ValueError, match="and something else"):
            gradient(two_towers, loss, eager, source)
        stated = True
    total = gradient(two_towers, loss, eager, source, share=stated)
    np.testing.assert_allclose(total, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(
            lambda w: tf.function(lambda: (w, 4.0 * known_share(w)), autograph=False)()[1],
            id="made in a function",
        ),
        pytest.param(
            lambda w: (lambda made: tf.function(lambda: 4.0 * made, autograph=False)())(share(w)),
            id="captured by a function",
        ),
        pytest.param(
            lambda w: tf.function(lambda made: (w, 4.0 * made), autograph=False)(share(w))[1],
            id="given to a function",
        ),
        pytest.param(
            lambda w: tf.reduce_mean([tf.where(w > 0.0, share(w), 0.0)] * 2) * 4.0, id="chosen"
        ),
        pytest.param(lambda w: sum([share(w) / 600.0] * 2400), id="a long sum"),
        pytest.param(lambda w: 8.0 * (0.5 * share(w)), id="a weight that is no division"),
        pytest.param(lambda w: share(w) * tf.Variable(lambda: 4.0), id="weighted by a variable"),
        pytest.param(
            lambda w: 4.0 * tf.nn.compute_average_loss(w * [2.0, 3.0], global_batch_size=4),
            id="TensorFlow's own share",
        ),
    ],
)
def test_a_graph_is_read_back_to_the_shares(two_towers: Any, loss: Any) -> None:
    if "Variable" in loss.__code__.co_names:
        with two_towers.scope():
            weight = tf.Variable(4.0)
        loss = lambda w: share(w) * weight  # noqa: E731
    np.testing.assert_allclose(gradient(two_towers, loss, False), 10.0, rtol=1e-5)


def test_a_captured_share_is_read_back_out_of_a_function() -> None:
    found = []

    @tf.function(autograph=False)
    def outer() -> None:
        made = share(tf.constant(2.0))

        @tf.function(autograph=False)
        def inner() -> None:
            found.append(_loss_parts.parts_of(3.0 * made))

        inner()

    outer()
    assert found == [_loss_parts.Parts(shares=("global_batch_loss",))]


# What a share is added to or passes, and what the error says: traced, and eagerly.
NOT_SHARES = [
    pytest.param(
        lambda w: share(w) / 2.0,
        "divided by 2 in .*trains at 1/2.*share=True",
        "times 1/2.*trains at 1/2.*share=True",
        id="divided by the number of replicas",
    ),
    pytest.param(
        lambda w: (share(w) + share(w)) / tf.cast(tf.constant(2), tf.float32),
        "divided by 2 in ",
        "times 1/2",
        id="a sum divided by it",
    ),
    pytest.param(
        lambda w: share(w) + tf.reduce_mean(w * w),
        r"and something else \(.*(Mean|mul).*\).*cannot be both",
        r"and something else \(4 of its 6.5\).*cannot be both",
        id="added to a tower's own mean",
    ),
    pytest.param(
        lambda w: tf.square(share(w)),
        "and something else .*Square",
        "and something else",
        id="squared",
    ),
    pytest.param(
        lambda w: share(w) * share(w), "and something else .*mul", "and something", id="multiplied"
    ),
    pytest.param(lambda w: 1.0 / share(w), "and something else", "and something", id="inverted"),
    pytest.param(
        lambda w: tf.square(share(w)) + share(w), "and something else", "and something", id="both"
    ),
]


@pytest.mark.parametrize(("loss", "traced", "eagerly"), NOT_SHARES)
@pytest.mark.parametrize("source", ["tape", "optimizer"])
def test_what_cannot_be_a_share_raises(
    two_towers: Any, loss: Any, traced: str, eagerly: str, source: str, eager: bool
) -> None:
    message = "The loss holds what global_batch_loss returned.*" + (eagerly if eager else traced)
    with pytest.raises(ValueError, match=message):
        gradient(two_towers, loss, eager, source)
    # Who says that it is meant gets the gradient undivided.
    assert np.isfinite(gradient(two_towers, loss, eager, source, share=True))


def test_a_hidden_share_is_seen_in_the_backward_pass(two_towers: Any) -> None:
    def loss(w: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x + share(w)), (0, 0.0))[1]

    def loop(w: Any) -> Any:
        return tf.while_loop(
            lambda i, _: i < 2, lambda i, x: (i + 1, x + known_share(w)), (0, 0.0)
        )[1]

    with pytest.raises(ValueError, match="cannot meet inside of a tf.function"):
        gradient(two_towers, loss, False)
    with pytest.raises(ValueError, match="Make the share outside of .*from while"):
        gradient(two_towers, loop, False)
    assert gradient(two_towers, loop, False, share=True) == 5.0


def test_an_eager_loss_out_of_a_function_needs_the_callers_word(two_towers: Any) -> None:
    def returned(w: Any) -> Any:
        return tf.function(known_share, autograph=False)(w)

    assert gradient(two_towers, lambda w: w * 2.5, True) == 2.5
    with pytest.raises(ValueError, match="cannot be told. Write share=True if it is, share=False"):
        gradient(two_towers, returned, True)
    assert gradient(two_towers, returned, True, share=True) == 2.5
    assert gradient(two_towers, lambda w: w * 2.5, True, share=False) == 2.5


def test_the_callers_word(two_towers: Any, eager: bool) -> None:
    with pytest.raises(ValueError, match="share=False says that it is a tower's own mean"):
        gradient(two_towers, share, eager, share=False)
    assert gradient(two_towers, lambda w: w * 2.5, eager, share=False) == 2.5
    assert gradient(two_towers, lambda w: w * 2.5, eager) == 2.5
    assert gradient(two_towers, lambda w: w * 2.5, eager, share=True) == 5.0


def test_a_half_of_a_tower_loss_is_a_tower_loss(two_towers: Any, eager: bool) -> None:
    """Two replicas, a loss divided by 2, no share: TF1's average of the towers, as before."""
    assert gradient(two_towers, lambda w: (w * w + w) / 2.0, eager) == 2.5


def test_the_sum_of_towers_is_undivided_whatever_the_loss(two_towers: Any, eager: bool) -> None:
    assert gradient(two_towers, lambda w: w * 2.5, eager, reduce="sum") == 5.0
    assert gradient(two_towers, share, eager, reduce="sum") == 2.5


def test_a_mark_changes_no_bit() -> None:
    values = np.random.RandomState(3).normal(size=64).astype(np.float32)
    w = tf.Variable(values)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as tape:
            bare = tf.math.divide_no_nan(tf.reduce_sum(w * w * w), 64.0)
            marked = tm.global_batch_loss(w * w * w)
        first, second = tape.gradient(bare, w), tape.gradient(marked, w)
    np.testing.assert_array_equal(bare, marked)
    np.testing.assert_array_equal(first, second)
    # Nested tapes pass the mark as well.
    np.testing.assert_array_equal(outer.gradient(first, w), outer.gradient(second, w))


def test_a_step_that_autograph_converts_trains_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    strategy = tm.tower_strategy(2)
    with strategy.scope():
        w = tf.Variable(0.0)
        opt = v1.train.GradientDescentOptimizer(1.0)
        metric = tm.loss_metric()

    @tf.function
    def train(x: Any) -> None:
        def step(x: Any) -> None:
            loss = tm.global_batch_loss(w * x)
            metric.update_state(loss)
            opt.apply_gradients(tm.tower_gradients(opt, loss, [w]))

        for _ in tf.range(2):
            strategy.run(step, args=(x,))

    train(*tm.shard_batch(np.array([1.0, 3.0], "f")))
    assert (float(w.numpy()), float(metric.result())) == (-4.0, -2.0)
    assert [r.getMessage() for r in caplog.records if "AutoGraph" in r.getMessage()] == []
