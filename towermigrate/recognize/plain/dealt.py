"""Parts of inputs that are kept in pairs, lists or dicts until the towers take theirs: each list of parts under a name of its own.

`shards = list(zip(tf.split(X, 2), tf.split(Y, 2)))`, of which each tower takes `shards[i]`, is `X_parts = tf.split(X, 2)` and
`Y_parts = tf.split(Y, 2)`, of which it takes `(X_parts[i], Y_parts[i])`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    stores,
)
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers
from towermigrate.recognize.plain.tower_loops import pairs_of, split_count
from towermigrate.recognize.python_scopes import own_nodes

_PYTHONS = ("zip", "list", "map", "enumerate", "len", "range")
_Key = int | str


@dataclass
class _Split:
    """A list of parts, one for each tower; `name` is what it is called, made up where it had no name."""

    text: tuple[Part, ...]
    count: str
    name: str | None = None
    of: str = "parts"


@dataclass
class _Row:
    """Several of them, each under a key: of a tuple, a list or a dict."""

    items: dict[_Key, _Held] = field(default_factory=dict)


@dataclass
class _Dealt:
    """What each tower gets of several of them, as a list of tuples. `once` says that going over it uses it up."""

    parts: list[_Split]
    once: bool


_Held = _Split | _Row | _Dealt


class _NotThem(Exception):
    """It is nothing of that kind, or something else is done with it."""


def dealt_parts(file: PlainFile) -> list[Change]:
    """What holds the parts of several inputs, in scopes with a tower loop, taken apart."""
    if "tf.split(" not in file.text or file.finds_names_by_text:
        return []
    if not all(is_pythons(file, name) for name in _PYTHONS if name in file.words):
        return []
    found: list[Change] = []
    known: set[int] = set()
    for where, scope, loop in loops_of_towers(file):
        if id(scope) in known:
            continue
        known.add(id(scope))
        found += _Reader(file, scope, loop, where).changes()
    return found


class _Reader:
    def __init__(self, file: PlainFile, scope: Scope, loop: ast.For, where: str) -> None:
        self.file, self.scope, self.loop, self.where = file, scope, loop, where
        self.parents = {
            id(child): parent
            for parent in ast.walk(scope)
            for child in ast.iter_child_nodes(parent)
        }  # fmt: skip
        self.own = {id(each) for each in own_nodes(scope)}

    def changes(self) -> list[Change]:
        for body, always in blocks(self.scope):
            for each in body if always else ():
                if isinstance(each, ast.Assign) and each.lineno < self.loop.lineno:
                    self.file.begin()
                    try:
                        made = self._of_statement(each)
                    except _NotThem:
                        continue
                    if made:  # one at a time: what is changed is read again
                        return made
        return self._whole_targets()

    def _of_statement(self, statement: ast.Assign) -> list[Change]:
        margin = self.file.alone(statement)
        if (
            margin is None
            or len(statement.targets) != 1
            or self.file.commented(*self.file.span(statement))
        ):
            return []
        (target,) = statement.targets
        if isinstance(target, ast.Tuple | ast.List):
            return self._unpacked(statement, target, margin)
        if not isinstance(target, ast.Name) or not self._is_once(target.id):
            return []
        held = self.held(statement.value)
        if isinstance(held, _Split) or isinstance(held, _Row) and _is_used_up(statement.value):
            return []
        leaves = list(_leaves(held))
        for leaf in leaves:
            if leaf.name is None:
                leaf.name = self.file.free(self.scope, f"{leaf.of}_parts")
        uses = self._uses(target.id, held)
        made: list[Part] = []
        for leaf in leaves:
            if leaf.text:
                made += [f"\n{margin}"] if made else []
                made += [f"{leaf.name} = ", *leaf.text]
        if not made and len(self._block_of(statement)) < 2:
            return []
        span = self.file.span(statement) if made else self.file.without(statement)
        return [Change(*span, tuple(made), self.where), *uses]

    def _unpacked(
        self, statement: ast.Assign, target: ast.Tuple | ast.List, margin: str
    ) -> list[Change]:
        """`xs, ys = [tf.split(each, 2) for each in (X, Y)]`, one statement for each."""
        if isinstance(statement.value, ast.Tuple | ast.List):
            return []  # is read as it is
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        held = self.held(statement.value)
        if not isinstance(held, _Row) or list(held.items) != list(range(len(target.elts))):
            return []
        made: list[Part] = []
        if len(set(names)) != len(target.elts):
            return []
        for name, item in zip(names, held.items.values(), strict=True):
            if not isinstance(item, _Split) or not item.text:
                return []
            made += [f"\n{margin}"] if made else []
            made += [f"{name} = ", *item.text]
        return [Change(*self.file.span(statement), tuple(made), self.where)]

    # ---- what an expression holds

    def _is_once(self, name: str) -> bool:
        return bindings(self.scope, name) == 1 and name not in self.file.shared_between_functions

    def held(self, node: ast.expr, known: Mapping[str, ast.expr] | None = None) -> _Held:
        """What an expression holds; `known` are the names of comprehensions around it."""
        known = known or {}
        if isinstance(node, ast.Name):
            return self._named(node)
        if isinstance(node, ast.Call):
            return self._called(node, known)
        if isinstance(node, ast.List | ast.Tuple):
            return _Row({k: self.held(each, known) for k, each in enumerate(node.elts)})
        if isinstance(node, ast.Dict):
            return _Row(
                {_key(k): self.held(v, known) for k, v in zip(node.keys, node.values, strict=True)}
            )
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            return self._comprehended(node)
        raise _NotThem

    def _named(self, node: ast.Name) -> _Split:
        """A name that one statement binds to a split."""
        if not self._is_once(node.id):
            raise _NotThem
        for body, always in blocks(self.scope):
            for each in body if always else ():
                if not isinstance(each, ast.Assign) or each.lineno > node.lineno:
                    continue
                for target in each.targets:
                    for one, value in pairs_of(target, each.value):
                        if isinstance(one, ast.Name) and one.id == node.id:
                            count = split_count(value)
                            if count is None:
                                raise _NotThem
                            return _Split((), ast.unparse(count), node.id)
        raise _NotThem

    def _called(self, node: ast.Call, known: Mapping[str, ast.expr]) -> _Held:
        count = split_count(node)
        if count is not None:
            return self._split(node, count, known)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise _NotThem
        if name == "list" and len(node.args) == 1:
            held = self.held(node.args[0], known)
            return _Dealt(held.parts, once=False) if isinstance(held, _Dealt) else held
        if name == "zip" and node.args:
            parts = [self.held(each, known) for each in node.args]
            return self._dealt(parts, once=True)
        if name == "map" and len(node.args) == 2:
            function, over = node.args
            if isinstance(function, ast.Lambda) and isinstance(over, ast.List | ast.Tuple):
                (only, *more) = function.args.args
                if not more and not function.args.defaults:
                    return _Row({
                        k: self.held(function.body, {only.arg: each})
                        for k, each in enumerate(over.elts)
                    })  # fmt: skip
        raise _NotThem

    def _split(self, node: ast.Call, count: ast.expr, known: Mapping[str, ast.expr]) -> _Split:
        """A split, with what a comprehension goes over in place of its name."""
        if not node.args or isinstance(node.args[0], ast.Starred):
            raise _NotThem
        value, text = node.args[0], list[Part]()
        at, end = self.file.span(node)
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id in known]
        for each in sorted(names, key=self.file.start):
            item = known[each.id]
            if not isinstance(item, ast.Name | ast.Attribute):
                raise _NotThem
            text += [(at, self.file.start(each)), self.file.of(item)]
            at = self.file.end(each)
        text.append((at, end))
        if isinstance(value, ast.Name) and value.id in known:
            value = known[value.id]
        while isinstance(value, ast.Attribute):
            value = ast.Name(value.attr)
        return _Split(
            tuple(text),
            ast.unparse(count),
            None,
            value.id if isinstance(value, ast.Name) else "input",
        )

    def _comprehended(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> _Held:
        (only, *more) = node.generators
        if more or only.ifs or only.is_async:
            raise _NotThem
        target, over = only.target, only.iter
        if isinstance(node, ast.DictComp):
            match target, over:
                case (
                    ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=value)]),
                    ast.Call(func=ast.Attribute(value=ast.Dict() as display, attr="items"), args=[]),
                ) if isinstance(node.key, ast.Name) and node.key.id == key:  # fmt: skip
                    items = zip(display.keys, display.values, strict=True)
                    return _Row({_key(k): self.held(node.value, {value: v}) for k, v in items})
            raise _NotThem
        if not isinstance(target, ast.Name):
            raise _NotThem
        if isinstance(over, ast.List | ast.Tuple):
            return _Row(
                {k: self.held(node.elt, {target.id: each}) for k, each in enumerate(over.elts)}
            )
        match over, node.elt:
            case ast.Call(
                func=ast.Name(id="range" | "xrange"), args=[counted], keywords=[]
            ), ast.Tuple(elts=elts):
                parts: list[_Held] = []
                for each in elts:
                    if not isinstance(each, ast.Subscript) or ast.unparse(each.slice) != target.id:
                        raise _NotThem
                    parts.append(self.held(each.value))
                found = self._dealt(parts, once=isinstance(node, ast.GeneratorExp))
                if any(part.count != ast.unparse(counted) for part in found.parts):
                    raise _NotThem
                return found
        raise _NotThem

    def _dealt(self, parts: Sequence[_Held], once: bool) -> _Dealt:
        splits = [each for each in parts if isinstance(each, _Split)]
        if len(splits) != len(parts) or len({each.count for each in splits}) != 1:
            raise _NotThem
        return _Dealt(splits, once)

    # ---- what is done with it

    def _uses(self, name: str, held: _Row | _Dealt) -> list[Change]:
        reads = [each for each in self.file.uses(name) if isinstance(each.ctx, ast.Load)]
        if not reads or isinstance(held, _Dealt) and held.once and len(reads) > 1:
            raise _NotThem
        found: list[Change] = []
        for each in reads:
            if id(each) not in self.own and not self._in_comprehension(each):
                raise _NotThem
            found.append(self._use(each, held))
        return found

    def _in_comprehension(self, node: ast.AST) -> bool:
        while id(node) not in self.own:
            parent = self.parents.get(id(node))
            if parent is None or isinstance(parent, ast.FunctionDef | ast.Lambda | ast.ClassDef):
                return False
            node = parent
        return True

    def _use(self, node: ast.expr, held: _Held) -> Change:
        """What stands in place of what reads it: with the subscripts behind it, where there are any."""
        parent = self.parents.get(id(node))
        if isinstance(held, _Split):
            return Change(*self.file.span(node), (str(held.name),), self.where)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            if self.file.commented(*self.file.span(parent)) or not isinstance(parent.ctx, ast.Load):
                raise _NotThem
            if isinstance(held, _Row):
                key = _key(parent.slice)
                if key not in held.items:
                    raise _NotThem
                return self._use(parent, held.items[key])
            if held.once or isinstance(parent.slice, ast.Slice):
                raise _NotThem
            index = self.file.of(parent.slice)
            around = self.parents.get(id(parent))
            if isinstance(around, ast.Subscript) and around.value is parent:
                place = _key(around.slice)
                if not isinstance(place, int) or not 0 <= place < len(held.parts):
                    raise _NotThem
                return Change(
                    *self.file.span(around), (f"{held.parts[place].name}[{index}]",), self.where
                )
            inside = ", ".join(f"{each.name}[{index}]" for each in held.parts)
            return Change(
                *self.file.span(parent), (f"({inside}{',' * (len(held.parts) == 1)})",), self.where
            )
        if isinstance(held, _Dealt):
            return self._gone_over(node, parent, held)
        return self._taken_from_each(node, parent, held)

    def _gone_over(self, node: ast.expr, parent: ast.AST | None, held: _Dealt) -> Change:
        """`for i, (x, y) in enumerate(shards)`, `len(shards)`."""
        lists = ", ".join(str(each.name) for each in held.parts)
        if isinstance(parent, ast.For) and parent.iter is node:
            if held.once and parent is not self.loop:
                raise _NotThem
            return Change(*self.file.span(node), (f"zip({lists})",), self.where)
        called = parent.func if isinstance(parent, ast.Call) and node in parent.args else None
        if isinstance(called, ast.Name) and called.id == "enumerate":
            around = self.parents.get(id(parent))
            if isinstance(around, ast.For) and (around is self.loop or not held.once):
                return Change(*self.file.span(node), (f"zip({lists})",), self.where)
        counted = re.fullmatch(r"[\w.]+", held.parts[0].count)
        of_len = isinstance(called, ast.Name) and called.id == "len"
        if of_len and isinstance(parent, ast.Call) and counted and not held.once:
            return Change(*self.file.span(parent), (held.parts[0].count,), self.where)
        raise _NotThem

    def _taken_from_each(self, node: ast.expr, parent: ast.AST | None, held: _Row) -> Change:
        """`[part[i] for part in parts]` of a list of them."""
        around = self.parents.get(id(parent)) if parent is not None else None
        if not isinstance(parent, ast.comprehension) or not isinstance(
            around, ast.ListComp | ast.GeneratorExp
        ):
            raise _NotThem
        target = parent.target
        splits = [each for each in held.items.values() if isinstance(each, _Split)]
        if len(around.generators) != 1 or parent.ifs or not isinstance(target, ast.Name):
            raise _NotThem
        if list(held.items) != list(range(len(splits))) or self.file.commented(
            *self.file.span(around)
        ):
            raise _NotThem
        made: list[Part] = ["["]
        for number, split in enumerate(splits):
            made += [", "] if number else []
            at, end = self.file.span(around.elt)
            names = [
                each
                for each in ast.walk(around.elt)
                if isinstance(each, ast.Name) and each.id == target.id
            ]
            if not names or any(
                isinstance(each, ast.Lambda | ast.comprehension) for each in ast.walk(around.elt)
            ):
                raise _NotThem
            for each in sorted(names, key=self.file.start):
                made += [(at, self.file.start(each)), str(split.name)]
                at = self.file.end(each)
            made.append((at, end))
        made.append("]")
        if isinstance(around, ast.GeneratorExp):
            made = ["(", *made, ")"]
        return Change(*self.file.span(around), tuple(made), self.where)

    # ---- a loop's target

    def _whole_targets(self) -> list[Change]:
        """`for i, shard in enumerate(zip(xs, ys))` with `x, y = shard` in it as `for i, (x, y) in enumerate(zip(xs, ys))`."""
        target, over = self.loop.target, self.loop.iter
        if (
            isinstance(over, ast.Call)
            and ast.unparse(over.func) == "enumerate"
            and len(over.args) == 1
        ):
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                return []
            target, over = target.elts[1], over.args[0]
        if not isinstance(target, ast.Name) or not isinstance(over, ast.Call):
            return []
        if ast.unparse(over.func) != "zip" or bindings(self.scope, target.id) != 1:
            return []
        reads = [each for each in self.file.uses(target.id) if isinstance(each.ctx, ast.Load)]
        for statement in self.loop.body if len(reads) == 1 else ():
            inner = statement
            while isinstance(inner, ast.With) and not any(
                reads[0] is each for each in ast.walk(inner.items[0])
            ):
                if not any(reads[0] is each for each in ast.walk(inner)):
                    break
                inner = next(
                    one for one in inner.body if any(reads[0] is each for each in ast.walk(one))
                )
            match inner:
                case ast.Assign(targets=[ast.Tuple(elts=elts)], value=ast.Name() as value) if (
                    value is reads[0]
                ):
                    names = [each.id for each in elts if isinstance(each, ast.Name)]
                    once = all(len(stores(self.scope, name)) == 1 for name in names)
                    if len(names) != len(elts) or len(names) != len(over.args) or not once:
                        return []
                    if self.file.alone(inner) is None or len(self._block_of(inner)) < 2:
                        return []
                    return [
                        Change(*self.file.span(target), (f"({', '.join(names)})",), self.where),
                        Change(*self.file.without(inner), (), self.where),
                    ]  # fmt: skip
        return []

    def _block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self.parents.get(id(statement))
        body = getattr(parent, "body", [])
        return body if isinstance(body, list) else []


def _is_used_up(node: ast.expr) -> bool:
    """Whether going over a value uses it up: the towers behind the first would find nothing."""
    return isinstance(node, ast.GeneratorExp) or (
        isinstance(node, ast.Call) and ast.unparse(node.func) == "map"
    )


def _leaves(held: _Held) -> Iterator[_Split]:
    if isinstance(held, _Split):
        yield held
    else:
        for each in held.items.values() if isinstance(held, _Row) else held.parts:
            yield from _leaves(each)


def _key(node: ast.expr | None) -> _Key:
    if isinstance(node, ast.Constant) and type(node.value) in (int, str):
        return node.value  # type: ignore[return-value]
    raise _NotThem
