"""How the code that runs the graph reaches what the code that builds it made: `$name` in either becomes Python."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.differential.text import Lines

_NAME = re.compile(r"\$(\w+)")


def names_in(text: Lines) -> list[str]:
    """The graph's names in some code, each once, in order."""
    return list(dict.fromkeys(name for line in text for name in _NAME.findall(line)))


def plain(text: Lines) -> Lines:
    """The names as local or global variables."""
    return _spelled(text, lambda name: name)


def called(text: Lines, names: dict[str, str]) -> Lines:
    """The names as variables, some of them under other names."""
    return _spelled(text, lambda name: names.get(name, name))


def of_object(text: Lines, owner: str, only: list[str] | None = None) -> Lines:
    """The names (or `only` these) as attributes."""
    return _spelled(text, lambda name: f"{owner}.{name}" if only is None or name in only else name)


def of_dict(text: Lines, owner: str, only: list[str]) -> Lines:
    return _spelled(text, lambda name: f"{owner}['{name}']" if name in only else name)


def _spelled(text: Lines, spell: Callable[[str], str]) -> Lines:
    return [_NAME.sub(lambda found: spell(found[1]), line) for line in text]
