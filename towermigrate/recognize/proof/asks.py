"""Run builtins that ask what a value is or holds: `isinstance`, `type`, `sorted`, `any`, `all`, `set`.

A tensor is one in TF1 and in a step; a variable is an object of another class there, a static shape another object.
"""

from __future__ import annotations

import ast

from towermigrate.flow.values import Const, External, Value
from towermigrate.recognize.proof.expressions import Expressions
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.values import (
    Class,
    Differs,
    Function,
    Index,
    Items,
    Plain,
    Python,
    Setting,
    Tensor,
    Text,
)

_TYPES = {
    "builtins.int": int, "builtins.float": float, "builtins.str": str, "builtins.bool": bool,
    "builtins.list": list, "builtins.tuple": tuple, "builtins.dict": dict, "builtins.set": set,
}  # fmt: skip
"""Classes of Python's own that no tensor belongs to."""
_TENSORS = frozenset({"tf.Tensor", "tf.Variable", "tf.SparseTensor", "tf.IndexedSlices"})
ASKS = frozenset({"isinstance", "type", "sorted", "any", "all", "set", "frozenset"})


class Asks(Expressions):
    """Evaluates builtins that ask."""

    def asks(self, name: str, given: list[Value], node: ast.Call, frame: Frame) -> Value | None:
        """What a builtin of ASKS gives in a step; None where it may be another thing there."""
        if not given or node.keywords or len(given) != (2 if name == "isinstance" else 1):
            return None
        if name == "isinstance":
            return self._is_instance(given[0], given[1])
        if name == "type":
            return External("type") if _same_class(given[0]) else None
        of = given[0]
        if not isinstance(of, Items) or not all(_plain(v) for v, _ in of.entries()):
            return None
        if name in ("any", "all"):
            for value, _ in of.entries():
                self.truth(value, node, frame)
            return Plain()
        return Items(of.entries(), False, not self.strict, name != "frozenset")

    def _is_instance(self, value: Value, asked: Value) -> Value | None:
        classes = [v for v, _ in asked.values] if isinstance(asked, Items) else [asked]
        names = [v.name if isinstance(v, External) else None for v in classes]
        if isinstance(value, Tensor):
            # What gives several tensors gives a list or a tuple, in TF1 and in a step.
            unsure = value.variable or value.gradient or not all(n in _TYPES for n in names)
            return None if unsure else Plain()
        if not _same_class(value):
            return None
        own = all(
            n in _TYPES or n in _TENSORS or isinstance(c, Class)
            for n, c in zip(names, classes, strict=True)
        )
        if not own:
            return None
        if isinstance(value, Const) and all(n in _TYPES for n in names):
            return Const(isinstance(value.value, tuple(_TYPES[n] for n in names if n)))
        return Plain()


def _same_class(value: Value) -> bool:
    """Whether a value belongs to the same class in TF1 and in a step: it is no tensor, variable or static shape."""
    return isinstance(value, Python | Setting | Items | Function | External | Class)


def _plain(value: Value) -> bool:
    """Whether a value is hashed, ordered and true or not as Python's numbers and texts are."""
    if isinstance(value, Items):
        return not value.mutable and all(_plain(v) for v, _ in value.values)
    return isinstance(value, Python) and not isinstance(value, Index | Differs | Text)
