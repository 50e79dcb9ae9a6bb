"""What a run takes from outside of its graph: what is fed, and what queues, iterators and Python functions give.

Recorded from the original by fetching these tensors in the run itself, and given to the rewritten program by
feeding them. So the inputs of all towers are the same, whichever tower got which batch.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import re
from typing import Any, Dict, List

import numpy as np

from .operations import closure, is_plain
from .recording import same

_TAKES = re.compile(
    r"Dequeue|TakeMany|Unstage|^ReaderRead|^IteratorGetNext|^RecordInput|^PyFunc|^EagerPyFunc"
)
_CHANCE = re.compile(
    r"^(Random|Truncated|Parameterized|Multinomial|StatefulRandom|StatefulStandard|StatefulUniform"
    r"|StatefulTruncated)|CandidateSampler$"
)
POOL = re.compile(r"(Queue|Barrier|Stage|Reader)(V2)?$|Iterator(V2)?$")
_VARIABLES = re.compile(r"^(Variable|VariableV2|VarHandleOp|ReadVariableOp)$")


def flatten(graph: Any, feed_dict: Any) -> Dict[Any, Any]:
    """A `feed_dict` as plain tensors and their values: no names, no sparse tensors, no nested keys."""
    from tensorflow.python.client import session as session_module
    from tensorflow.python.util import nest

    feeds: Dict[Any, Any] = {}
    for key, value in nest.flatten_dict_items(feed_dict or {}).items():
        for kind, _, expand, _ in session_module._REGISTERED_EXPANSIONS:
            if isinstance(key, kind):
                for part, one in expand(key, value):
                    tensor = graph.as_graph_element(part, allow_tensor=True, allow_operation=False)
                    feeds[tensor] = one
                break
    return feeds


class Sources:
    """The operations of one graph that bring something in, each with a name that both programs share.

    `groups` has, by key, what operations of one kind have in common that take from one queue or iterator: which
    of them gets what is chance.
    """

    def __init__(self, graph: Any) -> None:
        self._names: Dict[Any, str] = {}
        self._of_model: Dict[Any, bool] = {}
        self.groups: Dict[str, str] = {}
        counts: Dict[str, int] = {}
        for op in graph.get_operations():
            if _TAKES.search(op.type) or _CHANCE.search(op.type):
                number = counts.get(op.type, 0)
                counts[op.type] = number + 1
                self._names[op] = "%s.%d" % (op.type, number)

    def taken(self, reached: Any) -> List[str]:
        """The names of what an execution of `reached` draws from queues, iterators and Python functions."""
        return sorted(
            name
            for op, name in self._names.items()
            if op in reached
            and is_plain(op)
            and not _CHANCE.search(op.type)
            and not self._is_of_model(op)
        )

    def _is_of_model(self, op: Any) -> bool:
        """Whether it is made of a variable: a Python function of the weights, say, is no input."""
        if op not in self._of_model:
            behind = closure([op], {})[0]
            self._of_model[op] = any(_VARIABLES.match(o.type) for o in behind)
        return self._of_model[op]

    def tensors(self, reached: Any, *, chance: bool) -> Dict[str, Any]:
        """What the sources among `reached` give, by key; with `chance` those of random operations only."""
        found: Dict[str, Any] = {}
        for op, name in self._names.items():
            if op not in reached or not is_plain(op) or bool(_CHANCE.search(op.type)) != chance:
                continue
            if not chance and self._is_of_model(op):
                continue
            behind = closure([op], {})[0]
            pools = sorted(o.name for o in behind if POOL.search(o.type))
            for number, tensor in enumerate(op.outputs):
                if tensor.dtype.base_dtype.name not in ("resource", "variant"):
                    key = "input/%s/%d" % (name, number)
                    found[key] = tensor
                    if pools:
                        self.groups[key] = "input/%s of %s/%d" % (op.type, "+".join(pools), number)
        return found


def in_any_order(
    own: Dict[str, Any], given: Dict[str, Any], groups: Dict[str, str]
) -> Dict[str, bool]:
    """Whether what the members of each group gave in a run is the same, whichever of them (which tower) got it."""
    members: Dict[str, List[str]] = {}
    for key in sorted(given):
        if key in groups:
            members.setdefault(groups[key], []).append(key)
    found = {}
    for group, keys in members.items():
        if len(keys) > 1:
            left = [own[key] for key in keys if key in own]
            for key in keys:
                at = next((n for n, value in enumerate(left) if same(value, given[key])), None)
                if at is not None:
                    del left[at]
            found[group] = not left and all(key in own for key in keys)
    return found


def packed(value: Any) -> Any:
    """An input as an array that can be written: bytes get an end mark, since NumPy drops trailing zeros."""
    array = np.asarray(value)
    if array.dtype.kind not in "OSU":
        return array
    if not isinstance(value, np.ndarray):
        array = np.asarray(value, dtype=object)
    flat = [_bytes(item) + b"." for item in array.ravel().tolist()]
    return np.array(flat, dtype=np.bytes_).reshape(array.shape)


def unpacked(array: Any) -> Any:
    """The other way."""
    if array.dtype.kind != "S":
        return array
    flat: List[Any] = [item[:-1] for item in array.ravel().tolist()]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(array.shape)


def _bytes(item: Any) -> bytes:
    return item if isinstance(item, bytes) else str(item).encode("utf-8")
