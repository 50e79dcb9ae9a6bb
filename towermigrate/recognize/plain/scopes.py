"""Variable scopes by the names that `with` gave them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, bindings
from towermigrate.recognize.python_scopes import own_nodes


def reused_scopes(file: PlainFile) -> list[Change]:
    """`vs.reuse_variables()` as one of `tf.get_variable_scope()`, where `with tf.variable_scope(…) as vs` is the scope there."""
    if ".reuse_variables()" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for each in own_nodes(scope):
            if not isinstance(each, ast.With):
                continue
            item = each.items[-1]  # one behind it would be another scope
            name = item.optional_vars
            if not isinstance(name, ast.Name) or not _is_scope(item.context_expr):
                continue
            if bindings(scope, name.id) == 1 and name.id not in file.shared_between_functions:
                for one in _named(each.body, name.id):
                    found.append(Change(*file.span(one), ("tf.get_variable_scope()",), where))
    return found


def _is_scope(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "tf.variable_scope"


def _named(body: list[ast.stmt], name: str) -> Iterator[ast.Name]:
    """The `vs` of every `vs.reuse_variables()` under which no other scope of variables may have been entered."""
    for each in body:
        match each:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name() as named, attr="reuse_variables"), args=[]
                )
            ) if named.id == name:
                yield named
            case ast.With() if not any(_may_enter(item.context_expr) for item in each.items):
                yield from _named(each.body, name)
            case ast.For() | ast.If():
                yield from _named([*each.body, *each.orelse], name)


def _may_enter(node: ast.expr) -> bool:
    """Whether a context manager may be a scope of variables."""
    plain = ("tf.device", "tf.name_scope", "tf.control_dependencies")
    return not isinstance(node, ast.Call) or ast.unparse(node.func) not in plain
