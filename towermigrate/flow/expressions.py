"""The value of an expression."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from functools import partial

from towermigrate.flow.domain import Call
from towermigrate.flow.operators import Operators
from towermigrate.flow.python import FUNCTIONS
from towermigrate.flow.values import (
    NONE,
    ORDER,
    Class,
    Const,
    External,
    Function,
    Instance,
    Made,
    MayGive,
    Method,
    Perhaps,
    Scope,
    Table,
    Unknown,
    Value,
    read,
)


class Expressions(Operators):
    """Evaluates expressions. Part of the interpreter."""

    def evaluate(self, node: ast.expr, scope: Scope) -> Value:
        self.steps += 1
        match node:
            case ast.Name():
                return self.domain.name(node.id, self.read_name(node.id, node, scope))
            case ast.Attribute():
                owner = self.evaluate(node.value, scope)
                return self.domain.name(node.attr, self.attribute(owner, node, scope))
            case ast.Constant():
                found = self.domain.constant(node.value)
                return Const(node.value) if found is None else found
            case ast.Call():
                return self._call(node, scope)
            case ast.BinOp():
                left = self.evaluate(node.left, scope)
                return self.operate(node, node.op, [left, self.evaluate(node.right, scope)], scope)
            case ast.UnaryOp():
                return self._unary(node, scope)
            case ast.BoolOp():
                return self._bool(node, scope)
            case ast.Compare():
                return self._compare(node, scope)
            case ast.Tuple() | ast.List() | ast.Set():
                kind = type(node).__name__.lower()
                entries = self._elements(node.elts, scope)
                place = self.place(node, scope.path)
                if entries is None:
                    return self.items(None, place, kind, Unknown("one of several values", place))
                if kind == "set":
                    return self.items(None, place, kind, self.any_of(entries) if entries else None)
                return self.items(entries, place, kind)
            case ast.Dict():
                return self._dict(node, scope)
            case ast.IfExp():
                known = self.truth(self.evaluate(node.test, scope))
                if known is not None:
                    return self.evaluate(node.body if known else node.orelse, scope)
                return self._one_of([node.body, node.orelse], scope)
            case ast.Subscript():
                owner = self.evaluate(node.value, scope)
                key = self.key_of(node.slice, scope)
                return self.entry_at(owner, key, node, scope)
            case ast.Lambda():
                function = self.function(node, scope)
                self.defined.append(function)
                return function
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.NamedExpr():
                value = self.evaluate(node.value, scope)
                self.bind(node.target, value, _not_of_comprehension(scope))
                return value
            case ast.Starred() | ast.Await():
                value = self.evaluate(node.value, scope)
                return (
                    value if isinstance(node, ast.Starred) else self._opaque(node, scope, [value])
                )
            case ast.JoinedStr():
                return self._text(node, scope)
            case ast.Yield() | ast.YieldFrom():
                return self._yield(node, scope)
            case ast.Slice():
                parts = [
                    None if p is None else self.evaluate(p, scope)
                    for p in (node.lower, node.upper, node.step)
                ]
                values = [each.value if isinstance(each, Const) else each for each in parts]
                if all(each is None or isinstance(each, int) for each in values):
                    return Const(slice(*values))
                operands = [each or NONE for each in parts]
                return self.asked(node, operands, "a slice", self.place(node, scope.path))
        return self._opaque(node, scope, [])

    def _opaque(self, node: ast.expr, scope: Scope, values: Sequence[Value]) -> Value:
        inside = [
            self.evaluate(child, scope)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr) and not values
        ]
        why = "an expression that is not followed"
        return self.asked(node, [*values, *inside], why, self.place(node, scope.path))

    def read_name(self, name: str, node: ast.AST, scope: Scope) -> Value:
        found = scope.lookup(name)
        if found is not None:
            return read(found)
        place = self.place(node, scope.path)
        if name in scope.local:
            return Unknown(f"{name} may be unbound", place)
        stars = self.stars.get(id(scope.module), ())
        if stars:
            libraries = {each.name for each in stars if isinstance(each, External)}
            if len(libraries) == len(stars) == 1 and not hasattr(builtins, name):
                return External(self.domain.spelled(f"{libraries.pop()}.{name}"))
            return Unknown(f"{name} may come from a module all of whose names are imported", place)
        if hasattr(builtins, name) or name in _OLD_BUILTINS:
            return External(f"builtins.{name}")
        return Unknown(f"{name} is not bound", place)

    # ---- what is put together --------------------------------------------------------------------

    def _elements(self, nodes: Sequence[ast.expr], scope: Scope) -> list[Value] | None:
        """The values of a display; None where a star among them cannot be taken apart."""
        found: list[Value] = []
        known = True
        for node in nodes:
            value = self.evaluate(node, scope)
            if isinstance(node, ast.Starred):
                entries = self.turns(value)
                known = known and entries is not None
                found += entries or ()
            else:
                found.append(value)
        return found if known else None

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        made = self.table({}, self.place(node, scope.path))
        repeated, made.repeated = (
            made.repeated,
            False,
        )  # until it is made, it stands for none but itself
        for key, each in zip(node.keys, node.values, strict=True):
            if key is None:
                self.update(made, self.evaluate(each, scope), self.place(node, scope.path))
                continue
            name = self.evaluate(key, scope)
            self.set_entry(made, name, self.evaluate(each, scope), self.place(node, scope.path))
        made.repeated = repeated
        return made

    def _text(self, node: ast.JoinedStr, scope: Scope) -> Value:
        parts: list[str] = []
        values: list[Value] = []
        known = True
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.evaluate(part.value, scope)
                values.append(value)
                plain = part.conversion == -1 and part.format_spec is None
                if part.format_spec is not None:
                    values.append(self.evaluate(part.format_spec, scope))
                if (
                    plain
                    and isinstance(value, Const)
                    and isinstance(value.value, str | int | float)
                ):
                    parts.append(f"{value.value}")
                else:
                    known = False
            elif isinstance(part, ast.Constant):
                parts.append(str(part.value))
        if known:
            return Const("".join(parts))
        return self.asked(node, values, "a text", self.place(node, scope.path))

    def _yield(self, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Value:
        frame = self.frames[-1]
        value = self.evaluate(node.value, scope) if node.value else Const(None)
        if isinstance(node, ast.YieldFrom):
            entries = self.turns(value)
            frame.many = frame.many or entries is None
            frame.yielded += entries if entries is not None else [self.entry(value, node, scope)]
        else:
            frame.yielded.append(value)
        # Which of them it gives is certain only where every statement before is run once.
        frame.many = frame.many or self.generic > 0 or frame.branching > 0 or frame.left_early
        return Unknown("what is sent to a generator", self.place(node, scope.path))

    def _comprehension(
        self,
        node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp,
        scope: Scope,
    ) -> Value:
        place = self.place(node, scope.path)
        inside = Scope(scope.path, parent=scope, comprehension=True)
        found: list[tuple[Value, Value]] = []
        exact = True

        def run(position: int) -> None:
            nonlocal exact
            if position == len(node.generators):
                if isinstance(node, ast.DictComp):
                    key = self.evaluate(node.key, inside)
                    found.append((key, self.evaluate(node.value, inside)))
                else:
                    found.append((Const(None), self.evaluate(node.elt, inside)))
                return
            one = node.generators[position]
            over = self.evaluate(one.iter, scope if position == 0 else inside)
            turns = self.turns(over)
            if turns is None:
                exact = False
                entry = self.entry(over, one.iter, inside)
                self.any_number(lambda: turn(position, entry, one.ifs))
                return
            for value in turns:
                turn(position, value, one.ifs)

        def turn(position: int, value: Value, tests: Sequence[ast.expr]) -> bool:
            self.bind(node.generators[position].target, value, inside)
            return tested(position, tests)

        def tested(position: int, tests: Sequence[ast.expr]) -> bool:
            """Go on where the tests hold; what that changes is certain only where they do."""
            nonlocal exact
            for number, test in enumerate(tests):
                known = self.truth(self.evaluate(test, inside))
                if known is False:
                    return True
                if known is None:
                    exact = False
                    rest = partial(tested, position, tests[number + 1 :])
                    return self.ways([rest, lambda: True])
            run(position + 1)
            return True

        if not exact or len(found) > self.limits.entries:
            raise AssertionError
        run(0)
        if isinstance(node, ast.DictComp):
            made = self.table({}, place)
            for key, value in found:
                self.set_entry(made, key, value, place)
            if not exact:
                every = self.any_of([value for _, value in found]) if found else Unknown("no entry")
                for name, value in list(made.cells.items()):
                    if name == ORDER:
                        continue
                    self.store.set(
                        made.cells, name, Unknown("it may not be there", place, (read(value),))
                    )
                self.change(made, ("rest",), every)
            return made
        values = [value for _, value in found]
        kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "iterator"}[type(node)]
        if not exact or kind == "set":
            return self.items(None, place, kind, self.any_of(values) if values else None)
        return self.items(values, place, kind)

    # ---- calls -----------------------------------------------------------------------------------

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        func = node.func
        receiver: Value | None = None
        if isinstance(func, ast.Attribute):
            if _is_super(func.value):
                target = self.super_of(func.value, func.attr, scope)
            else:
                receiver = self.evaluate(func.value, scope)
                target = self.attribute(receiver, func, scope)
        else:
            target = self.evaluate(func, scope)
        args: list[Value] = []
        keywords: dict[str, Value] = {}
        known = True
        stars: list[Value] = []
        for arg in node.args:
            value = self.evaluate(arg, scope)
            if not isinstance(arg, ast.Starred):
                (args if known else stars).append(value)
                continue
            entries = self.turns(value)
            known = known and entries is not None
            (args if known else stars).extend([value] if entries is None else entries)
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, scope)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Table) and value.finite:
                for key, each in value.cells.items():
                    if isinstance(each, Perhaps):
                        known = False
                        stars.append(MayGive(str(key[-1]), each))
                    elif key != ORDER:
                        keywords[str(key[-1])] = each
            else:
                known = False
                stars.append(value)
        name = func.attr if isinstance(func, ast.Attribute) else ""
        if isinstance(target, External):
            name = target.name
        call = Call(self, node, scope, name, args, keywords, known, stars)
        return self.invoke(target, call, receiver)

    def invoke(self, target: Value, call: Call, receiver: Value | None = None) -> Value:
        """What calling a value gives."""
        match target:
            case Function() | Class():
                found = self.domain.entered(call, target)
                if found is not None:
                    return found
                return (
                    self.call(target, call)
                    if isinstance(target, Function)
                    else self.instance(target, call)
                )
            case External():
                found = self.domain.function(call)
                if found is None:
                    meaning = FUNCTIONS.get(target.name)
                    found = meaning(call) if meaning is not None and call.known else None
                if found is not None:
                    return found
            case Method():
                meant = self.method(target, call)
                if meant is not None:
                    return meant
            case Instance():
                start = self.of_class(target.kind, "__call__")
                if isinstance(start, Function):
                    return self.call(self.bound_to(start, target), call)
            case Unknown(may_be=several):
                self._may_call([each for each in several if isinstance(each, Function)], call)
        func = call.node.func
        if isinstance(func, ast.Attribute) and receiver is not None and call.node.func is func:
            found = self.domain.method(call, receiver, func.value)
            if found is not None:
                return found
        found = self.domain.called(call, target)
        if found is not None:
            return found
        why = call.unknown("a call that is not followed")
        given = [*call.args, *call.keywords.values()]
        touched = [*given, target, *([] if receiver is None else [receiver])]
        if self.domain.changes(call, touched):
            self.escape(touched, why)
        made = tuple(each for each in touched if isinstance(each, Made))
        return Unknown(why.reason, why.place, made)

    def _may_call(self, functions: Sequence[Function], call: Call) -> None:
        """One of some functions is called, or none of them: what they change is no longer certain."""

        def way(function: Function) -> Callable[[], bool]:
            return lambda: self.call(function, call) is not None

        if functions:
            self.ways([*map(way, functions), lambda: True])

    def call_with(
        self, target: Value, args: Sequence[Value], node: ast.expr, scope: Scope
    ) -> Value:
        """Call a value from where no call is written: a decorator, a key function."""
        written = ast.copy_location(ast.Call(node, [], []), node)
        return self.invoke(target, Call(self, written, scope, "", list(args), {}))


_OLD_BUILTINS = {"xrange", "unicode", "raw_input", "reduce", "long", "basestring", "unichr"}


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def _not_of_comprehension(scope: Scope) -> Scope:
    while scope.comprehension and scope.parent is not None:
        scope = scope.parent
    return scope
