"""A staged tower program on the helpers against the same program as a TF1 tower graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers.tower_graph import TowerGraph

FULL = pytest.mark.full
v1 = tf.compat.v1
SPECS = (tf.TensorSpec([None, 4], tf.float32), tf.TensorSpec([None, 2], tf.float32))


def model(x: Any, z: Any) -> dict[str, Any]:
    """A GAN in small: unnamed layers, a reused scope, an own variable, a loss that skips one."""
    with v1.variable_scope("generator"):
        hidden = v1.layers.dense(z, 8, tf.nn.relu)
        fake = v1.layers.dense(hidden, 4)
        scale = v1.get_variable("scale", [4], initializer=v1.ones_initializer())
    with v1.variable_scope("discriminator"):
        real_score = critic(x)
    with v1.variable_scope("discriminator", reuse=True):
        fake_score = critic(fake * scale)
    generator_loss = tf.reduce_mean(tf.nn.softplus(-fake_score))
    discriminator_loss = tf.reduce_mean(tf.nn.softplus(-real_score) + tf.nn.softplus(fake_score))
    return {
        "generator": generator_loss,
        "discriminator": discriminator_loss,
        "full": generator_loss + discriminator_loss,
    }


def critic(x: Any) -> Any:
    hidden = v1.layers.dense(x, 8, tf.nn.tanh, name="hidden")
    return v1.layers.dense(hidden, 1, name="score")


OPTIMIZERS = {
    "sgd": lambda: v1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: v1.train.AdamOptimizer(1e-2),
}


class Rewritten:
    """The same program in the form that `towermigrate rewrite` gives it."""

    def __init__(self, towers: int, stages: dict[str, Any], averaged: bool = False) -> None:
        self.strategy = tm.tower_strategy(towers)
        with self.strategy.scope():
            self.step = v1.get_variable(
                "global_step", [], initializer=v1.zeros_initializer(), trainable=False
            )
            self.optimizers = {stage: make() for stage, (make, _) in stages.items()}
            self.variables = tm.TowerVariables()
        self.traces = 0

        @self.variables.tower
        def tower(x: Any, z: Any) -> Any:
            self.traces += 1
            with v1.name_scope("tower_%d" % tm.tower_index()):
                return model(x, z)

        def train_step(stage: str, scope: str | None) -> Any:
            optimizer = self.optimizers[stage]

            @tf.function(autograph=False)
            def train(x: Any, z: Any) -> Any:
                def step(x: Any, z: Any) -> Any:
                    loss = tower(x, z)[stage]
                    trainable = self.variables.trainable(scope)
                    if averaged:
                        grads = tm.average_gradients(optimizer.compute_gradients(loss, trainable))
                        tm.apply_averaged(optimizer, grads, self.step)
                    else:
                        grads = tm.tower_gradients(optimizer, loss, trainable)
                        optimizer.apply_gradients(grads, global_step=self.step)
                    return loss

                return tm.last_tower(self.strategy.run(step, args=(x, z)))

            return train

        self.train = {stage: train_step(stage, scope) for stage, (_, scope) in stages.items()}
        for train in self.train.values():
            tm.create_variables(train, *SPECS)
        self.saver = tm.tf1_saver(
            self.variables, self.step, optimizers=list(self.optimizers.values())
        )

    def load(self, values: dict[str, Any]) -> None:
        for name, variable in self.saver.names().items():
            variable.assign(values[name])

    def run(self, stage: str, x: Any, z: Any) -> Any:
        return self.train[stage](*tm.shard_batch(x, z)).numpy()

    def values(self) -> dict[str, Any]:
        return {name: v.numpy() for name, v in self.saver.names().items()}


def stages(kind: str) -> dict[str, Any]:
    make = OPTIMIZERS[kind]
    return {
        "discriminator": (make, "discriminator"),
        "generator": (make, "generator"),
        "full": (OPTIMIZERS["momentum"], None),
    }


def batches(rows: int, steps: int) -> list[Any]:
    rng = np.random.default_rng(3)
    return [
        (rng.normal(size=(rows, 4)).astype("f"), rng.normal(size=(rows, 2)).astype("f"))
        for _ in range(steps)
    ]


@pytest.mark.parametrize(
    "averaged", [False, True], ids=["shares summed by apply", "averaged, then applied"]
)
@pytest.mark.parametrize(
    "kind",
    # The one with most slots; `full` of its stages has momentum's, and other tower counts have descent.
    [kind if kind == "adam" else pytest.param(kind, marks=FULL) for kind in OPTIMIZERS],
)
def test_two_towers_are_bitwise_the_tower_graph(kind: str, averaged: bool) -> None:
    # Two towers: halving is exact and a sum of two has one order, so that every bit must agree.
    before = TowerGraph(2, model, stages(kind), SPECS)
    after = Rewritten(2, stages(kind), averaged)
    assert set(after.values()) == set(before.values()), "names of variables and slots"
    after.load(before.values())
    for x, z in batches(8, 4):
        for stage in before.train:
            assert before.run(stage, x, z) == after.run(stage, x, z), stage
    for name, value in before.values().items():
        np.testing.assert_array_equal(after.values()[name], value, err_msg=name)


@pytest.mark.parametrize(
    ("towers", "averaged", "relative"),
    [
        pytest.param(1, False, 0, id="one tower exactly"),
        pytest.param(3, False, 2e-6, id="three towers to the summation order"),
        pytest.param(4, False, 2e-6, id="four towers to the summation order", marks=FULL),
        pytest.param(3, True, 0, id="three towers exactly when averaged first"),
        pytest.param(4, True, 0, id="four towers exactly when averaged first", marks=FULL),
    ],
)
def test_other_tower_counts(towers: int, averaged: bool, relative: float) -> None:
    before = TowerGraph(towers, model, stages("sgd"), SPECS)
    after = Rewritten(towers, stages("sgd"), averaged)
    after.load(before.values())
    for x, z in batches(12, 4):
        for stage in before.train:
            before.run(stage, x, z)
            after.run(stage, x, z)
    for name, value in before.values().items():
        # FACTS 5: up to 1.2e-7 a step, on values of order 1.
        np.testing.assert_allclose(
            after.values()[name], value, rtol=relative, atol=relative / 10, err_msg=name
        )


def test_checkpoints_pass_both_ways(tmp_path: Path) -> None:
    before = TowerGraph(2, model, stages("adam"), SPECS)
    after = Rewritten(2, stages("adam"))
    [(x, z)] = batches(8, 1)
    for stage in before.train:
        before.run(stage, x, z)
    with before.graph.as_default():
        original = before.saver.save(before.session, str(tmp_path / "original"), before.step)
    after.saver.restore(original)
    for name, value in before.values().items():
        for copy in after.saver.names()[name].values:
            np.testing.assert_array_equal(copy.numpy(), value, err_msg=name)
    for stage in before.train:
        assert before.run(stage, x, z) == after.run(stage, x, z)
    rewritten = after.saver.save(str(tmp_path / "rewritten"), global_step=after.step)
    assert rewritten.endswith("-6")
    with before.graph.as_default():
        before.saver.restore(before.session, rewritten)
    for name, value in after.values().items():
        np.testing.assert_array_equal(before.values()[name], value, err_msg=name)


def test_create_variables_traces_once_for_every_batch_size() -> None:
    after = Rewritten(2, stages("sgd"))
    traced = after.traces
    for rows in (8, 4):
        for stage in after.train:
            [(x, z)] = batches(rows, 1)
            after.run(stage, x, z)
    assert after.traces == traced
