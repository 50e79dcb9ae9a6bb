"""Runs a command that can change files only below some folders; whatever it starts is held to the same.

A program under verification may clear its training folder, and that folder may be named absolutely. On Linux the
kernel refuses (`guardian/`): Python, TensorFlow's C++ and shells alike get "Permission denied". The probe refuses
what Python itself is asked to do everywhere (`probe/fencing.py`), and names the whole path.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from towermigrate.verify.guardian.landlock import landlock_version

# The package `guardian` is all that is imported: at the end of the path it hides no module.
_START = "import sys; sys.path.append({!r}); from guardian.main import main; main(sys.argv[1:])"

_DENIED = re.compile(
    r"Permission denied: (?:'[^'\n]*' -> )?'(?P<python>/[^'\n]+)'"
    r"|(?P<tensorflow>/[^;:'\"\n]*?); (?:Permission denied|Invalid cross-device link)"
    r"|cannot \w+ '?(?P<shell>/[^'\n:]+)'?: Permission denied"
)


def fence_version() -> int:
    """The version of Landlock that the kernel has; 0 where it has none, or this is not Linux."""
    return landlock_version()


@functools.lru_cache(maxsize=1)
def asks_guardian() -> bool:
    """Whether the kernel asks before each change of a file (seccomp); tried once."""
    if sys.platform != "linux":
        return False
    reading, writing = os.pipe()
    try:
        command = fenced(["true"], [], report=writing, seccomp=True)
        subprocess.run(command, pass_fds=(writing,), capture_output=True, check=False)
        os.close(writing)
        return bool(json.loads(os.read(reading, 65536) or b"{}").get("asked"))
    except (OSError, ValueError):
        return False
    finally:
        os.close(reading)


def protection(asked: bool) -> str:
    """What keeps programs from changing the user's files, in words.

    Args:
        asked: whether the kernel did ask (`asks_guardian`).
    """
    if fence_version() and asked:
        return "by the kernel (Landlock and seccomp): Python, C++ and other processes alike"
    if asked:
        return (
            "by the kernel (seccomp; it has no Landlock): Python, C++ and other processes alike, but for "
            "programs that set out to get around it"
        )
    if fence_version():
        return (
            "by the kernel (Landlock): Python, C++ and other processes alike; modes, owners and times of files for "
            "Python only"
        )
    return (
        "for Python only: what C++ (tf.io.gfile, savers) and other processes change was not refused"
    )


def fenced(
    command: Sequence[str],
    folders: Iterable[Path] | None,
    *,
    report: int | None = None,
    scratch: Path | None = None,
    seccomp: bool | None = None,
) -> list[str]:
    """The command that runs `command` so that it can change files below `folders` only, and ends all it starts.

    Args:
        folders: None for no limits.
        report: the descriptor to which is written how it ended.
        scratch: a folder to be removed should this process be killed.
        seccomp: whether the kernel is to ask; None where it can.

    Raises:
        FileNotFoundError: the program to run is not there.
    """
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(2, "No such file or directory", command[0])
    if sys.platform != "linux":
        return list(command)
    asked = {
        "folders": None if folders is None else [str(folder) for folder in folders],
        "landlock": bool(fence_version()),
        "seccomp": asks_guardian() if seccomp is None else seccomp,
        "report": report,
        "scratch": None if scratch is None else str(scratch),
    }
    start = _START.format(str(Path(__file__).parent))
    return [sys.executable, "-I", "-S", "-c", start, json.dumps(asked), *command]


def refused_paths(output: str, folders: Iterable[Path], known: Iterable[str] = ()) -> list[str]:
    """The paths outside of `folders` that a program was not allowed to change.

    Args:
        output: what the program printed; where nobody knows better, it says so itself.
        known: what is known to have been refused.
    """
    kept = [os.path.realpath(folder) for folder in folders]
    found: dict[str, None] = {}
    said = [next(group for group in match.groups() if group) for match in _DENIED.finditer(output)]
    sure = list(known)
    for name in (*sure, *said):
        path = Path(name)
        try:
            nearest = path
            while not os.path.exists(nearest) and nearest != nearest.parent:
                nearest = nearest.parent
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):
            continue
        ours = any(real.is_relative_to(each) for each in kept) and name not in sure
        # What this user could not have changed anyway was not refused by the fence.
        if os.access(nearest, os.W_OK) and not ours:
            found[str(path)] = None
    return list(found)
