"""What the lint knows of a value: how it was reduced over a replica, and by what it was divided since.

Under `tf.distribute`, gradients are summed over the replicas. So a loss is right when the losses of all
replicas *add up* to the global one; `Part.excess` counts how far a part of a loss is from that, in powers of
the number of replicas: 0 is right, 1 is N times too large (a mean over this replica's own examples), -1 is N
times too small (a share that was divided again).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

from towermigrate.flow.values import Const, External, Place, Unknown, Value

Form = Literal["mean", "tokens", "share", "regularizer"]


@dataclass(frozen=True)
class Tensor(Value):
    """An array, or anything unknown.

    `ids` tells which values were multiplied into it, so that `sum(losses * mask) / sum(mask)` is seen.
    `replicas` and `batch` are the powers of the number of replicas and of the global batch size it was
    multiplied by. `doubtful` is one that was divided by something that may be either.
    """

    ids: frozenset[int]
    replicas: int = 0
    batch: int = 0
    doubtful: bool = False
    masked: bool = False
    source: str = ""


_COUNTER = itertools.count()


def unknown(source: str = "", doubtful: bool = False) -> Tensor:
    return Tensor(frozenset({next(_COUNTER)}), source=source, doubtful=doubtful)


@dataclass(frozen=True)
class Number(Value):
    """A number that is the same on every replica: a literal, the replica count, the global batch size."""

    replicas: int = 0
    batch: int = 0
    literal: float | None = None


@dataclass(frozen=True)
class Shape(Value):
    """`tf.shape(x)`, whose first entry is this replica's batch size."""


@dataclass(frozen=True)
class Count(Value):
    """The number of examples, or of elements, that this replica has."""


@dataclass(frozen=True)
class LocalSum(Value):
    """A sum over this replica's examples."""

    tensor: Tensor


@dataclass(frozen=True)
class Part:
    """One term of a loss: how it was made, where, and how far it is from a share (see the module)."""

    form: Form
    excess: int
    place: Place


@dataclass(frozen=True)
class Loss(Value):
    """A scalar that has these terms, and perhaps others that the lint cannot follow."""

    parts: frozenset[Part]


@dataclass(frozen=True)
class ModelLosses(Value):
    """`model.losses`: the regularisers of a model, in a list."""


@dataclass(frozen=True)
class Variables(Value):
    """A model's variables; `all` has those that are not trained as well."""

    all: bool
    text: str = ""


@dataclass(frozen=True)
class Gradients(Value):
    """Gradients of a loss, one, a list, or paired with their variables."""

    loss: Loss
    place: Place
    reduced: bool = False


@dataclass(frozen=True)
class PerReplica(Value):
    """What `strategy.run` returned."""

    value: Value


@dataclass(frozen=True)
class Reduced(Value):
    """What `strategy.reduce(MEAN, share)` returned; multiplying it by the number of replicas puts it right."""

    place: Place


@dataclass(frozen=True)
class Strategy(Value):
    """A `tf.distribute` strategy. `sure` is False where it may be the default one, which has one replica."""

    sure: bool = True


@dataclass(frozen=True)
class StrategyScope(Value):
    """`strategy.scope()`."""

    strategy: Strategy


@dataclass(frozen=True)
class Metric(Value):
    """A `keras.metrics.Mean`."""


@dataclass(frozen=True)
class LossObject(Value):
    """A Keras loss and its reduction: `none`, `sum` or `default`."""

    reduction: str
    name: str


Known = (
    Tensor | Number | Shape | Count | LocalSum | Loss | ModelLosses | Variables | Gradients
    | PerReplica | Reduced | Strategy | StrategyScope | Metric | LossObject
)  # fmt: skip


def seen(value: Value) -> Value:
    """A value as the lint computes with it: a constant as a number, what nothing is known of as some array."""
    match value:
        case Const(value=bool()):
            return unknown()
        case Const(value=int() | float() as number):
            return Number(literal=float(number) if abs(number) < 1e300 else None)
        case Unknown(reason=reason):
            return Tensor(frozenset({id(value)}), source=reason)
        case External(name=name):
            return unknown(name)
    return value


def is_blank(value: Value) -> bool:
    """Nothing is known of it."""
    return isinstance(value, Unknown) or (
        isinstance(value, Tensor) and not (value.replicas or value.batch)
    )
