"""What adding, multiplying, dividing, summing and averaging do to a value, and what two branches make of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from towermigrate.flow.values import NONE, Items, Many, Place, Value
from towermigrate.lint.values import (
    Count,
    Form,
    Gradients,
    Known,
    LocalSum,
    Loss,
    ModelLosses,
    Number,
    Part,
    Strategy,
    Tensor,
    seen,
    unknown,
)


def join(first: Value, second: Value) -> Value | None:
    """The value of a name after two branches; None where the lint has no opinion.

    A term of a loss that both have, but divided differently (`if n > 1: loss /= n`), is not followed further.
    """
    if second == NONE:
        return first
    if first == NONE:
        return second
    first, second = seen(first), seen(second)
    if not isinstance(first, Known) and not isinstance(second, Known):
        return None
    if first == second:
        return first
    if isinstance(first, Loss) and isinstance(second, Loss):
        places: dict[Place, set[Part]] = {}
        for part in first.parts | second.parts:
            places.setdefault(part.place, set()).add(part)
        return loss_of(part for parts in places.values() if len(parts) == 1 for part in parts)
    if isinstance(first, Strategy) and isinstance(second, Strategy):
        return Strategy(first.sure and second.sure)
    if isinstance(first, Gradients) and isinstance(second, Gradients):
        loss = join(first.loss, second.loss)
        if isinstance(loss, Loss) and first.reduced == second.reduced:
            return replace(first, loss=loss)
        return unknown()
    for known, other in ((first, second), (second, first)):
        if isinstance(known, Loss) and isinstance(other, Tensor | Number):
            return known
        if isinstance(other, Tensor) and not isinstance(
            known, Tensor | Number | LocalSum | Gradients
        ):
            return known
    return unknown(doubtful=True)


def loss_of(parts: Iterable[Part]) -> Value:
    found = frozenset(parts)
    return Loss(found) if found else unknown(doubtful=True)


def negative(value: Value) -> Value:
    value = seen(value)
    if isinstance(value, Number) and value.literal is not None:
        return replace(value, literal=-value.literal)
    return value


def add(first: Value, second: Value) -> Value:
    """`first + second`, or their difference."""
    first, second = seen(first), seen(second)
    for known, other in ((first, second), (second, first)):
        if isinstance(known, LocalSum) and isinstance(other, Number):
            return known
        if isinstance(known, Count) and isinstance(other, Number):
            return known
    parts = [p for value in (first, second) if isinstance(value, Loss) for p in value.parts]
    if parts:
        return loss_of(parts)
    if isinstance(first, Tensor) and isinstance(second, Number):
        return first
    if isinstance(second, Tensor) and isinstance(first, Number):
        return second
    if isinstance(first, Number) and isinstance(second, Number):
        return Number() if not (first.replicas or second.replicas) else unknown()
    return unknown(doubtful=any(isinstance(v, Tensor) and v.doubtful for v in (first, second)))


def scale(value: Value, by: Number, place: Place) -> Value:
    """`value` times a number that all replicas share; `place` is where, if that makes a loss of it."""
    value = seen(value)
    if isinstance(value, Loss):
        if by.batch:
            return unknown(doubtful=True)
        return Loss(frozenset(replace(p, excess=p.excess + by.replicas) for p in value.parts))
    if isinstance(value, Gradients):
        loss = scale(value.loss, by, place)
        return replace(value, loss=loss) if isinstance(loss, Loss) else unknown()
    if isinstance(value, Tensor):
        return replace(value, replicas=value.replicas + by.replicas, batch=value.batch + by.batch)
    if isinstance(value, LocalSum):
        tensor = scale(value.tensor, by, place)
        assert isinstance(tensor, Tensor)
        if tensor.batch == -1 and not tensor.doubtful:
            return Loss(frozenset({Part("share", tensor.replicas, place)}))
        return LocalSum(tensor)
    if isinstance(value, Number):
        return _times(value, by)
    return unknown()


def _times(first: Number, second: Number) -> Number:
    replicas, batch = first.replicas + second.replicas, first.batch + second.batch
    literal = None
    if first.literal is not None and second.literal is not None:
        literal = first.literal * second.literal
    # So many examples a replica, times the replicas, is the global batch: `64 * strategy.num_replicas_in_sync`.
    if replicas == 1 and not batch:
        for number in (first, second):
            if number.literal is not None and number.literal > 1:
                return Number(0, 1)
    return Number(replicas, batch, literal)


def inverse(number: Number) -> Number:
    literal = 1 / number.literal if number.literal else None
    return Number(-number.replicas, -number.batch, literal)


def multiply(first: Value, second: Value, place: Place) -> Value:
    first, second = seen(first), seen(second)
    if isinstance(first, Number):
        return scale(second, first, place)
    if isinstance(second, Number):
        return scale(first, second, place)
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return Tensor(
            first.ids | second.ids,
            first.replicas + second.replicas,
            first.batch + second.batch,
            first.doubtful or second.doubtful,
            first.masked or second.masked,
        )
    return unknown(doubtful=True)


def divide(first: Value, second: Value, place: Place) -> Value:
    first, second = seen(first), seen(second)
    if isinstance(second, Number):
        return scale(first, inverse(second), place)
    if isinstance(first, LocalSum):
        top = first.tensor
        if top.doubtful or top.batch:
            return unknown(doubtful=True)
        if isinstance(second, LocalSum) and second.tensor.ids <= top.ids:
            excess = 1 + top.replicas - second.tensor.replicas
            return Loss(frozenset({Part("tokens", excess, place)}))
        if isinstance(second, Count):
            return Loss(frozenset({Part("mean", 1 + top.replicas, place)}))
    if isinstance(first, Number) and isinstance(second, Tensor):
        return unknown(doubtful=True)
    return unknown(doubtful=True)


def mean(value: Value, place: Place) -> Value:
    """The mean over all axes."""
    value = seen(value)
    if isinstance(value, Loss):
        return value
    if isinstance(value, Tensor) and not value.doubtful and not value.batch:
        form: Form = "tokens" if value.masked else "mean"
        return Loss(frozenset({Part(form, 1 + value.replicas, place)}))
    return unknown(doubtful=True)


def total(value: Value, place: Place) -> Value:
    """The sum over all axes, or of a list."""
    if isinstance(value, ModelLosses):
        return Loss(frozenset({Part("regularizer", 1, place)}))
    if isinstance(value, Items):
        held = value.held
        if isinstance(held, Many):
            return unknown() if held.entry is None else held.entry
        found: Value = Number(literal=0)
        for item in held.entries:
            found = add(found, item)
        return found
    value = seen(value)
    if isinstance(value, Loss):
        return value
    if isinstance(value, Tensor):
        return scale(LocalSum(value), Number(), place)
    return unknown(doubtful=True)
