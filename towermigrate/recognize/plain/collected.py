"""What towers collect without a name, and names of the towers that are bound anew behind them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, blocks
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.tree import all_nodes

_GRADIENTS = ("compute_gradients", "gradients", "minimize")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def towers_of(body: Sequence[ast.stmt]) -> list[ast.For]:
    """The loops of a block that compute gradients."""
    return [
        each
        for each in body
        if isinstance(each, ast.For)
        and any(
            isinstance(one, ast.Attribute) and one.attr in _GRADIENTS for one in all_nodes(each)
        )
    ]


def is_tower_loop(loop: ast.For) -> bool:
    """Whether a loop has what towers have."""
    of_towers = (*_GRADIENTS, "device")
    return any(isinstance(one, ast.Attribute) and one.attr in of_towers for one in all_nodes(loop))


@lru_cache(maxsize=8)
def loops_of_towers(file: PlainFile) -> Sequence[tuple[str, Scope, ast.For]]:
    """The tower loops that run once whenever their scopes do, each with its scope, and the outermost function of that."""
    return tuple(_loops(file))


def _loops(file: PlainFile) -> Iterator[tuple[str, Scope, ast.For]]:
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                if isinstance(each, ast.For) and is_tower_loop(each):
                    yield where, scope, each


def once_in(scope: Scope) -> list[ast.stmt]:
    """The statements that run once whenever a scope does, those that hold others too."""
    return [each for body, always in blocks(scope) if always for each in body]


# ---- what is collected -------------------------------------------------------------------------------


def collected_values(file: PlainFile) -> list[Change]:
    """`accuracies.append(tf.reduce_mean(hits))` as `accuracy = tf.reduce_mean(hits)` and `accuracies.append(accuracy)`."""
    return [
        change
        for where, _, loop in loops_of_towers(file)
        for each in all_nodes(loop)
        for change in _named(file, each, where)
    ]


def _named(file: PlainFile, statement: ast.AST, where: str) -> list[Change]:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return []
    call = statement.value
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
        return []
    if not isinstance(call.func.value, ast.Name) or len(call.args) != 1 or call.keywords:
        return []
    value, margin = call.args[0], file.alone(statement)
    if not isinstance(value, ast.Call | ast.BinOp) or margin is None:
        return []
    if isinstance(value, ast.Call) and not ast.unparse(value.func).startswith("tf."):
        return []
    if any(isinstance(one, ast.Attribute) and one.attr in _GRADIENTS for one in all_nodes(value)):
        return []
    start, end = file.span(statement)
    if file.commented(start, end):
        return []
    one = _one_of(call.func.value.id)
    name = file.fresh(f"tower_{one}" if one in file.words else one)
    given = file.span(value)
    parts = (f"{name} = ", given, f"\n{margin}", (start, given[0]), name, (given[1], end))
    return [Change(start, end, parts, where)]


def _one_of(names: str) -> str:
    """`accuracy` of `accuracies`."""
    for many, one in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if names.endswith(many) and len(names) > len(many) + 1:
            return names[: -len(many)] + one
    return names.removesuffix("_list") if names.endswith("_list") else f"{names}_value"


# ---- what is added up --------------------------------------------------------------------------------


def added_up(file: PlainFile) -> list[Change]:
    """`total = 0` and `total += loss` in towers as a list that they fill, of which `total` is the `sum`."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for loop in towers_of(body) if always else ():
                before = [each for each in once_in(scope) if each.lineno < loop.lineno]
                for each in loop.body if not loop.orelse else ():
                    found += _listed(file, scope, before, loop, each, where)
    return found


def _listed(
    file: PlainFile,
    scope: Scope,
    before: Sequence[ast.stmt],
    loop: ast.For,
    inner: ast.stmt,
    where: str,
) -> list[Change]:
    while isinstance(inner, ast.With) and inner.body:
        found = [
            change
            for each in inner.body
            for change in _listed(file, scope, before, loop, each, where)
        ]
        return found
    if not isinstance(inner, ast.AugAssign) or not isinstance(inner.op, ast.Add):
        return []
    if not isinstance(inner.target, ast.Name) or not isinstance(inner.value, ast.Name):
        return []
    name = inner.target.id
    begun = [each for each in before if _is_zero(each, name)]
    own = [each for each in own_nodes(scope) if isinstance(each, ast.Name) and each.id == name]
    in_loop = [each for each in own if any(each is one for one in all_nodes(loop))]
    stored = [each for each in own if not isinstance(each.ctx, ast.Load)]
    if len(begun) != 1 or len(in_loop) != 1 or len(stored) != 2 + _later(own, loop, name):
        return []
    if not is_pythons(file, "sum"):
        return []
    margins = [file.alone(each) for each in (begun[0], inner, loop)]
    if None in margins or name in file.shared_between_functions or file.finds_names_by_text:
        return []
    between = [each for each in own if begun[0].lineno < each.lineno < loop.lineno]
    if (
        between
        or not only_here(file, scope, name)
        or any(_leaves(each) for each in all_nodes(loop))
    ):
        return []
    many = file.fresh(f"{name}_of_towers")
    added, read = _until_bound_anew(file, scope, own, loop, name)
    if added is None:
        return []
    start, end = file.span(begun[0])
    last = file.end(loop)
    stop = file.text.find("\n", last)
    stop = len(file.text) if stop < 0 else stop
    return [
        Change(start, end, (f"{many} = []",), where),
        Change(*file.span(inner), (f"{many}.append({inner.value.id})",), where),
        Change(stop, stop, (f"\n{margins[2]}{added} = sum({many})",), where),
        *(Change(*file.span(each), (added,), where) for each in read),
    ]


@lru_cache(maxsize=64)
def is_pythons(file: PlainFile, name: str) -> bool:
    """Whether a name of Python's own means that in a file: nothing in it binds the name, and no star may."""
    for each in file.nodes:
        if isinstance(each, ast.alias) and (each.name == "*" or (each.asname or each.name) == name):
            return False
        if (
            isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and each.name == name
        ):
            return False
        if isinstance(each, ast.arg) and each.arg == name:
            return False
    return not re.search(rf"\bbuiltins\b|__builtins__|\.{name}\s*=", file.text) and not any(
        not isinstance(each.ctx, ast.Load) for each in file.uses(name)
    )


def _until_bound_anew(
    file: PlainFile, scope: Scope, own: Sequence[ast.Name], loop: ast.For, name: str
) -> tuple[str | None, list[ast.Name]]:
    """The name of a sum, and what reads it under its old one, where something behind (its mean) takes that name."""
    end = loop.end_lineno or loop.lineno
    if not _later(own, loop, name):
        return name, []
    anew = [each for each in once_in(scope) if each.lineno > end and only_name(each) == name]
    if len(anew) != 1 or _later(own, loop, name) != 1:
        return None, []
    last = anew[0].end_lineno or anew[0].lineno
    read = [each for each in own if isinstance(each.ctx, ast.Load) and end < each.lineno <= last]
    return file.fresh(f"sum_of_{name}"), read


def _is_zero(statement: ast.stmt, name: str) -> bool:
    value = statement.value if isinstance(statement, ast.Assign) else None
    if only_name(statement) != name or not isinstance(value, ast.Constant):
        return False
    return type(value.value) in (int, float) and value.value == 0


def _later(own: Sequence[ast.Name], loop: ast.For, name: str) -> int:
    """How often a name is bound behind a loop: a mean may take its name."""
    end = loop.end_lineno or loop.lineno
    return sum(not isinstance(each.ctx, ast.Load) and each.lineno > end for each in own)


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, ast.Break | ast.Continue | ast.Return)


# ---- names that mean two things ----------------------------------------------------------------------


def bound_anew(file: PlainFile) -> list[Change]:
    """`loss = tf.reduce_mean(losses)` behind towers that have a `loss`: the mean gets a name of its own."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for loop in towers_of(body) if always else ():
                end = _averaged(scope, loop)
                for each in once_in(scope):
                    if (loop.end_lineno or loop.lineno) < each.lineno < end:
                        found += _renamed(file, scope, loop, each, where)
    return found


def _averaged(scope: Scope, loop: ast.For) -> int:
    """The line of the first statement behind a loop that has to do with its gradients, as far as its text tells.

    Behind it a loss may have another value's name: its gradients are computed in the step by then.
    """
    names = {
        each.func.value.id
        for each in all_nodes(loop)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and isinstance(each.func.value, ast.Name)
        and each.func.attr == "append"
    }
    for each in sorted(once_in(scope), key=lambda one: one.lineno):
        if each.lineno <= (loop.end_lineno or loop.lineno):
            continue
        for call in all_nodes(each):
            if not isinstance(call, ast.Call):
                continue
            func = ast.unparse(call.func)
            given = {one.id for one in call.args if isinstance(one, ast.Name)}
            if func.rpartition(".")[2] in ("apply_gradients", "minimize"):
                return each.lineno
            if given & names and not func.startswith("tf.") and func not in ("sum", "len"):
                return each.lineno
    return 0


def _renamed(
    file: PlainFile, scope: Scope, loop: ast.For, statement: ast.stmt, where: str
) -> list[Change]:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(statement.value, ast.Call | ast.BinOp):
        return []
    name, end = target.id, statement.end_lineno or statement.lineno
    func = statement.value.func if isinstance(statement.value, ast.Call) else None
    if func is not None and not ast.unparse(func).startswith("tf.") and ast.unparse(func) != "sum":
        return []
    own = [each for each in own_nodes(scope) if isinstance(each, ast.Name) and each.id == name]
    in_loop = {id(each) for each in all_nodes(loop)}
    stored = [each for each in own if not isinstance(each.ctx, ast.Load)]
    if not any(id(each) in in_loop for each in stored):
        return []
    if any(id(each) not in in_loop and each is not target for each in stored):
        return []
    if name in file.shared_between_functions or file.finds_names_by_text:
        return []
    inner = _read_behind(file, scope, name, end)
    if inner is None:
        return []
    behind = [each for each in own if isinstance(each.ctx, ast.Load) and each.lineno > end]
    same_line = [each for each in own if each.lineno == end and each.lineno > statement.lineno]
    if same_line or file.alone(statement) is None:
        return []
    new = file.fresh(_named_anew(statement.value, name))
    return [Change(*file.span(each), (new,), where) for each in (target, *behind, *inner)]


def _read_behind(file: PlainFile, scope: Scope, name: str, line: int) -> list[ast.Name] | None:
    """Where functions that are made behind a line read a name of a scope; None where others may read it too."""
    if isinstance(scope, ast.Module) and name in file.words_of_users:
        return None
    found: list[ast.Name] = []
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        each = waiting.pop()
        named = [one for one in all_nodes(each) if isinstance(one, ast.Name) and one.id == name]
        if isinstance(each, ast.JoinedStr) and named:
            return None  # older Pythons do not tell where its names stand
        if isinstance(each, _COMPREHENSIONS):
            targets = [one for part in each.generators for one in all_nodes(part.target)]
            if any(isinstance(one, ast.Name) and one.id == name for one in targets):
                return None
        if isinstance(each, _FUNCTIONS):
            if _is_of_its_own(each, name):
                continue
            others = [one for one in all_nodes(each) if isinstance(one, ast.JoinedStr)]
            texts = {id(one) for other in others for one in all_nodes(other)}
            if named and (each.lineno <= line or binds(each, name)):
                return None
            if any(id(one) in texts for one in named):
                return None
            found += named
            continue
        waiting.extend(ast.iter_child_nodes(each))
    return found


def binds(node: ast.AST, name: str) -> bool:
    """Whether a node, or anything in it, binds a name in some scope."""
    return any(
        isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load)
        or isinstance(one, ast.arg) and one.arg == name
        or isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == name
        or isinstance(one, ast.alias) and (one.asname or one.name).partition(".")[0] == name
        or isinstance(one, ast.ExceptHandler) and one.name == name
        for one in all_nodes(node)
    )  # fmt: skip


def _is_of_its_own(function: ast.AST, name: str) -> bool:
    """Whether a name is a parameter of a function, or bound by it, and nothing that is computed where it is made reads it."""
    if not isinstance(function, ast.FunctionDef | ast.Lambda):
        return False
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    own = any(each.arg == name for each in every)
    if isinstance(function, ast.FunctionDef):
        nodes = list(own_nodes(function))
        inner = [
            one for each in nodes if isinstance(each, _COMPREHENSIONS) for one in all_nodes(each)
        ]
        theirs = {id(one) for one in inner}
        own = own or any(
            isinstance(one, ast.Name)
            and one.id == name
            and not isinstance(one.ctx, ast.Load)
            and id(one) not in theirs
            for one in nodes
        )
    made = [*spec.defaults, *(each for each in spec.kw_defaults if each is not None)]
    made += getattr(function, "decorator_list", [])
    made += [each.annotation for each in every if each.annotation is not None]
    return own and not any(_names(each, name) for each in made)


def _names(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in all_nodes(node))


def only_here(file: PlainFile, scope: Scope, name: str) -> bool:
    """Whether no function in a scope, and nobody else, reads one of its names; comprehensions that bind it count too.

    Nor may an f-string: older Pythons do not tell where its names stand.
    """
    for each in own_nodes(scope):
        if isinstance(each, ast.JoinedStr):
            if any(isinstance(one, ast.Name) and one.id == name for one in all_nodes(each)):
                return False
        if isinstance(each, _FUNCTIONS) and not isinstance(scope, ast.Module):
            if any(isinstance(one, ast.Name) and one.id == name for one in all_nodes(each)):
                return False
        if isinstance(each, _COMPREHENSIONS):
            targets = [one for part in each.generators for one in all_nodes(part.target)]
            if any(isinstance(one, ast.Name) and one.id == name for one in targets):
                return False
    if not isinstance(scope, ast.Module):
        return True
    if name in file.words_of_users:
        return False
    functions = [each for each in file.nodes if isinstance(each, _FUNCTIONS)]
    return not any(_reads_outer(each, name) for each in functions)


def _reads_outer(function: ast.AST, name: str) -> bool:
    """Whether a function may read a name of the module: it names it, and does not bind it itself."""
    return _names(function, name) and not _is_of_its_own(function, name)


def _named_anew(value: ast.expr, name: str) -> str:
    """`mean_loss` of `tf.reduce_mean(losses)` and of a division, `total_loss` of a sum; the name itself for the rest."""
    if isinstance(value, ast.BinOp):
        return f"mean_{name}" if isinstance(value.op, ast.Div) else f"total_{name}"
    func = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    for end, how in (("reduce_mean", "mean"), ("add_n", "total"), ("sum", "total")):
        if func.endswith(end):
            return f"{how}_{name}"
    return name
