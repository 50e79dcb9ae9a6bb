"""What the probes saw a program build in one graph, and what a run of it trains."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import collections
from typing import Any, Dict, List, Tuple


class Applied:
    """One `apply_gradients` of one stage: its op, what was passed to it, and its optimizer."""

    def __init__(
        self, op: Any, optimizer: Any, pairs: List[Any], gradients: Dict[str, Any], first_op: int
    ) -> None:
        self.op = op
        self.optimizer = optimizer
        self.pairs = pairs
        self.gradients = gradients
        self.first_op = first_op


class Graph:
    """What the probes saw in one TensorFlow graph."""

    def __init__(self) -> None:
        self.counter: Any = None
        self.inputs: Dict[Tuple[int, str], List[Any]] = {}
        self.losses: Dict[Tuple[int, int], Any] = {}
        self.tower_gradients: Dict[Tuple[int, int], Dict[str, Any]] = {}
        self.applied: Any = collections.OrderedDict()
        self.extras: Dict[int, Any] = {}
        self.plans: Dict[Any, Any] = {}
        self.initialized = False
        self.in_order = False


class Plan:
    """What a fetch set trains, and the tensors that may be fetched beside it.

    `drawn` are inputs of one that only looks, `sources` the names of the queues and iterators that inputs are drawn from.
    `only_looks`: it changes no variable.
    """

    def __init__(
        self,
        stages: List[int],
        fetches: Dict[str, Any],
        feedable: Dict[str, List[Any]],
        drawn: Dict[str, List[Any]],
        sources: List[str],
        only_looks: bool = False,
    ) -> None:
        self.only_looks = only_looks
        self.drawn = drawn
        self.sources = sources
        self.stages = stages
        self.fetches = fetches
        self.feedable = feedable
