"""What a method of the object that trains gives back, where it is printed, kept or added up at once: under a name first.

`print("loss %.4f" % trainer.evaluate(sess, x, y))` is read as `result = trainer.evaluate(sess, x, y)` and a print of that.
"""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.source import Tree

_TRAINS = re.compile(r"\b(?:compute_gradients|apply_gradients|minimize)\(")


def named_results(tree: Tree, file: PlainFile) -> list[Change]:
    """Calls of methods of an object that trains, in a print, an append or a sum: each under a name, in front of that."""
    near = [file.path, *sorted(tree.imports.get(file.path, ()))]
    texts = [tree.sources[path] for path in near if path in tree.sources]
    if not any("class " in text and _TRAINS.search(text) for text in texts):
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for statement in own_nodes(scope):
            if isinstance(statement, ast.Expr | ast.AugAssign):
                found += _of(texts, file, scope, statement, where)
    return found


def _of(
    texts: list[str], file: PlainFile, scope: Scope, statement: ast.Expr | ast.AugAssign, where: str
) -> list[Change]:
    margin = file.alone(statement)
    calls = [each for each in ast.walk(statement) if _is_of_trainer(texts, scope, each)]
    if margin is None or len(calls) != 1:
        return []
    (call,) = calls
    assert isinstance(call, ast.Call)
    if not _is_first(file, scope, statement, call) or file.commented(*file.span(call)):
        return []
    name = file.free(scope, "result", f"{ast.unparse(call.func).rpartition('.')[2]}_result")
    start = file.start(statement)
    return [
        Change(start, start, (f"{name} = ", file.span(call), f"\n{margin}"), where),
        Change(*file.span(call), (name,), where),
    ]


def _is_of_trainer(texts: list[str], scope: Scope, node: ast.AST) -> bool:
    """Whether a node calls a method of an object of a class that trains."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    held = node.func.value
    if not isinstance(held, ast.Name) or bindings(scope, held.id) != 1:
        return False
    for each in own_nodes(scope):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)) if (
                name == held.id
            ):
                return _trains(texts, ast.unparse(func).rpartition(".")[2])
    return False


def _trains(texts: list[str], name: str) -> bool:
    """Whether a class of that name, of a file or of one that it imports, builds a training."""
    head = re.compile(rf"^class {re.escape(name)}\b", re.MULTILINE)
    there = [text for text in texts if name.isidentifier() and f"class {name}" in text]
    return any(
        _TRAINS.search(text[found.start() :]) for text in there if (found := head.search(text))
    )


def _is_of_numbers(scope: Scope, node: ast.BinOp) -> bool:
    """Whether an expression is made of numbers alone: written ones, and those of loops over ranges."""
    counted = {
        each.target.id
        for each in own_nodes(scope)
        if isinstance(each, ast.For)
        and isinstance(each.target, ast.Name)
        and isinstance(each.iter, ast.Call)
        and ast.unparse(each.iter.func) in ("range", "xrange")
        and bindings(scope, each.target.id) == 1
    }
    return all(
        isinstance(each, ast.BinOp | ast.operator | ast.expr_context)
        or isinstance(each, ast.Constant)
        and isinstance(each.value, int | float)
        or isinstance(each, ast.Name)
        and each.id in counted
        for each in ast.walk(node)
    )


def _is_first(
    file: PlainFile, scope: Scope, statement: ast.Expr | ast.AugAssign, call: ast.Call
) -> bool:
    """Whether a call is the first thing that a statement does: all that it looks at before is nobody's to change."""
    value = statement.value
    if isinstance(statement, ast.AugAssign):
        target = statement.target
        return (
            value is call
            and isinstance(target, ast.Name)
            and target.id not in file.shared_between_functions
        )
    if not isinstance(value, ast.Call):
        return False
    func = value.func
    if isinstance(func, ast.Attribute):
        return (
            func.attr == "append"
            and isinstance(func.value, ast.Name)
            and value.args == [call]
            and func.value.id not in file.shared_between_functions
        )
    if not isinstance(func, ast.Name) or func.id != "print" or not is_pythons(file, "print"):
        return False
    inside = {id(each) for each in ast.walk(call)}
    for each in ast.walk(value):
        if id(each) in inside or each is value or not isinstance(each, ast.expr):
            continue
        begins = (each.lineno, each.col_offset) < (call.lineno, call.col_offset)
        holds = any(one is call for one in ast.walk(each))
        match each:
            case ast.Constant() | ast.Tuple():
                pass
            case ast.BinOp():  # of a list, or of an array, it would be made before the method changes that
                if not holds and not _is_of_numbers(scope, each):
                    return False
            case ast.Name(id=name):
                if name in file.shared_between_functions:
                    return False
            case ast.Attribute(value=ast.Constant(), attr="format"):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="format")) if holds:
                pass
            case _:
                if begins or holds:
                    return False
    return True
