"""What a call gives: functions of the tree are entered, those of libraries are looked up."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from towermigrate.distribute_scan import assumptions, checks, gradients, losses, replicas
from towermigrate.distribute_scan import values as v

if TYPE_CHECKING:
    from towermigrate.distribute_scan.interpret import Interpreter
    from towermigrate.distribute_scan.scopes import Scope


@dataclass(frozen=True)
class Call:
    """One call, with the values of its arguments."""

    reader: Interpreter
    node: ast.Call
    scope: Scope
    name: str
    args: list[v.Value]
    keywords: Mapping[str, v.Value]

    def get(self, index: int, *names: str) -> v.Value | None:
        """An argument by position or by one of its names."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return self.args[index] if index < len(self.args) else None

    def first(self) -> v.Value:
        return self.args[0] if self.args else v.unknown()

    @property
    def place(self) -> v.Place:
        return self.reader.place(self.node, self.scope)


def call(reader: Interpreter, node: ast.Call, scope: Scope) -> v.Value:
    """The value of a call; what it is called on and its arguments are read once and first."""
    func = node.func
    owner: v.Value | None = None
    if isinstance(func, ast.Attribute):
        owner = reader.evaluate(func.value, scope)
        # A strategy's own methods, by the name of what they are called on.
        method = replicas.METHODS.get(func.attr)
        if method is not None:
            strategy = assumptions.strategy(func.value, owner)
            if strategy is not None:
                return method(_arguments(reader, node, scope, func.attr), strategy)
        target = reader.attribute(owner, func)
    else:
        target = reader.evaluate(func, scope)
    found = _arguments(reader, node, scope, target.name if isinstance(target, v.External) else "")
    match target:
        case v.External():
            return _external(found)
        case v.Function():
            return reader.call(target, found.args, found.keywords)
        case v.ClassRef():
            return v.Instance(target)
        case v.LossObject():
            return checks.keras_loss(found, target)
        case v.Metric():
            return checks.mean_metric(found)
        case v.Instance():
            # `model(x)`: a layer's output, whatever its `call` does to it.
            return v.unknown()
    if isinstance(func, ast.Attribute) and owner is not None:
        method_of = _METHODS.get(func.attr)
        if method_of is not None:
            return method_of(found, owner)
    return v.unknown(_text(func))


def _arguments(reader: Interpreter, node: ast.Call, scope: Scope, name: str) -> Call:
    args: list[v.Value] = []
    for position, arg in enumerate(node.args):
        value = reader.evaluate(arg, scope)
        if isinstance(arg, ast.Starred):
            # Where the rest stands is not known.
            args += [v.unknown() for _ in node.args[position:]]
            break
        args.append(value)
    keywords = {k.arg: reader.evaluate(k.value, scope) for k in node.keywords if k.arg}
    return Call(reader, node, scope, name, args, keywords)


def _text(node: ast.expr) -> str:
    """The source of an expression; most are dotted names, which need no unparser."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(value=ast.Name() | ast.Attribute() as owner):
            return f"{_text(owner)}.{node.attr}"
    return ast.unparse(node)


_STRATEGY_CLASS = re.compile(r"tensorflow\.(contrib\.)?distribute\..*Strategy(V1)?$")
_LOSS_CLASS = re.compile(r"keras\.losses\.[A-Z]\w+$")


def _external(found: Call) -> v.Value:
    name = found.name
    meaning = _FUNCTIONS.get(name)
    if meaning is not None:
        return meaning(found)
    last = name.rsplit(".", 1)[-1]
    if _STRATEGY_CLASS.match(name):
        return v.Strategy(not last.startswith("OneDevice"))
    if _LOSS_CLASS.match(name):
        return v.LossObject(losses.reduction(found.get(99, "reduction")), last)
    if name.startswith("keras.metrics.Mean") and last == "Mean":
        return v.Metric()
    return v.unknown(name)


def _update_state(found: Call, target: v.Value) -> v.Value:
    return checks.mean_metric(found) if isinstance(target, v.Metric) else v.unknown()


def _get(found: Call, target: v.Value) -> v.Value:
    key = found.args[0] if found.args else None
    if isinstance(target, v.Table) and isinstance(key, v.Text):
        return target.values.get(key.text, v.unknown())
    return v.unknown()


def _append(found: Call, target: v.Value) -> v.Value:
    """`losses.append(loss)`: the list is known from here on by what was put in last."""
    func = found.node.func
    assert isinstance(func, ast.Attribute)
    if isinstance(target, v.Items) and found.args:
        longer = v.listed((*target.values, found.args[0]))
        found.reader.bind(func.value, longer, found.scope)
    return v.unknown()


def _zip(found: Call) -> v.Value:
    match found.args:
        case [v.Gradients() as given, *_]:
            return given
    return v.unknown()


def _list(found: Call) -> v.Value:
    return found.first() if found.args else v.listed(())


_METHODS: dict[str, Callable[[Call, v.Value], v.Value]] = {
    **gradients.METHODS,
    "update_state": _update_state,
    "get": _get,
    "append": _append,
}

_FUNCTIONS: dict[str, Callable[[Call], v.Value]] = {
    **losses.FUNCTIONS,
    **gradients.FUNCTIONS,
    **replicas.FUNCTIONS,
    "functools.partial": Call.first,
    "float": Call.first,
    "int": Call.first,
    "list": _list,
    "tuple": _list,
    "zip": _zip,
}

BUILTINS = frozenset(name for name in _FUNCTIONS if "." not in name)
