"""Small tools for writing Python as lists of lines.

A name written `$name` belongs to the graph: the code that builds it and the code that runs it may be in
different functions, which then reach it in their own ways (`names.py`).
"""

from __future__ import annotations

import textwrap

Lines = list[str]


def lines(text: str) -> Lines:
    """The lines of an indented text."""
    return textwrap.dedent(text).strip("\n").split("\n") if text.strip() else []


def inside(header: str, body: Lines) -> Lines:
    """A compound statement: a header, and a body that is never empty."""
    return [header, *indented(body or ["pass"])]


def indented(body: Lines, by: int = 1) -> Lines:
    return ["    " * by + line if line else "" for line in body]
