"""What only a person can decide about a program that was brought from Python 2, each a line and a few words."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator

from towermigrate.python2.source import Function, Source, dotted
from towermigrate.python2.tables import GONE, GONE_METHODS, GONE_MODULES

_BINARY_MODES = frozenset("rb wb ab rb+ wb+ r+b w+b".split())
_BYTES = frozenset(
    "pickle.load cPickle.load pickle.loads cPickle.loads struct.unpack struct.pack np.fromstring numpy.fromstring "
    "subprocess.check_output StringIO.StringIO cStringIO.StringIO zlib.compress zlib.decompress "
    "base64.b64encode base64.b64decode".split()
)
Remark = tuple[int, str]


def about_bytes(source: Source) -> list[Remark]:
    """Places where bytes are read or written: in Python 3 they are no text."""
    found: list[Remark] = []
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func) or ""
        modes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
        binary = any(isinstance(m, ast.Constant) and m.value in _BINARY_MODES for m in modes)
        if name in ("open", "file", "gzip.open", "bz2.BZ2File") and binary:
            found.append((node.lineno, f"{name} in a binary mode"))
        elif name in _BYTES or (name == "StringIO" and "StringIO" in source.bound):
            found.append((node.lineno, name))
        elif isinstance(node.func, ast.Attribute) and node.func.attr in ("decode", "encode"):
            if node.func.attr == "decode" or _is_text(node.args[:1], "hex", "base64", "zlib"):
                found.append((node.lineno, f".{node.func.attr}"))
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "urlopen":
            found.append((node.lineno, "urlopen"))
    return sorted(set(found))


def _is_text(nodes: list[ast.expr], *texts: str) -> bool:
    return any(isinstance(node, ast.Constant) and node.value in texts for node in nodes)


def about_meaning(source: Source) -> list[Remark]:
    """Places that Python 3 takes otherwise, other than divisions and bytes."""
    found = [*_gone(source), *_leaks(source)]
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        if source.is_builtin(node.func, "round"):
            found.append((node.lineno, "round takes halves to the even number"))
        elif source.is_builtin(node.func, "map") and ast.unparse(node).startswith("map(None"):
            found.append((node.lineno, "map needs a function"))
        elif source.is_builtin(node.func, "map") and len(node.args) > 2:
            found.append((node.lineno, "map ends with the shortest argument"))
        elif source.is_builtin(node.func, "exec") and len(node.args) == 1:
            if _function_of(source, node) is not None:
                found.append((node.lineno, "exec binds no local names"))
        elif (dotted(node.func) or "").startswith("random.") and "random" in source.bound:
            if (dotted(node.func) or "") == "random.seed":
                found.append((node.lineno, "the same seed draws other numbers"))
    return sorted(set(found))


def _gone(source: Source) -> Iterator[Remark]:
    for node in source.nodes:
        match node:
            case ast.Name(id=name) if name in GONE and source.is_builtin(node, name):
                yield node.lineno, f"there is no {name}"
            case ast.FunctionDef(name=name) if name in GONE_METHODS:
                yield node.lineno, f"{name} is not called"
            case ast.Name(id="__metaclass__", ctx=ast.Store()):
                yield node.lineno, "__metaclass__ has no effect"
            case ast.Call(func=ast.Attribute(attr="next"), args=[], keywords=[]):
                yield node.lineno, ".next() is next(…) for iterators"
            case ast.Import(names=names):
                for alias in names:
                    if alias.name in GONE_MODULES - {"urllib"}:
                        yield node.lineno, f"there is no module {alias.name}"
            case ast.ImportFrom(module=module, names=names, level=0):
                for alias in names:
                    if module in ("string", "itertools", "urllib") and not _is_there(module, alias):
                        yield node.lineno, f"{module} has no {alias.name}"
            case ast.Attribute(value=ast.Name(id="urllib"), attr=attr):
                if attr not in ("request", "parse", "error") and "urllib" in source.bound:
                    yield node.lineno, f"urllib has no {attr}"
            case ast.Attribute(value=ast.Name(id="string"), attr="maketrans" | "translate"):
                yield node.lineno, f"string.{node.attr} is a method of str"


def _is_there(module: str, alias: ast.alias) -> bool:
    return (
        alias.name == "*"
        or hasattr(importlib.import_module(module), alias.name)
        or (module == "urllib" and alias.name in ("request", "parse", "error"))
    )


def _leaks(source: Source) -> Iterator[Remark]:
    """Names that Python 2 kept after a list comprehension or an `except`, and that are read there."""
    stores: dict[tuple[ast.AST | None, str], list[tuple[int, int, bool]]] = {}
    loads: list[tuple[ast.AST | None, str, int, int]] = []
    for node in source.nodes:
        scope = _function_of(source, node)
        if isinstance(node, ast.arg) or (isinstance(node, ast.FunctionDef | ast.ClassDef)):
            name = node.arg if isinstance(node, ast.arg) else node.name
            stores.setdefault((scope, name), []).append((node.lineno, node.col_offset, False))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                stores.setdefault((scope, name), []).append((node.lineno, 0, False))
        elif isinstance(node, ast.Name):
            holder = _comprehension_of(source, node)
            if isinstance(node.ctx, ast.Load):
                if holder is None or node.id not in _targets(holder):
                    loads.append((scope, node.id, node.lineno, node.col_offset))
            elif holder is None or isinstance(holder, ast.ListComp):
                if holder is not None:
                    line, column = holder.end_lineno or 0, holder.end_col_offset or 0
                else:
                    line, column = _end_of_assignment(source, node)
                stores.setdefault((scope, node.id), []).append((line, column, holder is not None))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            stores.setdefault((scope, node.name), []).append((node.lineno, node.col_offset, False))
            end = (node.end_lineno or node.lineno, node.end_col_offset or 0, True)
            stores[scope, node.name].append(end)
    for scope, name, line, column in loads:
        earlier = [store for store in stores.get((scope, name), ()) if store[:2] <= (line, column)]
        if earlier and max(earlier)[2]:
            yield line, f"{name} has no longer the value of the comprehension or except above"


def _end_of_assignment(source: Source, node: ast.Name) -> tuple[int, int]:
    """Where a name has its new value: after what is assigned to it."""
    at: ast.AST = node
    while isinstance(source.parents[at], ast.Tuple | ast.List | ast.Starred):
        at = source.parents[at]
    parent = source.parents[at]
    if isinstance(parent, ast.Assign | ast.AugAssign):
        return parent.end_lineno or 0, (parent.end_col_offset or 0) + 1
    return node.lineno, node.col_offset


def _function_of(source: Source, node: ast.AST) -> ast.AST | None:
    """The function or class in whose scope a node stands, None for the module."""
    child, parent = node, source.parents.get(node)
    while parent is not None:
        if isinstance(parent, Function):
            inside = parent.body if isinstance(parent.body, list) else [parent.body]
            if child in inside or isinstance(child, ast.arguments):
                return parent
        elif isinstance(parent, ast.ClassDef) and child in parent.body:
            return parent
        child, parent = parent, source.parents.get(parent)
    return None


def _comprehension_of(source: Source, node: ast.AST) -> ast.expr | None:
    """The comprehension that binds or sees this node's name, the outermost where they are nested."""
    found: ast.expr | None = None
    parent = source.parents.get(node)
    while parent is not None and not isinstance(parent, ast.stmt | ast.Lambda):
        if isinstance(parent, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            found = parent
        parent = source.parents.get(parent)
    return found


def _targets(comprehension: ast.expr) -> set[str]:
    return {
        node.id
        for node in ast.walk(comprehension)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
