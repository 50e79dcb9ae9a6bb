"""Dicts of feeds that are made of pairs: `dict(zip([x, y], batch))` as the display of what each placeholder is fed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    leaves_of,
    run_of,
)
from towermigrate.recognize.plain.feeds import fed_by_name, is_plain_key, only_name
from towermigrate.recognize.python_scopes import own_nodes


def listed_keys(file: PlainFile) -> list[Change]:
    """`inputs = [x, y]` that only pairs are made of: the list itself in each `zip(inputs, …)`."""
    if "zip(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for each in own_nodes(scope):
            name = only_name(each)
            if not name or not isinstance(each, ast.Assign) or file.alone(each) is None:
                continue
            keys = _keys(file, scope, each.value)
            if keys is None or bindings(scope, name) != 1 or name in file.shared_between_functions:
                continue
            if file.finds_names_by_text or isinstance(scope, ast.Module):
                continue
            paired = {id(one.args[0]) for one in own_nodes(scope) if isinstance(one, ast.Call) and _is_zip(file, one)}  # fmt: skip
            uses = [
                one
                for one in ast.walk(scope)
                if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
            ]
            text = file.of(each.value)
            if not uses or not all(id(one) in paired for one in uses) or "\n" in text:
                continue
            found.append(Change(*file.without(each), (), where))
            found += [Change(*file.span(one), (text,), where) for one in uses]
    return found


def paired_feeds(file: PlainFile) -> list[Change]:
    """`dict(zip([x, y], pair))`, and a comprehension over such pairs, where a run is fed it."""
    if "zip(" not in file.text or bindings(file.tree, "dict"):
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        fed = fed_by_name(scope)
        for body, _ in blocks(scope):
            for each in body:
                found += _of_statement(file, scope, each, fed, where)
    return found


def _of_statement(
    file: PlainFile, scope: Scope, statement: ast.stmt, fed: set[str], where: str
) -> Iterator[Change]:
    if not isinstance(statement, ast.Assign | ast.Expr):
        return
    margin = file.alone(statement)
    given = statement.value if only_name(statement) in fed else None
    run = run_of(statement.value)
    if isinstance(statement.value, ast.Subscript):
        run = run_of(statement.value.value)
    if run is not None:
        fetched = run.args[0] if run.args else None
        also = [*run.args[1:], *(each.value for each in run.keywords)]
        if fetched is None or leaves_of(fetched) is None or len(also) != 1:
            return
        (given,) = also
    if given is None or margin is None or file.commented(*file.span(statement)):
        return
    pair = _pairs(file, given)
    keys = None if pair is None else _keys(file, scope, pair.args[0])
    if pair is None or keys is None:
        return
    values = pair.args[1]
    shown = [file.of(key) for key in keys]
    parts: list[Part] = ["{"]
    if isinstance(values, ast.List | ast.Tuple):
        if len(values.elts) != len(keys) or any(isinstance(e, ast.Starred) for e in values.elts):
            return
        for key, value in zip(shown, values.elts, strict=True):
            parts += [", "] * (len(parts) > 1) + [f"{key}: (", file.span(value), ")"]
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(values)):
            return
    elif _size(file, scope, values) != len(keys):
        return
    elif isinstance(values, ast.Name):
        parts.append(", ".join(f"{key}: {values.id}[{n}]" for n, key in enumerate(shown)))
    else:
        names = [file.fresh(f"fed_{_plain(each)}") for each in shown]
        yield Change(
            *(file.start(statement),) * 2,
            (f"{', '.join(names)} = ", file.span(values), f"\n{margin}"),
            where,
        )
        parts.append(", ".join(f"{key}: {name}" for key, name in zip(shown, names, strict=True)))
    yield Change(*file.span(given), (*parts, "}"), where)


def _plain(key: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in key).strip("_")


def _pairs(file: PlainFile, node: ast.expr) -> ast.Call | None:
    """The `zip(keys, values)` that a dict is made of."""
    match node:
        case ast.Call(func=ast.Name(id="dict"), args=[ast.Call() as made], keywords=[]):
            pass
        case ast.DictComp(
            key=ast.Name(id=key),
            value=ast.Name(id=value),
            generators=[
                ast.comprehension(
                    target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
                    iter=ast.Call() as made,
                    ifs=[],
                    is_async=0,
                )
            ],
        ) if (key, value) == (first, second) and key != value:
            pass
        case _:
            return None
    return made if _is_zip(file, made) else None


def _is_zip(file: PlainFile, node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Name)
        and node.func.id == "zip"
        and len(node.args) == 2
        and not node.keywords
        and not any(isinstance(each, ast.Starred) for each in node.args)
        and not bindings(file.tree, "zip")
    )


def _keys(file: PlainFile, scope: Scope, node: ast.expr) -> list[ast.expr] | None:
    """The placeholders of a list, each of them by a name that is bound once."""
    if not isinstance(node, ast.List | ast.Tuple) or not node.elts:
        return None
    texts = [ast.unparse(each) for each in node.elts]
    if not all(is_plain_key(each) for each in node.elts) or len(set(texts)) < len(texts):
        return None
    for each in node.elts:
        owner = each.value if isinstance(each, ast.Subscript) else each
        if not isinstance(owner, ast.Name) or owner.id in file.shared_between_functions:
            return None
        here = bindings(scope, owner.id)
        if here > 1 or here == 0 and bindings(file.tree, owner.id) != 1:
            return None
    return node.elts


# ---- how many there are --------------------------------------------------------------------------------


def _size(file: PlainFile, scope: Scope, node: ast.expr) -> int | None:
    """How many a tuple holds; None where it may be another thing."""
    if isinstance(node, ast.Tuple):
        return None if any(isinstance(e, ast.Starred) for e in node.elts) else len(node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _size_of_results(file, scope, node.func.id, ast.Return)
    if not isinstance(node, ast.Name) or bindings(scope, node.id) != 1:
        return None
    if node.id in file.shared_between_functions or file.finds_names_by_text:
        return None
    if isinstance(scope, ast.Module) and node.id in file.words_of_users:
        return None
    for each in own_nodes(scope):
        if only_name(each) == node.id and isinstance(each, ast.Assign):
            return _size(file, scope, each.value)
        if isinstance(each, ast.For):
            target, source = each.target, each.iter
            if isinstance(target, ast.Tuple) and len(target.elts) == 2:
                match source:
                    case ast.Call(func=ast.Name(id="enumerate"), args=[source]):
                        target = target.elts[1]
                if bindings(file.tree, "enumerate"):
                    return None
            if isinstance(target, ast.Name) and target.id == node.id:
                return _size_of_each(file, scope, source)
    return None


def _size_of_each(file: PlainFile, scope: Scope, node: ast.expr) -> int | None:
    """How many each of the tuples holds that something gives one by one."""
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return None if isinstance(node.elt, ast.Name) else _size(file, scope, node.elt)
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        sizes = {_size(file, scope, each) for each in node.elts}
        return sizes.pop() if len(sizes) == 1 else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _size_of_results(file, scope, node.func.id, ast.Yield)
    return None


def _size_of_results(
    file: PlainFile, scope: Scope, name: str, kind: type[ast.Return] | type[ast.Yield]
) -> int | None:
    """How many the tuples hold that a function returns, or yields; it may do nothing else."""
    made = [
        each
        for each in file.nodes
        if isinstance(each, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        and each.name == name
    ]
    if len(made) != 1 or bindings(file.tree, name) != 1 or name in file.words_of_users:
        return None
    (function,) = made
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    if not any(each is function for each in (*file.tree.body, *scope.body)):
        return None
    sizes: set[int | None] = set()
    for each in own_nodes(function):
        if isinstance(each, ast.YieldFrom) or isinstance(each, ast.Yield) and kind is ast.Return:
            return None
        if isinstance(each, kind):
            value = each.value
            sizes.add(
                len(value.elts)
                if isinstance(value, ast.Tuple)
                and not any(isinstance(e, ast.Starred) for e in value.elts)
                else None
            )
    return sizes.pop() if len(sizes) == 1 else None


__all__ = ["listed_keys", "paired_feeds"]
