"""Work of many parts that two processes share: this one, and one that it forks."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import ClassVar, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pair(Generic[Item, Result]):
    """Items that two processes work on: each takes the next part when it is done with one.

    The other process begins at once; this one takes its share when it asks for `results`. The numbers of the parts
    stand in a pipe, one byte each, so that no part is taken twice. What `work` raises in the other process ends that
    process, and its parts are missing in the results.

    Args:
        items: what there is to work on.
        work: gives the result of one; those of the other process are pickled.
        size: how large an item is, to begin with the largest.
        pack: of an item and its result, what is sent in place of the result.
        unpack: of an item and what was sent, the result.
    """

    running: ClassVar[int] = 0
    """How many second processes there are."""

    def __init__(
        self,
        items: Sequence[Item],
        work: Callable[[Item], Result],
        *,
        size: Callable[[Item], int] = lambda _: 0,
        pack: Callable[[Item, Result], Result] = lambda _, result: result,
        unpack: Callable[[Item, Result], Result] = lambda _, result: result,
    ) -> None:
        self.items = frozenset(items)
        self._work = work
        self._unpack = unpack
        # The largest first: what comes last decides how long one process waits for the other.
        ordered = sorted(items, key=lambda item: -size(item))
        count = min(len(ordered), 256)
        self._parts = [ordered[number::count] for number in range(count)]
        self._numbers, sink = os.pipe()
        os.write(sink, bytes(range(count)))
        os.close(sink)
        self._source, sink = os.pipe()
        self._pid: int | None
        try:
            self._pid = os.fork()
        except OSError:  # there may be no more processes: then this one does all
            self._pid = None
        if self._pid == 0:
            try:
                os.close(self._source)
                results = [
                    (number, [pack(item, one) for item, one in part])
                    for number, part in self._take()
                ]
                with os.fdopen(sink, "wb") as pipe:
                    pickle.dump(results, pipe, pickle.HIGHEST_PROTOCOL)
                os._exit(0)
            finally:
                os._exit(1)
        Pair.running += self._pid is not None
        self._has_ended = False
        os.close(sink)
        self._pipes = [self._source, self._numbers]

    @staticmethod
    def may_start() -> bool:
        """Whether there is a second process to be had: none of another pair is running, two are enough."""
        return not Pair.running and hasattr(os, "fork")

    def _take(self) -> Iterator[tuple[int, list[tuple[Item, Result]]]]:
        """Work on part after part until none is left; gives the number of each and its results."""
        while byte := os.read(self._numbers, 1):
            yield byte[0], [(item, self._work(item)) for item in self._parts[byte[0]]]

    def results(self) -> Iterator[tuple[Item, Result]]:
        """What this process works on, then what the other has; nothing of it where it was killed."""
        for _, part in self._take():
            yield from part
        try:
            with os.fdopen(self._source, "rb", closefd=False) as pipe:
                others: list[tuple[int, list[Result]]] = pickle.load(pipe)
        except Exception:  # it was killed, for want of memory perhaps, or what it said is cut off
            return
        self._has_ended = True
        for number, found in others:
            for item, one in zip(self._parts[number], found, strict=True):
                yield item, self._unpack(item, one)

    def end(self) -> None:
        """End the process, whatever it is doing."""
        if self._pid is not None:
            # It is gone already where this process was told not to wait for its children.
            with suppress(ProcessLookupError, ChildProcessError):
                if not self._has_ended:  # else another process may have its number
                    os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._pid = None
            Pair.running -= 1
        while self._pipes:
            os.close(self._pipes.pop())
