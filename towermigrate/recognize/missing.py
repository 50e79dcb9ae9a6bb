"""What a program makes of gradients that are None, where loop style leaves them out of the list of averaged ones.

Those that a program then drops, or passes on as None, are dropped by `apply_gradients` in any case. What puts a value in
their place, counts the list or picks from it by place does another thing without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import binds, calls, code, dotted, small, statements, walk

_COUNTS = ("len", "enumerate", "isinstance", "type")


def misses_none(kinds: Kinds, file: SourceFile, nodes: Iterable[cst.CSTNode]) -> cst.CSTNode | None:
    """The first part of what changes averaged gradients that may do another thing where those that are None are left out."""
    seen: set[int] = set()
    waiting = [(file, node) for node in nodes]
    while waiting:
        where, node = waiting.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        found = _counts(node)
        found = found or next((c for c in calls(node) if kinds.of(c) is Kind.VARLIST), None)
        found = found or _fills(node)
        if found is not None:
            return found
        for inner in walk(node):
            if isinstance(inner, cst.Name | cst.Attribute) and where.tf(inner) is None:
                function = kinds.traits.tree.resolve(where, inner) if dotted(inner) else None
                if function is not None:
                    waiting.append((function.file, function.node.body))
    return None


def _counts(node: cst.CSTNode) -> cst.CSTNode | None:
    """What counts a list or picks from it; an item of a pair that a loop gives is none."""
    given = {
        name
        for inner in walk(node)
        if isinstance(inner, cst.CompFor | cst.For)
        for name in _names(inner.target)
    }
    given |= {
        one.name.value
        for inner in walk(node)
        if isinstance(inner, cst.Lambda)
        for one in inner.params.params
    }
    for inner in walk(node):
        if isinstance(inner, cst.Subscript):
            of_pair = isinstance(inner.value, cst.Name) and inner.value.value in given
            if not of_pair or code(inner)[len(code(inner.value)) :].strip() not in ("[0]", "[1]"):
                return inner
        if isinstance(inner, cst.Name) and inner.value in _COUNTS:
            return inner
    return None


def _names(target: cst.CSTNode) -> Iterator[str]:
    for inner in walk(target):
        if isinstance(inner, cst.Name):
            yield inner.value


def _fills(node: cst.CSTNode) -> cst.CSTNode | None:
    """What asks whether a value is None and does more than to drop it or to pass it on."""
    fine: set[int] = set()
    for inner in walk(node):
        if isinstance(inner, cst.IfExp):
            fine |= _passed_on(inner.test, inner.body, inner.orelse)
        elif isinstance(inner, cst.CompFor):
            for test in inner.ifs:
                fine |= {id(one) for one, _, is_none in _asked(test.test, cst.And) if not is_none}
        elif isinstance(inner, cst.If):
            fine |= _skipped(inner)
        elif isinstance(inner, cst.Assert):
            fine |= {id(one) for one, _, is_none in _asked(inner.test, cst.And) if not is_none}
    for inner in walk(node):
        if isinstance(inner, cst.Name) and inner.value == "None":
            asks = [
                c
                for c in walk(node)
                if isinstance(c, cst.Comparison) and any(n is inner for n in walk(c))
            ]
            if any(id(c) not in fine for c in asks):
                return asks[0]
    return None


def _asked(
    test: cst.BaseExpression, by: type[cst.BaseBooleanOp]
) -> list[tuple[cst.Comparison, str, bool]]:
    """The questions for None that a test asks, all of which hold (`and`), or any one (`or`): the value, and whether it is None."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, by):
        return [*_asked(test.left, by), *_asked(test.right, by)]
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return []
    operator, other = test.comparisons[0].operator, test.comparisons[0].comparator
    if code(other) != "None" or not isinstance(
        operator, cst.Is | cst.IsNot | cst.Equal | cst.NotEqual
    ):
        return []
    return [(test, code(test.left), isinstance(operator, cst.Is | cst.Equal))]


def _passed_on(
    test: cst.BaseExpression, body: cst.BaseExpression, orelse: cst.BaseExpression
) -> set[int]:
    fine = {
        id(one)
        for one, name, is_none in _asked(test, cst.And)
        if not is_none and _is_none(orelse, name)
    }
    return fine | {
        id(one) for one, name, is_none in _asked(test, cst.Or) if is_none and _is_none(body, name)
    }


def _is_none(value: cst.BaseExpression, name: str) -> bool:
    """Whether a value, or the first of a pair, is None where that of the name is."""
    if isinstance(value, cst.Tuple) and value.elements:
        value = value.elements[0].value
    return code(value) in ("None", name)


def _skipped(node: cst.If) -> set[int]:
    """The questions of an `if` one of whose branches drops or passes on what is None."""
    fine: set[int] = set()
    for one, name, is_none in _asked(node.test, cst.Or):
        if is_none and all(_drops(s, name) for s in statements(node.body)):
            fine.add(id(one))
    for one, name, is_none in _asked(node.test, cst.And):
        other = node.orelse
        if is_none or isinstance(other, cst.If):
            continue
        dropped = other is None or all(_drops(s, name) for s in statements(other.body))
        if dropped and all(set(binds(s)) <= {name} for s in statements(node.body)):
            fine.add(id(one))
    return fine


def _drops(statement: cst.BaseStatement, name: str) -> bool:
    inner = small(statement)
    if isinstance(inner, cst.Continue | cst.Pass | cst.Raise):
        return True
    call = inner.value if isinstance(inner, cst.Expr) else None
    if not isinstance(call, cst.Call) or len(call.args) != 1:
        return False
    appends = isinstance(call.func, cst.Attribute) and call.func.attr.value == "append"
    return appends and _is_none(call.args[0].value, name)
