"""`reuse = i > 0` in a tower loop: the comparison itself wherever the name is handed on."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers

_LATER = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp, ast.JoinedStr,
)  # fmt: skip


def named_reuse(file: PlainFile) -> list[Change]:
    """The names of comparisons of a tower's number that calls are given, without which nothing says what is shared."""
    if "reuse" not in file.text.lower():
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        if not file.finds_names_by_text
        for change in _of_loop(file, scope, loop, where)
    ]


def _of_loop(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> list[Change]:
    target = loop.target
    if isinstance(target, ast.Tuple) and ast.unparse(loop.iter).startswith("enumerate("):
        target = target.elts[0]
    if not isinstance(target, ast.Name) or bindings(scope, target.id) != 1:
        return []
    found: list[Change] = []
    blocks: list[list[ast.stmt]] = [loop.body]
    while blocks:
        body = blocks.pop()
        for each in body:
            if isinstance(each, ast.With):
                blocks.append(each.body)
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if len(
                    body
                ) > 1 and _compares(file, value, target.id):
                    found += _handed_on(file, scope, loop, each, name, where)
    return found


def _compares(file: PlainFile, value: ast.expr, number: str) -> bool:
    """Whether a value only says whether a tower is the first one."""
    match value:
        case ast.Compare(
            left=ast.Name(id=own), ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]
        ):
            return own == number
        case ast.Compare(
            left=ast.Name(id=own), ops=[ast.GtE()], comparators=[ast.Constant(value=1)]
        ):
            return own == number
        case ast.UnaryOp(
            op=ast.Not(),
            operand=ast.Compare(
                left=ast.Name(id=own), ops=[ast.Eq()], comparators=[ast.Constant(value=0)]
            ),
        ):
            return own == number
        case ast.Call(func=ast.Name(id="bool"), args=[ast.Name(id=own)], keywords=[]):
            return own == number and is_pythons(file, "bool")
        case ast.IfExp(
            test=test, body=ast.Constant(value=True), orelse=ast.Constant(value=None | False)
        ):
            return _compares(file, test, number)
        case ast.BoolOp(op=ast.Or(), values=[test, ast.Constant(value=None)]):
            return _compares(file, test, number)
    return False


def _handed_on(
    file: PlainFile, scope: Scope, loop: ast.For, bound: ast.Assign, name: str, where: str
) -> list[Change]:
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return []
    if isinstance(scope, ast.Module) and name in file.words_of_users:
        return []
    given = {
        id(value)
        for each in ast.walk(loop)
        if isinstance(each, ast.Call)
        for value in [*each.args, *(one.value for one in each.keywords)]
    }
    later = {
        id(one) for each in ast.walk(loop) if isinstance(each, _LATER) for one in ast.walk(each)
    }
    reads = [
        each
        for each in ast.walk(file.tree if isinstance(scope, ast.Module) else scope)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    if not reads or any(id(each) not in given or id(each) in later for each in reads):
        return []
    if any(file.start(each) < file.end(bound) for each in reads):
        return []
    if file.alone(bound) is None or file.commented(*file.span(bound)):
        return []
    if "\n" in file.of(bound):
        return []
    parts = (file.span(bound.value),)
    return [
        *(Change(*file.span(each), parts, where) for each in reads),
        Change(*file.without(bound), (), where),
    ]


__all__ = ["named_reuse"]
