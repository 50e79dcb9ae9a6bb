"""Batch norm's updates that are waited for without a name, collected tower by tower, or fetched beside the update."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    fetches_of,
    names_in,
    run_of,
)
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.python_scopes import own_nodes

_KEY = "UPDATE_OPS"
_APPLIES = ("apply_gradients", "minimize")


def waited_updates(file: PlainFile) -> list[Change]:
    """`with tf.control_dependencies(update_ops): grads = opt.compute_gradients(loss)` of towers: the update waits for them.

    So where the gradients of all towers are averaged and applied, and nothing else is done with them: whoever runs the update
    runs what they wait for, and nobody else does.
    """
    if _KEY not in file.text or file.finds_names_by_text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        if file.of(loop).count(_KEY) == file.text.count(_KEY) == 1
        for each in ast.walk(loop)
        if isinstance(each, ast.With)
        for change in _waited(file, scope, loop, each, where)
    ]


def _waited(
    file: PlainFile, scope: Scope, loop: ast.For, block: ast.With, where: str
) -> list[Change]:
    match block:
        case ast.With(
            items=[
                ast.withitem(
                    context_expr=ast.Call(func=func, args=[waited], keywords=[]), optional_vars=None
                )
            ],
            body=[
                ast.Assign(
                    targets=[ast.Name(id=grads)],
                    value=ast.Call(func=ast.Attribute(attr="compute_gradients")),
                ) as made
            ],
        ) if ast.unparse(func) == "tf.control_dependencies":
            pass
        case _:
            return []
    named = _named_in(loop, waited.id) if isinstance(waited, ast.Name) else None
    taken = waited if named is None else named.value
    update = _applied(file, scope, loop, grads)
    if not isinstance(taken, ast.Call) or not _takes(taken) or update is None:
        return []
    scopes = [*taken.args[1:], *(k.value for k in taken.keywords if k.arg != "key")]
    if any(ast.unparse(each) not in _named_scopes(loop) for each in scopes) or not taken.args:
        return []
    margin = file.alone(update)
    head = file.start(block), file.start(made)
    own = file.text[file.starts[block.lineno - 1] : head[0]]
    if margin is None or own.strip() or file.commented(*head) or file.alone(made) is None:
        return []
    found = [Change(*head, (), where)]
    name = file.fresh("update_ops")
    if named is not None:
        assert isinstance(waited, ast.Name)
        if len(names_in(scope, waited.id)) != 2 or waited.id in file.shared_between_functions:
            return []
        if not _has_more(loop, named) or file.alone(named) is None:
            return []
        if file.commented(*file.span(named)):
            return []
        found.append(Change(*file.without(named), (), where))
        name = waited.id
    start = file.start(update)
    text = f"{name} = tf.get_collection({ast.unparse(taken.args[0])})\n{margin}with tf.control_dependencies({name}):\n{margin}    "
    return [*found, Change(start, start, (text,), where)]


def _named_in(loop: ast.For, name: str) -> ast.Assign | None:
    for each in _always(loop.body):
        match each:
            case ast.Assign(targets=[ast.Name(id=own)]) if own == name:
                return each
    return None


def _applied(file: PlainFile, scope: Scope, loop: ast.For, grads: str) -> ast.Assign | None:
    """The statement that applies the average of the gradients that towers collect, which are used for nothing else."""
    inner, outer = _reads(file, scope, loop, grads)
    if len(inner) != 1:
        return None
    kept = next(
        (
            call.func.value.id
            for call in ast.walk(loop)
            if isinstance(call, ast.Call)
            and [*call.args] == inner
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "append"
            and isinstance(call.func.value, ast.Name)
        ),
        "",
    )
    _, averaged = _reads(file, scope, loop, kept)
    if len(averaged) != 1:
        return None
    for each in once_in(scope):
        match each:
            case ast.Assign(
                targets=[ast.Name(id=average)],
                value=ast.Call(args=[ast.Name() as given], keywords=[]),
            ) if given is averaged[0]:
                of_tower, applied = _reads(file, scope, loop, average)
                same = average == grads
                if len(applied) != 1 or len(of_tower) != same or not same and outer:
                    return None
                return next(
                    (
                        one
                        for one in once_in(scope)
                        if isinstance(one, ast.Assign)
                        and isinstance(one.value, ast.Call)
                        and isinstance(one.value.func, ast.Attribute)
                        and one.value.func.attr == "apply_gradients"
                        and one.value.args[:1] == applied
                    ),
                    None,
                )
    return None


def _reads(
    file: PlainFile, scope: Scope, loop: ast.For, name: str
) -> tuple[list[ast.Name], list[ast.Name]]:
    """Where a name of a scope is read in a loop, and elsewhere; what else may read it counts twice there."""
    reads = [each for each in names_in(scope, name) if isinstance(each.ctx, ast.Load)]
    inside = {id(each) for each in ast.walk(loop)}
    inner = [each for each in reads if id(each) in inside]
    outer = [each for each in reads if id(each) not in inside]
    shared = name in file.shared_between_functions
    if shared or isinstance(scope, ast.Module) and name in file.words_of_users:
        outer = [*outer, *outer, *reads]
    return inner, outer


def _named_scopes(loop: ast.For) -> set[str]:
    """The names of name scopes that hold all that a tower makes: a scope of a part has the updates of that part only."""
    found: set[str] = set()
    body = loop.body
    while len(body) == 1 and isinstance(body[0], ast.With):
        for each in body[0].items:
            if isinstance(each.optional_vars, ast.Name) and isinstance(each.context_expr, ast.Call):
                if ast.unparse(each.context_expr.func) == "tf.name_scope":
                    found.add(each.optional_vars.id)
        body = body[0].body
    bound = [
        each.id
        for each in ast.walk(loop)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]
    return {name for name in found if bound.count(name) == 1}


def _takes(node: ast.AST) -> bool:
    """Whether it is `tf.get_collection(tf.GraphKeys.UPDATE_OPS, …)`."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "tf.get_collection"
        and _KEY in ast.unparse(node)
    )


# ---- collected tower by tower ------------------------------------------------------------------------


def updates_of_each(file: PlainFile) -> list[Change]:
    """`updates += tf.get_collection(UPDATE_OPS, scope)` of every tower as the list of all of them behind the towers."""
    if _KEY not in file.text or file.finds_names_by_text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _of_each(file, scope, loop, where)
    ]


def _of_each(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> Iterator[Change]:
    named = _named_scopes(loop)
    for each in _always(loop.body):
        name, taken = _more(each)
        if taken is None or file.alone(each) is None or file.commented(*file.span(each)):
            continue
        scopes = [*taken.args[1:], *(k.value for k in taken.keywords if k.arg == "scope")]
        if len(scopes) != 1 or ast.unparse(scopes[0]) not in named:
            continue
        if file.of(loop).count(_KEY) != 1:  # what a tower takes besides
            continue
        begun = _begun(scope, name, loop)
        if begun is None or file.alone(begun) is None or file.commented(*file.span(begun)):
            continue
        if len(names_in(loop, name)) != 1 or name in file.shared_between_functions:
            continue
        if bindings(scope, name) != (2 if isinstance(each, ast.AugAssign) else 1):
            continue
        if isinstance(scope, ast.Module) and name in file.words_of_users:
            continue
        behind = [
            one
            for one in names_in(scope, name)
            if one.lineno < loop.lineno and one.lineno != begun.lineno
        ]
        if behind:
            continue
        end = file.end(loop)
        if file.text[end:].split("\n", 1)[0].strip():
            continue  # a comment that belongs to the loop
        margin = file.text[file.starts[loop.lineno - 1] : file.start(loop)]
        if "\n" in file.of(taken.args[0]) or margin.strip() or not _has_more(loop, each):
            continue
        key = file.of(taken.args[0])
        yield Change(*file.without(begun), (), where)
        yield Change(*file.without(each), (), where)
        text = f"\n{margin}{name} = tf.get_collection({key})"
        yield Change(end, end, (text,), where)


def _more(statement: ast.stmt) -> tuple[str, ast.Call | None]:
    """The list that a statement adds a tower's updates to, and how it takes them."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.Call() as taken):
            return name, taken if _takes(taken) else None
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="extend"),
                args=[ast.Call() as taken],
                keywords=[],
            )
        ):
            return name, taken if _takes(taken) else None
    return "", None


def _always(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that every tower makes once."""
    for each in body:
        if isinstance(each, ast.With):
            yield from _always(each.body)
        elif isinstance(each, ast.If | ast.For | ast.While | ast.Try):
            continue
        else:
            yield each


def _has_more(loop: ast.For, statement: ast.stmt) -> bool:
    return all(
        len(body) > 1
        for each in ast.walk(loop)
        if isinstance(body := getattr(each, "body", None), list)
        and any(one is statement for one in body)
    )


def _begun(scope: Scope, name: str, loop: ast.For) -> ast.Assign | None:
    """`updates = []` in front of the loop."""
    for each in once_in(scope):
        match each:
            case ast.Assign(targets=[ast.Name(id=own)], value=ast.List(elts=[])) if own == name:
                return each if each.lineno < loop.lineno else None
    return None


# ---- fetched beside the update -----------------------------------------------------------------------


def fetched_updates(file: PlainFile) -> list[Change]:
    """`_, value, _ = sess.run([train_op, loss, update_ops])` with the updates in a group with the one that they are run with.

    So where every run of either is a run of both, and nothing is done with what the updates give back.
    """
    if _KEY not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        bound = {
            each.targets[0].id: each
            for each in once_in(scope)
            if isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Name)
            and each.lineno > (loop.end_lineno or 0)
        }
        for name, each in bound.items():
            if _takes(each.value):
                found += _fetched(file, scope, name, bound, where)
    return found


def _fetched(
    file: PlainFile, scope: Scope, name: str, bound: dict[str, ast.Assign], where: str
) -> list[Change]:
    if not _only_here(file, scope, name):
        return []
    runs = [_Run(each) for each in own_nodes(scope) if isinstance(each, ast.Assign | ast.Expr)]
    runs = [each for each in runs if name in each.names]
    reads = [one for one in names_in(scope, name) if isinstance(one.ctx, ast.Load)]
    if not runs or len(reads) != len(runs) or any(r.names.count(name) != 1 for r in runs):
        return []
    for update, made in bound.items():
        value = made.value
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            continue
        if value.func.attr not in _APPLIES or not _only_here(file, scope, update):
            continue
        uses = [one for one in names_in(scope, update) if isinstance(one.ctx, ast.Load)]
        if len(uses) != len(runs) or any(r.names.count(update) != 1 for r in runs):
            continue
        changes = [change for run in runs for change in run.without(file, scope, name, where)]
        last = max(made, bound[name], key=lambda each: each.lineno)
        margin = file.alone(last)
        if len(changes) < len(runs) or margin is None or file.alone(made) is None:
            return []
        if any(run.statement.lineno < last.lineno for run in runs):
            return []
        own, end = file.fresh("apply_op"), file.end(last)
        text = f"\n{margin}{update} = tf.group({own}, *{name})"
        return [
            *changes,
            Change(*file.span(made.targets[0]), (own,), where),
            Change(end, end, (text,), where),
        ]
    return []


def _only_here(file: PlainFile, scope: Scope, name: str) -> bool:
    """Whether a name is bound once, and read in its own scope alone."""
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return False
    own = {id(each) for each in own_nodes(scope)}
    if any(id(each) not in own for each in names_in(scope, name)):
        return False
    return not isinstance(scope, ast.Module) or name not in file.words_of_users


class _Run:
    """A statement that runs a list of fetches, and its names, `""` for what is none; no names where it is no such statement."""

    def __init__(self, statement: ast.Assign | ast.Expr) -> None:
        self.statement = statement
        self.names: list[str] = []
        call = run_of(statement.value)
        fetched = None if call is None else fetches_of(call)
        if isinstance(fetched, ast.List | ast.Tuple):
            self.fetched = fetched
            self.names = [each.id if isinstance(each, ast.Name) else "" for each in fetched.elts]

    def without(self, file: PlainFile, scope: Scope, name: str, where: str) -> list[Change]:
        """The run without one of its fetches; nothing where its value is used, or cannot be left out."""
        place = self.names.index(name)
        if len(self.names) < 2 or file.commented(*file.span(self.fetched)):
            return []
        sequences: list[ast.expr] = [self.fetched]
        if isinstance(self.statement, ast.Assign):
            (target, *more) = self.statement.targets
            if more or not isinstance(target, ast.Tuple | ast.List):
                return []
            if len(target.elts) != len(self.names) or file.commented(*file.span(target)):
                return []
            unread = target.elts[place]
            if not isinstance(unread, ast.Name) or any(
                isinstance(each.ctx, ast.Load) for each in names_in(scope, unread.id)
            ):
                return []
            sequences.append(target)
        found = []
        for each in sequences:
            assert isinstance(each, ast.List | ast.Tuple)
            kept = [one for number, one in enumerate(each.elts) if number != place]
            if len(kept) == 1:
                found.append(Change(*file.span(each), (file.span(kept[0]),), where))
            elif place:
                start, end = file.end(each.elts[place - 1]), file.end(each.elts[place])
                found.append(Change(start, end, (), where))
            else:
                start, end = file.start(each.elts[0]), file.start(each.elts[1])
                found.append(Change(start, end, (), where))
        return found


__all__ = ["fetched_updates", "updates_of_each", "waited_updates"]
