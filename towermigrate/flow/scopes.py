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


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def bound_in(body: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements bind in their own scope, but those declared to be of another."""
    return frozenset(bindings(body))


def bindings(body: Iterable[ast.AST]) -> dict[str, list[ast.AST]]:
    """The names of `bound_in`, each with the nodes that bind it, in source order."""
    found: dict[str, list[ast.AST]] = {}
    others: set[str] = set()
    for node in own_nodes(body):
        names: list[str | None] = []
        match node:
            case ast.Assign() | ast.Delete():
                names += [name for target in node.targets for name in names_of(target)]
            case ast.AnnAssign(value=None):
                pass
            case ast.AugAssign() | ast.AnnAssign() | ast.NamedExpr() | ast.For() | ast.AsyncFor():
                names += names_of(node.target)
            case ast.With() | ast.AsyncWith():
                entered = [item.optional_vars for item in node.items]
                names += [name for target in entered if target for name in names_of(target)]
            case ast.Import() | ast.ImportFrom():
                names += [(a.asname or a.name).split(".")[0] for a in node.names if a.name != "*"]
            case ast.MatchMapping():
                names.append(node.rest)
            case ast.Global() | ast.Nonlocal():
                others |= set(node.names)
            case (
                ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()
                | ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar()
            ):  # fmt: skip
                names.append(node.name)
        for name in names:
            if name:
                found.setdefault(name, []).append(node)
    return {name: nodes for name, nodes in found.items() if name not in others}


def names_of(target: ast.AST) -> list[str]:
    """The names that an assignment to a target binds."""
    return [
        each.id
        for each in ast.walk(target)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]


def parameters(node: Definition) -> list[str]:
    """The names of a function's parameters."""
    args = node.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return [each.arg for each in named if each is not None]


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the scopes in it, in source order.

    A function or class in it is given, with what is evaluated where it is made: defaults, decorators and bases. So is a
    comprehension, with what it goes over first, and with what a walrus in it binds outside of it.
    """
    waiting = list(body)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Definition):
            inner: list[ast.AST] = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            inner += getattr(node, "decorator_list", ())
        elif isinstance(node, ast.ClassDef):
            inner = [*node.bases, *(each.value for each in node.keywords), *node.decorator_list]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from (each for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
            inner = [node.generators[0].iter]
        else:
            inner = list(ast.iter_child_nodes(node))
        waiting += reversed(inner)


@lru_cache(4096)
def yields(node: Definition) -> bool:
    """Whether a function is a generator."""
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(body_of(node)))


def body_of(node: Definition | ast.Module) -> list[ast.AST]:
    """What a scope runs."""
    return [node.body] if isinstance(node, ast.Lambda) else list(node.body)
