"""Means of what the towers' losses are row by row, joined: written as the mean of the list that they are in.

`tf.reduce_mean(tf.concat(losses, axis=0))` is `tf.reduce_mean(losses)` where every tower's loss has as many elements as any
other's: the cross entropy of labels that are one of the equal parts of a split.
"""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    names_in,
    own_bindings,
)
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers, once_in
from towermigrate.recognize.plain.named import filled

_ROW_BY_ROW = frozenset(
    f"tf.nn.{name}_cross_entropy_with_logits{version}"
    for name, version in (("sparse_softmax", ""), ("softmax", ""), ("softmax", "_v2"))
)
"""Functions that give one number for each row of their labels."""
_BY_VALUES = re.compile(
    r"\b(?:boolean_mask\w*|where\w*|unique\w*|dynamic_partition|non_max_suppression\w*|py_func\w*|numpy_function|cond"
    r"|while_loop|ragged\w*|[sS]parse(?!_softmax_cross)\w+|setdiff1d|listdiff)\b"
)
"""Functions that give as many rows as values say: of such logits the labels of one row may be one each."""


def joined_losses(file: PlainFile) -> list[Change]:
    """The joins of the towers' losses that only their mean is taken of."""
    if "tf.concat(" not in file.text or file.finds_names_by_text:
        return []
    if any(_BY_VALUES.search(text) for text in (file.text, *file.imported())):
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for statement in once_in(scope):
            if isinstance(statement, ast.Assign) and statement.lineno > (loop.end_lineno or 0):
                found += [
                    Change(*file.span(join), (listed,), where)
                    for node in ast.walk(statement.value)
                    if (join := _joined(node)) is not None
                    and (listed := _values_of(join)) is not None
                    and _are_even(file, scope, loop, listed)
                ]
    return found


def _joined(node: ast.AST) -> ast.Call | None:
    """The `tf.concat` that a `tf.reduce_mean` is of, of all its elements."""
    match node:
        case ast.Call(func=func, args=[ast.Call() as join], keywords=more) if ast.unparse(
            func
        ) == "tf.reduce_mean" and all(each.arg == "name" for each in more):
            return join if ast.unparse(join.func) == "tf.concat" else None
    return None


def _values_of(join: ast.Call) -> str | None:
    """The list that a call joins along the first dimension."""
    given: dict[str | None, ast.expr] = dict(
        zip(("values", "axis", "name"), join.args, strict=False)
    )
    given |= {each.arg: each.value for each in join.keywords}
    match given.get("values"), given.get("axis"):
        case ast.Name(id=listed), ast.Constant(value=0) if given.keys() <= {
            "values",
            "axis",
            "name",
        }:
            return listed
    return None


def _are_even(file: PlainFile, scope: Scope, loop: ast.For, listed: str) -> bool:
    """Whether every tower puts as many elements on a list as any other, and nothing else is on it."""
    made = filled(file, scope, loop, listed)
    begins = [
        each.value
        for each in once_in(scope)
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [listed]
    ]
    if made is None or not (len(begins) == 1 and isinstance(begins[0], ast.List)):
        return False
    value = _bound_once(scope, loop, made[0])
    if begins[0].elts or not isinstance(value, ast.Call):
        return False
    labels = [each.value for each in value.keywords if each.arg == "labels"]
    if ast.unparse(value.func) not in _ROW_BY_ROW or len(labels) != 1:
        return False
    part = labels[0]
    if isinstance(part, ast.Name):
        part = _bound_once(scope, loop, part.id) or part
    match part, loop:
        case (
            ast.Subscript(value=ast.Name(id=parts), slice=ast.Name(id=number)),
            ast.For(
                target=ast.Name(id=counter),
                iter=ast.Call(func=ast.Name(id="range" | "xrange"), args=[count], keywords=[]),
            ),
        ) if number == counter:
            return is_pythons(file, "range") and _are_equal_parts(file, scope, loop, parts, count)
    return False


def _bound_once(scope: Scope, loop: ast.For, name: str) -> ast.expr | None:
    """What a name is bound to, by one statement of a tower."""
    if bindings(scope, name) != 1:
        return None
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
                return value
            case ast.Assign(targets=[ast.Tuple(elts=bounds)], value=ast.Tuple(elts=values)) if len(
                bounds
            ) == len(values):
                for each, value in zip(bounds, values, strict=True):
                    if isinstance(each, ast.Name) and each.id == name:
                        return value
    return None


def _are_equal_parts(
    file: PlainFile, scope: Scope, loop: ast.For, parts: str, count: ast.expr
) -> bool:
    """Whether a name is bound to as many equal parts of a batch's rows as there are towers, which nothing changes."""
    if bindings(scope, parts) != 1 or parts in file.shared_between_functions:
        return False
    if isinstance(scope, ast.Module) and parts in file.words_of_users:
        return False
    picked = {
        id(each.value)
        for each in ast.walk(scope)
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)
    }
    read = [each for each in names_in(scope, parts) if isinstance(each.ctx, ast.Load)]
    if any(id(each) not in picked for each in read):
        return False
    numbers = {each.id for each in ast.walk(count) if isinstance(each, ast.Name)} - {"int", "len"}
    if any(own_bindings(scope, name) > 1 for name in numbers):
        return False
    if numbers & file.shared_between_functions:
        return False
    for statement in once_in(scope):
        match statement:
            case ast.Assign(targets=[ast.Name(id=bound)], value=ast.Call() as call) if (
                bound == parts
                and statement.lineno < loop.lineno
                and ast.unparse(call.func) == "tf.split"
            ):
                names = ("value", "num_or_size_splits", "axis")
                given: dict[str | None, ast.expr] = dict(zip(names, call.args, strict=False))
                given |= {each.arg: each.value for each in call.keywords}
                axis = given.get("axis", ast.Constant(0))
                number = given.get("num_or_size_splits")
                return (
                    len(call.args) <= len(names)
                    and isinstance(axis, ast.Constant)
                    and type(axis.value) is int
                    and axis.value == 0
                    and number is not None
                    and ast.unparse(number) == ast.unparse(count)
                )
    return False
