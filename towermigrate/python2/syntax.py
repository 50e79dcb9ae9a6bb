"""From Python 2 syntax to Python 3 syntax, by fixers of fissix that cannot change what a program means."""

from __future__ import annotations

import ast
import io
import logging
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from towermigrate.tree import parse_python

if TYPE_CHECKING:
    from fissix.pytree import Leaf, Node
    from fissix.refactor import RefactoringTool

# The rest of fissix's fixers rename what they find by name alone, or change what a program does.
_FIXERS = (
    "except exec has_key ne numliterals paren print raise repr throw tuple_params".split()
)  # fmt: skip
_LINE_END = re.compile(r"\r\n|\r|\n")
# `except A, e` is Python 3 again from 3.14 on, where it means another thing.
_FIXED_WORDS = re.compile(r"\bexcept\b[^:\n(]*,|\b(?:exec|has_key|throw)\b|\\[uUN]|__builtin__|\t")
_PRINT = re.compile(r"\bprint\b")
_BACKSLASHES = re.compile(r"(\\+)(?=[uUN])")


# Names in Python 2, keywords in Python 3.
_CONSTANTS = re.compile(r"^([ \t]*from __builtin__ import )([\w, \t]+)$", re.MULTILINE)


class NotPorted(Exception):
    """Why a file was not brought to Python 3."""


def to_python3_syntax(text: str) -> tuple[str, frozenset[str]]:
    """The text in Python 3's syntax, and the `__future__` features that it asks for.

    Everything but the changed statements keeps its characters, line ends included. Raises NotPorted.
    """
    features = _of_both(text)
    if features is not None:
        return text, features
    ends = _LINE_END.findall(text)
    plain = _LINE_END.sub("\n", text)
    plain = _CONSTANTS.sub(_without_constants, plain)
    added = "" if plain.endswith("\n") else "\n"
    try:
        tree = _tool().refactor_string(plain + added, "file")
    except OSError as error:
        raise NotPorted(f"fissix cannot keep its tables: {error}") from error
    except Exception as error:  # its parser and its fixers raise many kinds
        line = _line_of(error)
        raise NotPorted(f"Python 2 cannot parse it either{line}") from error
    features = frozenset(tree.future_features)
    for leaf in tree.leaves():
        _fix_literal(leaf, "unicode_literals" in features)
    result = str(tree).removesuffix(added) if added else str(tree)
    return _with_line_ends(_as_python2_saw_tabs(result), ends), features


def _of_both(text: str) -> frozenset[str] | None:
    """The `__future__` features of a text that Python 3 can parse and in which no fixer has anything to do, else None.

    What the other fixers look for is no Python 3.
    """
    if _FIXED_WORDS.search(text):
        return None
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    features = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    }
    if "print_function" not in features and _PRINT.search(text):
        return None
    return frozenset(features)


def _without_constants(found: re.Match[str]) -> str:
    """`from __builtin__ import False, int` without what no longer is a name."""
    names = [name for each in found[2].split(",") if (name := each.strip())]
    kept = [name for name in names if name not in ("True", "False", "None")]
    if len(kept) == len(names):
        return found[0]
    indentation = found[1][: len(found[1]) - len(found[1].lstrip())]
    return found[1] + ", ".join(kept) if kept else f"{indentation}pass"


def _line_of(error: Exception) -> str:
    """` (line 3)`, where an error of fissix's tokenizer or parser says so."""
    place = getattr(error, "context", ("", error.args[-1]))[1]
    return f" (line {place[0]})" if isinstance(place, tuple) and len(place) == 2 else ""


@lru_cache(maxsize=1)
def _tool() -> RefactoringTool:
    logging.getLogger("RefactoringTool").addHandler(logging.NullHandler())
    import fissix

    fixers = [f"fissix.fixes.fix_{name}" for name in _FIXERS]
    try:
        from fissix.refactor import RefactoringTool
    except OSError:  # it writes its grammar to the user's cache, which may be read-only
        with tempfile.TemporaryDirectory() as folder:
            fissix.CACHE_DIR = Path(folder)
            from fissix.refactor import RefactoringTool

            return RefactoringTool(fixers)
    return RefactoringTool(fixers)


def _fix_literal(leaf: Leaf | Node, all_unicode: bool) -> None:
    """`ur"…"` is gone, and `"\\u…"` was six characters where the text was one of bytes."""
    from fissix.pgen2 import token

    if leaf.type != token.STRING:
        return
    value: str = leaf.value
    quote = min(value.find(mark) for mark in "'\"" if mark in value)
    prefix, body = value[:quote].lower(), value[quote:]
    if prefix == "ur":
        if _BACKSLASHES.search(body):
            raise NotPorted(f"line {leaf.lineno}: a raw Unicode text with an escape in it")
        leaf.value = "r" + body
    elif prefix == "" and not all_unicode:
        leaf.value = _BACKSLASHES.sub(lambda found: found[1] + "\\" * (len(found[1]) % 2), value)


def _as_python2_saw_tabs(text: str) -> str:
    """Indentation in spaces, a tab to the next multiple of 8, where Python 3 calls it inconsistent."""
    try:
        parse_python(text)
        return text
    except TabError:
        pass
    except (SyntaxError, ValueError, RecursionError):
        return text
    from fissix.pgen2 import token, tokenize

    inside: set[int] = set()
    for kind, _, (first, _), (last, _), _ in tokenize.generate_tokens(io.StringIO(text).readline):
        if kind == token.STRING:
            inside.update(range(first + 1, last + 1))
    lines = text.split("\n")
    for index, line in enumerate(lines):
        rest = line.lstrip(" \t")
        if index + 1 not in inside and rest and "\t" in line[: len(line) - len(rest)]:
            lines[index] = line[: len(line) - len(rest)].expandtabs(8) + rest
    return "\n".join(lines)


def _with_line_ends(text: str, ends: list[str]) -> str:
    """`text`, whose lines end in line feeds, with the line ends that the original had."""
    if len(set(ends)) <= 1:
        return text.replace("\n", ends[0]) if ends else text
    lines = text.split("\n")
    if len(lines) - 1 != len(ends):
        raise NotPorted("its lines end in different ways, and a statement needs a line more")
    return "".join(line + end for line, end in zip(lines, [*ends, ""], strict=True))
