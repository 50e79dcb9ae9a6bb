"""The devices that the loops of one graph place their towers on: a replica is the k-th tower of each of them.

`for i in [0]` for the label's loss and `for i in [1]` for the domain's are two towers that do different work. In session style
both are the first tower of their loop, so both would be on the first replica.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.recognize.loops import Candidate, is_device
from towermigrate.recognize.refusal import note
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import argument, bound_below, calls, code, parameters, walk

_NUMBERS = (0, 1, 2, 4)
"""What a number that is not known is tried with: where the devices differ whatever it is, they differ."""
_UNKNOWN = 3
"""With more numbers that are not known, nothing is."""
_MOST = 64
"""A loop over more values than this is none over devices."""
_DEPTH = 8
"""From a name to what it is bound to, and on from there."""
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "range": range, "xrange": range, "len": len, "str": str, "int": int, "list": list, "tuple": tuple, "zip": zip,
    "enumerate": enumerate, "sorted": sorted, "reversed": reversed, "min": min, "max": max,
}  # fmt: skip


_BINDING = frozenset({cst.Assign, cst.AugAssign, cst.AnnAssign, cst.For, cst.Param})


class _NotKnown(Exception):
    """A value is not to be had from the text."""


class _Asked(Exception):
    """A number is not known; it is tried with some."""

    def __init__(self, key: object) -> None:
        super().__init__(key)
        self.key = key


def on_other_devices(tree: Tree, own: Candidate, other: Candidate) -> Finding | None:
    """What is to be said of a loop whose towers are on other devices than those of another loop of its graph.

    None where the k-th towers of both share a device, where both use the same devices in another order, and where the text
    does not say.

    Args:
        tree: the tree of files.
        own: the loop.
        other: another loop that builds towers in the same graph.
    """
    found = list(_pairs(tree, own, other, {}))
    told = [(one, two) for one, two in found if one and two]
    if (
        not told
        or any(_are_alike(one, two) for one, two in told)
        or any(None in each for each in found)
    ):
        return None
    where = other.file.line(other.turns or other.loop)
    at = f"line {where}" if other.file is own.file else f"{other.file.path}:{where}"
    message = f"the towers of this loop are on other devices than those of the loop at {at}"
    if all(each == told[0] for each in told):
        here, there = (", ".join(f"`{each}`" for each in part or ()) for part in told[0])
        message = f"the towers of this loop are on {here}, those of the loop at {at} on {there}"
    message += ": they do different work, and would share replicas"
    return note("TM251", own.file, own.turns or own.loop, message)


def _pairs(
    tree: Tree, own: Candidate, other: Candidate, numbers: Mapping[object, int]
) -> Iterator[tuple[list[str] | None, list[str] | None]]:
    """The devices of both loops, with each number that may be in place of those that are not known."""
    try:
        yield _Reader(tree, own, numbers).devices(), _Reader(tree, other, numbers).devices()
    except _Asked as asked:
        if len(numbers) == _UNKNOWN:
            yield None, None
            return
        for number in _NUMBERS:
            yield from _pairs(tree, own, other, {**numbers, asked.key: number})


def _are_alike(first: Sequence[str] | None, second: Sequence[str] | None) -> bool:
    if first is None or second is None:
        return True
    return set(first) == set(second) or all(
        one == two for one, two in zip(first, second, strict=False)
    )


@dataclass
class _Reader:
    """Reads the devices of one loop, with numbers in place of those that are not known."""

    tree: Tree
    candidate: Candidate
    numbers: Mapping[object, int]

    def devices(self) -> list[str] | None:
        """The device of each tower, in their order; None where the text does not say."""
        file, loop = self.candidate.file, self.candidate.loop
        try:
            values = list(_first(self._value(_parsed(loop.iter), {}, _DEPTH), _MOST))
            target = _parsed(loop.target)
            named = next(self._named(file, loop.body))
            return [self._device(named, _bound(target, value)) for value in values]
        except (_NotKnown, StopIteration):
            return None

    def _named(
        self, file: SourceFile, body: cst.CSTNode
    ) -> Iterator[tuple[cst.BaseExpression, Mapping[str, cst.BaseExpression] | None]]:
        """What names the device of a tower: in the loop, or in a function that it calls, whose arguments come with it."""
        targets = {
            each.value for each in walk(self.candidate.loop.target) if isinstance(each, cst.Name)
        }
        for device in _entered(file, body):
            if not isinstance(device, cst.SimpleString):
                yield device, None
        for call in calls(body):
            function = self.tree.resolve(file, call.func)
            if function is None or not any(
                isinstance(each, cst.Name) and each.value in targets for each in walk(call)
            ):
                continue
            names = [name for name in parameters(function.node) if name != "self"]
            given = {
                name: value
                for place, name in enumerate(names)
                if (value := argument(call, place, name)) is not None
            }
            for device in _entered(function.file, function.node.body):
                if any(isinstance(each, cst.Name) and each.value in given for each in walk(device)):
                    yield device, given

    def _device(
        self,
        named: tuple[cst.BaseExpression, Mapping[str, cst.BaseExpression] | None],
        bound: Mapping[str, Any],
    ) -> str:
        device, given = named
        if given is not None:
            bound = {
                name: self._value(_parsed(value), bound, _DEPTH)
                for name, value in given.items()
                if any(isinstance(each, cst.Name) and each.value == name for each in walk(device))
            }
        found = self._value(_parsed(device), bound, _DEPTH)
        if not isinstance(found, str):
            raise _NotKnown
        return found

    def _value(self, node: ast.expr, bound: Mapping[str, Any], depth: int) -> Any:
        """What an expression gives; raises `_NotKnown`."""
        if not depth:
            raise _NotKnown
        match node:
            case ast.Constant(value=int() | str() as value):
                return value
            case ast.Name(id=name):
                return bound[name] if name in bound else self._of_name(name, bound, depth - 1)
            case ast.Attribute():
                return self._number(ast.unparse(node))
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self._value(each, bound, depth) for each in parts]
            case ast.JoinedStr(values=parts):
                return "".join(str(self._value(each, bound, depth)) for each in parts)
            case ast.FormattedValue(value=inner, format_spec=None):
                return self._value(inner, bound, depth)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                one, two = self._value(left, bound, depth), self._value(right, bound, depth)
                return _tried(_OPERATORS[type(op)], one, tuple(two) if isinstance(two, list) and isinstance(one, str) else two)  # fmt: skip
            case ast.Subscript(value=inner, slice=ast.Slice(lower=lower, upper=upper, step=None)):
                ends = [
                    None if each is None else self._value(each, bound, depth)
                    for each in (lower, upper)
                ]
                return _tried(operator.getitem, self._value(inner, bound, depth), slice(*ends))
            case ast.Subscript(value=inner, slice=index):
                where = self._value(index, bound, depth)
                return _tried(operator.getitem, self._value(inner, bound, depth), where)
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str() as form), attr="format"),
                args=args,
                keywords=[],
            ):
                return _tried(form.format, *(self._value(each, bound, depth) for each in args))
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=("range" | "xrange") as name),
                args=args,
                keywords=[],
            ) if name in _FUNCTIONS:
                given = _tried(
                    _FUNCTIONS[name], *(self._value(each, bound, depth) for each in args)
                )
                return given if isinstance(given, int | str) else list(_first(given, _MOST))
        raise _NotKnown

    def _of_name(self, name: str, bound: Mapping[str, Any], depth: int) -> Any:
        """What the only assignment of a name gives: in the loop, else in its function, else in the file."""
        file, function = self.candidate.file, self.candidate.function
        around: list[cst.CSTNode] = [file.module] if function is None else [function, file.module]
        for scope in around:
            found = bound_below(scope, _BINDING, _targets).get(name, ())
            if len(found) == 1 and isinstance(found[0], cst.Assign):
                only = found[0]
                if any(isinstance(each.target, cst.Name) for each in only.targets):
                    try:
                        return self._value(_parsed(only.value), bound, depth)
                    except _NotKnown:
                        return self._number((name, id(scope)))
            if found:
                return self._number((name, id(scope)))
        return self._number((name, id(file)))

    def _number(self, key: object) -> int:
        if key not in self.numbers:
            raise _Asked(key)
        return self.numbers[key]


def _targets(node: cst.CSTNode) -> list[cst.CSTNode]:
    if isinstance(node, cst.Assign):
        return [each.target for each in node.targets]
    if isinstance(node, cst.Param):
        return [node.name]
    return [node.target] if isinstance(node, cst.For | cst.AugAssign | cst.AnnAssign) else []


def _entered(file: SourceFile, body: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What names the devices that are entered below a node."""
    for each in walk(body):
        for item in each.items if isinstance(each, cst.With) else ():
            call = item.item
            if isinstance(call, cst.Call) and is_device(file, call) and len(call.args) == 1:
                yield call.args[0].value


@lru_cache(256)
def _parsed(node: cst.CSTNode) -> ast.expr:
    try:
        return ast.parse(f"({code(node)}\n)", mode="eval").body
    except SyntaxError as error:
        raise _NotKnown from error


def _bound(target: ast.expr, value: Any) -> dict[str, Any]:
    """What a loop's target binds of one value."""
    match target:
        case ast.Name(id=name):
            return {name: value}
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            if isinstance(value, list | tuple) and len(value) == len(parts):
                found: dict[str, Any] = {}
                for part, one in zip(parts, value, strict=True):
                    found.update(_bound(part, one))
                return found
    raise _NotKnown


def _first(values: Any, most: int) -> Iterator[Any]:
    if isinstance(values, str | int):
        raise _NotKnown
    for number, value in enumerate(values):
        if number == most:
            raise _NotKnown
        yield value


def _tried(function: Callable[..., Any], *given: Any) -> Any:
    try:
        if function is operator.mul and not all(isinstance(each, int) for each in given):
            raise _NotKnown
        return function(*given)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise _NotKnown from error
