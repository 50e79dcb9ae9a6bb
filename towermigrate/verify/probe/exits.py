"""The functions that a program registers to be called at its end: `verify` ends the process at once, behind them."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import atexit
import os
import sys
from typing import Any, Callable, List, Tuple


class Exits:
    """What files of the tree register by `atexit` in one process since `begin`; libraries' own stay with Python."""

    def __init__(self) -> None:
        self._tree = ""
        self._process = -1
        self._functions: List[Tuple[Callable[..., Any], Any, Any]] = []

    def begin(self, tree: str) -> None:
        self._tree = os.path.join(os.path.realpath(tree), "")
        self._process = os.getpid()
        module: Any = atexit
        register, unregister = module.register, module.unregister

        def registers(function: Any, *args: Any, **kwargs: Any) -> Any:
            if not callable(function) or not self._is_own(sys._getframe(1)):
                return register(function, *args, **kwargs)
            self._functions.append((function, args, kwargs))
            return function

        def unregisters(function: Any) -> None:
            self._functions[:] = [each for each in self._functions if each[0] != function]
            unregister(function)

        module.register, module.unregister = registers, unregisters

    def run(self) -> None:
        """Call them as Python does at the end: the last one first, whatever one of them raises."""
        while self._functions and os.getpid() == self._process:
            function, args, kwargs = self._functions.pop()
            try:
                function(*args, **kwargs)
            except SystemExit:
                continue
            except Exception:
                sys.excepthook(*sys.exc_info())

    def _is_own(self, frame: Any) -> bool:
        path: str = frame.f_code.co_filename
        return os.path.realpath(path).startswith(self._tree)


EXITS = Exits()
