"""Where a program shuffles: queues and data sets that mix rows, and tensors whose rows are mixed.

What is made stateless (`randomness.py`) is the same in each run and is not noted: install this first.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import functools
import importlib
from typing import Any, Callable, Dict, List

# Functions of TensorFlow by module, with the kind of shuffle and the argument that says over how many rows it goes.
_MAKERS = (
    ("gen_data_flow_ops", "random_shuffle_queue", "queue", "min_after_dequeue"),
    ("gen_data_flow_ops", "random_shuffle_queue_v2", "queue", "min_after_dequeue"),
    ("gen_dataset_ops", "shuffle_dataset", "dataset", "buffer_size"),
    ("gen_dataset_ops", "shuffle_dataset_v2", "dataset", "buffer_size"),
    ("gen_dataset_ops", "shuffle_dataset_v3", "dataset", "buffer_size"),
    ("gen_dataset_ops", "shuffle_and_repeat_dataset", "dataset", "buffer_size"),
    ("gen_dataset_ops", "shuffle_and_repeat_dataset_v2", "dataset", "buffer_size"),
    ("gen_random_ops", "random_shuffle", "rows", ""),
)
# The places of arguments that may come without their names, in all of these functions that have them.
_PLACES = {"buffer_size": 1, "seed": 2, "seed2": 3}


class Shuffles:
    """The shuffles of one process, put into `meta["shuffles"]` as they are made.

    Each is `[kind, size, seeded]`: `size` is the number of rows that are mixed at the least, None where only the
    running program knows; `seeded` says whether the order is the same in each run, as far as it is this one's.
    """

    def __init__(self, meta: Dict[str, Any]) -> None:
        self.all: List[List[Any]] = []
        meta["shuffles"] = self.all

    def install(self) -> None:
        for module, name, kind, size in _MAKERS:
            try:
                here: Any = importlib.import_module("tensorflow.python.ops." + module)
            except ImportError:  # TensorFlow 1.0 has no data sets
                continue
            for known in (name, "_" + name):  # TensorFlow 1.3 hides some
                if hasattr(here, known):
                    setattr(here, known, self._noting(getattr(here, known), kind, size))

    def _noting(self, original: Callable[..., Any], kind: str, size: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def made(*args: Any, **kwargs: Any) -> Any:
            given = {name: args[place] for name, place in _PLACES.items() if place < len(args)}
            if kind == "rows":
                given = dict(zip(("value", "seed", "seed2"), args))  # noqa: B905
            given.update(kwargs)
            rows = _rows(given.get("value")) if kind == "rows" else _number(given.get(size))
            seeds = [given.get(name) for name in ("seed", "seed2")]
            found = [kind, rows, not all(seed is None or _number(seed) == 0 for seed in seeds)]
            if found not in self.all:
                self.all.append(found)
            return original(*args, **kwargs)

        return made


def _number(value: Any) -> Any:
    """A number that is known before the program runs; a seed that is computed is none of the two zeros of no seed."""
    from tensorflow.python.framework import tensor_util

    try:
        if hasattr(value, "dtype") and hasattr(value, "graph"):
            value = tensor_util.constant_value(value)
        elif hasattr(value, "numpy"):
            value = value.numpy()
        return None if value is None else int(value)
    except Exception:  # a tensor of another kind of graph
        return None


def _rows(value: Any) -> Any:
    try:
        return int(value.get_shape().as_list()[0])
    except Exception:  # not known, or no tensor yet
        return None
