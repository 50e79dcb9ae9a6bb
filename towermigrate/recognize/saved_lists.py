"""Lists of trained variables that a saver is given: all of them, those of a scope, those whose names pass a test."""

from __future__ import annotations

import ast

_KEYS = ("tf.GraphKeys.TRAINABLE_VARIABLES", "'trainable_variables'")


def is_trained_list(text: str) -> bool:
    """Whether an expression lists trained variables by their scope and names: what it gives is the same behind the steps.

    Example:
        >>> is_trained_list("[v for v in tf.trainable_variables() if 'gen' in v.name]")
        True
    """
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    if not isinstance(node, ast.ListComp):
        return _lists(node)
    if len(node.generators) != 1:
        return False
    (only,) = node.generators
    if only.is_async or not isinstance(only.target, ast.Name) or not _lists(only.iter):
        return False
    name = only.target.id
    if not isinstance(node.elt, ast.Name) or node.elt.id != name:
        return False
    return all(is_name_test(each, name) for each in only.ifs)


def trained_and_more(text: str) -> tuple[str, list[str]]:
    """The trained variables that an expression lists, as it is written there, and the names that lists add to them.

    Both are empty where it lists them otherwise.

    Example:
        >>> trained_and_more("tf.trainable_variables() + [step]")
        ('tf.trainable_variables()', ['step'])
    """
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return "", []
    parts: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts.insert(0, node.right)
        node = node.left
    parts.insert(0, node)
    trained: list[str] = []
    beside: list[str] = []
    for part in parts:
        elements = part.elts if isinstance(part, ast.List) else []
        if elements and all(isinstance(each, ast.Name) for each in elements):
            beside += [each.id for each in elements if isinstance(each, ast.Name)]
        else:
            trained.append(ast.get_source_segment(text, part) or "")
    if len(trained) != 1 or not is_trained_list(trained[0]) or len(set(beside)) < len(beside):
        return "", []
    return trained[0], beside


def _lists(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    scopes = [*node.args, *(each.value for each in node.keywords if each.arg == "scope")]
    if any(each.arg != "scope" for each in node.keywords):
        return False
    if called == "tf.get_collection":
        if not scopes or ast.unparse(scopes[0]) not in _KEYS:
            return False
        scopes = scopes[1:]
    elif called != "tf.trainable_variables":
        return False
    return len(scopes) < 2 and all(_is_text(each) for each in scopes)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_name_test(node: ast.expr, name: str) -> bool:
    """Whether a test asks for a text in the name of a variable, or how that begins."""
    match node:
        case ast.BoolOp(values=values):
            return all(is_name_test(each, name) for each in values)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return is_name_test(inner, name)
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[of]):
            return _is_text(left) and _is_name(of, name)
        case ast.Call(func=ast.Attribute(value=of, attr="startswith"), args=[text], keywords=[]):
            return _is_text(text) and _is_name(of, name)
    return False


def _is_name(node: ast.expr, name: str) -> bool:
    return ast.unparse(node) in (f"{name}.name", f"{name}.op.name")
