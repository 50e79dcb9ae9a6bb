"""What is reported is the global loss and accuracy, whatever the replicas' batches are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

# Float32 sums of a few numbers of about 1.
TOLERANCE = 1e-6


@pytest.fixture(params=[False, True], ids=["traced", "eager"])
def eager(request: Any) -> bool:
    return bool(request.param)


def made_in(strategy: Any, make: Callable[[], Any]) -> Any:
    with strategy.scope():
        return make()


def in_towers(strategy: Any, function: Callable[[int], Any], eager: bool = False) -> Any:
    def step() -> Any:
        return strategy.run(lambda: function(tm.tower_index()))

    return step() if eager else tf.function(step, autograph=False)()


# Steps of losses of single examples on two towers (with weights), and what they report.
EXAMPLES = [
    pytest.param([([2.0, 3.0], [4.0, 5.0])], None, 3.5, id="the towers' examples"),
    pytest.param([([2.0], [4.0, 5.0, 1.0])], None, 3.0, id="towers of different sizes"),
    pytest.param([([], [4.0, 5.0])], None, 4.5, id="an empty tower"),
    pytest.param([([], [])], None, 0.0, id="nothing at all"),
    pytest.param([([2.0], [3.0]), ([4.0, 5.0], [6.0])], None, 4.0, id="two steps"),
    pytest.param([([[1.0, 3.0]], [[4.0, 6.0]])], None, 3.5, id="two losses for each example"),
    pytest.param([([2.0, 3.0], [4.0, 5.0])], ([1.0, 0.0], [2.0, 0.0]), 10 / 3, id="weights"),
    pytest.param(
        [([2.0, np.nan], [4.0, 5.0])], ([1.0, 0.0], [1.0, 0.0]), 3.0, id="a NaN of weight 0"
    ),
    pytest.param(
        [([[1.0, 3.0]], [[4.0, 6.0]])], ([2.0], [1.0]), 3.0, id="weights of examples of two losses"
    ),
    pytest.param(
        [([[1.0, 3.0]], [[4.0, 6.0]])], ([[1.0, 0.0]], [[1.0, 1.0]]), 11 / 3, id="weights of tokens"
    ),
    pytest.param([([2.0, 3.0], [4.0, 5.0])], (0.5, 1.5), 4.0, id="one weight for a tower's all"),
]


@pytest.mark.parametrize(("steps", "weights", "expected"), EXAMPLES)
def test_losses_of_single_examples(
    two_towers: Any, steps: Any, weights: Any, expected: float, eager: bool
) -> None:
    metric = made_in(two_towers, tm.loss_metric)
    for step in steps:
        in_towers(
            two_towers,
            lambda i, step=step: metric.update_state(
                tf.constant(step[i], tf.float32), None if weights is None else weights[i]
            ),
            eager,
        )
    np.testing.assert_allclose(metric.result(), expected, rtol=TOLERANCE)


SCALARS = [
    pytest.param(lambda x: tm.global_batch_loss(x), None, 3.5, id="a share"),
    pytest.param(
        lambda x: tm.token_normalized_loss(x, tf.ones_like(x)), None, 3.5, id="a share of tokens"
    ),
    pytest.param(
        lambda x: tm.global_batch_loss(x) + 2.0 * tm.regularization_loss([1.0]),
        None,
        5.5,
        id="a sum of shares",
    ),
    pytest.param(lambda x: tf.reduce_sum(x) / 4.0, True, 3.5, id="a share by the caller's word"),
    pytest.param(tf.reduce_mean, False, 3.5, id="a tower's own mean, by the caller's word"),
]


@pytest.mark.parametrize(("loss", "share", "expected"), SCALARS)
@pytest.mark.parametrize("steps", [1, 3])
def test_scalars_are_averaged_over_steps(
    two_towers: Any, loss: Any, share: Any, expected: float, steps: int, eager: bool
) -> None:
    metric = made_in(two_towers, tm.loss_metric)
    batches = [[2.0, 3.0], [4.0, 5.0]]

    def replica(index: int) -> None:
        value = loss(tf.constant(batches[index]))
        # Eagerly a sum of shares carries no mark, and there is no backward pass that sees them.
        said = True if eager and expected == 5.5 else share
        metric.update_state(value, share=said)

    for _ in range(steps):
        in_towers(two_towers, replica, eager)
    np.testing.assert_allclose(metric.result(), expected, rtol=TOLERANCE)


@pytest.mark.parametrize("replicas", [1, 2, 4, 8])
def test_what_is_reported_is_what_was_trained(replicas: int) -> None:
    strategy = tm.tower_strategy(replicas)
    metric = made_in(strategy, tm.loss_metric)
    sizes = [(index * 5) % 7 for index in range(replicas)]
    values = np.random.RandomState(1).normal(size=[8, 7]).astype(np.float32)

    def replica(index: int) -> None:
        metric.update_state(tm.global_batch_loss(values[index, : sizes[index]]))

    in_towers(strategy, replica)
    examples = np.concatenate([values[index, :size] for index, size in enumerate(sizes)])
    expected = examples.mean() if len(examples) else 0.0
    np.testing.assert_allclose(metric.result(), expected, rtol=0, atol=TOLERANCE)


def test_the_result_is_the_same_everywhere(two_towers: Any) -> None:
    metric = made_in(two_towers, tm.loss_metric)
    batches = [[2.0, 3.0], [4.0, 5.0]]

    def replica(index: int) -> Any:
        metric.update_state(tf.constant(batches[index]))
        return metric.result()

    for eager in (False, True):
        metric.reset_state()
        local = two_towers.experimental_local_results(in_towers(two_towers, replica, eager))
        assert [float(one) for one in local] == [3.5, 3.5]  # in the replicas
    assert float(metric.result()) == 3.5  # outside of the scope
    with two_towers.scope():
        assert float(metric.result()) == 3.5
        assert float(tf.function(metric.result, autograph=False)()) == 3.5
    metric.reset_state()
    assert float(metric.result()) == 0.0


def test_no_strategy() -> None:
    metric = tm.loss_metric()
    step = tf.function(metric.update_state, autograph=False)
    step(tf.constant([2.0, 3.0]))
    metric.update_state([4.0, 5.0])
    assert float(metric.result()) == 3.5


def test_under_xla(two_towers: Any) -> None:
    metric = made_in(two_towers, tm.loss_metric)

    @tf.function(autograph=False)
    def step(values: Any, others: Any) -> None:
        @tf.function(jit_compile=True, autograph=False)
        def compiled(mine: Any) -> Any:
            return tm.global_batch_loss(mine * 2.0, None, 4)

        def replica() -> None:
            # Variables are of the replica, not of what is compiled in it.
            metric.update_state(compiled(others if tm.tower_index() else values))

        two_towers.run(replica)

    step(tf.constant([1.0, 1.5]), tf.constant([2.0, 2.5]))
    assert float(metric.result()) == 3.5


@pytest.mark.parametrize("towers", [0, 2, 4], ids=["no strategy", "2 towers", "4 towers"])
def test_a_checkpoint_goes_on_anywhere(two_towers: Any, towers: int, tmp_path: Path) -> None:
    saved = made_in(two_towers, tm.loss_metric)
    in_towers(two_towers, lambda i: saved.update_state([2.0 + 2 * i, 3.0 + 2 * i]))
    path = tf.train.Checkpoint(loss=saved).save(tmp_path / "checkpoint")
    strategy = tm.tower_strategy(towers) if towers else tf.distribute.get_strategy()
    restored = made_in(strategy, tm.loss_metric)
    tf.train.Checkpoint(loss=restored).restore(path).assert_consumed()
    assert float(restored.result()) == 3.5
    # 14 over 4 examples, and one more on every replica.
    in_towers(strategy, lambda _: restored.update_state(tf.constant([1.0])))
    more = max(towers, 1)
    np.testing.assert_allclose(restored.result(), (14 + more) / (4 + more), rtol=TOLERANCE)


ERRORS = [
    pytest.param(
        lambda metric: metric.update_state(tf.constant(2.0)),
        "loss.update_state got a scalar that is not known to be a share.*share=True.*share=False",
        id="a scalar that is no known share",
    ),
    pytest.param(
        lambda metric: metric.update_state(tm.global_batch_loss([2.0]) + tf.Variable(1.0)),
        "not known|got a share .global_batch_loss. and something else",
        id="a share and something else",
    ),
    pytest.param(
        lambda metric: metric.update_state(tm.global_batch_loss([2.0]), [1.0]),
        "a scalar and a sample_weight",
        id="weights of a scalar",
    ),
    pytest.param(
        lambda metric: metric.update_state([2.0], share=True),
        r"losses of single examples, \(1,\), and share=True",
        id="share= of losses of examples",
    ),
    pytest.param(
        lambda metric: (metric.update_state([2.0]), metric.update_state(2.0, share=False)),
        "loss has been given losses of single examples before",
        id="examples, then steps",
    ),
    pytest.param(
        lambda metric: (metric.update_state(2.0, share=False), metric.update_state([2.0])),
        "loss has been given scalars before",
        id="steps, then examples",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(tm.loss_metric())


def test_a_share_and_something_else_in_a_graph(two_towers: Any) -> None:
    metric, w = made_in(two_towers, lambda: (tm.loss_metric(), tf.Variable(1.0)))
    share = lambda: tm.global_batch_loss([2.0])  # noqa: E731
    with pytest.raises(ValueError, match=r"got a share \(global_batch_loss\) and something else"):
        in_towers(two_towers, lambda _: metric.update_state(share() + w * w))
    with pytest.raises(ValueError, match="divided by the number of replicas"):
        in_towers(two_towers, lambda _: metric.update_state(share() / 2.0))


def test_the_metric_belongs_to_a_replica_of_its_strategy(two_towers: Any) -> None:
    metric = made_in(two_towers, tm.loss_metric)
    with two_towers.scope(), pytest.raises(ValueError, match="called outside of a replica"):
        metric.update_state([1.0])
    with pytest.raises(ValueError, match="under another strategy.*Make it in strategy.scope"):
        metric.update_state([1.0])
    outside = tm.loss_metric()
    with pytest.raises(ValueError, match="under another strategy"):
        in_towers(two_towers, lambda _: outside.update_state([1.0]))


# Labels, logits and weights of two towers; the part of the tokens that is right.
RIGHT, WRONG = [0.1, 0.9], [0.8, 0.2]  # of label 1
TOKENS = [
    pytest.param(([[1, 1]], [[1, 1]]), ([[RIGHT, WRONG]], [[RIGHT, RIGHT]]), None, 0.75, id="all"),
    pytest.param(
        ([[1, 1]], [[1, 1]]),
        ([[RIGHT, WRONG]], [[RIGHT, RIGHT]]),
        ([[0, 1]], [[1, 1]]),
        2 / 3,
        id="padding does not count",
    ),
    pytest.param(
        ([[1, 1]], [[1]]),
        ([[WRONG, WRONG]], [[RIGHT]]),
        ([[True, True]], [[True]]),
        1 / 3,
        id="tokens count, not towers",
    ),
    pytest.param(([1, 1], [1]), ([RIGHT, RIGHT], [WRONG]), None, 2 / 3, id="labels of one axis"),
    pytest.param(
        ([[1, 1]], [[1, 1]]),
        ([[WRONG, WRONG]], [[RIGHT, RIGHT]]),
        ([[0, 0]], [[0, 0]]),
        0.0,
        id="no token",
    ),
]


@pytest.mark.parametrize(("labels", "logits", "weights", "expected"), TOKENS)
def test_token_accuracy(
    two_towers: Any, labels: Any, logits: Any, weights: Any, expected: float, eager: bool
) -> None:
    metric = made_in(two_towers, tm.token_accuracy)

    def replica(index: int) -> None:
        metric.update_state(labels[index], logits[index], weights and weights[index])

    in_towers(two_towers, replica, eager)
    np.testing.assert_allclose(metric.result(), expected, rtol=TOLERANCE)


def test_token_accuracy_checks_its_shapes() -> None:
    metric = tm.token_accuracy()
    with pytest.raises(ValueError, match=r"got labels \(2, 1\) and logits \(2, 2\)"):
        metric.update_state([[1], [1]], [RIGHT, WRONG])
    with pytest.raises(ValueError, match=r"got labels \(2,\) and weights \(1,\)"):
        metric.update_state([1, 1], [RIGHT, WRONG], [1])
