"""A TensorFlow 1 program under TensorFlow 2 with its own names: `tf` becomes `tf.compat.v1` where it is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.symbols import tf0
from towermigrate.symbols.apply import is_tf1, rewrite_symbols
from towermigrate.symbols.edits import Edit, Text, splice
from towermigrate.symbols.scopes import FileNames, file_names
from towermigrate.symbols.tables import normal
from towermigrate.symbols.work import Pass
from towermigrate.tree import parse_python

_COMPAT = "tensorflow.compat.v1"
# Not in `tf.compat.v1`, or changed by the symbol pass where they are imported.
_ELSEWHERE = frozenset("contrib python core examples compat tools".split())


def with_own_names(source: str, path: str) -> str:
    """A file that runs under `tf.compat.v1` with the names that its author wrote.

    What `rewrite_symbols` makes of a name is a claim; here TensorFlow's own module answers, so that a claim that is wrong
    shows when both are run. Only what `tf.compat.v1` has not (`tf.contrib`, private modules, names of 0.x) is changed as there.

    Args:
        source: the text of the file, without a byte order mark.
        path: its path relative to the tree's root.

    Returns:
        The text, with as many lines, but for those that the symbol pass adds.

    Example:
        >>> with_own_names("import tensorflow as tf\\ntf.placeholder(tf.float32)\\n", "m.py")
        'import tensorflow.compat.v1 as tf\\ntf.placeholder(tf.float32)\\n'
    """
    try:
        tree = parse_python(source) if "tensorflow" in source else None
    except (SyntaxError, ValueError, RecursionError):
        tree = None
    if tree is None:
        return rewrite_symbols(source, path).text
    names, text = file_names(tree), Text(source)
    if is_tf1(names) and not _is_private(names) and not _is_tf0(Pass(path, text, tree, names)):
        source = splice(source, [edit for node in _imports(names) for edit in _edits(text, node)])
    return rewrite_symbols(source, path).text


def _imports(names: FileNames) -> Iterator[ast.Import | ast.ImportFrom]:
    for _, node in names.imports:
        yield node


def _is_private(names: FileNames) -> bool:
    """Whether a file reaches what only `tensorflow` itself has through its name: `tf.python.ops`, `import tensorflow.python`."""
    for use in names.uses:
        found = normal(use.dotted)
        if use.meaning == "tensorflow" and found is not None:
            if found[0].split(".")[0] in _ELSEWHERE - {"contrib", "compat"}:
                return True
    return any(
        alias.asname is None and alias.name.startswith("tensorflow.")
        for node in _imports(names)
        if isinstance(node, ast.Import)
        for alias in node.names
    )


def _is_tf0(work: Pass) -> bool:
    """Whether something in a file is certainly of TensorFlow 0.x, whose names `tf.compat.v1` has not either."""
    for use in work.names.uses:
        found = normal(use.dotted)
        if found is None or tf0.rename(work, use, found[0]):
            continue
        if id(use.chain) in work.calls:
            tf0.order_arguments(work, found[0], work.calls[id(use.chain)])
    return work.is_tf0


def _edits(text: Text, node: ast.Import | ast.ImportFrom) -> Iterator[Edit]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name == "tensorflow":
                start, end = text.span(alias)
                yield Edit(start, end, f"{_COMPAT} as {alias.asname or 'tensorflow'}")
            elif alias.name.startswith("tensorflow.") and alias.asname:
                if alias.name.split(".")[1] not in _ELSEWHERE:
                    start = text.span(alias)[0]
                    yield Edit(start, start + len("tensorflow"), _COMPAT)
        return
    module = (node.module or "").split(".")
    if node.level or module[0] != "tensorflow" or (module[1:2] and module[1] in _ELSEWHERE):
        return
    if len(module) == 1 and any(alias.name in _ELSEWHERE for alias in node.names):
        return
    start = text.text.index("tensorflow", text.span(node)[0])
    yield Edit(start, start + len("tensorflow"), _COMPAT)
