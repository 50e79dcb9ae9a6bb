"""A tower's rows that a function takes: taken where the tower calls it.

`part(X, i, 2)` of `def part(x, i, n): return x[i * n:(i + 1) * n]` is `X[i * 2:(i + 1) * 2]`. A function of the towers that
takes its rows itself, `loss_of(X, Y, i)`, gets them: `loss_of(X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2], i)`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from towermigrate.recognize.plain.changes import (
    OF_TOWERS,
    Change,
    PlainFile,
    Scope,
    bindings,
)
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.given import given as as_given
from towermigrate.recognize.plain.given import whole_constants
from towermigrate.recognize.plain.one_call import OneCall, changed_together
from towermigrate.recognize.python_scopes import Unjoined, own_nodes
from towermigrate.recognize.source import Tree

_Spec = ast.FunctionDef | ast.Lambda


def part_functions(file: PlainFile) -> list[Change]:
    """Calls of functions that do nothing but take rows, as what they take."""
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        read: dict[str, int] = {}
        for call in _calls(loop):
            assert isinstance(call.func, ast.Name)
            made = _function(file, scope, call.func.id)
            taken = None if made is None else _taken(file, made, call)
            if taken is None or file.commented(*file.span(call)):
                continue
            found.append(Change(*file.span(call), (taken,), where))
            read[call.func.id] = read.get(call.func.id, 0) + 1
        for name, count in read.items():
            if len(_reads(file, name)) == count:
                found += _gone(file, scope, name, where)
    return found


def rows_in_functions(
    tree: Tree, where: Mapping[str, Collection[str]] | None, file: PlainFile
) -> list[Change]:
    """Rows that a function of the towers takes of its parameters, taken where the one tower loop calls it."""
    loops = [loop for _, _, loop in loops_of_towers(file)]
    called = {
        each.func.id for loop in loops for each in _calls(loop) if isinstance(each.func, ast.Name)
    }
    return changed_together(
        tree,
        where,
        file,
        lambda function: function.name in called,
        lambda function: _Rows(tree, file, function).changes(),
    )


def _calls(loop: ast.For) -> Iterator[ast.Call]:
    """The calls of a tower by the names of functions, with arguments in their places."""
    for call in ast.walk(loop):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        if call.args and not call.keywords:
            if not any(isinstance(each, ast.Starred) for each in call.args):
                yield call


def _is_plain(node: ast.expr) -> bool:
    """Whether an argument is the same wherever it is read."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name)
    return isinstance(node, ast.Name) or (
        isinstance(node, ast.Constant) and type(node.value) is int
    )


def _parameters(made: _Spec, call: ast.Call) -> dict[str, ast.expr] | None:
    """What a call gives to each parameter."""
    spec = made.args
    names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    if spec.vararg or spec.kwarg or spec.kwonlyargs or len(names) < len(call.args):
        return None
    defaults = dict(zip(names[::-1], spec.defaults[::-1], strict=False))
    given = dict(zip(names, call.args, strict=False))
    for name in names[len(call.args) :]:
        if name not in defaults or not isinstance(defaults[name], ast.Constant):
            return None
        given[name] = defaults[name]
    return given


def _reads(file: PlainFile, name: str) -> list[ast.Name]:
    return [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]


# ---- functions that only take rows -------------------------------------------------------------------


def _function(file: PlainFile, scope: Scope, name: str) -> _Spec | None:
    """The function of the file, or lambda of the scope, that a name is."""
    if name in file.shared_between_functions or file.finds_names_by_text:
        return None
    if not isinstance(scope, ast.Module) and bindings(scope, name):
        bound = _bound(scope, name)
        return bound.value if bound is not None and isinstance(bound.value, ast.Lambda) else None
    try:
        made = file.definition(name).node
    except Unjoined:
        return None
    return made if isinstance(made, ast.FunctionDef) and not made.decorator_list else None


def _bound(scope: Scope, name: str) -> ast.Assign | None:
    if bindings(scope, name) != 1:
        return None
    for each in once_in(scope):
        match each:
            case ast.Assign(targets=[ast.Name(id=own)]) if own == name:
                return each
    return None


def _taken(file: PlainFile, made: _Spec, call: ast.Call) -> str | None:
    """What a call gives back, where that is rows of what it is given."""
    given = _parameters(made, call)
    if given is None or not all(map(_is_plain, given.values())):
        return None
    if isinstance(made, ast.Lambda):
        returned: ast.expr = made.body
    else:
        result = _returned(made, given)
        if result is None:
            return None
        returned, given = result
    parts = returned.elts if isinstance(returned, ast.Tuple) else [returned]
    texts = [_rows(file, each, given) for each in parts]
    told = [each for each in texts if each is not None]
    if len(told) < len(texts):
        return None
    return f"({', '.join(told)})" if len(told) > 1 else told[0]


def _returned(
    made: ast.FunctionDef, given: dict[str, ast.expr]
) -> tuple[ast.expr, dict[str, ast.expr]] | None:
    """What a function gives back, and what its names are: parameters, and numbers that it makes of them."""
    known = dict(given)
    body = made.body[1:] if ast.get_docstring(made) is not None else made.body
    for each in body[:-1]:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value):
                if bindings(made, name) != 1 or not _counts(value, known):
                    return None
                known[name] = as_given(known, value)[0]
            case _:
                return None
    if not body or not isinstance(body[-1], ast.Return) or body[-1].value is None:
        return None
    if any(bindings(made, name) != 1 for name in given):
        return None
    return body[-1].value, known


def _rows(file: PlainFile, node: ast.expr, given: Mapping[str, ast.expr]) -> str | None:
    """`x[a:b]` of a parameter, as the caller would write it."""
    match node:
        case ast.Subscript(
            value=ast.Name(id=name), slice=ast.Slice(lower=lower, upper=upper, step=None)
        ):
            if name not in given or lower is None or upper is None:
                return None
            if not all(_counts(each, given) for each in (lower, upper)):
                return None
            return ast.unparse(as_given(given, node)[0])
    return None


def _counts(node: ast.expr, given: Mapping[str, ast.expr]) -> bool:
    """Whether an expression is of whole numbers and of what a function is given alone."""
    fine = (ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Load)
    return all(
        isinstance(each, fine)
        or (isinstance(each, ast.Constant) and type(each.value) is int)
        or (isinstance(each, ast.Name) and each.id in given)
        for each in ast.walk(node)
    )


def _gone(file: PlainFile, scope: Scope, name: str, where: str) -> list[Change]:
    """A lambda of the scope that nothing calls any more."""
    bound = None if isinstance(scope, ast.Module) else _bound(scope, name)
    if bound is None or file.alone(bound) is None or file.commented(*file.span(bound)):
        return []
    return [Change(*file.without(bound), (), where)]


# ---- functions that take rows and do more ------------------------------------------------------------


class _Rows(OneCall):
    def changes(self) -> list[Change]:
        own = [call for _, _, loop in loops_of_towers(self.file) for call in _calls(loop)]
        if not any(call is self.call for call in own) or self.file.commented(
            *self.file.span(self.call)
        ):
            raise Unjoined
        given = _parameters(self.function, self.call)
        if given is None or any(bindings(self.function, each) != 1 for each in given):
            raise Unjoined
        found: list[Change] = []
        for parameter, argument in zip(given, self.call.args, strict=False):
            plain = {name: value for name, value in given.items() if _is_plain(value)}
            taken = _all_taken(self.file, self.function, parameter, plain)
            if not isinstance(argument, ast.Name) or not taken:
                continue
            read = {each.id for each in ast.walk(taken[0]) if isinstance(each, ast.Name)}
            if any(bindings(self.caller, name) for name in read - set(given)):
                raise Unjoined  # it is another number there
            rows = ast.unparse(as_given(given, taken[0])[0])
            found.append(Change(*self.file.span(argument), (rows,), self.caller.name))
            inside = OF_TOWERS + self.function.name
            found += [Change(*self.file.span(each), (parameter,), inside) for each in taken]
        if not found:
            raise Unjoined
        return found


def _all_taken(
    file: PlainFile, made: ast.FunctionDef, parameter: str, given: Mapping[str, ast.expr]
) -> list[ast.Subscript]:
    """Where a function takes rows of a parameter; nothing where it does anything else with it, or takes other rows."""
    own = {id(each) for each in own_nodes(made)}
    taken = []
    for each in ast.walk(made):
        match each:
            case ast.Subscript(
                value=ast.Name(id=name), slice=ast.Slice(lower=lower, upper=upper, step=None)
            ) if name == parameter:
                if lower is None or upper is None or id(each) not in own:
                    return []
                if not all(_counts(one, _seen(file, made, given)) for one in (lower, upper)):
                    return []
                taken.append(each)
    reads = [
        each
        for each in ast.walk(made)
        if isinstance(each, ast.Name) and each.id == parameter and isinstance(each.ctx, ast.Load)
    ]
    same = {ast.dump(each) for each in taken}
    if (
        len(reads) != len(taken)
        or len(same) != 1
        or any(file.commented(*file.span(t)) for t in taken)
    ):
        return []
    return taken


def _seen(
    file: PlainFile, made: ast.FunctionDef, given: Mapping[str, ast.expr]
) -> dict[str, ast.expr]:
    """What may stand in bounds: parameters, and constants of the module, which the caller sees too."""
    constants = {
        name: value for name, value in whole_constants(file).items() if not bindings(made, name)
    }
    return {**constants, **given}


__all__ = ["part_functions", "rows_in_functions"]
