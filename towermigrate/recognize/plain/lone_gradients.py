"""Lists of gradients without their variables, which are put beside them when they are applied: lists of pairs, as most have them.

`tower_grads.append(grads)`, `grads = average(tower_grads)` and `opt.apply_gradients(zip(grads, params))` are, by pairs,
`tower_grads.append(list(zip(grads, params)))`, an average of pairs, and `opt.apply_gradients(grads)`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.plain.averaged import place_before, unit_of
from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    own_calls,
    stores,
)
from towermigrate.recognize.plain.collected import is_pythons
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.source import Function, Tree
from towermigrate.towers.averages import Reduction, averaging_alone

_REDUCED = {"mean": "reduce_mean", "sum": "reduce_sum"}


def lone_gradients(tree: Tree, file: PlainFile) -> list[Change]:
    """Averages over towers of gradients alone, as averages of pairs."""
    if "tf.gradients" not in file.text and ".gradients(" not in file.text:
        return []
    if "apply_gradients" not in file.text or file.finds_names_by_text:
        return []
    source, found = tree.file(file.path), list[Change]()
    if source is None:
        return []
    for where, scope in file.scopes:
        for call in own_calls(scope):
            if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.Name):
                continue
            if not isinstance(call.func, ast.Name | ast.Attribute):
                continue
            applied = _applied(file, scope, call)
            root = ast.unparse(call.func).partition(".")[0]
            if applied is None or scope is not file.tree and bindings(scope, root):
                continue
            function = tree.resolve(source, cst.parse_expression(ast.unparse(call.func)))
            if function is None or function.is_method:
                continue
            line, name = function.file.line(function.node), function.node.name.value
            reduce = averaging_alone(tree.sources, function.file.path, line, name)
            if reduce is not None:
                found += _changes(file, where, scope, call, applied, function, reduce)
    return found


@dataclass(frozen=True)
class _Applied:
    """An average and the `zip` that puts it and the variables together; `statement` is the one that averages.

    `name` is what the average is bound to, None where it is applied at once; `often` says that it is read elsewhere too.
    """

    statement: ast.stmt
    zipped: ast.Call
    variables: ast.expr
    name: str | None
    often: bool


def _applied(file: PlainFile, scope: Scope, call: ast.Call) -> _Applied | None:
    """What becomes of the average that a call gives; None where it is not applied once, beside the variables."""
    statement = next(
        (each for each in own_nodes(scope) if isinstance(each, ast.Assign | ast.Expr) and _holds(each, call)),
        None,
    )  # fmt: skip
    if statement is None or file.alone(statement) is None:
        return None
    name: str | None = None
    if isinstance(statement, ast.Assign) and statement.value is call:
        (target, *more) = statement.targets
        if more or not isinstance(target, ast.Name):
            return None
        name = target.id
    zips = [
        (inner, inner.args[0], inner.args[1])
        for update in own_calls(scope)
        if isinstance(update.func, ast.Attribute) and update.func.attr == "apply_gradients"
        if (inner := _zip_of(update)) is not None
    ]
    for inner, first, second in zips:
        of_name = isinstance(first, ast.Name) and first.id == name and inner.lineno > call.lineno
        if first is not call and not of_name:
            continue
        often = False
        if name is not None:
            later = [each for each in file.uses(name) if each.lineno > call.lineno]
            often = any(each is not first for each in later)
        return _Applied(statement, inner, second, name, often)
    return None


def _zip_of(update: ast.Call) -> ast.Call | None:
    """`zip(grads, variables)` of `opt.apply_gradients(zip(grads, variables))`, in a `list` too."""
    inner = update.args[0] if update.args else None
    for keyword in update.keywords:
        inner = keyword.value if keyword.arg == "grads_and_vars" else inner
    if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "list" and len(inner.args) == 1:
        inner = inner.args[0]
    if not isinstance(inner, ast.Call) or ast.unparse(inner.func) != "zip" or inner.keywords:
        return None
    starred = any(isinstance(each, ast.Starred) for each in inner.args)
    return inner if len(inner.args) == 2 and not starred else None


def _holds(statement: ast.stmt, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(statement))


def _changes(
    file: PlainFile,
    where: str,
    scope: Scope,
    call: ast.Call,
    applied: _Applied,
    function: Function,
    reduce: Reduction,
) -> list[Change]:
    (given,) = call.args
    assert isinstance(given, ast.Name)
    appended = _appended(file, scope, given.id, applied.variables)
    tensorflow = _tensorflow(file)
    if (
        appended is None
        or tensorflow is None
        or not all(is_pythons(file, name) for name in ("zip", "list"))
    ):
        return []
    pairs = f"[({tensorflow}.{_REDUCED[reduce]}({tensorflow}.stack([g for g, _ in pairs]), 0), pairs[0][1]) for pairs in zip(*{{}})]"
    made = _own_function(file, call, function)
    found: list[Change] = []
    name: str | None = None
    if made is not None:
        parameter = function.node.params.params[0].name.value
        start, end = file.start(made.body[0]), file.end(made.body[-1])
        found.append(Change(start, end, (f"return {pairs.format(parameter)}",), where))
    else:
        place = place_before(file, scope, applied.statement)
        if place is None:
            return []
        name = file.fresh("average_over_towers")
        text = (
            f"\n\ndef {name}(tower_grads):\n{unit_of(file)}return {pairs.format('tower_grads')}\n"
        )
        found.append(Change(place, place, (text,), where))
    start, end = file.span(appended)
    variables = file.span(applied.variables)
    found.append(Change(start, end, ("list(zip(", (start, end), ", ", variables, "))"), where))
    function_part: Part = file.span(call.func) if name is None else name
    average: tuple[Part, ...] = (function_part, (file.end(call.func), file.end(call)))
    zipped = file.span(applied.zipped)
    if applied.name is None:
        return [*found, Change(*zipped, average, where)]
    first, second = applied.zipped.args
    if not applied.often:
        return [
            *found,
            Change(*file.span(call), average, where),
            Change(*zipped, (file.span(first),), where),
        ]
    averaged, own = file.fresh("averaged"), file.fresh("averaged_variables")
    span, margin = file.span(applied.statement), file.alone(applied.statement)
    apart = (
        f"\n{margin}{applied.name} = [g for g, _ in {averaged}]"
        f"\n{margin}{own} = [v for _, v in {averaged}]"
    )
    return [
        *found,
        Change(*span, (f"{averaged} = ", *average, apart), where),
        Change(*file.span(second), (own,), where),
    ]


def _appended(file: PlainFile, scope: Scope, name: str, variables: ast.expr) -> ast.expr | None:
    """What a loop puts on a list of gradients; None where anything else is done with the list, or the variables are others."""
    loops = [
        each
        for each in own_nodes(scope)
        if isinstance(each, ast.For)
        and any(_is_append(node, name) for node in ast.walk(each))
    ]  # fmt: skip
    if len(loops) != 1 or len(stores(scope, name)) != 1 or name in file.shared_between_functions:
        return None
    calls = [node for node in ast.walk(loops[0]) if _is_append(node, name)]
    uses = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name]
    if len(calls) != 1 or len(uses) != 3:  # made, filled, averaged
        return None
    (append,) = calls
    assert isinstance(append, ast.Call)
    if file.commented(*file.span(append)):
        return None
    wanted = ast.unparse(variables)
    taken = [
        node
        for node in ast.walk(loops[0])
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".gradients")
    ]
    of = [[*node.args[1:2], *(k.value for k in node.keywords if k.arg == "xs")] for node in taken]
    if not of or any(len(each) != 1 or ast.unparse(each[0]) != wanted for each in of):
        return None
    if isinstance(variables, ast.Name):
        inside = stores(loops[0], variables.id)
        if len(stores(scope, variables.id)) != 1 or variables.id in file.shared_between_functions:
            return None
        if inside and any(each.lineno > append.lineno for each in inside):
            return None
        # Nothing may change the list between the towers and the update.
        zipped = [each[0] for each in of] + [variables]
        reads = [
            each
            for each in file.uses(variables.id)
            if isinstance(each.ctx, ast.Load) and not any(each is known for known in zipped)
        ]
        over = [
            each.iter for each in ast.walk(scope) if isinstance(each, ast.For | ast.comprehension)
        ]
        if any(not any(each is known for known in over) for each in reads):
            return None
    elif not re.fullmatch(r"[\w.]+\.trainable_variables\([^()]*\)", wanted):
        return None
    return append.args[0]


def _is_append(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == f"{name}.append"
        and len(node.args) == 1
        and not node.keywords
    )


def _own_function(file: PlainFile, call: ast.Call, function: Function) -> ast.FunctionDef | None:
    """The function that averages, where it stands at the level of this file and nothing else uses it."""
    name = function.node.name.value
    if function.file.path != file.path or name in file.words_of_users:
        return None
    made = [
        each for each in file.tree.body if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    if len(made) != 1 or [id(each) for each in file.uses(name)] != [id(call.func)]:
        return None
    (only,) = made
    return None if only.body[0].lineno == only.lineno else only


def _tensorflow(file: PlainFile) -> str | None:
    """The name that the file has for TensorFlow."""
    for each in file.tree.body:
        if isinstance(each, ast.Import):
            for alias in each.names:
                if alias.name in ("tensorflow", "tensorflow.compat.v1") and alias.asname:
                    return alias.asname
                if alias.name == "tensorflow":
                    return alias.name
    return None
