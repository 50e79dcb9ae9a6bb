"""Slices of a tower's rows whose bounds have names, or are written otherwise than `x[i * n:(i + 1) * n]`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks, settled
from towermigrate.recognize.plain.collected import is_pythons, towers_of

# A sum of products: the factors of each (names, and what is read as one), and how often it is there.
_Sum = Mapping[tuple[str, ...], int]


def bounds(file: PlainFile) -> list[Change]:
    """`start = i * n` and `x[start:start + n]` as `x[i * n:(i + 1) * n]`, by what the bounds are as sums of products.

    What gives a bound a name goes where nothing else reads it.
    """
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for loop in towers_of(body) if always else ():
                found += _in_loop(file, scope, loop, where)
    return found


def _in_loop(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> list[Change]:
    target = loop.target
    if isinstance(target, ast.Tuple) and ast.unparse(loop.iter).startswith("enumerate("):
        target = target.elts[0]
    if not isinstance(target, ast.Name) or bindings(scope, target.id) != 1:
        return []
    number = target.id
    named = _named(file, scope, loop)
    found: list[Change] = []
    taken: set[int] = set()
    # A function may run later, when the names and the number are no more of one tower.
    later = {
        id(one)
        for each in ast.walk(loop)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.GeneratorExp)
        for one in ast.walk(each)
    }
    for each in ast.walk(loop):
        if (
            id(each) in later
            or not isinstance(each, ast.Subscript)
            or not isinstance(each.slice, ast.Slice)
        ):
            continue
        lower, upper = each.slice.lower, each.slice.upper
        if lower is None or upper is None or each.slice.step is not None:
            continue
        begin, end = sum_of(lower, named), sum_of(upper, named)
        if begin is None or end is None:
            if (made := _divided(file, scope, each.slice, number)) is not None:
                found.append(Change(file.start(lower), file.end(upper), (made,), where))
            continue
        if not all(
            _stays(file, loop, one, named) for bound in (lower, upper) for one in ast.walk(bound)
        ):
            continue
        size = _less(end, begin)
        plain = _text(size)
        if plain is None or any(number in factors for factors in size):
            continue
        if begin != {tuple(sorted((*factors, number))): count for factors, count in size.items()}:
            continue
        start, stop = file.start(lower), file.end(upper)
        made = f"{number} * {plain}:({number} + 1) * {plain}"
        if file.text[start:stop].replace(" ", "") == made.replace(" ", ""):
            continue
        if file.commented(start, stop):
            continue
        found.append(Change(start, stop, (made,), where))
        taken |= {id(one) for bound in (lower, upper) for one in ast.walk(bound)}
    return found + (_gone(file, scope, named, taken, where) if found else [])


def _divided(file: PlainFile, scope: Scope, part: ast.Slice, number: str) -> str | None:
    """`i * (B // n):(i + 1) * (B // n)` for `i * B // n:(i + 1) * B // n`, also as `int(i * B / n)`, of constants that divide."""
    lower, upper = _quotient(part.lower), _quotient(part.upper)
    if lower is None or upper is None or part.lower is None or part.upper is None:
        return None
    (low, parts), (high, others) = lower, upper
    if number not in low or parts != others:
        return None
    rows = low[1 - low.index(number)]
    if sorted(high) != sorted([f"({number} + 1)", rows]):
        return None
    whole, count = _constant(file, scope, rows), _constant(file, scope, parts)
    if whole is None or count is None or count < 1 or whole % count:
        return None
    if file.commented(file.start(part.lower), file.end(part.upper)) or not is_pythons(file, "int"):
        return None
    return f"{number} * ({rows} // {parts}):({number} + 1) * ({rows} // {parts})"


def _quotient(node: ast.expr | None) -> tuple[list[str], str] | None:
    """The two factors and the divisor of `a * b // n` or `int(a * b / n)`, as texts."""
    match node:
        case ast.BinOp(
            left=ast.BinOp(left=left, op=ast.Mult(), right=right), op=ast.FloorDiv(), right=parts
        ):
            pass
        case ast.Call(
            func=ast.Name(id="int"),
            args=[
                ast.BinOp(
                    left=ast.BinOp(left=left, op=ast.Mult(), right=right),
                    op=ast.Div(),
                    right=parts,
                )
            ],
            keywords=[],
        ):
            pass
        case _:
            return None
    texts = [f"({t})" if " " in (t := ast.unparse(each)) else t for each in (left, right)]
    return texts, ast.unparse(parts)


def _constant(file: PlainFile, scope: Scope, text: str) -> int | None:
    """The whole number that a text is, or that the module binds its name to, once and for all."""
    if text.isdecimal():
        return int(text)
    if text in file.words_of_users or text in file.shared_between_functions:
        return None
    if not isinstance(scope, ast.Module) and bindings(scope, text):
        return None
    for each in file.tree.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                if name == text and type(value) is int and bindings(file.tree, name) == 1:
                    return value
    return None


def _stays(
    file: PlainFile,
    loop: ast.For,
    node: ast.AST,
    named: Mapping[str, tuple[ast.Assign, ast.expr]],
) -> bool:
    """Whether a name in a bound is the same wherever a tower reads it: a name of a bound, all that it is made of."""
    if isinstance(node, ast.Attribute):
        return settled(file, node)
    if not isinstance(node, ast.Name):
        return True
    if node.id in named:
        statement, value = named[node.id]
        others = {name: each for name, each in named.items() if name != node.id}
        return (statement.end_lineno or 0) < node.lineno and all(
            _stays(file, loop, each, others) for each in ast.walk(value)
        )
    stored = [
        each
        for part in loop.body
        for each in ast.walk(part)
        if isinstance(each, ast.Name) and each.id == node.id and not isinstance(each.ctx, ast.Load)
    ]
    return not stored and node.id not in file.shared_between_functions


def _named(file: PlainFile, scope: Scope, loop: ast.For) -> dict[str, tuple[ast.Assign, ast.expr]]:
    """The names that a tower gives to a number, each bound once."""
    found: dict[str, tuple[ast.Assign, ast.expr]] = {}
    waiting = list(loop.body)
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, ast.With):
            waiting[:0] = each.body
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        (target,) = each.targets
        pairs = [(target, each.value)]
        if isinstance(target, ast.Tuple):
            if not isinstance(each.value, ast.Tuple) or len(each.value.elts) != len(target.elts):
                continue
            pairs = list(zip(target.elts, each.value.elts, strict=True))
        for one, value in pairs:
            if not isinstance(one, ast.Name) or bindings(scope, one.id) != 1:
                continue
            if one.id in file.shared_between_functions:
                continue
            number = isinstance(value, ast.Constant) and type(value.value) is int
            if not number and not isinstance(value, ast.BinOp):
                continue
            if sum_of(value, found) is not None:
                found[one.id] = each, value
    return found


def sum_of(node: ast.expr, named: Mapping[str, tuple[ast.Assign, ast.expr]]) -> _Sum | None:
    """An expression of whole numbers as a sum of products; None where it is none.

    A name of the towers stands for what it is bound to, which is the same where the name is read: only names that are
    bound once, and settings, are in it.
    """
    if isinstance(node, ast.Constant):
        return {(): node.value} if type(node.value) is int and node.value else None
    if isinstance(node, ast.Name):
        if node.id in named:
            return sum_of(named[node.id][1], {k: v for k, v in named.items() if k != node.id})
        return {(node.id,): 1}
    if isinstance(node, ast.Attribute):
        return {(ast.unparse(node),): 1} if isinstance(node.value, ast.Name) else None
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return None
    left, right = sum_of(node.left, named), sum_of(node.right, named)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Mult):
        products: Counter[tuple[str, ...]] = Counter()
        for one, count in left.items():
            for other, times in right.items():
                products[tuple(sorted((*one, *other)))] += count * times
        return {factors: count for factors, count in products.items() if count}
    if isinstance(node.op, ast.Sub):
        return _less(left, right)
    return _less(left, {factors: -count for factors, count in right.items()})


def _less(one: _Sum, other: _Sum) -> _Sum:
    found = {factors: one.get(factors, 0) - other.get(factors, 0) for factors in {*one, *other}}
    return {factors: count for factors, count in found.items() if count}


def _text(size: _Sum) -> str | None:
    """A number of rows, where it is one product."""
    if len(size) != 1:
        return None
    ((factors, count),) = size.items()
    if count < 1:
        return None
    words = ([str(count)] if count != 1 or not factors else []) + list(factors)
    return words[0] if len(words) == 1 else f"({' * '.join(words)})"


def _gone(
    file: PlainFile,
    scope: Scope,
    named: Mapping[str, tuple[ast.Assign, ast.expr]],
    taken: set[int],
    where: str,
) -> list[Change]:
    """The statements that give names to bounds, where no name of one is read any more."""
    going: dict[int, ast.Assign] = {}
    while True:
        gone = taken | {id(one) for each in going.values() for one in ast.walk(each)}
        more = {}
        for each, _ in named.values():
            names = [one.id for one in ast.walk(each.targets[0]) if isinstance(one, ast.Name)]
            if id(each) in going or any(name not in named for name in names):
                continue
            reads = [
                one
                for name in names
                for one in file.uses(name)
                if isinstance(one.ctx, ast.Load) and id(one) not in gone
            ]
            if not reads and file.alone(each) is not None and not file.words_of_users & {*names}:
                more[id(each)] = each
        if not more:
            break
        going |= more
    return [
        Change(*file.without(each), (), where) for each in going.values() if _has_more(file, each)
    ]


def _has_more(file: PlainFile, statement: ast.Assign) -> bool:
    """Whether a block has another statement than this one, so that it may go."""
    for each in file.nodes:
        body = getattr(each, "body", None)
        if isinstance(body, list) and any(one is statement for one in body):
            return len(body) > 1
    return False
