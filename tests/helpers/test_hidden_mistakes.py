"""Shares and parts that are hidden behind other arithmetic: the wrong program says what to write, the right one next to it trains."""

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
TOWERS = 2
mean, total = tf.reduce_mean, tf.reduce_sum


class _Step:
    """A variable of 1.0 and SGD with the rate 1, on two towers."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.w = tf.Variable(1.0, name="w")
            self.opt = v1.train.GradientDescentOptimizer(1.0)

    def run(
        self, body: Callable[[Any], Any], *, eager: bool = False, rows: Any = ROWS
    ) -> list[float]:
        def step(x: Any) -> None:
            self.strategy.run(lambda x: body(x) and None, args=(x,))

        batch = tm.shard_batch(rows, uneven="spread")
        (step if eager else tf.function(step, autograph=False))(*batch)
        return [float(copy.numpy()) for copy in self.w.values]


def _all_reduced(value: Any) -> Any:
    return tf.distribute.get_replica_context().all_reduce("SUM", value)


def _count(x: Any) -> Any:
    return tf.cast(tf.size(x), tf.float32)


def _nested(function: Callable[..., Any], *args: Any) -> Any:
    return tf.function(function, autograph=False)(*args)


def _run_time(number: float) -> Any:
    return tf.cast(number * tf.random.uniform([], 1.0, 1.01), tf.int32)


_SHARES: dict[str, Callable[[Any, Any], Any]] = {
    "half a sum over a count": lambda w, x: 0.5 * total(w * x) / 4.0,
    "ten sums over a count": lambda w, x: 10.0 * total(w * x) / 4.0,
    "a sum over a count, weighted": lambda w, x: total(w * x) / 4.0 * 0.3,
    "half a sum of losses over a count": lambda w, x: 0.5 * total(w * x / 4.0),
    "half a sum over a run's count": lambda w, x: (
        0.5 * total(w * x) / tf.cast(_run_time(4), tf.float32)
    ),
    "half precision": lambda w, x: (
        0.5 * tf.cast(total(tf.cast(w * x, tf.float16)), tf.float32) / 4.0
    ),
    "in half precision": lambda w, x: tf.cast(
        0.5 * total(tf.cast(w * x, tf.float16)) / 4.0, tf.float32
    ),
    "scaled by what a run knows": lambda w, x: tf.random.uniform([], 8.0, 8.01) * total(w * x) / 4.0,
    "its rows and the towers": lambda w, x: 0.3 * total(w * x) / 2.0 / TOWERS,
    "its size and the towers": lambda w, x: 0.3 * total(w * x) / (_count(x) * TOWERS),
    "nested": lambda w, x: _nested(lambda x: total(w * x) / 4.0, x),
    "nested, halved outside": lambda w, x: 0.5 * _nested(lambda x: total(w * x) / 4.0, x),
    "nested, divided outside": lambda w, x: 0.3 * _nested(lambda x: total(w * x), x) / 4.0,
    "nested losses": lambda w, x: _nested(lambda x: total(w * x / 4.0), x),
    "nested twice": lambda w, x: _nested(lambda x: _nested(lambda x: total(w * x), x) / 4.0, x),
    "nested mean": lambda w, x: _nested(lambda x: mean(w * x) / TOWERS, x),
    "nested mean, divided outside": lambda w, x: _nested(lambda x: mean(w * x), x) / TOWERS,
    "nested product": lambda w, x: _nested(
        lambda x: tf.tensordot(w * x, tf.ones_like(x), 1) / 4.0, x
    ),
    "all-reduced count": lambda w, x: total(w * x) / _all_reduced(_count(x)),
    "all-reduced integers": lambda w, x: total(w * x) / tf.cast(_all_reduced(tf.size(x)), tf.float32),
    "times the reciprocal of an all-reduced count": lambda w, x: (
        0.5 * total(w * x) * (1.0 / _all_reduced(_count(x)))
    ),
    "a safe all-reduced count": lambda w, x: total(w * x) / tf.maximum(_all_reduced(_count(x)), 1.0),
    "three means' weight over the towers": lambda w, x: 3.0 * mean(w * x) / TOWERS,
    "two means over the towers": lambda w, x: (mean(w * x) + mean(2.0 * w * x)) / TOWERS,
    "three means over the towers": lambda w, x: (
        (mean(w * x) + mean(2.0 * w * x) + 0.1 * mean(w * w * x)) / TOWERS
    ),
    "each of two means over the towers": lambda w, x: mean(w * x) / TOWERS + mean(3.0 * w * x) / TOWERS,
}  # fmt: skip

_OWN: dict[str, Callable[[Any, Any], Any]] = {
    "weighted means": lambda w, x: mean(w * x) + 0.5 * mean(w * x * x) + 0.01 * tf.nn.l2_loss(w),
    "half of two means": lambda w, x: 0.5 * (mean(w * x) + mean(2.0 * w * x)),
    "one of two halved": lambda w, x: mean(w * x) / 2.0 + mean(w * x * x),
    "a weighted sum over its rows": lambda w, x: 0.1 * total(w * x) / 2.0,
    "ten sums over its size": lambda w, x: 10.0 * total(w * x) / _count(x),
    "a weighted sum over its size": lambda w, x: 0.3 * total(w * x) / _count(x),
    "a nested mean": lambda w, x: _nested(lambda x: mean(w * x), x),
    "nested weighted means": lambda w, x: _nested(lambda x: 0.3 * mean(w * x) + mean(w * w * x), x),
    "a nested sum over its size": lambda w, x: _nested(lambda x: total(w * x) / _count(x), x),
    "a scaled mean": lambda w, x: tf.random.uniform([], 1.0, 1.0000001) * mean(w * x),
}


def _apply(path: str, step: _Step, tape: Any, loss: Any, accumulator: Any, x: Any) -> None:
    if path == "tower_gradients":
        step.opt.apply_gradients(tm.tower_gradients(tape, loss, [step.w]))
    elif path == "optimizer":
        step.opt.apply_gradients(tm.tower_gradients(step.opt, loss, [step.w]))
    elif path == "average":
        pairs = [(tape.gradient(loss, step.w), step.w)]
        tm.apply_averaged(step.opt, tm.average_gradients(pairs))
    else:
        accumulator.add([(tape.gradient(loss, step.w), step.w)], tf.size(x))
        tm.apply_averaged(step.opt, accumulator.average())


_PATHS = [
    (path, mode)
    for path in ("tower_gradients", "optimizer", "average", "accumulator")
    for mode in ("eager", "function", "unknown rows")
    if mode != "eager" or path != "optimizer"
]


def _update(step: _Step, form: Callable[[Any, Any], Any], path: str, mode: str) -> list[float]:
    with step.strategy.scope():
        accumulator = tm.GradientAccumulator([step.w])

    def body(x: Any) -> None:
        if mode == "unknown rows":
            x = v1.placeholder_with_default(x, [None])
        with tf.GradientTape() as tape:
            loss = form(step.w, x)
        _apply(path, step, tape, loss, accumulator, x)

    return step.run(body, eager=mode == "eager")


@pytest.mark.parametrize(("path", "mode"), _PATHS)
@pytest.mark.parametrize("form", list(_SHARES))
def test_a_share_behind_other_arithmetic_is_seen(
    two_towers: Any, form: str, path: str, mode: str
) -> None:
    step = _Step(two_towers)
    with pytest.raises(
        (ValueError, tf.errors.InvalidArgumentError), match="share of the global loss"
    ):
        _update(step, _SHARES[form], path, mode)


@pytest.mark.parametrize(("path", "mode"), _PATHS)
@pytest.mark.parametrize("form", list(_OWN))
def test_a_towers_own_loss_behind_other_arithmetic_is_averaged(
    two_towers: Any, form: str, path: str, mode: str
) -> None:
    expected = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        whole = tf.add_n([_OWN[form](expected, part) for part in (ROWS[:2], ROWS[2:])]) / 2.0
    gradient = float(tape.gradient(whole, expected))
    made = _update(_Step(two_towers), _OWN[form], path, mode)
    assert made == pytest.approx([1.0 - gradient] * 2, rel=1e-5)


_OF_ONE_NUMBER: dict[str, Callable[[Any], Any]] = {
    "a loop": lambda per: tf.foldl(lambda a, b: a + b, per),
    "a cumulative sum": lambda per: tf.cumsum(per)[-1],
    "a norm": lambda per: tf.norm(per) ** 2,
    "a product of a matrix": lambda per: tf.linalg.matvec(per[None], tf.ones_like(per))[0],
}


@pytest.mark.parametrize("path", ["tower_gradients", "optimizer", "average", "accumulator"])
@pytest.mark.parametrize("form", list(_OF_ONE_NUMBER))
def test_a_count_shows_whatever_added_the_rows_up(two_towers: Any, form: str, path: str) -> None:
    step, made = _Step(two_towers), _OF_ONE_NUMBER[form]
    with pytest.raises(ValueError, match="share of the global loss"):
        _update(step, lambda w, x: made(w * x) / 4.0, path, "function")
    expected = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        whole = tf.add_n([made(expected * part) / 2.0 for part in (ROWS[:2], ROWS[2:])]) / 2.0
    found = _update(_Step(two_towers), lambda w, x: made(w * x) / 2.0, path, "function")
    assert found == pytest.approx([1.0 - float(tape.gradient(whole, expected))] * 2, rel=1e-5)


@pytest.mark.parametrize("mode", ["function", "eager"])
@pytest.mark.parametrize("path", ["tower_gradients", "average"])
def test_half_of_each_square_under_a_mean_is_no_share(
    two_towers: Any, path: str, mode: str
) -> None:
    forms: list[Callable[[Any, Any], Any]] = [
        lambda w, x: mean(0.5 * tf.square(w * x)),
        lambda w, x: mean(total(0.5 * tf.square(w * x[:, tf.newaxis] * [1.0, 2.0]), 1)),
        lambda w, x: mean(-0.5 * total(w * x[:, tf.newaxis] * [1.0, 2.0], 1)),
    ]
    for form in forms:
        expected = tf.Variable(1.0)
        with tf.GradientTape() as tape:
            whole = tf.add_n([form(expected, part) for part in (ROWS[:2], ROWS[2:])]) / 2.0
        found = _update(_Step(two_towers), form, path, mode)
        assert found == pytest.approx([1.0 - float(tape.gradient(whole, expected))] * 2, rel=1e-5)


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
def test_gradients_that_all_reduce_has_summed_are_not_summed_again(
    two_towers: Any, eager: bool
) -> None:
    def body(step: _Step, x: Any, use: Callable[[Any], Any]) -> None:
        use(_all_reduced(_own(step, lambda: tm.global_batch_loss(step.w * x))))

    step = _Step(two_towers)
    uses: list[Callable[[Any], Any]] = [
        lambda grad: step.opt.apply_gradients([(grad, step.w)]),
        lambda grad: tm.average_gradients([(grad, step.w)], reduce="sum"),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="or all_reduce.*apply_averaged"):
            step.run(lambda x: body(step, x, use), eager=eager)  # noqa: B023
    rights: list[Callable[[Any], Any]] = [
        lambda grad: tm.apply_averaged(step.opt, [(grad, step.w)]),
        lambda grad: step.opt.apply_gradients([(grad / TOWERS, step.w)]),
    ]
    for use in rights:
        step.w.assign(1.0)
        assert step.run(lambda x: body(step, x, use), eager=eager) == [-2.0] * 2  # noqa: B023


def test_a_number_in_a_function_is_asked_for_where_its_rows_are_not_known(two_towers: Any) -> None:
    def form(w: Any, x: Any) -> Any:
        return 0.3 * _nested(lambda x: total(w * x) / 2.0, x)

    for path in ("tower_gradients", "average"):
        assert _update(_Step(two_towers), form, path, "function") == pytest.approx([0.1] * 2)
        with pytest.raises(ValueError, match="cannot be compared.*share=False"):
            _update(_Step(two_towers), form, path, "unknown rows")


@pytest.mark.parametrize("form", ["half a sum over a count", "nested", "all-reduced count"])
def test_a_hidden_share_may_be_stated(two_towers: Any, form: str) -> None:
    whole = _SHARES[form]
    weight = 0.5 if form.startswith("half") else 1.0
    for share, expected in ((True, 3.0), (False, 1.5)):
        step = _Step(two_towers)

        def body(x: Any, step: _Step = step, share: bool = share) -> None:
            with tf.GradientTape() as tape:
                loss = whole(step.w, x)
            step.opt.apply_gradients(tm.tower_gradients(tape, loss, [step.w], share=share))

        assert step.run(body) == pytest.approx([1.0 - weight * expected] * 2)


# ---- a gradient within the loss ------------------------------------------------------------------


def _inner_step(step: _Step, x: Any, inner: Any, outer: Any, how: str) -> None:
    with tf.GradientTape() as tape:
        weight = tf.identity(step.w) if how == "of a tensor" else step.w
        with tf.GradientTape() as first:
            first.watch(weight)
            loss = inner(tf.square(weight * x))
        gradient = (
            first.gradient(loss, weight)
            if how != "tf.gradients"
            else tf.gradients(loss, [weight])[0]
        )
        if how == "all-reduced":
            gradient = _all_reduced(gradient)
        if how == "averaged":
            [(gradient, _)] = tm.average_gradients([(gradient, step.w)], reduce="sum")
        if how == "averaged, cut":
            [(gradient, _)] = tm.average_gradients([(gradient, step.w)], reduce="sum")
            gradient = tf.stop_gradient(gradient)
        loss = outer(tf.square((step.w - 0.01 * gradient) * x))
    step.opt.apply_gradients(tm.tower_gradients(tape, loss, [step.w]))  # fmt: skip


def _alone(cut: bool) -> float:
    w = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        with tf.GradientTape() as first:
            loss = mean(tf.square(w * ROWS))
        gradient = first.gradient(loss, w)
        gradient = tf.stop_gradient(gradient) if cut else gradient
        loss = mean(tf.square((w - 0.01 * gradient) * ROWS))
    return 1.0 - float(tape.gradient(loss, w))


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
@pytest.mark.parametrize("how", ["a tape", "tf.gradients", "of a tensor"])
@pytest.mark.parametrize("outer", ["a share", "a mean"])
def test_a_step_of_the_weights_by_a_part_of_a_gradient_is_refused(
    two_towers: Any, how: str, outer: str, eager: bool
) -> None:
    if eager and how != "a tape":
        pytest.skip(
            "eagerly tf.gradients is not there, and a tensor does not show that it is a weight"
        )
    step = _Step(two_towers)
    made = tm.global_batch_loss if outer == "a share" else mean
    with pytest.raises(ValueError, match="made of a gradient"):
        step.run(lambda x: _inner_step(step, x, tm.global_batch_loss, made, how), eager=eager)


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
@pytest.mark.parametrize("how", ["all-reduced", "averaged, cut"])
def test_a_step_of_the_weights_by_the_gradient_of_all_is_right(
    two_towers: Any, how: str, eager: bool
) -> None:
    step = _Step(two_towers)
    share = tm.global_batch_loss
    made = step.run(lambda x: _inner_step(step, x, share, share, how), eager=eager)
    assert made == pytest.approx([_alone("cut" in how)] * 2, rel=1e-5)


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
def test_an_average_passes_no_gradient_on_and_says_so(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)
    share = tm.global_batch_loss
    with pytest.raises(ValueError, match="passes no gradient on.*all_reduce"):
        step.run(lambda x: _inner_step(step, x, share, share, "averaged"), eager=eager)


def _of_inputs(kind: str, step: _Step, x: Any, made: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = total(tf.square(step.w * x)) if kind == "penalty" else made(tf.square(step.w * x))
    gradient = tape.gradient(loss, x)
    if kind == "penalty":
        return made(step.w * x) + made(tf.square(gradient))
    return made(step.w * x) + made(step.w * (x + 0.1 * tf.sign(gradient)))


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
@pytest.mark.parametrize("kind", ["penalty", "adversarial"])
@pytest.mark.parametrize("made", [tm.global_batch_loss, mean], ids=["share", "mean"])
def test_gradients_by_inputs_may_stand_in_a_loss(
    two_towers: Any, made: Any, kind: str, eager: bool
) -> None:
    if made is mean and kind == "adversarial" and eager:
        pytest.skip(
            "the mean's gradient is not remembered; the share's case is the one that could be refused"
        )
    step = _Step(two_towers)

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = _of_inputs(kind, step, x, made)
        step.opt.apply_gradients(tm.tower_gradients(tape, loss, [step.w]))

    alone = _Step(two_towers)
    with tf.GradientTape() as tape:
        loss = _of_inputs(kind, alone, tf.constant(ROWS), mean)
    expected = 1.0 - float(tape.gradient(loss, alone.w))
    assert step.run(body, eager=eager) == pytest.approx([expected] * 2, rel=1e-5)


# ---- what is applied, averaged, added, clipped ---------------------------------------------------


def _average(step: _Step, loss: Callable[[], Any]) -> Any:
    with tf.GradientTape() as tape:
        value = loss()
    [(average, _)] = tm.average_gradients([(tape.gradient(value, step.w), step.w)], share=False)
    return average


def _own(step: _Step, loss: Callable[[], Any]) -> Any:
    with tf.GradientTape() as tape:
        value = loss()
    return tape.gradient(value, step.w)


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
@pytest.mark.parametrize("how", ["added", "divided by its norm"])
def test_an_average_with_an_own_gradient_is_no_average(
    two_towers: Any, how: str, eager: bool
) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        average = _average(step, lambda: mean(step.w * x))
        own = _own(step, lambda: mean(step.w * x * x))
        grad = average + own if how == "added" else average / tf.maximum(1.0, tf.abs(own))
        tm.apply_averaged(step.opt, [(grad, step.w)])

    with pytest.raises(
        (ValueError, tf.errors.InvalidArgumentError), match="average_gradients returns"
    ):
        step.run(body, eager=eager)


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
def test_averages_with_what_is_alike_on_all_towers_are_applied(
    two_towers: Any, eager: bool
) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        averages = _average(step, lambda: mean(step.w * x)) + _average(
            step, lambda: mean(2.0 * step.w * x)
        )
        decay = _own(step, lambda: 0.5 * step.w * step.w)
        tm.apply_averaged(step.opt, [(averages + decay, step.w)])

    assert step.run(body, eager=eager) == [1.0 - (3.0 + 6.0 + 1.0)] * 2


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
@pytest.mark.parametrize("form", ["share", "by hand", "mean"])
def test_a_list_of_the_gradients_that_towers_returned(
    two_towers: Any, form: str, eager: bool
) -> None:
    step = _Step(two_towers)
    losses: dict[str, Callable[[Any], Any]] = {
        "share": tm.global_batch_loss,
        "by hand": lambda per: total(per) / 4.0,
        "mean": mean,
    }

    def run(x: Any) -> Any:
        return two_towers.run(lambda x: _own(step, lambda: losses[form](step.w * x)), args=(x,))

    made = (run if eager else tf.function(run, autograph=False))(*tm.shard_batch(ROWS))
    towers = [[(grad, step.w)] for grad in tm.each_tower(made)]
    if form == "mean":
        assert float(tm.average_gradients(towers)[0][0]) == 3.0
        return
    with pytest.raises(ValueError, match="share of the global loss.*reduce='sum'"):
        tm.average_gradients(towers)
    assert float(tm.average_gradients(towers, reduce="sum")[0][0]) == 3.0


@pytest.mark.parametrize("form", ["share", "by hand", "mean"])
def test_a_list_of_towers_gradients_within_a_function(two_towers: Any, form: str) -> None:
    step = _Step(two_towers)

    def loss(per: Any) -> Any:
        if form == "share":
            return tm.global_batch_loss(per)
        return mean(per) if form == "mean" else total(per) / 4.0

    def averaged(x: Any) -> Any:
        made = two_towers.run(lambda x: _own(step, lambda: loss(step.w * x)), args=(x,))
        return tm.average_gradients([[(grad, step.w)] for grad in tm.each_tower(made)])[0][0]

    function = tf.function(averaged, autograph=False)
    if form == "mean":
        assert float(function(*tm.shard_batch(ROWS))) == 3.0
        return
    with pytest.raises(ValueError, match="share of the global loss.*reduce='sum'"):
        function(*tm.shard_batch(ROWS))


def test_the_examples_of_a_micro_batch_count_once(two_towers: Any) -> None:
    step = _Step(two_towers)
    with two_towers.scope():
        other = tf.Variable(1.0)
        one, both = tm.GradientAccumulator([step.w]), tm.GradientAccumulator([step.w, other])

    def twice(x: Any) -> None:
        for factor in (1.0, 2.0):
            grad = _own(step, lambda: mean(factor * step.w * x))  # noqa: B023
            one.add([(grad, step.w)], tf.size(x))

    with pytest.raises(ValueError, match="called for the same rows before.*add the losses up"):
        step.run(twice)

    def in_parts(x: Any) -> None:
        both.add([(_own(step, lambda: mean(step.w * x)), step.w)], tf.size(x))
        both.add([(tf.constant(1.0), other)], tf.size(x))

    for eager in (False, True):
        with pytest.raises(ValueError, match="of other variables than before.*give one add all"):
            step.run(in_parts, eager=eager)


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
@pytest.mark.parametrize("how", ["slices", "split", "unstack", "one loss"])
def test_several_micro_batches_of_one_batch_may_be_added(
    two_towers: Any, how: str, eager: bool
) -> None:
    step = _Step(two_towers)
    with two_towers.scope():
        accumulator = tm.GradientAccumulator([step.w])
    parts: dict[str, Callable[[Any], list[Any]]] = {
        "slices": lambda x: [x[i : i + 1] for i in range(2)],
        "split": lambda x: tf.split(x, 2),
        "unstack": lambda x: [one[None] for one in tf.unstack(x)],
        "one loss": lambda x: [x],
    }

    def body(x: Any) -> None:
        for part in parts[how](x):
            grad = _own(step, lambda: mean(step.w * part))  # noqa: B023
            accumulator.add([(grad, step.w)], tf.size(part), share=False if eager else None)
        tm.apply_averaged(step.opt, accumulator.average())

    assert step.run(body, eager=eager) == [-2.0] * 2


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
def test_weights_are_clipped_alike_on_all_towers(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)
    with two_towers.scope():
        limit = tf.Variable(0.4)
    with pytest.raises(ValueError, match="limits that differ between the replicas.*drift apart"):
        step.run(lambda x: tm.clip_weights([step.w], tf.abs(mean(x))) and None, eager=eager)
    limits: list[tuple[Callable[[Any], Any], float]] = [
        (lambda x: _all_reduced(mean(x)) / 10.0, 0.6),
        (lambda x: tf.constant(0.5), 0.5),
        (lambda x: limit * 1.0, 0.4),
        (lambda x: 0.3, 0.3),
    ]
    for made, expected in limits:
        found = step.run(lambda x: tm.clip_weights([step.w], made(x)) and None, eager=eager)  # noqa: B023
        assert found == pytest.approx([expected] * 2)


# ---- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
def test_what_is_reduced_already_is_not_added_up_again(two_towers: Any, eager: bool) -> None:
    def summed(body: Callable[[Any], Any]) -> float:
        def step(x: Any) -> Any:
            return tm.sum_over_towers(two_towers.run(body, args=(x,)))

        return float((step if eager else tf.function(step, autograph=False))(*tm.shard_batch(ROWS)))

    with pytest.raises(ValueError, match="all-reduced already.*2 times. Take first_tower"):
        summed(lambda x: _all_reduced(mean(x)))
    assert summed(lambda x: total(x) / _all_reduced(_count(x))) == 3.0
    assert summed(lambda x: _all_reduced(total(x)) / 4.0 / TOWERS) == 3.0
    assert summed(tm.global_batch_loss) == 3.0
    with pytest.raises(ValueError, match="got bools.*tf.cast"):
        summed(lambda x: x[0] > 1.0)


def test_scalars_are_not_joined(two_towers: Any) -> None:
    made = two_towers.run(mean, args=tm.shard_batch(ROWS))
    with pytest.raises(ValueError, match="got scalars, which have no axis 0.*each_tower"):
        tm.concat_towers(made)
    assert tm.concat_towers(two_towers.run(tf.identity, args=tm.shard_batch(ROWS))).shape == [4]


def test_a_keras_3_optimizer_that_accumulates_says_what_to_take(two_towers: Any) -> None:
    with two_towers.scope():
        kernel = keras.Variable(0.0)
        optimizer = keras.optimizers.SGD(1.0, gradient_accumulation_steps=2)
        optimizer.build([kernel])

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tm.global_batch_loss(kernel.value * x)
        grads = tm.tower_gradients(tape, loss, [kernel.value])
        optimizer.apply([grad for grad, _ in grads], [kernel])

    with pytest.raises(ValueError, match="gradient_accumulation_steps.*GradientAccumulator"):
        _Step(two_towers).run(body)


@pytest.mark.parametrize("mode", ["function", "unknown rows"])
def test_shapes_may_hold_dimensions_as_in_tensorflow_1(two_towers: Any, mode: str) -> None:
    v1.disable_v2_tensorshape()  # a part of disable_v2_behavior, which session style calls
    try:
        for path in ("tower_gradients", "optimizer", "average", "accumulator"):
            for form in (
                lambda w, x: total(w * x[:, tf.newaxis]) / 4.0,
                lambda w, x: 0.5 * total(w * x) / 4.0,
            ):
                with pytest.raises(
                    (ValueError, tf.errors.InvalidArgumentError), match="share of the global loss"
                ):
                    _update(_Step(two_towers), form, path, mode)
            found = _update(
                _Step(two_towers), lambda w, x: tf.foldl(tf.add, w * x) / 2.0, path, mode
            )
            assert found == pytest.approx([1.0 - 3.0] * 2)
            found = _update(
                _Step(two_towers), lambda w, x: total(mean(w * x[:, tf.newaxis], 0)), path, mode
            )
            assert found == pytest.approx([1.0 - 3.0] * 2)
    finally:
        v1.enable_v2_tensorshape()


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
def test_towers_that_show_more_than_others_are_compared(two_towers: Any, eager: bool) -> None:
    step = _Step(two_towers)

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            # Of two rows on the first tower and one on the second more shows on the first.
            loss = _nested(lambda x: total(step.w * x) / 3.0, x)
        step.opt.apply_gradients(tm.tower_gradients(tape, loss, [step.w]))

    with pytest.raises(
        (ValueError, tf.errors.InvalidArgumentError), match="share of the global loss"
    ):
        step.run(body, eager=eager, rows=np.array([1, 2, 3], np.float32))


def _mean_by_weights(w: Any, x: Any) -> Any:
    errors = tf.square(tf.linalg.matvec(x[:, tf.newaxis] * [1.0, 0.5], tf.stack([w, w])))
    kept = tf.ones_like(x)
    return total(errors * kept) / total(kept)


_SIGNED: dict[str, Callable[[Any, Any], Any]] = {
    "a gain and half a penalty": lambda w, x: -mean(w * x) + 0.5 * mean(tf.square(w * x)),
    "half a mean less another": lambda w, x: 0.5 * mean(w * x) - mean(w * w * x),
    "a gain over its rows": lambda w, x: -total(w * x) / _count(x),
    "weights of its own": _mean_by_weights,
    "a gain of halves": lambda w, x: -mean(-0.5 * tf.square(w * x) + w * x),
}


@pytest.mark.parametrize("rows", [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0]], ids=["4", "3"])
@pytest.mark.parametrize("path", ["tower_gradients", "optimizer", "average"])
@pytest.mark.parametrize("form", list(_SIGNED))
def test_signs_and_one_row_make_no_share(two_towers: Any, form: str, path: str, rows: Any) -> None:
    expected = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        parts = [tf.constant(rows[:2]), tf.constant(rows[2:])]
        whole = tf.add_n([_SIGNED[form](expected, part) for part in parts]) / 2.0
    step = _Step(two_towers)

    def body(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = _SIGNED[form](step.w, x)
        _apply(path, step, tape, loss, None, x)

    found = step.run(body, rows=np.array(rows, np.float32))
    assert found == pytest.approx([1.0 - float(tape.gradient(whole, expected))] * 2, rel=1e-5)


@pytest.mark.parametrize("eager", [False, True], ids=["function", "eager"])
def test_a_share_may_be_negative(two_towers: Any, eager: bool) -> None:
    with pytest.raises(
        (ValueError, tf.errors.InvalidArgumentError), match="share of the global loss"
    ):
        mode = "eager" if eager else "function"
        _update(_Step(two_towers), lambda w, x: -total(w * x) / 4.0, "average", mode)
