"""Runs of lists of variables: one run for each."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings, own_calls
from towermigrate.recognize.plain.collected import is_tower_loop, once_in
from towermigrate.recognize.plain.methods import sessions_of

_TRAINED = "tf.trainable_variables()"


def runs_of_variables(file: PlainFile) -> list[Change]:
    """`sess.run(tf.trainable_variables())` as `[sess.run(v) for v in tf.trainable_variables()]`; dicts of them too."""
    if "trainable_variables()" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        sessions = sessions_of(scope)
        for call in own_calls(scope) if sessions else ():
            func = call.func
            if not isinstance(func, ast.Attribute) or func.attr != "run" or call.keywords:
                continue
            if not isinstance(func.value, ast.Name) or func.value.id not in sessions:
                continue
            if len(call.args) != 1 or file.commented(*file.span(call)):
                continue
            parts = _one_by_one(file, scope, func.value.id, call.args[0])
            if parts:
                found.append(Change(*file.span(call), parts, where))
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


def _is_list(scope: Scope, name: str) -> bool:
    """Whether a name is bound to the list of trained variables, once and for all, behind the towers."""
    towers = [each for each in once_in(scope) if isinstance(each, ast.For) and is_tower_loop(each)]
    bound = [
        each
        for each in once_in(scope)
        if isinstance(each, ast.Assign)
        and [ast.unparse(target) for target in each.targets] == [name]
        and ast.unparse(each.value) == _TRAINED
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
