"""Small questions about libcst nodes: dotted names, what a node reads, binds and changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import lru_cache

import libcst as cst

_EMPTY = cst.Module(body=[])
_MUTATORS = {"append", "extend", "insert", "update", "add", "pop", "remove", "setdefault", "clear"}


def code(node: cst.CSTNode) -> str:
    """The source text of a node, without surrounding blank lines."""
    return _EMPTY.code_for_node(node).strip()


def dotted(node: cst.CSTNode) -> str | None:
    """`a.b.c` of a chain of plain names, else None."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if isinstance(node, cst.Name):
        parts.append(node.value)
        return ".".join(reversed(parts))
    return None


_ORDER: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.FunctionDef: ("decorators", "asynchronous", "name", "params", "returns", "body"),
    cst.ClassDef: ("decorators", "name", "bases", "keywords", "body"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.Parameters: ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.Arg: ("keyword", "value"),
}
"""Fields of a node that hold more nodes, in source order; filled in for the other classes as they come."""

_LAYOUT = re.compile(
    r"whitespace|lpar|rpar|lbrac|rbrac|comma|semicolon|equal|dot$|colon|leading_lines|lines_after|header|footer"
    r"|trailing|newline|indent|star$"
)


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes right below a node, in source order, blanks and punctuation left out."""
    kind = type(node)
    names = _ORDER.get(kind)
    if names is None:
        names = tuple(f.name for f in fields(kind) if not _LAYOUT.search(f.name))
        _ORDER[kind] = names
    found: list[cst.CSTNode] = []
    for name in names:
        value = getattr(node, name)
        if _is_node(value):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(v for v in value if _is_node(v))
    return found


_NODES: dict[type, bool] = {}
"""Whether a class is one of nodes; asking an abstract class is slow."""


def _is_node(value: object) -> bool:
    kind = type(value)
    known = _NODES.get(kind)
    if known is None:
        known = _NODES[kind] = issubclass(kind, cst.CSTNode)
    return known


def walk(node: cst.CSTNode, into_functions: bool = True) -> Iterator[cst.CSTNode]:
    """The node and everything below it but blanks and punctuation, in source order."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        below = children(current)
        if not into_functions:
            below = [c for c in below if not isinstance(c, cst.FunctionDef | cst.ClassDef)]
        waiting.extend(reversed(below))


def calls(node: cst.CSTNode) -> list[cst.Call]:
    return [n for n in walk(node) if isinstance(n, cst.Call)]


def argument(call: cst.Call, position: int | None, keyword: str) -> cst.BaseExpression | None:
    """The value of an argument given by keyword, or at `position` (0-based) among the positional ones."""
    index = 0
    for arg in call.args:
        if arg.star:
            return None
        if arg.keyword is not None:
            if arg.keyword.value == keyword:
                return arg.value
        else:
            if index == position:
                return arg.value
            index += 1
    return None


def integer(node: cst.CSTNode | None) -> int | None:
    return int(node.value, 0) if isinstance(node, cst.Integer) else None


def text(node: cst.CSTNode | None) -> str | None:
    """The value of a plain string literal."""
    if isinstance(node, cst.SimpleString):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


def elements(node: cst.CSTNode) -> list[cst.BaseExpression] | None:
    """The items of a list or tuple display, None for anything else or when one is starred."""
    if not isinstance(node, cst.List | cst.Tuple):
        return None
    if any(isinstance(e, cst.StarredElement) for e in node.elements):
        return None
    return [e.value for e in node.elements]


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: dict[str, None] = {}
        self.changed: dict[str, None] = {}

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.read[node.value] = None

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            self._alias(alias)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        if not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                self._alias(alias)
        return False

    def _alias(self, alias: cst.ImportAlias) -> None:
        if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
            self.bound[alias.asname.name.value] = None
        else:
            name = dotted(alias.name)
            if name:
                self.bound[name.split(".")[0]] = None

    def _bind(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self.bound[target.value] = None
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value)
        else:
            root: cst.CSTNode = target
            while isinstance(root, cst.Attribute | cst.Subscript):
                if isinstance(root, cst.Subscript):
                    for part in root.slice:
                        part.visit(self)
                root = root.value
            if isinstance(root, cst.Name):
                self.changed[root.value] = None
                self.read[root.value] = None

    def visit_Assign(self, node: cst.Assign) -> bool:
        node.value.visit(self)
        for target in node.targets:
            self._bind(target.target)
        return False

    def visit_AnnAssign(self, node: cst.AnnAssign) -> bool:
        if node.value is not None:
            node.value.visit(self)
            self._bind(node.target)
        return False

    def visit_AugAssign(self, node: cst.AugAssign) -> bool:
        node.value.visit(self)
        node.target.visit(self)
        if isinstance(node.target, cst.Name):
            self.bound[node.target.value] = None
            self.changed[node.target.value] = None
        else:
            self._bind(node.target)
        return False

    def visit_For(self, node: cst.For) -> bool:
        node.iter.visit(self)
        self._bind(node.target)
        node.body.visit(self)
        if node.orelse is not None:
            node.orelse.visit(self)
        return False

    def visit_WithItem(self, node: cst.WithItem) -> bool:
        node.item.visit(self)
        if node.asname is not None:
            self._bind(node.asname.name)
        return False

    def visit_ExceptHandler(self, node: cst.ExceptHandler) -> bool:
        if node.type is not None:
            node.type.visit(self)
        if node.name is not None:
            self._bind(node.name.name)
        node.body.visit(self)
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.bound[node.name.value] = None
        for name in free_names(node):
            self.read[name] = None
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self.bound[node.name.value] = None
        inner = _Names()
        for base in node.bases:
            base.visit(inner)
        node.body.visit(inner)
        for name in inner.read:
            if name not in inner.bound:
                self.read[name] = None
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        inner = _Names()
        node.body.visit(inner)
        own = set(_parameters(node.params))
        for name in inner.read:
            if name not in own:
                self.read[name] = None
        for name in _default_names(node.params):
            self.read[name] = None
        return False

    def _comprehension(self, node: cst.BaseComp) -> bool:
        inner = _Names()
        loop: cst.CompFor | None = node.for_in
        while loop is not None:
            loop.iter.visit(inner)
            inner._bind(loop.target)
            for condition in loop.ifs:
                condition.visit(inner)
            loop = loop.inner_for_in
        if isinstance(node, cst.DictComp):
            node.key.visit(inner)
            node.value.visit(inner)
        elif isinstance(node, cst.BaseSimpleComp):
            node.elt.visit(inner)
        for name in inner.read:
            if name not in inner.bound:
                self.read[name] = None
        for name in inner.changed:
            self.changed[name] = None
        return False

    def visit_ListComp(self, node: cst.ListComp) -> bool:
        return self._comprehension(node)

    def visit_SetComp(self, node: cst.SetComp) -> bool:
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> bool:
        return self._comprehension(node)

    def visit_DictComp(self, node: cst.DictComp) -> bool:
        return self._comprehension(node)

    def visit_Call(self, node: cst.Call) -> None:
        func = node.func
        if isinstance(func, cst.Attribute) and func.attr.value in _MUTATORS:
            root: cst.CSTNode = func.value
            while isinstance(root, cst.Attribute | cst.Subscript):
                root = root.value
            if isinstance(root, cst.Name):
                self.changed[root.value] = None


def _parameters(params: cst.Parameters) -> list[str]:
    every = [*params.posonly_params, *params.params, *params.kwonly_params]
    names = [p.name.value for p in every]
    for star in (params.star_arg, params.star_kwarg):
        if isinstance(star, cst.Param):
            names.append(star.name.value)
    return names


def _default_names(params: cst.Parameters) -> set[str]:
    found: set[str] = set()
    for param in [*params.posonly_params, *params.params, *params.kwonly_params]:
        if param.default is not None:
            found |= set(reads(param.default))
    return found


def parameters(function: cst.FunctionDef) -> list[str]:
    """Names of a function's parameters, in order."""
    return _parameters(function.params)


@lru_cache(maxsize=10_000)
def _names(node: cst.CSTNode) -> _Names:
    visitor = _Names()
    node.visit(visitor)
    return visitor


def reads(node: cst.CSTNode) -> list[str]:
    """Names whose value the node uses, free names of nested functions included, in order."""
    return list(_names(node).read)


def binds(node: cst.CSTNode) -> list[str]:
    """Names that the node assigns in its own scope (assignment, for, with, import, def)."""
    return list(_names(node).bound)


def changes(node: cst.CSTNode) -> list[str]:
    """Names whose object the node alters in place (`x.append(…)`, `x[i] = …`, `x += …`)."""
    return list(_names(node).changed)


def free_names(function: cst.FunctionDef) -> list[str]:
    """Names a function takes from around it: read in its body, neither parameter nor bound there."""
    inner = _names(function.body)
    own = set(inner.bound) | set(parameters(function))
    outside = [n for n in inner.read if n not in own]
    outside.extend(_default_names(function.params))
    for decorator in function.decorators:
        outside.extend(reads(decorator))
    return outside


def statements(block: cst.BaseSuite | cst.Module) -> Sequence[cst.BaseStatement]:
    """The statements of a block; those of a one-line suite (`if a: b`) become lines of their own."""
    if isinstance(block, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(body=block.body)]
    return [s for s in block.body if isinstance(s, cst.BaseStatement)]


def small(statement: cst.BaseStatement) -> cst.BaseSmallStatement | None:
    """The one small statement of a line, None for compound statements and `a; b`."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        return statement.body[0]
    return None


def assigned(statement: cst.BaseStatement) -> tuple[list[str], cst.BaseExpression] | None:
    """`(names, value)` of `a = value` or `a, b = value`; None for everything else."""
    node = small(statement)
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        target = node.targets[0].target
        if isinstance(target, cst.Name):
            return [target.value], node.value
        items = elements(target)
        if items is not None and all(isinstance(i, cst.Name) for i in items):
            return [i.value for i in items if isinstance(i, cst.Name)], node.value
    return None
