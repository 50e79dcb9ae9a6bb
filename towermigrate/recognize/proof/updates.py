"""Whether a program's UPDATE_OPS are surely empty, so that waiting for them is waiting for nothing.

TensorFlow's core adds to the collection in batch normalisation, and in what loads a graph with its collections;
everything else adds by name.
"""

from __future__ import annotations

import ast
import re
import sys

from towermigrate.recognize.proof.code import Code, Codes

_ADDS = re.compile(r"batch_?(?:re)?norm|updates_collections|normalizer|add_update", re.IGNORECASE)
_LOADS = frozenset(
    "import_meta_graph import_scoped_meta_graph saved_model get_collection_ref contrib keras slim hub eval exec "
    "__import__ import_module globals vars".split()
)
"""Names that may bring operations or names that nothing in the text shows, and libraries of layers."""
_NO_LAYERS = frozenset(sys.stdlib_module_names) | {
    "numpy", "scipy", "pandas", "matplotlib", "six", "absl", "cv2", "PIL", "h5py", "skimage", "sklearn", "tqdm", "yaml",
    "future", "past",
}  # fmt: skip
"""Packages that make no layers."""


def no_updates(codes: Codes, path: str) -> bool:
    """Whether nothing that may run in a process with a file's program adds to UPDATE_OPS."""
    tree = codes.tree
    seen: dict[str, Code] = {}
    for user in sorted(tree.users.get(path, {path})):
        if codes.code(user) is None:
            return False
        seen.update({code.path: code for code in codes.closure(user)})
    return all(_adds_none(codes, code) for code in seen.values())


def _adds_none(codes: Codes, code: Code) -> bool:
    read: set[int] = set()
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr == "get_collection":
                read.add(id(node.args[0]))
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            if not _known(codes, code, node):
                return False
        for name in _names(node):
            if name in _LOADS or _ADDS.search(name):
                return False
            if name in ("UPDATE_OPS", "update_ops") and _is_key(node) and id(node) not in read:
                return False
        if isinstance(node, ast.Call) and not _plain(node):
            return False
    return True


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.keyword):
        return [node.arg or ""]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value] if node.value.isidentifier() else []
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [part for alias in node.names for part in alias.name.split(".")]
    return []


def _is_key(node: ast.AST) -> bool:
    """`tf.GraphKeys.UPDATE_OPS`, `"update_ops"`; a variable may be called so."""
    return isinstance(node, ast.Attribute | ast.Constant)


def _known(codes: Codes, code: Code, node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import brings TensorFlow's core, a file of the tree that is read too, or a package without layers."""
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    else:
        modules = ["." * node.level + (node.module or "")]
    for module in modules:
        if module in ("tensorflow", "tensorflow.compat", "tensorflow.compat.v1"):
            continue
        if module.partition(".")[0] in _NO_LAYERS:
            continue
        path = codes.tree.module_path(code.path, module) if module.strip(".") else None
        if path is None or codes.code(path) is None:
            return False
    return True


def _plain(call: ast.Call) -> bool:
    """Whether a call adds to no collection that is not plain, and looks up no name that is not."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("add_to_collection", "add_to_collections"):
        key = call.args[0] if call.args else None
        if isinstance(key, ast.Attribute):
            return key.attr != "UPDATE_OPS" and getattr(key.value, "attr", "") == "GraphKeys"
        return isinstance(key, ast.Constant) and key.value != "update_ops"
    if name == "getattr":
        return len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
    return True
