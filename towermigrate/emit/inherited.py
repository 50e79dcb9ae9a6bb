"""Classes of a tree with those that they are made of: which calls of `self` and `super()` reach a method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.emit.blocks import Scope, scope_of
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import calls, dotted, walk

_DEPTH = 6
"""From a class to those above it."""


@dataclass(frozen=True)
class Class:
    """A class at the outermost level of a file."""

    file: SourceFile
    node: cst.ClassDef

    @property
    def name(self) -> str:
        return self.node.name.value

    def method(self, name: str) -> cst.FunctionDef | None:
        found = self.file.functions.get(f"{self.name}.{name}")
        return None if found is None else found.node

    def methods(self) -> Iterator[cst.FunctionDef]:
        for qualified, each in self.file.functions.items():
            if qualified == f"{self.name}.{each.node.name.value}":
                yield each.node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Class) and self.node is other.node

    def __hash__(self) -> int:
        return id(self.node)


class Classes:
    """What is known of the classes of a tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._lines: dict[Class, list[Class]] = {}

    def of(self, scope: Scope) -> Class | None:
        """The class that a function is a method of."""
        for qualified, each in scope.file.functions.items():
            if each.node is scope.function:
                parts = qualified.split(".")
                return self.named(scope.file, parts[0]) if len(parts) == 2 else None
        return None

    def line(self, own: Class) -> list[Class]:
        """A class and those that it is made of, in the order in which a method is looked for."""
        if own not in self._lines:
            found: list[Class] = []
            waiting = [(own, _DEPTH)]
            while waiting:
                each, depth = waiting.pop(0)
                if each in found:  # the last place counts
                    found.remove(each)
                found.append(each)
                if depth:
                    waiting += [(base, depth - 1) for base in self._bases(each) if base != own]
            self._lines[own] = found
        return self._lines[own]

    def made(self, own: Class) -> list[Class]:
        """The classes that an object with a method of one may be of: those that are called, else all."""
        below = [own]
        for path in sorted(self.tree.users.get(own.file.path, set())):
            other = self.tree.file(path)
            for node in other.module.body if other is not None else ():
                if other is not None and isinstance(node, cst.ClassDef):
                    each = Class(other, node)
                    if each != own and own in self.line(each):
                        below.append(each)
        if len(below) == 1:
            return below
        return [each for each in below if self._is_called(each)] or below

    def calls(self, own: Class, method: Scope) -> list[tuple[Scope, cst.Call]]:
        """The calls `self.m(…)`, `super().m(…)` and `Base.m(self, …)` that reach a method in an object of a class."""
        assert method.function is not None
        name = method.function.name.value
        line = self.line(own)
        found: list[tuple[Scope, cst.Call]] = []
        for place, each in enumerate(line):
            for function in each.methods():
                if function is method.function or not self._is_run(line, place, function):
                    continue
                for call in calls(function.body):
                    if self._reaches(line, place, call, name) is method.function:
                        found.append((scope_of(each.file, call), call))
        return found

    def takes(self, own: Class, name: str) -> cst.FunctionDef | None:
        """The method of a name that an object of a class has."""
        return next((m for each in self.line(own) if (m := each.method(name)) is not None), None)

    def _reaches(
        self, line: Sequence[Class], place: int, call: cst.Call, name: str
    ) -> cst.FunctionDef | None:
        """The method of a name that a call reaches, which stands in a method of the class at a place of the line."""
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != name:
            return None
        if of_self(call):
            return self.takes(line[0], name)
        if of_super(call):
            above = line[place + 1 :]
            return next((m for each in above if (m := each.method(name)) is not None), None)
        if of_its_class(call):
            base = self.named(line[place].file, dotted(func.value) or "")
            return None if base is None else self.takes(base, name)
        return None

    def _is_run(self, line: Sequence[Class], place: int, function: cst.FunctionDef) -> bool:
        """Whether a method of a class in the line is not hidden by one before it, or is called by name."""
        name = function.name.value
        if not any(each.method(name) is not None for each in line[:place]):
            return True
        return any(
            self._reaches(line, before, call, name) is function
            for before, each in enumerate(line)
            for method in each.methods()
            for call in calls(method.body)
            if not of_self(call)
        )

    def _is_called(self, own: Class) -> bool:
        return any(
            self.named(other, dotted(call.func) or "") == own
            for path in self.tree.users.get(own.file.path, set())
            if own.name in self.tree.sources[path]
            for call in self.tree.calls_of(path, own.name)
            if (other := self.tree.file(path)) is not None
        )

    def _bases(self, own: Class) -> list[Class]:
        found = [self.named(own.file, dotted(arg.value) or "") for arg in own.node.bases]
        return [each for each in found if each is not None]

    def named(self, file: SourceFile, name: str, depth: int = 3) -> Class | None:
        """The class that a name means in a file."""
        root, _, rest = name.partition(".")
        if not rest:
            for node in file.module.body:
                for each in walk(node) if isinstance(node, cst.If | cst.Try) else (node,):
                    if isinstance(each, cst.ClassDef) and each.name.value == name:
                        return Class(file, each)
        origin = file.imports.get(root)
        if not depth:
            return None
        if origin is not None:
            module, _, last = (f"{origin}.{rest}" if rest else origin).rpartition(".")
            path = self.tree.module_path(file.path, module) if module.strip(".") else None
            other = self.tree.file(path) if path else None
            return None if other is None else self.named(other, last, depth - 1)
        for module in [] if rest else file.star_imports:
            path = self.tree.module_path(file.path, module)
            other = self.tree.file(path) if path else None
            found = None if other is None else self.named(other, name, depth - 1)
            if found is not None:
                return found
        return None


def of_its_class(call: cst.Call) -> bool:
    """Whether a call asks for a method of the object at hand: of `self`, of `super()`, or `Base.build(self, …)`."""
    given = call.args[0].value if call.args else None
    plain = isinstance(call.func, cst.Attribute) and isinstance(given, cst.Name)
    return of_self(call) or of_super(call) or plain and dotted(given or call) == "self"


def of_self(call: cst.Call) -> bool:
    """`self.build(…)`."""
    return isinstance(call.func, cst.Attribute) and dotted(call.func.value) == "self"


def of_super(call: cst.Call) -> bool:
    """`super().build(…)`, `super(Trainer, self).build(…)`."""
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    return isinstance(owner, cst.Call) and dotted(owner.func) == "super"
