"""Parts of an input in a dict, by the number of their tower or by its device: in a list.

`parts = dict(zip(DEVICES, tf.split(x, 2)))`, of which each tower takes `parts[d]`, is `parts = tf.split(x, 2)`, of which it
takes `parts[i]`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers, once_in
from towermigrate.recognize.plain.tower_loops import listed_value, pairs_of, split_count
from towermigrate.recognize.python_scopes import Unjoined

_PYTHONS = ("dict", "zip", "enumerate", "range", "list")


def keyed_parts(file: PlainFile) -> list[Change]:
    """The dicts of parts that only a tower loop takes its own from."""
    if "tf.split(" not in file.text or file.finds_names_by_text:
        return []
    if not all(is_pythons(file, name) for name in _PYTHONS if name in file.words):
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        try:
            found += _Keyed(file, where, scope, loop).changes()
        except Unjoined:
            continue
    return found


@dataclass(frozen=True)
class _Parts:
    """A dict: its name, what it is made of and where, and what its keys go over (None for the numbers from 0 on)."""

    name: str
    made: ast.expr
    parts: ast.expr
    keys: ast.expr | None


class _Keyed:
    def __init__(self, file: PlainFile, where: str, scope: Scope, loop: ast.For) -> None:
        self.file, self.where, self.scope, self.loop = file, where, scope, loop
        self.number: str | None = None
        self.device: str | None = None
        self.over: ast.expr = loop.iter
        match loop.target, loop.iter:
            case (
                ast.Tuple(elts=[ast.Name(id=number), ast.Name(id=device)]),
                ast.Call(func=ast.Name(id="enumerate"), args=[over], keywords=[]),
            ):
                self.number, self.device, self.over = number, device, over
            case ast.Name(id=number), ast.Call(func=ast.Name(id="range"), args=[_], keywords=[]):
                self.number = number
            case ast.Name(id=device), ast.Name():
                self.device = device
            case _:
                raise Unjoined
        for name in (self.number, self.device):
            if name is not None and bindings(scope, name) != 1:
                raise Unjoined

    def changes(self) -> list[Change]:
        parents = {
            id(inner): each for each in ast.walk(self.scope) for inner in ast.iter_child_nodes(each)
        }
        found: list[Change] = []
        counted = self.number
        for each in self._dicts():
            key = self.number if each.keys is None else self._key(each.keys)
            if key is None:
                continue
            if counted is None:
                counted = self.file.free(self.scope, "i", "number")
            made = self._taken(each, key, counted, parents)
            if made:
                found += made
        if found and self.number is None:
            span = self.file.start(self.loop.target), self.file.end(self.loop.iter)
            text = f"{counted}, {self.device} in enumerate("
            if self.file.commented(*span):
                return []
            found.append(Change(*span, (text, self.file.span(self.loop.iter), ")"), self.where))
        return found

    def _dicts(self) -> list[_Parts]:
        found: list[_Parts] = []
        for each in once_in(self.scope):
            if not isinstance(each, ast.Assign) or each.lineno >= self.loop.lineno:
                continue
            for target in each.targets if len(each.targets) == 1 else ():
                for one, value in pairs_of(target, each.value):
                    if isinstance(one, ast.Name) and bindings(self.scope, one.id) == 1:
                        made = _paired(value)
                        if made is not None and one.id not in self.file.shared_between_functions:
                            found.append(_Parts(one.id, value, made[1], made[0]))
        return found

    def _key(self, keys: ast.expr) -> str | None:
        """The name of the loop by which parts are taken, where each has a key of its own."""
        match keys:
            case ast.Call(func=ast.Name(id="range"), args=[counted], keywords=[]):
                same = isinstance(self.loop.iter, ast.Call) and ast.unparse(keys) == ast.unparse(self.loop.iter)  # fmt: skip
                plain = isinstance(counted, ast.Constant) or self._is_one(counted)
                return self.number if same and plain else None
            case ast.Name(id=name):
                if not isinstance(self.over, ast.Name) or self.over.id != name:
                    return None
                value = listed_value(self.file, self.where, self.scope, self.loop, name)
                if not isinstance(value, ast.List | ast.Tuple):
                    return None
                texts = [each.value for each in value.elts if isinstance(each, ast.Constant)]
                if len(set(texts)) != len(value.elts):
                    return None  # of two of one key the last would be both
                return self.device
        return None

    def _is_one(self, node: ast.expr) -> bool:
        """Whether a name is the same wherever it is read."""
        if not isinstance(node, ast.Name) or node.id in self.file.shared_between_functions:
            return False
        own = bindings(self.scope, node.id)
        return own == 1 or own == 0 and bindings(self.file.tree, node.id) == 1

    def _taken(
        self, parts: _Parts, key: str, counted: str, parents: dict[int, ast.AST]
    ) -> list[Change]:
        file = self.file
        inside = {id(each) for each in ast.walk(self.loop)}
        reads = [
            each
            for each in ast.walk(self.scope)
            if isinstance(each, ast.Name)
            and each.id == parts.name
            and isinstance(each.ctx, ast.Load)
        ]
        if isinstance(self.scope, ast.Module) or not reads:
            return []
        found: list[Change] = []
        for each in reads:
            parent = parents.get(id(each))
            if id(each) not in inside or not isinstance(parent, ast.Subscript):
                return []
            asked = parent.slice
            if not isinstance(parent.ctx, ast.Load) or not isinstance(asked, ast.Name):
                return []
            if asked.id != key or parent.value is not each:
                return []
            if key != counted:
                found.append(Change(*file.span(asked), (counted,), self.where))
        start, end = file.span(parts.made)
        if file.commented(start, end):
            return []
        listed = split_count(parts.parts) is None
        text = ("list(", file.span(parts.parts), ")") if listed else (file.span(parts.parts),)
        return [Change(start, end, text, self.where), *found]


def _paired(node: ast.expr) -> tuple[ast.expr | None, ast.expr] | None:
    """The keys, None for the numbers from 0 on, and the parts of `dict(zip(keys, parts))`, `{k: v for k, v in enumerate(parts)}`."""
    pairs: ast.expr
    match node:
        case ast.Call(func=ast.Name(id="dict"), args=[pairs], keywords=[]):
            pass
        case ast.DictComp(
            key=ast.Name(id=key), value=ast.Name(id=value), generators=[
                ast.comprehension(target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]), iter=pairs, ifs=[], is_async=0)
            ],
        ) if (key, value) == (first, second) and first != second:  # fmt: skip
            pass
        case _:
            return None
    match pairs:
        case ast.Call(func=ast.Name(id="enumerate"), args=[parts], keywords=[]):
            keys: ast.expr | None = None
        case ast.Call(func=ast.Name(id="zip"), args=[keys, parts], keywords=[]):
            pass
        case _:
            return None
    return (keys, parts) if _are_splits(parts) else None


def _are_splits(node: ast.expr) -> bool:
    """`tf.split(x, 2)`, `zip(tf.split(x, 2), tf.split(y, 2))`."""
    match node:
        case ast.Call(func=ast.Name(id="zip"), args=args, keywords=[]):
            return bool(args) and all(split_count(each) is not None for each in args)
    return split_count(node) is not None


__all__ = ["keyed_parts"]
