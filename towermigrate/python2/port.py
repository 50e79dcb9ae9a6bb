"""One file from Python 2 to Python 3: syntax first, then what would mean something else."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from towermigrate.faults import fault
from towermigrate.findings import Finding
from towermigrate.python2.division import divide
from towermigrate.python2.keywords import NotRenamed, renamed_keywords
from towermigrate.python2.lists import key_from_cmp, make_lists
from towermigrate.python2.names import no_space_after_line_end, rename, string_functions
from towermigrate.python2.remarks import Remark, about_bytes, about_meaning
from towermigrate.python2.source import Source
from towermigrate.python2.syntax import NotPorted, to_python3_syntax
from towermigrate.symbols.scopes import below
from towermigrate.tree import parse_python, parses

# Cheap signs that only Python 2 parses a file. One of them in a text is no proof, none of them is. Each begins with
# one certain text, by which `re` goes through a file at a nanosecond a character.
_SIGNS = [
    re.compile(sign, re.MULTILINE)
    for sign in (
        rb"print(?<=\bprint)(?:[ \t]+[^\s(=]|\b[ \t]*(?:\([^\r\n]*\)[ \t]*[^\s).\];:#]|>>|$))",
        rb"except(?<=\bexcept)\b[^\r\n:]*,",
        rb"raise(?<=\braise)[ \t]+[\w.]+[ \t]*,",
        rb"exec(?<=\bexec)[ \t]+[^\s(]",
        rb"def(?<=\bdef)[ \t]+\w+[ \t]*\(([^)]*,)?\s*\(",
        rb"lambda(?<=\blambda)[ \t]*\(",
        rb"0(?:(?<![\w.]0)[0-9]|[xX][0-9a-fA-F]+[lL]\b)",
        rb"[0-9][lL]\b",
        rb"async(?<=\basync)\b(?![ \t]+(?:def|for|with)\b|[-'\"])",
        rb"await(?<=\bawait)[ \t]*[=,.):\]]",
    )
]
_LETTERS = [a + b + quote for a in (b"u", b"U") for b in (b"r", b"R") for quote in (b"'", b'"')]
_TAB = re.compile(rb"^[ \t]*\t", re.MULTILINE)


@dataclass(frozen=True)
class Ported:
    """A file in Python 3, and what was found on the way. `lines[n - 1]` is the original's line of line n."""

    text: str
    findings: tuple[Finding, ...]
    lines: tuple[int, ...]

    def line(self, number: int) -> int:
        """The original's line; the last one where the text went on growing."""
        return self.lines[min(number, len(self.lines)) - 1]


@dataclass(frozen=True)
class Unported:
    """Why a file was not brought to Python 3. `python2` says whether it is Python 2 at all.

    `fault` is there where an exception of ours is the reason.
    """

    reason: str
    python2: bool
    fault: Finding | None = None


def looks_like_python2(raw: bytes) -> bool:
    """Whether it is worth parsing a file to learn that Python 3 cannot: a quick look at its bytes."""
    if b"`" in raw or b"<>" in raw or any(sign.search(raw) for sign in _SIGNS):
        return True
    if any(letters in raw for letters in _LETTERS):
        return True
    return b"\t" in raw and _TAB.search(raw) is not None


def port(text: str, path: str) -> Ported | Unported:
    """The same program in Python 3.

    Args:
        text: a file that Python 3 cannot parse, line ends as they are.
        path: its path, for the findings.

    Example:
        >>> ported = port("print 'loss', total / 2\\n", "train.py")
        >>> ported.text
        "print('loss', total / 2)\\n"
        >>> [finding.rule for finding in ported.findings]
        ['TM121', 'TM122']
    """
    try:
        return _port(text, path)
    except RecursionError:
        return Unported("it is nested too deeply to be brought from Python 2", python2=True)
    except Exception as error:
        found = fault(path, error)
        return Unported(found.message, python2=True, fault=found)


def _port(text: str, path: str) -> Ported | Unported:
    try:
        plain, words = renamed_keywords(text)
    except NotRenamed as error:
        return Unported(str(error), python2=True)
    if words:
        named = " and ".join(f"`{word}`" for word in words)
        verb = "are keywords" if len(words) > 1 else "is a keyword"
        message = f"{named}, which {verb} since it was written, got another name: `{words[0]}_`"
        found = Finding("TM121", path, 1, 0, message)
        if parses(plain):  # not Python 2 for certain: nothing else changes
            return Ported(plain, (found,), _original_lines(text, plain))
        rest = _port(plain, path)
        return replace(rest, findings=(found, *rest.findings)) if isinstance(rest, Ported) else rest
    try:
        changed, features = to_python3_syntax(text)
    except NotPorted as error:
        return Unported(str(error), python2=not str(error).startswith("Python 2 cannot"))
    try:
        line = python3_only(parse_python(changed))
        if line is not None:
            return Unported(f"line {line} is Python 3, others are Python 2", python2=False)
        while True:
            source = Source.of(changed)
            if not string_functions(source):
                break
            changed = source.result()
        stay = [] if "division" in features else divide(source)
        rename(source)
        if "print_function" not in features:
            no_space_after_line_end(source)
        key_from_cmp(source)
        make_lists(source)
        result = source.result()
        parse_python(result)
        after = Source.of(result)
        lines = _original_lines(text, result)
        meaning, about_text = about_meaning(after), about_bytes(after)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        return Unported(f"what became of it does not parse{where}: {error}", python2=True)
    findings = [Finding("TM121", path, 1, 0, "was Python 2 and is now Python 3")]
    mapped_lines = _original_lines(text, changed)
    findings += _summed("TM122", path, "`/` may be one between integers", stay, mapped_lines)
    findings += _summed("TM123", path, "bytes are no text in Python 3", about_text, lines)
    findings += _summed("TM124", path, "Python 3 does this otherwise", meaning, lines)
    return Ported(result, tuple(findings), lines)


_MAY_BE_NEW = frozenset(
    {
        ast.JoinedStr,
        ast.AnnAssign,
        ast.Nonlocal,
        ast.AsyncFunctionDef,
        ast.NamedExpr,
        ast.YieldFrom,
        ast.arg,
        ast.FunctionDef,
        ast.Raise,
        ast.ClassDef,
    }
)


def python3_only(tree: ast.Module) -> int | None:
    """The line of something that Python 2 cannot parse: then the file is not a Python 2 program."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        nodes += below(node)
        if node.__class__ not in _MAY_BE_NEW:  # most are not, and each pattern takes its time
            continue
        match node:
            case (
                ast.JoinedStr()
                | ast.AnnAssign()
                | ast.Nonlocal()
                | ast.AsyncFunctionDef()
                | ast.NamedExpr()
                | ast.YieldFrom()
                | ast.arg(annotation=ast.expr())
                | ast.FunctionDef(returns=ast.expr())
                | ast.FunctionDef(args=ast.arguments(kwonlyargs=[_, *_]))
                | ast.Raise(cause=ast.expr())
            ):
                return node.lineno
            case ast.ClassDef(keywords=[keyword, *_]):
                return keyword.lineno
    return None


def _summed(
    rule: str, path: str, message: str, remarks: Sequence[Remark], lines: Sequence[int]
) -> list[Finding]:
    """One finding for all remarks of a kind."""
    if not remarks:
        return []
    what: dict[str, list[int]] = {}
    for line, text in remarks:
        what.setdefault(text, []).append(lines[line - 1])
    parts = [
        f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        + (f" ({text})" if text else "")
        for text, numbers in what.items()
    ]
    first = min(min(numbers) for numbers in what.values())
    return [Finding(rule, path, first, 0, f"{message}: {'; '.join(parts)}")]


def _original_lines(before: str, after: str) -> tuple[int, ...]:
    """For every line of `after`, counted from 1, the line of `before` that it came from."""
    old, new = (re.split(r"\r\n|\r|\n", text) for text in (before, after))
    if len(old) == len(new):
        return tuple(range(1, len(new) + 1))
    lines: list[int] = []
    for _, start, end, new_start, new_end in SequenceMatcher(None, old, new, False).get_opcodes():
        for index in range(new_end - new_start):
            lines.append(min(start + index, max(end - 1, start), len(old) - 1) + 1)
    return tuple(lines)
