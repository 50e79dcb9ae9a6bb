"""What the files of a tree need of each other under TensorFlow 2, where a rewrite cannot give it: findings."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from towermigrate.findings import Finding
from towermigrate.symbols import tf0
from towermigrate.symbols.apply import SymbolResult
from towermigrate.symbols.scopes import file_names
from towermigrate.symbols.tables import load_names, normal, prefix_in
from towermigrate.tree import import_closure, module_file, modules_in, parse_python


def left_behind(
    sources: Mapping[str, str],
    path: str,
    imported: set[str],
    symbols: Mapping[str, SymbolResult],
    fixed: Mapping[str, Finding],
) -> list[Finding]:
    """Findings at the imports of `path`, which goes to TensorFlow 2, of files that stay on TensorFlow 1.

    Args:
        sources: texts of the tree, by path, as they were.
        path: the importing file.
        imported: the files of the tree that it imports.
        symbols: what the symbol pass made of every file.
        fixed: files that do not change, each with the finding that says why.
    """
    found: list[Finding] = []
    for other in sorted(imported & fixed.keys()):
        names = tf1_names(sources[other]) if symbols[other].text != sources[other] else []
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            reason = fixed[other].message.removeprefix("not changed: ")
            message = f"{other}, imported here, still uses `{names[0]}`{more}: {reason}"
            line, column = _import_of(sources, path, other)
            found.append(Finding("TM109", path, line, column, message))
    return found


def tf1_names(text: str) -> list[str]:
    """The names of TensorFlow 1 in a file, each once, that TensorFlow 2 lacks or gives another meaning.

    Example:
        >>> tf1_names("import tensorflow as tf\\ntf.Session(tf.mul(tf.compat.v1.log(1), tf.add(2, 3)))\\n")
        ['tf.Session', 'tf.mul']
    """
    table = load_names()
    found: dict[str, None] = {}
    for use in file_names(parse_python(text)).uses:
        name, compat = normal(use.dotted) or ("", True)
        if not compat and (
            prefix_in(name, table.renamed)
            or prefix_in(name, tf0.NAMES)
            or name.startswith("contrib.")
        ):
            found[f"tf.{name}"] = None
    return list(found)


def _import_of(sources: Mapping[str, str], path: str, other: str) -> tuple[int, int]:
    """Where `path` imports `other`: line and column."""
    for node in ast.walk(parse_python(sources[path])):
        if isinstance(node, ast.Import | ast.ImportFrom) and any(
            module_file(sources, path, *module) == other for module in modules_in([node])
        ):
            return node.lineno, node.col_offset
    return 1, 0


def unswitched(
    graph: Mapping[str, set[str]], symbols: Mapping[str, SymbolResult]
) -> dict[str, Finding]:
    """Modules that need a graph around them, and that no script is seen to run, each with its finding.

    Args:
        graph: the files of the tree that each file imports.
        symbols: what the symbol pass made of every file.
    """
    waiting = {path: each.needs_graph for path, each in symbols.items() if each.needs_graph}
    if not waiting:
        return {}
    starts = [path for path, each in symbols.items() if each.script or each.mode.switched]
    reached = import_closure({}, starts, graph)
    return {path: finding for path, finding in waiting.items() if path not in reached}
