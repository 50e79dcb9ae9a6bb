"""Properties that give what an object keeps: `model.train_op` of `def train_op(self): return self._train_op` as `model._train_op`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from towermigrate.recognize.plain.attributes import building_classes, holder_of
from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons
from towermigrate.recognize.python_scopes import own_nodes

_LOOKS = re.compile(r"\b[hg]etattr\b|\bhasattr\b|\bsetattr\b|\bdelattr\b|__dict__|\bvars\(|__set|__getattr|__slots__|\.setter\b|\.deleter\b")  # fmt: skip


def kept_properties(file: PlainFile) -> list[Change]:
    """Without the properties of a class that builds towers whose only statement returns an attribute.

    Of each it is asked that nothing but objects of the class is asked for it, here or in a file that uses this one. A method
    `get_train_op()` that does the same is one, where all that is made of it is to call it.
    """
    if "return " not in file.text or _LOOKS.search(file.text) or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for node in building_classes(file):
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        gives = {
            each.name: kept
            for each in methods
            if (kept := _kept_by(file, each)) and _is_alone(file, node, each)
        }
        objects = _objects(file, node, methods)
        for each in methods:
            if each.name in gives and gives[each.name] not in gives:
                found += _without(file, node, each, gives, objects)
    return found


def _kept_by(file: PlainFile, method: ast.FunctionDef) -> str:
    """The attribute that a property, or a method of nothing but the object, gives; nothing where it does more."""
    marks = [ast.unparse(each) for each in method.decorator_list]
    if marks not in ([], ["property"]) or marks and not is_pythons(file, "property"):
        return ""
    args = method.args
    if len(args.args) != 1 or args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
        return ""
    match method.body:  # one with a docstring stays: that would be lost
        case [ast.Return(value=ast.Attribute(value=ast.Name(id=name), attr=attr))]:
            # `__loss` means another attribute outside of the class.
            private = attr.startswith("__") or method.name.startswith("__")
            return attr if name == args.args[0].arg and not private else ""
    return ""


def _is_alone(file: PlainFile, node: ast.ClassDef, method: ast.FunctionDef) -> bool:
    """Whether nothing else in the file, or in one that uses it, has the name of a method."""
    name = method.name
    if name in file.words_of_users or len(node.body) < 2:
        return False
    others = [
        each
        for each in file.nodes
        if isinstance(each, ast.FunctionDef | ast.ClassDef)
        and each.name == name
        and each is not method
        or isinstance(each, ast.Attribute)
        and each.attr == name
        and not isinstance(each.ctx, ast.Load)
    ]
    return not others


def _objects(
    file: PlainFile, node: ast.ClassDef, methods: list[ast.FunctionDef]
) -> Mapping[int, str]:
    """The names that stand for objects of a class, as they are read."""
    found: dict[int, str] = {}
    for _, scope in file.scopes:
        names = {holder_of(scope)} if scope in methods else _made_in(file, node, scope)
        for each in own_nodes(scope) if names - {""} else ():
            if isinstance(each, ast.Name) and each.id in names:
                found[id(each)] = each.id
    for scope, name in _given(file, found):
        found |= {id(e): name for e in own_nodes(scope) if isinstance(e, ast.Name) and e.id == name}
    return found


def _given(file: PlainFile, objects: Mapping[int, str]) -> Iterator[tuple[ast.FunctionDef, str]]:
    """The parameters of the file's functions that each call gives an object, by its position."""
    for function in file.tree.body:
        if not isinstance(function, ast.FunctionDef) or function.decorator_list:
            continue
        calls = [
            each
            for each in file.nodes
            if isinstance(each, ast.Call) and ast.unparse(each.func) == function.name
        ]
        if not calls or len(list(file.uses(function.name))) != len(calls):
            continue
        if function.name in file.words_of_users or bindings(file.tree, function.name) != 1:
            continue
        for place, parameter in enumerate(function.args.args):
            if parameter.arg in file.shared_between_functions:
                continue
            if any(
                isinstance(each, ast.Name) and each.id == parameter.arg
                for each in ast.walk(function)
                if not isinstance(getattr(each, "ctx", None), ast.Load | None)
            ):
                continue
            given = [each.args[place] if place < len(each.args) else None for each in calls]
            if any(isinstance(each, ast.Starred) for call in calls for each in call.args):
                continue
            if all(each is not None and id(each) in objects for each in given):
                yield function, parameter.arg


def _made_in(file: PlainFile, node: ast.ClassDef, scope: Scope) -> set[str]:
    """What a scope binds, once, to an object of a class."""
    if bindings(file.tree, node.name) != 1 or bindings(scope, node.name) > (scope is file.tree):
        return set()
    return {
        each.targets[0].id
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Name)
        and isinstance(each.value, ast.Call)
        and ast.unparse(each.value.func) == node.name
        and bindings(scope, each.targets[0].id) == 1
        and each.targets[0].id not in file.shared_between_functions
    }


def _without(
    file: PlainFile,
    node: ast.ClassDef,
    method: ast.FunctionDef,
    gives: Mapping[str, str],
    objects: Mapping[int, str],
) -> list[Change]:
    """The changes that make one of them go; none where something else may be asked for it."""
    is_property = bool(method.decorator_list)
    called = {id(each.func): each for each in file.nodes if isinstance(each, ast.Call)}
    changes: list[Change] = []
    for where, scope in file.scopes:
        for each in own_nodes(scope):
            if not isinstance(each, ast.Attribute) or each.attr != method.name:
                continue
            call = called.get(id(each))
            if id(each.value) not in objects or id(each) in file.in_texts:
                return []
            if file.commented(*file.span(call or each)):
                return []
            if not is_property and (call is None or call.args or call.keywords):
                return []
            whole = each if is_property or call is None else call
            text = f".{gives[method.name]}"
            changes.append(Change(*file.span(whole), (file.span(each.value), text), where))
    read = sum(isinstance(each, ast.Attribute) and each.attr == method.name for each in file.nodes)
    first = method.decorator_list[0].lineno if is_property else method.lineno
    start, stop = file.starts[first - 1], file.text.find("\n", file.end(method))
    if not changes or read != len(changes) or stop < 0 or file.commented(start, stop):
        return []
    while file.text[:start].endswith("\n\n"):
        start -= 1
    return [Change(start, stop + 1, (), node.name), *changes]
