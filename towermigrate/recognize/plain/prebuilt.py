"""A model that is built once in front of the towers, for its variables only, which the towers then share.

`get_model(images, is_training)` of which nobody uses what it gives: the towers build the same model, and so the same variables.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.tower_loops import pairs_of
from towermigrate.recognize.source import Tree

_KEEPS = re.compile(
    r"collection|summary|summaries|losses|regulari[sz]|batch_norm|BatchNorm|\bassign|Print\(|py_func|set_random_seed"
    r"|\bprint\b|\bglobal\b|\bnonlocal\b|moments\(|moving_average|ExponentialMovingAverage|\bVariable\(|\bself\b|slim\.|contrib\.|keras"
)
"""What leaves more in a graph than variables, or in Python: then a model that is built once more is no other."""
_MAKES_VARIABLES = re.compile(r"Variable\(|get_variable\(|global_step\(|Optimizer\(")
_DEEP = 4


def prebuilt_models(tree: Tree, file: PlainFile) -> list[Change]:
    """The changes without such models."""
    if file.finds_names_by_text or any("set_random_seed" in text for text in tree.sources.values()):
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        before = [each for each in once_in(scope) if (each.end_lineno or 0) < loop.lineno]
        for each in before:
            if _is_needless(tree, file, scope, before, each, loop):
                found.append(Change(*file.without(each), (), where))
    return found


def _is_needless(
    tree: Tree,
    file: PlainFile,
    scope: Scope,
    before: Sequence[ast.stmt],
    statement: ast.stmt,
    loop: ast.For,
) -> bool:
    model = statement
    if isinstance(statement, ast.With) and len(statement.body) == 1:
        if all(ast.unparse(i.context_expr).startswith("tf.device(") for i in statement.items):
            model = statement.body[0]
    call = _unused_call(file, scope, model)
    if call is None or file.alone(statement) is None or file.commented(*file.span(statement)):
        return False
    later = [each for each in before if each.lineno > (statement.end_lineno or 0)]
    if any(_may_make_variables(file, each) for each in later):
        return False
    name = ast.unparse(call.func)
    there = [
        each
        for each in ast.walk(loop)
        if isinstance(each, ast.Call) and ast.unparse(each.func) == name
    ]
    if len(there) != 1 or not _shares(loop, there[0]):
        return False
    function = _function(tree, file, scope, call.func)
    if function is None or _leaves_more(tree, *function, 0):
        return False
    own, theirs = (_given(function[1], each) for each in (call, there[0]))
    if own is None or theirs is None or own.keys() != theirs.keys():
        return False
    return all(
        ast.dump(value) == ast.dump(theirs[key]) or _is_part(scope, loop, value, theirs[key])
        for key, value in own.items()
    )


def _may_make_variables(file: PlainFile, statement: ast.stmt) -> bool:
    """Whether a statement, or a function of the file that it calls, makes a variable of the program's or of an optimizer."""
    if _MAKES_VARIABLES.search(ast.unparse(statement)):
        return True
    functions = {each.name: each for each in file.tree.body if isinstance(each, ast.FunctionDef)}
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for each in file.nodes
        if isinstance(each, ast.Import | ast.ImportFrom)
        for alias in each.names
    }
    for each in ast.walk(statement):
        if not isinstance(each, ast.Call):
            continue
        root = ast.unparse(each.func).partition(".")[0]
        if root in imported - _QUIET:
            return True
        if root in functions and _MAKES_VARIABLES.search(ast.unparse(functions[root])):
            return True
    return False


_QUIET = frozenset("tf np numpy os sys time math random".split())


def _unused_call(file: PlainFile, scope: Scope, statement: ast.stmt) -> ast.Call | None:
    match statement:
        case ast.Expr(value=ast.Call() as call):
            return call
        case ast.Assign(targets=[target], value=ast.Call() as call):
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for each in parts:
                if not isinstance(each, ast.Name) or not _is_unread(file, scope, each):
                    return None
            return call
    return None


def _is_unread(file: PlainFile, scope: Scope, name: ast.Name) -> bool:
    """Whether a name is bound here and read nowhere."""
    if name.id in file.shared_between_functions or name.id in file.words_of_users:
        return False
    return bindings(scope, name.id) == 1 and not any(
        isinstance(each, ast.Name) and each.id == name.id and isinstance(each.ctx, ast.Load)
        for each in ast.walk(scope)
    )


def _shares(loop: ast.For, call: ast.Call) -> bool:
    """Whether a call in a loop stands where variables of the same names must be there: in a scope with `reuse=True`."""
    return any(
        isinstance(each, ast.With)
        and any(one is call for one in ast.walk(each))
        and any(
            ast.unparse(item.context_expr).startswith("tf.variable_scope(tf.get_variable_scope()")
            and "reuse=True" in ast.unparse(item.context_expr)
            for item in each.items
        )
        for each in ast.walk(loop)
    )


def _function(
    tree: Tree, file: PlainFile, scope: Scope, func: ast.expr
) -> tuple[str, ast.FunctionDef] | None:
    """The function of the tree that is called by a name, or as one of an imported module, and its file."""
    match func:
        case ast.Name(id=name) if isinstance(scope, ast.Module) or not bindings(scope, name):
            path: str | None = file.path
        case ast.Attribute(value=ast.Name(id=module), attr=name) if (
            bindings(file.tree, module) == 1
        ):
            if not isinstance(scope, ast.Module) and bindings(scope, module):
                return None
            imported = [
                alias.name
                for each in file.tree.body
                if isinstance(each, ast.Import)
                for alias in each.names
                if (alias.asname or alias.name) == module
            ]
            path = tree.module_path(file.path, imported[0]) if len(imported) == 1 else None
        case _:
            return None
    if path is None or path not in tree.sources:
        return None
    try:
        parsed = file.tree if path == file.path else ast.parse(tree.sources[path])
    except (SyntaxError, ValueError):
        return None
    found = [e for e in parsed.body if isinstance(e, ast.FunctionDef) and e.name == name]
    if len(found) != 1 or bindings(parsed, name) != 1 or found[0].decorator_list:
        return None
    return path, found[0]


def _leaves_more(tree: Tree, path: str, function: ast.FunctionDef, deep: int) -> bool:
    """Whether a function, or one of its file that it uses, leaves more than variables."""
    if deep > _DEEP or _KEEPS.search(ast.unparse(function)):
        return True
    parsed = ast.parse(tree.sources[path])
    others = {e.name: e for e in parsed.body if isinstance(e, ast.FunctionDef)}
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and each.id in others and each.id != function.name:
            if _leaves_more(tree, path, others[each.id], deep + 1):
                return True
        elif isinstance(each, ast.Call):
            root = ast.unparse(each.func).partition(".")[0]
            if not _is_known(parsed, others, function, root):
                return True
    return False


def _is_known(
    parsed: ast.Module, others: dict[str, ast.FunctionDef], function: ast.FunctionDef, root: str
) -> bool:
    """Whether what is called is TensorFlow's, NumPy's, Python's, of the file, or a method of a value."""
    if root in ("tf", "np", "numpy", "math") or root in others or bindings(function, root):
        return True
    return root in _BUILTINS and not bindings(parsed, root)


_BUILTINS = frozenset(
    "int float str len range zip enumerate list tuple dict max min abs sum round".split()
)


def _given(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    spec = function.args
    names = [each.arg for each in spec.args]
    if spec.vararg or spec.kwarg or len(call.args) > len(names):
        return None
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in given:
            return None
        given[keyword.arg] = keyword.value
    return given


def _is_part(scope: Scope, loop: ast.For, whole: ast.expr, part: ast.expr) -> bool:
    """Whether a tower's value is taken of the whole one: a slice, or one of its splits."""
    if not isinstance(whole, ast.Name) or not isinstance(part, ast.Name | ast.Subscript):
        return False
    sources = {whole.id}
    sources |= set(_names_bound_of(scope, whole.id))
    if isinstance(part, ast.Subscript):
        return isinstance(part.value, ast.Name) and part.value.id in sources
    return any(
        isinstance(one, ast.Name) and one.id == part.id and _is_rows(value, sources)
        for each in ast.walk(loop)
        if isinstance(each, ast.Assign)
        for target in each.targets
        for one, value in pairs_of(target, each.value)
    )


def _is_rows(node: ast.expr, sources: set[str]) -> bool:
    """`x[…]`, and `tf.slice(x, …)`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "tf.slice" and node.args:
        node = node.args[0]
        return isinstance(node, ast.Name) and node.id in sources
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in sources
    )


def _names_bound_of(scope: Scope, name: str) -> Iterator[str]:
    """What is bound to splits of a name."""
    for each in ast.walk(scope):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        for target, value in pairs_of(each.targets[0], each.value):
            match target, value:
                case ast.Name(id=bound), ast.Call(func=func, args=args) if ast.unparse(
                    func
                ) == "tf.split" and any(
                    isinstance(one, ast.Name) and one.id == name for one in args
                ):
                    yield bound


__all__ = ["prebuilt_models"]
