"""What a program does with one tower only, beside what it does with several: the latter, where that is the same of one.

`if len(losses) > 1: loss = tf.add_n(losses) / len(losses)` with `else: loss = losses[0]`: the mean of one is that one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers, once_in


def one_or_many(file: PlainFile) -> list[Change]:
    """Such a condition as the statements for several towers."""
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for each in once_in(scope):
            if not isinstance(each, ast.If) or each.lineno <= (loop.end_lineno or loop.lineno):
                continue
            many = _many(file, scope, loop, each)
            if many is None or not _is_mean(file, scope, loop, many, _other(each, many)):
                continue
            if _may_be_sparse(file) and not _are_several(file, scope, loop):
                continue
            change = _instead(file, each, many)
            if change is not None:
                found.append(Change(*change, where))
    return found


_GATHERS = re.compile(r"\bgather|embedding|\bsparse_|IndexedSlices")


def _may_be_sparse(file: PlainFile) -> bool:
    """Whether gradients may be of a few rows.

    The average of several towers may be dense where the gradient of one is not: their norms are others, where a row comes twice,
    and some optimizers leave the other rows alone.
    """
    return any(_GATHERS.search(text) for text in (file.text, *file.imported()))


def _are_several(file: PlainFile, scope: Scope, loop: ast.For) -> bool:
    """Whether it is written out that there are several towers."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range" | "xrange"), args=[count], keywords=[]):
            pass
        case _:
            return False
    if isinstance(count, ast.Name) and _is_kept(file, scope, count):
        for one in (scope, file.tree):
            bound = [
                each.value
                for each in once_in(one)
                if isinstance(each, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == count.id for t in each.targets)
            ]
            if bound:
                if len(bound) != 1 or bindings(one, count.id) != 1:
                    return False
                count = bound[0]
                break
    return isinstance(count, ast.Constant) and isinstance(count.value, int) and count.value > 1


def _many(
    file: PlainFile, scope: Scope, loop: ast.For, statement: ast.If
) -> Sequence[ast.stmt] | None:
    """The block for several towers."""
    match statement.test:
        case ast.Compare(left=left, ops=[ast.Gt()], comparators=[ast.Constant(value=1)]):
            many = statement.body
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=[ast.Constant(value=2)]):
            many = statement.body
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=1)]):
            many = statement.orelse
        case _:
            return None
    if not statement.body or not statement.orelse or not _is_count(file, scope, loop, left):
        return None
    return many


def _other(statement: ast.If, many: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    return statement.orelse if many is statement.body else statement.body


def _is_count(file: PlainFile, scope: Scope, loop: ast.For, node: ast.expr) -> bool:
    """Whether an expression is how many towers there are."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range" | "xrange"), args=[count], keywords=[]):
            if ast.dump(count) == ast.dump(node) and _is_kept(file, scope, count):
                return True
        case ast.Call(func=ast.Name(id="enumerate"), args=[listed], keywords=[]):
            if ast.unparse(node) == f"len({ast.unparse(listed)})" and isinstance(listed, ast.Name):
                return is_pythons(file, "len")
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            return is_pythons(file, "len") and name in dict(_appended(scope, loop))
    return False


def _is_kept(file: PlainFile, scope: Scope, node: ast.expr) -> bool:
    """Whether a count is read of names that a scope does not bind anew."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return all(
        bindings(scope, each) <= 1 and each not in file.shared_between_functions for each in names
    )


def _appended(scope: Scope, loop: ast.For) -> Iterator[tuple[str, ast.expr]]:
    """The lists to which each tower appends one value, begun empty in front of the loop, and that value."""
    waiting: list[ast.stmt] = list(loop.body)
    found: dict[str, list[ast.expr]] = {}
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, ast.With):
            waiting += each.body
        match each:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]
                )
            ):
                found.setdefault(name, []).append(value)
    for name, values in found.items():
        if len(values) == 1 and bindings(scope, name) == 1:
            yield name, values[0]


def _is_mean(
    file: PlainFile,
    scope: Scope,
    loop: ast.For,
    many: Sequence[ast.stmt],
    one: Sequence[ast.stmt],
) -> bool:
    """Whether what is bound for one tower is the only entry of lists of which the other block computes means or sums."""
    lists = dict(_appended(scope, loop))
    wanted: dict[str, str] = {}
    for each in one:
        match each:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Subscript(value=ast.Name(id=listed), slice=ast.Constant(value=0)),
            ) if listed in lists and name not in wanted:
                wanted[name] = listed
            case _:
                return False
    made: dict[str, ast.expr] = {}
    for each in many:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in made:
                made[name] = value
            case _:
                return False
    if not wanted or set(made) != set(wanted):
        return False
    own = {each.name for each in file.tree.body if isinstance(each, ast.FunctionDef)}
    return all(
        _is_of_one(value, wanted[name], lists[wanted[name]], loop, own)
        for name, value in made.items()
    )


def _is_of_one(value: ast.expr, listed: str, entry: ast.expr, loop: ast.For, own: set[str]) -> bool:
    """Whether a value is a list's entry, if that has one only; what a function of the program averages is told later."""
    match value:
        case ast.BinOp(left=left, op=ast.Div()) if _is_length(value.right, listed, loop):
            return _sums(left, listed)
        case ast.Call(func=ast.Name(id=called), args=[ast.Name(id=given)], keywords=[]):
            return called in own and given == listed
        case ast.Call(func=func, args=[ast.Name(id=given)], keywords=[]) if given == listed:
            if ast.unparse(func) == "tf.add_n":
                return True
            return ast.unparse(func) == "tf.reduce_mean" and _is_scalar(entry, loop)
        case ast.Call(func=func, args=[ast.Name(id=given), ast.Constant(value=0)], keywords=[]):
            return given == listed and ast.unparse(func) == "tf.reduce_mean"
    return False


def _sums(node: ast.expr, listed: str) -> bool:
    match node:
        case ast.Call(func=func, args=[ast.Name(id=given)], keywords=[]) if given == listed:
            return ast.unparse(func) == "tf.add_n"
    return False


def _is_length(node: ast.expr, listed: str, loop: ast.For) -> bool:
    text = ast.unparse(node)
    counts = {f"len({listed})", f"float(len({listed}))"}
    if isinstance(loop.iter, ast.Call) and loop.iter.args:
        count = ast.unparse(loop.iter.args[0])
        counts |= {count, f"float({count})", f"len({count})"}
    return text in counts


def _is_scalar(entry: ast.expr, loop: ast.For) -> bool:
    """Whether a tower's value is surely a number: a mean, or a sum, over all of something."""
    made = [entry]
    if isinstance(entry, ast.Name):
        made = [
            each.value
            for each in ast.walk(loop)
            if isinstance(each, ast.Assign)
            and any(isinstance(one, ast.Name) and one.id == entry.id for one in each.targets)
        ]
    return bool(made) and all(
        isinstance(each, ast.Call)
        and ast.unparse(each.func) in ("tf.reduce_mean", "tf.reduce_sum")
        and len(each.args) == 1
        and not each.keywords
        for each in made
    )


def _instead(
    file: PlainFile, statement: ast.If, many: Sequence[ast.stmt]
) -> tuple[int, int, tuple[Part, ...]] | None:
    margin = file.alone(statement)
    if margin is None or any(file.alone(each) is None for each in many):
        return None
    start, end = file.span(statement)
    if file.commented(start, end):
        return None
    parts: list[Part] = []
    for each in many:
        if each.lineno != each.end_lineno:
            return None
        parts += [f"\n{margin}"] if parts else []
        parts.append(file.span(each))
    return start, end, tuple(parts)


__all__ = ["one_or_many"]
