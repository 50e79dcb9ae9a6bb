"""Where a name comes from that a file has by `from module import *`: from the last star that brings it.

A file that takes all names of another hands them on, but for those that begin with an underscore.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from towermigrate.recognize.proof.code import Code, Codes


@dataclass(frozen=True)
class Brought:
    """A file of the tree that binds a name and by whose star, `module`'s, it comes; no file where it is not known what comes."""

    module: str
    code: Code | None


def brought(codes: Codes, name: str, code: Code) -> Brought | None:
    """What brings a name to a file by a star; None where nothing does."""
    found = list(_in_order(codes, name, code, frozenset()))
    if not found:
        return None
    last = found[-1]
    if len({id(each.code) for each in found}) > 1 and not _run_in_order(code):
        return Brought(last.module, None)
    return last


def all_brought(codes: Codes, name: str, code: Code) -> list[Code]:
    """The files of the tree that bind a name and may bring it to a file by a star."""
    found = _in_order(codes, name, code, frozenset())
    return [each.code for each in found if each.code is not None]


def _in_order(codes: Codes, name: str, code: Code, through: frozenset[str]) -> Iterator[Brought]:
    if name.startswith("_"):
        return
    for star in code.star_imports:
        module = "." * star.level + (star.module or "")
        target = codes.imported(code.path, module)
        if target is None:
            if module != "__future__":
                yield Brought(module, None)
            continue
        if target is code or target.path in through:
            continue
        shown = _shown(target)
        if shown is not None and name not in shown:
            continue
        if name in target.bindings:
            yield Brought(module, target)
            continue
        inner = list(_in_order(codes, name, target, through | {code.path}))
        if inner:
            surely = len({id(each.code) for each in inner}) == 1 or _run_in_order(target)
            yield Brought(module, inner[-1].code if surely else None)


def _run_in_order(code: Code) -> bool:
    """Whether the star imports of a file run one after the other, each of them once."""
    body = {id(each) for each in code.tree.body}
    return all(id(each) in body for each in code.star_imports)


def _shown(code: Code) -> frozenset[str] | None:
    """The names that a star takes of a file which lists them; None where it lists none."""
    bound = code.bindings.get("__all__", [])
    if not bound:
        return None
    (first, *more) = bound
    value = first.value if isinstance(first, ast.Assign) else None
    if more or not isinstance(value, ast.List | ast.Tuple):
        return None
    return frozenset(
        each.value
        for each in value.elts
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )


__all__ = ["Brought", "all_brought", "brought"]
