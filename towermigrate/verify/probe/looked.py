"""What runs that train nothing gave back to the program: its evaluations, and what it asks of the graph."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import re
import threading
from typing import Any, Dict, List, Tuple

import numpy as np

from .feeding import POOL
from .operations import closure
from .outputs import returned

# Their values are chance, or which rows are drawn; both are another affair in another style.
_CHANCE = re.compile(r"Random|Normal|Multinomial|Shuffle")
_MOST = 2000
_MOST_NUMBERS = 4096


class Looked:
    """The numbers of one process, by how often it had trained, the number of the run since then, and their place in it."""

    def __init__(self, arrays: Dict[str, Any], asked: Dict[str, Any]) -> None:
        self.arrays = arrays
        self.asked = asked
        self._runs: Dict[int, int] = {}
        self._asked: Dict[int, int] = {}
        self._fixed: Dict[Tuple[Any, ...], bool] = {}

    def note(self, index: int, result: Any) -> None:
        """Keep what a run gave back before the training run of a number."""
        if threading.current_thread() is not threading.main_thread() or len(self.arrays) >= _MOST:
            return
        try:
            numbers = returned(result)
        except Exception:  # a value for each replica, say, is no number
            return
        run = self._runs.get(index, 0)
        self._runs[index] = run + 1
        for place, array in enumerate(numbers.values()):
            if array.size:
                kept = array if array.size <= _MOST_NUMBERS else array.ravel()[:_MOST_NUMBERS]
                self.arrays["%d|%d|%d" % (index, run, place)] = np.array(kept)

    def fed(self, index: int, feed_dict: Any) -> None:
        """Keep what such a run was fed, by how often there was training and the number of the run since then: of each placeholder
        the first numbers, and the shape and the sums of all."""
        if threading.current_thread() is not threading.main_thread() or len(self.asked) >= _MOST:
            return
        if not isinstance(feed_dict, dict) or not feed_dict:
            return
        run = self._asked.get(index, 0)
        self._asked[index] = run + 1
        for key, value in feed_dict.items():
            name = getattr(key, "name", key)
            try:
                array = np.asarray(value)
            except Exception:  # TensorFlow says so
                continue
            if not isinstance(name, str) or array.dtype.kind not in "fiub":
                continue
            numbers = array.astype(np.float64)
            place = "%d|%d|%s" % (index, run, name)
            self.asked[place] = numbers.ravel()[:_MOST_NUMBERS].copy()
            self.asked[place + "|all"] = np.array(
                [float(each) for each in array.shape] + [numbers.sum(), np.abs(numbers).sum()]
            )

    def is_fixed(self, session: Any, fetches: Any, feed_dict: Any) -> bool:
        """Whether what a session's run gives is neither chance nor drawn of an input."""
        from tensorflow.python.client import session as session_module

        try:
            with session.graph.as_default():
                mapper = session_module._FetchMapper.for_fetch(fetches)
            wanted: List[Any] = mapper.unique_fetches()
            fed = {getattr(key, "name", key): True for key in feed_dict or {}}
            known = (session.graph, tuple(each.name for each in wanted), tuple(sorted(fed)))
        except Exception:  # what cannot be fetched is said by TensorFlow
            return False
        if known not in self._fixed:
            reached, _ = closure([getattr(each, "op", each) for each in wanted], fed)
            kinds = {op.type for op in reached}
            self._fixed[known] = not any(
                POOL.search(each) or _CHANCE.search(each) for each in kinds
            )
        return self._fixed[known]
