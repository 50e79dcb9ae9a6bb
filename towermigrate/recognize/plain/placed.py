"""Where the parts of a plain program stand in the author's text, of which some have other forms, or none of their own.

A place in the plain text has one in the author's, but what begins there may be something else: `x = xs[i]` of the plain text is
the target of the author's `for i, (x, y) in …`. Whoever looks at a program while it runs needs whole statements and expressions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from towermigrate.program import Span, Stage, TowerInput, TowerLoop, TowerProgram
from towermigrate.recognize.joined import line_starts

_Place = Callable[[Span], Span]


def placed(
    plain: TowerProgram,
    told: TowerProgram,
    texts: Mapping[str, str],
    own: Mapping[str, str],
    place: _Place,
) -> TowerProgram:
    """A program with the places of the author's text, each of them of something whole.

    Args:
        plain: the program, with its places in the plain text.
        told: the program, with what `place` gives for these.
        texts: the plain texts, by file.
        own: the author's.
        place: gives the author's stretch for one of the plain text.
    """
    path = told.loop.statement.path
    if path not in own or path not in texts or own[path] == texts[path]:
        return told
    author = _Author(path, own[path])
    loop = author.loop(told.loop.statement.line)
    if loop is None:
        return told
    written = _Author(plain.loop.statement.path, texts[plain.loop.statement.path])
    pairs = zip(plain.inputs, told.inputs, strict=True)
    stages = zip(plain.stages, told.stages, strict=True)
    return replace(
        told,
        loop=_loop(told.loop, author, loop),
        inputs=tuple(_input(each, one, written, author, loop, place) for each, one in pairs),
        stages=tuple(_stage(each, one, written, author) for each, one in stages),
    )


class _Author:
    """One file, its statements, and stretches of it in characters."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.starts = line_starts(text)

    @cached_property
    def rows(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def statements(self) -> list[ast.stmt]:
        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError):
            return []
        return [each for each in ast.walk(tree) if isinstance(each, ast.stmt)]

    def slice(self, span: Span) -> str:
        if span.path != self.path or not 0 < span.line <= span.end_line <= len(self.starts):
            return ""
        start = self.starts[span.line - 1] + span.column
        return self.text[start : self.starts[span.end_line - 1] + span.end_column]

    def span(self, first: ast.stmt | ast.expr, last: ast.stmt | ast.expr | None = None) -> Span:
        last = first if last is None else last
        end = last.end_lineno or last.lineno
        return Span(
            self.path,
            first.lineno,
            self._column(first.lineno, first.col_offset),
            end,
            self._column(end, last.end_col_offset or 0),
        )

    def _column(self, line: int, byte: int) -> int:
        return len(self.rows[line - 1].encode()[:byte].decode(errors="ignore"))

    def loop(self, line: int) -> ast.For | None:
        found = [
            each for each in self.statements if isinstance(each, ast.For) and each.lineno == line
        ]
        return found[0] if len(found) == 1 else None

    def begins(self, node: ast.stmt, span: Span) -> bool:
        return (node.lineno, self._column(node.lineno, node.col_offset)) == (span.line, span.column)

    def around(self, span: Span) -> Iterator[ast.stmt]:
        """The statements without blocks of their own that a stretch begins in."""
        for each in self.statements:
            if not hasattr(each, "body") and each.lineno <= span.line <= (each.end_lineno or 0):
                at = self.span(each)
                if (at.line, at.column) <= (span.line, span.column) < (at.end_line, at.end_column):
                    yield each


def _loop(told: TowerLoop, author: _Author, node: ast.For) -> TowerLoop:
    whole, first = author.span(node), node.body[0]
    body = author.span(first, node.body[-1])
    at, end = told.statement, (told.statement.end_line, told.statement.end_column)
    begins = (at.line, at.column) == (whole.line, whole.column)
    if not begins or not (whole.end_line, whole.end_column) <= end <= (whole.end_line + 1, 0):
        told = replace(told, statement=whole)
    if (told.body.line, told.body.column) != (body.line, body.column):
        told = replace(told, body=body)
    return told


def _input(
    plain: TowerInput,
    told: TowerInput,
    written: _Author,
    author: _Author,
    loop: ast.For,
    place: _Place,
) -> TowerInput:
    at, there = plain.statement, told.statement
    if at is None or there is None or there.path != author.path or at.path != written.path:
        return told
    if set(told.names) <= _stored(loop.target):
        return replace(told, statement=None)
    begun = [each for each in author.statements if author.begins(each, there)]
    if any(
        isinstance(each, ast.With) and there.end_line >= (each.end_lineno or 0) for each in begun
    ):
        return told
    binding = [
        each
        for each in ast.walk(loop)
        if isinstance(each, ast.Assign) and set(told.names) <= _stored(each)
    ]
    for each in author.around(there) if len(binding) != 1 else binding:
        if isinstance(each, ast.Assign) and set(told.names) <= _stored(each):
            return replace(told, statement=author.span(each))
    for node in written.around(at):
        if not isinstance(node, ast.Assign):
            continue
        asked = place(written.span(node.value))
        if author.slice(asked) == written.slice(written.span(node.value)):
            return replace(told, statement=None, expressions=(asked,))
        if isinstance(node.value, ast.Call):
            function = place(written.span(node.value.func))
            if author.slice(function) == written.slice(written.span(node.value.func)):
                return replace(told, statement=None, asked=function)
    return replace(told, names=(), read=(), statement=None)  # nothing of the author's has that name


def _stored(node: ast.AST) -> set[str]:
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _stage(plain: Stage, told: Stage, written: _Author, author: _Author) -> Stage:
    at, there = plain.tower_loss, told.tower_loss
    if at is None or there is None or there.path != author.path:
        return told
    if author.slice(there) == written.slice(at):
        return told
    for each in author.around(there):
        match each:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[added])):
                return replace(told, tower_loss=author.span(added))
            case ast.AugAssign(value=added):
                return replace(told, tower_loss=author.span(added))
    return told


__all__ = ["placed"]
