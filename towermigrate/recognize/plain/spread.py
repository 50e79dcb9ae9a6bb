"""A dict of a graph's values that a function returns: the values themselves, each under a name of its own.

`ops = build()`, of which `run_epoch(sess, ops)` runs `ops['train']`, is `x, train_op = build()` and `run_epoch(sess, x, train_op)`.
Only of dicts whose every use is to be asked for a key that is written out, by the function that calls the builder or by one that
it is handed to, wherever that is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from towermigrate.recognize.lending import Files
from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings
from towermigrate.recognize.python_scopes import (
    Definition,
    Unjoined,
    bound_by,
    last_of,
    own_nodes,
)
from towermigrate.recognize.source import Tree


def spread_dicts(tree: Tree, path: str, file: PlainFile) -> list[Change]:
    """The changes of one file for the dict that a function of the tower loop's file, `path`, returns."""
    if file.text != tree.sources.get(file.path) or "return" not in tree.sources[path]:
        return []
    found: list[Change] = []
    for function, display in _builders(tree, path):
        try:
            found += [
                Change(start, end, parts, where)
                for own, start, end, parts, where in _Spread(
                    tree, path, function, display
                ).changes()
                if own == file.path
            ]
        except (Unjoined, RecursionError):
            continue
    return found


def returns_dict(tree: Tree, path: str) -> bool:
    """Whether a function of a file builds towers and returns a dict."""
    return "return" in tree.sources[path] and next(_builders(tree, path), None) is not None


def _builders(tree: Tree, path: str) -> Iterator[tuple[Definition, ast.Dict]]:
    """The functions of a file that build towers and end in a `return {…}`."""
    try:
        module = Files(tree, path).module(path)
        tops = [each for each in module.tree.body if isinstance(each, ast.FunctionDef)]
        for each in tops:
            if "apply_gradients" not in ast.unparse(each) and ".minimize(" not in ast.unparse(each):
                continue
            last = last_of(each)
            if isinstance(last, ast.Return) and isinstance(last.value, ast.Dict):
                yield module.definition(each.name), last.value
    except Unjoined:
        return


_Made = tuple[str, int, int, tuple[Part, ...], str]
"""A file, a stretch of it, what stands there instead, and the outermost function that it belongs to."""


@dataclass(frozen=True)
class _Handed:
    """A function that is handed the dict, its parameter for it, and the calls."""

    function: Definition
    parameter: ast.arg
    calls: list[ast.Call]


class _Spread(Files):
    def __init__(self, tree: Tree, path: str, function: Definition, display: ast.Dict) -> None:
        super().__init__(tree, path)
        self.builder, self.display = function, display
        self.values: dict[str, str] = {}
        for key, value in zip(display.keys, display.values, strict=True):
            known = isinstance(key, ast.Constant) and isinstance(key.value, str)
            if not known or not isinstance(value, ast.Name) or not key.value.isidentifier():  # type: ignore[union-attr]
                raise Unjoined
            self.values[key.value] = value.id  # type: ignore[union-attr]
        if len(self.values) != len(display.keys) or len(self.values) < 2:
            raise Unjoined
        if len(set(self.values.values())) != len(self.values):
            raise Unjoined
        returns = [each for each in own_nodes(function.node) if isinstance(each, ast.Return)]
        if len(returns) != 1 or function.node.decorator_list:
            raise Unjoined
        if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(function.node)):
            raise Unjoined

    def changes(self) -> list[_Made]:
        user, statement, scope = self._caller()
        file = PlainFile(user, self.tree.sources[user])
        (target,) = statement.targets
        assert isinstance(target, ast.Name)
        if isinstance(scope, ast.Module) or bindings(scope, target.id) != 1:
            raise Unjoined
        if target.id in file.shared_between_functions or file.finds_names_by_text:
            raise Unjoined
        where = scope.name
        handed: dict[str, _Handed] = {}
        picked: list[tuple[ast.Subscript, str]] = []
        given: list[tuple[ast.Call, ast.Name, _Handed]] = []
        for read in self._reads(scope, target.id):
            parent = self._parent(scope, read)
            if isinstance(parent, ast.Subscript) and parent.value is read:
                picked.append((parent, self._key(parent)))
            elif isinstance(parent, ast.Call | ast.keyword):
                call = parent if isinstance(parent, ast.Call) else self._parent(scope, parent)
                if not isinstance(call, ast.Call):
                    raise Unjoined
                one = self._function(user, file, scope, call, read, handed)
                given.append((call, read, one))
            else:
                raise Unjoined
        names = self._names(file, scope, target.id)
        made: list[_Made] = [
            (user, *file.span(target), (", ".join(names[key] for key in self.values),), where)
        ]
        made += [(user, *file.span(node), (names[key],), where) for node, key in picked]
        used: dict[str, dict[str, str]] = {}
        for name, each in handed.items():
            used[name], own = self._inside(each, where if each.function.path == user else name)
            made += own
        for call, read, one in given:
            made.append(self._argument(user, file, call, read, one, names, used, where))
        builder = self.module(self.builder.path)
        text = ", ".join(self.values.values())
        start, end = builder.block.start(self.display), builder.block.end(self.display)
        if "#" in builder.text[start:end]:
            raise Unjoined
        made.append((self.builder.path, start, end, (text,), self.builder.node.name))
        return made

    # ---- who uses it

    def _caller(self) -> tuple[str, ast.Assign, Scope]:
        """The one statement that calls the builder, its file and its function."""
        name, path = self.builder.node.name, self.builder.path
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
        for scope in self.module(user).tree.body:
            if not isinstance(scope, ast.FunctionDef):
                continue
            for each in own_nodes(scope):
                if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
                    if each.value.func is use and len(each.targets) == 1:
                        if isinstance(each.targets[0], ast.Name):
                            return user, each, scope
        raise Unjoined

    def _reads(self, scope: ast.FunctionDef, name: str) -> list[ast.Name]:
        found = [
            each
            for each in ast.walk(scope)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        ]
        own = {id(each) for each in own_nodes(scope)}
        if not found or any(id(each) not in own for each in found):
            raise Unjoined
        return found

    def _parent(self, scope: ast.AST, node: ast.AST) -> ast.AST:
        for each in ast.walk(scope):
            if any(one is node for one in ast.iter_child_nodes(each)):
                return each
        raise Unjoined

    def _key(self, node: ast.Subscript) -> str:
        key = node.slice
        if not isinstance(node.ctx, ast.Load) or not isinstance(key, ast.Constant):
            raise Unjoined
        if not isinstance(key.value, str) or key.value not in self.values:
            raise Unjoined
        return key.value

    def _function(
        self,
        user: str,
        file: PlainFile,
        scope: ast.FunctionDef,
        call: ast.Call,
        read: ast.Name,
        handed: dict[str, _Handed],
    ) -> _Handed:
        """The function of the file that a call hands the dict to: all that uses it are such calls."""
        if not isinstance(call.func, ast.Name) or bindings(scope, call.func.id):
            raise Unjoined
        name = call.func.id
        function = self.module(user).definition(name)
        node, spec = function.node, function.node.args
        if node.decorator_list or spec.vararg or spec.kwarg or spec.posonlyargs or spec.kwonlyargs:
            raise Unjoined
        if node is self.builder.node or name in file.words_of_users or node is scope:
            raise Unjoined
        places = [n for n, each in enumerate(call.args) if each is read]
        if any(isinstance(each, ast.Starred) for each in call.args):
            raise Unjoined
        if places:
            if places[0] >= len(spec.args):
                raise Unjoined
            parameter = spec.args[places[0]]
        else:
            keys = [each.arg for each in call.keywords if each.value is read]
            found = [each for each in spec.args if [each.arg] == keys]
            if not found:
                raise Unjoined
            (parameter,) = found
        known = handed.setdefault(name, _Handed(function, parameter, []))
        known.calls.append(call)
        uses = file.uses(name)
        calls = [each for each in ast.walk(scope) if isinstance(each, ast.Call)]
        of_scope = [
            each for each in calls if isinstance(each.func, ast.Name) and each.func.id == name
        ]
        if known.parameter is not parameter or len(uses) != len(of_scope):
            raise Unjoined
        users = self.tree.users.get(user, set()) - {user}
        if any(self.uses_in(other, user, name) for other in users if other in self.tree.sources):
            raise Unjoined
        for each in of_scope:  # every call hands it
            values = [*each.args, *(k.value for k in each.keywords)]
            if sum(isinstance(v, ast.Name) and v.id == read.id for v in values) != 1:
                raise Unjoined
        position = spec.args.index(parameter)
        if position >= len(spec.args) - len(spec.defaults):
            raise Unjoined
        return known

    # ---- what stands there instead

    def _names(self, file: PlainFile, scope: ast.FunctionDef, carrier: str) -> Mapping[str, str]:
        """What the caller calls the values."""
        found: dict[str, str] = {}
        for key, value in self.values.items():
            name = file.free(scope, value, key, f"{carrier}_{key}")
            if name in _of_module(file) or name in found.values():
                name = file.fresh(f"{carrier}_{key}")
            found[key] = name
        return found

    def _inside(self, handed: _Handed, where: str) -> tuple[dict[str, str], list[_Made]]:
        """What a function calls the values that it asks for, and its changes."""
        function, parameter = handed.function, handed.parameter
        path = function.path
        file = PlainFile(path, self.tree.sources[path])
        (node,) = [
            each
            for each in file.tree.body
            if isinstance(each, ast.FunctionDef) and each.name == function.node.name
        ]
        if bindings(node, parameter.arg) != 1 or parameter.annotation is not None:
            raise Unjoined
        asked = []
        for read in self._reads(node, parameter.arg):
            parent = self._parent(node, read)
            if not isinstance(parent, ast.Subscript) or parent.value is not read:
                raise Unjoined
            asked.append((parent, self._key(parent)))
        keys = {key for _, key in asked}
        names: dict[str, str] = {}
        for key in self.values:
            if key in keys:
                names[key] = file.free(node, self.values[key], key, f"{parameter.arg}_{key}")
                if names[key] in _of_module(file):
                    names[key] = file.fresh(f"{parameter.arg}_{key}")
        at = file.block.offset(parameter.lineno, parameter.col_offset)
        made: list[_Made] = [
            (path, at, at + len(parameter.arg), (", ".join(names.values()),), where)
        ]
        made += [(path, *file.span(each), (names[key],), where) for each, key in asked]
        return names, made

    def _argument(
        self,
        user: str,
        file: PlainFile,
        call: ast.Call,
        read: ast.Name,
        handed: _Handed,
        names: Mapping[str, str],
        used: Mapping[str, Mapping[str, str]],
        where: str,
    ) -> _Made:
        """`ops`, or `ops=ops`, of a call."""
        inner = used[handed.function.node.name]
        for keyword in call.keywords:
            if keyword.value is read:
                start = file.block.offset(keyword.lineno, keyword.col_offset)
                text = ", ".join(f"{own}={names[key]}" for key, own in inner.items())
                return user, start, file.end(read), (text,), where
        text = ", ".join(names[key] for key in inner)
        return user, *file.span(read), (text,), where


def _of_module(file: PlainFile) -> set[str]:
    return {name for each in file.tree.body for name in bound_by(each)}
