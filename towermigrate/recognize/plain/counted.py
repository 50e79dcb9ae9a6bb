"""What the number of towers is made of, where it is written out: in front of what the strategy has to be there for."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks, stores
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers
from towermigrate.recognize.plain.one_call import OneCall, changed_together
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.source import Tree

_MAKES = re.compile(r"Optimizer\(|\.Variable\(|get_variable\(|global_step\(|placeholder\(")
_PYTHONS = ("range", "len", "str", "list")


def counts_in_front(file: PlainFile) -> list[Change]:
    """`devices = ["/gpu:0", "/gpu:1"]` behind `opt = tf.train.AdamOptimizer()`, as a line in front of that one."""
    for where, scope, loop in loops_of_towers(file):
        names = [each.id for each in ast.walk(loop.iter) if isinstance(each, ast.Name)]
        for body, always in blocks(scope):
            if always:
                found = _in_front(file, scope, body, names, loop.lineno, where)
                if found:
                    return found
    return []


def _in_front(
    file: PlainFile, scope: Scope, body: list[ast.stmt], names: list[str], line: int, where: str
) -> list[Change]:
    """The changes that bring what names come from in front of what a block makes before a line."""
    makers = [each for each in body if _makes(each)]
    if not makers or makers[0].lineno >= line:
        return []
    found = [
        each for each in _needed(file, scope, body, names) if makers[0].lineno < each.lineno < line
    ]
    margin = file.alone(makers[0])
    if not found or margin is None or any(file.alone(each) != margin for each in found):
        return []
    place = file.above(makers[0])
    changes: list[Change] = []
    for each in sorted(found, key=lambda one: one.lineno):
        gone = file.without(each)
        if gone[0] != file.starts[each.lineno - 1]:
            return []  # a comment stands behind it
        parts = (margin, file.span(each), "\n")
        changes.append(Change(place, place, parts, where))
        changes.append(Change(*gone, (), where))
    return changes


def counts_handed(
    tree: Tree, where: Mapping[str, Collection[str]] | None, file: PlainFile
) -> list[Change]:
    """Devices, or their number, that the one caller gives, or that a default does: in front of the optimizer that it makes."""
    return changed_together(
        tree, where, file, lambda each: bool(each.args.args), lambda each: _handed(tree, file, each)
    )


def _handed(tree: Tree, file: PlainFile, function: ast.FunctionDef) -> list[Change]:
    spec = function.args
    own = [each.arg for each in spec.args]
    names = {
        each.id
        for _, scope, loop in loops_of_towers(file)
        if scope is function
        for each in ast.walk(loop.iter)
        if isinstance(each, ast.Name) and each.id in own
    }
    if len(names) != 1:
        return []
    (name,) = names
    once = OneCall(tree, file, function)
    caller, call = once.caller, once.call
    value = once.given.get(name)
    if isinstance(value, ast.Name):
        return _in_front(file, caller, caller.body, [value.id], call.lineno, caller.name)
    makers = [each for each in caller.body if _makes(each)]
    if not makers or makers[0].lineno >= call.lineno:
        return []
    if value is not None:
        return _told(file, caller, makers[0], name, value, file.span(value), f"{name}")
    defaults = dict(zip(own[len(own) - len(spec.defaults) :], spec.defaults, strict=True))
    if name not in defaults:
        return []
    value, closing = defaults[name], file.end(call) - 1
    behind = [*call.args, *(each.value for each in call.keywords)]
    last = file.end(behind[-1]) if behind else closing
    if file.text[last:closing].strip() or file.commented(file.start(call), closing):
        return []
    # The only call has the only list: it is the same one that the default would be.
    given = f"{', ' if behind else ''}{name}={name}"
    found = _told(file, caller, makers[0], name, value, (last, last), given)
    if found and value is spec.defaults[0]:  # those before it have none
        parameter = spec.args[own.index(name)]
        begin = file.block.offset(parameter.lineno, parameter.col_offset) + len(name)
        if not file.commented(begin, file.end(value)):
            found.append(Change(begin, file.end(value), (), function.name))
    return found


def _told(
    file: PlainFile,
    caller: ast.FunctionDef,
    maker: ast.stmt,
    name: str,
    value: ast.expr,
    place: tuple[int, int],
    given: str,
) -> list[Change]:
    """A value under a name in front of what a caller makes, and that name where it is given."""
    margin, at = file.alone(maker), file.above(maker)
    if _reads(value) != set() or bindings(caller, name) or margin is None:
        return []
    if any(each.id == name for each in ast.walk(caller) if isinstance(each, ast.Name)):
        return []
    return [
        Change(at, at, (f"{margin}{name} = ", file.span(value), "\n"), caller.name),
        Change(*place, (given,), caller.name),
    ]


def _makes(statement: ast.stmt) -> bool:
    """Whether a statement may make what belongs to a strategy: an optimizer, a variable, a placeholder."""
    inner = isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.For)
    return not inner and _MAKES.search(ast.unparse(statement)) is not None


def _needed(
    file: PlainFile, scope: Scope, body: list[ast.stmt], names: list[str]
) -> list[ast.Assign]:
    """The assignments that names come from, where all of them are written out."""
    found: dict[str, ast.Assign] = {}
    for name in names:
        own = _written_out(file, scope, body, name)
        if own is not None:
            found.update(own)
    return list(found.values())


def _written_out(
    file: PlainFile, scope: Scope, body: list[ast.stmt], name: str
) -> dict[str, ast.Assign] | None:
    """The assignments that a name's value is made by, each of constants and of names before it; None for all else."""
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return {} if _is_fixed(file, scope, name) else None
    for each in body:
        match each:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                read = _reads(value)
                if read is None or any(each.lineno > use.lineno for use in _uses(scope, name)):
                    return None
                made: dict[str, ast.Assign] = {}
                for one in read:
                    own = _written_out(file, scope, body, one) if one != name else None
                    if own is None or any(two.lineno >= each.lineno for two in own.values()):
                        return None
                    made.update(own)
                return {**made, name: each}
    return None


def _uses(scope: Scope, name: str) -> Iterator[ast.Name]:
    return (each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name)


def _reads(value: ast.expr) -> set[str] | None:
    """The names that a value is made of, where it is only constants, lists of them and counts; None for all else."""
    known = (
        ast.Constant, ast.List, ast.Tuple, ast.Name, ast.BinOp, ast.Add, ast.Mult, ast.Mod, ast.Sub,
        ast.JoinedStr, ast.FormattedValue, ast.ListComp, ast.comprehension, ast.Load, ast.Store, ast.Call,
    )  # fmt: skip
    for each in ast.walk(value):
        if not isinstance(each, known):
            return None
        if isinstance(each, ast.Call):
            plain = isinstance(each.func, ast.Name) and each.func.id in _PYTHONS
            if not plain or each.keywords:
                return None
    bound = {
        each.id
        for each in ast.walk(value)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return {each.id for each in ast.walk(value) if isinstance(each, ast.Name)} - bound


def _is_fixed(file: PlainFile, scope: Scope, name: str) -> bool:
    """Whether a name is Python's own, or a constant that the module binds once, and that no function sees otherwise."""
    if name in _PYTHONS:
        return is_pythons(file, name)
    if isinstance(scope, ast.Module) or bindings(scope, name) or len(stores(file.tree, name)) != 1:
        return False
    if name in file.shared_between_functions or name in file.words_of_users:
        return False
    return any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Constant)
        and [ast.unparse(one) for one in each.targets] == [name]
        for each in own_nodes(file.tree)
    )


__all__ = ["counts_handed", "counts_in_front"]
