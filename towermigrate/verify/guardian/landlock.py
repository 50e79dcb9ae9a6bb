"""Holds a process, and all that it starts, to changing files below some folders: Landlock, Linux 5.13 and later.

Needs no privileges. The kernel refuses; Python, TensorFlow's C++ and shells alike get "Permission denied". Modes, owners
and times of files are beyond it (`syscalls.py`).

Source: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterator, Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_VERSION = 1
_PATH_BENEATH = 1
_WRITE_FILE = 1 << 1
_CHANGES_OF_FOLDERS = sum(1 << bit for bit in range(4, 13))  # remove and make entries of every kind
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_SIGNALS = 1 << 1  # to processes that are not held as well
_NO_NEW_PRIVILEGES = 38

# Devices that a user's program writes to; none of them holds files. Disks and the memory are not among them.
_DEVICE_FOLDERS = ("pts", "shm", "mqueue", "dri", "infiniband", "vfio", "accel", "nvidia-caps")
_DANGEROUS = ("mem", "kmem", "port", "kmsg", "fuse", "console")


def landlock_version() -> int:
    """The version of Landlock that the kernel has; 0 where it has none, or this is not Linux."""
    if sys.platform != "linux":
        return 0
    try:
        found: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION)
    except (OSError, AttributeError):
        return 0
    return max(found, 0)


def devices() -> Iterator[str]:
    """The devices that a program may write to, and folders of such."""
    for name in os.listdir("/dev") if os.path.isdir("/dev") else ():
        path = "/dev/" + name
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if stat.S_ISCHR(mode) and name not in _DANGEROUS:
            yield path
        elif stat.S_ISDIR(mode) and name in _DEVICE_FOLDERS:
            yield path


def restrict(folders: Sequence[str]) -> None:
    """Hold this process, and all that it starts, to changing files below `folders`.

    Raises:
        OSError: the kernel would not.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = landlock_version()
    handled = _WRITE_FILE | _CHANGES_OF_FOLDERS
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    rules_wanted = struct.pack("=QQQ", handled, 0, _SIGNALS)
    size = 24 if version >= 6 else 8
    rules = _checked(libc, _CREATE_RULESET, rules_wanted, size, 0)
    for folder in (*folders, *devices(), "/proc/self"):
        if not os.path.exists(folder):
            continue
        opened = os.open(os.path.realpath(folder), os.O_PATH | os.O_CLOEXEC)  # type: ignore[attr-defined,unused-ignore]
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
