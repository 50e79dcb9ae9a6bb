"""Compare what the programs printed and wrote; the original's second run tells what it leaves open itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from towermigrate.verify.comparison import Difference
from towermigrate.verify.events_compare import event_differences, open_events
from towermigrate.verify.probe.recording import read_arrays
from towermigrate.verify.trace import Array, Trace

# Free-running programs drift apart by roundings, and what they print is rounded itself: a number may be off by
# this part of it and one in its last digit. Whether they train alike was compared more closely before.
PRINTED = 1e-3
# The same for a tensor of a checkpoint, of its largest number.
_SAVED = 1e-3
# Numbers with fewer digits that are not the same twice may be durations that happened to be near.
_DIGITS = 4

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)?|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
)
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_NUMPY_2 = re.compile(r"\bnp\.\w+\(([^()]*)\)")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)(?![\w])")
# A single line's duration or speed may be the same in both originals by chance.
_UNIT_OF_TIME = re.compile(
    r"\s*(?:[mun]?s|secs?|seconds?|min(?:ute)?s?|h|hours?|\w+ ?(?:/|per) ?s\w*)\b", re.I
)
_OF_TIME = re.compile(
    r"\b(?:time|took|takes|elapsed|duration|speed|eta|sec(?:onds?)?)\b[\s:=/a-z()]{0,12}$", re.I
)
_EVENTS = re.compile(r"events\.out\.tfevents\.[^/]*$")
# What TensorFlow adds to the names of files: a number of shards, a temporary folder.
_FILES_OF_CHECKPOINTS = re.compile(r"\.(?:data-\d+-of-\d+|index|meta)$")


def doing_differences(
    first: Trace, second: Trace, made: Trace, *, within: float | None
) -> tuple[list[Difference], list[str]]:
    """Where the rewritten program prints or writes something else, and what two originals leave open.

    Args:
        first: the original's recording.
        second: that of its second run.
        made: the rewritten program's.
        within: how far the numbers in lines and summaries may be from the original's, relative to them; None where
            roundings were excused that leave them open.
    """
    found: list[Difference] = []
    loose: list[str] = []
    wanted, again = _lines(first), _lines(second)
    if [_words(line) for line in wanted] != [_words(line) for line in again]:
        loose.append("what the program prints: two runs of the original print other lines")
    else:
        found += _printed(wanted, again, _lines(made), within=within)
    files, others, ours = _files(first), _files(second), _files(made)
    if files != others:
        names = ", ".join(sorted(files ^ others)[:3])
        loose.append(
            f"the files that the program writes: two runs of the original differ in {names}"
        )
    more, fewer = sorted(ours - files - others), sorted((files & others) - ours)
    if more or fewer:
        name = (fewer or more)[0]
        expected, actual = (name, "no such file") if fewer else ("no such file", name)
        found.append(_difference(f"file {name}", expected, actual))
    found += _of_workers(first, second, made)
    found += _checkpoints(first, second, made)
    written = event_differences(first, second, made, within=within)
    found += [_difference(name, expected, actual) for name, expected, actual in written]
    loose += open_events(first, second)
    return found, loose


def _of_workers(first: Trace, second: Trace, made: Trace) -> Iterator[Difference]:
    """Files that a worker should not have written: what only the chief saves, and what neither program writes.

    Other files a program may well write on every worker, as on machines of their own.
    """
    known = _files(first) | _files(second) | _files(made)
    for worker, files in made.meta.get("files_of_workers", {}).items():
        for path in sorted(files):
            said = None
            if _plain(path) != path:
                said = "written by the chief only", f"worker {worker} writes one too"
            elif path not in known:
                said = "no such file", f"{path}, written by worker {worker}"
            if said is not None:
                yield replace(_difference(f"file {path}", *said), replica=int(worker))


def _lines(trace: Trace) -> list[str]:
    printed: list[str] = trace.meta.get("printed", [])
    # Each program has a scratch folder of its own, and may print where it is.
    printed = [line.replace(str(trace.folder.parent), "") for line in printed]
    # NumPy 2 says the types of the numbers in a list, NumPy 1 does not.
    printed = [_NUMPY_2.sub(r"\1", line) for line in printed]
    # A line that is written over (a progress bar) is another in every run.
    return [_ADDRESS.sub("0x", _TIME.sub("TIME", line)) for line in printed if "\r" not in line]


def _words(line: str) -> str:
    """A line without its numbers, and without the spaces that arrays are padded with."""
    return re.sub(r"\s+", "", _NUMBER.sub("#", line))


def _printed(
    wanted: list[str], again: list[str], made: list[str], *, within: float | None
) -> Iterator[Difference]:
    open_places = _open_places(wanted, again)
    for place, line in enumerate(wanted):
        name = f"printed line {place + 1}"
        if place >= len(made):
            yield _difference(name, line, "nothing")
            return
        alike = _words(line) == _words(made[place])
        if not alike or (
            within is not None and not _numbers_alike(line, made[place], open_places, within)
        ):
            yield _difference(name, line, made[place])
            return
    if len(made) > len(wanted):
        yield _difference(f"printed line {len(wanted) + 1}", "nothing", made[len(wanted)])


def _open_places(wanted: list[str], again: list[str]) -> set[tuple[str, int]]:
    """Where two originals print other numbers: the words of a line, and the number's place in it.

    A duration may be the same twice, so one line of a kind speaks for all of them.
    """
    found = set()
    for one, two in zip(wanted, again, strict=True):
        numbers = zip(_NUMBER.findall(one), _NUMBER.findall(two), strict=True)
        for place, (number, other) in enumerate(numbers):
            few = number != other and len(re.sub(r"\D", "", number).lstrip("0")) < _DIGITS
            if few or not _alike(number, other):
                found.add((_words(one), place))
    return found


def _numbers_alike(
    wanted: str, made: str, open_places: set[tuple[str, int]], within: float
) -> bool:
    pairs = zip(_NUMBER.finditer(wanted), _NUMBER.findall(made), strict=True)
    for place, (match, other) in enumerate(pairs):
        if (_words(wanted), place) in open_places:
            continue
        if _UNIT_OF_TIME.match(wanted, match.end()) or _OF_TIME.search(wanted, 0, match.start()):
            continue
        if not _alike(match.group(), other, within):
            return False
    return True


def _alike(expected: str, actual: str, within: float = PRINTED) -> bool:
    if expected == actual:
        return True
    if expected.lstrip("+-").isdigit() and actual.lstrip("+-").isdigit():
        return False
    one, other = float(expected), float(actual)
    if not math.isfinite(one) or not math.isfinite(other):
        return False
    return abs(one - other) <= within * max(abs(one), abs(other)) + max(
        _last_digit(expected), _last_digit(actual)
    )


def _last_digit(number: str) -> float:
    """A bit more than one in the last digit of a number that is printed so."""
    mantissa, _, exponent = number.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return 1.01 * 10.0 ** (int(exponent or 0) - digits)


def _files(trace: Trace) -> set[str]:
    files: list[str] = trace.meta.get("files", [])
    return {_plain(path) for path in files}


def _plain(path: str) -> str:
    """A file's name without what is another one in each run; of all others its own."""
    return _EVENTS.sub("events", _FILES_OF_CHECKPOINTS.sub("", path))


def _checkpoints(first: Trace, second: Trace, made: Trace) -> Iterator[Difference]:
    wanted, again, others = (
        read_arrays(str(trace.folder), "checkpoints") for trace in (first, second, made)
    )
    ours = {key.partition("|")[0] for key in others}
    for key, array in wanted.items():
        path, _, name = key.partition("|")
        if path not in ours:
            continue  # the file itself is missing, or was not read
        if key not in others:
            yield _difference(f"{name} in the checkpoint {path}", "a tensor", "no such tensor")
        elif key in again and _far(array, again[key]) == 0 and _far(array, others[key]) > _SAVED:
            yield _difference(f"{name} in the checkpoint {path}", _some(array), _some(others[key]))
    theirs = {key.partition("|")[0] for key in wanted}
    for key in others.keys() - wanted.keys():
        path, _, name = key.partition("|")
        if path in theirs:
            yield _difference(f"{name} in the checkpoint {path}", "no such tensor", "a tensor")


def _far(expected: Array, actual: Array) -> float:
    """How far apart two tensors are, of the largest number in them."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return float("inf")
    if np.array_equal(expected, actual) or not expected.size:
        return 0.0
    if expected.dtype.kind != "f":
        return float("inf")
    if not np.array_equal(np.isfinite(expected), np.isfinite(actual)):
        return float("inf")
    size = max(float(np.nanmax(np.abs(expected))), 1e-30)
    return float(np.nanmax(np.abs(expected - actual))) / size


def _some(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)} {array.ravel()[:3].tolist()}"


def _difference(name: str, expected: str, actual: str) -> Difference:
    return Difference(
        step=0,
        stage=None,
        level="output",
        name=name,
        replica=None,
        expected=expected[:300],
        actual=actual[:300],
        error=float("inf"),
        key="doing/" + name,
        run=10**9,  # told after all that was compared step by step
    )
