"""Jupyter notebooks: the code cells are rewritten as one program, and spliced back into the JSON cell by cell.

Everything but the strings of changed lines stays byte for byte: outputs, metadata, ids, indentation. Magics are
hidden from the rewrite and put back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from towermigrate.choice import Chosen
from towermigrate.comments import skips_file
from towermigrate.findings import Finding, with_places
from towermigrate.outcome import FileReport, ProgramReport, TreeReport
from towermigrate.passes import Refused, Style
from towermigrate.project import LARGEST, too_large
from towermigrate.python2 import Ported, port
from towermigrate.reading import parse_problem
from towermigrate.rewrite import Python2, rewrite_tree

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^\s,\]}]+")
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\?.", re.DOTALL
)
"""One character of a string as JSON writes it."""
_PYTHON_MAGICS = frozenset({"time", "timeit", "capture", "prun", "python", "python3"})
# `%magic`, `!command` (which a backslash takes to the next line), `?name`, `name?`, `files = !ls`
_MAGIC = re.compile(
    r"^[ \t]*(([\w, ]+=[ \t]*)?[%!](.*\\\n)*.*|[?].*|[\w.]+[?]{1,2}[ \t]*)$", re.MULTILINE
)
_LINE_LIST = re.compile(r"\blines? (\d+(?:, \d+)*)|\b(\d+)(?=: #)")
_RUNS_CODE = re.compile(r"[\w, ]*=?[ \t]*%%?\w+ .*\(")
# A notebook is run, not imported: what holds for scripts holds for it.
_END = 'if __name__ == "__main__":\n    "towermigrate: end of the cells"\n'
_SAYS_LINES = frozenset({"TM122", "TM123", "TM124", "TM221", "TM305"})


class NotebookError(Exception):
    """Why a text is not a notebook, or cannot be put together again."""


@dataclass(frozen=True)
class _Line:
    """One string of a cell's source: its characters, and where its JSON literal stands in the notebook."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class _Cell:
    """A code cell: its number, counted from 1 over all cells, its way down the JSON, and its source.

    `bracket` is where the list of `lines` stands; None where the source is one string.
    """

    number: int
    keys: tuple[str | int, ...]
    lines: tuple[_Line, ...]
    bracket: tuple[int, int] | None

    @property
    def text(self) -> str:
        return "".join(line.text for line in self.lines)


def rewrite_notebook(
    text: str,
    path: str,
    *,
    refused: Refused = "keep",
    function: str | None = None,
    py2: Python2 = "auto",
    style: Style = "auto",
) -> TreeReport:
    """Rewrite the code cells of a notebook.

    Args:
        text: the notebook as it is on disk.
        path: its path relative to the tree's root, for findings.
        refused: see `rewrite_tree`.
        function: convert the tower program in this function only; raises ChoiceError where there is no such
            function. The functions of all cells are looked at.
        py2: see `rewrite_tree`.
        style: see `rewrite_tree`.

    Returns:
        A report of the one file, whose lines count in their cells.

    Example:
        >>> cell = {"cell_type": "code", "source": ["import tensorflow as tf\\n", "tf.log(1)"]}
        >>> text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 2})
        >>> new = rewrite_notebook(text, "a.ipynb").texts["a.ipynb"]
        >>> new == text.replace("tf.log", "tf.math.log")
        True
    """
    try:
        notebook, cells = _read(text)
    except (NotebookError, ValueError, RecursionError) as error:
        return _only(path, "unparsable", Finding("TM125", path, 1, 0, f"not a notebook: {error}"))
    if not _is_python(notebook):
        return TreeReport((FileReport(path, "unchanged"),), {})
    size = sum(len(line.text) for cell in cells for line in cell.lines)
    if size > LARGEST:
        message = f"its code: {too_large(size, LARGEST)}"
        return _only(path, "unparsable", Finding("TM105", path, 1, 0, message))
    program = _Program.of(cells, py2)
    if py2 == "auto" and _problem(program.text, py2) is not None:
        # Each cell is Python 2 or Python 3, all of them together are neither: those of Python 2 stay.
        program = _Program.of(cells, "never")
    if skips_file(program.text) is not None:
        message = "not changed: a comment in it says skip-file"
        return _only(path, "unchanged", Finding("TM106", path, 1, 0, message))
    skipped = [
        Finding("TM126", path, line, 0, f"not changed, as it cannot be parsed: {reason}", cell)
        for cell, line, reason in program.skipped
    ]
    chosen = None if function is None else Chosen(path, function)
    report = rewrite_tree(
        {path: program.text}, refused=refused, chosen=chosen, py2=py2, style=style
    )
    file = report.files[0] if report.files else FileReport(path, "unchanged")
    file = _in_cells(file, program)
    code_magics = {mask: each for mask, each in program.hidden.items() if _RUNS_CODE.match(each)}
    for mask, magic in code_magics.items():
        if "tf." in magic or "sess" in magic:
            cell, line = program.place(program.text.count("\n", 0, program.text.index(mask)) + 1)
            message = f"a magic holds code, which was not changed: {magic}"
            skipped.append(Finding("TM126", path, line, 0, message, cell))
    new = text
    if path in report.texts:
        try:
            if code_magics and any(one.status == "converted" for one in file.programs):
                raise NotebookError(f"`{next(iter(code_magics.values()))}` may run the graph")
            new = _splice(text, notebook, cells, program.cells_of(report.texts[path]))
        except NotebookError as error:
            reason = f"no cell was changed: {error}"
            kept = tuple(replace(one, status="refused", style=None) for one in file.programs)
            file = replace(
                file,
                status="refused" if kept else "unchanged",
                programs=kept,
                findings=(Finding("TM126", path, 1, 0, reason),),
            )
    file = replace(file, findings=(*file.findings, *skipped))
    return TreeReport((file,), {path: new} if new != text else {})


class Positions:
    """Where in a notebook's file the lines of its cells stand.

    Example:
        >>> text = '{"cells": [{"cell_type": "code", "source": [\\n "a\\\\n",\\n "\\\\tb"]}]}'
        >>> Positions(text).of(cell=1, line=2, column=1)
        (3, 4)
    """

    def __init__(self, text: str) -> None:
        """`text` is a notebook that `rewrite_notebook` has read without a problem."""
        self._text = text
        self._cells = {cell.number: cell for cell in _read(text)[1]}

    def of(self, cell: int, line: int, column: int) -> tuple[int, int]:
        """The line (from 1) and column (from 0) of the file, for those in a code cell.

        A column behind the end of its line is that of the end.
        """
        wanted = self._cells[cell]
        rows = wanted.text.split("\n")
        row = min(line, len(rows)) - 1
        left = sum(len(each) + 1 for each in rows[:row]) + min(column, len(rows[row]))
        place = wanted.bracket[0] if wanted.bracket is not None else 0
        for part in wanted.lines:
            literal = self._text[part.start + 1 : part.end - 1]
            starts = [character.start() for character in _CHARACTER.finditer(literal)]
            place = part.start + 1 + [*starts, len(literal)][min(left, len(starts))]
            if left < len(part.text):
                break
            left -= len(part.text)
        before = re.split(r"\r\n|\r|\n", self._text[:place])
        return len(before), len(before[-1])


def _only(path: str, status: Any, finding: Finding) -> TreeReport:
    return TreeReport((FileReport(path, status, (), (finding,)),), {})


def _is_python(notebook: dict[str, Any]) -> bool:
    metadata = notebook.get("metadata", {})
    kernel = metadata.get("kernelspec", {})
    language = metadata.get("language_info", {}).get("name") or kernel.get("language") or "python"
    return str(language).lower() in ("python", "ipython")


@dataclass(frozen=True)
class _Program:
    """The code cells as one Python script, each after a statement that names it."""

    text: str
    hidden: dict[str, str]
    cells: tuple[_Cell, ...]
    places: tuple[tuple[int, int], ...]
    """For every line of `text`: the number of its cell, and the line in that."""
    skipped: tuple[tuple[int, int, str], ...]
    """The cells that are not in `text`: the number, the line that cannot be parsed, and why."""

    @classmethod
    def of(cls, cells: tuple[_Cell, ...], py2: Python2) -> _Program:
        parts: list[str] = []
        hidden: dict[str, str] = {}
        used: list[_Cell] = []
        places: list[tuple[int, int]] = []
        skipped: list[tuple[int, int, str]] = []
        for cell in cells:
            code = cell.text
            first = code.lstrip().split("\n", 1)[0]
            if first.startswith("%%") and first[2:].split(" ")[0] not in _PYTHON_MAGICS:
                continue
            if _problem(code, py2) is not None:
                code, masks = _hide(code, len(hidden))
                problem = _problem(code, py2)
                if problem is not None:
                    skipped.append((cell.number, *problem))
                    continue
                hidden.update(masks)
            used.append(cell)
            code = f"{_mark(cell)}\n{code}\n"
            lines = code.count("\n")
            places += [(cell.number, max(number, 1)) for number in range(lines)]
            parts.append(code)
        places.append(places[-1] if places else (1, 1))  # for what stands behind them
        return cls("".join([*parts, _END]), hidden, tuple(used), tuple(places), tuple(skipped))

    def place(self, line: int) -> tuple[int, int]:
        """The number of the cell that a line of `text` stands in, and the line in that."""
        return self.places[min(line, len(self.places)) - 1]

    def cells_of(self, text: str) -> dict[_Cell, str]:
        """The new source of every cell that changed; raises NotebookError where it is not told apart."""
        found: dict[_Cell, str] = {}
        if not text.endswith(_END):
            raise NotebookError("the end of the cells cannot be told")
        text = text.removesuffix(_END)
        for cell, following in zip(self.cells, [*self.cells[1:], None], strict=True):
            before, mark, text = text.partition(f"{_mark(cell)}\n")
            if not mark or before:
                raise NotebookError(f"what belongs to cell {cell.number} cannot be told")
            end = text.find(f"{_mark(following)}\n") if following is not None else len(text)
            if end < 0 or (end and text[end - 1] != "\n"):
                raise NotebookError(f"the end of cell {cell.number} cannot be told")
            new, text = text[:end].removesuffix("\n"), text[end:]
            new = _trimmed(new, cell.text)
            if parse_problem("", new) is not None:
                raise NotebookError(f"cell {cell.number} would not be whole statements")
            for mask, magic in self.hidden.items():
                if (mask in new) != (magic in cell.text and mask in self._own(cell)):
                    raise NotebookError(f"a magic of cell {cell.number} would move")
                new = new.replace(mask, magic)
            if new != cell.text:
                found[cell] = new
        return found

    def _own(self, cell: _Cell) -> str:
        """The part of the program that is this cell's."""
        start = self.text.index(f"{_mark(cell)}\n")
        later = [other for other in self.cells if other.number > cell.number]
        end = self.text.index(f"{_mark(later[0])}\n") if later else len(self.text)
        return self.text[start:end]


def _trimmed(new: str, old: str) -> str:
    """`new` without the blank lines that a file has around a function and a cell has not."""
    if not old.startswith("\n"):
        new = new.lstrip("\n")
    if not old.endswith("\n"):
        new = new.rstrip("\n")
    return new


def _mark(cell: _Cell) -> str:
    # A statement of its own: a comment would go with the statement that it stands at.
    return f'"towermigrate: cell {cell.number}"'


def _problem(code: str, py2: Python2) -> tuple[int, str] | None:
    """Where and why a cell's code is no Python, as that of the rewrite is to be."""
    problem = parse_problem("", code)
    if problem is None or (py2 == "auto" and isinstance(port(code + "\n", ""), Ported)):
        return None
    return problem.line, problem.message.rsplit(": ", 1)[-1]


def _hide(code: str, count: int) -> tuple[str, dict[str, str]]:
    """The code with a statement in place of every magic, and what stood there."""
    masks: dict[str, str] = {}

    def mask(found: re.Match[str]) -> str:
        magic = found[0].lstrip(" \t")
        name = f"pass  # towermigrate: magic {count + len(masks)};" + "\n#" * magic.count("\n")
        masks[name] = magic
        return found[0][: len(found[0]) - len(magic)] + name

    return _MAGIC.sub(mask, code), masks


def _in_cells(file: FileReport, program: _Program) -> FileReport:
    """A report whose lines count in cells."""

    def place(finding: Finding) -> Finding:
        cell, line = program.place(finding.line)
        message = (
            _LINE_LIST.sub(listed, finding.message)
            if finding.rule in _SAYS_LINES
            else finding.message
        )
        message = with_places(message, file.path, lambda n: in_words(*program.place(n)))
        return replace(finding, line=line, message=message, cell=cell)

    def in_words(cell: int, line: int) -> str:
        return f"line {line} of cell {cell}"

    def listed(found: re.Match[str]) -> str:
        spots = [program.place(int(number)) for number in (found[1] or found[2]).split(", ")]
        return ", ".join(in_words(*spot) for spot in spots)

    def in_cell(one: ProgramReport) -> ProgramReport:
        cell, line = program.place(one.line)
        return replace(
            one,
            line=line,
            findings=tuple(map(place, one.findings)),
            not_loop=tuple(map(place, one.not_loop)),
            cell=cell,
        )

    return replace(
        file,
        programs=tuple(map(in_cell, file.programs)),
        findings=tuple(map(place, file.findings)),
    )


def _read(text: str) -> tuple[dict[str, Any], tuple[_Cell, ...]]:
    """The notebook, and its code cells with where their strings stand."""
    notebook = json.loads(text)
    if not isinstance(notebook, dict):
        raise NotebookError("it is no JSON object")
    spans: dict[tuple[str | int, ...], tuple[int, int]] = {}
    _spans(text, _SPACE.match(text).end(), (), spans)  # type: ignore[union-attr]
    cells: list[_Cell] = []
    number = 0
    for keys, cell in _all_cells(notebook):
        number += 1
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        # In version 3 of the format a cell has an `input`, and a language of its own.
        key = "source" if "source" in cell else "input"
        if cell.get("language", "python") != "python" or key not in cell:
            continue
        keys, source = (*keys, key), cell[key]
        if isinstance(source, str):
            lines: tuple[_Line, ...] = (_Line(source, *spans[keys]),)
            cells.append(_Cell(number, keys, lines, None))
        elif isinstance(source, list) and all(isinstance(line, str) for line in source):
            lines = tuple(_Line(line, *spans[keys + (index,)]) for index, line in enumerate(source))
            cells.append(_Cell(number, keys, lines, spans[keys]))
        else:
            raise NotebookError(f"the source of cell {number} is no text")
    return notebook, tuple(cells)


def _all_cells(notebook: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(notebook.get("cells"), list):
        for index, cell in enumerate(notebook["cells"]):
            yield ("cells", index), cell
    elif isinstance(notebook.get("worksheets"), list):
        for sheet, content in enumerate(notebook["worksheets"]):
            for index, cell in enumerate(content.get("cells", ())):
                yield ("worksheets", sheet, "cells", index), cell
    else:
        raise NotebookError("it has no cells")


def _spans(
    text: str,
    at: int,
    keys: tuple[str | int, ...],
    spans: dict[tuple[str | int, ...], tuple[int, int]],
) -> int:
    """Note where every value of a JSON text stands, by the keys that lead to it; gives the end of this one."""

    def skip(position: int) -> int:
        found = _SPACE.match(text, position)
        return found.end() if found else position

    opening = text[at]
    if opening == '"':
        end = _DECODER.raw_decode(text, at)[1]
    elif opening in "{[":
        position, index = skip(at + 1), 0
        while text[position] not in "}]":
            key: str | int = index
            if opening == "{":
                key, position = _DECODER.raw_decode(text, position)
                position = skip(skip(position) + 1)
            position = skip(_spans(text, position, (*keys, key), spans))
            if text[position] == ",":
                position = skip(position + 1)
            index += 1
        end = position + 1
    else:
        found = _SCALAR.match(text, at)
        if found is None:
            raise NotebookError(f"no value at offset {at}")
        end = found.end()
    spans[keys] = (at, end)
    return end


def _splice(
    text: str, notebook: dict[str, Any], cells: tuple[_Cell, ...], changed: dict[_Cell, str]
) -> str:
    """The notebook's text with new sources; raises NotebookError where anything else would change."""
    wanted = deepcopy(notebook)
    edits: list[tuple[int, int, str]] = []
    for cell, new in changed.items():
        holder: Any = wanted
        for key in cell.keys[:-1]:
            holder = holder[key]
        if cell.bracket is None:
            (line,) = cell.lines
            holder[cell.keys[-1]] = new
            edits.append((line.start, line.end, _literal(text, new)))
            continue
        lines = re.findall(r"[^\n]*\n|[^\n]+", new)
        holder[cell.keys[-1]] = lines
        edits.append((*cell.bracket, _list(text, cell, lines)))
    pieces: list[str] = []
    done = 0
    for start, end, piece in sorted(edits):
        pieces += [text[done:start], piece]
        done = end
    result = "".join([*pieces, text[done:]])
    if json.loads(result) != wanted:
        raise NotebookError("the notebook could not be put together again")
    return result


def _list(text: str, cell: _Cell, lines: list[str]) -> str:
    """The JSON list of a cell's lines; those that stay keep their literals, and all the white space between them."""
    assert cell.bracket is not None
    old = cell.lines
    start, end = cell.bracket
    gaps = {text[a.end : b.start] for a, b in zip(old, old[1:], strict=False)}
    if len(gaps) > 1:
        raise NotebookError(f"the lines of cell {cell.number} are laid out in different ways")
    lead, tail = text[start : old[0].start], text[old[-1].end : end]
    gap = gaps.pop() if gaps else "," + (lead[1:] or " ")
    literals: list[str] = []
    matcher = SequenceMatcher(None, [line.text for line in old], lines, False)
    for tag, first, _, new_first, new_last in matcher.get_opcodes():
        for index in range(new_first, new_last):
            if tag == "equal":
                line = old[first + index - new_first]
                literals.append(text[line.start : line.end])
            else:
                literals.append(_literal(text, lines[index]))
    return lead + gap.join(literals) + tail


def _literal(text: str, new: str) -> str:
    """A JSON string, with characters beyond ASCII escaped unless the notebook has some as they are."""
    return json.dumps(new, ensure_ascii=text.isascii())
