"""Runs a command that can change files only below some folders; whatever it starts is held to the same.

A program under verification may clear its training folder, and that folder may be named absolutely. On Linux the
kernel refuses (Landlock, since 5.13, without privileges): Python, TensorFlow's C++ and shells alike get
"Permission denied". The probe refuses what Python itself is asked to do everywhere (`probe/fencing.py`), and names
the whole path.

This file also is a script, for the Python that runs `verify`: `fence.py FOLDER... -- COMMAND...`. It has no imports
but the standard library's and starts in milliseconds.

Source: https://docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import os
import re
import shutil
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_VERSION = 1
_PATH_BENEATH = 1
_WRITE_FILE = 1 << 1
_CHANGES_OF_FOLDERS = sum(1 << bit for bit in range(4, 13))  # remove and make entries of every kind
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_SET_DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 1, 38

# Devices (null, shm, GPUs) and what a process says of itself; no file of the user's is there.
_SYSTEM = ("/dev", "/proc")

_DENIED = re.compile(
    r"Permission denied: (?:'[^'\n]*' -> )?'(?P<python>/[^'\n]+)'"
    r"|(?P<tensorflow>/[^;:'\"\n]*?); (?:Permission denied|Invalid cross-device link)"
    r"|cannot \w+ '?(?P<shell>/[^'\n:]+)'?: Permission denied"
)


def fence_version() -> int:
    """The version of Landlock that the kernel has; 0 where it has none, or this is not Linux."""
    if sys.platform != "linux":
        return 0
    try:
        found: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION)
    except (OSError, AttributeError):
        return 0
    return max(found, 0)


def fenced(command: Sequence[str], folders: Iterable[Path]) -> list[str]:
    """The command that runs `command` so that it can change files below `folders` only.

    Raises:
        FileNotFoundError: the program to run is not there.
    """
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(2, "No such file or directory", command[0])
    if not fence_version():
        return list(command)
    return [sys.executable, "-I", "-S", __file__, *map(str, folders), "--", *command]


def refused_paths(output: str, folders: Iterable[Path]) -> list[str]:
    """The paths outside of `folders` that a program's output says it was not allowed to change."""
    kept = [os.path.realpath(folder) for folder in folders]
    found: dict[str, None] = {}
    for match in _DENIED.finditer(output):
        path = Path(next(group for group in match.groups() if group))
        nearest = path
        while not os.path.exists(nearest) and nearest != nearest.parent:
            nearest = nearest.parent
        try:
            real = Path(os.path.realpath(path))
        except OSError:
            continue
        # What this user could not have changed anyway was not refused by the fence.
        if os.access(nearest, os.W_OK) and not any(real.is_relative_to(each) for each in kept):
            found[str(path)] = None
    return list(found)


def restrict(folders: Sequence[str]) -> None:
    """Hold this process, and all that it starts, to changing files below `folders`.

    Raises:
        OSError: the kernel would not.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = fence_version()
    handled = _WRITE_FILE | _CHANGES_OF_FOLDERS
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    rules = _checked(libc, _CREATE_RULESET, struct.pack("=Q", handled), 8, 0)
    for folder in (*folders, *_SYSTEM):
        if not os.path.exists(folder):
            continue
        opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)  # type: ignore[attr-defined,unused-ignore]
        allowed = handled if os.path.isdir(folder) else handled & (_WRITE_FILE | _TRUNCATE)
        _checked(libc, _ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", allowed, opened), 0)
        os.close(opened)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _checked(libc, _RESTRICT_SELF, rules, 0)
    os.close(rules)


def _checked(libc: ctypes.CDLL, *call: object) -> int:
    result: int = libc.syscall(*call)
    if result < 0:
        raise OSError(ctypes.get_errno(), "Landlock: " + os.strerror(ctypes.get_errno()))
    return result


def _main(arguments: list[str]) -> None:
    split = arguments.index("--")
    # Should verify itself be killed, its program does not train on.
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, 9, 0, 0, 0)
    restrict(arguments[:split])
    command = arguments[split + 1 :]
    os.execvp(command[0], command)


if __name__ == "__main__":
    _main(sys.argv[1:])
