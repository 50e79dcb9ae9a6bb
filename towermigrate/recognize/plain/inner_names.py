"""Comprehensions that call something by a name that has to do with the towers: by another name."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.python_scopes import own_nodes

_TRAINED = "tf.trainable_variables()"
_MADE = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def inner_numbers(file: PlainFile) -> list[Change]:
    """`sum([i for i in range(3)])` in `for i in range(NUM_GPUS)`: `i` in it is a name of its own."""
    found: list[Change] = []
    for where, _, loop in loops_of_towers(file):
        numbers = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        for each in ast.walk(loop):
            if isinstance(each, _MADE):
                for name in sorted(numbers & _targets(each)):
                    found += _renamed(file, each, name, where)
    return found


def names_beside_variables(file: PlainFile) -> list[Change]:
    """`[round(v, 3) for v in losses]` beside `{v.name: sess.run(v) for v in tf.trainable_variables()}`: another `v`."""
    if "trainable_variables()" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        nodes = list(own_nodes(scope))
        loops = [each for each in nodes if isinstance(each, ast.For | ast.comprehension)]
        variables = {
            each.target.id
            for each in loops
            if isinstance(each.target, ast.Name) and ast.unparse(each.iter) == _TRAINED
        }
        run = {
            each.args[0].id
            for each in nodes
            if isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr == "run"
            and each.args
            and isinstance(each.args[0], ast.Name)
        }
        for each in nodes:
            if not isinstance(each, _MADE) or len(each.generators) != 1:
                continue
            (only,) = each.generators
            for name in sorted(variables & run & _targets(each)):
                if ast.unparse(only.iter) != _TRAINED:
                    found += _renamed(file, each, name, where)
    return found


def _targets(node: _MADE) -> set[str]:
    return {
        each.id
        for one in node.generators
        for each in ast.walk(one.target)
        if isinstance(each, ast.Name)
    }


def _renamed(file: PlainFile, node: _MADE, name: str, where: str) -> list[Change]:
    """Each use of the name in a comprehension of one `for`, but in what that goes over, which is of the tower."""
    if len(node.generators) != 1:
        return []
    (only,) = node.generators
    made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    parts: list[ast.expr] = [*made, only.target, *only.ifs]
    inner = [each for part in parts for each in ast.walk(part)]
    if any(isinstance(each, _MADE | ast.Lambda | ast.NamedExpr | ast.JoinedStr) for each in inner):
        return []
    new = file.fresh(f"{name}{name}" if len(name) == 1 else f"each_{name}")
    return [
        Change(*file.span(each), (new,), where)
        for each in inner
        if isinstance(each, ast.Name) and each.id == name
    ]
