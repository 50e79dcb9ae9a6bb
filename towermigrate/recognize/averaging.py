"""Recognise a function that averages gradients over towers, by what it does with them.

The classic is `for grad_and_vars in zip(*tower_grads)`, stack, `reduce_mean` over the towers, the first
tower's variable. A function that differs in anything, a sum, a weight, a slice, a skipped variable, trains
something else, so the function is followed value by value and every statement must be one that is known.

Functions differ most in what they do with None (corpus: 13 of 80 drop it, 11 pass it on, most crash in
`expand_dims`), and that difference decides the None policy of the rewrite.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

import libcst as cst

from towermigrate.recognize.source import Function, SourceFile
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    code,
    elements,
    integer,
    parameters,
    small,
    statements,
)
from towermigrate.tree import TF1_COPY, is_unedited_copy

NonePolicy = Literal["crash", "skip", "pass", "zeros"]


@dataclass(frozen=True)
class Averaging:
    """How a function averages: `parameter` is the name of the argument that holds the towers' lists."""

    parameter: str
    none_policy: NonePolicy


class _Value(Enum):
    """What a name of the function holds."""

    TOWERS = auto()  # the parameter: one list of pairs per tower
    PAIRS = auto()  # one variable's pairs, one per tower
    GRADIENT = auto()
    EXPANDED = auto()  # a gradient with a new first dimension
    GRADIENTS = auto()  # a list of gradients, one per tower
    EXPANDEDS = auto()  # a list of expanded gradients
    EMPTY = auto()
    STACK = auto()  # one tensor whose first dimension is the tower
    MEAN = auto()
    VARIABLE = auto()
    PAIR = auto()  # (mean, variable)
    RESULT = auto()


class _Unknown(Exception):
    """The function does something that is not part of an average."""


class _Follower:
    """Follows one averaging function from its parameter to its result."""

    def __init__(self, file: SourceFile, parameter: str) -> None:
        self.file = file
        self.env: dict[str, _Value] = {parameter: _Value.TOWERS}
        self.result: str | None = None
        self.finished: set[str] = set()
        self.drops_none = False
        self.guards_empty = False

    # -- statements

    def function(self, body: Sequence[cst.BaseStatement]) -> None:
        seen_loop = returned = False
        for node in self._flat(body):
            inner = small(node)
            if isinstance(inner, cst.Expr) and isinstance(
                inner.value, cst.SimpleString | cst.ConcatenatedString
            ):
                continue
            if isinstance(inner, cst.Return):
                if not seen_loop or inner.value is None or code(inner.value) != self.result:
                    raise _Unknown
                returned = True
                continue
            if returned:
                raise _Unknown
            if isinstance(node, cst.For) and not seen_loop:
                self._over_variables(node)
                seen_loop = True
                continue
            self._empty_list(node)
        if not returned:
            raise _Unknown

    def _flat(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Statements with device and name scopes, which do not change values, taken apart."""
        found: list[cst.BaseStatement] = []
        for node in body:
            if isinstance(node, cst.With) and all(
                isinstance(i.item, cst.Call)
                and self.file.tf(i.item.func) in ("tf.device", "tf.name_scope")
                for i in node.items
            ):
                found.extend(self._flat(statements(node.body)))
            else:
                found.append(node)
        return found

    def _empty_list(self, node: cst.BaseStatement) -> None:
        found = assigned(node)
        if found is None or len(found[0]) != 1 or code(found[1]) not in ("[]", "list()"):
            raise _Unknown
        if self.env.get(found[0][0]) is _Value.TOWERS:
            raise _Unknown
        self.env[found[0][0]] = _Value.EMPTY

    def _over_variables(self, loop: cst.For) -> None:
        iterated = loop.iter
        if (
            not isinstance(loop.target, cst.Name)
            or loop.orelse is not None
            or not isinstance(iterated, cst.Call)
            or code(iterated.func) != "zip"
            or len(iterated.args) != 1
            or iterated.args[0].star != "*"
            or self.value(iterated.args[0].value) is not _Value.TOWERS
        ):
            raise _Unknown
        self.env[loop.target.value] = _Value.PAIRS
        for node in self._flat(statements(loop.body)):
            self._one_variable(node)
        if self.result is None:
            raise _Unknown

    def _one_variable(self, node: cst.BaseStatement) -> None:
        if self.result is not None:
            raise _Unknown
        if isinstance(node, cst.For):
            self._over_towers(node)
            return
        if isinstance(node, cst.If):
            if not self._is_emptiness(node.test) or not _only_continue(node.body):
                raise _Unknown
            if node.orelse is not None:
                raise _Unknown
            self.guards_empty = True
            return
        inner = small(node)
        if isinstance(inner, cst.Expr):
            name, value = self._append(inner.value)
            if value is not _Value.PAIR or self.env.get(name) is not _Value.EMPTY:
                raise _Unknown
            self.env[name] = _Value.RESULT
            self.result = name
            return
        found = assigned(node)
        if found is None or len(found[0]) != 1:
            raise _Unknown
        name, expression = found[0][0], found[1]
        if self.env.get(name) in (_Value.TOWERS, _Value.PAIRS):
            raise _Unknown
        empty = code(expression) in ("[]", "list()")
        self.env[name] = _Value.EMPTY if empty else self.value(expression)

    def _over_towers(self, loop: cst.For) -> None:
        target = elements(loop.target)
        if (
            target is None
            or len(target) != 2
            or not isinstance(target[0], cst.Name)
            or not isinstance(target[1], cst.Name)
            or loop.orelse is not None
            or self.value(loop.iter) is not _Value.PAIRS
        ):
            raise _Unknown
        gradient = target[0].value
        self.env[gradient] = _Value.GRADIENT
        if target[1].value != gradient:
            self.env[target[1].value] = _Value.VARIABLE
        appended = self._tower_block(self._flat(statements(loop.body)), gradient)
        if not appended:
            raise _Unknown

    def _tower_block(self, block: Sequence[cst.BaseStatement], gradient: str) -> bool:
        """One tower's gradient goes onto the list; whether the block does that."""
        appended = False
        for node in block:
            if appended:
                raise _Unknown
            if isinstance(node, cst.If):
                test = code(node.test)
                if node.orelse is not None:
                    raise _Unknown
                if test == f"{gradient} is None" and _only_continue(node.body):
                    self.drops_none = True
                    continue
                if test == f"{gradient} is not None":
                    self.drops_none = True
                    appended = self._tower_block(self._flat(statements(node.body)), gradient)
                    continue
                raise _Unknown
            inner = small(node)
            if isinstance(inner, cst.Expr):
                name, value = self._append(inner.value)
                kept = {
                    _Value.GRADIENT: _Value.GRADIENTS,
                    _Value.EXPANDED: _Value.EXPANDEDS,
                }.get(value)
                if kept is None or self.env.get(name) is not _Value.EMPTY:
                    raise _Unknown
                self.env[name] = kept
                appended = True
                continue
            found = assigned(node)
            if found is None or len(found[0]) != 1:
                raise _Unknown
            value = self.value(found[1])
            if value is not _Value.EXPANDED:
                raise _Unknown
            self.env[found[0][0]] = value
        return appended

    def _append(self, node: cst.BaseExpression) -> tuple[str, _Value]:
        if (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value == "append"
            and isinstance(node.func.value, cst.Name)
            and len(node.args) == 1
        ):
            return node.func.value.value, self.value(node.args[0].value)
        raise _Unknown

    def _is_emptiness(self, test: cst.BaseExpression) -> bool:
        lists = [
            n
            for n, v in self.env.items()
            if v in (_Value.GRADIENTS, _Value.EXPANDEDS, _Value.EMPTY)
        ]
        return code(test) in {
            form.format(n) for n in lists for form in ("not {}", "len({}) == 0", "{} == []")
        }

    # -- expressions

    def value(self, node: cst.BaseExpression) -> _Value:
        if isinstance(node, cst.Name):
            known = self.env.get(node.value)
            if known is None:
                raise _Unknown
            return known
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.ListComp):
            return self._comprehension(node)
        if isinstance(node, cst.Subscript):
            return self._subscript(node)
        if isinstance(node, cst.BinaryOperation):
            return self._sum_over_count(node)
        items = elements(node)
        if items is not None and isinstance(node, cst.Tuple) and len(items) == 2:
            if [self.value(i) for i in items] == [_Value.MEAN, _Value.VARIABLE]:
                return _Value.PAIR
        raise _Unknown

    def _call(self, call: cst.Call) -> _Value:
        name = self.file.tf(call.func)
        known = {"input", "dim", "axis", "values", "concat_dim", "input_tensor", "reduction_indices",
                 "name", None}  # fmt: skip
        if any(a.star or (a.keyword.value if a.keyword else None) not in known for a in call.args):
            raise _Unknown
        if name == "tf.expand_dims":
            axis = argument(call, 1, "axis") or argument(call, None, "dim")
            source = argument(call, 0, "input")
            if integer(axis) == 0 and source and self.value(source) is _Value.GRADIENT:
                return _Value.EXPANDED
        elif name == "tf.concat":
            return self._concat(call)
        elif name in ("tf.stack", "tf.pack"):
            values = argument(call, 0, "values")
            axis = argument(call, 1, "axis")
            if values is not None and (axis is None or integer(axis) == 0):
                if self.value(values) is _Value.GRADIENTS:
                    return _Value.STACK
        elif name == "tf.reduce_mean":
            source = argument(call, 0, "input_tensor")
            axis = argument(call, 1, "axis") or argument(call, None, "reduction_indices")
            if source is not None and axis is not None and code(axis) in ("0", "[0]"):
                if self.value(source) in (_Value.STACK, _Value.GRADIENTS):
                    return _Value.MEAN
        raise _Unknown

    def _concat(self, call: cst.Call) -> _Value:
        """`concat(values, 0)`, `concat(0, values)` as TF 0.x had it, or by keyword."""
        first, second = argument(call, 0, "values"), argument(call, 1, "axis")
        if first is not None and integer(first) == 0:
            first, second = argument(call, 1, "values"), first
        if first is None or integer(second or argument(call, None, "concat_dim")) != 0:
            raise _Unknown
        if self.value(first) is not _Value.EXPANDEDS:
            raise _Unknown
        return _Value.STACK

    def _comprehension(self, node: cst.ListComp) -> _Value:
        """`[g for g, _ in grad_and_vars if g is not None]`, expanded or not."""
        loop = node.for_in
        target = elements(loop.target)
        if loop.inner_for_in is not None or target is None or len(target) != 2:
            raise _Unknown
        if not isinstance(target[0], cst.Name) or self.value(loop.iter) is not _Value.PAIRS:
            raise _Unknown
        gradient = target[0].value
        for condition in loop.ifs:
            if code(condition.test) != f"{gradient} is not None":
                raise _Unknown
            self.drops_none = True
        before = self.env.get(gradient)
        self.env[gradient] = _Value.GRADIENT
        element = self.value(node.elt)
        if before is None:
            del self.env[gradient]
        else:
            self.env[gradient] = before
        if element is _Value.GRADIENT:
            return _Value.GRADIENTS
        if element is _Value.EXPANDED:
            return _Value.EXPANDEDS
        raise _Unknown

    def _subscript(self, node: cst.Subscript) -> _Value:
        """`grad_and_vars[0][1]`: any tower's variable, since they share it."""
        if isinstance(node.value, cst.Subscript) and self._index(node) == 1:
            inner = node.value
            if self._index(inner) is not None and self.value(inner.value) is _Value.PAIRS:
                return _Value.VARIABLE
        raise _Unknown

    def _index(self, node: cst.Subscript) -> int | None:
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
            return None
        return integer(node.slice[0].slice.value)

    def _sum_over_count(self, node: cst.BinaryOperation) -> _Value:
        """`tf.add_n(grads) / len(grads)`."""
        if not isinstance(node.operator, cst.Divide) or not isinstance(node.left, cst.Call):
            raise _Unknown
        total = node.left
        if self.file.tf(total.func) != "tf.add_n" or len(total.args) != 1:
            raise _Unknown
        summed = total.args[0].value
        if self.value(summed) is not _Value.GRADIENTS:
            raise _Unknown
        count = code(node.right).replace(" ", "")
        written = code(summed)
        if count not in (f"len({written})", f"float(len({written}))"):
            raise _Unknown
        return _Value.MEAN


def _only_continue(body: cst.BaseSuite) -> bool:
    """Whether a block is `continue` and nothing else; comments do not count."""
    inside = statements(body)
    return len(inside) == 1 and isinstance(small(inside[0]), cst.Continue)


def classify_average(function: Function) -> Averaging | None:
    """The averaging a function does, None when it is not one or does something else besides."""
    if posixpath.basename(function.file.path) == TF1_COPY:
        ours = function.qualified == "average_gradients"
        unedited = ours and is_unedited_copy(function.file.module.code)
        return Averaging("tower_grads", "zeros") if unedited else None
    names = parameters(function.node)
    if not names or function.is_method or function.node.decorators:
        return None
    if len(names) > 1 and any(p.default is None for p in function.node.params.params[1:]):
        return None
    follower = _Follower(function.file, names[0])
    try:
        follower.function(statements(function.node.body))
    except _Unknown:
        return None
    # Dropping the towers' None without a test for "nothing left" crashes where no tower reaches a variable.
    policy: NonePolicy = "skip" if follower.drops_none and follower.guards_empty else "crash"
    return Averaging(names[0], policy)
