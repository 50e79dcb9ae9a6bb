"""Gradients that a loop behind the towers changes one by one and appends: a comprehension that makes the same list.

`scaled = []` and `for g, v in grads: scaled.append((g * 2.0, v))` is `scaled = [(g * 2.0, v) for g, v in grads]`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    blocks,
    names_in,
)
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.plain.given import given as as_given
from towermigrate.recognize.python_scopes import own_nodes


class _NotOne(Exception):
    """It does more than make a list, or cannot be written as one expression."""


@dataclass
class _Made:
    """What a loop's names are so far, and what it appends: under a test, where there is one.

    `unknown` are names that may still have what an earlier turn gave them.
    """

    values: dict[str, ast.expr] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    element: ast.expr | None = None
    only: ast.expr | None = None

    def bind(self, name: str, value: ast.expr) -> None:
        self.values[name] = value
        self.unknown.discard(name)

    def read(self, node: ast.expr) -> ast.expr:
        """An expression with what its names are."""
        read = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if read & self.unknown:
            raise _NotOne
        return _with(self.values, node)


def appended_pairs(file: PlainFile) -> list[Change]:
    """The lists that are applied, or gone over by another such loop."""
    if ".append(" not in file.text or "apply_gradients" not in file.text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for body, always in blocks(scope):
            for number, each in enumerate(body[:-1] if always else ()):
                if each.lineno > (loop.end_lineno or 0):
                    found += _as_one(file, scope, body[number : number + 2], where)
    return found


def _as_one(file: PlainFile, scope: Scope, rows: Sequence[ast.stmt], where: str) -> list[Change]:
    match rows:
        case [
            ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])) as begun,
            ast.For(orelse=[]) as loop,
        ]:
            pass
        case _:
            return []
    if file.alone(begun) is None or file.alone(loop) is None:
        return []
    if file.commented(file.start(begun), file.end(loop)) or name in file.shared_between_functions:
        return []
    if not _is_applied(scope, name, loop) or isinstance(scope, ast.Module) and file.words_of_users:
        return []
    try:
        made = _list(name, loop, _Made())
    except _NotOne:
        return []
    inside = {id(each) for each in ast.walk(loop)}
    bound = {
        each.id
        for each in ast.walk(loop)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    for own in bound:  # a comprehension's names are its own
        behind = [each for each in names_in(scope, own) if id(each) not in inside]
        if any(isinstance(e.ctx, ast.Load) and _follows(e, loop, behind) for e in behind):
            return []
    return [
        Change(*file.span(begun.value), (ast.unparse(made),), where),
        Change(*file.without(loop), (), where),
    ]


def _follows(read: ast.Name, loop: ast.For, others: Sequence[ast.Name]) -> bool:
    """Whether a name that is read behind a loop may be what the loop left."""
    if read.lineno < loop.lineno:
        return False
    anew = [
        each.lineno
        for each in others
        if not isinstance(each.ctx, ast.Load) and each.lineno > (loop.end_lineno or 0)
    ]
    return not anew or read.lineno <= min(anew)


def _is_applied(scope: Scope, name: str, loop: ast.For) -> bool:
    """Whether a list is only applied, or gone over once more, behind the loop that makes it."""
    inside = {id(each) for each in ast.walk(loop)}
    given = {
        id(one)
        for each in own_nodes(scope)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "apply_gradients"
        for one in each.args[:1]
    }
    given |= {id(each.iter) for each in own_nodes(scope) if isinstance(each, ast.For)}
    reads = [
        each
        for each in names_in(scope, name)
        if isinstance(each.ctx, ast.Load) and id(each) not in inside
    ]
    return bindings(scope, name) == 1 and bool(reads) and all(id(each) in given for each in reads)


def _list(name: str, loop: ast.For, around: _Made) -> ast.ListComp:
    """What a loop appends to a list that was empty."""
    simple = (ast.Name, ast.Tuple, ast.List, ast.Store)
    if not all(isinstance(each, simple) for each in ast.walk(loop.target)):
        raise _NotOne
    targets = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    bound = _bound_in(loop)
    made = _Made(
        {key: value for key, value in around.values.items() if key not in bound | targets},
        (around.unknown | bound) - targets,
    )
    over = around.read(loop.iter)
    _statements(name, loop.body, made)
    if made.element is None:
        raise _NotOne
    ifs = [] if made.only is None else [made.only]
    return ast.ListComp(made.element, [ast.comprehension(loop.target, over, ifs, 0)])


def _bound_in(loop: ast.For) -> set[str]:
    """The names that a loop's statements bind."""
    return {
        each.id
        for row in loop.body
        for each in ast.walk(row)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    } - _of_comprehensions(loop)


def _of_comprehensions(node: ast.AST) -> set[str]:
    return {
        one.id
        for each in ast.walk(node)
        if isinstance(each, ast.comprehension)
        for one in ast.walk(each.target)
        if isinstance(one, ast.Name)
    }


def _statements(name: str, body: Sequence[ast.stmt], made: _Made) -> None:
    rows = list(body)
    while rows:
        each = rows.pop(0)
        if made.element is not None:
            raise _NotOne  # something comes behind it
        match each:
            case ast.Assign(targets=[ast.Name(id=inner)], value=ast.List(elts=[])) if (
                rows and isinstance(rows[0], ast.For) and not rows[0].orelse
            ):
                loop = rows.pop(0)
                assert isinstance(loop, ast.For)
                listed = _list(inner, loop, made)
                left = _bound_in(loop)
                left |= {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
                made.unknown |= left
                made.values = {key: one for key, one in made.values.items() if key not in left}
                made.bind(inner, listed)
            case ast.Assign(targets=[ast.Name(id=own)], value=value) if own != name:
                made.bind(own, made.read(value))
            case ast.If(test=test, body=then, orelse=other):
                _either(name, made.read(test), then, other, made)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=of), attr="append"),
                    args=[one],
                    keywords=[],
                )
            ) if of == name and not isinstance(one, ast.Starred):
                made.element = made.read(one)
            case _:
                raise _NotOne


def _either(
    name: str, test: ast.expr, then: Sequence[ast.stmt], other: Sequence[ast.stmt], made: _Made
) -> None:
    first = _Made(dict(made.values), set(made.unknown))
    second = _Made(dict(made.values), set(made.unknown))
    _statements(name, then, first)
    _statements(name, other, second)
    if first.only is not None or second.only is not None:
        raise _NotOne
    if first.element is not None and second.element is not None:
        made.element = ast.IfExp(test, first.element, second.element)
    elif first.element is not None and not other:
        made.element, made.only = first.element, test
    elif first.element is not None or second.element is not None:
        raise _NotOne
    else:
        for key in {*first.values, *second.values}:
            one = first.values.get(key, ast.Name(key, ast.Load()))
            two = second.values.get(key, ast.Name(key, ast.Load()))
            if ast.dump(one) != ast.dump(two):
                made.values[key] = ast.IfExp(test, one, two)
        made.unknown = first.unknown | second.unknown


def _with(given: Mapping[str, ast.expr], node: ast.expr) -> ast.expr:
    """An expression with what its names are; what computes something stands in it once."""
    copy, counts = as_given(given, node)
    for name, count in counts.items():
        if count > 1 and not isinstance(given[name], ast.Name | ast.Constant):
            raise _NotOne
    own = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    if any(isinstance(each, own) for each in ast.walk(copy)):
        raise _NotOne
    if _of_comprehensions(node) & set(given):
        raise _NotOne  # a name of its own, which is none of the loop's
    return copy


__all__ = ["appended_pairs"]
