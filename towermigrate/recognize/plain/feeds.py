"""What runs are fed: one dict display for each name, where the dict is filled an item at a time."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import (
    Change,
    Changed,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    run_of,
    stores,
)
from towermigrate.recognize.python_scopes import own_nodes

# ---- dicts that are filled an item at a time ---------------------------------------------------------


def built_feeds(file: PlainFile) -> list[Change]:
    """`feed = {x: a}` and `feed[y] = b` behind it as `feed = {x: a, y: b}`, where a run is fed it."""
    found: list[Change] = []
    for where, scope in file.scopes:
        fed = fed_by_name(scope)
        for body, _ in blocks(scope) if fed else ():
            for number, each in enumerate(body):
                change = _filled(file, body, number, each, fed)
                if change is not None:
                    found.append(Change(*change, where))
    return found


def is_plain_key(key: ast.expr) -> bool:
    """Whether a key is `x`, or `x[0]`."""
    if isinstance(key, ast.Subscript) and isinstance(key.slice, ast.Constant):
        key = key.value
    return isinstance(key, ast.Name)


def fed_by_name(scope: Scope) -> set[str]:
    """The names that are fed to runs."""
    found: set[str] = set()
    for node in own_nodes(scope):
        call = run_of(node) if isinstance(node, ast.Call) else None
        if call is not None:
            given = [
                *call.args[1:2],
                *(each.value for each in call.keywords if each.arg == "feed_dict"),
            ]
            found |= {each.id for each in given if isinstance(each, ast.Name)}
    return found


def _filled(
    file: PlainFile, body: list[ast.stmt], number: int, first: ast.stmt, fed: set[str]
) -> Changed | None:
    name = only_name(first)
    if name not in fed or not isinstance(first, ast.Assign):
        return None
    shown = displayed(first.value)
    if shown is None:
        return None
    items = [_Fed(key, (file.span(value),), (value,)) for key, value in shown]
    last = number
    for each in body[number + 1 :]:
        more = _items_of(each, name)
        if more is not None:
            items += [_Fed(key, (file.span(value),), (value,)) for key, value in more]
        elif isinstance(each, ast.If) and (one := _chosen(file, each, name, items)) is not None:
            items = [other for other in items if not _same(other.key, one.key)] + [one]
        else:
            break
        last += 1
    items = _last_of_each(items)
    keys = [ast.unparse(each.key) for each in items if is_plain_key(each.key)]
    if last == number or len(set(keys)) < len(items):
        return None
    if any(mentions(node, {name}) for each in items for node in each.nodes):
        return None
    start, end = file.start(first), file.end(body[last])
    if file.commented(start, end) or any(
        file.alone(each) is None for each in body[number : last + 1]
    ):
        return None
    parts: list[Part] = [f"{name} = {{"]
    for item in items:
        parts += [", "] if len(parts) > 1 else []
        parts += [file.span(item.key), ": ", *item.parts]
    return start, end, (*parts, "}")


@dataclass(frozen=True)
class _Fed:
    """One item of a dict of feeds: its key, the text of its value, and what is evaluated for it."""

    key: ast.expr
    parts: tuple[Part, ...]
    nodes: tuple[ast.expr, ...]


def _last_of_each(items: Sequence[_Fed]) -> list[_Fed]:
    """The items without those that are set anew behind them, where nothing is evaluated for what they were."""
    found: list[_Fed] = []
    for number, each in enumerate(items):
        named = len(each.nodes) == 1 and isinstance(each.nodes[0], ast.Name | ast.Constant)
        if not named or not any(_same(each.key, other.key) for other in items[number + 1 :]):
            found.append(each)
    return found


def _chosen(file: PlainFile, choice: ast.If, name: str, items: Sequence[_Fed]) -> _Fed | None:
    """`if test: feed[x] = a` as the item `x: a if test else b`, where `b` is what it is fed, or is, otherwise."""
    fed = _items_of(choice.body[0], name) if len(choice.body) == 1 else None
    if fed is None or len(fed) != 1:
        return None
    key, value = fed[0]
    otherwise: Part
    nodes: list[ast.expr] = [choice.test, value]
    before = [each for each in items if _same(each.key, key)]
    if choice.orelse:
        other = _items_of(choice.orelse[0], name) if len(choice.orelse) == 1 else None
        if other is None or len(other) != 1 or not _same(other[0][0], key) or before:
            return None
        otherwise = file.span(other[0][1])
        nodes.append(other[0][1])
    elif before:
        # What it is fed else was evaluated earlier, which must make no difference.
        (first, *more) = before[0].nodes
        named = isinstance(first, ast.Name) and first.id not in file.shared_between_functions
        if len(before) != 1 or more or not (named or isinstance(first, ast.Constant)):
            return None
        otherwise = file.span(first)
        nodes.append(first)
    else:
        default = default_of(file, key)
        if default is None:
            return None
        otherwise = default
    parts = ("(", file.span(value), ") if (", file.span(choice.test), ") else (", otherwise, ")")
    return _Fed(key, parts, tuple(nodes))


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)


def default_of(file: PlainFile, key: ast.expr) -> str | None:
    """The number that a placeholder is where it is not fed: `1.0` of `x = tf.placeholder_with_default(1.0, [])`."""
    if not isinstance(key, ast.Name) or len(stores(file.tree, key.id)) != 1:
        return None
    if any(isinstance(each, ast.arg) and each.arg == key.id for each in file.nodes):
        return None
    for each in file.nodes:
        if only_name(each) == key.id and isinstance(each, ast.Assign):
            call = each.value
            if (
                isinstance(call, ast.Call)
                and ast.unparse(call.func) == "tf.placeholder_with_default"
            ):
                given = call.args[0] if call.args else None
                if isinstance(given, ast.Constant) and type(given.value) in (int, float, bool):
                    return ast.unparse(given)
    return None


_Item = tuple[ast.expr, ast.expr]


def displayed(node: ast.expr) -> list[_Item] | None:
    """The items of a dict display, or of an empty `dict()`."""
    if isinstance(node, ast.Dict):
        if any(key is None for key in node.keys):
            return None
        return [(k, v) for k, v in zip(node.keys, node.values, strict=True) if k is not None]
    empty = isinstance(node, ast.Call) and not node.args and not node.keywords
    return [] if empty and ast.unparse(node) == "dict()" else None


def _items_of(statement: ast.stmt, name: str) -> list[_Item] | None:
    """What `feed[x] = a` or `feed.update({x: a})` adds."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        (target,) = statement.targets
        if (
            isinstance(target, ast.Subscript)
            and isinstance(target.value, ast.Name)
            and target.value.id == name
            and is_plain_key(target.slice)
        ):
            return [(target.slice, statement.value)]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if ast.unparse(call.func) == f"{name}.update" and len(call.args) == 1 and not call.keywords:
            return displayed(call.args[0]) or None
    return None


def only_name(statement: ast.AST) -> str:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        (target,) = statement.targets
        return target.id if isinstance(target, ast.Name) else ""
    return ""


def mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


# ---- names that are bound to several -----------------------------------------------------------------


def feeds_apart(file: PlainFile) -> list[Change]:
    """A name that is bound to one dict for some runs and to another for others, as a name for each of them."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for name in sorted(fed_by_name(scope) - file.shared_between_functions):
            found += [Change(*change, where) for change in _each_its_own(file, scope, name)]
    return found


def _each_its_own(file: PlainFile, scope: Scope, name: str) -> list[Changed]:
    """The places of a name behind each statement but the first that binds it, with another name for them.

    Every one of them must stand behind such a statement in the block of that, where nothing else binds the name.
    """
    groups: list[list[ast.stmt]] = []
    for body, _ in blocks(scope):
        at = [
            number
            for number, each in enumerate(body)
            if only_name(each) == name
            and isinstance(each, ast.Assign)
            and _is_new(file, each.value)
        ]
        ends = [*at[1:], len(body)]
        groups += [body[one:end] for one, end in zip(at, ends, strict=False)]
    if len(groups) < 2 or bindings(scope, name) != len(groups):
        return []
    places = [[each for one in group for each in _names_in(one, name)] for group in groups]
    within = [id(each) for group in places for each in group]
    every = _names_in(scope, name)
    if sorted(within) != sorted(id(each) for each in every):
        return []
    own = {id(each) for each in own_nodes(scope)}
    if any(id(each) not in own for each in every) or any(
        isinstance(each.ctx, ast.Load) for group in groups for each in _names_in(group[0], name)
    ):
        return []
    _, *others = sorted(places, key=lambda group: file.start(group[0]))
    return [
        (*file.span(each), (new,))
        for new, group in zip([file.fresh(name) for _ in others], others, strict=True)
        for each in group
    ]


def _is_new(file: PlainFile, value: ast.expr) -> bool:
    """A dict that is written out, or made of pairs: nobody else has it."""
    return isinstance(value, ast.Dict) or (
        isinstance(value, ast.Call)
        and ast.unparse(value.func) == "dict"
        and not bindings(file.tree, "dict")
    )


def _names_in(node: ast.AST, name: str) -> list[ast.Name]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
