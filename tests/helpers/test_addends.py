"""What is added to one tower's part, divided twice or clipped in parts: refused, and the right form next to it trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

keras: Any = pytest.importorskip("keras")
v1 = tf.compat.v1
ROWS = np.array([1.0, 3.0, 2.0, 6.0], np.float32)
WHOLE = float(ROWS.mean())  # the gradient of mean(w * x)
TOWERS = 2
mean, total = tf.reduce_mean, tf.reduce_sum
SHARE = "share|count once|1/2|part of a gradient"

_BOTH = pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])


class _Step:
    """A variable of 1.0 and SGD with the rate 1, on two towers."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.w = tf.Variable(1.0, name="w")
            self.opt = v1.train.GradientDescentOptimizer(1.0)

    def run(self, body: Callable[[Any], Any], *, eager: bool = False) -> float:
        def step(x: Any) -> None:
            self.strategy.run(lambda x: body(x) and None, args=(x,))

        batch = tm.shard_batch(ROWS, uneven="spread")
        (step if eager else tf.function(step, autograph=False))(*batch)
        first, second = (float(copy.numpy()) for copy in self.w.values)
        assert first == second
        return first

    def taken(self, loss: Callable[[Any], Any], how: str, x: Any) -> list[Any]:
        if how == "compute_gradients":
            if tf.executing_eagerly():
                return list(self.opt.compute_gradients(lambda: loss(x), [self.w]))
            return list(self.opt.compute_gradients(loss(x), [self.w]))
        if how == "tf.gradients":
            return [(tf.gradients(loss(x), [self.w])[0], self.w)]
        with tf.GradientTape() as tape:
            value = loss(x)
        return [(tape.gradient(value, self.w), self.w)]


def _share(w: Any, x: Any) -> Any:
    return tm.global_batch_loss(w * x)


def _weights(w: Any) -> Any:
    return 0.1 * tf.nn.l2_loss(w)


def _all_reduced(value: Any) -> Any:
    return tf.distribute.get_replica_context().all_reduce("SUM", value)


# The loss, and its gradient by w at 1 on one device; None for what is refused.
_SUMS: dict[str, tuple[Callable[[Any, Any], Any], float | None]] = {
    "a share": (_share, WHOLE),
    "a share and a penalty's": (
        lambda w, x: _share(w, x) + tm.regularization_loss(_weights(w)),
        WHOLE + 0.1,
    ),
    "a share and a penalty": (lambda w, x: _share(w, x) + _weights(w), None),
    "a share and several penalties": (
        lambda w, x: tf.add_n([_share(w, x), _weights(w), 0.01 * tf.abs(w)]),
        None,
    ),
    "a share and a mean": (lambda w, x: _share(w, x) + 0.3 * mean(tf.square(w * x)), None),
    "TensorFlow's share and a penalty": (
        lambda w, x: tf.nn.compute_average_loss(w * x, global_batch_size=4) + _weights(w),
        None,
    ),
    "TensorFlow's share and its penalty": (
        lambda w, x: (
            tf.nn.compute_average_loss(w * x, global_batch_size=4)
            + tf.nn.scale_regularization_loss(_weights(w))
        ),
        WHOLE + 0.1,
    ),
    "a sum over the rows and a penalty's share": (
        lambda w, x: total(w * x) / 4.0 + tm.regularization_loss(_weights(w)),
        WHOLE + 0.1,
    ),
    "a sum over the rows times one over their number, and a penalty's share": (
        lambda w, x: 0.25 * total(w * x) + tm.regularization_loss(_weights(w)),
        WHOLE + 0.1,
    ),
    "a sum over the rows times one over the tower's number, and a penalty's share": (
        lambda w, x: 0.5 * total(w * x) + tm.regularization_loss(_weights(w)),
        None,
    ),
    "a sum over the rows and what gets no gradient": (
        lambda w, x: total(w * x) / 4.0 + tf.stop_gradient(_weights(w)),
        WHOLE,
    ),
    "a sum over the rows, a penalty's share and a penalty": (
        lambda w, x: total(w * x) / 4.0 + tm.regularization_loss(_weights(w)) + _weights(w),
        None,
    ),
    "a share over the towers": (lambda w, x: _share(w, x) / TOWERS, None),
    "a share, all-reduced": (lambda w, x: _all_reduced(_share(w, x)), None),
    "two shares, one of them weighted": (
        lambda w, x: _share(w, x) + 0.5 * tm.global_batch_loss(w * x * 2.0),
        2.0 * WHOLE,
    ),
    "a difference of shares": (lambda w, x: 3.0 * _share(w, x) - _share(w, x), 2.0 * WHOLE),
}

# Eagerly it does not show what the rest of a loss is made of.
_ASKED_EAGERLY = {name for name in _SUMS if name.endswith(", and a penalty's share")} | {
    "a sum over the rows and a penalty's share"
}


@pytest.mark.parametrize(
    ("how", "eager"),
    [
        ("tape", False),
        ("compute_gradients", False),
        ("tf.gradients", False),
        ("tape", True),
        ("compute_gradients", True),
    ],
)
@pytest.mark.parametrize("name", _SUMS)
def test_a_sum_takes_shares_alone(two_towers: Any, name: str, eager: bool, how: str) -> None:
    loss, gradient = _SUMS[name]
    step = _Step(two_towers)

    def body(x: Any) -> None:
        pairs = step.taken(lambda x: loss(step.w, x), how, x)
        tm.apply_averaged(step.opt, tm.average_gradients(pairs, reduce="sum"))

    if gradient is None or eager and name in _ASKED_EAGERLY:
        with pytest.raises(ValueError, match="share"):
            step.run(body, eager=eager)
    else:
        assert step.run(body, eager=eager) == pytest.approx(1.0 - gradient, rel=1e-6)


@_BOTH
@pytest.mark.parametrize("name", _SUMS)
def test_what_each_tower_adds_up_takes_shares_alone_too(
    two_towers: Any, name: str, eager: bool
) -> None:
    loss, gradient = _SUMS[name]
    step = _Step(two_towers)

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            value = loss(step.w, x)
        step.opt.apply_gradients(tm.tower_gradients(tape, value, [step.w], reduce="sum"))

    if gradient is None or eager and name in _ASKED_EAGERLY:
        with pytest.raises(ValueError, match="share"):
            step.run(body, eager=eager)
    else:
        assert step.run(body, eager=eager) == pytest.approx(1.0 - gradient, rel=1e-6)


@pytest.mark.parametrize("how", ["tape", "compute_gradients", "tf.gradients", "tower_gradients"])
def test_a_sum_takes_no_penalty_beside_what_was_divided_by_hand(two_towers: Any, how: str) -> None:
    def of(step: _Step, penalty: Callable[[Any], Any]) -> Callable[[Any], None]:
        def loss(x: Any) -> Any:
            return total(step.w * x) / 4.0 + penalty(step.w)

        def body(x: Any) -> None:
            if how == "tower_gradients":
                with tf.GradientTape() as tape:
                    value = loss(x)
                step.opt.apply_gradients(tm.tower_gradients(tape, value, [step.w], reduce="sum"))
                return
            pairs = step.taken(loss, how, x)
            tm.apply_averaged(step.opt, tm.average_gradients(pairs, reduce="sum"))

        return body

    step = _Step(two_towers)
    with pytest.raises(ValueError, match="count 2 times"):
        step.run(of(step, _weights))
    result = step.run(of(step, lambda w: _weights(w) / TOWERS))
    assert result == pytest.approx(1.0 - WHOLE - 0.1, rel=1e-6)


def test_what_is_meant_is_said(two_towers: Any) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        pairs = step.taken(lambda x: _share(step.w, x) + _weights(step.w) / 2.0, "tape", x)
        averages = tm.average_gradients(pairs, reduce="sum", share=True)
        tm.apply_averaged(step.opt, averages)

    assert step.run(body) == pytest.approx(1.0 - WHOLE - 0.1, rel=1e-6)


def test_the_towers_own_losses_are_added_up_as_before(two_towers: Any) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        pairs = step.taken(lambda x: mean(step.w * x) + _weights(step.w), "tape", x)
        tm.apply_averaged(step.opt, tm.average_gradients(pairs, reduce="sum"))

    assert step.run(body) == pytest.approx(1.0 - 2.0 * (WHOLE + 0.1), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "eager"),
    [
        ("a share and a penalty", False),
        ("a share and a mean", False),
        ("a share and a penalty", True),
        ("a share and several penalties", True),
        ("TensorFlow's share and a penalty", True),
    ],
)
@pytest.mark.parametrize("how", ["tape", "compute_gradients"])
def test_an_optimizer_that_sums_takes_no_penalty_of_each_replica(
    two_towers: Any, name: str, how: str, eager: bool
) -> None:
    step = _Step(two_towers)
    loss, _ = _SUMS[name]

    def body(x: Any) -> None:
        step.opt.apply_gradients(step.taken(lambda x: loss(step.w, x), how, x))

    with pytest.raises(ValueError, match="count 2 times"):
        step.run(body, eager=eager)


@pytest.mark.parametrize(
    ("loss", "gradient"),
    [
        (lambda w, x: _share(w, x), WHOLE),
        (lambda w, x: _share(w, x) + _weights(w) / TOWERS, WHOLE + 0.1),
        (lambda w, x: _share(w, x) + tf.nn.scale_regularization_loss(_weights(w)), WHOLE + 0.1),
        (lambda w, x: _share(w, x) + total(w * x) / 4.0, 2.0 * WHOLE),
        (lambda w, x: _share(w, x) + mean(w * x / TOWERS), 2.0 * WHOLE),
        (lambda w, x: _share(w, x) + mean(w * x) * (tf.cast(tf.size(x), tf.float32) / 4.0), 2.0 * WHOLE),
    ],
    ids=["share", "penalty over the towers", "scaled penalty", "sum over the rows", "mean of parts", "weighted mean"],
)  # fmt: skip
@_BOTH
def test_an_optimizer_that_sums_takes_parts_made_by_hand(
    two_towers: Any, loss: Callable[[Any, Any], Any], gradient: float, eager: bool
) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        step.opt.apply_gradients(step.taken(lambda x: loss(step.w, x), "tape", x))

    assert step.run(body, eager=eager) == pytest.approx(1.0 - gradient, rel=1e-6)


def _decayed(step: _Step, pairs: list[Any], by: float = 0.1) -> list[Any]:
    return [(grad + by * variable, variable) for grad, variable in pairs]


@_BOTH
@pytest.mark.parametrize("way", ["sum", "apply", "tower_gradients", "keras", "own"])
def test_decay_is_added_to_the_sum_and_not_to_the_parts(
    two_towers: Any, way: str, eager: bool
) -> None:
    step = _Step(two_towers)

    def wrong(x: Any) -> None:
        with tf.GradientTape() as tape:
            value = _share(step.w, x)
        if way == "tower_gradients":
            step.opt.apply_gradients(_decayed(step, tm.tower_gradients(tape, value, [step.w])))
            return
        pairs = _decayed(step, [(tape.gradient(value, step.w), step.w)])
        if way == "sum":
            tm.apply_averaged(step.opt, tm.average_gradients(pairs, reduce="sum"))
        elif way == "own":
            grad = _all_reduced(pairs[0][0])
            tm.apply_averaged(step.opt, [(grad, step.w)])
        else:
            step.opt.apply_gradients(pairs)

    if way == "keras":
        with two_towers.scope():
            step.opt = keras.optimizers.SGD(1.0)
            step.opt.build([step.w])
    with pytest.raises(ValueError, match="count 2 times"):
        step.run(wrong, eager=eager)


@_BOTH
def test_decay_is_added_to_an_average(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)

    def right(x: Any) -> None:
        pairs = step.taken(lambda x: _share(step.w, x), "tape", x)
        tm.apply_averaged(step.opt, _decayed(step, tm.average_gradients(pairs, reduce="sum")))

    assert step.run(right, eager=eager) == pytest.approx(1.0 - WHOLE - 0.1, rel=1e-6)


@_BOTH
def test_decay_over_the_towers_is_added_to_parts(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)

    def right(x: Any) -> None:
        with tf.GradientTape() as tape:
            value = _share(step.w, x)
        pairs = tm.tower_gradients(tape, value, [step.w])
        step.opt.apply_gradients([(g + 0.1 * v / TOWERS, v) for g, v in pairs])

    assert step.run(right, eager=eager) == pytest.approx(1.0 - WHOLE - 0.1, rel=1e-6)


@_BOTH
@pytest.mark.parametrize("way", ["tower_gradients", "before", "after", "v1 before"])
def test_what_is_averaged_is_not_divided_by_the_towers_once_more(
    two_towers: Any, way: str, eager: bool
) -> None:
    def of(step: _Step, factor: Callable[[Any], Any]) -> Callable[[Any], None]:
        def body(x: Any) -> None:
            with tf.GradientTape() as tape:
                value = mean(step.w * x)
            if way == "tower_gradients":
                pairs = tm.tower_gradients(tape, value, [step.w])
                step.opt.apply_gradients([(factor(g), v) for g, v in pairs])
                return
            if way == "v1 before":
                loss = (lambda: mean(step.w * x)) if eager else value
                pairs = step.opt.compute_gradients(loss, [step.w])
            else:
                pairs = [(tape.gradient(value, step.w), step.w)]
            if way == "after":
                pairs = [(factor(g), v) for g, v in tm.average_gradients(pairs)]
            else:
                pairs = tm.average_gradients([(factor(g), v) for g, v in pairs])
            tm.apply_averaged(step.opt, pairs)

        return body

    step = _Step(two_towers)
    with pytest.raises(ValueError, match="1/2"):
        step.run(of(step, lambda grad: grad / TOWERS), eager=eager)
    assert step.run(of(step, lambda grad: grad * 0.5), eager=eager) == pytest.approx(
        1.0 - WHOLE / 2.0
    )
    other = _Step(two_towers)
    assert other.run(of(other, lambda grad: grad / 3.0), eager=eager) == pytest.approx(
        1.0 - WHOLE / 3.0
    )


@_BOTH
def test_a_sum_is_divided_by_hand(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        pairs = step.taken(lambda x: mean(step.w * x), "tape", x)
        averages = [(g / TOWERS, v) for g, v in tm.average_gradients(pairs, reduce="sum")]
        tm.apply_averaged(step.opt, averages)

    assert step.run(body, eager=eager) == pytest.approx(1.0 - WHOLE, rel=1e-6)


_CLIPS: dict[str, Callable[[Any], Any]] = {
    "clip_by_global_norm": lambda grad: tf.clip_by_global_norm([grad], 1.0)[0][0],
    "clip_by_norm": lambda grad: tf.clip_by_norm(grad, 1.0),
    "clip_by_value": lambda grad: tf.clip_by_value(grad, -1.0, 1.0),
    "v1.clip_by_value": lambda grad: v1.clip_by_value(t=grad, clip_value_min=-1.0, clip_value_max=1.0),
    "by its norm": lambda grad: grad * tf.minimum(1.0, 1.0 / tf.linalg.global_norm([grad])),
    "by hand": lambda grad: grad / tf.maximum(1.0, tf.sqrt(tf.reduce_sum(tf.square(grad)))),
}  # fmt: skip


@_BOTH
@pytest.mark.parametrize("name", _CLIPS)
def test_tensorflows_clipping_takes_no_parts(two_towers: Any, name: str, eager: bool) -> None:
    clip = _CLIPS[name]
    step = _Step(two_towers)

    def of_tower_gradients(x: Any) -> None:
        with tf.GradientTape() as tape:
            value = mean(step.w * x)
        pairs = tm.tower_gradients(tape, value, [step.w])
        step.opt.apply_gradients([(clip(g), v) for g, v in pairs])

    def of_shares(x: Any) -> None:
        pairs = step.taken(lambda x: _share(step.w, x), "tape", x)
        pairs = [(clip(g), v) for g, v in pairs]
        tm.apply_averaged(step.opt, tm.average_gradients(pairs, reduce="sum"))

    def summed_twice(x: Any) -> None:
        pairs = step.taken(lambda x: mean(step.w * x), "tape", x)
        step.opt.apply_gradients([(clip(g), v) for g, v in tm.average_gradients(pairs)])

    def summed_by_hand_twice(x: Any) -> None:
        grad = _all_reduced(step.taken(lambda x: _share(step.w, x), "tape", x)[0][0])
        step.opt.apply_gradients([(clip(grad), step.w)])

    for wrong in (of_tower_gradients, of_shares, summed_twice, summed_by_hand_twice):
        with pytest.raises(ValueError, match="part of a gradient|neither|sums over the replicas"):
            step.run(wrong, eager=eager)

    def each_towers_own(x: Any) -> None:
        pairs = step.taken(lambda x: mean(step.w * x), "tape", x)
        pairs = [(clip(g), v) for g, v in pairs]
        tm.apply_averaged(step.opt, tm.average_gradients(pairs))

    def of_the_average(x: Any) -> None:
        pairs = step.taken(lambda x: _share(step.w, x), "tape", x)
        averages = tm.average_gradients(pairs, reduce="sum")
        tm.apply_averaged(step.opt, [(clip(g), v) for g, v in averages])

    for right in (each_towers_own, of_the_average):
        fresh = step = _Step(two_towers)
        assert fresh.run(right, eager=eager) == pytest.approx(0.0, abs=1e-6)


def test_tensorflows_clipping_is_its_own_outside_of_replicas() -> None:
    assert float(tf.clip_by_value(tf.constant(3.0), 0.0, 1.0)) == 1.0
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0, 4.0]), None], 1.0)
    assert clipped[1] is None and float(norm) == 5.0


@pytest.mark.parametrize("positional", [False, True])
@_BOTH
def test_a_gradient_of_another_upstream_is_as_it_was(
    two_towers: Any, eager: bool, positional: bool
) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            value = _share(step.w, x)
        upstream = tf.constant(3.0)
        if positional:
            grad = tape.gradient(value, step.w, upstream)
        else:
            grad = tape.gradient(value, step.w, output_gradients=[upstream])
        tm.apply_averaged(step.opt, tm.average_gradients([(grad, step.w)], reduce="sum"))

    assert step.run(body, eager=eager) == pytest.approx(1.0 - 3.0 * WHOLE, rel=1e-6)


def test_a_share_that_a_function_made_in_an_eager_replica_is_added_up(two_towers: Any) -> None:
    step = _Step(two_towers)

    @tf.function(autograph=False)
    def loss(x: Any) -> Any:
        return tm.global_batch_loss(step.w * x, global_batch_size=4)

    def body(x: Any) -> None:
        pairs = step.taken(loss, "tape", x)
        tm.apply_averaged(step.opt, tm.average_gradients(pairs, reduce="sum"))

    assert step.run(body, eager=True) == pytest.approx(1.0 - WHOLE, rel=1e-6)
    assert step.run(body, eager=True) == pytest.approx(1.0 - 2.0 * WHOLE, rel=1e-6)


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sign": tf.sign,
    "tanh": tf.tanh,
    "limits": lambda grad: tf.minimum(tf.maximum(grad, -0.5), 0.5),
    "unit length": lambda grad: tf.squeeze(tf.math.l2_normalize(tf.expand_dims(grad, 0))),
}


@_BOTH
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_a_function_of_the_gradient_is_taken_of_the_sum(
    two_towers: Any, name: str, eager: bool
) -> None:
    function = _FUNCTIONS[name]
    step = _Step(two_towers)

    def of_tower_gradients(x: Any) -> None:
        with tf.GradientTape() as tape:
            value = _share(step.w, x)
        pairs = tm.tower_gradients(tape, value, [step.w])
        step.opt.apply_gradients([(function(g), v) for g, v in pairs])

    def before_the_sum(x: Any) -> None:
        pairs = step.taken(lambda x: _share(step.w, x), "tape", x)
        pairs = [(function(g), v) for g, v in pairs]
        tm.apply_averaged(step.opt, tm.average_gradients(pairs, reduce="sum"))

    for wrong in (of_tower_gradients, before_the_sum):
        with pytest.raises(ValueError, match="part of a gradient"):
            step.run(wrong, eager=eager)

    def after_the_sum(x: Any) -> None:
        pairs = step.taken(lambda x: _share(step.w, x), "tape", x)
        averages = tm.average_gradients(pairs, reduce="sum")
        tm.apply_averaged(step.opt, [(function(g), v) for g, v in averages])

    expected = 1.0 - float(function(tf.constant(WHOLE)))
    assert step.run(after_the_sum, eager=eager) == pytest.approx(expected, rel=1e-6)


@_BOTH
def test_parts_that_are_finite_are_kept(two_towers: Any, eager: bool) -> None:
    """What each tower may ask of its own part; and statistics of parts, which update nothing."""
    step = _Step(two_towers)

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            value = _share(step.w, x)
        ((grad, w),) = tm.tower_gradients(tape, value, [step.w])
        _all_reduced(tf.square(grad))
        finite = tf.reduce_all(tf.math.is_finite(grad))
        step.opt.apply_gradients([(grad * tf.cast(finite, tf.float32), w)])

    assert step.run(body, eager=eager) == pytest.approx(1.0 - WHOLE, rel=1e-6)


def test_a_share_takes_no_sum_over_a_towers_own_number_of_rows(two_towers: Any) -> None:
    def body_of(step: _Step, rows: Callable[[Any], Any]) -> Callable[[Any], None]:
        def body(x: Any) -> None:
            def loss(x: Any) -> Any:
                activity = 0.1 * total(tf.square(step.w * x)) / rows(x)
                return _share(step.w, x) + activity

            step.opt.apply_gradients(step.taken(loss, "tape", x))

        return body

    step = _Step(two_towers)
    with pytest.raises(ValueError, match="count 2 times"):
        step.run(body_of(step, lambda x: tf.cast(tf.shape(x)[0], tf.float32)))
    # Over the rows of all it is a share.
    result = step.run(body_of(step, lambda x: 4.0))
    assert result == pytest.approx(1.0 - WHOLE - 0.2 * float(np.mean(ROWS**2)), rel=1e-6)


@_BOTH
@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_the_penalties_of_a_keras_model_are_scaled(
    two_towers: Any, package: str, eager: bool
) -> None:
    made: Any = pytest.importorskip(package)
    rows = np.stack([ROWS, ROWS[::-1]], 1)

    def trained(penalty: Callable[[Any], Any]) -> float:
        with two_towers.scope():
            dense = made.layers.Dense(
                1,
                use_bias=False,
                kernel_initializer="ones",
                kernel_regularizer=made.regularizers.L2(0.05),
            )
            dense.build((None, 2))
            sgd = v1.train.GradientDescentOptimizer(1.0)
        (variable,) = dense.trainable_variables
        kernel = getattr(variable, "value", variable) if package == "keras" else variable

        def step(x: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tm.global_batch_loss(dense(x)[:, 0]) + penalty(dense.losses)
            sgd.apply_gradients([(tape.gradient(loss, kernel), kernel)])

        def run(x: Any) -> None:
            two_towers.run(step, args=(x,))

        (run if eager else tf.function(run, autograph=False))(*tm.shard_batch(rows))
        return float(kernel.numpy()[0, 0])

    with pytest.raises(ValueError, match="count 2 times"):
        trained(sum)
    assert trained(tm.regularization_loss) == pytest.approx(1.0 - WHOLE - 0.1, rel=1e-5)


@_BOTH
@pytest.mark.parametrize(
    "option", ["skip_gradients_aggregation", "experimental_aggregate_gradients"]
)
def test_an_optimizer_that_is_told_to_sum_nothing_takes_no_part(
    two_towers: Any, option: str, eager: bool
) -> None:
    tf_keras = pytest.importorskip("tf_keras")
    step = _Step(two_towers)
    with two_towers.scope():
        sgd = tf_keras.optimizers.SGD(1.0)
        sgd.build([step.w])
    said = {option: option.startswith("skip")}

    def of_parts(x: Any) -> None:
        pairs = step.taken(lambda x: _share(step.w, x), "tape", x)
        sgd.apply_gradients(pairs, **said)

    def of_averages(x: Any) -> None:
        pairs = step.taken(lambda x: _share(step.w, x), "tape", x)
        sgd.apply_gradients(tm.average_gradients(pairs, reduce="sum"), **said)

    with pytest.raises(ValueError, match="told to sum nothing"):
        step.run(of_parts, eager=eager)
    assert step.run(of_averages, eager=eager) == pytest.approx(1.0 - WHOLE, rel=1e-6)
