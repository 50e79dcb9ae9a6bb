"""Whether the symbol pass would leave a text as it is, told without its syntax tree, in a quarter of the time.

What a rewrite gave is looked at again, and nearly always there is nothing to do. The pass decides by imports, by
chains of names that begin at an imported name, and by the arguments of a few calls. All of these can be seen in
the text once its strings and comments are gone. They are put into a file of their own, a short one, and the pass
itself looks at that. Scopes are not kept: a chain that a local name hides is looked at as well. So the answer is
either certain or not given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from towermigrate.symbols import tf0
from towermigrate.symbols.alike import ALIKE
from towermigrate.symbols.apply import file_symbols, is_inert
from towermigrate.symbols.bindings import OTHER, import_bindings
from towermigrate.symbols.scopes import file_names
from towermigrate.symbols.sessions import mode
from towermigrate.symbols.tables import normal, prefix_in
from towermigrate.symbols.work import Mode
from towermigrate.tree import Module, modules_in, parse_python

WORDS = ("tensorflow", "tf_slim", "towermigrate")
"""One of these stands in every import that the pass asks something of."""

_STRING_OR_COMMENT = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r"|#[^\n]*",
    re.DOTALL,
)
_STRING = '""'
_WITH_CODE = re.compile(r'""(?:(?<=[fFtT]"")|(?<=[fFtT][rR]""))')
"""How a string with code in it begins: `rf` ends like `f`."""
_MANY = 100
"""Aliases: each takes a search of the whole text."""

# It begins with a certain text, for which `re` searches much faster.
_IMPORT = re.compile(r"import(?<!\wimport)\b[ \t\f]*(?:\([^)]*\)|[^\n;]*)")
_BEFORE_IMPORT = re.compile(r"(?:from\b[\w. \t\f]*)?")
_NAME = re.compile(r"\w+")
_WORD = re.compile("|".join(WORDS))
_VALUE = re.compile(r"\.\s*value\b")
_BRACKET = re.compile(r"[()\[\]{}]")
_BLANK = re.compile(r"\s*")
_GOES_ON = re.compile(r"\s*\.|\w")
_CALLED_OUTSIDE = re.compile(r"[\s)]*\)\s*\(")


@dataclass(frozen=True)
class Unchanged:
    """Of a text that stays as it is: the modules of its imports that mention one of `WORDS`, and how it runs."""

    modules: frozenset[Module]
    mode: Mode


def surely_unchanged(text: str) -> Unchanged | None:
    """Whether the symbol pass, taking the text for TensorFlow 1 code, would change nothing in it.

    Args:
        text: a text that Python can parse.

    Returns:
        What its imports and names say; None where it is not certain.

    Example:
        >>> surely_unchanged("import tensorflow as tf\\ntf.range(3)\\n").modules
        frozenset({(0, 'tensorflow')})
        >>> surely_unchanged("import tensorflow as tf\\ntf.placeholder(tf.float32)\\n") is None
        True
    """
    code = _code(text)
    if code is None:
        return None
    head = _imports_in(code)
    if head is None or "contrib" in head:
        return None
    imports = _imports(head)
    if imports is None or ("value" in code and "shape" in code and _VALUE.search(code)):
        return None
    aliases: list[str] = []
    meanings = _with_aliases(code, imports.meanings, aliases)
    if meanings is None or any(_goes_on_behind_brackets(code, root) for root in meanings):
        return None
    if any(_asked_of(root).search(code) for root in meanings):
        return None
    chains = {
        chain: meanings[root] + "".join(chain.split())[len(root) :]
        for root in meanings
        for chain in _chain_of(root).findall(code)
    }
    doubtful = _doubtful(code, chains)
    if doubtful is None:
        return None
    # The pass passes over a file that does not say the word, be it in a comment.
    word = "# tensorflow" if "tensorflow" in text else ""
    short = "\n".join([head, *(aliases if doubtful else ()), *doubtful, word])
    return Unchanged(imports.modules, mode(chains.values())) if _settled(short) else None


def _doubtful(code: str, chains: Mapping[str, str]) -> list[str] | None:
    """The chains and calls that the pass may have to do with, sorted; None where they do not tell all.

    `chains` are given as they are written, with what each means.
    """
    found: list[str] = []
    for chain, dotted in chains.items():
        if is_inert(dotted):
            continue
        plain = "".join(chain.split())
        name, _ = normal(dotted) or ("", False)
        if prefix_in(name, tf0.NAMES):
            return None
        if name in tf0.ORDERED or name in ALIKE:
            calls = _calls(code, chain)
            if calls is None:
                return None
            found += [f"({plain}{call})" for call in calls]
            if name in ALIKE and len(calls) == _uses(code, chain):
                continue  # of these the call decides
        found.append(plain)
    return sorted(found)


def _code(text: str) -> str | None:
    """A text with `""` for every string and without comments; None where names may be hidden in it."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    code = _STRING_OR_COMMENT.sub(_left, text).replace("\\\n", "  ")
    # An identifier that Python reads as another one, or a string with code in it, which may go over lines.
    if not code.isascii() or _WITH_CODE.search(code) or "'" in code:
        return None
    return code if code.count('"') == 2 * code.count(_STRING) else None


def _left(found: re.Match[str]) -> str:
    return "" if found.group()[0] == "#" else _STRING


def _imports_in(code: str) -> str | None:
    """The import statements that mention one of `WORDS`, one after the other; None where one is spelled oddly."""
    found: list[str] = []
    for match in _IMPORT.finditer(code):
        line = code[code.rfind("\n", 0, match.start()) + 1 : match.end()]
        if _WORD.search(line) is None:
            continue
        before = _statement_before(code, match.start())
        if _BEFORE_IMPORT.fullmatch(before) is None:
            return None
        found.append(f"{before} {match.group()}".strip())
    return "\n".join(found)


@dataclass(frozen=True)
class _Imports:
    meanings: dict[str, str]
    """What each name that is bound to TensorFlow means."""
    modules: frozenset[Module]


@cache
def _imports(head: str) -> _Imports | None:
    """What the import statements in `head` bind; None where a name means two things."""
    try:
        tree = parse_python(head)
    except (SyntaxError, ValueError):
        return None
    meanings: dict[str, str] = {}
    nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in nodes:
        for name, meaning in import_bindings(node):
            if name == "*" and meaning != OTHER:
                return None  # any name may be one of TensorFlow
            if name != "*" and meaning != OTHER and meanings.setdefault(name, meaning) != meaning:
                return None
    return _Imports(meanings, modules_in(nodes))


def _with_aliases(code: str, imported: dict[str, str], found: list[str]) -> dict[str, str] | None:
    """The meanings with those of `name = tf.nn`, wherever it stands; None where a name means two things.

    The aliases are put into `found`, each behind what it is an alias of.
    """
    meanings = dict(imported)
    todo = list(imported)
    while todo:
        root = todo.pop()
        for match in _alias_of(root).finditer(code):
            name = _statement_before(code, match.start()).strip("() \t\f")
            whole = meanings[root] + "".join(match.group(1).split())
            # As in `scopes`: what ends in upper case is no module.
            if not name:
                return None
            if _NAME.fullmatch(name) is None or not whole.rpartition(".")[2].islower():
                continue
            if name not in meanings:
                if len(meanings) > _MANY:
                    return None
                meanings[name] = whole
                found.append(f"{name} = {root}{''.join(match.group(1).split())}")
                todo.append(name)
            elif meanings[name] != whole:
                return None
    return meanings


def _goes_on_behind_brackets(code: str, root: str) -> bool:
    """Whether a chain may begin in brackets of its own: `(tf.nn).relu`."""
    for match in _closed_chain_of(root).finditer(code):
        before = code[max(match.start() - 100, 0) : match.start()].rstrip()
        if not before or before[-1] == "(":
            return True
    return False


def _statement_before(code: str, place: int) -> str:
    """What stands between the beginning of a statement and a place on its first line."""
    line = code[code.rfind("\n", 0, place) + 1 : place]
    return line[max(line.rfind(";"), line.rfind(":")) + 1 :].strip()


# Each begins with a certain text, for which `re` searches much faster. A name after a point is another one.
@cache
def _chain_of(root: str) -> re.Pattern[str]:
    return re.compile(rf"{root}(?<![\w.]{root})\b(?:\s*\.\s*[^\W\d]\w*)*")


@cache
def _closed_chain_of(root: str) -> re.Pattern[str]:
    return re.compile(rf"{root}(?<![\w.]{root})\b(?:\s*\.\s*[^\W\d]\w*)*\s*\)[\s)]*\.")


@cache
def _asked_of(root: str) -> re.Pattern[str]:
    """What asks a module for its names, where it is not TensorFlow 1's by its own words."""
    of_tensorflow_1 = r"(?!\s*\.\s*compat\s*\.\s*v1\b)"
    asks = r"\b(?:getattr|hasattr|dir|vars)\s*\(\s*"
    return re.compile(rf"{asks}{root}\b{of_tensorflow_1}|(?<![\w.]){root}\b[\w.\s]*__dict__\b")


@cache
def _alias_of(root: str) -> re.Pattern[str]:
    return re.compile(rf"=[\s(]*{root}\b((?:\s*\.\s*[^\W\d]\w*)*)[ \t\f)]*(?:$|;)", re.MULTILINE)


def _uses(code: str, chain: str) -> int:
    """How often a chain stands there whole: not as a part of a longer one."""
    return sum(_GOES_ON.match(code, end) is None for _, end in _places(code, chain))


def _calls(code: str, chain: str) -> list[str] | None:
    """The arguments, in their brackets, of each call of a chain; None where it may be called from out of brackets."""
    found: list[str] = []
    for _, end in _places(code, chain):
        if _CALLED_OUTSIDE.match(code, end):
            return None
        start = _BLANK.match(code, end)
        assert start is not None
        if code[start.end() : start.end() + 1] != "(":
            continue
        depth = 0
        for bracket in _BRACKET.finditer(code, start.end()):
            depth += 1 if bracket.group() in "([{" else -1
            if depth == 0:
                found.append(code[start.end() : bracket.end()])
                break
        else:
            return None
    return found


def _places(code: str, chain: str) -> Iterator[tuple[int, int]]:
    """Where a chain begins and ends, but for the ends of other names; a pattern for each chain would take far longer."""
    start = code.find(chain)
    while start >= 0:
        end = start + len(chain)
        before = code[start - 1 : start] if start else ""
        if not (before.isalnum() or before in ("_", ".")):
            yield start, end
        start = code.find(chain, start + 1)


@cache
def _settled(text: str) -> bool:
    """Whether the pass changes nothing in the short file that holds all there is to change."""
    try:
        tree = parse_python(text)
        names = file_names(tree)
        result = file_symbols(text, "", tree, names, tf1=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return result.text == text and not names.ambiguous
