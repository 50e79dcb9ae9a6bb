"""Write and read a recording: a folder of `.npz` arrays and one `meta.json`, no pickle."""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import json
import os
import platform
from typing import Any, Dict, Optional

import numpy as np

from .doings import DOINGS


class TraceWriter:
    """Writes one recording: `initial.npz`, `run_00000.npz`, …, `meta.json`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.meta: Dict[str, Any] = {
            "tensorflow": "",
            "python": platform.python_version(),
            "runs": [],
            "variables": {},
            "ended": None,
            "error": None,
            "notes": [],
        }
        if not os.path.isdir(folder):
            os.makedirs(folder)

    def arrays(self, name: str, arrays: Dict[str, Any]) -> None:
        path = os.path.join(self.folder, name + ".npz")
        plain = {key: np.asarray(value) for key, value in arrays.items()}
        # Objects (strings from a session) would need pickle: keep them as bytes.
        for key, value in plain.items():
            if value.dtype == object:
                plain[key] = value.astype(np.bytes_)
        with open(path, "wb") as file:
            savez: Any = np.savez
            savez(file, **plain)

    def finish(self, ended: str, error: Optional[str] = None) -> None:
        self.meta["ended"] = ended
        self.meta["error"] = error
        self.meta["printed"] = DOINGS.lines()
        self.meta["files"] = DOINGS.files()
        self.arrays("events", DOINGS.events(self.meta["files"]))
        self.arrays("checkpoints", DOINGS.checkpoints(self.meta["files"]))
        path = os.path.join(self.folder, "meta.json")
        with open(path + ".part", "w") as file:
            json.dump(self.meta, file)
        os.replace(path + ".part", path)


def read_arrays(folder: str, name: str) -> Dict[str, Any]:
    """All arrays of one file of a recording; an empty dict where there is no such file."""
    path = os.path.join(folder, name + ".npz")
    if not os.path.exists(path):
        return {}
    with np.load(path, allow_pickle=False) as data:
        return {key: data[key] for key in data.files}


def read_meta(folder: str) -> Dict[str, Any]:
    with open(os.path.join(folder, "meta.json")) as file:
        meta: Dict[str, Any] = json.load(file)
    return meta


def same(first: Any, second: Any) -> bool:
    """Whether two arrays are equal, NaN for NaN."""
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        return False
    return bool(np.all((first == second) | ((first != first) & (second != second))))
