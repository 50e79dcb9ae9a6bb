"""What a loss was divided by on its way: the count of all towers' rows shows there, whatever else it was multiplied by.

The derivative of `0.5 * sum / count` by the sum is one number, which hides the count. In a graph the divisions that
made it are still there; in eager mode they are noted while the tape goes by.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers import _behind

QUOTIENTS = ("RealDiv", "DivNoNan")
PRODUCTS = ("Mul",)
# A number goes through these as it is, up to its sign.
FORMS = ("Cast", "ExpandDims", "Identity", "Neg", "Reshape", "Squeeze")
_THROUGH = frozenset((*FORMS, "BroadcastTo", "CheckNumerics", "Fill", "Sum", "Tile"))
# These give the numbers of a derivative other places, or add some up.
_MOVES = frozenset(
    "AddN AddV2 Concat ConcatV2 GatherNd GatherV2 Pack Pad ScatterNd Select SelectV2 Slice Split SplitV StridedSlice "
    "StridedSliceGrad Transpose Unpack UnsortedSegmentSum".split()
)


@dataclass(frozen=True)
class Divisor:
    """What a derivative was divided by.

    Attributes:
      number: a float, or a tensor of the graph.
      is_quotient: whether it was divided by it; else it was multiplied by the reciprocal.
      is_reduced: whether it is a sum over the replicas, made by hand.
    """

    number: Any
    is_quotient: bool
    is_reduced: bool = False


@dataclass(frozen=True)
class Chain:
    """The divisors of a derivative.

    Attributes:
      divisors: these.
      openings: inputs of this function, outside of which there may be more of them.
      is_of_rows: whether rows were divided, as the gradient of a mean divides by their number.
      is_linear: whether nothing but sums, products and quotients was found on the way.
      factors: what the derivative was multiplied by and is no number, of the forward pass.
    """

    divisors: tuple[Divisor, ...] = ()
    openings: tuple[Any, ...] = ()
    is_of_rows: bool = False
    is_linear: bool = True
    factors: tuple[Any, ...] = ()


class Eager:
    """The divisors of the numbers that a tape of this thread passes on, by the identity of each."""

    def __init__(self) -> None:
        self._chains: dict[int, tuple[Any, Chain]] = {}
        # The derivatives by rows that only sums, and products with what nothing is trained by, have made.
        self._of_rows: dict[int, Any] = {}
        # Those in functions that were traced where they are called eagerly.
        self._traced: dict[Divisor, None] = {}

    def of(self, upstream: Any) -> Chain:
        kept = self._chains.get(id(upstream))
        return Chain() if kept is None or kept[0] is not upstream else kept[1]

    def is_linear(self, upstream: Any) -> bool:
        """Whether a derivative by rows is that of a weighted sum of them."""
        return self._of_rows.get(id(upstream)) is upstream

    def _note_rows(self, kind: str, op: Any, upstream: Any, grads: list[Any]) -> None:
        is_of_one = kind == "Sum" and upstream.shape.rank == 0
        if not (is_of_one or self.is_linear(upstream)):
            return
        constant = getattr(op, "skip_input_indices", None) or ()
        for place, grad in enumerate(grads):
            is_scaled = kind in PRODUCTS or kind in QUOTIENTS and place == 0
            if kind in ("Sum", *FORMS) or is_scaled and 1 - place in constant:
                if grad is not None and len(self._of_rows) <= 1000:
                    self._of_rows[id(grad)] = grad

    def note(self, kind: str, op: Any, upstream: Any, grads: Any) -> None:
        """Remember what the gradients of an operation of numbers were divided by, and which are those of a mean's rows."""
        self._note_rows(
            kind, op, upstream, list(grads) if isinstance(grads, (list, tuple)) else [grads]
        )
        if kind == "Mean" or self.of(upstream).is_of_rows and kind in ("Sum", *FORMS):
            for grad in grads if isinstance(grads, (list, tuple)) else [grads]:
                if grad is not None:
                    self._chains[id(grad)] = (grad, Chain(is_of_rows=True))
            return
        if upstream.shape.rank != 0 and kind not in FORMS:
            return
        before = self.of(upstream)
        listed = grads if isinstance(grads, (list, tuple)) else [grads]
        for place, grad in enumerate(listed):
            if grad is None or tf.is_symbolic_tensor(grad) or not hasattr(grad, "numpy"):
                continue
            divisors = before.divisors
            if kind in QUOTIENTS and place == 0 or kind in PRODUCTS:
                other = op.inputs[1 - place]
                if other is None or other.shape.rank != 0:
                    continue
                divisors += _eager_divisor(other, kind in QUOTIENTS)
            elif kind not in FORMS:
                continue
            if len(self._chains) > 1000:
                self._chains.clear()
            self._chains[id(grad)] = (grad, Chain(divisors))

    def note_traced(self, kind: str, op: Any) -> None:
        """Remember what a number of a function is divided by, or times."""
        if any(each is None or each.shape.rank != 0 for each in op.inputs):
            return
        places = (1,) if kind in QUOTIENTS else (0, 1)
        for place in places:
            number = constant(op.inputs[place])
            if number:
                is_quotient = kind in QUOTIENTS
                made = Divisor(number if is_quotient else 1 / number, is_quotient)
                self._traced[made] = None

    def every(self) -> tuple[Divisor, ...]:
        """All that were noted, each once."""
        noted = dict.fromkeys(one for _, chain in self._chains.values() for one in chain.divisors)
        return (*noted, *self._traced)

    def clear(self) -> None:
        self._chains.clear()
        self._of_rows.clear()
        self._traced.clear()


def _eager_divisor(number: Any, is_quotient: bool) -> tuple[Divisor, ...]:
    value = float(number) if number.dtype.is_floating or number.dtype.is_integer else 0.0
    if not value or not math.isfinite(value):
        return ()
    is_reduced = getattr(number, _behind.REDUCED, False) is True
    return (Divisor(value if is_quotient else 1 / value, is_quotient, is_reduced),)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def in_graph(upstream: Any) -> Chain:
    """The divisors of a derivative in a graph, as far as products and quotients go back."""
    found: list[Divisor] = []
    openings: list[Any] = []
    factors: list[Any] = []
    is_of_rows, is_linear = False, True
    # With whether it is the derivative itself, or what that was multiplied by.
    waiting, left = [(upstream, True)], 60
    while waiting and left:
        left -= 1
        tensor, is_derivative = waiting.pop()
        tensor = outside(tensor)
        kind = tensor.op.type
        if constant(tensor) is not None:
            continue
        if kind in _THROUGH:
            waiting.append((tensor.op.inputs[1 if kind == "Fill" else 0], is_derivative))
        elif kind in QUOTIENTS:
            over, under = tensor.op.inputs
            is_of_rows = is_of_rows or tensor.shape.rank != 0
            waiting.append((over, is_derivative))
            found += _divisor(under, True)
        elif kind in PRODUCTS:
            known = [each for each in tensor.op.inputs if constant(each) is not None]
            unknown = [each for each in tensor.op.inputs if constant(each) is None]
            found += [one for each in known for one in _divisor(each, False)]
            own = [each for each in unknown if _behind.is_in_gradients(each.op)] or unknown
            for each in unknown:
                is_own = is_derivative and any(each is one for one in own)
                waiting.append((each, is_own))
                if is_derivative and not is_own:
                    factors.append(each)
        elif kind == "Placeholder":
            openings.append(tensor)
        elif is_derivative and kind not in _MOVES:
            is_linear = False
    return Chain(tuple(found), tuple(openings), is_of_rows, is_linear, tuple(factors))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def through_calls(chain: Chain, calls: Sequence[tuple[Any, Any]]) -> Chain:
    """A chain, and what it goes on with outside of the functions that it was in.

    Args:
      chain: one of a function's gradient.
      calls: `(operation, graph of the function)`, each with its inputs in the order of the function's.
    """
    divisors = list(chain.divisors)
    waiting, left = list(chain.openings), 20
    while waiting and left:
        left -= 1
        opening = waiting.pop()
        for operation, graph in calls:
            for place, inner in enumerate(graph.inputs):
                if inner is opening and place < len(operation.inputs):
                    more = in_graph(operation.inputs[place])
                    divisors += more.divisors
                    waiting += more.openings
    return replace(chain, divisors=tuple(divisors))


def _divisor(tensor: Any, is_quotient: bool) -> list[Divisor]:
    value = constant(tensor)
    if value is not None:
        return [Divisor(value if is_quotient else 1 / value, is_quotient)] if value else []
    tensor = outside(tensor)
    if tensor.shape.rank != 0:
        return []
    return [Divisor(tensor, is_quotient, _behind.is_reduced_by_hand(tensor))]


def constant(tensor: Any) -> float | None:
    """The number that all elements of a graph's tensor are, also of one that a function's gradient gets from it."""
    tensor = outside(tensor)
    if tensor.op.type == "Cast":
        return constant(tensor.op.inputs[0])
    value = tf.get_static_value(tensor)
    if value is None or not np.size(value) or not (value == value.flat[0]).all():
        return None
    return (
        float(value.flat[0])
        if value.dtype.kind in "fiub" or value.dtype.name == "bfloat16"
        else None
    )


def outside(tensor: Any) -> Any:
    """What an input of a function is outside of it, where it is captured."""
    while tensor.op.type == "Placeholder":
        for outer, inner in getattr(tensor.graph, "captures", ()):
            if inner is tensor and tf.is_symbolic_tensor(outer):
                tensor = outer
                break
        else:
            return tensor
    return tensor


def products(divisors: Iterable[Divisor]) -> set[float]:
    """What some of the divisors that are known make together."""
    numbers = [abs(one.number) for one in divisors if isinstance(one.number, float)][:6]
    sizes = range(1, len(numbers) + 1)
    return {math.prod(some) for size in sizes for some in itertools.combinations(numbers, size)}


def may_count(divisors: Sequence[Divisor]) -> bool:
    """Whether one of the divisors may be a number of rows."""
    return any(
        one.is_reduced
        or not isinstance(one.number, float)
        or abs(one.number) >= 2
        and math.isclose(one.number, round(one.number), rel_tol=1e-5)
        for one in divisors
    )
