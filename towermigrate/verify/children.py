"""The child processes of verify: one program each, in a scratch copy, gone when verify is done with it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from towermigrate.signals import ended_by_signals
from towermigrate.verify.fence import fenced

_KEPT_LINES = 15
# Of what a program prints, the beginning and the end are kept (bytes), and of a line so much is read and shown.
_KEPT_FIRST, _KEPT_LAST, _LONGEST, _KEPT_OF_LINE = 4 * 2**20, 2**18, 2000, 500
_LOOK_S = 0.25
# A program is ended before the machine has less than this left (bytes).
_LEAST_DISK, _LEAST_MEMORY = 256 * 2**20, 192 * 2**20
_END_S = 30
_MARK = "TOWERMIGRATE_VERIFY_CHILD"
_LACKS = (
    (
        re.compile(r"No space left on device|Disk quota exceeded"),
        "There was no space left on the disk.",
    ),
    (re.compile(r"\[Errno 27\]|File too large"), "A file grew beyond a limit of the process."),
    (
        re.compile(
            r"\bMemoryError\b|std::bad_alloc|Cannot allocate memory|OOM when allocating"
            r"|Failed to allocate memory|Unable to allocate"
        ),
        "It ran out of memory.",
    ),
    (re.compile(r"Too many open files"), "It had too many files open."),
    (
        re.compile(r"input depth must be evenly divisible by filter depth: 1 vs (?!1\b)"),
        "Where a tower has no rows (a short last batch), TensorFlow's convolutions on CPUs fail in this way: "
        "TF_ENABLE_ONEDNN_OPTS=0 in the environment takes others.",
    ),
    (
        re.compile(r"EOFError: EOF when reading a line"),
        "It reads its standard input, which is empty here: pass what it asks for as arguments, after --.",
    ),
)


@dataclass(frozen=True)
class Ended:
    """How a program ended. `cause` is why verify ended it; `refused` are the paths it was kept from changing."""

    code: int | None = None
    signal: int | None = None
    stopped: int | None = None
    cause: str | None = None
    refused: tuple[str, ...] = ()
    left: int = 0
    asked: bool = False

    def said(self, what: str) -> str | None:
        """What to say of a program that did not end well; None of one that did."""
        if self.cause is not None:
            return f"{what} {self.cause}"
        if self.stopped is not None:
            return f"{what} stopped itself ({_signal(self.stopped)}), and nothing continued it."
        if self.signal == signal.SIGKILL:
            return (
                f"{what} was killed ({_signal(self.signal)}): by itself, by somebody else, or by the system for "
                "want of memory."
            )
        if self.signal is not None:
            return f"{what} died of {_signal(self.signal)}."
        return None if self.code == 0 else f"{what} ended with code {self.code}."


class ChildFailed(RuntimeError):
    """A program could not be run to where it was to be compared. The message holds its last words."""

    ended = Ended()


def _signal(number: int) -> str:
    with contextlib.suppress(ValueError):
        return f"signal {number}, {signal.Signals(number).name}"
    return f"signal {number}"


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
    *,
    folders: Sequence[Path] | None = None,
    scratch: Path | None = None,
) -> Ended:
    """Run `command` in `folder` with its output in `log`; whatever it started ends with it.

    Args:
        folders: below which it may change files; None for no limits.
        scratch: a folder to be removed should this process be killed meanwhile.

    Raises:
        ChildFailed: it ran past `timeout_s` seconds, was ended or stopped, or left with another code than 0.
    """
    # Where there is no guardian, what leaves the child's process group is found by it.
    mark = f"{_MARK}={secrets.token_hex(16)}"
    with ended_by_signals():
        ended = _Child(log).run(
            lambda report: fenced(command, folders, report=report, scratch=scratch),
            folder,
            {**_inherited(), **environment, _MARK: mark.partition("=")[2]},
            timeout_s,
            mark.encode(),
        )
    said = ended.said(what)
    if said is not None:
        failure = ChildFailed(said + lacked(log) + last_words(log))
        failure.ended = ended
        raise failure
    return ended


class _Child:
    """One child, its output and how it ended."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.printed = 0
        self.disk = min(_LEAST_DISK, shutil.disk_usage(log.parent).free // 2)

    def run(
        self,
        command: Any,
        folder: Path,
        environment: Mapping[str, str],
        timeout_s: float,
        mark: bytes,
    ) -> Ended:
        reading, writing = os.pipe()
        child: subprocess.Popen[bytes] | None = None
        listener: threading.Thread | None = None
        cause = None
        try:
            try:
                child = subprocess.Popen(
                    command(writing),
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                    pass_fds=(writing,),
                )
                listener = threading.Thread(target=self._keep, args=(child.stdout,), daemon=True)
                listener.start()
                cause = self._wait(child, timeout_s)
            finally:
                if child is not None:
                    end_group(child)
                _end_marked(mark)
                os.close(writing)
            listener.join(timeout=_END_S)
            said = b"".join(iter(lambda: os.read(reading, 65536), b""))
        finally:
            os.close(reading)
        return _ended(child.returncode, said, cause)

    def _wait(self, child: subprocess.Popen[bytes], timeout_s: float) -> str | None:
        """Wait for the child. Why it is to be ended, None where it ended."""
        until = time.monotonic() + timeout_s
        while True:
            left = until - time.monotonic()
            if left <= 0:
                much = f", after {self.printed / 2**20:.0f} MiB of output"
                said = f"ran past the limit of {timeout_s:g} s (--timeout)"
                return said + (much if self.printed > _KEPT_FIRST else "") + "."
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=min(left, _LOOK_S))
                return None
            free = shutil.disk_usage(self.log.parent).free
            if free < self.disk:
                return (
                    f"was ended before it filled the disk: {free / 2**20:.0f} MiB are left where scratch copies "
                    f"are ({self.log.parent}). TMPDIR names another place for them."
                )
            available = available_memory()
            if available is not None and available < _LEAST_MEMORY:
                return f"was ended before it took all memory: {available / 2**20:.0f} MiB are left on this machine."

    def _keep(self, stream: IO[bytes]) -> None:
        """Read what the child prints; keep the beginning and the end of it in the log."""
        last: deque[bytes] = deque()
        size = 0
        with self.log.open("wb", buffering=0) as file, stream, contextlib.suppress(OSError):
            while part := os.read(stream.fileno(), 65536):
                room = max(0, _KEPT_FIRST - self.printed)
                self.printed += len(part)
                with contextlib.suppress(
                    OSError
                ):  # no space left: the child is still read to its end
                    file.write(part[:room])
                if part := part[room:]:
                    last.append(part)
                    size += len(part)
                while last and size - len(last[0]) > _KEPT_LAST:
                    size -= len(last.popleft())
            if last:
                left_out = self.printed - _KEPT_FIRST - size
                file.write(b"\n[%d bytes are left out]\n" % left_out if left_out else b"")
                file.write(b"".join(last))


def _ended(code: int, said: bytes, cause: str | None) -> Ended:
    """How the child ended, as its guardian says; without one, its exit code."""
    try:
        report: dict[str, Any] = json.loads(said)
    except ValueError:
        if code < 0:
            return Ended(signal=-code, cause=cause)
        return Ended(code=code, cause=cause)
    return Ended(
        report["code"],
        report["signal"],
        report["stopped"],
        cause,
        tuple(report["refused"]),
        report["left"],
        report["asked"],
    )


def available_memory() -> int | None:
    """The bytes that new programs could have; None where this system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End the child and all that it started, and wait for the child."""
    if child.poll() is None:
        with contextlib.suppress(OSError):
            child.terminate()  # the guardian ends all that it started
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=_END_S)
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


def end_of(log: Path) -> str:
    """The end of a child's output, its lines cut to a length that can be searched and shown."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _KEPT_LAST))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    # What a terminal would act upon is shown, not done.
    lines = (line[:_LONGEST] for line in text.replace("\r", "\n").split("\n"))
    return "\n".join(
        "".join(
            each if each.isprintable() or each == "\t" else "\N{REPLACEMENT CHARACTER}"
            for each in line
        )
        for line in lines
    )


def lacked(log: Path) -> str:
    """What the program had too little of, by its own words."""
    text = "\n".join(end_of(log).splitlines()[-60:])
    return "".join(f" {said}" for pattern, said in _LACKS if pattern.search(text))


def last_words(log: Path) -> str:
    """The tail of a child's output, indented, to be put behind an error."""
    tail = [line for line in end_of(log).splitlines() if line.strip()][-_KEPT_LINES:]
    tail = [line if len(line) <= _KEPT_OF_LINE else line[:_KEPT_OF_LINE] + "…" for line in tail]
    return " Its last lines:\n" + "\n".join("    " + line for line in tail) if tail else ""
