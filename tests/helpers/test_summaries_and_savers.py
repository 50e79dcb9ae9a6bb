"""Summary files, names, and checkpoints with several optimizers on one variable."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1


def test_summary_writer_strips_replicas_and_leaves_out_empty_ones(tmp_path: Path) -> None:
    summary = v1.Summary()
    summary.value.add(tag="replica_1/lr", simple_value=0.5)
    summary.value.add(tag="tower_1/loss", simple_value=2.0)
    writer = tm.summary_writer(str(tmp_path))
    writer.add_summary(b"", 1)
    writer.add_summary(None, 1)
    writer.add_summary(tf.constant(summary.SerializeToString()), tf.Variable(3))
    writer.flush()
    writer.add_summary(np.array(summary.SerializeToString(), object), 4)
    writer.add_summary(summary)
    writer.close()
    [path] = tmp_path.iterdir()
    events = [
        (event.step, [value.tag for value in event.summary.value])
        for event in v1.train.summary_iterator(str(path))
        if event.summary.value
    ]
    tags = ["lr", "tower_1/loss"]
    assert events == [(3, tags), (4, tags), (0, tags)]


def test_names_and_numbers(two_towers: Any) -> None:
    with two_towers.scope():
        variable = tf.Variable(1.0, name="scope/w")
        rate = v1.train.exponential_decay(1.0, tf.Variable(0), 10, 0.9)
    assert tm.op_name(variable) == "scope/w"
    assert tm.value(rate).numpy() == 1.0
    assert tm.value(variable) is variable
    assert tm.value(0.5) == 0.5

    @tf.function(autograph=False)
    def names() -> Any:
        return two_towers.run(lambda: tf.constant(tm.op_name(tf.constant(1.0, name="loss"))))

    assert tm.as_numpy(tm.last_tower(names())) == b"loss"


def optimizers() -> list[Any]:
    return [
        v1.train.AdamOptimizer(0.1),
        v1.train.AdamOptimizer(0.1),
        v1.train.RMSPropOptimizer(0.1, momentum=0.9),
    ]


def test_several_optimizers_have_the_names_that_tf1_gave_them(
    two_towers: Any, tmp_path: Path
) -> None:
    with tf.Graph().as_default():
        w = v1.get_variable("w", [2], initializer=v1.ones_initializer())
        step = v1.train.get_or_create_global_step()
        ema = tf.train.ExponentialMovingAverage(0.5, step)
        for opt in optimizers():
            opt.apply_gradients([(tf.ones([2]), w)], step)
        ema.apply([w])
        expected = {v.op.name for v in v1.global_variables()}

    with two_towers.scope():
        step = v1.get_variable(
            "global_step", [], tf.int64, initializer=v1.zeros_initializer(), trainable=False
        )
        ours = optimizers()
        ema = tf.train.ExponentialMovingAverage(0.5, step)
        variables = tm.TowerVariables()
    saver = tm.tf1_saver(variables, step, optimizers=ours, averages=[ema], max_to_keep=2)

    @variables.tower
    def tower() -> Any:
        return v1.get_variable("w", [2], initializer=v1.ones_initializer())

    def train(opt: Any) -> Any:
        @tf.function(autograph=False)
        def step_function() -> Any:
            def one() -> Any:
                loss = tf.reduce_sum(tower())
                opt.apply_gradients(tm.tower_gradients(opt, loss, variables.trainable()), step)
                with tf.control_dependencies([loss]):
                    ema.apply(variables.trainable())
                return loss

            return two_towers.run(one)

        return step_function

    # Traced in another order than the TF1 graph was built in: names go by the order given to the
    # saver.
    for opt in reversed(ours):
        train(opt)()
    assert set(saver.names()) == expected
    assert saver.names()["w/Adam_2"] is ours[1].get_slot(variables.all()[0], "m")
    assert saver.names()["beta1_power_1"] is ours[1]._get_beta_accumulators()[0]
    paths = [saver.save(str(tmp_path / "model"), global_step=n) for n in range(3)]
    assert saver.last_checkpoints == paths[1:]
    assert {name for name, _ in tf.train.list_variables(paths[-1])} == expected
    kept = {name: v.numpy() for name, v in saver.names().items()}
    train(ours[0])()
    saver.restore(paths[-1])
    for name, variable in saver.names().items():
        for copy in variable.values:
            np.testing.assert_array_equal(copy.numpy(), kept[name], err_msg=name)


def test_saving_nothing_is_an_error(two_towers: Any, tmp_path: Path) -> None:
    with two_towers.scope():
        saver = tm.tf1_saver(tm.TowerVariables())
    with pytest.raises(ValueError, match="nothing to save yet: call create_variables"):
        saver.save(str(tmp_path / "model"))


def test_every_tower_writes_its_summaries_whatever_else_was_made(two_towers: Any) -> None:
    def tower(x: Any) -> Any:
        return v1.summary.scalar("loss", tf.reduce_mean(x))

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        return tm.each_tower(two_towers.run(tower, args=(x,)))

    found = []
    for each in step(*tm.shard_batch(np.array([1.0, 1.0, 3.0, 3.0], "f"))):
        [value] = v1.Summary.FromString(each.numpy()).value
        found.append(value.simple_value)
    assert found == [1.0, 3.0]


def test_a_summary_in_a_step_warns_of_no_writer(two_towers: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @tf.function(autograph=False)
        def step() -> Any:
            return two_towers.run(lambda: tf.compat.v1.summary.scalar("loss", 1.0))

        found = two_towers.experimental_local_results(step())
    assert len(found) == 2 and all(b"loss" in each.numpy() for each in found)
