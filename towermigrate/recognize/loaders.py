"""Objects whose making builds the input pipeline: `loader = Loader(files)`, and `images = loader.images` of it.

In loop style the pipeline has a graph of its own, and the object is made there: nothing of the program may have to do with
it but what it keeps of the pipeline. So its class must be one that can be read whole, and whose methods do nothing but
build a pipeline and keep parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import binds, code, dotted, statements, walk

_PLAIN_BASES: tuple[list[str], ...] = ([], ["object"])


@dataclass(frozen=True)
class Loader:
    """A class of the tree that may be a loader's: where it is, its methods by name, and what its objects keep."""

    file: SourceFile
    node: cst.ClassDef
    methods: dict[str, Function]

    @property
    def begins(self) -> Function | None:
        return self.methods.get("__init__")

    def keeps(self, name: str) -> bool:
        """Whether an attribute of its objects is one that a method sets, and nothing else of the class."""
        own = {code(node.attr) for node in self._set()}
        return name in own and name not in self.methods and name not in binds(self.node.body)

    def _set(self) -> Iterator[cst.Attribute]:
        for method in self.methods.values():
            for node in walk(method.node):
                if isinstance(node, cst.AssignTarget | cst.AugAssign | cst.AnnAssign):
                    for each in walk(node.target):
                        if isinstance(each, cst.Attribute) and code(each.value) == "self":
                            yield each


def loader_class(tree: Tree, file: SourceFile, func: cst.BaseExpression) -> Loader | None:
    """The class that a call's callee names, where all that its objects are is in its text."""
    found = _class_of(tree, file, func)
    if found is None:
        return None
    where, node = found
    plain = [code(base.value) for base in node.bases] in _PLAIN_BASES
    if not plain or node.keywords or node.decorators:
        return None
    methods: dict[str, Function] = {}
    for each in statements(node.body):
        if isinstance(each, cst.FunctionDef):
            name = each.name.value
            first = each.params.params[0].name.value if each.params.params else ""
            special = name.startswith("__") and name != "__init__"
            if each.decorators or special or first != "self" or name in methods:
                return None
            methods[name] = Function(where, each, f"{node.name.value}.{name}")
        elif isinstance(each, cst.BaseCompoundStatement):
            return None
    return Loader(where, node, methods)


def _class_of(
    tree: Tree, file: SourceFile, func: cst.BaseExpression
) -> tuple[SourceFile, cst.ClassDef] | None:
    """The one class that a callee can be: of the file, or of a module of the tree."""
    name = dotted(func)
    if name is None or name.count(".") > 1:
        return None
    root, _, last = name.rpartition(".")
    origin = file.imports.get(root or last)
    if not root and (node := _defined(file, last)) is not None:
        return file, node
    bound = sum((root or last) in binds(each) for each in file.module.body)
    if bound > (origin is not None):
        return None
    if origin is not None:
        module, _, last = (origin, "", last) if root else origin.rpartition(".")
        return _of_module(tree, file, module, last)
    if root:
        return None
    # A name of one of the modules that a star takes all of; no other may have it.
    paths = _starred(tree, file)
    if paths is None:
        return None
    named = [path for path in paths if re.search(rf"\b{last}\b", tree.sources[path])]
    other = tree.file(named[0]) if len(named) == 1 else None
    node = _defined(other, last) if other is not None else None
    return None if other is None or node is None else (other, node)


def _of_module(
    tree: Tree, file: SourceFile, module: str, name: str
) -> tuple[SourceFile, cst.ClassDef] | None:
    path = tree.module_path(file.path, module) if module.strip(".") else None
    other = tree.file(path) if path else None
    node = _defined(other, name) if other is not None else None
    return None if other is None or node is None else (other, node)


def _starred(tree: Tree, file: SourceFile) -> list[str] | None:
    """The files that stars take names of, directly or through others; None where one is not in the tree."""
    found: list[str] = []
    waiting = [file]
    while waiting:
        each = waiting.pop()
        for star in each.star_imports:
            path = tree.module_path(each.path, star) if star.strip(".") else None
            other = tree.file(path) if path else None
            if path is None or other is None:
                return None
            if path not in found and path != file.path:
                found.append(path)
                waiting.append(other)
    return found


def _defined(file: SourceFile, name: str) -> cst.ClassDef | None:
    """The class of a file by a name that nothing else binds."""
    classes = [
        node
        for node in file.module.body
        if isinstance(node, cst.ClassDef) and node.name.value == name
    ]
    bound = sum(name in binds(node) for node in file.module.body)
    return classes[0] if len(classes) == 1 and bound == 1 else None
