"""What each scope of Python binds, as its text shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

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
