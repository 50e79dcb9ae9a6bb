"""Inputs that are prepared before they are dealt out, row by row: `images = tf.cast(raw, tf.float32) / 255.0` in front of the towers.

Of a part of the rows it is the same, so each tower prepares its own part of the placeholder.
"""

from __future__ import annotations

import ast
import math
import re

from towermigrate.recognize.plain.changes import (
    Change,
    Changed,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
)
from towermigrate.recognize.plain.collected import loops_of_towers

_NAMED = re.compile(
    r"\b(?!(?:v|var|variable)(?:\.op)?\.name\b)[\w\])]+(?:\.op)?\.name\b|by_name|get_operation"
)
"""What may ask how operations are called, which the towers' own ones change."""
_TAGGED = re.compile(
    r"['\"/](?:cast|to_?float|to_?int\d+|truediv|realdiv|div|sub|add|mul|neg|one_hot|reshape)(?:_\d+)?['\"]",
    re.IGNORECASE,
)
"""Names that what is computed has there, of which TF1 would number another one in a tower."""
_CASTS = frozenset({"tf.cast", "tf.to_float", "tf.to_int32", "tf.to_int64"})


def prepared_inputs(file: PlainFile) -> list[Change]:
    """What is computed of a placeholder row by row, and dealt out, as placeholders that are dealt out and what each tower computes."""
    if "placeholder(" not in file.text or file.finds_names_by_text:
        return []
    if _NAMED.search(file.text) or _TAGGED.search(file.text):
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for body, always in blocks(scope):
            for each in body if always else ():
                if isinstance(each, ast.Assign) and file.start(each) < file.start(loop):
                    changes = _of_towers(file, scope, loop, each)
                    found += [Change(*change, where) for change in changes]
    return found


def _of_towers(
    file: PlainFile, scope: Scope, loop: ast.For, statement: ast.Assign
) -> list[Changed]:
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return []
    name, value = target.id, statement.value
    if isinstance(value, ast.Name) or not _is_own(file, scope, name):
        return []
    held = [each for each in ast.walk(value) if isinstance(each, ast.Name) and each.id != "tf"]
    if len(held) != 1 or not _is_own(file, scope, held[0].id):
        return []
    shape = _shape_of(scope, held[0].id)
    if shape is None or not _by_rows(value, held[0], shape):
        return []
    if file.alone(statement) is None or file.commented(*file.span(statement)):
        return []
    uses = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == name and each is not target
    ]
    if len(uses) != 1:
        return []
    (use,) = uses
    start, end = file.span(value)
    at, until = file.span(held[0])

    def of(part: tuple[Part, ...]) -> tuple[Part, ...]:
        return ("(", (start, at), *part, (until, end), ")")

    gone: Changed = (*file.without(statement), ())
    inside = {id(each) for each in ast.walk(loop)}
    for each in ast.walk(scope):
        if isinstance(each, ast.Subscript) and each.value is use:
            if id(each) not in inside or not isinstance(each.slice, ast.Slice):
                return []
            piece: tuple[Part, ...] = (held[0].id, (file.end(use), file.end(each)))
            return [gone, (*file.span(each), of(piece))]
        if isinstance(each, ast.Assign) and _is_split(each.value, use):
            piece_of = _one_part(file, scope, each, inside)
            if piece_of is None:
                return []
            return [
                gone,
                (*file.span(use), (held[0].id,)),
                (*file.span(piece_of), of((file.span(piece_of),))),
            ]
    return []


def _is_own(file: PlainFile, scope: Scope, name: str) -> bool:
    """Whether a scope binds a name once, and nobody else sees it."""
    seen = (
        name in file.shared_between_functions or scope is file.tree and name in file.words_of_users
    )
    return bindings(scope, name) == 1 and not seen


def _shape_of(scope: Scope, name: str) -> list[int | None] | None:
    """The shape of a placeholder of a scope, where it is written out."""
    for each in ast.walk(scope):
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Call):
            continue
        if not any(isinstance(t, ast.Name) and t.id == name for t in each.targets):
            continue
        call = each.value
        given = {key.arg: key.value for key in call.keywords}
        shape = call.args[1] if len(call.args) > 1 else given.get("shape")
        if ast.unparse(call.func) != "tf.placeholder" or not isinstance(
            shape, ast.List | ast.Tuple
        ):
            return None
        return [
            one.value if isinstance(one, ast.Constant) and type(one.value) is int else None
            for one in shape.elts
        ] or None
    return None


def _by_rows(node: ast.expr, held: ast.Name, shape: list[int | None]) -> bool:
    """Whether an expression computes each row of a placeholder by itself, element by element."""
    if node is held:
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _by_rows(node.operand, held, shape)
    if isinstance(node, ast.BinOp):
        if not isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            return False
        return (
            _by_rows(node.left, held, shape)
            and _is_number(node.right)
            or _is_number(node.left)
            and _by_rows(node.right, held, shape)
        )
    if not isinstance(node, ast.Call) or not node.args:
        return False
    first, *more = node.args
    made = ast.unparse(node.func)
    rest = [*more, *(each.value for each in node.keywords)]
    if made in _CASTS:
        kinds = all(isinstance(each, ast.Attribute) for each in rest)
        return kinds and _by_rows(first, held, shape)
    if made == "tf.one_hot":
        # Behind the rows: a depth, and no axis.
        return (
            len(node.args) == 2
            and not node.keywords
            and _is_number(more[0])
            and _by_rows(first, held, shape)
        )
    if made == "tf.reshape" and len(node.args) == 2 and not node.keywords and first is held:
        return _keeps_rows(more[0], shape)
    return False


def _keeps_rows(new: ast.expr, shape: list[int | None]) -> bool:
    """Whether each row has another form: `[-1, 28, 28, 1]` of `[None, 784]`."""
    if not isinstance(new, ast.List | ast.Tuple) or len(new.elts) < 2:
        return False
    sizes = [each.value if isinstance(each, ast.Constant) else None for each in new.elts[1:]]
    own = shape[1:]
    whole = all(type(each) is int for each in sizes) and all(each is not None for each in own)
    begins = ast.unparse(new.elts[0]) == "-1"
    return begins and whole and math.prod(map(int, map(str, sizes))) == math.prod(own)  # type: ignore[arg-type]


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_split(node: ast.expr, use: ast.Name) -> bool:
    """`tf.split(images, n)`, by the rows."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "tf.split":
        return False
    if not node.args or node.args[0] is not use or not 2 <= len(node.args) <= 3:
        return False
    axes = [*node.args[2:], *(each.value for each in node.keywords)]
    if any(each.arg != "axis" for each in node.keywords):
        return False
    return all(isinstance(each, ast.Constant) and each.value == 0 for each in axes)


def _one_part(
    file: PlainFile, scope: Scope, statement: ast.Assign, inside: set[int]
) -> ast.Subscript | None:
    """The one place where the towers take theirs of a list of parts; None where anybody else reads it."""
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return None
    if not _is_own(file, scope, target.id):
        return None
    uses = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == target.id and each is not target
    ]
    for each in ast.walk(scope):
        if isinstance(each, ast.Subscript) and len(uses) == 1 and each.value is uses[0]:
            plain = isinstance(each.slice, ast.Name) and isinstance(each.ctx, ast.Load)
            return each if plain and id(each) in inside else None
    return None
