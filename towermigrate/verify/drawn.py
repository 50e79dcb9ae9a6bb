"""Inputs that towers draw from queues and iterators: what can be held against the original's though their order is chance.

The rewritten towers train on recorded rows; what they would have drawn by themselves must have the same shapes and types,
lie in the same range, and be shared by the same towers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from towermigrate.verify.comparison import OF_A_LOOK, Difference, of_input
from towermigrate.verify.probe.recording import same
from towermigrate.verify.programs import Recorded
from towermigrate.verify.trace import Array, Trace

# Fewer numbers than these say nothing about the range that they come from.
_ENOUGH = 100
# So many values that two towers have alike are not by chance, even if they are labels of two classes.
_TOLD_APART = 30
# That all draws of several values are one value.
_BY_CHANCE = 1e-6
# Draws of the same data spread alike, up to this factor.
_SPREAD = 2.0

# By name: for each run that both have, the rows of each tower.
_Rows = dict[str, list[dict[int, Array]]]


def drawn_differences(recorded: Recorded, made: Trace) -> list[Difference]:
    """Where the rewritten towers draw something else than the original's by its kind."""
    agreed: Mapping[str, bool] = recorded.second.meta.get("inputs_agreed", {})
    theirs, ours = _rows(recorded, made, agreed)
    found = list(_looks_unlike(recorded, made))
    return found + [
        each for name in theirs for each in _unlike(recorded, name, theirs[name], ours[name])
    ]


def _looks_unlike(recorded: Recorded, made: Trace) -> Iterator[Difference]:
    """A run that trains nothing (a summary, an evaluation) and gets the rows of the training run before, or no more."""
    pairs = zip(recorded.first.meta.get("looks", ()), made.meta.get("looks", ()), strict=False)
    for (run, again), (own_run, own_again) in pairs:
        if run != own_run:
            return
        if again != own_again:
            said = ("other rows than the training run before it", "the rows of that training run")
            expected, actual = said[::-1] if again else said
            yield _difference(recorded, OF_A_LOOK[6:], None, run - 1, expected, actual)
            return


def _rows(recorded: Recorded, made: Trace, agreed: Mapping[str, bool]) -> tuple[_Rows, _Rows]:
    theirs: _Rows = {}
    ours: _Rows = {}
    by_index = {run.index: run for run in made.runs}
    for run in recorded.first.runs:
        if run.index not in by_index:
            break
        wanted, found = recorded.first.arrays(run), made.arrays(by_index[run.index])
        here: dict[str, tuple[dict[int, Array], dict[int, Array]]] = {}
        for key, rows in wanted.items():
            tower, _, name = key[len("input/") :].partition("/")
            if key.startswith("input/") and not agreed.get(key) and "own/" + key in found:
                pair = here.setdefault(name, ({}, {}))
                pair[0][int(tower)], pair[1][int(tower)] = rows, found["own/" + key]
        for name, (wanted_rows, found_rows) in here.items():
            theirs.setdefault(name, []).append(wanted_rows)
            ours.setdefault(name, []).append(found_rows)
    return theirs, ours


def _unlike(
    recorded: Recorded, name: str, theirs: list[dict[int, Array]], ours: list[dict[int, Array]]
) -> Iterator[Difference]:
    for step, (wanted, found) in enumerate(zip(theirs, ours, strict=True)):
        for tower, rows in wanted.items():
            said, own_said = (f"{a.dtype}{list(a.shape)}" for a in (rows, found[tower]))
            if said != own_said:
                yield _difference(recorded, name, tower, step, said, own_said)
                return
    for first, second in combinations(sorted(theirs[0]), 2):
        shared, own = (_shared(rows, first, second) for rows in (theirs, ours))
        if shared is not None and own is not None and shared != own:
            yield _difference(
                recorded,
                name,
                second,
                0,
                f"{'the same rows as' if shared else 'other rows than'} tower {first}",
                f"{'the same rows as' if own else 'other rows than'} tower {first}",
            )
            return
    wanted_all, found_all = (
        np.concatenate([a.ravel() for each in rows for a in each.values()])
        for rows in (theirs, ours)
    )
    said_otherwise = _constant(wanted_all, found_all) or _range(wanted_all, found_all)
    if said_otherwise is not None:
        yield _difference(recorded, name, None, 0, *said_otherwise)


def _shared(rows: list[dict[int, Array]], first: int, second: int) -> bool | None:
    """Whether two towers always get the same rows, or never; None where it is now so and now so, or may be chance."""
    if sum(each[first].size for each in rows if first in each) < _TOLD_APART:
        return None
    alike = {same(each[first], each[second]) for each in rows if {first, second} <= each.keys()}
    return alike.pop() if len(alike) == 1 else None


def _constant(wanted: Array, found: Array) -> tuple[str, str] | None:
    """One value throughout, which the original's data would not have by chance."""
    values, counts = np.unique(wanted, return_counts=True)
    if len(values) < 2 or not found.size or np.unique(found).size != 1:
        return None
    if (counts.max() / counts.sum()) ** found.size > _BY_CHANCE:
        return None
    return f"{len(values)} values", f"{found.ravel()[0]} throughout"


def _range(wanted: Array, found: Array) -> tuple[str, str] | None:
    """How the numbers spread, where that is not alike: quantiles, not extremes, which are chance."""
    if wanted.dtype.kind not in "fiu" or min(wanted.size, found.size) < _ENOUGH:
        return None
    low, middle, high = (
        float(q) for q in np.quantile(wanted.astype(np.float64), [0.05, 0.5, 0.95])
    )
    own = [float(q) for q in np.quantile(found.astype(np.float64), [0.05, 0.5, 0.95])]
    spread, own_spread = high - low, own[2] - own[0]
    if spread == 0 and own_spread == 0:
        alike = middle == own[1]
    else:
        alike = (
            spread <= _SPREAD * own_spread
            and own_spread <= _SPREAD * spread
            and abs(middle - own[1]) <= max(spread, own_spread)
        )
    if alike:
        return None
    return (
        f"numbers from {low:.4g} to {high:.4g}, half of them up to {middle:.4g}",
        f"numbers from {own[0]:.4g} to {own[2]:.4g}, half of them up to {own[1]:.4g}",
    )


def _difference(
    recorded: Recorded, name: str, tower: int | None, step: int, expected: str, actual: str
) -> Difference:
    key = f"input/{tower or 0}/{name}"
    return of_input(recorded.first, f"input {name}", key, expected, actual, step=step, tower=tower)
