"""Runs that give a variable a number, or add one: `sess.run(step.assign(0))` is `step.load(0, sess)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    own_calls,
    run_of,
)
from towermigrate.recognize.plain.collected import once_in
from towermigrate.recognize.plain.feeds import mentions, only_name
from towermigrate.recognize.plain.methods import sessions_of
from towermigrate.recognize.python_scopes import own_nodes

_STARTS = ("global_variables_initializer", "initialize_all_variables")
_STEPS = frozenset(
    f"tf.{module}.{name}"
    for module in ("train", "contrib.framework", "contrib.slim", "contrib.training")
    for name in ("get_or_create_global_step", "create_global_step")
)
_RANGES = ("range", "xrange")
_OF_NUMPY = frozenset({"mean", "sum", "min", "max", "median", "sqrt", "exp", "log", "float32"})
_MAKERS = r"(tf\.(constant|zeros|ones)_initializer\(|\d+\.\d*$)"


def assigned_variables(file: PlainFile) -> list[Change]:
    """Runs of nothing but `v.assign(n)` or `tf.assign(v, n)`, of a variable that is not trained and a number of Python's."""
    if "assign" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        sessions = sessions_of(scope)
        if sessions:
            found += _Assigned(file, scope, sessions, where).changes()
    return found


class _Assigned:
    def __init__(self, file: PlainFile, scope: Scope, sessions: set[str], where: str) -> None:
        self.file, self.scope, self.sessions, self.where = file, scope, sessions, where
        # What runs only by a name: the statement that gives it to the operation.
        self.named = {name: each for each in once_in(scope) if (name := only_name(each))}
        self.counted = set(_counted(file, scope))

    def changes(self) -> list[Change]:
        found: list[Change] = []
        taken: dict[str, int] = {}
        for statement, call in self._runs():
            fetched = call.args[0]
            name = fetched.id if isinstance(fetched, ast.Name) else ""
            made = self.named.get(name) if name else None
            operation = made.value if isinstance(made, ast.Assign) else fetched
            given = _assigns(operation)
            if given is None or not self._is_set(*given):
                continue
            # What is made in front has the number of then, also where that is another one at the run.
            if made is not None and not (self._is_number(given[1]) and self._stays(given[1])):
                continue
            if made is not None:
                taken[name] = taken.get(name, 0) + 1
            variable, number, sign = given
            session = ast.unparse(call.func).partition(".")[0]
            before = f"{session}.run({variable.id}) {sign} " if sign else ""
            of_float32 = bool(sign) and not (sign == "+" and self._is_number(number, False))
            opens, closes = (f"{self.numpy}.float32(", ")") if of_float32 else ("", "")
            parts = (
                f"{variable.id}.load({before}{opens}", self.file.span(number), f"{closes}, {session})",
            )  # fmt: skip
            found.append(Change(*self.file.span(statement), parts, self.where))
        for name, times in taken.items():
            made = self.named[name]
            uses = [each for each in self.file.uses(name) if isinstance(each.ctx, ast.Load)]
            alone = self.file.alone(made) is not None
            if len(uses) != times or bindings(self.scope, name) != 1 or not alone:
                return []
            if name in self.file.words_of_users:
                return []
            found.append(Change(*self.file.without(made), (), self.where))
        return found

    def _runs(self) -> Iterator[tuple[ast.Expr, ast.Call]]:
        """Statements that run something after the variables have started, and keep nothing of it."""
        started = self._started()
        for each in own_nodes(self.scope):
            if not isinstance(each, ast.Expr):
                continue
            call = each.value
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            whose = call.func.value
            if call.func.attr != "run" or len(call.args) != 1 or call.keywords:
                continue
            if not isinstance(whose, ast.Name) or whose.id not in self.sessions:
                continue
            if (
                started is None
                or each.lineno <= started
                or self.file.commented(*self.file.span(each))
            ):
                continue
            yield each, call

    def _started(self) -> int | None:
        """The line of the last run that starts the variables; behind it a number stays until the next update."""
        made = {name for name, each in self.named.items() if _starts(each)}
        return max(
            (
                each.lineno
                for each in own_calls(self.scope)
                if isinstance(each.func, ast.Attribute)
                and each.func.attr == "run"
                and any(_starts(one) or mentions(one, made) for one in each.args)
            ),
            default=None,
        )

    def _is_set(self, variable: ast.Name, number: ast.expr, sign: str) -> bool:
        made = self.named.get(variable.id)
        value = made.value if isinstance(made, ast.Assign) else None
        if not isinstance(value, ast.Call) or bindings(self.scope, variable.id) != 1:
            return False
        maker = ast.unparse(value.func)
        trained = [ast.unparse(each.value) for each in value.keywords if each.arg == "trainable"]
        own = maker in ("tf.Variable", "tf.get_variable") and trained == ["False"]
        if not sign and own and _is_float32(self.file, maker, value) and self._is_given(number):
            return True
        if not sign or sign == "+" and self._is_number(number, False):
            return (own or maker in _STEPS) and self._is_number(number)
        # TensorFlow computes with two float32; so does NumPy with what a run gives and with such a number.
        is_float32 = own and _is_float32(self.file, maker, value)
        return is_float32 and bool(self.numpy) and self._is_number(number)

    def _is_number(self, node: ast.expr, any_kind: bool = True) -> bool:
        """Whether an expression is a number of Python's, whatever it is when the line runs: no tensor, no array.

        Args:
            any_kind: whether it may be other than a whole number.
        """
        match node:
            case ast.Constant(value=value):
                return type(value) is int or any_kind and type(value) is float
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._is_number(operand, any_kind)
            case ast.Name(id=name):
                return name in self.counted or self._is_setting(name, any_kind)
            case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult()):
                return self._is_number(left, any_kind) and self._is_number(right, any_kind)
            case ast.BinOp(left=left, right=right, op=ast.Div() | ast.Pow() | ast.FloorDiv() | ast.Mod()):  # fmt: skip
                return any_kind and self._is_number(left) and self._is_number(right)
            case ast.Call(func=ast.Name(id="int" | "float" as made), args=[_], keywords=[]):
                if made == "float" and not any_kind:
                    return False
                return not self.file.finds_names_by_text and bindings(self.file.tree, made) == 0
        return False

    def _is_given(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether an expression is what runs gave, or NumPy or Python makes of that: no tensor, whatever it is."""
        match node:
            case ast.Name(id=name):
                return name in seen or self._is_bound_to_given(name, seen | {name})
            case ast.BinOp(left=left, right=right):
                return self._is_plain(left, seen) and self._is_plain(right, seen)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=numpy), attr=made), args=[value], keywords=[]):  # fmt: skip
                return numpy == self.numpy != "" and made in _OF_NUMPY and self._is_given(value, seen)  # fmt: skip
            case ast.Call(func=ast.Name(id="float"), args=[value], keywords=[]):
                own = not self.file.finds_names_by_text and bindings(self.file.tree, "float") == 0
                return own and self._is_given(value, seen)
        return False

    def _is_plain(self, node: ast.expr, seen: frozenset[str]) -> bool:
        return self._is_number(node) or self._is_given(node, seen)

    def _is_bound_to_given(self, name: str, seen: frozenset[str]) -> bool:
        """Whether all that binds a name of this scope is a run, or an expression of what runs gave."""
        bound = 0
        for each in own_nodes(self.scope):
            if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
                bound += each.target.id == name and self._is_plain(each.value, seen)
            if not isinstance(each, ast.Assign) or len(each.targets) != 1:
                continue
            (target,), value = each.targets, each.value
            call = run_of(value)
            session = "" if call is None else ast.unparse(call.func).partition(".")[0]
            if isinstance(target, ast.Name) and target.id == name:
                bound += session in self.sessions or self._is_plain(value, seen)
            elif isinstance(target, ast.Tuple) and session in self.sessions:
                names = [one.id for one in target.elts if isinstance(one, ast.Name)]
                bound += names.count(name) == 1
        shared = name in self.file.shared_between_functions
        return 0 < bound == bindings(self.scope, name) and not shared

    def _stays(self, number: ast.expr) -> bool:
        """Whether a number is the same wherever it is read: of written ones and settings alone."""
        return not any(
            isinstance(each, ast.Call) or isinstance(each, ast.Name) and each.id in self.counted
            for each in ast.walk(number)
        )

    @cached_property
    def numpy(self) -> str:
        """What the file calls NumPy, or nothing."""
        named = [
            alias.asname or alias.name
            for each in self.file.tree.body
            if isinstance(each, ast.Import)
            for alias in each.names
            if alias.name == "numpy"
        ]
        is_numpy = len(named) == 1 and bindings(self.file.tree, named[0]) == 1
        return named[0] if is_numpy and not bindings(self.scope, named[0]) else ""

    def _is_setting(self, name: str, any_kind: bool) -> bool:
        """Whether a name is one number of the module's, for good."""
        if self.scope is self.file.tree or bindings(self.scope, name):
            return False
        bound = [
            each.value
            for each in self.file.tree.body
            if isinstance(each, ast.Assign) and [ast.unparse(t) for t in each.targets] == [name]
        ]
        if len(bound) != 1 or bindings(self.file.tree, name) != 1 or self.file.finds_names_by_text:
            return False
        if name in self.file.words_of_users or not isinstance(bound[0], ast.Constant):
            return False
        return not self._is_set_elsewhere(name) and self._is_number(bound[0], any_kind)

    def _is_set_elsewhere(self, name: str) -> bool:
        return any(isinstance(each, ast.Global) and name in each.names for each in self.file.nodes)


def _is_float32(file: PlainFile, maker: str, made: ast.Call) -> bool:
    """Whether a variable is certain to be of the type that its initial number has where none is said."""
    named = {each.arg: ast.unparse(each.value) for each in made.keywords}
    if "dtype" in named:
        return named["dtype"] == "tf.float32"
    if maker == "tf.Variable":
        first = made.args[0] if made.args else None
        return (
            len(made.args) == 1 and isinstance(first, ast.Constant) and type(first.value) is float
        )
    # A variable scope may say which type all of its variables have.
    scopes = (
        each
        for each in file.nodes
        if isinstance(each, ast.Call) and ast.unparse(each.func).endswith("scope")
    )
    if any(one.arg in ("dtype", None) for each in scopes for one in each.keywords):
        return False
    return len(made.args) <= 2 and re.match(_MAKERS, named.get("initializer", "")) is not None


def _starts(node: ast.AST) -> bool:
    """Whether an initialiser of all variables is made somewhere in a node."""
    return any(
        isinstance(each, ast.Call) and ast.unparse(each.func).endswith(_STARTS)
        for each in ast.walk(node)
    )


def _counted(file: PlainFile, scope: Scope) -> Iterator[str]:
    """The names that only a `for` over `range` binds."""
    for each in own_nodes(scope):
        match each:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id=made))):
                if made in _RANGES and _is_range(file, made) and bindings(scope, name) == 1:
                    yield name


def _is_range(file: PlainFile, name: str) -> bool:
    """Whether `range` or `xrange` is Python's, or six's."""
    imports = sum(
        isinstance(each, ast.ImportFrom)
        and each.module in ("six.moves", "builtins", "past.builtins")
        and any(alias.name == name and alias.asname is None for alias in each.names)
        for each in file.nodes
    )
    return bindings(file.tree, name) == imports


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_NAMED_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "div": "/"}
_KINDS = {"assign": "", "assign_add": "+", "assign_sub": "-"}


def _assigns(node: ast.expr) -> tuple[ast.Name, ast.expr, str] | None:
    """The variable and the number of `v.assign(number)` or `tf.assign(v, number)`; and what joins it to the variable's value:
    `+` in `tf.assign_add(v, 1)`, `*` in `v.assign(v * 0.5)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="tf"), attr=how), args=[ast.Name() as variable, value], keywords=[]) if how in _KINDS:  # fmt: skip
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name() as variable, attr=how), args=[value], keywords=[]) if how in _KINDS:  # fmt: skip
            pass
        case _:
            return None
    if _KINDS[how]:
        return variable, value, _KINDS[how]
    match value:
        case ast.BinOp(left=ast.Name(id=variable.id), op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=added):  # fmt: skip
            return variable, added, _SIGNS[type(op)]
        case ast.BinOp(left=added, op=ast.Mult(), right=ast.Name(id=variable.id)):
            return variable, added, "*"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="tf"), attr=called), args=[ast.Name(id=variable.id), added], keywords=[]) if called in _NAMED_SIGNS:  # fmt: skip
            return variable, added, _NAMED_SIGNS[called]
    return variable, value, ""
