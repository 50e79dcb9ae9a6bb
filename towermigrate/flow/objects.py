"""Objects of the tree: attributes, methods, properties, what classes inherit, contexts."""

from __future__ import annotations

import ast
from dataclasses import replace

from towermigrate.flow.containers import Containers
from towermigrate.flow.domain import Call
from towermigrate.flow.values import (
    NONE,
    REST,
    Class,
    Const,
    External,
    Function,
    Instance,
    Items,
    Method,
    Module,
    Package,
    Perhaps,
    Scope,
    Table,
    Unknown,
    Value,
    named,
    read,
)


class Objects(Containers):
    """Reads attributes. Part of the interpreter."""

    def attribute(self, owner: Value, node: ast.Attribute, scope: Scope) -> Value:
        """`owner.name`."""
        place = self.place(node, scope.path)
        name = node.attr
        match owner:
            case External():
                return External(self.domain.spelled(f"{owner.name}.{name}"))
            case Module():
                found = self.module(owner.path).lookup(name)
                if found is not None:
                    return read(found)
                inner = self.imported(owner.path, 1, name)
                if isinstance(inner, Module):
                    return inner
                return Unknown(f"{name} is not found in {owner.path}", place)
            case Package():
                return self.imported(owner.importer, 0, f"{owner.dotted}.{name}")
            case Instance():
                return self._of_instance(owner, node, scope)
            case Class():
                found_in = self.of_class(owner, name)
                if isinstance(found_in, Function) and found_in.form == "class":
                    return self.bound_to(found_in, owner)
                if found_in is not None:
                    return found_in
                asked = self.domain.attribute(owner, node, place)
                return Unknown(f"`{owner.node.name}.{name}`", place) if asked is None else asked
            case Items() | Table():
                return Method(owner, name)
            case Const(value=str()):
                return Method(owner, name)
        found = self.domain.attribute(owner, node, place)
        if found is not None:
            return found
        may_be = owner.may_be if isinstance(owner, Unknown) else (owner,)
        return Unknown("an attribute of what is not known", place, may_be)

    def _of_instance(self, owner: Instance, node: ast.Attribute, scope: Scope) -> Value:
        name = node.attr
        place = self.place(node, scope.path)
        of_class = self.of_class(owner.kind, name)
        if isinstance(of_class, Function) and of_class.form == "property":
            call = Call(self, ast.copy_location(ast.Call(node, [], []), node), scope, name, [], {})
            return self.call(self.bound_to(of_class, owner), call)
        own = owner.cells.get(named(name))
        if own is not None and not isinstance(own, Perhaps):
            return own
        if own is not None:
            # Where the object has none of its own, its class's is read.
            return read(own) if of_class is None else self.join(read(own), of_class)
        if REST in owner.cells:
            may_be = (owner,) if of_class is None else (owner, self._of_class_for(of_class, owner))
            return Unknown(f"code that is not followed may have set `{name}`", place, may_be)
        if of_class is not None:
            return self._of_class_for(of_class, owner)
        found = self.domain.attribute(owner, node, place)
        if found is not None:
            return found
        return Unknown(f"`{name}` of an object of `{owner.kind.node.name}`", place, (owner,))

    def _of_class_for(self, value: Value, owner: Instance) -> Value:
        """What an object has of its class, a method bound to it."""
        if not isinstance(value, Function):
            return value
        return self.bound_to(value, owner.kind if value.form == "class" else owner)

    def of_class(self, kind: Class, name: str) -> Value | None:
        """What a class has by a name, its own or inherited; None where no class of the tree has it."""
        perhaps: list[Value] = []
        for each in kind.line():
            found = each.cells.get(named(name))
            if found is not None:
                perhaps.append(read(found))
                if not isinstance(found, Perhaps):
                    break
        return self.any_of(perhaps) if perhaps else None

    def bound_to(self, function: Function, owner: Value) -> Function:
        if function.form == "static":
            return function
        return replace(function, bound=owner, names=function.names)

    def super_of(self, node: ast.expr, name: str, scope: Scope) -> Value:
        """`super().name` or `super(Class, self).name`."""
        place = self.place(node, scope.path)
        assert isinstance(node, ast.Call)
        owner: Value | None = None
        after: Value | None = None
        if len(node.args) == 2:
            after, owner = (self.evaluate(arg, scope) for arg in node.args)
        elif not node.args:
            frame = next((f for f in reversed(self.frames) if f.function is not None), None)
            if frame is not None and frame.function is not None:
                owner, after = frame.function.bound, frame.function.owner
        kind = owner.kind if isinstance(owner, Instance) else owner
        if not isinstance(kind, Class) or not isinstance(after, Class):
            return Unknown("what `super` gives", place, () if owner is None else (owner,))
        line = kind.line()
        behind = line[line.index(after) + 1 :] if after in line else []
        for each in behind:
            found = each.cells.get(named(name))
            if found is not None:
                value = read(found)
                return self.bound_to(value, owner) if isinstance(value, Function) else value  # type: ignore[arg-type]
        bases = [
            base for each in (after, *behind) for base in each.bases if isinstance(base, External)
        ]
        if all(base.name == "builtins.object" for base in bases) and name == "__init__":
            return External("builtins.object.__init__")
        if bases:
            return (
                Method(owner, name) if owner is not None else Unknown("what `super` gives", place)
            )
        return Unknown("what `super` gives", place, () if owner is None else (owner,))

    def left_context(self, value: Value, item: ast.withitem, scope: Scope) -> None:
        """What an object of the tree does where a `with` of it ends."""
        if isinstance(value, Instance):
            end = self.of_class(value.kind, "__exit__")
            if isinstance(end, Function):
                given = [NONE, NONE, NONE]
                self.call_with(self.bound_to(end, value), given, item.context_expr, scope)

    def entered_context(self, value: Value, item: ast.withitem, scope: Scope) -> Value:
        """What `with value as name` binds, of a value that is no library's."""
        place = self.place(item.context_expr, scope.path)
        if isinstance(value, Items) and value.kind == "iterator":
            entries = value.entries
            if entries is not None and len(entries) == 1:
                return entries[0]
        if isinstance(value, Instance):
            start = self.of_class(value.kind, "__enter__")
            if isinstance(start, Function):
                return self.call_with(self.bound_to(start, value), [], item.context_expr, scope)
        may_be = value.may_be if isinstance(value, Unknown) else (value,)
        return Unknown("what a `with` gives", place, may_be)
