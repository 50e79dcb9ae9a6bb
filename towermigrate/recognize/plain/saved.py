"""Lists of variables with a name that a saver is given: written where the saver is made."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.saved_lists import is_trained_list

_ALL = ("tf.trainable_variables()", "tf.global_variables()", "tf.all_variables()")


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
                        whole = text in _ALL or is_trained_list(text)
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
