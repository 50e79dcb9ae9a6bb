"""Run a program as `__main__`, in the same way whether it is the original or the rewritten one."""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import os
import random
import runpy
import sys
import traceback
from typing import Any, List, Optional

import numpy as np

from .doings import DOINGS
from .fencing import fence

_OWN_FRAMES = 6
_exit = os._exit  # the program may replace it


def run_program(
    entry: str, arguments: List[str], fenced: Optional[List[str]] = None
) -> Optional[str]:
    """Run `entry` as `__main__` with the same NumPy and Python seeds in every program. None or the error.

    `fenced` are the only folders below which it may change files.
    """
    np.random.seed(0)
    random.seed(0)
    sys.argv = [entry] + arguments
    sys.path[0] = os.path.dirname(os.path.abspath(entry))
    DOINGS.begin(os.getcwd())
    if fenced is not None:
        fence(fenced)
    try:
        runpy.run_path(entry, run_name="__main__")
    except SystemExit as stop:
        if stop.code not in (None, 0):
            _print_error()
            return "the program left with exit code %s" % (stop.code,)
    except BaseException as error:
        _print_error()
        return "%s: %s" % (type(error).__name__, error)
    return None


def _print_error() -> None:
    """The traceback, from the program's own first line on."""
    kind, error, trace = sys.exc_info()
    for _ in range(_OWN_FRAMES):  # of this file and of `runpy`
        if trace is not None and trace.tb_next is not None and _is_ours(trace):
            trace = trace.tb_next
    try:
        traceback.print_exception(kind, error, trace)
    except Exception:  # the program has closed its standard error
        pass


def _is_ours(trace: Any) -> bool:
    path = trace.tb_frame.f_code.co_filename
    return path == __file__ or "runpy" in path


def leave(code: int) -> None:
    """End the process at once: queue runners and prefetch threads of the program must not hold it up."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed, or none
            pass
    _exit(code)
