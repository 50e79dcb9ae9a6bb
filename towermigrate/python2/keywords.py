"""Words that became keywords after a file was written, used as names: `def train(async=True)`.

They are renamed where all uses of the name stand in the file. Every other file that says the name cannot be parsed
either, so none of them is missed: it is renamed in the same way, or has a finding.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence

from towermigrate.symbols.edits import Text

LATER = ("async", "await", "nonlocal")
_OPEN, _CLOSE = "([{", ")]}"


class NotRenamed(Exception):
    """Why a name that is a keyword now was not renamed."""


def renamed_keywords(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with other names in place of keywords, and these keywords.

    Args:
        text: a file that Python 3 cannot parse.

    Raises NotRenamed where a use of the name may mean something outside of the file.

    Example:
        >>> renamed_keywords("def f(async=1):\\n    return async\\nf(async=2)\\n")
        ('def f(async_=1):\\n    return async_\\nf(async_=2)\\n', ('async',))
    """
    words = tuple(word for word in LATER if word in text)
    if not words:
        return text, ()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline=None).readline))
    except (tokenize.TokenError, SyntaxError):
        return text, ()
    source = Text(text)
    places: list[int] = []
    found: list[str] = []
    for word in words:
        uses = [
            index
            for index, token in enumerate(tokens)
            if token.type == tokenize.NAME
            and token.string == word
            and not _is_keyword(tokens, index)
        ]
        if uses:
            _check(word, uses, tokens)
            found.append(word)
            places += [_end(source, tokens[index]) for index in uses]
    pieces: list[str] = []
    done = 0
    for place in sorted(places):
        pieces += [text[done:place], "_"]
        done = place
    return "".join([*pieces, text[done:]]), tuple(found)


def _end(source: Text, token: tokenize.TokenInfo) -> int:
    line, column = token.end  # in characters
    return source.starts[line - 1] + column


def _is_keyword(tokens: Sequence[tokenize.TokenInfo], index: int) -> bool:
    """Whether a word stands where Python 3 has it as a keyword: before `def`, or before what it applies to."""
    following = tokens[index + 1]
    if tokens[index].string == "async":
        return following.string in ("def", "for", "with")
    return following.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING) and following.string not in (
        "and", "or", "if", "else", "in", "is", "not", "for",
    )  # fmt: skip


def _check(word: str, uses: Sequence[int], tokens: Sequence[tokenize.TokenInfo]) -> None:
    """Raise NotRenamed where a use may mean something outside of the file."""
    line = tokens[uses[0]].start[0]
    own = f"`{word}` (line {line}) is a keyword since it was used as a name here, and"
    strings = {token.string.strip("bBuUrR'\"") for token in tokens if token.type == tokenize.STRING}
    if word in strings:
        raise NotRenamed(f"{own} a text of the file names it too: rename both by hand")
    if any(token.string == f"{word}_" for token in tokens):
        raise NotRenamed(f"{own} `{word}_` is taken: rename it by hand")
    parameters = any(_is_parameter(tokens, index) for index in uses)
    for index in uses:
        before, after = tokens[index - 1].string, tokens[index + 1].string
        if before == "." and tokens[index - 2].string not in ("self", "cls"):
            raise NotRenamed(
                f"{own} it may be an attribute of another file's object: rename it by hand"
            )
        if before == "." and not _is_set(word, tokens):
            raise NotRenamed(f"{own} the file does not set that attribute: rename it by hand")
        if _logical_line(tokens, index) in ("import", "from", "global"):
            raise NotRenamed(f"{own} another file may have it: rename it by hand")
        if after == "=" and _depth(tokens, index) and not parameters:
            raise NotRenamed(f"{own} no function of the file takes it: rename it by hand")


def _is_set(word: str, tokens: Sequence[tokenize.TokenInfo]) -> bool:
    """Whether the file gives an object this attribute, by an assignment to it or a method of the name."""
    strings = [token.string for token in tokens]
    return any(
        strings[index - 1 : index + 2] == [".", word, "="] or strings[index - 1 : index + 1] == ["def", word]
        for index in range(1, len(strings))
    )  # fmt: skip


def _is_parameter(tokens: Sequence[tokenize.TokenInfo], index: int) -> bool:
    """Whether a name stands among the parameters of a `def` or `lambda`."""
    return _logical_line(tokens, index) == "def" and _depth(tokens, index) == 1


def _line_start(tokens: Sequence[tokenize.TokenInfo], index: int) -> int:
    ends = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    while index and tokens[index - 1].type not in ends:
        index -= 1
    while tokens[index].type in (tokenize.NL, tokenize.COMMENT):
        index += 1
    return index


def _logical_line(tokens: Sequence[tokenize.TokenInfo], index: int) -> str:
    """The first word of the statement that a token stands in."""
    return tokens[_line_start(tokens, index)].string


def _depth(tokens: Sequence[tokenize.TokenInfo], index: int) -> int:
    """In how many brackets a token stands."""
    inside = [token.string for token in tokens[_line_start(tokens, index) : index]]
    return sum(each in _OPEN for each in inside if each) - sum(
        each in _CLOSE for each in inside if each
    )
