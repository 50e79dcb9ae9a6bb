"""A learning rate that is computed where the optimizer is made: `tf.train.AdamOptimizer(lr * 0.5)`."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, blocks
from towermigrate.recognize.python_scopes import own_nodes

_SCHEDULES = ("decay", "piecewise_constant")


def computed_rates(file: PlainFile) -> list[Change]:
    """Such an optimizer's rate as a statement in front of it."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                found += _named(file, scope, each, where)
    return found


def _named(file: PlainFile, scope: Scope, statement: ast.stmt, where: str) -> list[Change]:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return []
    call, margin = statement.value, file.alone(statement)
    func = ast.unparse(call.func)
    if not func.startswith("tf.train.") or not func.endswith("Optimizer") or margin is None:
        return []
    rates = [each.value for each in call.keywords if each.arg == "learning_rate"] + call.args[:1]
    if (
        len(rates) != 1
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
    ):
        return []
    (rate,) = rates
    if not isinstance(rate, ast.BinOp | ast.Call) or not _of_graph(scope, rate):
        return []
    if isinstance(rate, ast.Call) and ast.unparse(rate.func).endswith(_SCHEDULES):
        return []
    start, end = file.span(statement)
    if file.commented(start, end):
        return []
    name = file.fresh("learning_rate")
    first, last = file.span(rate)
    parts = (f"{name} = (", (first, last), f")\n{margin}", (start, first), name, (last, end))
    if rate.lineno == rate.end_lineno:
        parts = (f"{name} = ", (first, last), f"\n{margin}", (start, first), name, (last, end))
    return [Change(start, end, parts, where)]


def _of_graph(scope: Scope, rate: ast.expr) -> bool:
    """Whether a rate is computed by TensorFlow, or of what a call of it gave."""
    names = {each.id for each in ast.walk(rate) if isinstance(each, ast.Name)}
    made = {
        target.id
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign) and "tf." in ast.unparse(each.value)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return bool(names & made) or any(
        isinstance(each, ast.Call) and ast.unparse(each.func).startswith("tf.")
        for each in ast.walk(rate)
    )
