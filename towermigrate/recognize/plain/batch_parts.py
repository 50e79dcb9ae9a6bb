"""Rows of a dataset's batch that the towers take by slices: parts of a split, where every batch has just their rows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from towermigrate.recognize.plain.bounds import sum_of
from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    settled,
    stores,
)
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.given import given as as_given
from towermigrate.recognize.plain.given import whole_constants
from towermigrate.recognize.python_scopes import own_nodes

_ITERATORS = ("make_one_shot_iterator", "make_initializable_iterator")
# What leaves every batch as it is.
_KEEPS = ("prefetch", "repeat", "with_options")
_SOURCE = re.compile(r"tf\.data\.[\w.]+")
# What leaves data that never ends without an end.
_ENDLESS = ("map", "shuffle", "prefetch", "filter", "cache", "skip", "repeat", "with_options")


def batch_parts(file: PlainFile) -> list[Change]:
    """`x[i * 4:(i + 1) * 4]` as `tf.split(x, 2)[i]`, of `x, y = iterator.get_next()` in batches of eight rows, never fewer.

    TensorFlow 1 gives both the same rows. A batch that may have fewer, at the end of the data, is left as it is.
    """
    if ".get_next()" not in file.text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _of_loop(file, scope, loop, where)
    ]


def _of_loop(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> list[Change]:
    count = _count(loop.iter)
    if (
        count is None
        or not isinstance(loop.target, ast.Name)
        or bindings(scope, loop.target.id) != 1
    ):
        return []
    if file.commented(*file.span(count)) or "\n" in file.of(count):
        return []
    number = loop.target.id
    rows: dict[str, ast.expr | None] = {}
    found: list[Change] = []
    own = {id(each) for each in own_nodes(scope)}
    for each in ast.walk(loop):
        if id(each) not in own or not isinstance(each, ast.Subscript):
            continue
        if not isinstance(each.value, ast.Name) or not isinstance(each.ctx, ast.Load):
            continue
        size = _size(each.slice, number)
        if size is None or not all(_stays(file, scope, one) for one in (size, count)):
            continue
        name = each.value.id
        if name not in rows:
            rows[name] = _rows_of(file, scope, name)
        whole = rows[name]
        if whole is None or not _stays(file, scope, whole):
            continue
        wanted = ast.BinOp(left=size, op=ast.Mult(), right=count)
        if _number(file, whole) != _number(file, wanted) or _number(file, whole) is None:
            continue
        if "\n" in file.of(each) or file.commented(*file.span(each)):
            continue
        text = f"tf.split({name}, {file.of(count)})[{number}]"
        found.append(Change(*file.span(each), (text,), where))
    return found


def _count(node: ast.expr) -> ast.expr | None:
    """`n` of `range(n)`."""
    match node:
        case ast.Call(func=ast.Name(id="range" | "xrange"), args=[count], keywords=[]):
            return count
    return None


def _size(node: ast.expr, number: str) -> ast.expr | None:
    """`b` of `i * b:(i + 1) * b`, the only form that is left where the bounds were made plain."""
    if not isinstance(node, ast.Slice) or node.lower is None or node.upper is None or node.step:
        return None
    lower, upper = node.lower, node.upper
    if not isinstance(lower, ast.BinOp) or not isinstance(lower.op, ast.Mult):
        return None
    for one, other in ((lower.left, lower.right), (lower.right, lower.left)):
        if isinstance(one, ast.Name) and one.id == number:
            next_one = ast.BinOp(left=one, op=ast.Add(), right=ast.Constant(value=1))
            end = sum_of(ast.BinOp(left=next_one, op=ast.Mult(), right=other), {})
            if end is not None and end == sum_of(upper, {}):
                return other
    return None


def _stays(file: PlainFile, scope: Scope, node: ast.expr) -> bool:
    """Whether an expression of numbers is the same wherever it stands."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            if not settled(file, each):
                return False
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            if each.id in file.shared_between_functions or bindings(scope, each.id) > 1:
                return False
            if not bindings(scope, each.id) and len(stores(file.tree, each.id)) > 1:
                return False
    return True


def _number(file: PlainFile, node: ast.expr) -> Mapping[tuple[str, ...], int] | None:
    """A number as a sum of products, in which constants of the module are numbers."""
    return sum_of(as_given(whole_constants(file), node)[0], {})


# ---- the batches -------------------------------------------------------------------------------------


def _rows_of(file: PlainFile, scope: Scope, name: str) -> ast.expr | None:
    """How many rows each batch has that a name is bound to, once, by `get_next()`."""
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return None
    value = _bound_to(scope, name)
    given: Mapping[str, ast.expr] = {}
    caller = scope
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        made = _function(file, value.func.id)
        if made is None:
            return None
        arguments = _arguments(made, value)
        returned = [each for each in ast.walk(made) if isinstance(each, ast.Return)]
        if arguments is None or len(returned) != 1 or returned[0] is not made.body[-1]:
            return None
        given, scope, value = arguments, made, returned[0].value
        if isinstance(value, ast.Tuple) and all(isinstance(one, ast.Name) for one in value.elts):
            names = [one.id for one in value.elts if isinstance(one, ast.Name)]
            sources = {ast.dump(each) for one in names if (each := _bound_to(scope, one))}
            once = all(bindings(scope, one) == 1 for one in names)
            value = _bound_to(scope, names[0]) if once and len(sources) == 1 else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if value.func.attr != "get_next" or value.args or value.keywords:
        return None
    rows = _rows(list(_calls(scope, value.func.value, 0)))
    if rows is None or scope is caller:
        return rows
    for one in ast.walk(rows):
        if isinstance(one, ast.Name):
            own, outer = bindings(scope, one.id), bindings(caller, one.id)
            if own != 1 if one.id in given else own or outer:
                return None  # it may be another number there
    return as_given(given, rows)[0]


def _bound_to(scope: Scope, name: str) -> ast.expr | None:
    """What a name, or a tuple with it, is bound to by the one statement that binds it."""
    for each in once_in(scope):
        if isinstance(each, ast.Assign) and len(each.targets) == 1:
            target = each.targets[0]
            if isinstance(target, ast.Name) and target.id == name:
                return each.value
            if isinstance(target, ast.Tuple) and not isinstance(each.value, ast.Tuple):
                if any(isinstance(one, ast.Name) and one.id == name for one in target.elts):
                    return each.value
    return None


def _function(file: PlainFile, name: str) -> ast.FunctionDef | None:
    found = [
        each for each in file.tree.body if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    if len(found) != 1 or bindings(file.tree, name) != 1 or found[0].decorator_list:
        return None
    return found[0]


def _arguments(function: ast.FunctionDef, call: ast.Call) -> Mapping[str, ast.expr] | None:
    """What the parameters of a function stand for in a call."""
    spec = function.args
    if spec.vararg or spec.kwarg or spec.posonlyargs or spec.kwonlyargs:
        return None
    names = [each.arg for each in spec.args]
    if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(names):
        return None
    given = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
    given.update(zip(names, call.args, strict=False))
    for each in call.keywords:
        if each.arg not in names:
            return None
        given[each.arg] = each.value
    return given if len(given) == len(names) else None


def _calls(scope: Scope, node: ast.expr | None, depth: int) -> Iterator[ast.Call | None]:
    """The calls of a chain of datasets, the last first, through names; None for what is not understood."""
    if depth > 30:
        yield None
    elif isinstance(node, ast.Name):
        made = [
            each
            for each in once_in(scope)
            if isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Name)
            and each.targets[0].id == node.id
        ]
        before = [each for each in made if (each.end_lineno or 0) < node.lineno]
        if len(made) != len(stores(scope, node.id)) or not before:
            yield None
        else:
            yield from _calls(scope, before[-1].value, depth + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _ITERATORS and node.args:  # `tf.data.make_one_shot_iterator(dataset)`
            yield from _calls(scope, node.args[0], depth + 1)
            return
        yield node
        if not _SOURCE.fullmatch(ast.unparse(node.func)):
            yield from _calls(scope, node.func.value, depth + 1)
    else:
        yield None


def _rows(calls: list[ast.Call | None]) -> ast.expr | None:
    """The rows of every batch, where all have as many: the rest is dropped, or the data never ends."""
    known = [each for each in calls if each is not None and isinstance(each.func, ast.Attribute)]
    if len(known) != len(calls) or not known or not _SOURCE.fullmatch(ast.unparse(known[-1].func)):
        return None
    methods = [each.func.attr for each in known if isinstance(each.func, ast.Attribute)]
    place = next(
        (number for number, each in enumerate(methods) if each not in (*_ITERATORS, *_KEEPS)), 0
    )
    rows, whole = _batch(known[place])
    for each, method in zip(known[place + 1 :], methods[place + 1 :], strict=True):
        if whole or method not in _ENDLESS:
            break
        whole = method == "repeat" and not each.args and not each.keywords
    return rows if whole else None


def _batch(call: ast.Call) -> tuple[ast.expr | None, bool]:
    """How many rows a batch is asked to have, and whether one with fewer is dropped."""
    assert isinstance(call.func, ast.Attribute)
    last = call
    if call.func.attr == "apply" and len(call.args) == 1 and isinstance(call.args[0], ast.Call):
        last = call.args[0]
    kind = ast.unparse(last.func).rpartition(".")[2]
    places = {"batch": 0, "batch_and_drop_remainder": 0, "map_and_batch": 1}
    if kind not in places or any(isinstance(each, ast.Starred) for each in last.args):
        return None, False
    given = {each.arg: each.value for each in last.keywords}
    rows = given.get("batch_size")
    if rows is None and len(last.args) > places[kind]:
        rows = last.args[places[kind]]
    drops = given.get("drop_remainder")
    if drops is None and kind == "batch" and len(last.args) == 2:
        drops = last.args[1]
    whole = isinstance(drops, ast.Constant) and drops.value is True
    return rows, whole or kind == "batch_and_drop_remainder"
