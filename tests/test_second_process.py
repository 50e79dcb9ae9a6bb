"""A second process that cannot be had, or that ends before its work is done, costs time and nothing else."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from tests.test_reading import forked
from towermigrate import reading
from towermigrate.pair import Pair
from towermigrate.reading import Readings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
# What the second process says of these is more than a pipe holds, so it waits in the middle of saying it.
SOURCES = {
    f"f{number}.py": "import tensorflow as tf\n" + "x = tf.placeholder(tf.float32)\n" * 2500
    for number in range(8)
}


@pytest.fixture(autouse=True)
def always_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_WORTH_A_PROCESS", 0)


def _read_all() -> set[str]:
    with Readings() as readings:
        readings.read_ahead(SOURCES)
        return {path for path, text in SOURCES.items() if readings.of(path, text).problem is None}


def test_a_process_that_is_killed_while_it_writes_is_done_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def killed_while_it_writes(self: Pair) -> Iterator[object]:
        while os.read(self._numbers, 1):
            time.sleep(0.1)  # the other process shall have a part of the work
        time.sleep(1.0)
        os.kill(self._pid, signal.SIGKILL)
        yield from results(self)

    results = Pair.results
    monkeypatch.setattr(Pair, "results", killed_while_it_writes)
    assert _read_all() == SOURCES.keys()


def test_where_no_process_can_be_had_one_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refused)
    assert _read_all() == SOURCES.keys()


def test_a_process_whose_end_nobody_waits_for_is_ended() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as a daemon's children may inherit it
    try:
        assert _read_all() == SOURCES.keys()
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_process_that_has_said_all_is_waited_for_and_not_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends by itself, and where nobody waits for children its number may be another's by then."""
    killed: list[int] = []
    made = forked(monkeypatch)
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    with Readings() as readings:
        readings.read_ahead(SOURCES)
        readings.read_on(SOURCES)
        for path, text in SOURCES.items():
            readings.of(path, readings.of(path, text).symbols.text)
    assert killed == [] and Pair.running == 0
    assert made
    for child in made:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
