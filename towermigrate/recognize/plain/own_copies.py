"""Functions of other files that run what a program builds, which it calls several times or other programs of the tree use as well.

A copy of them stands beside their caller.

What loop style makes of `do_training(update_op, loss)` takes a step function. The other program, which goes on with a session,
keeps the function as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping

from towermigrate.recognize.at_import import only_defines
from towermigrate.recognize.lending import Files
from towermigrate.recognize.plain.changes import Change, PlainFile
from towermigrate.recognize.plain.handed_on import functions_of
from towermigrate.recognize.python_scopes import Definition, Unjoined, own_nodes
from towermigrate.recognize.source import Tree

_RUNS = re.compile(r"\.run\(|Session\(")


def own_copies(
    tree: Tree, where: Mapping[str, Collection[str]] | None, file: PlainFile
) -> list[Change]:
    """The changes of the tower loop's file for each function that it imports and does not have for itself, or calls several times."""
    if file.text != tree.sources.get(file.path) or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for statement in file.tree.body:
        if not isinstance(statement, ast.ImportFrom):
            continue
        for alias in statement.names:
            try:
                made = _copied(tree, file, statement, alias)
            except Unjoined:
                continue
            allowed = None if where is None else where.get(file.path, ())
            if allowed is None or all(each.scope in allowed for each in made):
                found += made
        if found:
            return found  # one statement of imports is changed at a time
    return []


def _copied(
    tree: Tree, file: PlainFile, statement: ast.ImportFrom, alias: ast.alias
) -> list[Change]:
    name = alias.name
    if alias.asname not in (None, name) or name in file.shared_between_functions:
        return []
    uses = file.uses(name)
    callers = [
        each
        for each in file.tree.body
        if isinstance(each, ast.FunctionDef)
        for one in own_nodes(each)
        if isinstance(one, ast.Call) and any(one.func is use for use in uses)
    ]
    if not uses or len(callers) != len(uses):
        return []
    if any(each is not callers[0] for each in callers) or file.alone(callers[0]) != "":
        return []
    files = Files(tree, file.path)
    files.modules[file.path] = file
    for path, _ in functions_of(tree, file, uses[0]):
        function = files.module(path).definition(name)
        if not _RUNS.search(ast.unparse(function.node)) or not _is_plain(function):
            return []
        if path == file.path or len(uses) == 1 and not _is_shared(files, path, name):
            return []
        files.sure_import(file.path, name)
        module = "." * statement.level + (statement.module or "")
        if len(statement.names) == 1 and not only_defines(tree, file.path, module):
            return []  # what the import does would be missed
        if files.is_set_elsewhere(name):
            return []
        if any(
            files.uses_in(user, file.path, name)
            for user in tree.users.get(file.path, set()) - {file.path}
            if user in tree.sources
        ):
            return []
        lent = files.lent(function, {})
        return _changes(file, statement, alias, callers[0], function, lent)
    return []


def _is_plain(function: Definition) -> bool:
    """Whether a function is the same wherever it is defined: it reads nothing of its file but what it may import."""
    spec = function.node.args
    fixed = all(
        isinstance(each, ast.Constant | None) for each in (*spec.defaults, *spec.kw_defaults)
    )
    odd = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await)
    return (
        fixed
        and not function.node.decorator_list
        and not any(isinstance(each, odd) for each in ast.walk(function.node))
        and not any(each.startswith("__") for each in function.globals)
        and function.node.col_offset == 0
    )


def _is_shared(files: Files, path: str, name: str) -> bool:
    """Whether another file, or the function's own, uses it too."""
    users = {path, *files.tree.users.get(path, set())} - {files.path}
    return any(
        bool(files.uses_in(user, path, name)) for user in sorted(users & files.tree.sources.keys())
    )


def _changes(
    file: PlainFile,
    statement: ast.ImportFrom,
    alias: ast.alias,
    caller: ast.FunctionDef,
    function: Definition,
    lent: list[str],
) -> list[Change]:
    """The copy in front of its caller, what it needs, and the import without its name."""
    text = function.text
    copy = text[function.starts[function.node.lineno - 1] : function.end_of_line(function.node)]
    place = file.above(caller)
    where = caller.name
    found = [Change(place, place, (f"{copy}\n\n\n",), where)]
    begin, end = file.span(statement)
    if file.commented(begin, end) or file.alone(statement) is None:
        raise Unjoined
    rows = "".join(f"{each}\n" for each in lent)
    others = [each for each in statement.names if each is not alias]
    if rows:
        behind = file.text.index("\n", end) + 1
        found.append(Change(behind, behind, (rows,), where))
    if not others:
        return [*found, Change(*file.without(statement), (), where)]
    offset = file.block.offset
    spans = [
        (
            offset(each.lineno, each.col_offset),
            offset(each.end_lineno or 0, each.end_col_offset or 0),
        )
        for each in statement.names
    ]
    number = statement.names.index(alias)
    if number + 1 < len(spans):
        gone = spans[number][0], spans[number + 1][0]
    else:
        gone = spans[number - 1][1], spans[number][1]
    return [*found, Change(*gone, (), where)]


__all__ = ["own_copies"]
