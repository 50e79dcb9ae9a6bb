"""One name for each attribute of a program's object and for each name of its functions, none of them another's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.carried import Alias, Parameter
from towermigrate.recognize.one_instance import stores_in
from towermigrate.recognize.python_scopes import Unjoined, bound_by, times_bound
from towermigrate.recognize.regions import Plan, Region, captured, is_name


class Naming:
    """The names of the joined text.

    `attributes` and `lifted` are by the author's names, `aliases` by the identity of their statement; those of a
    function stand in its region.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.regions, self.methods = plan.regions, plan.methods
        self.attributes: dict[str, str] = {}
        self.lifted: dict[str, str] = {}
        self.aliases: dict[int, Alias] = {}
        entry = plan.entry
        every = [entry, *self.regions]
        paths = {plan.path, *(each.function.path for each in self.regions)}
        self.texts = [plan.module(path).text for path in sorted(paths)]
        self.taken = {
            name
            for path in paths
            for each in plan.module(path).tree.body
            for name in bound_by(each)
        }
        for function in [*self.methods.values(), *(each.function for each in every)]:
            self.taken |= function.globals | function.inner
        for name in plan.lifted:
            self.lifted[name] = self._fresh(name)
        self._parameters(entry)
        for region in every:
            for name in sorted(region.function.locals):
                if name == region.holder:
                    continue
                if name not in region.names:
                    region.names[name] = self._local(region, name)
        self._aliases(every)
        for region in every:
            for each in region.attributes:
                if each.key not in self.attributes and each.key not in self.methods:
                    self.attributes[each.key] = self._fresh(each.key)
        for key, _ in plan.literal.entries if plan.literal is not None else ():
            if key not in self.attributes:
                self.attributes[key] = self._fresh(key)

    def _fresh(self, name: str) -> str:
        names = [name, *(f"{name}_{number}{'_' * (number // 9)}" for number in range(1, 50))]
        for each in names:
            if each not in self.taken and (
                each == name or not any(re.search(rf"\b{each}\b", text) for text in self.texts)
            ):
                self.taken.add(each)
                return each
        raise Unjoined

    def _local(self, region: Region, name: str) -> str:
        """The name of a function's own, which is a new one where others have it as well."""
        if name == "_" and not any(
            is_name(each, name) and isinstance(each.ctx, ast.Load)  # type: ignore[attr-defined]
            for each in ast.walk(region.node)
        ):
            return name  # what nobody reads may be everybody's
        new = self._fresh(name) if name not in region.function.inner else name
        if name in region.function.inner:
            if sum(name in each.function.locals for each in self.regions) > 1:
                raise Unjoined
            return name
        if new != name:
            by_name = len(stores_in(region.node, name))
            every = [*region.node.args.args, *region.node.args.kwonlyargs]
            parameter = any(each.arg == name for each in every)
            if by_name != times_bound(region.node, name) or parameter and region.number is None:
                raise Unjoined
        return new

    def _parameters(self, entry: Region) -> None:
        """Parameters that are given a name and never bound are that name."""
        for name in sorted(entry.function.locals):
            if name != entry.holder:
                entry.names[name] = self._local(entry, name)
        for region in self.regions:
            parent = region.parent
            assert parent is not None
            parameters: list[Parameter] = []
            for each in region.parameters:
                value = region.given.get(each.name)
                same = (
                    isinstance(value, ast.Name)
                    and value.id != parent.holder
                    and value.id in parent.function.locals
                    and not times_bound(region.node, each.name)
                    and each.name not in region.function.inner
                    and (not captured(region, each.name) or self._fixed(parent, value.id, region))
                )
                if each.holds:
                    joined = each.name
                elif same and isinstance(value, ast.Name):
                    if value.id not in parent.names:
                        parent.names[value.id] = self._local(parent, value.id)
                    joined = region.names[each.name] = parent.names[value.id]
                else:
                    joined = region.names[each.name] = self._local(region, each.name)
                parameters.append(
                    Parameter(each.name, joined, each.argument, each.default, same, each.holds)
                )
            region.parameters = parameters

    def _fixed(self, parent: Region, name: str, region: Region) -> bool:
        """Whether a name is bound no more from a call on that surely runs once."""
        assert region.called is not None
        stores = stores_in(parent.node, name)
        if times_bound(parent.node, name) != len(stores):
            return False
        first = region.called.statement.lineno
        if not region.once or any(each.lineno >= first for each in stores):
            return False
        given = parent.given.get(name)
        if given is None or parent.parent is None:
            return True
        return isinstance(given, ast.Name) and self._fixed(parent.parent, given.id, parent)

    def _aliases(self, every: list[Region]) -> None:
        """`self.a = b`, each bound no more: one name for both."""
        stored: dict[str, int] = {}
        for region in every:
            for each in region.attributes:
                if each.stored:
                    stored[each.key] = stored.get(each.key, 0) + 1
        literal = self.plan.literal
        for key, _ in literal.entries if literal is not None else ():
            stored[key] = stored.get(key, 0) + 1
        merged: set[str] = set()
        for region in self.regions:
            for statement in _plain_statements(region.node):
                found = _as_alias(statement, region)
                if found is not None and not self.plan.item:
                    attribute, value = found
                    if stored.get(attribute.attr) == 1:
                        self._alias(region, statement, attribute.attr, value, merged)
        if literal is None:
            return
        for key, entry in literal.entries:
            if isinstance(entry, ast.Name) and stored[key] == 1:
                self._alias(literal.region, literal.statement, key, entry.id, merged, entry)

    def _alias(
        self,
        region: Region,
        statement: ast.stmt,
        key: str,
        value: str,
        merged: set[str],
        entry: ast.Name | None = None,
    ) -> None:
        """One name for a value of the object and the local name that it is set to, if neither is bound again."""
        joined = region.names.get(value)
        if joined is None or joined in merged:
            return
        if value in region.function.inner or not region.once:
            return
        stores = stores_in(region.node, value)
        parameter = next((p for p in region.parameters if p.name == value), None)
        if times_bound(region.node, value) != len(stores):
            return
        if region.number is None and not stores:
            return  # the entry's own parameter
        if parameter is not None:
            given = region.given.get(value)
            if stores or not parameter.same or not isinstance(given, ast.Name):
                return
            if region.parent is None or not self._fixed(region.parent, given.id, region):
                return
        if any(each.lineno >= statement.lineno for each in stores):
            return
        merged.add(joined)
        self.attributes[key] = joined
        by_key = any(
            each.key == key and each.node.lineno > statement.lineno for each in region.attributes
        )
        by_name = any(
            is_name(each, value) and each.lineno > statement.lineno  # type: ignore[attr-defined]
            for each in ast.walk(region.node)
        )
        block = region.function
        self.aliases[id(statement if entry is None else entry)] = Alias(
            len(self.aliases),
            joined,
            key,
            block.text[block.start(statement) : block.end(statement)],
            region.number,
            by_key and not by_name,
            entry is not None,
        )


def _plain_statements(node: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Statements that run once where the function does."""
    waiting: list[ast.stmt] = list(reversed(node.body))
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, ast.With):
            waiting.extend(reversed(each.body))


def _as_alias(statement: ast.stmt, region: Region) -> tuple[ast.Attribute, str] | None:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute) or not is_name(target.value, region.holder):
        return None
    return (target, statement.value.id) if isinstance(statement.value, ast.Name) else None
