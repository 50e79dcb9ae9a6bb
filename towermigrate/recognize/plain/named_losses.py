"""A loss that a tower hands to its gradients as it makes it: under a name first.

`grads.append(opt.compute_gradients(tower_loss(x)))` is read as `loss = tower_loss(x)` and the append of that loss's.
"""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.python_scopes import own_nodes


def named_losses(file: PlainFile) -> list[Change]:
    """The losses of tower loops that `compute_gradients` or `tf.gradients` is given without a name."""
    if "gradients(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        inside = {id(each) for each in ast.walk(loop)}
        for each in own_nodes(scope):
            if isinstance(each, ast.Expr | ast.Assign | ast.AugAssign) and id(each) in inside:
                found += _of(file, scope, each, where)
    return found


def _of(
    file: PlainFile, scope: Scope, statement: ast.Expr | ast.Assign | ast.AugAssign, where: str
) -> list[Change]:
    margin = file.alone(statement)
    asked = [each for each in ast.walk(statement) if _is_asked(each)]
    if margin is None or len(asked) != 1:
        return []
    (call,) = asked
    assert isinstance(call, ast.Call)
    loss = call.args[0]
    if not isinstance(loss, ast.Call | ast.BinOp) or _is_chosen(statement, call):
        return []
    if not _is_first(file, statement, loss) or file.commented(*file.span(statement)):
        return []
    name = file.free(scope, "loss", "tower_loss")
    start = file.start(statement)
    return [
        Change(start, start, (f"{name} = ", file.span(loss), f"\n{margin}"), where),
        Change(*file.span(loss), (name,), where),
    ]


def _is_asked(node: ast.AST) -> bool:
    """`opt.compute_gradients(…)`, `tf.gradients(…)` of something by its place."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("compute_gradients", "gradients")
        and isinstance(node.func.value, ast.Name)
        and bool(node.args)
        and not isinstance(node.args[0], ast.Starred)
    )


def _is_chosen(statement: ast.stmt, call: ast.Call) -> bool:
    """Whether a call may be left out, made several times or made later."""
    lazy = ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension | ast.Await | ast.NamedExpr
    return any(isinstance(each, lazy) for each in ast.walk(statement) if each is not call)


def _is_first(file: PlainFile, statement: ast.stmt, loss: ast.expr) -> bool:
    """Whether a loss is the first thing that a statement does: what it looks at before are names that nothing else binds."""
    if isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Name):
        return False
    inside = {id(each) for each in ast.walk(loss)}
    looked_at: list[ast.expr] = [
        each
        for each in ast.walk(statement)
        if isinstance(each, ast.expr) and id(each) not in inside and _is_load(each)
    ]
    begins = (loss.lineno, loss.col_offset)
    for each in looked_at:
        if (each.lineno, each.col_offset) >= begins:
            continue
        match each:
            case ast.Name(id=name):
                if name in file.shared_between_functions:
                    return False
            case ast.Attribute(value=ast.Name()) | ast.Constant():
                pass
            case (
                ast.Call() | ast.List() | ast.Tuple()
            ):  # what holds the loss, and is made behind it
                if not any(one is loss for one in ast.walk(each)):
                    return False
            case _:
                return False
    return True


def _is_load(node: ast.expr) -> bool:
    return not isinstance(getattr(node, "ctx", None), ast.Store)
