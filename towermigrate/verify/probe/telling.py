"""Tell what a program turned out to be: its stages, its devices, and what it leaves to chance."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import re
from typing import Any, Dict, List, Set

from .seen import PROBE_SCOPE, SeenGraph

_DEVICE = re.compile(r"(GPU|CPU):(\d+)$", re.IGNORECASE)


def describe(graphs: Dict[Any, SeenGraph], meta: Dict[str, Any]) -> None:
    """Tell of the stages, the devices the towers were put on, what always trains together, and in which precisions."""
    stages: List[Dict[str, Any]] = []
    devices = set()
    floats: Set[str] = set()
    for graph, seen in graphs.items():
        plans = [plan for plan in seen.plans.values() if plan.stages]
        for number, update in seen.updates.items():
            mine = [plan for plan in plans if number in plan.stages]
            together = set.intersection(*(set(plan.stages) for plan in mine)) if mine else set()
            stages.append(
                {
                    "number": number,
                    "name": update.name,
                    "losses": len(update.losses()),
                    "trained": bool(mine),
                    "together": sorted(together),
                }
            )
            for average in range(len(seen.averages)):
                if mine and all((average, number) in plan.beside for plan in mine):
                    meta["averages"].setdefault(str(number), []).append(average)
        racing = {pair for plan in plans for pair in plan.racing}
        meta["writes"] += sorted(
            (name, first, second)
            for name, first, second in racing
            if all(
                (name, first) in plan.writes or (name, second) not in plan.writes
                for plan in seen.plans.values()
            )
        )
        beside = {pair for plan in plans for pair in plan.beside_writes}
        meta["reads"] += [
            seen.writes.named((name, use, place))  # type: ignore[union-attr]
            for name, use, place in sorted(beside)
            if all(
                (name, place) not in plan.writes or seen.writes.uses[name][use] in plan.uses  # type: ignore[union-attr]
                for plan in seen.plans.values()
            )
        ]
        if seen.updates:
            for op in graph.get_operations():
                if op.name.startswith(PROBE_SCOPE):
                    continue
                found = _DEVICE.search(op.device)
                if found:
                    devices.add(found.group(1).upper() + found.group(2))
                floats.update(t.dtype.base_dtype.name for t in op.outputs if t.dtype.is_floating)
    meta["stages"] = sorted(stages, key=lambda stage: stage["number"])
    meta["floats"] = sorted(floats)
    accelerators = sorted(device for device in devices if device.startswith("GPU"))
    meta["devices"] = accelerators or sorted(devices)
