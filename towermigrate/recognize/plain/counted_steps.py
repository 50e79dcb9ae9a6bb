"""Steps that are counted beside the update: by the update itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import once_in
from towermigrate.recognize.plain.feeds import only_name

_MAKERS = frozenset(
    f"tf.{module}.{name}"
    for module in ("train", "contrib.framework", "contrib.slim", "contrib.training")
    for name in ("get_or_create_global_step", "create_global_step")
)
_VARIABLES = ("tf.Variable", "tf.get_variable")
_ASKS = ("get_global_step", "GLOBAL_STEP")


def counted_steps(file: PlainFile) -> list[Change]:
    """`tf.group(opt.apply_gradients(grads), tf.assign_add(step, 1))` as `opt.apply_gradients(grads, global_step=step)`.

    TensorFlow 1 leaves open which of a group's operations comes first, so that this is one of its ways; it is the only one
    of which anything is seen where nothing that an update may wait for reads the step.
    """
    if "tf.group(" not in file.text or any(each in file.words for each in _ASKS):
        return []
    return [
        change
        for where, scope in file.scopes
        for each in once_in(scope)
        for change in _counted(file, scope, each, where)
    ]


def _counted(file: PlainFile, scope: Scope, statement: ast.stmt, where: str) -> list[Change]:
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "tf.group" or value.keywords:
        return []
    named = {name: each for each in once_in(scope) if (name := only_name(each))}
    updates: list[tuple[ast.expr, ast.Call]] = []
    counts: list[tuple[ast.expr, str]] = []
    for each in value.args:
        made = _made(file, scope, named, each)
        if isinstance(made, ast.Call) and _is_update(made):
            updates.append((each, made))
        elif made is not None and (step := _step_of(made)):
            counts.append((each, step))
    if len(updates) != 1 or len(counts) != 1 or file.commented(*file.span(statement)):
        return []
    ((given, update),), ((count, step),) = updates, counts
    fine: list[ast.Name] = [each for each in ast.walk(count) if isinstance(each, ast.Name)]
    if isinstance(count, ast.Name):
        counting = named[count.id]
        if file.alone(counting) is None or len(_reads(file, count.id)) != 1:
            return []
        if file.commented(*file.without(counting)):
            return []
        fine = [each for each in ast.walk(counting) if isinstance(each, ast.Name)]
    if isinstance(given, ast.Name) and len(_reads(file, given.id)) != 1:
        return []
    if not _is_a_step(file, scope, named.get(step)):
        return []
    fine += _read_alone(file, step)
    if any(not any(each is one for one in fine) for each in _reads(file, step)):
        return []
    changes = _without(file, value, count, update if given is update else None, step, where)
    if given is not update:
        end = file.end(update.args[0])
        changes.append(Change(end, end, (f", global_step={step}",), where))
    if isinstance(count, ast.Name):
        changes.append(Change(*file.without(named[count.id]), (), where))
    return changes


def _without(
    file: PlainFile,
    group: ast.Call,
    count: ast.expr,
    update: ast.Call | None,
    step: str,
    where: str,
) -> list[Change]:
    """A group that counts no more: what is left of it, where that is one."""
    kept: list[Part] = []
    rest = [each for each in group.args if each is not count]
    for number, each in enumerate(rest):
        kept += [", "] if number else []
        if each is update:
            end = file.end(update.args[0])
            kept += [(file.start(each), end), f", global_step={step}", (end, file.end(each))]
        else:
            kept.append(file.span(each))
    if len(rest) > 1:
        kept = [(file.start(group), file.start(group.args[0])), *kept, ")"]
    return [Change(*file.span(group), tuple(kept), where)]


def _made(
    file: PlainFile, scope: Scope, named: dict[str, ast.stmt], node: ast.expr
) -> ast.expr | None:
    """What an operation in a group is made by: there, or where its name is bound."""
    if not isinstance(node, ast.Name):
        return node
    made = named.get(node.id)
    if bindings(scope, node.id) != 1 or node.id in file.shared_between_functions:
        return None
    if node.id in file.words_of_users or not isinstance(made, ast.Assign):
        return None
    return made.value


def _is_update(call: ast.Call) -> bool:
    """Whether a call applies gradients and counts nothing."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "apply_gradients"
        and isinstance(call.func.value, ast.Name)
        and len(call.args) == 1
        and not isinstance(call.args[0], ast.Starred)
        and all(each.arg == "name" for each in call.keywords)
    )


def _step_of(node: ast.expr) -> str:
    """`step` of `tf.assign_add(step, 1)`, `step.assign_add(1)` or `tf.assign(step, step + 1)`; else nothing."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="tf"), attr="assign_add"), args=[ast.Name(id=step), ast.Constant(value=1 as one)], keywords=[]):  # fmt: skip
            return step if type(one) is int else ""
        case ast.Call(func=ast.Attribute(value=ast.Name(id=step), attr="assign_add"), args=[ast.Constant(value=1 as one)], keywords=[]):  # fmt: skip
            return step if type(one) is int else ""
        case ast.Call(func=ast.Attribute(value=ast.Name(id="tf"), attr="assign"), args=[ast.Name(id=step), ast.BinOp(left=ast.Name(id=read), op=ast.Add(), right=ast.Constant(value=1 as one))], keywords=[]):  # fmt: skip
            return step if step == read and type(one) is int else ""
        case ast.Call(func=ast.Attribute(value=ast.Name(id=step), attr="assign"), args=[ast.BinOp(left=ast.Name(id=read), op=ast.Add(), right=ast.Constant(value=1 as one))], keywords=[]):  # fmt: skip
            return step if step == read and type(one) is int else ""
    return ""


def _is_a_step(file: PlainFile, scope: Scope, made: ast.stmt | None) -> bool:
    """Whether a statement makes the graph's step, or a variable of its own that is not trained and begins as a whole number."""
    if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call):
        return False
    step, call = only_name(made), made.value
    if bindings(scope, step) != 1 or step in file.shared_between_functions | file.words_of_users:
        return False
    maker = ast.unparse(call.func)
    if maker in _MAKERS:
        return True
    trained = [ast.unparse(each.value) for each in call.keywords if each.arg == "trainable"]
    if maker not in _VARIABLES or trained != ["False"]:
        return False
    first = call.args[0] if call.args else None
    return (
        maker == "tf.get_variable" or isinstance(first, ast.Constant) and type(first.value) is int
    )


def _reads(file: PlainFile, name: str) -> list[ast.Name]:
    return [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]


def _read_alone(file: PlainFile, step: str) -> Iterator[ast.Name]:
    """Where a step is read by nothing that an update may be in: a run of its own, a list of a saver's variables."""
    for each in file.nodes:
        match each:
            case ast.Call(func=ast.Attribute(attr="run"), args=[ast.Name(id=name) as read], keywords=[]) if name == step:  # fmt: skip
                yield read
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name) as read, attr="eval")) if name == step:  # fmt: skip
                yield read
            case ast.Call(func=ast.Attribute(attr="save"), keywords=keywords):
                for one in keywords:
                    if one.arg == "global_step" and isinstance(one.value, ast.Name):
                        if one.value.id == step:
                            yield one.value
            case ast.Call(func=func, args=[_, ast.Name(id=name) as read], keywords=[]) if name == step:  # fmt: skip
                if ast.unparse(func) == "tf.train.global_step":
                    yield read
