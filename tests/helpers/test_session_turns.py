"""Several towers move one average in one run: each from what the last one left, and every copy alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from towermigrate.helpers._session_checks import is_write
from towermigrate.helpers._session_order import needed_for
from towermigrate.helpers._session_variables import TowerVariable

v1 = tf.compat.v1
ROWS, TOWERS, DECAY = 8, 4, 0.7
# float32 averages of the order of 1, a few operations; an order of towers that is not the right one is off by 0.01.
TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def control_flow_of_tf1() -> Iterator[None]:
    """As in a rewritten program, which disables TF2's behaviour."""
    before = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    yield
    if before:
        v1.enable_control_flow_v2()


def by_layers(x: Any, training: Any) -> Any:
    del training
    return v1.layers.batch_normalization(x, training=True, momentum=DECAY, name="bn")


def by_slim_in_place(x: Any, training: Any) -> Any:
    import tf_slim as slim

    del training
    return slim.batch_norm(x, is_training=True, decay=DECAY, updates_collections=None, scope="bn")


def by_slim_in_a_branch(x: Any, training: Any) -> Any:
    import tf_slim as slim

    return slim.batch_norm(
        x, is_training=training, decay=DECAY, updates_collections=None, scope="bn"
    )


def _mean() -> Any:
    zeros = v1.zeros_initializer()
    return v1.get_variable("bn/moving_mean", [3], initializer=zeros, trainable=False)


def by_hand(x: Any, training: Any) -> Any:
    del training
    mean = _mean()
    update = v1.assign(mean, mean * DECAY + tf.reduce_mean(x, 0) * (1 - DECAY))
    with tf.control_dependencies([update]):
        return tf.identity(x)


def by_hand_in_a_branch(x: Any, training: Any) -> Any:
    mean = _mean()

    def update() -> Any:
        moved = v1.assign(mean, mean * DECAY + tf.reduce_mean(x, 0) * (1 - DECAY))
        with tf.control_dependencies([moved]):
            return tf.identity(x)

    return v1.cond(training, update, lambda: x + 0.0)


def by_moving_averages(x: Any, training: Any) -> Any:
    from tensorflow.python.training import moving_averages

    mean = _mean()

    def update() -> Any:
        moved = moving_averages.assign_moving_average(
            mean, tf.reduce_mean(x, 0), DECAY, zero_debias=False
        )
        with tf.control_dependencies([moved]):
            return tf.identity(x)

    return v1.cond(training, update, lambda: x + 0.0)


MODELS = [by_layers, by_slim_in_place, by_slim_in_a_branch, by_moving_averages]
AT_ONCE = [by_hand, by_hand_in_a_branch]  # `mean * DECAY` is made before any tower assigns


def built(model: Callable[[Any, Any], Any], replicas: int) -> tuple[Any, Any, list[Any], list[Any]]:
    """Placeholders, and of each tower what it gives and its updates; in the default graph."""
    tm.mirror_variables(replicas)
    x, training = v1.placeholder(tf.float32, [None, 3]), v1.placeholder(tf.bool)
    outs, updates = [], []
    for i in tm.towers(range(TOWERS)):
        with v1.name_scope(f"tower_{i}") as scope, v1.variable_scope("", reuse=v1.AUTO_REUSE):
            outs.append(model(x[i * ROWS : (i + 1) * ROWS], training))
            updates.append(v1.get_collection(v1.GraphKeys.UPDATE_OPS, scope))
    return x, training, outs, updates


def moving_mean() -> Any:
    found = [v for v in v1.global_variables() if "moving_mean" in v.name]
    assert len(found) == 1 and isinstance(found[0], TowerVariable)
    return found[0]


def moved(before: Any, means: list[Any], order: tuple[int, ...]) -> Any:
    for each in order:
        before = before - (before - means[each]) * (1 - DECAY)
    return before


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize("model", [*MODELS, *AT_ONCE])
def test_towers_move_an_average_one_after_another(model: Any, replicas: int) -> None:
    random = np.random.RandomState(replicas)
    with tf.Graph().as_default():
        x, training, outs, updates = built(model, replicas)
        mean = moving_mean()
        copies = [copy.value() for copy in mean.copies]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(10):
                rows = random.normal(size=(TOWERS * ROWS, 3)).astype("f")
                before = session.run(mean)
                session.run([outs, updates], {x: rows, training: True})
                after = session.run(copies)
                assert all(np.array_equal(each, after[0]) for each in after)
                means = [each.mean(0) for each in np.split(rows, TOWERS)]
                turns = 1 if model in AT_ONCE else TOWERS
                differences = [
                    np.abs(moved(before, means, order) - after[0]).max()
                    for order in itertools.permutations(range(TOWERS), turns)
                ]
                assert min(differences) < TOLERANCE, differences


@pytest.mark.parametrize("model", [*MODELS, *AT_ONCE])
def test_one_tower_alone_moves_it_once(model: Any) -> None:
    rows = np.random.RandomState(0).normal(size=(TOWERS * ROWS, 3)).astype("f")
    means = [each.mean(0) for each in np.split(rows, TOWERS)]
    for tower in range(TOWERS):
        with tf.Graph().as_default():
            x, training, outs, updates = built(model, 2)
            mean = moving_mean()
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                session.run([outs[tower], updates[tower]], {x: rows, training: True})
                after = session.run([copy.value() for copy in mean.copies])
        expected = moved(np.zeros(3), means, (tower,))
        for each in after:
            np.testing.assert_allclose(each, expected, rtol=0, atol=TOLERANCE)


def test_a_step_that_fails_keeps_no_other_waiting() -> None:
    """One tower's input ends while others take their turns; an evaluation afterwards would wait for ever."""
    with tf.Graph().as_default():
        x, training, outs, updates = built(by_layers, 2)
        fails = tf.debugging.Assert(tf.reduce_all(x < 100.0), ["too large"])
        with v1.Session(config=v1.ConfigProto(operation_timeout_in_ms=20_000)) as session:
            session.run(v1.global_variables_initializer())
            good = np.ones([TOWERS * ROWS, 3], "f")
            bad = good.copy()
            bad[-1] = 1000.0
            for _ in range(20):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run([outs, updates, fails], {x: bad, training: True})
                session.run([outs, updates, fails], {x: good, training: True})


def test_what_a_loop_writes_takes_no_turns() -> None:
    with tf.Graph().as_default():
        for _ in tm.towers(range(2)):
            with v1.variable_scope("", reuse=v1.AUTO_REUSE):
                w = v1.get_variable("w", [], initializer=v1.ones_initializer(), use_resource=True)

        def body(i: Any) -> Any:
            with tf.control_dependencies([v1.assign(w, w * 2.0)]):
                return i + 1

        with v1.control_dependencies(None):
            looped = v1.while_loop(lambda i: i < 5, body, [0])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(looped)
            assert session.run([copy.value() for copy in w.copies]) == [32.0, 32.0]


def test_an_average_of_two_images_of_one_tower() -> None:
    """A discriminator that is called twice moves its averages twice."""
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        x, training = v1.placeholder(tf.float32, [None, 3]), v1.placeholder(tf.bool, [])
        done = []
        for _ in tm.towers(range(2)):
            for part in (x, x + 1.0):
                with v1.variable_scope("", reuse=v1.AUTO_REUSE):
                    done.append(by_moving_averages(part, training))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(done, {x: np.zeros([2, 3], "f"), training: True})
            found = session.run([copy.value() for copy in moving_mean().copies])
        orders = [
            moved(np.zeros(3), [0.0, 1.0, 0.0, 1.0], order)
            for order in itertools.permutations(range(4))
        ]
        assert np.array_equal(found[0], found[1])
        assert min(np.abs(each - found[0]).max() for each in orders) < TOLERANCE


@pytest.mark.parametrize("waits", [True, False])
def test_a_value_from_before_an_update_stays_that(waits: bool) -> None:
    """Weights that go half of the way back (Lookahead, Reptile): made again, the old value would be the new one."""
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        w = v1.get_variable("w", [], initializer=v1.ones_initializer())
        old = w + 0.0
        with tf.control_dependencies([old]):
            moved = v1.assign(w, 5.0)
        with tf.control_dependencies([moved] if waits else []):
            back = v1.assign(w, old * 3.0)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run([moved, back])
            # Where nothing waits, whichever comes last; never three times the new value.
            for copy in session.run([copy.value() for copy in w.copies]):
                assert copy == 3.0 if waits else copy in (3.0, 5.0)


def test_part_of_the_way_back_is_between_the_old_value_and_the_new_one() -> None:
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        w = v1.get_variable("w", [], initializer=v1.ones_initializer())
        old = w + 0.0
        with tf.control_dependencies([old]):
            moved = v1.assign(w, 5.0)
        with tf.control_dependencies([moved]):
            back = v1.assign(w, old + 0.5 * (w - old))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(back)
            assert session.run([copy.value() for copy in w.copies]) == [3.0, 3.0]


@pytest.mark.parametrize("write", ["assign", "assign_sub"])
def test_a_value_that_goes_elsewhere_too_is_of_before_its_assignment(write: str) -> None:
    """`m.assign(speed)` and `w.assign_sub(rate * speed)`: the speed is read before it is assigned.

    Where nothing held the two together, one run in five gave twice the momentum, so the graph is looked at besides.
    """
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        m = v1.get_variable("m", [3], initializer=v1.ones_initializer(), trainable=False)
        w = v1.get_variable("w", [3], initializer=v1.zeros_initializer())
        grad = v1.placeholder(tf.float32, [3])
        speed = m * 0.9 + grad
        assigned = m.assign(speed) if write == "assign" else m.assign_sub(speed)
        moved = w.assign_sub(speed)
        writes = [
            each
            for each in tf.compat.v1.get_default_graph().get_operations()
            if is_write(each)
            and each.inputs[0].op.name in ("m", "m/replica_1")
            and "Initializer" not in each.inputs[1].name
        ]
        assert len(writes) == 2
        for each in writes:
            assert speed.op in needed_for([each])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run([assigned, moved], {grad: np.full(3, 0.5, np.float32)})
            np.testing.assert_allclose(session.run(w), np.full(3, -1.4), rtol=1e-6)


@pytest.mark.parametrize("write", ["tf.assign_add", "assign_sub", "of its value"])
def test_what_brings_copies_together_takes_no_name_of_the_program(write: str) -> None:
    """A program that prints the names of its operations prints the same ones."""
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        total = v1.get_variable("total", [], initializer=v1.zeros_initializer(), trainable=False)
        names = []
        for tower in tm.towers(range(2)):
            with v1.name_scope(f"tower_{tower}"):
                if write == "tf.assign_add":
                    v1.assign_add(total, 1.0)
                elif write == "assign_sub":
                    total.assign_sub(1.0)
                else:
                    total.assign(total * 0.5)
                names.append(tf.identity(tf.constant(1.0)).op.name)
        assert names == ["tower_0/Identity", "tower_1/Identity"]
