"""An average over the towers is what code *gives*, whatever its form: the mean of each variable's gradients, in order.

A function is run on a few towers, each with a symbolic gradient for each of a few variables. Gradients are kept in a
normal form: a weighted sum of those that the function was given. What a function gives for a variable that no tower
reaches says how it takes None: programs differ most in that (of 80: 13 drop it, 11 pass it on, most crash).
"""

from __future__ import annotations

import ast
import builtins
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from towermigrate.flow import Call, Domain, Interpreter, Limits
from towermigrate.flow.scopes import bound_in
from towermigrate.flow.values import (
    NONE,
    Const,
    Function,
    Items,
    Many,
    Place,
    Scope,
    Unknown,
    Value,
    named,
    reachable,
)
from towermigrate.tree import TF1_COPY, is_unedited_copy, parse_python

NonePolicy = Literal["crash", "skip", "pass", "zeros", "filled"]
"""`zeros` is `helpers/tf1.py`'s, which leaves IndexedSlices; a program that has `filled` in zeros stacks them."""

_VARIABLES = 3
_NO_TOWER = -1
_TOWERS = (1, 2, 3)
_LIMITS = Limits(steps=20_000, calls=500, depth=20, recursion=0)


@dataclass(frozen=True)
class Averaging:
    """How a function averages: `parameter` is the name of the argument that holds the towers' lists."""

    parameter: str
    none_policy: NonePolicy


@dataclass(frozen=True)
class _Variable(Value):
    number: int


@dataclass(frozen=True)
class _Shape(Value):
    """The shape of a variable."""

    number: int


@dataclass(frozen=True)
class _Sum(Value):
    """A weighted sum of gradients, by variable and tower; zeros of a variable's shape are those of `_NO_TOWER`."""

    terms: tuple[tuple[tuple[int, int], Fraction], ...]


@dataclass(frozen=True)
class _Rows(Value):
    """Gradients stacked along a first dimension."""

    rows: tuple[_Sum, ...]


def averaging(sources: Mapping[str, str], path: str, line: int, name: str) -> Averaging | None:
    """How a function of a tree averages gradients over the towers; None where that is not what it does, and all.

    Args:
        sources: texts of the tree by path.
        path, line, name: the file that the function stands in, the line of its `def` and its name.

    Example:
        >>> text = '''import tensorflow as tf
        ... def average_gradients(tower_grads):
        ...     found = []
        ...     for pairs in zip(*tower_grads):
        ...         grads = [g for g, _ in pairs if g is not None]
        ...         if grads:
        ...             found.append((tf.add_n(grads) / len(grads), pairs[0][1]))
        ...     return found
        ... '''
        >>> averaging({"a.py": text}, "a.py", 2, "average_gradients")
        Averaging(parameter='tower_grads', none_policy='skip')
    """
    if posixpath.basename(path) == TF1_COPY:
        ours = name == "average_gradients" and is_unedited_copy(sources[path])
        return Averaging("tower_grads", "zeros") if ours else None
    try:
        asked = _Asked(sources, path, line, name)
        if not all(asked.gives_mean(towers) for towers in _TOWERS):
            return None
        policy = asked.none_policy()
    except (_NotAFunction, RecursionError, SyntaxError, ValueError):
        return None
    return None if policy is None else Averaging(asked.parameter, policy)


class _NotAFunction(Exception):
    """It is no plain function of the file, or does what is not followed."""


_Where = tuple[ast.FunctionDef, list[ast.AST]]


class _Asked:
    """One function, to be run on towers."""

    def __init__(self, sources: Mapping[str, str], path: str, line: int, name: str) -> None:
        self.path = path
        self.domain = _Averages()
        self.interpreter = _Definitions(sources, self.domain, _LIMITS)
        found = _find(self.interpreter.tree(path), line, name)
        if found is None:
            raise _NotAFunction
        self.node, self.around = found
        args = self.node.args
        if (
            args.vararg
            or args.kwarg
            or args.posonlyargs
            or self.node.decorator_list
            or not args.args
        ):
            raise _NotAFunction
        if len(args.defaults) < len(args.args) - 1 or None in args.kw_defaults:
            raise _NotAFunction
        if any(isinstance(each, ast.ClassDef) for each in self.around[-1:]):
            raise _NotAFunction
        self.parameter = args.args[0].arg

    def run(self, towers: int, missing: frozenset[tuple[int, int]] = frozenset()) -> Value:
        """What it gives for so many towers; those of `missing`, a variable and a tower, have None for a gradient."""
        it = self.interpreter
        place = Place(self.path, 1, 0)
        self.domain.crashed = False
        self.domain.asked = False
        function = it.function(self.node, self._scope())
        given: list[Value] = []
        for tower in range(towers):
            pairs = []
            for number in range(_VARIABLES):
                gone = (number, tower) in missing
                gradient: Value = NONE if gone else _Sum((((number, tower), Fraction(1)),))
                pairs.append(it.items([gradient, _Variable(number)], place, "tuple"))
            given.append(it.items(pairs, place))
        before = {id(made.cells) for made in reachable(it.module(self.path).cells.values())}
        before.add(id(it.module(self.path).cells))
        mark = it.store.mark()
        call = ast.copy_location(ast.Call(ast.Name(self.node.name), [], []), self.node)
        towers_list = it.items(given, place)
        self.domain.asked = True
        found = it.call(
            function, Call(it, call, it.module(self.path), self.node.name, [towers_list], {})
        )
        if before & {cells for cells, _ in it.store.changes(mark)}:
            raise _NotAFunction  # it does more than average
        return found

    def _scope(self) -> Scope:
        """The scope that it stands in: what functions around it bind is not known."""
        scope = self.interpreter.module(self.path)
        for each in self.around:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                scope = Scope(self.path, parent=scope, local=bound_in(each.body) | _arguments(each))
        return scope

    def gives_mean(self, towers: int) -> bool:
        wanted = [(_mean(number, range(towers)), _Variable(number)) for number in range(_VARIABLES)]
        return _pairs(self.run(towers)) == wanted and not self.domain.crashed

    def none_policy(self) -> NonePolicy | None:
        """What becomes of a variable that no tower reaches."""
        found = self.run(2, frozenset({(1, 0), (1, 1)}))
        if self.domain.crashed or isinstance(found, Unknown) and found.reason == NEVER_RETURNS:
            return "crash"
        others = [(_mean(number, range(2)), _Variable(number)) for number in (0, 2)]
        pairs = _pairs(found)
        if pairs == others:
            return "skip"
        if pairs == [others[0], (NONE, _Variable(1)), others[1]]:
            return "pass"
        if pairs is not None and len(pairs) == 3 and [pairs[0], pairs[2]] == others:
            zeros, variable = pairs[1] if pairs[1] and len(pairs[1]) == 2 else (None, None)
            made_of = {key for key, _ in zeros.terms} if isinstance(zeros, _Sum) else set()
            if made_of == {(1, _NO_TOWER)} and variable == _Variable(1):
                return "filled"
        return None


NEVER_RETURNS = "it returns on no way that was followed"


def _find(tree: ast.Module, line: int, name: str) -> _Where | None:
    waiting: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.FunctionDef) and (node.lineno, node.name) == (line, name):
            return node, around
        inside = [*around, node] if isinstance(node, _SCOPES) else around
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return None


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    return frozenset(each.arg for each in every if each is not None)


def _mean(number: int, towers: Sequence[int]) -> _Sum:
    return _Sum(tuple(((number, tower), Fraction(1, len(towers))) for tower in towers))


def _pairs(value: Value) -> list[tuple[Value, ...] | None] | None:
    """The pairs of a list, each as a tuple."""
    if not isinstance(value, Items) or value.entries is None:
        return None
    return [
        each.entries if isinstance(each, Items) and each.kind in ("list", "tuple") else None
        for each in value.entries
    ]


class _Definitions(Interpreter):
    """Runs of a file only what defines: what else binds a name, at whatever time, leaves it unknown."""

    def module(self, path: str, main: bool | None = None) -> Scope:
        first = path not in self._modules
        scope = super().module(path, main)
        if first:
            for name, times in _bindings(self.tree(path)).items():
                if times > 1 or named(name) not in scope.cells:
                    why = Unknown(f"{name} is bound by more than a definition", Place(path, 1, 0))
                    self.store.set(scope.cells, named(name), why)
        return scope

    def call(self, function: Function, call: Call) -> Value:
        assert isinstance(self.domain, _Averages)
        if not self.domain.asked:
            return call.unknown("what a decorator of the file's own makes")
        if any(isinstance(each, ast.Try) for each in ast.walk(function.node)):
            raise _NotAFunction  # what it does where TensorFlow raises is another question
        return super().call(function, call)

    def tree(self, path: str) -> ast.Module:
        return _parsed(self.sources[path])

    def execute(self, body: Sequence[ast.stmt], scope: Scope) -> bool:  # type: ignore[override]
        if scope.parent is None:
            body = [each for each in body if isinstance(each, _DEFINING)]
        return super().execute(body, scope)


@lru_cache(32)
def _parsed(text: str) -> ast.Module:
    """Several functions of a file are asked about, one after the other."""
    return parse_python(text)


_DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def _bindings(tree: ast.Module) -> dict[str, int]:
    """How often each name of a file is bound at its level, or declared global below."""
    found: dict[str, int] = {}
    for node in tree.body:
        for name in bound_in([node]):
            found[name] = found.get(name, 0) + 1
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Global):
            for name in inner.names:
                found[name] = found.get(name, 0) + 1
    return found


class _Averages(Domain):
    """TensorFlow as far as an average needs it; a function that does anything else is none."""

    def __init__(self) -> None:
        self.crashed = False
        self.asked = (
            False  # definitions of the file are run before, decorators and defaults among them
        )

    def spelled(self, name: str) -> str:
        for prefix in ("tensorflow.compat.v1", "tensorflow"):
            if name == prefix or name.startswith(prefix + "."):
                return "tf" + name.removeprefix(prefix)
        return name.replace("six.moves.", "builtins.").replace("itertools.izip", "builtins.zip")

    def function(self, call: Call) -> Value | None:
        meaning = _FUNCTIONS.get(call.name)
        if meaning is not None and call.known and set(call.keywords) <= _ARGUMENTS:
            return meaning(self, call)
        if _is_exception(call.name):
            return call.unknown("an exception")
        if call.name in _PURE:
            return None
        return self._more(call)

    def method(self, call: Call, owner: Value, receiver: ast.expr) -> Value | None:
        if call.name == "get_shape" and isinstance(owner, _Variable) and not call.args:
            return _Shape(owner.number)
        return self._more(call)

    def attribute(self, owner: Value, node: ast.Attribute, place: Place) -> Value | None:
        if node.attr == "shape" and isinstance(owner, _Variable):
            return _Shape(owner.number)
        return None

    def called(self, call: Call, value: Value) -> Value | None:
        return self._more(call)

    def _more(self, call: Call) -> Value:
        """A call that is no part of an average."""
        if self.asked:
            raise _NotAFunction
        return call.unknown("a call beside the average")

    def entering(self, value: Value, node: ast.withitem, scope: Scope) -> Value | None:
        if not (isinstance(value, _Scope) and node.optional_vars is None):
            raise _NotAFunction
        return value

    def operation(self, node: ast.AST, operands: Sequence[Value], place: Place) -> Value | None:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            first, second = operands
            ours = (_Sum, _Rows, _Variable)
            if (first == NONE and isinstance(second, ours)) or (
                second == NONE and isinstance(first, ours)
            ):
                return Const(isinstance(node.ops[0], ast.IsNot))
            return None
        if len(operands) != 2 or not isinstance(node, ast.BinOp | ast.AugAssign):
            return None
        first, second = operands
        if any(each == NONE for each in operands):
            self.crashed = True
            return None
        return _combined(node.op, first, second)

    def spent(self, call: Call) -> Value:
        """TensorFlow raises here."""
        self.crashed = True
        return call.unknown("TensorFlow raises")


def _is_exception(name: str) -> bool:
    made = getattr(builtins, name.removeprefix("builtins."), None)
    return isinstance(made, type) and issubclass(made, BaseException)


Meaning = Callable[[_Averages, Call], Value | None]


@dataclass(frozen=True)
class _Scope(Value):
    """`tf.device(…)`, `tf.name_scope(…)`: no value passes through it."""


def _combined(op: ast.operator, first: Value, second: Value) -> Value | None:
    if isinstance(op, ast.Add) and isinstance(first, _Sum) and isinstance(second, _Sum):
        return _added([first, second])
    for value, other, swapped in ((first, second, False), (second, first, True)):
        number = _number(other)
        if not isinstance(value, _Sum) or number is None:
            continue
        if isinstance(op, ast.Mult):
            return _scaled(value, number)
        if isinstance(op, ast.Div) and not swapped and number:
            return _scaled(value, 1 / number)
        if isinstance(op, ast.Add) and number == 0:
            return value  # `sum(gradients)` begins with 0
    return None


def _number(value: Value | None) -> Fraction | None:
    """A number, as the fraction that the program means by it: 0.5 is a half, 1 / 3 a third."""
    if isinstance(value, Const) and type(value.value) in (int, float):
        number = value.value
        assert isinstance(number, int | float)
        if number == number and abs(number) < 1e6:
            return Fraction(number).limit_denominator(1000)
    return None


def _added(parts: Sequence[_Sum]) -> _Sum:
    total: dict[tuple[int, int], Fraction] = {}
    for part in parts:
        for key, weight in part.terms:
            total[key] = total.get(key, Fraction(0)) + weight
    return _Sum(tuple(sorted(total.items())))


def _scaled(value: _Sum, by: Fraction) -> _Sum:
    return _Sum(tuple((key, weight * by) for key, weight in value.terms))


def _axis(call: Call, index: int) -> Value | None:
    found = call.get(index, "axis", "dim", "reduction_indices", "concat_dim", "squeeze_dims")
    if isinstance(found, Items) and found.entries is not None and len(found.entries) == 1:
        return found.entries[0]
    return found


def _gradients(domain: _Averages, call: Call, value: Value | None) -> list[_Sum | _Rows] | Value:
    """The gradients of a list; what the call gives where TensorFlow raises, or where it is not known."""
    if not isinstance(value, Items) or isinstance(value.held, Many):
        return call.unknown("no list of gradients")
    entries = value.entries or ()
    if not entries or any(each == NONE for each in entries):
        return domain.spent(call)
    found = [each for each in entries if isinstance(each, _Sum | _Rows)]
    return found if len(found) == len(entries) else call.unknown("no list of gradients")


def _expand(domain: _Averages, call: Call) -> Value:
    value = call.get(0, "input")
    if value == NONE:
        return domain.spent(call)
    if isinstance(value, _Sum) and _axis(call, 1) == Const(0):
        return _Rows((value,))
    return call.unknown("no gradient with a new first dimension")


def _concat(domain: _Averages, call: Call) -> Value:
    """`concat(values, 0)`, or `concat(0, values)` as TensorFlow 0.x had it."""
    values, axis = call.get(0, "values"), _axis(call, 1)
    if isinstance(values, Const):
        values, axis = call.get(1, "values"), values
    found = _gradients(domain, call, values)
    if isinstance(found, Value):
        return found
    rows = [each for each in found if isinstance(each, _Rows)]
    if axis != Const(0) or len(rows) != len(found):
        return call.unknown("no stack of gradients")
    return _Rows(tuple(row for each in rows for row in each.rows))


def _stack(domain: _Averages, call: Call) -> Value:
    found = _gradients(domain, call, call.get(0, "values"))
    if isinstance(found, Value):
        return found
    sums = [each for each in found if isinstance(each, _Sum)]
    if _axis(call, 1) not in (None, Const(0)) or len(sums) != len(found):
        return call.unknown("no stack of gradients")
    return _Rows(tuple(sums))


def _reduce(domain: _Averages, call: Call) -> Value:
    """`reduce_mean` and `reduce_sum` over the towers."""
    value = call.get(0, "input_tensor")
    if value == NONE:
        return domain.spent(call)
    if isinstance(value, Items):
        found = _gradients(domain, call, value)
        if isinstance(found, Value):
            return found
        sums = tuple(each for each in found if isinstance(each, _Sum))
        value = _Rows(sums) if len(sums) == len(found) else None
    keeps = call.get(2, "keep_dims", "keepdims")
    if (
        not isinstance(value, _Rows)
        or _axis(call, 1) != Const(0)
        or keeps not in (None, Const(False), NONE)
    ):
        return call.unknown("not reduced over the towers")
    total = _added(value.rows)
    return _scaled(total, Fraction(1, len(value.rows))) if call.name.endswith("mean") else total


def _squeeze(domain: _Averages, call: Call) -> Value:
    value = call.get(0, "input")
    if isinstance(value, _Rows) and len(value.rows) == 1 and _axis(call, 1) == Const(0):
        return value.rows[0]
    return call.unknown("not the first dimension")


def _add_n(domain: _Averages, call: Call) -> Value:
    found = _gradients(domain, call, call.get(0, "inputs"))
    if isinstance(found, Value):
        return found
    sums = [each for each in found if isinstance(each, _Sum)]
    return _added(sums) if len(sums) == len(found) else call.unknown("no sum of gradients")


def _sum(domain: _Averages, call: Call) -> Value | None:
    """Python's `sum`."""
    value = call.get(0)
    entries = value.entries if isinstance(value, Items) else None
    if entries and any(each == NONE for each in entries):
        return domain.spent(call)
    sums = [each for each in entries or () if isinstance(each, _Sum)]
    whole = entries is not None and sums and len(sums) == len(entries) and len(call.args) == 1
    return _added(sums) if whole else None


def _binary(op: ast.operator) -> Meaning:
    def called(domain: _Averages, call: Call) -> Value:
        if len(call.args) < 2:
            return call.unknown("an operation")
        if any(each == NONE for each in call.args):
            return domain.spent(call)
        return _combined(op, call.args[0], call.args[1]) or call.unknown("an operation")

    return called


def _scalar_mul(domain: _Averages, call: Call) -> Value:
    scalar, value = call.get(0, "scalar"), call.get(1, "x")
    if value == NONE:
        return domain.spent(call)
    if isinstance(value, _Sum) and (number := _number(scalar)) is not None:
        return _scaled(value, number)
    return call.unknown("no number times a gradient")


def _same(domain: _Averages, call: Call) -> Value:
    """What it is given: a number in another type, a gradient under another name."""
    value = call.get(0, "x", "input", "value")
    if value == NONE:
        return domain.spent(call)
    return value if value is not None else call.unknown("nothing")


def _zeros(domain: _Averages, call: Call) -> Value:
    """`tf.zeros_like(variable)`, `tf.zeros(variable.shape)`."""
    of = call.get(0, "tensor", "shape")
    wanted = _Variable if call.name.endswith("zeros_like") else _Shape
    if isinstance(of, _Variable | _Shape) and isinstance(of, wanted):
        return _Sum((((of.number, _NO_TOWER), Fraction(1)),))
    return domain.spent(call) if of == NONE else call.unknown("zeros of another shape")


def _shape(domain: _Averages, call: Call) -> Value:
    of = call.get(0, "input")
    return _Shape(of.number) if isinstance(of, _Variable) else call.unknown("a shape")


def _scope(domain: _Averages, call: Call) -> Value:
    return _Scope()


def _is_instance(domain: _Averages, call: Call) -> Value:
    """`isinstance(gradient, tf.IndexedSlices)`: what is done with sparse gradients is another question."""
    raise _NotAFunction


_FUNCTIONS: dict[str, Meaning] = {
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
    "tf.add_n": _add_n,
    "tf.math.add_n": _add_n,
    "builtins.sum": _sum,
    "tf.add": _binary(ast.Add()),
    "tf.multiply": _binary(ast.Mult()),
    "tf.divide": _binary(ast.Div()),
    "tf.truediv": _binary(ast.Div()),
    "tf.div": _binary(ast.Div()),
    "tf.scalar_mul": _scalar_mul,
    "tf.identity": _same,
    "tf.zeros": _zeros,
    "tf.zeros_like": _zeros,
    "tf.shape": _shape,
    "tf.device": _scope,
    "tf.name_scope": _scope,
    "builtins.isinstance": _is_instance,
}
_ARGUMENTS = frozenset(
    "input dim axis values concat_dim input_tensor reduction_indices inputs name x y scalar keep_dims keepdims tensor shape dtype".split()
)
_PURE = frozenset(
    f"builtins.{name}"
    for name in "zip list tuple len float int range xrange enumerate reversed map bool dict sorted iter".split()
)
