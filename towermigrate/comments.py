"""Comments that speak to towermigrate: `# towermigrate: ignore`, `ignore[TM118]` and `skip-file`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable

from towermigrate.findings import Finding

_MARK = "towermigrate:"
_COMMENT = re.compile(
    r"towermigrate:\s*(?P<order>skip-file|ignore)(?:\[(?P<rules>[^\]]*)\])?(?![\w-])", re.IGNORECASE
)


def _orders(text: str) -> list[tuple[int, re.Match[str]]]:
    """The comments that speak to us, with their lines; what stands in a string is no comment."""
    if _MARK not in text.lower() or _COMMENT.search(text) is None:
        return []
    found: list[tuple[int, re.Match[str]]] = []
    try:
        # With other line ends tokenize counts lines as `ast` does: at \n, \r\n and \r.
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type == tokenize.COMMENT:
                match = _COMMENT.search(token.string)
                if match is not None:
                    found.append((token.start[0], match))
    except (tokenize.TokenError, SyntaxError):
        pass  # what Python cannot read has been read up to there
    return found


def skips_file(text: str) -> int | None:
    """The line of a `# towermigrate: skip-file`, None where there is none.

    Example:
        >>> skips_file("import tensorflow as tf\\n# towermigrate: skip-file\\n")
        2
    """
    lines = [line for line, order in _orders(text) if order["order"].lower() == "skip-file"]
    return lines[0] if lines else None


def suppressed(text: str) -> dict[int, tuple[str, ...]]:
    """What `# towermigrate: ignore` comments name, by line: prefixes of rule ids, `("",)` for all rules.

    Example:
        >>> suppressed("a = 1  # towermigrate: ignore\\nb = 2  # towermigrate: ignore[TM118, TM3]\\n")
        {1: ('',), 2: ('TM118', 'TM3')}
    """
    found: dict[int, tuple[str, ...]] = {}
    for line, order in _orders(text):
        if order["order"].lower() == "ignore":
            listed = order["rules"]
            names = [""] if listed is None else [part.strip().upper() for part in listed.split(",")]
            found[line] = tuple(name for name in names if name or listed is None)
    return found


def without_suppressed(findings: Iterable[Finding], text: str) -> tuple[Finding, ...]:
    """The findings that no comment on their line hides; a refusal (an error) is never hidden.

    Args:
        findings: findings of one file.
        text: that file, as it was when they were found.
    """
    hidden = suppressed(text)
    return tuple(
        finding
        for finding in findings
        if finding.severity == "error" or not finding.rule.startswith(hidden.get(finding.line, ()))
    )
