"""Compare what the programs wrote into event files: tag, step and value, the original's second run as the measure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from towermigrate.verify.comparison import NO_SUMMARY, Excuse
from towermigrate.verify.probe.recording import read_arrays
from towermigrate.verify.trace import Array, Arrays, Trace

# Free-running programs drift apart by roundings; whether they train alike was compared more closely before. So far
# apart, two runs of the original wrote the same.
_WRITTEN = 1e-3
# The part of an image's points that may be rounded to the next byte.
_ROUNDED = 0.05
# A jump is a small part of a histogram, and the original's own need not be the same (`excuses`).
_LARGEST_JUMP = 0.1
_MARGIN = 2.0
# Of all histograms, as many may be excused at most: one unit moves all layers below its own.
_MOST = 1 / 3
# What TF1's input queues summarize of themselves: how full they are just then, which their threads decide.
_QUEUE_FILLED = re.compile(r"(?:^|/)fraction_(?:of|over_\d+_of)_\d+_full(?:_\d+)?$")


def event_differences(
    first: Trace,
    second: Trace,
    made: Trace,
    *,
    within: float | None,
    excused: Collection[str] = (),
) -> Iterator[tuple[str, str, str]]:
    """What is written otherwise: a name for it, what was expected and what was found.

    Args:
        within: how far the values may be apart, relative to them; None where they are not compared.
        excused: the keys of values that roundings explain (`summaries_excused`).
    """
    wanted, again, others = (
        read_arrays(str(trace.folder), "events") for trace in (first, second, made)
    )
    folders = {_parts(key)[0] for key in others}
    if wanted.keys() != again.keys():
        return  # The original itself writes other tags or steps each time.
    chance = rows_are_chance(second)
    for key, value in wanted.items():
        folder, _, _ = _parts(key)
        if folder not in folders:
            continue  # the file itself is missing, or was not read
        if chance and key in others and is_image(value) and value.shape == others[key].shape:
            continue
        if key not in others:
            yield _name(key), _said(value), _nearest(key, others)
        elif (
            within is not None
            and key not in excused
            and _fixed(key, wanted, again)
            and not _alike(value, others[key], within)
        ):
            yield _name(key), _said(value), _said(others[key])
    ours = {_parts(key)[0] for key in wanted}
    for key in others.keys() - wanted.keys():
        if _parts(key)[0] in ours:
            yield _name(key), NO_SUMMARY, _said(others[key])


def summaries_excused(
    first: Trace,
    second: Trace,
    made: Trace,
    moved: Sequence[Trace],
    *,
    within: float,
    moved_by: float,
) -> list[Excuse]:
    """The histograms that are off because a rounding decides in a run that trains nothing, with the numbers that show it.

    Such a run's gradients are recorded by what it writes of them only. They jump as those of training runs do (`excuses`): the
    original must write a histogram that is as far off, in the same numbers, when its weights are moved by roundings. A jump
    is small, of few histograms, and the count of values stays.
    """
    wanted, again, others = (
        read_arrays(str(trace.folder), "events") for trace in (first, second, made)
    )
    tried = [read_arrays(str(trace.folder), "events") for trace in moved]
    found: list[Excuse] = []
    histograms = [key for key, value in wanted.items() if value.shape == (5,)]
    for key in histograms:
        value, other = wanted[key], others.get(key)
        if other is None or other.shape != (5,) or not _fixed(key, wanted, again):
            continue
        if _alike(value, other, within) or not _alike(value, other, _LARGEST_JUMP):
            continue
        moves = [np.abs(each[key] - value) for each in tried if key in each]
        if not moves:
            continue
        off, own = np.abs(other - value), np.max(moves, axis=0)
        sizes = _sizes(value)
        outside = off > within * sizes
        if other[0] != value[0] or np.any(_MARGIN * own[outside] < off[outside]):
            continue
        part = off / np.where(sizes > 0, sizes, 1.0)
        worst = int(np.argmax(part))
        evidence = {"off_by": float(part[worst]), "original_moves": float((own / sizes)[worst]), "trials": len(tried), "weights_moved_by": moved_by}  # fmt: skip
        step = int(_parts(key)[2]) if _parts(key)[2].isdigit() else 0
        found.append(
            Excuse(step, None, "output", _name(key), None, float(part[worst]), key, -1, evidence)
        )
    return found if len(found) <= _MOST * len(histograms) else []


def rows_are_chance(second: Trace) -> bool:
    """Whether two runs of the original draw other rows, which images may show."""
    agreed: dict[str, bool] = second.meta.get("inputs_agreed", {})
    return not all(agreed.values())


def is_image(value: Array) -> bool:
    return value.dtype == np.uint8 and value.ndim == 3


def open_events(first: Trace, second: Trace) -> list[str]:
    """What two runs of the original write into event files otherwise, so that its values were not compared."""
    wanted, again = (read_arrays(str(trace.folder), "events") for trace in (first, second))
    if wanted.keys() != again.keys():
        return ["the event files: two runs of the original write other tags or steps"]
    loose = {_parts(key)[1] for key in wanted if not _alike(wanted[key], again[key])}
    if rows_are_chance(second):
        loose |= {_parts(key)[1] for key, value in wanted.items() if is_image(value)}
    queues = {tag for key in wanted if _QUEUE_FILLED.search(tag := _parts(key)[1])}
    return [
        f"the summary {tag}: how full a queue is when it is asked depends on its threads"
        if tag in queues
        else f"the summary {tag}: two runs of the original write other values"
        for tag in sorted(loose | queues)
    ]


def _fixed(key: str, wanted: Arrays, again: Arrays) -> bool:
    """Whether the original writes the same values under a tag each time."""
    if _QUEUE_FILLED.search(_parts(key)[1]):
        return False
    same_tag = [each for each in wanted if _parts(each)[:2] == _parts(key)[:2]]
    return all(_alike(wanted[each], again[each]) for each in same_tag)


def _alike(expected: Array, actual: Array, within: float = _WRITTEN) -> bool:
    if expected.shape != actual.shape or expected.dtype.kind != actual.dtype.kind:
        return False
    if (
        expected.dtype == np.uint8 and expected.ndim == 3
    ):  # an image: a point may be rounded to the next
        off = np.abs(expected.astype(np.int16) - actual.astype(np.int16))
        return bool(off.max(initial=0) <= 1 and np.mean(off > 0) <= _ROUNDED)
    if expected.dtype.kind != "f":
        return bool(np.array_equal(expected, actual))
    if not np.array_equal(np.isfinite(expected), np.isfinite(actual)):
        return False
    sizes = _sizes(expected)
    apart = np.abs(expected - actual)
    return bool(np.all((apart <= within * sizes + 1e-12) | ~np.isfinite(expected)))


def _sizes(value: Array) -> Array:
    """What each number of a summary is measured by."""
    sizes: Array = np.abs(value)
    if value.shape == (5,):  # a histogram: the sizes that its sums are made of
        count, largest = value[0], float(np.max(np.abs(value[1:3])))
        sizes = np.array([count, largest, largest, count * largest, count * largest**2])
    elif value.ndim:
        sizes = np.full(value.shape, np.max(sizes, initial=0.0))
    return sizes


def _parts(key: str) -> tuple[str, str, str]:
    folder, tag, step = (key.split("|") + ["", ""])[:3]
    return folder, tag, step


IN_EVENTS = " in the event file of "


def _name(key: str) -> str:
    folder, tag, step = _parts(key)
    return f"{tag} of step {step}{IN_EVENTS}{folder or '.'}"


def _nearest(key: str, others: Arrays) -> str:
    """What there is in place of a summary that is missing."""
    folder, tag, step = _parts(key)
    steps = [_parts(each)[2] for each in others if _parts(each)[:2] == (folder, tag)]
    tags = [_parts(each)[1] for each in others if _parts(each)[::2] == (folder, step)]
    if steps:
        return f"the steps {', '.join(steps[:5])}"
    return f"the tags {', '.join(sorted(tags)[:5])}" if tags else NO_SUMMARY


def _said(value: Array) -> str:
    return str(np.asarray(value).ravel()[:5].tolist())
