"""Splits into as many parts as there are towers, by another name of that number: written as the loop counts its towers.

`tf.split(x, num)` of `num = len(gpus)`, in front of `for i, gpu in enumerate(gpus)`, is `tf.split(x, len(gpus))`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, names_in
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers, once_in
from towermigrate.recognize.python_scopes import own_nodes


def split_counts(file: PlainFile) -> list[Change]:
    """The numbers of `tf.split` that are those of the towers."""
    if "tf.split(" not in file.text or file.finds_names_by_text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _of_loop(file, scope, loop, where)
    ]


def _of_loop(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> Iterator[Change]:
    count = _count(file, loop.iter)
    if count is None:
        return
    for call in own_nodes(scope):
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "tf.split":
            continue
        given = [
            *call.args[1:2],
            *(k.value for k in call.keywords if k.arg == "num_or_size_splits"),
        ]
        match given:
            case [ast.Name(id=name) as number] if name != count:
                if _is(file, scope, loop, name, count):
                    yield Change(*file.span(number), (count,), where)


def _count(file: PlainFile, over: ast.expr) -> str | None:
    """How many towers a loop makes, as a text: a number, a name or `len(names)`."""
    match over:
        case ast.Call(func=ast.Name(id="range" | "xrange" as made), args=[count], keywords=[]):
            plain = (
                isinstance(count, ast.Name) or isinstance(count, ast.Constant) or _is_length(count)
            )
            return (
                ast.unparse(count)
                if plain and (made == "xrange" or is_pythons(file, made))
                else None
            )
        case ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=name)], keywords=[]):
            return f"len({name})" if is_pythons(file, "enumerate") else None
        case ast.Name(id=name):
            return f"len({name})"
    return None


def _is_length(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name()], keywords=[]):
            return True
    return False


def _is(file: PlainFile, scope: Scope, loop: ast.For, name: str, count: str) -> bool:
    """Whether a name that is bound once is the number of towers, from where it is bound up to the loop."""
    if not bindings(scope, name):
        return _is_number_of_file(file, name, count)
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return False
    if isinstance(scope, ast.Module) and name in file.words_of_users or not is_pythons(file, "len"):
        return False
    bound = next(
        (
            each
            for each in once_in(scope)
            if isinstance(each, ast.Assign)
            and [ast.unparse(target) for target in each.targets] == [name]
        ),
        None,
    )
    if bound is None or ast.unparse(bound.value) != count or bound.lineno > loop.lineno:
        return False
    if isinstance(bound.value, ast.Constant):
        return type(bound.value.value) is int
    devices = bound.value.args[0] if isinstance(bound.value, ast.Call) else bound.value
    if not isinstance(devices, ast.Name) or devices.id in file.shared_between_functions:
        return False
    if not _is_length(bound.value) and not isinstance(bound.value, ast.Name):
        return False
    if not bindings(scope, devices.id):  # the module's, which any function may change
        others = [each for each in file.uses(devices.id) if not isinstance(each.ctx, ast.Load)]
        fine = {id(each) for node in file.nodes for each in _only_read(node)}
        read = [each for each in file.uses(devices.id) if isinstance(each.ctx, ast.Load)]
        if len(others) != 1 or any(id(each) not in fine for each in read):
            return False
    # Nothing may put more into the list, or bind the name anew, from there on.
    behind = [
        each
        for each in names_in(scope, devices.id)
        if bound.lineno < each.lineno <= (loop.end_lineno or 0)
    ]
    reads = {id(each) for node in ast.walk(scope) for each in _only_read(node)}
    return all(isinstance(each.ctx, ast.Load) and id(each) in reads for each in behind)


def _is_number_of_file(file: PlainFile, name: str, count: str) -> bool:
    """Whether a name of the file is a number that nothing changes: `NUM_GPUS = 2`, above its functions."""
    if name in file.shared_between_functions or name in file.words_of_users:
        return False
    made = [
        each.value
        for each in file.tree.body
        if isinstance(each, ast.Assign)
        and [ast.unparse(target) for target in each.targets] == [name]
        and isinstance(each.value, ast.Constant)
        and type(each.value.value) is int
    ]
    return bindings(file.tree, name) == 1 and [ast.unparse(each) for each in made] == [count]


def _only_read(node: ast.AST) -> list[ast.expr]:
    """Where an expression is read by what changes nothing: as what a loop goes over, counted, or picked of."""
    match node:
        case ast.For(iter=over) | ast.comprehension(iter=over):
            return [over]
        case ast.Call(
            func=ast.Name(id="len" | "enumerate" | "print" | "zip" | "range"), args=given
        ):
            return given
        case ast.Subscript(value=of, ctx=ast.Load()):
            return [of]
    return []


__all__ = ["split_counts"]
