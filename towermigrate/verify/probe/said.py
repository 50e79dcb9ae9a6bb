"""What a program itself says on its standard error and by `logging`; what libraries say there is left out.

A text counts as the program's own where the frame that writes it, or that asks for the log record, is of a file of its
tree. What Python's own library writes for a program (`json.dump(value, sys.stderr)`, `warnings.warn`, a traceback) is the
program's. Both TensorFlow's and Abseil's loggers are Python's.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import logging
import os
import re
import sys
from typing import Any, Dict, List

from .kept import Bytes

# The files by which a call of a program comes to a log record.
_BETWEEN = re.compile(
    r"[/\\](?:logging[/\\]__init__|tf_logging|absl[/\\]logging[/\\]\w+)\.py$|[/\\]six[^/\\]*\.py$"
)
# TensorFlow's hooks log what the program had them look at.
_HOOKS = "basic_session_run_hooks.py"
_STANDARD = os.path.join(os.path.realpath(os.path.dirname(os.__file__)), "")
_MOST_LINES = 10000
# What libraries say is known by these many different lines, to be left out of the program's own log files.
_MOST_KNOWN = 2000


class Said:
    """The lines of one process since `begin`: the program's own, and those of libraries."""

    def __init__(self) -> None:
        self._tree = ""
        self._text: List[str] = []
        self._count = 0
        self.of_libraries: List[str] = []
        self.of_hooks = False
        self._known: Dict[str, bool] = {}
        self._standard: Dict[str, bool] = {}

    def begin(self, tree: str) -> None:
        self._tree = os.path.join(os.path.realpath(tree), "")
        standard, heard = sys.stderr is sys.__stderr__, _Heard(sys.stderr, self)
        sys.stderr = heard
        if standard:
            vars(sys)["__stderr__"] = heard
        logger_class: Any = logging.Logger
        original = logger_class.callHandlers

        def call_handlers(logger: Any, record: Any) -> Any:
            self._record(record)
            return original(logger, record)

        logger_class.callHandlers = call_handlers

    def text(self) -> str:
        return "".join(self._text)

    def write(self, text: str, frame: Any) -> None:
        """Keep what is written from `frame`, if that is one of the program's own."""
        if self._count >= _MOST_LINES:
            return
        by = ""
        while frame is not None and self._is_standard(frame.f_code.co_filename):
            by = by or os.path.basename(frame.f_code.co_filename)
            if os.sep + "logging" + os.sep in frame.f_code.co_filename:
                return  # the record was kept
            frame = frame.f_back
        if not self._is_own(frame):
            return
        # Where it stands in the program, and what stands there, is other text in a rewritten one.
        if by == "warnings.py":
            if ": UserWarning: " not in text:
                return  # NumPy's C code warns in the program's frame, each version of other things
            text = text.split("\n")[0] + "\n"
        elif by == "traceback.py" and (text[:1].isspace() or text.startswith("Traceback (")):
            return
        self._text.append(text)
        self._count += text.count("\n")

    def is_whole(self) -> bool:
        """Whether nothing was left out since there is too much of it."""
        return self._count < _MOST_LINES

    def _is_own(self, frame: Any) -> bool:
        return frame is not None and self._is_of_tree(frame.f_code.co_filename)

    def _is_standard(self, path: str) -> bool:
        """Whether a file is of Python's own library."""
        if path not in self._standard:
            inside = path.startswith("<frozen") or os.path.realpath(path).startswith(_STANDARD)
            parts = path.split(os.sep)
            self._standard[path] = inside and not {"site-packages", "dist-packages"} & set(parts)
        return self._standard[path]

    def _is_of_tree(self, path: str) -> bool:
        if path not in self._known:
            self._known[path] = os.path.realpath(path).startswith(self._tree)
        return self._known[path]

    def _record(self, record: Any) -> None:
        frame: Any = sys._getframe(2)
        while frame is not None and _BETWEEN.search(frame.f_code.co_filename):
            frame = frame.f_back
        try:
            text = "%s: %s\n" % (record.levelname, record.getMessage())
        except Exception:  # logging tells the program so
            return
        if frame is not None and frame.f_code.co_filename.endswith(_HOOKS):
            self.of_hooks = True
        if self._is_own(frame):
            self.write(text, frame)
        elif len(self.of_libraries) < _MOST_KNOWN:
            lines = text.partition(": ")[2].split("\n")
            self.of_libraries += [
                line for line in lines if line.strip() and line not in self.of_libraries
            ]


class _Heard:
    """A standard error that also tells who writes to it."""

    def __init__(self, stream: Any, said: Said) -> None:
        self._stream = stream
        self._said = said

    def write(self, text: Any) -> Any:
        if isinstance(text, str):
            self._said.write(text, sys._getframe(1))
        return self._stream.write(text)

    def writelines(self, texts: Any) -> None:
        texts = list(texts)
        for text in texts:
            self._said.write(text, sys._getframe(1))
        self._stream.writelines(texts)

    @property
    def buffer(self) -> Any:
        return Bytes(self._stream.buffer, self._said.write)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
