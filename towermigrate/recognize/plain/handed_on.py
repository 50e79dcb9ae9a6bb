"""What one function returns and another is given whole: `run(*build())`, with a name for each value in between."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, bindings
from towermigrate.recognize.python_scopes import Unjoined, own_nodes
from towermigrate.recognize.source import Tree


def handed_on(tree: Tree, file: PlainFile) -> list[Change]:
    """Statements that call a function with all that another function of the tree returns, in one tuple of names."""
    if "(*" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for each in own_nodes(scope):
            if not isinstance(each, ast.Expr | ast.Assign) or not isinstance(each.value, ast.Call):
                continue
            outer = each.value
            match outer.args, outer.keywords:
                case [ast.Starred(value=ast.Call() as inner)], []:
                    names = _returned(tree, file, inner)
                case _:
                    continue
            margin, span = file.alone(each), file.span(each)
            if not names or margin is None or file.commented(*span):
                continue
            root = ast.unparse(inner.func).partition(".")[0]
            if isinstance(scope, ast.FunctionDef) and bindings(scope, root):
                continue  # another function than the file's
            if not isinstance(outer.func, ast.Name | ast.Attribute):
                continue  # Which function it is must be known before the other one runs.
            given = ", ".join(file.free(scope, name) for name in names)
            (argument,) = outer.args
            parts = (
                f"{given} = ", file.span(inner), f"\n{margin}",
                (span[0], file.start(argument)), given, (file.end(argument), span[1]),
            )  # fmt: skip
            found.append(Change(*span, parts, where))
    return found


def _returned(tree: Tree, file: PlainFile, call: ast.Call) -> list[str]:
    """The names that a function of the tree returns, in its one `return` at its end; none where it returns otherwise."""
    for _, function in functions_of(tree, file, call.func):
        returns = [each for each in own_nodes(function) if isinstance(each, ast.Return)]
        last = function.body[-1]
        if len(returns) != 1 or last is not returns[0] or function.decorator_list:
            return []
        if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(function)):
            return []
        if isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple):
            names = [each.id for each in last.value.elts if isinstance(each, ast.Name)]
            if len(names) == len(last.value.elts) == len(set(names)):
                return names
    return []


def functions_of(
    tree: Tree, file: PlainFile, func: ast.expr
) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The one function that a name stands for, of this file or of one that it imports, and where it stands."""
    source = tree.file(file.path)
    if source is None:
        return
    dotted = ast.unparse(func)
    root, _, rest = dotted.partition(".")
    origin = source.imports.get(root)
    if origin is None:
        path, name = file.path, dotted
    else:
        module, _, name = (f"{origin}.{rest}" if rest else origin).rpartition(".")
        found = tree.module_path(file.path, module)
        if found is None:
            return
        path = found
    try:
        there = file if path == file.path else PlainFile(path, tree.sources[path])
        yield path, there.definition(name).node
    except Unjoined:
        return
