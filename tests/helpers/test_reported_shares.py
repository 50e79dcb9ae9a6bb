"""What is reported of shares: their sum is the loss; their mean, or one of them, is a wrong number."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

ROWS = np.array([1.0, 3.0, 2.0, 6.0, 8.0], np.float32)


def _each(
    strategy: Any, body: Callable[[Any], Any], read: Callable[[Any], Any], eager: bool
) -> float:
    def step(x: Any) -> Any:
        return read(strategy.run(body, args=(x,)))

    batch = tm.shard_batch(ROWS, uneven="spread")
    return float((step if eager else tf.function(step, autograph=False))(*batch))


def _all_reduced(value: Any, how: str = "SUM") -> Any:
    return tf.distribute.get_replica_context().all_reduce(how, value)


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("what", ["mean_over_towers", "first_tower", "last_tower", "reduce"])
def test_one_of_the_shares_or_their_mean_is_not_the_loss(
    two_towers: Any, what: str, eager: bool
) -> None:
    def read(value: Any) -> Any:
        if what == "reduce":
            return two_towers.reduce("MEAN", value, axis=None)
        return getattr(tm, what)(value)

    with pytest.raises(ValueError, match=r"share.*sum"):
        _each(two_towers, tm.global_batch_loss, read, eager)

    def penalised(x: Any) -> Any:
        return tm.global_batch_loss(x) + tm.regularization_loss(tf.constant(1.0))

    with pytest.raises(ValueError, match=r"share.*sum"):
        _each(two_towers, penalised, read, eager)
    assert _each(two_towers, penalised, tm.sum_over_towers, eager) == pytest.approx(5.0)
    own = _each(two_towers, tf.reduce_mean, read, eager)
    means = [np.mean(ROWS[:3]), np.mean(ROWS[3:])]
    expected = {"first_tower": means[0], "last_tower": means[1]}.get(what, np.mean(means))
    assert own == pytest.approx(expected)
    assert _each(two_towers, lambda x: 2.0 * tf.reduce_mean(x), read, eager) == pytest.approx(
        2.0 * expected
    )


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
def test_a_mean_of_shares_over_the_replicas_is_refused_in_a_replica(
    two_towers: Any, eager: bool
) -> None:
    with pytest.raises(ValueError, match="1/N"):
        _each(
            two_towers,
            lambda x: _all_reduced(tm.global_batch_loss(x), "MEAN"),
            tm.first_tower,
            eager,
        )
    right = _each(
        two_towers, lambda x: _all_reduced(tm.global_batch_loss(x)), tm.first_tower, eager
    )
    assert right == pytest.approx(4.0)


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
def test_a_mean_of_gradients_of_shares_over_the_replicas_is_refused(
    two_towers: Any, eager: bool
) -> None:
    with two_towers.scope():
        w = tf.Variable(1.0)

    def of(how: str) -> Callable[[Any], Any]:
        def body(x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tm.global_batch_loss(w * x)
            return _all_reduced(tape.gradient(loss, w), how)

        return body

    with pytest.raises(ValueError, match="divide once more"):
        _each(two_towers, of("MEAN"), tm.first_tower, eager)
    assert _each(two_towers, of("SUM"), tm.first_tower, eager) == pytest.approx(4.0)


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
def test_what_all_replicas_have_is_not_summed_again(two_towers: Any, eager: bool) -> None:
    def body(x: Any) -> Any:
        return _all_reduced(tf.reduce_sum(x))

    def read(value: Any) -> Any:
        return two_towers.reduce("SUM", value, axis=None)

    with pytest.raises(ValueError, match="count 2 times"):
        _each(two_towers, body, read, eager)
    assert _each(two_towers, tf.reduce_sum, read, eager) == pytest.approx(20.0)


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
def test_a_loss_metric_is_told_a_share_for_what_it_is(two_towers: Any, eager: bool) -> None:
    with two_towers.scope():
        metric = tm.loss_metric()

    def updated(update: Callable[[Any], None], x: Any) -> Any:
        update(x)
        return tf.zeros([])

    def run(update: Callable[[Any], None]) -> float:
        metric.reset_state()
        _each(two_towers, lambda x: updated(update, x), tm.first_tower, eager)
        return float(metric.result())

    wrong: list[Callable[[Any], None]] = [
        lambda x: metric.update_state(tm.global_batch_loss(x), share=False),
        lambda x: metric.update_state(_all_reduced(tm.global_batch_loss(x))),
        lambda x: metric.update_state(tm.global_batch_loss(x)[tf.newaxis]),
    ]
    for each in wrong:
        with pytest.raises(ValueError, match="share"):
            run(each)
    right: list[Callable[[Any], None]] = [
        lambda x: metric.update_state(tm.global_batch_loss(x)),
        lambda x: metric.update_state(2.0 * tm.global_batch_loss(x) - tm.global_batch_loss(x)),
        lambda x: metric.update_state(_all_reduced(tm.global_batch_loss(x)), share=False),
    ]
    for each in right:
        assert run(each) == pytest.approx(4.0)


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_a_mean_of_keras_is_not_given_shares(two_towers: Any, package: str, eager: bool) -> None:
    metrics: Any = pytest.importorskip(package).metrics
    tm.tower_strategy(2, devices="cpu:2")  # it knows Keras, imported since
    with two_towers.scope():
        metric = metrics.Mean()

    def run(update: Callable[[Any], Any]) -> float:
        metric.reset_state()

        def body(x: Any) -> Any:
            update(x)
            return tf.zeros([])

        _each(two_towers, body, tm.first_tower, eager)
        return float(metric.result())

    run(metric.update_state)  # its variables are made
    with pytest.raises(ValueError, match="1/N"):
        run(lambda x: metric.update_state(tm.global_batch_loss(x)))
    assert run(metric.update_state) == pytest.approx(4.0)
    # As Keras does it itself.
    scaled = run(lambda x: metric.update_state(tm.global_batch_loss(x) * 2.0))
    assert scaled == pytest.approx(4.0)


def _returned(strategy: Any, body: Callable[[Any], Any]) -> Callable[[], Any]:
    """A training step as a `tf.function` that returns what each tower does; it is read eagerly."""
    step = tf.function(lambda x: strategy.run(body, args=(x,)), autograph=False)
    return lambda: step(*tm.shard_batch(ROWS, uneven="spread"))


def _penalised(x: Any) -> Any:
    return tm.global_batch_loss(x) + tm.regularization_loss(tf.constant(1.0))


_READ: dict[str, Callable[[Any, Any], Any]] = {
    "reduce": lambda strategy, value: strategy.reduce("MEAN", value, axis=None),
    "mean_over_towers": lambda _, value: tm.mean_over_towers(value),
    "last_tower": lambda _, value: tm.last_tower(value),
    "first_tower": lambda _, value: tm.first_tower(value),
}


@pytest.mark.parametrize("what", _READ)
@pytest.mark.parametrize("loss", [tm.global_batch_loss, _penalised], ids=["share", "sum"])
def test_shares_that_a_function_returned_are_known(two_towers: Any, loss: Any, what: str) -> None:
    step = _returned(two_towers, loss)
    for _ in range(2):  # a function that is traced, and one that was
        with pytest.raises(ValueError, match=r"share.*sum"):
            _READ[what](two_towers, step())
        assert float(two_towers.reduce("SUM", step(), axis=None)) in (4.0, 5.0)
    assert float(tm.sum_over_towers(step())) in (4.0, 5.0)


def test_what_else_a_function_returned_is_read_as_it_is(two_towers: Any) -> None:
    step = _returned(
        two_towers,
        lambda x: {"loss": tm.global_batch_loss(x), "mean": tf.reduce_mean(x), "none": None},
    )
    for _ in range(2):
        result = step()
        assert result["none"] is None
        assert float(two_towers.reduce("MEAN", result["mean"], axis=None)) == pytest.approx(4.5)
        assert float(tm.sum_over_towers(result["loss"])) == pytest.approx(4.0)
        with pytest.raises(ValueError, match=r"share.*sum"):
            tm.mean_over_towers(result["loss"])


def test_a_sum_that_a_function_returned_is_not_summed_again(two_towers: Any) -> None:
    step = _returned(two_towers, lambda x: _all_reduced(tf.reduce_sum(x)))
    for read in (
        lambda value: two_towers.reduce("SUM", value, axis=None),
        tm.sum_over_towers,
    ):
        with pytest.raises(ValueError, match="count 2 times"):
            read(step())
    assert float(tm.first_tower(step())) == pytest.approx(20.0)
    assert float(two_towers.reduce("MEAN", step(), axis=None)) == pytest.approx(20.0)


def test_what_a_function_in_an_eager_replica_returned_is_known(two_towers: Any) -> None:
    """A tower's gradient, divided by the number of towers already, that is to be averaged."""
    with two_towers.scope():
        w = tf.Variable(1.0)
        sgd = tf.compat.v1.train.GradientDescentOptimizer(1.0)

    @tf.function(autograph=False)
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(w * x)
        return tm.tower_gradients(tape, loss, [w])[0][0]

    def averaged(x: Any) -> Any:
        tm.apply_averaged(sgd, tm.average_gradients([(gradient(x), w)]))

    def summed(x: Any) -> Any:
        sgd.apply_gradients([(gradient(x), w)])

    (batch,) = tm.shard_batch(ROWS[:4])
    with pytest.raises(ValueError, match="second time"):
        two_towers.run(averaged, args=(batch,))
    two_towers.run(summed, args=(batch,))
    assert float(w.numpy()) == pytest.approx(1.0 - 3.0)


def test_a_second_loss_of_an_eager_replica_is_told_from_the_first(two_towers: Any) -> None:
    """A GAN's step: the gradient of a share was taken before, and has no part in the towers' own means that come then."""
    with two_towers.scope():
        first, second = tf.Variable(1.0), tf.Variable(1.0)
        sgd = tf.compat.v1.train.GradientDescentOptimizer(1.0)

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            share = tm.global_batch_loss(first * x)
        parts = [(tape.gradient(share, first), first)]
        with tf.GradientTape() as tape:
            own = tf.reduce_mean(second * x)
        averages = tm.average_gradients([(tape.gradient(own, second), second)])
        tm.apply_averaged(sgd, averages)
        tm.apply_averaged(sgd, tm.average_gradients(parts, reduce="sum"))

    two_towers.run(step, args=tm.shard_batch(ROWS[:4]))
    assert float(first.numpy()) == float(second.numpy()) == pytest.approx(1.0 - 3.0)


def _gradient(w: Any) -> Callable[[Any], Any]:
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tm.global_batch_loss(w * x)
        return tape.gradient(loss, w)

    return gradient


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("what", _READ)
def test_gradients_of_shares_are_summed_outside_of_replicas_too(
    two_towers: Any, what: str, eager: bool
) -> None:
    with two_towers.scope():
        w = tf.Variable(1.0)
    with pytest.raises(ValueError, match="one tower's part of a gradient"):
        _each(two_towers, _gradient(w), lambda value: _READ[what](two_towers, value), eager)
    assert _each(two_towers, _gradient(w), tm.sum_over_towers, eager) == pytest.approx(4.0)


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("how", ["sum_over_towers", "reduce"])
def test_the_norm_of_averages_is_the_same_on_all(two_towers: Any, how: str, eager: bool) -> None:
    with two_towers.scope():
        w = tf.Variable(1.0)

    def norm(x: Any) -> Any:
        averages = tm.average_gradients([(_gradient(w)(x), w)], reduce="sum")
        _, length = tm.clip_by_global_norm(averages, 100.0)
        return length

    def read(value: Any) -> Any:
        if how == "reduce":
            return two_towers.reduce("SUM", value, axis=None)
        return tm.sum_over_towers(value)

    with pytest.raises(ValueError, match="count 2 times"):
        _each(two_towers, norm, read, eager)
    assert _each(two_towers, norm, tm.first_tower, eager) == pytest.approx(4.0)


def test_a_mean_that_is_made_before_any_helper_is_known(tmp_path: Any) -> None:
    """In a process of its own, where tf.keras is loaded after the strategy was made, as programs do."""
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "import tensorflow as tf\n"
        "import towermigrate.helpers as tm\n"
        "strategy = tm.tower_strategy(2, devices='cpu:2')\n"
        "with strategy.scope():\n"
        "    metric = tf.keras.metrics.Mean('loss')\n"
        "def step(x):\n"
        "    metric.update_state(tm.global_batch_loss(x))\n"
        "try:\n"
        "    strategy.run(step, args=tm.shard_batch(np.array([1.0, 2.0], 'f')))\n"
        "except ValueError as error:\n"
        "    print('refused', '1/N' in str(error))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["refused", "True"], done.stderr
