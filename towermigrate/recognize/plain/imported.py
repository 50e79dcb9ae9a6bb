"""Functions that a file imports under another name, or from a package that has them from one of its own modules.

`from steps import build as make` as `from steps import build`, and `from pkg import build`, where the package says
`from .graph import build`, as `from pkg.graph import build`: what stands for them is one function, by one name, of one file.
"""

from __future__ import annotations

import ast
import builtins
import posixpath
import re

from towermigrate.recognize.plain.changes import ALWAYS, Change, Part, PlainFile, bindings
from towermigrate.recognize.python_scopes import Unjoined
from towermigrate.recognize.source import Tree

_AGAIN = re.compile(r"\breload\b|sys\.modules|__import__|import_module")
_DEPTH = 3
"""How many packages may have a function from one another."""


def direct_imports(tree: Tree, towers: str, file: PlainFile) -> list[Change]:
    """Imports of functions that build or run the graph, each from the file that defines it, under the name that it has there.

    Args:
        tree: the author's files.
        towers: the file of the tower loop.
        file: one that may import.
    """
    if file.finds_names_by_text or _AGAIN.search(file.text):
        return []
    found: list[Change] = []
    for node in file.tree.body:
        if isinstance(node, ast.ImportFrom) and file.alone(node) is not None:
            if not file.commented(*file.span(node)):
                found += _of_import(tree, towers, file, node)
    return found


def _of_import(tree: Tree, towers: str, file: PlainFile, node: ast.ImportFrom) -> list[Change]:
    kept: list[str] = []
    lines: list[str] = []
    uses: list[Change] = []
    for alias in node.names:
        said = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
        local = alias.asname or alias.name
        module, name = _direct(tree, file.path, node, alias.name)
        path = _path(tree, file.path, module or _said(node))
        if path is None or not _matters(tree, towers, path, name):
            kept.append(said)
            continue
        again = module is not None and not _is_set(tree, alias.name)
        if local != name and _defines(tree, path, name):
            renamed = _renamed(file, local, name)
            if renamed is not None:
                uses += renamed
                local, again = name, True
        if not again:
            kept.append(said)
            continue
        shown = name if local == name else f"{name} as {local}"
        lines.append(f"from {module or _said(node)} import {shown}")
    if not lines:
        return []
    if kept:
        lines.insert(0, f"from {_said(node)} import {', '.join(kept)}")
    margin = file.alone(node) or ""
    parts: tuple[Part, ...] = (f"\n{margin}".join(lines),)
    return [Change(*file.span(node), parts, ALWAYS), *uses]


def _said(node: ast.ImportFrom) -> str:
    return "." * node.level + (node.module or "")


def _direct(tree: Tree, path: str, node: ast.ImportFrom, name: str) -> tuple[str | None, str]:
    """The module of a package that defines what the package hands on, and its name there; None where it hands nothing on."""
    package = _path(tree, path, _said(node))
    found = package
    own = name
    for _ in range(_DEPTH):
        if found is None or posixpath.basename(found) != "__init__.py":
            break
        origin = _handed_on(tree, found, own)
        if origin is None:
            break
        module, own = origin
        found = _path(tree, found, module)
    if package is None or found is None or found == package or not _defines(tree, found, own):
        return None, name
    folder = posixpath.dirname(package)
    if not folder or not found.startswith(f"{folder}/"):
        return None, name  # whose import would leave out what the package does
    inner = found[len(folder) + 1 :].removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    base = _said(node)
    text = base + inner if base.endswith(".") else f"{base}.{inner}"
    return (text, own) if _path(tree, path, text) == found else (None, name)


def _path(tree: Tree, importer: str, module: str) -> str | None:
    return tree.module_path(importer, module)


def _handed_on(tree: Tree, path: str, name: str) -> tuple[str, str] | None:
    """The module, as a package's file says it, and the name there of what the package imports and hands on."""
    try:
        file = PlainFile(path, tree.sources[path])
    except (Unjoined, SyntaxError, ValueError):
        return None
    if bindings(file.tree, name) != 1 or file.finds_names_by_text:
        return None
    for node in file.tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _said(node), alias.name
    return None


def _defines(tree: Tree, path: str, name: str) -> bool:
    """Whether a file defines a function of the name once, and binds the name to nothing else."""
    try:
        file = PlainFile(path, tree.sources[path])
    except (Unjoined, SyntaxError, ValueError):
        return False
    own = [n for n in file.tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    outer = [n for n in ast.walk(file.tree) if isinstance(n, ast.Global) and name in n.names]
    at_top = [
        each
        for node in file.tree.body
        if not isinstance(node, ast.FunctionDef | ast.ClassDef)
        for each in ast.walk(node)
        if isinstance(each, ast.Name)
        and each.id == name
        and not isinstance(each.ctx, ast.Load)
        or isinstance(each, ast.alias)
        and (each.asname or each.name) == name
    ]
    return len(own) == 1 and not outer and not at_top and not own[0].decorator_list


def _matters(tree: Tree, towers: str, path: str, name: str) -> bool:
    """Whether a function may build the graph of the towers, or run it."""
    told = re.search(
        rf"^def {re.escape(name)}\b.*?(?=^\S|\Z)", tree.sources[path], re.DOTALL | re.MULTILINE
    )
    return told is not None and (path == towers and "for " in told[0] or ".run(" in told[0])


def _is_set(tree: Tree, name: str) -> bool:
    """Whether any file sets what modules call so."""
    sets = re.compile(rf"\.{re.escape(name)}\s*=[^=]|setattr\(")
    return any(sets.search(text) for text in tree.sources.values())


def _renamed(file: PlainFile, local: str, name: str) -> list[Change] | None:
    """Each use of the file's own name for a function as the function's; None where that is not all there is to do."""
    nodes = [each for each in ast.walk(file.tree) if isinstance(each, ast.Name)]
    taken = bindings(file.tree, name) + any(each.id == name for each in nodes)
    # The import itself binds the name of the file's own.
    if taken or bindings(file.tree, local) != 1 or hasattr(builtins, name):
        return None
    if local in file.words_of_users or name in file.words_of_users:
        return None
    uses = [each for each in nodes if each.id == local]
    if any(not file.of(each) == local for each in uses):
        return None
    return [Change(*file.span(each), (name,), ALWAYS) for each in uses]
