"""Keeps a program's own Python from changing files outside of some folders, and says which it wanted to.

For systems whose kernel does not ask at each change (`fence.py`). What TensorFlow's C++ and other processes write is
not seen here.
"""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import builtins
import functools
import io
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# The functions of `os` that change files: the places of each path and of the folder it starts from among the
# arguments of the audit event, and whether a link there is followed.
_CHANGES: Dict[str, List[Tuple[int, Optional[int], bool]]] = {
    "remove": [(0, 1, False)],
    "unlink": [(0, 1, False)],
    "rename": [(0, 2, False), (1, 3, False)],
    "replace": [(0, 2, False), (1, 3, False)],
    "rmdir": [(0, 1, False)],
    "mkdir": [(0, 2, False)],
    "link": [(0, 2, False), (1, 3, False)],  # the first can be written through the second
    "symlink": [(1, 2, False)],  # what the link points to stays as it is
    "truncate": [(0, None, True)],
    "chmod": [(0, 2, True)],
    "chown": [(0, 3, True)],
    "utime": [(0, 3, True)],
    "setxattr": [(0, None, True)],
    "removexattr": [(0, None, True)],
}
# Of these, those that make a name, and change nothing where it is there already.
_MAKING = ("mkdir", "symlink")
_DEVICES = ("/dev", "/proc")
_SHARED = "/dev/shm/"


def fence(folders: List[str]) -> None:
    """From here on, changing a file outside of `folders` raises PermissionError."""
    kept = [os.path.realpath(folder) + os.sep for folder in [*folders, *_DEVICES]]
    own = [os.path.realpath(folder) + os.sep for folder in folders]
    shared_before = os.listdir(_SHARED) if os.path.isdir(_SHARED) else []
    # The functions as they are now: the program may replace them.
    realpath, abspath, join, split = os.path.realpath, os.path.abspath, os.path.join, os.path.split
    decode, separator, there = os.fsdecode, os.sep, os.path.lexists

    def check(path: Any, folder: Any = None, follows: bool = False, makes: bool = False) -> None:
        if path is None:
            return
        if isinstance(path, int):
            path, follows = _path_of(path), False
            if not path.startswith("/"):
                return  # a pipe, a socket
        path = decode(path)
        if isinstance(folder, int) and folder >= 0:
            path = join(_path_of(folder), path)
        # The last part may be a link that is itself removed or replaced.
        where, name = split(abspath(path))
        real = join(realpath(where), name)
        if follows:
            real = realpath(real)
        inside = any((real + separator).startswith(each) for each in kept)
        if inside and real.startswith(_SHARED):
            inside = real.split("/")[3] not in shared_before
            inside = inside or any((real + separator).startswith(each) for each in own)
        if not inside and not (makes and there(real)):
            # The whole path: it is read by who looks for what was refused.
            shown = path if path.startswith("/") and not follows else real
            raise PermissionError(13, "Permission denied", shown)

    if hasattr(sys, "addaudithook"):
        _check_folder_of_open(check)
        sys.addaudithook(functools.partial(_audit, check, os.getppid()))  # type: ignore[attr-defined,unused-ignore]
    else:
        _replace_functions(check)


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink("/proc/self/fd/%d" % descriptor)
    except OSError:
        import fcntl

        got = fcntl.fcntl(descriptor, 50, bytes(1024))  # F_GETPATH, macOS
        return got.rstrip(b"\0").decode()


def _audit(check: Callable[..., None], parent: int, event: str, arguments: Tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITING and not isinstance(path, int):
            check(path, None, True)
        return
    kind, _, name = event.partition(".")
    if kind != "os":
        return
    if name in ("kill", "killpg") and arguments[0] in (-1, parent) and arguments[1]:
        raise PermissionError(1, "Operation not permitted: a signal to process %d" % arguments[0])
    for place, at, follows in _CHANGES.get(name, ()):
        folder = arguments[at] if at is not None and len(arguments) > at else None
        check(arguments[place], folder, follows, name in _MAKING)


def _check_folder_of_open(check: Callable[..., None]) -> None:
    """`os.open` tells the audit hook nothing of `dir_fd`."""
    opened = os.open

    @functools.wraps(opened)
    def open_checked(path: Any, flags: int, *arguments: Any, **named: Any) -> Any:
        folder = named.get("dir_fd")
        if folder is not None and flags & _WRITING:
            check(path, folder, True)
        return opened(path, flags, *arguments, **named)

    os.open = open_checked


def _replace_functions(check: Callable[..., None]) -> None:
    """As the audit hook, for Python 3.6 and 3.7, which have none."""

    def changing(
        function: Callable[..., Any], places: Any, makes: bool = False
    ) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            for place, _, follows in places:
                if place < len(arguments):
                    folder = named.get("dst_dir_fd" if place else "src_dir_fd")
                    check(arguments[place], named.get("dir_fd", folder), follows, makes)
            return function(*arguments, **named)

        # No method where a class has it for an attribute, as `pathlib` does.
        return functools.partial(checked)

    for name, places in _CHANGES.items():
        if hasattr(os, name):
            setattr(os, name, changing(getattr(os, name), places, name in _MAKING))
    for name in ("fchmod", "fchown", "lchown"):
        if hasattr(os, name):
            setattr(os, name, changing(getattr(os, name), [(0, None, False)]))
    opened, os_opened = io.open, os.open

    @functools.wraps(opened)
    def open_checked(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if not isinstance(file, int) and set(mode) & set("wax+"):
            check(file, None, True)
        return opened(file, mode, *arguments, **named)

    @functools.wraps(os_opened)
    def os_open_checked(path: Any, flags: int, *arguments: Any, **named: Any) -> Any:
        if flags & _WRITING:
            check(path, named.get("dir_fd"), True)
        return os_opened(path, flags, *arguments, **named)

    builtins.open = io.open = open_checked  # type: ignore[assignment,unused-ignore]
    os.open = os_open_checked
