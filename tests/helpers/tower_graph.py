"""A TF1 tower program in its original form (a graph, a session, a loop), to compare with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def classic_average(tower_grads: list[Any]) -> list[Any]:
    """`average_gradients` as TF1 programs have it, zeros for None."""
    averaged = []
    for per_tower in zip(*tower_grads, strict=True):
        stacked = [tf.expand_dims(tf.zeros_like(v) if g is None else g, 0) for g, v in per_tower]
        averaged.append((tf.reduce_mean(tf.concat(stacked, 0), 0), per_tower[0][1]))
    return averaged


class TowerGraph:
    """The staged program of `model` (x, z -> losses by stage), one tower per virtual CPU."""

    def __init__(
        self,
        towers: int,
        model: Callable[[Any, Any], dict[str, Any]],
        stages: dict[str, tuple[Callable[[], Any], str | None]],
        specs: tuple[Any, Any],
    ) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device("/cpu:0"):
            v1.set_random_seed(7)
            self.step = v1.get_variable(
                "global_step", [], initializer=v1.zeros_initializer(), trainable=False
            )
            self.inputs = [v1.placeholder(spec.dtype, spec.shape) for spec in specs]
            self.optimizers = {stage: make() for stage, (make, _) in stages.items()}
            grads: dict[str, list[Any]] = {stage: [] for stage in stages}
            parts = [tf.split(one, towers) for one in self.inputs]
            for i in range(towers):
                with (
                    tf.device(f"/cpu:{i}"),
                    v1.name_scope(f"tower_{i}"),
                    v1.variable_scope(v1.get_variable_scope(), reuse=i > 0),
                ):
                    self.losses = model(*(part[i] for part in parts))
                    for stage, (_, scope) in stages.items():
                        grads[stage].append(
                            self.optimizers[stage].compute_gradients(
                                self.losses[stage], v1.trainable_variables(scope)
                            )
                        )
            self.averaged = {stage: classic_average(grads[stage]) for stage in stages}
            self.train = {
                stage: self.optimizers[stage].apply_gradients(self.averaged[stage], self.step)
                for stage in stages
            }
            self.variables = {v.op.name: v for v in v1.global_variables()}
            self.saver = v1.train.Saver(v1.global_variables())
            initialize = v1.global_variables_initializer()
        self.session = v1.Session(
            graph=self.graph, config=v1.ConfigProto(device_count={"CPU": towers})
        )
        self.session.run(initialize)

    def run(self, stage: str, *arrays: Any) -> Any:
        feed = dict(zip(self.inputs, arrays, strict=True))
        loss, _ = self.session.run([self.losses[stage], self.train[stage]], feed)
        return loss

    def values(self) -> dict[str, np.ndarray[Any, Any]]:
        values: dict[str, np.ndarray[Any, Any]] = self.session.run(self.variables)
        return values
