"""Whether inputs that come in an order of chance do so in the rewritten program too, and over as many rows.

The rewritten towers train on recorded rows, so an order that is fixed, or mixed over a few rows only, shows in no
number. What each program shuffles with is noted (`probe/shuffles.py`). Where that is not the same in both, or says
nothing, the rewritten program runs once more: how far two runs of each program differ in the order of their rows is
held against each other. Nothing is taken for a difference that chance makes in more than one of 100,000 programs, and
what cannot be judged is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from towermigrate.verify.comparison import Difference, of_input
from towermigrate.verify.probe.recording import read_arrays
from towermigrate.verify.programs import Recorded
from towermigrate.verify.trace import Trace

# With fewer rows nothing is said of their order.
_ENOUGH = 40
# Such a part of the rows has another one behind it in the other run, where they were mixed, and where they were not.
_MIXED, _KEPT = 0.5, 0.25
# Such a part of the rows comes near its place in the other run, where few are mixed; where many are, at most _MIXED.
_NEAR = 0.9
# So many rows, at least, come in both runs: fewer stand behind each other again by chance, or are no rows of data.
_COME_AGAIN = 12
# Files in an order of chance, read in turn, move all their rows, by a few distances: at most n (n + 1) / 2 for n files.
# So many tell of 9 files or more, or of rows that were mixed one by one; the same order twice is chance in one of 9!.
_DISTANCES = 37
# Buffers that differ by this factor mix rows over different distances.
_FAR_SMALLER = 4

# The rows of one input in the order of the training runs, and the largest number that one run takes.
_Rows = tuple[list[bytes], int]
_Shuffle = tuple[str, int | None]


def inputs_by_chance(recorded: Recorded) -> list[str]:
    """The inputs whose rows come in another order in each run of the original, as far as no seed fixes it."""
    names: dict[str, None] = {}
    for run in recorded.first.runs[:1]:
        for key in recorded.first.arrays(run):
            if key.startswith("input/") and not _is_agreed(recorded, key):
                names[_pool(key)] = None
    return list(names)


def asks_for_another_run(recorded: Recorded, made: Trace) -> bool:
    """Whether the rewritten program is to run once more before `shuffling` can say anything."""
    names = inputs_by_chance(recorded)
    if not names:
        return False
    theirs, ours = _shuffles(recorded.first), _shuffles(made)
    if theirs is None or ours is None or not _alike(theirs, ours):
        return True
    if theirs:
        return False
    # No shuffle of TensorFlow, so one in Python; what two threads do to the order of batches is none.
    pairs = (_pair(recorded, recorded.second, name) for name in names)
    return any(pair.is_mixed and pair.is_of_many for pair in pairs)


def shuffling(
    recorded: Recorded, made: Trace, again: Trace | None
) -> tuple[list[Difference], list[str]]:
    """Where rows are mixed otherwise than in the original, and what could not be held against it.

    Args:
        made: the rewritten program's recording.
        again: that of another run of it, None where there is none.
    """
    names = inputs_by_chance(recorded)
    theirs, ours = _shuffles(recorded.first), _shuffles(made)
    unlike = theirs is None or ours is None or not _alike(theirs, ours)
    found = []
    if again is not None:
        for name in names:
            said = _unlike(recorded, made, again, name, theirs or [], ours or [])
            if said is not None:
                found.append(_difference(recorded, name, *said))
    if found or not names or not unlike:
        return found, []
    return [], [
        f"shuffling of the inputs: {_said(theirs)} in the original, {_said(ours)} in the rewritten program, and the rows "
        "that were drawn do not show whether they are mixed as much"
    ]


def _shuffles(trace: Trace) -> list[_Shuffle] | None:
    """The shuffles that no seed fixes: their kind, and over how many rows."""
    noted = trace.meta.get("shuffles")
    if noted is None:
        return None
    return [(kind, size) for kind, size, seeded in noted if not seeded]


def _alike(theirs: list[_Shuffle], ours: list[_Shuffle]) -> bool:
    return not _without(theirs, ours) and not _without(ours, theirs)


def _without(some: list[_Shuffle], others: list[_Shuffle]) -> list[_Shuffle]:
    """The shuffles that have none like them among the others; one whose size is not known is like all of its kind."""

    def is_like(one: _Shuffle, other: _Shuffle) -> bool:
        return one[0] == other[0] and (one[1] == other[1] or None in (one[1], other[1]))

    return [each for each in some if not any(is_like(each, other) for other in others)]


@dataclass
class _Pair:
    """The order of the rows of one input in two runs of a program."""

    first: list[bytes]
    second: list[bytes]
    of_a_run: int

    def __post_init__(self) -> None:
        following = set(zip(self.second, self.second[1:], strict=False))
        steps = list(zip(self.first, self.first[1:], strict=False))
        count = min(len(steps), len(self.second) - 1)
        broken = sum(step not in following for step in steps)
        self.broken = broken / len(steps) if steps else 0.0
        places: dict[bytes, int] = {}
        for place, row in enumerate(self.second):
            places.setdefault(row, place)
        moved: dict[bytes, int] = {}
        for place, row in enumerate(self.first):
            if row in places and row not in moved:
                moved[row] = places[row] - place
        self.is_enough = count >= _ENOUGH and len(moved) >= _COME_AGAIN
        self.is_of_many = len(set(moved.values())) >= _DISTANCES
        self._places = places

    @property
    def is_mixed(self) -> bool:
        """Whether most rows have another one behind them."""
        return self.is_enough and self.broken >= _MIXED

    @property
    def is_kept(self) -> bool:
        """Whether hardly a row has another one behind it."""
        return self.is_enough and self.broken <= _KEPT

    def near(self, distance: int) -> float | None:
        """The part of the rows that come at most so far from their place; None where they are too few."""
        first: dict[bytes, int] = {}
        for place, row in enumerate(self.first):
            first.setdefault(row, place)
        # Those of the end may come in the other run after its last step.
        last = min(len(self.first), len(self.second)) - distance
        rows = [row for row, place in first.items() if place < last]
        if len(rows) < _ENOUGH:
            return None
        close = sum(
            row in self._places and abs(self._places[row] - first[row]) <= distance for row in rows
        )
        return close / len(rows)


def _unlike(
    recorded: Recorded,
    made: Trace,
    again: Trace,
    name: str,
    theirs: list[_Shuffle],
    ours: list[_Shuffle],
) -> tuple[str, str] | None:
    """What is otherwise about the order of an input's rows, in words; None where nothing is, or it cannot be told."""
    one, other = _pair(recorded, recorded.second, name), _pair(recorded, made, name, again)
    fixed, mixed = (
        "the same order in each run",
        "another order in each run, the rows mixed one by one",
    )
    if one.is_mixed and other.is_kept and (one.is_of_many or (theirs and not ours)):
        return mixed, fixed
    if other.is_mixed and one.is_kept and (other.is_of_many or (ours and not theirs)):
        return fixed, mixed
    lost, new = _without(theirs, ours), _without(ours, theirs)
    for smaller, pairs, words in ((new, (one, other), 1), (lost, (other, one), -1)):
        sizes = [size for _, size in smaller if size is not None]
        larger = [size for _, size in (lost if smaller is new else new) if size is not None]
        if not sizes or not larger or max(sizes) * _FAR_SMALLER > max(larger):
            continue
        distance = 5 * max(sizes) + one.of_a_run
        far, close = (pair.near(distance) for pair in pairs)
        if far is None or close is None or not pairs[0].is_of_many:
            continue
        if far <= _MIXED and close >= _NEAR:
            said = tuple(f"rows mixed over {max(each)} of them" for each in (larger, sizes))[
                ::words
            ]
            return said[0], said[1]
    return None


def _pair(recorded: Recorded, trace: Trace, name: str, again: Trace | None = None) -> _Pair:
    """Two runs of the original, or with `again` two of the rewritten program."""
    if again is None:
        first, size = _drawn(recorded, None, name)
        return _Pair(first, _drawn(recorded, trace, name)[0], size)
    first, size = _drawn(recorded, trace, name)
    return _Pair(first, _drawn(recorded, again, name)[0], size)


def _drawn(recorded: Recorded, trace: Trace | None, name: str) -> _Rows:
    """The rows of an input that a program drew by itself; those of the original's first run for None.

    Which tower gets which batch may be a race: the batches of one run are put into an order of their own. Rows that
    all towers share are taken once.
    """
    rows: list[bytes] = []
    largest = 0
    known = {} if trace is None else {run.index: run for run in trace.runs}
    # What is the same in another run, as far as one probe watches both, was not recorded again.
    is_same = trace is recorded.second or (
        trace is not None and trace.meta.get("style") == "session"
    )
    for run in recorded.first.runs:
        wanted = recorded.first.arrays(run)
        own = {}
        missing: Sequence[str] = ()
        if trace is not None:
            if run.index not in known:
                break
            own = trace.arrays(known[run.index])
            own = {**own, **read_arrays(str(trace.folder), f"own_{run.index:05d}")}
            missing = known[run.index].own_missing
        batches = []
        for key, array in wanted.items():
            if not key.startswith("input/") or _pool(key) != name:
                continue
            if trace is not None:
                if "own/" + key not in own and (not is_same or key in missing):
                    continue
                array = own.get("own/" + key, array)
            batches.append([part.tobytes() for part in array] if array.ndim else [array.tobytes()])
        batches = sorted(batches)
        for number, batch in enumerate(batches):
            if number == 0 or batch != batches[number - 1]:
                rows += batch
        largest = max(largest, sum(map(len, batches)))
    return rows, largest


def _pool(key: str) -> str:
    """What the towers' inputs of one kind have in common: a name, or the kind of operation that draws them."""
    group, _, name = key[len("input/") :].rpartition("/")
    kind = group.partition(".")[0]
    return name if group.isdigit() else f"{kind} {name}"


def _is_agreed(recorded: Recorded, key: str) -> bool:
    """Whether both runs of the original have the same of this input, whichever of its towers got it."""
    agreed: dict[str, bool] = recorded.second.meta.get("inputs_agreed", {})
    shared = recorded.second.meta.get("shared_inputs", ())
    if key in agreed:
        return agreed[key]
    kind, _, output = key.rpartition("/")
    kind = kind.partition(".")[0]
    of_kind = [
        agreed.get(each, False)
        for each in shared
        if each.startswith(kind + " of ") and each.endswith("/" + output)
    ]
    return all(of_kind)  # of what is random by itself neither is known


def _said(shuffles: list[_Shuffle] | None) -> str:
    if shuffles is None:
        return "it is not known what is shuffled"
    what = {"queue": "a queue", "dataset": "a data set", "rows": "a tensor"}
    each = [
        f"{what.get(kind, kind)} shuffles{'' if size is None else f' over {size} rows'}"
        for kind, size in shuffles
    ]
    return " and ".join(each) or "nothing of TensorFlow's shuffles without a seed"


def _difference(recorded: Recorded, name: str, expected: str, actual: str) -> Difference:
    what = f"order of the rows of input {name}"
    return of_input(recorded.first, what, f"shuffling/{name}", expected, actual)
