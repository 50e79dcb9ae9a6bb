"""Updates and values that stand in a dict or a list without a name: `train_ops = {"d": opt.apply_gradients(grads)}`."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Collection

from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
)
from towermigrate.recognize.python_scopes import own_nodes

_UPDATES = ("apply_gradients", "minimize")


def entries(file: PlainFile) -> list[Change]:
    """Each call in a display becomes a statement in front of it, in order: nothing else in the display does anything.

    A display of which a program only picks by keys that it writes out is not needed then: the names are read.
    """
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body:
                found += _named(file, each, where, scope, always)
    return found


def _picks(
    file: PlainFile, scope: Scope, name: str, keys: Collection[object]
) -> list[ast.Subscript] | None:
    """The `name["key"]` of a scope, where its display is read in no other way, and nowhere else."""
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return None
    if isinstance(scope, ast.Module) and name in file.words_of_users:
        return None
    picks = [
        each
        for each in own_nodes(scope)
        if isinstance(each, ast.Subscript)
        and isinstance(each.ctx, ast.Load)
        and isinstance(each.value, ast.Name)
        and each.value.id == name
        and isinstance(each.slice, ast.Constant)
        and each.slice.value in keys
    ]
    reads = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    return picks if len(picks) == len(reads) else None


def _named(
    file: PlainFile, statement: ast.stmt, where: str, scope: Scope, always: bool
) -> list[Change]:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target, display = statement.targets[0], statement.value
    margin = file.alone(statement)
    if not isinstance(target, ast.Name) or margin is None:
        return []
    if isinstance(display, ast.Dict):
        keys = [each.value if isinstance(each, ast.Constant) else None for each in display.keys]
        values = display.values
        if not all(isinstance(each, str) for each in keys) or len(set(keys)) < len(keys):
            return []
    elif isinstance(display, ast.List | ast.Tuple):
        keys, values = list(range(len(display.elts))), display.elts
    else:
        return []
    named = [each for each in values if isinstance(each, ast.Call)]
    others = [each for each in values if not isinstance(each, ast.Call)]
    if not any(_makes(each) for each in named):
        return []
    start, end = file.span(statement)
    if not all(isinstance(each, ast.Name | ast.Constant) for each in others):
        return []
    if file.commented(start, end):
        return []
    names: dict[object, str] = {}
    before: list[Part] = []
    after: list[Part] = []
    done = start
    for key, value in zip(keys, values, strict=True):
        if isinstance(value, ast.Name):
            names[key] = value.id
        if not isinstance(value, ast.Call):
            continue
        name = names[key] = file.fresh(_name(key, target.id))
        before += [f"{name} = ", file.span(value), f"\n{margin}"]
        after += [(done, file.start(value)), name]
        done = file.end(value)
    picks = _picks(file, scope, target.id, names) if always else None
    own = [value.id for value in others if isinstance(value, ast.Name)]
    if picks is None or len(names) < len(values) or any(bindings(scope, n) != 1 for n in own):
        return [Change(start, end, (*before, *after, (done, end)), where)]
    picked = [
        Change(*file.span(each), (names[each.slice.value],), where)
        for each in picks
        if isinstance(each.slice, ast.Constant)
    ]
    return [Change(start, end, tuple(before[:-1]), where), *picked]


def _makes(call: ast.Call) -> bool:
    """Whether a call makes an update or a mean, which a run may be asked for."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return False
    return func.attr in _UPDATES or ast.unparse(func) in ("tf.reduce_mean", "tf.group")


def _name(key: object, display: str) -> str:
    """`d_train_op` of the entry `d` of `train_ops`."""
    one = display[:-1] if display.endswith("s") and len(display) > 2 else display
    text = f"{key}_{one}"
    return text if text.isidentifier() and not keyword.iskeyword(text) else f"{one}_{key}" if isinstance(key, int) else f"{one}_entry"  # fmt: skip
