"""An average over the towers is what code *gives*, whatever its form: the mean of each variable's gradients, in order.

A function is run on a few towers, each with a symbolic gradient for each of a few variables. Gradients are kept in a
normal form: a weighted sum of those that the function was given. What a function gives for a variable that no tower
reaches says how it takes None: programs differ most in that (of 80: 13 drop it, 11 pass it on, most crash). One that asks
what a gradient is (9 of 80) is run once more on IndexedSlices, and on a list of both.
"""

from __future__ import annotations

import ast
import builtins
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

from towermigrate.flow import Call, Domain, Interpreter, Limits
from towermigrate.flow.scopes import bound_in
from towermigrate.flow.values import (
    NONE,
    Const,
    Function,
    Items,
    Place,
    Scope,
    Table,
    Unknown,
    Value,
    named,
    reachable,
)
from towermigrate.towers.sums import (
    ARGUMENTS,
    FUNCTIONS,
    NO_TOWER,
    PARTS,
    PURE,
    Count,
    NoAverageError,
    NoValue,
    Rows,
    Shape,
    Sum,
    Variable,
    combined,
    part_of,
)
from towermigrate.tree import TF1_COPY, is_unedited_copy, parse_python

NonePolicy = Literal["crash", "skip", "pass", "zeros", "filled"]
"""`zeros` is `helpers/tf1.py`'s, which leaves IndexedSlices; a program that has `filled` in zeros stacks them."""

Reduction = Literal["mean", "sum"]

_VARIABLES = 3
_MOST = 64  # so many variables and towers are tried at most
_TOWERS = (1, 2, 3)
_LIMITS = Limits(steps=200_000, calls=5_000, depth=20, recursion=0)
_SPARSE = (frozenset(range(_VARIABLES)), frozenset({1}))


@dataclass(frozen=True)
class Averaging:
    """How a function averages: `parameter` is the name of the argument that holds the towers' lists.

    `keeps` says that the average of IndexedSlices is IndexedSlices; others make them dense.
    """

    parameter: str
    none_policy: NonePolicy
    reduce: Reduction = "mean"
    keeps: bool = False


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
        return Averaging("tower_grads", "zeros", keeps=True) if ours else None
    try:
        return _Asked(sources, path, line, name).averaging()
    except (NoAverageError, RecursionError, SyntaxError, ValueError):
        return None


def averaging_alone(
    sources: Mapping[str, str], path: str, line: int, name: str
) -> Reduction | None:
    """How a function of a tree reduces lists of gradients without their variables; None where it does anything else.

    It must need a gradient of every tower, and make the ones that are IndexedSlices dense. Arguments as of `averaging`.

    Example:
        >>> text = '''import tensorflow as tf
        ... def average(tower_grads):
        ...     return [tf.add_n(grads) / len(grads) for grads in zip(*tower_grads)]
        ... '''
        >>> averaging_alone({"a.py": text}, "a.py", 2, "average")
        'mean'
    """
    try:
        asked = _Asked(sources, path, line, name, alone=True)
        reductions: tuple[Reduction, ...] = ("mean", "sum")
        for reduce in reductions:
            if asked.gives(reduce) and asked.gives_it_for_more(reduce):
                known = asked.none_policy(reduce) == "crash" and not asked.domain.distinguishes
                return reduce if known else None
    except (NoAverageError, RecursionError, SyntaxError, ValueError):
        pass
    return None


_Where = tuple[ast.FunctionDef, list[ast.AST]]


class _Asked:
    """One function, to be run on towers; with `alone` their lists hold gradients only, not pairs with variables."""

    def __init__(
        self, sources: Mapping[str, str], path: str, line: int, name: str, alone: bool = False
    ) -> None:
        self.path = path
        self.alone = alone
        self.domain = _Averages()
        self.interpreter = _Definitions(sources, self.domain, _LIMITS)
        found = _find(self.interpreter.tree(path), line, name)
        if found is None:
            raise NoAverageError
        self.node, self.around = found
        args = self.node.args
        if (
            args.vararg
            or args.kwarg
            or args.posonlyargs
            or self.node.decorator_list
            or not args.args
        ):
            raise NoAverageError
        if len(args.defaults) < len(args.args) - 1 or None in args.kw_defaults:
            raise NoAverageError
        if any(isinstance(each, ast.ClassDef) for each in self.around[-1:]):
            raise NoAverageError
        self.parameter = args.args[0].arg

    def averaging(self) -> Averaging | None:
        reductions: tuple[Reduction, ...] = ("mean", "sum")
        reduce = next((each for each in reductions if self.gives(each)), None)
        if reduce is not None and not self.gives_it_for_more(reduce):
            return None
        policy = None if reduce is None else self.none_policy(reduce)
        if reduce is None or policy is None:
            return None
        if not self.domain.distinguishes:
            return Averaging(self.parameter, policy, reduce)
        for keeps in (False, True):
            if all(self.gives(reduce, sparse, keeps) for sparse in _SPARSE):
                same = all(self.none_policy(reduce, sparse, keeps) == policy for sparse in _SPARSE)
                return Averaging(self.parameter, policy, reduce, keeps) if same else None
        return None

    def run(
        self,
        towers: int,
        missing: frozenset[tuple[int, int]] = frozenset(),
        sparse: frozenset[int] = frozenset(),
        variables: int = _VARIABLES,
    ) -> Value:
        """What it gives for so many towers; those of `missing`, a variable and a tower, have None for a gradient."""
        it = self.interpreter
        place = Place(self.path, 1, 0)
        self.domain.crashed = False
        self.domain.asked = False
        function = it.function(self.node, self._scope())
        given: list[Value] = []
        for tower in range(towers):
            pairs = []
            for number in range(variables):
                gone = (number, tower) in missing
                own = Sum((((number, tower), Fraction(1)),), number in sparse)
                gradient: Value = NONE if gone else own
                pair = it.items([gradient, Variable(number)], place, "tuple")
                pairs.append(gradient if self.alone else pair)
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
            raise NoAverageError  # it does more than average
        return found

    def _scope(self) -> Scope:
        """The scope that it stands in: what functions around it bind is not known."""
        scope = self.interpreter.module(self.path)
        for each in self.around:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                scope = Scope(self.path, parent=scope, local=bound_in(each.body) | _arguments(each))
        return scope

    def gives(
        self, reduce: Reduction, sparse: frozenset[int] = frozenset(), keeps: bool = False
    ) -> bool:
        for towers in _TOWERS:
            wanted = [
                (_reduced(reduce, number, range(towers), keeps and number in sparse), Variable(number))
                for number in range(_VARIABLES)
            ]  # fmt: skip
            if self._found(self.run(towers, sparse=sparse)) != wanted or self.domain.crashed:
                return False
        return True

    def _found(self, value: Value) -> list[tuple[Value, ...] | None] | None:
        """The pairs of a list; where there are gradients only, each with the variable of its place."""
        if not self.alone:
            return _pairs(value)
        if not isinstance(value, Items) or value.entries is None or value.kind != "list":
            return None
        return [(each, Variable(number)) for number, each in enumerate(value.entries)]

    def gives_it_for_more(self, reduce: Reduction) -> bool:
        """Whether it does the same for as many variables and towers as any number in it tells of: `if k >= 4`."""
        numbers = [
            abs(each.value)
            for node in [self.node, *self.interpreter.met]
            for each in ast.walk(node)
            if isinstance(each, ast.Constant) and isinstance(each.value, int | float)
        ]
        most = int(min(max(numbers, default=0), _MOST)) + 2
        if most <= _VARIABLES:
            return True
        if most > _MOST:
            return False
        for variables, towers in ((most, 2), (_VARIABLES, most)):
            wanted = [
                (_reduced(reduce, number, range(towers), False), Variable(number))
                for number in range(variables)
            ]
            if self._found(self.run(towers, variables=variables)) != wanted or self.domain.crashed:
                return False
        return True

    def none_policy(
        self, reduce: Reduction, sparse: frozenset[int] = frozenset(), keeps: bool = False
    ) -> NonePolicy | None:
        """What becomes of a variable that no tower reaches."""
        found = self.run(2, frozenset({(1, 0), (1, 1)}), sparse)
        if self.domain.crashed or isinstance(found, Unknown) and found.reason == NEVER_RETURNS:
            return "crash"
        others = [
            (_reduced(reduce, number, range(2), keeps and number in sparse), Variable(number))
            for number in (0, 2)
        ]
        pairs = _pairs(found)
        if pairs == others:
            return "skip"
        if pairs == [others[0], (NONE, Variable(1)), others[1]]:
            return "pass"
        if pairs is not None and len(pairs) == 3 and [pairs[0], pairs[2]] == others:
            zeros, variable = pairs[1] if pairs[1] and len(pairs[1]) == 2 else (None, None)
            made_of = {key for key, _ in zeros.terms} if isinstance(zeros, Sum) else set()
            if made_of == {(1, NO_TOWER)} and variable == Variable(1):
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


def _reduced(reduce: Reduction, number: int, towers: Sequence[int], sparse: bool) -> Sum:
    weight = Fraction(1, len(towers)) if reduce == "mean" else Fraction(1)
    return Sum(tuple(((number, tower), weight) for tower in towers), sparse)


def _pairs(value: Value) -> list[tuple[Value, ...] | None] | None:
    """The pairs of a list, each as a tuple."""
    if not isinstance(value, Items) or value.entries is None:
        return None
    return [
        each.entries if isinstance(each, Items) and each.kind in ("list", "tuple") else None
        for each in value.entries
    ]


class _Definitions(Interpreter):
    """Runs of a file only what defines: what else binds a name, at whatever time, leaves it unknown.

    `met` are the functions that were run.
    """

    @property
    def met(self) -> list[ast.AST]:
        return list(self._met.values())

    @cached_property
    def _met(self) -> dict[int, ast.AST]:
        return {}

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
            raise NoAverageError  # what it does where TensorFlow raises is another question
        self._met[id(function.node)] = function.node
        return super().call(function, call)

    def set_attribute(self, owner: Value, name: str, value: Value, place: Place) -> None:
        self._only_its_own(False)
        super().set_attribute(owner, name, value, place)

    def set_entry(self, owner: Value, key: Value, value: Value, place: Place) -> None:
        self._only_its_own(isinstance(owner, Items | Table))
        super().set_entry(owner, key, value, place)

    def _augment(self, node: ast.AugAssign, scope: Scope) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            # A list that is made elsewhere grows under whatever name it has.
            old = self.read_name(target.id, target, scope)
            self._only_its_own(not isinstance(old, Unknown))
        super()._augment(node, scope)

    def _delete(self, target: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Attribute | ast.Subscript):
            owner = self.evaluate(target.value, scope)
            self._only_its_own(isinstance(owner, Items | Table))
        super()._delete(target, scope)

    def _only_its_own(self, own: bool) -> None:
        """Whatever is set must be what the function has made: a change of anything else is more than an average."""
        assert isinstance(self.domain, _Averages)
        if self.domain.asked and not own and not self.domain.crashed:
            raise NoAverageError

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
        self.distinguishes = False
        self.asked = (
            False  # definitions of the file are run before, decorators and defaults among them
        )

    def spelled(self, name: str) -> str:
        for prefix in ("tensorflow.compat.v1", "tensorflow"):
            if name == prefix or name.startswith(prefix + "."):
                return "tf" + name.removeprefix(prefix)
        return name.replace("six.moves.", "builtins.").replace("itertools.izip", "builtins.zip")

    def function(self, call: Call) -> Value | None:
        meaning = FUNCTIONS.get(call.name)
        if meaning is not None and call.known and set(call.keywords) <= ARGUMENTS:
            return meaning(self, call)
        if _is_exception(call.name):
            return call.unknown("an exception")
        if call.name in PURE:
            return None
        return self._more(call)

    def method(self, call: Call, owner: Value, receiver: ast.expr) -> Value | None:
        if call.name == "get_shape" and isinstance(owner, Variable) and not call.args:
            return Shape(owner.number)
        return self._more(call)

    def attribute(self, owner: Value, node: ast.Attribute, place: Place) -> Value | None:
        if node.attr == "shape" and isinstance(owner, Variable):
            return Shape(owner.number)
        if isinstance(owner, Sum) and node.attr in PARTS:
            self.distinguishes = True
            return part_of(owner, node.attr) or self._raises(place)
        return None

    def subscript(
        self, owner: Value, key: Value, node: ast.Subscript, place: Place
    ) -> Value | None:
        return owner if isinstance(owner, Count) and key == Const(0) else None

    def called(self, call: Call, value: Value) -> Value | None:
        return self._more(call)

    def _more(self, call: Call) -> Value:
        """A call that is no part of an average."""
        if self.asked:
            raise NoAverageError
        return call.unknown("a call beside the average")

    def entering(self, value: Value, node: ast.withitem, scope: Scope) -> Value | None:
        if not (isinstance(value, NoValue) and node.optional_vars is None):
            raise NoAverageError
        return value

    def operation(self, node: ast.AST, operands: Sequence[Value], place: Place) -> Value | None:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            first, second = operands
            ours = (Sum, Rows, Variable)
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
        return combined(node.op, first, second)

    def spent(self, call: Call) -> Value:
        """TensorFlow raises here."""
        return self._raises(call.place)

    def _raises(self, place: Place) -> Value:
        self.crashed = True
        return Unknown("TensorFlow raises", place)


def _is_exception(name: str) -> bool:
    made = getattr(builtins, name.removeprefix("builtins."), None)
    return isinstance(made, type) and issubclass(made, BaseException)
