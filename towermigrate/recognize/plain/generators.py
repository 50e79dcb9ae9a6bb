"""Runs in generators that are used up where they are made: `sum(sess.run(loss, …) for x in parts)`, as lists of what they give."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, run_of
from towermigrate.recognize.plain.collected import is_pythons
from towermigrate.recognize.python_scopes import own_nodes

_USE_ALL = ("sum", "max", "min", "list", "tuple", "sorted", "set")


def generators(file: PlainFile) -> list[Change]:
    """A generator of runs that a function of Python reads to its end, as a list."""
    if " for " not in file.text or ".run(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for call in own_nodes(scope):
            match call:
                case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as made, *_]):
                    pass
                case _:
                    continue
            runs = [each for each in ast.walk(made) if isinstance(each, ast.Call) and run_of(each)]
            start, end = file.span(made)
            bare = file.text[start] == "(" and file.text[end - 1] == ")"
            if name not in _USE_ALL or not runs or not bare or not is_pythons(file, name):
                continue
            found.append(Change(start, end, ("([", (start + 1, end - 1), "])"), where))
    return found
