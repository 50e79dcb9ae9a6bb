"""What a program finds in its process and may replace: modules, where they come from, and functions."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import builtins
import os
import sys
from typing import Any, Dict, List


class Surroundings:
    """Remembers them before the program, and puts them back to write the recording."""

    def __init__(self) -> None:
        self._begun = False
        self._modules: Dict[str, Any] = {}
        self._lists: List[Any] = []
        self._functions: List[Any] = []

    def begin(self) -> None:
        self._begun = True
        self._modules = dict(sys.modules)
        self._lists = [(each, list(each)) for each in (sys.path, sys.meta_path, sys.path_hooks)]
        self._functions = [(each, dict(vars(each))) for each in (builtins, os)]

    def restore(self) -> None:
        """As it was at `begin`; what came since stays."""
        if not self._begun:
            return
        for kept, values in self._lists:
            kept[:] = values
        sys.path, sys.meta_path, sys.path_hooks = [kept for kept, _ in self._lists]
        for module, names in self._functions:
            vars(module).update(names)
        sys.modules.update(self._modules)


SURROUNDINGS = Surroundings()
