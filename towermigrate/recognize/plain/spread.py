"""Values of a graph that a function returns together: the values themselves, each under a name of its own.

`ops = build()`, of which `run_epoch(sess, ops)` runs `ops['train']`, is `x, train_op = build()` and `run_epoch(sess, x, train_op)`.
Only of what is kept together such that every use tells which value it takes (`packs`), by the function that calls the builder
or by one that it is handed to, wherever that is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from towermigrate.recognize.lending import Files
from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings
from towermigrate.recognize.plain.handed_packs import Handing, name_value
from towermigrate.recognize.plain.held import Uses
from towermigrate.recognize.plain.own_packs import OwnPack
from towermigrate.recognize.plain.packs import Leaf, Pack, Packed, Packer, leaves
from towermigrate.recognize.plain.returns import name_of
from towermigrate.recognize.python_scopes import Module, Unjoined, last_of, own_nodes, scopes
from towermigrate.recognize.source import Tree


def spread_values(
    tree: Tree, path: str, where: Mapping[str, Collection[str]] | None, file: PlainFile
) -> list[Change]:
    """The changes of one file for what a function of the tower loop's file, `path`, returns together."""
    if file.text != tree.sources.get(file.path) or "return" not in tree.sources[path]:
        return []
    for name in _builders(tree, path):
        for deep in (True, False):
            try:
                made = _Spread(tree, path, name, deep).changes()
            except (Unjoined, RecursionError):
                continue
            if where is not None and any(
                scope not in where.get(each, ()) for each, *_, scope in made
            ):
                return []
            return [
                Change(start, end, parts, scope)
                for each, start, end, parts, scope in made
                if each == file.path
            ]
    return []


def _builders(tree: Tree, path: str) -> Iterator[str]:
    """The functions of a file that build towers and end in a `return`."""
    try:
        module = Files(tree, path).module(path)
    except Unjoined:
        return
    for each in module.tree.body:
        if isinstance(each, ast.FunctionDef):
            text = ast.unparse(each)
            if "apply_gradients" in text or ".minimize(" in text:
                if isinstance(last_of(each), ast.Return):
                    yield each.name


_Made = tuple[str, int, int, tuple[Part, ...], str]
"""A file, a stretch of it, what stands there instead, and the outermost function that it belongs to."""


class _Spread(Files):
    def __init__(self, tree: Tree, path: str, name: str, deep: bool) -> None:
        super().__init__(tree, path)
        self.deep = deep
        self.own = self._file(path)
        function = self.own.definition(name).node
        self.builder = function
        returns = [each for each in own_nodes(function) if isinstance(each, ast.Return)]
        if len(returns) != 1 or returns[0] is not last_of(function) or function.decorator_list:
            raise Unjoined
        if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(function)):
            raise Unjoined
        self.returned = returns[0]
        self.user, self.statement, self.call, self.scope = self._caller()
        self.file = self._file(self.user)
        if self.file.finds_names_by_text or self.own.finds_names_by_text:
            raise Unjoined
        self.where = getattr(self.scope, "name", "")
        self.handing = Handing(self.file, (function, self.scope))
        self._unnamed: list[Leaf] = []

    def module(self, path: str) -> Module:
        return self._file(path)

    def _file(self, path: str) -> PlainFile:
        known = self.modules.get(path)
        if not isinstance(known, PlainFile):
            users = self.tree.users.get(path, set()) - {path}
            words = {
                word
                for user in users
                for word in re.findall(r"\w+", self.tree.sources.get(user, ""))
            }
            known = PlainFile(path, self.tree.sources[path], frozenset(words))
            self.modules[path] = known
        return known

    def changes(self) -> list[_Made]:
        inside = Uses(self.own, self.builder)
        pack, own = self._returns(inside)
        pack = _one_each(pack, inside, {})
        self._name_others(pack, inside)
        every = list(dict.fromkeys(leaves(pack)))
        uses = Uses(self.file, self.scope)
        uses.root = self.statement
        uses.follow(self.call, pack)
        if not uses.apart or uses.apart[0][0] is not self.statement:
            raise Unjoined
        self.handing.follow(uses)
        used = {*uses.used(), *self.handing.by(uses)}
        order = [each for each in every if each in used]
        if not order or self._is_plain(order, inside):
            raise Unjoined
        for leaf in order:
            name_value(uses, leaf, inside, pack, self._holder())
        made: list[_Made] = [(self.own.path, *each, self.builder.name) for each in own]
        made.append(self._as_return(order, inside))
        start, end = self.file.span(self.statement)
        call = self.file.span(self.call)
        for stretch in ((start, call[0]), (call[1], end)):
            uses.plain(*stretch)
        names = ", ".join(uses.of_leaves[each] for each in order)
        made.append((self.user, start, end, (f"{names} = ", call), self.where))
        inner = [*self.handing.parameters(inside), *uses.changes(), *self.handing.changes()]
        made += [(self.user, *each, self.where) for each in inner]
        apart(made)
        return made

    def _holder(self) -> str:
        target = self.statement.targets[0]
        return target.id if isinstance(target, ast.Name) else self.builder.name

    # ---- what the builder returns

    def _returns(self, uses: Uses) -> tuple[Pack, list[tuple[int, int, tuple[Part, ...]]]]:
        """What it returns, each value by its name in it, and the changes of what keeps that together."""
        value = self.returned.value
        if value is None:
            raise Unjoined
        packer = Packer(self, self.own, self.builder)
        uses.returned = self.returned
        known: dict[str, Pack] = {}
        changes: list[tuple[int, int, tuple[Part, ...]]] = []
        for each in ast.walk(value):
            if (
                isinstance(each, ast.Name)
                and each.id not in known
                and isinstance(each.ctx, ast.Load)
            ):
                probe = Uses(self.own, self.builder)
                probe.returned = self.returned
                try:
                    OwnPack(packer, probe, each.id)
                except Unjoined:
                    continue
                if probe.handed:
                    continue
                kept = OwnPack(packer, uses, each.id)
                known[each.id] = kept.pack
                changes += kept.changes()
        packed = packer.packed(value, known, self.deep)
        if not isinstance(packed, Pack):
            raise Unjoined
        for leaf in leaves(packed):
            leaf.since = 0
            if any(isinstance(e, ast.Name) and e.id in known for e in ast.walk(leaf.node)):
                if leaf not in uses.of_leaves:
                    raise Unjoined
        return packed, [*changes, *uses.changes()]

    def _as_return(self, order: Sequence[Leaf], uses: Uses) -> _Made:
        """`return x, train_op`, with names in front of it for what has none."""
        start, end = self.own.span(self.returned)
        uses.plain(start, end)
        margin = self.own.alone(self.returned)
        parts: list[Part] = []
        for leaf in self._unnamed:
            if margin is None:
                raise Unjoined
            parts += [f"{uses.of_leaves[leaf]} = ", uses.span(leaf.node), f"\n{margin}"]
        names = ", ".join(uses.of_leaves[each] for each in order)
        return self.own.path, start, end, (*parts, f"return {names}"), self.builder.name

    def _name_others(self, pack: Pack, uses: Uses) -> None:
        """Names for what the builder returns without one; others are not bound anew while that is computed."""
        every = list(dict.fromkeys(leaves(pack)))
        self._unnamed = [each for each in every if each not in uses.of_leaves]
        for each in every if self._unnamed else ():
            name = uses.of_leaves.get(each)
            if name is not None and not bindings(self.builder, name):
                raise Unjoined
            if name in self.own.shared_between_functions:
                raise Unjoined
        for each in self._unnamed:
            key = next((key for key, value in pack.values.items() if value is each), None)
            words = [key] if isinstance(key, str) else []
            if isinstance(each.node, ast.Call):
                words.append(name_of(each.node))
            uses.of_leaves[each] = uses.new(*words, f"{self.builder.name}_value")

    def _is_plain(self, order: Sequence[Leaf], uses: Uses) -> bool:
        """Whether it is returned, and taken apart, by names already."""
        value, (target,) = self.returned.value, self.statement.targets
        if not isinstance(value, ast.Tuple) or self.statement.value is not self.call:
            return False
        plain = isinstance(target, ast.Tuple) and len(target.elts) == len(value.elts)
        names = [*value.elts, *(target.elts if isinstance(target, ast.Tuple) else ())]
        return plain and all(isinstance(each, ast.Name) for each in names)

    # ---- who uses it

    def _caller(self) -> tuple[str, ast.Assign, ast.Call, Scope]:
        """The one statement that calls the builder, its file and its function."""
        name, path = self.builder.name, self.own.path
        users = sorted(self.tree.users.get(path, set()) | {path})
        uses = [
            (user, each)
            for user in users
            if user in self.tree.sources
            for each in self.uses_in(user, path, name)
        ]
        if len(uses) != 1 or self.told_elsewhere(path, name, [use for _, use in uses]):
            raise Unjoined
        user, use = uses[0]
        for scope in scopes(self.module(user).tree):
            for each in own_nodes(scope):
                if not isinstance(each, ast.Assign) or len(each.targets) != 1:
                    continue
                value = each.value
                while isinstance(value, ast.Subscript):
                    value = value.value
                if isinstance(value, ast.Call) and value.func is use and scope is not self.builder:
                    return user, each, value, scope
        raise Unjoined


def apart(changes: Collection[tuple[str, int, int, tuple[Part, ...], str]]) -> None:
    """Raise where two changes of a file are of the same text."""
    done: tuple[str, int] = ("", 0)
    for path, start, end, *_ in sorted(changes, key=lambda one: one[:3]):
        if path == done[0] and start < done[1]:
            raise Unjoined
        done = (path, end)


def _one_each(pack: Pack, uses: Uses, known: dict[str, Leaf]) -> Pack:
    """The same with one leaf for each name of the function that returns it."""
    values: dict[str | int, Packed] = {}
    for key, value in pack.values.items():
        if isinstance(value, Pack):
            values[key] = _one_each(value, uses, known)
            continue
        name = uses.of_leaves.get(value)
        if name is None and isinstance(value.node, ast.Name):
            name = uses.of_leaves[value] = value.node.id
        values[key] = value if name is None else known.setdefault(name, value)
    return replace(pack, values=values)


__all__ = ["spread_values"]
