"""Functions that list the variables of a part, `params_with_name('Generator')`, as the list that they give of that name."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import Change, PlainFile, bindings, names_in, own_calls
from towermigrate.recognize.plain.given import given

_GRADIENTS = (".compute_gradients", ".minimize")
_ASKS = ("startswith", "endswith")


def variable_functions(file: PlainFile) -> list[Change]:
    """Calls, with texts that are written out, of a function that picks trained variables by their names."""
    if "trainable_variables" not in file.text or file.finds_names_by_text:
        return []
    functions = {
        each.name: (each, listed)
        for each in file.tree.body
        if isinstance(each, ast.FunctionDef)
        and bindings(file.tree, each.name) == 1
        and each.name not in file.words_of_users
        and (listed := _listed(each)) is not None
    }
    if not functions:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for call in own_calls(scope):
            if not isinstance(call.func, ast.Name) or call.func.id not in functions:
                continue
            function, listed = functions[call.func.id]
            names = [each.arg for each in function.args.args]
            values = dict(zip(names, call.args, strict=False))
            values |= {each.arg: each.value for each in call.keywords if each.arg is not None}
            told = len(values) == len(call.args) + len(call.keywords) == len(names)
            if not told or values.keys() != set(names) or file.commented(*file.span(call)):
                continue
            if not all(
                isinstance(each, ast.Constant) and isinstance(each.value, str)
                for each in values.values()
            ):
                continue
            made, _ = given(values, listed)
            found.append(Change(*file.span(call), (ast.unparse(made),), where))
    return found


def operation_names(file: PlainFile) -> list[Change]:
    """`var_list=[v for v in tf.trainable_variables() if 'w' in v.op.name]` with `'w' in v.name`, which has `:0` behind it and
    else is the same text."""
    if ".op.name" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for call in own_calls(scope):
            if not ast.unparse(call.func).endswith(_GRADIENTS):
                continue
            for each in (*call.args, *(one.value for one in call.keywords)):
                if not isinstance(each, ast.ListComp) or len(each.generators) != 1:
                    continue
                (one,) = each.generators
                if ast.unparse(one.iter) != "tf.trainable_variables()":
                    continue
                asked = f"{ast.unparse(one.target)}.op.name"
                for test in (inner for part in one.ifs for inner in ast.walk(part)):
                    name = _asked(test, asked)
                    if name is not None and isinstance(name.value, ast.Attribute):
                        parts = ((file.start(name), file.end(name.value.value)), ".name")
                        found.append(Change(*file.span(name), parts, where))
    return found


def _asked(test: ast.AST, asked: str) -> ast.Attribute | None:
    """The name that a condition asks whether it holds a text, or begins with it."""
    match test:
        case ast.Compare(
            left=ast.Constant(value=str(text)),
            ops=[ast.In() | ast.NotIn()],
            comparators=[ast.Attribute() as name],
        ):
            pass
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute() as name, attr="startswith"),
            args=[ast.Constant(value=str(text))],
            keywords=[],
        ):
            pass
        case _:
            return None
    known = ast.unparse(name) == asked and text not in ("", "0") and ":" not in text
    return name if known else None


def _listed(function: ast.FunctionDef) -> ast.ListComp | None:
    """The list of a function that does nothing but to give some of the trained variables."""
    arguments = function.args
    plain = not (arguments.defaults or arguments.vararg or arguments.kwarg or arguments.kwonlyargs)
    if function.decorator_list or arguments.posonlyargs or not plain or not arguments.args:
        return None
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    listed: ast.expr | None
    match body:
        case [ast.Return(value=ast.ListComp() as listed)]:
            pass
        case [
            ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as every),
            ast.Return(value=ast.ListComp() as listed),
        ] if len(names_in(listed, name)) == 1 and name != "tf":
            listed, _ = given({name: every}, listed)
        case _:
            return None
    assert isinstance(listed, ast.ListComp)
    if len(listed.generators) != 1:
        return None
    (each,) = listed.generators
    if ast.unparse(each.iter) != "tf.trainable_variables()" or not isinstance(
        each.target, ast.Name
    ):
        return None
    variable = each.target.id
    parameters = {one.arg for one in arguments.args}
    if ast.unparse(listed.elt) != variable or variable in parameters | {"tf"} or each.is_async:
        return None
    return listed if all(_asks(one, variable, parameters) for one in each.ifs) else None


def _asks(test: ast.expr, variable: str, parameters: set[str]) -> bool:
    """Whether a condition asks a variable's name, and nothing else."""
    names = (f"{variable}.name", f"{variable}.op.name")
    match test:
        case ast.BoolOp(values=values):
            return all(_asks(each, variable, parameters) for each in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _asks(operand, variable, parameters)
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
            return _is_text(left, parameters) and ast.unparse(right) in names
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[text], keywords=[]):
            return attr in _ASKS and ast.unparse(value) in names and _is_text(text, parameters)
    return False


def _is_text(node: ast.expr, parameters: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.Name) and node.id in parameters
