"""Imports that may mean one file of the tree or another: what would be read is not what would run."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator

from towermigrate.recognize.proof.code import Code
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.tree import module_file


def check_places(proof: TowerProof) -> None:
    """Report absolute imports that several files may be meant by, and names that a package gives to another of its modules.

    Where an import is looked up depends on the script that runs. Beside a file it finds a module where that file's
    folder is the script's, or where Python 2 runs it; a file of a package finds it where the script is.
    """
    anywhere = any(_puts_in_front(node) for code in proof.files for node in code.nodes)
    for code in proof.files:
        for node in code.imports:
            for module in _modules(node):
                found = _candidates(proof, code, module, anywhere)
                if len(found) > 1:
                    files = " or ".join(sorted(found))
                    proof.always(
                        "TM229", code, node,
                        f"`{code.said(node)}` may mean {files}, by where Python looks for it",
                    )  # fmt: skip
            if isinstance(node, ast.ImportFrom):
                for name in _rebound(proof, code, node):
                    proof.always(
                        "TM229", code, node,
                        f"`{name}` of `{code.said(node)}` is a module, and may be what the package calls so",
                    )  # fmt: skip


def _modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        yield node.module


def _puts_in_front(node: ast.AST) -> bool:
    """Whether something changes `sys.path` other than by putting a folder at its end."""
    if isinstance(node, ast.Attribute) and node.attr == "insert":
        return _is_path(node.value)
    return isinstance(node, ast.Attribute) and _is_path(node) and not isinstance(node.ctx, ast.Load)


def _is_path(node: ast.expr) -> bool:
    """`sys.path`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "path"
        and isinstance(node.value, ast.Name)
        and node.value.id == "sys"
    )


def _candidates(proof: TowerProof, code: Code, module: str, anywhere: bool) -> set[str]:
    """The files of the tree that a module's name may mean."""
    sources = proof.codes.tree.sources
    nearest = module_file(sources, code.path, 0, module)
    if nearest is None:
        return set()
    stem = module.replace(".", "/")
    names = (f"{stem}.py", f"{stem}/__init__.py")
    if anywhere:
        return {
            path
            for path in sources
            if path in names or path.endswith(tuple(f"/{n}" for n in names))
        }
    found = {nearest}
    folder = posixpath.dirname(code.path)
    beside = any(nearest == posixpath.join(folder, name) for name in names)
    if beside and not _entered(proof, code.path, folder):
        return found  # the script is in this folder, too
    while folder:
        folder = posixpath.dirname(folder)
        found |= {posixpath.join(folder, name) for name in names} & sources.keys()
    return found


def _entered(proof: TowerProof, path: str, folder: str) -> bool:
    """Whether a file of another folder leads to this one."""
    users = proof.codes.tree.users
    seen, waiting = {path}, [path]
    while waiting:
        more = users.get(waiting.pop(), set()) - seen
        seen |= more
        waiting += more
    return any(posixpath.dirname(each) != folder for each in seen)


def _rebound(proof: TowerProof, code: Code, node: ast.ImportFrom) -> Iterator[str]:
    """The modules that are imported from a package which binds their names to something else."""
    sources = proof.codes.tree.sources
    package = module_file(sources, code.path, node.level, node.module or "")
    if package is None or not package.endswith("__init__.py"):
        return
    made = proof.codes.code(package)
    if made is None:
        return
    for alias in node.names:
        module = f"{node.module}.{alias.name}" if node.module else alias.name
        own = module_file(sources, code.path, node.level, module)
        for bound in () if own is None else made.bindings.get(alias.name, []):
            if not _imports_itself(proof, made, bound, alias.name, own):
                yield alias.name


def _imports_itself(
    proof: TowerProof, code: Code, node: ast.AST, name: str, own: str | None
) -> bool:
    if not isinstance(node, ast.ImportFrom):
        return False
    sources = proof.codes.tree.sources
    for alias in node.names:
        if (alias.asname or alias.name) == name:
            module = f"{node.module}.{alias.name}" if node.module else alias.name
            return module_file(sources, code.path, node.level, module) == own
    return False
