"""What one text says by itself, read once: whether it parses, what it imports, its new names.

Everything about a file that needs its syntax tree is taken from it in one go and the tree is dropped. A large
tree of files is shared between two processes.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from towermigrate.findings import Finding
from towermigrate.recognize.hints import Hints, hints
from towermigrate.symbols import SymbolResult
from towermigrate.symbols.apply import file_symbols
from towermigrate.symbols.scopes import file_names
from towermigrate.tree import Module, modules_in, parse_python

_WORTH_A_PROCESS = 500_000
"""Characters: below, a second process costs more than it saves."""


@dataclass(frozen=True)
class Reading:
    """What a text says. Where there is a `problem` it cannot be read, and `symbols` leave it as it is."""

    symbols: SymbolResult
    modules: frozenset[Module] = frozenset()
    hints: Hints = field(default_factory=Hints)
    problem: Finding | None = None


def parse_problem(path: str, text: str) -> Finding | None:
    """Why Python 3 cannot parse a file, None when it can."""
    try:
        parse_python(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        return _problem(path, error)
    return None


def _problem(path: str, error: Exception) -> Finding:
    line = getattr(error, "lineno", None) or 1
    column = max((getattr(error, "offset", None) or 1) - 1, 0)
    reason = getattr(error, "msg", None) or str(error) or type(error).__name__
    return Finding("TM101", path, line, column, f"Python 3 cannot parse this file: {reason}")


def read(path: str, text: str, *, tf1: bool | None = None) -> Reading:
    """Read one text; `tf1` as in `rewrite_symbols`."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        return Reading(SymbolResult(text, ()), problem=_problem(path, error))
    try:
        names = file_names(tree)
        symbols = file_symbols(text, path, tree, names, tf1=tf1)
        modules = modules_in(node for _, node in names.imports)
        return Reading(symbols, modules, hints(text, names))
    except RecursionError:
        problem = Finding("TM101", path, 1, 0, "it is nested too deeply to be read")
        return Reading(SymbolResult(text, ()), problem=problem)


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep Python from looking for cycles: syntax trees have none, and looking takes a quarter of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Readings:
    """The readings of a run, by path and text: what was read is not read again.

    A second process reads half of a large tree. Then it reads what the files will become, while this one looks
    for tower programs. Use it in a `with`, which ends that process.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Reading] = {}
        self._ahead: _Child | None = None

    def __enter__(self) -> Readings:
        return self

    def __exit__(self, *error: object) -> None:
        if self._ahead is not None:
            self._ahead.end()

    def of(self, path: str, text: str) -> Reading:
        """The reading of a text, made now where it is not there yet."""
        if self._ahead is not None and (path, text) in self._ahead.files:
            self._collect()
        if (path, text) not in self._known:
            self._known[path, text] = read(path, text)
        return self._known[path, text]

    def _collect(self) -> None:
        """Take what the second process has read."""
        if self._ahead is not None:
            self._known.update(self._ahead.result() or {})
            self._ahead = None

    def read_ahead(self, sources: Mapping[str, str]) -> None:
        """Read many files, and begin to read the texts that most of them will become."""
        if sum(map(len, sources.values())) < _WORTH_A_PROCESS or not hasattr(os, "fork"):
            return
        files = list(sources.items())
        self._ahead = _Child(files[1::2])
        self._known.update(_read_all(files[::2]))
        self._collect()
        after = ((path, _likely(path, self.of(path, text))) for path, text in files)
        self._ahead = _Child([each for each in after if each not in self._known])


def _read_all(files: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Reading]:
    return {(path, text): read(path, text) for path, text in files}


def _likely(path: str, reading: Reading) -> str:
    """What a file will most likely become: a script that runs a graph is switched."""
    new = reading.symbols
    return new.script.switched or new.text if new.script and new.mode.graph else new.text


class _Child:
    """A forked process that reads files."""

    def __init__(self, files: Sequence[tuple[str, str]]) -> None:
        self.files = frozenset(files)
        self._source, sink = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._source)
                with os.fdopen(sink, "wb") as pipe:
                    pickle.dump(_read_all(files), pipe, pickle.HIGHEST_PROTOCOL)
                os._exit(0)
            finally:
                os._exit(1)
        os.close(sink)

    def result(self) -> dict[tuple[str, str], Reading] | None:
        """What it read; None where it was killed, for want of memory perhaps."""
        try:
            with os.fdopen(self._source, "rb", closefd=False) as pipe:
                found: dict[tuple[str, str], Reading] = pickle.load(pipe)
                return found
        except EOFError:
            return None
        finally:
            self.end()

    def end(self) -> None:
        """End the process, whatever it is doing."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            os.close(self._source)
            self._pid = 0
