"""Lines of a program that stand elsewhere: behind another margin, with other names."""

from __future__ import annotations

from collections.abc import Sequence

from towermigrate.recognize.plain.changes import Part, PlainFile
from towermigrate.recognize.python_scopes import Unjoined, lines_in_texts

Edit = tuple[int, int, str]


def at_margin(
    file: PlainFile, start: int, end: int, old: str, new: str, edits: Sequence[Edit] = ()
) -> list[Part]:
    """Whole lines from the begin of one of them on, with edits made, behind another margin.

    Raises `Unjoined` where a text over several lines would be another one.
    """
    first, last = file.text.count("\n", 0, start) + 1, file.text.count("\n", 0, end) + 1
    if any(first < line <= last for line in lines_in_texts(file.text)):
        raise Unjoined
    parts: list[Part] = []
    waiting = sorted(edits)
    at = start
    while at < end:
        stop = file.text.find("\n", at, end)
        stop = end if stop < 0 else stop + 1
        if file.text[at:stop].strip():
            if not file.text.startswith(old, at):
                raise Unjoined
            parts.append(new)
            at += len(old)
        while waiting and waiting[0][0] < stop:
            where, till, text = waiting.pop(0)
            if where < at or till > stop:
                raise Unjoined
            parts += [(at, where), text]
            at = till
        parts.append((at, stop))
        at = stop
    return parts


__all__ = ["Edit", "at_margin"]
