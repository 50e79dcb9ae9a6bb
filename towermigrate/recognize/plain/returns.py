"""What a function that builds the towers returns without a name: `return train_op, tf.reduce_mean(losses)`."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, Part, PlainFile
from towermigrate.recognize.python_scopes import own_nodes, rates_of

_UPDATES = ("apply_gradients", "minimize")


def returned_values(file: PlainFile) -> list[Change]:
    """Each value that is computed in the tuple that such a function returns becomes a statement in front of it, in order."""
    found: list[Change] = []
    for where, scope in file.scopes:
        if isinstance(scope, ast.Module) or not (_updates(scope) or _makes_placeholders(scope)):
            continue
        for each in own_nodes(scope):
            if isinstance(each, ast.Return) and isinstance(each.value, ast.Tuple):
                found += _named(file, scope, each, each.value, where)
    return found


def returned_rates(file: PlainFile) -> list[Change]:
    """`return 0.1 * tf.minimum(…)` of a function that gives an optimizer its rate: under a name."""
    found: list[Change] = []
    for where, scope in file.scopes:
        last = None if isinstance(scope, ast.Module) else scope.body[-1]
        value = last.value if isinstance(last, ast.Return) else None
        if last is None or not isinstance(scope, ast.FunctionDef):
            continue
        if not isinstance(value, ast.Call | ast.BinOp) or "tf." not in ast.unparse(value):
            continue
        returns = [each for each in own_nodes(scope) if isinstance(each, ast.Return)]
        margin, name = file.alone(last), _of_an_optimizer(file, scope.name)
        if len(returns) != 1 or margin is None or not name or file.commented(*file.span(last)):
            continue
        name = file.free(scope, name)
        start, end = file.span(last)
        one_line = value.lineno == value.end_lineno
        opens, closes = ("", "") if one_line else ("(", ")")
        parts = (f"{name} = {opens}", file.span(value), f"{closes}\n{margin}return {name}")
        found.append(Change(start, end, parts, where))
    return found


def _of_an_optimizer(file: PlainFile, function: str) -> str:
    """What the one call of a function is called that optimizers are made of; nothing where there is none."""
    if len(file.uses(function)) != 1:
        return ""
    given = {
        rate.id for each in file.nodes for rate in rates_of(each) if isinstance(rate, ast.Name)
    }
    for each in file.nodes:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=called))):
                if called == function and name in given:
                    return name
    return ""


def _named(
    file: PlainFile, scope: ast.FunctionDef, statement: ast.Return, values: ast.Tuple, where: str
) -> list[Change]:
    margin = file.alone(statement)
    start, end = file.span(statement)
    calls = [each for each in values.elts if isinstance(each, ast.Call | ast.BinOp)]
    others = [each for each in values.elts if not isinstance(each, ast.Call | ast.BinOp)]
    if margin is None or not calls or not all(isinstance(each, ast.Name) for each in others):
        return []
    if file.commented(start, end):
        return []
    before: list[Part] = []
    after: list[Part] = []
    done = start
    for each in calls:
        called = next((one for one in ast.walk(each) if isinstance(one, ast.Call)), None)
        theirs = _called_there(file, scope, values, each)
        if theirs is not None and isinstance(each, ast.Call) and _is_placeholder(each):
            name = file.free(scope, theirs)
        else:
            name = file.fresh("computed" if called is None else name_of(called))
        before += [f"{name} = ", file.span(each), f"\n{margin}"]
        after += [(done, file.start(each)), name]
        done = file.end(each)
    return [Change(start, end, (*before, *after, (done, end)), where)]


def _called_there(
    file: PlainFile, scope: ast.FunctionDef, values: ast.Tuple, value: ast.expr
) -> str | None:
    """What the one statement that calls a function calls a value that it returns."""
    if len(file.uses(scope.name)) != 1:
        return None
    place = next(number for number, each in enumerate(values.elts) if each is value)
    for each in file.nodes:
        match each:
            case ast.Assign(
                targets=[ast.Tuple(elts=names)], value=ast.Call(func=ast.Name(id=called))
            ) if called == scope.name and len(names) == len(values.elts):
                name = names[place]
                return name.id if isinstance(name, ast.Name) else None
    return None


def _is_placeholder(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "tf.placeholder"


def _makes_placeholders(scope: ast.FunctionDef) -> bool:
    return any(map(_is_placeholder, own_nodes(scope)))


def _updates(scope: ast.FunctionDef) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr in _UPDATES for each in own_nodes(scope)
    )


def name_of(call: ast.Call) -> str:
    """`mean_losses` of `tf.reduce_mean(losses)`, `train_op` of an update."""
    func = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    if func in _UPDATES:
        return "train_op"
    given = call.args[0] if call.args else None
    of = f"_{given.id}" if isinstance(given, ast.Name) else ""
    name = f"{func.removeprefix('reduce_')}{of}"
    return name if name.isidentifier() else "returned"
