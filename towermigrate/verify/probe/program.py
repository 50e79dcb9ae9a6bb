"""Run a program as `__main__`, in the same way whether it is the original or the rewritten one."""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import os
import random
import runpy
import sys
import traceback
from typing import List, Optional

import numpy as np

from .doings import DOINGS
from .fencing import fence


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
            traceback.print_exc()
            return "the program left with exit code %s" % (stop.code,)
    except Exception as error:
        traceback.print_exc()
        return "%s: %s" % (type(error).__name__, error)
    return None


def leave(code: int) -> None:
    """End the process at once: queue runners and prefetch threads of the program must not hold it up."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
