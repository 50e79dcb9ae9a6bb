"""A constant that is made in front of the towers and read by them alone: made in each of them."""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.collected import loops_of_towers

_MAKES = frozenset({"tf.constant", "tf.zeros", "tf.ones"})
_PARTS = (
    ast.Constant | ast.List | ast.Tuple | ast.UnaryOp | ast.unaryop | ast.BinOp | ast.operator | ast.keyword
    | ast.expr_context | ast.Attribute | ast.Name | ast.Call
)  # fmt: skip


def constants_of_towers(file: PlainFile) -> list[Change]:
    """`half = tf.constant(0.5)` in front of a tower loop: its first statement."""
    if not any(f"{each}(" in file.text for each in _MAKES):
        return []
    if re.search(r"get_variable\(\s*['\"](const|zeros|ones)['\"]", file.text, re.IGNORECASE):
        return []  # TF1 numbers a variable that is called as an operation is
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        first = loop.body[0]
        margin = file.alone(first)
        if file.alone(loop) is None or margin is None or first.lineno == loop.lineno:
            continue
        # In the block that the tower is built in, as its author would have it.
        while isinstance(first, ast.With) and len(loop.body) == 1 and _inner(first) is not None:
            inner = _inner(first)
            if inner is None or file.alone(inner) is None or inner.lineno == first.lineno:
                break
            first = inner
        margin = file.alone(first)
        moved = _constants(file, scope, loop)
        if not moved or margin is None:
            continue
        place = file.starts[first.lineno - 1]
        rows = "".join(f"{margin}{file.of(each)}\n" for each in moved)
        found.append(Change(place, place, (rows,), where))
        found += [Change(*file.without(each), (), where) for each in moved]
    return found


def _inner(block: ast.stmt) -> ast.stmt | None:
    """The first statement of a block of scopes."""
    return block.body[0] if isinstance(block, ast.With) else None


def _constants(file: PlainFile, scope: Scope, loop: ast.For) -> list[ast.Assign]:
    found: list[ast.Assign] = []
    for body, always in blocks(scope):
        for each in body if always else ():
            if not isinstance(each, ast.Assign) or each.lineno > loop.lineno:
                continue
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value):
                    if _is_constant(value) and _of_loop(file, scope, loop, name):
                        alone = file.alone(each) is not None and "\n" not in file.of(each)
                        if alone and file.without(each)[0] == file.starts[each.lineno - 1]:
                            found.append(each)
    return found


def _is_constant(call: ast.Call) -> bool:
    """Whether a call makes a tensor of numbers that are written out."""
    if ast.unparse(call.func) not in _MAKES:
        return False
    if len(call.args) > 2 or any(
        each.arg not in ("value", "dtype", "shape") for each in call.keywords
    ):
        return False  # under a name of its own, which no variable then has
    for each in ast.walk(call):
        if not isinstance(each, _PARTS):
            return False
        if isinstance(each, ast.Call) and each is not call:
            return False
        if isinstance(each, ast.Name) and each.id != "tf":
            return False
    return True


def _of_loop(file: PlainFile, scope: Scope, loop: ast.For, name: str) -> bool:
    """Whether a name is bound once and read in a loop alone."""
    if name in file.shared_between_functions or file.finds_names_by_text:
        return False
    if isinstance(scope, ast.Module) and name in file.words_of_users:
        return False
    inside = {id(each) for each in ast.walk(loop)}
    reads = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
    return bool(reads) and bindings(file.tree, name) == 1 and all(id(e) in inside for e in reads)
