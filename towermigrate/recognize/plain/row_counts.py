"""Rows of a tower that the graph counts: `n = tf.shape(x)[0] // 2`, written where the towers take their rows."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, names_in
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.feeds import only_name


def row_counts(file: PlainFile) -> list[Change]:
    """`n = tf.shape(x)[0] // 2` in each `x[i * n:(i + 1) * n]` of the towers, where nothing else reads it."""
    if "tf.shape(" not in file.text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for each in [*once_in(scope), *loop.body, *_under_scopes(loop.body)]
        for change in _written(file, scope, loop, each, where)
    ]


def _under_scopes(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a turn that stand under nothing but `with`."""
    inner = [one for each in body if isinstance(each, ast.With) for one in each.body]
    return [*inner, *_under_scopes(inner)] if inner else []


def _written(
    file: PlainFile, scope: Scope, loop: ast.For, statement: ast.stmt, where: str
) -> list[Change]:
    name = only_name(statement)
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not name or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.FloorDiv):
        return []
    gone = [statement]
    whole = value.left
    if isinstance(whole, ast.Name):  # `rows = tf.shape(x)[0]` in front of it
        made = [each for each in once_in(scope) if only_name(each) == whole.id]
        if len(made) != 1 or not _is_its_own(file, scope, whole.id, 1):
            return []
        (first,) = made
        assert isinstance(first, ast.Assign)
        gone, whole = [first, statement], first.value
    source = _source(whole)
    if not source or bindings(scope, source) != 1 or statement.lineno > (loop.end_lineno or 0):
        return []
    parts = value.right
    if not isinstance(parts, ast.Name | ast.Attribute | ast.Constant | ast.Call):
        return []
    if isinstance(parts, ast.Call) and ast.unparse(parts.func) != "len":
        return []
    reads = _reads(scope, name)
    bounds = [
        id(one)
        for each in ast.walk(loop)
        if isinstance(each, ast.Slice) and each.step is None
        for bound in (each.lower, each.upper)
        if bound is not None
        for one in ast.walk(bound)
    ]
    if not _is_its_own(file, scope, name, len(reads)) or any(id(r) not in bounds for r in reads):
        return []
    if any(file.alone(each) is None or _has_comment(file, each) for each in gone):
        return []
    text: tuple[str | tuple[int, int], ...] = (
        "(", file.span(whole), " // ", file.span(parts), ")"
    )  # fmt: skip
    return [
        *(Change(*file.without(each), (), where) for each in gone),
        *(Change(*file.span(each), text, where) for each in reads),
    ]


def _source(node: ast.expr) -> str:
    """`x` of `tf.shape(x)[0]`."""
    match node:
        case ast.Subscript(
            value=ast.Call(func=func, args=[ast.Name(id=name)], keywords=[]),
            slice=ast.Constant(value=0),
        ) if ast.unparse(func) == "tf.shape":
            return name
    return ""


def _reads(scope: Scope, name: str) -> list[ast.Name]:
    return [each for each in names_in(scope, name) if isinstance(each.ctx, ast.Load)]


def _is_its_own(file: PlainFile, scope: Scope, name: str, reads: int) -> bool:
    """Whether a name is bound once, in one scope, and read so often."""
    return (
        bindings(scope, name) == 1
        and len(_reads(scope, name)) == reads > 0
        and name not in file.shared_between_functions
        and not (isinstance(scope, ast.Module) and name in file.words_of_users)
    )


def _has_comment(file: PlainFile, statement: ast.stmt) -> bool:
    """Whether a comment stands above, in or behind a statement."""
    line = file.starts[statement.lineno - 1]
    start, end = file.without(statement)
    return start != line or file.above(statement) != line or file.commented(start, end)
