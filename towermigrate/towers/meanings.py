"""What calls of TensorFlow's scopes and of Python's own functions mean to towers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from towermigrate.flow import Call
from towermigrate.flow.values import (
    NONE,
    Class,
    Const,
    External,
    Function,
    Instance,
    Items,
    Method,
    Table,
    Unknown,
    Value,
)
from towermigrate.towers.arg_scopes import CURRENT, OPENS, opened
from towermigrate.towers.values import (
    TENSOR,
    ArgScope,
    Key,
    NameScope,
    Template,
    Term,
    Terms,
    VariableScope,
)


class Towers(Protocol):
    """What is known of the towers where a call stands: the variable scopes that are entered, what `arg_scope` hands on, and
    the terms of values that are not known. `towermigrate.towers.domain` has it.
    """

    scopes: tuple[Key, ...]
    terms: Terms
    arg_scope: ArgScope
    lost: bool
    note_change: Callable[[Term | Unknown | External, Value], None]

    def dictionary(self, owner: Value) -> Value: ...

    def is_set(self, owner: Value, name: str) -> bool: ...


def _variable_scope(domain: Towers, call: Call) -> Value:
    first = 1 if call.name == "tf.variable_op_scope" else 0
    value = call.get(first, "name_or_scope") or NONE
    if value == NONE:
        value = call.get(first + 1, "default_name") or NONE
    if isinstance(value, VariableScope):
        return value
    return VariableScope((*domain.scopes, domain.terms.key(value)))


def _current_scope(domain: Towers, call: Call) -> Value:
    return VariableScope(domain.scopes)


def _name_scope(domain: Towers, call: Call) -> Value:
    value = call.get(1 if call.name == "tf.op_scope" else 0, "name") or NONE
    return NameScope(domain.terms.key(value))


def _make_template(domain: Towers, call: Call) -> Value:
    function = call.get(1, "func_")
    if isinstance(function, Function):
        first, fixed = function.given
        own = [(name, value) for name, value in call.keywords.items() if not name.endswith("_")]
        function = replace(function, given=(first, (*fixed, *own)), names=[])
    return TENSOR if function is None else Template(function)


def _arg_scope(domain: Towers, call: Call) -> Value:
    return opened(domain.arg_scope, call)


def _current_arg_scope(domain: Towers, call: Call) -> Value:
    return domain.arg_scope


MEANINGS: dict[str, Callable[[Towers, Call], Value]] = {
    "tf.variable_scope": _variable_scope,
    "tf.variable_op_scope": _variable_scope,
    "tf.get_variable_scope": _current_scope,
    "tf.name_scope": _name_scope,
    "tf.op_scope": _name_scope,
    "tf.make_template": _make_template,
    **dict.fromkeys(OPENS, _arg_scope),
    **dict.fromkeys(CURRENT, _current_arg_scope),
}


def _range(domain: Towers, call: Call) -> Value | None:
    if all(isinstance(each, Const) for each in call.args):
        return None
    number = domain.terms.of("number of", call.args)
    return call.interpreter.items(None, call.place, "tuple", number)


def _enumerate(domain: Towers, call: Call) -> Value | None:
    if not call.args:
        return None
    over = call.args[0]
    entries = over.entries if isinstance(over, Items) else None
    if entries is not None and len(entries) <= call.interpreter.limits.turns:
        return None
    entry = call.interpreter.entry(over, call.node, call.scope)
    pair = (domain.terms.of("count of", (over,)), entry)
    made = call.interpreter.items(pair, call.place, "tuple")
    return call.interpreter.items(None, call.place, "iterator", made)


def _exec(domain: Towers, call: Call) -> Value:
    domain.lost = True
    return NONE


NAMES = "the names of a module or function, or what the program makes of a text"
"""Why nothing is known of what gives access to all names."""


def _fresh(domain: Towers, call: Call) -> Value:
    return call.unknown(NAMES)


def _vars(domain: Towers, call: Call) -> Value:
    if len(call.args) == 1 and not isinstance(call.args[0], External):
        return domain.dictionary(call.args[0])
    return call.unknown(NAMES)


def _getattr(domain: Towers, call: Call) -> Value | None:
    match call.args:
        case [owner, Const(value=str() as name), *others] if name.isidentifier():
            if isinstance(owner, Items | Table):
                return Method(owner, name)
            written = ast.copy_location(ast.Attribute(call.node, name, ast.Load()), call.node)
            if isinstance(owner, Class):
                known = call.interpreter.of_class(owner, name) is not None
                if known or not others or not owner.whole:
                    return call.interpreter.attribute(owner, written, call.scope)
                return others[0]
            if isinstance(owner, Function | External) and domain.is_set(owner, name):
                return call.interpreter.attribute(owner, written, call.scope)
            if isinstance(owner, Function) and others:
                return others[0]  # it has no others than are set
    return None


def _type(domain: Towers, call: Call) -> Value | None:
    match call.args:
        case [Instance() as owner]:
            return owner.kind
    return None


def _next(domain: Towers, call: Call) -> Value | None:
    if call.args and isinstance(call.args[0], Term | Unknown):
        found = domain.terms.of("call", (call.name, *call.args))
        domain.note_change(call.args[0], domain.terms.of("rest of", call.args[:1]))
        return found
    if call.args and isinstance(call.args[0], Instance):
        for name in ("__next__", "next"):
            function = call.interpreter.of_class(call.args[0].kind, name)
            if isinstance(function, Function):
                bound = replace(function, bound=call.args[0], names=function.names)
                return call.interpreter.call_with(bound, [], call.node, call.scope)
    return None


PYTHON: dict[str, Callable[[Towers, Call], Value | None]] = {
    "builtins.range": _range,
    "builtins.xrange": _range,
    "builtins.enumerate": _enumerate,
    "builtins.exec": _exec,
    **dict.fromkeys((f"builtins.{name}" for name in ("eval", "globals", "locals")), _fresh),
    "builtins.vars": _vars,
    "builtins.getattr": _getattr,
    "builtins.next": _next,
    "builtins.type": _type,
}
