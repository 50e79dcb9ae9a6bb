"""Seeds that a program gives by itself: the one of a graph, and those of single operations and initial values.

What they make of the numbers that operations count up is TensorFlow's own affair, and another one in each style; a seed
that is given is the same in both.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import os
import re
import sys
from typing import Any, Dict, List

# Keras draws seeds of its own, and gives on those of the program in another way in each version.
_OF_KERAS = re.compile(r"[/\\](?:tf_)?keras[/\\]")
# What stands between a function of TensorFlow and its caller.
_WRAPPERS = re.compile(
    r"[/\\](?:util[/\\](?:dispatch|deprecation|traceback_utils|tf_export|module_wrapper)|tf_decorator)\.py$"
)


class Seeds:
    """The explicit seeds of one process, put into `meta["seeds"]` as they come.

    `graph` holds the values of `tf.set_random_seed`, `variables` those of initial values by the variable's name, None
    where one has none, `operations` those of all other random operations, and `layers` those that come by
    Keras, which the program may have given or not. `computed` says that there are seeds that are tensors.
    """

    def __init__(self, meta: Dict[str, Any]) -> None:
        self.library = ""
        self.graph: List[int] = []
        self.operations: List[int] = []
        self.layers: List[int] = []
        self.variables: Dict[str, Any] = {}
        self.all: Dict[str, Any] = {
            "graph": self.graph,
            "operations": self.operations,
            "layers": self.layers,
            "variables": self.variables,
            "computed": False,
        }
        meta["seeds"] = self.all

    def install(self) -> None:
        from tensorflow.python.framework import ops, random_seed

        module: Any = random_seed
        framework = os.path.dirname(os.path.abspath(module.__file__))
        self.library = os.path.join(os.path.dirname(os.path.dirname(framework)), "")
        get_seed = module.get_seed

        def noted(op_seed: Any = None) -> Any:
            self._drawn(op_seed)
            return get_seed(op_seed)

        module.get_seed = noted
        base: Any = ops.Graph
        seed = base.seed

        def set_seed(graph: Any, value: Any) -> None:
            self._set(value)
            seed.fset(graph, value)

        base.seed = property(seed.fget, set_seed, seed.fdel, seed.__doc__)
        context = getattr(module, "context", None)
        if context is not None and hasattr(context, "set_global_seed"):
            original = context.set_global_seed

            def set_global_seed(value: Any) -> Any:
                self._set(value)
                return original(value)

            context.set_global_seed = set_global_seed

    def _set(self, value: Any) -> None:
        # Graphs of functions take over the seed of the graph around them, and those of datasets get one of their own.
        frame: Any = sys._getframe(2)
        if frame.f_code.co_name != "set_random_seed":
            return
        while frame is not None and (
            frame.f_code.co_name in ("set_random_seed", "set_seed")
            or _WRAPPERS.search(frame.f_code.co_filename)
        ):
            frame = frame.f_back
        if frame is not None and not frame.f_code.co_filename.startswith(self.library):
            _add(self.graph, value)

    def _drawn(self, seed: Any) -> None:
        frame: Any = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if code.co_name == "_get_single_variable":
                name = frame.f_locals.get("name")
                if isinstance(name, str) and (seed is None or _is_number(seed)):
                    self.variables.setdefault(name, None if seed is None else int(seed))
                return
            if _OF_KERAS.search(code.co_filename):
                _add(self.layers, seed)
                return
            frame = frame.f_back
        if seed is not None and not _is_number(seed):
            self.all["computed"] = True
        _add(self.operations, seed)


def _add(seeds: List[int], value: Any) -> None:
    if _is_number(value) and int(value) not in seeds:
        seeds.append(int(value))


def _is_number(value: Any) -> bool:
    try:
        return bool(int(value) == value)
    except Exception:  # a tensor, or None
        return False
