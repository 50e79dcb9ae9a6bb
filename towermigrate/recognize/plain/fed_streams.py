"""Dicts of feeds that a generator yields, or that a list holds: tuples of what they feed, made dicts of where a run is fed one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    leaves_of,
    names_in,
    run_of,
)
from towermigrate.recognize.plain.feeds import displayed, is_plain_key, only_name
from towermigrate.recognize.python_scopes import own_nodes

_AS_THEY_ARE = ast.Name | ast.Constant | ast.Call | ast.Subscript | ast.Attribute | ast.BinOp


class _Unread(Exception):
    """Something is not understood."""


def yielded_feeds(file: PlainFile) -> list[Change]:
    """`yield {x: a, y: b}` of a function whose dicts runs are fed, as `yield a, b`."""
    if "yield {" not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for each in [one for body, always in blocks(scope) if always for one in body]:
            if isinstance(each, ast.FunctionDef):
                try:
                    found += _Generator(file, scope, each, where).changes()
                except _Unread:
                    continue
    return found


def listed_feeds(file: PlainFile) -> list[Change]:
    """`feeds.append({x: a, y: b})`, or a list of such dicts, of which runs are fed one after the other, as lists of tuples."""
    if file.finds_names_by_text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        if not any(isinstance(each, ast.Call) and run_of(each) for each in own_nodes(scope)):
            continue
        for name in sorted({only_name(each) for each in own_nodes(scope)} - {""}):
            try:
                found += _List(file, scope, name, where).changes()
            except _Unread:
                continue
    return found


@dataclass
class _Stream:
    """Dicts with the same keys, and where a scope takes one of them."""

    file: PlainFile
    scope: Scope
    where: str
    found: list[Change] = field(default_factory=list)
    taken: dict[str, list[str]] = field(default_factory=dict)

    def made(self, node: ast.expr, keys: Sequence[str] | None) -> list[str]:
        """What a display feeds, in place of it; its keys, which must be those of others."""
        file = self.file
        items = displayed(node)
        if not items or not all(is_plain_key(key) for key, _ in items):
            raise _Unread
        own = [ast.unparse(key) for key, _ in items]
        if len(set(own)) < len(own) or keys is not None and own != keys:
            raise _Unread
        if file.commented(*file.span(node)):
            raise _Unread
        parts: list[Part] = ["("]
        for number, (_, value) in enumerate(items):
            plain = isinstance(value, _AS_THEY_ARE)
            parts += [", "] * (number > 0)
            parts += [file.span(value)] if plain else ["(", file.span(value), ")"]
        parts.append(",)" if len(items) == 1 else ")")
        self.found.append(Change(*file.span(node), tuple(parts), self.where))
        return own

    def keys_stay(self, keys: Sequence[str], scopes: Sequence[Scope]) -> None:
        """Each key must be the same placeholder wherever the scopes read it."""
        for key in keys:
            owner = key.partition("[")[0]
            if owner in self.file.shared_between_functions:
                raise _Unread
            here = bindings(self.scope, owner)
            if here > 1 or here == 0 and bindings(self.file.tree, owner) != 1:
                raise _Unread
            if any(bindings(each, owner) for each in scopes if each is not self.scope):
                raise _Unread

    def looped(self, loop: ast.For, source: ast.expr, keys: Sequence[str]) -> None:
        """`for feed in source`, or over `enumerate(source)`."""
        target = loop.target
        if loop.iter is not source:
            match loop.iter, target:
                case ast.Call(func=ast.Name(id="enumerate"), args=[own, *_]), ast.Tuple(elts=[ast.Name() as number, ast.Name() as target]) if own is source and not bindings(self.file.tree, "enumerate"):  # fmt: skip
                    if number.id == target.id:
                        raise _Unread
                case _:
                    raise _Unread
        if not isinstance(target, ast.Name):
            raise _Unread
        inside = target is not loop.target
        names = self.names_for(target, keys)
        left = ", ".join(names) + ("," if len(names) == 1 else "")
        text = f"({left})" if inside or len(names) == 1 else left
        self.found.append(Change(*self.file.span(target), (text,), self.where))

    def names_for(self, target: ast.Name, keys: Sequence[str]) -> list[str]:
        """The names of what a dict feeds that one name was bound to; that is fed to runs and read nowhere else."""
        file, name = self.file, target.id
        if bindings(self.scope, name) != 1 or name in file.shared_between_functions:
            raise _Unread
        if isinstance(self.scope, ast.Module) and name in file.words_of_users:
            raise _Unread
        fed = {id(each) for each in _fed(self.scope) if isinstance(each, ast.Name)}
        uses = [
            each
            for each in ast.walk(self.scope)
            if isinstance(each, ast.Name) and each.id == name and each is not target
        ]
        if any(id(each) not in fed for each in uses):
            raise _Unread
        names = [file.fresh(f"{name}_{_plain(key)}") for key in keys]
        for each in uses:
            self.found.append(Change(*file.span(each), (_shown(keys, names),), self.where))
        return names

    def taken_one(self, statement: ast.stmt, node: ast.expr, keys: Sequence[str]) -> None:
        """A statement that is given one of the dicts by an expression: `feed = next(feeds)`, or a run that is fed `feeds[k]`."""
        file = self.file
        margin = file.alone(statement)
        if margin is None or file.commented(*file.span(statement)):
            raise _Unread
        if isinstance(statement, ast.Assign) and statement.value is node:
            (target,) = statement.targets
            if not isinstance(target, ast.Name):
                raise _Unread
            names = self.names_for(target, keys)
            left = ", ".join(names) + (" ," if len(names) == 1 else "")
            self.found.append(Change(*file.span(target), (left,), self.where))
            return
        value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
        run = run_of(value.value if isinstance(value, ast.Subscript) else value)
        if run is None or not run.args or leaves_of(run.args[0]) is None:
            raise _Unread
        given = [*run.args[1:], *(each.value for each in run.keywords)]
        if len(given) != 1 or given[0] is not node:
            raise _Unread
        names = [file.fresh(f"fed_{_plain(key)}") for key in keys]
        left = ", ".join(names) + ("," if len(names) == 1 else "")
        at = file.start(statement)
        # In front of the run, whose names of what is fetched nothing changes.
        self.found += [
            Change(at, at, (f"{left} = ", file.span(node), f"\n{margin}"), self.where),
            Change(*file.span(node), (_shown(keys, names),), self.where),
        ]


class _Generator(_Stream):
    """A function that yields dicts, and what is done with what it gives."""

    def __init__(
        self, file: PlainFile, scope: Scope, function: ast.FunctionDef, where: str
    ) -> None:
        super().__init__(file, scope, where)
        self.function = function

    def changes(self) -> list[Change]:
        file, function = self.file, self.function
        name = function.name
        yields = [each for each in own_nodes(function) if isinstance(each, ast.Yield)]
        if not yields or any(isinstance(each, ast.YieldFrom) for each in own_nodes(function)):
            raise _Unread
        if function.decorator_list or bindings(file.tree, name) != 1 or name in file.words_of_users:
            raise _Unread
        statements = {id(each.value) for each in own_nodes(function) if isinstance(each, ast.Expr)}
        keys: list[str] | None = None
        for each in yields:
            if each.value is None or id(each) not in statements:
                raise _Unread
            keys = self.made(each.value, keys)
        assert keys is not None
        calls = self._calls()
        users = {id(scope): scope for _, scope, _ in calls}
        if len(users) != 1:
            raise _Unread
        (self.user,) = users.values()
        # What it yields is a part of what its user feeds, which is changed with it or not at all.
        where = next(where for where, each in file.scopes if each is self.user)
        given = self._parameters(keys, calls)
        shown = [given.get(key, key) for key in keys]
        own_scope = self.scope
        self.scope = self.user
        if len(set(shown)) < len(shown):
            raise _Unread
        self.keys_stay(shown, ())
        free = [key for key in keys if key not in given]
        if any(bindings(function, key.partition("[")[0]) for key in free):
            raise _Unread
        if free and own_scope is not self.user and any(bindings(self.user, key) for key in free):
            raise _Unread
        for call, _, parents in calls:
            self._used(call, parents, shown)
        return [replace(each, scope=where) for each in self.found]

    def _calls(self) -> list[tuple[ast.Call, Scope, dict[int, ast.AST]]]:
        """Where the function is called; it must be used for nothing else."""
        found: list[tuple[ast.Call, Scope, dict[int, ast.AST]]] = []
        name = self.function.name
        count = 0
        for _, scope in self.file.scopes:
            parents = _parents(scope)
            for node in own_nodes(scope):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    if node.func.id == name:
                        found.append((node, scope, parents))
                        count += 1
        if not found or len(self.file.uses(name)) != count:
            raise _Unread
        return found

    def _parameters(
        self, keys: Sequence[str], calls: Sequence[tuple[ast.Call, Scope, dict[int, ast.AST]]]
    ) -> Mapping[str, str]:
        """The keys that are parameters, with the placeholder that is given for each; nobody is given them any more."""
        function, file = self.function, self.file
        spec = function.args
        own = [each.arg for each in spec.args]
        parameters = [key for key in keys if key in own]
        others = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
        if any(key.partition("[")[0] in others and key not in own for key in keys):
            raise _Unread
        if not parameters:
            return {}
        if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.posonlyargs or spec.defaults:
            raise _Unread
        if any(each.annotation is not None for each in spec.args):
            raise _Unread
        key_nodes = {
            id(key)
            for each in own_nodes(function)
            if isinstance(each, ast.Yield) and isinstance(each.value, ast.Dict)
            for key in each.value.keys
        }
        for each in ast.walk(function):
            if isinstance(each, ast.Name) and each.id in parameters and id(each) not in key_nodes:
                raise _Unread
        if file.commented(file.start(function), file.start(function.body[0])):
            raise _Unread
        given: dict[str, str] = {}
        for call, _, _ in calls:
            if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(own):  # fmt: skip
                raise _Unread
            bound = dict(zip(own, call.args, strict=False))
            for keyword in call.keywords:
                if keyword.arg not in own or keyword.arg in bound:
                    raise _Unread
                bound[keyword.arg] = keyword.value
            if bound.keys() != set(own):
                raise _Unread
            for key in parameters:
                value = bound[key]
                if not isinstance(value, ast.Name) or given.setdefault(key, value.id) != value.id:
                    raise _Unread
            left = [file.of(each) for each in call.args if each not in [bound[k] for k in parameters]]  # fmt: skip
            left += [
                f"{each.arg}={file.of(each.value)}"
                for each in call.keywords
                if each.arg not in parameters
            ]
            if file.commented(*file.span(call)) or any("\n" in each for each in left):
                raise _Unread
            text = f"{function.name}({', '.join(left)})"
            self.found.append(Change(*file.span(call), (text,), self.where))
        rest = ", ".join(each.arg for each in spec.args if each.arg not in parameters)
        first, last = spec.args[0], spec.args[-1]
        start = file.block.offset(first.lineno, first.col_offset)
        end = file.block.offset(last.end_lineno or 0, last.end_col_offset or 0)
        self.found.append(Change(start, end, (rest,), self.where))
        return given

    def _used(self, call: ast.Call, parents: Mapping[int, ast.AST], keys: Sequence[str]) -> None:
        parent = parents.get(id(call))
        if isinstance(parent, ast.Call) and parent.args[:1] == [call]:
            around = parents.get(id(parent))
            if isinstance(around, ast.For) and around.iter is parent:
                return self.looped(around, call, keys)
        if isinstance(parent, ast.For) and parent.iter is call:
            return self.looped(parent, call, keys)
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
            raise _Unread
        (target,) = parent.targets
        if not isinstance(target, ast.Name) or bindings(self.user, target.id) != 1:
            raise _Unread
        if target.id in self.file.shared_between_functions or isinstance(self.user, ast.Module):
            raise _Unread
        for node in ast.walk(self.user):
            if isinstance(node, ast.Name) and node.id == target.id and node is not target:
                self._asked(node, parents, keys)

    def _asked(self, node: ast.Name, parents: Mapping[int, ast.AST], keys: Sequence[str]) -> None:
        """`next(feeds)`, or a loop over them."""
        parent = parents.get(id(node))
        if isinstance(parent, ast.For) and parent.iter is node:
            return self.looped(parent, node, keys)
        if not isinstance(parent, ast.Call) or parent.args != [node] or parent.keywords:
            raise _Unread
        if not isinstance(parent.func, ast.Name) or parent.func.id != "next":
            raise _Unread
        if bindings(self.file.tree, "next"):
            raise _Unread
        self.taken_one(_statement(parent, parents), parent, keys)


class _List(_Stream):
    """A list that a name is bound to, and what is done with it."""

    def __init__(self, file: PlainFile, scope: Scope, name: str, where: str) -> None:
        super().__init__(file, scope, where)
        self.name = name

    def changes(self) -> list[Change]:
        file, scope, name = self.file, self.scope, self.name
        if bindings(scope, name) != 1 or name in file.shared_between_functions:
            raise _Unread
        if isinstance(scope, ast.Module) and name in file.words_of_users:
            raise _Unread
        parents = _parents(scope)
        uses = names_in(scope, name)
        if any(id(each) not in parents for each in uses):
            raise _Unread
        stored = [each for each in uses if isinstance(each.ctx, ast.Store)]
        bound = parents[id(stored[0])] if len(stored) == 1 else None
        if not isinstance(bound, ast.Assign) or bound.targets != stored:
            raise _Unread
        keys = self._held(bound.value)
        taken: list[ast.Name] = []
        for each in uses:
            if each in stored:
                continue
            added = _added(each, parents)
            if added is None:
                taken.append(each)
            else:
                keys = self.made(added, keys)
        if keys is None:
            raise _Unread
        self.keys_stay(keys, ())
        if not sum(self._taken(each, parents, keys) for each in taken):
            raise _Unread
        return self.found

    def _held(self, value: ast.expr) -> list[str] | None:
        """The keys of the dicts that a list is made with; None where it is empty."""
        keys: list[str] | None = None
        if isinstance(value, ast.ListComp):
            bound = {each.id for gen in value.generators for each in ast.walk(gen.target) if isinstance(each, ast.Name)}  # fmt: skip
            keys = self.made(value.elt, keys)
            if bound & {key.partition("[")[0] for key in keys}:
                raise _Unread
            return keys
        if not isinstance(value, ast.List):
            raise _Unread
        for each in value.elts:
            keys = self.made(each, keys)
        return keys

    def _taken(self, node: ast.Name, parents: Mapping[int, ast.AST], keys: Sequence[str]) -> bool:
        """Whether dicts are taken from the list; its length may be asked too."""
        parent = parents[id(node)]
        if isinstance(parent, ast.For) and parent.iter is node:
            self.looped(parent, node, keys)
            return True
        if isinstance(parent, ast.Subscript) and parent.value is node:
            if isinstance(parent.slice, ast.Slice) or not isinstance(parent.ctx, ast.Load):
                raise _Unread
            self.taken_one(_statement(parent, parents), parent, keys)
            return True
        if isinstance(parent, ast.Call) and parent.args[:1] == [node]:
            around = parents.get(id(parent))
            if isinstance(around, ast.For) and around.iter is parent:
                self.looped(around, node, keys)
                return True
            if ast.unparse(parent) == f"len({node.id})" and not bindings(self.file.tree, "len"):
                return False
        raise _Unread


def _added(node: ast.Name, parents: Mapping[int, ast.AST]) -> ast.expr | None:
    """The dict that `feeds.append({…})` adds."""
    method = parents[id(node)]
    if not isinstance(method, ast.Attribute) or method.attr != "append":
        return None
    call = parents.get(id(method))
    if not isinstance(call, ast.Call) or call.func is not method or len(call.args) != 1:
        return None
    around = parents.get(id(call))
    return call.args[0] if isinstance(around, ast.Expr) and not call.keywords else None


def _fed(scope: Scope) -> Iterator[ast.expr]:
    for node in own_nodes(scope):
        run = run_of(node) if isinstance(node, ast.Call) else None
        if run is not None:
            yield from run.args[1:2]
            yield from (each.value for each in run.keywords if each.arg == "feed_dict")


def _parents(scope: Scope) -> dict[int, ast.AST]:
    """What each node of a scope itself stands in."""
    found: dict[int, ast.AST] = {}
    for each in [scope, *own_nodes(scope)]:
        inner = isinstance(each, ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.AsyncFunctionDef)
        if inner and each is not scope:
            continue
        for child in ast.iter_child_nodes(each):
            found[id(child)] = each
    return found


def _statement(node: ast.AST, parents: Mapping[int, ast.AST]) -> ast.stmt:
    while not isinstance(node, ast.stmt):
        if id(node) not in parents or isinstance(node, ast.comprehension):
            raise _Unread
        node = parents[id(node)]
    return node


def _shown(keys: Sequence[str], names: Sequence[str]) -> str:
    pairs = zip(keys, names, strict=True)
    return "{" + ", ".join(f"{key}: {name}" for key, name in pairs) + "}"


def _plain(key: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in key).strip("_")


__all__ = ["listed_feeds", "yielded_feeds"]
