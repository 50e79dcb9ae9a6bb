"""What a function keeps together under a name that it makes itself, each value under a name of its own.

`ops = {}`, `ops['train'] = train_op` and `sess.run(ops['train'])` are `sess.run(train_op)`, also where a function of the file is
handed `ops` and runs that.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from towermigrate.recognize.lending import Files
from towermigrate.recognize.plain.changes import Change, Changed, Part, PlainFile, bindings
from towermigrate.recognize.plain.collected import once_in
from towermigrate.recognize.plain.handed_packs import Handing
from towermigrate.recognize.plain.held import Uses, in_runs, settled_at
from towermigrate.recognize.plain.packs import Key, Leaf, Pack, Packed, Packer, leaves
from towermigrate.recognize.python_scopes import Unjoined
from towermigrate.recognize.source import Tree


def own_packs(tree: Tree, path: str, file: PlainFile) -> list[Change]:
    """The changes for one name of a function, of which values are run."""
    if file.finds_names_by_text or file.path != path:
        return []
    files = Files(tree, path)
    for where, scope in file.scopes:
        if isinstance(scope, ast.Module) or ".run(" not in ast.unparse(scope):
            continue
        packer = Packer(files, file, scope)
        for statement in once_in(scope):
            name = _made(statement)
            if name is None or bindings(scope, name) != 1:
                continue
            uses = Uses(file, scope)
            try:
                changes = OwnPack(packer, uses, name).changes()
                handing = Handing(file, (scope,))
                handing.follow(uses)
                if not in_runs(uses) and not any(
                    ".run(" in ast.unparse(e.scope) for e in handing.uses
                ):
                    continue
                changes += [*handing.parameters(uses), *uses.changes(), *handing.changes()]
                _apart(changes)
            except Unjoined:
                continue
            return [Change(*each, where) for each in changes]
    return []


def _apart(changes: list[Changed]) -> None:
    """Raise where two changes are of the same text."""
    done = 0
    for start, end, _ in sorted(changes, key=lambda one: one[:2]):
        if start < done:
            raise Unjoined
        done = end


def _made(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() | ast.Call() | ast.Tuple() | ast.List()):  # fmt: skip
            return name
    return None


class OwnPack:
    """What a function keeps under a name that it makes itself, and the changes of the statements that keep it.

    `uses` is told of all of its uses.
    """

    def __init__(self, packer: Packer, uses: Uses, name: str) -> None:
        self.packer, self.uses, self.name = packer, uses, name
        self.file, self.scope = uses.file, uses.scope
        self.values: dict[Key, Packed] = {}
        self._changes: list[Changed] = []
        made = [each for each in once_in(self.scope) if _made(each) == name]
        if len(made) != 1 or bindings(self.scope, name) != 1:
            raise Unjoined
        assert isinstance(made[0], ast.Assign)
        found = packer.entries(made[0].value)
        if found is None:
            raise Unjoined
        self.kind, entries = found
        self._several(made[0], entries)
        if self.kind.open:
            for each in self._accesses():
                self._kept(each)
        if not self.values:
            raise Unjoined
        self.pack = replace(self.kind, values=self.values)
        uses.hold(name, self.pack)

    def changes(self) -> list[Changed]:
        return list(self._changes)

    def _accesses(self) -> list[ast.Attribute | ast.Subscript]:
        """What keeps something more: `ops['x']` of `ops['x'] = …`, `ops.update` of `ops.update(x=…)`."""
        found = [
            each
            for each in ast.walk(self.scope)
            if isinstance(each, ast.Attribute | ast.Subscript)
            and isinstance(each.value, ast.Name)
            and each.value.id == self.name
            and (isinstance(each.ctx, ast.Store) or self._updates(each))
        ]
        return sorted(found, key=self.file.start)

    def _updates(self, node: ast.expr) -> bool:
        return self.kind.by_item and isinstance(node, ast.Attribute) and node.attr == "update"

    def _kept(self, access: ast.Attribute | ast.Subscript) -> None:
        """Note a statement that keeps more."""
        parent = self.uses.parents[id(access)]
        self.uses.stores.add(id(access))
        if isinstance(access.ctx, ast.Load):
            statement = self.uses.parents.get(id(parent))
            if not isinstance(parent, ast.Call) or parent.func is not access:
                raise Unjoined
            if not isinstance(statement, ast.Expr) or id(statement) not in self.uses.once:
                raise Unjoined
            self._several(statement, self._given(parent))
            return
        if isinstance(parent, ast.Tuple):
            statement = self.uses.parents.get(id(parent))
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                if access is parent.elts[0]:
                    self._in_one(statement, parent)
                return  # with the first of them
        if not isinstance(parent, ast.Assign) or id(parent) not in self.uses.once:
            raise Unjoined
        self._one(parent, access)

    def _given(self, call: ast.Call) -> list[tuple[Key, ast.expr]]:
        """What `update` is given."""
        made: ast.expr = call
        if len(call.args) == 1 and not call.keywords:
            made = call.args[0]
        elif not call.args:
            made = ast.Call(ast.Name("dict", ast.Load()), [], call.keywords)
        found = self.packer.entries(made)
        if found is None or not found[0].by_item:
            raise Unjoined
        return found[1]

    def _one(self, statement: ast.Assign, access: ast.expr) -> None:
        """`ops['x'] = X`, `ops['x'] = X = tf.placeholder(…)`."""
        others = [each for each in statement.targets if each is not access]
        leaf = Leaf(statement.value, self.file.end(statement))
        own = [each.id for each in others if isinstance(each, ast.Name)]
        if len(own) != len(others):
            raise Unjoined
        settled = [each for each in own if bindings(self.scope, each) == 1]
        if own and not settled:
            raise Unjoined
        key = self.kind.key(access)
        if settled and settled[0] not in self.file.shared_between_functions:
            start = self.file.start(statement)
            self.uses.plain(start, self.file.start(statement.value))
            text = "".join(f"{each} = " for each in own)
            self._changes.append((start, self.file.start(statement.value), (text,)))
            self._keep(key, leaf, settled[0])
        elif settled:
            raise Unjoined
        elif isinstance(leaf.node, ast.Name) and self._settled(leaf.node, statement):
            self.uses.gone.append(statement)
            self._keep(key, leaf, leaf.node.id)
        else:
            name = self._new(key)
            self._changes.append((*self.uses.span(_loaded(access)), (name,)))
            self._keep(key, leaf, name)

    def _in_one(self, statement: ast.Assign, targets: ast.Tuple) -> None:
        """`ops.x, ops.y = X, Y`."""
        value = statement.value
        if id(statement) not in self.uses.once or not isinstance(value, ast.Tuple):
            raise Unjoined
        if len(value.elts) != len(targets.elts):
            raise Unjoined
        entries: list[tuple[Key, ast.expr]] = []
        for target, each in zip(targets.elts, value.elts, strict=True):
            held = target.value if isinstance(target, ast.Attribute | ast.Subscript) else None
            if not isinstance(held, ast.Name) or held.id != self.name:
                raise Unjoined
            entries.append((self.kind.key(target), each))
        self._several(statement, entries)

    def _several(self, statement: ast.stmt, entries: list[tuple[Key, ast.expr]]) -> None:
        """What a statement keeps, in its order; those that have no names get them there."""
        rows: list[Part] = []
        margin = self.file.alone(statement)
        start, end = self.file.span(statement)
        for key, value in entries:
            packed = self.packer.packed(value, {})
            if isinstance(packed, Pack) and self._nested(packed, statement):
                self.values[self._fresh(key)] = packed
                continue
            leaf = Leaf(value, end)
            if isinstance(value, ast.Name) and self._settled(value, statement):
                self._keep(key, leaf, value.id)
                continue
            name = self._new(key)
            rows += [f"\n{margin}" if rows else "", f"{name} = ", self.uses.span(value)]
            self._keep(key, leaf, name)
        if not rows:
            self.uses.gone.append(statement)
            return
        self.uses.plain(start, end)
        if margin is None:
            raise Unjoined
        self._changes.append((start, end, tuple(rows)))

    def _nested(self, pack: Pack, statement: ast.stmt) -> bool:
        """Whether all that is kept in one value has names, which are noted."""
        every = list(leaves(pack))
        named = [each.node for each in every if isinstance(each.node, ast.Name)]
        if len(named) != len(every) or not every:
            return False
        if not all(self._settled(each, statement) for each in named):
            return False
        for leaf, name in zip(every, named, strict=True):
            leaf.since = self.file.end(statement)
            self.uses.of_leaves[leaf] = name.id
        return True

    def _settled(self, node: ast.Name, statement: ast.stmt) -> bool:
        return settled_at(self.file, self.scope, node.id, self.file.start(statement))

    def _fresh(self, key: Key) -> Key:
        if key in self.values:
            raise Unjoined  # kept anew
        return key

    def _keep(self, key: Key, leaf: Leaf, name: str) -> None:
        self.values[self._fresh(key)] = leaf
        self.uses.of_leaves[leaf] = name

    def _new(self, key: Key) -> str:
        words = [key] if isinstance(key, str) else []
        return self.uses.new(*words, f"{self.name}_{key}")


def _loaded(access: ast.expr) -> ast.expr:
    """An access as what it is where its value is read."""
    match access:
        case ast.Attribute(value=value, attr=attr):
            made: ast.expr = ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            made = ast.Subscript(value, index, ast.Load())
        case _:
            raise Unjoined
    return ast.copy_location(made, access)


__all__ = ["OwnPack", "own_packs"]
