"""A program whose functions are read as one: the text, its parts, and where each character of it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import TypeVar

from towermigrate.findings import Finding, with_places
from towermigrate.program import Span, TowerProgram
from towermigrate.recognize.source import Tree

MARK = "towermigrate part"
"""How the bare texts begin that stand at the places of a part."""
_LINE = re.compile(r"\bline (\d+)(?: of ([\w./-]+))?")
_Described = TypeVar("_Described")


@dataclass(frozen=True)
class Part:
    """A function whose body stands in place of its call.

    `definition` is its own text, `call` that of the statement that calls it. `returned` are the names it returns,
    `targets` what the caller calls them; `given` are its parameters with the texts of their arguments. `renamed`
    are names of its body that stand under another one in the joined text, by that. `column` is where the call began,
    `globals` are the names of its module that it reads, `defaults` the parameters that are not given.
    `returns_expression` says that what it returns has no name in it, but for that of the caller.
    """

    number: int
    path: str
    name: str
    definition: str
    call: str
    returned: tuple[str, ...]
    targets: tuple[str, ...]
    given: tuple[tuple[str, str], ...]
    renamed: Mapping[str, str]
    column: int
    globals: frozenset[str]
    defaults: tuple[tuple[str, str], ...]
    returns_expression: bool

    def mark(self, what: str) -> str:
        """The bare text that stands at a place of it: `begin`, `body`, `end`, or `def` for its definition."""
        return f'"{MARK} {self.number} {what}"'


class Pieces:
    """A new text, made of pieces of the author's and others; tells where each of its characters comes from."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.length = 0
        self.origins: list[tuple[int, int, str, int]] = []  # start, end, path, start in that file

    def own(self, path: str, text: str, start: int, end: int) -> None:
        """The author's characters from `start` to `end`."""
        if end > start:
            self.origins.append((self.length, self.length + end - start, path, start))
            self._add(text[start:end])

    def new(self, text: str, path: str, start: int, end: int | None = None) -> None:
        """Others, that stand for what begins at `start`, and ends at `end` where that is known."""
        if not text:
            return
        self.origins.append((self.length, self.length, path, start))
        self._add(text)
        if end is not None and len(text) > 1:  # its last character is theirs
            self.origins.append((self.length - 1, self.length, path, end - 1))

    def _add(self, text: str) -> None:
        self.texts.append(text)
        self.length += len(text)


@dataclass(frozen=True)
class Joined:
    """The tree with a program's functions joined.

    `path` is the file of the caller (None where that is the module itself), `loop_line` that of the tower loop; `texts` are
    the files that are other ones now, `befores` what they were.
    """

    tree: Tree
    path: str
    loop_line: int
    caller: str | None
    parts: tuple[Part, ...]
    texts: Mapping[str, str]
    befores: Mapping[str, str]
    _origins: Sequence[tuple[int, int, str, int]]

    @property
    def own_names(self) -> Mapping[str, str]:
        """The author's names for those that are other ones in the joined text."""
        return {new: own for part in reversed(self.parts) for new, own in part.renamed.items()}

    def own_name(self, name: str) -> str:
        """A name of the joined text as the function's author has it."""
        return self.own_names.get(name, name)

    def original(self, finding: Finding) -> Finding:
        """A finding of the joined text as one of the author's."""

        def said(found: re.Match[str]) -> str:
            own = found[2] == self.path if found[2] else finding.path == self.path
            if not own:
                return found[0]
            path, line = self._place(int(found[1]), 0)[:2]
            told = found[0].replace(found[1], str(line), 1)
            return told if path == finding.path or found[2] else f"line {line} of {path}"

        def placed(line: int) -> str:
            path, own = self._place(line, 0)[:2]
            return f"{path}:{own}"

        message = with_places(_LINE.sub(said, finding.message), self.path, placed)
        for new, own in self.own_names.items():
            message = re.sub(rf"\b{new}\b", own, message)
        if finding.path != self.path:
            return replace(finding, message=message)
        path, line, column = self._place(finding.line, finding.column)
        return replace(finding, path=path, line=line, column=column, message=message)

    def program(self, program: TowerProgram, function: str | None, line: int) -> TowerProgram:
        """What is known of the joined program, with the places of the author's text."""
        path = self.span(program.loop.statement).path
        told = replace(self._described(program), path=path, function=function, line=line)
        inputs = tuple(
            replace(each, names=tuple(self.own_name(name) for name in each.names))
            for each in told.inputs
        )
        return replace(told, inputs=inputs)

    def span(self, span: Span) -> Span:
        """The author's stretch for one of the joined text."""
        if span.path != self.path:
            return span
        path, line, column = self._place(span.line, span.column)
        # The end is behind the last character, which tells where that is.
        _, end_line, end_column = self._place(span.end_line, span.end_column, end=True)
        return Span(path, line, column, end_line, end_column)

    def line(self, path: str, line: int) -> tuple[str, int]:
        """The author's file and line for a line of a file."""
        return self._place(line, 0)[:2] if path == self.path else (path, line)

    def _described(self, value: _Described) -> _Described:
        if isinstance(value, Span):
            return self.span(value)  # type: ignore[return-value]
        if isinstance(value, tuple):
            return tuple(self._described(each) for each in value)  # type: ignore[return-value]
        if is_dataclass(value):
            changed = {
                each.name: self._described(getattr(value, each.name)) for each in fields(value)
            }
            return replace(value, **changed)  # type: ignore[type-var]
        return value

    def _place(self, line: int, column: int, end: bool = False) -> tuple[str, int, int]:
        text = self.texts[self.path]
        at = (
            min(line_starts(text)[line - 1] + column, len(text))
            if line <= text.count("\n") + 1
            else 0
        )
        wanted = at - 1 if end else at
        path, own = self.path, 0
        for start, stop, source, begin in self._origins:
            if start > wanted:
                break
            path, own = source, begin + min(wanted - start, max(stop - start, 0))
        own += end
        before = self.befores[path]
        row = before.count("\n", 0, own)
        return path, row + 1, own - (before.rfind("\n", 0, own) + 1)


@dataclass(frozen=True)
class Again(Joined):
    """A tree whose functions were joined, `inner`, and joined once more, `outer`: a function that is called calls another.

    `texts` are those of the last tree and `befores` the author's.
    """

    outer: Joined
    inner: Joined

    @classmethod
    def of(cls, outer: Joined, inner: Joined) -> Again:
        texts = {**inner.texts, **outer.texts}
        befores = {**outer.befores, **inner.befores}
        parts = (*inner.parts, *outer.parts)
        return cls(
            outer.tree, outer.path, outer.loop_line, outer.caller, parts, texts, befores, outer._origins, outer, inner
        )  # fmt: skip

    @property
    def own_names(self) -> Mapping[str, str]:
        again = {new: self.inner.own_name(own) for new, own in self.outer.own_names.items()}
        return {**self.inner.own_names, **again}

    def original(self, finding: Finding) -> Finding:
        return self.inner.original(self.outer.original(finding))

    def program(self, program: TowerProgram, function: str | None, line: int) -> TowerProgram:
        return self.inner.program(self.outer.program(program, function, line), function, line)

    def span(self, span: Span) -> Span:
        return self.inner.span(self.outer.span(span))

    def line(self, path: str, line: int) -> tuple[str, int]:
        return self.inner.line(*self.outer.line(path, line))


@lru_cache(maxsize=64)
def line_starts(text: str) -> Sequence[int]:
    """Where each line of a text begins."""
    return (0, *(each.end() for each in re.finditer("\n", text)))
