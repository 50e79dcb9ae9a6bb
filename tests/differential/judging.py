"""Compare what two programs did, and say what became of a program."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import numpy as np

from tests.differential.running import Ran

RELATIVE, ABSOLUTE = 1e-5, 1e-6
_FLOAT = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\b(?:nan|inf)\b")
_PRINTED_BY_OP = "seen "
_MOST_TOWERS = 4


def difference(original: Ran, result: Ran) -> str | None:
    """The first thing that differs, None where nothing does."""
    if result.status != original.status:
        return f"exit status {result.status} for {original.status}"
    return (
        _lines_differ(original.printed, result.printed)
        or _printed_by_ops_differ(_of_ops(original.errors), _of_ops(result.errors))
        or _checkpoints_differ(original.checkpoints, result.checkpoints)
        or _events_differ(original.events, result.events)
    )


def _of_ops(errors: str) -> list[str]:
    """What `tf.Print` printed; towers print in any order."""
    return sorted(line for line in errors.splitlines() if line.startswith(_PRINTED_BY_OP))


def _printed_by_ops_differ(expected: list[str], found: list[str]) -> str | None:
    # Of towers that compute the same, as all of the original's may on their one device, TensorFlow's optimizer makes one,
    # with one Print. On devices of their own each prints.
    if len(set(expected)) == len(expected) < len(found):
        once = [line for line, times in Counter(found).items() if times <= _MOST_TOWERS]
        found = once if len(once) == len(expected) else found
    return _lines_differ(expected, found)


def _lines_differ(expected: list[str], found: list[str]) -> str | None:
    for number, (one, other) in enumerate(zip(expected, found, strict=False), 1):
        if not _same_line(one, other):
            return f"line {number}: {other!r} for {one!r}"
    if len(expected) != len(found):
        longer = expected if len(expected) > len(found) else found
        return f"{len(found)} lines for {len(expected)}: {longer[min(len(expected), len(found))]!r}"
    return None


def _same_line(expected: str, found: str) -> bool:
    if expected == found:
        return True
    if _FLOAT.sub("#", expected) != _FLOAT.sub("#", found):
        return False
    pairs = zip(_FLOAT.findall(expected), _FLOAT.findall(found), strict=True)
    return all(_same_number(one, other) for one, other in pairs)


def _same_number(expected: str, found: str) -> bool:
    one, other = float(expected), float(found)
    if math.isnan(one) or math.isnan(other) or math.isinf(one) or math.isinf(other):
        return expected == found
    digits = max(len(text.split("e")[0].split(".")[1]) for text in (expected, found))
    printed = 1.01 * 10.0**-digits if "e" not in expected + found else 0.0  # one in the last digit
    return abs(one - other) <= ABSOLUTE + RELATIVE * abs(one) + printed


def _checkpoints_differ(
    expected: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]
) -> str | None:
    if sorted(expected) != sorted(found):
        return f"checkpoints {sorted(found)} for {sorted(expected)}"
    for path, arrays in expected.items():
        others = found[path]
        if sorted(arrays) != sorted(others):
            more, fewer = sorted(others.keys() - arrays), sorted(arrays.keys() - others)
            return f"{path}: has {more} and lacks {fewer}"
        for name, array in arrays.items():
            other = others[name]
            if array.shape != other.shape or array.dtype != other.dtype:
                return (
                    f"{path}: {name} is {other.dtype}{other.shape} for {array.dtype}{array.shape}"
                )
            if not np.allclose(array, other, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True):
                return f"{path}: {name} is {other.ravel()[:4]} for {array.ravel()[:4]}"
    return None


def never_updated(original: Ran, result: Ran) -> str | None:
    """What no order of updates explains: batch norm's averages as they began, or whole numbers that differ."""
    for path, arrays in original.checkpoints.items():
        others = result.checkpoints.get(path, {})
        for name in sorted(arrays.keys() & others.keys()):
            array, other = arrays[name], others[name]
            begun = _BEGUN.get(name.rpartition("/")[2])
            if begun is not None and np.all(other == begun) and not np.any(array == begun):
                return f"{path}: {name} was never updated"
            if array.dtype.kind in "iu" and not np.array_equal(array, other):
                return f"{path}: {name} is {other.ravel()[:4]} for {array.ravel()[:4]}"
    return None


_BEGUN = {"moving_mean": 0.0, "moving_variance": 1.0}


def _events_differ(
    expected: dict[str, list[tuple[Any, ...]]], found: dict[str, list[tuple[Any, ...]]]
) -> str | None:
    for folder in sorted({*expected, *found}):
        ours, theirs = found.get(folder, []), expected.get(folder, [])
        if [row[:2] for row in ours] != [row[:2] for row in theirs]:
            more = sorted({row[:2] for row in ours} - {row[:2] for row in theirs})
            fewer = sorted({row[:2] for row in theirs} - {row[:2] for row in ours})
            return f"events of {folder}: {len(ours)} for {len(theirs)}, has {more[:4]} and lacks {fewer[:4]}"
        for one, other in zip(theirs, ours, strict=True):
            if len(one) != len(other) or not np.allclose(
                one[2:], other[2:], rtol=1e-4, atol=1e-5, equal_nan=True
            ):
                return f"events of {folder}: {other} for {one}"
    return None
