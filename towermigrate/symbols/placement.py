"""Where the imports that a rewritten file needs go."""

from __future__ import annotations

import ast

from towermigrate.symbols.edits import Edit, Text
from towermigrate.symbols.scopes import FileNames
from towermigrate.symbols.switch import import_of
from towermigrate.symbols.tables import LEGACY_KERAS, prefix_in
from towermigrate.symbols.work import Pass
from towermigrate.tree import HELPERS_COPY

HELPERS = "import towermigrate.helpers"


def added_imports(work: Pass) -> list[Edit]:
    """The edit that adds `import towermigrate.helpers`, `import tf_slim` and TensorFlow's own where they are missing.

    They go right after the import of TensorFlow. The helpers choose legacy Keras, so they come before anything
    that touches it: where an import of `tf_slim` or `tf.contrib` stands earlier, they go before that.
    """
    text, tree, names, adds_slim = work.text, work.tree, work.names, work.adds_slim
    touching = [node for _, node in names.imports if _touches_keras(node)]
    helpers = [node for _, node in names.imports if _imports_helpers(node)]
    first_touch = min((node.lineno for node in touching), default=None)
    late = first_touch is not None and all(node.lineno > first_touch for node in helpers)
    lines: list[str] = []
    if work.adds_tensorflow is not None:
        lines.append(import_of(work.adds_tensorflow))
    keras = work.legacy_keras or work.uses_slim or adds_slim
    if work.adds_helpers or keras and (not helpers or late):
        lines.append(HELPERS)
    if adds_slim and names.module.bound.get("tf_slim") != {"tf_slim"}:
        lines.append("import tf_slim")
    if not lines:
        return []
    anchor = _anchor(names)
    if helpers and HELPERS not in lines and (anchor is None or anchor.lineno < helpers[0].lineno):
        anchor = helpers[0]
    before = [node for node in touching if anchor is None or node.lineno <= anchor.lineno]
    first = before[0] if before and HELPERS in lines else anchor
    if first is not None and (first is not anchor or _may_move(anchor)):
        position = text.span(first)[0]
        indentation = text.indentation(position)
        if indentation is not None:
            joined = "".join(line + text.newline + indentation for line in lines)
            return [Edit(position, position, joined)]
    return [_after(text, tree, anchor, lines)]


def _may_move(anchor: ast.stmt) -> bool:
    """Whether the import may itself touch Keras or be taken away, so that others belong before it."""
    module = anchor.module or "" if isinstance(anchor, ast.ImportFrom) else ""
    return module.startswith(("tensorflow", "tf_slim")) or (
        isinstance(anchor, ast.Import) and _touches_keras(anchor)
    )


def _touches_keras(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if node.level or not module.startswith(("tf_slim", "tensorflow.")):
            return False
        if module.startswith(("tf_slim", "tensorflow.contrib", "tensorflow.keras")):
            return True
        inside = module.removeprefix("tensorflow.").removeprefix("compat.v1.")
        return any(prefix_in(f"{inside}.{alias.name}", LEGACY_KERAS) for alias in node.names)
    return any(
        alias.name.startswith(("tf_slim", "tensorflow.contrib", "tensorflow.keras"))
        for alias in node.names
    )


def _imports_helpers(node: ast.Import | ast.ImportFrom) -> bool:
    helpers = ("towermigrate.helpers", HELPERS_COPY)
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        return module.startswith(helpers) or (
            module == "towermigrate" and any(alias.name == "helpers" for alias in node.names)
        )
    return any(alias.name.startswith(helpers) for alias in node.names)


def _anchor(names: FileNames) -> ast.stmt | None:
    """The first import at module level (in a `try` or `if` too) of TensorFlow itself, else any part of it."""
    imports = [node for scope, node in names.imports if scope is names.module]
    whole = [
        node
        for node in imports
        if isinstance(node, ast.Import)
        and any(a.name in ("tensorflow", "tensorflow.compat.v1") for a in node.names)
        or isinstance(node, ast.ImportFrom)
        and node.module == "tensorflow.compat"
    ]
    part = [
        node
        for node in imports
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorflow")
    ]
    return next(iter(whole or part), None)


def _after(text: Text, tree: ast.Module, anchor: ast.stmt | None, lines: list[str]) -> Edit:
    if anchor is None:
        anchor = _last_of_head(tree)
    if anchor is None:
        return Edit(0, 0, "".join(line + text.newline for line in lines))
    indentation = text.indentation(text.span(anchor)[0])
    if indentation is None:
        # `try: import tensorflow as tf` on one line: after the whole statement.
        line = anchor.lineno
        anchor = next(n for n in tree.body if n.lineno <= line <= (n.end_lineno or n.lineno))
        indentation = ""
    end = text.line_end(text.span(anchor)[1])
    return Edit(end, end, "".join(text.newline + indentation + line for line in lines))


def _last_of_head(tree: ast.Module) -> ast.stmt | None:
    """The docstring or the last `from __future__` import: nothing may come before them."""
    last: ast.stmt | None = None
    for index, node in enumerate(tree.body):
        docstring = (
            index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        )
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if docstring or future:
            last = node
    return last
