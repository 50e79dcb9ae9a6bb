"""What a TF1 program asks of its variables: their list, their names, what they are written as, and what they hold."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from towermigrate.helpers.tf1_checkpoints import tf1_names
from towermigrate.helpers.variables import TowerVariables


class ShownVariable:
    """What TF1 said of a variable that was a reference, as its variables were: for printing, not for computing.

    It has `name`, `op.name`, `shape`, `get_shape()` and `dtype`, and is written as TF1 wrote the variable. `numpy()` is what
    a run of it gave, `assign(value)` what a run of its assignment did.
    """

    def __init__(self, name: str, variable: Any) -> None:
        self.name = f"{name}:0"
        self.op = SimpleNamespace(name=name)
        self.shape = tf.TensorShape(variable.shape)
        self.dtype = tf.as_dtype(variable.dtype)._as_ref
        self._variable = variable

    def get_shape(self) -> tf.TensorShape:
        return self.shape

    def numpy(self) -> Any:
        """What the variable holds now."""
        return self._variable.numpy()

    def assign(self, value: Any) -> None:
        """Set every tower's copy."""
        self._variable.assign(value)

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"


def shown_variables(*sources: Any) -> list[ShownVariable]:
    """What TF1 said of the variables that it had made by then: `tf.global_variables()`, to be printed.

    Args:
      *sources: in the order in which the TF1 program made their variables: a variable, a list of variables, a
        `TowerVariables`, a v1 optimizer (what it made when it was first applied) or a
        `tf.train.ExponentialMovingAverage`.

    Example:
      >>> step = tf.Variable(0, name="step", dtype=tf.int64)
      >>> w = tf.Variable([1.0, 2.0], name="w")
      >>> opt = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
      >>> opt.apply_gradients([(tf.zeros([2]), w)])
      >>> print(shown_variables(step, [w], opt))
      [<tf.Variable 'step:0' shape=() dtype=int64_ref>, <tf.Variable 'w:0' shape=(2,) dtype=float32_ref>, <tf.Variable 'w/Momentum:0' shape=(2,) dtype=float32_ref>]

    Source: TF1 `tf.global_variables`, `tf.Variable.__repr__`.
    """
    owners: list[Any] = []
    state: list[Any] = []
    found: dict[str, Any] = {}
    for source in sources:
        if isinstance(source, tf.compat.v1.train.Optimizer | tf.train.ExponentialMovingAverage):
            state.append(source)
        elif isinstance(source, TowerVariables):
            owners += source.all()
        else:
            owners += source if isinstance(source, Sequence) else [source]
        averages = [one for one in state if isinstance(one, tf.train.ExponentialMovingAverage)]
        optimizers = [one for one in state if one not in averages]
        for name, variable in tf1_names(owners, optimizers, averages).items():
            found.setdefault(name, variable)
    return [ShownVariable(name, variable) for name, variable in found.items()]
