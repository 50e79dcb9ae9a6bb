"""What defines: functions, classes, imports."""

from __future__ import annotations

import ast

from towermigrate.flow.bindings import Bindings
from towermigrate.flow.values import (
    Class,
    Const,
    External,
    Function,
    Module,
    Package,
    Scope,
    Unknown,
    Value,
    named,
    read,
)
from towermigrate.tree import module_file


class Definitions(Bindings):
    """Defines. Part of the interpreter."""

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        function = self.function(node, scope)
        self.defined.append(function)
        made: Value = function
        for decorator in reversed(node.decorator_list):
            made = self._decorated(decorator, made, scope)
        self.assign(node.name, made, scope)
        self.named(node.name, made, function.place)

    def _decorated(self, decorator: ast.expr, made: Value, scope: Scope) -> Value:
        value = self.evaluate(decorator, scope)
        if isinstance(made, Function) and isinstance(value, External):
            form = _FORMS.get(value.name)
            if form is not None:
                made.form = form  # type: ignore[assignment]
                return made
            if value.name in _PLAIN:
                return made
        place = self.place(decorator, scope.path)
        if isinstance(value, Function):
            return self.call_with(value, [made], decorator, scope)
        found = self.domain.decorated(value, decorator, made)
        return Unknown("it is decorated", place, (made,)) if found is None else found

    def function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        scope: Scope,
    ) -> Function:
        spec = node.args
        names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
        defaults = {
            name: self.evaluate(default, scope)
            for name, default in zip(reversed(names), reversed(spec.defaults), strict=False)
        }
        for each, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if default is not None:
                defaults[each.arg] = self.evaluate(default, scope)
        scope.capture()
        return Function(
            self.place(node, scope.path), node=node, scope=_around(scope), defaults=defaults
        )

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        bases = tuple(self.evaluate(base, scope) for base in node.bases)
        inside = Scope(scope.path, parent=scope, in_class=True)
        first = len(self.defined)
        self.execute(node.body, inside)
        kind = Class(self.place(node, scope.path), cells=inside.cells, node=node, bases=bases)
        for function in self.defined[first:]:
            if function.scope is _around(inside) and function in inside.cells.values():
                function.owner = kind
        made: Value = kind
        for decorator in reversed(node.decorator_list):
            value = self.evaluate(decorator, scope)
            found = self.domain.decorated(value, decorator, made)
            made = Unknown("it is decorated", kind.place, (made,)) if found is None else found
        self.assign(node.name, made, scope)
        self.named(node.name, made, kind.place)

    # ---- imports ---------------------------------------------------------------------------------

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                self._run_files(alias.name, scope)
                whole = self.imported(scope.path, 0, alias.name)
                if alias.asname is None and "." in alias.name:
                    whole = self.imported(scope.path, 0, alias.name.split(".")[0])
                self.assign(alias.asname or alias.name.split(".")[0], whole, scope)
                continue
            module = self.imported(scope.path, node.level, node.module or "")
            if alias.name == "*":
                self._import_all(module, node, scope)
                continue
            self.assign(
                alias.asname or alias.name, self._member(module, node, alias.name, scope), scope
            )

    def _run_files(self, dotted: str, scope: Scope) -> None:
        """Run what an import runs: a file, and the packages that it is in."""
        parts = dotted.split(".")
        for end in range(1, len(parts) + 1):
            found = self.imported(scope.path, 0, ".".join(parts[:end]))
            if isinstance(found, Module):
                self.module(found.path)

    def _member(self, module: Value, node: ast.ImportFrom, name: str, scope: Scope) -> Value:
        if isinstance(module, Module):
            found = self.module(module.path).lookup(name)
            if found is not None:
                return read(found)
        dotted = ".".join(part for part in (node.module, name) if part)
        inner = self.imported(scope.path, node.level, dotted)
        if isinstance(module, Module) and isinstance(inner, External):
            return Unknown(f"{name} is not found in {module.path}", self.place(node, scope.path))
        return inner

    def _import_all(self, module: Value, node: ast.ImportFrom, scope: Scope) -> None:
        if not isinstance(module, Module):
            self.stars.setdefault(id(scope.module), []).append(module)
            return
        held = self.module(module.path).cells
        listed = held.get(named("__all__"))
        names = self.turns(read(listed)) if listed is not None else None
        allowed = (
            None if names is None else {each.value for each in names if isinstance(each, Const)}
        )
        for key, value in list(held.items()):
            name = key[1]
            if isinstance(name, str) and (
                name in allowed if allowed is not None else name[:1] != "_"
            ):
                self.store.set(scope.cells, key, value)
        self.stars.setdefault(id(scope.module), []).extend(
            self.stars.get(id(self.module(module.path)), ())
        )

    def imported(self, path: str, level: int, dotted: str) -> Value:
        """The module of an import: a file of the tree, or a library."""
        found = module_file(self.sources, path, level, dotted)
        if found is not None and found != path:
            return Module(found)
        folder = dotted.replace(".", "/") + "/"
        if dotted and not level and any(each.startswith(folder) for each in self.sources):
            return Package(dotted, path)
        return External(self.domain.spelled(dotted))


_FORMS = {
    "builtins.staticmethod": "static",
    "builtins.classmethod": "class",
    "builtins.property": "property",
    "functools.cached_property": "property",
    "contextlib.contextmanager": "context",
}
_PLAIN = {"functools.lru_cache", "functools.cache", "abc.abstractmethod", "typing.overload"}


def _around(scope: Scope) -> Scope:
    """The scope that a function's names are looked for in: methods do not see the names of a class's body."""
    while scope.in_class and scope.parent is not None:
        scope = scope.parent
    return scope
