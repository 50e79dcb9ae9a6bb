"""Follow values through the functions of a tree, as far as the rules need it.

No code runs: statements are read in order, both branches of an `if` are taken and joined, calls of the
tree's own functions are entered. A function given to `strategy.run` is read as a replica.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from towermigrate.distribute_scan import expressions, statements
from towermigrate.distribute_scan import values as v
from towermigrate.distribute_scan.arithmetic import join
from towermigrate.distribute_scan.scopes import Scope
from towermigrate.findings import Finding
from towermigrate.tree import parse_python

Mode = Literal["replica", "cross", "plain"]
"""In a function given to `strategy.run`; directly in `with strategy.scope():`; anywhere else."""

_DEPTH = 12
_CALLS = 4000
"""Calls entered for one file, at most: enough for any real program, and an end for a hostile one."""
_STATEMENTS = 40_000
"""Statements read for one file; when they are used up, no more calls are entered."""


class Interpreter:
    """Reads files of one tree. `findings` has what was found, in any of its files.

    Args:
        sources: the texts of the tree, by path.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.sources = sources
        self.findings: set[Finding] = set()
        self.corrected: set[v.Place] = set()
        self.mode: Mode = "plain"
        self.queue: list[v.Function] = []
        self._trees: dict[str, ast.Module] = {}
        self._lines: dict[str, list[str]] = {}
        self._modules: dict[str, Scope] = {}
        self._active: list[ast.AST] = []
        self._returned: list[list[v.Value]] = []
        self._calls_left = 0
        self.statements_left = 0

    def read(self, path: str) -> None:
        """Read a file: its statements, then each of its functions by itself."""
        self._calls_left = _CALLS
        self.statements_left = _STATEMENTS
        self._modules.pop(path, None)
        self.queue = []
        self.module(path)
        waiting = [f for f in self.queue if f.path == path]
        waiting.sort(key=lambda f: getattr(f.node, "name", "") != "__init__")
        known = {f.node for f in waiting}
        done = 0
        while done < len(waiting):
            function = waiting[done]
            done += 1
            self.queue = []
            self.call(function, [], {})
            nested = [f for f in self.queue if f.path == path and f.node not in known]
            known.update(f.node for f in nested)
            waiting += nested

    def tree(self, path: str) -> ast.Module:
        """The syntax tree of a file, parsed once."""
        if path not in self._trees:
            self._trees[path] = parse_python(self.sources[path])
        return self._trees[path]

    def module(self, path: str) -> Scope:
        """The names of a file of the tree, read once."""
        if path not in self._modules:
            scope = self._modules[path] = Scope(path)
            with self.in_mode("plain"):
                statements.execute(self, self.tree(path).body, scope)
        return self._modules[path]

    def place(self, node: ast.AST, scope: Scope) -> v.Place:
        lines = self._lines.get(scope.path)
        if lines is None:
            # As the parser counts them: a form feed ends no line.
            lines = re.split(r"\r\n|\r|\n", self.sources[scope.path])
            self._lines[scope.path] = lines
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = lines[line - 1] if line <= len(lines) else ""
        column = offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))
        return v.Place(scope.path, line, column)

    def report(self, rule: str, place: v.Place, message: str) -> None:
        self.findings.add(Finding(rule, place.path, place.line, place.column, message))

    @contextmanager
    def in_mode(self, mode: Mode) -> Iterator[None]:
        before, self.mode = self.mode, mode
        try:
            yield
        finally:
            self.mode = before

    def evaluate(self, node: ast.expr, scope: Scope) -> v.Value:
        return expressions.evaluate(self, node, scope)

    def attribute(self, owner: v.Value, node: ast.Attribute) -> v.Value:
        return expressions.attribute(self, owner, node)

    def bind(self, target: ast.expr, value: v.Value, scope: Scope) -> None:
        statements.bind(self, target, value, scope)

    def returned(self, value: v.Value) -> None:
        """Note what the function that is being read returns."""
        if self._returned:
            self._returned[-1].append(value)

    def call(
        self, function: v.Function, args: list[v.Value], keywords: Mapping[str, v.Value]
    ) -> v.Value:
        """What a function of the tree returns for these values; parameters that are not given are unknown."""
        node = function.node
        if node in self._active or len(self._active) >= _DEPTH:
            return v.unknown()
        if self._calls_left <= 0 or self.statements_left <= 0:
            return v.unknown()
        self._calls_left -= 1
        scope = Scope(function.path, parent=function.scope)
        self._parameters(function, scope, args, keywords)
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body, scope)
        self._active.append(node)
        self._returned.append([])
        try:
            goes = statements.execute(self, node.body, scope)
        finally:
            self._active.pop()
            returned = self._returned.pop()
        if goes and not returned:
            return v.Nothing()
        found = returned[0] if returned else v.unknown()
        for other in returned[1:]:
            found = join(found, other)
        return found

    def _parameters(
        self,
        function: v.Function,
        scope: Scope,
        args: list[v.Value],
        keywords: Mapping[str, v.Value],
    ) -> None:
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        defaults = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
        defaults.update(
            (a.arg, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d
        )
        every = [*names, *(a.arg for a in spec.kwonlyargs)]
        every += [a.arg for a in (spec.vararg, spec.kwarg) if a]
        given: dict[str, v.Value] = {}
        decorators = getattr(function.node, "decorator_list", [])
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)
        if function.owner is not None and names and not static:
            given[names[0]] = v.Instance(function.owner)
            names = names[1:]
        given.update(zip(names, args, strict=False))
        given.update({name: value for name, value in keywords.items() if name in every})
        for name in every:
            if name in given:
                scope.names[name] = given[name]
            elif name in defaults and (args or keywords):
                scope.names[name] = self.evaluate(defaults[name], function.scope)
            else:
                scope.names[name] = v.unknown()
