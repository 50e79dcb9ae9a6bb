"""What an exception of ours becomes: a finding of the one file that was worked on, with the text to report."""

from __future__ import annotations

import traceback
from pathlib import Path

from towermigrate.findings import Finding

_PACKAGE = Path(__file__).parent
_LONGEST = 200
"""Characters of an exception's own text: some hold a whole syntax tree."""


def fault(path: str, error: Exception, line: int = 1) -> Finding:
    """The finding (TM100) of a file at which a pass raised an exception.

    Args:
        path: the file that was worked on.
        error: what was raised.
        line: the line of the program that was worked on, where it was one of several.

    Example:
        >>> fault("model.py", ValueError("no such node")).message
        'ValueError: no such node; please report this text'
    """
    return Finding("TM100", path, line, 0, what_failed(error))


def what_failed(error: Exception) -> str:
    """The text to report: the exception, and the line of ours that it came from."""
    text = " ".join(str(error).split())
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    where = _place(error)
    return f"{said}{f' ({where})' if where else ''}; please report this text"


def _place(error: Exception) -> str:
    """The innermost line of this package that an exception went through; empty where it is none of ours."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_relative_to(_PACKAGE):
            return f"{file.relative_to(_PACKAGE).as_posix()}:{frame.lineno}, {frame.name}"
    return ""
