"""Keep what stands in the files that a program wrote, beside the recording: `written/00000`, … and which is which.

Checkpoints and event files are read as such; graphs that TensorFlow writes down are another one in every rewrite.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import gc
import io
import os
import re
from typing import Any, Callable, Dict, List

# Of one file and of all together, in bytes; beyond that a file is named and not compared.
_MOST_OF_ONE = 8 * 2**20
_MOST = 128 * 2**20
_MOST_FILES = 2000
_READ_ELSEWHERE = re.compile(
    r"events\.out\.tfevents\.[^/]*$|\.(?:data-\d+-of-\d+|index|meta)$|(?:^|/)graph\.pbtxt$"
)
_WRITERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_open = open  # the program may replace it


def flush_files() -> None:
    """Write out what is still in the buffers of Python's open files: the program may be stopped while it writes."""
    for each in gc.get_objects():
        if type(each) in _WRITERS:
            try:
                if not each.closed and each.writable():
                    each.flush()
            except Exception:  # detached, or of a pipe that is closed
                continue


def keep_contents(
    folder: str, files: List[str], path_of: Callable[[str], str], named: Callable[[str], str]
) -> Dict[str, Any]:
    """Copy files into `folder`; by name the number of the copy, or in words why there is none.

    Args:
        path_of: where a file is.
        named: a text without the names of folders that are others in each run.
    """
    found: Dict[str, Any] = {}
    size = 0
    for name in files:
        if _READ_ELSEWHERE.search(name):
            continue
        path = path_of(name)
        try:
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            length = os.path.getsize(path)
            if length > _MOST_OF_ONE or size + length > _MOST or len(found) >= _MOST_FILES:
                found[name] = "it is too large"
                continue
            with _open(path, "rb") as file:
                data = file.read(_MOST_OF_ONE)
        except OSError as error:
            found[name] = "it cannot be read (%s)" % error.strerror
            continue
        size += length
        number = sum(1 for each in found.values() if isinstance(each, int))
        try:
            text = data.decode("utf-8")
            data = data if "\0" in text else named(text).encode("utf-8")
        except UnicodeDecodeError:
            pass
        if not os.path.isdir(folder):
            os.makedirs(folder)
        with _open(os.path.join(folder, "%05d" % number), "wb") as file:
            file.write(data)
        found[name] = number
    return found
