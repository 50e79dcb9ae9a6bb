"""Functions that a module defines behind its towers: defined in front of them, as most are."""

from __future__ import annotations

import ast
import builtins

from towermigrate.recognize.plain.changes import Change, PlainFile, bindings
from towermigrate.recognize.plain.collected import loops_of_towers


def defined_behind(file: PlainFile) -> list[Change]:
    """`def average_gradients(…):` between the tower loop of a module and its call, in front of the loop.

    Nothing calls it before it is defined, and what it reads it reads when it is called.
    """
    loops = [loop for _, scope, loop in loops_of_towers(file) if scope is file.tree]
    if len(loops) != 1 or file.finds_names_by_text or "import *" in file.text:
        return []
    body = file.tree.body
    around = next(
        each for each in body if any(one is loops[0] for one in ast.walk(each))
    )  # the statement of the module that the loop stands in
    place = file.above(around)
    if file.text[: file.start(around)].rpartition("\n")[2]:
        return []
    moved: list[Change] = []
    for each in body[body.index(around) + 1 :]:
        if not isinstance(each, ast.FunctionDef) or not _may_move(file, each):
            continue
        start, end = file.above(each), file.end(each)
        stop = file.text.find("\n", end)
        if stop < 0 or file.text[end:stop].strip():
            continue
        rest = file.text[stop:]
        gap = len(rest) - len(rest.lstrip("\n"))
        moved.append(Change(place, place, ((start, end), "\n\n\n"), ""))
        moved.append(Change(start, stop + gap, (), ""))
    return moved


def _may_move(file: PlainFile, made: ast.FunctionDef) -> bool:
    given = [*made.args.defaults, *made.args.kw_defaults]
    plain = all(each is None or isinstance(each, ast.Constant) for each in given)
    notes = [each.annotation for each in ast.walk(made.args) if isinstance(each, ast.arg)]
    return (
        plain
        and not made.decorator_list
        and made.returns is None
        and not any(notes)
        and bindings(file.tree, made.name) == 1
        and made.name not in file.shared_between_functions
        and not hasattr(builtins, made.name)
    )


__all__ = ["defined_behind"]
