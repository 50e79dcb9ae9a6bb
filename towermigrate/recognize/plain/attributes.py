"""Attributes of the object that builds the towers: one a statement, each kept once, by the method that makes the value.

`self.x, self.y = X, Y`, `self.loss = self.cost = loss`, `self.loss = loss = …`, `self.x = None` in front of where it is made,
and `self.x, self.loss = self.build()` of a method that returns them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, sets_of
from towermigrate.recognize.plain.collected import is_tower_loop, once_in
from towermigrate.recognize.python_scopes import last_of, own_nodes

_SETS = re.compile(r"__setattr__|__getattr|__slots__|\bproperty\b|\.setter\b|__set__")
_LOOKS = re.compile(r"\b[hg]etattr\b|\bhasattr\b|\bsetattr\b|\bdelattr\b|__dict__|\bvars\(|AttributeError")  # fmt: skip


def attributes_returned(file: PlainFile) -> list[Change]:
    """`self.x, self.loss = self.build()` as `self.build()`, which keeps them itself."""
    found: list[Change] = []
    for node, methods in plain_classes(file):
        for method in methods.values():
            for statement in once_in(method):
                found += _returned(file, node, methods, method, statement)
    return found


def attributes_apart(file: PlainFile) -> list[Change]:
    """Each attribute of a statement that keeps several by a statement of its own."""
    return [
        change
        for node, methods in plain_classes(file)
        for method in methods.values()
        for each in own_nodes(method)
        if isinstance(each, ast.Assign)
        for change in _apart(file, node, method, each)
    ]


def attributes_once(file: PlainFile) -> list[Change]:
    """Without the `self.x = None` in front of where `self.x` is made."""
    if _LOOKS.search(file.text) or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for node, methods in plain_classes(file):
        init = methods.get("__init__")
        if init is None:
            continue
        gone = [
            each
            for each in once_in(init)
            if isinstance(each, ast.Assign) and _is_first(file, methods, init, each)
        ]
        for each in gone:
            if file.alone(each) is not None and not file.commented(*file.span(each)):
                if len(init.body) > len(gone):
                    found.append(Change(*file.without(each), (), node.name))
    return found


_Methods = dict[str, ast.FunctionDef]


def plain_classes(file: PlainFile) -> Iterator[tuple[ast.ClassDef, _Methods]]:
    """The classes of a file that build towers, of which no other class is one, and their methods."""
    if _SETS.search(file.text):
        return
    for node in building_classes(file):
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        yield node, {each.name: each for each in methods if holder_of(each)}


def building_classes(file: PlainFile) -> Iterator[ast.ClassDef]:
    """The classes of a file that build towers, of which no other class is one; what sets their attributes is not asked."""
    for node in file.tree.body if "class " in file.text else ():
        if not isinstance(node, ast.ClassDef) or node.decorator_list or node.keywords:
            continue
        if [ast.unparse(each) for each in node.bases] not in ([], ["object"]):
            continue
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        names = {each.name for each in methods}
        loops = [each for method in methods for each in own_nodes(method)]
        if not any(isinstance(each, ast.For) and is_tower_loop(each) for each in loops):
            continue
        bases = [
            base.id
            for each in file.nodes
            if isinstance(each, ast.ClassDef)
            for base in each.bases
            if isinstance(base, ast.Name)
        ]
        if len(names) == len(methods) and node.name not in bases:
            yield node


@lru_cache(maxsize=256)
def holder_of(method: ast.FunctionDef) -> str:
    """What a method calls the object; nothing where that is bound anew, or it is not a plain method."""
    if not method.args.args or method.args.posonlyargs or method.decorator_list:
        return ""
    name = method.args.args[0].arg
    bound = [
        each
        for each in ast.walk(method)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        or isinstance(each, ast.arg) and each.arg == name
    ]  # fmt: skip
    return name if len(bound) == 1 else ""


def _attribute(node: ast.AST, holder: str) -> str:
    """`x` of `self.x`."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == holder:
            return attr
    return ""


# ---- several in one statement -------------------------------------------------------------------------


def _apart(
    file: PlainFile, node: ast.ClassDef, method: ast.FunctionDef, statement: ast.Assign
) -> Iterator[Change]:
    holder, margin = holder_of(method), file.alone(statement)
    start, end = file.span(statement)
    if margin is None or file.commented(start, end):
        return
    rows: list[tuple[Part, ...]] = []
    match statement.targets, statement.value:
        case [ast.Tuple(elts=targets)], ast.Tuple(elts=values) if len(targets) == len(values) > 1:
            if not all(_attribute(each, holder) for each in targets):
                return
            if not all(_unmoved(file, each, method) for each in values[1:]):
                return
            if any(isinstance(each, ast.Starred) for each in values):
                return
            if all(isinstance(each, ast.Constant) for each in values):
                return
            for target, value in zip(targets, values, strict=True):
                rows.append((file.span(target), " = ", file.span(value)))
        case [_, _, *_] as targets, value:
            kept = [each for each in targets if _attribute(each, holder)]
            named = [each for each in targets if isinstance(each, ast.Name)]
            if not kept or len(kept) + len(named) != len(targets):
                return
            if any(each.id in file.shared_between_functions for each in named):
                return
            text: Part = file.span(value)
            if named:
                given: list[Part] = [part for each in named for part in (each.id, " = ")]
                rows.append((*given, file.span(value)))
                text = named[0].id
            elif not isinstance(value, ast.Constant) and not (
                isinstance(value, ast.Name) and _unmoved(file, value, method)
            ):
                name = file.free(method, _attribute(kept[0], holder))
                rows.append((name, " = ", file.span(value)))
                text = name
            rows += [(file.span(each), " = ", text) for each in kept]
        case _:
            return
    parts: list[Part] = []
    for row in rows:
        parts += [f"\n{margin}" if parts else "", *row]
    yield Change(start, end, tuple(parts), node.name)


def _unmoved(file: PlainFile, node: ast.expr, method: ast.FunctionDef) -> bool:
    """Whether an expression is the same before and after an attribute is kept: TensorFlow's functions know nothing of the object."""
    holder = holder_of(method)
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id == holder:
            return False
        if isinstance(each, ast.Name) and each.id in file.shared_between_functions:
            return False
        if isinstance(each, ast.Call) and not ast.unparse(each.func).startswith("tf."):
            return False
        if isinstance(each, ast.Lambda | ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
    return True


# ---- what a method returns ----------------------------------------------------------------------------


def _returned(
    file: PlainFile,
    node: ast.ClassDef,
    methods: _Methods,
    method: ast.FunctionDef,
    statement: ast.stmt,
) -> Iterator[Change]:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    holder, (target,) = holder_of(method), statement.targets
    kept = target.elts if isinstance(target, ast.Tuple) else [target]
    name = _attribute(statement.value.func, holder) if isinstance(statement.value, ast.Call) else ""
    names = [_attribute(each, holder) for each in kept]
    inner = methods.get(name)
    if inner is None or inner is method or not all(names) or len(set(names)) != len(names):
        return
    if not _is_named_once(file, name) or _is_of_values(methods, inner, statement.value, holder):
        return
    returns = [each for each in own_nodes(inner) if isinstance(each, ast.Return)]
    last = last_of(inner)
    if returns != [last] or not isinstance(last, ast.Return) or last.value is None:
        return
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(inner)):
        return
    values = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    if isinstance(target, ast.Tuple) != isinstance(last.value, ast.Tuple):
        return
    if len(values) != len(kept) or any(isinstance(each, ast.Starred) for each in values):
        return
    start, end = file.span(statement)
    first, final = file.span(last)
    if file.commented(start, end) or file.commented(first, final):
        return
    own = ", ".join(f"{holder_of(inner)}.{each}" for each in names)
    yield Change(start, end, (file.span(statement.value),), node.name)
    yield Change(first, final, (f"{own} = ", file.span(last.value)), node.name)


def _is_of_values(methods: _Methods, inner: ast.FunctionDef, call: ast.expr, holder: str) -> bool:
    """Whether a method knows nothing of the object but its methods, and is given something that the object holds.

    It is a function like any other; read in place, a placeholder that it is given would have a second name.
    """
    own = holder_of(inner)
    known = [
        isinstance(each, ast.Attribute) and each.attr in methods
        for each in ast.walk(inner)
        if isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id == own
    ]
    uses = sum(isinstance(each, ast.Name) and each.id == own for each in ast.walk(inner))
    given = [each for each in ast.iter_child_nodes(call) if isinstance(each, ast.Attribute)]
    held = [each for each in given if _attribute(each, holder)]
    return all(known) and len(known) == uses and any(each is not getattr(call, "func", None) for each in held)  # fmt: skip


def _is_named_once(file: PlainFile, name: str) -> bool:
    """Whether a method is asked for in one place of all files."""
    asked = [each for each in file.nodes if isinstance(each, ast.Attribute) and each.attr == name]
    texts = [each for each in file.nodes if isinstance(each, ast.Constant) and each.value == name]
    return len(asked) == 1 and not texts and name not in file.words_of_users


# ---- what is None first -------------------------------------------------------------------------------


def _is_first(
    file: PlainFile, methods: _Methods, init: ast.FunctionDef, statement: ast.Assign
) -> bool:
    """Whether an attribute is None only until it is made, and nobody can see that it is."""
    holder = holder_of(init)
    match statement.targets, statement.value:
        case [target], ast.Constant(value=None):
            name = _attribute(target, holder)
        case _:
            return False
    others = [each for each in sets_of(file, name) if each is not target]
    if not name or len(others) != 1 or name in methods:
        return False
    made = [
        (method, each)
        for method in methods.values()
        for each in once_in(method)
        if isinstance(each, ast.Assign) and each.targets == others
    ]
    if len(made) != 1:
        return False
    ((method, making),) = made
    if not isinstance(making.value, ast.Name):
        return False  # one that is made there is known as it is
    if _attribute(others[0], holder_of(method)) != name:
        return False
    if method is init:
        return file.start(making) > file.start(statement) and _unseen(
            file, methods, init, name, file.end(making), ""
        )
    calls = [
        each
        for each in once_in(init)
        if isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and _attribute(each.value.func, holder) == method.name
    ]
    if len(calls) != 1 or not _is_named_once(file, method.name):
        return False
    if file.start(calls[0]) < file.start(statement):
        return False
    until = file.end(calls[0])
    return _unseen(file, methods, init, name, until, method.name) and _unseen(
        file, methods, method, name, file.end(making), ""
    )


def _unseen(
    file: PlainFile, methods: _Methods, method: ast.FunctionDef, name: str, until: int, but: str
) -> bool:
    """Whether nothing in front of a place of a method asks for an attribute, calls another method or hands the object on."""
    holder = holder_of(method)
    plain: set[int] = set()
    for each in ast.walk(method):
        if isinstance(each, ast.stmt | ast.expr) and file.start(each) >= until:
            continue
        if isinstance(each, ast.Attribute):
            kept = not isinstance(each.ctx, ast.Load)
            if each.attr == name and not kept:
                return False
            if _attribute(each, holder):
                if each.attr in methods and each.attr != but:
                    return False
                plain.add(id(each.value))
        if isinstance(each, ast.Call) and _attribute(each.func, holder) not in ("", but):
            return False
    return all(
        id(each) in plain
        for each in ast.walk(method)
        if isinstance(each, ast.Name) and each.id == holder and file.start(each) < until
    )


__all__ = [
    "attributes_apart",
    "attributes_once",
    "attributes_returned",
    "holder_of",
    "plain_classes",
]
