"""What a running program did in one graph: gradients it computed, updates it applied, moving averages it made."""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import collections
import re
from typing import Any, Dict, List, Optional, Set

from .operations import closure

# With the slash: what the probe adds to a graph takes no name from the program's own operations.
PROBE_SCOPE = "towermigrate_probe/"

_REPLICA = re.compile(r"/replica_\d+(?=$|:)")


def plain_name(variable: Any) -> str:
    """A variable's TF1 name: no replica, no output number."""
    return _REPLICA.sub("", str(variable.name)).partition(":")[0]


def copies(variable: Any) -> List[Any]:
    """The copies of a variable, one for each replica that has one; itself where it is not distributed."""
    values = getattr(variable, "values", None)
    return list(values) if isinstance(values, tuple) else [variable]


def is_variable(value: Any) -> bool:
    """Whether a value is a variable, or several copies of one."""
    # Asking a distributed variable for its initializer would add an operation to the graph.
    return hasattr(copies(value)[0], "initializer")


class Computed:
    """One call of `compute_gradients` or of `tf.gradients`: what was differentiated, and what came of it."""

    def __init__(self, losses: List[Any], gradients: List[Any], by_name: Dict[str, Any]) -> None:
        self.losses = losses
        self.markers = [part for gradient in gradients for part in parts_of(gradient)]
        self.outputs = {part.name for part in self.markers}
        self.by_name = by_name
        self.used = False


class Update:
    """One stage: an outermost `apply_gradients`, or gradients that the program assigns by itself.

    `computed` are the calls whose gradients reach it, in the order of the source: one for each tower, or one
    for a loss that is made of those of all towers.
    """

    def __init__(self, name: str, gradients: Dict[str, Any], computed: List[Computed]) -> None:
        self.name = name
        self.gradients = gradients
        self.computed = computed
        self.ops: List[Any] = []
        self.optimizers: List[Any] = []
        self.first_op = 0
        self.last_op = 0

    def losses(self) -> List[Any]:
        return [loss for each in self.computed for loss in each.losses]


class SeenGraph:
    """What the probe saw in one TensorFlow graph."""

    def __init__(self) -> None:
        self.counter: Any = None
        self.draws = 0
        self.tower_draws: Dict[int, int] = {}
        self.initial_draws: Dict[str, int] = {}
        self.computed: List[Computed] = []
        self.updates: Any = collections.OrderedDict()
        self.averages: List[Any] = []
        self.slots: Dict[str, str] = {}
        self.plans: Dict[Any, Any] = {}
        self.sources: Optional[Any] = None
        self.writes: Optional[Any] = None
        self.initialized = False
        self.in_order = False

    def behind(self, tensors: List[Any]) -> List[Computed]:
        """The calls whose gradients the tensors are made of; what those are made of themselves is their affair."""
        by_output = {name: each for each in self.computed for name in each.outputs}
        found: Set[int] = set()
        seen: Set[str] = set()
        waiting = list(tensors)
        while waiting:
            tensor = waiting.pop()
            if tensor.name in seen:
                continue
            seen.add(tensor.name)
            if tensor.name in by_output:
                found.add(id(by_output[tensor.name]))
            else:
                waiting.extend(tensor.op.inputs)
        return [each for each in self.computed if id(each) in found]


def parts_of(gradient: Any) -> List[Any]:
    """The tensors that a gradient consists of: one, or three of IndexedSlices; none of None."""
    if gradient is None:
        return []
    if hasattr(gradient, "indices") and hasattr(gradient, "values"):
        return [gradient.values, gradient.indices]
    return [gradient] if hasattr(gradient, "op") else []


def operations_of(result: Any) -> List[Any]:
    """The operations that `apply_gradients` gave back, one or one for each copy."""
    if result is None:
        return []
    values = getattr(result, "values", None)
    if isinstance(values, tuple):
        return [op for value in values for op in operations_of(value)]
    return [getattr(result, "op", result)]


def depends(later: Any, earlier: List[Any]) -> bool:
    """Whether running the operation `later` runs one of `earlier` before it."""
    reached, _ = closure([later], {})
    return any(op in reached for op in earlier)
