"""Variables in front of the towers that may start from one seed: eager TensorFlow gives the second one the numbers behind the first's."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_FIXED = ("zeros", "ones", "constant")
_UNKNOWN = ""


def with_one_seed(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The calls of `get_variable` that are not sure to draw by a seed of their own, or by none, behind the first one."""
    seen: list[str] = []
    for each in nodes:
        if not isinstance(each, ast.Call) or not ast.unparse(each.func).endswith("get_variable"):
            continue
        seed = _seed(each)
        if seed is None:
            continue
        if any(_UNKNOWN in (seed, other) or seed == other for other in seen):
            yield each
        seen.append(seed)


def _seed(call: ast.Call) -> str | None:
    """The text of a written seed; None where nothing is drawn by one."""
    given = [each.value for each in call.keywords if each.arg == "initializer"] + call.args[3:4]
    if not given or isinstance(given[0], ast.Constant):
        return None
    start = given[0]
    if not isinstance(start, ast.Call):
        return _UNKNOWN
    if ast.unparse(start.func).rpartition(".")[2].startswith(_FIXED):
        return None
    seeds = [each.value for each in start.keywords if each.arg == "seed"]
    if not start.args and not seeds and all(each.arg for each in start.keywords):
        return None
    if seeds and isinstance(seeds[0], ast.Constant):
        return repr(seeds[0].value)
    return _UNKNOWN  # by a name, or by its place
