"""Reading a tree in two processes gives what one process gives, whatever becomes of the second."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from towermigrate import reading
from towermigrate.outcome import TreeReport
from towermigrate.reading import Reading, Readings, read
from towermigrate.rewrite import rewrite_tree

ROOT = Path(__file__).parents[1]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(ROOT.glob("fixtures/*/before/**/*.py"))
}


def _without_remarks(reading: Reading) -> Reading:
    """What counts of a text that a rewrite gave: nobody is told of it, and its towers are known."""
    symbols = replace(reading.symbols, findings=(), script=None, needs_graph=None)
    return replace(reading, hints=None, symbols=symbols)


@pytest.fixture(autouse=True)
def always_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_WORTH_A_PROCESS", 0)


def test_two_processes_read_what_one_reads() -> None:
    with Readings() as readings:
        readings.read_ahead(SOURCES)
        readings.read_on(SOURCES)
        for path, text in SOURCES.items():
            alone = read(path, text)
            assert readings.of(path, text) == alone
            new = alone.symbols.text
            assert _without_remarks(readings.of(path, new)) == _without_remarks(read(path, new))


def test_what_a_killed_process_should_have_read_is_read_here() -> None:
    with Readings() as readings:
        readings.read_ahead(SOURCES)
        readings.read_on(SOURCES)
        assert readings._ahead is not None
        os.kill(readings._ahead._pid, signal.SIGKILL)
        for path, text in SOURCES.items():
            new = readings.of(path, text).symbols.text
            assert _without_remarks(readings.of(path, new)) == _without_remarks(read(path, new))


def test_what_two_processes_work_out_is_what_one_does() -> None:
    sizes = {f"f{number}.py": number for number in range(300)}
    with Readings() as readings:
        assert readings.spread(sizes, lambda path: (path, sizes[path] + 1)) == {
            path: (path, size + 1) for path, size in sizes.items()
        }


def test_what_a_process_that_died_should_have_worked_out_is_worked_out_here() -> None:
    here = os.getpid()

    def work(path: str) -> str:
        if os.getpid() != here:
            os._exit(1)
        return path.upper()

    with Readings() as readings:
        found = readings.spread({"a.py": 1, "b.py": 1, "c.py": 1}, work)
    assert found == {"a.py": "A.PY", "b.py": "B.PY", "c.py": "C.PY"}


def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The children that are made from now on; other tests of the process may have left theirs."""
    made: list[int] = []
    fork = os.fork

    def noted() -> int:
        pid = fork()
        if pid:
            made.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", noted)
    return made


def test_an_error_ends_the_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    made = forked(monkeypatch)
    with pytest.raises(KeyboardInterrupt), Readings() as readings:
        readings.read_ahead(SOURCES)
        readings.read_on(SOURCES)
        raise KeyboardInterrupt
    assert made
    for child in made:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_a_reading_within_a_reading_takes_no_third_process(monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[int] = []
    fork = os.fork

    def counted() -> int:
        forks.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    within: list[TreeReport] = []
    small = {"a.py": "import tensorflow as tf\ntf.log(x)\n"}
    report = rewrite_tree(SOURCES, meanwhile=lambda: within.append(rewrite_tree(small)))
    assert len(forks) == 4 and len(report.texts) > 5
    assert [one.texts for one in within] == [
        {"a.py": small["a.py"].replace("tf.log", "tf.math.log")}
    ]
    assert rewrite_tree(small).texts == within[0].texts and len(forks) == 6


def test_two_processes_rewrite_as_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    two = rewrite_tree(SOURCES)
    monkeypatch.setattr(reading, "_WORTH_A_PROCESS", 10**12)
    one = rewrite_tree(SOURCES)
    assert one.texts == two.texts
    assert one.files == two.files
    assert sum(len(file.programs) for file in one.files) > 10


@pytest.mark.parametrize("worth", [0, 10**12], ids=["two processes", "one"])
def test_what_other_files_give_counts_in_both_processes(
    monkeypatch: pytest.MonkeyPatch, worth: int
) -> None:
    monkeypatch.setattr(reading, "_WORTH_A_PROCESS", worth)
    said = "# no tensorflow of its own\n"
    takes = "from ops import *\n{}x = tf.log(y)\n"
    many = {f"net{number}.py": takes.format(said) for number in range(8)}
    links = {"plain.py": takes.format(""), "old.py": takes.format("print 'x'\n")}
    report = rewrite_tree({"ops.py": "import tensorflow as tf\n", **many}, links=links)
    assert report.texts.keys() == {*many, *links}
    assert all("tf.math.log(y)" in text for text in report.texts.values())


def test_a_text_that_cannot_be_parsed_stays_as_it_is() -> None:
    text = "import tensorflow as tf\nprint tf.placeholder\n"
    found = read("old.py", text)
    assert found.problem is not None and found.problem.line == 2
    assert found.symbols.text == text
