"""What a program writes on a terminal beneath Python, where it is not heard: by TensorFlow's kernels, and by processes.

That it does so is noted, so that it can be said that this was not compared.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import functools
import os
import re
import subprocess
import sys
from typing import Any, Callable, List

PRINTED = "what tf.print and tf.Print write"
OF_PROCESSES = "what the program's own processes write"
# The files by which a program starts a process.
_BETWEEN = re.compile(r"[/\\](?:subprocess|os|popen_\w+|multiprocessing[/\\]\w+)\.py$")


class Beneath:
    """The kinds of such output in one process since `begin`."""

    def __init__(self) -> None:
        self.kinds: List[str] = []
        self._tree = ""

    def begin(self, tree: str) -> None:
        self._tree = os.path.join(os.path.realpath(tree), "")
        # TensorFlow is there before the program is run.
        logging_ops: Any = sys.modules.get("tensorflow.python.ops.gen_logging_ops")
        for name in ("_print", "print_v2"):
            if hasattr(logging_ops, name):
                setattr(logging_ops, name, self._noting(getattr(logging_ops, name), PRINTED))
        process: Any = subprocess.Popen
        process.__init__ = self._noting(process.__init__, OF_PROCESSES)
        for name in ("system", "fork"):
            if hasattr(os, name):
                setattr(os, name, self._noting(getattr(os, name), OF_PROCESSES))

    def _noting(self, original: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def noted(*args: Any, **kwargs: Any) -> Any:
            if kind not in self.kinds and (kind == PRINTED or self._is_of_program()):
                self.kinds.append(kind)
            return original(*args, **kwargs)

        return noted

    def _is_of_program(self) -> bool:
        """Whether a file of the program's starts a process, and no library for an affair of its own."""
        frame: Any = sys._getframe(2)
        while frame is not None and _BETWEEN.search(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return False
        path: str = frame.f_code.co_filename
        return os.path.realpath(path).startswith(self._tree)
