"""Plant faults into the rewritten form of a program: what `verify` must find.

    faults = plant(rewritten, towers=2)
    tree = planted(rewritten, faults[0])

One module per subject; each reads one file and says which faults fit into it. Nothing here knows how a fault is found
or named by the diagnosis.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from towermigrate.verify.plant import (
    averages,
    clipping,
    gradients,
    host,
    initial,
    inputs,
    model,
    optimizers,
    schedules,
    shown,
    stages,
    variables,
)
from towermigrate.verify.plant.fault import Fault, one_of_each_kind, planted
from towermigrate.verify.plant.source import Source

__all__ = ["Fault", "one_of_each_kind", "plant", "planted"]

_SUBJECTS: tuple[Callable[[Source], Iterator[Fault]], ...] = (
    gradients.faults,
    variables.faults,
    optimizers.faults,
    schedules.faults,
    averages.faults,
    clipping.faults,
    inputs.faults,
    stages.faults,
    model.faults,
    host.faults,
    initial.faults,
    shown.faults,
)


def plant(tree: dict[str, str], towers: int, paths: Collection[str] | None = None) -> list[Fault]:
    """Every fault that fits into a rewritten tree, in the order of the subjects.

    Args:
        tree: the rewritten sources by path.
        towers: how many towers the program is run with.
        paths: the files that the program runs; None for all.
    """
    loop = any("tower_strategy(" in text for text in tree.values())
    sources = []
    for path, text in sorted(tree.items()):
        if (paths is None or path in paths) and "tensorflow" in text and "\r" not in text:
            try:
                sources.append(Source(path, text, towers, loop=loop))
            except (SyntaxError, ValueError):
                continue
    found = [fault for subject in _SUBJECTS for source in sources for fault in subject(source)]
    return [fault for fault in found if _parses(planted(tree, fault)[fault.path])]


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
