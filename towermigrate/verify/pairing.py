"""Which label goes with which row, and what all rows have in common, of inputs that come in an order of chance.

The rewritten towers train on recorded rows, and those that they would have drawn by themselves are others. But a row that
comes in both programs has its label in both, and what is so in every row of the original (a deviation of 1, a sum of 1)
is made so by its pipeline. The original's two runs tell whether there are such rows; where not, that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from towermigrate.verify.comparison import Difference, of_input
from towermigrate.verify.probe.recording import read_arrays
from towermigrate.verify.programs import Recorded
from towermigrate.verify.trace import Array, Trace

# A row of fewer numbers is no key to another input: labels of two classes come again with every batch.
_KEY = 4
# Longer rows are told apart by so many sums with random weights.
_SIGNATURE = 8
# How close signatures of the same row are, in parts of the largest: TensorFlow 1 and 2 round otherwise.
_SAME = 1e-4
# So many rows of each program are looked at.
_MOST_ROWS = 2000
# So many rows that the original's two runs have in common show that a row has one label only.
_SHOWN = 4
# With so many rows, what all of them have in common is no chance.
_ENOUGH = 16
_CONSTANT = 1e-3
# Such a part of the rows must have come in an earlier run for it to be clear that there are no others.
_AGAIN = 0.4


@dataclass
class _Rows:
    """All rows of one program that were drawn together: by input the signatures, and the figures of each row.

    `runs` has the number of the training run that each was drawn for.
    """

    signatures: dict[str, Array]
    figures: dict[str, Array]
    sizes: dict[str, int]
    runs: Array


def pairing(recorded: Recorded, made: Trace) -> tuple[list[Difference], list[str]]:
    """Where rows and labels belong together otherwise than in the original, and what could not be held against it."""
    agreed = recorded.second.meta.get("inputs_agreed", {})
    groups = _groups(recorded, agreed)
    found: list[Difference] = []
    left: list[str] = []
    for group, names in groups:
        theirs = _rows(_drawn(recorded.first, "", recorded.first), names)
        again = _rows(_drawn(recorded.second, "own/", recorded.first), names)
        ours = _rows(_drawn(made, "own/", recorded.first), names)
        found += _figures_unlike(recorded, names, theirs, again, ours)
        keys = [name for name in names if theirs.sizes.get(name, 0) >= _KEY]
        for key in keys:
            if _are_others(key, theirs, again, ours):
                whole = "rows of the data that both its runs go through"
                found.append(_difference(recorded, key, whole, "rows that are none of these"))
        labels = [name for name in names if len(names) > 1]
        shown: set[str] = set()
        for key in keys:
            for other in names:
                if other == key:
                    continue
                said = _paired(key, other, theirs, again, ours)
                if said is None:
                    continue
                shown |= {key, other}
                if said:
                    found.append(_difference(recorded, other, f"the one of its row of {key}", said))
        left += [
            f"{_named(group, name)}: which row of it goes with which row of {_others(group, names, name)}: no row came again "
            "in which that shows"
            for name in labels
            if name not in shown and (name in keys or not keys)
        ]
    return found, left


def _others(group: str, names: list[str], name: str) -> str:
    return ", ".join(_named(group, each) for each in names if each != name)


def _named(group: str, name: str) -> str:
    """How an input is told: by its own name, or as an output of what draws it."""
    drawn_by = group.partition("/")[2]
    return f"input {name}" if drawn_by.isdigit() else f"input of {drawn_by}, output {name}"


def _groups(recorded: Recorded, agreed: dict[str, bool]) -> list[tuple[str, list[str]]]:
    """The inputs that are drawn together by chance, and the first that draws them: a tower, or one iterator."""
    found: dict[str, dict[str, None]] = {}
    shared = set(recorded.second.meta.get("shared_inputs", ()))
    for run in recorded.first.runs[:1]:
        for key in recorded.first.arrays(run):
            if (
                key.startswith("input/")
                and not key.startswith("input/feed/")
                and key not in shared
                and not agreed.get(key)
            ):
                group, _, name = key.rpartition("/")
                found.setdefault(group, {})[name] = None
    groups: dict[tuple[str, ...], str] = {}
    for group, members in found.items():
        groups.setdefault(tuple(members), group)
    return [(group, list(names)) for names, group in groups.items()]


def _drawn(trace: Trace, prefix: str, first: Trace) -> Iterator[dict[str, dict[str, Array]]]:
    """Run by run, what a program drew by itself: by group and input."""
    known = {run.index for run in trace.runs}
    for run in first.runs:
        arrays = read_arrays(str(trace.folder), f"own_{run.index:05d}")
        if run.index in known:
            arrays = {**trace.arrays(run), **arrays}
        here: dict[str, dict[str, Array]] = {}
        for key, array in arrays.items():
            if key.startswith(prefix + "input/"):
                group, _, name = key[len(prefix) :].rpartition("/")
                here.setdefault(group, {})[name] = array
        yield here


def _rows(drawn: Iterable[dict[str, dict[str, Array]]], names: list[str]) -> _Rows:
    signatures: dict[str, list[Array]] = {name: [] for name in names}
    figures: dict[str, list[Array]] = {name: [] for name in names}
    sizes: dict[str, int] = {}
    runs: list[int] = []
    for number, run in enumerate(drawn):
        for group in run.values():
            arrays = [group[name] for name in names if name in group]
            whole = len(arrays) == len(names) and all(
                # An empty one only marks that the towers of a queue got other rows.
                each.size
                and each.ndim
                and len(each) == len(arrays[0])
                and each.dtype.kind in "fiub"
                for each in arrays
            )
            if not whole or len(runs) >= _MOST_ROWS:
                continue
            runs += [number] * len(arrays[0])
            for name, array in zip(names, arrays, strict=True):
                flat = array.reshape(len(array), -1).astype(np.float64)
                sizes[name] = flat.shape[1]
                signatures[name].append(_signature(flat))
                figures[name].append(_figures(flat))
    return _Rows(
        {name: np.concatenate(each) for name, each in signatures.items() if each},
        {name: np.concatenate(each) for name, each in figures.items() if each},
        sizes,
        np.array(runs),
    )


def _signature(flat: Array) -> Array:
    """A few numbers for each row, the same for the same rows and for no others."""
    padded = np.zeros((len(flat), _SIGNATURE))
    if flat.shape[1] <= _SIGNATURE:
        padded[:, : flat.shape[1]] = flat
        return padded
    weights = np.random.RandomState(flat.shape[1] % 2**31).normal(size=(flat.shape[1], _SIGNATURE))
    made: Array = np.nan_to_num(flat) @ weights / np.sqrt(flat.shape[1])
    return made


_FIGURES = ("mean", "standard deviation", "smallest number", "largest number")


def _figures(flat: Array) -> Array:
    if not flat.shape[1]:
        return np.zeros((len(flat), len(_FIGURES)))
    return np.stack([flat.mean(1), flat.std(1), flat.min(1), flat.max(1)], 1)


def _paired(key: str, other: str, theirs: _Rows, again: _Rows, ours: _Rows) -> str | None:
    """What is paired otherwise, nothing (`""`) where all is alike, None where that cannot be told."""
    if key not in theirs.signatures or key not in again.signatures or key not in ours.signatures:
        return None
    alike, unlike = _held(theirs, again, key, other)
    if alike < _SHOWN or unlike:
        return None
    kept, lost = _held(theirs, ours, key, other)
    more_kept, more_lost = _held(again, ours, key, other)
    kept, lost = kept + more_kept, lost + more_lost
    if kept + lost < _SHOWN:
        return None
    if lost >= 2 and lost > 0.3 * (kept + lost):
        return f"another in {lost} of {kept + lost} rows that both programs have"
    return ""


def _are_others(key: str, theirs: _Rows, again: _Rows, ours: _Rows) -> bool:
    """Whether hardly a row is one of the original's, though it goes through all of its data more than once.

    Where it has not seen all of them, another file may have come first.
    """
    sides = [side.signatures.get(key) for side in (theirs, again, ours)]
    first, second, own = sides
    if first is None or second is None or own is None or len(own) < _ENOUGH:
        return False
    # Towers of one run may share their rows.
    came = [
        bool((theirs.runs < run).any()) and _among(row, first[theirs.runs < run])
        for row, run in zip(first, theirs.runs, strict=True)
    ]
    if np.mean(came) < _AGAIN or _share(second, first) < 0.95:
        return False
    return _share(own, np.concatenate([first, second])) < 0.1


def _share(rows: Array, known: Array) -> float:
    """The part of rows that are among the known ones."""
    return float(np.mean([_among(row, known) for row in rows]))


def _among(row: Array, known: Array) -> bool:
    near = _SAME * max(float(np.abs(known).max(initial=0.0)), 1e-30)
    return bool((np.abs(known - row).max(1) <= near).any())


def _held(one: _Rows, two: _Rows, key: str, other: str) -> tuple[int, int]:
    """Of the rows of `two` that `one` has too: how many have the same value of the other input, and how many have not."""
    first, second = one.signatures[key], two.signatures[key]
    labels, own = one.signatures[other], two.signatures[other]
    alike = unlike = 0
    near, near_label = (
        _SAME * max(float(np.abs(each).max(initial=0.0)), 1e-30) for each in (first, labels)
    )
    for row, label in zip(second, own, strict=True):
        same = np.abs(first - row).max(1) <= near
        if same.any():
            if (np.abs(labels[same] - label).max(1) <= near_label).any():
                alike += 1
            else:
                unlike += 1
    return alike, unlike


def _figures_unlike(
    recorded: Recorded, names: list[str], theirs: _Rows, again: _Rows, ours: _Rows
) -> Iterator[Difference]:
    """Inputs of which a figure is the same in every row of the original, and another in most rows here."""
    for name in names:
        sides = [side.figures.get(name) for side in (theirs, again, ours)]
        if any(side is None or len(side) < _ENOUGH for side in sides):
            continue
        wanted = np.concatenate([side for side in sides[:2] if side is not None])
        own = sides[2]
        assert own is not None
        size = max(float(np.abs(wanted).max(initial=0.0)), 1e-30)
        for place, figure in enumerate(_FIGURES):
            values = wanted[:, place]
            middle = float(np.median(values))
            spread = float(values.max() - values.min())
            if theirs.sizes[name] < _KEY or not spread <= _CONSTANT * size:
                continue
            off = np.abs(own[:, place] - middle) > 10 * _CONSTANT * size
            if off.mean() > 0.5:
                said = float(np.median(own[:, place]))
                yield _difference(
                    recorded, name, f"{figure} {middle:.4g} in every row", f"{figure} {said:.4g}"
                )
                break


def _difference(recorded: Recorded, name: str, expected: str, actual: str) -> Difference:
    return of_input(recorded.first, f"input {name}", f"pairing/{name}", expected, actual)
