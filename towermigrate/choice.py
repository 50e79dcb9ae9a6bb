"""One program of a tree, `train.py:main` or `train.ipynb:main`: convert that one, and keep the file's other programs as they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from towermigrate.listing import NOTEBOOK
from towermigrate.tree import parse_python


class ChoiceError(Exception):
    """What was asked for cannot be meant; the text says what there is instead."""


@dataclass(frozen=True)
class Chosen:
    """A program by the file and the dotted name of the function that holds its tower loop."""

    path: str
    function: str


def parse_target(text: str) -> tuple[Path, str | None]:
    """A PATH of the command line as a path and the function that it names, None where it names none.

    Example:
        >>> parse_target("src/train.py:Trainer.run")
        (PosixPath('src/train.py'), 'Trainer.run')
    """
    path = Path(text)
    name, colon, function = text.rpartition(":")
    # A path with a colon in it is a path as long as it exists.
    if not colon or path.exists() or not name.endswith((".py", NOTEBOOK)):
        return path, None
    if not all(part.isidentifier() or part == "<locals>" for part in function.split(".")):
        raise ChoiceError(f"{text}: after the colon stands the name of a function")
    return Path(name), function


def has_function(text: str, function: str) -> bool:
    """Whether the file has a function of this dotted name."""
    return function in _spans(text)


def put_back(before: str, after: str, functions: Collection[str | None]) -> str:
    """`after` with some functions as they were in `before`, byte for byte.

    Args:
        before: the file as it was.
        after: the file rewritten.
        functions: dotted names; None stands for a program at module level.

    Raises:
        ChoiceError: they cannot be kept; the text says why.
    """
    from towermigrate.emit.check import parses, unbound

    if None in functions:
        raise ChoiceError("a program at module level cannot be kept apart from the file")
    old, new = _spans(before), _spans(after)
    old_lines, lines = _lines(before), _lines(after)
    placed: list[tuple[int, int, Sequence[str]]] = []
    for name in functions:
        assert name is not None
        there, here = old.get(name, []), new.get(name, [])
        if len(there) != 1 or len(here) != 1:
            raise ChoiceError(f"`{name}` is not there exactly once, so it cannot be kept as it is")
        placed.append((*here[0], old_lines[there[0][0] : there[0][1]]))
    for start, end, kept in sorted(placed, reverse=True):
        lines[start:end] = kept
    text = "".join(lines)
    problem = parses(text)
    if problem is not None:
        raise ChoiceError(f"the file would not parse: {problem}")
    lost = sorted(set(unbound(text)) - set(unbound(before)))
    if lost:
        raise ChoiceError(
            f"`{'`, `'.join(lost)}`, which another program of the file reads, would go"
        )
    return text


def _lines(text: str) -> list[str]:
    """Lines as `ast` counts them, with their ends: `splitlines` would also break at form feeds."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _spans(text: str) -> dict[str, list[tuple[int, int]]]:
    """First line (from 0, decorators included) and end line of every function, by dotted name."""
    found: dict[str, list[tuple[int, int]]] = {}
    todo: list[tuple[str, ast.AST]] = [("", parse_python(text))]
    while todo:
        prefix, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = prefix + child.name
                if not isinstance(child, ast.ClassDef):
                    first = min([child.lineno, *(d.lineno for d in child.decorator_list)]) - 1
                    assert child.end_lineno is not None
                    found.setdefault(name, []).append((first, child.end_lineno))
                inner = "." if isinstance(child, ast.ClassDef) else ".<locals>."
                todo.append((name + inner, child))
            else:
                todo.append((prefix, child))
    return found
