"""What the replay reads of the rewritten program's graphs, variables and arguments."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from towermigrate.verify.probe.recording import same

_REPLICA = re.compile(r"/replica_\d+(?=$|:)")


def own_inputs(
    recorded: dict[str, Any], given: list[Any], workers: tuple[int, int] = (0, 1)
) -> dict[str, Any]:
    """What a step is given for each input that the original recorded, by what it is like: its value, else its shape.

    Args:
        recorded: arrays by key.
        given: the step's arguments, values for each replica among them.
        workers: the number of this worker, and how many there are; of several each is given its rows.
    """
    candidates: list[Any] = []
    for value in given:
        parts = [
            np.asarray(each) for each in getattr(value, "values", (value,)) if each is not None
        ]
        if not parts or any(part.dtype.kind == "O" for part in parts):
            continue
        # Replicas may have rows of several lengths (buckets), which are no rows of one array.
        if all(part.ndim for part in parts) and len({part.shape[1:] for part in parts}) == 1:
            candidates.append(np.concatenate(parts))
        candidates += parts
    found: dict[str, Any] = {}
    worker, count = workers
    for key, array in recorded.items():
        whole, part = f"own/{key}", array
        if count > 1 and array.ndim and len(array) % count == 0:
            rows = len(array) // count
            part = array[worker * rows : (worker + 1) * rows]
        for name, wanted in ((whole, array), (f"own_part/{worker}/{key}", part)):
            like = [each for each in candidates if each.shape == wanted.shape]
            if like:
                # A placeholder makes its own type of what it is fed.
                fed = any(same(each, wanted.astype(each.dtype)) for each in like)
                found[name] = wanted if fed else like[0]
                break
    return found


def stage_at(stages: list[int], number: str) -> int:
    """The original's stage for the n-th update of a run; beyond the original's, numbers that it has not."""
    return stages[int(number)] if int(number) < len(stages) else 1000 + int(number)


def operations_of(graph: Any) -> set[str]:
    """The kinds of operations in a graph and in the functions that it calls."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    return {node.op for node in nodes}


def floats_of(graph: Any) -> list[str]:
    """The floating-point types that a graph and the functions it calls compute with."""
    import tensorflow as tf

    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    types = {attribute.type for node in nodes for attribute in node.attr.values()}
    found = {tf.dtypes.as_dtype(each) for each in types if each}
    return sorted(each.base_dtype.name for each in found if each.is_floating)


def plain_name(variable: Any) -> str:
    """A variable's TF1 name: no replica, no output number."""
    return _REPLICA.sub("", str(variable.name)).partition(":")[0]


def whole(variable: Any) -> Any:
    """The distributed variable that `variable` is a replica's part of, else itself."""
    # Of one that was made eagerly the handle knows it (TF 2.21, `distribute/values.py`).
    for part in (variable, getattr(variable, "handle", None)):
        container = getattr(part, "_distributed_container", None)
        found = container() if container is not None else None
        if found is not None:
            return found
    return variable


def live_variables() -> Iterator[Any]:
    """Every variable that the process holds and that has a name."""
    kinds: dict[type, bool] = {}
    for each in gc.get_objects():
        kind = type(each)
        if kind not in kinds:
            kinds[kind] = any(
                base.__name__ in ("BaseResourceVariable", "DistributedVariable")
                and base.__module__.startswith("tensorflow.")
                for base in kind.__mro__
            )
        if kinds[kind]:
            try:
                plain_name(whole(each))
            except Exception:  # one whose making failed
                continue
            yield each


def is_mirrored(container: Any) -> bool:
    """Whether all replicas hold the same value, so that the first one's is the variable's."""
    if not hasattr(container, "values"):
        return True
    return "OnRead" not in type(container).__name__ and "Statistic" not in type(container).__name__


def value_of(container: Any) -> Any:
    """A variable's value: that of the first replica, or what the replicas' parts make together."""
    if is_mirrored(container):
        return copies_of(container)[0]
    return container.read_value().numpy()


def copies_of(container: Any) -> list[Any]:
    """The value of each replica's copy of a variable, read-only: as long as one is held, TensorFlow gives the variable other
    memory where it is updated."""
    return [_held(part.read_value()) for part in getattr(container, "values", (container,))]


def _held(tensor: Any) -> Any:
    """A tensor's numbers where they are, if NumPy knows their type; else a copy of them."""
    try:
        held = np.asarray(memoryview(tensor))
    except (TypeError, ValueError, BufferError):  # bfloat16, say
        return np.array(tensor)
    return np.array(tensor) if held.dtype.kind == "O" else held


class Roundings:
    """How far apart a variable's copies may be that XLA updates for each replica by itself, in clusters of its own: it may
    join a product and a sum in one and not in the other, and each training run rounds a few times. What a run rounds stays
    when the number becomes small."""

    def __init__(self) -> None:
        self._sizes: dict[str, float] = {}
        self._grown: dict[str, float] = {}

    def of(self, key: str, value: Any, runs: int) -> float:
        """The most that the variable's copies may be apart now; called once after each training run.

        Args:
            value: the first copy.
            runs: the training runs so far.
        """
        if value.dtype.kind != "f" or not value.size:
            return 0.0
        size = float(np.max(np.abs(value)))
        rounds = 4 * float(np.finfo(value.dtype).eps)
        grown = self._grown.get(key, 0.0) + rounds * max(size, self._sizes.get(key, 0.0))
        self._sizes[key], self._grown[key] = size, grown
        return max(grown, rounds * runs * size)


def alike(first: Any, other: Any, within: float) -> bool:
    """Whether a replica's copy of a variable is the first one's; `within` 0 wants the same bits."""
    if same(first, other):
        return True
    if not within or first.dtype.kind != "f" or first.shape != other.shape:
        return False
    return float(np.max(np.abs(first.astype(np.float64) - other.astype(np.float64)))) <= within
