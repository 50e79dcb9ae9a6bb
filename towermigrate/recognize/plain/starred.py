"""Names that a file has by a star of another one of the tree: imported by themselves.

`from graph import *`, where the file and those that import it ask for `build` and `batch`, is `from graph import batch, build`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import ALWAYS, Change, PlainFile
from towermigrate.recognize.python_scopes import Module, Unjoined, bound_by
from towermigrate.recognize.source import Tree

_WIDTH = 96
_BY_NAME = re.compile(r"\bimportlib\b|\b__import__\b|\bsys\.modules\b")
"""Ways to come to a module, and its names, that no import tells of."""


def starred_names(tree: Tree, file: PlainFile) -> list[Change]:
    """The stars of a file's own statements, each as the names that anybody asks for."""
    if "import *" not in file.text or file.finds_names_by_text:
        return []
    if any(_BY_NAME.search(text) for text in tree.sources.values()):
        return []
    stars = [each for each in file.nodes if _is_star(each)]
    if any(not any(each is top for top in file.tree.body) for each in stars):
        return []
    try:
        asked = _asked(tree, file)
        return [
            change
            for each in file.tree.body
            if isinstance(each, ast.ImportFrom) and _is_star(each)
            for change in _named(tree, file, each, asked)
        ]
    except (Unjoined, RecursionError):
        return []


def _is_star(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and [each.name for each in node.names] == ["*"]


def _asked(tree: Tree, file: PlainFile) -> set[str]:
    """All names that the file may ask for, or one that has them of it."""
    found = {each.id for each in file.nodes if isinstance(each, ast.Name)}
    found |= {
        each.value
        for each in file.nodes
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    waiting, known = [file.path], {file.path}
    while waiting:
        for user in tree.users.get(waiting.pop(), set()) & tree.sources.keys() - known:
            known.add(user)
            waiting.append(user)
            found |= set(re.findall(r"\w+", tree.sources[user]))
    return found


def _named(tree: Tree, file: PlainFile, star: ast.ImportFrom, asked: set[str]) -> Iterator[Change]:
    dotted = "." * star.level + (star.module or "")
    path = tree.module_path(file.path, dotted)
    if path is None or path == file.path:
        return  # a library's, which stays where it stands
    if _leads_to(tree, path, file.path):
        raise Unjoined  # the star may be read before all names are there
    exported = _exported(tree, path, ())
    if file.path.endswith("__init__.py"):
        asked = asked | exported.keys()  # a package is there for others, too
    if path.endswith("__init__.py"):
        inside = path.removesuffix("__init__.py")
        stems = {
            each.removeprefix(inside).partition("/")[0].removesuffix(".py")
            for each in tree.sources
            if each.startswith(inside)
        }
        if stems & asked:
            raise Unjoined  # a module of a package is a name of it once anybody imported that
    margin = file.alone(star)
    if margin is None or file.commented(*file.span(star)):
        raise Unjoined
    here = {ast.unparse(each) for each in file.tree.body if isinstance(each, ast.Import)}
    rows: list[str] = []
    names: list[str] = []
    for name in sorted(exported.keys() & asked):
        of_library = exported[name]
        if not of_library:
            names.append(name)
        elif of_library not in here and of_library not in rows:
            rows.append(of_library)
    if names:
        row = f"from {dotted} import {', '.join(names)}"
        if len(row) > _WIDTH:
            row = f"from {dotted} import (\n" + "".join(f"    {each},\n" for each in names) + ")"
        rows.append(row)
    if not names:
        if star.level or "." in dotted or dotted in asked or rows:
            raise Unjoined
        rows = [f"import {dotted}"]  # for what it does, if it does something
    yield Change(*file.span(star), ("\n".join(rows),), ALWAYS)


def _leads_to(tree: Tree, path: str, target: str) -> bool:
    """Whether a file imports another one, by others too."""
    waiting, known = [path], {path}
    while waiting:
        for each in tree.imports.get(waiting.pop(), set()) - known:
            known.add(each)
            waiting.append(each)
    return target in known


def _exported(tree: Tree, path: str, around: tuple[str, ...]) -> dict[str, str]:
    """What a star takes of a file: each name, with the import of a library that makes it, if one does."""
    if path in around or path not in tree.sources:
        raise Unjoined
    module = Module(path, tree.sources[path])
    if "__getattr__" in module.text or re.search(r"\b(?:exec|eval|vars|setattr)\(", module.text):
        raise Unjoined
    found: dict[str, str] = {}
    listed: list[str] | None = None
    for each in module.tree.body:
        if _is_star(each):
            assert isinstance(each, ast.ImportFrom)
            other = tree.module_path(path, "." * each.level + (each.module or ""))
            if other is None:
                raise Unjoined
            for name, of in _exported(tree, other, (*around, path)).items():
                found[name] = of if found.get(name, of) == of else ""
            continue
        names = bound_by(each)
        if "__all__" in names:
            if listed is not None or not isinstance(each, ast.Assign):
                raise Unjoined
            listed = _texts(each.value)
            continue
        surely = isinstance(
            each, ast.Assign | ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
        )
        if not surely and names - found.keys() or isinstance(each, ast.Delete):
            raise Unjoined  # it may not be there
        library = isinstance(each, ast.Import) and len(each.names) == 1
        for name in names:
            of = ast.unparse(each) if library else ""
            found[name] = of if found.get(name, of) == of else ""
    uses = [each for each in module.nodes if isinstance(each, ast.Name)]
    if sum(each.id == "__all__" for each in uses) != (listed is not None):
        raise Unjoined
    if listed is not None:
        if not set(listed) <= found.keys():
            raise Unjoined
        return {name: found[name] for name in listed}
    return {name: of for name, of in found.items() if not name.startswith("_")}


def _texts(node: ast.expr) -> list[str]:
    if isinstance(node, ast.List | ast.Tuple):
        found = [each.value for each in node.elts if isinstance(each, ast.Constant)]
        texts = [each for each in found if isinstance(each, str)]
        if len(texts) == len(node.elts):
            return texts
    raise Unjoined


__all__ = ["starred_names"]
