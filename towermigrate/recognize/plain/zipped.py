"""What towers collect in tuples, taken apart behind them by `zip(*towers)`: in a list for each of their places."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers


def tuples_of_towers(file: PlainFile) -> list[Change]:
    """`towers.append((grads, loss))` and `tower_grads, losses = zip(*towers)` as two lists that the towers fill."""
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
                            found += _apart(file, scope, loop, each, name, names, where)
    return found


def _apart(
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
    if made is None or filled is None or len(own) != 3:
        return []
    statement, values = filled
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
    ]


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
