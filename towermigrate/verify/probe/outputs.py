"""What a run gave back to the program, as numbers that can be compared."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

from typing import Any, Dict

import numpy as np


def numbers(result: Dict[str, Any]) -> Dict[str, Any]:
    """The values of a run by key; a summary among the outputs becomes the numbers it holds, by tag.

    Other texts that a program fetches are left out.
    """
    found = {}
    for key, value in result.items():
        if not key.startswith("output/") or np.asarray(value).dtype.kind not in "OSU":
            found[key] = value
        elif isinstance(value, bytes):
            found.update(("%s/%s" % (key, tag), each) for tag, each in _summary(value).items())
    return found


def returned(result: Any) -> Dict[str, Any]:
    """The numbers that a training run gave back to the program, in the order that they come in."""
    from tensorflow.python.util import nest  # TensorFlow 1.3 has it nowhere else

    found: Dict[str, Any] = {}
    for value in nest.flatten(result):
        if value is None or isinstance(value, (str, bytes)):
            continue
        array = np.asarray(value)
        if array.dtype.kind in "fiub":
            found["output/%d" % len(found)] = array
    return found


def _summary(text: bytes) -> Dict[str, Any]:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from tensorflow.core.framework.summary_pb2 import Summary

    try:
        values = Summary.FromString(text).value
    except DecodeError:
        return {}
    found = {}
    for each in values:
        if each.HasField("simple_value"):
            found[each.tag] = np.float32(each.simple_value)
        elif each.HasField("histo"):
            histogram = each.histo
            found[each.tag] = np.array([histogram.num, histogram.min, histogram.max, histogram.sum])
    return found
