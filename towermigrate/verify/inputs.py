"""Whether the rewritten towers would have had the original's inputs by themselves.

Both programs train on the recorded inputs, so a difference in what they read shows in no number.
"""

from __future__ import annotations

from collections.abc import Sequence

from towermigrate.verify.comparison import Difference
from towermigrate.verify.probe.recording import read_arrays, same
from towermigrate.verify.programs import Recorded
from towermigrate.verify.trace import Array, Arrays, Run, Trace

# With fewer elements, two towers may draw the same by chance.
_ROWS = 8
# In fewer runs two originals may have the same rows by chance.
_RUNS = 4
_SHARED_OUT = "the original's rows, whichever tower gets them"


def own_inputs(recorded: Recorded, made: Trace, *, synthetic: bool = False) -> list[Difference]:
    """Inputs that the rewritten towers would have had by themselves, where the original determines them.

    Of those that it draws in an open order, the rank, the kind of number and which towers share rows are held; of
    `synthetic` ones rank and kind.
    """
    agreed: dict[str, bool] = recorded.second.meta.get("inputs_agreed", {})
    if synthetic:
        agreed = {}
    shared = recorded.second.meta.get("shared_inputs", [])
    any_order = {} if synthetic else _in_any_order(recorded)
    by_index = {run.index: run for run in made.runs}
    updates: dict[int, int] = {}
    for run in recorded.first.runs:
        step = {stage: updates.get(stage, 0) for stage in run.stages}
        for stage in run.stages:
            updates[stage] = updates.get(stage, 0) + 1
        if run.index not in by_index:
            break
        wanted = recorded.first.arrays(run)
        found = made.arrays(by_index[run.index])
        missing = by_index[run.index].own_missing
        differences = []
        # What towers take that the original does not tell of is made of its feeds, and not given to them: where it is
        # made otherwise, the losses tell.
        beside = {
            key[4:]: True
            for key in found
            if key.startswith("own/input/feed/") and key[4:] not in wanted
        }
        for key, sure in {**beside, **agreed}.items():
            own = found.get("own/" + key)
            if not sure or key not in wanted and own is None:
                continue
            if key in shared:
                actual = "other rows"
            elif key in missing:
                actual = "nothing is fed"
            elif own is None or key in wanted and same(own, wanted[key]):
                continue
            else:
                actual = _whose(key, own, wanted)
            tower, name = _place(key)
            expected = _SHARED_OUT if key in shared else _expected(key, tower, wanted)
            differences.append(_differs(run, step, name, tower, expected, actual, key))
        loop = recorded.second.meta.get("style") != "session"
        for what, keys in any_order.items():
            own_rows = [found["own/" + key] for key in keys if "own/" + key in found]
            if len(own_rows) == len(keys) and not _same_in_any_order(
                [wanted[key] for key in keys], own_rows
            ):
                differences.append(
                    _differs(run, step, what, None, _SHARED_OUT, "other rows", keys[0])
                )
        for key in sorted(found) if loop else ():
            name = key[4:]
            if not key.startswith("own/input/") or name not in wanted or agreed.get(name):
                continue
            said = _drawn(name, wanted, found, synthetic)
            if said is not None:
                tower, what = _place(name)
                differences.append(_differs(run, step, what, tower, *said, name))
        if differences:
            return differences
    return []


def _differs(
    run: Run,
    step: dict[int, int],
    name: str,
    tower: int | None,
    expected: str,
    actual: str,
    key: str,
) -> Difference:
    """The difference of one input in a training run."""
    stage = run.stages[0]
    error = float("inf")
    return Difference(
        step[stage], stage, "input", f"input {name}", tower, expected, actual, error, key, run.index
    )


def _in_any_order(recorded: Recorded) -> dict[str, list[str]]:
    """The inputs of loop style of which chance only says which tower gets which rows: by name, the keys of their towers.

    In each run both runs of the original have the same arrays for all towers together, and some towers have others' at
    times.
    """
    if recorded.second.meta.get("style") == "session":
        return {}
    agreed: dict[str, bool] = recorded.second.meta.get("inputs_agreed", {})
    found: dict[str, list[str]] = {}
    for key in sorted(agreed):
        tower, name = _place(key)
        if key.startswith("input/") and tower is not None:
            found.setdefault(name, []).append(key)
    found = {
        name: keys
        for name, keys in found.items()
        if len(keys) > 1 and not all(agreed[key] for key in keys)
    }
    runs = 0
    for run in recorded.first.runs if found else ():
        first = recorded.first.arrays(run)
        second = read_arrays(str(recorded.second.folder), f"own_{run.index:05d}")
        for name, keys in list(found.items()):
            if any(key not in first for key in keys) or not _same_in_any_order(
                [first[key] for key in keys], [second.get("own/" + key, first[key]) for key in keys]
            ):
                del found[name]
        runs += 1
    return found if runs >= _RUNS else {}


def _same_in_any_order(wanted: Sequence[Array], found: Sequence[Array]) -> bool:
    left = list(found)
    for each in wanted:
        at = next((place for place, other in enumerate(left) if same(each, other)), None)
        if at is None:
            return False
        del left[at]
    return not left


def _drawn(key: str, wanted: Arrays, found: Arrays, synthetic: bool) -> tuple[str, str] | None:
    """What is wrong about an input whose rows the original leaves open, None where nothing is."""
    theirs, own = wanted[key], found["own/" + key]
    for what, one, other in (
        ("rank", theirs.ndim, own.ndim),
        ("kind of number", _kind(theirs), _kind(own)),
    ):
        if one != other:
            return f"{what} {one}", f"{what} {other}"
    tower, name = _place(key)
    if synthetic or tower in (None, 0) or theirs.size < _ROWS:
        return None
    for other_key in sorted(wanted):
        other_tower, other_name = (
            _place(other_key) if other_key.startswith("input/") else (None, "")
        )
        if other_name != name or other_tower is None or other_tower >= (tower or 0):
            continue
        twin = found.get("own/" + other_key)
        if twin is not None and same(own, twin) and not same(theirs, wanted[other_key]):
            return f"other rows than tower {other_tower}", f"the rows of tower {other_tower}"
    return None


def _kind(array: Array) -> str:
    return {"f": "float", "i": "integer", "u": "integer", "b": "bool"}.get(array.dtype.kind, "text")


def _place(key: str) -> tuple[int | None, str]:
    """The tower and name of an input; one that is fed or drawn for all towers at once has no tower."""
    _, tower, name = key.split("/", 2)
    if tower.isdigit():
        return int(tower), name
    return None, name if tower == "feed" else f"of {tower}, output {name}"


def _expected(key: str, tower: int | None, wanted: Arrays) -> str:
    if key not in wanted:
        return "nothing is fed"
    return "the original's values" if tower is None else f"the rows of tower {tower}"


def _whose(key: str, own: Array, wanted: Arrays) -> str:
    tower, name = _place(key)
    others = [
        other
        for other in wanted
        if other.startswith("input/") and other.endswith("/" + name) and same(own, wanted[other])
    ]
    if tower is None or not others:
        return "other values" if tower is None else "other rows"
    return f"the rows of tower {others[0].split('/')[1]}"


def inputs_not_compared(recorded: Recorded) -> list[str]:
    """Inputs of which the recorded ones were given to both programs, and why: the original does not fix them."""
    agreed: dict[str, bool] = recorded.second.meta.get("inputs_agreed", {})
    shared: list[str] = recorded.second.meta.get("shared_inputs", [])
    session = recorded.second.meta.get("style") == "session"
    drawn = {
        _place(key)[1]
        for run in recorded.first.runs[:1]
        for key in recorded.first.arrays(run)
        if key.startswith("input/") and key not in agreed and not session
    }
    any_order = _in_any_order(recorded)
    other = {_place(key)[1] for key, same in agreed.items() if not same} - any_order.keys()
    return (
        [
            f"input {name}: drawn from a queue or an iterator, in an order that is not fixed; the recorded "
            "rows were given to both programs"
            for name in sorted(drawn)
        ]
        + [
            f"input {name}: two runs of the original have different rows; the recorded ones were given to "
            "both programs"
            for name in sorted(other)
        ]
        + [
            f"input {_place(key)[1]}: which tower gets which rows is chance; the recorded ones were given to both "
            "programs"
            for key in [
                *(each for each in shared if agreed[each]),
                *(keys[0] for keys in any_order.values()),
            ]
        ]
    )
