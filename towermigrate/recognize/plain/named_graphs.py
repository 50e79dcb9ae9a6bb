"""A graph with a name that is only entered: `g = tf.Graph()`, `with g.as_default():` is `with tf.Graph().as_default():`.

So is `with tf.Graph().as_default() as g:` where nobody asks for `g`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import ALWAYS, Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_tower_loop
from towermigrate.recognize.python_scopes import bound_by, own_nodes


def named_graphs(file: PlainFile) -> list[Change]:
    """The graphs of a file that have a name to be entered around calls, and for nothing else."""
    if ".as_default()" not in file.text or "Graph()" not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for _, scope in file.scopes:
        for each in [scope, *own_nodes(scope)]:
            for body in (getattr(each, "body", []), getattr(each, "orelse", [])):
                if isinstance(body, list):
                    found += _entered(file, scope, body)
            if isinstance(each, ast.With) and not _builds(each):
                found += _unread(file, scope, each)
    return found


def _entered(file: PlainFile, scope: Scope, body: list[ast.stmt]) -> Iterator[Change]:
    for number, statement in enumerate(body):
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(args=[], keywords=[]) as made
            ):
                pass
            case _:
                continue
        reads = _reads(file, scope, name) if ast.unparse(made.func) == "tf.Graph" else None
        if reads is None:
            continue
        entries = [
            each
            for one in body[number + 1 :]
            if isinstance(one, ast.With) and not _builds(one)
            for each in one.items
            if _enters(each, reads)
        ]
        margin = file.alone(statement)
        if len(reads) != 1 or len(entries) != 1 or margin is None:
            continue
        if file.commented(*file.span(statement)):
            continue
        yield Change(*file.without(statement), (), ALWAYS)
        yield Change(*file.span(reads[0]), (file.span(made),), ALWAYS)


def _unread(file: PlainFile, scope: Scope, node: ast.With) -> Iterator[Change]:
    """`with tf.Graph().as_default() as g:` of which nobody reads `g`."""
    for each in node.items:
        name = each.optional_vars
        if (
            not isinstance(name, ast.Name)
            or ast.unparse(each.context_expr) != "tf.Graph().as_default()"
        ):
            continue
        start, end = file.end(each.context_expr), file.end(name)
        if _reads(file, scope, name.id) == [] and not file.commented(start, end):
            yield Change(start, end, (), ALWAYS)


def _reads(file: PlainFile, scope: Scope, name: str) -> list[ast.Name] | None:
    """Where a name is read that a scope binds once; None where others may read it too."""
    module = isinstance(scope, ast.Module)
    if name in file.shared_between_functions:
        return None
    if module and (name in file.words_of_users or name in file.block.globals):
        return None
    names = [
        each
        for each in (own_nodes(scope) if module else ast.walk(scope))
        if isinstance(each, ast.Name) and each.id == name
    ]
    reads = [each for each in names if isinstance(each.ctx, ast.Load)]
    if len(names) != len(reads) + 1 or not module and bindings(scope, name) != 1:
        return None
    if module and sum(name in bound_by(each) for each in file.tree.body) != 1:
        return None  # a function, or an import, of the name
    return reads


def _enters(item: ast.withitem, reads: list[ast.Name]) -> bool:
    match item:
        case ast.withitem(
            context_expr=ast.Call(func=ast.Attribute(value=held, attr="as_default"), args=[], keywords=[]),
            optional_vars=None,
        ):  # fmt: skip
            return any(held is each for each in reads)
    return False


def _builds(node: ast.With) -> bool:
    return any(isinstance(each, ast.For) and is_tower_loop(each) for each in ast.walk(node))


__all__ = ["named_graphs"]
