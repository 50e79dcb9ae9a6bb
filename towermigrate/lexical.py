"""A Python text without its strings and comments: what is left of it can be searched for code."""

from __future__ import annotations

import re

_STRING_OR_COMMENT = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r"|#[^\n]*",
    re.DOTALL,
)
STRING = '""'
"""What stands in place of every string. Letters before it stay: `r""`."""


def without_strings(text: str) -> str:
    """A text with `""` for every string and without comments, lines joined that end in a backslash.

    A string with code in it (`f"{a}"`) is one too; from Python 3.12 on it may hold quotes that end it here.

    Example:
        >>> without_strings("a = r'x' + b  # c")
        'a = r"" + b  '
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _STRING_OR_COMMENT.sub(_left, text).replace("\\\n", "  ")


def _left(found: re.Match[str]) -> str:
    return "" if found.group()[0] == "#" else STRING
