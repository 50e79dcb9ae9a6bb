"""What a name from around the moved code is sure to hold, by the text alone.

The code that stays is run once on symbolic values, and what is not followed there may have changed a number or a list. So
moved code takes only that for known which one statement writes out, and nothing can change.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from towermigrate.flow.values import Const, Value
from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.values import (
    Either,
    Items,
    Plain,
    Record,
    holds_tensor,
    join_all,
)

_ONLY_READ = frozenset(
    "len enumerate zip range xrange sum min max sorted str print reversed tuple list set repr".split()
)
_DEEP = 6


def settled(value: Value, name: str, frame: Frame, files: Sequence[Code]) -> Value:
    """A number, text, list or tuple from around the moved code, as far as it is sure."""
    stored = frozenset().union(*(code.stored_attributes for code in files))
    if isinstance(value, Const):
        return value if written_out(name, frame, stored) else Plain()
    if isinstance(value, Either):
        return _forgotten(value)
    if not isinstance(value, Items) or holds_tensor(value):
        return value
    if _is_flat(value) and written_out(name, frame, stored) and only_read(name, files):
        return value
    return _forgotten(value)


def _is_flat(value: Items) -> bool:
    """Whether a list is as it was written out, and nothing in it can change."""
    return value.exact and all(
        isinstance(v, Const) or isinstance(v, Items) and not v.mutable and _is_flat(v)
        for v, _ in value.values
    )


def _forgotten(value: Value) -> Value:
    """What is left of a value whose numbers, and whose length, are not sure."""
    if isinstance(value, Const):
        return Plain()
    if isinstance(value, Either):
        return join_all([_forgotten(one) for one in value.values])
    if isinstance(value, Record):
        return Record({name: _forgotten(one) for name, one in value.fields.items()}, True)
    if not isinstance(value, Items):
        return value
    known = value.exact or any(isinstance(v, Const | Either | Items) for v, _ in value.values)
    if not known:
        return value  # the list itself, which the towers fill
    held = [(_forgotten(v), False) for v, _ in value.values]
    return Items(held, False, True, value.mutable, value.name, key=value.key)


def written_out(name: str, frame: Frame, stored: frozenset[str], deep: int = 0) -> bool:
    """Whether one plain statement of a scope binds a name, to what is made of numbers, texts and such names alone.

    Args:
        stored: the attributes that the program sets: a module's name may be one of them.
    """
    nodes = frame.own.get(name, [])
    if len(nodes) != 1 or name in frame.code.shared_names or deep > _DEEP:
        return False
    if frame.is_module and name in stored:
        return False
    (node,) = nodes
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if not any(isinstance(target, ast.Name) and target.id == name for target in targets):
        return False
    return all(_plain(each, frame, stored, deep) for each in ast.walk(node.value))


def _plain(node: ast.AST, frame: Frame, stored: frozenset[str], deep: int) -> bool:
    if isinstance(node, ast.Name):
        home: Frame | None = frame
        while home is not None and node.id not in home.own:
            home = home.parent
        return home is not None and written_out(node.id, home, stored, deep + 1)
    return isinstance(
        node,
        ast.Constant
        | ast.UnaryOp
        | ast.BinOp
        | ast.List
        | ast.Tuple
        | ast.operator
        | ast.unaryop
        | ast.expr_context,
    )


def only_read(name: str, files: Sequence[Code]) -> bool:
    """Whether all that is done with a name, wherever it stands, is to go over it, to count it or to take an item of it."""
    return not any(_may_change(code, node, name) for code in files for node in code.nodes)


def _may_change(code: Code, node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name) and node.id == name:
        if not isinstance(node.ctx, ast.Load):
            return not isinstance(code.parents.get(id(node)), ast.Assign | ast.AnnAssign)
    elif isinstance(node, ast.alias):
        return node.name == name and node.asname not in (None, name)
    elif not (isinstance(node, ast.Attribute) and node.attr == name):
        return False
    elif not isinstance(node.ctx, ast.Load):
        return True
    parent = code.parents.get(id(node))
    if isinstance(parent, ast.For | ast.comprehension):
        return parent.iter is not node
    if isinstance(parent, ast.Subscript):
        return parent.value is not node or not isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Call):
        called = parent.func.id if isinstance(parent.func, ast.Name) else ""
        # Of several lists, or of one to begin with, these give one back.
        alone = len(parent.args) == 1 and not parent.keywords
        return called not in _ONLY_READ or called in ("min", "max", "sum") and not alone
    return not isinstance(parent, ast.Compare | ast.FormattedValue)
