"""Which names of a file stand for TensorFlow, scope by scope, from its syntax tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from towermigrate.symbols.bindings import (
    NOTHING,
    OTHER,
    Given,
    Scope,
    Use,
    chain_of,
    import_bindings,
)
from towermigrate.symbols.tables import load_names

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Import = ast.Import | ast.ImportFrom
Node = TypeVar("Node", bound=ast.AST)
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class _Walk:
    """The one walk over a file: its scopes, what is bound in them, and every node that something is asked of.

    No recursion, so that no depth of nesting is too much for it, and no order: what depends on one is sorted
    afterwards.
    """

    def __init__(self, tree: ast.Module, given: Given) -> None:
        self.given = given
        self.module = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        self.nodes: defaultdict[type[ast.AST], list[Any]] = defaultdict(list)
        self.aliases: list[tuple[Scope, str, ast.expr]] = []
        self.chains: list[ast.expr] = []
        """The values of aliases that may be chains of names."""
        self.imports: list[tuple[Scope, Import]] = []
        self.roots: defaultdict[str, list[tuple[ast.Name | ast.Attribute, Scope]]]
        self.roots = defaultdict(list)
        """The outermost node of every chain that is read, and its scope, by the chain's first name."""
        self._waiting: list[tuple[Scope, list[ast.AST]]] = [(self.module, list(tree.body))]
        while self._waiting:
            self._scope(*self._waiting.pop())

    def _scope(self, scope: Scope, stack: list[ast.AST]) -> None:
        """All of one scope; the scopes in it are put on the waiting list."""
        nodes, roots, table = self.nodes, self.roots, _TABLE
        attributes = nodes[ast.Attribute]
        while stack:
            node: Any = stack.pop()
            kind = node.__class__
            if kind is ast.Name:
                if node.ctx.__class__ is ast.Load:
                    roots[node.id].append((node, scope))
                else:
                    scope.bind(node.id, OTHER)
                continue
            if kind is ast.Attribute:
                root: Any = node
                while root.__class__ is ast.Attribute:
                    attributes.append(root)
                    root = root.value
                if root.__class__ is ast.Name:
                    roots[root.id].append((node, scope))
                else:
                    stack.append(root)
                continue
            entry = table.get(kind)
            if entry is None:
                continue
            nodes[kind].append(node)
            names, special = entry
            if special is not None and special(self, scope, stack, node):
                continue
            for name in names:
                child = getattr(node, name)
                if child.__class__ is list:
                    stack += child
                else:
                    stack.append(child)

    def _import(self, scope: Scope, stack: list[ast.AST], node: Import) -> bool:
        self.imports.append((scope, node))
        given = dict(self.bindings_given(node))
        for name, meaning in import_bindings(node):
            scope.bind(name, given.pop(name, meaning))
        for name, meaning in given.items():
            scope.bind(name, meaning)
        return True

    def bindings_given(self, node: Import) -> Iterator[tuple[str, str]]:
        """What an import binds to TensorFlow's names that a module of the tree has."""
        if not self.given or not isinstance(node, ast.ImportFrom):
            return
        there = self.given.get((node.level, node.module or ""))
        if there is None:
            return
        for alias in node.names:
            if alias.name == "*":
                yield from there.star.items()
            elif alias.name in there.names:
                yield alias.asname or alias.name, there.names[alias.name]

    def _assign(self, scope: Scope, stack: list[ast.AST], node: ast.Assign) -> bool:
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Name):
            return False
        self.aliases.append((scope, target.id, node.value))
        if node.value.__class__ in (ast.Name, ast.Attribute):
            self.chains.append(node.value)
        stack.append(node.value)
        return True

    def _named_expression(self, scope: Scope, stack: list[ast.AST], node: ast.NamedExpr) -> bool:
        while isinstance(scope.node, Comprehension) and scope.parent is not None:
            scope = scope.parent
        scope.bind(node.target.id, OTHER)
        stack.append(node.value)
        return True

    def _handler_or_pattern(
        self,
        scope: Scope,
        stack: list[ast.AST],
        node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar,
    ) -> bool:
        if node.name:
            scope.bind(node.name, OTHER)
        return False

    def _mapping_pattern(self, scope: Scope, stack: list[ast.AST], node: ast.MatchMapping) -> bool:
        if node.rest:
            scope.bind(node.rest, OTHER)
        return False

    def _outer(self, scope: Scope, stack: list[ast.AST], node: ast.Global | ast.Nonlocal) -> bool:
        scope.outer.update(node.names)
        return True

    def _class(self, scope: Scope, stack: list[ast.AST], node: ast.ClassDef) -> bool:
        scope.bind(node.name, OTHER)
        stack += [*node.decorator_list, *node.bases, *node.keywords]
        self._inside(scope, node, list(node.body))
        return True

    def _function(self, scope: Scope, stack: list[ast.AST], node: Function) -> bool:
        """Defaults, decorators and annotations belong to the scope around the function."""
        of = node.args
        stack += [*of.defaults, *(d for d in of.kw_defaults if d)]
        body: list[ast.AST]
        if isinstance(node, ast.Lambda):
            body = [node.body]
        else:
            body = list(node.body)
            scope.bind(node.name, OTHER)
            stack += node.decorator_list
            if node.returns:
                stack.append(node.returns)
        inner = self._inside(scope, node, body)
        for argument in (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg):
            if argument is not None:
                inner.bind(argument.arg, OTHER)
                if argument.annotation:
                    stack.append(argument.annotation)
        return True

    def _comprehension(self, scope: Scope, stack: list[ast.AST], node: Comprehension) -> bool:
        self._inside(scope, node, list(ast.iter_child_nodes(node)))
        return True

    def _inside(self, scope: Scope, node: ast.AST, parts: list[ast.AST]) -> Scope:
        inner = self.scopes[node] = Scope(node, scope)
        self._waiting.append((inner, parts))
        return inner


_LEAVES = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
_NO_NODES = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "module", "level"}
)
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in _NO_NODES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind is not ast.Constant
    if not issubclass(kind, _LEAVES)
}
"""The fields of each class of nodes that can hold nodes; constants, operators and the like have none."""

_SPECIAL: dict[type[ast.AST], Callable[[_Walk, Scope, list[ast.AST], Any], bool]] = {
    ast.Import: _Walk._import,
    ast.ImportFrom: _Walk._import,
    ast.Assign: _Walk._assign,
    ast.NamedExpr: _Walk._named_expression,
    ast.ExceptHandler: _Walk._handler_or_pattern,
    ast.MatchAs: _Walk._handler_or_pattern,
    ast.MatchStar: _Walk._handler_or_pattern,
    ast.MatchMapping: _Walk._mapping_pattern,
    ast.Global: _Walk._outer,
    ast.Nonlocal: _Walk._outer,
    ast.ClassDef: _Walk._class,
    ast.FunctionDef: _Walk._function,
    ast.AsyncFunctionDef: _Walk._function,
    ast.Lambda: _Walk._function,
    ast.ListComp: _Walk._comprehension,
    ast.SetComp: _Walk._comprehension,
    ast.DictComp: _Walk._comprehension,
    ast.GeneratorExp: _Walk._comprehension,
}
"""What binds a name or opens a scope; each says whether it dealt with the nodes below as well."""
_TABLE = {kind: (names, _SPECIAL.get(kind)) for kind, names in _CHILDREN.items()}


def below(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node as `ast.iter_child_nodes` gives them, without contexts and operators."""
    found: list[ast.AST] = []
    for name in _CHILDREN.get(node.__class__, ()):
        child = getattr(node, name)
        if child.__class__ is list:
            found += [each for each in child if isinstance(each, ast.AST)]
        elif isinstance(child, ast.AST):
            found.append(child)
    return found


def names_below(*nodes: ast.AST) -> set[str]:
    """The names in some nodes, themselves included."""
    found: set[str] = set()
    waiting: list[Any] = list(nodes)
    while waiting:
        node = waiting.pop()
        kind = node.__class__
        if kind is ast.Name:
            found.add(node.id)
        elif kind is ast.Attribute:
            waiting.append(node.value)
        else:
            for name in _CHILDREN.get(kind, ()):
                child = getattr(node, name)
                if child.__class__ is list:
                    waiting += child
                else:
                    waiting.append(child)
    return found


def _place(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


@dataclass(frozen=True)
class FileNames:
    """All TensorFlow names of one file, in source order. `ambiguous` are roots that mean several things at once, with these.

    `nodes` holds the nodes of the file by class (names, constants and operators aside), `imports` its imports
    with the scope that each binds names in: who asks something of them need not walk the tree again. `brought` are
    its names that other files of the tree give it, as `given` says.
    """

    module: Scope
    scopes: dict[ast.AST, Scope]
    uses: tuple[Use, ...]
    ambiguous: tuple[tuple[ast.Name, frozenset[str]], ...]
    nodes: Mapping[type[ast.AST], Sequence[Any]]
    imports: tuple[tuple[Scope, Import], ...]
    brought: frozenset[str] = frozenset()
    given: Given = field(default_factory=dict)

    @cached_property
    def dotted(self) -> frozenset[str]:
        """The whole names that are used, each once."""
        return frozenset(use.dotted for use in self.uses)

    def of(self, kind: type[Node]) -> Sequence[Node]:
        """Every node of one class, in no order."""
        return self.nodes.get(kind, ())


def file_names(tree: ast.Module, given: Given = NOTHING) -> FileNames:
    """Resolve every name chain of `tree` that starts at TensorFlow, through imports and plain aliases.

    `given` is what other files of the tree give to this one.
    """
    walk = _Walk(tree, given)
    imported = {
        (id(scope), name)
        for scope, node in walk.imports
        for name, meaning in [*import_bindings(node), *walk.bindings_given(node)]
        if meaning != OTHER
    }
    names = {name for _, name in imported}
    if any((chain := chain_of(value)) and chain[0].id in names for value in walk.chains):
        _bind_aliases(walk, imported)
        names = {n for s in walk.scopes.values() for n, m in s.bound.items() if m != {OTHER}}
    else:
        for scope, name, value in walk.aliases:
            target = walk.module if name in scope.outer else scope
            if not (_is_none(value) and (id(target), name) in imported):
                target.bind(name, OTHER)
    names |= _bind_stars(walk)
    uses: list[Use] = []
    ambiguous: list[tuple[ast.Name, frozenset[str]]] = []
    for name in names:
        for node, scope in walk.roots.get(name, ()):
            meaning = scope.meaning(name)
            chain = chain_of(node)
            assert chain is not None
            if meaning is None:
                if len(meanings := scope.lookup(name)) > 1:
                    ambiguous.append((chain[0], frozenset(meanings)))
            else:
                dotted = ".".join([meaning, *(link.attr for link in chain[1])])
                uses.append(Use(*chain, meaning, dotted, scope))
    return FileNames(
        walk.module,
        walk.scopes,
        tuple(sorted(uses, key=lambda use: _place(use.root))),
        tuple(sorted(ambiguous, key=lambda found: _place(found[0]))),
        walk.nodes,
        tuple(sorted(walk.imports, key=lambda found: _place(found[1]))),
        frozenset(name for _, node in walk.imports for name, _ in walk.bindings_given(node))
        if given
        else frozenset(),
        given,
    )


def _bind_stars(walk: _Walk) -> set[str]:
    """Bind what `from tensorflow import *` brings and the file reads, unless it binds the name itself; gives the names."""
    found: set[str] = set()
    for scope, node in walk.imports:
        module = node.module if isinstance(node, ast.ImportFrom) and node.level == 0 else None
        if module in ("tensorflow", "tensorflow.compat.v1") and node.names[0].name == "*":
            table = load_names()
            for name in walk.roots:
                if not scope.bound.get(name) and (name == "contrib" or table.has(name)):
                    scope.bind(name, f"{module}.{name}")
                    found.add(name)
    return found


def _is_none(value: ast.expr) -> bool:
    """Whether a value says only that there is none: `except ImportError: tf = None`."""
    return isinstance(value, ast.Constant) and value.value is None


def _bind_aliases(walk: _Walk, imported: set[tuple[int, str]]) -> None:
    """Bind every `name = value`, in source order. `imported` are the scopes (by id) and names that imports bind."""
    aliased: set[tuple[int, str]] = set()
    for scope, name, value in sorted(walk.aliases, key=lambda alias: _place(alias[2])):
        meaning = OTHER
        chain = chain_of(value)
        meanings = scope.lookup(chain[0].id) if chain is not None else set()
        if chain is not None and len(meanings) == 1 and meanings != {OTHER}:
            whole = ".".join([next(iter(meanings)), *(link.attr for link in chain[1])])
            # Only an alias of a module matters: it stands before further names. A lower-case end is one.
            if whole.rpartition(".")[2].islower():
                meaning = whole
        target = walk.module if name in scope.outer else scope
        if _is_none(value) and (id(target), name) in imported:
            continue
        target.bind(name, meaning)
        aliased.add((id(target), name))
    for scope in walk.scopes.values():
        for name, meanings in scope.bound.items():
            # `x = tf.nn.relu` beside other values of `x` says nothing about `x`.
            key = (id(scope), name)
            if len(meanings) > 1 and OTHER in meanings and key in aliased and key not in imported:
                scope.bound[name] = {OTHER}
