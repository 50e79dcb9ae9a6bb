"""`tf.split(X, n)[i]` in a tower: a part of what is split once, in front of the towers."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.plain.tower_loops import split_count
from towermigrate.recognize.python_scopes import own_nodes


def own_splits(file: PlainFile) -> list[Change]:
    """Every split of a tower's own, of what the loop does not bind, as a list of parts that is made before the loop."""
    if "tf.split(" not in file.text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _of_loop(file, scope, loop, where)
    ]


def _of_loop(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> list[Change]:
    margin = file.alone(loop)
    if margin is None:
        return []
    own = {id(each) for each in own_nodes(scope)}
    inside = [each for each in ast.walk(loop) if id(each) in own]
    bound = {
        each.id
        for each in inside
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    names: dict[str, str] = {}
    changes: list[Change] = []
    for each in inside:
        if not isinstance(each, ast.Subscript) or not isinstance(each.slice, ast.Name):
            continue
        call = each.value
        if split_count(call) is None or not isinstance(call, ast.Call) or not call.args:
            continue
        whole = call.args[0]
        plain = ast.Name | ast.Attribute | ast.Constant | ast.Call | ast.expr_context | ast.keyword
        parts = list(ast.walk(call))
        if not isinstance(whole, ast.Name) or not all(isinstance(one, plain) for one in parts):
            continue
        if any(isinstance(one, ast.Name) and one.id in bound for one in parts):
            continue
        text = file.of(call)
        if "\n" in text or file.commented(*file.span(call)):
            continue
        if text not in names:
            names[text] = file.free(scope, f"{whole.id}_parts")
        changes.append(Change(*file.span(call), (names[text],), where))
    made = tuple(f"{name} = {text}\n{margin}" for text, name in names.items())
    if made:
        changes.append(Change(file.start(loop), file.start(loop), made, where))
    return changes
