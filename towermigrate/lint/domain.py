"""`tf.distribute` code as a domain: what TensorFlow's calls, operators and attributes mean to the lint."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from towermigrate.flow import Call
from towermigrate.flow.values import (
    Class,
    Const,
    External,
    Instance,
    Items,
    Place,
    Scope,
    Value,
    same,
)
from towermigrate.lint import arithmetic, assumptions, checks, gradients, losses, replicas
from towermigrate.lint import values as v
from towermigrate.lint.noting import Noting

_SPELLINGS = [
    (re.compile(r"^(tensorflow\.(compat\.v[12]\.|python\.)?keras|tf_keras)(?=\.|$)"), "keras"),
    (re.compile(r"^tensorflow\.compat\.v[12](?=\.|$)"), "tensorflow"),
    (re.compile(r"^tensorflow\.math\.(?=reduce_|add_n|divide)"), "tensorflow."),
    (re.compile(r"^(towermigrate_helpers)(?=\.|$)"), "towermigrate.helpers"),
    (re.compile(r"^keras\.(backend|ops)\.(mean|sum)$"), r"tensorflow.reduce_\2"),
]
_STRATEGY_CLASS = re.compile(r"tensorflow\.(contrib\.)?distribute\..*Strategy(V1)?$")
_LOSS_CLASS = re.compile(r"keras\.losses\.[A-Z]\w+$")


class Lint(Noting):
    """The domain of the rules TM401 to TM410."""

    def spelled(self, name: str) -> str:
        """The one spelling of a library's name.

        Example:
            >>> Lint().spelled("tensorflow.compat.v1.math.reduce_mean")
            'tensorflow.reduce_mean'
        """
        for pattern, spelling in _SPELLINGS:
            name = pattern.sub(spelling, name)
        return name

    def name(self, name: str, value: Value) -> Value:
        return assumptions.hinted(name, value)

    # ---- calls -----------------------------------------------------------------------------------

    def function(self, call: Call) -> Value | None:
        meaning = _FUNCTIONS.get(call.name)
        if meaning is not None:
            return meaning(call)
        last = call.name.rsplit(".", 1)[-1]
        if _STRATEGY_CLASS.match(call.name):
            return v.Strategy(not last.startswith("OneDevice"))
        if _LOSS_CLASS.match(call.name):
            return v.LossObject(losses.reduction(call.get(99, "reduction")), last)
        if call.name.startswith("keras.metrics.Mean") and last == "Mean":
            return v.Metric()
        if call.name.startswith(("builtins.", "functools.", "collections.", "six.")):
            return None
        return v.unknown(call.name)

    def method(self, call: Call, owner: Value, receiver: ast.expr) -> Value | None:
        # A strategy's own methods, by the name of what they are called on.
        meaning = replicas.METHODS.get(call.name)
        if meaning is not None:
            strategy = assumptions.strategy(receiver, owner)
            if strategy is not None:
                return meaning(call, strategy)
        of_any = _METHODS.get(call.name)
        return None if of_any is None else of_any(call, v.seen(owner))

    def called(self, call: Call, value: Value) -> Value | None:
        match value:
            case v.LossObject():
                return checks.keras_loss(call, value)
            case v.Metric():
                return checks.mean_metric(call)
            case Instance() | Class():
                return v.unknown()  # a layer's output, whatever its `call` does to it
        return v.unknown(_text(call.node.func))

    def changes(self, call: Call, values: Sequence[Value]) -> bool:
        return False  # what libraries do to what they are given, no rule asks about

    def decorated(self, decorator: Value, node: ast.expr, function: Value) -> Value | None:
        called = isinstance(node, ast.Call)
        name = decorator.source if isinstance(decorator, v.Tensor) else ""
        if isinstance(decorator, External):
            name = decorator.name
        plain = name.startswith("tensorflow") or (called and name.startswith("functools"))
        return function if plain or isinstance(function, Class) else None

    # ---- parts of values -------------------------------------------------------------------------

    def attribute(self, owner: Value, node: ast.Attribute, place: Place) -> Value | None:
        name = node.attr
        if name == "num_replicas_in_sync":
            return v.Number(1, 0)
        if name == "losses" and (v.is_blank(owner) or isinstance(owner, Instance)):
            return v.ModelLosses()
        if name in ("variables", "weights", "trainable_variables", "trainable_weights"):
            return v.Variables(not name.startswith("trainable"), ast.unparse(node))
        if name == "shape" and isinstance(v.seen(owner), v.Tensor):
            return v.Shape()
        return v.unknown()

    def subscript(
        self, owner: Value, key: Value, node: ast.Subscript, place: Place
    ) -> Value | None:
        index = key.value if isinstance(key, Const) else None
        if isinstance(owner, v.Gradients | v.Variables):
            return owner if isinstance(index, slice) else self.entry(owner)
        return self._item(owner, index) if isinstance(index, int) else v.unknown()

    def unpacked(self, value: Value, count: int) -> Sequence[Value] | None:
        return [self._item(value, index) for index in range(count)]

    def _item(self, value: Value, index: int) -> Value:
        match value:
            case v.PerReplica(value=Items(entries=tuple() as entries)):
                inside = -len(entries) <= index < len(entries)
                return v.PerReplica(entries[index]) if inside else v.unknown()
            case v.PerReplica():
                return v.PerReplica(self._item(value.value, index))
            case v.Shape():
                return v.Count() if index == 0 else v.unknown()
        return self.entry(value) or v.unknown()

    def entry(self, value: Value) -> Value | None:
        match value:
            case v.PerReplica():
                return v.PerReplica(self.entry(value.value) or v.unknown())
            case v.Gradients() | v.Variables() | v.ModelLosses():
                return value
        return v.unknown()

    # ---- operators -------------------------------------------------------------------------------

    def operation(self, node: ast.AST, operands: Sequence[Value], place: Place) -> Value | None:
        match node:
            case ast.BinOp() | ast.AugAssign():
                return self._binary(node, operands[0], operands[1], place)
            case ast.UnaryOp(op=ast.USub()):
                return arithmetic.negative(operands[0])
            case ast.UnaryOp(op=ast.UAdd()) | ast.Await():
                return operands[0]
        return v.unknown()

    def _binary(
        self, node: ast.BinOp | ast.AugAssign, first: Value, second: Value, place: Place
    ) -> Value:
        left, right = (
            (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        )
        match node.op:
            case ast.Add() | ast.Sub():
                return arithmetic.add(first, second)
            case ast.Mult():
                return assumptions.product(self, place, (first, left), (second, right))
            case ast.Div():
                return arithmetic.divide(first, second, place)
        return v.unknown()

    def join(self, first: Value, second: Value) -> Value | None:
        return arithmetic.join(first, second)

    def alike(self, first: Value, second: Value) -> bool:
        if isinstance(first, v.Tensor) and isinstance(second, v.Tensor):
            return (
                v.is_blank(first)
                and v.is_blank(second)
                or ((first.replicas, first.batch) == (second.replicas, second.batch))
            )
        return same(first, second)

    # ---- scopes ----------------------------------------------------------------------------------

    def entering(self, value: Value, node: ast.withitem, scope: Scope) -> Value | None:
        mode = self.mode
        if isinstance(value, v.StrategyScope) and mode == "plain" and value.strategy.sure:
            mode = "cross"
        self.modes.append(mode)
        return value if isinstance(value, v.Known) else None

    def leaving(self, value: Value, node: ast.withitem, scope: Scope) -> None:
        self.modes.pop()


def _text(node: ast.expr) -> str:
    """The source of an expression; most are dotted names, which need no unparser."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(value=ast.Name() | ast.Attribute() as owner):
            return f"{_text(owner)}.{node.attr}"
    return ast.unparse(node)


def _update_state(call: Call, target: Value) -> Value:
    return checks.mean_metric(call) if isinstance(target, v.Metric) else v.unknown()


def _zip(call: Call) -> Value | None:
    match list(call.args):
        case [v.Gradients() as given, *_]:
            return given
    return None


def _first(call: Call) -> Value | None:
    """`float(x)`, `list(x)`: what it is given, where that is no container of Python's own."""
    found = call.get(0)
    return found if isinstance(found, v.Known) else None


_METHODS: dict[str, Callable[[Call, Value], Value]] = {
    **gradients.METHODS,
    "update_state": _update_state,
}

_FUNCTIONS: dict[str, Callable[[Call], Value | None]] = {
    **losses.FUNCTIONS,
    **gradients.FUNCTIONS,
    **replicas.FUNCTIONS,
    "builtins.float": _first,
    "builtins.int": _first,
    "builtins.list": _first,
    "builtins.tuple": _first,
    "builtins.zip": _zip,
}
