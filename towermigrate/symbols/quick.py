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
from dataclasses import dataclass
from functools import cache

from towermigrate.lexical import STRING, without_strings
from towermigrate.symbols import tf0
from towermigrate.symbols.apply import file_symbols, is_inert
from towermigrate.symbols.scopes import OTHER, file_names, import_bindings
from towermigrate.symbols.tables import normal, prefix_in
from towermigrate.tree import Module, modules_in, parse_python

WORDS = ("tensorflow", "tf_slim", "towermigrate")
"""One of these stands in every import that the pass asks something of."""

_WITH_CODE = tuple(f"{prefix}{STRING}" for prefix in "f F fr fR Fr FR t T tr tR Tr TR".split())
"""How a string with code in it begins: `rf` ends like `f`."""

_IMPORT = re.compile(r"\bimport\b[ \t\f]*(?:\([^)]*\)|[^\n;]*)")
_BEFORE_IMPORT = re.compile(r"(?:from\b[\w. \t\f]*)?")
_NAME = re.compile(r"\w+")
_VALUE = re.compile(r"\.\s*value\b")
_BRACKET = re.compile(r"[()\[\]{}]")


def surely_unchanged(text: str) -> frozenset[Module] | None:
    """Whether the symbol pass, taking the text for TensorFlow 1 code, would change nothing in it.

    Args:
        text: a text that Python can parse.

    Returns:
        The modules of its imports that mention one of `WORDS`; None where it is not certain.

    Example:
        >>> surely_unchanged("import tensorflow as tf\\ntf.range(3)\\n")
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
    if imports is None:
        return None
    if "value" in code and "shape" in code and _VALUE.search(code):
        return None
    meanings = _with_aliases(code, imports.meanings)
    if meanings is None:
        return None
    doubtful: list[str] = []
    for chain in {chain for root in meanings for chain in _chain_of(root).findall(code)}:
        plain = "".join(chain.split())
        root, dot, rest = plain.partition(".")
        dotted = f"{meanings[root]}{dot}{rest}"
        if is_inert(dotted):
            continue
        if root not in imports.meanings:
            return None
        known = normal(dotted)
        if known is not None and prefix_in(known[0], tf0.NAMES):
            return None
        if known is not None and known[0] in tf0.ORDERED:
            calls = _calls(code, chain)
            if calls is None:
                return None
            doubtful += [f"({plain}{call})" for call in calls]
        doubtful.append(plain)
    # The pass passes over a file that does not say the word, be it in a comment.
    short = "\n".join([head, *sorted(doubtful), "# tensorflow" if "tensorflow" in text else ""])
    return imports.modules if _settled(short) else None


def _code(text: str) -> str | None:
    """The text `without_strings`; None where names may be hidden in it."""
    code = without_strings(text)
    # A string with code in it, or an identifier that Python reads as another one.
    if not code.isascii() or any(start in code for start in _WITH_CODE):
        return None
    return code


def _imports_in(code: str) -> str | None:
    """The import statements that mention one of `WORDS`, one after the other; None where one is spelled oddly."""
    found: list[str] = []
    for match in _IMPORT.finditer(code):
        before = _statement_before(code, match.start())
        if _BEFORE_IMPORT.fullmatch(before) is None:
            return None
        statement = f"{before} {match.group()}".strip()
        if any(word in statement for word in WORDS):
            found.append(statement)
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
            if name != "*" and meaning != OTHER and meanings.setdefault(name, meaning) != meaning:
                return None
    return _Imports(meanings, modules_in(nodes))


def _with_aliases(code: str, imported: dict[str, str]) -> dict[str, str] | None:
    """The meanings with those of `name = tf.nn`, wherever it stands; None where a name means two things."""
    meanings = dict(imported)
    todo = list(imported)
    while todo:
        root = todo.pop()
        for match in _alias_of(root).finditer(code):
            name = _statement_before(code, match.start()).strip("()")
            whole = meanings[root] + "".join(match.group(1).split())
            # As in `scopes`: what ends in upper case is no module.
            if not name:
                return None
            if _NAME.fullmatch(name) is None or not whole.rpartition(".")[2].islower():
                continue
            if name not in meanings:
                meanings[name] = whole
                todo.append(name)
            elif meanings[name] != whole:
                return None
    return meanings


def _statement_before(code: str, place: int) -> str:
    """What stands between the beginning of a statement and a place on its first line."""
    line = code[code.rfind("\n", 0, place) + 1 : place]
    return line[max(line.rfind(";"), line.rfind(":")) + 1 :].strip()


# Each begins with a certain text, for which `re` searches much faster. A name after a point is another one.
@cache
def _chain_of(root: str) -> re.Pattern[str]:
    return re.compile(rf"{root}(?<![\w.]{root})\b(?:\s*\.\s*[^\W\d]\w*)*")


@cache
def _alias_of(root: str) -> re.Pattern[str]:
    return re.compile(rf"=[\s(]*{root}\b((?:\s*\.\s*[^\W\d]\w*)*)[ \t\f)]*(?:$|;)", re.MULTILINE)


def _calls(code: str, chain: str) -> list[str] | None:
    """The arguments, in their brackets, of each call of a chain; None where it may be called from out of brackets."""
    found: list[str] = []
    if re.search(rf"{re.escape(chain)}[\s)]*\)\s*\(", code):
        return None
    for match in re.finditer(rf"(?<![\w.]){re.escape(chain)}\s*(?=\()", code):
        depth = 0
        for bracket in _BRACKET.finditer(code, match.end()):
            depth += 1 if bracket.group() in "([{" else -1
            if depth == 0:
                found.append(code[match.end() : bracket.end()])
                break
        else:
            return None
    return found


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
