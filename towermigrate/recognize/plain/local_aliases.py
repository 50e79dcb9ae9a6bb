"""Names that a function gives to what an object holds: `loss = self.loss` and `sess.run(loss)` as `sess.run(self.loss)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from towermigrate.recognize.plain.attributes import holder_of, plain_classes
from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    blocks,
    sets_of,
)
from towermigrate.recognize.plain.collected import once_in, only_here
from towermigrate.recognize.python_scopes import own_nodes

_LOOKS = re.compile(r"\b[hgs]etattr\b|\bhasattr\b|\bdelattr\b|__dict__|\bvars\(|\bproperty\b")
_Methods = Mapping[str, ast.FunctionDef]


@dataclass(frozen=True)
class _Class:
    """The methods of a class, those that run once while an object is made, and the names that its own body binds."""

    methods: _Methods
    at_first: set[str]
    first: set[str]


def local_aliases(file: PlainFile) -> list[Change]:
    """What is set once, when an object is made or right in front, and named by a function that only reads the name."""
    if "self" not in file.words or _LOOKS.search(file.text) or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for node, methods in plain_classes(file):
        kind = _Class(methods, _at_first(methods), _first_values(node))
        for where, scope, holder in _holders(file, node, methods):
            bodies = [body for body, always in blocks(scope) if always and len(body) > 1]
            for each in (one for body in bodies for one in body):
                if isinstance(each, ast.Assign) and len(each.targets) == 1:
                    pairs = list(_pairs(each.targets[0], each.value, holder))
                    if pairs and all(
                        _is_set_once(file, scope, each, kind, attribute.attr)
                        and _only_read(file, scope, each, name)
                        for name, attribute in pairs
                    ):
                        found += _replaced(file, scope, each, pairs, where)
    return found


def _holders(
    file: PlainFile, node: ast.ClassDef, methods: _Methods
) -> Iterator[tuple[str, Scope, str]]:
    """The functions that have an object of a class by one name: its methods, and those that make one."""
    for method in methods.values():
        yield node.name, method, holder_of(method)
    for where, scope in file.scopes:
        for each in own_nodes(scope):
            match each:
                case ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=made))
                ) if made == node.name and bindings(scope, name) == 1:
                    yield where, scope, name


def _pairs(
    target: ast.expr, value: ast.expr, holder: str
) -> Iterator[tuple[ast.Name, ast.Attribute]]:
    """The names, each with the attribute that it is given; nothing where anything else is bound too."""
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    pairs = [
        (one, other)
        for one, other in zip(targets, values, strict=False)
        if isinstance(one, ast.Name)
        and isinstance(other, ast.Attribute)
        and isinstance(other.value, ast.Name)
        and other.value.id == holder
    ]
    if len(pairs) == len(targets) == len(values):
        yield from pairs


def _first_values(node: ast.ClassDef) -> set[str]:
    """The names that the statements of a class bind, but for its methods."""
    return {
        each.id
        for statement in node.body
        if not isinstance(statement, ast.FunctionDef)
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }


def _at_first(methods: _Methods) -> set[str]:
    """The methods that run once for each object, while it is made, as far as the class calls them itself."""
    found = {"__init__"} & methods.keys()
    for _ in methods:
        for name in list(found):
            holder = holder_of(methods[name])
            for each in once_in(methods[name]):
                for call in ast.walk(each) if isinstance(each, ast.Expr | ast.Assign) else ():
                    match call:
                        case ast.Call(func=ast.Attribute(value=ast.Name(id=one), attr=called)):
                            if one == holder and called in methods and _calls(methods, called) == 1:
                                found.add(called)
    return found


def _calls(methods: _Methods, name: str) -> int:
    """How often the methods of a class name one of them."""
    return sum(
        isinstance(each, ast.Attribute) and each.attr == name
        for method in methods.values()
        for each in ast.walk(method)
    )


def _is_set_once(
    file: PlainFile,
    scope: Scope,
    statement: ast.Assign,
    kind: _Class,
    attribute: str,
) -> bool:
    """Whether an attribute is what it was for good, where a statement reads it."""
    sets = sets_of(file, attribute)
    if len(sets) != 1 or attribute in file.words_of_users or attribute in kind.methods:
        return False
    # Nor may a file that this one imports set it, or the class have another value of that name first.
    set_there = re.compile(rf"\.{attribute}\b|\bsetattr\b|__dict__")
    if any(set_there.search(text) for text in file.imported()) or attribute in kind.first:
        return False
    (own,) = sets
    for name, method in kind.methods.items():
        holder = holder_of(method)
        for each in once_in(method):
            if not isinstance(each, ast.Assign) or not any(one is own for one in each.targets):
                continue
            if not isinstance(own.value, ast.Name) or own.value.id != holder:
                return False
            if method is scope:
                others = sum(
                    isinstance(one, ast.Attribute) and one.attr == name for one in file.nodes
                )
                return each.lineno < statement.lineno and others <= 1
            # Outside of the class nobody calls what makes the object.
            named = sum(isinstance(one, ast.Attribute) and one.attr == name for one in file.nodes)
            return name in kind.at_first and (name == "__init__" or named == 1)
    return False


def _only_read(file: PlainFile, scope: Scope, statement: ast.Assign, name: ast.Name) -> bool:
    if bindings(scope, name.id) != 1 or name.id in file.shared_between_functions:
        return False
    if not only_here(file, scope, name.id):
        return False
    reads = [each for each in own_nodes(scope) if isinstance(each, ast.Name) and each.id == name.id]
    return all(each is name or file.start(each) > file.end(statement) for each in reads)


def _replaced(
    file: PlainFile,
    scope: Scope,
    statement: ast.Assign,
    pairs: list[tuple[ast.Name, ast.Attribute]],
    where: str,
) -> list[Change]:
    if file.alone(statement) is None or file.commented(*file.span(statement)):
        return []
    given = {name.id: ast.unparse(attribute) for name, attribute in pairs}
    targets = {id(name) for name, _ in pairs}
    changes = [
        Change(*file.span(each), (given[each.id],), where)
        for each in own_nodes(scope)
        if isinstance(each, ast.Name) and each.id in given and id(each) not in targets
    ]
    return [Change(*file.without(statement), (), where), *changes] if changes else []
