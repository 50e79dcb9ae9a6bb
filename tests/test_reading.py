"""Reading a tree in two processes gives what one process gives, whatever becomes of the second."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from towermigrate import reading
from towermigrate.reading import Reading, Readings, read

ROOT = Path(__file__).parents[1]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(ROOT.glob("fixtures/*/before/**/*.py"))
}


def _without_hints(reading: Reading) -> Reading:
    return replace(reading, hints=None)


@pytest.fixture(autouse=True)
def always_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_WORTH_A_PROCESS", 0)


def test_two_processes_read_what_one_reads() -> None:
    with Readings() as readings:
        readings.read_ahead(SOURCES)
        for path, text in SOURCES.items():
            alone = read(path, text)
            assert readings.of(path, text) == alone
            new = alone.symbols.text
            assert _without_hints(readings.of(path, new)) == _without_hints(read(path, new))


def test_what_a_killed_process_should_have_read_is_read_here() -> None:
    with Readings() as readings:
        readings.read_ahead(SOURCES)
        assert readings._ahead is not None
        os.kill(readings._ahead._pid, signal.SIGKILL)
        for path, text in SOURCES.items():
            new = readings.of(path, text).symbols.text
            assert _without_hints(readings.of(path, new)) == _without_hints(read(path, new))


def test_an_error_ends_the_second_process() -> None:
    with pytest.raises(KeyboardInterrupt), Readings() as readings:
        readings.read_ahead(SOURCES)
        raise KeyboardInterrupt
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_text_that_cannot_be_parsed_stays_as_it_is() -> None:
    text = "import tensorflow as tf\nprint tf.placeholder\n"
    found = read("old.py", text)
    assert found.problem is not None and found.problem.line == 2
    assert found.symbols.text == text
