"""Run what makes functions of functions: decorators of the program's own, and `functools.partial`."""

from __future__ import annotations

import ast
from dataclasses import replace

from towermigrate.flow.values import External, Value
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.machine import is_python
from towermigrate.recognize.proof.natives import Arguments, Natives
from towermigrate.recognize.proof.values import (
    Function,
    Instance,
    Partial,
    Python,
)

_WRAPS = ("functools.wraps", "six.wraps")


class Functions(Natives):
    """Evaluates the making of functions."""

    def decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Value:
        """What a `def` binds its name to: what its decorators give, which are run where it stands."""
        defaults = self.defaults_of(node, frame)
        made: Value = Function(
            node, frame.code, frame, plain=not node.decorator_list, defaults=defaults
        )
        for place in reversed(node.decorator_list):
            if isinstance(place, ast.Call) and self._copies_names(place, frame):
                continue
            decorator = self.value(place, frame)
            if not isinstance(decorator, Function) or not isinstance(made, Function):
                return Function(node, frame.code, frame)
            made = self.enter(
                decorator, [replace(made, plain=True)], {}, place, frame.code
            )  # fmt: skip
        if node.decorator_list:
            if not isinstance(made, Function):
                return Function(node, frame.code, frame)
            return replace(made, plain=True)
        return made

    def _copies_names(self, place: ast.Call, frame: Frame) -> bool:
        """`@functools.wraps(fn)`, which gives a function another one's name."""
        with self.mode(False):
            function = self.value(place.func, frame)
        return isinstance(function, External) and function.name in _WRAPS

    def partial(self, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        """`functools.partial(…)`; None where it holds what may be changed before it is called."""
        if args.starred or not args.given:
            return None
        function, *given = args.given
        known = isinstance(function, Function | Partial) or (
            isinstance(function, External) and function.name in library.PURE - library.SUMMARIES
        )
        held = [*given, *args.named.values()]
        if not known or (not self.strict and not all(_never_changes(v) for v in held)):
            return None
        if any(isinstance(v, Instance) for v in held):
            return None
        return Partial(function, tuple(given), tuple(args.named.items()))

    def completed(self, function: Partial, args: Arguments) -> Arguments:
        """The arguments of a call of a partial function."""
        made = Arguments()
        made.given = [*function.given, *args.given]
        made.named = {**dict(function.named), **args.named}
        made.starred = args.starred
        return made


def _never_changes(value: Value) -> bool:
    return isinstance(value, Python | External | Function) and is_python(value)
