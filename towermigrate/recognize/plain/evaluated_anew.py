"""Names of the towers that an evaluation behind them binds anew: `logits = net(X)` there gets a name of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import loops_of_towers, once_in, only_here
from towermigrate.recognize.plain.feeds import mentions
from towermigrate.recognize.python_scopes import own_nodes

_UPDATES = re.compile(r"\.(apply_gradients|minimize)$")
_OF_SESSIONS = re.compile(r"(^|\.)(run|eval|managed_session|Supervisor|\w*Session)$")


def evaluated_anew(file: PlainFile) -> list[Change]:
    """What is built behind the towers, and in front of the session, by functions of the program and bound to a tower's name."""
    if file.finds_names_by_text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        stored = [
            each
            for each in own_nodes(scope)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        ]
        inside = {id(each) for each in ast.walk(loop)}
        of_towers = {each.id for each in stored if id(each) in inside}
        done: set[str] = set()
        evaluated: set[str] = set()
        for statement in sorted(_built(scope, loop), key=lambda one: one.lineno):
            if not _is_evaluated(statement, evaluated):
                continue
            for target in _targets(statement):
                evaluated.add(target.id)
                if target.id in of_towers - done:
                    done.add(target.id)
                    found += _renamed(file, scope, inside, statement, target, where)
    return found


def _built(scope: Scope, loop: ast.For) -> Iterator[ast.Assign]:
    """The statements of a scope between its last update and its session that bind what they build."""
    calls = {
        (each.lineno, ast.unparse(each.func))
        for each in own_nodes(scope)
        if isinstance(each, ast.Call) and each.lineno > (loop.end_lineno or loop.lineno)
    }
    behind = max((line for line, called in calls if _UPDATES.search(called)), default=10**9)
    opened = min((line for line, called in calls if _OF_SESSIONS.search(called)), default=10**9)
    for each in once_in(scope):
        if isinstance(each, ast.Assign) and behind < each.lineno < opened:
            yield each


def _is_evaluated(statement: ast.Assign, evaluated: set[str]) -> bool:
    """Whether what is bound is of functions of the program, or made of that; what TensorFlow makes of the towers' keeps its name."""
    value = statement.value
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    return not re.match(r"(tf\.|sum$|len$)", called) or mentions(value, evaluated)


def _targets(statement: ast.Assign) -> list[ast.Name]:
    if len(statement.targets) != 1:
        return []
    (target,) = statement.targets
    each = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [one for one in each if isinstance(one, ast.Name)]
    return names if len(names) == len(each) == len({one.id for one in names}) else []


def _renamed(
    file: PlainFile,
    scope: Scope,
    inside: set[int],
    statement: ast.Assign,
    target: ast.Name,
    where: str,
) -> list[Change]:
    name, end = target.id, file.end(statement)
    own = [each for each in own_nodes(scope) if isinstance(each, ast.Name) and each.id == name]
    stored = [each for each in own if not isinstance(each.ctx, ast.Load)]
    if bindings(scope, name) != len(stored) or name in file.shared_between_functions:
        return []
    if not only_here(file, scope, name):
        return []
    if any(isinstance(each.ctx, ast.Del) for each in stored):
        return []
    # Whatever else binds it stands in the towers, or behind this statement.
    outside = [each for each in stored if id(each) not in inside and each is not target]
    if any(file.start(each) < end for each in outside):
        return []
    later = [each for each in own if file.start(each) > end]
    if any(id(each) in inside for each in later):
        return []
    new = file.fresh(name)
    return [Change(*file.span(each), (new,), where) for each in (target, *later)]
