"""How many batches a program takes from each of its inputs, between one training run and the next.

Both programs train on recorded rows, so a batch more or less shows in no number.
"""

from __future__ import annotations

from collections.abc import Iterator

from towermigrate.verify.comparison import BATCHES_TAKEN, Difference, of_input
from towermigrate.verify.probe.draws import CHANCE
from towermigrate.verify.programs import Recorded
from towermigrate.verify.trace import Trace

# For each source the batches taken for each training run in turn.
_Taken = dict[str, list[int]]


def draws_differences(recorded: Recorded, made: Trace) -> list[Difference]:
    """The first training run for which another number of batches is taken."""
    return list(_unlike(recorded, made))[:1]


def draws_not_compared(recorded: Recorded, made: Trace) -> list[str]:
    """Why the number of batches could not be compared, where the original takes any."""
    first, again, ours = _all_taken(recorded, made)
    if not any(map(any, first.values())):
        return []
    if recorded.first.meta.get("draws_unknown"):
        return [
            "number of batches taken: it has runs that train nothing beyond those that were counted"
        ]
    sources = [name for name in first if first[name] != again.get(name)]
    if sources:
        named = ", ".join(sources[:3])
        return [f"number of batches taken: two runs of the original take others from {named}"]
    if not any(map(any, ours.values())):
        return [
            "number of batches taken: the rewritten program takes them by other means than were watched"
        ]
    if _is_session(recorded.first) and not _is_session(made):
        return ["number of batches taken: it is counted otherwise in programs written by hand"]
    return []


def _unlike(recorded: Recorded, made: Trace) -> Iterator[Difference]:
    first, _, ours = _all_taken(recorded, made)
    if not any(map(any, first.values())) or draws_not_compared(recorded, made):
        return
    if _is_session(recorded.first):
        for name in first:
            if name in ours:
                yield from _first_unlike(
                    recorded, f"{BATCHES_TAKEN[6:]} of {name}", first[name], ours[name]
                )
        return
    # A source of the rewritten program may draw from several of the original's, as often from each.
    wanted, found = (
        {tuple(each) for each in taken.values() if any(each)} for taken in (first, ours)
    )
    if wanted != found:
        missing, more = sorted(wanted - found), sorted(found - wanted)
        if len(wanted) == len(found) == 1:
            yield from _first_unlike(recorded, BATCHES_TAKEN[6:], missing[0], more[0])
            return
        yield _difference(
            recorded,
            BATCHES_TAKEN[6:],
            0,
            _said_all(missing) or "no more of them",
            _said_all(more) or "none taken so",
        )


def _first_unlike(
    recorded: Recorded,
    name: str,
    wanted: list[int] | tuple[int, ...],
    found: list[int] | tuple[int, ...],
) -> Iterator[Difference]:
    for step, (drawn, own) in enumerate(zip(wanted, found, strict=False)):
        if drawn != own:
            said = [f"{count} batches taken for it" for count in (drawn, own)]
            yield _difference(recorded, name, step, *said)
            return


def _said_all(taken: list[tuple[int, ...]]) -> str:
    return " and ".join(
        f"{', '.join(map(str, each[:10]))} batches for the runs in turn" for each in taken
    )


def _all_taken(recorded: Recorded, made: Trace) -> tuple[_Taken, _Taken, _Taken]:
    """What both runs of the original take, and what the rewritten program does."""
    first, again, ours = (
        _taken(recorded, each) for each in (recorded.first, recorded.second, made)
    )
    for taken in (first, again):
        # What a random operation gives is taken with the rest, or made where it is used.
        if len(taken) > 1 or not any(map(any, ours.values())):
            taken.pop(CHANCE, None)
    return first, again, ours


def _taken(recorded: Recorded, trace: Trace) -> _Taken:
    """By source, for as many of the original's runs as a program counted."""
    counted = trace.meta.get("draws_of", {})
    taken: _Taken = {}
    last: dict[str, int] = {}
    for number, run in enumerate(recorded.first.runs):
        here: dict[str, int] | None = counted.get(str(run.index))
        if here is None:
            break
        for name in {**last, **here}:
            # One that was not there before had no draws.
            known = taken.setdefault(name, [0] * number)
            known.append(here.get(name, 0) - last.get(name, 0))
        last = here
    return taken


def _is_session(trace: Trace) -> bool:
    return trace.meta.get("style") == "session"


def _difference(recorded: Recorded, name: str, step: int, expected: str, actual: str) -> Difference:
    key = f"input/0/{name}"
    return of_input(recorded.first, f"input {name}", key, expected, actual, step=step)
