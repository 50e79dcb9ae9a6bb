"""A class of which a program makes one object, whose attributes may be read as names.

That holds where the class is plain (no bases, no decorators, no methods that Python calls by itself, `__init__` aside), where it
is named once, to make the object, and where the object is used for its attributes and methods only: it is handed to nobody who
may keep it, look into it or give it other attributes.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from keyword import iskeyword

from towermigrate.recognize.python_scopes import (
    Definition,
    Module,
    Unjoined,
    bound_by,
    not_reflective,
)


@dataclass
class PlainClass:
    """A class and its methods."""

    node: ast.ClassDef
    methods: dict[str, Definition]


def plain_class(module: Module, name: str) -> PlainClass:
    """The class of a name; raises where an object of it may be more than its attributes and methods."""
    found = [each for each in module.tree.body if isinstance(each, ast.ClassDef)]
    found = [each for each in found if each.name == name]
    if len(found) != 1 or sum(name in bound_by(each) for each in module.tree.body) != 1:
        raise Unjoined
    (node,) = found
    bases = [ast.unparse(each) for each in node.bases]
    if node.keywords or node.decorator_list or bases not in ([], ["object"]):
        raise Unjoined
    if module.declares_global(name) or "AttributeError" in module.text:
        raise Unjoined
    return PlainClass(node, _methods(module, node))


def _methods(module: Module, node: ast.ClassDef) -> dict[str, Definition]:
    table = module.tables.get(node.name)
    if not isinstance(table, symtable.Class):
        raise Unjoined
    tables = {each.get_name(): each for each in table.get_children()}
    methods: dict[str, Definition] = {}
    for number, each in enumerate(node.body):
        if not number and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            continue  # its docstring
        if not isinstance(each, ast.FunctionDef) or each.decorator_list:
            raise Unjoined
        special = each.name.startswith("__") and each.name != "__init__"
        if special or each.name in methods or not each.args.args or each.args.posonlyargs:
            raise Unjoined
        not_reflective(each, of_class=True)
        holder = each.args.args[0]
        method = Definition(module.path, module.text, each, module.starts, tables[each.name])
        if (
            holder.annotation
            or holder.arg in method.inner
            or each.args.defaults[-1:]
            and len(each.args.defaults) == len(each.args.args)
        ):
            raise Unjoined
        methods[each.name] = method
    for method in methods.values():
        used = {n.id for n in ast.walk(method.node) if isinstance(n, ast.Name)}
        if any(name.startswith("__") and not name.endswith("__") for name in used):
            raise Unjoined  # a name that Python changes in a class
        defaults = [*method.node.args.defaults, *method.node.args.kw_defaults]
        for default in defaults:
            names = [n.id for n in ast.walk(default) if isinstance(n, ast.Name)] if default else []
            if methods.keys() & set(names):
                raise Unjoined  # of the class, not of the file
    return methods


@dataclass(frozen=True)
class Access:
    """Where a value of the object is named: `self.loss`, or `ops['loss']`."""

    node: ast.Attribute | ast.Subscript
    key: str
    stored: bool


def accesses(
    node: ast.AST, holder: str, handed: Collection[int] = (), item: bool = False
) -> Iterator[Access]:
    """Where values of the object are named; raises where the object is used by itself.

    Args:
        handed: the identities of the names at which it may be.
        item: the object is a dict.
    """
    kind = ast.Subscript if item else ast.Attribute
    held = {
        id(each.value): each
        for each in ast.walk(node)
        if isinstance(each, kind) and isinstance(each.value, ast.Name)
    }
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id == holder and id(each) not in handed:
            found = held.get(id(each))
            if isinstance(found, ast.Attribute):
                key: object = found.attr
            elif isinstance(found, ast.Subscript) and isinstance(found.slice, ast.Constant):
                key = found.slice.value
            else:
                raise Unjoined
            if not isinstance(key, str) or not key.isidentifier() or iskeyword(key):
                raise Unjoined
            if key.startswith("__") or isinstance(found.ctx, ast.Del):
                raise Unjoined
            yield Access(found, key, not isinstance(found.ctx, ast.Load))


def stores_in(node: ast.FunctionDef, name: str) -> list[ast.Name]:
    """Where a name is bound by itself."""
    return [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
