"""`arg_scope` of TF1's layers: arguments that functions are given where they are called without them."""

from __future__ import annotations

from dataclasses import replace

from towermigrate.flow import Call
from towermigrate.flow.values import External, Function, Items, Value
from towermigrate.towers.values import ArgScope, Key

_MODULES = (
    "tf.contrib.framework", "tf.contrib.framework.arg_scope", "tf.contrib.framework.python.ops",
    "tf.contrib.framework.python.ops.arg_scope", "tf.contrib.slim", "tf.contrib.slim.arg_scope",
)  # fmt: skip
OPENS = frozenset(f"{module}.arg_scope" for module in _MODULES)
CURRENT = frozenset(f"{module}.current_arg_scope" for module in _MODULES)
TAKES = frozenset(f"{module}.add_arg_scope" for module in _MODULES)
"""The decorator of functions that take arguments so."""

ANY: Key = "any function"
_NAMES = frozenset({"name", "scope"})


def opened(scope: ArgScope, call: Call) -> ArgScope:
    """What a call of `arg_scope` opens inside of this one."""
    first = call.get(0, "list_ops_or_scope")
    if isinstance(first, ArgScope):
        return first
    given = {name: value for name, value in call.keywords.items() if name != "list_ops_or_scope"}
    entries = first.entries if isinstance(first, Items) else None
    if first is not None and entries is None and not given and call.known:
        return ArgScope(stars={ANY: (first,)})  # another one, which takes the place of this one
    keys = [key_of(each) for each in entries or ()]
    every, stars = dict(scope.given), dict(scope.stars)
    for key in keys:
        every[key] = {**every.get(key, {}), **given}
        stars[key] = (*stars.get(key, ()), *call.stars)
    if entries is None or None in keys:
        stars[ANY] = (*stars.get(ANY, ()), *given.values(), *call.stars)
    return ArgScope(every, stars)


def applied(scope: ArgScope, call: Call, key: Key) -> Call | None:
    """A call of a function with what it is given here besides; None where that is nothing."""
    missing = {
        name: value for name, value in scope.given.get(key, {}).items() if name not in call.keywords
    }
    more = [*scope.stars.get(key, ()), *scope.stars.get(ANY, ())]
    if not missing and not more:
        return None
    if not call.known or more:
        # What stars give goes before what the scope gives.
        stars = [*call.stars, *more, *missing.values()]
        return replace(call, known=False, stars=stars)
    return replace(call, keywords={**missing, **call.keywords})


def named(scope: ArgScope, call: Call, key: Key) -> Call:
    """A call of a library's function with the names that it is given here."""
    given = scope.given.get(key, {})
    names = {name: each for name, each in given.items() if name in _NAMES - call.keywords.keys()}
    return replace(call, keywords={**names, **call.keywords}) if names else call


def key_of(function: Value) -> Key:
    """What a function goes by; None of what is none. A library's has several names."""
    if isinstance(function, Function):
        return ("function", id(function.node))
    if isinstance(function, External):
        return ("library", function.name.rpartition(".")[2])
    return None
