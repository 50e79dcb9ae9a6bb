"""What a program does for people to see: the lines that it prints and the files that it writes.

Both are kept in the recording: lines of `print` and of everything else that Python writes to its standard output,
what it says on its standard error (`said.py`), without the folder of the scratch copy, and the files that are new or
changed with what stands in them (`contents.py`), checkpoints by tensor.
"""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import os
import sys
from typing import Any, Dict, List, Optional, Tuple

from .beneath import Beneath
from .clocks import asks_the_time, named_by_clock, now
from .contents import flush_files, keep_contents
from .events import flush_writers, read_events, watch_writers
from .exits import EXITS
from .kept import Bytes, keep_writes
from .places import NOT_WRITTEN, places_of
from .said import Said
from .temporary import Temporary

_MOST_LINES = 10000
_MOST_NAMES = 10000
TAKEN_AWAY = "nothing: it was taken away"
# Checkpoints beyond this size (bytes, all together) are listed but not read.
_MOST_READ = 512 * 2**20
# A part of a name that is shorter may stand in a line by chance.
_LONG_ENOUGH = 8


class _Kept:
    """A standard output that also keeps what goes through it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._text: List[str] = []
        self.count = 0

    def keep(self, text: str, frame: Any = None) -> None:
        if self.count < _MOST_LINES:
            self._text.append(text)
            self.count += text.count("\n") + text.count("\r")

    def write(self, text: str) -> Any:
        self.keep(text)
        return self._stream.write(text)

    def writelines(self, texts: Any) -> None:
        for text in texts:
            self.write(text)

    def text(self) -> str:
        return "".join(self._text)

    @property
    def buffer(self) -> Any:
        return Bytes(self._stream.buffer, self.keep)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Doings:
    """What the program of this process has printed and written since `begin`."""

    def __init__(self) -> None:
        self._tree = ""
        self._kept: Optional[_Kept] = None
        self._before: Dict[str, Tuple[int, int]] = {}
        self._places: Dict[str, str] = {}
        self._temporary = Temporary()
        self._said = Said()
        self._beneath = Beneath()
        self._began = 0.0
        self._clock = True
        # Files that are named after the time: their own names by what they are called here, and parts of them the other way.
        self._own_names: Dict[str, str] = {}
        self._clocks: Dict[str, str] = {}
        self.exit_code: Any = 0

    def begin(self, tree: str) -> None:
        self._tree = tree
        self._began = now()
        self._clock = asks_the_time(tree)
        self._before = _files(tree)
        self._places = places_of(tree, str)
        watch_writers()
        self._temporary.begin(tree)
        self._kept = _Kept(sys.stdout)
        if sys.__stdout__ is sys.stdout:
            vars(sys)["__stdout__"] = self._kept
        sys.stdout = self._kept
        self._said.begin(tree)
        keep_writes({1: self._kept.keep, 2: self._said.write}, tree)
        self._beneath.begin(tree)
        EXITS.begin(tree)

    def left_with(self, code: Any) -> None:
        """Note what the program gave to `sys.exit`: a number, or words for its standard error and the number 1."""
        self.exit_code = code if isinstance(code, int) else self._named(str(code))

    def lines(self, whole: bool = False) -> List[str]:
        """What was printed; to the last whole line, or where the program ended by itself (`whole`) to the end."""
        return [] if self._kept is None else self._lines(self._kept.text(), whole)

    def said(self, whole: bool = False) -> List[str]:
        """What the program itself said on its standard error and by `logging`."""
        return [] if self._kept is None else self._lines(self._said.text(), whole)

    def of_libraries(self) -> List[str]:
        """The lines of libraries' log records."""
        return self._said.of_libraries

    def of_hooks(self) -> bool:
        """Whether TensorFlow's hooks log something, which is compared nowhere."""
        return self._said.of_hooks

    def asks_the_time(self) -> bool:
        """Whether a file of the tree may ask how late it is, so that numbers may be durations."""
        return self._clock

    def seconds(self) -> float:
        """How long the program ran until now."""
        return now() - self._began

    def cut(self) -> List[str]:
        """What is so long that its end was left out."""
        found = []
        if self._kept is not None and self._kept.count >= _MOST_LINES:
            found.append("what the program prints")
        if not self._said.is_whole():
            found.append("what the program says on standard error")
        return found

    def beneath(self) -> List[str]:
        """What it writes on a terminal that is not heard here (`beneath.py`)."""
        return self._beneath.kinds

    def _lines(self, text: str, whole: bool) -> List[str]:
        lines = self._named(text).split("\n")
        if not whole or not lines[-1]:
            del lines[-1]
        return lines[:_MOST_LINES]

    def _named(self, text: str) -> str:
        for folder in sorted({self._tree, os.path.realpath(self._tree)}, key=len, reverse=True):
            text = text.replace(folder, ".")
        for own in sorted(self._clocks, key=len, reverse=True):
            text = text.replace(own, self._clocks[own])
        return self._temporary.named(text)

    def contents(self, folder: str, files: List[str]) -> Dict[str, Any]:
        """Keep what stands in `files`, below `folder` (`contents.py`)."""
        return keep_contents(folder, files, self._path, self._named)

    def files(self) -> List[str]:
        """The files of the tree that are new or were changed, and those in the program's temporary folders.

        One that is named after the time has the same name in each run (`clocks.py`), which `lines` know afterwards.
        """
        if self._kept is None:
            return []
        flush_writers()
        flush_files()
        found = [
            path for path, seen in _files(self._tree).items() if self._before.get(path) != seen
        ]
        for name, folder in self._temporary.folders.items():
            found += [os.path.join(name, path) for path in _files(folder)]
        plain, clocks = named_by_clock(found, self._began, now())
        self._clocks = {own: name for own, name in clocks.items() if len(own) >= _LONG_ENOUGH}
        for own, name in plain.items():
            if own != name:
                for end in ("", ".index"):  # a checkpoint is asked for without it
                    if name.endswith(end):
                        self._own_names[name[: len(name) - len(end)]] = own[: len(own) - len(end)]
        return sorted(plain.values())

    def places(self) -> Dict[str, str]:
        """What it made of places that are no plain files, and took away, by name; `files` is asked first."""
        if self._kept is None:
            return {}
        now_there = places_of(self._tree, self._named)
        found = {name: what for name, what in now_there.items() if self._places.get(name) != what}
        there = _files(self._tree)
        found.update((name, TAKEN_AWAY) for name in self._before if name not in there)
        return found

    def began_with(self) -> List[str]:
        """The files that the tree held before the program; none where they are very many."""
        return sorted(self._before) if len(self._before) <= _MOST_NAMES else []

    def _path(self, name: str) -> str:
        return self._temporary.path(self._tree, self._own_names.get(name, name))

    def events(self, files: List[str]) -> Dict[str, Any]:
        """The numbers in the event files among `files` (`events.py`)."""
        return read_events(self._path, files)

    def checkpoints(self, files: List[str]) -> Dict[str, Any]:
        """Every tensor of the checkpoints among `files`, by `PATH|NAME`."""
        paths = [path[: -len(".index")] for path in files if path.endswith(".index")]
        size = 0
        for path in files:
            if ".data-" in path:
                size += os.path.getsize(self._path(path))
        if not paths or size > _MOST_READ:
            return {}
        import tensorflow as tf

        # TensorFlow 1.3 has the second only.
        load: Any = getattr(tf.train, "load_checkpoint", None) or tf.train.NewCheckpointReader
        found = {}
        for path in paths:
            try:
                reader = load(self._path(path))
                for name in reader.get_variable_to_shape_map():
                    found["%s|%s" % (path, name)] = reader.get_tensor(name)
            except Exception:  # no checkpoint, or one that is being written
                continue
        return found


DOINGS = Doings()


def _files(tree: str) -> Dict[str, Tuple[int, int]]:
    found = {}
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in NOT_WRITTEN]
        for name in names:
            path = os.path.join(folder, name)
            try:
                seen = os.lstat(path)
            except OSError:
                continue
            found[os.path.relpath(path, tree)] = (seen.st_mtime_ns, seen.st_size)
    return found
