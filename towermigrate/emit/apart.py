"""Take apart again what was written for a program whose functions were read as one, whichever ways they were joined."""

from __future__ import annotations

from collections.abc import Mapping

from towermigrate.emit.carrying import put_back
from towermigrate.emit.parting import parted
from towermigrate.recognize.carried import Carried
from towermigrate.recognize.joined import Again, Joined


def apart(texts: Mapping[str, str], made: Joined) -> dict[str, str]:
    """The new texts of the files that were joined, with the functions as their author has them.

    Args:
        texts: what was written, by file, with the marks; the caller's file must be among them.

    Raises:
        NotParted: what was written cannot be taken apart.
    """
    if isinstance(made, Again):
        outer = apart(texts, made.outer)
        return {**outer, **apart({**texts, **outer}, made.inner)}
    return put_back(texts, made) if isinstance(made, Carried) else parted(texts, made)
