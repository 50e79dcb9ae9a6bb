"""The temporary folders that a program makes: their names are chance, so they go by the order in which they are made."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import functools
import os
import sys
import tempfile
from typing import Any, Dict

MARK = "temporary folder "


class Temporary:
    """The folders that files of one tree make by `tempfile`, by the name that they go by."""

    def __init__(self) -> None:
        self.folders: Dict[str, str] = {}

    def begin(self, tree: str) -> None:
        """Note every temporary folder from now on; libraries' own are not the program's."""
        make = tempfile.mkdtemp
        inside = tuple({tree + os.sep, os.path.realpath(tree) + os.sep})

        @functools.wraps(make)
        def noted(*args: Any, **kwargs: Any) -> Any:
            folder = make(*args, **kwargs)
            if isinstance(folder, str) and _is_asked_for_by(inside):
                self.folders["%s%d" % (MARK, len(self.folders) + 1)] = folder
            return folder

        tempfile.mkdtemp = noted

    def path(self, tree: str, name: str) -> str:
        """Where a file is that goes by this name: in a temporary folder, or in the tree."""
        first, _, rest = name.partition(os.sep)
        if first in self.folders:
            return os.path.join(self.folders[first], rest)
        return os.path.join(tree, name)

    def named(self, text: str) -> str:
        """A text in which the folders go by their names."""
        for name, folder in self.folders.items():
            text = text.replace(folder, name)
        return text


def _is_asked_for_by(folders: Any) -> bool:
    """Whether a file of these folders called; `tempfile` itself may stand between."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == tempfile.__file__:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return False
    return os.path.abspath(frame.f_code.co_filename).startswith(folders)
