"""A session that a `finally` closes: the `with` that does the same."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.methods import makes_session


def closed_sessions(file: PlainFile) -> list[Change]:
    """`sess = tf.Session()` and `try: … finally: sess.close()` behind it as `with tf.Session() as sess: …`."""
    found: list[Change] = []
    if "finally" not in file.text:
        return found
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for first, second in zip(body, body[1:], strict=False) if always else ():
                found += _closed(file, where, scope, first, second)
    return found


def _closed(
    file: PlainFile, where: str, scope: Scope, opened: ast.stmt, tried: ast.stmt
) -> list[Change]:
    if not isinstance(opened, ast.Assign) or not isinstance(tried, ast.Try):
        return []
    (target, *others) = opened.targets
    if others or not isinstance(target, ast.Name) or makes_session(opened.value) != "Session":
        return []
    closing = [each for each in tried.finalbody if _closes(each, target.id)]
    if len(closing) != 1 or bindings(scope, target.id) != 1:
        return []
    end = file.end(tried)
    later = (n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == target.id)
    if any(file.start(each) > file.end(closing[0]) for each in later):
        return []
    if len(tried.finalbody) > 1:
        only = file.alone(closing[0])
        return [] if only is None else [Change(*file.without(closing[0]), (), where)]
    handled = tried.handlers[-1].body if tried.handlers else tried.body
    last = file.end((tried.orelse or handled)[-1])
    if tried.handlers:
        return [] if file.commented(last, end) else [Change(last, end, (), where)]
    header = file.text.index(":", file.start(tried)) + 1
    if file.alone(opened) is None or file.commented(file.start(opened), header):
        return []
    if file.commented(last, end):
        return []
    return [
        Change(
            file.start(opened),
            header,
            ("with ", file.span(opened.value), f" as {target.id}:"),
            where,
        ),
        Change(last, end, (), where),
    ]


def _closes(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement) == f"{name}.close()"
