"""Names: what each scope of Python binds, and where a name is looked for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from towermigrate.flow.store import Cells
from towermigrate.flow.values import Key, Value


def named(name: str) -> Key:
    return ("name", name)


@dataclass(eq=False)
class Scope:
    """The names of a module, of a class's body, of one call of a function or of a comprehension.

    `elsewhere` maps the names that `global` and `nonlocal` declare to the scopes that hold them. `local` are the names
    that Python takes for the scope's own throughout, wherever they are bound.
    """

    path: str
    cells: Cells = field(default_factory=dict)
    parent: Scope | None = None
    local: frozenset[str] = frozenset()
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    in_class: bool = False
    comprehension: bool = False
    captured: bool = False
    """Whether a function that was made in it may outlive it."""

    def holder(self, name: str) -> Scope | None:
        """The scope that a name is read from; None where none has it."""
        scope: Scope | None = self
        while scope is not None:
            scope = scope.elsewhere.get(name, scope)
            if named(name) in scope.cells:
                return scope
            if name in scope.local:
                return None  # unbound, whatever scopes around it have
            scope = scope.parent
        return None

    def lookup(self, name: str) -> Value | None:
        holder = self.holder(name)
        return None if holder is None else holder.cells[named(name)]

    def capture(self) -> None:
        """A function is made here: what it reads of the scopes around it stays, when those have ended."""
        scope: Scope | None = self
        while scope is not None and not scope.captured:
            scope.captured = True
            scope = scope.parent

    @property
    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def bound_in(body: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements bind in their own scope, but those declared to be of another."""
    found: set[str] = set()
    others: set[str] = set()
    for node in own_nodes(body):
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                found.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Import() | ast.ImportFrom():
                found |= {a.asname or a.name.split(".")[0] for a in node.names if a.name != "*"}
            case ast.ExceptHandler(name=str() as name):
                found.add(name)
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                found.add(name)
            case ast.MatchMapping(rest=str() as name):
                found.add(name)
            case ast.Global() | ast.Nonlocal():
                others |= set(node.names)
    return frozenset(found - others)


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Nodes of a scope without those of the scopes in it; a walrus in a comprehension binds outside of that."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _OWN_SCOPE):
            continue
        if isinstance(node, _COMPREHENSIONS):
            waiting += [each.target for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
            continue
        waiting += ast.iter_child_nodes(node)


@lru_cache(4096)
def yields(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a function is a generator."""
    body = node.body if isinstance(node.body, list) else [node.body]
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(body))
