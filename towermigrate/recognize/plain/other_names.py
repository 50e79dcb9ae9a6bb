"""An update by another name, and numbers that are made in every turn of a tower loop: by one name, and in front of it."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import (
    Change,
    Changed,
    PlainFile,
    Scope,
    bindings,
    blocks,
    names_in,
    settled,
    stores,
)
from towermigrate.recognize.plain.collected import loops_of_towers

_UPDATES = ("apply_gradients", "minimize", "group", "no_op", "apply")


def updates_once(file: PlainFile) -> list[Change]:
    """`apply_op = opt.apply_gradients(grads)` and `train_op = apply_op` as an update of one name."""
    found: list[Change] = []
    for where, scope in file.scopes:
        made = {
            each.targets[0].id: each
            for body, always in blocks(scope)
            for each in (body if always else ())
            if _makes_update(each)
            and isinstance(each, ast.Assign)
            and isinstance(each.targets[0], ast.Name)
        }
        for body, always in blocks(scope) if made else ():
            for each in body if always and len(body) > 1 else ():
                match each:
                    case ast.Assign(targets=[ast.Name(id=new)], value=ast.Name(id=old)) if (
                        old in made
                    ):
                        changes = _by_one_name(file, scope, made[old], each, old, new)
                        found += [Change(*change, where) for change in changes]
    return found


def _makes_update(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=ast.Attribute(attr=attr))):
            return attr in _UPDATES
    return False


def _by_one_name(
    file: PlainFile, scope: Scope, made: ast.Assign, again: ast.Assign, old: str, new: str
) -> list[Changed]:
    if any(bindings(scope, each) != 1 for each in (old, new)) or made.lineno >= again.lineno:
        return []
    if {old, new} & file.shared_between_functions or file.finds_names_by_text:
        return []
    if scope is file.tree and {old, new} & file.words_of_users:
        return []
    if file.alone(again) is None or file.commented(*file.span(again)):
        return []
    of_old = [each for each in names_in(scope, old) if isinstance(each.ctx, ast.Load)]
    gone: Changed = (*file.without(again), ())
    if len(of_old) == 1 and len(file.uses(old)) == 2:
        return [(*file.span(made.targets[0]), (new,)), gone]
    of_new = [each for each in file.uses(new) if isinstance(each.ctx, ast.Load)]
    if len(of_new) != len([e for e in names_in(scope, new) if isinstance(e.ctx, ast.Load)]):
        return []
    return [gone, *((*file.span(each), (old,)) for each in of_new)]


def numbers_in_front(file: PlainFile) -> list[Change]:
    """`n = BATCH // GPUS` that every turn of a tower loop begins with, in front of the loop."""
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        margin = file.alone(loop)
        if margin is None or loop.orelse or file.alone(loop.body[0]) is None:
            continue
        own = {
            each.id
            for each in ast.walk(loop)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
        place = file.starts[loop.lineno - 1]
        body = loop.body
        while body:
            for each in body:
                if not _is_number(file, scope, each, own):
                    break
                found.append(Change(place, place, (margin, file.span(each), "\n"), where))
                found.append(Change(*file.without(each), (), where))
            first = body[0]
            body = first.body if isinstance(first, ast.With) and len(body) == 1 else []
    return found


def _is_number(file: PlainFile, scope: Scope, statement: ast.stmt, own: set[str]) -> bool:
    """Whether a statement binds a name for good to whole numbers that no tower makes, as all turns do alike."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value):
            pass
        case _:
            return False
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return False
    if file.alone(statement) is None or file.commented(*file.span(statement)):
        return False
    fine = ast.Name | ast.Constant | ast.Attribute | ast.BinOp | ast.operator | ast.expr_context
    for each in ast.walk(value):
        if not isinstance(each, fine):  # a list of which `len` is taken may grow from turn to turn
            return False
        if isinstance(each, ast.Name) and each.id in own | file.shared_between_functions:
            return False
        if isinstance(each, ast.Attribute) and not settled(file, each):
            return False
        if isinstance(each, ast.Constant) and not isinstance(each.value, int):
            return False
    return any(isinstance(each, ast.FloorDiv | ast.Mult) for each in ast.walk(value)) and bool(
        stores(scope, name)
    )
