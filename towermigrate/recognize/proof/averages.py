"""Run a function that averages gradients on a few symbolic towers: it must give the mean of every variable's.

`recognize.averaging` knows the forms; this runs the function as Python would, on lists of known length, so that a
list that is not reset, a value of the last tower only or a `zip` of the program's own are seen for what they do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from towermigrate.recognize.proof.code import Code, bindings, names_of

_STEPS = 5_000


class _Unproved(Exception):
    """The function does what is not followed."""


class _Continue(Exception):
    pass


class _Break(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


@dataclass(frozen=True)
class _Variable:
    number: int


@dataclass(frozen=True)
class _Sum:
    """A weighted sum of gradients: `{(variable, tower): weight}`; `rows` of them where it was stacked."""

    terms: tuple[tuple[tuple[int, int], Fraction], ...]


@dataclass(frozen=True)
class _Rows:
    """Gradients stacked along a first dimension."""

    rows: tuple[_Sum, ...]


def is_mean(code: Code, function: ast.FunctionDef) -> bool:
    """Whether a function gives, for every variable, the mean of its gradients over all towers, in order."""
    try:
        return all(_gives_mean(code, function, towers) for towers in (1, 2, 3))
    except (_Unproved, _Continue, _Break, RecursionError):
        return False


def _gives_mean(code: Code, function: ast.FunctionDef, towers: int) -> bool:
    args = function.args
    if args.vararg or args.kwarg or function.decorator_list or not args.args:
        return False
    given: list[object] = []
    for tower in range(towers):
        pairs: list[object] = [(_gradient(k, tower), _Variable(k)) for k in range(3)]
        given.append(pairs)
    run = _Run(code, function)
    run.names[args.args[0].arg] = given
    for one, default in zip(reversed(args.args[1:]), reversed(args.defaults), strict=False):
        run.names[one.arg] = run.value(default)
    try:
        run.block(function.body)
        result: object = None
    except _Return as returned:
        result = returned.value
    if not isinstance(result, list) or len(result) != 3:
        return False
    wanted = [
        (_Sum(tuple(((k, t), Fraction(1, towers)) for t in range(towers))), _Variable(k))
        for k in range(3)
    ]
    return [tuple(pair) if isinstance(pair, list | tuple) else pair for pair in result] == wanted


def _gradient(variable: int, tower: int) -> _Sum:
    return _Sum((((variable, tower), Fraction(1)),))


def _added(parts: list[_Sum]) -> _Sum:
    total: dict[tuple[int, int], Fraction] = {}
    for part in parts:
        for key, weight in part.terms:
            total[key] = total.get(key, Fraction(0)) + weight
    return _Sum(tuple(sorted(total.items())))


def _scaled(value: _Sum, by: Fraction) -> _Sum:
    return _Sum(tuple((key, weight * by) for key, weight in value.terms))


class _Run:
    """Python, as far as an averaging function needs it."""

    def __init__(self, code: Code, function: ast.FunctionDef) -> None:
        self.code = code
        self.own = bindings(function)
        self.names: dict[str, object] = {}
        self.steps = _STEPS

    # -- statements

    def block(self, body: list[ast.stmt]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise _Unproved
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.bind(node.targets[0], self.value(node.value))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._augmented(node, node.target.id)
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                self.value(node.value)
        elif isinstance(node, ast.Return):
            raise _Return(self.value(node.value) if node.value else None)
        elif isinstance(node, ast.If):
            self.block(node.body if self._truth(node.test) else node.orelse)
        elif isinstance(node, ast.For) and not node.orelse:
            self._loop(node)
        elif isinstance(node, ast.With):
            self._scopes(node)
            self.block(node.body)
        elif isinstance(node, ast.Continue):
            raise _Continue
        elif isinstance(node, ast.Break):
            raise _Break
        elif not isinstance(node, ast.Pass):
            raise _Unproved

    def _scopes(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            name = self._function(call.func) if isinstance(call, ast.Call) else None
            if name not in ("tf.device", "tf.name_scope") or item.optional_vars is not None:
                raise _Unproved

    def _loop(self, node: ast.For) -> None:
        source = self.value(node.iter)
        if not isinstance(source, list | tuple):
            raise _Unproved
        for one in source:  # as Python does, also where the body changes the list
            self.bind(node.target, one)
            try:
                self.block(node.body)
            except _Continue:
                continue
            except _Break:
                break

    def _augmented(self, node: ast.AugAssign, name: str) -> None:
        before, value = self._name(name), self.value(node.value)
        if (
            isinstance(before, list)
            and isinstance(value, list | tuple)
            and isinstance(node.op, ast.Add)
        ):
            before.extend(value)
        else:
            self.names[name] = self._operator(node.op, before, value)

    def bind(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, list | tuple):
            if len(target.elts) != len(value) or not names_of(target):
                raise _Unproved
            for part, one in zip(target.elts, value, strict=True):
                self.bind(part, one)
        else:
            raise _Unproved

    # -- expressions

    def value(self, node: ast.expr) -> object:
        self.steps -= 1
        if self.steps < 0:
            raise _Unproved
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.List):
            return [self.value(e) for e in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self.value(e) for e in node.elts)
        if isinstance(node, ast.Subscript):
            return self._part(node)
        if isinstance(node, ast.BinOp):
            return self._operator(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self._comprehension(node)
        if isinstance(node, ast.Compare | ast.BoolOp) or isinstance(node, ast.UnaryOp):
            return self._truth(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise _Unproved

    def _name(self, name: str) -> object:
        if name not in self.names or name not in self.own:
            raise _Unproved
        return self.names[name]

    def _part(self, node: ast.Subscript) -> object:
        value, key = self.value(node.value), self.value(node.slice)
        if (
            isinstance(value, list | tuple)
            and isinstance(key, int)
            and -len(value) <= key < len(value)
        ):
            return value[key]
        raise _Unproved

    def _truth(self, node: ast.expr) -> bool:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._truth(node.operand)
        if isinstance(node, ast.BoolOp):
            answers = (self._truth(v) for v in node.values)
            return all(answers) if isinstance(node.op, ast.And) else any(answers)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = self.value(node.left), self.value(node.comparators[0])
            op = node.ops[0]
            if isinstance(op, ast.Is | ast.IsNot) and (left is None or right is None):
                return (left is right) is isinstance(op, ast.Is)
            if isinstance(left, int) and isinstance(right, int) or left == [] or right == []:
                answers_by: dict[type, Callable[[Any, Any], bool]] = {
                    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Gt: lambda a, b: a > b,
                    ast.Lt: lambda a, b: a < b, ast.GtE: lambda a, b: a >= b, ast.LtE: lambda a, b: a <= b,
                }  # fmt: skip
                if type(op) in answers_by:
                    return answers_by[type(op)](left, right)
            raise _Unproved
        value = self.value(node)
        if isinstance(value, bool | int | list | tuple) or value is None:
            return bool(value)
        raise _Unproved

    def _operator(self, op: ast.operator, left: object, right: object) -> object:
        if isinstance(left, list) and isinstance(right, list) and isinstance(op, ast.Add):
            return left + right
        if isinstance(left, _Sum) and isinstance(right, _Sum) and isinstance(op, ast.Add):
            return _added([left, right])
        if isinstance(left, _Sum) and isinstance(right, int | float) and right:
            if isinstance(op, ast.Div):
                return _scaled(left, 1 / Fraction(right))
        if isinstance(left, int | float) and isinstance(right, int | float) and right:
            if isinstance(op, ast.Div):
                return left / right
        if isinstance(left, int) and isinstance(right, int) and isinstance(op, ast.Add | ast.Sub):
            return left + right if isinstance(op, ast.Add) else left - right
        raise _Unproved

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[object]:
        if len(node.generators) != 1 or isinstance(node, ast.GeneratorExp):
            raise _Unproved
        one = node.generators[0]
        source = self.value(one.iter)
        if not isinstance(source, list | tuple) or one.is_async:
            raise _Unproved
        before, own = dict(self.names), dict(self.own)
        made: list[object] = []
        for value in list(source):
            self.own.update({n: [node] for n in names_of(one.target)})
            self.bind(one.target, value)
            if all(self._truth(test) for test in one.ifs):
                made.append(self.value(node.elt))
        self.names, self.own = before, own
        return made

    # -- calls

    def _function(self, node: ast.expr) -> str | None:
        """The full name of a library's function; None for anything else."""
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in self.own:
            return None
        bound = self.code.bindings.get(node.id, [])
        root: str | None = None
        if not bound and not self.code.star_imports:
            root = "builtins." + node.id
        elif bound and all(isinstance(b, ast.Import | ast.ImportFrom) for b in bound):
            found = {_imported(b, node.id) for b in bound}
            root = found.pop() if len(found) == 1 else None
        if root is None:
            return None
        return ".".join([root, *reversed(chain)])

    def _call(self, node: ast.Call) -> object:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend"):
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id not in self.own):
                holder, args = self.value(node.func.value), [self.value(a) for a in node.args]
                if not isinstance(holder, list) or len(args) != 1 or node.keywords:
                    raise _Unproved
                if node.func.attr == "append":
                    holder.append(args[0])
                elif isinstance(args[0], list | tuple):
                    holder.extend(args[0])
                else:
                    raise _Unproved
                return None
        name = self._function(node.func)
        if name is None:
            raise _Unproved
        given: list[object] = []
        for arg in node.args:
            value = self.value(arg.value if isinstance(arg, ast.Starred) else arg)
            if isinstance(arg, ast.Starred):
                if not isinstance(value, list | tuple):
                    raise _Unproved
                given.extend(value)
            else:
                given.append(value)
        named = {k.arg: self.value(k.value) for k in node.keywords if k.arg is not None}
        if len(named) != len(node.keywords):
            raise _Unproved
        named.pop("name", None)
        return (
            _builtin(name, given) if name.startswith("builtins.") else _tensor(name, given, named)
        )


def _imported(node: ast.AST, name: str) -> str | None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if (alias.asname or alias.name.split(".")[0]) == name:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                return "tf" if whole in ("tensorflow", "tensorflow.compat.v1") else whole
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                full = f"{node.module}.{alias.name}"
                if full == "tensorflow.compat.v1":
                    return "tf"
                return "builtins." + alias.name if node.module == "six.moves" else full
    return None


def _builtin(name: str, given: list[object]) -> object:
    short = name.removeprefix("builtins.")
    if short == "zip" and all(isinstance(g, list | tuple) for g in given):
        return [tuple(row) for row in zip(*given, strict=False)]
    first = given[0] if given else []
    if short == "len" and isinstance(first, list | tuple):
        return len(first)
    if short == "float" and isinstance(first, int | float):
        return float(first)
    if short in ("list", "tuple") and isinstance(first, list | tuple):
        return list(first) if short == "list" else tuple(first)
    if short in ("range", "xrange") and all(isinstance(g, int) for g in given):
        return list(range(*given))  # type: ignore[call-overload]
    if short == "enumerate" and len(given) == 1 and isinstance(first, list | tuple):
        return list(enumerate(first))
    raise _Unproved


def _tensor(name: str, given: list[object], named: dict[str, object]) -> object:
    def argument(position: int, *names: str) -> object:
        for one in names:
            if one in named:
                return named[one]
        return given[position] if position < len(given) else None

    if name == "tf.expand_dims":
        value, axis = argument(0, "input"), argument(1, "axis", "dim")
        if isinstance(value, _Sum) and axis == 0:
            return _Rows((value,))
    elif name in ("tf.concat", "tf.stack", "tf.pack"):
        values, axis = argument(0, "values"), argument(1, "axis", "concat_dim")
        if name == "tf.concat" and isinstance(values, int):
            values, axis = argument(1, "values"), values
        if not isinstance(values, list | tuple) or axis not in (
            (0,) if name == "tf.concat" else (0, None)
        ):
            raise _Unproved
        if name == "tf.concat" and all(isinstance(v, _Rows) for v in values):
            return _Rows(tuple(row for v in values if isinstance(v, _Rows) for row in v.rows))
        if name != "tf.concat" and all(isinstance(v, _Sum) for v in values):
            return _Rows(tuple(v for v in values if isinstance(v, _Sum)))
    elif name == "tf.reduce_mean":
        value, axis = argument(0, "input_tensor"), argument(1, "axis", "reduction_indices")
        if isinstance(value, list | tuple) and all(isinstance(v, _Sum) for v in value):
            value = _Rows(tuple(v for v in value if isinstance(v, _Sum)))
        if (
            isinstance(value, _Rows)
            and axis in (0, [0])
            and len(given) + len(named) == 2
            and value.rows
        ):
            return _scaled(_added(list(value.rows)), Fraction(1, len(value.rows)))
    elif name == "tf.add_n":
        values = argument(0, "inputs")
        if isinstance(values, list | tuple) and values and all(isinstance(v, _Sum) for v in values):
            return _added([v for v in values if isinstance(v, _Sum)])
    raise _Unproved
