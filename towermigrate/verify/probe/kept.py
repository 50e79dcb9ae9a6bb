"""A standard stream that also keeps what goes through it: text, the bytes of its buffer, and what `os.write` writes there."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import os
import sys
from typing import Any, Callable, Dict


class Bytes:
    """The buffer of a standard stream; `keep` is given the text of what is written, and the frame that writes it."""

    def __init__(self, buffer: Any, keep: Callable[[str, Any], None]) -> None:
        self._buffer = buffer
        self._keep = keep

    def write(self, data: Any) -> Any:
        self._keep(text_of(data), sys._getframe(1))
        return self._buffer.write(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self._keep(text_of(line), sys._getframe(1))
            self._buffer.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._buffer, name)


def text_of(data: Any) -> str:
    return bytes(data).decode("utf-8", "backslashreplace")


def keep_writes(keep: Dict[int, Callable[[str, Any], None]], tree: str) -> None:
    """Have what files of `tree` write with `os.write` to a standard stream kept, too, by the stream's number."""
    module: Any = os
    write = module.write
    tree = os.path.join(os.path.realpath(tree), "")

    def writes(number: Any, data: Any) -> Any:
        count = write(number, data)
        frame: Any = sys._getframe(1)
        kept = keep.get(number) if isinstance(number, int) else None
        if kept is not None and os.path.realpath(frame.f_code.co_filename).startswith(tree):
            kept(text_of(bytes(data)[:count]), frame)
        return count

    module.write = writes
