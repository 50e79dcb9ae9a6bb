"""What one text says by itself, read once: whether it parses, what it imports, its new names.

Everything about a file that needs its syntax tree is taken from it in one go and the tree is dropped. A large
tree of files is shared between two processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from towermigrate.faults import fault
from towermigrate.findings import Finding
from towermigrate.hints import Hints, hints
from towermigrate.pair import Pair
from towermigrate.python2 import Ported, Unported, port, python2_names
from towermigrate.symbols import SymbolResult
from towermigrate.symbols.apply import file_symbols
from towermigrate.symbols.bindings import NOTHING, Given
from towermigrate.symbols.quick import WORDS, surely_unchanged
from towermigrate.symbols.scopes import file_names
from towermigrate.tree import Module, modules_in, modules_named, parse_python, parses

_WORTH_A_PROCESS = 500_000
"""Characters: below, a second process costs more than it saves."""

_Any = TypeVar("_Any")
_File = tuple[str, str]
"""Path and text."""


@dataclass(frozen=True)
class Reading:
    """What a text says. Where there is a `problem` it cannot be read, and `symbols` leave it as it is.

    `hints` are not there of a text that a rewrite gave, whose towers are known; its symbols may have no findings
    either. `python2` are the names in it that only Python 2 has, where they were asked for.
    """

    symbols: SymbolResult
    modules: frozenset[Module] = frozenset()
    hints: Hints | None = None
    problem: Finding | None = None
    python2: tuple[Finding, ...] = ()


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


def read(
    path: str,
    text: str,
    *,
    tf1: bool | None = None,
    python2: bool = False,
    final: bool = False,
    given: Given = NOTHING,
) -> Reading:
    """Read one text.

    Args:
        path: its path, for findings.
        text: the text.
        tf1: as in `rewrite_symbols`.
        python2: also look for names that only Python 2 has.
        final: the text is what a rewrite gave, so nobody will look for towers in it.
        given: what other files of the tree give to this one.
    """
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        return Reading(SymbolResult(text, ()), problem=_problem(path, error))
    try:
        names = file_names(tree, given)
        symbols = file_symbols(text, path, tree, names, tf1=tf1)
        modules = modules_in(node for _, node in names.imports)
        old = python2_names(path, text, tree) if python2 and "tensorflow" in text else ()
        towers = None if final else hints(text, names)
        return Reading(symbols, modules, towers, python2=old)
    except RecursionError:
        problem = Finding("TM101", path, 1, 0, "it is nested too deeply to be read")
        return Reading(SymbolResult(text, ()), problem=problem)
    except Exception as error:
        return Reading(SymbolResult(text, ()), problem=fault(path, error))


def read_again(path: str, text: str, first: Reading, given: Given = NOTHING) -> Reading:
    """Read what a rewrite is going to make of a file.

    Most of these need no syntax tree to tell that another rewrite would leave them: they are only parsed.

    Args:
        path: its path.
        text: what it will become, as `first` says.
        first: the reading of the file.
        given: what other files of the tree give to it.
    """
    try:
        if not given:
            return _read_again(path, text, first)
    except Exception:  # then the long way says what there is to say
        pass
    return read(path, text, final=True, given=given)


def _read_again(path: str, text: str, first: Reading) -> Reading:
    old = first.symbols
    switched = old.script is not None and text in (old.script.switched, old.script.early)
    runs = replace(old.mode, switched=True) if switched else old.mode
    # Where there was no place for the switch there may be one now.
    certain = old.script is None or old.script.switched is not None
    found = surely_unchanged(text) if certain else None
    if found is None or found.mode != runs:
        return read(path, text, final=True)
    if not (old.names_only and text == old.text) and not parses(text):
        return read(path, text, final=True)
    others = {each for each in first.modules if not any(word in each[1] for word in WORDS)}
    result = replace(old, text=text, findings=(), mode=runs, needs_graph=None, names_only=True)
    return Reading(result, found.modules | others)


class Readings:
    """The readings of a run, by path and text: what was read is not read again.

    A second process reads half of a large tree. Then it reads what the files will become, while this one looks
    for tower programs and takes a part in it afterwards. Use it in a `with`, which ends that process.

    `links` are the texts of the files that do not mention TensorFlow: only what they import is looked at. `given` is
    what files get of TensorFlow from others of the tree, by path.
    """

    def __init__(
        self,
        links: Mapping[str, str] = MappingProxyType({}),
        given: Mapping[str, Given] = MappingProxyType({}),
    ) -> None:
        self.links = dict(links)
        self.given = given
        self._link_modules: dict[str, frozenset[Module]] | None = None
        self._known: dict[_File, Reading] = {}
        self._ported: dict[_File, Ported | Unported] = {}
        self._ahead: Pair[_File, _Found] | None = None
        self._last: Pair[_File, _Found] | None = None
        self._python2: frozenset[_File] = frozenset()

    def __enter__(self) -> Readings:
        return self

    def __exit__(self, *error: object) -> None:
        if self._last is not None:
            self._last.end()

    def of(self, path: str, text: str) -> Reading:
        """The reading of a text, made now where it is not there yet."""
        if self._ahead is not None and (path, text) in self._ahead.items:
            self._finish()
        if (path, text) not in self._known:
            old = (path, text) in self._python2
            self._known[path, text] = read(path, text, python2=old, given=self.given_to(path))
        return self._known[path, text]

    def of_emitted(self, path: str, text: str) -> Reading:
        """The reading of a text that holds a converted program: TensorFlow 1 code whose names still have to change."""
        return read(path, text, tf1=True, given=self.given_to(path))

    def given_to(self, path: str) -> Given:
        """What other files of the tree give to a file."""
        return self.given.get(path, NOTHING)

    def taken_links(self, paths: Collection[str]) -> dict[str, str]:
        """The texts of some links, which are files like others from here on."""
        if self.links.keys().isdisjoint(paths):
            return {}
        modules = self.link_modules
        taken = {path: text for path, text in self.links.items() if path in paths}
        self.links = {path: text for path, text in self.links.items() if path not in taken}
        self._link_modules = {path: modules[path] for path in self.links}
        return taken

    @property
    def link_modules(self) -> Mapping[str, frozenset[Module]]:
        """What each of the links may import."""
        if self._link_modules is None:
            self._link_modules = {path: modules_named(text) for path, text in self.links.items()}
        return self._link_modules

    def ported(self, path: str, text: str) -> Ported | Unported:
        """A text that Python 3 cannot parse, brought to Python 3; see `python2.port`."""
        if (path, text) not in self._ported:
            self._ported[path, text] = port(text, path)
        return self._ported[path, text]

    def read_ahead(
        self,
        sources: Mapping[str, str],
        python2: Collection[str] = (),
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Read many files, in two processes.

        The files of `python2` may be Python 2: where Python 3 cannot parse them they are brought to Python 3,
        and of the others `Reading.python2` is found out. `meanwhile` is called while the other process reads; it may set
        `given`, and the files that get something are read again then.
        """
        self._python2 |= frozenset((path, sources[path]) for path in python2)
        if not self.may_be_two(sources):
            meanwhile()
            return
        old = self._python2
        given = self.given
        self._share(
            list(sources.items()),
            lambda path, text: _Found.of(path, text, (path, text) in old, self.given_to(path)),
        )
        meanwhile()
        _ = self.link_modules  # worked out now, while the other process reads
        if self.given is given:
            self._finish()
            return
        stale = {path: text for path, text in sources.items() if path in self.given}
        self._finish(stale)
        if stale:
            self.read_ahead(stale)

    def read_on(self, sources: Mapping[str, str], after: Mapping[str, str] | None = None) -> None:
        """Begin to read, in another process, what files will become.

        Args:
            sources: the files as they were read.
            after: what some of them become; without it what most files most likely will.
        """
        wanted: dict[_File, Reading] = {}
        begun = frozenset() if self._ahead is None else self._ahead.items
        for path, text in sources.items() if self.may_be_two(sources) else ():
            reading = self.of(path, text)
            new = _likely(reading) if after is None else after.get(path, text)
            if not ((path, new) in self._known or (path, new) in begun or reading.problem):
                wanted[path, new] = reading
        if not wanted or not self.may_be_two(dict(wanted.keys())):
            return
        if self._ahead is not None:
            self._finish()
        self._share(
            list(wanted),
            lambda path, text: _Found(
                read_again(path, text, wanted[path, text], self.given_to(path))
            ),
        )

    def may_be_two(self, sources: Mapping[str, str]) -> bool:
        """Whether there is enough to do on these for a second process, and one to be had."""
        return self._may_be_two(sum(map(len, sources.values())), _WORTH_A_PROCESS)

    def _may_be_two(self, size: int, least: int) -> bool:
        return size >= least and (self._last is not None or Pair.may_start())

    def spread(
        self,
        sizes: Mapping[str, int],
        work: Callable[[str], _Any],
        least: int | None = None,
    ) -> dict[str, _Any]:
        """What `work` gives for each name, in two processes where there is enough to do.

        Args:
            sizes: how large what each name stands for is, in characters.
            work: gives the result of one.
            least: the size of all that is enough; by default a quarter of what is worth a process to be read, as to
                bring a text to Python 3 takes a few times as long.
        """
        least = _WORTH_A_PROCESS // 4 if least is None else least
        found: dict[str, _Any] = {}
        if self._ahead is None and self._may_be_two(sum(sizes.values()), least):
            if self._last is not None:
                self._last.end()
                self._last = None
            pair = Pair(list(sizes), work, size=lambda name: sizes[name])
            try:
                found.update(pair.results())
            finally:
                pair.end()
        return {name: found[name] if name in found else work(name) for name in sizes}

    def _share(self, files: Sequence[_File], found: Callable[[str, str], _Found]) -> None:
        if self._last is not None:
            self._last.end()  # not earlier: a process takes its time to go
        self._ahead = self._last = Pair(
            files,
            lambda file: found(*file),
            size=lambda file: len(file[1]),
            pack=lambda file, one: one.packed(file[1]),
            unpack=lambda file, one: one.unpacked(file[1]),
        )

    def _finish(self, stale: Collection[str] = ()) -> None:
        """Read, together with the second process, what it has still to read; what it says of `stale` files is dropped."""
        if self._ahead is not None:
            shared, self._ahead = self._ahead, None
            for (path, text), found in shared.results():
                if path in stale:
                    continue
                self._known[path, text] = found.reading
                if found.ported is not None:
                    self._ported[path, text] = found.ported
                if isinstance(found.ported, Ported) and found.in_python3 is not None:
                    self._known[path, found.ported.text] = found.in_python3


def _likely(reading: Reading) -> str:
    """What a file will most likely become: a script that runs a graph is switched."""
    new = reading.symbols
    return new.script.switched or new.text if new.script and new.mode.graph else new.text


@dataclass(frozen=True)
class _Found:
    """What one file says; where Python 3 cannot parse it also what it was brought to, and what that says."""

    reading: Reading
    ported: Ported | Unported | None = None
    in_python3: Reading | None = None

    @classmethod
    def of(cls, path: str, text: str, python2: bool, given: Given) -> _Found:
        reading = read(path, text, python2=python2, given=given)
        if reading.problem is None or reading.problem.rule == "TM100" or not python2:
            return cls(reading)
        ported = port(text, path)
        if not isinstance(ported, Ported):
            return cls(reading, ported)
        return cls(reading, ported, read(path, ported.text, given=given))

    def packed(self, text: str) -> _Found:
        """The same without the text that was read, where the names left that as it is: it is not sent back."""
        return self._with("") if self.reading.symbols.text == text else self

    def unpacked(self, text: str) -> _Found:
        """What `packed` came from."""
        return self if self.reading.symbols.text else self._with(text)

    def _with(self, text: str) -> _Found:
        symbols = replace(self.reading.symbols, text=text)
        return replace(self, reading=replace(self.reading, symbols=symbols))
