"""Names: what a scope binds, and one spelling for every way to import a library's name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from towermigrate.distribute_scan.values import Value


@dataclass(eq=False)
class Scope:
    """The names of a module or of one call of a function; a nested function sees the `parent`'s."""

    path: str
    names: dict[str, Value] = field(default_factory=dict)
    parent: Scope | None = None

    def lookup(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


_SPELLINGS = [
    (re.compile(r"^(tensorflow\.(compat\.v[12]\.|python\.)?keras|tf_keras)(?=\.|$)"), "keras"),
    (re.compile(r"^tensorflow\.compat\.v[12](?=\.|$)"), "tensorflow"),
    (re.compile(r"^tensorflow\.math\.(?=reduce_|add_n|divide)"), "tensorflow."),
    (re.compile(r"^(towermigrate_helpers)(?=\.|$)"), "towermigrate.helpers"),
    (re.compile(r"^keras\.(backend|ops)\.(mean|sum)$"), r"tensorflow.reduce_\2"),
]


def canonical(name: str) -> str:
    """The one spelling of a library's name.

    Example:
        >>> canonical("tensorflow.compat.v1.math.reduce_mean"), canonical("tensorflow.keras.losses.MSE")
        ('tensorflow.reduce_mean', 'keras.losses.MSE')
    """
    for pattern, spelling in _SPELLINGS:
        name = pattern.sub(spelling, name)
    return name
