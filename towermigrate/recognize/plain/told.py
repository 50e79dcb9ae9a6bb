"""What towers print of themselves while they are built: printed by a loop of its own, in front of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from towermigrate.recognize.plain.averaged import is_settled
from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers

SAYS = ("print", "tf.logging.info", "logging.info")
_COUNTS = frozenset({"range", "xrange", "enumerate", "len"})
_TEXTS = frozenset({"str", "int", "float", "repr", "len"})
_OF_TEXTS = (
    ast.Constant | ast.Name | ast.BinOp | ast.JoinedStr | ast.FormattedValue | ast.Tuple | ast.operator
    | ast.expr_context
)  # fmt: skip


def told_in_front(file: PlainFile) -> list[Change]:
    """`print('tower %d' % i)` in a tower loop, where all that it prints is of its number and of what is the same before the loop."""
    if not any(f"{each}(" in file.text for each in SAYS):
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _of_loop(file, scope, loop, where)
    ]


def _of_loop(file: PlainFile, scope: Scope, loop: ast.For, where: str) -> list[Change]:
    said = [each for each in ast.walk(loop) if _says(each)]
    found = list(_always(loop.body))
    statements = [each for _, each in found]
    if not said or {id(each.value) for each in statements} != {id(each) for each in said}:
        return []
    targets = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    if loop.orelse or not goes_over_again(file, loop.iter) or not is_pythons(file, "print"):
        return []
    same = _Same(file, scope, loop, targets)
    if not all(same.is_text(arg) for each in said for arg in _arguments(each)):
        return []
    if any(same.is_changed(each.id) for each in ast.walk(loop.iter) if isinstance(each, ast.Name)):
        return []
    texts = [file.of(each) for each in statements]
    gone = [file.without(each) for each in statements]
    whole = all(
        start == file.starts[each.lineno - 1]
        for (start, _), each in zip(gone, statements, strict=True)
    )
    if not whole or any("\n" in each for each in texts):
        return []
    if any(len(body) == sum(one in statements for one in body) for body, _ in found):
        return []
    first = outermost(scope, loop)
    if any(
        first in each.body and _calls(each)
        for each in ast.walk(scope)
        if isinstance(each, ast.With)
    ):
        return []  # what is called there says something before the towers do, perhaps
    margin = file.alone(first)
    if margin is None or any(file.alone(each) is None for each in statements):
        return []
    head = file.text[file.start(loop) : file.end(loop.iter)]
    if "\n" in head:
        return []
    rows = "".join(f"{margin}    {each}\n" for each in texts)
    place = file.starts[first.lineno - 1]
    made = Change(place, place, (f"{margin}{head}:\n{rows}",), where)
    return [made, *(Change(*each, (), where) for each in gone)]


def _says(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in SAYS


def _always(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], ast.Expr]]:
    """The statements that say something whenever a tower is built, each with its block."""
    for each in body:
        if isinstance(each, ast.Expr) and _says(each.value):
            yield body, each
        elif isinstance(each, ast.With):
            yield from _always(each.body)


def _arguments(node: ast.AST) -> Sequence[ast.expr]:
    assert isinstance(node, ast.Call)
    return [*node.args, *(each.value for each in node.keywords)]


def goes_over_again(file: PlainFile, over: ast.expr) -> bool:
    """Whether a loop may go over something once more: a range, or lists that have a name and are written out."""
    for node in ast.walk(over):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name not in _COUNTS or node.keywords or not is_pythons(file, name):
                return False
        elif isinstance(node, ast.Attribute) and not is_settled(file, node):
            return False  # something of the program's own may run each time that it is asked
        elif not isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.expr_context):
            return False
    counted = [each.args[0] for each in ast.walk(over) if _counts(each) and each.args]
    if not all(isinstance(each, ast.Name) and _is_list(file, each.id) for each in counted):
        return False
    listed = over
    if isinstance(over, ast.Call):
        if ast.unparse(over.func) in ("range", "xrange"):
            return True
        listed = over.args[0] if over.args else over
    return isinstance(listed, ast.Name) and _is_list(file, listed.id)


def _counts(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "len"


def _is_list(file: PlainFile, name: str) -> bool:
    """Whether all that a name is bound to in a file are lists that are written out."""
    made = [
        isinstance(each, ast.Assign) and isinstance(each.value, ast.List | ast.ListComp)
        for each in file.nodes
        if isinstance(each, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For | ast.With)
        and any(
            isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load)
            for one in ast.walk(each)
            if not isinstance(each, ast.For | ast.With) or one in ast.walk(_binds(each))
        )
    ]
    return bool(made) and all(made) and bindings(file.tree, name) == len(made)


def _binds(node: ast.For | ast.With) -> ast.AST:
    if isinstance(node, ast.For):
        return node.target
    return ast.Tuple([each.optional_vars for each in node.items if each.optional_vars is not None])


class _Same:
    """What is the same before a loop as in each of its turns."""

    def __init__(self, file: PlainFile, scope: Scope, loop: ast.For, targets: set[str]) -> None:
        self.file, self.scope, self.loop, self.targets = file, scope, loop, targets
        self.stored = {
            each.attr
            for each in ast.walk(loop)
            if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load)
        }

    def is_text(self, node: ast.expr) -> bool:
        """Whether an expression is made of constants, the loop's own names, and names and settings that stay."""
        waiting: list[ast.AST] = [node]
        while waiting:
            each = waiting.pop()
            if isinstance(each, ast.Call):
                func = each.func
                of_text = (
                    isinstance(func, ast.Attribute)
                    and func.attr == "format"
                    and isinstance(func.value, ast.Constant)
                )
                name = ast.unparse(func)
                if not of_text and not (name in _TEXTS and is_pythons(self.file, name)):
                    return False
                waiting += _arguments(each)
            elif isinstance(each, ast.Attribute):
                if not isinstance(each.value, ast.Name) or not is_settled(self.file, each):
                    return False
                if each.attr in self.stored or self.is_changed(each.value.id):
                    return False
            elif isinstance(each, ast.Name):
                if each.id not in self.targets and (
                    self.is_changed(each.id) or not self._is_simple(each.id)
                ):
                    return False
            elif isinstance(each, _OF_TEXTS):
                waiting += ast.iter_child_nodes(each)
            else:
                return False
        return not any(
            isinstance(one, ast.Name) and one.id in self.targets and self._is_rebound(one.id)
            for one in ast.walk(node)
        )

    def is_changed(self, name: str) -> bool:
        """Whether a name may be bound anew in the loop: by it, or by a function that it calls."""
        if name in self.file.shared_between_functions or self.file.finds_names_by_text:
            return True
        return bindings(self._whole(), name) > 0

    def _is_rebound(self, name: str) -> bool:
        own = sum(isinstance(e, ast.Name) and e.id == name for e in ast.walk(self.loop.target))
        return bindings(self._whole(), name) > own

    def _whole(self) -> Scope:
        return ast.Module([self.loop], [])

    def _is_simple(self, name: str) -> bool:
        """Whether a name is bound once, to a constant or to a sum of such: no list that a tower may change."""
        scope: Scope = self.scope if bindings(self.scope, name) else self.file.tree
        if bindings(scope, name) != 1:
            return False
        for each in ast.walk(scope):
            match each:
                case ast.Assign(targets=[ast.Name(id=own)], value=value) if own == name:
                    return not any(
                        isinstance(one, ast.List | ast.Dict | ast.Set | ast.Call | ast.ListComp)
                        for one in ast.walk(value)
                    ) and all(
                        self._is_simple(one.id)
                        for one in ast.walk(value)
                        if isinstance(one, ast.Name) and one.id not in ("FLAGS",)
                    )
        return False


def outermost(scope: Scope, loop: ast.For) -> ast.stmt:
    """The loop, or the outermost block of graph scopes that holds nothing else."""
    parents: dict[int, ast.stmt] = {}
    for each in ast.walk(scope):
        if isinstance(each, ast.With) and len(each.body) == 1:
            parents[id(each.body[0])] = each
    found: ast.stmt = loop
    while (above := parents.get(id(found))) is not None and _only_scopes(above):
        found = above
    return found


def _calls(block: ast.With) -> bool:
    """Whether what a block opens is made by something other than TensorFlow."""
    return any(
        isinstance(each, ast.Call)
        and not ast.unparse(each.func).startswith("tf.")
        and not ast.unparse(each.func).endswith(".as_default")
        for item in block.items
        for each in ast.walk(item.context_expr)
    )


def _only_scopes(node: ast.stmt) -> bool:
    """Whether a block opens variable and name scopes alone."""
    return isinstance(node, ast.With) and all(
        isinstance(each.context_expr, ast.Call)
        and ast.unparse(each.context_expr.func) in ("tf.variable_scope", "tf.name_scope")
        and all(
            isinstance(one, ast.Constant) or ast.unparse(one) == "tf.get_variable_scope()"
            for one in _arguments(each.context_expr)
        )
        for each in node.items
    )
