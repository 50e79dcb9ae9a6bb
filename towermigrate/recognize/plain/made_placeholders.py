"""Placeholders of a scope, also those that a function of the file makes for it: `x, y = placeholder_inputs(BATCH_SIZE)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.python_scopes import Unjoined

_DEEP = 6


@dataclass(frozen=True)
class Placeholder:
    """The statement of a scope that binds a placeholder, its sizes, and the function that makes it with what that is given.

    `shape` is None where the call does not write it out.
    """

    scope: Scope
    statement: ast.Assign
    shape: list[ast.expr] | None
    function: ast.FunctionDef | None = None
    given: Mapping[str, ast.expr] = field(default_factory=dict)

    def size(self, axis: int) -> ast.expr | None:
        """The size along an axis, as the scope would write it."""
        if self.shape is None or axis >= len(self.shape):
            return None
        node = self.shape[axis]
        if self.function is None or isinstance(node, ast.Constant):
            return node
        if not isinstance(node, ast.Name):
            return None
        if node.id in self.given:
            return self.given[node.id]
        seen = isinstance(self.scope, ast.Module) or not bindings(self.scope, node.id)
        return node if seen and not bindings(self.function, node.id) else None


def made_placeholder(file: PlainFile, scope: Scope, name: str) -> Placeholder | None:
    """The placeholder that a name of a scope, bound once, is."""
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return None
    if scope is file.tree and name in file.words_of_users:
        return None
    for each in once_in(scope):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        (target,) = each.targets
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        found = [n for n, one in enumerate(names) if isinstance(one, ast.Name) and one.id == name]
        if not found or not isinstance(each.value, ast.Call):
            continue
        if _makes(each.value) and not isinstance(target, ast.Tuple):
            return Placeholder(scope, each, _shape(each.value))
        return _of_function(file, scope, each, each.value, found[0], len(names))
    return None


def _makes(call: ast.Call) -> bool:
    return ast.unparse(call.func) == "tf.placeholder"


def _shape(call: ast.Call) -> list[ast.expr] | None:
    given = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "shape")]
    if len(given) != 1 or not isinstance(given[0], ast.List | ast.Tuple):
        return given if len(given) == 1 and isinstance(given[0], ast.Name) else None
    return list(given[0].elts)


def _of_function(
    file: PlainFile, scope: Scope, statement: ast.Assign, call: ast.Call, place: int, count: int
) -> Placeholder | None:
    """What a function gives back at a place, where that is a placeholder which it makes."""
    if not isinstance(call.func, ast.Name):
        return None
    if not isinstance(scope, ast.Module) and bindings(scope, call.func.id):
        return None
    try:
        function = file.definition(call.func.id).node
    except Unjoined:
        return None
    last, spec = function.body[-1], function.args
    if not isinstance(last, ast.Return) or function.decorator_list or spec.vararg or spec.kwarg:
        return None
    values = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    value = values[place] if len(values) == count else None
    made: ast.expr | None = value
    if isinstance(value, ast.Name):
        bound = [
            each.value
            for each in function.body
            if isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Name)
            and each.targets[0].id == value.id
        ]
        made = bound[0] if len(bound) == bindings(function, value.id) == 1 else None
    if not isinstance(made, ast.Call) or not _makes(made):
        return None
    given: dict[str, ast.expr] = {}
    names = [each.arg for each in spec.args]
    if len(call.args) <= len(names) and not any(isinstance(a, ast.Starred) for a in call.args):
        given = dict(zip(names, call.args, strict=False))
        given.update({each.arg: each.value for each in call.keywords if each.arg is not None})
    given = {n: v for n, v in given.items() if bindings(function, n) == 1}
    shape = _shape(made)
    if shape == [*made.args[1:2], *(k.value for k in made.keywords if k.arg == "shape")]:
        # `shape=(batch_size)`: a number, where another shape of the function has it as a size.
        sizes = {
            each.id
            for one in ast.walk(function)
            if isinstance(one, ast.Call) and _makes(one)
            for whole in [*one.args[1:2], *(k.value for k in one.keywords if k.arg == "shape")]
            if isinstance(whole, ast.List | ast.Tuple)
            for each in whole.elts
            if isinstance(each, ast.Name)
        }
        if shape is None or not isinstance(shape[0], ast.Name) or shape[0].id not in sizes:
            shape = None
    return Placeholder(scope, statement, shape, function, given)


# ---- parts by `tf.slice` -----------------------------------------------------------------------------


def sliced_parts(file: PlainFile) -> list[Change]:
    """`tf.slice(x, [i * n, 0], [n, -1])` of a placeholder that has the rows of all towers as `x[i * n:(i + 1) * n]`.

    The one fails where rows are missing, the other gives less.
    """
    if "tf.slice(" not in file.text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _of_loop(file, scope, loop, where)
    ]


def _of_loop(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> Iterator[Change]:
    match loop:
        case ast.For(
            target=ast.Name(id=index),
            iter=ast.Call(func=ast.Name(id="range" | "xrange"), args=[towers], keywords=[]),
        ):
            pass
        case _:
            return
    for call in ast.walk(loop):
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "tf.slice":
            continue
        if len(call.args) != 3 or call.keywords:
            continue
        match call.args:
            case [
                ast.Name(id=name),
                ast.List(elts=[begin, *others]),
                ast.List(elts=[size, *whole]),
            ]:
                rows = _rows(begin, index)
            case _:
                continue
        if rows is None or ast.unparse(rows) != ast.unparse(size) or len(others) != len(whole):
            continue
        if any(ast.unparse(each) != "0" for each in others):
            continue
        made = made_placeholder(file, scope, name)
        if made is None or made.shape is None or len(made.shape) != len(whole) + 1:
            continue
        sizes = [made.size(axis + 1) for axis in range(len(whole))]
        if not all(_is_whole(each, one) for each, one in zip(whole, sizes, strict=True)):
            continue
        all_rows = made.size(0)
        if all_rows is None or not _has_all(file, scope, all_rows, size, towers):
            continue
        if file.commented(*file.span(call)):
            continue
        text = file.of(size)
        rest = f"[{index} * {text}:({index} + 1) * {text}]"
        yield Change(*file.span(call), (file.span(call.args[0]), rest), where)


def _is_whole(size: ast.expr, every: ast.expr | None) -> bool:
    if isinstance(every, ast.Constant) and every.value is not None:
        if ast.dump(size) == ast.dump(every):
            return True
    return ast.unparse(size) == "-1"


def _rows(begin: ast.expr, index: str) -> ast.expr | None:
    """`n` of `i * n`."""
    match begin:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Mult(), right=rows) if name == index:
            return rows if isinstance(rows, ast.Name | ast.Constant) else None
        case ast.BinOp(left=rows, op=ast.Mult(), right=ast.Name(id=name)) if name == index:
            return rows if isinstance(rows, ast.Name | ast.Constant) else None
    return None


def _has_all(
    file: PlainFile, scope: Scope, whole: ast.expr, size: ast.expr, towers: ast.expr
) -> bool:
    """Whether a number of rows is at least that of all towers: `n = B // N`, or numbers that are written out."""
    every, one, count = (_resolved(file, scope, each, 0) for each in (whole, size, towers))
    values = [each.value for each in (every, one, count) if isinstance(each, ast.Constant)]
    numbers = [each for each in values if isinstance(each, int)]
    if len(numbers) == 3:
        return numbers[1] * numbers[2] <= numbers[0]
    match every:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return {ast.dump(left), ast.dump(right)} == {ast.dump(one), ast.dump(count)}
    match one:
        case ast.Call(
            func=ast.Name(id="int"), args=[ast.BinOp(left=left, op=ast.Div(), right=right)]
        ):
            pass
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            pass
        case _:
            return False
    return ast.dump(left) == ast.dump(every) and ast.dump(right) == ast.dump(count)


def _resolved(file: PlainFile, scope: Scope, node: ast.expr, deep: int) -> ast.expr:
    """An expression with what its names are bound to, of those that are bound once."""
    if deep > _DEEP:
        return node
    match node:
        case ast.Name(id=name):
            for one in (scope, file.tree):
                if not bindings(one, name):
                    continue
                if bindings(one, name) != 1 or name in file.shared_between_functions:
                    return node
                for each in once_in(one):
                    match each:
                        case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
                            return _resolved(file, one, value, deep + 1)
                return node
            return node
        case ast.BinOp(left=left, op=op, right=right):
            return ast.BinOp(
                _resolved(file, scope, left, deep + 1), op, _resolved(file, scope, right, deep + 1)
            )
        case ast.Call(func=ast.Name(id="int") as func, args=[one], keywords=[]):
            return ast.Call(func, [_resolved(file, scope, one, deep + 1)], [])
    return node


__all__ = ["Placeholder", "made_placeholder", "sliced_parts"]
