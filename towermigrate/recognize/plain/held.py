"""Where a function uses values that it keeps together: each of them has a name of its own there instead (`packs`).

`sess.run([ops['train'], ops.loss])`, `train_op, loss = ops[:2]`, `run_epoch(sess, ops)`. A use that does not tell which of the
values it takes makes none of them plain.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import Changed, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import once_in
from towermigrate.recognize.plain.packs import Leaf, Pack, Packed, in_order, leaves
from towermigrate.recognize.python_scopes import Unjoined, bound_by, own_nodes

_Targets = list[tuple[ast.expr, Packed]]


@dataclass(frozen=True)
class Handed:
    """A call that is given values that are kept together, and the argument: by a keyword, where that is not None."""

    call: ast.Call
    argument: ast.expr
    keyword: ast.keyword | None
    pack: Pack


class Uses:
    """All uses of what a scope keeps together under some names.

    `values` are the expressions that are one value each, `apart` the statements that give values names, and `handed` the
    calls that are given several. `returned` is the one `return` that may give them back, `stores` are accesses that keep one;
    `root` is the statement that has them of another function, and `gone` are those that are not needed any more.
    """

    def __init__(self, file: PlainFile, scope: Scope) -> None:
        self.file, self.scope = file, scope
        self.parents = {
            id(inner): each for each in ast.walk(scope) for inner in ast.iter_child_nodes(each)
        }
        self.once = {id(each) for each in once_in(scope)}
        self.returned: ast.Return | None = None
        self.root: ast.Assign | None = None
        self.gone: list[ast.stmt] = []
        self.stores: set[int] = set()
        self.values: list[tuple[ast.expr, Leaf]] = []
        self.apart: list[tuple[ast.Assign, _Targets]] = []
        self.handed: list[Handed] = []
        self.of_leaves: dict[Leaf, str] = {}

    # ---- what is used where

    def hold(self, name: str, pack: Pack) -> None:
        """Follow the values that a name has, which is bound once."""
        module = isinstance(self.scope, ast.Module)
        if bindings(self.scope, name) != 1 or name in self.file.shared_between_functions:
            raise Unjoined
        if module and name in self.file.words_of_users:
            raise Unjoined
        for each in ast.walk(self.scope):
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
                self.follow(each, pack)

    def follow(self, node: ast.expr, packed: Packed) -> None:
        """Note what becomes of an expression that is some of the values."""
        parent = self.parents.get(id(node))
        while isinstance(packed, Pack):
            if id(parent) in self.stores:
                return
            if not isinstance(parent, ast.Attribute | ast.Subscript) or parent.value is not node:
                break
            if not isinstance(parent.ctx, ast.Load):
                raise Unjoined
            packed, node = packed.of(parent), parent
            parent = self.parents.get(id(node))
        if any(each.since > self.file.start(node) for each in leaves(packed)):
            raise Unjoined  # may not be there yet
        if isinstance(parent, ast.Assign) and parent.value is node:
            (target, *others) = parent.targets
            plain = isinstance(target, ast.Name) or isinstance(packed, Pack)
            if not others and plain and id(parent) in self.once:
                return self.unpack(parent, target, packed)
        if isinstance(packed, Leaf):
            self.values.append((node, packed))
        elif isinstance(parent, ast.keyword):
            call = self.parents.get(id(parent))
            if not isinstance(call, ast.Call) or parent.arg is None:
                raise Unjoined
            self.handed.append(Handed(call, node, parent, packed))
        elif isinstance(parent, ast.Call) and parent.func is not node:
            self.handed.append(Handed(parent, node, None, packed))
        elif not self._returns(node):
            raise Unjoined

    def _returns(self, node: ast.AST) -> bool:
        """Whether an expression is a part of what the scope gives back."""
        above = self.parents.get(id(node))
        while isinstance(above, ast.expr | ast.keyword):
            above = self.parents.get(id(above))
        return above is not None and above is self.returned

    def unpack(self, statement: ast.Assign, target: ast.expr, packed: Packed) -> None:
        """Note a statement that gives values names."""
        pairs = list(_pairs(target, packed))
        self.apart.append((statement, pairs))
        for each, value in pairs:
            if isinstance(value, Pack):
                if not isinstance(each, ast.Name):
                    raise Unjoined
                if self._read(each):
                    self.hold(each.id, value)

    def used(self) -> list[Leaf]:
        """The values that the scope itself uses."""
        found = [leaf for _, leaf in self.values]
        for _, pairs in self.apart:
            found += [
                leaf for target, leaf in pairs if isinstance(leaf, Leaf) and self._read(target)
            ]
        return list(dict.fromkeys(found))

    def _read(self, target: ast.expr) -> bool:
        if not isinstance(target, ast.Name) or isinstance(self.scope, ast.Module):
            return True
        return any(not isinstance(each.ctx, ast.Store) for each in self.file.uses(target.id))

    # ---- the names

    def names(self, leaf: Leaf, *words: str) -> str:
        """The name of a value in the scope: the one that a statement gives it, if that may have it from the beginning."""
        if leaf not in self.of_leaves:
            given = [
                target.id
                for statement, pairs in self.apart
                for target, value in pairs
                if value is leaf and isinstance(target, ast.Name) and self._may_be(target.id)
            ]
            self.of_leaves[leaf] = given[0] if given else self.new(*words)
        return self.of_leaves[leaf]

    def _may_be(self, name: str) -> bool:
        if bindings(self.scope, name) != 1 or name in self.file.shared_between_functions:
            return False
        return not isinstance(self.scope, ast.Module) or not hasattr(builtins, name)

    def new(self, *words: str) -> str:
        plain = [each for each in words if each.isidentifier() and not hasattr(builtins, each)]
        name = self.file.free(self.scope, *plain) if plain else self.file.fresh(words[-1])
        if name in {one for each in self.file.tree.body for one in bound_by(each)}:
            name = self.file.fresh(f"own_{name}")
        return name

    # ---- what stands there instead

    def changes(self) -> Iterator[Changed]:
        """The names in place of the values, and without the statements that only gave them these."""
        for node, leaf in self.values:
            yield (*self.span(node), (self.of_leaves[leaf],))
        gone = list(self.gone)
        for statement, pairs in self.apart:
            left = [
                (target, value)
                for target, value in pairs
                if isinstance(value, Leaf)
                and self._read(target)
                and not (isinstance(target, ast.Name) and target.id == self.of_leaves[value])
            ]
            if statement is self.root:
                if left:
                    raise Unjoined
                continue
            if not left:
                gone.append(statement)
                continue
            given = ", ".join(self.of_leaves[value] for _, value in left if isinstance(value, Leaf))
            targets: list[str | tuple[int, int]] = []
            for target, _ in left:
                targets += [", " if targets else "", self.file.span(target)]
            start, end = self.file.span(statement)
            self.plain(start, end)
            yield start, end, (*targets, f" = {given}")
        for each in gone:
            yield self.without(each, gone)

    def span(self, node: ast.expr) -> tuple[int, int]:
        """The place of an expression, if it is there that it stands."""
        start, end = self.file.span(node)
        try:
            there = ast.parse(f"({self.file.text[start:end]})", mode="eval").body
        except SyntaxError as error:
            raise Unjoined from error  # in a text, of which older Pythons do not tell
        if ast.dump(there) != ast.dump(node):
            raise Unjoined
        self.plain(start, end)
        return start, end

    def plain(self, start: int, end: int) -> None:
        if self.file.commented(start, end):
            raise Unjoined

    def without(self, statement: ast.stmt, gone: list[ast.stmt]) -> Changed:
        """The change that takes a statement away, beside others."""
        parent = self.parents[id(statement)]
        bodies = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
        body = next(body for body in bodies if any(each is statement for each in body))
        if self.file.alone(statement) is None:
            raise Unjoined
        if all(any(each is one for one in gone) for each in body):
            raise Unjoined
        self.plain(*self.file.span(statement))
        return (*self.file.without(statement), ())


def _pairs(target: ast.expr, packed: Packed) -> Iterator[tuple[ast.expr, Packed]]:
    """What each name of a target is given."""
    if isinstance(target, ast.Name):
        yield target, packed
        return
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(packed, Pack):
        raise Unjoined
    values, names = list(packed.places), target.elts
    starred = [n for n, each in enumerate(names) if isinstance(each, ast.Starred)]
    if starred:
        (at,) = starred
        behind = len(names) - at - 1
        if len(values) < len(names) - 1:
            raise Unjoined
        middle = values[at : len(values) - behind]
        star = names[at]
        assert isinstance(star, ast.Starred)
        yield from zip(names[:at], values[:at], strict=True)
        yield star.value, in_order(middle)
        yield from zip(names[at + 1 :], values[len(values) - behind :], strict=True)
        return
    if len(values) != len(names):
        raise Unjoined
    for each, value in zip(names, values, strict=True):
        yield from _pairs(each, value)


def in_runs(uses: Uses) -> bool:
    """Whether some of the values are run, or fed."""
    for node, _ in uses.values:
        above = uses.parents.get(id(node))
        while isinstance(above, ast.expr | ast.keyword):
            if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute):
                if above.func.attr == "run":
                    return True
            above = uses.parents.get(id(above))
    return False


def settled_at(file: PlainFile, scope: Scope, name: str, place: int) -> bool:
    """Whether a name of a function, bound in front of a place of it, is never bound behind that."""
    if isinstance(scope, ast.Module) or name in file.shared_between_functions:
        return False
    found: Mapping[int, None] = dict.fromkeys(_bound_at(file, scope, name))
    return bool(found) and len(found) == bindings(scope, name) and max(found) < place


def _bound_at(file: PlainFile, scope: Scope, name: str) -> Iterator[int]:
    own = {id(each) for each in own_nodes(scope)}
    for each in ast.walk(scope):
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load):
            if id(each) in own:
                yield file.start(each)
        elif isinstance(each, ast.arg) and each.arg == name and each in _parameters(scope):
            yield file.block.offset(each.lineno, each.col_offset)


def _parameters(scope: Scope) -> list[ast.arg]:
    if isinstance(scope, ast.Module):
        return []
    return [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]


__all__ = ["Handed", "Uses", "in_runs", "settled_at"]
