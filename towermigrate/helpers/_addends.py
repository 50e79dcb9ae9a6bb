"""What losses and gradients are sums of: what is the same on every replica, added to one's part, would count once for each.

Only in a graph, where a tensor shows what it was made of.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers import _behind, _weighted
from towermigrate.helpers._marks import AVERAGED, MEAN, OF_VARIABLES, SHARE, TOWERS

_THROUGH = frozenset(
    "Cast CheckNumerics EnsureShape ExpandDims Identity Neg Reshape Snapshot Squeeze".split()
)
_SUMS = frozenset("Add AddN AddV2 Pack Sub".split())
_PRODUCTS = frozenset(["Mul", "MulNoNan"])
_QUOTIENTS = frozenset(["Div", "DivNoNan", "RealDiv"])
_NOT_LINEAR = frozenset(
    "Abs ClipByValue Maximum Minimum Pow Relu Round Rsqrt Sigmoid Sign Softsign Sqrt Square Tanh".split()
)
_FINITE = frozenset(["IsFinite", "IsInf", "IsNan"])


@dataclass(frozen=True, eq=False)
class Addend:
    """One of those that a tensor is a sum of.

    Attributes:
      tensor: the addend, without its factor.
      divisors: the numbers that it is divided by, up to their signs.
      factors: those that it is multiplied by.
      numbers: single numbers that it is multiplied or divided by and that are not known; without any these are all.
    """

    tensor: Any
    divisors: tuple[float, ...] = ()
    factors: tuple[float, ...] = ()
    numbers: tuple[Any, ...] = ()

    @property
    def is_known(self) -> bool:
        return not self.numbers

    def may_be_part(self, replicas: int) -> bool:
        """Whether one of its factors, or all of them together, may make it one replica's part."""
        if not self.is_known:
            return True
        numbers = [*self.divisors, *(1 / each for each in self.factors if each)]
        return any(_is(each, replicas) for each in [*numbers, math.prod(numbers)])

    def is_zero(self) -> bool:
        return 0.0 in self.factors


def _addends(tensor: Any, is_whole: Callable[[Any], bool]) -> list[Addend]:
    """What a tensor is a sum of; `is_whole` tells of an operation that it is not to be looked into."""
    found: list[Addend] = []
    waiting = [Addend(_behind.dense(tensor))]
    visited: set[Any] = set()
    while waiting:
        one = waiting.pop()
        if not tf.is_symbolic_tensor(one.tensor):
            continue
        operation = one.tensor.op
        key = (id(operation.graph), one.tensor.name)
        if key in visited:
            continue
        visited.add(key)
        behind = None if is_whole(operation) else _one_step(one)
        if behind is None:
            found.append(one)
        else:
            waiting += behind
    return found


def _one_step(one: Addend) -> list[Addend] | None:
    """The addends of an operation's result, or None where it is none of sums and products with numbers."""
    operation = one.tensor.op
    kind, inputs = operation.type, operation.inputs
    if kind in _THROUGH or kind == "Sum" and inputs[0].op.type == "Pack":
        return [replace(one, tensor=inputs[0])]
    if kind == "IdentityN":
        return [replace(one, tensor=inputs[one.tensor.value_index])]
    if kind in _SUMS:
        return [replace(one, tensor=each) for each in inputs]
    if kind in _QUOTIENTS or kind in _PRODUCTS:
        return _of_product(one)
    if kind in ("PartitionedCall", "StatefulPartitionedCall", "Placeholder"):
        inside = _behind.same_elsewhere(one.tensor)
        return None if inside is None else [replace(one, tensor=inside)]
    return None


def _of_product(one: Addend) -> list[Addend] | None:
    left, right = one.tensor.op.inputs
    is_quotient = one.tensor.op.type in _QUOTIENTS
    if is_quotient and _behind.is_size(right):
        return [replace(one, tensor=left, numbers=(*one.numbers, right))]
    for other, by in ((left, right),) if is_quotient else ((left, right), (right, left)):
        number = _number(by)
        if number is not None and is_quotient:
            return [replace(one, tensor=other, divisors=(*one.divisors, number))]
        if number is not None:
            return [replace(one, tensor=other, factors=(*one.factors, number))]
    for other, by in ((left, right),) if is_quotient else ((left, right), (right, left)):
        if by.shape.rank == 0 and (other.shape.rank or _is_scaled_part(other, by, is_quotient)):
            return [replace(one, tensor=other, numbers=(*one.numbers, by))]
    return None


def _is_scaled_part(part: Any, by: Any, is_quotient: bool) -> bool:
    """Of two single numbers, whether one is a part of a gradient and the other no more than its factor."""
    if not _is_part(part):
        return False
    return is_quotient or not _is_part(by) or holds_part(part) and not holds_part(by)


def _number(tensor: Any) -> float | None:
    """The constant that a tensor is, without its sign; None where it is none."""
    value = _weighted.static_value(tensor)
    if value is None or np.size(value) != 1 or value.dtype.kind not in "fiu":
        return None
    number = abs(float(value.reshape([])))
    return number if math.isfinite(number) else None


def _is_part(tensor: Any) -> bool:
    return any(
        _behind.is_marked_in_one_replica([tensor], mark, AVERAGED)
        for mark in (SHARE, OF_VARIABLES, TOWERS)
    )


def _is(number: float, replicas: int) -> bool:
    return math.isclose(number, replicas, rel_tol=1e-6)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def not_shared(loss: Any, replicas: int) -> str:
    """What of a loss that holds a share is certain to be none, and would count once for each replica: for an error; or ""."""
    for one in _addends(loss, lambda operation: _behind.has_mark(operation, SHARE)):
        if _behind.has_mark(one.tensor.op, SHARE) or not one.tensor.dtype.is_floating:
            continue
        if one.is_zero() or one.tensor.op.type == "StopGradient":
            continue
        if one.tensor.op.type == "Sum" and _is_over_own_rows(one, replicas):
            return f"a sum over this replica's rows, divided by their number ({one.tensor.op.name})"
        if one.may_be_part(replicas):
            continue
        if _behind.is_of_variables([one.tensor]):
            if not _behind.is_divided([one.tensor], replicas, until=SHARE):
                return f"a penalty of weights ({one.tensor.op.name}), the same on every replica"
        elif one.tensor.op.type == "Mean" and _is_plain_mean(one.tensor, replicas):
            return f"a mean over this replica's rows ({one.tensor.op.name})"
    return ""


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def may_be_shares(loss: Any) -> bool:
    """Whether what of a loss is not known for a share was divided, sum by sum, so that it may be one made by hand."""
    for one in _addends(loss, lambda operation: _behind.has_mark(operation, SHARE)):
        operation = one.tensor.op
        if _behind.has_mark(operation, SHARE) or not one.tensor.dtype.is_floating:
            continue
        if operation.type == "Const" or one.divisors or not one.is_known:
            continue
        if any(_is_one_of_a_count(each, operation) for each in one.factors):
            continue
        if operation.type not in ("Sum", *_PRODUCTS, *_QUOTIENTS):
            return False
        inside = _addends(operation.inputs[0], lambda each: each.type in ("Sum", "Mean"))
        if operation.type == "Sum" and all(map(_is_undivided, inside)):
            return False
    return True


def _is_one_of_a_count(factor: float, operation: Any) -> bool:
    """Whether a factor is 1/N for a number of rows N that is not this replica's own; a half is more often one of squares."""
    if not 0 < factor < 0.4 or not math.isclose(1 / factor, round(1 / factor), rel_tol=1e-6):
        return False
    rows = operation.inputs[0] if operation.type == "Sum" else operation.outputs[0]
    return not rows.shape.rank or not _is(1 / factor, tf.compat.dimension_value(rows.shape[0]) or 0)


def _is_plain_mean(mean: Any, replicas: int) -> bool:
    """Whether nothing in a mean, or a sum, can have given it its part of a global mean."""
    if _behind.values_of(SHARE, [mean]) or not _behind.reads_inputs([mean]):
        return False
    inside = _addends(mean.op.inputs[0], lambda operation: operation.type == mean.op.type)
    return all(
        not one.may_be_part(replicas) and one.tensor.op.type not in _PRODUCTS | _QUOTIENTS
        for one in inside
    )


def _is_over_own_rows(one: Addend, replicas: int) -> bool:
    """Whether a sum over rows was divided by how many this replica has, and by nothing that makes it a part."""
    rows = one.tensor.op.inputs[0]
    known = tf.compat.dimension_value(rows.shape[0]) if rows.shape.rank else None
    if not rows.shape.rank or not _is_plain_mean(one.tensor, replicas):
        return False
    if one.numbers:
        return len(one.numbers) == 1 and not one.divisors and _behind.is_size(one.numbers[0])
    return known is not None and known > 1 and known in one.divisors and known != replicas


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def undivided_sum(weighted: Iterable[Any]) -> str:
    """A sum over rows of data that nothing has divided or weighed, for an error; or "".

    Args:
      weighted: the sums that gradients of a graph came by.
    """
    for one in weighted:
        rows = one.elements
        is_plain = isinstance(one.weight, float) and one.weight == 1.0
        if not one.counts or not is_plain or not tf.is_symbolic_tensor(rows):
            continue
        if not rows.shape.rank or rows.shape[0] == 1 or not _behind.reads_inputs([rows]):
            continue
        inside = _addends(rows, lambda operation: operation.type in ("Sum", "Mean"))
        if all(each.is_known and _is_undivided(each) for each in inside):
            return str(rows.op.name)
    return ""


def _is_undivided(one: Addend) -> bool:
    # A product of two tensors may be one with weights that were divided before.
    return not one.divisors and one.tensor.op.type not in _PRODUCTS | _QUOTIENTS


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_what_is_added(
    grads: Iterable[Any], what: str, instead: str, *, are_applied: bool = True
) -> None:
    """Raise where a sum over the replicas is to be made of gradients to which something else was added in each, or that were divided.

    Args:
      grads: gradients, of shares or of `tower_gradients`.
      what: who sums them.
      instead: what to write.
      are_applied: whether the sum is certain to be an update; else it may be a statistic of the parts.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas == 1:
        return
    for grad in grads:
        if not tf.is_symbolic_tensor(_behind.dense(grad)):
            continue
        addends = _addends(grad, _is_whole)
        parts = [one for one in addends if _is_marked_part(one.tensor.op)]
        if are_applied and any(_is_function_of_part(one.tensor) for one in addends):
            raise ValueError(
                f"{what} sums over the {replicas} replicas what is a function of one tower's part of a gradient: of the whole "
                "gradient it is another than the sum. Take it of what average_gradients(…, reduce='sum') returns, and "
                "apply the result with apply_averaged."
            )
        if not parts:
            continue
        if any(_is_made_of_part(number) for one in parts for number in one.numbers):
            raise ValueError(
                f"{what} sums over the {replicas} replicas what is one tower's part of a gradient times a number made of such a "
                "part (its norm, say): the whole gradient has another. Take that number of what "
                "average_gradients(…, reduce='sum') returns, and apply the result with apply_averaged."
            )
        for one in addends:
            if one in parts or one.is_zero() or one.may_be_part(replicas):
                continue
            if _behind.is_of_variables([one.tensor]) and not _behind.is_divided(
                [one.tensor], replicas, until=AVERAGED
            ):
                raise ValueError(
                    f"{what} sums over the {replicas} replicas, and {one.tensor.op.name}, which is made of weights alone and "
                    f"is the same on each, was added to one replica's part of a gradient: it would count {replicas} times. "
                    f"{instead}"
                )
        divided = [one for one in parts if any(_is(each, replicas) for each in one.divisors)]
        if len(addends) == 1 and divided:
            by = (
                f"tower_gradients has divided by {replicas}"
                if _behind.has_mark(divided[0].tensor.op, TOWERS)
                else "a share of the global loss has divided by a global count"
            )
            raise ValueError(
                f"{what} sums over the {replicas} replicas what {by} already, and it "
                f"was divided by {replicas} once more: the program would train at 1/{replicas}. Leave the division out; if "
                f"it is a weight, write it as one, gradient * {1 / replicas:g}."
            )


def _is_function_of_part(tensor: Any) -> bool:
    """Whether this is an operation's result that does not add up over the replicas as the parts it is made of do."""
    operation = tensor.op
    if operation.type in _PRODUCTS | _QUOTIENTS:
        return all(
            _is_part(each) and not _behind.has_type([each], _FINITE) for each in operation.inputs
        )
    return operation.type in _NOT_LINEAR and _is_part(tensor)


def _is_made_of_part(number: Any) -> bool:
    """Whether a factor is made of one replica's part of a gradient; whether that is finite may be asked of each part."""
    return _is_part(number) and not _behind.has_type([number], _FINITE)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_divided(grads: Iterable[Any], what: str) -> None:
    """Raise where what is averaged, or was, is also divided by the number of replicas."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas == 1:
        return
    for grad in grads:
        if not tf.is_symbolic_tensor(_behind.dense(grad)):
            continue
        addends = _addends(grad, _is_whole)
        if len(addends) != 1 or not any(_is(one, replicas) for one in addends[0].divisors):
            continue
        operation = addends[0].tensor.op
        if _behind.mark_of(operation, AVERAGED) == MEAN or _behind.is_in_gradients(operation):
            raise ValueError(
                f"{what}, and there are {replicas}: these were divided by {replicas} once more, and the program "
                f"would train at 1/{replicas}. Leave the division out; if it is a weight, write it as one, gradient * "
                f"{1 / replicas:g}."
            )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def holds_part(tensor: Any) -> bool:
    """Whether one replica's part of a gradient is among what a tensor is a sum of; a short walk."""
    return any(_is_marked_part(one.tensor.op) for one in _addends(tensor, _is_whole))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def holds_whole(tensor: Any, replicas: int) -> bool:
    """Whether what was put together of all replicas is among what a tensor is a sum of, times no more than a rate."""
    return any(
        _behind.has_mark(one.tensor.op, AVERAGED) or _behind.is_reduction(one.tensor.op)
        for one in _addends(tensor, _is_whole)
        if all(_behind.is_of_variables([number]) for number in one.numbers)
        and not replace(one, numbers=()).may_be_part(replicas)
    )


def _is_marked_part(operation: Any) -> bool:
    return _behind.has_mark(operation, OF_VARIABLES) or _behind.has_mark(operation, TOWERS)


def _is_whole(operation: Any) -> bool:
    return (
        _is_marked_part(operation)
        or _behind.has_mark(operation, AVERAGED)
        or _behind.is_reduction(operation)
        or _behind.is_in_gradients(operation)
    )
