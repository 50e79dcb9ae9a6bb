"""The program of `tf1_checkpoint_program` in the form that a rewrite gives it, on the helpers."""

from typing import Any

import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers import tf1_checkpoint_program as original

v1 = tf.compat.v1
SPECS = (tf.TensorSpec([None, 4], tf.float32), tf.TensorSpec([None, 1], tf.float32))


class Rewritten:
    """Optimizers, averages and steps of `kind`; 0 towers is no strategy at all.

    With `build=False` no variable exists before the first step but the global step.
    """

    def __init__(self, kind: str, towers: int, build: bool = True, **options: Any) -> None:
        self.strategy = tm.tower_strategy(towers) if towers else tf.distribute.get_strategy()
        with self.strategy.scope():
            self.step = v1.get_variable(
                "global_step", [], tf.int64, initializer=v1.zeros_initializer(), trainable=False
            )
            self.optimizers = [make(self.step) for make, _ in original.KINDS[kind]]
            self.average = tf.train.ExponentialMovingAverage(0.9, self.step)
            self.variables = tm.TowerVariables(**options)
        self.tower = self.variables.tower(original.model)
        scopes = [scope for _, scope in original.KINDS[kind]]
        self.train = [self._train(*stage) for stage in zip(self.optimizers, scopes, strict=True)]
        if build:
            self.build()
        self.state: dict[str, Any] = {
            "optimizers": self.optimizers,
            "averages": [self.average],
            "global_step": self.step,
        }

    def build(self) -> None:
        for train in self.train:
            tm.create_variables(train, *SPECS, strategy=self.strategy)

    def _train(self, optimizer: Any, scope: str | None) -> Any:
        def tower_step(x: Any, y: Any) -> Any:
            loss = self.tower(x, y)
            grads = tm.tower_gradients(optimizer, loss, self.variables.trainable(scope))
            optimizer.apply_gradients(grads, global_step=self.step)
            self.average.apply(self.variables.trainable())
            return loss

        @tf.function(autograph=False)
        def train(x: Any, y: Any) -> Any:
            return self.strategy.reduce("MEAN", self.strategy.run(tower_step, (x, y)), axis=None)

        return train

    def run(self, first: int, steps: int) -> list[Any]:
        split = self.strategy.num_replicas_in_sync > 1
        losses = []
        for number in range(first, first + steps):
            rows = original.batch(number)
            parts = tm.shard_batch(*rows, strategy=self.strategy) if split else rows
            losses.extend(train(*parts).numpy() for train in self.train)
        return losses

    def variables_by_name(self) -> dict[str, Any]:
        others = {"optimizers": self.optimizers, "averages": [self.average]}
        return tm.tf1_saver(self.variables, self.step, **others).names()

    def values(self) -> dict[str, Any]:
        return {name: v.numpy() for name, v in self.variables_by_name().items()}
