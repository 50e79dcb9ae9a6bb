"""Run a program as `__main__`, in the same way whether it is the original or the rewritten one."""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import os
import random
import runpy
import sys
import traceback
from typing import Callable, List, Optional

import numpy as np

from .doings import DOINGS
from .exits import EXITS
from .fencing import fence
from .surroundings import SURROUNDINGS

_OWN_FILES = (__file__, os.path.join(os.path.dirname(__file__), "fencing.py"), "runpy")
# Not one that programs give themselves: that one who begins to would stay unseen.
_SEED = 1299709
_exit = os._exit  # the program may replace it


def _never() -> bool:
    return False


def run_program(
    entry: str,
    arguments: List[str],
    fenced: Optional[List[str]] = None,
    trained: Callable[[], bool] = _never,
) -> Optional[str]:
    """Run `entry` as `__main__` with the same NumPy and Python seeds in every program. None or the error.

    `fenced` are the only folders below which it may change files. Once it has `trained`, a program may leave with any
    exit code: that is its own end, to be compared, and no error.
    """
    np.random.seed(_SEED)
    random.seed(_SEED)
    sys.argv = [entry] + arguments
    sys.path[0] = os.path.dirname(os.path.abspath(entry))
    DOINGS.begin(os.getcwd())
    if fenced is not None:
        fence(fenced)
    SURROUNDINGS.begin()
    try:
        try:
            runpy.run_path(entry, run_name="__main__")
            EXITS.run()
        finally:
            SURROUNDINGS.restore()
    except SystemExit as stop:
        if stop.code in (None, 0):
            EXITS.run()
        else:
            if trained():
                EXITS.run()
                DOINGS.left_with(stop.code)
                return None
            _print_error()
            return "the program left with exit code %s" % (stop.code,)
    except BaseException as error:
        _print_error()
        try:
            return "%s: %s" % (type(error).__name__, error)
        except Exception:  # it cannot even say what it is
            return type(error).__name__
    return None


def _print_error() -> None:
    """The traceback, without the frames of what runs and fences the program."""
    try:
        lines = traceback.format_exception(*sys.exc_info())
        sys.stderr.write("".join(line for line in lines if not _is_ours(line)))
    except Exception:  # the program has closed its standard error
        pass


def _is_ours(line: str) -> bool:
    return line.startswith('  File "') and any(path in line.split("\n")[0] for path in _OWN_FILES)


def leave(code: int) -> None:
    """End the process at once: queue runners and prefetch threads of the program must not hold it up."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed, or none
            pass
    _exit(code)
