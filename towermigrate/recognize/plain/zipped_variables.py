"""Variables that are gone over beside their values: each value fetched for its variable."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    blocks,
    names_in,
    own_calls,
)
from towermigrate.recognize.plain.collected import is_pythons
from towermigrate.recognize.plain.methods import sessions_of
from towermigrate.recognize.python_scopes import own_nodes

_LISTS = ("tf.trainable_variables()", "tf.global_variables()")
# Methods and functions of modules that run no graph, whatever object they are of.
_QUIET = frozenset(
    "sum mean std var min max round abs norm any all ravel reshape flatten tolist astype item copy format join split strip "
    "replace startswith endswith append write items keys values get sqrt square array asarray".split()
)


def zipped_variables(file: PlainFile) -> list[Change]:
    """`for v, value in zip(tf.trainable_variables(), sess.run(tf.trainable_variables())):` as a run for each `v`.

    Nothing that is done for one of them changes another, so that each has the value of the one run.
    """
    if "zip(" not in file.text or "_variables()" not in file.text or not is_pythons(file, "zip"):
        return []
    return [
        change
        for where, scope in file.scopes
        if (sessions := sessions_of(scope))
        for change in _of_scope(file, scope, sessions, where)
    ]


def values_in_place(file: PlainFile) -> list[Change]:
    """`values = sess.run(kept)` right in front of the one loop over `zip(kept, values)` as `zip(kept, sess.run(kept))`."""
    if "zip(" not in file.text or not is_pythons(file, "zip"):
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        sessions = sessions_of(scope)
        for body, _ in blocks(scope) if sessions else ():
            for each, behind in itertools.pairwise(body):
                found += _in_place(file, scope, sessions, each, behind, where)
    return found


def _in_place(
    file: PlainFile,
    scope: Scope,
    sessions: Collection[str],
    each: ast.stmt,
    behind: ast.stmt,
    where: str,
) -> list[Change]:
    match each, behind:
        case (
            ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=session), attr="run"),
                    args=[ast.Name() | ast.Call() as fetched],
                    keywords=[],
                ),
            ),
            ast.For(
                iter=ast.Call(
                    func=ast.Name(id="zip"), args=[listed, ast.Name(id=read) as value], keywords=[]
                )
            ),
        ) if session in sessions and name == read:
            pass
        case _:
            return []
    if ast.unparse(fetched) != ast.unparse(listed) or file.alone(each) is None:
        return []
    if isinstance(fetched, ast.Call) and ast.unparse(fetched) not in _LISTS:
        return []
    if len(names_in(scope, name)) != 2 or name in file.shared_between_functions:
        return []
    if isinstance(scope, ast.Module) and len(file.uses(name)) != 2 or file.finds_names_by_text:
        return []
    if isinstance(scope, ast.Module) and name in file.words_of_users:
        return []
    if file.commented(file.start(each), file.start(behind)):
        return []
    run = file.span(each.value)
    return [
        Change(*file.without(each), (), where),
        Change(*file.span(value), (run,), where),
    ]


def _of_scope(
    file: PlainFile, scope: Scope, sessions: Collection[str], where: str
) -> Iterator[Change]:
    for each in own_nodes(scope):
        match each:
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=value)]), iter=over):
                found = _zipped(over, sessions)
                if found is not None and one != value:
                    yield from _loop(file, each, value, *found, where)
            case ast.ListComp(elt=elt, generators=[made]) | ast.SetComp(elt=elt, generators=[made]):
                yield from _comprehension(file, made, [elt], sessions, where)
            case ast.DictComp(key=key, value=elt, generators=[made]):
                yield from _comprehension(file, made, [key, elt], sessions, where)


def _zipped(over: ast.expr, sessions: Collection[str]) -> tuple[str, str] | None:
    """The list and the session of `zip(list, session.run(list))`."""
    match over:
        case ast.Call(
            func=ast.Name(id="zip"),
            args=[
                listed,
                ast.Call(
                    func=ast.Attribute(value=ast.Name(id=session), attr="run"),
                    args=[fetched],
                    keywords=[],
                ),
            ],
            keywords=[],
        ) if session in sessions and ast.unparse(listed) == ast.unparse(fetched):
            text = ast.unparse(listed)
            return (text, session) if text in _LISTS else None
    return None


def _loop(
    file: PlainFile, loop: ast.For, value: str, listed: str, session: str, where: str
) -> Iterator[Change]:
    assert isinstance(loop.target, ast.Tuple)
    one = ast.unparse(loop.target.elts[0])
    margin = file.alone(loop.body[0])
    head = file.start(loop.target), file.end(loop.iter)
    if margin is None or file.commented(*head) or _acts(loop.body):
        return
    # Behind the loop the names are those of the last variable in both.
    start = file.start(loop.body[0])
    yield Change(*head, (f"{one} in {listed}",), where)
    yield Change(start, start, (f"{value} = {session}.run({one})\n{margin}",), where)


def _comprehension(
    file: PlainFile,
    made: ast.comprehension,
    parts: list[ast.expr],
    sessions: Collection[str],
    where: str,
) -> Iterator[Change]:
    found = _zipped(made.iter, sessions)
    match made.target:
        case ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=value)]) if one != value:
            pass
        case _:
            return
    if found is None or made.ifs or made.is_async or _acts(parts):
        return
    listed, session = found
    reads = [
        each
        for part in parts
        for each in ast.walk(part)
        if isinstance(each, ast.Name) and each.id == value
    ]
    binds = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)
    if len(reads) != 1 or any(isinstance(e, binds) for part in parts for e in ast.walk(part)):
        return
    head = file.start(made.target), file.end(made.iter)
    if file.commented(*head):
        return
    yield Change(*head, (f"{one} in {listed}",), where)
    yield Change(*file.span(reads[0]), (f"{session}.run({one})",), where)


def _acts(parts: Collection[ast.AST]) -> bool:
    """Whether something may run the graph: a call by such a name, or of a function of the program."""
    for part in parts:
        for each in ast.walk(part):
            if isinstance(each, ast.Yield | ast.YieldFrom | ast.Await):
                return True
            if not isinstance(each, ast.Call):
                continue
            if isinstance(each.func, ast.Name) and each.func.id not in _HARMLESS:
                return True
            if isinstance(each.func, ast.Attribute) and each.func.attr not in _QUIET:
                return True
    return False


_HARMLESS = frozenset(
    "print len str repr float int abs sum max min round sorted list tuple dict format zip".split()
)


def lists_of_zips(scope: Scope) -> list[ast.expr]:
    """The first lists of `zip(kept, session.run(kept))`, in whatever scope."""
    return [
        call.args[0]
        for call in own_calls(scope)
        if isinstance(call.func, ast.Name)
        and call.func.id == "zip"
        and len(call.args) == 2
        and not call.keywords
        and isinstance(call.args[0], ast.Name)
        and isinstance(call.args[1], ast.Call)
        and [ast.unparse(each) for each in call.args[1].args] == [call.args[0].id]
    ]
