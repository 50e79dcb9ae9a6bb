"""Compare what the programs printed and wrote; the original's second run tells what it leaves open itself."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from towermigrate.verify.comparison import FED, LOOKED, NO_FILE, Difference
from towermigrate.verify.events_compare import event_differences, open_events
from towermigrate.verify.files_compare import SAVED, Closeness, FilesCompared, file_differences
from towermigrate.verify.lines_compare import (
    LEAST_DRIFT,
    MOVED,
    Unlike,
    comparable,
    cut,
    normalised,
    open_lines,
    same_words,
    unlike,
    without,
)
from towermigrate.verify.probe.doings import TAKEN_AWAY
from towermigrate.verify.probe.recording import read_arrays, same
from towermigrate.verify.trace import Array, Trace

_EVENTS = re.compile(r"events\.out\.tfevents\.[^/]*$")
# What TensorFlow adds to the names of files: a number of shards, a temporary folder.
_FILES_OF_CHECKPOINTS = re.compile(r"\.(?:data-\d+-of-\d+|index|meta)$")


def doing_differences(
    first: Trace,
    second: Trace,
    made: Trace,
    *,
    within: float | None,
    drift: float = LEAST_DRIFT,
    bitwise: bool = False,
    moved: Sequence[Trace] = (),
    saved: float = SAVED,
    clock: float | None = None,
    files: FilesCompared | None = None,
    summaries: Collection[str] = (),
    trained_alike: bool = False,
) -> tuple[list[Difference], list[str]]:
    """Where the rewritten program prints or writes something else, and what was not compared, with why.

    Args:
        first: the original's recording.
        second: that of its second run.
        made: the rewritten program's.
        within: how far the numbers in lines and summaries may be from the original's, relative to them; None where
            roundings were excused that leave them open.
        drift: how far apart the two programs' numbers are, relative to them.
        bitwise: whether they trained the same to the last bit.
        moved: recordings of the original when its weights moved, which say how far printed numbers may be off where
            `within` does not.
        saved: how far a tensor of a checkpoint may be off, of its largest number.
        clock: `asks_the_time(first)`, which is the default.
        files: what `file_differences` says of them, where it was asked already.
        summaries: the keys of what event files hold otherwise by roundings.
        trained_alike: every array of the two programs' training was near enough, each by its own measure. A tensor of a
            checkpoint that is such an array in both was compared there already: where a gradient is of roundings alone
            (a bias before batch norm), its largest number is no measure of a slot.
    """
    clock = asks_the_time(first) if clock is None else clock
    close = Closeness(within, drift, bitwise, moved, saved, clock)
    found = list(_ending(first, second, made))
    loose: list[str] = []
    for key, name, what in (
        ("printed", "printed line", "what the program prints"),
        ("said", "line on standard error", "what the program says on standard error"),
    ):
        differences, open_lines = _of_stream(first, second, made, key, name, what, close)
        found += differences
        loose += open_lines
    theirs, others, ours = _files(first), _files(second), _files(made)
    if theirs != others:
        names = ", ".join(sorted(theirs ^ others)[:3])
        loose.append(
            f"the files that the program writes: two runs of the original differ in {names}"
        )
    more, fewer = sorted(ours - theirs - others), sorted((theirs & others) - ours)
    found += [_difference(f"file {name}", name, NO_FILE) for name in fewer]
    found += [_difference(f"file {name}", NO_FILE, name) for name in more]
    found += _graphs(first, second, made)
    found += _of_places(first, second, made)
    found += _of_workers(first, second, made)
    found += _checkpoints(first, second, made, close.saved, trained_alike)
    found += _looked(first, second, made, within, moved)
    found += _asked(first, second, made, within)
    unequal, _ = files or file_differences(first, second, made, close)
    found += [
        _difference(f"contents of the file {each.name}", each.expected, each.actual)
        for each in unequal
    ]
    written = event_differences(first, second, made, within=within, excused=summaries)
    found += [_difference(name, expected, actual) for name, expected, actual in written]
    loose += open_events(first, second)
    return found, loose


def asks_the_time(first: Trace) -> float:
    """How long the original ran (seconds), as far as that is known; 0 where nothing in it asks how late it is."""
    return float(first.meta.get("seconds", math.inf)) if first.meta.get("clock", True) else 0.0


def doings_left_out(
    first: Trace,
    second: Trace,
    made: Trace,
    *,
    within: float | None,
    drift: float = LEAST_DRIFT,
    bitwise: bool = False,
    moved: Sequence[Trace] = (),
    saved: float = SAVED,
    clock: float | None = None,
    files: FilesCompared | None = None,
) -> list[str]:
    """What the programs print and write that could not be compared, and why; the arguments are `doing_differences`'."""
    traces = (first, second, made)
    cut = dict.fromkeys(what for trace in traces for what in trace.meta.get("cut", []))
    found = [f"{what}: only the first 10,000 lines were kept" for what in cut]
    beneath = dict.fromkeys(what for each in traces for what in each.meta.get("beneath", []))
    found += [f"{what} on a terminal: it was not compared" for what in beneath]
    clock = asks_the_time(first) if clock is None else clock
    close = Closeness(within, drift, bitwise, moved, saved, clock)
    found += (files or file_differences(*traces, close))[1]
    for key, what in (("printed", "prints"), ("said", "says on standard error")):
        if _shows_in_between(first, second, key):
            found.append(
                f"what the program {what} over lines that it wrote before: it shows it as often as time allows, and only "
                "what is left of it was compared"
            )
    if any(trace.meta.get("hooks_log") for trace in traces):
        found.append("what TensorFlow's hooks log: no library's lines are compared")
    code = first.meta.get("exit_code", 0)
    if code:
        found.append(f"all that an end without an error would do: the original exits with {code}")
    if within is None:
        printed = any(not _tells(first, moved, key) for key in ("printed", "said"))
        written = bool(_files(first))
        which = ["printed"] * printed + ["written"] * written
        if which:
            said = "roundings were excused that they are made of"
            found.append(f"{' and '.join(which)} numbers: {said}")
    return found


def _shows_in_between(first: Trace, second: Trace, key: str) -> bool:
    """Whether numbers stand in what is written over, which two runs of the original show at other times."""
    shown, again = (
        [each for lines in _lines(trace, key)[1] for each in lines[:-1]]
        for trace in (first, second)
    )
    return not same_words(shown, again) and any(re.search(r"\d\.\d", each) for each in shown)


def _tells(first: Trace, moved: Sequence[Trace], key: str) -> bool:
    """Whether what the original printed when its weights moved tells how far the numbers of its lines may be off."""
    plain, over = _lines(first, key)
    theirs = [_lines(each, key)[0] for each in moved]
    return not over and (not plain or bool(comparable(plain, theirs)))


def _ending(first: Trace, second: Trace, made: Trace) -> Iterator[Difference]:
    """The exit code, where both programs ran to their end."""
    codes = [each.meta.get("exit_code", 0) for each in (first, second, made)]
    ended = all(each.meta.get("ended") == "program" for each in (first, second, made))
    if ended and codes[0] == codes[1] != codes[2]:
        yield _difference("exit code", f"exit code {codes[0]}", f"exit code {codes[2]}")


def _of_stream(
    first: Trace, second: Trace, made: Trace, key: str, name: str, what: str, close: Closeness
) -> tuple[list[Difference], list[str]]:
    """Where a program writes other lines to a stream, and what two originals leave open or is too long."""
    found, loose = [], []
    traces = (first, second, made)
    plain, over = zip(*(_lines(trace, key) for trace in traces), strict=True)
    places = open_lines(plain[0], plain[1])
    if places is None:
        loose.append(f"{what}: two runs of the original print other lines")
    else:
        theirs = [without(_lines(each, key)[0], places) for each in close.moved]
        if places:
            some = (
                f"{len(places)} of {len(plain[0])} lines, as “{plain[0][min(places)].strip()[:60]}”"
            )
            loose.append(f"{what}: {some}: two runs of the original print other words there")
        lines = [without(each, places) for each in plain]
        said = unlike(
            *lines, within=close.within, drift=close.drift, moved=theirs, clock=close.clock
        )
        found += _told(name, said)
    turns = [[each for shown in lines for each in shown] for lines in over]
    if not same_words(turns[0], turns[1]):
        # A progress bar shows itself as often as time allows; what is left of it in the end is the same.
        turns = [[shown[-1] for shown in lines if shown] for lines in over]
    if not same_words(turns[0], turns[1]):
        loose.append(f"{what} over lines that it wrote before: two runs of the original differ")
    elif not found:
        said = unlike(*turns, within=close.within, drift=close.drift, clock=close.clock)
        found += _told(f"{name} written over others,", said)
    return found, loose


def _told(name: str, said: Unlike | None) -> list[Difference]:
    if said is None:
        return []
    return [_difference(f"{name} {said.line}", *cut(said.expected, said.actual))]


def _of_places(first: Trace, second: Trace, made: Trace) -> Iterator[Difference]:
    """Links, empty folders, files that can be run, and files that were taken away."""
    traces = (first, second, made)
    if not all("places" in trace.meta for trace in traces):
        return  # recorded by an earlier version
    wanted, again, ours = (
        {_plain(name): _plain(what) for name, what in trace.meta["places"].items()}
        for trace in traces
    )
    both = set.intersection(
        *({_plain(name) for name in trace.meta.get("began_with", ())} for trace in (first, made))
    )
    for name in sorted(wanted.keys() | ours.keys()):
        if TAKEN_AWAY in (wanted.get(name), ours.get(name)) and name not in both:
            continue  # one of the trees never held it
        if wanted.get(name) == again.get(name) != ours.get(name):
            said = (each.get(name, "no such change") for each in (wanted, ours))
            yield _difference(f"in the folders, {name}", *said)


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
                said = NO_FILE, f"{path}, written by worker {worker}"
            if said is not None:
                yield replace(_difference(f"file {path}", *said), replica=int(worker))


def _lines(trace: Trace, key: str) -> tuple[list[str], list[list[str]]]:
    """The lines of a stream, and of those that are written over (a progress bar) all that they showed in turn."""
    printed: list[str] = trace.meta.get(key, [])
    # Each program has a scratch folder of its own, and may print where it is.
    printed = [line.replace(str(trace.folder.parent), "") for line in printed]
    plain, over = [], []
    for line in printed:
        shown = [
            normalised(each, trace.day) for each in line.rstrip("\r").split("\r") if each.strip()
        ]
        if "\r" in line.rstrip("\r"):
            over.append(shown)
        else:
            plain.append(normalised(line.rstrip("\r"), trace.day))
    return plain, over


def _files(trace: Trace) -> set[str]:
    files: list[str] = trace.meta.get("files", [])
    return {_plain(path) for path in files}


def _graphs(first: Trace, second: Trace, made: Trace) -> Iterator[Difference]:
    """Graphs beside checkpoints that a program in session style does not write; loop style has none to write."""
    if made.meta.get("style") != "session":
        return
    theirs, others, ours = (set(trace.meta.get("files", [])) for trace in (first, second, made))
    for path in sorted((theirs & others) - ours):
        if path.endswith(".meta") and path[: -len("meta")] + "index" in ours:
            yield _difference(f"file {path}", path, NO_FILE)


def _plain(path: str) -> str:
    """A file's name without what is another one in each run; of all others its own."""
    return _EVENTS.sub("events", _FILES_OF_CHECKPOINTS.sub("", path))


def _checkpoints(
    first: Trace, second: Trace, made: Trace, within: float, trained_alike: bool
) -> Iterator[Difference]:
    wanted, again, others = (
        read_arrays(str(trace.folder), "checkpoints") for trace in (first, second, made)
    )
    ours = {key.partition("|")[0] for key in others}
    far: dict[str, tuple[Array, Array]] = {}
    for key, array in wanted.items():
        path, _, name = key.partition("|")
        if path not in ours:
            continue  # the file itself is missing, or was not read
        if key not in others:
            yield _difference(f"{name} in the checkpoint {path}", "a tensor", "no such tensor")
        elif key in again and _far(array, again[key]) == 0 and _far(array, others[key]) > within:
            far[key] = array, others[key]
    for key in _compared(far, first, made) if trained_alike else ():
        del far[key]
    for key, (array, other) in far.items():
        path, _, name = key.partition("|")
        yield _difference(f"{name} in the checkpoint {path}", *_both(array, other))
    theirs = {key.partition("|")[0] for key in wanted}
    for key in others.keys() - wanted.keys():
        path, _, name = key.partition("|")
        if path in theirs:
            yield _difference(f"{name} in the checkpoint {path}", "no such tensor", "a tensor")


def _compared(pairs: Mapping[str, tuple[Array, Array]], first: Trace, made: Trace) -> set[str]:
    """Of pairs of tensors those that are what one variable was, to the last bit, in each program after one and the same run."""
    left = {
        key: pair
        for key, pair in pairs.items()
        if pair[0].dtype.kind == "f" and pair[0].dtype == pair[1].dtype
    }
    found: set[str] = set()
    runs = {run.index: run for run in made.runs}
    for run in first.runs:  # each is read once: they may be large
        if run.index not in runs or not left.keys() - found:
            continue
        theirs, ours = first.arrays(run), made.arrays(runs[run.index])
        for state in theirs.keys() & ours.keys():
            if state.startswith("state/"):
                found |= {
                    key
                    for key, (wanted, other) in left.items()
                    if same(theirs[state], wanted) and same(ours[state], other)
                }
    return found


def _looked(
    first: Trace, second: Trace, made: Trace, within: float | None, moved: Sequence[Trace]
) -> Iterator[Difference]:
    """What runs that train nothing give back, between the same two training runs.

    Rewritten programs may read in other ways what a session is asked, and fetch less. So only what both programs have more of one
    shape than the other is another value. Where roundings are excused, an array may be as far off as a number of a line.
    """
    if within is None:
        return
    wanted, again, ours = (read_arrays(str(t.folder), "looked") for t in (first, second, made))
    fixed = {
        key: array for key, array in wanted.items() if key in again and same(array, again[key])
    }
    tried = [read_arrays(str(trace.folder), "looked") for trace in moved]
    open_ = {
        key: MOVED * max((_apart(array, each[key]) for each in tried if key in each), default=0.0)
        for key, array in fixed.items()
    }
    for index in sorted({int(key.partition("|")[0]) for key in fixed}):
        theirs, made_here = (
            {key: array for key, array in each.items() if int(key.partition("|")[0]) == index}
            for each in (fixed, ours)
        )
        left = list(made_here.values())
        missing: list[Array] = []
        for key, array in theirs.items():
            near = (k for k, each in enumerate(left) if _as_near(array, each, within, open_[key]))
            at = next(near, None)
            if at is None:
                missing.append(array)
            else:
                del left[at]
        for array in missing:
            other = next((each for each in left if _of_one_kind(array, each)), None)
            if other is not None:
                yield _difference(f"{LOOKED}, behind {index} updates", *_both(array, other))
                return
        for key, array in theirs.items() if _in_turn(theirs, wanted, made_here, index) else ():
            if array.shape != made_here[key].shape:
                said = (f"{each.dtype}{list(each.shape)}" for each in (array, made_here[key]))
                yield _difference(f"{LOOKED}, behind {index} updates", *said)
                return


def _asked(first: Trace, second: Trace, made: Trace, within: float | None) -> Iterator[Difference]:
    """What runs that train nothing are fed, where both programs have as many of them between two training runs: of sessions."""
    if within is None:
        return
    wanted, again, ours = (read_arrays(str(t.folder), "asked") for t in (first, second, made))
    for index in sorted({int(key.partition("|")[0]) for key in wanted}):
        theirs, others = (
            {key: array for key, array in each.items() if int(key.partition("|")[0]) == index}
            for each in (wanted, ours)
        )
        if theirs.keys() != others.keys():
            continue
        for key, array in theirs.items():
            fixed = key in again and same(array, again[key])
            if fixed and not _as_near(array, others[key], within, 0.0):
                name = key.split("|")[2]
                yield _difference(
                    f"{FED} {name}, behind {index} updates", *_both(array, others[key])
                )
                return


def _in_turn(
    fixed: Mapping[str, Array], wanted: Mapping[str, Array], made: Mapping[str, Array], index: int
) -> bool:
    """Whether two programs look at as much, in one order: arrays of the same kinds and numbers of axes."""
    number = sum(int(key.partition("|")[0]) == index for key in wanted)
    return (
        fixed.keys() == made.keys()
        and len(fixed) == number
        and all(
            array.dtype.kind == made[key].dtype.kind and array.ndim == made[key].ndim
            for key, array in fixed.items()
        )
    )


def _of_one_kind(expected: Array, actual: Array) -> bool:
    return bool(expected.shape == actual.shape and expected.dtype.kind == actual.dtype.kind)


def _apart(first: Array, second: Array) -> float:
    """How far apart two arrays of one kind are; nothing where they are not."""
    if not _of_one_kind(first, second) or first.dtype.kind != "f":
        return 0.0
    apart = np.abs(first - second)
    return float(np.max(apart, initial=0.0, where=np.isfinite(apart)))


def _as_near(expected: Array, actual: Array, within: float, least: float) -> bool:
    if not _of_one_kind(expected, actual):
        return False
    if expected.dtype.kind != "f":
        return bool(np.array_equal(expected, actual))
    if not np.array_equal(np.isfinite(expected), np.isfinite(actual)):
        return False
    size = float(np.nanmax(np.abs(expected), initial=0.0))
    limit = max(within * size, least)
    return limit >= float(np.nanmax(np.abs(expected - actual), initial=0.0))


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


def _both(expected: Array, actual: Array) -> tuple[str, str]:
    """Two arrays in words: their first numbers, or where their shapes are the same the first of those that differ."""
    one, other = expected.ravel(), actual.ravel()
    if expected.shape != actual.shape:
        return _some(expected), _some(actual)
    off = np.flatnonzero((one != other) & ~((one != one) & (other != other)))
    if not off.size or off[0] < 3:
        return _some(expected), _some(actual)
    at = int(off[0])
    said = (
        f"{each.dtype}{list(expected.shape)}, number {at + 1}: {each[at : at + 3].tolist()}"
        for each in (one, other)
    )
    theirs, ours = said
    return theirs, ours


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
