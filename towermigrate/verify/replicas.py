"""Which replica a difference comes from, where the recordings have each tower's own gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from towermigrate.verify.comparison import Difference
from towermigrate.verify.limits import largest
from towermigrate.verify.trace import Trace


def with_replica(first: Difference, expected: Trace, actual: Trace, tolerance: float) -> Difference:
    """The difference with the replica whose own gradient differs, where others do not."""
    if first.level != "gradient" or first.replica is not None or not first.key:
        return first
    arrays = [
        next((trace.arrays(run) for run in trace.runs if run.index == first.run), {})
        for trace in (expected, actual)
    ]
    parts = first.key.split("/", 2)
    prefix, name = f"tower_gradient/{parts[1]}/", parts[2]
    towers = sorted(
        int(key.split("/")[2])
        for key in arrays[0]
        if key.startswith(prefix) and key.split("/", 3)[3] == name and key in arrays[1]
    )
    off = []
    for tower in towers:
        wanted, found = (each[f"{prefix}{tower}/{name}"].astype(np.float64) for each in arrays)
        if wanted.shape != found.shape:
            return first
        if float(np.abs(wanted - found).max(initial=0.0)) > tolerance * largest(wanted):
            off.append(tower)
    return replace(first, replica=off[0]) if off and len(off) < len(towers) else first
