"""What a program makes of its tree beside what stands in files: links, folders with nothing in them, what can be run, and
what it takes away.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import os
from typing import Callable, Dict, Iterator, Tuple

NOT_WRITTEN = ("__pycache__", ".git")
# What one of them is called where it is told.
_LINK, _FOLDER, _RUNS = "a link to %s", "an empty folder", "a file that can be run"
_MOST = 2000


def places_of(tree: str, named: Callable[[str], str]) -> Dict[str, str]:
    """By name what a place of the tree is, where that is more than a plain file or a folder of such.

    Args:
        named: a text without the names of folders that are others in each run.
    """
    found: Dict[str, str] = {}
    for name, what in _places(tree):
        if len(found) >= _MOST:
            break
        found[named(name)] = named(what)
    return found


def _places(tree: str) -> Iterator[Tuple[str, str]]:
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in NOT_WRITTEN]
        if not folders and not names and folder != tree:
            yield os.path.relpath(folder, tree), _FOLDER
        for name in folders + names:
            path = os.path.join(folder, name)
            try:
                if os.path.islink(path):
                    yield os.path.relpath(path, tree), _LINK % os.readlink(path)
                elif name in names and os.lstat(path).st_mode & 0o111:
                    yield os.path.relpath(path, tree), _RUNS
            except OSError:  # taken away meanwhile
                continue
