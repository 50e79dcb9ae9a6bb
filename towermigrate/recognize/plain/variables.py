"""Runs of lists of variables: one run for each."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Sequence

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings, own_calls
from towermigrate.recognize.plain.collected import is_pythons, is_tower_loop, once_in
from towermigrate.recognize.plain.methods import makes_session, sessions_of
from towermigrate.recognize.plain.zipped_variables import lists_of_zips
from towermigrate.recognize.python_scopes import own_nodes

_TRAINED = "tf.trainable_variables()"
_ALL = "tf.global_variables()"
KEYS = {
    "'trainable_variables'": _TRAINED,
    "tf.GraphKeys.TRAINABLE_VARIABLES": _TRAINED,
    "'variables'": _ALL,
    "tf.GraphKeys.GLOBAL_VARIABLES": _ALL,
    "tf.GraphKeys.VARIABLES": _ALL,
}
"""The collections of variables, and what lists them."""
_SPELLED = {_TRAINED: _TRAINED, _ALL: _ALL, "tf.all_variables()": _ALL} | {
    f"tf.get_collection({key})": listed for key, listed in KEYS.items()
}
_MAKE_VARIABLES = frozenset("apply_gradients minimize apply get_variable Variable add_slot".split())
_HARMLESS = (
    "tf.gfile.", "tf.logging.", "tf.train.global_step", "tf.train.Saver", "tf.summary.", "tf.Session", "tf.ConfigProto",
    "tf.GPUOptions", "tf.global_variables_initializer", "tf.local_variables_initializer", "tf.train.Coordinator",
    "tf.train.start_queue_runners", "tf.train.latest_checkpoint", "tf.trainable_variables", "tf.global_variables",
)  # fmt: skip


def named_lists(file: PlainFile) -> list[Change]:
    """`kept = tf.global_variables()` behind the towers, which is gone over and run, as the list wherever it is read."""
    if "_variables" not in file.text and "collection" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        sessions = sessions_of(scope)
        opened = [call.lineno for call in own_calls(scope) if makes_session(call)]
        if not sessions or not opened:
            continue
        towers = [
            each.end_lineno or 0
            for each in once_in(scope)
            if isinstance(each, ast.For) and is_tower_loop(each)
        ]
        behind = max(towers) if towers else min(opened)
        for each in own_nodes(scope):
            if isinstance(each, ast.Assign) and each.lineno > min(behind, min(opened)):
                found += _named_list(file, scope, sessions, each, where)
    return found


def _named_list(
    file: PlainFile, scope: Scope, sessions: Collection[str], bound: ast.Assign, where: str
) -> list[Change]:
    listed = _SPELLED.get(ast.unparse(bound.value))
    match bound.targets:
        case [ast.Name(id=name)] if listed is not None:
            pass
        case _:
            return []
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return []
    if isinstance(scope, ast.Module) and name in file.words_of_users or file.finds_names_by_text:
        return []
    over: dict[int, ast.expr] = {id(each): each for each in lists_of_zips(scope)}
    for each in own_nodes(scope):
        if isinstance(each, ast.For | ast.comprehension):
            over[id(each.iter)] = each.iter
        elif isinstance(each, ast.Call) and len(each.args) == 1 and not each.keywords:
            func = each.func
            if isinstance(func, ast.Name) and func.id == "len" and is_pythons(file, "len"):
                over[id(each.args[0])] = each.args[0]
            if isinstance(func, ast.Attribute) and func.attr == "run":
                if isinstance(func.value, ast.Name) and func.value.id in sessions:
                    over[id(each.args[0])] = each.args[0]
    reads = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    margin = file.alone(bound)
    if not reads or any(id(each) not in over for each in reads) or margin is None:
        return []
    if file.commented(*file.span(bound)) or any(r.lineno <= bound.lineno for r in reads):
        return []
    last = max(each.lineno for each in reads)
    for each in own_nodes(scope):  # what makes variables in between would be in the list then
        if isinstance(each, ast.Call) and bound.lineno < each.lineno <= last:
            called = ast.unparse(each.func)
            made = called.startswith("tf.") and not called.startswith(_HARMLESS)
            if made or called.rpartition(".")[2] in _MAKE_VARIABLES or _may_make(file, each):
                return []
    if not _stay_together(scope, bound, reads):
        return []
    for each in own_nodes(scope):  # another graph may be the default one there
        if isinstance(each, ast.With) and any(
            "as_default" in ast.unparse(one) for one in each.items
        ):
            inside = {id(one) for one in ast.walk(each)}
            if id(bound) not in inside and any(id(one) in inside for one in reads):
                return []
    gone = Change(*file.without(bound), (), where)
    return [gone, *(Change(*file.span(each), (listed,), where) for each in reads)]


def _may_make(file: PlainFile, call: ast.Call) -> bool:
    """Whether a function of the program, of whatever file, may make variables."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if isinstance(call.func, ast.Attribute):
        name = call.func.attr
    made = [
        each
        for each in file.nodes
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == name
    ]
    words = {word for each in made for word in re.findall(r"\w+", file.of(each))}
    if made:
        return "tf" in words or bool(words & _MAKE_VARIABLES) or len(made) > 1
    root: ast.expr = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    imported = {
        alias.asname or alias.name.partition(".")[0]: (
            getattr(each, "module", None) or alias.name
        ).partition(".")[0]
        for each in file.nodes
        if isinstance(each, ast.Import | ast.ImportFrom)
        for alias in each.names
    }
    module = imported.get(root.id)
    return module is not None and module not in sys.stdlib_module_names | {"numpy", "tensorflow"}


def _stay_together(scope: Scope, bound: ast.Assign, reads: Sequence[ast.Name]) -> bool:
    """Whether all reads stand behind the binding in its own block, or in blocks of it, and the block is more than that."""
    for each in ast.walk(scope):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(each, name, None)
            if isinstance(block, list) and any(one is bound for one in block):
                behind = block[block.index(bound) + 1 :]
                inside = {id(node) for one in behind for node in ast.walk(one)}
                return all(id(one) in inside for one in reads)
    return False


def runs_of_variables(file: PlainFile) -> list[Change]:
    """`sess.run(tf.trainable_variables())` as `[sess.run(v) for v in tf.trainable_variables()]`; dicts of them too.

    One of them, or some by their places, are picked of that.
    """
    if "_variables()" not in file.text:
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
    listed = _TRAINED
    match fetched:
        case ast.ListComp(elt=ast.Name(id=own), generators=[ast.comprehension(target=ast.Name(id=name), iter=over)]) if (
            own == name and ast.unparse(over) in (_TRAINED, _ALL)
        ):  # fmt: skip
            start, end = file.span(fetched.elt)
            return (
                (file.start(fetched), start), f"{session}.run({name})", (end, file.end(fetched)),
            )  # fmt: skip
        case ast.DictComp(value=ast.Name(id=own), generators=[ast.comprehension(target=ast.Name(id=name), iter=over)]) if (
            own == name and ast.unparse(over) in (_TRAINED, _ALL)
        ):  # fmt: skip
            start, end = file.span(fetched.value)
            return (
                (file.start(fetched), start), f"{session}.run({name})", (end, file.end(fetched)),
            )  # fmt: skip
        case ast.Name(id=name) if not _is_list(scope, name):
            return ()
        case ast.Name():
            pass
        case _ if ast.unparse(fetched) == _ALL:
            listed = _ALL
        case _ if ast.unparse(fetched) != _TRAINED:
            return ()
    one = file.free(scope, "v", "var", "variable")
    return (f"[{session}.run({one}) for {one} in {listed}]",)


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
