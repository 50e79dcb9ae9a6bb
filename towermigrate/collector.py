"""Python's collector of cycles, kept from work that makes none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector(*, freeze: bool = False) -> Iterator[None]:
    """Keep Python from looking for cycles: syntax trees have none, and looking takes a quarter of the time.

    Args:
        freeze: what is there at the end is not looked at later either. For a process that is about to end, which
            would go through all of it twice.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if freeze:
            gc.freeze()
        if collects:
            gc.enable()
