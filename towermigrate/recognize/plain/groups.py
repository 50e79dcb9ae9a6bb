"""Operations that only wait for others: `tf.group` of them, without what does nothing."""

from __future__ import annotations

import ast
from typing import TypeGuard

from towermigrate.recognize.plain.changes import (
    Change,
    Changed,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    names_in,
)
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.python_scopes import own_nodes


def groups(file: PlainFile) -> list[Change]:
    """`tf.group(op, tf.no_op())` is a group of `op`; a `tf.no_op` that waits for operations is a group of them.

    An update that is made in a group gets a name in front of it.
    """
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, _ in blocks(scope):
            for each in body:
                change = (
                    _waiting(file, each)
                    or _idle(file, each)
                    or _added_up(file, each)
                    or _updating(file, each)
                )
                if change is not None:
                    found.append(Change(*change, where))
    return found


def nested_groups(file: PlainFile) -> list[Change]:
    """`tf.group(apply_op, tf.group(*updates))` as `tf.group(apply_op, *updates)`."""
    if file.text.count("group(") < 2:
        return []
    return [
        Change(
            *file.span(inner),
            (file.span(inner.args[0])[:1] + file.span(inner.args[-1])[1:],),
            where,
        )
        for where, scope in file.scopes
        for outer in own_nodes(scope)
        if _is_group(outer)
        for inner in outer.args
        if _is_group(inner) and inner.args and not inner.keywords
        if not any(_is_group(each) for each in inner.args)
        if not file.commented(*file.span(inner))
    ]


def _is_group(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and _last(node.func) == "group"


def _last(node: ast.expr) -> str:
    """`group` of `tf.group`, `""` of what is no part of a module."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) in _TENSORFLOW:
        return node.attr
    return ""


_TENSORFLOW = ("tf", "tensorflow", "tf.compat.v1")


def _elements(node: ast.expr) -> list[tuple[str, ast.expr]]:
    """What a list holds, as arguments: those of other lists with a star; nothing where that cannot be told."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [_elements(left), _elements(right)]
            return [each for part in parts for each in part] if all(parts) else []
        case ast.Name():
            return [("*", node)]
        case ast.List(elts=values) | ast.Tuple(elts=values):
            found: list[tuple[str, ast.expr]] = []
            for each in values:
                inner = each.value if isinstance(each, ast.Starred) else each
                if not isinstance(inner, ast.Name):
                    return []
                found.append(("*" if inner is not each else "", inner))
            return found
    return []


def listed_updates(file: PlainFile) -> list[Change]:
    """`ops = [apply_op]`, `ops.append(ema_op)` and `train_op = tf.group(*ops)` right behind as `tf.group(apply_op, ema_op)`."""
    if "group(" not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, _ in blocks(scope):
            for number, each in enumerate(body):
                match each:
                    case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() | ast.Call()):
                        found += _listed_update(file, scope, name, body[number:], where)
    return found


def _listed_update(
    file: PlainFile, scope: Scope, name: str, rows: list[ast.stmt], where: str
) -> list[Change]:
    first = rows[0]
    assert isinstance(first, ast.Assign)
    held: list[ast.expr] = []
    if isinstance(first.value, ast.List):
        held += first.value.elts
    elif "get_collection(" in file.of(first.value) and "UPDATE_OPS" in file.of(first.value):
        held.append(ast.Starred(first.value))
    else:
        return []
    gone: list[ast.stmt] = [first]
    for each in rows[1:]:
        match each:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=of), attr="append"),
                    args=[one],
                    keywords=[],
                )
            ) if of == name:
                held.append(one)
                gone.append(each)
            case _:
                break
    last = rows[len(gone)] if len(gone) < len(rows) else None
    match last:
        case ast.Assign(
            value=ast.Call(
                func=func, args=[ast.Starred(value=ast.Name(id=of)) | ast.Name(id=of) as given]
            )
        ) if of == name and _last(func) == "group":
            pass
        case _:
            return []
    assert last is not None
    many = len(names_in(scope, name)) != len(gone) + 1 or len(file.uses(name)) != len(gone) + 1
    if many or not held or name in file.words_of_users or name in file.shared_between_functions:
        return []
    if any(file.alone(each) is None for each in gone):
        return []
    if file.commented(file.start(first), file.end(last)):
        return []
    if any(isinstance(n, ast.Name) and n.id == name for one in held for n in ast.walk(one)):
        return []
    if len(gone) == 1 and isinstance(first.value, ast.Call):
        return []
    parts: list[Part] = []
    for one in held:
        parts += [", "] * bool(parts)
        parts += ["*", file.span(first.value)] if isinstance(one, ast.Starred) else [file.span(one)]
    return [
        *(Change(*file.without(each), (), where) for each in gone),
        Change(*file.span(given), tuple(parts), where),
    ]


# ---- a tower's updates in a group --------------------------------------------------------------------


def grouped_updates(file: PlainFile) -> list[Change]:
    """`updates = tf.group(*tf.get_collection(UPDATE_OPS, scope))` of towers, which what stands behind waits for, as the list."""
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for each in (*ast.walk(loop), *_behind(scope, loop)):
            match each:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Call(
                        func=func, args=[ast.Starred(value=ast.Call() as taken)], keywords=[]
                    ),
                ) if _last(func) == "group" and "UPDATE_OPS" in ast.unparse(taken):
                    waiting = _waiting_for(file, scope, loop, name)
                    if waiting and not file.commented(*file.span(each.value)):
                        found.append(Change(*file.span(each.value), (file.span(taken),), where))
                        found += [
                            Change(*file.span(alone), (file.span(one),), where)
                            if alone is not None
                            else Change(file.start(one), file.start(one), ("*",), where)
                            for one, alone in waiting
                        ]
    return found


def _behind(scope: Scope, loop: ast.For) -> list[ast.stmt]:
    """The statements behind a loop, of whichever block of its function."""
    end = loop.end_lineno or 0
    return [one for one in own_nodes(scope) if isinstance(one, ast.stmt) and one.lineno > end]


def _waiting_for(
    file: PlainFile, scope: Scope, loop: ast.For, name: str
) -> list[tuple[ast.Name, ast.expr | None]]:
    """Where a name is waited for behind a loop, and the list that holds nothing else; nothing where it is read in another way."""
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return []
    fine: dict[int, ast.expr | None] = {}
    for each in ast.walk(scope):
        if not isinstance(each, ast.Call) or each.lineno <= (loop.end_lineno or 0):
            continue
        called = _last(each.func)
        if called == "group":
            fine |= {id(one): None for one in each.args}
        elif called == "control_dependencies" and len(each.args) == 1:
            waited = each.args[0]
            if isinstance(waited, ast.List | ast.Tuple):
                fine |= {id(one): waited if len(waited.elts) == 1 else None for one in waited.elts}
    reads = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
    return [(each, fine[id(each)]) for each in reads] if all(id(r) in fine for r in reads) else []


def _is_no_op(node: ast.expr) -> bool:
    """`tf.no_op()` or `tf.no_op(name="…")`, which is an operation that does nothing."""
    return (
        isinstance(node, ast.Call)
        and _last(node.func) == "no_op"
        and all(isinstance(each, ast.Constant) for each in node.args)
        and all(isinstance(each.value, ast.Constant) for each in node.keywords)
    )


def _idle(file: PlainFile, statement: ast.stmt) -> Changed | None:
    """`op = tf.group(a, tf.no_op())` without the second."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    kept = [each for each in call.args if not _is_no_op(each)]
    if _last(call.func) != "group" or len(kept) == len(call.args) or not kept:
        return None
    if any(isinstance(each, ast.Starred) for each in kept):
        return None
    start, end = file.start(call.args[0]), file.end(call.args[-1])
    if file.commented(start, end):
        return None
    parts: list[str | tuple[int, int]] = []
    for each in kept:
        parts += [", "] if parts else []
        parts.append(file.span(each))
    return start, end, tuple(parts)


def _added_up(file: PlainFile, statement: ast.stmt) -> Changed | None:
    """`op = tf.group([a] + more)`, or with a star, as `tf.group(a, *more)`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    if _last(call.func) != "group" or len(call.args) != 1:
        return None
    given = call.args[0].value if isinstance(call.args[0], ast.Starred) else call.args[0]
    if not isinstance(given, ast.BinOp) or file.commented(*file.span(call.args[0])):
        return None
    parts: list[Part] = []
    for star, each in _elements(given):
        parts += [", "] * bool(parts) + [star, file.span(each)]
    return (*file.span(call.args[0]), tuple(parts)) if parts else None


def _updating(file: PlainFile, statement: ast.stmt) -> Changed | None:
    """`op = tf.group(opt.apply_gradients(grads), ema_op)` with `apply_op = opt.apply_gradients(grads)` in front of it.

    So with `*tf.get_collection(UPDATE_OPS)` among others, which no update adds to.
    """
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    call, margin = statement.value, file.alone(statement)
    if _last(call.func) != "group" or margin is None or file.commented(*file.span(statement)):
        return None
    given: list[Part] = []
    before: list[Part] = []
    start, end = file.span(statement)
    at = start
    for each in call.args:
        if isinstance(each, ast.Name):
            continue
        star = isinstance(each, ast.Starred) and len(call.args) > 1
        each = each.value if isinstance(each, ast.Starred) and star else each
        made = each.func if isinstance(each, ast.Call) else None
        if not isinstance(made, ast.Attribute) or star != (made.attr == "get_collection"):
            break
        if made.attr not in _UPDATES or star and "UPDATE_OPS" not in ast.unparse(each):
            break  # what stands in front of an update is made in front of it
        name = file.fresh(_UPDATES[made.attr])
        before += [f"{name} = ", file.span(each), f"\n{margin}"]
        given += [(at, file.start(each)), name]
        at = file.end(each)
    return (start, end, (*before, *given, (at, end))) if before else None


_UPDATES = {
    "apply_gradients": "apply_op",
    "minimize": "apply_op",
    "apply": "average_op",
    "get_collection": "update_ops",
}
"""What makes an update, and what to call it."""


def _waiting(file: PlainFile, statement: ast.stmt) -> Changed | None:
    """`with tf.control_dependencies([a, b]): op = tf.no_op(name="train")` as `op = tf.group(a, b, name="train")`."""
    if not isinstance(statement, ast.With) or len(statement.items) != 1 or len(statement.body) != 1:
        return None
    (item,), (inner,) = statement.items, statement.body
    call = item.context_expr
    if not isinstance(call, ast.Call) or _last(call.func) != "control_dependencies":
        return None
    if item.optional_vars is not None or len(call.args) != 1 or call.keywords:
        return None
    waited = call.args[0]
    elements = _elements(waited)
    if not elements:
        return None
    if not isinstance(inner, ast.Assign) or not _is_no_op(inner.value):
        return None
    assert isinstance(inner.value, ast.Call)
    if len(inner.targets) != 1 or not isinstance(inner.targets[0], ast.Name):
        return None
    start, end = file.span(statement)
    if file.commented(start, end) or file.alone(statement) is None:
        return None
    assert isinstance(call.func, ast.Attribute)
    group = f" = {ast.unparse(call.func.value)}.group("
    parts: list[str | tuple[int, int]] = [file.span(inner.targets[0]), group]
    for number, (star, each) in enumerate(elements):
        parts += [f", {star}" if number else star, file.span(each)]
    for argument in inner.value.args:
        parts += [", name=", file.span(argument)]
    for keyword in inner.value.keywords:
        parts += [f", {keyword.arg}=", file.span(keyword.value)]
    return start, end, (*parts, ")")
