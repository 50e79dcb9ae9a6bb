"""What the collections of a program may hold, told from the names that its files use.

TensorFlow's core adds to UPDATE_OPS in batch normalisation, to SUMMARIES in `tf.summary` and in queues of inputs, and
to both in what loads a graph with its collections; everything else adds by the collection's name.
"""

from __future__ import annotations

import ast
import re
import sys

from towermigrate.recognize.proof.code import Code, Codes, last_name

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


_MAKERS = frozenset("scalar histogram image audio text tensor_summary".split())
_QUIET = frozenset(
    "FileWriter FileWriterCache merge merge_all Event Summary SummaryDescription".split()
)
_OLD_SUMMARY = re.compile(r"_summary$|^merge_all_summaries$|^summarize|^optimize_loss$")
_QUEUES = re.compile(
    r"_producer$|^prefetch_queue$|^(?:maybe_)?(?:shuffle_)?batch(?:_join)?$|^bucket"
)


def no_updates(codes: Codes, path: str) -> bool:
    """Whether nothing that may run in a process with a file's program adds to UPDATE_OPS."""
    files = files_beside(codes, path)
    return files is not None and all(_adds_none(codes, code) for code in files)


def may_add(codes: Codes, path: str) -> list[str]:
    """The files that may run in a process with a file's program and add to UPDATE_OPS; words for one that cannot be read."""
    files = files_beside(codes, path)
    if files is None:
        return ["a file that cannot be read"]
    return [code.path for code in files if not _adds_none(codes, code)]


def summary_makers(codes: Codes, path: str) -> list[tuple[str, int, int]] | None:
    """Every place that adds to SUMMARIES in what may run in a process with a file's program; None: not known."""
    files = files_beside(codes, path)
    if files is None:
        return None
    found: list[tuple[str, int, int]] = []
    for code in files:
        made = _summaries(codes, code)
        if made is None:
            return None
        found += made
    return found


def files_beside(codes: Codes, path: str) -> list[Code] | None:
    """The files that may run in a process with one; None where some cannot be read."""
    seen: dict[str, Code] = {}
    for user in sorted(codes.tree.users.get(path, {path})):
        if codes.code(user) is None:
            return None
        seen.update({code.path: code for code in codes.closure(user)})
    return list(seen.values())


def imports_only_known(codes: Codes, code: Code) -> bool:
    """Whether a file imports nothing but the tree's own files, TensorFlow's public names and packages without a graph."""
    return all(
        _known(codes, code, node)
        for node in code.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def _summaries(codes: Codes, code: Code) -> list[tuple[str, int, int]] | None:
    """The places of a file that add to SUMMARIES; None where that is not known."""
    found: list[tuple[str, int, int]] = []
    for node in code.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if not _known(codes, code, node):
                return None
            inner = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "tensorflow"
            )
            if inner and any(alias.name not in ("compat", "v1") for alias in node.names):
                return None
        for name in _names(node):
            if name in _LOADS or _OLD_SUMMARY.search(name) and name != "add_summary":
                if not isinstance(node, ast.Name | ast.Constant):
                    return None
            if name in ("SUMMARIES", "summaries") and _is_key(node):
                return None
        if isinstance(node, ast.Call) and not _plain(node):
            return None
        if isinstance(node, ast.Attribute):
            of = node.value.attr if isinstance(node.value, ast.Attribute) else ""
            if of == "summary" and node.attr in _MAKERS:
                found.append((code.path, *code.place(node)))
            elif of == "summary" and node.attr not in _QUIET:
                return None
            elif node.attr == "summary" and not _is_taken_apart(code, node):
                return None
            elif _QUEUES.search(node.attr) and of in ("train", "input", "data", "training"):
                return None
    return found


def _is_taken_apart(code: Code, node: ast.Attribute) -> bool:
    """Whether `tf.summary` stands in `tf.summary.name`, and is handed on nowhere."""
    return any(isinstance(each, ast.Attribute) and each.value is node for each in code.nodes)


def _adds_none(codes: Codes, code: Code) -> bool:
    read: set[int] = set()
    for node in code.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr == "get_collection":
                read.add(id(node.args[0]))
    for node in code.nodes:
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
    name = last_name(call.func)
    if name in ("add_to_collection", "add_to_collections"):
        key = call.args[0] if call.args else None
        if isinstance(key, ast.Attribute):
            return key.attr != "UPDATE_OPS" and getattr(key.value, "attr", "") == "GraphKeys"
        return isinstance(key, ast.Constant) and key.value != "update_ops"
    if name == "getattr":
        return len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
    return True
