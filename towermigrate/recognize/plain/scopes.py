"""Variable scopes by the names that `with` gave them, and those that all towers are built in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, bindings, blocks
from towermigrate.recognize.plain.collected import is_tower_loop
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


def scopes_around_towers(file: PlainFile) -> list[Change]:
    """`with tf.variable_scope("model"):` around nothing but the tower loop, as one in each of the towers."""
    if "variable_scope(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                match each:
                    case ast.With(items=[item], body=[ast.For(orelse=[]) as loop]):
                        change = _in_tower(file, scope, each, item, loop, where)
                        found += [] if change is None else [change]
    return found


def _in_tower(
    file: PlainFile,
    scope: ast.FunctionDef | ast.Module,
    around: ast.With,
    item: ast.withitem,
    loop: ast.For,
    where: str,
) -> Change | None:
    value, name = item.context_expr, item.optional_vars
    if not (_is_scope(value) and isinstance(value, ast.Call) and is_tower_loop(loop)):
        return None
    at_root = len(value.args) == 1 and ast.unparse(value.args[0]) == "tf.get_variable_scope()"
    more = {each.arg: each.value for each in value.keywords}
    reuse = ast.unparse(more.pop("reuse")) if "reuse" in more else None
    starts = more.pop("initializer", None)
    shares = reuse == "tf.AUTO_REUSE"
    of_name = len(value.args) == 1 and isinstance(value.args[0], ast.Constant)
    if more or reuse not in (None, "None", "False", "tf.AUTO_REUSE"):
        return None
    if starts is not None and not _is_initializer(starts, scope, loop):
        return None
    if not (of_name or at_root and (shares or starts is not None)):
        return None  # of its own name only; `tf.get_variable_scope()` is where it is anyway
    if name is not None and not isinstance(name, ast.Name):
        return None
    # The operations of all towers are in one scope of names, which tags and collections may tell.
    told = {"summary", "get_collection", "get_collection_ref", "add_to_collection"}
    asked = {each.attr for each in file.nodes if isinstance(each, ast.Attribute)}
    named = any(isinstance(each, ast.Attribute) and each.attr == "name" for each in ast.walk(loop))
    inside = [each for each in ast.walk(scope) if isinstance(each, ast.With) and each is not around]
    deep = any(
        any(one is around for one in ast.walk(each)) and "_scope(" in ast.unparse(each.items[0])
        for each in inside
    )
    if (named or told & asked) and (deep or not at_root):
        return None
    start, stop = file.start(around), file.start(loop.body[0])
    outer, margin = file.alone(around), file.alone(loop)
    head = file.text[start:stop].split("\n")
    if (
        outer is None
        or margin is None
        or len(head) != 3
        or head[2].strip()
        or file.commented(start, stop)
    ):
        return None
    # What makes the towers share their variables is looked for in them; nothing is added to it here.
    bound = "" if name is None or _only_reused(file, scope, name.id) else f" as {name.id}"
    scoped = f"with {file.of(value)}{bound}:"
    # The loop's line begins in its own text, so that it is known as the same.
    line, begin = file.starts[loop.lineno - 1], file.start(loop)
    turns = (line, line + len(outer)), (begin, begin + len(head[1].strip()))
    parts = (*turns, f"\n{margin}{scoped}\n{head[2]}")
    return Change(start - len(outer), stop, parts, where)


def _is_initializer(node: ast.expr, scope: ast.FunctionDef | ast.Module, loop: ast.For) -> bool:
    """Whether an expression gives what variables start from, the same in each tower as in front of them."""
    for each in ast.walk(node):
        match each:
            case ast.Call():
                func = ast.unparse(each.func)
                if not (func.startswith("tf.") and func.endswith("_initializer")):
                    return False
            case ast.Name(ctx=ast.Load()):
                inside = (n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == each.id)
                if bindings(scope, each.id) > 1 or any(
                    not isinstance(n.ctx, ast.Load) for n in inside
                ):
                    return False
            case ast.Constant() | ast.Attribute() | ast.UnaryOp() | ast.BinOp() | ast.keyword():
                pass
            case ast.expr_context() | ast.operator() | ast.unaryop():
                pass
            case _:
                return False
    return True


def _only_reused(file: PlainFile, scope: ast.FunctionDef | ast.Module, name: str) -> bool:
    """Whether a scope's name is there for `reuse_variables()` only."""
    reused = {
        id(each.value)
        for each in ast.walk(scope)
        if isinstance(each, ast.Attribute) and each.attr == "reuse_variables"
    }
    reads = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
    return bindings(scope, name) == 1 and all(id(each) in reused for each in reads)


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
