"""What towers collect in tuples, taken apart behind them by `zip(*towers)`: in a list for each of their places."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import (
    Change,
    Changed,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    names_in,
    stores,
)
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers
from towermigrate.recognize.plain.handed_on import functions_of
from towermigrate.recognize.source import Tree

_OF_LISTS = frozenset(
    f"tf.{each}"
    for each in "add_n accumulate_n concat stack parallel_stack convert_to_tensor reduce_mean reduce_sum reduce_max "
    "reduce_min reduce_prod".split()
)
_READERS = frozenset({"len", "sum", "enumerate", "zip", "list", "tuple", "min", "max"})
"""What is given the same of a list as of a tuple."""


def tuples_of_towers(tree: Tree, file: PlainFile) -> list[Change]:
    """`towers.append((grads, loss))` and `tower_grads, losses = zip(*towers)` as two lists that the towers fill.

    What is read by `x, y = towers[k]` is read of the lists, then: `x_of_towers[k]`.

    Only where nothing can tell the lists from the tuples that they are to Python: a run that fetches one gives such a one.
    """
    if "zip(*" not in file.text or not is_pythons(file, "zip"):
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for body, always in blocks(scope):
            for each in body if always else ():
                match each:
                    case ast.Assign(
                        targets=[ast.Tuple(elts=targets)],
                        value=ast.Call(
                            func=ast.Name(id="zip"),
                            args=[ast.Starred(value=ast.Name(id=name))],
                            keywords=[],
                        ),
                    ) if each.lineno > loop.lineno:
                        names = [one.id for one in targets if isinstance(one, ast.Name)]
                        if len(names) == len(set(names)) == len(targets):
                            found += _apart(tree, file, scope, loop, each, name, names, where)
    return found


def _apart(
    tree: Tree,
    file: PlainFile,
    scope: Scope,
    loop: ast.For,
    taken: ast.Assign,
    name: str,
    names: list[str],
    where: str,
) -> list[Change]:
    if any(bindings(scope, each) != 1 for each in (name, *names)) or file.finds_names_by_text:
        return []
    if {name, *names} & file.shared_between_functions:
        return []
    if isinstance(scope, ast.Module) and {name, *names} & file.words_of_users:
        return []
    if not all(_is_as_a_list(tree, file, scope, each) for each in names):
        return []
    made = next(
        (
            each
            for body, always in blocks(scope)
            for each in (body if always else ())
            if isinstance(each, ast.Assign)
            and [ast.unparse(one) for one in each.targets] == [name]
            and ast.unparse(each.value) == "[]"
        ),
        None,
    )
    filled = _filled(loop, name)
    own = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name]
    if made is None or filled is None:
        return []
    statement, values = filled
    read = _read(file, scope, taken, name, names)
    if read is None or len(own) != 3 + read[0]:
        return []
    if made.lineno > loop.lineno or len(values) != len(names):
        return []
    margins = [file.alone(each) for each in (made, statement, taken)]
    if None in margins or file.commented(*file.span(statement)):
        return []
    if any("\n" in file.of(each) for each in values):
        return []
    # A list under the name of something else in the tower would hide that.
    inside = {each.id for each in ast.walk(loop) if isinstance(each, ast.Name)}
    if inside & set(names):
        return []
    parts: list[Part] = []
    for target, value in zip(names, values, strict=True):
        parts += [f"\n{margins[1]}" if parts else "", f"{target}.append(", file.span(value), ")"]
    lists = f"{', '.join(names)} = {', '.join('[]' for _ in names)}"
    return [
        Change(*file.span(made), (lists,), where),
        Change(*file.span(statement), tuple(parts), where),
        Change(*file.without(taken), (), where),
        *(Change(*each, where) for each in read[1]),
    ]


def _read(
    file: PlainFile, scope: Scope, taken: ast.Assign, name: str, names: list[str]
) -> tuple[int, list[Changed]] | None:
    """How often the tuples are read behind by `x, y, _ = towers[k]` and `len(towers)`, and what that is of the lists."""
    count = 0
    found: list[Changed] = []
    for body, _ in blocks(scope):
        for row, each in enumerate(body):
            match each:
                case ast.Assign(
                    targets=[ast.Tuple(elts=targets)],
                    value=ast.Subscript(value=ast.Name(id=of), slice=ast.Name(id=number)),
                ) if of == name:
                    items = _items(file, scope, targets, body[row + 1 :], names, number)
                    if items is None or each.lineno < taken.lineno or file.alone(each) is None:
                        return None
                    if file.commented(*file.span(each)) or len(body) == 1:
                        return None
                    count += 1
                    found += [(*file.without(each), ()), *items]
    for node in ast.walk(scope):
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=of) as listed], keywords=[]):
                if of == name and is_pythons(file, "len") and node.lineno > taken.lineno:
                    count += 1
                    found.append((*file.span(listed), (names[0],)))
    return count, found


def _items(
    file: PlainFile,
    scope: Scope,
    targets: list[ast.expr],
    behind: list[ast.stmt],
    names: list[str],
    number: str,
) -> list[Changed] | None:
    """The reads of names that a tuple is taken apart to, as items of the lists; None where they may be something else."""
    if len(targets) != len(names) or any(stores(each, number) for each in behind):
        return None
    inside = {id(one) for each in behind for one in ast.walk(each)}
    found: list[Changed] = []
    for target, listed in zip(targets, names, strict=True):
        if not isinstance(target, ast.Name) or target.id in file.shared_between_functions:
            return None
        used = [one for one in names_in(scope, target.id) if isinstance(one.ctx, ast.Load)]
        if used and bindings(scope, target.id) != 1:
            return None
        if isinstance(scope, ast.Module) and (used or target.id in file.words_of_users):
            return None
        if any(id(one) not in inside for one in used):
            return None
        found += [(*file.span(one), (f"{listed}[{number}]",)) for one in used]
    return found


def _filled(loop: ast.For, name: str) -> tuple[ast.stmt, list[ast.expr]] | None:
    """The one statement of each tower that appends a tuple, and its values."""
    waiting = list(loop.body)
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, ast.With):
            waiting = [*each.body, *waiting]
        match each:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=owner), attr="append"),
                    args=[ast.Tuple(elts=values)],
                    keywords=[],
                )
            ) if owner == name and not any(isinstance(one, ast.Starred) for one in values):
                return each, values
    return None


def _is_as_a_list(tree: Tree, file: PlainFile, scope: Scope, name: str, depth: int = 3) -> bool:
    """Whether all that reads a name is given the same of a list as of a tuple: in the functions too that are handed it."""
    fine: set[int] = set()
    readers = {each for each in _READERS & file.words if is_pythons(file, each)}
    for each in ast.walk(scope):
        if isinstance(each, ast.Call):
            given = [one for arg in each.args for one in _handed(arg)]
            own = [one for one in given if isinstance(one, ast.Name) and one.id == name]
            func = ast.unparse(each.func)
            if func in _OF_LISTS or func in readers:
                fine |= {id(one) for one in own}
            elif own and depth and _hands_on(tree, file, scope, each, name, depth - 1):
                fine |= {id(one) for one in own}
        elif isinstance(each, ast.For | ast.comprehension):
            fine.add(id(each.iter))
        elif isinstance(each, ast.Subscript) and not isinstance(each.slice, ast.Slice):
            fine |= {id(each.value)} if isinstance(each.ctx, ast.Load) else set()
    uses = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name]
    return all(id(each) in fine for each in uses if isinstance(each.ctx, ast.Load))


def _handed(argument: ast.expr) -> list[ast.expr]:
    """An argument, or what it is taken apart from: `zip(*tower_grads)`."""
    return [argument.value if isinstance(argument, ast.Starred) else argument]


def _hands_on(
    tree: Tree, file: PlainFile, scope: Scope, call: ast.Call, name: str, depth: int
) -> bool:
    """Whether a call hands a list on to a function of the tree that reads it as it would a tuple."""
    if not isinstance(call.func, ast.Name | ast.Attribute):
        return False
    if isinstance(scope, ast.FunctionDef) and bindings(
        scope, ast.unparse(call.func).partition(".")[0]
    ):
        return False  # another function than the file's
    for path, function in functions_of(tree, file, call.func):
        spec = function.args
        if function.decorator_list or spec.vararg or spec.kwarg:
            return False
        there = file if path == file.path else PlainFile(path, tree.sources[path])
        plain = [each.arg for each in (*spec.posonlyargs, *spec.args)]
        places = [
            k for k, each in enumerate(call.args) if isinstance(each, ast.Name) and each.id == name
        ]
        if len(places) != 1 or places[0] >= len(plain) or bindings(function, plain[places[0]]) != 1:
            return False
        return _is_as_a_list(tree, there, function, plain[places[0]], depth)
    return False
