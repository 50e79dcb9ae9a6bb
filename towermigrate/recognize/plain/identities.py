"""Comparisons of tensors by `==` and `!=`: TensorFlow 1 asked whether both are one object, which `is` asks in TensorFlow 2 too.

A tensor of TensorFlow 1 knew no `==`, and arrays and numbers of NumPy leave it to the tensor. What is compared must be a
tensor as it is written, or a gradient that is asked whether it is None.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import OF_TOWERS, Change, PlainFile, Scope, bindings
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.tree import all_nodes

_TENSORS = frozenset(
    f"tf.{name}"
    for name in "shape rank size reduce_sum reduce_mean reduce_max argmax cast add_n".split()
)
"""Functions that give a tensor, whatever they are given."""
_PAIRS = re.compile(r"(?:[\w.]+\.)?(?:compute_gradients|average_grad\w*)|\w*grad\w*", re.IGNORECASE)
"""What is called that gives pairs of gradients and variables."""


def identities(file: PlainFile) -> list[Change]:
    """`tf.shape(x)[3] != n` and `g != None` as `tf.shape(x)[3] is not n` and `g is not None`."""
    if "!=" not in file.text and "==" not in file.text:
        return []
    found: list[Change] = []
    tops = {id(n): getattr(top, "name", "") for top in file.tree.body for n in all_nodes(top)}
    for _, scope in file.scopes:
        gradients = set(_gradients(scope))
        for node in own_nodes(scope):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                continue
            left, right = node.left, node.comparators[0]
            none = isinstance(right, ast.Constant) and right.value is None
            gradient = isinstance(left, ast.Name) and left.id in gradients and none
            if not gradient and not (_is_tensor(left) and (none or isinstance(right, ast.Name))):
                continue
            between = file.text[file.end(left) : file.start(right)]
            if between.strip() not in ("==", "!="):
                continue
            new = " is " if between.strip() == "==" else " is not "
            where = tops.get(id(node), "")
            found.append(Change(file.end(left), file.start(right), (new,), OF_TOWERS + where))
    return found


def _is_tensor(node: ast.expr) -> bool:
    """Whether an expression makes a tensor as it is written, or takes a part of one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _TENSORS


def _gradients(scope: Scope) -> Iterator[str]:
    """The names of gradients in loops over pairs of them and variables, which nothing else binds."""
    made = [
        target.id
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and _PAIRS.fullmatch(ast.unparse(each.value.func))
        for target in each.targets
        if isinstance(target, ast.Name)
    ]
    lists = {name for name in made if made.count(name) == bindings(scope, name)}
    for each in own_nodes(scope):
        match each:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=name), ast.Name()]), iter=ast.Name(id=over)
            ):
                if over in lists and bindings(scope, name) == 1:
                    yield name
