"""Gradients of towers as weighted sums, and what TensorFlow's functions make of them.

Sparse ones (`tf.IndexedSlices`) have parts, values and indices, which averages join over the towers and put together.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Protocol

from towermigrate.flow import Call
from towermigrate.flow.values import NONE, Const, External, Items, Many, Value

NO_TOWER = -1
"""Zeros of a variable's shape stand for the gradient of this tower."""

Terms = tuple[tuple[tuple[int, int], Fraction], ...]


class NoAverageError(Exception):
    """It is no plain function of the file, or does what is not followed."""


@dataclass(frozen=True)
class Variable(Value):
    number: int


@dataclass(frozen=True)
class Shape(Value):
    """The shape of a variable."""

    number: int


@dataclass(frozen=True)
class Sum(Value):
    """A weighted sum of gradients, by variable and tower; zeros of a variable's shape are those of `NO_TOWER`.

    `sparse` says that it is IndexedSlices, which most functions of TensorFlow make dense.
    """

    terms: Terms
    sparse: bool = False


@dataclass(frozen=True)
class Rows(Value):
    """Gradients stacked along a first dimension."""

    rows: tuple[Sum, ...]


@dataclass(frozen=True)
class Part(Value):
    """Values or indices of IndexedSlices, of one tower behind the other; `once` says that each index is there once."""

    kind: Literal["values", "indices", "places"]
    terms: Terms
    once: bool = False


@dataclass(frozen=True)
class Count(Value):
    """How many indices there are."""

    indices: Part


@dataclass(frozen=True)
class NoValue(Value):
    """`tf.device(…)`, `tf.name_scope(…)`: no value passes through it."""


class Asking(Protocol):
    """The domain that a function is run in."""

    distinguishes: bool
    """Whether it was asked what a gradient is."""

    def spelled(self, name: str) -> str: ...

    def spent(self, call: Call) -> Value:
        """TensorFlow raises here."""


Meaning = Callable[[Asking, Call], Value | None]

PARTS = ("values", "indices", "dense_shape")


def part_of(gradient: Sum, name: str) -> Value | None:
    """`gradient.values` and the other parts; None of a dense one."""
    if not gradient.sparse:
        return None
    if name == "dense_shape":
        return Shape(gradient.terms[0][0][0])
    return _values(gradient.terms) if name == "values" else _indices(gradient.terms)


def _values(terms: Terms) -> Part:
    return Part("values", terms)


def _indices(terms: Terms) -> Part:
    """Numbers do not change indices."""
    return Part("indices", tuple((key, Fraction(1)) for key, _ in terms))


def combined(op: ast.operator, first: Value, second: Value) -> Value | None:
    if isinstance(op, ast.Add) and isinstance(first, Sum) and isinstance(second, Sum):
        return None if first.sparse or second.sparse else added([first, second])
    for value, other, swapped in ((first, second, False), (second, first, True)):
        number = number_of(other)
        if isinstance(value, Part) and value.kind == "values" and number is not None:
            if isinstance(op, ast.Mult):
                return _times(value, number)
            return (
                _times(value, 1 / number)
                if isinstance(op, ast.Div) and not swapped and number
                else None
            )
        if not isinstance(value, Sum) or number is None or value.sparse:
            continue
        if isinstance(op, ast.Mult):
            return scaled(value, number)
        if isinstance(op, ast.Div) and not swapped and number:
            return scaled(value, 1 / number)
        if isinstance(op, ast.Add) and number == 0:
            return value  # `sum(gradients)` begins with 0
    return None


def number_of(value: Value | None) -> Fraction | None:
    """A number, as the fraction that the program means by it: 0.5 is a half, 1 / 3 a third."""
    if isinstance(value, Const) and type(value.value) in (int, float):
        number = value.value
        assert isinstance(number, int | float)
        if number == number and abs(number) < 1e6:
            found = Fraction(number).limit_denominator(1000)
            return found if float(found) == number else None  # 2.0001 is no two
    return None


def added(parts: Sequence[Sum]) -> Sum:
    total: dict[tuple[int, int], Fraction] = {}
    for part in parts:
        for key, weight in part.terms:
            total[key] = total.get(key, Fraction(0)) + weight
    return Sum(tuple(sorted(total.items())))


def scaled(value: Sum, by: Fraction) -> Sum:
    return Sum(tuple((key, weight * by) for key, weight in value.terms))


def _times(part: Part, by: Fraction) -> Part:
    return replace(part, terms=tuple((key, weight * by) for key, weight in part.terms))


def _axis(call: Call, index: int) -> Value | None:
    found = call.get(index, "axis", "dim", "reduction_indices", "concat_dim", "squeeze_dims")
    if isinstance(found, Items) and found.entries is not None and len(found.entries) == 1:
        return found.entries[0]
    return found


def _gradients(domain: Asking, call: Call, value: Value | None) -> list[Sum | Rows] | Value:
    """The gradients of a list; what the call gives where TensorFlow raises, or where it is not known."""
    if not isinstance(value, Items) or isinstance(value.held, Many):
        return call.unknown("no list of gradients")
    entries = value.entries or ()
    if not entries or any(each == NONE for each in entries):
        return domain.spent(call)
    found = [each for each in entries if isinstance(each, Sum | Rows)]
    return found if len(found) == len(entries) else call.unknown("no list of gradients")


def _expand(domain: Asking, call: Call) -> Value:
    value = call.get(0, "input")
    if value == NONE:
        return domain.spent(call)
    if isinstance(value, Sum) and _axis(call, 1) == Const(0):
        return Rows((replace(value, sparse=False),))
    return call.unknown("no gradient with a new first dimension")


def _concat(domain: Asking, call: Call) -> Value:
    """`concat(values, 0)`, or `concat(0, values)` as TensorFlow 0.x had it."""
    values, axis = call.get(0, "values"), _axis(call, 1)
    if isinstance(values, Const):
        values, axis = call.get(1, "values"), values
    entries = values.entries if isinstance(values, Items) else None
    parts = [each for each in entries or () if isinstance(each, Part)]
    if entries and len(parts) == len(entries):
        alike = len({each.kind for each in parts}) == 1 and not any(each.once for each in parts)
        whole = alike and axis == Const(0)
        terms = tuple(term for each in parts for term in each.terms)
        return Part(parts[0].kind, terms) if whole else call.unknown("no parts of gradients")
    found = _gradients(domain, call, values)
    if isinstance(found, Value):
        return found
    rows = [each for each in found if isinstance(each, Rows)]
    if axis != Const(0) or len(rows) != len(found):
        return call.unknown("no stack of gradients")
    return Rows(tuple(row for each in rows for row in each.rows))


def _stack(domain: Asking, call: Call) -> Value:
    found = _gradients(domain, call, call.get(0, "values"))
    if isinstance(found, Value):
        return found
    sums = [each for each in found if isinstance(each, Sum)]
    if _axis(call, 1) not in (None, Const(0)) or len(sums) != len(found):
        return call.unknown("no stack of gradients")
    return Rows(tuple(replace(each, sparse=False) for each in sums))


def _reduce(domain: Asking, call: Call) -> Value:
    """`reduce_mean` and `reduce_sum` over the towers."""
    value = call.get(0, "input_tensor")
    if value == NONE:
        return domain.spent(call)
    if isinstance(value, Items):
        found = _gradients(domain, call, value)
        if isinstance(found, Value):
            return found
        sums = tuple(each for each in found if isinstance(each, Sum))
        if any(each.sparse for each in sums):
            return domain.spent(call)  # a list with IndexedSlices is made no tensor
        value = Rows(sums) if len(sums) == len(found) else None
    keeps = call.get(2, "keep_dims", "keepdims")
    if (
        not isinstance(value, Rows)
        or _axis(call, 1) != Const(0)
        or keeps not in (None, Const(False), NONE)
    ):
        return call.unknown("not reduced over the towers")
    total = added(value.rows)
    return scaled(total, Fraction(1, len(value.rows))) if call.name.endswith("mean") else total


def _squeeze(domain: Asking, call: Call) -> Value:
    value = call.get(0, "input")
    if isinstance(value, Rows) and len(value.rows) == 1 and _axis(call, 1) == Const(0):
        return value.rows[0]
    return call.unknown("not the first dimension")


def _add_n(domain: Asking, call: Call) -> Value:
    found = _gradients(domain, call, call.get(0, "inputs"))
    if isinstance(found, Value):
        return found
    sums = [each for each in found if isinstance(each, Sum)]
    return added(sums) if len(sums) == len(found) else call.unknown("no sum of gradients")


def _accumulate_n(domain: Asking, call: Call) -> Value:
    """`tf.add_n` that takes nothing sparse."""
    found = _add_n(domain, call)
    return domain.spent(call) if isinstance(found, Sum) and found.sparse else found


def _sum(domain: Asking, call: Call) -> Value | None:
    """Python's `sum`."""
    value = call.get(0)
    entries = value.entries if isinstance(value, Items) else None
    if entries and any(each == NONE or isinstance(each, Sum) and each.sparse for each in entries):
        return domain.spent(call)
    sums = [each for each in entries or () if isinstance(each, Sum)]
    whole = entries is not None and sums and len(sums) == len(entries) and len(call.args) == 1
    return added(sums) if whole else None


def _folded(domain: Asking, call: Call) -> Value:
    """`functools.reduce(function, values)`: the function of two, over and over."""
    function, values = call.get(0), call.get(1)
    entries = values.entries if isinstance(values, Items) else None
    if function is None or entries is None or len(call.args) not in (2, 3):
        return call.unknown("what is folded")
    name = domain.spelled(function.name) if isinstance(function, External) else ""
    given = [*call.args[2:], *entries]
    if not given:
        return domain.spent(call)
    found = given[0]
    for each in given[1:]:
        both = replace(call, name=name, args=[found, each], keywords={}, stars=())
        found = call.interpreter.invoke(function, both)
    return found


def _binary(op: ast.operator) -> Meaning:
    def called(domain: Asking, call: Call) -> Value:
        if len(call.args) < 2:
            return call.unknown("an operation")
        if any(each == NONE for each in call.args):
            return domain.spent(call)
        return combined(op, call.args[0], call.args[1]) or call.unknown("an operation")

    return called


def _scalar_mul(domain: Asking, call: Call) -> Value:
    scalar, value = call.get(0, "scalar"), call.get(1, "x")
    if value == NONE:
        return domain.spent(call)
    if isinstance(value, Sum) and (number := number_of(scalar)) is not None:
        return replace(scaled(value, number), sparse=value.sparse)
    return call.unknown("no number times a gradient")


def _same(domain: Asking, call: Call) -> Value:
    """What it is given: a number in another type, a gradient under another name."""
    value = call.get(0, "x", "input", "value")
    if value == NONE:
        return domain.spent(call)
    if isinstance(value, Sum) and value.sparse:
        raise NoAverageError  # dense or not, by the version of TensorFlow
    return value if value is not None else call.unknown("nothing")


def _zeros(domain: Asking, call: Call) -> Value:
    """`tf.zeros_like(variable)`, `tf.zeros(variable.shape)`."""
    of = call.get(0, "tensor", "shape")
    wanted = Variable if call.name.endswith("zeros_like") else Shape
    if isinstance(of, Variable | Shape) and isinstance(of, wanted):
        return Sum((((of.number, NO_TOWER), Fraction(1)),))
    return domain.spent(call) if of == NONE else call.unknown("zeros of another shape")


def _shape(domain: Asking, call: Call) -> Value:
    of = call.get(0, "input")
    if isinstance(of, Part) and of.kind == "indices":
        return Count(of)
    return Shape(of.number) if isinstance(of, Variable) else call.unknown("a shape")


def _scope(domain: Asking, call: Call) -> Value:
    return NoValue()


def _is_instance(domain: Asking, call: Call) -> Value:
    """`isinstance(gradient, tf.IndexedSlices)`."""
    value, kind = call.get(0), call.get(1)
    if not isinstance(kind, External) or domain.spelled(kind.name) != "tf.IndexedSlices":
        raise NoAverageError
    domain.distinguishes = True
    if value == NONE:
        return Const(False)
    if not isinstance(value, Sum):
        raise NoAverageError
    return Const(value.sparse)


def _dense(domain: Asking, call: Call) -> Value:
    """`tf.convert_to_tensor(gradient)`."""
    value = call.get(0, "value")
    if value == NONE:
        return domain.spent(call)
    if isinstance(value, Sum):
        return replace(value, sparse=False)
    return call.unknown("no gradient")


def _unique(domain: Asking, call: Call) -> Value:
    """`unique, places = tf.unique(indices)`."""
    of = call.get(0, "x")
    if not isinstance(of, Part) or of.kind != "indices" or of.once:
        return call.unknown("no indices of gradients")
    both = [replace(of, once=True), Part("places", of.terms)]
    return call.interpreter.items(both, call.place, "tuple")


def _summed(domain: Asking, call: Call) -> Value:
    """`tf.unsorted_segment_sum(values, places, tf.shape(unique)[0])`: the values of each index added up."""
    values, places, count = (
        call.get(0, "data"), call.get(1, "segment_ids"), call.get(2, "num_segments"),
    )  # fmt: skip
    if (
        isinstance(values, Part)
        and isinstance(places, Part)
        and values.kind == "values"
        and places.kind == "places"
        and not values.once
        and places.terms == _indices(values.terms).terms
        and count == Count(Part("indices", places.terms, once=True))
    ):
        return replace(values, once=True)
    return call.unknown("no values of gradients added up")


def _indexed_slices(domain: Asking, call: Call) -> Value:
    """`tf.IndexedSlices(values, indices, dense_shape)`."""
    values, indices = call.get(0, "values"), call.get(1, "indices")
    shape = call.get(2, "dense_shape")
    if (
        isinstance(values, Part)
        and isinstance(indices, Part)
        and indices == replace(_indices(values.terms), once=values.once)
        and values.kind == "values"
        and shape in (None, NONE, Shape(values.terms[0][0][0]))
    ):
        return replace(added([Sum((term,)) for term in values.terms]), sparse=True)
    return call.unknown("no gradient put together of its parts")


FUNCTIONS: dict[str, Meaning] = {
    "tf.expand_dims": _expand,
    "tf.concat": _concat,
    "tf.concat_v2": _concat,
    "tf.stack": _stack,
    "tf.pack": _stack,
    "tf.reduce_mean": _reduce,
    "tf.reduce_sum": _reduce,
    "tf.math.reduce_mean": _reduce,
    "tf.math.reduce_sum": _reduce,
    "tf.squeeze": _squeeze,
    "tf.accumulate_n": _accumulate_n,
    "tf.math.accumulate_n": _accumulate_n,
    "tf.add_n": _add_n,
    "tf.math.add_n": _add_n,
    "builtins.sum": _sum,
    "functools.reduce": _folded,
    "builtins.reduce": _folded,
    "operator.add": _binary(ast.Add()),
    "tf.add": _binary(ast.Add()),
    "tf.math.add": _binary(ast.Add()),
    "tf.multiply": _binary(ast.Mult()),
    "tf.divide": _binary(ast.Div()),
    "tf.truediv": _binary(ast.Div()),
    "tf.div": _binary(ast.Div()),
    "tf.scalar_mul": _scalar_mul,
    "tf.identity": _same,
    "tf.convert_to_tensor": _dense,
    "tf.IndexedSlices": _indexed_slices,
    "tf.unique": _unique,
    "tf.unsorted_segment_sum": _summed,
    "tf.math.unsorted_segment_sum": _summed,
    "tf.zeros": _zeros,
    "tf.zeros_like": _zeros,
    "tf.shape": _shape,
    "tf.device": _scope,
    "tf.name_scope": _scope,
    "builtins.isinstance": _is_instance,
}
ARGUMENTS = frozenset(
    "input dim axis values concat_dim input_tensor reduction_indices inputs name x y scalar keep_dims keepdims tensor shape dtype "
    "value indices dense_shape data segment_ids num_segments".split()
)
PURE = frozenset(
    f"builtins.{name}"
    for name in "zip list tuple len float int range xrange enumerate reversed map bool dict sorted iter".split()
)
