"""What TF1 tower programs do, one idiom each: the table that session style is tested with.

An idiom is a function that builds a graph, runs it and returns what the program would have printed, saved
or fetched. It is run plainly under `tf.compat.v1` and in session style on several numbers of replicas; the
results must agree.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

X = np.random.RandomState(0).randn(8, 3).astype("f")
Y = np.random.RandomState(1).randn(8, 1).astype("f")
constant = tf.constant_initializer


@dataclass(frozen=True)
class Idiom:
    """A row: what runs it; the error that session style gives instead of a result, if it does; what it warns of."""

    name: str
    run: Callable[[Program], Any]
    error: str = ""
    warning: str = ""


IDIOMS: dict[str, Idiom] = {}


def idiom(
    run: Callable[[Program], Any] | None = None, *, error: str = "", warning: str = ""
) -> Any:
    """Make a function a row of the table."""

    def add(function: Callable[[Program], Any]) -> Callable[[Program], Any]:
        name = function.__name__
        assert name not in IDIOMS, name
        IDIOMS[name] = Idiom(name, function, error, warning)
        return function

    return add if run is None else add(run)


class Program:
    """What differs between the plain program and session style."""

    plain = True

    def begin(self, num_towers: int | None = None) -> None:
        """What a rewritten program says where its graph begins."""

    def towers(self, iterable: Iterable[Any]) -> Iterator[Any]:
        """The header of a tower loop."""
        return iter(iterable)

    def device(self, spec: Any) -> Any:
        """The device of a tower; a plain program runs here on one CPU."""
        return tf.device("/cpu:0")

    def session(self, **kwargs: Any) -> Any:
        """A session in which variables have their first values."""
        session = tf.Session(**kwargs)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session

    def folder(self) -> str:
        """A new folder."""
        return tempfile.mkdtemp()

    # Parts of programs that many idioms share.

    def model(self, x: Any, name: str = "") -> Any:
        """A linear layer of get_variables."""
        w = tf.get_variable(name + "w", [3, 1], initializer=constant([[0.1], [0.2], [0.3]]))
        b = tf.get_variable(name + "b", [1], initializer=constant(0.5))
        return tf.matmul(x, w) + b

    def split(self, count: int = 2) -> list[tuple[Any, Any]]:
        """A share of the batch for each tower."""
        return list(
            zip(tf.split(tf.constant(X), count), tf.split(tf.constant(Y), count), strict=True)
        )

    def tower_losses(self, count: int = 2) -> list[Any]:
        """Losses of towers that share their variables."""
        losses = []
        for i, (x, y) in self.towers(enumerate(self.split(count))):
            with self.device(f"/gpu:{i}"), tf.name_scope(f"tower_{i}"):
                with tf.variable_scope("", reuse=i > 0):
                    losses.append(tf.reduce_mean(tf.square(self.model(x) - y)))
        return losses

    def tower_gradients(self, optimizer: Any, count: int = 2) -> tuple[list[Any], list[Any]]:
        """Losses, and the average of what `compute_gradients` gave in each tower."""
        losses, gradients = [], []
        for i, (x, y) in self.towers(enumerate(self.split(count))):
            with self.device(f"/gpu:{i}"), tf.name_scope(f"tower_{i}"):
                with tf.variable_scope("", reuse=i > 0):
                    losses.append(tf.reduce_mean(tf.square(self.model(x) - y)))
                gradients.append(optimizer.compute_gradients(losses[-1]))
        return losses, average(gradients)


def average(tower_grads: list[Any]) -> list[Any]:
    """The classic function."""
    averaged = []
    for pairs in zip(*tower_grads, strict=True):
        gradients = [gradient for gradient, _ in pairs if gradient is not None]
        averaged.append(
            (tf.reduce_mean(tf.stack(gradients), 0) if gradients else None, pairs[0][1])
        )
    return averaged


def every_variable(session: Any) -> dict[str, Any]:
    """The value of every variable by the name of its operation."""
    return {v.op.name: session.run(v) for v in tf.global_variables()}


def trained(p: Program, optimizer: Any, steps: int = 3, count: int = 2) -> Any:
    """Losses of some steps on averaged gradients, then every variable, slots included."""
    losses, gradients = p.tower_gradients(optimizer, count)
    train = optimizer.apply_gradients(gradients)
    with p.session() as session:
        seen = [session.run([train, *losses])[1:] for _ in range(steps)]
        return seen, every_variable(session)


def load_all() -> dict[str, Idiom]:
    """Every idiom."""
    from tests.helpers.session_idioms import (  # noqa: F401
        assignments,
        exports,
        gradients,
        layers,
        loops,
        optimizers,
        order,
        reading,
        runs,
        savers,
        services,
        variables,
    )

    return IDIOMS
