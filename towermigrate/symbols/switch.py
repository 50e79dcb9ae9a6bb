"""Where `disable_v2_behavior()` goes in a script: behind its imports, and before anything that could build a graph."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from towermigrate.symbols.bindings import chain_of
from towermigrate.symbols.edits import Edit, Text
from towermigrate.symbols.scopes import FileNames, file_names
from towermigrate.tree import parse_python

CALL = "disable_v2_behavior()"
# Neither importing these nor calling what they have builds a graph.
_QUIET = sys.stdlib_module_names | frozenset(
    "numpy scipy matplotlib six absl past future cv2 PIL pandas tqdm yaml easydict h5py skimage sklearn mpi4py psutil "
    "requests imageio librosa lmdb nltk gym torch joblib dill ujson simplejson toml termcolor colorama tabulate".split()
)


@dataclass(frozen=True)
class Alias:
    """A name that means TensorFlow in a file, or with `v1` its `compat.v1`."""

    name: str
    v1: bool = False

    @property
    def compat(self) -> str:
        """How `tf.compat.v1` is written with it."""
        return self.name if self.v1 else f"{self.name}.compat.v1"


def free_alias(names: FileNames) -> str | None:
    """A name under which a file may import TensorFlow at its outermost level; None where all are taken."""
    for name in ("tf", "tensorflow"):
        taken = (scope.bound.get(name) for scope in names.scopes.values())
        if all(meanings is None or meanings == {"tensorflow"} for meanings in taken):
            return name
    return None


def import_of(alias: str) -> str:
    """The statement that gives TensorFlow this name."""
    return "import tensorflow" if alias == "tensorflow" else f"import tensorflow as {alias}"


def switch_edit(
    text: Text, tree: ast.Module, names: FileNames, alias: Alias | None, *, early: bool = False
) -> Edit | None:
    """The edit that puts the switch into a script, None where there is no place for it.

    Args:
        text: the script.
        tree: its syntax tree.
        names: its names.
        alias: what means TensorFlow at its outermost level, None where nothing does.
        early: a module that the script imports builds a part of a graph as it is imported: the switch comes
            before all imports that may lead to it.
    """
    body = list(_leading(tree, names))
    at = None if alias is None else _imports_alias(tree, names, alias.name)
    if alias is not None and at in body and not (early and _has_foreign(body[: body.index(at)])):
        following = () if early else body[body.index(at) + 1 :]
        place = _place(text, at, following)
        if place is not None:
            # After the imports that are put behind the same line.
            call = f"{alias.compat}.{CALL}"
            return Edit(place, place, f"{text.newline * 2}{call}", depth=2)
    own = alias.name if alias is not None and not alias.v1 else free_alias(names)
    if own is None:
        return None
    lines = f"{import_of(own)}{text.newline * 2}{own}.compat.v1.{CALL}"
    head = [node for node in body if _is_head(node)] if early else body
    last = next((node for node in reversed(head) if _is_head(node) or _is_import(node)), None)
    if last is None:
        return Edit(0, 0, f"{lines}{text.newline}", depth=2)
    place = _place(text, last, ())
    return None if place is None else Edit(place, place, f"{text.newline}{lines}", depth=2)


def with_switch(source: str, *, early: bool) -> str | None:
    """A script that does not mention TensorFlow with the switch; None where there is no place for it."""
    tree = parse_python(source)
    edit = switch_edit(Text(source), tree, file_names(tree), None, early=early)
    return None if edit is None else source[: edit.start] + edit.new + source[edit.end :]


def _leading(tree: ast.Module, names: FileNames) -> Iterator[ast.stmt]:
    """The statements of a file before the first that may build a part of a graph."""
    quiet = {*vars(builtins), *_QUIET}
    for scope, each in names.imports:
        if scope is names.module and not _is_foreign(each):
            quiet.update(alias.asname or alias.name.split(".")[0] for alias in each.names)
    for node in tree.body:
        if not (_is_head(node) or _is_import(node) or _is_quiet(node, quiet)):
            return
        yield node


def _is_head(node: ast.stmt) -> bool:
    """A docstring or an import from `__future__`: nothing may come before them."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_import(node: ast.stmt) -> bool:
    """An import, or a `try` or `if` around nothing else of weight."""
    if isinstance(node, ast.Try):
        blocks = [node.body, node.orelse, node.finalbody, *(each.body for each in node.handlers)]
        return all(_is_import(inner) for inner in node.body) and all(
            _is_import(inner) or _is_plain(inner) for block in blocks for inner in block
        )
    if isinstance(node, ast.If):
        inside = [*node.body, *node.orelse]
        return any(map(_is_import, inside)) and all(
            _is_import(inner) or _is_plain(inner) for inner in inside
        )
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_plain(node: ast.stmt) -> bool:
    """A statement that calls nothing."""
    return not any(isinstance(part, ast.Call) for part in ast.walk(node)) or isinstance(
        node, ast.Raise
    )


def _is_quiet(node: ast.stmt, quiet: set[str]) -> bool:
    """A statement that calls nothing but builtins and functions of quiet modules."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return not node.decorator_list
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            chain = chain_of(call.func)
            if chain is not None and chain[0].id not in quiet:
                return False
    return True


def _is_foreign(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether what an import runs may build a part of a graph: it is neither Python's own nor known to be quiet."""
    if isinstance(node, ast.ImportFrom):
        return bool(node.level) or (node.module or "").split(".")[0] not in _QUIET
    return any(alias.name.split(".")[0] not in _QUIET for alias in node.names)


def _has_foreign(nodes: list[ast.stmt]) -> bool:
    return any(
        _is_foreign(part)
        for node in nodes
        if _is_import(node)
        for part in ast.walk(node)
        if isinstance(part, ast.Import | ast.ImportFrom)
    )


def _imports_alias(tree: ast.Module, names: FileNames, alias: str) -> ast.stmt | None:
    """The statement at the outermost level in which TensorFlow gets its name."""
    for scope, node in names.imports:
        if scope is not names.module:
            continue
        bound = {each.asname or each.name.split(".")[0] for each in node.names}
        if alias in bound or ("*" in bound and alias in names.brought):
            return next(
                each
                for each in tree.body
                if each.lineno <= node.lineno <= (each.end_lineno or each.lineno)
            )
    return None


def _place(text: Text, first: ast.stmt, following: list[ast.stmt] | tuple[()]) -> int | None:
    """The end of the line of the last import of those that follow a statement, if only imports stand between them."""
    place: int | None = None
    for node in (first, *following):
        if node is not first and not _is_import(node):
            break
        end = text.span(node)[1]
        at = text.line_end(end)
        if not text.text[end:at].partition("#")[0].strip():
            place = at
    return place
