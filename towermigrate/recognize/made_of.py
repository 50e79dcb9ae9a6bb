"""What a program asks of a variable that no rewritten one answers alike: what it is made of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_HINT = re.compile(
    r"Variable(?:V2)?['\"]|VarHandleOp|['\"]_(?:ref|handle)['\"]|['\"]handle['\"]|\._ref\b|/read(?::0)?['\"]"
)
_READ = re.compile(r"[\w./-]+/read(?::0)?")
_BY_NAME = frozenset({
    "run", "eval", "get_tensor_by_name", "get_operation_by_name", "as_graph_element",
})  # fmt: skip
_OPERATIONS = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_CLASSES = frozenset({"RefVariable", "ResourceVariable"})


def asks_what_made_of(text: str) -> Iterator[ast.expr]:
    """Expressions that ask a variable for its operation's type or its class by a text, or for what only TensorFlow 1's has.

    Example:
        >>> [ast.unparse(each) for each in asks_what_made_of("ok = v.op.type == 'VariableV2'")]
        ["v.op.type == 'VariableV2'"]
    """
    if _HINT.search(text) is None:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                texts = {
                    each.value
                    for side in sides
                    for each in ast.walk(side)
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
                if texts & _OPERATIONS and any(_is_type(each) for each in sides):
                    yield node
                elif texts & _CLASSES and any(_is_class_name(each) for each in sides):
                    yield node
            case ast.Call(func=ast.Attribute(value=of, attr="startswith"), args=[ast.Constant(value=str(begins)), *_]) if _is_type(of) and begins.startswith("Var"):  # fmt: skip
                yield node
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[_, ast.Constant(value="_ref" | "handle" | "_handle"), *_]):  # fmt: skip
                yield node
            case ast.Attribute(attr="_ref", ctx=ast.Load()):
                yield node
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _BY_NAME:
                # The operation that reads a variable of TensorFlow 1, which a resource does not have.
                yield from (
                    each
                    for given in (*node.args, *(keyword.value for keyword in node.keywords))
                    for each in ast.walk(given)
                    if isinstance(each, ast.Constant)
                    and isinstance(each.value, str)
                    and _READ.fullmatch(each.value)
                )
            case ast.comprehension(target=ast.Name(id=name), iter=over) | ast.For(target=ast.Name(id=name), iter=over):  # fmt: skip
                if ".get_operations()" in ast.unparse(over):
                    yield from _of_operations(node, name)


def _of_operations(node: ast.comprehension | ast.For, name: str) -> Iterator[ast.expr]:
    """Where the operations of a graph are told apart by being variables."""
    for each in ast.walk(node):
        if isinstance(each, ast.Compare | ast.Call) and f"{name}.type" in ast.unparse(each):
            texts = {one.value for one in ast.walk(each) if isinstance(one, ast.Constant)}
            if texts & _OPERATIONS:
                yield each


def _is_type(node: ast.expr) -> bool:
    """`v.op.type`; that of an operation is what functions of devices ask, which decide no number."""
    of = node.value if isinstance(node, ast.Attribute) and node.attr == "type" else None
    return isinstance(of, ast.Attribute) and of.attr == "op"


def _is_class_name(node: ast.expr) -> bool:
    """`v.__class__.__name__` or `type(v).__name__`."""
    return isinstance(node, ast.Attribute) and node.attr == "__name__"
