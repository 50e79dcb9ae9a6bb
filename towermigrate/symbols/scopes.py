"""Which names of a file stand for TensorFlow, scope by scope, from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
OTHER = "?"
"""What a name is bound to when it is not a TensorFlow name."""


@dataclass
class Scope:
    """One scope and what each of its names is bound to: dotted TensorFlow names, or `OTHER`."""

    node: ast.AST
    parent: Scope | None
    bound: dict[str, set[str]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)

    def bind(self, name: str, meaning: str) -> None:
        self.bound.setdefault(name, set()).add(meaning)

    def lookup(self, name: str) -> set[str]:
        """Every meaning of `name` seen from this scope; empty when nothing in the file binds it."""
        scope: Scope | None = self
        if name in self.outer:
            scope = self.parent
        first = True
        while scope is not None:
            hidden = isinstance(scope.node, ast.ClassDef) and not first
            if name in scope.bound and not hidden and name not in scope.outer:
                return scope.bound[name]
            scope, first = scope.parent, False
        return set()


@dataclass(frozen=True)
class Use:
    """One name chain that starts at a TensorFlow name: `tf.train.Saver` with `root` the node of `tf`.

    `chain` is the outermost attribute node, `links` the attribute nodes from the inside out, `meaning` what
    the root is bound to, `dotted` the whole name: `tensorflow.train.Saver`.
    """

    root: ast.Name
    links: tuple[ast.Attribute, ...]
    meaning: str
    dotted: str
    scope: Scope

    @property
    def chain(self) -> ast.Name | ast.Attribute:
        return self.links[-1] if self.links else self.root


def is_tensorflow(dotted: str) -> bool:
    return dotted.split(".")[0] in ("tensorflow", "tf_slim")


def _import_bindings(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            local = alias.asname or alias.name.split(".")[0]
            origin = alias.name if alias.asname else local
        else:
            local = alias.asname or alias.name
            origin = f"{node.module}.{alias.name}" if node.level == 0 else OTHER
        yield local, origin if is_tensorflow(origin) else OTHER


class _Binder(ast.NodeVisitor):
    """First walk: every binding of every scope."""

    def __init__(self, tree: ast.Module) -> None:
        self.scopes: dict[ast.AST, Scope] = {}
        self.current = self.scopes[tree] = Scope(tree, None)
        self.aliases: list[tuple[Scope, str, ast.expr]] = []
        self.generic_visit(tree)

    def _inside(self, node: ast.AST, parts: list[ast.AST]) -> None:
        outer = self.current
        self.current = self.scopes[node] = Scope(node, outer)
        for part in parts:
            self.visit(part)
        self.current = outer

    def visit_Import(self, node: ast.Import) -> None:
        for name, meaning in _import_bindings(node):
            self.current.bind(name, meaning)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for name, meaning in _import_bindings(node):
            self.current.bind(name, meaning)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            self.aliases.append((self.current, target.id, node.value))
        else:
            for each in node.targets:
                self.visit(each)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.current.bind(node.id, OTHER)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        scope = self.current
        while isinstance(scope.node, Comprehension) and scope.parent is not None:
            scope = scope.parent
        scope.bind(node.target.id, OTHER)
        self.visit(node.value)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.current.bind(node.name, OTHER)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.current.bind(node.name, OTHER)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.current.bind(node.name, OTHER)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.current.bind(node.rest, OTHER)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.current.outer.update(node.names)
        module = self.current
        while module.parent is not None:
            module = module.parent
        for name in node.names:
            if name in self.current.bound:
                module.bind(name, OTHER)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.current.outer.update(node.names)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.current.bind(node.name, OTHER)
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        self._inside(node, list(node.body))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node)

    def _function(self, node: Function) -> None:
        outside: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        if not isinstance(node, ast.Lambda):
            self.current.bind(node.name, OTHER)
            outside += node.decorator_list
            if node.returns:
                outside.append(node.returns)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [a for a in (node.args.vararg, node.args.kwarg) if a]
        outside += [a.annotation for a in arguments if a.annotation]
        for part in outside:
            self.visit(part)
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
        outer = self.current
        self.current = self.scopes[node] = Scope(node, outer)
        for argument in arguments:
            self.current.bind(argument.arg, OTHER)
        for part in body:
            self.visit(part)
        self.current = outer

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def _comprehension(self, node: Comprehension) -> None:
        self._inside(node, list(ast.iter_child_nodes(node)))


def chain_of(node: ast.expr) -> tuple[ast.Name, tuple[ast.Attribute, ...]] | None:
    """The root name and the attribute nodes, inside out, of `a.b.c`; None for any other expression."""
    links: list[ast.Attribute] = []
    while isinstance(node, ast.Attribute):
        links.append(node)
        node = node.value
    return (node, tuple(reversed(links))) if isinstance(node, ast.Name) else None


class _Uses(ast.NodeVisitor):
    """Second walk: every chain that starts at a TensorFlow name."""

    def __init__(self, tree: ast.Module, scopes: dict[ast.AST, Scope]) -> None:
        self.scopes = scopes
        self.current = scopes[tree]
        self.found: list[Use] = []
        self.ambiguous: list[ast.Name] = []
        self.generic_visit(tree)

    def visit(self, node: ast.AST) -> None:
        inner = self.scopes.get(node)
        if inner is None:
            super().visit(node)
            return
        outer = self.current
        # Defaults, decorators and annotations belong to the scope around; a name that the function itself
        # rebinds is the only case where that matters, so only they are visited outside.
        outside = _outside_parts(node)
        for part in outside:
            self.visit(part)
        self.current = inner
        for part in ast.iter_child_nodes(node):
            if part not in outside:
                self.visit(part)
        self.current = outer

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain = chain_of(node)
        if chain is None:
            self.generic_visit(node)
        else:
            self._use(*chain)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(node, ())

    def _use(self, root: ast.Name, links: tuple[ast.Attribute, ...]) -> None:
        meanings = self.current.lookup(root.id)
        known = {m for m in meanings if m != OTHER}
        if not known:
            return
        if len(meanings) > 1:
            self.ambiguous.append(root)
            return
        meaning = next(iter(known))
        dotted = ".".join([meaning, *(link.attr for link in links)])
        self.found.append(Use(root, links, meaning, dotted, self.current))


def _outside_parts(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    if isinstance(node, Function):
        parts: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        if not isinstance(node, ast.Lambda):
            parts += node.decorator_list
        return parts
    return []


@dataclass(frozen=True)
class FileNames:
    """All TensorFlow names of one file. `ambiguous` are roots that mean two things at once."""

    module: Scope
    scopes: dict[ast.AST, Scope]
    uses: tuple[Use, ...]
    ambiguous: tuple[ast.Name, ...]


def file_names(tree: ast.Module) -> FileNames:
    """Resolve every name chain of `tree` that starts at TensorFlow, through imports and plain aliases."""
    binder = _Binder(tree)
    aliased: set[tuple[int, str]] = set()
    imported = {
        (id(scope), name)
        for scope in binder.scopes.values()
        for name, meanings in scope.bound.items()
        if meanings != {OTHER}
    }
    for scope, name, value in binder.aliases:
        chain = chain_of(value)
        meaning = OTHER
        if chain is not None:
            meanings = scope.lookup(chain[0].id)
            whole = (
                ".".join([next(iter(meanings)), *(x.attr for x in chain[1])]) if meanings else OTHER
            )
            # Only an alias of a module matters: it stands before further names. A lower-case end is one.
            if len(meanings) == 1 and is_tensorflow(whole) and whole.rpartition(".")[2].islower():
                meaning = whole
        target = scope
        if name in scope.outer:
            while target.parent is not None:
                target = target.parent
        target.bind(name, meaning)
        aliased.add((id(target), name))
    for each in binder.scopes.values():
        for name, meanings in each.bound.items():
            # `x = tf.nn.relu` beside other values of `x` says nothing about `x`.
            key = (id(each), name)
            if key in aliased - imported and len(meanings) > 1 and OTHER in meanings:
                each.bound[name] = {OTHER}
    uses = _Uses(tree, binder.scopes)
    return FileNames(binder.scopes[tree], binder.scopes, tuple(uses.found), tuple(uses.ambiguous))
