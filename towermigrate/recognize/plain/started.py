"""Runs that only start something: one for each of what they start, by its own name."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, run_of
from towermigrate.recognize.python_scopes import own_nodes

_INITIALIZERS = frozenset(
    "tf.global_variables_initializer tf.local_variables_initializer tf.initialize_all_variables "
    "tf.initialize_local_variables tf.tables_initializer tf.initialize_all_tables".split()
)


def named_starts(file: PlainFile) -> list[Change]:
    """`start = iterator.initializer`, which runs are given: the attribute itself in each of them."""
    if ".initializer" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for each in own_nodes(scope):
            match each:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Attribute(value=ast.Name(id=owner), attr="initializer") as value,
                ):
                    found += _by_itself(file, scope, each, name, owner, file.of(value), where)
    return found


def _by_itself(
    file: PlainFile,
    scope: Scope,
    statement: ast.Assign,
    name: str,
    owner: str,
    text: str,
    where: str,
) -> list[Change]:
    if bindings(scope, name) != 1 or bindings(scope, owner) != 1 or file.alone(statement) is None:
        return []
    if name in file.shared_between_functions or file.finds_names_by_text:
        return []
    if isinstance(scope, ast.Module) and name in file.words_of_users:
        return []
    asked = {
        id(one)
        for each in own_nodes(scope)
        if isinstance(each, ast.Call) and (run := run_of(each)) is not None and run.args
        for one in (
            run.args[0].elts if isinstance(run.args[0], ast.List | ast.Tuple) else [run.args[0]]
        )
    }
    uses = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
    if not uses or not all(id(each) in asked for each in uses):
        return []
    gone = Change(*file.without(statement), (), where)
    return [gone, *(Change(*file.span(each), (text,), where) for each in uses)]


def apart_starts(file: PlainFile) -> list[Change]:
    """`sess.run([tf.global_variables_initializer(), iterator.initializer])` as two runs; a `tf.group` of them as well."""
    if "initializer" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for each in own_nodes(scope):
            if not isinstance(each, ast.Expr):
                continue
            run = run_of(each.value)
            if run is None or len(run.args) != 1 or run.keywords:
                continue
            started = _started(run.args[0])
            margin, span = file.alone(each), file.span(each)
            if margin is None or len(started) < 2 or file.commented(*span):
                continue
            if all(_is_start(scope, one) for one in started):
                session = file.of(run.func)
                rows = [f"{session}({file.of(one)})" for one in started]
                if not any("\n" in row for row in rows):
                    found.append(Change(*span, (f"\n{margin}".join(rows),), where))
    return found


def _started(node: ast.expr) -> list[ast.expr]:
    """What a list, or a group, of operations holds."""
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "tf.group" and not node.keywords:
        return node.args
    return []


def _is_start(scope: Scope, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        made = [
            each.value
            for each in own_nodes(scope)
            if isinstance(each, ast.Assign)
            and [ast.unparse(one) for one in each.targets] == [node.id]
        ]
        return len(made) == bindings(scope, node.id) == 1 and _is_initializer(made[0])
    return _is_initializer(node)


def _is_initializer(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "initializer" and isinstance(node.value, ast.Name)
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in _INITIALIZERS
        and not node.args
        and not node.keywords
    )
