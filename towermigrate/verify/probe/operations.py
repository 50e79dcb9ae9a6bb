"""Questions about the operations of a graph, and about an optimizer's slots."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import re
from typing import Any, Dict, List, Tuple

UPDATES = re.compile(r"^(Resource|Sparse|ResourceSparse)?(Apply|Scatter)|^Assign")
# What takes a variable or a source of inputs, and leaves every variable as it is.
_LOOKS = re.compile(
    r"^(Identity|ReadVariableOp|VarIsInitializedOp|IsVariableInitialized|(Resource)?Gather(V2)?|(Ref)?Shape"
    r"|IteratorGetNext\w*|(Queue|Reader|TensorArray)\w+)$"
)


def is_plain(op: Any) -> bool:
    """Whether an op stands outside of tf.cond and tf.while_loop, so that it may be fetched."""
    return op._get_control_flow_context() is None


def is_eager(tf: Any) -> bool:
    """Whether operations run as they are made, which TensorFlow 1.3 does not know yet."""
    ask = getattr(tf, "executing_eagerly", None)
    return ask is not None and bool(ask())


def is_stateful(op: Any) -> bool:
    """Whether an op may give another value each time it runs: a queue, an iterator, a random op."""
    definition = op.op_def
    return bool(definition is not None and definition.is_stateful)


def only_looks(reached: Any) -> bool:
    """Whether running these operations surely leaves every variable as it is."""
    return all(
        _LOOKS.match(op.type)
        for op in reached
        if any(
            tensor.dtype._is_ref_dtype or tensor.dtype.name == "resource" for tensor in op.inputs
        )
    )


def tensor_name(key: Any) -> str:
    """The name of a key of a `feed_dict`, which may be one."""
    return key if isinstance(key, str) else getattr(key, "name", "")


def names_of_slots(optimizer: Any) -> List[str]:
    """The names of an optimizer's slots; none for what is no TF1 optimizer."""
    try:
        return list(optimizer.get_slot_names())
    except (AttributeError, NotImplementedError):
        return []


def beside_slots(optimizer: Any) -> List[Tuple[str, Any]]:
    """What an optimizer keeps beside its slots, by name: Adam's powers of beta, say."""
    kept = getattr(optimizer, "_non_slot_dict", None)
    if kept is None:  # TensorFlow 1.3
        powers = (("beta1_power", "_beta1_power"), ("beta2_power", "_beta2_power"))
        found = [(name, getattr(optimizer, attribute, None)) for name, attribute in powers]
        return [(name, value) for name, value in found if value is not None]
    return [(key[0], value) for key, value in kept.items()]


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
