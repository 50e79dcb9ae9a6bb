"""Operators: arithmetic, comparisons, `and` and `or`, and whether a value is true."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from towermigrate.flow.objects import Objects
from towermigrate.flow.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Made,
    Method,
    Module,
    Scope,
    Table,
    Unknown,
    Value,
    read,
    same,
)

_LARGE = 1 << 64
_LONG = 10_000

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


class Operators(Objects):
    """Evaluates operators. Part of the interpreter."""

    def operate(self, node: ast.AST, op: ast.AST, operands: Sequence[Value], scope: Scope) -> Value:
        place = self.place(node, scope.path)
        why = "an operation on what is not known"
        if all(isinstance(each, Const) for each in operands):
            first, second = (each.value for each in operands if isinstance(each, Const))
            computed = folded(op, first, second)
            if isinstance(computed, Const):
                return computed
            why = computed or why
        else:
            found = self.joined_or_repeated(op, operands, place)
            if found is not None:
                return found
        asked = self.domain.operation(node, operands, place)
        if asked is not None:
            return asked
        made = [each for each in operands if isinstance(each, Instance)]
        if made:
            self.escape(operands, Unknown("an operator of its class", place))
        return Unknown(why, place)

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Value:
        value = self.evaluate(node.operand, scope)
        place = self.place(node, scope.path)
        if isinstance(node.op, ast.Not):
            known = self.truth(value)
            if known is None:
                return self.asked(node, [value], "it is not known whether it is true", place)
            return Const(not known)
        if isinstance(value, Const) and isinstance(value.value, int | float | complex):
            number = value.value
            if isinstance(node.op, ast.USub):
                return Const(-number)
            if isinstance(node.op, ast.UAdd):
                return Const(+number)
            if isinstance(number, int):
                return Const(~number)
        return self.asked(node, [value], "an operation on what is not known", place)

    def _bool(self, node: ast.BoolOp, scope: Scope) -> Value:
        decides = isinstance(node.op, ast.Or)
        open_: list[Value] = []
        for number, each in enumerate(node.values):
            value = self.evaluate(each, scope)
            if number == len(node.values) - 1:
                return self.any_of([*open_, value])
            known = self.truth(value)
            if known is None:
                # The others are evaluated only where this one does not decide.
                rest = self._perhaps(node.op, node.values[number + 1 :], scope)
                return self.any_of([*open_, value, *rest])
            if known is decides:
                return self.any_of([*open_, value])
        return Unknown("nothing", self.place(node, scope.path))

    def _perhaps(self, op: ast.boolop, nodes: list[ast.expr], scope: Scope) -> list[Value]:
        """The value of the rest of `a and b`, which may not be evaluated."""
        whole = nodes[0] if len(nodes) == 1 else ast.copy_location(ast.BoolOp(op, nodes), nodes[0])
        found: list[Value] = []

        def evaluated() -> bool:
            found.append(self.evaluate(whole, scope))
            return True

        self.ways([evaluated, lambda: True])
        return found

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        place = self.place(node, scope.path)
        left = self.evaluate(node.left, scope)
        if len(node.ops) > 1:
            # The later ones are evaluated only where the earlier hold.
            values = [left, *(self._one_of([each], scope) for each in node.comparators)]
            outcomes = [
                self._compared(node, op, first, second, scope)
                for op, first, second in zip(node.ops, values, values[1:], strict=False)
            ]
            if all(isinstance(each, Const) for each in outcomes):
                return Const(all(each.value for each in outcomes if isinstance(each, Const)))
            return self.asked(node, outcomes, "a comparison", place)
        right = self.evaluate(node.comparators[0], scope)
        return self._compared(node, node.ops[0], left, right, scope)

    def _compared(
        self, node: ast.Compare, op: ast.cmpop, left: Value, right: Value, scope: Scope
    ) -> Value:
        negative = isinstance(op, ast.IsNot | ast.NotIn)
        if isinstance(op, ast.Is | ast.IsNot):
            found = _identical(left, right)
        elif isinstance(op, ast.In | ast.NotIn):
            found = self.contains(right, left)
        else:
            return self.operate(node, op, [left, right], scope)
        if found is None:
            return self.asked(node, [left, right], "a comparison", self.place(node, scope.path))
        return Const(found is not negative)

    def truth(self, value: Value) -> bool | None:
        """Whether a value is true, where that is certain."""
        match value:
            case Const():
                return bool(value.value)
            case Items() if value.kind != "iterator":
                entries = value.entries
                return None if entries is None else bool(entries)
            case Table():
                return bool(len(list(value.known()))) if value.exact and not value.wild else None
            case Function() | Class() | Module() | Method():
                return True
            case Instance():
                special = [self.of_class(value.kind, name) for name in ("__bool__", "__len__")]
                return True if value.kind.whole and special == [None, None] else None
        return self.domain.truth(value)

    def alike(self, first: Value, second: Value) -> bool:
        """Whether what a cell holds is the same, for what is asked of it."""
        one, two = read(first), read(second)
        if (one is first) != (two is second):
            return False
        if same(one, two) or isinstance(one, Unknown) and isinstance(two, Unknown):
            return True
        if isinstance(one, Made) and type(one) is type(two) and isinstance(two, Made):
            return one.place == two.place and one.repeated and two.repeated
        return self.domain.alike(one, two)

    def _one_of(self, nodes: Sequence[ast.expr], scope: Scope) -> Value:
        """The value of one of several expressions."""
        found: list[Value] = []

        def run(node: ast.expr) -> Callable[[], bool]:
            def evaluated() -> bool:
                found.append(self.evaluate(node, scope))
                return True

            return evaluated

        self.ways([run(node) for node in nodes])
        return self.any_of(found)


def _identical(left: Value, right: Value) -> bool | None:
    """`left is right`, where that is certain."""
    if isinstance(left, Const) and isinstance(right, Const):
        single = (None, True, False, ...)
        if any(left.value is each for each in single) or any(
            right.value is each for each in single
        ):
            return left.value is right.value
        return None
    if isinstance(left, Const | Made | Module) and isinstance(right, Const | Made | Module):
        if left is right and isinstance(left, Made):
            return None if left.repeated else True
        if isinstance(left, Const) or isinstance(right, Const):
            return False
        if type(left) is not type(right):
            return False
        return None
    return None


def folded(op: object, first: object, second: object) -> Const | str:
    """What an operator gives of two constants, or, where that is no value of a reasonable size, the error's name."""
    function = _OPERATORS.get(type(op))
    if function is None or not _small(op, first, second):
        return ""
    try:
        return Const(function(first, second))
    except Exception as error:
        return type(error).__name__


def _small(op: object, first: Any, second: Any) -> bool:
    """Whether the outcome of an operation on constants is of a reasonable size."""
    if isinstance(op, ast.Pow | ast.LShift):
        plain = isinstance(first, int | float) and isinstance(second, int | float)
        return plain and abs(first) < 1 << 32 and abs(second) <= 64
    if isinstance(op, ast.Mult):
        for one, two in ((first, second), (second, first)):
            if isinstance(one, str | bytes):
                return isinstance(two, int) and len(one) * max(two, 0) < _LONG
    if isinstance(op, ast.Mod) and isinstance(first, str | bytes):
        return len(first) < 1000 and isinstance(second, str | int | float)
    return not any(isinstance(each, int) and abs(each) > _LARGE for each in (first, second))
