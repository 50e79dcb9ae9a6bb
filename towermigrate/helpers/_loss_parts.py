"""What a loss is a weighted sum of: shares of the global loss, and what else.

In a graph the loss is walked back; in eager mode only the tensor's own mark tells, and what a backward pass came by.
"""

import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers import _behind, _weighted
from towermigrate.helpers._marks import AVERAGED, SHARE

KERAS = "a Keras 3 loss"

# TensorFlow's own functions that return shares; their frame stands in the traceback of what they
# made.
TENSORFLOW_SHARES = ("compute_average_loss", "scale_regularization_loss")
_TENSORFLOW = os.path.join("tensorflow", "python", "ops")

_FIRST_INPUT = frozenset(
    "Cast CheckNumerics EnsureShape ExpandDims Identity Mean Neg PreventGradient Reshape Snapshot "
    "Squeeze StridedSlice Sum".split()
)
_SUMS = frozenset("Add AddN AddV2 Concat ConcatV2 Pack Sub".split())
_CHOICES = frozenset(["Select", "SelectV2"])
_PRODUCTS = frozenset(["Mul", "MulNoNan"])
_QUOTIENTS = frozenset(["Div", "DivNoNan", "RealDiv"])
_WITHOUT_GRADIENT = frozenset("Const Fill OnesLike Shape Size StopGradient ZerosLike".split())
_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])
_CONTROL = frozenset("Case If StatelessCase StatelessIf StatelessWhile While".split())


@dataclass(frozen=True)
class Seen:
    """A share that a backward pass came by: its value, and the loss's derivative by it."""

    name: str
    value: Any
    derivative: Any


@dataclass(frozen=True)
class Parts:
    """What a loss is a weighted sum of.

    Attributes:
      shares: names of the functions that returned a share, each once.
      others: operations that are no share, or make something else than a sum of shares.
      divided: operations that divide a share by the number of replicas.
      control: those of the others that are branches or loops.
      constant: whether a number is added, which counts once for each replica.
      multiplied: operations that multiply a share by the number of replicas.
      reduced: what was added up over the replicas by hand; among the others too.
    """

    shares: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    divided: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    constant: bool = False
    multiplied: tuple[str, ...] = ()
    reduced: tuple[str, ...] = ()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def parts_of(loss: Any) -> Parts:
    """What a tensor is made of; of an eager one without a twin only its own mark is seen."""
    loss = loss if hasattr(loss, SHARE) else _behind.shown(loss)
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    return eager_parts(loss, []) if is_eager(loss) else graph_parts(loss, replicas)


def is_eager(loss: Any) -> bool:
    return not tf.is_symbolic_tensor(loss)


def eager_parts(loss: Any, seen: list[Seen]) -> Parts:
    name = getattr(loss, SHARE, None)
    if name is not None:
        return Parts(shares=(name,), others=(name,) if name == KERAS else ())
    if not seen or not all(_is_number(one.value) and _is_number(one.derivative) for one in seen):
        return Parts()
    # A sum of multiples of shares is the sum of (derivative · share), whatever it was built with:
    # if the loss is that number, nothing else is in it.
    terms = [float(one.derivative) * float(one.value) for one in seen]
    value, size = float(tf.reduce_sum(loss)), max(map(abs, terms))
    names = tuple(dict.fromkeys(one.name for one in seen))
    if not math.isfinite(value) or abs(sum(terms) - value) <= 1e-6 * max(size, abs(value)):
        return Parts(shares=names)
    return Parts(shares=names, others=(f"{value - sum(terms):.6g} of its {value:.6g}",))


def _is_number(value: Any) -> bool:
    return hasattr(value, "numpy") and value.shape.rank == 0


def is_reciprocal(derivative: Any, replicas: int) -> bool:
    if replicas == 1 or derivative.shape.rank != 0:
        return False
    symbolic = tf.is_symbolic_tensor(derivative)
    value = _weighted.static_number(derivative) if symbolic else float(derivative)
    return value is not None and _close(value, 1 / replicas)


def _close(value: float, expected: float) -> bool:
    return math.isclose(value, expected, rel_tol=1e-6)


@dataclass(frozen=True)
class _Call:
    """The function call a tensor is looked at in: what its inputs are outside."""

    outer: "_Call | None"
    inputs: dict[str, Any]


@dataclass
class _Terms:
    """What a tensor is a weighted sum of; a `constant` among it is there once in each replica."""

    shares: dict[str, None] = field(default_factory=dict)
    others: dict[str, None] = field(default_factory=dict)
    reduced: dict[str, None] = field(default_factory=dict)
    constant: bool = False


class _Walk:
    """Back from a loss through everything that keeps a sum of shares one."""

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas
        self._divided: dict[str, None] = {}
        self._multiplied: dict[str, None] = {}
        self._control: dict[str, None] = {}
        self._products: dict[Any, _Terms] = {}
        self._calls: dict[Any, _Call] = {}

    def parts(self, loss: Any) -> Parts:
        found = self._terms(loss, None)
        shares, others = tuple(found.shares), tuple(found.others)
        divided = tuple(self._divided) if shares else ()
        return Parts(
            shares,
            others,
            divided,
            tuple(self._control),
            found.constant,
            tuple(self._multiplied),
            tuple(found.reduced),
        )

    def _terms(self, tensor: Any, call: _Call | None) -> _Terms:
        """The names of shares and of other operations that `tensor` is a weighted sum of."""
        found = _Terms()
        shares, others = found.shares, found.others
        visited: set[Any] = set()
        waiting = [(tensor, call)]
        while waiting:
            tensor, call = waiting.pop()
            operation = tensor.op
            key = (id(operation.graph), tensor.name, id(call))
            if key in visited:
                continue
            visited.add(key)
            kind = operation.type
            name = _name_of_share(operation)
            if name is not None:
                shares[name] = None
                if name == KERAS:  # one only where the replicas have as many rows
                    others[name] = None
            elif _behind.is_reduction(operation):
                others[operation.name] = None
                if _is_made_of_shares(tensor):
                    found.reduced[operation.name] = None
            elif kind in _FIRST_INPUT:
                waiting.append((operation.inputs[0], call))
            elif kind == "IdentityN":
                waiting.append((operation.inputs[tensor.value_index], call))
            elif kind in _SUMS:
                waiting += [(one, call) for one in operation.inputs if one.dtype.is_floating]
            elif kind in _CHOICES and has_share_behind(operation.inputs[0]):
                others[operation.name] = None
            elif kind in _CHOICES:
                waiting += [(one, call) for one in operation.inputs[1:]]
            elif kind in _PRODUCTS or kind in _QUOTIENTS:
                place = (operation.name, id(operation.graph), id(call))
                if place not in self._products:
                    self._products[place] = self._product(operation, call)
                inside_it = self._products[place]
                shares |= inside_it.shares
                others |= inside_it.others
                found.reduced |= inside_it.reduced
                found.constant |= inside_it.constant
            elif kind in _CALLS:
                inside = self._inside(tensor, call)
                if inside is None:
                    others[operation.name] = None
                else:
                    waiting.append(inside)
            elif kind == "Placeholder" and (outside := _outside(tensor, call)) is not None:
                waiting.append(outside)
            elif kind in _WITHOUT_GRADIENT:
                found.constant |= not _is_zero(tensor)
            else:
                others[operation.name] = None
                if kind in _CONTROL:
                    self._control[operation.name] = None
        return found

    def _product(self, operation: Any, call: _Call | None) -> _Terms:
        left, right = operation.inputs
        share, factor = self._terms(left, call), self._terms(right, call)
        if not (share.shares or share.others or factor.shares or factor.others):
            return _Terms(constant=share.constant or factor.constant)
        by = right
        if factor.shares and not share.shares and operation.type in _PRODUCTS:
            share, factor, by = factor, share, left
        other = _Terms(others={operation.name: None})
        if factor.shares or not share.shares:  # two shares, one over a share, or no share at all
            return other
        # What is trained times a constant would count once in each replica; and what is made of a share, though no
        # gradient goes there, is another factor in each.
        if share.constant and factor.others or has_share_behind(by):
            return other
        if operation.type in _QUOTIENTS and self._is_replica_count(right):
            self._divided[operation.name] = None
        if operation.type in _PRODUCTS and self._is_replica_count(by):
            self._multiplied[operation.name] = None
        return share

    def _inside(self, tensor: Any, call: _Call | None) -> tuple[Any, _Call] | None:
        """The result of a function call, as the tensor inside of the function that it is."""
        operation = tensor.op
        function = operation.graph._get_function(operation.get_attr("f").name)
        graph = getattr(function, "graph", None)
        if graph is None:
            return None
        place = (operation.name, id(operation.graph), id(call))
        if place not in self._calls:
            inner = [one.name for one in graph.inputs]
            inputs = dict(zip(inner, operation.inputs, strict=False))
            self._calls[place] = _Call(call, inputs)
        return graph.outputs[tensor.value_index], self._calls[place]

    def _is_replica_count(self, divisor: Any) -> bool:
        value = tf.get_static_value(divisor)
        return (
            self._replicas > 1
            and value is not None
            and value.size == 1
            and _close(float(value.reshape([])), self._replicas)
        )


def graph_parts(loss: Any, replicas: int) -> Parts:
    return _Walk(replicas).parts(loss)


def has_share_behind(tensor: Any) -> bool:
    """Whether a share of this replica alone has a part in a tensor, in whatever way."""
    found: bool = _behind.is_marked_in_one_replica([tensor], SHARE, until=AVERAGED)
    return found


def _is_made_of_shares(reduced: Any) -> bool:
    """Whether what was added up over the replicas was shares."""
    waiting = list(reduced.op.inputs)
    for _ in range(5):  # the mark's identity, and what runs below it
        waiting = [
            each
            for one in waiting
            for each in (one.op.inputs if _behind.is_reduction(one.op) else [one])
        ]
    return bool(_behind.values_of(SHARE, waiting))


def _is_zero(tensor: Any) -> bool:
    if tensor.op.type == "ZerosLike":
        return True
    value: Any = tf.get_static_value(tensor)
    return bool(value is not None and not np.any(value))


def _name_of_share(operation: Any) -> str | None:
    if operation.type == "Identity":
        try:
            return str(operation.get_attr(SHARE).decode())
        except ValueError:
            return None
    if operation.type in _QUOTIENTS:
        for frame in operation.traceback or ():
            if frame.name in TENSORFLOW_SHARES and _TENSORFLOW in frame.filename:
                return f"tf.nn.{frame.name}"
    return None


def _outside(tensor: Any, call: _Call | None) -> tuple[Any, _Call | None] | None:
    """What an input of a function is outside of it, if that is a tensor that can be walked on."""
    if call is not None:
        outer = call.inputs.get(tensor.name)
        return None if outer is None else (outer, call.outer)
    for outer, inner in getattr(tensor.graph, "captures", ()):
        if inner is tensor and tf.is_symbolic_tensor(outer):
            return outer, None
    return None
