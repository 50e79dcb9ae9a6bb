"""Small questions about libcst nodes: dotted names, what a node reads, binds and changes."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
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


_MODULES_KEPT = 256
_lists: OrderedDict[cst.Module, list[cst.CSTNode]] = OrderedDict()
"""The nodes of the modules that were walked last, in source order."""
_places: dict[cst.CSTNode, tuple[list[cst.CSTNode], int, int]] = {}
"""Where a node and what is below it stand in the list of its module: the list, first index, index behind the last."""


def walk(node: cst.CSTNode, into_functions: bool = True) -> Iterator[cst.CSTNode]:
    """The node and everything below it but blanks and punctuation, in source order."""
    if not into_functions:
        return _walk_outside_functions(node)
    place = _places.get(node)
    if place is None:
        if not isinstance(node, cst.Module):
            return _walk(node)
        place = _listed(node)
    nodes, first, end = place
    return iter(nodes[first:end])


def extent(module: cst.Module, node: cst.CSTNode) -> tuple[int, int] | None:
    """Where a node and what is below it begin and end among the nodes of its module, in source order; None: elsewhere."""
    walk(module)
    place = _places.get(node)
    return None if place is None or place[0] is not _lists.get(module) else place[1:]


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        below = children(current)
        below.reverse()
        waiting.extend(below)


def _walk_outside_functions(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        below = children(current)
        waiting.extend(
            c for c in reversed(below) if not isinstance(c, cst.FunctionDef | cst.ClassDef)
        )


def _listed(module: cst.Module) -> tuple[list[cst.CSTNode], int, int]:
    """List a module's nodes, which are walked again and again; the oldest lists go."""
    nodes: list[cst.CSTNode] = []
    open_nodes: list[tuple[cst.CSTNode, int]] = []
    waiting: list[cst.CSTNode | None] = [module]
    while waiting:
        current = waiting.pop()
        if current is None:  # all below the node opened last is listed
            node, first = open_nodes.pop()
            _places[node] = nodes, first, len(nodes)
            continue
        below = children(current)
        if below:
            open_nodes.append((current, len(nodes)))
            waiting.append(None)
            below.reverse()
            waiting.extend(below)
        else:
            _places[current] = nodes, len(nodes), len(nodes) + 1
        nodes.append(current)
    _lists[module] = nodes
    if len(_lists) > _MODULES_KEPT:
        for node in _lists.popitem(last=False)[1]:
            if node in _places and _places[node][0] is not nodes:
                del _places[node]
    return _places[module]


def calls(node: cst.CSTNode) -> list[cst.Call]:
    return [n for n in walk(node) if n.__class__ is cst.Call]  # libcst has no class below it


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


def counted_by(call: cst.Call) -> cst.BaseExpression | None:
    """The number of turns that what a `range` is given says: `n`, `0, n`, `0, n, 1`; None where it says another.

    Example:
        >>> code(counted_by(cst.parse_expression("range(0, n)")))
        'n'
    """
    if any(arg.star or arg.keyword is not None for arg in call.args):
        return None
    given = [arg.value for arg in call.args]
    if len(given) == 1:
        return given[0]
    if len(given) not in (2, 3) or integer(given[0]) != 0:
        return None
    return given[1] if len(given) == 2 or integer(given[2]) == 1 else None


def elements(node: cst.CSTNode) -> list[cst.BaseExpression] | None:
    """The items of a list or tuple display, None for anything else or when one is starred."""
    if not isinstance(node, cst.List | cst.Tuple):
        return None
    if any(isinstance(e, cst.StarredElement) for e in node.elements):
        return None
    return [e.value for e in node.elements]


class _Names:
    """What nodes read, bind and change: `visit` goes through them as a `libcst.CSTVisitor` does, in a tenth of the time."""

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: dict[str, None] = {}
        self.changed: dict[str, None] = {}

    def visit(self, node: cst.CSTNode) -> None:
        visit = getattr(self, f"visit_{type(node).__name__}", None)
        if visit is None or visit(node) is not False:
            for child in children(node):
                self.visit(child)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self.visit(node.value)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        self.visit(node.value)
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
                        self.visit(part)
                root = root.value
            if isinstance(root, cst.Name):
                self.changed[root.value] = None
                self.read[root.value] = None

    def visit_Assign(self, node: cst.Assign) -> bool:
        self.visit(node.value)
        for target in node.targets:
            self._bind(target.target)
        return False

    def visit_AnnAssign(self, node: cst.AnnAssign) -> bool:
        if node.value is not None:
            self.visit(node.value)
            self._bind(node.target)
        return False

    def visit_AugAssign(self, node: cst.AugAssign) -> bool:
        self.visit(node.value)
        self.visit(node.target)
        if isinstance(node.target, cst.Name):
            self.bound[node.target.value] = None
            self.changed[node.target.value] = None
        else:
            self._bind(node.target)
        return False

    def visit_For(self, node: cst.For) -> bool:
        self.visit(node.iter)
        self._bind(node.target)
        self.visit(node.body)
        if node.orelse is not None:
            self.visit(node.orelse)
        return False

    def visit_WithItem(self, node: cst.WithItem) -> bool:
        self.visit(node.item)
        if node.asname is not None:
            self._bind(node.asname.name)
        return False

    def visit_ExceptHandler(self, node: cst.ExceptHandler) -> bool:
        if node.type is not None:
            self.visit(node.type)
        if node.name is not None:
            self._bind(node.name.name)
        self.visit(node.body)
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
            inner.visit(base)
        inner.visit(node.body)
        for name in inner.read:
            if name not in inner.bound:
                self.read[name] = None
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        inner = _Names()
        inner.visit(node.body)
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
            inner.visit(loop.iter)
            inner._bind(loop.target)
            for condition in loop.ifs:
                inner.visit(condition)
            loop = loop.inner_for_in
        if isinstance(node, cst.DictComp):
            inner.visit(node.key)
            inner.visit(node.value)
        elif isinstance(node, cst.BaseSimpleComp):
            inner.visit(node.elt)
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
    visitor.visit(node)
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


@lru_cache(maxsize=64)
def bound_below(
    scope: cst.CSTNode,
    kinds: frozenset[type],
    targets: Callable[[cst.CSTNode], Sequence[cst.CSTNode]],
) -> Mapping[str, Sequence[cst.CSTNode]]:
    """The nodes of some kinds below a function or module that bind each name, in source order.

    Args:
        scope: where to look, in inner functions too.
        kinds: of which types the nodes are.
        targets: what a node of them binds.
    """
    found: dict[str, list[cst.CSTNode]] = {}
    for each in walk(scope):
        if type(each) in kinds:
            below = [one for target in targets(each) for one in walk(target)]
            for name in {one.value for one in below if isinstance(one, cst.Name)}:
                found.setdefault(name, []).append(each)
    return found
