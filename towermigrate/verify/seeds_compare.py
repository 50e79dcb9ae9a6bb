"""Compare the seeds that programs give by themselves: what random numbers start from is recorded and replayed.

So another seed shows in no number. Seeds that TensorFlow counts up are not looked at: they are others in each style.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from towermigrate.verify.comparison import Difference
from towermigrate.verify.programs import Recorded
from towermigrate.verify.trace import Trace


def seed_differences(recorded: Recorded, made: Trace) -> list[Difference]:
    """Seeds that the original gives each time it runs, and the rewritten program does not."""
    first, again, ours = (
        trace.meta.get("seeds") for trace in (recorded.first, recorded.second, made)
    )
    if not first or not again or not ours or not recorded.first.runs:
        return []
    run = recorded.first.runs[0]
    return [
        Difference(
            step=0,
            stage=None,
            level="initial",
            name=name,
            replica=None,
            expected=expected,
            actual=actual,
            error=float("inf"),
            key=f"seed/{name}",
            run=run.index,
        )
        for name, expected, actual in _unlike(first, again, ours)
    ]


def seeds_left_out(recorded: Recorded, made: Trace) -> list[str]:
    """Seeds that come by Keras, which hands them on in another way in each version, where they were not seen again."""
    first, again, ours = (
        trace.meta.get("seeds") for trace in (recorded.first, recorded.second, made)
    )
    if not first or not again or not ours:
        return []
    known = {*ours["operations"], *ours["layers"], *ours["variables"].values()}
    missing = sorted((set(first["layers"]) & set(again["layers"])) - known)
    if not missing:
        return []
    return [
        f"seeds of Keras: {_said(missing)} of the original's is not known to be the rewritten program's, as "
        "Keras hands seeds on in another way in each version"
    ]


def _unlike(
    first: Mapping[str, Any], again: Mapping[str, Any], ours: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    if set(first["graph"]) == set(again["graph"]) != set(ours["graph"]):
        yield "seed of the graph", _said(first["graph"]), _said(ours["graph"])
    for name, seed in first["variables"].items():
        if name in ours["variables"] and again["variables"].get(name, -1) == seed:
            own = ours["variables"][name]
            if own != seed:
                yield f"seed of the initial value of {name}", _said([seed]), _said([own])
    given = set(first["operations"]) & set(again["operations"])
    # A layer gives its seed in another way in each version.
    known = {*ours["operations"], *ours["layers"], *ours["variables"].values()}
    if not ours["computed"] and given - known:
        own = sorted(set(ours["operations"]) - set(first["operations"]))
        yield "seeds of random operations", _said(sorted(given - known)), _said(own)


def _said(seeds: list[int | None]) -> str:
    told = [str(seed) for seed in seeds if seed is not None]
    return f"seed {', '.join(told)}" if told else "no seed"
