"""Where `towermigrate verify` listens to the helpers.

`active` is None in every ordinary run. verify's child process sets it before the program starts;
the helpers look it up at each call, so nothing is bound at import.
"""

from __future__ import annotations

from typing import Any, Protocol


class Hooks(Protocol):
    """What a listener is told. An index is the tower's place in the loop, None if not static."""

    def created(self, variables: Any) -> None:
        """A `TowerVariables` was made; it owns no variable yet."""

    def tower_begin(
        self, index: int | None, names: tuple[str, ...], args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """A tower is about to run on `args`, named `names`; what is returned is what it gets."""

    def tower_end(self, index: int | None) -> None:
        """That tower returned."""

    def gradients(
        self, index: int | None, loss: Any, grads_and_vars: list[tuple[Any, Any]]
    ) -> None:
        """The unscaled gradients of one tower; `loss` is None where the helper does not see it."""

    def applied(
        self, optimizer: Any, grads_and_vars: list[tuple[Any, Any]], averaged: bool
    ) -> None:
        """`apply_averaged` is about to apply these; `averaged` is always True."""


active: Hooks | None = None
