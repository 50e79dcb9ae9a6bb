"""What a program wrote into its event files: every summary's numbers, by folder, tag and step."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import functools
import importlib
import os
import sys
from typing import Any, Callable, Dict, List

import numpy as np

MARK = "events.out.tfevents."
# Event files beyond this size (bytes, all together) are listed but not read.
_MOST_READ = 256 * 2**20
# Held, not only watched: the thread of a writer that the program dropped without closing goes on by itself, and
# whether it is done when the program ends is chance.
_WRITERS: List[Any] = []


def watch_writers() -> None:
    """Note every writer of event files from now on: what it holds back must be in the file when it is read."""
    if "tensorflow" not in sys.modules:
        return  # the probes of programs that may have writers have loaded it; to load it takes seconds
    for module, name in (
        ("event_file_writer", "EventFileWriter"),
        ("event_file_writer_v2", "EventFileWriterV2"),
    ):
        try:
            found = importlib.import_module("tensorflow.python.summary.writer." + module)
        except ImportError:  # TensorFlow 1.3 has the first only
            continue
        _watch(getattr(found, name))


def _watch(cls: Any) -> None:
    init = cls.__init__

    @functools.wraps(init)
    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        _WRITERS.append(self)

    cls.__init__ = noted


def flush_writers() -> None:
    """Bring what was written so far into the files."""
    for writer in _WRITERS:
        try:
            writer.flush()
        except Exception:  # closed, or its session is
            continue


def read_events(place: Callable[[str], str], files: List[str]) -> Dict[str, Any]:
    """The numbers of the event files among `files`, by `FOLDER|TAG|STEP`; `place` says where each is.

    A scalar is one number; a histogram its count, least, largest, sum and sum of squares; an image its height,
    width and number of channels. What comes several times gets a number behind it.
    """
    paths = [path for path in files if os.path.basename(path).startswith(MARK)]
    if not paths or sum(os.path.getsize(place(path)) for path in paths) > _MOST_READ:
        return {}
    import tensorflow as tensorflow
    from tensorflow.python.framework import tensor_util

    tf: Any = getattr(getattr(tensorflow, "compat", None), "v1", tensorflow)
    found: Dict[str, Any] = {}
    for path in paths:
        try:
            for event in tf.train.summary_iterator(place(path)):
                for value in event.summary.value:
                    number = _number(tensor_util, value)
                    if number is not None:
                        key = "%s|%s|%d" % (os.path.dirname(path), value.tag, event.step)
                        found[_free(key, found)] = number
        except Exception:  # one that is being written
            continue
    return found


def _free(key: str, taken: Dict[str, Any]) -> str:
    number = 1
    name = key
    while name in taken:
        number += 1
        name = "%s|%d" % (key, number)
    return name


def _number(tensor_util: Any, value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return np.float64(value.simple_value)
    if kind == "histo":
        histogram = value.histo
        return np.array(
            [
                histogram.num,
                histogram.min,
                histogram.max,
                histogram.sum,
                histogram.sum_squares,
            ],
            np.float64,
        )
    if kind == "image":
        return np.array([value.image.height, value.image.width, value.image.colorspace])
    if kind == "tensor":
        array = tensor_util.MakeNdarray(value.tensor)
        return array if array.dtype.kind in "fiub" else None
    return None
