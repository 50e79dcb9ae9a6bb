"""Towers that are built in two loops, their losses in one and the gradients of these in the next: in one loop."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from towermigrate.recognize.plain.averaged import is_settled
from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks, stores
from towermigrate.recognize.plain.collected import is_pythons, is_tower_loop
from towermigrate.recognize.plain.told import SAYS
from towermigrate.recognize.python_scopes import own_nodes

_HIDES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Import, ast.ImportFrom, ast.NamedExpr, ast.Global,
    ast.Nonlocal, ast.Try, ast.Delete,
)  # fmt: skip
"""What may bind or keep something unseen."""


def joined_loops(file: PlainFile) -> list[Change]:
    """`for i in range(N): … losses.append(loss)`, then `for i in range(N): grads = opt.compute_gradients(losses[i])`."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, whenever in blocks(scope):
            towers = [each for each in body if isinstance(each, ast.For) and is_tower_loop(each)]
            if not whenever or len(towers) != 2:
                continue
            first, second = towers
            if body.index(second) == body.index(first) + 1:
                found += _joined(file, scope, first, second, where)
    return found


def lists_in_front(file: PlainFile) -> list[Change]:
    """`tower_grads = []` between two loops of towers: in front of the first one, which does not know of it."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, whenever in blocks(scope):
            towers = [each for each in body if isinstance(each, ast.For) and is_tower_loop(each)]
            if not whenever or len(towers) != 2 or file.finds_names_by_text:
                continue
            first, second = towers
            between = body[body.index(first) + 1 : body.index(second)]
            names = {each.id for each in ast.walk(first) if isinstance(each, ast.Name)}
            margin = file.alone(first)
            if not between or margin is None or not all(_is_empty_list(e, names) for e in between):
                continue
            if any(isinstance(each, _HIDES) for each in ast.walk(first)):
                continue
            if any(file.alone(e) is None or file.commented(*file.span(e)) for e in between):
                continue
            place = file.above(first)
            rows = "".join(f"{margin}{file.of(each)}\n" for each in between)
            found.append(Change(place, place, (rows,), where))
            found += [Change(*file.without(each), (), where) for each in between]
    return found


def _is_empty_list(statement: ast.stmt, names: set[str]) -> bool:
    """Whether a statement binds names that a loop has not to empty lists."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    (target,), value = statement.targets, statement.value
    several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    return (
        (several or len(targets) == len(values) == 1)
        and len(targets) == len(values)
        and all(isinstance(each, ast.Name) and each.id not in names for each in targets)
        and all(isinstance(each, ast.List) and not each.elts for each in values)
    )


def _joined(
    file: PlainFile, scope: Scope, first: ast.For, second: ast.For, where: str
) -> list[Change]:
    index = first.target
    if first.orelse or second.orelse or not is_tower_loop(first) or not is_tower_loop(second):
        return []
    if not isinstance(index, ast.Name) or ast.unparse(second.target) != index.id:
        return []
    over = ast.unparse(first.iter)
    if over != ast.unparse(second.iter) or not _counts(file, scope, first):
        return []
    if first.body[0].col_offset != second.body[0].col_offset:
        return []
    if file.alone(first) is None or file.alone(second) is None:
        return []
    if file.finds_names_by_text or _binds_again(first, index.id) or _binds_again(second, index.id):
        return []
    if _says(first) and _says(second):
        return []  # in another order, tower by tower
    lists = {
        name: value
        for name, value in _collected(scope, first).items()
        if _only_items(scope, first, second, name, index.id)
    }
    replaced = {id(each): value for each, value in _items(second, lists, index.id)}
    if not _apart(scope, first, second, {index.id}, lists, {*replaced.values()}):
        return []
    changes: list[Change] = []
    gone: set[int] = set()
    for each in always(second):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() as value):
                if replaced.get(id(value)) == name and file.alone(each) is not None:
                    changes.append(Change(*file.without(each), (), where))
                    gone.add(id(value))
    changes += [
        Change(*file.span(each), (value,), where)
        for each, value in _items(second, lists, index.id)
        if id(each) not in gone
    ]
    start, end = file.starts[second.lineno - 1], file.end(second.iter)
    stop = file.text.find("\n", end)
    if second.body[0].lineno == second.lineno or file.text[end:stop].strip() != ":":
        return []
    return [*changes, *_comments(file, first, second, where), Change(start, stop + 1, (), where)]


def _comments(file: PlainFile, first: ast.For, second: ast.For, where: str) -> list[Change]:
    """What stands in front of the second loop stands in the first one's body then, with its margin."""
    outer, inner = file.alone(first), file.alone(first.body[0])
    if outer is None or inner is None:
        return []
    found: list[Change] = []
    for line in range((first.end_lineno or first.lineno) + 1, second.lineno):
        start = file.starts[line - 1]
        if file.text.startswith(f"{outer}#", start):
            found.append(Change(start, start + len(outer), (inner,), where))
    return found


def _counts(file: PlainFile, scope: Scope, loop: ast.For) -> bool:
    """Whether a loop counts from zero to what is the same in both loops."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range" | "xrange" as name), args=[count], keywords=[]):
            names = [each.id for each in ast.walk(count) if isinstance(each, ast.Name)]
            plain = isinstance(count, ast.Name | ast.Constant) or is_settled(file, count)
            return plain and is_pythons(file, name) and not any(stores(loop, n) for n in names)
    return False


def _says(loop: ast.For) -> bool:
    return any(
        isinstance(each, ast.Call) and ast.unparse(each.func) in SAYS for each in ast.walk(loop)
    )


def _binds_again(loop: ast.For, name: str) -> bool:
    """Whether a loop, or a function or comprehension in it, binds the name of its number once more."""
    inner = (each for each in ast.walk(loop) if isinstance(each, ast.arg))
    return len(stores(loop, name)) != 1 or any(each.arg == name for each in inner)


def always(loop: ast.For) -> list[ast.stmt]:
    """The statements that run in every turn of a loop, blocks of scopes before what is in them."""
    found: list[ast.stmt] = []
    waiting = list(loop.body)
    while waiting:
        each = waiting.pop(0)
        found.append(each)
        if isinstance(each, ast.With):
            waiting = [*each.body, *waiting]
    return found


def _collected(scope: Scope, loop: ast.For) -> Mapping[str, str]:
    """The names of lists that a loop fills, one value a turn, with the name of the value."""
    found: dict[str, str] = {}
    statements = always(loop)
    for number, each in enumerate(statements):
        match each:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="append"),
                    args=[ast.Name(id=value)],
                    keywords=[],
                )
            ):
                later = any(stores(one, value) for one in statements[number + 1 :])
                if not later and _is_new(scope, name):
                    found[name] = value
    return found


def _is_new(scope: Scope, name: str) -> bool:
    """Whether a list is empty in front of the loop, and grows at one place only."""
    made = [
        each
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign)
        and ast.unparse(each.value) == "[]"
        and [ast.unparse(one) for one in each.targets] == [name]
    ]
    grown = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id == name
    ]
    stored = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Subscript)
        and not isinstance(each.ctx, ast.Load)
        and ast.unparse(each.value) == name
    ]
    return len(made) == 1 and bindings(scope, name) == 1 and len(grown) == 1 and not stored


def _only_items(scope: Scope, first: ast.For, second: ast.For, name: str, index: str) -> bool:
    """Whether a list is read, up to the end of the second loop, as the item of a turn of that only."""
    items = [
        each.value
        for each in ast.walk(second)
        if isinstance(each, ast.Subscript)
        and isinstance(each.slice, ast.Name)
        and each.slice.id == index
    ]
    for use in ast.walk(scope):
        if not isinstance(use, ast.Name) or use.id != name or not isinstance(use.ctx, ast.Load):
            continue
        grown = any(
            isinstance(each, ast.Attribute) and each.value is use for each in ast.walk(first)
        )
        behind = use.lineno > (second.end_lineno or second.lineno)
        if not grown and not behind and not any(use is item for item in items):
            return False
    return True


def _items(loop: ast.For, lists: Mapping[str, str], index: str) -> list[tuple[ast.Subscript, str]]:
    return [
        (each, lists[each.value.id])
        for each in ast.walk(loop)
        if isinstance(each, ast.Subscript)
        and isinstance(each.value, ast.Name)
        and each.value.id in lists
        and isinstance(each.slice, ast.Name)
        and each.slice.id == index
    ]


def _apart(
    scope: Scope,
    first: ast.For,
    second: ast.For,
    index: set[str],
    lists: Mapping[str, str],
    values: set[str],
) -> bool:
    """Whether turns of the second loop may come between those of the first: neither sees what the other binds, items aside."""
    if any(isinstance(each, _HIDES) for loop in (first, second) for each in ast.walk(loop)):
        return False
    if any("collection" in ast.unparse(loop) for loop in (first, second)):
        return False
    bound = [_bound(loop) - index for loop in (first, second)]
    read = [_read(loop) for loop in (first, second)]
    if any(isinstance(each, ast.Break | ast.Continue | ast.Return) for each in ast.walk(first)):
        return False
    if any(isinstance(each, ast.Break | ast.Continue | ast.Return) for each in ast.walk(second)):
        return False
    # Values are read as names then, which nothing in the second loop binds but to themselves.
    same = {
        each.targets[0].id
        for each in always(second)
        if isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Name)
        and isinstance(each.value, ast.Subscript)
        and ast.unparse(each.value.value) in lists
        and lists[ast.unparse(each.value.value)] == each.targets[0].id
    }
    again = {name for name in same if len(stores(second, name)) == 1}
    if (values & bound[1]) - again:
        return False
    own = bound[1] - again
    if (read[0] & own) or (bound[0] & own):
        return False
    # The last turn's values of the first loop, which the second one would read in every turn.
    if any(not _read_behind(second, name) for name in again):
        return False
    return not (read[1] & bound[0]) - again - lists.keys()


def _read_behind(loop: ast.For, name: str) -> bool:
    """Whether a loop reads a name only behind the statement that binds it."""
    (bound,) = stores(loop, name)
    uses = [each for each in ast.walk(loop) if isinstance(each, ast.Name) and each.id == name]
    return all(each is bound or each.lineno > bound.lineno for each in uses)


def _bound(loop: ast.For) -> set[str]:
    """Names that a loop binds, and objects that it changes by a method of theirs."""
    found: set[str] = set()
    for each in ast.walk(loop):
        match each:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.Expr(value=ast.Call(func=ast.Attribute() as func)):
                found.add(ast.unparse(func).partition(".")[0].partition("[")[0])
            case (
                ast.Subscript(ctx=ast.Store() | ast.Del())
                | ast.Attribute(ctx=ast.Store() | ast.Del())
            ):
                found.add(ast.unparse(each).partition(".")[0].partition("[")[0])
    return found - {"tf"}


def _read(loop: ast.For) -> set[str]:
    return {
        each.id
        for each in ast.walk(loop)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
