"""The functions to which a program hands a dict of its graph's values, read as one function (`recognize.carrying`).

`ops = {'train_op': train_op, 'loss': loss}` in the function that builds the graph, or `return {…}` to one that calls it; then
`train_one_epoch(sess, ops)`, which runs `ops['train_op']`.
"""

from __future__ import annotations

import ast

from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.python_scopes import (
    Definition,
    Unjoined,
    last_of,
    only_plain,
    own_nodes,
    times_bound,
)
from towermigrate.recognize.regions import Inlined, Literal, Plan, Region, is_name
from towermigrate.recognize.source import Tree


class DictPlan(Plan):
    """The functions of a program whose graph's values are in one dict, that is made by one display of it."""

    item = True

    def __init__(self, tree: Tree, candidate: Candidate, name: str) -> None:
        super().__init__(tree, candidate)
        self.builder = name
        builder = self.module(self.of_towers).definition(name)
        only_plain(builder.node)
        self.display, self.returned = _display(builder)
        if isinstance(self.display, ast.Assign) and self.returned is None:
            self.entry = Region(None, builder, _bound_name(self.display), True)
            self._found(self.entry)
        else:
            users = sorted(tree.users.get(self.of_towers, set()) | {self.of_towers})
            uses = [
                (user, each)
                for user in users
                if user in tree.sources
                for each in self.uses_in(user, self.of_towers, name)
            ]
            if len(uses) != 1:
                raise Unjoined
            path, use = uses[0]
            self._begin(path, lambda: self._call(path, use.lineno, use.col_offset))
            if path == self.of_towers:
                self.display, self.returned = _display(self.module(path).definition(name))
        self._plan(self.entry)
        if self.literal is None or not self.regions:
            raise Unjoined
        self._attributes(self.entry)

    def _call(self, path: str, line: int, column: int) -> ast.Call:
        """The call of the builder, by where that is named."""
        for each in ast.walk(self.module(path).tree):
            if isinstance(each, ast.Call):
                where = (each.func.lineno, each.func.col_offset)
                if where == (line, column) and not isinstance(each.func, ast.Call):
                    if ast.unparse(each.func).split(".")[-1] == self.builder:
                        return each
        raise Unjoined

    def _found(self, region: Region) -> None:
        """Note that a region makes the dict."""
        value = self.display.value
        assert isinstance(value, ast.Dict)
        entries: list[tuple[str, ast.expr]] = []
        for key, each in zip(value.keys, value.values, strict=True):
            name = key.value if isinstance(key, ast.Constant) else None
            if not isinstance(name, str) or name in dict(entries) or not name.isidentifier():
                raise Unjoined
            entries.append((name, each))
        if not entries:
            raise Unjoined
        self.literal = Literal(self.display, region, entries, self.returned)

    def _making(self, region: Region, statement: ast.stmt, call: ast.Call) -> Inlined:
        """`ops = build()`, `run(build())`."""
        made = self.object
        if region.number is not None or made is None:
            raise Unjoined
        module = self.module(self.of_towers)
        builder = module.definition(self.builder)
        inside = _bound_name(self.display) if isinstance(self.display, ast.Assign) else None
        found: Inlined = [(made, builder, inside)]
        if call is made:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                raise Unjoined
            target = statement.targets[0]
            if not isinstance(target, ast.Name) or target.id in region.function.inner:
                raise Unjoined
            if times_bound(region.node, target.id) != 1:
                raise Unjoined
            region.holder = target.id
        else:
            if not isinstance(statement, ast.Expr) or not isinstance(call.func, ast.Name):
                raise Unjoined
            others = [*call.args, *(each.value for each in call.keywords)]
            if any(not isinstance(e, ast.Name | ast.Constant) for e in others if e is not made):
                raise Unjoined  # computed before the dict is made
            more = self._function(region, call, lambda each: each is made)
            if not more:
                raise Unjoined
            found += more
        return found

    def _give(self, region: Region, call: ast.Call) -> None:
        if call is self.object:
            self._found(region)
        super()._give(region, call)


def _bound_name(display: ast.Assign | ast.Return) -> str:
    assert isinstance(display, ast.Assign) and isinstance(display.targets[0], ast.Name)
    return display.targets[0].id


def _display(builder: Definition) -> tuple[ast.Assign | ast.Return, ast.Return | None]:
    """The statement that makes the dict, and the one that returns it, if that is another one."""
    node = builder.node
    returns = [each for each in own_nodes(node) if isinstance(each, ast.Return)]
    if len(returns) > 1 or returns and returns[0] is not last_of(node):
        raise Unjoined
    if returns and isinstance(returns[0].value, ast.Dict):
        return returns[0], None
    found = [
        each
        for each in _plain(node)
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Dict)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Name)
    ]
    if returns:
        found = [each for each in found if is_name(returns[0].value or each, _bound_name(each))]
    else:
        found = [each for each in found if _handed_on(node, _bound_name(each))]
    if len(found) != 1 or times_bound(node, _bound_name(found[0])) != 1:
        raise Unjoined
    return found[0], returns[0] if returns else None


def _handed_on(node: ast.FunctionDef, name: str) -> bool:
    """Whether a name is an argument of a call by itself."""
    return any(
        is_name(argument, name)
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
        for argument in each.args
    )


def _plain(node: ast.FunctionDef) -> list[ast.stmt]:
    """Statements that run once where the function does."""
    found: list[ast.stmt] = []
    waiting: list[ast.stmt] = list(node.body)
    while waiting:
        each = waiting.pop(0)
        found.append(each)
        if isinstance(each, ast.With):
            waiting.extend(each.body)
    return found
