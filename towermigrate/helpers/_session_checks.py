"""Are the copies of each variable written alike? Asked before a graph runs, and when it has grown."""

from __future__ import annotations

from collections import Counter
from typing import Any

from towermigrate.helpers._session_graphs import TowerGraph

_WRITES = (
    *("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "ResourceStrided"),
    *("ResourceCountUpTo", "ResourceAccumulator"),
)
_HANDS_ON = (
    "Enter",
    "RefEnter",
    "Switch",
    "RefSwitch",
    "Identity",
    "Merge",
    "NextIteration",
    "LoopCond",
)


def is_write(operation: Any) -> bool:
    """Whether an operation changes the variable that its first input is the handle of."""
    kind: str = operation.type
    return kind.startswith(_WRITES) and bool(len(operation.inputs))


def handle_behind(tensor: Any) -> Any:
    """The tensor that a handle was made as, seen through `tf.cond` and `tf.while_loop`."""
    while tensor.op.type in _HANDS_ON and len(tensor.op.inputs):
        tensor = tensor.op.inputs[0]
    return tensor


def written_handle(operation: Any) -> str:
    """The name of the operation that made the handle of the variable that an operation writes."""
    name: str = handle_behind(operation.inputs[0]).op.name
    return name


def check_writes(towers: TowerGraph) -> None:
    """Raise where one copy of a variable is written by other operations than the others.

    Only what was added to the graph since the last call is looked at.

    Raises:
      RuntimeError: names the variables and what writes each of their copies.
    """
    if towers.graph.version != towers.checked:
        with towers.lock:
            _check_writes(towers)


def _check_writes(towers: TowerGraph) -> None:
    version = towers.graph.version
    operations = towers.graph.get_operations()
    new = operations[towers.looked_at :]
    towers.looked_at = len(operations)
    touched = set()
    for operation in new:
        if is_write(operation) and operation.name not in towers.in_step:
            found = towers.variables.get(written_handle(operation))
            if found is not None:
                variable, index = found
                counts = towers.writes.setdefault(
                    variable.name, [Counter() for _ in variable.copies]
                )
                counts[index][operation.type] += 1
                touched.add(variable.name)
    towers.checked = version
    wrong = {name: towers.writes[name] for name in touched if _differ(towers.writes[name])}
    if wrong:
        towers.checked = towers.looked_at = 0  # so that the next run says so again
        towers.writes.clear()
        raise RuntimeError(
            "Session style: only some copies of a mirrored variable are written, so the towers would drift "
            "apart. "
            + "; ".join(
                f"{name}: "
                + ", ".join(f"copy {k}: {dict(each) or 'nothing'}" for k, each in enumerate(counts))
                for name, counts in wrong.items()
            )
            + ". Write it by assign, assign_add, scatter_* or an optimizer, not through its handle."
        )


def _differ(counts: list[Counter[str]]) -> bool:
    return any(each != counts[0] for each in counts)
