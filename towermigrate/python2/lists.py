"""Where Python 2 gave a list and Python 3 gives a view or an iterator: `list(...)` where that matters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.python2.source import Source, dotted

_TAKES_ALL = ("list", "tuple", "set", "frozenset", "sorted", "sum", "min", "max", "dict")
_TAKES_ALL_METHODS = frozenset({"join", "extend"})
_ARRAYS = frozenset({"array", "asarray", "permutation"})
_GOES_ONCE = frozenset({"apply_gradients", "update", "writerows"})
"""Methods of libraries that make a list of what they are given, or go through it once."""
_VIEWS = frozenset({"keys", "values", "items"})
_CHANGES = frozenset("pop popitem update clear setdefault".split())
_KNOWN_LISTS = ("range", "xrange", "enumerate", "list", "sorted", "tuple", "zip", "len")


def make_lists(source: Source) -> None:
    """Wrap `map`, `filter`, `zip`, `range`, `keys`, `values` and `items` where their result is used as a list."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            kind = _kind(source, node)
            if kind is not None and not _consumed(source, node, kind):
                source.wrap(node, "list(")


def gone_through_once(source: Source) -> list[int]:
    """The lines where Python 2 gives a list and Python 3 what can be gone through once, and neither raises an error there."""
    return sorted(
        {
            node.lineno
            for node in source.all(ast.Call)
            if (kind := _kind(source, node)) in ("map", "filter", "zip")
            and not _goes_through(source, node, kind)
        }
    )


def _goes_through(source: Source, node: ast.Call, kind: str) -> bool:
    """Whether all of it is taken where it stands, so that it is the same in both but for when a function of `map` is called."""
    parent = source.parents[node]
    if isinstance(parent, ast.For | ast.comprehension) and parent.iter is node:
        return True
    if isinstance(parent, ast.Call) and source.is_builtin(parent.func, "enumerate", "zip"):
        return _goes_through(source, parent, kind)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
        if node in parent.args and parent.func.attr in _GOES_ONCE:
            return True
    return _consumed(source, node, kind)


def key_from_cmp(source: Source) -> None:
    """`sorted(xs, cmp=f)` and `xs.sort(f)` to `key=functools.cmp_to_key(f)`."""
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        method = isinstance(node.func, ast.Attribute) and node.func.attr == "sort"
        if not method and not source.is_builtin(node.func, "sorted"):
            continue
        names = {keyword.arg for keyword in node.keywords}
        place = 0 if method else 1
        if "key" in names or len(node.args) > place + 1:
            continue
        for keyword in node.keywords:
            if keyword.arg == "cmp":
                start, (value_start, end) = source.text.span(node)[0], source.text.span(keyword.value)  # fmt: skip
                start = source.text.offset(keyword.lineno, keyword.col_offset)
                source.edits += [
                    (start, value_start, "key=functools.cmp_to_key("),
                    (end, end, ")"),
                ]
                source.imports.add("functools")
        function = node.args[place] if len(node.args) == place + 1 else None
        if isinstance(function, ast.Lambda | ast.Name) and (not method or not names):
            source.wrap(function, "key=functools.cmp_to_key(")
            source.imports.add("functools")


def _kind(source: Source, node: ast.Call) -> str | None:
    if source.is_builtin(node.func, "map") and _maps_none(node):
        return None
    if source.is_builtin(node.func, "map", "filter", "zip", "range"):
        assert isinstance(node.func, ast.Name)
        return node.func.id
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in _VIEWS
        and not node.args
        and not node.keywords
    ):
        return "view"
    return None


def _maps_none(node: ast.Call) -> bool:
    """Whether a call is Python 2's `map(None, …)`, which no function of Python 3 does."""
    first = node.args[0] if node.args else None
    return isinstance(first, ast.Constant) and first.value is None


def _consumed(source: Source, node: ast.expr, kind: str) -> bool:
    """Whether what is around an expression takes all of it at once, or takes what is no list as well."""
    parent = source.parents[node]
    match parent:
        case ast.Call(func=func) if node in parent.args:
            if source.is_builtin(func, *_TAKES_ALL):
                return True
            if isinstance(func, ast.Attribute) and func.attr in _TAKES_ALL_METHODS:
                return True
            if source.is_builtin(func, "enumerate", "zip"):
                return kind not in ("map", "filter") and _consumed(source, parent, kind)
            if kind == "range" and isinstance(func, ast.Attribute) and func.attr in _ARRAYS:
                return True
            if source.is_builtin(func, "iter"):
                return kind not in ("map", "filter")
            return kind in ("range", "view") and source.is_builtin(func, "len", "reversed")
        case ast.Starred():
            return True
        case ast.For(iter=iterable) if iterable is node:
            return _safe_in_loop(source, node, kind, parent.body)
        case ast.comprehension(iter=iterable) if iterable is node:
            return _safe_in_loop(source, node, kind, [])
        case ast.Compare(ops=ops) if node in parent.comparators:
            membership = isinstance(ops[parent.comparators.index(node)], ast.In | ast.NotIn)
            return membership and kind in ("range", "view")
        case ast.Assign(targets=[ast.Tuple() | ast.List()]):
            return True
        case ast.Subscript(value=value, slice=index) if value is node:
            return kind == "range" and not isinstance(index, ast.Slice)
        case ast.If() | ast.While() | ast.UnaryOp(op=ast.Not()):
            return kind in ("range", "view")
    return False


def _safe_in_loop(source: Source, node: ast.expr, kind: str, body: list[ast.stmt]) -> bool:
    """Whether it is the same to go through `node` bit by bit as to make a list of it first."""
    if kind == "range":
        return True
    if kind in ("map", "filter"):
        return False
    if kind == "zip":
        calls = [part for zipped in _calls(node, "zip") for part in zipped.args]
        return all(_gives_list(source, part) for part in calls if isinstance(part, ast.Call))
    texts = {
        ast.unparse(part.func.value)
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in _VIEWS
    }
    return not any(ast.unparse(changed) in texts for changed in _changed(body))


def _calls(node: ast.expr, name: str) -> Iterator[ast.Call]:
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == name:
            yield part


def _changed(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """What a loop adds keys to or takes keys from."""
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                    yield value
                case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _CHANGES:
                    yield value


def _gives_list(source: Source, node: ast.Call) -> bool:
    if source.is_builtin(node.func, *_KNOWN_LISTS):
        return True
    name = dotted(node.func) or ""
    root = name.split(".")[0]
    return root in ("tf", "tensorflow", "np", "numpy") or name.endswith(("as_list", ".split"))
