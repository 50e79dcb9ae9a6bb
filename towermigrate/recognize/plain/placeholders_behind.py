"""What towers are fed, read behind them: `tf.stack(tower_y)` of the towers' placeholders, as values that they compute.

A list of placeholders is for what is fed. Where TensorFlow is given the whole list too, that is a list of `tf.identity(y)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, names_in
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.lengths import begins_empty
from towermigrate.recognize.plain.named import filled

_OF_LISTS = ("tf.stack", "tf.concat", "tf.add_n", "tf.reduce_mean", "tf.reduce_sum")
_MADE = ("tf.placeholder", "tf.placeholder_with_default")


def placeholders_behind(file: PlainFile) -> list[Change]:
    """Lists of the towers' placeholders that a function of TensorFlow is given behind the towers."""
    if "placeholder" not in file.text or file.finds_names_by_text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for listed in sorted(_lists(loop))
        for change in _apart(file, scope, loop, listed, where)
    ]


def _lists(loop: ast.For) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(loop):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[ast.Name()]
            ):
                found.add(name)
    return found


def _apart(
    file: PlainFile, scope: Scope, loop: ast.For, listed: str, where: str
) -> Iterator[Change]:
    made = filled(file, scope, loop, listed)
    begun = [each for each in once_in(scope) if begins_empty(each, listed)]
    if made is None or len(begun) != 1 or not _is_placeholder(scope, loop, made[0]):
        return
    if listed in file.shared_between_functions or isinstance(scope, ast.Module):
        return
    name, call = made
    given: list[ast.Name] = []
    picked: set[int] = set()
    for each in ast.walk(scope):
        match each:
            case ast.Call(func=func, args=[ast.Name(id=of) as argument, *_]) if of == listed:
                if ast.unparse(func) in _OF_LISTS and each.lineno > (loop.end_lineno or 0):
                    given.append(argument)
            case ast.Subscript(value=ast.Name(id=of) as argument, ctx=ast.Load()) if of == listed:
                picked.add(id(argument))
    others = [
        each
        for each in names_in(scope, listed)
        if isinstance(each.ctx, ast.Load)
        and not any(each is one for one in given)
        and each is not getattr(call.func, "value", None)
    ]
    if not given or any(id(each) not in picked for each in others):
        return
    value = f"tf.identity({name})"
    if not others:
        yield Change(*file.span(call.args[0]), (value,), where)
        return
    statement = next(
        (each for each in ast.walk(loop) if isinstance(each, ast.Expr) and each.value is call), None
    )
    margins = [file.alone(each) if each is not None else None for each in (begun[0], statement)]
    if None in margins or statement is None:
        return
    values = file.fresh(f"{listed}_values")
    place = file.end(begun[0])
    yield Change(place, place, (f"\n{margins[0]}{values} = []",), where)
    place = file.end(statement)
    yield Change(place, place, (f"\n{margins[1]}{values}.append({value})",), where)
    for each in given:
        yield Change(*file.span(each), (values,), where)


def _is_placeholder(scope: Scope, loop: ast.For, name: str) -> bool:
    """Whether a tower binds a name, once, to a placeholder that it makes."""
    return bindings(scope, name) == 1 and any(
        isinstance(each, ast.Assign)
        and [ast.unparse(one) for one in each.targets] == [name]
        and isinstance(each.value, ast.Call)
        and ast.unparse(each.value.func) in _MADE
        for each in ast.walk(loop)
    )
