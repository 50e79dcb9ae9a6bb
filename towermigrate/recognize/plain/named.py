"""Optimizers and savers without a name, and the last tower's value by its place in a list: with names."""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    blocks,
    fetches_of,
    own_calls,
    stores,
)
from towermigrate.recognize.plain.collected import is_pythons, is_tower_loop, loops_of_towers
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.tree import all_nodes

_OF_OPTIMIZER = ("minimize", "apply_gradients", "compute_gradients")
_UPDATE = re.compile(r"(^|_)(train(ing)?(_op|_step)?|optimize|optim|opt|op|step|update|apply)+$")


def named_optimizers(file: PlainFile) -> list[Change]:
    """`train_op = tf.train.AdamOptimizer(0.1).minimize(loss)` with the optimizer bound to a name first."""
    if "Optimizer(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        if not any(isinstance(each, ast.For) and is_tower_loop(each) for each in own_nodes(scope)):
            continue
        for body, always in blocks(scope):
            for each in body if always else ():
                match each:
                    case ast.Assign(
                        targets=[ast.Name(id=target)],
                        value=ast.Call(func=ast.Attribute(value=ast.Call() as made, attr=attr)),
                    ) if attr in _OF_OPTIMIZER and ast.unparse(made.func).endswith("Optimizer"):
                        found += _named_optimizer(file, scope, each, made, target, where)
    return found


def _named_optimizer(
    file: PlainFile, scope: Scope, statement: ast.Assign, made: ast.Call, target: str, where: str
) -> list[Change]:
    margin, start = file.alone(statement), file.start(statement)
    if margin is None or not ast.unparse(made.func).startswith("tf."):
        return []
    if file.commented(start, file.start(made)):
        return []
    one = _UPDATE.sub("", target)
    name = file.free(scope, f"{one}_optimizer" if one else "optimizer", f"{target}_optimizer")
    parts = (f"{name} = ", file.span(made), f"\n{margin}")
    return [Change(start, start, parts, where), Change(*file.span(made), (name,), where)]


def named_savers(file: PlainFile) -> list[Change]:
    """`tf.train.Saver().save(sess, path)` with the saver bound to a name first, where that runs once."""
    if "Saver(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                match each:
                    case ast.Expr(
                        value=ast.Call(
                            func=ast.Attribute(value=ast.Call() as made, attr="save" | "restore")
                        )
                    ) if ast.unparse(made.func) == "tf.train.Saver":
                        margin, start = file.alone(each), file.start(each)
                        if margin is not None and not file.commented(start, file.end(made)):
                            name = file.free(scope, "saver", "model_saver")
                            parts = (f"{name} = ", file.span(made), f"\n{margin}")
                            found.append(Change(start, start, parts, where))
                            found.append(Change(*file.span(made), (name,), where))
    return found


def last_of_lists(file: PlainFile) -> list[Change]:
    """`sess.run([train_op, losses[-1]])` with the name that the last tower's value has."""
    if "[-1]" not in file.text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for call in own_calls(scope):
            fetched = fetches_of(call) if ast.unparse(call.func).endswith(".run") else None
            for each in all_nodes(fetched) if fetched is not None else ():
                match each:
                    case ast.Subscript(
                        value=ast.Name(id=listed),
                        slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)),
                    ):
                        name = _appended(file, scope, loop, listed)
                        if name is not None:
                            found.append(Change(*file.span(each), (name,), where))
    return found


def items_of_lists(file: PlainFile) -> list[Change]:
    """`sess.run([train_op, losses[0]])` with a name for that tower's value, bound behind the towers."""
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        items: dict[tuple[str, int], list[ast.Subscript]] = {}
        for call in own_calls(scope):
            fetched = fetches_of(call) if ast.unparse(call.func).endswith(".run") else None
            for each in all_nodes(fetched) if fetched is not None else ():
                match each:
                    case ast.Subscript(
                        value=ast.Name(id=listed), slice=ast.Constant(value=int(number))
                    ):
                        if file.start(each) > file.end(loop) and type(number) is int:
                            items.setdefault((listed, number), []).append(each)
        margin = file.alone(loop)
        for (listed, number), each_of in items.items():
            if margin is None or _appended(file, scope, loop, listed) is None:
                continue
            name = file.fresh(f"{listed}_of_tower_{number}" if number else f"first_of_{listed}")
            stop = file.text.find("\n", file.end(loop))
            stop = len(file.text) if stop < 0 else stop
            found.append(Change(stop, stop, (f"\n{margin}{name} = {listed}[{number}]",), where))
            found += [Change(*file.span(one), (name,), where) for one in each_of]
    return found


def own_items(file: PlainFile) -> list[Change]:
    """`losses[i]` and `losses[-1]` behind `losses.append(loss)` in a tower, as `loss`."""
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for each in all_nodes(loop):
            match each:
                case ast.Subscript(value=ast.Name(id=listed), ctx=ast.Load()):
                    found_in = filled(file, scope, loop, listed)
                    if found_in is None or not _is_own(file, scope, loop, each, listed):
                        continue
                    name, call = found_in
                    if file.start(each) > file.end(call):
                        found.append(Change(*file.span(each), (name,), where))
    return found


def _is_own(file: PlainFile, scope: Scope, loop: ast.For, item: ast.Subscript, listed: str) -> bool:
    """Whether an item is the one that the same turn appended."""
    match item.slice:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)):
            return True
        case ast.Name(id=number):
            pass
        case _:
            return False
    match loop:
        case (
            ast.For(
                target=ast.Name(id=counter),
                iter=ast.Call(func=ast.Name(id="range" | "xrange"), args=[_], keywords=[]),
            )
            | ast.For(
                target=ast.Tuple(elts=[ast.Name(id=counter), _]),
                iter=ast.Call(func=ast.Name(id="enumerate"), args=[_], keywords=[]),
            )
        ):
            pass
        case _:
            return False
    called = ast.unparse(loop.iter).partition("(")[0]
    if counter != number or not is_pythons(file, called):
        return False
    begins = [
        each.value
        for body, always in blocks(scope)
        for each in (body if always else ())
        if isinstance(each, ast.Assign)
        and [ast.unparse(one) for one in each.targets] == [listed]
        and each.lineno < loop.lineno
    ]
    empty = len(begins) == 1 and isinstance(begins[0], ast.List) and not begins[0].elts
    return empty and not any(stores(each, number) for each in loop.body)


def _appended(file: PlainFile, scope: Scope, loop: ast.For, listed: str) -> str | None:
    """The name of what each tower appends to a list, where it is the last tower's behind the loop."""
    found_in = filled(file, scope, loop, listed)
    return None if found_in is None else found_in[0]


def filled(
    file: PlainFile, scope: Scope, loop: ast.For, listed: str
) -> tuple[str, ast.Call] | None:
    """The name of what each turn of a loop appends to a list, bound to nothing else from there on, and the call."""
    calls = [
        each
        for each in all_nodes(scope)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and isinstance(each.func.value, ast.Name)
        and each.func.value.id == listed
    ]
    inside = {id(each) for each in all_nodes(loop)}
    if len(calls) != 1 or id(calls[0]) not in inside or bindings(scope, listed) != 1:
        return None
    (call,) = calls
    value = call.args[0] if len(call.args) == 1 and not call.keywords else None
    of_list = isinstance(call.func, ast.Attribute) and call.func.attr == "append"
    if not of_list or not isinstance(value, ast.Name) or value.id in file.shared_between_functions:
        return None
    bound = stores(scope, value.id)
    kept = bound and all(id(each) in inside and each.lineno < call.lineno for each in bound)
    return (value.id, call) if kept and _in_every_turn(loop, call) else None


def _in_every_turn(loop: ast.For, call: ast.Call) -> bool:
    """Whether a call is a statement that each turn of a loop comes to: no list is filled by some towers only."""
    leaves = (ast.Break, ast.Continue, ast.Return, ast.Try)
    body = [] if any(isinstance(each, leaves) for each in all_nodes(loop)) else loop.body
    while body:
        if any(isinstance(each, ast.Expr) and each.value is call for each in body):
            return True
        around = [each for each in body if any(one is call for one in all_nodes(each))]
        body = around[0].body if around and isinstance(around[0], ast.With) else []
    return False
