"""Keeps a program's own Python from changing files outside of some folders, and says which it wanted to.

What TensorFlow's C++ and other processes write is not seen here, but by the kernel where it can (`fence.py`).
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import builtins
import functools
import io
import os
import sys
from typing import Any, Callable, List, Tuple

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# The functions of `os` that change files, with how many of their first arguments are paths.
_CHANGES = {
    "remove": 1,
    "unlink": 1,
    "rename": 2,
    "replace": 2,
    "rmdir": 1,
    "mkdir": 1,
    "link": 2,
    "symlink": 2,
    "truncate": 1,
    "chmod": 1,
    "chown": 1,
    "utime": 1,
}


def fence(folders: List[str]) -> None:
    """From here on, changing a file outside of `folders` raises PermissionError."""
    kept = [os.path.realpath(folder) + os.sep for folder in [*folders, "/dev", "/proc"]]

    def check(path: Any, folder: Any = None) -> None:
        if isinstance(path, int) or path is None:
            return
        path = os.fsdecode(path)
        if isinstance(folder, int) and folder >= 0:
            path = os.path.join(_path_of(folder), path)
        # The last part may be a link that is itself removed or replaced.
        where, name = os.path.split(os.path.abspath(path))
        real = os.path.join(os.path.realpath(where), name)
        if not any((real + os.sep).startswith(each) for each in kept):
            raise PermissionError(13, "Permission denied", path)

    if hasattr(sys, "addaudithook"):
        sys.addaudithook(functools.partial(_audit, check))  # type: ignore[attr-defined,unused-ignore]
    else:
        _replace_functions(check)


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink("/proc/self/fd/%d" % descriptor)
    except OSError:
        import fcntl

        got = fcntl.fcntl(descriptor, 50, bytes(1024))  # F_GETPATH, macOS
        return got.rstrip(b"\0").decode()


def _audit(check: Callable[..., None], event: str, arguments: Tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITING and not isinstance(path, int):
            check(os.path.realpath(os.fsdecode(path)))
        return
    kind, _, name = event.partition(".")
    paths = _CHANGES.get(name, 0) if kind == "os" else 0
    for place in range(paths):
        if name in ("symlink", "link") and place == 0:
            continue  # what the link points to stays as it is
        folder = arguments[paths + place] if len(arguments) > paths + place else None
        check(arguments[place], folder if name in ("remove", "rmdir", "rename") else None)


def _replace_functions(check: Callable[..., None]) -> None:
    """As the audit hook, for Python 3.6 and 3.7, which have none."""

    def changing(function: Callable[..., Any], paths: int, skipped: int) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            for place, path in enumerate(arguments[:paths]):
                if place >= skipped:
                    check(path, named.get("dir_fd", named.get("src_dir_fd")))
            return function(*arguments, **named)

        # No method where a class has it for an attribute, as `pathlib` does.
        return functools.partial(checked)

    for name, paths in _CHANGES.items():
        skipped = 1 if name in ("symlink", "link") else 0
        setattr(os, name, changing(getattr(os, name), paths, skipped))
    opened, os_opened = io.open, os.open

    @functools.wraps(opened)
    def open_checked(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if not isinstance(file, int) and set(mode) & set("wax+"):
            check(os.path.realpath(os.fsdecode(file)))
        return opened(file, mode, *arguments, **named)

    @functools.wraps(os_opened)
    def os_open_checked(path: Any, flags: int, *arguments: Any, **named: Any) -> Any:
        if flags & _WRITING:
            check(path, named.get("dir_fd"))
        return os_opened(path, flags, *arguments, **named)

    builtins.open = io.open = open_checked  # type: ignore[assignment,unused-ignore]
    os.open = os_open_checked
