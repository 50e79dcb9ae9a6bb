"""Values and optimizers without a name: with one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, blocks
from towermigrate.recognize.plain.tower_loops import is_tower_loop
from towermigrate.recognize.python_scopes import own_nodes

_OF_OPTIMIZER = ("minimize", "apply_gradients", "compute_gradients")
_UPDATE = re.compile(r"(^|_)(train(ing)?(_op|_step)?|optimize|optim|opt|op|step|update|apply)+$")


def named_entries(file: PlainFile) -> list[Change]:
    """`losses.append(tf.reduce_mean(x))` in a tower as `loss = tf.reduce_mean(x)` and `losses.append(loss)`."""
    if ".append(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                if isinstance(each, ast.For) and is_tower_loop(each):
                    changes = (_named_entry(file, scope, one, where) for one in _plain(each.body))
                    found += [change for change in changes if change is not None]
    return found


def _plain(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a tower that are under no condition."""
    for each in body:
        if isinstance(each, ast.With):
            yield from _plain(each.body)
        else:
            yield each


def _named_entry(file: PlainFile, scope: Scope, statement: ast.stmt, where: str) -> Change | None:
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=own), attr="append"),
                args=[ast.Call() | ast.BinOp() as value],
                keywords=[],
            )
        ):
            pass
        case _:
            return None
    if isinstance(value, ast.Call):
        called = ast.unparse(value.func)
        if not called.startswith("tf.") and "." in called:
            return None
        if called in _PYTHON or called.endswith(("placeholder", "gradients")):
            return None
    elif "\n" in file.of(value):
        return None
    margin, (start, end) = file.alone(statement), file.span(statement)
    begins, ends = file.span(value)
    if margin is None or file.commented(start, begins) or file.commented(ends, end):
        return None
    one = re.sub(r"(?<=ss)es$|s$|_list$", "", own)
    name = file.free(scope, *([one] if one != own else []), f"tower_{one}", f"own_{one}")
    parts = (f"{name} = ", (begins, ends), f"\n{margin}{own}.append({name})")
    return Change(start, end, parts, where)


_PYTHON = frozenset("zip list tuple dict len str int float sorted map filter next".split())


def named_optimizers(file: PlainFile) -> list[Change]:
    """`train_op = tf.train.AdamOptimizer(0.1).minimize(loss)` with the optimizer bound to a name first."""
    if "Optimizer(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        if not any(isinstance(each, ast.For) and is_tower_loop(each) for each in own_nodes(scope)):
            continue
        for body, always in blocks(scope):
            for each in body if always else ():
                match each:
                    case ast.Assign(
                        targets=[ast.Name(id=target)],
                        value=ast.Call(func=ast.Attribute(value=ast.Call() as made, attr=attr)),
                    ) if attr in _OF_OPTIMIZER and ast.unparse(made.func).endswith("Optimizer"):
                        found += _named_optimizer(file, scope, each, made, target, where)
    return found


def _named_optimizer(
    file: PlainFile, scope: Scope, statement: ast.Assign, made: ast.Call, target: str, where: str
) -> list[Change]:
    margin, start = file.alone(statement), file.start(statement)
    if margin is None or not ast.unparse(made.func).startswith("tf."):
        return []
    if file.commented(start, file.start(made)):
        return []
    one = _UPDATE.sub("", target)
    name = file.free(scope, f"{one}_optimizer" if one else "optimizer", f"{target}_optimizer")
    parts = (f"{name} = ", file.span(made), f"\n{margin}")
    return [Change(start, start, parts, where), Change(*file.span(made), (name,), where)]
