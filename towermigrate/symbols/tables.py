"""The tables of names: the generated one (`names.txt`) and what `tf.contrib` became."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

# What needs legacy Keras (FACTS: `tf.compat.v1.layers` is missing under Keras 3).
LEGACY_KERAS = frozenset(
    "layers nn.rnn_cell nn.dynamic_rnn nn.bidirectional_dynamic_rnn nn.static_rnn nn.raw_rnn keras "
    "nn.static_bidirectional_rnn nn.static_state_saving_rnn".split()
)
_UNLISTED = frozenset(["keras", "compat", "raw_ops", "contrib", "python", "core", "tools"])


@dataclass(frozen=True)
class Names:
    """The generated table. Names are dotted and without the leading `tf.` or `tf_slim.`.

    `moved` are names of TensorFlow 1 only, whose function or class `tf` has under another name.
    """

    tensorflow: str
    tensorflow1: str
    missing: frozenset[str]
    differs: frozenset[str]
    gone: frozenset[str]
    tf_slim: frozenset[str]
    known: frozenset[str]
    moved: dict[str, str]

    @cached_property
    def renamed(self) -> frozenset[str]:
        return self.missing | self.differs

    @cached_property
    def _modules(self) -> frozenset[str]:
        return frozenset(name.rpartition(".")[0] for name in self.renamed | self.known)

    @cached_property
    def tf_slim_modules(self) -> frozenset[str]:
        return frozenset(name.rpartition(".")[0] for name in self.tf_slim)

    def has(self, name: str) -> bool:
        """Whether a name stands in `tf` or `tf.compat.v1` itself, or did in TensorFlow 1."""
        return name in self.renamed or name in self.known or name in self._modules

    def unknown(self, dotted: str) -> str | None:
        """The part of `dotted` that neither `tf` nor `tf.compat.v1` has: `gfile.OpenFast`; None if it is there.

        Only modules are looked into: what stands behind a class or a function is its own business, and so is
        Keras.
        """
        parts = dotted.split(".")
        for count, part in enumerate(parts):
            parent, name = ".".join(parts[:count]), ".".join(parts[: count + 1])
            if parent not in self._modules or name in _UNLISTED or part.startswith("_"):
                return None
            if name not in self.renamed and name not in self.known and name not in self._modules:
                return name
        return None


@cache
def load_names() -> Names:
    """Read the committed table; empty parts where it does not exist yet."""
    sections: dict[str, set[str]] = {
        title: set() for title in ("missing", "differs", "known", "gone", "tf_slim", "moved")
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
        known=frozenset(sections["known"]),
        moved=dict(line.split() for line in sections["moved"]),
    )


@cache
def normal(dotted: str) -> tuple[str, bool] | None:
    """A TensorFlow name without `tensorflow.` and `compat.v1.`, and whether `compat.v1` stood in it."""
    if dotted != "tensorflow" and not dotted.startswith("tensorflow."):
        return None
    rest = dotted[len("tensorflow.") :]
    if rest == "compat.v1" or rest.startswith("compat.v1."):
        return rest[len("compat.v1.") :], True
    return rest, False


@cache
def prefix_in(dotted: str, names: frozenset[str]) -> str | None:
    """The shortest prefix of `dotted` that is in `names`: `layers.dense` gives `layers`."""
    parts = dotted.split(".")
    for count in range(1, len(parts) + 1):
        prefix = ".".join(parts[:count])
        if prefix in names:
            return prefix
    return None
