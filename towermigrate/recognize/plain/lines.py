"""Statements, and lists, that share a line: on lines of their own."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, names_in
from towermigrate.recognize.plain.collected import is_tower_loop, loops_of_towers, once_in
from towermigrate.recognize.python_scopes import own_nodes


def one_a_line(file: PlainFile) -> list[Change]:
    """`a = 1; b = 2` of a scope that builds towers as two lines."""
    if ";" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        nodes = [each for each in own_nodes(scope) if isinstance(each, ast.stmt)]
        if not any(isinstance(each, ast.For) and is_tower_loop(each) for each in nodes):
            continue
        for around in [scope, *nodes]:
            for name in ("body", "orelse", "finalbody"):
                found += _apart(file, getattr(around, name, []), where)
    return found


def _apart(file: PlainFile, body: list[ast.stmt], where: str) -> list[Change]:
    found: list[Change] = []
    margin: str | None = None
    for before, each in zip([None, *body], body, strict=False):
        start = file.start(each)
        if before is None or before.end_lineno != each.lineno:
            text = file.text[file.starts[each.lineno - 1] : start]
            margin = text if not text.strip() else None
        elif margin is not None:
            found.append(Change(file.end(before), start, (f"\n{margin}",), where))
    return found


def lists_apart(file: PlainFile) -> list[Change]:
    """`grads, losses, sizes = [], [], []` in front of towers as a line for each, where one of them is never read."""
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for each in once_in(scope):
            match each:
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                    pass
                case _:
                    continue
            margin = file.alone(each)
            plain = [one.id for one in names if isinstance(one, ast.Name)]
            empty = all(isinstance(one, ast.List) and not one.elts for one in values)
            if each.lineno > loop.lineno or margin is None or not empty:
                continue
            if not len(plain) == len(set(plain)) == len(names) == len(values):
                continue
            if file.commented(*file.span(each)):
                continue
            if any(len(names_in(scope, one)) == 1 for one in plain):
                text = f"\n{margin}".join(f"{one} = []" for one in plain)
                found.append(Change(*file.span(each), (text,), where))
    return found
