"""Lists of variables with a name that a saver is given: written where the saver is made."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.saved_lists import trained_and_more

_ALL = ("tf.trainable_variables()", "tf.global_variables()", "tf.all_variables()")


def saved_tables(file: PlainFile) -> list[Change]:
    """`tf.train.Saver({v.op.name: v for v in tf.global_variables()})` as a saver of the list: these are the names it gives.

    So are `dict((v.op.name, v) for v in …)`, `list(…)` and a comprehension of all. Parts of a partitioned variable have names
    of their own in a dict, and in a list not.
    """
    if "Saver(" not in file.text or "_variables(" not in file.text or "partitioner" in file.text:
        return []
    if file.finds_names_by_text or bindings(file.tree, "dict") or bindings(file.tree, "list"):
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        given = [
            one
            for each in own_nodes(scope)
            if isinstance(each, ast.Call) and ast.unparse(each.func) == "tf.train.Saver"
            for one in [*each.args[:1], *(k.value for k in each.keywords if k.arg == "var_list")]
        ]
        for body, _ in blocks(scope):
            for each in body:
                match each:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        reads = [one for one in file.uses(name) if isinstance(one.ctx, ast.Load)]
                        saved = reads and all(any(one is each for each in given) for one in reads)
                        if saved and bindings(scope, name) == 1 and name not in file.words_of_users:
                            given.append(value)
        for one in given:
            text = _listed(file, one)
            if text is not None and not file.commented(*file.span(one)):
                found.append(Change(*file.span(one), (text,), where))
    return list(dict.fromkeys(found))


def _listed(file: PlainFile, node: ast.expr) -> str | None:
    """The list of variables whose own names a dict of them has, or that is copied; None for anything else."""
    own: ast.expr | None = None
    name: str
    only: ast.comprehension
    match node:
        case ast.DictComp(key=own, value=ast.Name(id=name), generators=[only]):
            pass
        case ast.Call(func=ast.Name(id="dict"), args=[ast.GeneratorExp(elt=pair, generators=[only]) | ast.ListComp(elt=pair, generators=[only])], keywords=[]):  # fmt: skip
            if not isinstance(pair, ast.Tuple | ast.List) or len(pair.elts) != 2:
                return None
            own, value = pair.elts
            name = value.id if isinstance(value, ast.Name) else ""
        case ast.Call(func=ast.Name(id="list"), args=[value], keywords=[]):
            return file.of(value) if _is_whole(value) else None
        case ast.ListComp(elt=ast.Name(id=name), generators=[only]) if not only.ifs:
            pass
        case _:
            return None
    if not isinstance(only.target, ast.Name) or only.target.id != name or only.is_async:
        return None
    if not _is_whole(only.iter) or own is not None and not _is_own_name(own, name):
        return None
    over = file.of(only.iter)
    if "\n" in over:
        return None
    if not only.ifs:
        return over
    tests = " ".join(f"if {ast.unparse(each)}" for each in only.ifs)
    return f"[{name} for {name} in {over} {tests}]"


def _is_whole(node: ast.expr) -> bool:
    return ast.unparse(node) in _ALL


def _is_own_name(node: ast.expr, name: str) -> bool:
    """The name that a saver gives a variable by itself: `v.op.name`, or `v.name` without its `:0`."""
    return ast.unparse(node) in (
        f"{name}.op.name",
        f"{name}.name[:-2]",
        f"{name}.name.split(':')[0]",
        f"{name}.name.split(':', 1)[0]",
        f"{name}.name.rsplit(':', 1)[0]",
        f"{name}.name.replace(':0', '')",
    )


def saved_lists(file: PlainFile) -> list[Change]:
    """`g_vars = [v for v in tf.trainable_variables() if 'gen' in v.name]` behind the towers, in each `tf.train.Saver(g_vars)`."""
    if "Saver(" not in file.text or "_variables(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for body, always in blocks(scope):
            for each in body if always else ():
                match each:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        text = ast.unparse(value)
                        trained, beside = trained_and_more(text)
                        whole = text in _ALL or bool(trained)
                        whole = whole and all(bindings(scope, one) == 1 for one in beside)
                        if whole and each.lineno > (loop.end_lineno or loop.lineno):
                            found += _in_savers(file, scope, each, name, where)
    return found


def _in_savers(
    file: PlainFile, scope: Scope, statement: ast.Assign, name: str, where: str
) -> list[Change]:
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return []
    if file.finds_names_by_text or isinstance(scope, ast.Module) and name in file.words_of_users:
        return []
    text = file.of(statement.value)
    if "\n" in text or file.alone(statement) is None:
        return []
    given: list[ast.expr] = []
    for each in ast.walk(scope):
        if isinstance(each, ast.Attribute) and ast.unparse(each.value) == name:
            return []  # a method may change the list
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "tf.train.Saver":
            lists = [*each.args[:1], *(k.value for k in each.keywords if k.arg == "var_list")]
            given += [one for one in lists if isinstance(one, ast.Name) and one.id == name]
    if not given or any(_may_make_variables(scope, statement, each) for each in given):
        return []
    uses = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
    changes = [Change(*file.span(each), (text,), where) for each in given]
    if len(uses) == len(given):
        changes.append(Change(*file.without(statement), (), where))
    return changes


def _may_make_variables(scope: Scope, statement: ast.stmt, given: ast.expr) -> bool:
    """Whether something between a list and a saver of it may make variables, which the list then has not."""
    return any(
        isinstance(each, ast.Call)
        and statement.lineno < each.lineno < given.lineno
        and not ast.unparse(each.func).startswith(_MAKE_NONE)
        for each in ast.walk(scope)
    )


_MAKE_NONE = (
    "tf.summary.",
    "tf.reduce_",
    "tf.train.Saver",
    "tf.trainable_variables",
    "print",
    "len",
)
