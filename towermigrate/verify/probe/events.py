"""What a program wrote into its event files: every summary's numbers, by folder, tag and step."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import functools
import importlib
import os
import struct
import sys
import zlib
from typing import Any, Callable, Dict, List

import numpy as np

MARK = "events.out.tfevents."
# Event files beyond this size (bytes, all together) are listed but not read.
_MOST_READ = 256 * 2**20
# Images of more points than this (of each channel one) are known by their sizes only.
_MOST_POINTS = 2**18
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

    A scalar is one number; a histogram its count, least, largest, sum and sum of squares; an image its points, of
    bytes; a text itself. What comes several times gets a number behind it.
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
        size = [value.image.height, value.image.width, value.image.colorspace]
        return _points(value.image.encoded_image_string, size)
    if kind == "tensor":
        array = tensor_util.MakeNdarray(value.tensor)
        return array if array.dtype.kind in "fiub" else array.astype(np.bytes_)
    return None


def _points(encoded: bytes, size: List[int]) -> Any:
    """The points of a PNG, as TensorFlow writes it: bytes; only its size where it is none of that kind, or large."""
    points = np.prod(size)
    if encoded[:8] != b"\x89PNG\r\n\x1a\n" or not 0 < points <= _MOST_POINTS:
        return np.array(size)
    data, place, header = b"", 8, b""
    while place + 8 <= len(encoded):
        (length,) = struct.unpack(">I", encoded[place : place + 4])
        kind, part = encoded[place + 4 : place + 8], encoded[place + 8 : place + 8 + length]
        header = part if kind == b"IHDR" else header
        data += part if kind == b"IDAT" else b""
        place += 12 + length
    height, width, channels = size
    if header[8:9] != b"\x08" or header[12:13] != b"\x00":
        return np.array(size)  # of two bytes for a point, or interlaced
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    made = np.zeros((height, width * channels), np.uint8)
    for number, row in enumerate(rows):
        above = made[number - 1] if number else np.zeros(width * channels, np.uint8)
        made[number] = _unfiltered(row[0], row[1:], above, channels)
    return made.reshape(height, width, channels)


def _unfiltered(how: Any, row: Any, above: Any, channels: int) -> Any:
    """A row of a PNG as it was before it was filtered (RFC 2083, section 6)."""
    if how == 0:
        return row
    if how == 2:
        return row + above
    line = [int(each) for each in row]
    over = [int(each) for each in above]
    for k in range(len(line)):
        left = line[k - channels] if k >= channels else 0
        corner = over[k - channels] if k >= channels else 0
        if how == 1:
            guess = left
        elif how == 3:
            guess = (left + over[k]) // 2
        else:
            by = left + over[k] - corner
            near = [abs(by - each) for each in (left, over[k], corner)]
            guess = (left, over[k], corner)[near.index(min(near))]
        line[k] = (line[k] + guess) & 255
    return np.array(line, np.uint8)
