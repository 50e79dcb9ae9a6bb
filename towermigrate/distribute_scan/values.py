"""What the scan knows of a value: how it was reduced over a replica, and by what it was divided since.

Under `tf.distribute`, gradients are summed over the replicas. So a loss is right when the losses of all
replicas *add up* to the global one; `Part.excess` counts how far a part of a loss is from that, in powers of
the number of replicas: 0 is right, 1 is N times too large (a mean over this replica's own examples), -1 is N
times too small (a share that was divided again).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from towermigrate.distribute_scan.scopes import Scope

Form = Literal["mean", "tokens", "share", "regularizer"]


@dataclass(frozen=True)
class Place:
    """Where something stands. `column` counts characters from 0."""

    path: str
    line: int
    column: int


class Value:
    """Any value; what the scan cannot follow is a `Tensor` that nothing is known of."""


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
class Text(Value):
    text: str


@dataclass(frozen=True)
class Nothing(Value):
    """`None`."""


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
    """A scalar that has these terms, and perhaps others that the scan cannot follow."""

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
class Items(Value):
    """A tuple or a list with known entries; `size` counts those of the lists in it as well."""

    values: tuple[Value, ...]
    size: int = field(compare=False)


_ENTRIES = 2000
"""Entries followed, at most: `x = x + x`, line after line, fills no memory."""


def listed(values: Iterable[Value]) -> Value:
    """A list or a tuple of these entries."""
    entries = tuple(values)
    size = sum(entry.size if isinstance(entry, Items) else 1 for entry in entries)
    return Items(entries, size) if size <= _ENTRIES else unknown()


@dataclass(frozen=True)
class Many(Value):
    """A list whose entries are all like this one."""

    value: Value


@dataclass(frozen=True)
class Table(Value):
    """A dictionary with literal keys. Later entries are added to the same dictionary."""

    values: dict[str, Value] = field(hash=False, compare=False)


@dataclass(frozen=True)
class External(Value):
    """A name of a library, in one spelling: `tensorflow.reduce_mean`, `keras.losses.MeanSquaredError`."""

    name: str


@dataclass(frozen=True)
class ModuleRef(Value):
    """Another file of the tree."""

    path: str


@dataclass(frozen=True)
class Strategy(Value):
    """A `tf.distribute` strategy. `sure` is False where it may be the default one, which has one replica."""

    sure: bool = True


@dataclass(frozen=True)
class Metric(Value):
    """A `keras.metrics.Mean`."""


@dataclass(frozen=True)
class LossObject(Value):
    """A Keras loss and its reduction: `none`, `sum` or `default`."""

    reduction: str
    name: str


@dataclass(frozen=True)
class Function(Value):
    """A function of the tree, and the object or class it is bound to."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda = field(hash=False, compare=False)
    scope: Scope = field(hash=False, compare=False)
    path: str
    line: int
    owner: ClassRef | None = None


@dataclass(frozen=True)
class ClassRef(Value):
    """A class of the tree. `attributes` are those of its instances, all of them together."""

    path: str
    line: int
    methods: dict[str, Function] = field(hash=False, compare=False)
    attributes: dict[str, Value] = field(hash=False, compare=False)
    bases: tuple[ClassRef, ...] = field(hash=False, compare=False, default=())

    def lookup(self, name: str) -> Value | None:
        for kind in (self, *self.bases):
            if name in kind.attributes:
                return kind.attributes[name]
            if name in kind.methods:
                return replace(kind.methods[name], owner=self)
        return None


@dataclass(frozen=True)
class Instance(Value):
    kind: ClassRef


def is_blank(value: Value) -> bool:
    """Nothing is known of it."""
    return isinstance(value, Tensor) and not (value.replicas or value.batch)
