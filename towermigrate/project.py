"""A source tree on disk: read its TensorFlow files."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass, replace
from pathlib import Path

from towermigrate.findings import Finding
from towermigrate.listing import NOTEBOOK, Listing

# More is no program that somebody wrote. Python's parser takes half a gigabyte for a table of this size.
LARGEST = 2**20
# Most of a notebook are the pictures that it put out; its code is held to the limit above.
LARGEST_NOTEBOOK = 2**25
_NEEDLE = b"tensorflow"
_MAY_BRING = re.compile(
    rb"^[ \t]*from[ \t]+[\w.]+[ \t]+import\b[ \t]*(?:\(?[ \t]*\*|[^\n]*\b(?:tf|tensorflow|slim|tf_slim)\b)",
    re.MULTILINE,
)
"""A line that may bring TensorFlow's names from another file of the tree."""


class ProjectError(Exception):
    """Something on disk is not as it must be; the text says which file, what was found and what to do."""


@dataclass(frozen=True)
class SourceFile:
    """One file that mentions TensorFlow, or a `link`: one that does not, and that programs may import.

    `text` keeps its line ends and has no byte order mark; it is None where `problem` says why the bytes
    could not be read as text. `encoding` writes it back, byte order mark included.
    """

    path: str
    raw: bytes
    text: str | None
    encoding: str = "utf-8"
    problem: Finding | None = None
    link: bool = False

    def encode(self, text: str) -> bytes:
        """`text` as bytes of this file; raises UnicodeEncodeError where its encoding lacks a character."""
        return text.encode(self.encoding)


def decode(path: str, raw: bytes) -> SourceFile:
    """Read bytes as Python does: PEP 263 cookie, byte order mark, else UTF-8. Line ends stay as they are."""
    if raw.isascii() and b"coding" not in raw:
        return SourceFile(path, raw, raw.decode("ascii"))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = raw.decode(encoding)
        if text.encode(encoding) != raw:
            raise UnicodeError(f"writing it back as {encoding} would change bytes")
    except (SyntaxError, UnicodeError, LookupError) as error:
        return SourceFile(path, raw, None, problem=Finding("TM102", path, 1, 0, str(error)))
    return SourceFile(path, raw, text, encoding)


def read_tree(
    root: Path, listing: Listing, *, python2: bool = False, links: bool = False
) -> dict[str, SourceFile]:
    """Every listed file that contains the bytes `tensorflow`, and every one that cannot be read, by path.

    With `python2`, also those that Python 3 cannot parse and that may be Python 2: programs import them. As links also
    those that may get TensorFlow's names from another file, and with `links` all others: programs are run by them, reach
    their modules through them, or read their settings in them.
    """
    found = {one.path: _unread(one.path, one.reason) for one in listing.left_out if one.unreadable}
    for path in listing.files:
        try:
            raw = (root / path).read_bytes()
        except OSError as error:
            found[path] = _unread(path, f"cannot be read: {error.strerror}")
            continue
        if _NEEDLE not in raw and not (python2 and _maybe_python2(path, raw)):
            if _is_small(path, raw) and (links or _MAY_BRING.search(raw)):
                file = decode(path, raw)
                if file.text is not None:
                    found[path] = replace(file, link=True)
            continue
        limit = LARGEST_NOTEBOOK if path.endswith(NOTEBOOK) else LARGEST
        if len(raw) > limit:
            found[path] = _unread(path, too_large(len(raw), limit))
        else:
            found[path] = decode(path, raw)
    return found


def too_large(size: int, limit: int) -> str:
    """Why so many bytes are not read."""
    return f"{size / 2**20:.1f} MiB is more than {limit // 2**20} MiB: too large for a program"


def _is_small(path: str, raw: bytes) -> bool:
    return len(raw) <= LARGEST and not path.endswith(NOTEBOOK)


def _maybe_python2(path: str, raw: bytes) -> bool:
    from towermigrate.python2 import looks_like_python2
    from towermigrate.tree import parse_python, parses

    if len(raw) > LARGEST or not looks_like_python2(raw):
        return False
    text = decode(path, raw).text or ""
    if parses(text):
        return False
    try:
        parse_python(text)
    except SyntaxError:
        return True
    except (ValueError, RecursionError):
        pass
    return False


def _unread(path: str, reason: str) -> SourceFile:
    return SourceFile(path, b"", None, problem=Finding("TM105", path, 1, 0, reason))
