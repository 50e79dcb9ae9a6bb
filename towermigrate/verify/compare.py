"""Compare two recordings level by level: structure, forward, gradient, update.

The tolerance is relative to the size of an array, and below that to the size of its peers: two values are
equal when they differ by at most `tolerance * max(largest of the array, 0.1 * largest of its peers)`, peers
being the arrays of the same kind and stage. An absolute limit would pass small gradients that are twice
what they should be; a purely relative one fails on sums whose terms cancel (the bias of a discriminator's
score: 4.5e-8 apart in two runs of one TF 1.15 program, at 7e-4). What the original itself does not
determine is held to the spread of its own two runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from towermigrate.verify.trace import Array, Arrays, Run, Trace

Level = Literal["structure", "forward", "gradient", "update", "trajectory"]
QUANTITIES = ("loss", "gradient", "variable", "slot")
_PEERS = 0.1


@dataclass(frozen=True)
class Difference:
    """One place where the rewritten program is not the original.

    `step` counts updates of that stage from 0; `error` is in units that the tolerance is in.
    """

    step: int
    stage: int | None
    level: Level
    name: str
    replica: int | None
    expected: float | str | None
    actual: float | str | None
    error: float
    key: str
    run: int

    def sort_key(self) -> tuple[int, int, float]:
        order = ("structure", "forward", "gradient", "update", "trajectory").index(self.level)
        return (self.run, order, -self.error)


@dataclass
class Comparison:
    """What came out of comparing two recordings."""

    steps: int = 0
    max_abs: dict[str, float | None] = field(default_factory=lambda: dict.fromkeys(QUANTITIES))
    max_error: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    compared: int = 0

    def first(self) -> Difference | None:
        return min(self.differences, key=Difference.sort_key, default=None)


def compare(
    expected: Trace,
    actual: Trace,
    stages: tuple[str, ...],
    tolerance: float,
    alternative: Trace | None = None,
    free: frozenset[str] = frozenset(),
) -> Comparison:
    """Compare every training run of `actual` with that of `expected`.

    Args:
        alternative: another run of the same original; for keys in `free`, which the original does not
            determine, its value is as good as that of `expected`.
    """
    result = Comparison()
    updates = dict.fromkeys(range(len(stages)), 0)
    made = {run.index: run for run in actual.runs}
    other = {run.index: run for run in alternative.runs} if alternative else {}
    seen: set[str] = set()
    start = expected.initial()
    _structure(expected, actual, result)
    for run in expected.runs:
        steps = {stage: updates[stage] for stage in run.stages}
        for stage in run.stages:
            updates[stage] += 1
        if run.index not in made:
            _add(
                result,
                Difference(
                    step=steps[run.stages[0]],
                    stage=run.stages[0],
                    level="structure",
                    name="training run",
                    replica=None,
                    expected=f"training run {run.index} updates {stages[run.stages[0]]}",
                    actual=f"the program ended after {len(made)} training runs",
                    error=float("inf"),
                    key="",
                    run=run.index,
                ),
            )
            break
        theirs = alternative.arrays(other[run.index]) if alternative and run.index in other else {}
        pairs = _Pairs(
            run, steps, expected.arrays(run), actual.arrays(made[run.index]), theirs, start
        )
        _compare_run(pairs, result, tolerance, free, seen)
        if result.differences and result.differences[-1].level == "structure":
            break
    if actual.meta.get("extra_runs") and expected.meta["ended"] == "program":
        _add(
            result,
            Difference(
                step=updates[0],
                stage=None,
                level="structure",
                name="training runs",
                replica=None,
                expected=f"{len(expected.runs)} training runs, then the end",
                actual="more training runs",
                error=float("inf"),
                key="",
                run=len(expected.runs),
            ),
        )
    _list_not_compared(expected, stages, updates, seen, result)
    counts = [count for count in updates.values() if count]
    result.steps = min(counts) if counts else 0
    return result


@dataclass(frozen=True)
class _Pairs:
    run: Run
    steps: dict[int, int]
    expected: Arrays
    actual: Arrays
    alternative: Arrays
    start: Arrays


def _compare_run(
    pairs: _Pairs, result: Comparison, tolerance: float, free: frozenset[str], seen: set[str]
) -> None:
    peers: dict[str, float] = {}
    for key, array in pairs.expected.items():
        group = _group(key)
        peers[group] = max(peers.get(group, 0.0), _largest(array))
    for key, wanted in pairs.expected.items():
        if _quantity(key) is None:
            continue
        found = pairs.actual.get(key)
        stage, name, replica = _describe(key)
        if stage is None or stage not in pairs.steps:
            stage = pairs.run.stages[0]
        if found is None:
            missing = _missing(pairs, key, wanted, stage)
            if missing is not None:
                result.max_error = float("inf")
                result.differences.append(missing)
            continue
        seen.add(key)
        result.compared += 1
        difference = _difference(wanted, found)
        spread = 0.0
        if key in free and key in pairs.alternative:
            difference = min(difference, _difference(pairs.alternative[key], found))
            spread = _difference(wanted, pairs.alternative[key])
        quantity = _quantity(key) or "variable"
        before = result.max_abs[quantity]
        result.max_abs[quantity] = difference if before is None else max(before, difference)
        scale = max(_largest(wanted), _PEERS * peers[_group(key)])
        error = 0.0 if difference == 0 else difference / scale if scale > 0 else float("inf")
        if error <= tolerance:
            result.max_error = max(result.max_error, error)
        if error > tolerance and not difference <= 2 * spread < float("inf"):
            result.max_error = max(result.max_error, error)
            shown = _worst(wanted, found)
            result.differences.append(
                Difference(
                    step=pairs.steps[stage],
                    stage=stage,
                    level=_level(key),
                    name=name,
                    replica=replica,
                    expected=shown[0],
                    actual=shown[1],
                    error=error,
                    key=key,
                    run=pairs.run.index,
                )
            )
    for key, found in pairs.actual.items():
        stage, name, replica = _describe(key)
        if key.startswith("gradient/") and key not in pairs.expected:
            result.max_error = float("inf")
            result.differences.append(
                Difference(
                    step=pairs.steps.get(stage or 0, 0),
                    stage=stage if stage is not None and stage < 1000 else pairs.run.stages[-1],
                    level="gradient",
                    name=name,
                    replica=None,
                    expected=None,
                    actual=_largest(found),
                    error=float("inf"),
                    key=key,
                    run=pairs.run.index,
                )
            )


def _missing(pairs: _Pairs, key: str, wanted: Array, stage: int) -> Difference | None:
    """What the rewritten program did not record: a gradient or a loss it lacks is a difference."""
    _, name, replica = _describe(key)
    if key.startswith("state/"):
        # A variable that no step of the rewritten program has reached yet must not have moved.
        before = pairs.start.get(key[len("state/") :])
        if before is not None and np.array_equal(before, wanted):
            return None
        if before is None or not _trained(pairs, key):
            return None
    return Difference(
        step=pairs.steps[stage],
        stage=stage,
        level=_level(key),
        name=name,
        replica=replica,
        expected=_largest(wanted),
        actual=None,
        error=float("inf"),
        key=key,
        run=pairs.run.index,
    )


def _trained(pairs: _Pairs, key: str) -> bool:
    name = key.rpartition("state/variable/")[2]
    return any(
        other.startswith("gradient/") and other.endswith("/" + name) for other in pairs.expected
    )


def _structure(expected: Trace, actual: Trace, result: Comparison) -> None:
    ours = actual.variables()
    for key, wanted in expected.variables().items():
        found = ours.get(key)
        if found is None:
            if wanted["trainable"]:
                _structural(result, key, "a trainable variable", "no such variable")
            continue
        for what in ("shape", "dtype", "trainable"):
            if wanted[what] != found[what] and not (
                what == "trainable" and key.startswith("slot/")
            ):
                _structural(result, key, f"{what} {wanted[what]}", f"{what} {found[what]}")
    theirs = expected.variables()
    for key, found in ours.items():
        if key not in theirs and found["trainable"]:
            _structural(result, key, "no such variable", "a trainable variable")


def _structural(result: Comparison, key: str, expected: str, actual: str) -> None:
    _add(
        result,
        Difference(
            step=0,
            stage=None,
            level="structure",
            name=key.partition("/")[2],
            replica=None,
            expected=expected,
            actual=actual,
            error=float("inf"),
            key="state/" + key,
            run=0,
        ),
    )


def _add(result: Comparison, difference: Difference) -> None:
    result.max_error = float("inf")
    result.differences.append(difference)


def _list_not_compared(
    expected: Trace,
    stages: tuple[str, ...],
    updates: dict[int, int],
    seen: set[str],
    result: Comparison,
) -> None:
    for stage, name in enumerate(stages):
        if updates[stage] == 0:
            result.not_compared.append(f"stage {name}: no training run of the original updated it")
            continue
        for kind, level in (("loss", "forward"), ("gradient", "gradient")):
            if not any(key.startswith(f"{kind}/{stage}/") for key in seen):
                result.not_compared.append(f"stage {name}: level {level} was not recorded")
    if not any(key.startswith("state/") for key in seen):
        result.not_compared.append("level update: no variable was recorded")
    for key, described in expected.variables().items():
        if "state/" + key not in seen and described["trainable"]:
            result.not_compared.append(f"variable {key.partition('/')[2]}")


def disagreement(first: Trace, second: Trace, tolerance: float) -> frozenset[str]:
    """Keys whose values two runs of the same original do not agree on beyond the tolerance."""
    keys = set()
    others = {run.index: run for run in second.runs}
    for run in first.runs:
        if run.index not in others:
            continue
        again = second.arrays(others[run.index])
        arrays = first.arrays(run)
        peers: dict[str, float] = {}
        for key, array in arrays.items():
            peers[_group(key)] = max(peers.get(_group(key), 0.0), _largest(array))
        for key, array in arrays.items():
            if key not in again or key.startswith("input/"):
                continue
            scale = max(_largest(array), _PEERS * peers[_group(key)])
            if _difference(array, again[key]) > tolerance * scale:
                keys.add(key)
    return frozenset(keys)


def _quantity(key: str) -> str | None:
    if key.startswith("state/variable/"):
        return "variable"
    if key.startswith("state/slot/"):
        return "slot"
    kind = key.partition("/")[0]
    return kind if kind in ("loss", "gradient") else None


def _group(key: str) -> str:
    parts = key.split("/")
    if key.startswith("state/slot/"):
        return "/".join(parts[:4])
    return "/".join(parts[:2])


def _level(key: str) -> Level:
    if key.startswith("state/"):
        return "update"
    return "forward" if key.startswith("loss/") else "gradient"


def _describe(key: str) -> tuple[int | None, str, int | None]:
    """(stage, name, replica) of a key."""
    parts = key.split("/")
    if parts[0] == "loss":
        return int(parts[1]), "loss", int(parts[2])
    if parts[0] in ("gradient", "tower_gradient"):
        return int(parts[1]), "/".join(parts[2:]), None
    if key.startswith("state/slot/"):
        return int(parts[2]), "/".join(parts[3:]), None
    return None, "/".join(parts[2:]), None


def _largest(array: Array) -> float:
    if array.size == 0 or array.dtype.kind not in "fiub":
        return 0.0
    values = np.abs(array.astype(np.float64))
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def _difference(expected: Array, actual: Array) -> float:
    if expected.shape != actual.shape:
        return float("inf")
    if expected.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(expected, actual) else float("inf")
    first, second = expected.astype(np.float64), actual.astype(np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    if same.all():
        return 0.0
    apart = np.abs(first - second)[~same]
    return float("inf") if not np.isfinite(apart).all() else float(apart.max())


def _worst(expected: Array, actual: Array) -> tuple[float | str, float | str]:
    if expected.shape != actual.shape:
        return f"shape {list(expected.shape)}", f"shape {list(actual.shape)}"
    if expected.dtype.kind not in "fiub":
        return "another value", "another value"
    first, second = expected.astype(np.float64).ravel(), actual.astype(np.float64).ravel()
    apart = np.abs(first - second)
    at = int(np.argmax(np.where(np.isfinite(apart), apart, np.inf)))
    return float(first[at]), float(second[at])
