"""Hand-written steps that gave a wrong number and no error: each is right now, or says what to write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

keras: Any = pytest.importorskip("keras")
tf_keras: Any = pytest.importorskip("tf_keras")
v1 = tf.compat.v1
ROWS = np.array([1, 1, 5, 5], np.float32)


class _Step:
    """One step of SGD with the rate 1 on `w * x`, on two towers; the gradient on one device is 3."""

    def __init__(self, strategy: Any, keras_3: Callable[[], Any] | None = None) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.w = tf.Variable(0.0, name="w") if keras_3 is None else keras.Variable(0.0)
            self.opt = v1.train.GradientDescentOptimizer(1.0) if keras_3 is None else keras_3()

    @property
    def variable(self) -> Any:
        return self.w if isinstance(self.w, tf.Variable) else self.w.value

    def run(self, body: Callable[[Any], Any], *, eager: bool = False, rows: Any = ROWS) -> Any:
        def step(x: Any) -> Any:
            return self.strategy.run(body, args=(x,))

        made = (step if eager else tf.function(step, autograph=False))(
            *tm.shard_batch(rows, uneven="spread")
        )
        return self.w.numpy() if made is None else tm.each_tower(made)


def test_losses_of_a_keras_3_layer_are_each_towers_own(two_towers: Any) -> None:
    class Adds(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = self.add_weight(shape=(), initializer="ones")

        def call(self, x: Any) -> Any:
            self.add_loss(tf.reduce_mean(self.w * x))
            return x * self.w

    with two_towers.scope():
        layer = Adds()
        layer.build((None,))

    def body(x: Any) -> Any:
        y = layer(x)
        return tm.global_batch_loss(y * 0.0) + tf.add_n(layer.losses)

    for eager in (False, True):
        assert [float(each) for each in _Step(two_towers).run(body, eager=eager)] == [1.0, 5.0]
    assert [float(each) for each in layer.losses] == [
        5.0
    ]  # elsewhere the last replica's, as before
    layer(tf.constant([7.0]))
    assert [float(each) for each in layer.losses] == [7.0]


_CLIPS = [{"clipnorm": 1.0}, {"global_clipnorm": 1.0}, {"clipvalue": 1.0}]


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "loss scale"])
@pytest.mark.parametrize("clips", _CLIPS, ids=lambda clips: next(iter(clips)))
def test_a_keras_3_optimizer_clips_the_average(
    two_towers: Any, clips: dict[str, float], scaled: bool
) -> None:
    def made() -> Any:
        inner = keras.optimizers.SGD(1.0, **clips)
        return keras.optimizers.LossScaleOptimizer(inner) if scaled else inner

    step = _Step(two_towers, made)

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(step.variable * x)
            loss = loss * 2.0**15 if scaled else loss
        averaged = tm.average_gradients([(tape.gradient(loss, step.variable), step.variable)])
        tm.apply_averaged(step.opt, [(grad, step.w) for grad, _ in averaged])

    assert step.run(body) == -1.0


@pytest.mark.parametrize("clips", _CLIPS, ids=lambda clips: next(iter(clips)))
def test_a_keras_3_optimizer_that_would_clip_shares_says_so(
    two_towers: Any, clips: dict[str, float]
) -> None:
    step = _Step(two_towers, lambda: keras.optimizers.SGD(1.0, **clips))

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(step.variable * x)
        shares = tm.tower_gradients(tape, loss, [step.variable])
        step.opt.apply_gradients([(grad, step.w) for grad, _ in shares])

    with pytest.raises(ValueError, match="clips in each replica, before the sum .*apply_averaged"):
        step.run(body)


@pytest.mark.parametrize("eager", [False, True])
def test_an_average_of_a_shares_gradients_is_refused(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)

    def body(x: Any, **options: Any) -> None:
        def loss() -> Any:
            return tm.global_batch_loss(step.w * x)

        grads = step.opt.compute_gradients(loss if eager else loss(), [step.w])
        tm.apply_averaged(step.opt, tm.average_gradients(grads, **options))

    with pytest.raises(ValueError, match="of a share of the global loss.*reduce='sum'"):
        step.run(body, eager=eager)
    assert step.run(lambda x: body(x, reduce="sum"), eager=eager) == -3.0


def _unscaled(pairs: Any) -> Any:
    return [(grad / 1.0, variable) for grad, variable in pairs]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda step, pairs: tm.clip_by_global_norm(pairs, 1.0), "Clipping would limit neither"),
        (lambda step, pairs: tm.average_gradients(pairs), "divide a second time"),
        (lambda step, pairs: tm.apply_averaged(step.opt, pairs), "would drift apart"),
    ],
    ids=["clip", "average", "apply"],
)
def test_arithmetic_does_not_hide_what_a_gradient_is(two_towers: Any, use: Any, says: str) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        use(step, _unscaled(tm.tower_gradients(step.opt, tf.reduce_mean(step.w * x), [step.w])))

    with pytest.raises(ValueError, match=f"{says}.*one tower's share of a sum over 2"):
        step.run(body)


def test_a_sum_of_the_shares_of_all_towers_may_be_clipped(two_towers: Any) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> Any:
        shares = tm.tower_gradients(step.opt, tf.reduce_mean(step.w * x), [step.w])
        averaged = tm.average_gradients(shares, reduce="sum")
        (pair,), _ = tm.clip_by_global_norm(_unscaled(averaged), 2.0)
        summed = tf.distribute.get_replica_context().all_reduce("sum", [g for g, _ in shares])
        (other,), _ = tm.clip_by_global_norm([(summed[0], step.w)], 2.0)
        return pair[0] + other[0]

    assert [float(each) for each in step.run(body)] == [4.0, 4.0]


def _two(body: Callable[[_Step, Any], Any], says: str, name: str) -> Any:
    return pytest.param(body, says, id=name)


def _tape(step: _Step, loss: Callable[[], Any], **options: Any) -> None:
    with tf.GradientTape() as tape:
        value = loss()
    step.opt.apply_gradients(tm.tower_gradients(tape, value, [step.w], **options))


def _of_a_gradient(step: _Step, x: Any) -> None:
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            share = tm.global_batch_loss(step.w * step.w * x)
        penalty = tf.square(inner.gradient(share, step.w))
    step.opt.apply_gradients(tm.tower_gradients(outer, penalty, [step.w]))


def _raw(step: _Step, x: Any) -> None:
    tm.apply_averaged(step.opt, step.opt.compute_gradients(tf.reduce_mean(step.w * x), [step.w]))


def _averaged_again(step: _Step, x: Any) -> None:
    step.opt.apply_gradients(
        tm.average_gradients(step.opt.compute_gradients(tf.reduce_mean(step.w * x), [step.w]))
    )


def _in_a_loop(step: _Step, x: Any) -> None:
    def once(i: Any) -> Any:
        tm.average_gradients(step.opt.compute_gradients(tf.reduce_mean(step.w * x), [step.w]))
        return i + 1

    tf.while_loop(lambda i: i < 2, once, [0])


def _activity(step: _Step, x: Any) -> Any:
    return tm.regularization_loss([tf.reduce_mean(tf.square(x))])


def _averages(step: _Step, loss: Callable[[], Any]) -> Any:
    with tf.GradientTape() as tape:
        value = loss()
    return tm.average_gradients([(tape.gradient(value, step.w), step.w)])


def _clipped_average(step: _Step, x: Any) -> None:
    averages = _averages(step, lambda: tf.reduce_mean(step.w * x))
    step.opt.apply_gradients(tm.clip_by_global_norm(averages, 10.0)[0])


def _list_of_one(step: _Step, x: Any) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(step.w * x)
    tm.average_gradients([[(tape.gradient(loss, step.w), step.w)]])


def _clipped_share(step: _Step, x: Any) -> None:
    with tf.GradientTape() as tape:
        loss = tm.global_batch_loss(step.w * x)
    tm.clip_by_global_norm([(tape.gradient(loss, step.w), step.w)], 1.0)


def _share(step: _Step, x: Any) -> Any:
    return tm.global_batch_loss((step.w + 1.0) * x)


def _with_itself(step: _Step, x: Any, how: Callable[[Any], Any]) -> None:
    _tape(step, lambda: how(_share(step, x)))


_NO_SUMS = "something else|is no sum of shares"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        _two(_clipped_average, "average_gradients has done so already", "a clipped average summed again"),
        _two(_list_of_one, "a list of one tower's list", "a list of one tower"),
        _two(_clipped_share, "one tower's part of a gradient", "a clipped part of a share's gradient"),
        _two(lambda s, x: tm.average_gradients(_averages(s, lambda: tf.reduce_mean(s.w * x)), reduce="sum"),
             "averaged or summed already", "a sum of averages"),
        _two(lambda s, x: _tape(s, lambda: s.w * (tm.global_batch_loss(x) - 1.0)), _NO_SUMS, "what is trained times a constant"),
        _two(lambda s, x: _tape(s, lambda: tm.global_batch_loss(s.w * x) + s.w * (_share(s, x) - 1.0)), _NO_SUMS,
             "a share and what is trained times a constant"),
        _two(lambda s, x: _with_itself(s, x, lambda y: y * tf.stop_gradient(y)), _NO_SUMS, "times itself without gradient"),
        _two(lambda s, x: _with_itself(s, x, lambda y: y / tf.stop_gradient(y)), _NO_SUMS, "over itself without gradient"),
        _two(lambda s, x: _with_itself(s, x, lambda y: tf.where(y > 1.8, y, 1.8)), _NO_SUMS, "a choice by a share"),
        _two(lambda s, x: _with_itself(s, x, lambda y: y * tf.cast(y > 1.8, tf.float32)), _NO_SUMS, "times a choice"),
        _two(lambda s, x: tm.global_batch_loss(tf.stack([_share(s, x)])), "is divided by a global count already", "a share again"),
        _two(lambda s, x: tm.token_normalized_loss(_share(s, x)[None], [1.0]), "is divided by a global count already",
             "a share by tokens"),
        _two(lambda s, x: tm.regularization_loss([_share(s, x)]), "is divided by a global count already", "a share as penalty"),
        _two(lambda s, x: tm.regularization_loss(tf.nn.scale_regularization_loss(s.w * s.w)),
             "what tf.nn.scale_regularization_loss returned", "a penalty scaled twice"),
        _two(lambda s, x: tm.global_batch_loss(x, global_batch_size=np.int64(3)), r"have 2 \+ 2 examples", "size of NumPy"),
        _two(lambda s, x: _tape(s, lambda: tf.reduce_sum(tf.stack([s.w * x, s.w * x], 1) / 4.0)), "times 1/4", "a matrix over a count"),
        _two(lambda s, x: _tape(s, lambda: s.w * x), r"shape \(2,\); expected a scalar", "vector"),
        _two(lambda s, x: _tape(s, lambda: [s.w * x[0]] * 2), "a list of 2; expected", "a list"),
        _two(lambda s, x: _tape(s, lambda: tf.reduce_sum(s.w * x) * (1 / 4)), "times 1/4", "by hand"),
        _two(lambda s, x: _tape(s, lambda: tf.reduce_sum(s.w * x) / 4.0), "times 1/4", "divided"),
        _two(_of_a_gradient, "made of a gradient of what global_batch_loss", "a share's gradient"),
        _two(_raw, "one replica's own gradients", "raw gradients applied as averages"),
        _two(_averaged_again, "average_gradients has done so already", "averages summed again"),
        _two(_in_a_loop, "where replicas cannot meet", "an average in a loop"),
        _two(_activity, "say how many examples this one has", "an activity regulariser"),
        _two(lambda s, x: tm.tower_gradients(s.opt, tf.reduce_mean(s.w * x), [s.w, s.w]),
             "w:0 is listed twice", "a variable twice"),
        _two(lambda s, x: tm.global_batch_loss(x, global_batch_size=3), r"have 2 \+ 2 examples", "size"),
    ],
)  # fmt: skip
def test_what_would_be_wrong_says_what_to_write(
    two_towers: Any, body: Callable[[_Step, Any], Any], says: str
) -> None:
    step = _Step(two_towers)
    with pytest.raises(ValueError, match=says):
        step.run(lambda x: body(step, x))


def test_what_is_made_of_the_global_loss_is_a_towers_own(two_towers: Any) -> None:
    step = _Step(two_towers)

    def loss(x: Any) -> Any:
        context = tf.distribute.get_replica_context()
        whole = context.all_reduce("SUM", tm.global_batch_loss(x))  # 3, on each tower
        return tm.global_batch_loss(step.w * x) * tf.stop_gradient(whole) + tm.global_batch_loss(x)

    assert step.run(lambda x: _tape(step, lambda: loss(x))) == -9.0


def test_a_divided_average_may_be_summed_again(two_towers: Any) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        averages = _averages(step, lambda: tf.reduce_mean(step.w * x))
        step.opt.apply_gradients([(grad / 2, variable) for grad, variable in averages])

    assert step.run(body) == -3.0


@pytest.mark.parametrize("weight", [1.0, 0.5, 10.0])
@pytest.mark.parametrize("path", ["tower_gradients", "average_gradients"])
def test_keras_3_losses_are_known_to_be_scaled(two_towers: Any, weight: float, path: str) -> None:
    step, loss = _Step(two_towers), keras.losses.MeanAbsoluteError()
    tm.tower_strategy(2)  # where Keras is known by now

    def value(x: Any) -> Any:
        return weight * loss(tf.zeros_like(x)[:, None], (step.w + 1.0) * x[:, None])

    with pytest.raises(ValueError, match="a Keras 3 loss"):
        if path == "tower_gradients":
            step.run(lambda x: _tape(step, lambda: value(x)))
        else:
            step.run(lambda x: _averages(step, lambda: value(x)))
    step.run(lambda x: _tape(step, lambda: value(x), share=True))
    assert step.w.numpy() == pytest.approx(-3.0 * weight)


def test_an_optimizer_that_is_told_to_sum_nothing_refuses_parts(two_towers: Any) -> None:
    step = _Step(two_towers)
    with two_towers.scope():
        optimizer = tf_keras.optimizers.SGD(1.0)

    def body(x: Any) -> None:
        pairs = tm.tower_gradients(step.opt, tm.global_batch_loss(step.w * x), [step.w])
        optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)

    with pytest.raises(ValueError, match="is told to sum nothing"):
        step.run(body)


def test_other_gradients_from_outside_are_refused(two_towers: Any) -> None:
    step = _Step(two_towers)
    made = tf.function(
        lambda x: two_towers.run(lambda x: tf.reduce_mean(x), args=(x,)), autograph=False
    )(*tm.shard_batch(ROWS))
    with pytest.raises(ValueError, match="the replicas have other gradients of w"):
        tm.apply_averaged(step.opt, [(made, step.w)])


_BY_HAND: dict[str, Callable[[Any, int], Any]] = {
    "a sum times a number": lambda per, count: tf.reduce_sum(per) * (1 / count),
    "a sum over a number": lambda per, count: tf.reduce_sum(per) / float(count),
    "a sum over a count": lambda per, count: tf.reduce_sum(per) / tf.cast(_run(count), tf.float32),
    "losses over a number": lambda per, count: tf.reduce_sum(per / float(count)),
    "losses times a number": lambda per, count: tf.reduce_sum((1 / count) * per),
    "half a sum of squares": lambda per, count: tf.nn.l2_loss(per) / count,
    "a product of vectors": lambda per, count: tf.tensordot(per, tf.ones_like(per), 1) / count,
    "an einsum": lambda per, count: tf.einsum("i,i->", per, tf.ones_like(per)) / count,
    "a mean times a part": lambda per, count: (
        tf.reduce_mean(per) * tf.cast(tf.size(per), tf.float32) / count
    ),
    "a mean times a part that is counted": lambda per, count: (
        tf.reduce_mean(per) * (tf.cast(tf.shape(per)[0], tf.float32) / count)
    ),
    "rows of several": lambda per, count: tf.reduce_sum(per[:, tf.newaxis] * [2.0, 3.0]) / count,
    "a sum of sums": lambda per, count: (
        tf.reduce_sum(tf.math.unsorted_segment_sum(per, tf.range(tf.size(per)) % 2, 2)) / count
    ),
    "a sum of sorted sums": lambda per, count: (
        tf.reduce_sum(tf.math.segment_sum(per, tf.range(tf.size(per)) // 2)) / count
    ),
    "one by one": lambda per, count: _one_by_one(per) / count,
}


def _one_by_one(per: Any) -> Any:
    """Their sum; only rows whose number is known can be taken apart."""
    return tf.add_n(tf.unstack(per)) if per.shape[0] else tf.reduce_sum(per)


def _run(count: int) -> Any:
    """A number that is known only while the step runs."""
    return count * tf.cast(tf.random.uniform([], 1.0, 1.5), tf.int32)


@pytest.mark.parametrize(
    "rows", [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0], [1.0, 2.0]], ids=["4", "3", "2"]
)
@pytest.mark.parametrize("mode", ["eager", "function", "unknown rows", "nested"])
@pytest.mark.parametrize("form", list(_BY_HAND))
def test_a_share_made_by_hand_is_seen(two_towers: Any, form: str, mode: str, rows: Any) -> None:
    step = _Step(two_towers)

    def grads(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = _BY_HAND[form](step.w * x, len(rows))
        return [grad for grad, _ in tm.tower_gradients(tape, loss, [step.w])]

    def body(x: Any) -> None:
        if mode == "unknown rows":
            x = v1.placeholder_with_default(x, [None])
        made = (
            tf.function(grads, jit_compile=True, autograph=False)(x)
            if mode == "nested"
            else grads(x)
        )
        step.opt.apply_gradients(zip(made, [step.w], strict=True))

    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="write share=True"):
        step.run(body, eager=mode == "eager", rows=rows)


_PATHS = ("an average of a tape", "an average of an optimizer", "an optimizer", "an accumulator")


def _along(path: str, step: _Step, loss: Callable[[], Any], accumulator: Any, rows: Any) -> None:
    """One update by another path than a tape's `tower_gradients`."""
    with tf.GradientTape() as tape:
        value = loss()
    if path == "an optimizer":
        step.opt.apply_gradients(tm.tower_gradients(step.opt, value, [step.w]))
        return
    pairs = [(tape.gradient(value, step.w), step.w)]
    if path == "an average of an optimizer":
        pairs = step.opt.compute_gradients(value, [step.w])
    if path == "an accumulator":
        accumulator.add(pairs, rows)
        tm.apply_averaged(step.opt, accumulator.average())
        return
    tm.apply_averaged(step.opt, tm.average_gradients(pairs))


def _update(path: str, mode: str, step: _Step, loss: Callable[[Any], Any], rows: Any) -> Any:
    with step.strategy.scope():
        accumulator = tm.GradientAccumulator([step.w])

    def body(x: Any) -> None:
        if mode == "unknown rows":
            x = v1.placeholder_with_default(x, [None])
        _along(path, step, lambda: loss(x), accumulator, tf.shape(x)[0])

    return step.run(body, eager=mode == "eager", rows=rows)


_OTHERS = [
    (path, mode)
    for path in _PATHS
    for mode in ("eager", "function", "unknown rows")
    if mode != "eager" or "optimizer" not in path  # of a tensor, optimizers only do it in graphs
]


@pytest.mark.parametrize(("path", "mode"), _OTHERS)
@pytest.mark.parametrize("form", list(_BY_HAND))
def test_other_paths_see_a_share_made_by_hand(
    two_towers: Any, form: str, path: str, mode: str
) -> None:
    step = _Step(two_towers)
    rows = [1.0, 2.0, 3.0]
    instead = {
        "an optimizer": "write share=True",
        "an accumulator": "give it the gradients of the mean over this tower.*micro-batch",
    }.get(path, "write reduce=.*sum.* adds")  # an error of the run escapes the quotes
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=instead):
        _update(path, mode, step, lambda x: _BY_HAND[form](step.w * x, len(rows)), rows)


def test_gradients_that_a_compiled_function_returns_show_how_they_came_by(two_towers: Any) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        @tf.function(jit_compile=True, autograph=False)  # type: ignore[untyped-decorator]
        def grad(x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(step.w * x) / 4.0
            return tape.gradient(loss, step.w)

        halved = [(grad(x) / 2.0, step.w)]
        tm.apply_averaged(step.opt, tm.average_gradients(halved))

    with pytest.raises(ValueError, match="this tower's 2 times 1/4.*reduce='sum'"):
        step.run(body)


def test_an_average_of_shares_has_to_be_a_sum(two_towers: Any) -> None:
    step = _Step(two_towers)
    with pytest.raises(ValueError, match="got share=True.*reduce='sum' adds them up"):
        step.run(lambda x: tm.average_gradients([(x[0], step.w)], share=True))
    with two_towers.scope():
        accumulator = tm.GradientAccumulator([step.w])
    with pytest.raises(ValueError, match="share=True says that they are divided already"):
        step.run(lambda x: accumulator.add([(x[0], step.w)], 1, share=True))


_OWN: dict[str, Callable[[Any, Any], Any]] = {
    "a mean": lambda w, x: tf.reduce_mean(w * x),
    "a sum over its rows": lambda w, x: tf.reduce_sum(w * x) / tf.cast(tf.size(x), tf.float32),
    "a product with its own count": lambda w, x: (
        tf.tensordot(w * x, tf.ones_like(x), 1) / tf.cast(tf.size(x), tf.float32)
    ),
    "half a sum of squares over its rows": lambda w, x: (
        tf.nn.l2_loss(w * x) / tf.cast(tf.shape(x)[0], tf.float32)
    ),
    "with a decay": lambda w, x: tf.reduce_mean(w * x) + 0.01 * tf.reduce_sum(w * w * [1.0, 0.0]),
    "two halves": lambda w, x: 0.5 * (tf.reduce_mean(w * x) + tf.reduce_mean(2 * w * x)),
    "half a sum": lambda w, x: 0.5 * tf.reduce_sum(w * x),
    "a sum of sums over its rows": lambda w, x: (
        tf.reduce_sum(tf.math.unsorted_segment_sum(w * x, tf.range(tf.size(x)) % 2, 2))
        / tf.cast(tf.size(x), tf.float32)
    ),
    "one by one over its rows": lambda w, x: _one_by_one(w * x) / 2.0,
}


@pytest.mark.parametrize("mode", ["eager", "function", "unknown rows"])
@pytest.mark.parametrize("form", list(_OWN))
def test_a_towers_own_loss_is_averaged(two_towers: Any, form: str, mode: str) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        if mode == "unknown rows":
            x = v1.placeholder_with_default(x, [None])
        _tape(step, lambda: _OWN[form](step.w, x))

    expected = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        losses = [_OWN[form](expected, part) for part in (ROWS[:2], ROWS[2:])]
        whole = tf.add_n(losses) / 2
    gradient = tape.gradient(whole, expected)
    assert step.run(body, eager=mode == "eager") == pytest.approx(-float(gradient))


def test_a_count_of_tokens_may_be_that_of_all_rows_by_chance(two_towers: Any) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        # Four tokens on the first tower, as many as both have rows; five on the second.
        tokens = 4 + tf.cast(x[0] > 2.0, tf.int32)

        def loss() -> Any:
            losses = step.w * x[:, tf.newaxis] * [1.0, 1.0, 1.0]
            return tf.reduce_sum(losses) / tf.cast(tokens, tf.float32)

        _tape(step, loss)

    assert step.run(body) == pytest.approx(-(6 / 4 + 30 / 5) / 2)


@pytest.mark.parametrize("form", [tf.nn.l2_loss, tf.reduce_sum])
def test_the_decay_of_a_weight_is_no_sum_over_rows(two_towers: Any, form: Any) -> None:
    step = _Step(two_towers)
    step.w.assign(2.0)
    # Two elements, times 1/4, on two towers: as a sum over the rows of all towers.
    step.run(
        lambda x: _tape(step, lambda: 0.25 * form(tf.stack([step.w, step.w])) + tf.reduce_mean(x))
    )
    assert step.w.numpy() == (1.0 if form is tf.nn.l2_loss else 1.5)


@pytest.mark.parametrize(("path", "mode"), _OTHERS)
@pytest.mark.parametrize("form", list(_OWN))
def test_other_paths_average_a_towers_own_loss(
    two_towers: Any, form: str, path: str, mode: str
) -> None:
    step = _Step(two_towers)
    expected = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        losses = [_OWN[form](expected, part) for part in (ROWS[:2], ROWS[2:])]
        whole = tf.add_n(losses) / 2
    gradient = tape.gradient(whole, expected)
    made = _update(path, mode, step, lambda x: _OWN[form](step.w, x), ROWS)
    assert made == pytest.approx(-float(gradient))


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "function"])
def test_a_mean_over_the_number_of_replicas_has_to_be_stated(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)
    with pytest.raises(ValueError, match="a mean times 1/2.*write share=True"):
        step.run(lambda x: _tape(step, lambda: tf.reduce_mean(step.w * x) / 2), eager=eager)


@pytest.mark.parametrize("source", ["tape", "optimizer"])
def test_a_share_times_1_over_n_has_to_be_stated(two_towers: Any, source: str) -> None:
    step = _Step(two_towers)

    def update(loss: Callable[[], Any], **said: Any) -> None:
        if source == "tape":
            _tape(step, loss, **said)
        else:
            step.opt.apply_gradients(tm.tower_gradients(step.opt, loss(), [step.w], **said))

    with pytest.raises(ValueError, match=r"times 1/2\. There are 2 replicas.*write share=True"):
        step.run(lambda x: update(lambda: 0.5 * tm.global_batch_loss(step.w * x)))
    step.run(lambda x: update(lambda: 0.5 * tm.global_batch_loss(step.w * x), share=True))
    assert step.w.numpy() == -1.5

    def weighted(x: Any) -> Any:
        return tm.global_batch_loss(step.w * x) + 0.5 * tm.global_batch_loss(step.w * x)

    step.run(lambda x: update(lambda: weighted(x)))
    assert step.w.numpy() == -6.0


def test_what_is_stated_is_taken(two_towers: Any) -> None:
    for share, expected in ((True, -3.0), (False, -1.5)):
        step = _Step(two_towers)
        step.run(lambda x: _tape(step, lambda: tf.reduce_sum(step.w * x) / 4.0, share=share))  # noqa: B023
        assert step.w.numpy() == expected


def test_activity_regularisers_count_by_examples(two_towers: Any) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> Any:
        losses = [tf.reduce_mean(tf.square(x)), tf.square(step.w + 2.0)]
        return tm.regularization_loss(losses, examples=tf.shape(x)[0])

    assert sum(float(each) for each in step.run(body, rows=[1.0, 2.0, 3.0])) == pytest.approx(
        14 / 3 + 4
    )


@pytest.mark.parametrize("known", [True, False], ids=["known shapes", "unknown shapes"])
@pytest.mark.parametrize(
    ("losses", "weights", "tokens"),
    [
        ([2.0], [1.0, 1.0, 1.0], False),
        ([2.0, 2.0, 2.0], [3.0], False),
        ([[1.0, 2.0]], [[1.0], [1.0]], False),
        ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], True),
        ([[1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]], True),
    ],
)
def test_weights_of_other_rows_are_an_error(
    losses: Any, weights: Any, tokens: bool, known: bool
) -> None:
    specs = [tf.TensorSpec(np.shape(each) if known else None) for each in (losses, weights)]
    function = tm.token_normalized_loss if tokens else tm.global_batch_loss
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tf.function(function, autograph=False, input_signature=specs)(losses, weights)


@pytest.mark.parametrize(
    "weights", [[1.0, 0.0, 2.0], [[1.0], [0.0], [2.0]], [[[1.0]], [[0.0]], [[2.0]]]]
)
def test_weights_of_unknown_rank_weigh_examples(weights: Any) -> None:
    losses = np.array([[1, 3], [5, 7], [2, 4]], np.float32)
    run = tf.function(
        tm.global_batch_loss, autograph=False, input_signature=[tf.TensorSpec(None)] * 2
    )
    assert float(run(losses, weights)) == pytest.approx((2 * 1 + 3 * 2) / 3)


def test_checks_while_a_step_runs(two_towers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWERMIGRATE_CHECKS", "1")
    step = _Step(two_towers)

    def too_small(x: Any) -> Any:
        return tm.global_batch_loss(x, global_batch_size=tf.reduce_sum(tf.constant([1, 2])))

    with pytest.raises(
        tf.errors.InvalidArgumentError, match="number of examples on all replicas, and is not"
    ):
        step.run(too_small)

    def own(x: Any) -> None:
        del x
        place = tf.distribute.get_replica_context().replica_id_in_sync_group
        tm.apply_averaged(step.opt, [(tf.cast(place, tf.float32), step.w)])

    with pytest.raises(tf.errors.InvalidArgumentError, match="other gradients of w:0"):
        step.run(own)

    def right(x: Any) -> None:
        loss = tm.global_batch_loss(step.w * x, global_batch_size=tf.constant(4))
        grads = tm.average_gradients(step.opt.compute_gradients(loss, [step.w]), reduce="sum")
        tm.apply_averaged(step.opt, grads)

    assert step.run(right) == -3.0


@pytest.mark.parametrize("keras_3", [False, True], ids=["TF1", "Keras 3"])
def test_an_optimizer_takes_its_gradients_by_name(two_towers: Any, keras_3: bool) -> None:
    step = _Step(two_towers, (lambda: keras.optimizers.SGD(1.0)) if keras_3 else None)

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(step.variable * x)
        shares = tm.tower_gradients(tape, loss, [step.variable])
        if keras_3:
            step.opt.apply(grads=[grad for grad, _ in shares], trainable_variables=[step.w])
        else:
            step.opt.apply_gradients(grads_and_vars=shares)

    assert step.run(body) == -3.0
    if not keras_3:
        with pytest.raises(ValueError, match="average_gradients has done so already"):
            step.run(lambda x: step.opt.apply_gradients(
                grads_and_vars=tm.average_gradients(step.opt.compute_gradients(step.w * x[0], [step.w]))
            ))  # fmt: skip
        with pytest.raises(TypeError, match="grads_and_vars"):
            step.opt.apply_gradients()


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("parts", [1, 4])
def test_a_batch_for_another_strategy_says_so(two_towers: Any, parts: int, eager: bool) -> None:
    (batch,) = tm.shard_batch(ROWS, strategy=tm.tower_strategy(parts))

    def step(x: Any) -> Any:
        return two_towers.run(tf.reduce_sum, args=(x,))

    with pytest.raises(ValueError, match=f"a value of {parts} part.* for 2 towers.*strategy="):
        (step if eager else tf.function(step, autograph=False))(batch)


@pytest.mark.parametrize("made_in", ["another", "none"])
@pytest.mark.parametrize("averages", [False, True])
def test_a_variable_of_another_strategy_says_so(
    two_towers: Any, made_in: str, averages: bool
) -> None:
    with tm.tower_strategy(4).scope() if made_in == "another" else contextlib.nullcontext():
        w = tf.Variable(1.0, name="w")
    opt = v1.train.GradientDescentOptimizer(1.0)

    def body() -> None:
        if averages:
            tm.average_gradients([(tf.constant(1.0), w)])
        else:
            tm.tower_gradients(opt, w * 2.0, [w])

    says = (
        "of another strategy, of 4 towers; this one has 2" if made_in == "another" else "outside of"
    )
    with pytest.raises(ValueError, match=f"w:0 was made .*{says}"):
        tf.function(lambda: two_towers.run(body), autograph=False)()


def test_a_variable_of_fewer_towers_in_a_step(two_towers: Any) -> None:
    with tm.tower_strategy(1).scope():
        w = tf.Variable(1.0)
    four = tm.tower_strategy(4)
    with pytest.raises(IndexError, match="in the scope of another strategy"):
        tf.function(lambda: four.run(lambda: w * 2.0), autograph=False)()
    with pytest.raises(IndexError, match="^list index"):
        two_towers.run(lambda: [][0])


def test_a_share_made_in_a_py_function_says_so(two_towers: Any) -> None:
    def body(x: Any) -> Any:
        return tf.py_function(tm.global_batch_loss, [x], tf.float32)

    with pytest.raises(tf.errors.InvalidArgumentError, match="make the share of them outside"):
        _Step(two_towers).run(body)
    assert sum(float(each) for each in _Step(two_towers).run(body, eager=True)) == 3.0


@pytest.mark.parametrize("eager", [False, True])
def test_shares_that_tensorflow_makes_are_known(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)

    def average(x: Any) -> None:
        _tape(step, lambda: tf.nn.compute_average_loss(step.w * x, global_batch_size=4))

    step.run(average, eager=eager)
    assert step.w.numpy() == -3.0
    step.w.assign(2.0)
    step.run(lambda x: _tape(step, lambda: tf.nn.scale_regularization_loss(step.w**2)), eager=eager)
    assert step.w.numpy() == -2.0
    with pytest.raises(
        ValueError, match=r"compute_average_loss.*1/2|compute_average_loss.*divided by 2"
    ):
        step.run(
            lambda x: _tape(
                step, lambda: tf.nn.compute_average_loss(step.w * x, global_batch_size=4) / 2
            ),
            eager=eager,
        )


@pytest.mark.parametrize("uneven", ["spread", "pad"])
@pytest.mark.parametrize("rows", range(1, 10))
def test_rows_and_weights_that_were_split_differently_are_an_error(rows: int, uneven: str) -> None:
    strategy = tm.tower_strategy(4)
    values = np.arange(rows, dtype=np.float32) + 1
    data = tf.data.Dataset.from_tensor_slices(values).batch(rows)
    batch = next(iter(strategy.experimental_distribute_dataset(data)))
    (weights,) = tm.shard_batch(values, uneven=uneven)
    sizes = [
        [part.shape[0] for part in strategy.experimental_local_results(each)]
        for each in (batch, weights)
    ]

    @tf.function(autograph=False)
    def share(x: Any, w: Any) -> Any:
        return strategy.run(tm.global_batch_loss, args=(x, w))

    if sizes[0] == sizes[1]:
        assert float(tm.sum_over_towers(share(batch, weights))) == pytest.approx(np.mean(values**2))
    else:
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            share(batch, weights)


def _out_of(kind: str, step: _Step, x: Any, **size: int) -> Any:
    def share() -> Any:
        return tm.global_batch_loss(step.w * x, **size)

    if kind == "cond":
        return tf.cond(tf.reduce_sum(x) > 0, share, lambda: 0.0)
    if kind == "while":
        return tf.while_loop(lambda i, _: i < 1, lambda i, a: (i + 1, a + share()), [0, 0.0])[1]
    return tf.reduce_sum(tf.map_fn(lambda one: tm.global_batch_loss(step.w * one[None], **size), x))


@pytest.mark.parametrize("kind", ["cond", "while", "map_fn"])
def test_a_share_out_of_a_branch_or_a_loop(two_towers: Any, kind: str) -> None:
    step = _Step(two_towers)

    def shares(x: Any) -> None:
        loss = _out_of(kind, step, x, global_batch_size=4)
        step.opt.apply_gradients(tm.tower_gradients(step.opt, loss, [step.w]))

    def averaged(x: Any) -> None:
        loss = _out_of(kind, step, x, global_batch_size=4)
        tm.average_gradients(step.opt.compute_gradients(loss, [step.w]))

    says = (
        "something else" if kind == "map_fn" else "Make the share outside of tf.cond and of loops"
    )
    with pytest.raises(ValueError, match=says):
        step.run(shares)
    with pytest.raises(ValueError, match="of a share of the global loss.*reduce='sum'"):
        step.run(averaged)
    with pytest.raises(ValueError, match="^global_batch_loss: Give it the size"):
        step.run(lambda x: _out_of(kind, step, x))


@pytest.mark.parametrize("how", ["mean", "first", "last", "reduce"])
def test_a_mean_of_parts_is_refused_outside_of_replicas_too(two_towers: Any, how: str) -> None:
    step = _Step(two_towers)

    def part(x: Any) -> Any:
        [(grad, _)] = tm.tower_gradients(step.opt, tf.reduce_mean(step.w * x), [step.w])
        return tf.identity(grad)

    def averaged(x: Any) -> None:
        made = two_towers.run(part, args=(x,))
        grad = {
            "mean": tm.mean_over_towers,
            "first": tm.first_tower,
            "last": tm.last_tower,
            "reduce": lambda value: two_towers.reduce("MEAN", value, axis=None),
        }[how](made)
        tm.apply_averaged(step.opt, [(grad, step.w)])

    run = tf.function(averaged, autograph=False)
    [rows] = tm.shard_batch(ROWS)
    with pytest.raises(ValueError, match="what tower_gradients returned on each tower.*sum_over"):
        run(rows)


def test_a_sum_of_parts_is_the_gradient(two_towers: Any) -> None:
    step = _Step(two_towers)

    def summed(x: Any) -> None:
        parts = two_towers.run(
            lambda x: tm.tower_gradients(step.opt, tf.reduce_mean(step.w * x), [step.w])[0][0],
            args=(x,),
        )
        tm.apply_averaged(step.opt, [(tm.sum_over_towers(parts), step.w)])

    tf.function(summed, autograph=False)(*tm.shard_batch(ROWS))
    assert step.w.numpy() == -3.0


_OWN_COUNTS = {
    "rows": lambda w, x: tm.global_batch_loss(w * x, global_batch_size=tf.shape(x)[0]),
    "cast rows": lambda w, x: tm.global_batch_loss(
        w * x, global_batch_size=tf.cast(tf.size(x), tf.float32)
    ),
    "TensorFlow": lambda w, x: tf.nn.compute_average_loss(w * x, global_batch_size=2),
    "TensorFlow, rows": lambda w, x: tf.nn.compute_average_loss(
        w * x, global_batch_size=tf.shape(x)[0]
    ),
    "tokens": lambda w, x: tm.token_normalized_loss(
        w * x, _seen(x), global_tokens=tf.reduce_sum(_seen(x))
    ),
}


def _seen(x: Any) -> Any:
    return tf.cast(tf.not_equal(x, 0.0), tf.float32)


@pytest.mark.parametrize("known", [True, False], ids=["known rows", "unknown rows"])
@pytest.mark.parametrize("count", _OWN_COUNTS)
def test_a_replicas_own_count_is_no_global_one(two_towers: Any, count: str, known: bool) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        loss = _OWN_COUNTS[count](step.w, x)
        step.opt.apply_gradients(tm.tower_gradients(step.opt, loss, [step.w]))

    if not known and count == "TensorFlow":
        pytest.skip("nothing tells a number of rows that are not known from the batch's")
    rows = tm.shard_batch(ROWS)
    run = tf.function(lambda x: two_towers.run(body, args=(x,)), autograph=False)
    with pytest.raises(ValueError, match="examples on all replicas together|own weights"):
        if known:
            run(*rows)
        else:
            tm.create_variables(run, tf.TensorSpec([None], tf.float32))


_GLOBAL_COUNTS = {
    "times the replicas": lambda w, x: tm.global_batch_loss(
        w * x, global_batch_size=tf.shape(x)[0] * 2
    ),
    "added up": lambda w, x: tm.global_batch_loss(
        w * x,
        global_batch_size=tf.distribute.get_replica_context().all_reduce("SUM", tf.shape(x)[0]),
    ),
    "tokens over examples": lambda w, x: tf.nn.compute_average_loss(
        tf.reshape(tf.stack([w * x, w * x], 1), [-1]) / 2.0, global_batch_size=4
    ),
    "TensorFlow": lambda w, x: tf.nn.compute_average_loss(w * x),
    "tokens": lambda w, x: tm.token_normalized_loss(
        w * x,
        _seen(x),
        global_tokens=tf.distribute.get_replica_context().all_reduce(
            "SUM", tf.reduce_sum(_seen(x))
        ),
    ),
}


@pytest.mark.parametrize("count", _GLOBAL_COUNTS)
def test_a_global_count_is_taken(two_towers: Any, count: str) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        loss = _GLOBAL_COUNTS[count](step.w, x)
        step.opt.apply_gradients(tm.tower_gradients(step.opt, loss, [step.w]))

    assert step.run(body) == -3.0


def test_rows_of_a_part_of_a_batch_that_every_replica_has(two_towers: Any) -> None:
    """The batch is whole on each replica, which takes its part: the rows of the whole are the global batch."""
    step = _Step(two_towers)

    def body(x: Any) -> None:
        place = tf.distribute.get_replica_context().replica_id_in_sync_group
        mine = x[place * 2 : place * 2 + 2]
        loss = tm.global_batch_loss(step.w * mine, global_batch_size=tf.shape(x)[0])
        step.opt.apply_gradients(tm.tower_gradients(step.opt, loss, [step.w]))

    run = tf.function(
        lambda x: two_towers.run(body, args=(x,)),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.float32)],
    )
    run(tf.constant(ROWS))
    assert step.w.numpy() == -3.0


@pytest.mark.parametrize("how", ["norm", "value", "global norm"])
def test_towers_clipped_gradients_are_averaged_and_not_summed(two_towers: Any, how: str) -> None:
    step = _Step(two_towers)

    def clipped(x: Any) -> Any:
        pairs = step.opt.compute_gradients(tf.reduce_mean(step.w * x), [step.w])
        if how == "norm":
            return tm.clip_by_norm(pairs, 2.0)
        if how == "value":
            return tm.clip_by_value(pairs, -2.0, 2.0)
        return tm.clip_by_global_norm(pairs, 2.0)[0]

    def summed(x: Any) -> None:
        step.opt.apply_gradients(clipped(x))

    def divided(x: Any) -> None:
        step.opt.apply_gradients([(g / 2.0, v) for g, v in clipped(x)])

    def averaged(x: Any) -> None:
        tm.apply_averaged(step.opt, tm.average_gradients(clipped(x)))

    with pytest.raises(ValueError, match="2 times the average"):
        step.run(summed)
    step.run(divided)
    assert step.w.numpy() == -1.5
    step.run(averaged)
    assert step.w.numpy() == -3.0


_AVERAGES = {
    "noise": (lambda g, x: g + tf.random.normal([]), False),
    "data": (lambda g, x: g * tf.reduce_mean(x), False),
    "seeded noise": (lambda g, x: g + 0.0 * tf.random.normal([], seed=3), True),
    "rows": (lambda g, x: g * tf.cast(tf.shape(x)[0], tf.float32) * 0.5, True),
    "mean of data": (
        lambda g, x: (
            g * tf.distribute.get_replica_context().all_reduce("MEAN", tf.reduce_mean(x)) / 3.0
        ),
        True,
    ),
}


@pytest.mark.parametrize("how", _AVERAGES)
def test_a_replicas_own_numbers_in_an_average(two_towers: Any, how: str) -> None:
    step = _Step(two_towers)
    change, is_right = _AVERAGES[how]

    def body(x: Any) -> None:
        pairs = step.opt.compute_gradients(tf.reduce_mean(step.w * x), [step.w])
        averages = tm.average_gradients(pairs)
        tm.apply_averaged(step.opt, [(change(g, x), v) for g, v in averages])

    if is_right:
        assert step.run(body) == -3.0
        return
    with pytest.raises(ValueError, match="own data or random numbers"):
        step.run(body)


def test_slots_that_a_saver_leaves_out_are_told_of(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def made() -> tuple[Any, Any]:
        strategy = tm.tower_strategy(1, devices="cpu:1")
        with strategy.scope():
            w, opt = tf.Variable(1.0, name="w"), v1.train.MomentumOptimizer(0.1, 0.9)
            strategy.run(lambda: opt.apply_gradients([(tf.constant(1.0), w)]))
        return w, opt

    w, opt = made()
    path = tm.tf1_saver(w, optimizers=[opt]).save(str(tmp_path / "model"))
    tm.tf1_saver(w, optimizers=[opt]).restore(path)
    assert not [record for record in caplog.records if record.name == "towermigrate"]
    for chosen in ([w], {"w": w}):
        tm.tf1_saver(chosen).restore(path)
    assert not [record for record in caplog.records if record.name == "towermigrate"]
    saver = tm.tf1_saver(w)
    for _ in range(2):
        saver.restore(path)
    [told] = [each.getMessage() for each in caplog.records if each.name == "towermigrate"]
    assert "w/Momentum" in told and "optimizers=" in told
