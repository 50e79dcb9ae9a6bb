"""Inputs that are read whole behind the towers that each have a part of them: the parts of all towers, one behind the other.

`tf.equal(tf.argmax(tf.concat(tower_logits, 0), 1), tf.argmax(labels, 1))` compares what all towers computed with labels of
which each tower had its own; `labels` is then `tf.concat` of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.plain.made_placeholders import made_placeholder
from towermigrate.recognize.plain.tower_loops import pairs_of, split_count

_STRICT = frozenset({
    "tf.nn.in_top_k", "tf.nn.softmax_cross_entropy_with_logits", "tf.nn.softmax_cross_entropy_with_logits_v2",
    "tf.nn.sparse_softmax_cross_entropy_with_logits",
})  # fmt: skip
"""What fails where its arguments have not as many rows as each other."""
_COMPARES = frozenset({"tf.equal", "tf.not_equal"})
"""What does so for the numbers of classes; what has an axis more would be repeated."""
_ROW_BY_ROW = _STRICT | _COMPARES | {
    "tf.subtract", "tf.squared_difference", "tf.nn.sigmoid_cross_entropy_with_logits",
    "tf.losses.mean_squared_error", "tf.losses.absolute_difference", "tf.losses.softmax_cross_entropy",
    "tf.losses.sparse_softmax_cross_entropy", "tf.losses.sigmoid_cross_entropy",
}  # fmt: skip
_CASTS = frozenset({"tf.cast", "tf.to_float", "tf.to_int32", "tf.to_int64"})
_ROWS = _CASTS | {"tf.argmax"}
"""What gives as many rows as it is given."""


def whole_inputs(file: PlainFile) -> list[Change]:
    """`labels` beside what all towers made as `tf.concat(tower_labels, 0)`."""
    if "tf.concat(" not in file.text or "placeholder(" not in file.text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _of_loop(file, scope, loop, where)
    ]


def _of_loop(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> list[Change]:
    begun = _begun_list(file, scope, loop)
    if begun is None or not isinstance(loop.target, ast.Name):
        return []
    changes: list[Change] = []
    for statement, part, source, split in _parts(scope, loop, loop.target.id):
        whole = made_placeholder(file, scope, source.id)
        if whole is None or bindings(scope, part) != 1 or file.alone(statement) is None:
            continue
        flat = whole.shape is not None and len(whole.shape) == 1
        reads = list(_beside(scope, loop, source.id, strictly=not split, flat=flat))
        every = [
            each
            for each in ast.walk(scope)
            if isinstance(each, ast.Name)
            and each.id == source.id
            and isinstance(each.ctx, ast.Load)
            and each.lineno > (loop.end_lineno or 0)
        ]
        # A run is fed by it; what else reads it is to be understood.
        fed = _fed(scope) | _handed(file, scope)
        if not reads or any(
            id(each) not in fed and not any(each is one for one in reads) for each in every
        ):
            continue
        listed = file.free(scope, f"tower_{part.strip('_')}s", f"{part}_of_towers")
        margin, inner = file.alone(begun), file.alone(statement)
        at, behind = file.starts[begun.lineno - 1], file.end(statement)
        changes += [
            Change(at, at, (f"{margin}{listed} = []\n",), where),
            Change(behind, behind, (f"\n{inner}{listed}.append({part})",), where),
            *(Change(*file.span(each), (f"tf.concat({listed}, 0)",), where) for each in reads),
        ]
    return changes


def _begun_list(file: PlainFile, scope: Scope, loop: ast.For) -> ast.Assign | None:
    """An empty list in front of the towers that these fill: another one may stand beside it."""
    filled = {
        each.func.value.id
        for each in ast.walk(loop)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "append"
        and isinstance(each.func.value, ast.Name)
    }
    for each in _in_order(scope.body):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])) if (
                name in filled and each.lineno < loop.lineno and file.alone(each) is not None
            ):
                return each
    return None


def _parts(
    scope: Scope, loop: ast.For, index: str
) -> Iterator[tuple[ast.Assign, str, ast.Name, bool]]:
    """The statements of a tower that take its part of a value.

    Each with the name of the part, that of the whole, and whether it is one of a split, which leaves no row over.
    """
    for each in _in_order(loop.body):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        for target, value in pairs_of(each.targets[0], each.value):
            match target, value:
                case (
                    ast.Name(id=part),
                    ast.Subscript(value=ast.Name() as source, slice=ast.Slice() as rows),
                ) if rows.step is None and rows.lower is not None and rows.upper is not None:
                    if index in _names(rows.lower) & _names(rows.upper):
                        yield each, part, source, False
                case (
                    ast.Name(id=part),
                    ast.Subscript(value=ast.Name(id=parts), slice=ast.Name(id=number)),
                ) if number == index and bindings(scope, parts) == 1:
                    split = _split(scope, parts)
                    if split is not None:
                        yield each, part, split, True


def _split(scope: Scope, parts: str) -> ast.Name | None:
    """The name of what the parts of a name are split of."""
    for each in _in_order(scope.body):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        for target, value in pairs_of(each.targets[0], each.value):
            if isinstance(target, ast.Name) and target.id == parts and isinstance(value, ast.Call):
                if split_count(value) is not None and value.args:
                    source = value.args[0]
                    return source if isinstance(source, ast.Name) else None
    return None


def _beside(
    scope: Scope, loop: ast.For, name: str, *, strictly: bool, flat: bool
) -> Iterator[ast.Name]:
    """Where a value is read behind the towers, in a statement that has rows of all towers too.

    Args:
        strictly: only where TensorFlow fails if there are more rows, or fewer, than the towers have.
        flat: the value is a number for each row.
    """
    behind = [each for each in _in_order(scope.body) if each.lineno > (loop.end_lineno or 0)]
    joined = {
        each.targets[0].id
        for each in behind
        if isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Name)
        and len(each.targets) == 1
        and _is_joined(each.value)
        and bindings(scope, each.targets[0].id) == 1
    }
    for statement in behind:
        for each in ast.walk(statement.value) if isinstance(statement, ast.Assign) else ():
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub) and not strictly:
                sides = [each.left, each.right]
            elif isinstance(each, ast.Call) and ast.unparse(each.func) in _ROW_BY_ROW:
                sides = [*each.args[:2], *(one.value for one in each.keywords)]
                classes = all(_is_argmax(one) or flat and _is_cast(one, name) for one in sides)
                called = ast.unparse(each.func)
                if strictly and not (called in _STRICT or called in _COMPARES and classes):
                    continue
            else:
                continue
            found = [_rows_of(one) for one in sides]
            if any(
                _is_joined(one) or isinstance(one, ast.Name) and one.id in joined for one in found
            ):
                yield from (one for one in found if isinstance(one, ast.Name) and one.id == name)


def _is_argmax(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "tf.argmax"


def _is_cast(node: ast.expr, name: str) -> bool:
    """Whether an expression is a name, or what that is as another type."""
    while isinstance(node, ast.Call) and ast.unparse(node.func) in _CASTS and node.args:
        node = node.args[0]
    return isinstance(node, ast.Name) and node.id == name


def _rows_of(node: ast.expr) -> ast.expr:
    """What gives the rows of an expression: `y` of `tf.argmax(y, 1)`."""
    while isinstance(node, ast.Call) and ast.unparse(node.func) in _ROWS and node.args:
        along = [*node.args[1:2], *(each.value for each in node.keywords)]
        if ast.unparse(node.func) == "tf.argmax" and [ast.unparse(each) for each in along] not in (
            ["1"],
            ["-1"],
        ):
            break
        node = node.args[0]
    return node


def _is_joined(node: ast.expr) -> bool:
    """`tf.concat(tower_logits, 0)`."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "tf.concat":
        return False
    given = {ast.unparse(each) for each in node.args}
    given |= {ast.unparse(each.value) for each in node.keywords}
    return len(given) == 2 and "0" in given and any(each.isidentifier() for each in given)


def _fed(scope: Scope) -> set[int]:
    """The names that are keys of dicts."""
    return {
        id(key)
        for each in ast.walk(scope)
        if isinstance(each, ast.Dict)
        for key in each.keys
        if key is not None
    } | {
        id(each.slice)
        for each in ast.walk(scope)
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)
    }


def _handed(file: PlainFile, scope: Scope) -> set[int]:
    """The names that functions of the file are given, which may run with them, or that are kept for that in a dict."""
    own = {each.name for each in file.tree.body if isinstance(each, ast.FunctionDef)}
    return {
        id(value)
        for each in ast.walk(scope)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in own
        for value in [*each.args, *(keyword.value for keyword in each.keywords)]
    } | {
        id(value) for each in ast.walk(scope) if isinstance(each, ast.Dict) for value in each.values
    }


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _in_order(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run once, those of `with` among them."""
    for each in body:
        yield each
        if isinstance(each, ast.With):
            yield from _in_order(each.body)
