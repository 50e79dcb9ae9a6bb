"""Signals that end a command: an exit code of their own, and time to tidy up."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ENDING = [
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
]
_heard = False


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """A signal to end becomes an exception, so that children and scratch folders do not outlive us.

    The exit code is a shell's, 128 and the signal's number; 1 would claim a difference. While that exception goes
    its way, more signals are not heard: they would cut short what it tidies up.
    """
    global _heard
    if _heard or threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        for each in heard:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    # Who ignores a signal (nohup) goes on ignoring it.
    heard = [each for each in _ENDING if signal.getsignal(each) != signal.SIG_IGN]
    _heard = True
    before = {number: signal.signal(number, leave) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _heard = False
