"""How often each queue, iterator or other source of inputs is drawn from, as the training runs go on."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import collections
import threading
from typing import Any, Dict, Iterable

# What is drawn by chance, from no queue and no iterator.
CHANCE = "random operations"


class Draws:
    """Counts by source, put into `meta["draws_of"]` at each training run.

    Only the main thread's runs count, and those that train: how far queue runners are ahead is chance.
    """

    def __init__(self, meta: Dict[str, Any]) -> None:
        self.counts: Any = collections.Counter()
        self._at: Dict[str, Dict[str, int]] = meta.setdefault("draws_of", {})

    def drawn(self, sources: Iterable[str], trains: bool = False) -> None:
        """One run drew from each of these sources."""
        if trains or threading.current_thread() is threading.main_thread():
            self.counts.update(sources)

    def at(self, run: int) -> None:
        """Keep what was drawn by now: by the training run of this number, and all before it."""
        self._at[str(run)] = dict(self.counts)
