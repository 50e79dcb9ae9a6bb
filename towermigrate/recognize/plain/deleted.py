"""Names that a tower deletes, and that nobody reads any more."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, blocks
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.python_scopes import own_nodes


def deleted_names(file: PlainFile) -> list[Change]:
    """`del hidden` at the end of what a tower computes, of a name that it has bound, as no statement at all."""
    if "del " not in file.text or "__del__" in file.text or file.finds_names_by_text:
        return []
    return [
        Change(*file.without(each), (), where)
        for where, scope, loop in loops_of_towers(file)
        for body in _blocks_of(loop)
        for each in body
        if isinstance(each, ast.Delete) and len(body) > 1 and _is_over(file, scope, loop, each)
    ]


def _blocks_of(loop: ast.For) -> list[list[ast.stmt]]:
    """The statements of a loop, and those that stand under a `with` in it: all of them run in each turn."""
    found = [loop.body]
    for body in found:
        found += [each.body for each in body if isinstance(each, ast.With)]
    return found


def _is_over(file: PlainFile, scope: Scope, loop: ast.For, node: ast.Delete) -> bool:
    """Whether names are the loop's own, bound in each turn before they are deleted, and read by nobody behind that."""
    if file.alone(node) is None:
        return False
    own = {id(each) for each in own_nodes(scope)}
    for target in node.targets:
        if not isinstance(target, ast.Name) or target.id in file.shared_between_functions:
            return False
        uses = [each for each in file.uses(target.id) if each is not target]
        if isinstance(scope, ast.FunctionDef):  # what others call so is theirs
            uses = [each for each in ast.walk(scope) if each in uses]
        bound = [
            name
            for body in _blocks_of(loop)
            for each in body
            if isinstance(each, ast.Assign) and each.lineno < node.lineno
            for one in each.targets
            for name in ast.walk(one)
            if isinstance(name, ast.Name) and name.id == target.id
        ]
        first = min((each.lineno for each in bound), default=None)
        anew = _bound_anew(scope, loop, target.id)
        if first is None or any(
            id(each) not in own
            or not first <= each.lineno < node.lineno
            and not (anew is not None and each.lineno >= anew)
            for each in uses
        ):
            return False
    return True


def _bound_anew(scope: Scope, loop: ast.For, name: str) -> int | None:
    """The line behind a loop where a name gets another value, which is not made of the one before."""
    return next(
        (
            each.lineno
            for body, always in blocks(scope)
            for each in (body if always else ())
            if isinstance(each, ast.Assign)
            and each.lineno > (loop.end_lineno or 0)
            and [one.id for one in each.targets if isinstance(one, ast.Name)] == [name]
            and not any(
                isinstance(one, ast.Name) and one.id == name for one in ast.walk(each.value)
            )
        ),
        None,
    )


__all__ = ["deleted_names"]
