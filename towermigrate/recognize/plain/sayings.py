"""What says nothing of a training: a graph that is closed, files that are not written, sizes of variables as objects."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, stores
from towermigrate.recognize.plain.methods import sessions_of
from towermigrate.recognize.python_scopes import own_nodes

_LISTS = ("tf.trainable_variables", "tf.global_variables", "tf.all_variables")


def finalized_graphs(file: PlainFile) -> list[Change]:
    """`tf.get_default_graph().finalize()`, which only sees to it that no more is built, goes."""
    if ".finalize()" not in file.text:
        return []
    return [
        Change(*file.without(each), (), where)
        for where, scope in file.scopes
        for each in own_nodes(scope)
        if isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and isinstance(each.value.func, ast.Attribute)
        and each.value.func.attr == "finalize"
        and _is_graph(scope, each.value.func.value)
        and file.alone(each) is not None
        and not _is_alone_in_block(scope, each)
    ]


def _is_graph(scope: Scope, node: ast.expr) -> bool:
    """`tf.get_default_graph()`, or `sess.graph` of a session of the scope."""
    if isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id in sessions_of(scope)
        return own and node.attr == "graph"
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "tf.get_default_graph"


def _is_alone_in_block(scope: Scope, statement: ast.stmt) -> bool:
    blocks = (
        getattr(each, name, None)
        for each in ast.walk(scope)
        for name in ("body", "orelse", "finalbody")
    )
    return any(block == [statement] for block in blocks if isinstance(block, list))


def graphs_not_written(file: PlainFile) -> list[Change]:
    """`saver.save(…, write_meta_graph=False)` without it: the helpers' saver writes no graph."""
    found: list[Change] = []
    if "write_meta_graph" not in file.text:
        return found
    for where, scope in file.scopes:
        savers = _savers(scope)
        for each in own_nodes(scope):
            if not isinstance(each, ast.Call) or not each.args:
                continue
            if not isinstance(each.func, ast.Attribute) or each.func.attr != "save":
                continue
            if not isinstance(each.func.value, ast.Name) or each.func.value.id not in savers:
                continue
            for number, keyword in enumerate(each.keywords):
                value = keyword.value
                if keyword.arg == "write_meta_graph" and isinstance(value, ast.Constant):
                    before = each.keywords[number - 1].value if number else each.args[-1]
                    stretch = file.end(before), file.end(value)
                    if value.value is False and not file.commented(*stretch):
                        found.append(Change(*stretch, (), where))
    return found


def _savers(scope: Scope) -> set[str]:
    """The names that a scope gives to TensorFlow's savers, once and for all."""
    found = {
        target.id
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and ast.unparse(each.value.func) == "tf.train.Saver"
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return {name for name in found if bindings(scope, name) == 1}


def sizes_of_variables(file: PlainFile) -> list[Change]:
    """`for d in v.get_shape(): size *= d.value` as `for d in v.get_shape().as_list(): size *= d`, of trained variables."""
    found: list[Change] = []
    if ".value" not in file.text:
        return found
    for where, scope in file.scopes:
        for loop in own_nodes(scope):
            if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
                continue
            if not isinstance(loop.iter, ast.Call) or ast.unparse(loop.iter.func) not in _LISTS:
                continue
            for inner in ast.walk(loop):
                if isinstance(inner, ast.For) and isinstance(inner.target, ast.Name):
                    found += _sizes(file, scope, loop, inner, loop.target.id, where)
    return found


def _sizes(
    file: PlainFile, scope: Scope, loop: ast.For, inner: ast.For, variable: str, where: str
) -> list[Change]:
    assert isinstance(inner.target, ast.Name)
    shape, dimension = inner.iter, inner.target.id
    changes: list[Change] = []
    if isinstance(shape, ast.Name):
        bound = [
            each
            for each in ast.walk(loop)
            if isinstance(each, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == shape.id for t in each.targets)
        ]
        uses = _reads(scope, shape.id)
        if len(bound) != 1 or len(bound[0].targets) != 1 or len(uses) != 1:
            return []
        if len(stores(scope, shape.id)) != 1 or file.alone(bound[0]) is None:
            return []
        changes.append(Change(*file.without(bound[0]), (), where))
        shape = bound[0].value
    texts = (f"{variable}.get_shape()", f"{variable}.shape")
    if ast.unparse(shape) not in texts or file.commented(*file.span(shape)):
        return []
    inside = {
        id(each.value): each
        for each in ast.walk(inner)
        if isinstance(each, ast.Attribute) and each.attr == "value"
    }
    uses = _reads(scope, dimension)
    numbers = [inside.get(id(each)) for each in uses]
    if len(stores(scope, dimension)) != 1 or not uses or None in numbers:
        return []
    changes.append(Change(*file.span(inner.iter), (ast.unparse(shape), ".as_list()"), where))
    changes += [Change(*file.span(each), (dimension,), where) for each in numbers if each]
    return changes


def _reads(scope: Scope, name: str) -> list[ast.Name]:
    return [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
