"""Whether all towers name the same variables: then they share them, else each has variables of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from towermigrate.towers.domain import Event
from towermigrate.towers.twice import Turns
from towermigrate.towers.values import Key


def differing_name(turns: Turns) -> Event | None:
    """The first place that names a variable of one tower otherwise than of another; None where there is none."""
    first = _by_site(turns.first)
    everywhere = {each.path for each in turns.first if each.what == "names"}
    names = _by_site(turns.other)
    for event in _naming(turns.other):
        here = first.get(event.site)
        if event.path not in everywhere or here is not None and here != names[event.site]:
            return event
    return None


def _naming(events: Iterable[Event]) -> Iterator[Event]:
    return (each for each in events if each.what == "names")


def _by_site(events: Iterable[Event]) -> dict[Key, set[Key]]:
    found: dict[Key, set[Key]] = {}
    for event in _naming(events):
        found.setdefault(event.site, set()).add(event.key)
    return found
