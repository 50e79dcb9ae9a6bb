"""One file on its way from Python 2: its tree, who uses what in it, and edits by position."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from towermigrate.symbols.edits import Text
from towermigrate.symbols.scopes import below
from towermigrate.tree import parse_python

_Node = TypeVar("_Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass
class Source:
    """The syntax tree of a text, its parents, and the edits collected so far, outer ones first."""

    text: Text
    tree: ast.Module
    nodes: Sequence[ast.AST]
    """All nodes, in the order of `ast.walk`."""
    parents: dict[ast.AST, ast.AST]
    bound: frozenset[str]
    """Every name that the file binds anywhere: what is not in it and a builtin's name is the builtin."""
    kinds: Mapping[type[ast.AST], Sequence[ast.AST]]
    """The nodes by their class, each class in the order of `ast.walk`."""
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, text: str, tree: ast.Module | None = None) -> Source:
        tree = parse_python(text) if tree is None else tree
        parents: dict[ast.AST, ast.AST] = {}
        kinds: dict[type[ast.AST], list[ast.AST]] = {}
        nodes: list[ast.AST] = [tree]
        for node in nodes:
            kinds.setdefault(type(node), []).append(node)
            found = below(node)
            nodes += found
            for child in found:
                parents[child] = node
        source = cls(Text(text), tree, nodes, parents, frozenset(), kinds)
        source.bound = frozenset(_bound_names(source))
        return source

    def all(self, kind: type[_Node]) -> Sequence[_Node]:
        """Every node of one class, in the order of `ast.walk`."""
        return self.kinds.get(kind, ())  # type: ignore[return-value]

    def is_builtin(self, node: ast.AST, *names: str) -> bool:
        """Whether a node is one of these names, and they mean Python 2's builtins."""
        return isinstance(node, ast.Name) and node.id in names and node.id not in self.bound

    def replace(self, node: ast.expr | ast.stmt | ast.alias, new: str) -> None:
        self.edits.append((*self.text.span(node), new))

    def wrap(self, node: ast.expr, before: str, after: str = ")") -> None:
        start, end = self.text.span(node)
        self.edits += [(start, start, before), (end, end, after)]

    def replace_attribute(self, node: ast.Attribute, new: str) -> None:
        """Replace the name after the last dot."""
        end = self.text.span(node)[1]
        self.edits.append((end - len(node.attr), end, new))

    def result(self) -> str:
        """The text with all edits and imports; raises ValueError where edits overlap."""
        pieces: list[str] = []
        done = 0
        text = self.text.text
        for start, end, new in sorted([*self.edits, *self._added_imports()], key=lambda e: e[:2]):
            if start < done:
                raise ValueError(f"two changes meet at offset {start}")
            pieces += [text[done:start], new]
            done = end
        return "".join([*pieces, text[done:]])

    def _added_imports(self) -> list[tuple[int, int, str]]:
        there = {
            alias.name
            for node in self.tree.body
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.asname is None
        }
        lines = [f"import {name}" for name in sorted(self.imports - there)]
        if not lines:
            return []
        for node in self.tree.body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                continue
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            start = self.text.starts[first - 1]
            if self.text.text[start : self.text.offset(first, 0)].strip():
                break
            return [(start, start, "".join(line + self.text.newline for line in lines))]
        raise ValueError("there is no line for an import")


def _bound_names(source: Source) -> Iterator[str]:
    for name in source.all(ast.Name):
        if not isinstance(name.ctx, ast.Load):
            yield name.id
    for function in source.all(ast.FunctionDef):
        yield function.name
    for definition in source.all(ast.ClassDef):
        yield definition.name
    for argument in source.all(ast.arg):
        yield argument.arg
    for handler in source.all(ast.ExceptHandler):
        if handler.name is not None:
            yield handler.name
    for alias in source.all(ast.alias):
        yield alias.asname or alias.name.split(".")[0]


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` as a text, None for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None
