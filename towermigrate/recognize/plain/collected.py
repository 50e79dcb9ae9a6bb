"""What towers collect without a name, and names of the towers that are bound anew behind them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, blocks
from towermigrate.recognize.python_scopes import own_nodes

_GRADIENTS = ("compute_gradients", "gradients", "minimize")
BY_TEXT = frozenset({"locals", "vars", "globals", "eval", "exec", "dir"})
"""What finds names by a text."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _towers(body: Sequence[ast.stmt]) -> list[tuple[int, ast.For]]:
    """The loops of a block that compute gradients, each with its number."""
    return [
        (number, each)
        for number, each in enumerate(body)
        if isinstance(each, ast.For)
        and any(isinstance(one, ast.Attribute) and one.attr in _GRADIENTS for one in ast.walk(each))
    ]


# ---- what is collected -------------------------------------------------------------------------------


def collected_values(file: PlainFile) -> list[Change]:
    """`accuracies.append(tf.reduce_mean(hits))` as `accuracy = tf.reduce_mean(hits)` and `accuracies.append(accuracy)`."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for _, loop in _towers(body) if always else ():
                for each in ast.walk(loop):
                    found += _named(file, each, where)
    return found


def _named(file: PlainFile, statement: ast.AST, where: str) -> list[Change]:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return []
    call = statement.value
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
        return []
    if not isinstance(call.func.value, ast.Name) or len(call.args) != 1 or call.keywords:
        return []
    value, margin = call.args[0], file.alone(statement)
    if not isinstance(value, ast.Call | ast.BinOp) or margin is None:
        return []
    if any(isinstance(one, ast.Attribute) and one.attr in _GRADIENTS for one in ast.walk(value)):
        return []
    start, end = file.span(statement)
    if file.commented(start, end):
        return []
    name = file.fresh(_one_of(call.func.value.id))
    given = file.span(value)
    parts = (f"{name} = ", given, f"\n{margin}", (start, given[0]), name, (given[1], end))
    return [Change(start, end, parts, where)]


def _one_of(names: str) -> str:
    """`accuracy` of `accuracies`."""
    for many, one in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if names.endswith(many) and len(names) > len(many) + 1:
            return names[: -len(many)] + one
    return names.removesuffix("_list") if names.endswith("_list") else f"{names}_value"


# ---- names that mean two things ----------------------------------------------------------------------


def bound_anew(file: PlainFile) -> list[Change]:
    """`loss = tf.reduce_mean(losses)` behind towers that have a `loss`: the mean gets a name of its own."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for number, loop in _towers(body) if always else ():
                for each in body[number + 1 :]:
                    found += _renamed(file, scope, loop, each, where)
    return found


def _renamed(
    file: PlainFile, scope: Scope, loop: ast.For, statement: ast.stmt, where: str
) -> list[Change]:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(statement.value, ast.Call | ast.BinOp):
        return []
    name, end = target.id, statement.end_lineno or statement.lineno
    own = [each for each in own_nodes(scope) if isinstance(each, ast.Name) and each.id == name]
    in_loop = {id(each) for each in ast.walk(loop)}
    stored = [each for each in own if not isinstance(each.ctx, ast.Load)]
    if not any(id(each) in in_loop for each in stored):
        return []
    if any(id(each) not in in_loop and each is not target for each in stored):
        return []
    if name in file.shared_between_functions or file.words & BY_TEXT:
        return []
    if not _only_here(file, scope, name):
        return []
    behind = [each for each in own if isinstance(each.ctx, ast.Load) and each.lineno > end]
    same_line = [each for each in own if each.lineno == end and each.lineno > statement.lineno]
    if same_line or file.alone(statement) is None:
        return []
    new = file.fresh(f"{_how(statement.value)}_{name}")
    return [Change(*file.span(each), (new,), where) for each in (target, *behind)]


def _only_here(file: PlainFile, scope: Scope, name: str) -> bool:
    """Whether no function in a scope, and nobody else, reads one of its names; comprehensions that bind it count too."""
    for each in own_nodes(scope):
        if isinstance(each, _FUNCTIONS) and not isinstance(scope, ast.Module):
            if any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(each)):
                return False
        if isinstance(each, _COMPREHENSIONS):
            targets = [one for part in each.generators for one in ast.walk(part.target)]
            if any(isinstance(one, ast.Name) and one.id == name for one in targets):
                return False
    if not isinstance(scope, ast.Module):
        return True
    if name in file.words_of_users:
        return False
    functions = [each for each in ast.walk(file.tree) if isinstance(each, _FUNCTIONS)]
    return not any(_reads_outer(each, name) for each in functions)


def _reads_outer(function: ast.AST, name: str) -> bool:
    """Whether a function may read a name of the module: it names it, and does not bind it itself."""
    names = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name]
    own = any(not isinstance(one.ctx, ast.Load) for one in names)
    own = own or any(isinstance(one, ast.arg) and one.arg == name for one in ast.walk(function))
    return bool(names) and not own


def _how(value: ast.expr) -> str:
    """`mean` of `tf.reduce_mean(…)` and of a division, else `total`."""
    if isinstance(value, ast.BinOp):
        return "mean" if isinstance(value.op, ast.Div) else "total"
    func = (
        value.func.attr
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
        else ""
    )
    return "mean" if func == "reduce_mean" else "total"
