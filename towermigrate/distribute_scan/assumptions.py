"""What the names in a program say where nothing else is known: a strategy, a count of replicas, a weight."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from towermigrate.distribute_scan import arithmetic
from towermigrate.distribute_scan import values as v

if TYPE_CHECKING:
    from towermigrate.distribute_scan.interpret import Interpreter

_REPLICAS = re.compile(
    r"^_*(num|n|nb)_?(replicas?|gpus?|towers?|devices?|cores?|workers?)(_in_sync)?_*$|^_*world_size$",
    re.IGNORECASE,
)
_GLOBAL_BATCH = re.compile(r"global_?batch|batch_?size_?global", re.IGNORECASE)
_WEIGHT = re.compile(
    r"weight|lambda|alpha|beta|gamma|coeff?|decay|penalty|^w_?\w?$|^l[12]$", re.IGNORECASE
)
_STRATEGY = re.compile(r"(strategy|distribution|mirrored)$", re.IGNORECASE)


def hinted(name: str, value: v.Value) -> v.Value:
    """`value`, or what the name of something unknown says: how many replicas, how large the global batch."""
    if isinstance(value, v.Tensor | v.Number):
        blank = v.is_blank(value)
        if (blank or isinstance(value, v.Number)) and _GLOBAL_BATCH.search(name):
            return v.Number(0, 1)
        if blank and _REPLICAS.match(name):
            return v.Number(1, 0)
    return value


def strategy(node: ast.expr, value: v.Value) -> v.Strategy | None:
    """The strategy that an expression gives, by its value or, where that is unknown, by its name."""
    if isinstance(value, v.Strategy):
        return value
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    # The strategies of other libraries (IPU, Horovod) do not sum as TensorFlow's do.
    foreign = isinstance(value, v.Tensor) and re.search(r"\b(ipu|hvd|horovod)", value.source)
    if v.is_blank(value) and not foreign and _STRATEGY.search(name):
        return v.Strategy()
    return None


def product(
    reader: Interpreter,
    place: v.Place,
    first: tuple[v.Value, ast.expr],
    second: tuple[v.Value, ast.expr],
) -> v.Value:
    """The product of two values, each with the expression that gives it."""
    for (value, _), (other, text) in ((first, second), (second, first)):
        if isinstance(value, v.Reduced) and isinstance(other, v.Number) and other.replicas > 0:
            # A loss that was averaged although it was a share is put right.
            reader.corrected.add(value.place)
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
