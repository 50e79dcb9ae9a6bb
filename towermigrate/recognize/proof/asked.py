"""Which variables a tower is sure to ask for: those that what is built behind the towers may ask for again.

Names are followed as TF1 makes them: by the variable scopes around a call, and for layers without a name also by all
that was asked for in the same scope before, which is what TF1 counts.
"""

from __future__ import annotations

from typing import Final

Key = tuple[object, ...]

SAME: Final = ""
"""The scope that is entered is the one that was there: `tf.variable_scope(tf.get_variable_scope())`."""
_BIAS = {"tf.layers.dense": 3, "tf.layers.conv1d": 8, "tf.layers.conv2d": 8, "tf.layers.conv3d": 8}
"""Where `use_bias` stands among the arguments of a layer."""


def place_of_bias(layer: str) -> int:
    return _BIAS.get(layer, 99)


class AskedFor:
    """The variables that a tower has asked for, as far as their names are known and it is sure to.

    `unsure` counts what may not run around the expression at hand, other than branches and loops.
    """

    def __init__(self) -> None:
        self.unsure = 0
        self._sure: set[Key] = set()
        self._path: list[str | None] = []
        self._before: list[list[object]] = [[]]

    def enter(self, part: str | None, sure: bool) -> None:
        """A variable scope is entered: a part of a name, SAME, or one that is not known (None)."""
        known = bool(part) and sure and not self.unsure
        # What follows another kind of entering is never the same as anything else.
        self._before[-1].append(("scope", part) if known else object())
        self._before.append([] if known else [object()])
        self._path.append(part)

    def leave(self, entered: int) -> None:
        if entered:
            del self._before[-entered:], self._path[-entered:]

    def key(self, kind: str, name: str | None, more: tuple[object, ...]) -> Key | None:
        """What tells the variables of a call from others; None where it is not known.

        Args:
            kind: the function that asks.
            name: its name, None for a layer that TF1 names.
            more: what else decides which variables it has.
        """
        before = self._before[-1]
        event: object = (kind, name) if not self.unsure else object()
        counted = () if name is not None else tuple(before)
        before.append(event)
        if None in self._path or (name is None and self.unsure):
            return None
        path = "/".join(part for part in self._path if part)
        return (kind, path, name, *more, counted)

    def note(self, key: Key | None) -> None:
        """A tower has asked."""
        if key is not None and not self.unsure:
            self._sure.add(key)

    def has(self, key: Key | None) -> bool:
        """Whether every tower asks for what has this key."""
        return key is not None and key in self._sure
