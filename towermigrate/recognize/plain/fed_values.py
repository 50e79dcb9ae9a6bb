"""Dicts of feeds that are chosen, copied or changed: a name for each value that they hold, and a display for each run.

A dict that nobody sees but the runs that are fed it, the statements that set its items and the copies that are made of it is
no more than one name for each of its items: `feed = {x: a, y: b}` is `feed_x, feed_y = a, b`, `feed[y] = c` is `feed_y = c`, a
run is fed `{x: feed_x, y: feed_y}`, and `dict(feed)` is such a display too, of what the names hold then.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    leaves_of,
    names_in,
    own_calls,
    run_of,
)
from towermigrate.recognize.plain.feeds import (
    default_of,
    displayed,
    fed_by_name,
    is_plain_key,
    only_name,
)
from towermigrate.recognize.python_scopes import own_nodes

_Item = tuple[ast.expr, ast.expr]
_AS_THEY_ARE = ast.Name | ast.Constant | ast.Call | ast.Subscript | ast.Attribute | ast.BinOp

# ---- dicts that an expression chooses ----------------------------------------------------------------


def chosen_by_expressions(file: PlainFile) -> list[Change]:
    """`feed = {x: a} if test else {x: b}` as the statement `if`; what a run is fed so as well, under a name."""
    found: list[Change] = []
    for where, scope in file.scopes:
        fed = fed_by_name(scope)
        for body, _ in blocks(scope):
            for each in body:
                change = _as_statement(file, scope, each, fed, where)
                if change is not None:
                    found.append(change)
    return found


def _as_statement(
    file: PlainFile, scope: Scope, statement: ast.stmt, fed: set[str], where: str
) -> Change | None:
    if not isinstance(statement, ast.Assign | ast.Expr):
        return None
    margin = file.alone(statement)
    if margin is None or file.commented(*file.span(statement)):
        return None
    name = only_name(statement)
    if name in fed:
        rows = _choice(file, name, statement.value, margin)
        return None if rows is None else Change(*file.span(statement), rows, where)
    run = run_of(statement.value)
    if run is None or not run.args or leaves_of(run.args[0]) is None:
        return None
    given = [*run.args[1:], *(each.value for each in run.keywords)]
    # The choice is made before the names that are fetched are read, which must bind none of them.
    if len(given) != 1 or any(isinstance(each, ast.NamedExpr) for each in ast.walk(given[0])):
        return None
    if not isinstance(given[0], ast.IfExp):
        return None
    name = file.free(scope, "feed", "feed_dict")
    rows = _choice(file, name, given[0], margin)
    if rows is None:
        return None
    start, end = file.span(statement)
    fed_there = (start, file.start(given[0])), name, (file.end(given[0]), end)
    return Change(start, end, (*rows, f"\n{margin}", *fed_there), where)


def _choice(
    file: PlainFile, name: str, value: ast.expr, margin: str, word: str = "if"
) -> tuple[Part, ...] | None:
    """The rows of `if test: name = {…}` and what else it may be; the first of them without its margin."""
    if not isinstance(value, ast.IfExp):
        return None
    made = displayed(value.body)
    if not made:
        return None
    parts: list[Part] = [f"{word} (", file.span(value.test), f"):\n{margin}    {name} = "]
    parts += [file.span(value.body), f"\n{margin}"]
    if displayed(value.orelse):
        return (*parts, f"else:\n{margin}    {name} = ", file.span(value.orelse))
    more = _choice(file, name, value.orelse, margin, "elif")
    return None if more is None else (*parts, *more)


# ---- a name for each value -----------------------------------------------------------------------------


def copied_feeds(file: PlainFile) -> list[Change]:
    """Dicts of which others are made: `feed = dict(base)`, `base.copy()`, `{**base, y: b}`, `feed.update(base)`."""
    if not any(each in file.text for each in ("dict(", ".copy()", "**", ".update(")):
        return []
    return _taken_apart(file, copied=True)


def chosen_feeds(file: PlainFile) -> list[Change]:
    """Dicts that are bound in several places, or of which items are set or read behind them."""
    return _taken_apart(file, copied=False)


def _taken_apart(file: PlainFile, copied: bool) -> list[Change]:
    found: list[Change] = []
    if file.finds_names_by_text:
        return found
    for where, scope in file.scopes:
        fed = fed_by_name(scope)
        runs = any(run_of(each) is not None for each in own_calls(scope))
        names = {name for each in own_nodes(scope) if (name := only_name(each))} if runs else set()
        for name in sorted(names - file.shared_between_functions):
            if scope is file.tree and name in file.words_of_users:
                continue
            dicts = _Dicts(file, scope, name)
            if not dicts.read() or bool(dicts.copies) != copied:
                continue
            if copied or name in fed and (len(dicts.bound) > 1 or dicts.changed or dicts.parts):
                found += [Change(*each, where) for each in dicts.changes()]
                if found:
                    return found  # others may be made of it
    return found


@dataclass
class _Dicts:
    """The dicts that a name of a scope is bound to, and all that is done with them."""

    file: PlainFile
    scope: Scope
    name: str
    bound: list[tuple[ast.Assign, list[_Item]]] = field(default_factory=list)
    changed: list[tuple[ast.stmt, list[_Item]]] = field(default_factory=list)
    fed: list[ast.Name] = field(default_factory=list)
    copies: list[ast.expr] = field(default_factory=list)
    parts: list[ast.Subscript] = field(default_factory=list)
    keys: dict[str, ast.expr] = field(default_factory=dict)

    def read(self) -> bool:
        """Whether every place of the name is understood."""
        known: set[int] = set()
        for body, _ in blocks(self.scope):
            for number, each in enumerate(body):
                if self._is_bound(each, known):
                    continue
                if not self._is_set(each, known):
                    return False
                if (
                    self.changed
                    and self.changed[-1][0] is each
                    and not self._is_there(body, number)
                ):
                    return False
        self._uses(known)
        every = names_in(self.scope, self.name)
        if not self.bound or any(id(each) not in known for each in every):
            return False
        read = {id(each.value) for each in self.parts}
        for _, items in (*self.bound, *self.changed):
            for key, value in items:
                own = [each for each in ast.walk(value) if _is_name(each, self.name)]
                if not is_plain_key(key) or any(id(each) not in read for each in own):
                    return False
                self.keys.setdefault(ast.unparse(key), key)
        return bool(self.keys) and self._keys_stay() and self._all_there()

    def _is_bound(self, statement: ast.stmt, known: set[int]) -> bool:
        if only_name(statement) != self.name or not isinstance(statement, ast.Assign):
            return False
        items = displayed(statement.value)
        if items is not None:
            keys = [ast.unparse(key) for key, _ in items]
            if len(set(keys)) == len(keys) and self._may_change(statement):
                self.bound.append((statement, items))
                known.add(id(statement.targets[0]))
        return True

    def _is_set(self, statement: ast.stmt, known: set[int]) -> bool:
        """Whether a statement sets items in a way that is known, or none."""
        match statement:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=self.name) as name) as target],
                value=value,
            ):
                items = [(target.slice, value)]
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=self.name) as name, attr="update"),
                    args=[given],
                    keywords=[],
                )
            ):
                items = displayed(given) or []
                keys = {ast.unparse(key) for key, _ in items}
                if len(keys) < len(items) or not items:
                    return True
            case _:
                return True
        if not self._may_change(statement):
            return False
        self.changed.append((statement, items))
        known.add(id(name))
        return True

    def _may_change(self, statement: ast.stmt) -> bool:
        file = self.file
        return file.alone(statement) is not None and not file.commented(*file.span(statement))

    def _is_there(self, body: Sequence[ast.stmt], number: int) -> bool:
        """Whether the dict is there for sure where a statement sets an item: its block, or one around it, made it before."""
        if any(_makes(each, self.name) for each in body[:number]):
            return True
        for outer, _ in blocks(self.scope):
            for place, each in enumerate(outer):
                inside = any(one is body[number] for one in ast.walk(each)) and each is not body[number]  # fmt: skip
                if inside and any(_makes(one, self.name) for one in outer[:place]):
                    return True
        return False

    def _uses(self, known: set[int]) -> None:
        added_to = {id(each.target) for each in own_nodes(self.scope) if isinstance(each, ast.AugAssign)}  # fmt: skip
        for node in own_nodes(self.scope):
            if isinstance(node, ast.Call):
                run = run_of(node)
                if run is not None:
                    given = [
                        *run.args[1:2],
                        *(each.value for each in run.keywords if each.arg == "feed_dict"),
                    ]
                    for each in given:
                        if isinstance(each, ast.Name) and each.id == self.name:
                            self.fed.append(each)
                            known.add(id(each))
            if isinstance(node, ast.Subscript) and _is_name(node.value, self.name):
                # `feed[x] += 1` reads it first: an item that is set otherwise may be of no dict.
                if isinstance(node.ctx, ast.Load) or id(node) in added_to:
                    self.parts.append(node)
                    known.add(id(node.value))
            if isinstance(node, ast.expr) and (name := _copied(self.file, node, self.name)):
                self.copies.append(node)
                known.add(id(name))
            if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
                if _is_name(node.args[0], self.name) and ast.unparse(node.func).endswith(".update"):
                    self.copies.append(node.args[0])
                    known.add(id(node.args[0]))

    def _keys_stay(self) -> bool:
        """Whether each key is the same placeholder wherever it stands."""
        for key in self.keys.values():
            owner = key.value if isinstance(key, ast.Subscript) else key
            assert isinstance(owner, ast.Name)
            here = bindings(self.scope, owner.id)
            if here > 1 or here == 0 and bindings(self.file.tree, owner.id) != 1:
                return False
            if owner.id in self.file.shared_between_functions:
                return False
        return True

    def _all_there(self) -> bool:
        """Whether each dict has all keys, or the others feed what a placeholder is by itself."""
        read = {ast.unparse(each.slice) for each in self.parts}
        if not read <= self.keys.keys():
            return False
        for _, items in self.bound:
            for key in self.keys.keys() - {ast.unparse(key) for key, _ in items}:
                if key in read or self.copies or default_of(self.file, self.keys[key]) is None:
                    return False
        return True

    def changes(self) -> list[tuple[int, int, tuple[Part, ...]]]:
        file = self.file
        names = self.names
        found: list[tuple[int, int, tuple[Part, ...]]] = []
        for statement, items in (*self.bound, *self.changed):
            made = {ast.unparse(key): value for key, value in items}
            own: list[tuple[str, tuple[Part, ...]]] = []
            for key, name in names.items():
                if key in made:
                    if not _is_name(made[key], name):
                        own.append((name, self._value(made[key])))
                elif isinstance(statement, ast.Assign) and only_name(statement):
                    default = default_of(file, self.keys[key])
                    assert default is not None
                    own.append((name, (default,)))
            found.append((*self._bound_to(statement, own, made),))
        shown = ", ".join(f"{file.of(self.keys[key])}: {name}" for key, name in names.items())
        found += [(*file.span(each), (f"{{{shown}}}",)) for each in self.fed]
        for each in self.copies:
            found.append((*file.span(each), _copy(file, each, self.name, names, self.keys)))
        found += [(*file.span(each), (names[ast.unparse(each.slice)],)) for each in self.parts]
        return found

    def _value(self, node: ast.expr) -> tuple[Part, ...]:
        """A value with the names of the items that it reads."""
        start, end = self.file.span(node)
        parts: list[Part] = []
        for each in sorted(self.parts, key=self.file.start):
            place = self.file.span(each)
            if start <= place[0] and place[1] <= end:
                parts += [(start, place[0]), self.names[ast.unparse(each.slice)]]
                start = place[1]
        if not parts:
            return _value(self.file, node)
        return ("(", *(each for each in (*parts, (start, end)) if isinstance(each, str) or each[0] < each[1]), ")")  # fmt: skip

    def _bound_to(
        self,
        statement: ast.stmt,
        own: list[tuple[str, tuple[Part, ...]]],
        made: dict[str, ast.expr],
    ) -> tuple[int, int, tuple[Part, ...]]:
        """A statement that gives the names what it gave the dict, all of it evaluated first and in its order."""
        if not own:
            body = next(body for body, _ in blocks(self.scope) if any(e is statement for e in body))
            if len(body) == 1:
                return *self.file.span(statement), ("pass",)
            return *self.file.without(statement), ()
        order = list(made)
        by_name = dict(own)
        names = self.names
        ordered = [names[key] for key in order if names[key] in by_name]
        ordered += [name for name, _ in own if name not in ordered]
        parts: list[Part] = [f"{', '.join(ordered)} = "]
        for number, name in enumerate(ordered):
            parts += [", "] * (number > 0) + [*by_name[name]]
        return *self.file.span(statement), tuple(parts)

    @cached_property
    def names(self) -> dict[str, str]:
        """A name for each key: that of the value itself where it is one that stays."""
        found: dict[str, str] = {}
        for key in self.keys:
            plain = "".join(each if each.isalnum() else "_" for each in key).strip("_")
            stays = self._value_that_stays(key)
            found[key] = stays or self.file.fresh(f"{self.name}_{plain}")
        return found

    def _value_that_stays(self, key: str) -> str | None:
        """The name of a value that is bound once, before the dict and in its block, behind which all uses of that stand."""
        if len(self.bound) != 1 or any(
            ast.unparse(one) == key for _, items in self.changed for one, _ in items
        ):
            return None
        if any(ast.unparse(each.slice) == key for each in self.parts):
            return None
        ((statement, items),) = self.bound
        value = next((value for one, value in items if ast.unparse(one) == key), None)
        if not isinstance(value, ast.Name) or bindings(self.scope, value.id) != 1:
            return None
        if value.id in self.file.shared_between_functions:
            return None
        if self.scope is self.file.tree and value.id in self.file.words_of_users:
            return None
        if isinstance(self.scope, ast.FunctionDef) and any(
            isinstance(each, ast.arg) and each.arg == value.id for each in ast.walk(self.scope.args)
        ):
            return value.id
        body = next(body for body, _ in blocks(self.scope) if any(e is statement for e in body))
        number = next(place for place, each in enumerate(body) if each is statement)
        if not any(
            isinstance(each, ast.Assign)
            and any(
                isinstance(one, ast.Name) and one.id == value.id and isinstance(one.ctx, ast.Store)
                for target in each.targets
                for one in ast.walk(target)
            )
            for each in body[:number]
        ):
            return None
        behind = {id(one) for each in body[number:] for one in ast.walk(each)}
        if any(id(each) not in behind for each in (*self.fed, *self.copies, *self.parts)):
            return None
        return value.id


def _makes(statement: ast.stmt, name: str) -> bool:
    """Whether a name is bound behind a statement for sure."""
    if isinstance(statement, ast.If):
        ways = (statement.body, statement.orelse)
        return all(any(_makes(each, name) for each in way) for way in ways)
    return only_name(statement) == name


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _value(file: PlainFile, node: ast.expr) -> tuple[Part, ...]:
    text = file.of(node)
    if isinstance(node, _AS_THEY_ARE) and "\n" not in text:
        return (file.span(node),)
    return ("(", file.span(node), ")")


def _copied(file: PlainFile, node: ast.expr, name: str) -> ast.Name | None:
    """The name of the dict that an expression is a copy of."""
    match node:
        case ast.Call(func=ast.Name(id="dict"), args=[ast.Name() as own], keywords=[]):
            plain = not bindings(file.tree, "dict")
        case ast.Call(func=ast.Attribute(value=ast.Name() as own, attr="copy"), args=[], keywords=[]):  # fmt: skip
            plain = True
        case ast.Dict(keys=keys, values=values):
            mine = [v for k, v in zip(keys, values, strict=True) if k is None and _is_name(v, name)]
            pairs = [(k, v) for k, v in zip(keys, values, strict=True) if k is not None]
            if len(mine) != 1 or not all(is_plain_key(k) for k, _ in pairs):
                return None
            # What is set anew in the display must have done nothing but be there.
            if len({ast.unparse(k) for k, _ in pairs}) < len(pairs):
                return None
            if keys[0] is not None and not all(
                isinstance(v, ast.Name | ast.Constant) for _, v in pairs
            ):
                return None
            (only,) = mine
            return only if isinstance(only, ast.Name) and not file.commented(*file.span(node)) else None  # fmt: skip
        case _:
            return None
    return own if plain and own.id == name and not file.commented(*file.span(node)) else None


def _copy(
    file: PlainFile,
    node: ast.expr,
    name: str,
    names: dict[str, str],
    keys: dict[str, ast.expr],
) -> tuple[Part, ...]:
    """A display of what the names hold, and of what a display that is made of the dict has else; the last of each key."""
    items: dict[str, tuple[Part, ...]] = {}
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None and not _is_name(value, name):
                items[f"**{len(items)}"] = ("**", file.span(value))
            elif key is None:
                for each, own in names.items():
                    items.pop(each, None)
                    items[each] = (f"{file.of(keys[each])}: {own}",)
            else:
                items.pop(ast.unparse(key), None)
                items[ast.unparse(key)] = (file.span(key), ": ", *_value(file, value))
    else:
        items = {each: (f"{file.of(keys[each])}: {own}",) for each, own in names.items()}
    parts: list[Part] = ["{"]
    for item in items.values():
        parts += [", "] if len(parts) > 1 else []
        parts += item
    return (*parts, "}")


__all__ = ["chosen_by_expressions", "chosen_feeds", "copied_feeds"]
