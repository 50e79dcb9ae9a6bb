"""Settings that are what they are for as long as a program runs: `args.lr`, which nothing sets and nobody computes."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFLECTIVE = re.compile(
    r"\bsetattr\b|\bdelattr\b|__dict__|\bvars\(|__getattr|\b_replace\b|\.update\("
)
"""What may set an attribute by a text, or compute what is asked for."""


def is_unchanging(attribute: str, sources: Mapping[str, str]) -> bool:
    """Whether an attribute of that name is set by constructors alone, in every file of a tree, and is computed by none.

    Args:
        attribute: its name, `lr` of `args.lr`.
        sources: the texts of the tree by path.
    """
    sets = re.compile(
        # `x.lr = 1`, `x.lr += 1`, `x.lr, y = …`, `for x.lr in`, `as x.lr`, `del x.lr`
        rf"(?P<of>[\w\])]+)\s*\.\s*{attribute}\b\s*(?:(?:[-+*/%|&^@]|//|\*\*|<<|>>)?=(?!=)|,[^\n()]*=(?!=)|:\s*[\w\[\], .]+=(?!=))"
        rf"|\b(?:for|as|del)\b[^\n:]*\.\s*{attribute}\b"
    )
    computed = re.compile(
        rf"\bdef\s+{attribute}\b|\b{attribute}\s*=\s*(?:\w+\.)?(?:cached_)?property\b"
    )
    for text in sources.values():
        if attribute not in text:
            continue
        if _REFLECTIVE.search(text) or computed.search(text):
            return False
        for found in sets.finditer(text):
            functions = re.findall(r"^[ \t]*def\s+(\w+)", text[: found.start()], re.MULTILINE)
            if found["of"] != "self" or functions[-1:] != ["__init__"]:
                return False
    return True
