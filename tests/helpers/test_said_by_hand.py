"""Helpers used by hand in ways that once gave another number, or lost a value, without a word."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
tm = pytest.importorskip("towermigrate.helpers")
v1 = tf.compat.v1

ROWS = np.array([1.0, 1.0, 5.0, 5.0], np.float32)  # mean 3


def two() -> Any:
    return tm.tower_strategy(2, devices="cpu:2")


# ---- checkpoints -----------------------------------------------------------------------------------


def test_a_saver_takes_names_of_a_dict(tmp_path: Path) -> None:
    old = tf.Variable(2.0, name="gen_old/w")
    path = tm.tf1_saver(old).save(str(tmp_path / "model"))
    new, same = tf.Variable(0.0, name="gen/w"), tf.Variable(0.0, name="gen_old/w")
    tm.tf1_saver({"gen_old/w": new}).restore(path)
    tm.tf1_saver([{"gen_old/w": same}]).restore(path)
    assert (float(new), float(same)) == (2.0, 2.0)
    assert list(tm.tf1_saver({"a": new}, same).names()) == ["a", "gen_old/w"]


def test_a_saver_restores_averages_into_their_variables(tmp_path: Path) -> None:
    w = tf.Variable(1.0, name="w")
    average = tf.train.ExponentialMovingAverage(0.5)
    average.apply([w])
    average.average(w).assign(7.0)
    path = tm.tf1_saver(w, averages=[average]).save(str(tmp_path / "model"))
    tm.tf1_saver({average.average_name(w): w}).restore(path)
    assert float(w) == 7.0


@pytest.mark.parametrize("how", ["save", "names"])
def test_two_variables_of_one_name_are_an_error(tmp_path: Path, how: str) -> None:
    saver = tm.tf1_saver(tf.Variable(1.0, name="fc/w"), [tf.Variable(2.0, name="fc/w")])
    with pytest.raises(ValueError, match="Two variables are named 'fc/w'"):
        saver.save(str(tmp_path / "model")) if how == "save" else saver.names()


def test_one_variable_given_twice_is_saved_once(tmp_path: Path) -> None:
    with two().scope():
        w = tf.Variable(1.0, name="w")
    saver = tm.tf1_saver(w, [w])
    assert list(saver.names()) == ["w"]
    saver.restore(saver.save(str(tmp_path / "model")))


def trained(tmp_path: Path, steps: int = 2) -> tuple[Any, Any, Any, Any]:
    """A program of one layer with Adam, whose step was traced or not, with its saver."""
    strategy = two()
    with strategy.scope():
        variables, opt = tm.TowerVariables(), v1.train.AdamOptimizer(0.1)
        count = tf.Variable(0, trainable=False, name="global_step", dtype=tf.int64)

    @variables.tower
    def tower(x: Any) -> Any:
        return tf.reduce_mean(v1.layers.dense(x[:, tf.newaxis], 1, name="net"))

    @tf.function(autograph=False)
    def step(x: Any) -> None:
        def replica(x: Any) -> None:
            loss = tower(x)
            opt.apply_gradients(tm.tower_gradients(opt, loss, variables.trainable()), count)

        strategy.run(replica, args=(x,))

    look = tf.function(lambda x: strategy.run(tower, args=(x,)), autograph=False)
    for _ in range(steps):
        step(*tm.shard_batch(ROWS, strategy=strategy))
    saver = tm.tf1_saver(variables, count, optimizers=[opt])
    return saver, step, look, count


def test_a_restore_before_the_model_is_made_is_an_error(tmp_path: Path) -> None:
    path = trained(tmp_path)[0].save(str(tmp_path / "model"))
    saver, step, look, count = trained(tmp_path, steps=0)
    with pytest.raises(ValueError, match="create_variables"):
        saver.restore(path)
    spec = tf.TensorSpec([None], tf.float32)
    tm.create_variables(look, spec)  # the model, and no slots
    with pytest.raises(ValueError, match="Nothing was restored: .* not made yet"):
        saver.restore(path)
    assert int(count.numpy()) == 0
    tm.create_variables(step, spec)
    saver.restore(path)
    assert int(count.numpy()) == 2


def test_a_restore_of_the_model_alone_needs_no_slots(tmp_path: Path) -> None:
    saver, _, _, count = trained(tmp_path)
    path = saver.save(str(tmp_path / "model"))
    other = tf.Variable([[0.0]], name="net/kernel")
    tm.tf1_saver(other).restore(path)
    assert other.numpy().item() != 0.0


# ---- gradients -------------------------------------------------------------------------------------


def test_lists_of_other_variables_are_not_averaged_by_place() -> None:
    a, b = tf.Variable(0.0, name="a"), tf.Variable(0.0, name="b")
    one, five = tf.constant(1.0), tf.constant(5.0)
    towers = [
        tm.filter_gradients([(one, a), (None, b)]),
        tm.filter_gradients([(None, a), (five, b)]),
    ]
    with pytest.raises(ValueError, match="different orders"):
        tm.average_gradients(towers)


def test_a_copy_of_a_variable_for_each_tower_may_be_averaged() -> None:
    copies = [tf.Variable(0.0, name=f"tower_{i}/w") for i in range(2)]
    grads = [[(tf.constant(value), v)] for value, v in zip([1.0, 5.0], copies, strict=True)]
    [(grad, _)] = tm.average_gradients(grads)
    assert float(grad) == 3.0


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("kept_loop", [True, False])
def test_an_update_of_one_copy_is_an_error(eager: bool, kept_loop: bool) -> None:
    with two().scope():
        w, opt = tf.Variable(0.0), v1.train.GradientDescentOptimizer(1.0)

    def step() -> None:
        with tf.GradientTape(persistent=True) as tape:
            losses = [tf.reduce_mean(w * part) for part in (ROWS[:2], ROWS[2:])]
        if kept_loop:
            pairs = tm.average_gradients(
                [[(tape.gradient(loss, w), w)] for loss in losses], share=False
            )
        else:
            pairs = tm.tower_gradients(tape, losses[0], [w])
        opt.apply_gradients(pairs)

    with pytest.raises(ValueError, match=r"outside of strategy\.run"):
        step() if eager else tf.function(step, autograph=False)()


def test_an_average_is_applied_to_every_copy_outside_of_replicas() -> None:
    with two().scope():
        w, opt = tf.Variable(0.0), v1.train.GradientDescentOptimizer(1.0)
    tm.apply_averaged(opt, tm.average_gradients([[(tf.constant(1.0), w)], [(tf.constant(5.0), w)]]))
    assert [float(copy) for copy in w.values] == [-3.0, -3.0]


def test_a_loop_of_towers_is_told_to_take_its_own_means() -> None:
    w = tf.Variable(0.0)

    @tf.function(autograph=False)
    def step() -> None:
        towers = []
        for part in (ROWS[:2], ROWS[2:]):
            with tf.GradientTape() as tape:
                loss = tm.global_batch_loss(w * part)
            towers.append([(tape.gradient(loss, w), w)])
        tm.average_gradients(towers)

    with pytest.raises(ValueError, match=r"tf\.reduce_mean"):
        step()


def test_a_share_assigned_to_copies_is_an_error() -> None:
    strategy = two()
    with strategy.scope():
        w = tf.Variable(0.0)

    @tf.function(autograph=False)
    def step(x: Any) -> None:
        def replica(x: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tm.global_batch_loss(w * x)
            w.assign_sub(tape.gradient(loss, w), read_value=False)

        strategy.run(replica, args=(x,))

    with pytest.raises(ValueError, match="its own copy"):
        step(*tm.shard_batch(ROWS, strategy=strategy))


def test_an_accumulator_made_outside_of_the_scope_is_an_error() -> None:
    strategy = two()
    with strategy.scope():
        w = tf.Variable(0.0)
    accumulator = tm.GradientAccumulator([w])

    def replica(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(w * x)
        accumulator.add([(tape.gradient(loss, w), w)], examples=2)

    step = tf.function(lambda x: strategy.run(replica, args=(x,)), autograph=False)
    with pytest.raises(ValueError, match=r"strategy\.scope"):
        step(*tm.shard_batch(ROWS, strategy=strategy))


def test_an_optimizer_of_keras_made_outside_of_the_scope_is_an_error() -> None:
    keras = pytest.importorskip("keras")
    strategy = two()
    opt = keras.optimizers.SGD(1.0)
    with strategy.scope():
        w = tf.Variable(0.0)

    def replica(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(w * x)
        opt.apply_gradients(tm.tower_gradients(tape, loss, [w]))

    with pytest.raises(ValueError, match="iterations"):
        strategy.run(replica, args=tm.shard_batch(ROWS, strategy=strategy))


# ---- inputs and results ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [(np.array([1, 2]), np.array([0.5, 1.5])), (np.uint8([1]), np.array([300, -1]))],
)
def test_a_later_type_that_the_first_cannot_hold_is_an_error(first: Any, second: Any) -> None:
    batches = tm.same_batches(iter([first, second]), strategy=two())
    next(batches)
    with pytest.raises(ValueError, match="the first one had"):
        next(batches)


def test_a_later_type_that_fits_is_taken() -> None:
    strategy = two()
    batches = tm.same_batches(iter([np.float32([1]), np.float64([2.5])]), strategy=strategy)
    next(batches)
    (value,) = next(batches)
    assert [x.numpy().item() for x in strategy.experimental_local_results(value)] == [2.5, 2.5]


def test_rows_are_put_together_once() -> None:
    strategy = two()
    value = strategy.run(lambda x: x + 1, args=tm.shard_batch([1, 2, 3, 4], strategy=strategy))
    whole = tm.concat_towers(value, strategy)
    assert whole.numpy().tolist() == [2, 3, 4, 5]
    with pytest.raises(ValueError, match="one value, not one for each tower"):
        tm.concat_towers(whole, strategy)


def test_a_list_of_settings_is_parted_at_blanks_too() -> None:
    from towermigrate.helpers.contrib import HParams

    assert HParams(names=["x"]).parse("names=[a, b]").names == ["a", "b"]


# ---- tower functions -------------------------------------------------------------------------------


def dense(x: Any, name: str | None = None) -> Any:
    return v1.layers.dense(x, 1, name=name, use_bias=False)


def another_dense(x: Any) -> Any:
    return dense(x)


class Net:
    def __init__(self, times: float = 1.0) -> None:
        self.times = times

    def forward(self, x: Any) -> Any:
        return self.times * dense(x)


def scoped(scope: str, **more: Any) -> Any:
    def forward(x: Any) -> Any:
        with v1.variable_scope(scope, **more):
            return dense(x)

    return forward


def step_of(strategy: Any, towers: list[Any]) -> Any:
    def replica(x: Any) -> Any:
        for tower in towers:
            x = tower(x)
        return x

    return tf.function(lambda x: strategy.run(replica, args=(x,)), autograph=False)


def made(*steps: Any) -> list[str]:
    """The variables of steps, each of which calls its tower functions on what the last one gave."""
    strategy = two()
    with strategy.scope():
        variables = tm.TowerVariables()

    for functions in steps:
        step = step_of(strategy, [variables.tower(each) for each in functions])
        step(*tm.shard_batch(ROWS[:, tf.newaxis], strategy=strategy))
    return [v.name.removesuffix(":0") for v in variables.all()]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(dense, another_dense, id="functions"),
        pytest.param(Net().forward, Net().forward, id="methods of two objects"),
        pytest.param(lambda x: dense(x), lambda x: dense(x), id="lambdas"),
        pytest.param(*(functools.partial(each) for each in (dense, another_dense)), id="partials"),
    ],
)
def test_layers_without_names_of_two_functions_are_an_error(first: Any, second: Any) -> None:
    with pytest.raises(ValueError, match="layers without a name, .* would share dense/kernel"):
        made([first, second])


def test_functions_share_variables_that_they_name() -> None:
    net, name = Net(), functools.partial(dense, name="d")
    assert made([dense, dense, functools.partial(dense)]) == ["dense/kernel"]
    assert made([net.forward, net.forward]) == ["dense/kernel"]
    assert made([name, lambda x: dense(x, "d")]) == ["d/kernel"]
    assert made([scoped("net"), scoped("net")]) == ["net/dense/kernel"]
    assert made([scoped("a"), scoped("b")]) == ["a/dense/kernel", "b/dense/kernel"]
    assert made([dense, scoped("", reuse=True)]) == ["dense/kernel"]


def test_layers_without_names_that_two_steps_share_are_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert made([dense], [functools.partial(dense)]) == ["dense/kernel"]
    assert made([scoped("a")], [another_dense]) == ["a/dense/kernel", "dense/kernel"]
    assert made([functools.partial(dense, name="d")], [lambda x: dense(x, "d")]) == ["d/kernel"]
    assert not [each for each in caplog.records if "without a name" in each.message]
    assert made([dense], [another_dense], [another_dense]) == ["dense/kernel"]
    [said] = [each for each in caplog.records if "without a name" in each.message]
    assert "'dense' and 'another_dense' share dense/kernel" in said.message


@pytest.mark.parametrize("built", ["beside it", "in a tower of it"])
def test_losses_of_regularisers_are_those_of_the_own_towers(built: str) -> None:
    strategy = two()
    counts: dict[str, list[int]] = {}
    with strategy.scope():
        first, second = tm.TowerVariables(), tm.TowerVariables()

    def model(name: str, value: float) -> Any:
        start = v1.constant_initializer(value)
        return v1.get_variable(name, [], initializer=start, regularizer=lambda w: 1.0 * w)

    def of_both(where: str) -> None:
        losses = first.regularization_losses(), second.regularization_losses()
        counts.setdefault(where, [len(each) for each in losses])  # of the first trace

    @first.tower
    def tower(x: Any) -> Any:
        loss = x * model("a", 10.0)
        of_both("first")
        return other(loss) if built == "in a tower of it" else loss

    @second.tower
    def other(x: Any) -> Any:
        loss = x * model("b", 100.0)
        of_both("second")
        return loss

    def replica(x: Any) -> Any:
        loss = tower(x) if built == "in a tower of it" else other(tower(x))
        of_both("replica")
        return loss

    tf.function(lambda x: strategy.run(replica, args=(x,)), autograph=False)(
        *tm.shard_batch(ROWS, strategy=strategy)
    )
    assert counts == {"first": [1, 0], "second": [1, 1], "replica": [1, 1]}
    each = [[float(x) for x in v.regularization_losses()] for v in (first, second)]
    assert each == [[10.0], [100.0]]


def test_looking_around_a_step_that_is_traced_is_an_error() -> None:
    strategy = two()
    with strategy.scope():
        variables = tm.TowerVariables()
    tower = variables.tower(
        lambda x: v1.layers.batch_normalization(x[:, tf.newaxis], momentum=0.0, training=True)
    )
    step = tf.function(lambda x: strategy.run(tower, args=(x,)), autograph=False)
    tm.create_variables(step, tf.TensorSpec([None], tf.float32), strategy=strategy)
    with pytest.raises(RuntimeError, match="looking.* eagerly"), variables.looking():
        step(*tm.shard_batch(ROWS, strategy=strategy))
    [mean] = variables.all(".*moving_mean")
    assert float(mean.numpy()[0]) == 0.0


# ---- optimizers of TF1 -----------------------------------------------------------------------------


def updated(strategy: Any, *, place: str, outside: str = "", eager: bool = True) -> list[float]:
    """A variable's copies after a step of an optimizer, of which one part was made outside of the scope."""
    made: dict[str, Any] = {}
    makers = {
        "w": lambda: tf.Variable(1.0, name="w"),
        "count": lambda: tf.Variable(0, name="count", dtype=tf.int64, trainable=False),
        "opt": lambda: v1.train.GradientDescentOptimizer(0.5),
    }
    for part, maker in makers.items():
        with contextlib.nullcontext() if part == outside else strategy.scope():
            made[part] = maker()

    def update() -> None:
        made["opt"].apply_gradients([(tf.constant(1.0), made["w"])], made["count"])

    def step() -> None:
        if place == "replica":
            strategy.run(update)
        else:
            with strategy.scope() if place == "scope" else contextlib.nullcontext():
                update()

    (step if eager else tf.function(step, autograph=False))()
    return [float(copy) for copy in getattr(made["w"], "values", [made["w"]])]


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("towers", [1, 2])
def test_an_optimizer_outside_of_the_scope_says_what_is(towers: int, eager: bool) -> None:
    strategy = tm.tower_strategy(towers, devices=f"cpu:{towers}")
    how: dict[str, Any] = {"eager": eager}
    for part in ("w", "count"):
        with pytest.raises(
            ValueError, match=rf"variable {part}:0 was made outside .* {towers} tow"
        ):
            updated(strategy, place="replica", outside=part, **how)
    with pytest.raises(RuntimeError, match=r"outside of strategy\.run"):
        updated(strategy, place="scope", **how)
    if towers > 1:
        with pytest.raises(ValueError, match="only the first would move"):
            updated(strategy, place="outside", **how)
    expected = [1.0 - 0.5 * towers] * towers
    assert updated(strategy, place="replica", outside="opt", **how) == expected
    one = tf.distribute.OneDeviceStrategy("cpu:0")
    assert updated(one, place="replica", outside="w", **how) == [0.5]
