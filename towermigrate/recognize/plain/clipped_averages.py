"""Averaging functions that also limit what they average: `averaged.append((tf.clip_by_norm(grad, 1.0), variable))`.

The limit goes behind the call, `grads = [(tf.clip_by_norm(grad, 1.0), var) for grad, var in grads]`, where it is the same: of
one mean after the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import (
    ALWAYS,
    Change,
    PlainFile,
    Scope,
    bindings,
    names_in,
)
from towermigrate.recognize.python_scopes import own_nodes

_LIMITS = ("tf.clip_by_value", "tf.clip_by_norm")


def clipped_averages(file: PlainFile) -> list[Change]:
    """The limits of every averaging function that is called once."""
    if not any(each in file.text for each in _LIMITS):
        return []
    found: list[Change] = []
    for each in file.tree.body:
        if isinstance(each, ast.FunctionDef):
            found += _of_function(file, each)
    return found


def _of_function(file: PlainFile, function: ast.FunctionDef) -> list[Change]:
    appended = _appended(function)
    if appended is None:
        return []
    loop, place, first = appended
    limits: list[ast.Call] = []
    changes: list[Change] = []
    if isinstance(first, ast.Call) and _is_limit(file, function, first):
        if _has_comment(file, loop, place):
            return []
        limits.append(first)
        changes.append(Change(*file.span(first), (file.span(first.args[0]),), ALWAYS))
    elif isinstance(first, ast.Name):
        for statement in reversed(loop.body[:place]):
            if not _limits(file, function, statement, first.id):
                # What reads the gradient behind its limit would find it without.
                if names_in(statement, first.id) and first not in ast.walk(statement):
                    break
                continue
            assert isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
            # What the author says of a limit would go with the function.
            if file.alone(statement) is None or _has_comment(
                file, loop, loop.body.index(statement)
            ):
                return []
            limits.append(statement.value)
            changes.append(Change(*file.without(statement), (), ALWAYS))
    found = _only_call(file, function) if limits else None
    if found is None or any(file.commented(*file.span(each)) for each in limits):
        return []
    scope, call = found
    target, margin = ast.unparse(call.targets[0]), file.alone(call)
    grad, variable = file.free(scope, "grad"), file.free(scope, "var")
    lines = []
    for limit in reversed(limits):
        of = ", ".join([grad, *map(file.of, limit.args[1:])])
        called = f"{ast.unparse(limit.func)}({of})"
        lines.append(
            f"\n{margin}{target} = [({called}, {variable}) for {grad}, {variable} in {target}]"
        )
    return [*changes, Change(file.end(call), file.end(call), tuple(lines), ALWAYS)]


def _appended(function: ast.FunctionDef) -> tuple[ast.For, int, ast.expr] | None:
    """The loop over the variables of a function that returns a list of pairs, where in it a pair is appended, and its gradient."""
    loops = [each for each in function.body if isinstance(each, ast.For)]
    if len(loops) != 1 or len(function.args.args) != 1:
        return None
    (loop,) = loops
    if ast.unparse(loop.iter) != f"zip(*{function.args.args[0].arg})":
        return None
    calls = [
        each
        for each in own_nodes(function)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "append"
        and len(each.args) == 1
        and isinstance(each.args[0], ast.Tuple | ast.List | ast.Name)
    ]
    for place, statement in enumerate(loop.body):
        if not isinstance(statement, ast.Expr) or statement.value not in calls:
            continue
        assert isinstance(statement.value, ast.Call)
        pair = statement.value.args[0]
        if isinstance(pair, ast.Name):
            pair = _bound_before(loop.body[:place], pair.id) or pair
        if not isinstance(pair, ast.Tuple | ast.List) or len(pair.elts) != 2:
            continue
        list_name = ast.unparse(statement.value.func)
        returned = [each for each in own_nodes(function) if isinstance(each, ast.Return)]
        alike = [each for each in calls if ast.unparse(each.func) == list_name]
        values = [ast.unparse(each.value) for each in returned if each.value is not None]
        if len(alike) == 1 and values == [list_name.rpartition(".")[0]]:
            return loop, place, pair.elts[0]
    return None


def _has_comment(file: PlainFile, loop: ast.For, place: int) -> bool:
    """Whether a comment stands above a statement of the loop, in it or behind it on its line."""
    before = loop.body[place - 1] if place else loop.iter
    line_end = file.text.find("\n", file.end(loop.body[place]))
    return file.commented(file.end(before), line_end if line_end >= 0 else len(file.text))


def _bound_before(body: list[ast.stmt], name: str) -> ast.expr | None:
    """What the last statement binds a name to, if it is that: `pair = (grad, variable)`."""
    last = body[-1] if body else None
    if isinstance(last, ast.Assign) and [ast.unparse(each) for each in last.targets] == [name]:
        return last.value
    return None


def _limits(file: PlainFile, function: ast.FunctionDef, node: ast.stmt, name: str) -> bool:
    """Whether a statement is `grad = tf.clip_by_norm(grad, 1.0)`."""
    return (
        isinstance(node, ast.Assign)
        and [ast.unparse(each) for each in node.targets] == [name]
        and isinstance(node.value, ast.Call)
        and _is_limit(file, function, node.value)
        and ast.unparse(node.value.args[0]) == name
    )


def _is_limit(file: PlainFile, function: ast.FunctionDef, call: ast.Call) -> bool:
    """Whether a gradient is limited by numbers that are the same wherever they are read."""
    if ast.unparse(call.func) not in _LIMITS or call.keywords or len(call.args) < 2:
        return False
    return all(_is_number(file, function, each) for each in call.args[1:])


def _is_number(file: PlainFile, function: ast.FunctionDef, node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(file, function, operand)
        case ast.Name(id=name):
            if bindings(function, name) or bindings(file.tree, name) != 1:
                return False
            return name not in file.shared_between_functions and not file.finds_names_by_text
    return False


def _only_call(file: PlainFile, function: ast.FunctionDef) -> tuple[Scope, ast.Assign] | None:
    """`grads = average_gradients(tower_grads)`, where nothing else uses the function, and where a number means the same."""
    name = function.name
    uses = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
    if len(uses) != 1 or name in file.words_of_users or bindings(file.tree, name) != 1:
        return None
    found = [
        (scope, each)
        for _, scope in file.scopes
        for each in own_nodes(scope)
        if _calls(each, uses[0])
    ]
    if len(found) != 1:
        return None
    scope, call = found[0]
    assert isinstance(call, ast.Assign)
    named = _numbers(function)
    if any(bindings(scope, each) for each in named) and scope is not file.tree:
        return None
    if file.alone(call) is None or file.finds_names_by_text:
        return None
    return scope, call


def _calls(node: ast.AST, use: ast.Name) -> bool:
    return (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and node.value.func is use
    )


def _numbers(function: ast.FunctionDef) -> Iterator[str]:
    """The names that limits of a function are given by."""
    for each in own_nodes(function):
        if isinstance(each, ast.Call) and ast.unparse(each.func) in _LIMITS:
            yield from (one.id for one in each.args[1:] if isinstance(one, ast.Name))
