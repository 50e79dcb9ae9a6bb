"""Runs of lists of variables: one run for each."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings, own_calls
from towermigrate.recognize.plain.collected import is_tower_loop, once_in
from towermigrate.recognize.plain.methods import sessions_of

_TRAINED = "tf.trainable_variables()"


def runs_of_variables(file: PlainFile) -> list[Change]:
    """`sess.run(tf.trainable_variables())` as `[sess.run(v) for v in tf.trainable_variables()]`; dicts of them too.

    One of them, or some by their places, are picked of that.
    """
    if "trainable_variables()" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        sessions = sessions_of(scope)
        picked = _picked(file, scope) if sessions else {}
        for call in own_calls(scope) if sessions else ():
            func = call.func
            if not isinstance(func, ast.Attribute) or func.attr != "run" or call.keywords:
                continue
            if not isinstance(func.value, ast.Name) or func.value.id not in sessions:
                continue
            if len(call.args) != 1 or file.commented(*file.span(call)):
                continue
            (fetched,) = call.args
            name = fetched.id if isinstance(fetched, ast.Name) else ""
            pick = picked[name].value if name in picked else fetched
            if isinstance(pick, ast.Subscript):
                place = file.text[file.end(pick.value) : file.end(pick)] if _of_places(pick) else ""
                parts = _one_by_one(file, scope, func.value.id, pick.value) if place else ()
                parts = (*parts, place) if parts else ()
            else:
                parts = _one_by_one(file, scope, func.value.id, fetched)
            if parts:
                found.append(Change(*file.span(call), parts, where))
        found += [Change(*file.without(each), (), where) for each in picked.values()]
    return found


def _of_places(node: ast.Subscript) -> bool:
    """Whether a part of a list is picked by numbers."""
    return all(
        isinstance(each, ast.Constant | ast.UnaryOp | ast.USub | ast.Slice)
        for each in ast.walk(node.slice)
    )


def _picked(file: PlainFile, scope: Scope) -> dict[str, ast.Assign]:
    """`v = tf.trainable_variables()[0]` behind the towers, where the name is used for nothing but to be run."""
    found: dict[str, ast.Assign] = {}
    for each in once_in(scope):
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Subscript):
            continue
        value, (target, *more) = each.value, each.targets
        if ast.unparse(value.value) != _TRAINED or not _of_places(value) or more:
            continue
        if not isinstance(target, ast.Name) or file.alone(each) is None:
            continue
        if file.commented(*file.span(each)) or not _is_list(scope, target.id, ast.unparse(value)):
            continue
        found[target.id] = each
    return found


def _one_by_one(file: PlainFile, scope: Scope, session: str, fetched: ast.expr) -> tuple[Part, ...]:
    match fetched:
        case ast.ListComp(elt=ast.Name(id=own), generators=[ast.comprehension(target=ast.Name(id=name), iter=over)]) if (
            own == name and ast.unparse(over) == _TRAINED
        ):  # fmt: skip
            start, end = file.span(fetched.elt)
            return (
                (file.start(fetched), start), f"{session}.run({name})", (end, file.end(fetched)),
            )  # fmt: skip
        case ast.DictComp(value=ast.Name(id=own), generators=[ast.comprehension(target=ast.Name(id=name), iter=over)]) if (
            own == name and ast.unparse(over) == _TRAINED
        ):  # fmt: skip
            start, end = file.span(fetched.value)
            return (
                (file.start(fetched), start), f"{session}.run({name})", (end, file.end(fetched)),
            )  # fmt: skip
        case ast.Name(id=name) if not _is_list(scope, name):
            return ()
        case ast.Name():
            pass
        case _ if ast.unparse(fetched) != _TRAINED:
            return ()
    one = file.free(scope, "v", "var", "variable")
    return (f"[{session}.run({one}) for {one} in {_TRAINED}]",)


def _is_list(scope: Scope, name: str, of: str = _TRAINED) -> bool:
    """Whether a name is bound to the list of trained variables, once and for all, behind the towers, and only run."""
    towers = [each for each in once_in(scope) if isinstance(each, ast.For) and is_tower_loop(each)]
    bound = [
        each
        for each in once_in(scope)
        if isinstance(each, ast.Assign)
        and [ast.unparse(target) for target in each.targets] == [name]
        and ast.unparse(each.value) == of
    ]
    reads = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    runs = [
        each.args[0]
        for each in own_calls(scope)
        if isinstance(each.func, ast.Attribute) and each.func.attr == "run" and each.args
    ]
    return (
        len(bound) == 1
        and any((each.end_lineno or 0) < bound[0].lineno for each in towers)
        and bindings(scope, name) == 1
        and all(any(each is one for one in runs) for each in reads)
    )
