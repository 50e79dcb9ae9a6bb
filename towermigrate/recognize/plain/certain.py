"""Blocks around the towers that run once, whatever happens: an `if` of the file's own constants, a loop of one turn."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from towermigrate.recognize.lending import Files
from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
)
from towermigrate.recognize.plain.collected import is_pythons, is_tower_loop
from towermigrate.recognize.python_scopes import lines_in_texts
from towermigrate.recognize.source import Tree

_KNOWN = (
    ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Constant, ast.operator, ast.unaryop,
    ast.cmpop, ast.boolop, ast.Name, ast.Load,
)  # fmt: skip
_NOT_HERE = (ast.Pow, ast.LShift, ast.MatMult, ast.Is, ast.IsNot, ast.In, ast.NotIn)


def certain_blocks(tree: Tree, file: PlainFile) -> list[Change]:
    """`if BATCH > 1:` around a tower loop, of a module with `BATCH = 2`, as what stands in it; one a time."""
    if not re.search(r"^[ \t]+(?:if|for) ", file.text, re.MULTILINE):
        return []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                change = None
                if _holds_towers(each):
                    change = _certain(tree, file, scope, each, where)
                if change is not None:
                    return [change]
    return []


def _holds_towers(node: ast.stmt) -> bool:
    """Whether a block has a tower loop among its own statements, or under a `with` of them."""
    if not isinstance(node, ast.If | ast.For) or node.orelse:
        return False
    waiting = list(node.body)
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.For) and is_tower_loop(each):
            return not isinstance(node, ast.For) or not _is_towers(node)
        if isinstance(each, ast.With):
            waiting += each.body
    return False


def _is_towers(node: ast.For) -> bool:
    """Whether a loop counts devices itself."""
    names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load)
        for each in ast.walk(node)
    )


def _certain(
    tree: Tree, file: PlainFile, scope: Scope, node: ast.stmt, where: str
) -> Change | None:
    assert isinstance(node, ast.If | ast.For)
    constants = _constants(tree, file)
    if isinstance(node, ast.If):
        if not _is_true(node.test, constants):
            return None
    elif not _is_one_turn(file, scope, node):
        return None
    first, margin = node.body[0], file.alone(node)
    begin = file.starts[node.lineno - 1]
    if margin is None or first.lineno == node.lineno or file.alone(first) is None:
        return None
    start = file.starts[node.lineno - 1 + _header_lines(file, node)]
    end = file.block.end_of_line(node)
    if file.commented(begin, start):
        return None
    inner = file.text[file.starts[first.lineno - 1] : file.start(first)]
    if not inner.startswith(margin) or "\t" in inner:
        return None
    return Change(begin, end, _moved(file, start, end, len(inner) - len(margin)), where)


def _header_lines(file: PlainFile, node: ast.If | ast.For) -> int:
    """How many lines a header has, up to its first statement or the comments above that."""
    line, rows = node.body[0].lineno, file.text.split("\n")
    while rows[line - 2].strip().startswith("#") and line - 1 > node.lineno:
        line -= 1
    return line - node.lineno


def _moved(file: PlainFile, start: int, end: int, by: int) -> tuple[Part, ...]:
    """The lines of a block, to the left, but for those inside of texts."""
    texts = lines_in_texts(file.text)
    parts: list[Part] = []
    position = start
    while position < end:
        stop = min(file.text.find("\n", position) + 1 or end, end)
        row = file.text[position:stop]
        line = file.text.count("\n", 0, position) + 1
        space = len(row) - len(row.lstrip(" "))
        parts.append((position + (0 if line in texts else min(by, space)), stop))
        position = stop
    return tuple(parts)


def _constants(tree: Tree, file: PlainFile) -> Mapping[str, object]:
    """The numbers and texts that names of the module are bound to, once and by nobody else."""
    if bindings(file.tree, "*"):
        return {}  # a star may bring another one
    files = Files(tree, file.path)
    found: dict[str, object] = {}
    for each in file.tree.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)) if (
                isinstance(value, bool | int | float | str)
            ):
                if bindings(file.tree, name) == 1:
                    found[name] = value
    return {name: value for name, value in found.items() if not files.is_set_elsewhere(name)}


def _is_true(node: ast.expr, constants: Mapping[str, object]) -> bool:
    """Whether a condition of constants holds."""
    names = set()
    for each in ast.walk(node):
        if not isinstance(each, _KNOWN) or isinstance(each, _NOT_HERE):
            return False
        if isinstance(each, ast.Name):
            names.add(each.id)
    if isinstance(node, ast.Constant) or names - constants.keys():
        return False
    try:
        code = compile(ast.Expression(node), "condition", "eval")
        return bool(eval(code, {"__builtins__": {}}, dict(constants)))  # of constants only
    except (ArithmeticError, TypeError, ValueError):
        return False


def _is_one_turn(file: PlainFile, scope: Scope, node: ast.For) -> bool:
    """Whether a loop is `for _ in range(1)`, of which nothing reads the number."""
    match node.iter, node.target:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=1)], keywords=[]), (
            ast.Name(id=name)
        ):
            pass
        case _:
            return False
    if not is_pythons(file, "range") or name in file.shared_between_functions:
        return False
    if any(isinstance(each, ast.Break | ast.Continue) for each in ast.walk(node)):
        return False
    reads = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    return not reads and not (isinstance(scope, ast.Module) and file.reads(name))


__all__ = ["certain_blocks"]
