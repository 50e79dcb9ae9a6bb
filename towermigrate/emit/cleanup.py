"""What is left over in a file once its towers are gone: averaging functions, device pins, imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import libcst as cst

from towermigrate.emit.templates import lead_of, spaced, strip_blank, with_lead
from towermigrate.recognize.at_import import only_defines, parts_of
from towermigrate.recognize.scope import header_comment
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import argument, assigned, code, reads, small, statements, text
from towermigrate.tree import modules_named

_IMPORTS_BY_TEXT = re.compile(r"import_module|__import__|\bimp\b|runpy|\bexec|\beval")
"""How a file may import one whose name it has as text."""


class Unpin(cst.CSTTransformer):
    """Dissolve `with tf.device('/cpu:0'):` in the functions that towers call; the strategy places things."""

    def __init__(self, file: SourceFile, functions: Sequence[cst.FunctionDef]) -> None:
        self.file = file
        self.functions = {id(f) for f in functions}
        self.inside = 0
        self.pins: list[cst.With] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        if id(node) in self.functions:
            self.inside += 1

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return False  # no `with` in it

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        if id(original_node) in self.functions:
            self.inside -= 1
        return updated_node

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        if not self.inside or len(original_node.items) != 1:
            return updated_node
        item = original_node.items[0]
        if item.asname is not None or not isinstance(item.item, cst.Call):
            return updated_node
        if self.file.tf(item.item.func) != "tf.device":
            return updated_node
        device = text(argument(item.item, 0, "device_name_or_function"))
        if device is None or not re.fullmatch(r"/?(device:)?(cpu|CPU)(:0)?", device.lstrip("/")):
            return updated_node
        body = list(statements(updated_node.body))
        header = header_comment(original_node)
        body[0] = with_lead(
            body[0], [*lead_of(updated_node), *header, *strip_blank(lead_of(body[0]))]
        )
        self.pins.append(original_node)
        return cst.FlattenSentinel(body)


def remove_unused(
    module: cst.Module, candidates: set[str], tree: Tree, path: str
) -> tuple[cst.Module, list[str]]:
    """Drop top-level functions, constants and imports that only the removed code used.

    `candidates` are names the removed code read. What another file of the tree might import stays.
    """
    users = tree.users.get(path, set())
    others = [
        text
        for other, text in tree.sources.items()
        if other != path and (other in users or _may_import(text, path))
    ]
    removed: list[str] = []
    while True:
        step = _remove_once(module, candidates, others, tree, path)
        if step is None:
            return module, removed
        module, gone, freed = step
        removed.append(gone)
        candidates = (candidates - {gone}) | freed


def _may_import(text: str, path: str) -> bool:
    """Whether a text imports a module of this name, from wherever `sys.path` leads, or has the name and imports by names."""
    name = path.removesuffix("/__init__.py").rpartition("/")[2].removesuffix(".py")
    if name not in text:
        return False
    if any(name in module.split(".") for _, module in modules_named(text)):
        return True
    return _IMPORTS_BY_TEXT.search(text) is not None and bool(
        re.search(rf"\b{re.escape(name)}\b", text)
    )


def _remove_once(
    module: cst.Module, candidates: set[str], others: Sequence[str], tree: Tree, path: str
) -> tuple[cst.Module, str, set[str]] | None:
    for name in sorted(candidates):
        for node in module.body:
            if not _defines(node, name) or _read_elsewhere(module, node, name):
                continue
            if not isinstance(node, cst.SimpleStatementLine) or not _is_import(node):
                if _mentioned(name, others):
                    continue
            elif _acts(node, name, tree, path):
                continue
            body = _without(list(module.body), node, name)
            return module.with_changes(body=body), name, set(reads(node))
    return None


def _acts(node: cst.SimpleStatementLine, name: str, tree: Tree, path: str) -> bool:
    """Whether an import without a name may be missed: what it names does something when it is imported."""
    inner = small(node)
    if not isinstance(inner, cst.ImportFrom) or isinstance(inner.names, cst.ImportStar):
        return False
    module = "." * len(inner.relative) + (code(inner.module) if inner.module else "")
    (alias,) = (each for each in inner.names if _local(each) == name)
    *_, own = asked = parts_of(module, code(alias.name))
    if len(inner.names) > 1:  # the module is imported for the others
        return tree.module_path(path, own) is not None and not only_defines(tree, path, own)
    return not all(only_defines(tree, path, each) for each in asked)


def _is_import(node: cst.SimpleStatementLine) -> bool:
    return isinstance(small(node), cst.Import | cst.ImportFrom)


def _defines(node: cst.BaseStatement | cst.BaseCompoundStatement, name: str) -> bool:
    if isinstance(node, cst.FunctionDef):
        return node.name.value == name and not node.decorators
    if isinstance(node, cst.SimpleStatementLine):
        inner = small(node)
        if isinstance(inner, cst.ImportFrom) and not isinstance(inner.names, cst.ImportStar):
            return any(_local(alias) == name for alias in inner.names)
        found = assigned(node)
        return (
            found is not None
            and found[0] == [name]
            and isinstance(found[1], cst.List | cst.Tuple | cst.SimpleString | cst.Integer)
        )
    return False


def _local(alias: cst.ImportAlias) -> str:
    if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
        return alias.asname.name.value
    return alias.name.value if isinstance(alias.name, cst.Name) else ""


def _read_elsewhere(module: cst.Module, own: cst.CSTNode, name: str) -> bool:
    return any(name in reads(node) for node in module.body if node is not own)


def _mentioned(name: str, texts: Iterable[str]) -> bool:
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(name in text and word.search(text) for text in texts)


def _without(
    body: list[cst.BaseStatement], node: cst.BaseStatement | cst.BaseCompoundStatement, name: str
) -> list[cst.BaseStatement]:
    index = next(i for i, n in enumerate(body) if n is node)
    if isinstance(node, cst.SimpleStatementLine):
        inner = small(node)
        if isinstance(inner, cst.ImportFrom) and not isinstance(inner.names, cst.ImportStar):
            rest = [a for a in inner.names if _local(a) != name]
            if rest:
                rest[-1] = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                body[index] = node.with_changes(body=[inner.with_changes(names=rest)])
                return body
    del body[index]
    if index and index < len(body) and isinstance(body[index - 1], cst.FunctionDef | cst.ClassDef):
        follower = body[index]
        lead = lead_of(follower)
        body[index] = with_lead(follower, spaced(lead, 2))
    return body


def add_import(module: cst.Module, statement: cst.SimpleStatementLine) -> cst.Module:
    """Put an import right behind the one of TensorFlow."""
    body = list(module.body)
    place = None
    for index, node in enumerate(body):
        inner = small(node) if isinstance(node, cst.SimpleStatementLine) else None
        if isinstance(inner, cst.Import) and any(
            isinstance(a.name, cst.Name) and a.name.value == "tensorflow" for a in inner.names
        ):
            place = index
            break
    if place is None:
        return module
    body.insert(place + 1, statement)
    return module.with_changes(body=body)
