"""The tables of names: the generated one (`names.txt`) and what `tf.contrib` became."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files


@dataclass(frozen=True)
class Names:
    """The generated table. Names are dotted and without the leading `tf.` or `tf_slim.`."""

    tensorflow: str
    tensorflow1: str
    missing: frozenset[str]
    differs: frozenset[str]
    gone: frozenset[str]
    tf_slim: frozenset[str]

    @cached_property
    def renamed(self) -> frozenset[str]:
        return self.missing | self.differs


@cache
def load_names() -> Names:
    """Read the committed table; empty parts where it does not exist yet."""
    sections: dict[str, set[str]] = {
        "missing": set(),
        "differs": set(),
        "gone": set(),
        "tf_slim": set(),
    }
    versions: dict[str, str] = {}
    table = files("towermigrate.symbols").joinpath("names.txt")
    current: set[str] = set()
    for line in table.read_text(encoding="ascii").splitlines() if table.is_file() else ():
        if line.startswith("#"):
            versions = dict(re.findall(r"(\w+)=([\w.]+)", line))
        elif line.startswith("["):
            current = sections[line.strip("[]")]
        else:
            current.add(line)
    return Names(
        tensorflow=versions.get("tensorflow", "unknown"),
        tensorflow1=versions.get("tensorflow1", "unknown"),
        missing=frozenset(sections["missing"]),
        differs=frozenset(sections["differs"]),
        gone=frozenset(sections["gone"]),
        tf_slim=frozenset(sections["tf_slim"]),
    )


def prefix_in(dotted: str, names: frozenset[str]) -> str | None:
    """The shortest prefix of `dotted` that is in `names`: `layers.dense` gives `layers`."""
    parts = dotted.split(".")
    for count in range(1, len(parts) + 1):
        prefix = ".".join(parts[:count])
        if prefix in names:
            return prefix
    return None
