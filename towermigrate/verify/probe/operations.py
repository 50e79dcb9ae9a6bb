"""Questions about the operations of a graph, and about an optimizer's slots."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import re
from typing import Any, Dict, List, Tuple

UPDATES = re.compile(r"^(Resource|Sparse|ResourceSparse)?(Apply|Scatter)|^Assign")


def is_plain(op: Any) -> bool:
    """Whether an op stands outside of tf.cond and tf.while_loop, so that it may be fetched."""
    return op._get_control_flow_context() is None


def is_stateful(op: Any) -> bool:
    """Whether an op may give another value each time it runs: a queue, an iterator, a random op."""
    definition = op.op_def
    return bool(definition is not None and definition.is_stateful)


def tensor_name(key: Any) -> str:
    """The name of a key of a `feed_dict`, which may be one."""
    return key if isinstance(key, str) else getattr(key, "name", "")


def names_of_slots(optimizer: Any) -> List[str]:
    """The names of an optimizer's slots; none for what is no TF1 optimizer."""
    try:
        return list(optimizer.get_slot_names())
    except (AttributeError, NotImplementedError):
        return []


def closure(ops: List[Any], cut: Dict[Any, bool]) -> Tuple[Any, Any]:
    """Every op that running `ops` runs, and the names of the fed tensors it stopped at."""
    reached = set()
    stopped = set()
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op in reached:
            continue
        reached.add(op)
        for tensor in op.inputs:
            if tensor.name in cut:
                stopped.add(tensor.name)
            else:
                waiting.append(tensor.op)
        waiting.extend(op.control_inputs)
    return reached, stopped
