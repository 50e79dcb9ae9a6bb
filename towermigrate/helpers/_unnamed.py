"""Layers without a name, in no variable scope, of two tower functions: not one variable without a word.

In TF1's graph the second `tf.layers.dense` is `dense_1`, in whichever function it is. Each call of a tower function
begins with fresh scopes, so that its layers are `dense` again. In one function that is what several calls share their
variables by; of two functions it may not be meant.
"""

import functools
import inspect
import logging
import weakref
from collections.abc import Callable
from typing import Any

from tensorflow.python.ops import variable_scope as _variable_scope

_log = logging.getLogger("towermigrate")


class Scopes(_variable_scope._VariableScopeStore):  # type: ignore[misc]
    """TF1's count of the variable scopes of one tower call, with the names that it chose itself."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: set[str] = set()

    def variable_scope_count(self, scope_name: str) -> int:
        """Asked only where a scope has no name but a default one: 0 gives it this one."""
        count: int = super().variable_scope_count(scope_name)
        if count == 0:
            self.chosen.add(scope_name)
        return count


def put_scopes_in(graph: Any) -> None:
    """Let the tower that begins count its scopes in `Scopes`."""
    graph.get_collection_ref(_variable_scope._VARSCOPESTORE_KEY)[:] = [Scopes()]


class Unnamed:
    """Which tower function asked for each variable of such a layer; for those of one `TowerVariables`."""

    def __init__(self) -> None:
        self._first: dict[str, Callable[..., Any]] = {}
        self._in_step: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
        self._told: set[Any] = set()

    def check(self, name: str, function: Callable[..., Any], graph: Any, index: int) -> None:
        """Raise where another function asked for the variable in this step; warn, once, where one did in another.

        Args:
          name: of a variable that `function`, the tower's, asks for.
          index: which tower of `graph`, the step's, it is.
        """
        scopes = _variable_scope.get_variable_scope_store()
        if name.partition("/")[0] not in getattr(scopes, "chosen", ()):
            return
        here = self._in_step.setdefault(graph, {})
        before = here.setdefault((index, name), function)
        if _which(before) != _which(function):
            raise ValueError(
                f"The tower functions {_named(before)} and {_named(function)} both make layers without a name, in no "
                f"variable scope, and would share {name}; in TF1 the second one's would have another name. Put what "
                "each of them makes into a variable scope of its own, or give the layers the same name= in both, if "
                "they are to share."
            )
        first = self._first.setdefault(name, function)
        if _written(first) != _written(function):
            both = _written(first), _written(function)
            if both not in self._told:
                self._told.add(both)
                _log.warning(
                    "towermigrate: the tower functions %s and %s share %s, because both make layers without a name, in "
                    "no variable scope. Give the layers names if that is meant, and each function a variable scope of "
                    "its own if not.",
                    *(_named(first), _named(function), name),
                )


def _bare(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _which(function: Any) -> Any:
    """What two names of one function have alike; of a method, its object too."""
    bare = _bare(function)
    return id(getattr(bare, "__self__", None)), id(getattr(bare, "__func__", bare))


def _written(function: Any) -> Any:
    """As `_which`, but alike also where a notebook's cell defines the function again."""
    bare = inspect.unwrap(_bare(function))
    called = getattr(bare, "__qualname__", None)
    if called is None:
        return _which(function)
    code = getattr(bare, "__code__", None)
    line = code.co_firstlineno if code is not None and called.endswith("<lambda>") else None
    return bare.__module__, called, line


def _named(function: Any) -> str:
    bare = _bare(function)
    return repr(getattr(bare, "__name__", type(bare).__name__))
