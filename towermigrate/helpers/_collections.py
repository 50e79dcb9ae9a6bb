"""Graph collections that belong to one tower.

In TF1 every collection is the graph's. Here the replicas of a step share one `FuncGraph`, so what
one tower collects (summaries, losses, update ops) would be seen by the next. A tower gets
collections of its own, by
thread: TensorFlow traces each replica in its own thread, and changes threads in the middle of a
tower when the tower makes a `merge_call`.
"""

import contextlib
import threading
from collections.abc import Iterator, MutableMapping
from typing import Any

import tensorflow as tf

_CARRIED = (tf.compat.v1.GraphKeys.GLOBAL_STEP,)


class _TowerCollections(MutableMapping[Any, list[Any]]):
    """Stands in for `Graph._collections`: this thread's innermost tower's, else the graph's."""

    def __init__(self, shared: MutableMapping[Any, list[Any]]) -> None:
        self._shared = shared
        self._threads = threading.local()

    @property
    def towers(self) -> list[dict[Any, list[Any]]]:
        if not hasattr(self._threads, "towers"):
            self._threads.towers = []
        towers: list[dict[Any, list[Any]]] = self._threads.towers
        return towers

    @property
    def _current(self) -> MutableMapping[Any, list[Any]]:
        return self.towers[-1] if self.towers else self._shared

    def __getitem__(self, key: Any) -> list[Any]:
        return self._current[key]

    def __setitem__(self, key: Any, value: list[Any]) -> None:
        self._current[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._current[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._current)

    def __len__(self) -> int:
        return len(self._current)


@contextlib.contextmanager
def private_collections(graph: Any) -> Iterator[None]:
    """Give this thread empty collections in `graph` until the end of the block."""
    if not isinstance(graph._collections, _TowerCollections):
        graph._collections = _TowerCollections(graph._collections)
    collections: _TowerCollections = graph._collections
    own = {key: list(collections[key]) for key in _CARRIED if key in collections}
    towers = collections.towers
    towers.append(own)
    try:
        yield
    finally:
        towers.pop()
