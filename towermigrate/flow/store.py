"""The state of a run: every write goes through here, so that a branch can be undone and its outcome joined with others.

A write notes what was there before. What a stretch of code changed is then a small table, from which the state after
any number of ways through the program is made, without a copy of the state itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from towermigrate.flow.values import (
    HELD,
    REST,
    WILD,
    Cells,
    Items,
    Key,
    Made,
    Many,
    Perhaps,
    Unknown,
    Value,
    read,
    same,
)

Changes = dict[tuple[int, Key], tuple[Cells, Value]]
"""What is held now by the cells that were written since a mark."""

GONE: Final = Value()
"""What a cell that is not there holds."""

Join = Callable[[Value, Value], Value]


class Store:
    """Cells, and the order in which they were written."""

    def __init__(self) -> None:
        self.touched = 0
        """Cells that were written, compared, joined or undone: what the time of a run goes by."""
        self.by: Callable[[], frozenset[Hashable]] = frozenset
        """What says which way was taken."""
        self._log: list[tuple[Cells, Key, Value]] = []
        self._watches: list[dict[tuple[int, Key], tuple[Cells, list[Value]]]] = []
        self._removed = -1
        """Where in the order a cell was last removed, or behind that."""
        self._found: tuple[Changes, int] = ({}, 0)
        """The changes that were asked for last, and what was touched by then: nothing changed while that is the same."""

    def set(self, cells: Cells, key: Key, value: Value) -> None:
        self.touched += 1
        self._log.append((cells, key, cells.get(key, GONE)))
        if self._watches:
            self.touched += len(self._watches)
            for watch in self._watches:
                watch.setdefault((id(cells), key), (cells, []))[1].append(value)
        if value is GONE:
            self._removed = len(self._log)
            cells.pop(key, None)
        else:
            cells[key] = value

    def write(self, made: Made, key: Key, value: Value, join: Join) -> None:
        """Change what a value holds: for certain, or, of one that stands for several, perhaps."""
        if made.wild:
            return
        old = made.cells.get(key, GONE)
        if made.repeated and not same(old, value):
            value = self.joined(old, value, join)
        self.set(made.cells, key, value)

    def mark(self) -> int:
        return len(self._log)

    def changes(self, mark: int) -> Changes:
        written = self._log[mark:]
        self.touched += len(written)
        first = {(id(cells), key): cells for cells, key, _ in written}
        found = {place: (cells, cells.get(place[1], GONE)) for place, cells in first.items()}
        self._found = (found, self.touched)
        return found

    def pass_over(self, mark: int) -> None:
        """Count what was written since a mark as `changes` does, where nothing is asked about it."""
        self.touched += len(self._log) - mark

    def turned(self, mark: int) -> dict[tuple[int, Key], tuple[Cells, Value, Value]]:
        """What the cells that were written since a mark held then, and hold now."""
        found: dict[tuple[int, Key], tuple[Cells, Value, Value]] = {}
        self.touched += len(self._log) - mark
        for cells, key, old in self._log[mark:]:
            if (id(cells), key) not in found:
                found[id(cells), key] = (cells, old, cells.get(key, GONE))
        return found

    @contextmanager
    def watched(self, join: Join) -> Iterator[Changes]:
        """What each cell may hold where any statement may fail: what it held before, and all that is written to it.

        It is filled in when the block ends.
        """
        mark = self.mark()
        found: Changes = {}
        watch: dict[tuple[int, Key], tuple[Cells, list[Value]]] = {}
        self._watches.append(watch)
        try:
            yield found
        finally:
            self._watches.pop()
            before = {(id(cells), key): old for cells, key, old in reversed(self._log[mark:])}
            for place, (cells, values) in watch.items():
                value = before.get(place, cells.get(place[1], GONE))
                self.touched += len(values)
                for each in values:
                    value = self.joined(value, each, join)
                found[place] = (cells, value)

    def undo(self, mark: int) -> None:
        log = self._log
        self.touched += len(log) - mark
        for number in range(len(log) - 1, mark - 1, -1):
            cells, key, old = log[number]
            if old is GONE:
                cells.pop(key, None)
            else:
                cells[key] = old
        del log[mark:]

    def settle(self, mark: int, way: Changes, join: Join, without: Cells | None = None) -> None:
        """Go on from where only one way comes out that began at a mark: undo what was written, then write what is left of it.

        Args:
            mark: where the way began.
            way: what it changed.
            join: see `merge`.
            without: the cells that end with the way.
        """
        found, touched = self._found
        if found is not way or touched != self.touched or self._removed >= mark:
            self.undo(mark)
            if without is not None:
                way = {place: held for place, held in way.items() if held[0] is not without}
            self.merge([way], join)
            return
        # All cells hold already what the way leaves in them: what is noted of that is put in order.
        written = self._log[mark:]
        self.touched += len(written)
        if without is not None:
            for cells, key, old in [each for each in reversed(written) if each[0] is without]:
                if old is GONE:
                    cells.pop(key, None)
                else:
                    cells[key] = old
        if len(way) < len(written):
            first = {(id(each[0]), each[1]): each for each in reversed(written)}
            written = [first[place] for place in way]
        if without is not None:
            written = [each for each in written if each[0] is not without]
        self._log[mark:] = written
        self.touched += len(written) * (1 + len(self._watches))
        for watch in self._watches:
            for cells, key, _ in written:
                watch.setdefault((id(cells), key), (cells, []))[1].append(cells[key])

    def merge(self, ways: Sequence[Changes], join: Join) -> None:
        """Go on from where several ways meet, each with what it changed since now."""
        if len(ways) == 1:
            for (_, key), (cells, value) in ways[0].items():
                self.set(cells, key, value)
            return
        everywhere: Changes = {}
        for way in ways:
            everywhere.update(way)
        self.touched += len(ways) * len(everywhere)
        for place, (cells, _) in everywhere.items():
            key = place[1]
            now = cells.get(key, GONE)
            found: Value | None = None
            joined = False
            for way in ways:
                there = way.get(place)
                value = now if there is None else there[1]
                if found is None:
                    found = value
                elif found is not value:
                    joined = joined or found is GONE or value is GONE
                    found = self.joined(found, value, join)
            # What is there on some ways only is held otherwise than now, also where it is the same `Perhaps`.
            if found is not None and (joined or found is not now):
                self.set(cells, key, found)

    def joined(self, first: Value, second: Value, join: Join) -> Value:
        """What a cell holds that holds one of two values."""
        if first is second:
            return first
        if first is GONE or second is GONE:
            there = second if first is GONE else first
            by = self.by()
            if not isinstance(there, Perhaps):
                return Perhaps(there, by)
            return there if by <= there.by else Perhaps(there.value, by | there.by)
        value = join(read(first), read(second))
        if isinstance(first, Perhaps):
            by = self.by() | first.by
            return Perhaps(value, by | second.by if isinstance(second, Perhaps) else by)
        return Perhaps(value, self.by() | second.by) if isinstance(second, Perhaps) else value


def let_go(store: Store, made: Made, why: Unknown) -> None:
    """Nothing is known any more of what code that cannot be followed may change."""
    for key in [each for each in made.cells if each != WILD]:
        store.set(made.cells, key, Perhaps(why))
    store.set(
        made.cells,
        HELD if isinstance(made, Items) else REST,
        Many(why) if isinstance(made, Items) else why,
    )
    store.set(made.cells, WILD, why)
