"""Write and read a recording: a folder of `.npz` arrays and one `meta.json`, no pickle."""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import json
import os
import platform
import time
from typing import Any, Dict, List, Optional

import numpy as np

from .doings import DOINGS
from .stored import LARGE, read_file, write_file
from .surroundings import SURROUNDINGS

FAILED_WORKER = "failed.json"
"""Which of several workers failed, and how, in the folder of the recording."""
# The functions as they are at the start: the program may replace them.
_open, _replace, _exit, _write = open, os.replace, os._exit, os.write
_exists, _sleep = os.path.exists, time.sleep


class TraceWriter:
    """Writes one recording: `initial.npz`, `run_00000.npz`, …, `meta.json`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.looked: Dict[str, Any] = {}
        """What runs that train nothing gave back (`looked.Looked`)."""
        self.asked: Dict[str, Any] = {}
        """What they were fed."""
        self.meta: Dict[str, Any] = {
            "tensorflow": "",
            "python": platform.python_version(),
            "day": time.strftime("%Y-%m-%d"),
            "runs": [],
            # Those too that were not recorded.
            "training_runs": 0,
            "variables": {},
            "ended": None,
            "error": None,
            "notes": [],
        }
        if not os.path.isdir(folder):
            os.makedirs(folder)

    def arrays(self, name: str, arrays: Dict[str, Any]) -> None:
        """Write one file of arrays."""
        try:
            self._arrays(name, arrays)
        except OSError as error:
            _give_up(error)

    def _arrays(self, name: str, arrays: Dict[str, Any]) -> None:
        path = os.path.join(self.folder, name + ".npz")
        plain = {key: np.asarray(value) for key, value in arrays.items()}
        # Objects (strings from a session) would need pickle: keep them as bytes.
        for key, value in plain.items():
            if value.dtype == object:
                plain[key] = value.astype(np.bytes_)
        write_file(path, plain)

    def replayed(self, index: int, arrays: Dict[str, Any], recorded: Dict[str, Any]) -> List[str]:
        """Write the arrays of a run that repeats a recorded one. Large ones with its bits are left to that recording.

        Returns:
            The keys of those.
        """
        found = {key: np.asarray(value) for key, value in arrays.items()}
        left = [
            key for key in sorted(found) if _same_bits(found[key], recorded.get(of_recorded(key)))
        ]
        self.arrays("run_%05d" % index, {k: v for k, v in found.items() if k not in left})
        return left

    def finish(self, ended: str, error: Optional[str] = None) -> None:
        """Write the description, which says that the recording is whole."""
        SURROUNDINGS.restore()
        try:
            self._finish(ended, error)
        except OSError as problem:
            _give_up(problem)

    def _finish(self, ended: str, error: Optional[str]) -> None:
        self.meta["ended"] = ended
        self.meta["error"] = error
        self.meta["exit_code"] = DOINGS.exit_code
        whole = ended == "program"
        self.meta["files"] = DOINGS.files()
        self.meta["places"] = DOINGS.places()
        self.meta["began_with"] = DOINGS.began_with()
        self.meta["printed"] = DOINGS.lines(whole)
        self.meta["said"] = DOINGS.said(whole)
        self.meta["of_libraries"] = DOINGS.of_libraries()
        self.meta["cut"] = DOINGS.cut()
        self.meta["clock"] = DOINGS.asks_the_time()
        self.meta["seconds"] = DOINGS.seconds()
        self.meta["hooks_log"] = DOINGS.of_hooks()
        self.meta["beneath"] = DOINGS.beneath()
        folder = os.path.join(self.folder, "written")
        self.meta["contents"] = DOINGS.contents(folder, self.meta["files"])
        self.arrays("looked", self.looked)
        self.arrays("asked", self.asked)
        self.arrays("events", DOINGS.events(self.meta["files"]))
        self.arrays("checkpoints", DOINGS.checkpoints(self.meta["files"]))
        path = os.path.join(self.folder, "meta.json")
        with _open(path + ".part", "w") as file:
            json.dump(self.meta, file)
        _replace(path + ".part", path)


def of_recorded(key: str) -> str:
    """The original's key for what a program that repeats it recorded under `key`: its own inputs are named so."""
    return key[len("own/") :] if key.startswith("own/") else key


def _same_bits(made: Any, recorded: Any) -> bool:
    """Whether a large array is the recorded one, signs of zeros and of NaN too."""
    if recorded is None or made.nbytes < LARGE or made.dtype.kind not in "fiub":
        return False
    if made.dtype != recorded.dtype or made.shape != recorded.shape:
        return False
    if not (made.flags.c_contiguous and recorded.flags.c_contiguous):
        return False
    unsigned = "u%d" % made.dtype.itemsize if made.dtype.itemsize in (1, 2, 4, 8) else "u1"
    first, second = (each.reshape(-1).view(unsigned) for each in (made, recorded))
    return bool(np.array_equal(first, second))


def _give_up(error: OSError) -> None:
    """End the process: the program was not to see an error that is not its own."""
    said = "towermigrate: the recording could not be written: %s\n" % error
    try:
        _write(2, said.encode())
    finally:
        _exit(1)


def relative(recorded: str, folder: str) -> str:
    """Where a recording is, as seen from the folder of the one that repeats it: both may be copied together."""
    return os.path.relpath(os.path.realpath(recorded), os.path.realpath(folder))


def wait_for_recordings(folders: List[str]) -> None:
    """Wait until there is a whole recording in each folder: workers answer each other until all are at their end."""
    while not all(_exists(os.path.join(folder, "meta.json")) for folder in folders):
        _sleep(0.02)


def read_arrays(folder: str, name: str) -> Dict[str, Any]:
    """All arrays of one file of a recording; an empty dict where there is no such file.

    Large ones are mapped, so that they take memory only while they are looked at; a change stays in this process.
    """
    path = os.path.join(folder, name + ".npz")
    if not os.path.exists(path):
        return {}
    return read_file(path)


def read_meta(folder: str) -> Dict[str, Any]:
    with _open(os.path.join(folder, "meta.json")) as file:
        meta: Dict[str, Any] = json.load(file)
    return meta


def same(first: Any, second: Any) -> bool:
    """Whether two arrays are equal, NaN for NaN."""
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        return False
    if first.__array_interface__ == second.__array_interface__:
        return True  # the same memory
    equal = first == second
    if np.all(equal):
        return True
    return bool(np.all(equal | ((first != first) & (second != second))))


def first_that_differs(copies: List[Any]) -> List[Any]:
    """The first copy that is not the first one: its number, and both values where they are farthest apart."""
    arrays = [np.asarray(copy) for copy in copies]
    number = next(k for k, array in enumerate(arrays) if not same(arrays[0], array))
    first, other = (arrays[k].astype(np.float64).ravel() for k in (0, number))
    at = int(np.argmax(np.nan_to_num(np.abs(first - other), nan=np.inf)))
    return [number, float(first[at]), float(other[at])]
