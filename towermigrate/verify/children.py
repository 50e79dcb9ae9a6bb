"""The child processes of verify: one program each, in a scratch copy, gone when verify is done with it."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

_KEPT_LINES = 15
_MARK = "TOWERMIGRATE_VERIFY_CHILD"
_ENDING = [
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
]


class ChildFailed(RuntimeError):
    """A program could not be run to where it was to be compared. The message holds its last words."""


def _inherited() -> dict[str, str]:
    """This process's environment without what an imported TensorFlow 2 leaves in it.

    `TF2_BEHAVIOR=1` would switch a TensorFlow 1.15 child to eager execution.
    """
    return {name: value for name, value in os.environ.items() if name != "TF2_BEHAVIOR"}


def run_child(
    command: Sequence[str],
    folder: Path,
    log: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    what: str,
) -> None:
    """Run `command` in `folder` with its output in `log`; whatever it started ends with it.

    Raises:
        ChildFailed: it ran past `timeout_s` seconds, or left with another code than 0.
    """
    # What leaves the child's process group is found by it.
    mark = f"{_MARK}={secrets.token_hex(16)}"
    with log.open("wb") as output, ended_by_signals():
        child = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**_inherited(), **environment, _MARK: mark.partition("=")[2]},
            start_new_session=True,
        )
        try:
            code: int | None = child.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end_group(child)
            _end_marked(mark.encode())
    if code is None:
        raise ChildFailed(
            f"{what} ran past the limit of {timeout_s:g} s (--timeout).{last_words(log)}"
        )
    if code != 0:
        raise ChildFailed(f"{what} ended with code {code}.{last_words(log)}")


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """A signal to end becomes an exception, so that children and scratch folders do not outlive us.

    The exit code is a shell's, 128 and the signal's number; 1 would claim a difference.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # Who ignores a signal (nohup) goes on ignoring it.
    heard = [each for each in _ENDING if signal.getsignal(each) != signal.SIG_IGN]
    before = {number: signal.signal(number, leave) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and all that it started, and wait for the child."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    child.wait()


def _end_marked(mark: bytes) -> None:
    """Kill what a child started in sessions of their own (daemons); Linux says who inherited its environment."""
    for _ in range(10):  # what is being killed may have started more
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
        for number in found:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        if not found:
            return


def last_words(log: Path) -> str:
    """The tail of a child's output, indented, to be put behind an error."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    tail = [line for line in lines if line.strip()][-_KEPT_LINES:]
    return " Its last lines:\n" + "\n".join("    " + line for line in tail) if tail else ""
