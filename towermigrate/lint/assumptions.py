"""What the names in a program say where nothing else is known: a strategy, a count of replicas, a weight."""

from __future__ import annotations

import ast
import re

from towermigrate.flow.values import Const, Place, Unknown, Value
from towermigrate.lint import arithmetic
from towermigrate.lint import values as v
from towermigrate.lint.noting import Noting

_REPLICAS = re.compile(
    r"^_*(num|n|nb)_?(replicas?|gpus?|towers?|devices?|cores?|workers?)(_in_sync)?_*$|^_*world_size$",
    re.IGNORECASE,
)
_GLOBAL_BATCH = re.compile(r"global_?batch|batch_?size_?global", re.IGNORECASE)
_WEIGHT = re.compile(
    r"weight|lambda|alpha|beta|gamma|coeff?|decay|penalty|^w_?\w?$|^l[12]$", re.IGNORECASE
)
_STRATEGY = re.compile(r"(strategy|distribution|mirrored)$", re.IGNORECASE)


def hinted(name: str, value: Value) -> Value:
    """`value`, or what the name of something unknown says: how many replicas, how large the global batch."""
    number = isinstance(value, Const) and type(value.value) in (int, float)
    if number or isinstance(value, v.Tensor | v.Number | Unknown):
        blank = v.is_blank(value)
        if (blank or number or isinstance(value, v.Number)) and _GLOBAL_BATCH.search(name):
            return v.Number(0, 1)
        if blank and _REPLICAS.match(name):
            return v.Number(1, 0)
    return value


def strategy(node: ast.expr, value: Value) -> v.Strategy | None:
    """The strategy that an expression gives, by its value or, where that is unknown, by its name."""
    if isinstance(value, v.Strategy):
        return value
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    # The strategies of other libraries (IPU, Horovod) do not sum as TensorFlow's do.
    known = v.seen(value)
    source = known.source if isinstance(known, v.Tensor) else ""
    foreign = re.search(r"\b(ipu|hvd|horovod)", source)
    if v.is_blank(value) and not foreign and _STRATEGY.search(name):
        return v.Strategy()
    return None


def product(
    notes: Noting,
    place: Place,
    first: tuple[Value, ast.expr],
    second: tuple[Value, ast.expr],
) -> Value:
    """The product of two values, each with the expression that gives it."""
    first, second = (v.seen(first[0]), first[1]), (v.seen(second[0]), second[1])
    for (value, _), (other, text) in ((first, second), (second, first)):
        if isinstance(value, v.Reduced) and isinstance(other, v.Number) and other.replicas > 0:
            # A loss that was averaged although it was a share is put right.
            notes.corrected.add(value.place)
            return v.unknown()
        # `weight * loss`: a loss times a number whose name says that it weighs terms of the loss.
        if isinstance(value, v.Loss) and v.is_blank(other) and _WEIGHT.search(_last_name(text)):
            return value
    return arithmetic.multiply(first[0], second[0], place)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Subscript(slice=ast.Constant(value=str() as key)):
            return key
        case ast.Call(args=[first, *_]):
            return _last_name(first)
    return ""
