"""A global step that is made behind the towers: in front of them. One that is asked for again: by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    blocks,
    own_calls,
)
from towermigrate.recognize.plain.collected import is_tower_loop, once_in
from towermigrate.recognize.python_scopes import own_nodes

_MAKES = "tf.train.get_or_create_global_step()"
_AGAIN = (_MAKES, "tf.train.get_global_step()")
_GRAPHS = re.compile(r"\bGraph\(|as_default\(")
_PLACES = re.compile(r"tf\.(?:device|name_scope)\(")
# In one statement with these the step is the first variable that is made: the slots of an optimizer come behind its arguments.
_MAKES_NO_VARIABLE = re.compile(
    r"^tf\.train\.\w+(?<!global_step)$|^\w+\.(?:apply_gradients|minimize)$"
)
_MAY_NOT_RUN = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension)
_SAVES = re.compile(r"\btf\.train\.Saver\((?:var_list=)?tf\.(?:global|all)_variables\(\)")
"""A saver finds its variables by their names, in whichever order they were made."""
_KEEPERS = re.compile(r"\w*(?:Saver|Supervisor|Scaffold|Checkpoint\w*)|Monitored\w+")
_ASKS = re.compile(r"get_global_step\(|global_step\(|\b(?:global|all)_variables\(")


def global_steps(file: PlainFile) -> list[Change]:
    """`step = tf.train.get_or_create_global_step()` where it is the only one and nothing lists variables in their order."""
    if file.text.count(_MAKES) != 1:
        return []
    if _ASKS.search(_SAVES.sub("", file.text.replace(_MAKES, ""))):
        return []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            towers = [
                each
                for each in body
                if any(isinstance(one, ast.For) and is_tower_loop(one) for one in ast.walk(each))
            ]
            for each in _placed(body) if always and len(towers) == 1 else ():
                match each:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        behind = each.lineno > towers[0].lineno
                        if behind and ast.unparse(value) == _MAKES and bindings(scope, name) == 1:
                            if _may_be_kept_before(file, scope, each):
                                return []
                            return _moved(file, each, towers[0], where)
    return []


def _may_be_kept_before(file: PlainFile, scope: Scope, step: ast.stmt) -> bool:
    """Whether a saver of all variables may be made in front of the step, which it does not save then."""
    keeping = _keeping(file, scope)
    return any(
        isinstance(each, ast.Call)
        and each.lineno < step.lineno
        and (_keeps(each) or ast.unparse(each.func).rpartition(".")[2] in keeping)
        for each in own_nodes(scope)
    )


def _keeping(file: PlainFile, scope: Scope) -> set[str]:
    """The functions and classes, of imported files too, that may make a saver, themselves or by others of them."""
    nodes = list(file.nodes)
    found: set[str] = set()
    for text in file.imported():
        if _KEEPERS.search(text):
            try:
                nodes += ast.walk(ast.parse(text))
            except SyntaxError:  # any of them may
                found |= set(re.findall(r"\b(?:def|class)\s+(\w+)", text))
    called: dict[str, set[str]] = {}
    for each in nodes:
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and each is not scope:
            calls = [one for one in ast.walk(each) if isinstance(one, ast.Call)]
            own = called.setdefault(each.name, set())
            own |= {ast.unparse(one.func).rpartition(".")[2] for one in calls}
            found |= {each.name} if any(map(_keeps, calls)) else set()
    while more := {name for name, own in called.items() if own & found} - found:
        found |= more
    return found


def _keeps(call: ast.Call) -> bool:
    return bool(_KEEPERS.fullmatch(ast.unparse(call.func).rpartition(".")[2]))


def steps_without_a_name(file: PlainFile) -> list[Change]:
    """A step that is made in the call that makes an optimizer or applies gradients: made in front of that, by a name."""
    if _MAKES not in file.text or file.finds_names_by_text:
        return []
    for where, scope in file.scopes:
        for each in sorted(once_in(scope), key=lambda one: one.lineno):
            made = [one for one in _calls(each) if ast.unparse(one) == _MAKES]
            if not made or not isinstance(each, ast.Assign | ast.Expr | ast.Return):
                continue
            is_named = isinstance(each, ast.Assign) and each.value is made[0]
            others = [ast.unparse(one.func) for one in _calls(each) if one is not made[0]]
            margin = file.alone(each)
            may_not_run = any(isinstance(one, _MAY_NOT_RUN) for one in ast.walk(each))
            if is_named or margin is None or may_not_run:
                break
            if not all(map(_MAKES_NO_VARIABLE.search, others)):
                break
            name, place = file.free(scope, "global_step"), file.above(each)
            own = Change(*file.span(made[0]), (name,), where)
            return [Change(place, place, (f"{margin}{name} = {_MAKES}\n",), where), own]
    return []


def _calls(statement: ast.stmt) -> list[ast.Call]:
    return [each for each in ast.walk(statement) if isinstance(each, ast.Call)]


def steps_asked_again(file: PlainFile) -> list[Change]:
    """`tf.train.get_global_step()` behind `step = tf.train.get_or_create_global_step()` as `step`; so where both make it."""
    if _MAKES not in file.text or not file.text.count("global_step(") > 1:
        return []
    if file.words & {"reset_default_graph", "__enter__"} or file.finds_names_by_text:
        return []
    asked = [
        each
        for each in file.nodes
        if isinstance(each, ast.Call) and ast.unparse(each.func).endswith("global_step")
    ]
    for where, scope in file.scopes:
        for each in once_in(scope):
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as made):
                    pass
                case _:
                    continue
            if ast.unparse(made) != _MAKES or bindings(scope, name) != 1:
                continue
            if name in file.shared_between_functions or name in file.words_of_users:
                continue
            own = [one for one in own_calls(scope) if any(one is call for call in asked)]
            again = [one for one in own if one is not made and ast.unparse(one) in _AGAIN]
            if not again or any(one.lineno <= (each.end_lineno or 0) for one in again):
                continue
            # Another graph has another step.
            graphs = [one for one in own_nodes(scope) if isinstance(one, ast.With) and _enters(one)]
            inside = [[_holds(graph, one) for graph in graphs] for one in (made, *again)]
            if all(one == inside[0] for one in inside):
                return [Change(*file.span(one), (name,), where) for one in again]
    return []


def _enters(block: ast.With) -> bool:
    return any(_GRAPHS.search(ast.unparse(item.context_expr)) for item in block.items)


def _holds(block: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(block))


def _placed(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, and those under nothing but devices and scopes of names, which a variable's name has not."""
    for each in body:
        yield each
        if isinstance(each, ast.With) and len(each.body) > 1:
            called = [ast.unparse(item.context_expr) for item in each.items]
            if all(_PLACES.match(text) for text in called):
                yield from _placed(each.body)


def _moved(file: PlainFile, statement: ast.stmt, towers: ast.stmt, where: str) -> list[Change]:
    margin = file.alone(towers)
    if (
        margin is None
        or file.alone(statement) is None
        or file.text[: file.start(statement)][-1:] == ";"
    ):
        return []
    gone, place = file.without(statement), file.above(towers)
    if gone[0] != file.starts[statement.lineno - 1]:
        return []  # a comment stands behind it
    parts = (margin, file.span(statement), "\n")
    return [Change(place, place, parts, where), Change(*gone, (), where)]
