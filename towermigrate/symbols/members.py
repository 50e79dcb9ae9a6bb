"""Members that changed without a name of their own: `.value` of a dimension of a shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal, get_args

from towermigrate.symbols.bindings import Scope
from towermigrate.symbols.edits import Edit
from towermigrate.symbols.scopes import below
from towermigrate.symbols.work import Pass

Kind = Literal["shape", "dimension"]
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_ASKED = (ast.Attribute, ast.Name, ast.Assign, ast.For, ast.arg, *get_args(_Comprehension))
"""What `_Kinds` asks something of."""


def rewrite_dimensions(work: Pass) -> None:
    """`x.get_shape()[1].value` -> `tf.compat.dimension_value(x.get_shape()[1])`, for names of it too."""
    if "value" not in work.text.text or "shape" not in work.text.text:
        return
    values = {
        id(node)
        for node in work.names.of(ast.Attribute)
        if node.attr == "value" and isinstance(node.value, ast.Subscript | ast.Name)
    }
    if not values:
        return
    known = _Kinds(work)
    for node, scope in known.nodes:
        if id(node) not in values or not isinstance(node, ast.Attribute):
            continue
        if not isinstance(node.ctx, ast.Load) or known.kind(node.value, scope) != "dimension":
            continue
        function = work.spelled("tf.compat.dimension_value")
        if function is None:
            work.find(
                "TM117", node, "needs `import tensorflow as tf`: use tf.compat.dimension_value here"
            )
            continue
        (start, middle), (_, end) = work.text.span(node.value), work.text.span(node)
        if work.replace(middle, end, ")", node):
            # Outside of what else begins here: the name of an argument comes before it.
            work.edits.append(Edit(start, start, f"{function}(", depth=1))


class _Kinds:
    """Which names hold a shape or a dimension, scope by scope: those that are bound to nothing else."""

    def __init__(self, work: Pass) -> None:
        self.scopes = work.names.scopes
        self.nodes = [
            found
            for found in _with_scopes(work.tree, work.names.module, self.scopes)
            if isinstance(found[0], _ASKED)
        ]
        self.bindings: dict[tuple[int, str], set[Kind | None]] = {}
        # Twice: a name may be bound to a part of another name.
        for _ in range(2):
            self.bindings = self._bindings()

    def kind(self, node: ast.expr, scope: Scope) -> Kind | None:
        if isinstance(node, ast.Call):
            shape = isinstance(node.func, ast.Attribute) and node.func.attr == "get_shape"
            return "shape" if shape and not node.args else None
        if isinstance(node, ast.Attribute):
            return "shape" if node.attr == "shape" else None
        if isinstance(node, ast.Subscript) and self.kind(node.value, scope) == "shape":
            return "shape" if isinstance(node.slice, ast.Slice) else "dimension"
        if isinstance(node, ast.Name):
            return self._of_name(node.id, scope)
        return None

    def _of_name(self, name: str, scope: Scope | None) -> Kind | None:
        while scope is not None:
            if name in scope.bound and name not in scope.outer:
                kinds = self.bindings.get((id(scope), name), {None})
                return next(iter(kinds)) if len(kinds) == 1 else None
            scope = scope.parent
        return None

    def _bindings(self) -> dict[tuple[int, str], set[Kind | None]]:
        found: dict[tuple[int, str], set[Kind | None]] = {}
        known: set[int] = set()
        for node, scope in self.nodes:
            for target, kind in self._targets(node, scope):
                where = scope
                if isinstance(node, _Comprehension):
                    where = self.scopes[node]
                found.setdefault((id(where), target.id), set()).add(kind)
                known.add(id(target))
        for node, scope in self.nodes:
            if isinstance(node, ast.arg):
                found.setdefault((id(scope), node.arg), set()).add(None)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                if id(node) not in known:
                    found.setdefault((id(scope), node.id), set()).add(None)
        return found

    def _targets(self, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.Name, Kind | None]]:
        """Names that a statement binds to a value whose kind can be told."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, kind = node.targets[0], self.kind(node.value, scope)
            if isinstance(target, ast.Name):
                yield target, kind
            elif isinstance(target, ast.Tuple | ast.List) and kind == "shape":
                yield from ((e, "dimension") for e in target.elts if isinstance(e, ast.Name))
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            shape = self.kind(node.iter, scope) == "shape"
            yield node.target, "dimension" if shape else None
        elif isinstance(node, _Comprehension):
            for part in node.generators:
                shape = self.kind(part.iter, scope) == "shape"
                if isinstance(part.target, ast.Name):
                    yield part.target, "dimension" if shape else None


def _with_scopes(
    node: ast.AST, scope: Scope, scopes: dict[ast.AST, Scope]
) -> Iterator[tuple[ast.AST, Scope]]:
    """Every node below `node` with the scope that it stands in; a function itself stands in the outer one."""
    todo = [(child, scope) for child in below(node)]
    while todo:
        child, where = todo.pop()
        yield child, where
        inner = scopes.get(child, where)
        todo += [(part, inner) for part in below(child)]
