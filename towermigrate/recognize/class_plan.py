"""The methods of a program's one object that are read as one function (`recognize.carrying`)."""

from __future__ import annotations

import ast

from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.one_instance import accesses, plain_class
from towermigrate.recognize.python_scopes import (
    Definition,
    Unjoined,
    only_plain,
    own_nodes,
    times_bound,
)
from towermigrate.recognize.regions import Inlined, Plan, Region
from towermigrate.recognize.source import Tree


class ClassPlan(Plan):
    """The functions of a program whose object is made of a class, and that builds its graph in a method of that."""

    def __init__(self, tree: Tree, candidate: Candidate, class_name: str, method: str) -> None:
        super().__init__(tree, candidate)
        self.method = method
        users = sorted(tree.users.get(self.of_towers, set()) | {self.of_towers})
        uses = [
            (user, each)
            for user in users
            if user in tree.sources
            for each in self.uses_in(user, self.of_towers, class_name)
        ]
        if len(uses) != 1:
            raise Unjoined
        path, use = uses[0]
        plain_class(self.module(self.of_towers), class_name)
        self._begin(path, lambda: self._call(path, class_name, use.lineno, use.col_offset))
        self.known = known = plain_class(self.module(self.of_towers), class_name)
        self.methods = known.methods
        self._plan(self.entry)
        if self.method not in self.inlined:
            raise Unjoined
        self._lift()
        self._attributes(self.entry)

    def _call(self, path: str, name: str, line: int, column: int) -> ast.Call:
        """The call that makes the object, by where the class is named."""
        for each in ast.walk(self.module(path).tree):
            if isinstance(each, ast.Call):
                if (each.func.lineno, each.func.col_offset) == (line, column) and not isinstance(
                    each.func, ast.Call
                ):
                    if ast.unparse(each.func).split(".")[-1] == name:
                        return each
        raise Unjoined

    def _making(self, region: Region, statement: ast.stmt, call: ast.Call) -> Inlined:
        """`Trainer()`, `model = Trainer()`, `Trainer().train()`, `run(Trainer())`."""
        made = self.object
        if region.number is not None or made is None:
            raise Unjoined
        found: Inlined = []
        init = self.methods.get("__init__")
        if init is not None:
            found.append((made, init, init.node.args.args[0].arg))
            self.inlined.add("__init__")
        elif made.args or made.keywords:
            raise Unjoined
        if isinstance(statement, ast.Assign):
            (target, *others) = statement.targets
            if call is not made or others or not isinstance(target, ast.Name):
                raise Unjoined
            if times_bound(region.node, target.id) != 1 or target.id in region.function.inner:
                raise Unjoined
            region.holder = target.id
            if not found:
                raise Unjoined
        elif call is not made:
            func = call.func
            more: Inlined = []
            if isinstance(func, ast.Attribute) and func.value is made:
                more = self._method(region, call, func.attr)
            elif isinstance(func, ast.Name):
                others = [*call.args, *(each.value for each in call.keywords)]
                if any(not isinstance(e, ast.Name | ast.Constant) for e in others if e is not made):
                    raise Unjoined  # computed before the object is made
                more = self._function(region, call, lambda each: each is made)
            if not more:
                raise Unjoined
            found += more
        return found

    def _method(self, region: Region, call: ast.Call, name: str) -> Inlined:
        method = self.methods.get(name)
        if method is None:
            raise Unjoined
        if name in self.inlined:
            raise Unjoined  # called again
        assert self.known is not None
        holders = {each.node.args.args[0].arg for each in self.methods.values()}
        uses = {
            id(each)
            for node in (self.known.node, region.node)
            for each in ast.walk(node)
            if isinstance(each, ast.Attribute)
            and each.attr == name
            and (each is call.func or isinstance(each.value, ast.Name) and each.value.id in holders)
        }
        where = self.candidate.file.span(self.candidate.loop)
        of_towers = region.function.path == self.of_towers
        of_towers = of_towers and where.line < call.lineno <= where.end_line
        if len(uses) != 1 or of_towers:
            return []  # of the towers, or of several: a function by itself
        returns = [each for each in own_nodes(method.node) if isinstance(each, ast.Return)]
        if returns and not self._binds(region, call, method):
            return []
        only_plain(method.node, of_class=True)
        self.inlined.add(name)
        return [(call, method, method.node.args.args[0].arg)]

    def _binds(self, region: Region, call: ast.Call, method: Definition) -> bool:
        """Whether a statement binds names to what a method returns at its end."""
        return any(
            isinstance(each, ast.Assign)
            and each.value is call
            and self._result(each, call, method, method.node.args.args[0].arg) is not None
            for each in own_nodes(region.node)
        )

    def _lift(self) -> None:
        """Methods that use nothing of the object but one another may be functions."""
        for name, method in self.methods.items():
            if name in self.inlined:
                continue
            holder = method.node.args.args[0].arg
            used = {each.key for each in accesses(method.node, holder)}
            if name == "__init__" or not used <= self.methods.keys() - self.inlined:
                raise Unjoined
            if times_bound(method.node, holder):
                raise Unjoined
            self.lifted.append(name)
