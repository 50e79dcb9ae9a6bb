"""Functions that are called in one place, by another one of their file: what they are given is what it gives them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from towermigrate.recognize.lending import Files
from towermigrate.recognize.plain.changes import Change, PlainFile
from towermigrate.recognize.python_scopes import Module, Unjoined, own_nodes
from towermigrate.recognize.source import Tree


class OneCall(Files):
    """A function of a file, the one function that calls it, and what that gives it."""

    def __init__(self, tree: Tree, file: PlainFile, function: ast.FunctionDef) -> None:
        super().__init__(tree, file.path)
        self.modules[file.path] = file
        self.file, self.function = file, function
        self.caller, self.call = self._called()
        self.given = self._arguments()

    def module(self, path: str) -> Module:
        if path not in self.modules:
            self.modules[path] = _of_another(path, self.tree.sources[path])
        return self.modules[path]

    def _called(self) -> tuple[ast.FunctionDef, ast.Call]:
        name = self.function.name
        uses = self.file.uses(name)
        if len(uses) != 1 or self.told_elsewhere(self.path, name, uses):
            raise Unjoined
        users = sorted(self.tree.users.get(self.path, set()) - {self.path})
        if any(self.uses_in(each, self.path, name) for each in users if each in self.tree.sources):
            raise Unjoined
        for scope in self.file.tree.body:
            if not isinstance(scope, ast.FunctionDef) or scope.name == name:
                continue
            for each in own_nodes(scope):
                if isinstance(each, ast.Call) and each.func is uses[0]:
                    return scope, each
        raise Unjoined

    def _arguments(self) -> dict[str, ast.expr]:
        spec = self.function.args
        if self.function.decorator_list or spec.vararg or spec.kwarg:
            raise Unjoined
        if spec.posonlyargs or spec.kwonlyargs or len(self.call.args) > len(spec.args):
            raise Unjoined
        if any(isinstance(each, ast.Starred) for each in self.call.args):
            raise Unjoined
        given = {own.arg: value for own, value in zip(spec.args, self.call.args, strict=False)}
        for keyword in self.call.keywords:
            if keyword.arg is None or keyword.arg in given:
                raise Unjoined
            given[keyword.arg] = keyword.value
        return given


@lru_cache(256)
def _of_another(path: str, text: str) -> Module:
    """Another file, which is only looked at: once for all functions that are asked for."""
    return Module(path, text)


def changed_together(
    tree: Tree,
    where: Mapping[str, Collection[str]] | None,
    file: PlainFile,
    fits: Callable[[ast.FunctionDef], bool],
    changes: Callable[[ast.FunctionDef], list[Change]],
) -> list[Change]:
    """The changes for each function of a file that fits; none where a function that they belong to is not to be changed."""
    if file.finds_names_by_text:
        return []
    found: list[Change] = []
    for each in file.tree.body:
        if not isinstance(each, ast.FunctionDef) or not fits(each):
            continue
        try:
            made = changes(each)
        except Unjoined:
            continue
        allowed = None if where is None else where.get(file.path, ())
        if allowed is None or all(one.scope in allowed for one in made):
            found += made
    return found


__all__ = ["OneCall", "changed_together"]
