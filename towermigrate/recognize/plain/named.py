"""Optimizers without a name: with one."""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, blocks
from towermigrate.recognize.plain.collected import is_tower_loop
from towermigrate.recognize.python_scopes import own_nodes

_OF_OPTIMIZER = ("minimize", "apply_gradients", "compute_gradients")
_UPDATE = re.compile(r"(^|_)(train(ing)?(_op|_step)?|optimize|optim|opt|op|step|update|apply)+$")


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
